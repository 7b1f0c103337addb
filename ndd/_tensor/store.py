"""The bytes behind evaluated values: N samples of one element type, in one of four forms.

* `whole`: one array `[N, ...]`, samples of one shape;
* `flat`: one 1-D buffer with the samples one after the other, shapes may differ;
* `packed`: samples at any places in a few buffers, as readers produce them (`packed.py`);
* `parts`: a list of arrays, as a decoder or a user made them (they may be strided views). A store of another form also makes
  such a list, of views, for `arrays()`.

On the CPU the arrays are NumPy arrays (over pooled memory, or a user's own): making and slicing them costs a tenth of what
torch tensors cost. On a GPU they are torch tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import torch

from ndd._tensor.device import Device
from ndd._tensor.dtype import DType, bfloat16, torch_dtype
from ndd._tensor.memory import host_empty, torch_device
from ndd._tensor.small_arrays import numbers_below
from ndd._tensor.type_guards import is_array

Shape = tuple[int, ...]


_MOST = 2**60 - 1  # elements, of up to 8 bytes


class Volumes:
    """Element counts that follow from the shapes of a batch; batches of the same shapes share one object.

    Raises MemoryError for more elements than can be counted in 64 bits.
    """

    __slots__ = ("_ends", "_offsets", "largest", "sizes", "total")

    def __init__(self, shapes: np.ndarray):
        n, columns = shapes.shape
        self.sizes = volumes(shapes)
        self._offsets: np.ndarray | None = None
        if not n:
            self._ends, self.total, self.largest = self.sizes, 0, 0
            return
        self.largest = int(np.maximum.reduce(self.sizes))
        most = self.largest if columns < 2 else int(np.maximum.reduce(shapes, axis=None)) ** columns
        if most * n > _MOST:  # else no sum of this many can overflow
            total = sum([prod(s) for s in shapes.tolist()])
            if total > _MOST:
                raise MemoryError(
                    f"{total:,} elements are more than memory can hold: the shape of a sample is too large"
                )
        self._ends = np.add.accumulate(self.sizes)
        self.total = int(self._ends[-1])

    @classmethod
    def known(cls, sizes: np.ndarray, offsets: np.ndarray, total: int, largest: int) -> Volumes:
        """Volumes whose numbers are known already."""
        self = cls.__new__(cls)
        self.sizes, self._offsets, self.total, self.largest = sizes, offsets, total, largest
        return self

    @property
    def offsets(self) -> np.ndarray:
        """The first element of each sample in a flat buffer, int64 `[N]`."""
        if self._offsets is None:
            self._offsets = self._ends - self.sizes
        return self._offsets


_of_gpu: list[Callable[[np.ndarray], Volumes]] = [Volumes]


def bind_volumes(count: Callable[[np.ndarray], Volumes]) -> None:
    """Sets the function that counts the elements of GPU batches. The kernels' package, which is imported by then, has a
    faster one."""
    _of_gpu[0] = count


def volumes(shapes: np.ndarray) -> np.ndarray:
    """The product of each row, int64 `[N]`. For 64 rows this takes a quarter of the time of `prod(axis=1)`."""
    columns = shapes.shape[1]
    if not columns:
        return np.ones(len(shapes), np.int64)
    counts = shapes[:, 0].copy() if columns == 1 else shapes[:, 0] * shapes[:, 1]
    for axis in range(2, columns):
        counts *= shapes[:, axis]
    return counts


def grouped(shapes: np.ndarray, *ends: int) -> np.ndarray:
    """Shapes `[N, ndim]` with neighbouring axes joined: the product of the extents before `ends[0]`, of those from there to
    before `ends[1]`, and so on to the last, int64 `[N, len(ends) + 1]`. `grouped(shapes, 2)` of HWC images is pixels and
    channels."""
    joined = np.empty((len(shapes), len(ends) + 1), np.int64)
    for k, (first, last) in enumerate(pairwise([0, *ends, shapes.shape[1]])):
        joined[:, k] = shapes[:, first] if last == first + 1 else volumes(shapes[:, first:last])
    return joined


class Store:
    """See the module. `batched` is False for the value of a Tensor (one sample)."""

    __slots__ = (
        "__weakref__",
        "_addresses",
        "_copies",
        "_has_gaps",
        "_shape_array",
        "_shapes",
        "_volumes",
        "batched",
        "device",
        "dropped",
        "dtype",
        "flat",
        "iteration",
        "layout",
        "loop_position",
        "n",
        "packed",
        "partial",
        "parts",
        "ready",
        "scales",
        "source_info",
        "stream",
        "whole",
    )

    def __init__(
        self,
        dtype: DType,
        layout: str | None,
        device: Device,
        shapes: list[Shape] | np.ndarray,
        *,
        shape_array: np.ndarray | None = None,
        whole: Any = None,
        flat: Any = None,
        packed: Any = None,
        parts: list[Any] | None = None,
        batched: bool = True,
        source_info: list[Any] | None = None,
    ):
        self.dtype = dtype
        self.layout = layout
        self.device = device
        # The shapes come as a list of tuples or as an array; the other form is made on demand. For 64 samples the list
        # takes 10 us, the array 5 us.
        given_list = not isinstance(shapes, np.ndarray)
        self.n = len(shapes)
        self._shapes: list[Shape] | None = shapes if given_list else None  # type: ignore[assignment]
        self._shape_array: np.ndarray | None = shape_array if given_list else shapes  # type: ignore[assignment]
        self._volumes: Volumes | None = None
        self._addresses: np.ndarray | None = None
        self._has_gaps: bool | None = None  # whether a sample is strided; None: not known yet
        self._copies: Store | None = None  # the copies of strided samples that `pointers` made last
        self.whole = whole
        self.flat = flat
        self.packed = packed
        self.parts = parts
        self.batched = batched
        self.source_info = source_info
        self.scales: list[Any] | None = None  # for sounds: the `Scale` of each sample
        self.dropped: list[Any] | None = None
        self.partial = False  # a decoder filled only the part that the one call which takes it reads (`fusion.window`)
        self.stream: Any = None  # GPU: the torch stream that writes the memory
        self.ready: Any = None  # GPU: an event to wait for, when the memory came from a stream that is not ours
        # From a reader: its `ReaderOutput`. From an operator: where in the loop it was called (`Invocation.loop_position`).
        self.loop_position: Any = None
        self.iteration: Any = None  # from a reader: the `Iteration` with this batch, once it has begun (`_lookahead`)

    @property
    def ndim(self) -> int:
        """The number of dimensions of a sample; 0 for an empty batch whose rank is unknown."""
        if self._shapes is not None:
            return len(self._shapes[0]) if self._shapes else self._ndim_without_samples()
        return self._shape_array.shape[1] if len(self._shape_array) else self._ndim_without_samples()  # type: ignore[union-attr, arg-type]

    def _ndim_without_samples(self) -> int:
        return 0 if self.whole is None else self.whole.ndim - 1  # see `extent_inference.py`

    @property
    def shapes(self) -> list[Shape]:
        """The shape of every sample."""
        if self._shapes is None:
            self._shapes = [tuple(s) for s in self._shape_array.tolist()]  # type: ignore[union-attr]
        return self._shapes

    @property
    def on_cpu(self) -> bool:
        return self.device.device_type == "cpu"

    @property
    def shape_array(self) -> np.ndarray:
        """The shapes as int64 `[N, ndim]`."""
        if self._shape_array is None:
            ndim = len(self.shapes[0]) if self.shapes else 0
            self._shape_array = np.array(self.shapes, np.int64).reshape(len(self.shapes), ndim)
        return self._shape_array  # type: ignore[return-value]

    @property
    def volumes(self) -> Volumes:
        """The number of elements of each sample, and its place in a flat buffer."""
        if self._volumes is None:
            count = Volumes if self.device.device_id is None else _of_gpu[0]
            self._volumes = count(self.shape_array)
        return self._volumes

    @property
    def sizes(self) -> np.ndarray:
        """The number of elements of each sample, int64 `[N]`."""
        return self.volumes.sizes

    def uniform(self) -> bool:
        """Whether all samples have one shape (an empty batch has)."""
        if self.whole is not None or len(self.shapes) < 2:
            return True
        shapes = self.shapes
        return shapes.count(shapes[0]) == len(shapes)

    def arrays(self) -> list[Any]:
        """Every sample as an array of its own shape: views."""
        if self.parts is None:
            if self.whole is not None:
                self.parts = [self.whole[i, ...] for i in range(len(self.shapes))]
            elif self.packed is not None:
                self.parts = self.packed.arrays()
            else:
                self.parts = split_flat(self.flat, self.shapes)
        return self.parts

    def contiguous(self) -> Store:
        """This store if each sample is C-contiguous, else a new one with copies of those that are not.

        A store never changes memory that it shares. The caller owns the copies, and holds the new store as long as a kernel
        reads it (on a GPU until the launch is queued; torch's allocator reuses memory in the order of the stream).
        """
        if self._has_gaps is None:
            self._has_gaps = self.flat is None and self.packed is None and self._strided()
        if not self._has_gaps:
            return self
        if self.whole is not None:
            return self._over(self.layout, whole=_packed(self.whole))
        return self._over(self.layout, parts=[a if is_contiguous(a) else _packed(a) for a in self.parts or []])

    def _strided(self) -> bool:
        whole = self.whole
        if whole is None:
            return not all([is_contiguous(a) for a in self.parts or []])
        return not (is_contiguous(whole) or not len(whole) or is_contiguous(whole[0, ...]))

    def contiguous_arrays(self) -> list[Any]:
        """As `arrays`, but C-contiguous: a strided sample is replaced by a copy, which the caller holds."""
        return self.contiguous().arrays()

    def sample(self, i: int) -> Store:
        """Sample `i` as the value of a Tensor: a view."""
        array = self.arrays()[i]
        info = None if self.source_info is None else [self.source_info[i]]
        store = Store(
            self.dtype, self.layout, self.device, [self.shapes[i]], parts=[array], batched=False, source_info=info
        )
        store.stream, store.ready = self.stream, self.ready
        store.scales = None if self.scales is None else [self.scales[i]]
        return store

    def select(self, indices: list[int]) -> Store:
        """The samples `indices` as a batch: views."""
        arrays = self.arrays()
        info = None if self.source_info is None else [self.source_info[i] for i in indices]
        chosen = Store(
            self.dtype,
            self.layout,
            self.device,
            [self.shapes[i] for i in indices],
            parts=[arrays[i] for i in indices],
            source_info=info,
        )
        if not indices:
            chosen = empty_store(self.dtype, self.layout, self.device, extents_of(self))
        step = indices[1] - indices[0] if len(indices) > 1 else 1
        if (
            self.whole is not None
            and step > 0
            and indices
            and indices == list(range(indices[0], indices[-1] + 1, step))
        ):
            chosen.whole = self.whole[indices[0] : indices[-1] + 1 : step]
        chosen.stream, chosen.ready = self.stream, self.ready
        chosen.scales = None if self.scales is None else [self.scales[i] for i in indices]
        return chosen

    def dense(self) -> Any:
        """The samples as one array `[N, ...]` without a copy; None where that is impossible."""
        if self.whole is not None:
            return self.whole
        if not self.shapes or not self.uniform():
            return None
        if self.flat is not None:
            self.whole = self.flat.reshape((len(self.shapes), *self.shapes[0]))
        elif len(self.shapes) == 1:
            self.whole = self.arrays()[0][None]
        return self.whole

    def stacked(self) -> Any:
        """The samples as one array `[N, ...]`, copied if they are apart in memory. The shapes must be equal."""
        whole = self.dense()
        if whole is not None:
            return whole
        if self.on_cpu:
            shape = self.shapes[0] if self.shapes else ()
            whole = host_empty((len(self.shapes), *shape), self.dtype.numpy)
            for i, array in enumerate(self.arrays()):
                whole[i] = array
            return whole
        if not self.shapes:
            return torch.empty((0,), dtype=torch_dtype(self.dtype), device=torch_device(self.device))
        return torch.stack(self.arrays())

    def pointers(self) -> np.ndarray:
        """The address of each sample, int64 `[N]`.

        A strided sample is copied, and the copy exists until the next call of this method. Where several threads may call it,
        hold the result of `contiguous()` and call its method.
        """
        if self._addresses is None:
            if self.flat is None:
                packed = self.contiguous()
                if packed is not self:
                    self._copies = packed
                    return packed.pointers()
            self._addresses = self._found_addresses()
        return self._addresses

    def _found_addresses(self) -> np.ndarray:
        if self.flat is not None:
            return address(self.flat) + self.volumes.offsets * self.dtype.bytes
        if self.whole is not None:
            # The samples may be apart in memory, or share memory (a broadcast).
            step = self.whole.strides[0] if self.on_cpu else self.whole.stride(0) * self.dtype.bytes
            return address(self.whole) + step * numbers_below(self.n)
        if self.packed is not None:
            return self.packed.addresses()
        return np.array([address(a) for a in self.parts or []], np.int64)

    def owners(self) -> list[Any]:
        """GPU: the torch tensors that hold the memory."""
        if self.whole is not None:
            return [self.whole]
        return [self.flat] if self.flat is not None else list(self.parts or [])

    def element_count(self) -> int:
        if self.whole is not None and self.on_cpu:  # counting the elements again takes longer than a small operator
            return self.whole.size
        return self.volumes.total if self.n else 0

    def nbytes(self) -> int:
        return self.element_count() * self.dtype.bytes

    def relabelled(self, layout: str | None) -> Store:
        """The same memory under another layout."""
        return self._over(layout, whole=self.whole, flat=self.flat, packed=self.packed, parts=self.parts)

    def _over(self, layout: str | None, **forms: Any) -> Store:
        """A store with these shapes and sources in other memory."""
        shapes = self.shape_array if self._shapes is None else self._shapes
        other = Store(
            self.dtype, layout, self.device, shapes, batched=self.batched, source_info=self.source_info, **forms
        )
        other.stream, other.ready, other._shape_array = self.stream, self.ready, self._shape_array
        other._volumes, other.scales = self._volumes, self.scales
        return other


def _packed(array: Any) -> Any:
    """A C-contiguous copy, on the CPU in pooled memory."""
    if not is_array(array):
        return array.contiguous()
    copied = host_empty(array.shape, array.dtype)
    copied[...] = array
    return copied


def is_contiguous(array: Any) -> bool:
    """C-contiguity of a NumPy array or torch tensor."""
    return array.flags.c_contiguous if isinstance(array, np.ndarray) else array.is_contiguous()


def address(array: Any) -> int:
    """The address of the first element of a NumPy array or torch tensor."""
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data_ptr()


def split_flat(flat: Any, shapes: list[Shape]) -> list[Any]:
    """Views of consecutive samples of a 1-D buffer."""
    parts: list[Any] = []
    start = 0
    for shape in shapes:
        count = prod(shape)
        parts.append(flat[start : start + count].reshape(shape))
        start += count
    return parts


def as_torch(array: Any, dtype: DType) -> Any:
    """A torch tensor over the memory of an array of element type `dtype`."""
    if not is_array(array):
        return array
    if any(s < 0 for s in array.strides):
        array = array.copy()  # torch has no negative strides
    if not array.flags.writeable:
        array = array.copy()  # torch cannot mark memory read-only; a mapped file must not be written through it
    tensor = torch.as_tensor(array)
    return tensor.view(torch.bfloat16) if dtype is bfloat16 else tensor


_CHANNELS_LAST = {"HWC": "channels_last", "CHW": "channels_last", "DHWC": "channels_last_3d", "CDHW": "channels_last_3d",
                  "FHWC": "channels_last_3d", "CFHW": "channels_last_3d"}  # fmt: skip


def channels_last(tensor: Any, layout: str | None, memory_format: Any) -> Any:
    """A torch tensor `[N, ...]` of this layout as `[N, C, ...]` whose channels are next to each other."""
    name = _CHANNELS_LAST.get(layout or "")
    if name is None or memory_format is not getattr(torch, name):
        raise ValueError(
            f"memory_format={memory_format} of samples with the layout {layout!r}: torch.channels_last is for HWC and CHW, "
            "torch.channels_last_3d for DHWC, CDHW, FHWC and CFHW"
        )
    if layout[-1] == "C":  # type: ignore[index]
        return tensor.movedim(-1, 1)
    return tensor.contiguous(memory_format=memory_format)


def empty_store(dtype: DType, layout: str | None, device: Device, extents: Sequence[int]) -> Store:
    """A batch without samples, its (empty) memory in one piece; `extents` of a sample, 0 where they are unknown."""
    shape = (0, *extents)
    if device.device_id is None:
        return Store(dtype, layout, device, [], whole=np.empty(shape, dtype.numpy))
    return Store(
        dtype, layout, device, [], whole=torch.empty(shape, dtype=torch_dtype(dtype), device=torch_device(device))
    )


def common_extents(shapes: Iterable[Sequence[int]]) -> Shape:
    """The extents in which all of these shapes agree, else 0."""
    rows = [tuple(int(extent) for extent in shape) for shape in shapes]
    return tuple(column[0] if len(set(column)) == 1 else 0 for column in zip(*rows, strict=True))


def extents_of(store: Store, ndim: int | None = None) -> Shape:
    """The extents that all samples of a batch have in common, 0 for others; a batch without samples keeps the known ones."""
    if store.n:
        return common_extents(store.shapes)
    return (0,) * (ndim or 0) if store.whole is None else tuple(store.whole.shape[1:])
