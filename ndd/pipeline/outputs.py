"""The results of a pipeline's `run()`: lists of tensors with the methods of DALI's `TensorList` and `Tensor`."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
from torch.utils.dlpack import from_dlpack

import ndd


class PipelineTensor:
    """One tensor of a pipeline's output. `shape()` and `layout()` are methods here, as in DALI's pipeline mode.

    `TensorCPU` and `TensorGPU` are made from arrays, tensors and DLPack capsules, and share memory where they can.

    Args:
        data: an array, a tensor of another library, or an `ndd.Tensor`.
        layout: a letter for each axis.
        is_pinned: no effect.
    """

    def __new__(cls, data: Any, layout: str | None = None, is_pinned: bool | None = None) -> Any:
        """Makes an object of the class for its device, unless the class is for one device."""
        if cls is PipelineTensor:
            kind: Any = TensorGPU if data.device.device_type == "gpu" else TensorCPU
            return super().__new__(kind)
        return super().__new__(cls)

    def __init__(self, data: Any, layout: str | None = None, is_pinned: bool | None = None):
        if not isinstance(data, ndd.Tensor):
            data = _from_outside(data)
        self._tensor = data
        if layout:
            self.set_layout(layout)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._tensor,)

    def __ndd_value__(self) -> Any:
        return self._tensor

    def shape(self) -> list[int]:
        """The extents."""
        return list(self._tensor.shape)

    def layout(self) -> str:
        """The layout, "" if there is none."""
        return self._tensor.layout or ""

    @property
    def dtype(self) -> Any:
        """The element type as a `types.DALIDataType`."""
        return self._tensor.dtype.type_id

    def ndim(self) -> int:
        """The number of axes."""
        return self._tensor.ndim

    def set_layout(self, layout: str | None) -> None:
        """Gives this tensor another layout with a letter for each axis; "" or None removes it.

        Args:
            layout: as many letters as there are axes. ValueError for another number.
        """
        tensor = self._tensor
        _check_layout(layout, tensor.ndim)
        self._tensor = ndd.as_tensor(tensor, layout=layout) if layout else ndd.reshape(tensor, layout="")

    def get_property(self, key: str) -> str | None:
        """The property "source_info" or "layout"; None for any other.

        Args:
            key: the name of the property.
        """
        value = {"source_info": self.source_info, "layout": self.layout}.get(key)
        return value() if value is not None else None

    def copy_to_external(self, ptr: Any) -> None:
        """Copies the elements to an address in CPU memory, a `ctypes.c_void_p` or an integer.

        Args:
            ptr: the address; as many bytes as the elements have are written there.
        """
        _copy(self._tensor.cpu(), ptr)

    def as_cpu(self) -> PipelineTensor:
        """This tensor on the CPU."""
        return PipelineTensor(self._tensor.cpu())

    def torch(self, copy: bool = False) -> Any:
        """A torch tensor, sharing memory unless `copy`.

        Args:
            copy: memory of its own.
        """
        return self._tensor.torch(copy)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._tensor.torch().data_ptr()

    def source_info(self) -> str:
        """The source of the sample, "" if unknown."""
        return str(self._tensor.source_info or "")

    def squeeze(self, dim: int | None = None) -> bool:
        """Drops axes of extent 1 (or axis `dim` alone, counted from the end if negative); returns whether there were any.

        Args:
            dim: the axis; None: all of extent 1. RuntimeError for an axis that does not exist.
        """
        shape = self._tensor.shape
        if dim is not None and not -len(shape) <= dim < len(shape):
            raise RuntimeError(f"squeeze: dim={dim} is out of range: the tensor has {len(shape)} axes")
        axes = [i for i, e in enumerate(shape) if e == 1 and dim in (None, i, i - len(shape))]
        if axes:
            self._tensor = ndd.squeeze(self._tensor, axes=axes)
        return bool(axes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self._tensor.__array__(dtype, copy)

    def __dlpack__(self, **arguments: Any) -> Any:
        return self._tensor.__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._tensor.__dlpack_device__()

    def __getattr__(self, name: str) -> Any:
        if name == "__cuda_array_interface__":
            return self._tensor.__cuda_array_interface__
        if name == "__array_interface__" and self._tensor.device.device_type == "cpu":
            return np.asarray(self._tensor).__array_interface__
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return _shown(self, self._tensor)


class TensorCPU(PipelineTensor):
    """A `PipelineTensor` in CPU memory.

    Raises TypeError for anything but an array, tensor or DLPack capsule.

    >>> import numpy as np
    >>> from ndd.tensors import TensorCPU
    >>> TensorCPU(np.zeros((2, 3, 3), np.uint8), "HWC").shape()
    [2, 3, 3]
    """


class TensorGPU(PipelineTensor):
    """A `PipelineTensor` in GPU memory.

    Raises TypeError for anything but an array, tensor or DLPack capsule.
    """


class TensorList:
    """One output of a pipeline: the samples of a batch. It owns its memory: later runs do not change it.

    `TensorListCPU` and `TensorListGPU` are made from an array `[N, ...]` or a list of arrays or tensors of one type.

    Args:
        data: an array `[N, ...]`, a list of arrays or tensors, or an `ndd.Batch`.
        layout: of a sample, a letter for each axis.
        is_pinned: no effect.
    """

    def __new__(cls, data: Any, layout: str | None = None, is_pinned: bool | None = None) -> Any:
        """Makes an object of the class for its device, unless the class is for one device."""
        if cls is TensorList:
            kind: Any = TensorListGPU if data.device.device_type == "gpu" else TensorListCPU
            return super().__new__(kind)
        return super().__new__(cls)

    def __init__(self, data: Any, layout: str | None = None, is_pinned: bool | None = None):
        if not isinstance(data, ndd.Batch):
            data = _samples_from_outside(data)
        self._batch = data
        if layout:
            self.set_layout(layout)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._batch,)

    @property
    def batch(self) -> Any:
        """The `ndd.Batch`."""
        return self._batch

    def __ndd_value__(self) -> Any:
        return self._batch

    def __len__(self) -> int:
        return self._batch.batch_size

    def shape(self) -> list[tuple[int, ...]]:
        """The shape of every sample."""
        return self._batch.shape

    def layout(self) -> str:
        """The layout of a sample, "" if there is none."""
        return self._batch.layout or ""

    @property
    def dtype(self) -> Any:
        """The element type as a `types.DALIDataType`."""
        return self._batch.dtype.type_id

    def ndim(self) -> int:
        """The number of axes of a sample."""
        return self._batch.ndim

    def set_layout(self, layout: str | None) -> None:
        """Returns the samples another layout with a letter for each axis; "" or None removes it.

        Args:
            layout: as many letters as a sample has axes. ValueError for another number.
        """
        _check_layout(layout, self._batch.ndim)
        self._batch = ndd.as_batch(self._batch, layout=layout or "")

    def reset(self) -> None:
        """Drops the samples: the list is empty afterwards."""
        self._batch = ndd.batch([], dtype=self._batch.dtype)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._batch.select(0).torch().data_ptr()

    def copy_to_external(self, ptr: Any) -> None:
        """Copies the samples one after the other to an address in CPU memory, a `ctypes.c_void_p` or an integer.

        Args:
            ptr: the address; as many bytes as the samples have are written there.
        """
        address = int(getattr(ptr, "value", ptr))
        for tensor in self._batch.cpu():
            _copy(tensor, address)
            address += tensor.nbytes

    def is_dense_tensor(self) -> bool:
        """Whether all samples have one shape."""
        shapes = self._batch.shape
        return all(s == shapes[0] for s in shapes)

    def as_cpu(self) -> TensorList:
        """This list on the CPU; itself if it is there."""
        moved = self._batch.cpu()
        return self if moved is self._batch else TensorList(moved)

    def as_tensor(self) -> PipelineTensor:
        """The samples as one tensor.

        Raises RuntimeError if their shapes differ.
        """
        if not self.is_dense_tensor():
            raise RuntimeError(
                f"The samples differ in shape, so they cannot be one dense tensor: {self._batch.shape[:4]}..."
            )
        return PipelineTensor(ndd.as_tensor(self._batch).evaluate())

    def as_reshaped_tensor(self, shape: Any) -> PipelineTensor:
        """The samples one after the other, even if their shapes differ, as one tensor of that shape.

        Args:
            shape: of the tensor, for all elements together.
        """
        if self.is_dense_tensor():
            return PipelineTensor(ndd.reshape(ndd.as_tensor(self._batch), shape=list(shape)).evaluate())
        flat = ndd.batch([ndd.reshape(sample, shape=[-1], layout="") for sample in self._batch])
        return PipelineTensor(ndd.reshape(ndd.cat(*flat), shape=list(shape)).evaluate())

    def as_array(self) -> np.ndarray:
        """The samples of a CPU list as one NumPy array.

        Raises RuntimeError if their shapes differ.
        """
        return np.asarray(self.as_tensor())

    def at(self, index: int) -> Any:
        """Sample `index`: a NumPy array on the CPU, a tensor on the GPU.

        Args:
            index: the number of the sample; negative ones count from the end.

        Raises RuntimeError beyond the end, TypeError for anything but an integer.
        """
        if not -len(self) <= _place(index) < len(self):
            raise RuntimeError(f"Sample {index} is out of range: the list has {len(self)} samples")
        tensor = self._batch.select(int(index))
        on_cpu = self._batch.device.device_type == "cpu"
        return np.asarray(tensor) if on_cpu else PipelineTensor(tensor)

    def torch(self, copy: bool | None = None, pad: bool = False) -> Any:
        """The samples as one torch tensor; see `ndd.Batch.torch`.

        Args:
            copy: memory of its own; None: where it must be.
            pad: fill samples of different shapes up with zeros.
        """
        return self._batch.torch(copy=copy, pad=pad)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return TensorList(self._batch.select(index))
        if not -len(self) <= _place(index) < len(self):
            raise IndexError(f"Sample {index} is out of range: the list has {len(self)} samples")
        return PipelineTensor(self._batch.select(int(index)))

    def __iter__(self) -> Iterator[PipelineTensor]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return _shown(self, self._batch)


class TensorListCPU(TensorList):
    """A `TensorList` in CPU memory.

    Raises TypeError for samples of different types and for anything but an array or tensor.

    >>> import numpy as np
    >>> from ndd.tensors import TensorListCPU
    >>> len(TensorListCPU([np.zeros(2), np.ones(3)]))
    2
    """


class TensorListGPU(TensorList):
    """A `TensorList` in GPU memory.

    Raises TypeError for samples of different types and for anything but an array or tensor.
    """


def _place(index: Any) -> int:
    try:
        return operator.index(index)
    except TypeError:
        raise TypeError(f"The samples of a list are numbered: expected an integer, got {index!r}") from None


def _from_outside(data: Any) -> Any:
    """A tensor over the memory of an array, a tensor or a capsule."""
    if type(data).__name__ == "PyCapsule":
        data = from_dlpack(data)
    if isinstance(data, list | tuple | int | float | str):
        raise TypeError(f"Expected an array, a tensor or a DLPack capsule, got a {type(data).__name__}")
    return ndd.as_tensor(data._tensor if isinstance(data, PipelineTensor) else data)


def _samples_from_outside(data: Any) -> Any:
    if not isinstance(data, list | tuple):
        return ndd.as_batch(data)
    samples = [_from_outside(sample) for sample in data]
    if len({sample.dtype for sample in samples}) > 1:
        raise TypeError(f"The samples of a list must have one type, got {[str(sample.dtype) for sample in samples]}")
    return ndd.as_batch(samples)


def _check_layout(layout: str | None, ndim: int) -> None:
    if layout and len(layout) != ndim:
        raise ValueError(f"The layout {layout!r} has {len(layout)} letters, the samples have {ndim} axes")


def _shown(output: Any, value: Any) -> str:
    """A value as text, under the name of its class here."""
    name = type(output).__name__
    return (
        repr(value).replace(type(value).__name__, name, 1).replace(f"dtype={value.dtype}", f"dtype={output.dtype}", 1)
    )


def _copy(tensor: Any, ptr: Any) -> None:
    array = np.ascontiguousarray(tensor)
    ctypes.memmove(int(getattr(ptr, "value", ptr)), array.ctypes.data, array.nbytes)
