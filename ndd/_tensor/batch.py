"""`Batch`: N samples of one element type, rank and layout, whose shapes may differ."""

# This package may use attributes that are private to users, such as `Handle._value`.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import builtins
from collections.abc import Iterator
from types import EllipsisType
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import torch

from ndd._tensor.arithmetic import Arithmetic
from ndd._tensor.device import DeviceLike
from ndd._tensor.display import batch_text
from ndd._tensor.handle import Handle
from ndd._tensor.operations import operation
from ndd._tensor.picture import batch_html
from ndd._tensor.slicing import check_ranges
from ndd._tensor.store import as_torch, channels_last
from ndd._tensor.tensor import Tensor, check_numpy, hand_over
from ndd._tensor.type_guards import is_list

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor as TorchTensor


class Batch(Arithmetic, Handle):
    """N samples of one element type, rank and layout, whose shapes may differ; possibly still being computed.

    Use `batch()` (copies) or `as_batch()` (shares memory where it can) to make one. There is no `batch[i]`, since
    that could mean two things: `batch.select(i)` (or `batch.tensors[i]`) picks samples, `batch.slice[i]` indexes
    inside every sample.

    Args:
        tensors: the samples: a list of arrays, tensors or numbers; or one array, whose first axis counts them.
        dtype: the element type to convert to. Default: the samples' type.
        device: where the samples go. Default: where they are.
        layout: a letter for each axis of a sample. Default: the samples' layout.
        invocation_result: the invocation that computes the value; for ndd's own use.
        copy: whether the samples are copied even if their memory could be shared.

    >>> import ndd
    >>> b = ndd.batch([[1, 2, 3], [4, 5]])
    >>> b.shape, b.batch_size
    ([(3,), (2,)], 2)
    >>> b.slice[0].torch()
    tensor([1, 4], dtype=torch.int32)
    >>> b.torch(pad=True)
    tensor([[1, 2, 3],
            [4, 5, 0]], dtype=torch.int32)
    """

    __slots__ = ()

    def __init__(
        self,
        tensors: Any = None,
        dtype: Any = None,
        device: DeviceLike | None = None,
        layout: str | None = None,
        invocation_result: Any = None,
        copy: bool = False,
    ):
        if invocation_result is None:
            invocation_result = operation("build_batch")(tensors, dtype, device, layout, copy)
        self._adopt(invocation_result)

    @staticmethod
    def broadcast(sample: Any, batch_size: int, device: DeviceLike | None = None, dtype: Any = None) -> Batch:
        """`sample` repeated `batch_size` times, without copying it.

        Raises ValueError for a negative `batch_size`, TypeError for one that is not an integer (DALI drops a fraction).

        Args:
            sample: anything that `ndd.tensor` takes.
            batch_size: the number of samples of the batch, 0 or more.
            device, dtype: as for `tensor`.

        >>> import ndd
        >>> ndd.Batch.broadcast([1, 2], 3).shape
        [(2,), (2,), (2,)]
        """
        if isinstance(sample, Batch):
            raise ValueError("Cannot broadcast a Batch: expected one sample")
        return operation("broadcast")(sample, batch_size, device, dtype)

    @property
    def batch_size(self) -> int:
        """The number of samples; known without running anything (except after a decoder with `on_error="skip"`)."""
        if self._n is None:
            self._value()
        return self._n  # type: ignore[return-value]

    @property
    def shape(self) -> list[tuple[int, ...]]:
        """The shape of every sample; waits for the value."""
        return list(self._value().shapes)

    def lengths(self, axis: int | str = 0) -> TorchTensor:
        """The length of each sample, int64 `[N]`, which models of padded sequences need beside `torch(pad=True)`. It is on
        the CPU, which knows the shapes without waiting for a GPU.

        Args:
            axis: the axis of a sample that is measured: its number, or its letter in the layout.

        Raises IndexError for an axis that the samples do not have, ValueError for a letter that is not in the layout.

        >>> import ndd, torch
        >>> words = ndd.batch([[7, 8, 9], [5]])
        >>> padded, lengths = words.torch(pad=True), words.lengths()
        >>> lengths
        tensor([3, 1])
        >>> torch.arange(padded.shape[1]) < lengths[:, None]  # the mask: where a number is not padding
        tensor([[ True,  True,  True],
                [ True, False, False]])
        """
        if isinstance(axis, str):
            layout = self.layout or ""
            if len(axis) != 1 or axis not in layout:
                raise ValueError(f"lengths: there is no axis {axis!r} in the layout {layout!r}")
            axis = layout.index(axis)
        if not -self.ndim <= axis < self.ndim:
            raise IndexError(f"lengths: axis {axis} is out of range: the samples have {self.ndim} axes")
        extents = self._value().shape_array
        return torch.tensor(extents[:, axis] if len(extents) else extents.reshape(0))

    @property
    def tensors(self) -> Samples:
        """The samples as a sequence: `[i]` is a Tensor, a slice or a list of indices gives a part of the sequence."""
        return Samples(self, range(self.batch_size))

    @property
    def slice(self) -> SampleSlicer:
        """Indexing inside every sample: `batch.slice[1:5, :, 0]`.

        Bounds, steps and indices may be batches of integers, one for each sample.

        >>> import ndd
        >>> b = ndd.batch([[1, 2, 3, 4], [5, 6, 7]])
        >>> [s.torch().tolist() for s in b.slice[: ndd.batch([3, 1])]]
        [[1, 2, 3], [5]]
        """
        return SampleSlicer(self)

    @overload
    def select(self, sample_range: SupportsIndex) -> Tensor: ...
    @overload
    def select(self, sample_range: builtins.slice | list[Any] | EllipsisType) -> Batch: ...
    def select(self, sample_range: Any) -> Any:
        """Samples by position: a number gives a Tensor; a slice, a list or `...` a Batch. Views.

        Args:
            sample_range: an integer (negative ones count from the end), a slice, a list of integers, or `...` for all
                samples.

        Raises IndexError for a sample that does not exist, TypeError for anything but an integer, slice or list of integers.
        """
        if sample_range is ...:
            return self
        if isinstance(sample_range, slice):
            return self._chosen(list(range(self.batch_size))[sample_range])
        if is_list(sample_range):
            return self._chosen([_position(i, self.batch_size) for i in sample_range])
        return self._sample(_position(sample_range, self.batch_size))

    def _chosen(self, indices: list[int]) -> Batch:
        return operation("choose_samples")(self, indices)

    def _sample(self, i: int) -> Tensor:
        if self._store is not None:
            return Tensor._of_store(self._store.sample(i))
        return operation("choose_sample")(self, i)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.tensors)

    def __getitem__(self, key: Any) -> Any:
        raise TypeError(
            "'Batch' object is not subscriptable: batch[i] could mean two things. Use batch.select(i) or "
            "batch.tensors[i] for samples of the batch, batch.slice[i] to index inside every sample"
        )

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        raise TypeError(
            f"A Batch cannot be formatted with {spec!r}, which is for one number: batch.tensors are its samples"
        )

    if not TYPE_CHECKING:  # a type checker takes an object with these methods for one array

        def __dlpack__(self, **_: Any) -> Any:
            raise TypeError(
                "A Batch is several arrays, DLPack hands over one: batch.torch() gives one tensor [N, ...], batch.tensors "
                "the samples"
            )

        def __dlpack_device__(self) -> Any:
            return self.__dlpack__()

    def __len__(self) -> int:
        raise TypeError("object of type 'Batch' has no len(): use batch.batch_size for the number of samples")

    @property
    def dropped(self) -> list[Any]:
        """The samples that a decoder with `on_error` left out or filled in: a list of `BadSample` (index, source, error)."""
        return list(self._value().dropped or [])

    def torch(self, copy: bool | None = None, pad: bool = False, memory_format: Any = None) -> TorchTensor:
        """The samples as one torch tensor `[N, ...]` on the same device.

        Args:
            copy: None shares memory if the samples lie in one piece (as operators leave uniform batches); True
                always copies; False raises ValueError if a copy cannot be avoided.
            pad: pad ragged samples with zeros at the end of each axis to the largest extent; `lengths` tells how long each
                one was. Without it samples of different shapes raise ValueError.
            memory_format: `torch.channels_last` gives images as `[N, C, H, W]` whose channels are next to each other, as
                convolutions on a GPU want them: a view of an HWC batch, a copy of a CHW batch. `torch.channels_last_3d` does
                the same for volumes (DHWC, CDHW) and video (FHWC, CFHW). ValueError for other formats and layouts.

        >>> import ndd, torch
        >>> images = ndd.ones(batch_size=2, shape=[4, 6, 3], layout="HWC")
        >>> images.torch(memory_format=torch.channels_last).shape
        torch.Size([2, 3, 4, 6])
        """
        if memory_format is not None:
            return channels_last(self.torch(copy, pad), self.layout, memory_format)
        store = self._value()
        whole = store.dense()
        if whole is None:
            if copy is False:
                raise ValueError("This batch cannot be converted to a tensor without a copy: its samples lie apart")
            if not store.uniform():
                return operation("stack_batch")(self, pad=pad).torch()
            whole = store.stacked()
        elif copy:
            whole = whole.copy() if store.on_cpu else whole.clone()
        tensor = as_torch(whole, store.dtype)
        if store.stream is not None or store.ready is not None:
            hand_over(store, [tensor])
        return tensor

    def numpy(self, pad: bool = False) -> np.ndarray:
        """The samples as one NumPy array `[N, ...]`. On the CPU it shares the memory if the samples lie in one piece (as
        operators leave uniform batches). A GPU batch is copied, and the CPU waits for the copy. TypeError for bfloat16.

        Args:
            pad: pad ragged samples with zeros at the end of each axis to the largest extent. Without it samples of
                different shapes raise ValueError; `[sample.numpy() for sample in batch]` are the single samples.

        >>> import ndd
        >>> ndd.batch([[1, 2, 3], [4]]).numpy(pad=True)
        array([[1, 2, 3],
               [4, 0, 0]], dtype=int32)
        """
        check_numpy(self)
        return self.cpu().torch(pad=pad).numpy()

    def __repr__(self) -> str:
        return batch_text(self)

    def _repr_html_(self) -> str | None:
        try:
            return batch_html(self)
        except ImportError:  # Pillow is missing: a notebook shows the text
            return None


