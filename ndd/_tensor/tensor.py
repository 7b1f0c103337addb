"""`Tensor`: one sample."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ndd._tensor import stream_waits
from ndd._tensor.arithmetic import Arithmetic
from ndd._tensor.device import DeviceLike
from ndd._tensor.display import tensor_text
from ndd._tensor.dtype import bfloat16
from ndd._tensor.handle import Handle
from ndd._tensor.operations import operation
from ndd._tensor.picture import tensor_html
from ndd._tensor.slicing import check_ranges
from ndd._tensor.store import Store, as_torch

if TYPE_CHECKING:
    from torch import Tensor as TorchTensor


class Tensor(Arithmetic, Handle):
    """One array with an element type, a device and a layout; possibly still being computed.

    Use `tensor()` (copies) or `as_tensor()` (shares memory where it can) to make one. Reading `shape`, converting
    (`torch()`, `np.asarray`) or printing waits for the operator behind the value; `dtype`, `ndim`, `layout` and
    `device` do not.

    Args:
        data: an array, a tensor, a number, a list of numbers, bytes or text.
        dtype: the element type to convert to. Default: the data's type.
        device: where the values go. Default: where they are.
        layout: a letter for each axis.
        batch, index_in_batch: in place of `data`: sample `index_in_batch` of a Batch.
        invocation_result: the invocation that computes the value; for ndd's own use.
        copy: whether the data are copied even if their memory could be shared.

    Raises TypeError and ValueError as `tensor` does, and ValueError for a `batch` that is no Batch.

    >>> import ndd, numpy as np
    >>> t = ndd.as_tensor(np.arange(6).reshape(2, 3), layout="HW")
    >>> t.shape, t.dtype, t.layout
    ((2, 3), DType(kind=Kind.signed, bits=64), 'HW')
    >>> (t[1] * 2).torch()
    tensor([ 6,  8, 10])
    """

    __slots__ = ()

    def __init__(
        self,
        data: Any = None,
        dtype: Any = None,
        device: DeviceLike | None = None,
        layout: str | None = None,
        batch: Any = None,
        index_in_batch: int | None = None,
        invocation_result: Any = None,
        copy: bool = False,
    ):
        if invocation_result is not None:
            source = invocation_result
        elif batch is not None:
            if not hasattr(batch, "select"):
                raise ValueError("The `batch` argument must be a `Batch`")
            source = batch.select(index_in_batch)
        else:
            source = operation("build_tensor")(data, dtype, device, layout, copy)
        self._adopt(source)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents; waits for the value."""
        return self._value().shapes[0]

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._value().element_count()

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.bytes

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._value().nbytes()

    def __format__(self, spec: str) -> str:
        """Formats a scalar as its number, `f"{loss:.3f}"`, as torch does."""
        if not spec:
            return str(self)
        if self.ndim:
            raise TypeError(
                f"A Tensor of shape {self.shape} cannot be formatted with {spec!r}, which is for one number: "
                f'[f"{{number:{spec}}}" for number in x.numpy().flat]'
            )
        return format(self.item(), spec)

    def item(self) -> Any:
        """The only element as a Python number; ValueError if there is not exactly one."""
        if self.size != 1:
            raise ValueError(f"Tensor has {self.size} elements, expected 1")
        if self._spec.dtype is bfloat16:
            return self.cpu().torch().item()
        return np.asarray(self.cpu()).item()

    def torch(self, copy: bool = False) -> TorchTensor:
        """This value as a torch tensor on the same device, sharing memory unless `copy`.

        A GPU value is ordered after the operators behind it: torch's current stream waits for them, the CPU does not.
        Views with negative strides and read-only memory are copied.

        Args:
            copy: memory of its own, which may be written to.
        """
        store = self._value()
        tensor = as_torch(store.arrays()[0], store.dtype)
        if store.stream is not None or store.ready is not None:
            hand_over(store, [tensor])
        return tensor.clone() if copy else tensor

    def numpy(self) -> np.ndarray:
        """This value as a NumPy array. On the CPU it shares the memory, as `np.asarray` does. A GPU value is copied, and the
        CPU waits for the copy (torch: `.cpu().numpy()`). TypeError for bfloat16, which NumPy does not have.

        >>> import ndd
        >>> (ndd.tensor([1, 2]) * 2).numpy()
        array([2, 4], dtype=int32)
        """
        check_numpy(self)
        return np.asarray(self.cpu())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self._spec.device.device_type != "cpu":
            raise TypeError("This is a GPU tensor: call .cpu() first to have it as a NumPy array")
        array = self._value().arrays()[0]
        if dtype is not None and np.dtype(dtype) != array.dtype:
            if copy is False:
                raise ValueError(f"A conversion from {array.dtype} to {np.dtype(dtype)} needs a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self._spec.device.device_type == "cpu":
            raise AttributeError("This is a CPU tensor: call .gpu() first for the CUDA array interface")
        interface: dict[str, Any] = getattr(self.torch(), "__cuda_array_interface__")
        return interface

    def __dlpack__(self, stream: Any = None, dl_device: Any = None, **more: Any) -> Any:
        tensor: Any = self.torch()
        if self._spec.device.device_type == "cpu":
            return tensor.__dlpack__(**more)
        return tensor.__dlpack__(stream=stream, **more)

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self._spec.device
        return (1, 0) if device.device_type == "cpu" else (2, int(device.device_id or 0))

    def __getitem__(self, ranges: Any) -> Tensor:
        """NumPy's basic indexing: integers (0-d tensors too), slices with any step, Ellipsis.

        An integer drops its axis and the axis' letter in the layout. The result is a view.
        """
        indices = check_ranges(ranges, self)
        return self if indices is None else operation("subscript")(self, indices)

    def __iter__(self) -> Iterator[Tensor]:
        """Iterates over the first axis (in DALI 2.4.0 this never ends)."""
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d Tensor")
        return (self[i] for i in range(self.shape[0]))

    def __repr__(self) -> str:
        return tensor_text(self)

    def _repr_html_(self) -> str | None:
        try:
            return tensor_html(self)
        except ImportError:  # Pillow is missing: a notebook shows the text
            return None


def check_numpy(value: Handle) -> None:
    """TypeError for values of a type that NumPy does not have."""
    if value.dtype is bfloat16:
        raise TypeError("NumPy has no bfloat16: convert with ndd.cast(value, dtype=ndd.float32) first")


_handed: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def hand_over(store: Store, tensors: list[Any]) -> None:
    """Makes torch's current stream wait for the work that writes `store`, and tells the allocator of the new user."""
    if not torch.cuda.is_available():
        return
    current = torch.cuda.current_stream(store.device.device_id)
    timing = None if stream_waits.begins is None else stream_waits.begins(current)
    if store.stream is not None and store.stream != current:
        # One event for each stream is recorded again and again: a new one takes the driver's lock twice.
        event = _handed.get(store.stream)
        _handed[store.stream] = event = store.stream.record_event(event)
        current.wait_event(event)
        for t in tensors:
            t.record_stream(current)
    if store.ready is not None:
        current.wait_event(store.ready)
        if store.stream is None:
            for t in tensors:
                t.record_stream(current)
    if timing is not None:
        timing.end(current)