def _position(i: Any, n: int) -> int:
    """A checked, non-negative sample index."""
    try:
        position = i.__index__()
    except (AttributeError, TypeError):
        raise TypeError(
            f"batch indices must be integers, slices or lists of integers, not {type(i).__name__}"
        ) from None
    if not -n <= position < n:
        raise IndexError(f"sample {position} is out of range: the batch has {n} samples")
    return position % n


class Samples:
    """The samples of a batch as a sequence; see `Batch.tensors`."""

    __slots__ = ("_batch", "_indices")

    def __init__(self, batch: Batch, indices: Any):
        self._batch = batch
        self._indices = indices

    def __len__(self) -> int:
        return len(self._indices)

    def __iter__(self) -> Iterator[Tensor]:
        return (self._batch._sample(i) for i in self._indices)

    @overload
    def select(self, selection: SupportsIndex) -> Tensor: ...
    @overload
    def select(self, selection: slice | list[Any]) -> Samples: ...
    def select(self, selection: Any) -> Any:
        """A Tensor for a number, a part of this sequence for a slice or a list."""
        if isinstance(selection, slice):
            return Samples(self._batch, self._indices[selection])
        if is_list(selection):
            return Samples(self._batch, [self._indices[_position(i, len(self))] for i in selection])
        return self._batch._sample(self._indices[_position(selection, len(self))])

    __getitem__ = select

    def tolist(self) -> list[Tensor]:
        """The samples as a list of Tensors."""
        return list(self)

    def as_batch(self, copy: bool = False) -> Batch:
        """These samples as a Batch; they share memory with the batch they come from unless `copy`."""
        chosen = self._batch._chosen(list(self._indices))
        return chosen.to_device(chosen.device, force_copy=True) if copy else chosen


class SampleSlicer:
    """Indexing inside every sample; see `Batch.slice`."""

    __slots__ = ("_batch",)

    def __init__(self, batch: Batch):
        self._batch = batch

    def __getitem__(self, ranges: Any) -> Batch:
        indices = check_ranges(ranges, self._batch)
        return self._batch if indices is None else operation("subscript")(self._batch, indices)
