"""What a pipeline's `run()` gives: lists of tensors with the methods of DALI's `TensorList` and `Tensor`."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np

import ndd


class PipelineTensor:
    """One tensor of a pipeline's output. `shape()` and `layout()` are methods here, as in DALI's pipeline mode."""

    def __init__(self, tensor: Any):
        self._tensor = tensor

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
        """Gives this tensor another layout, of a letter for each axis; "" or None takes it away."""
        tensor = self._tensor
        self._tensor = ndd.as_tensor(tensor, layout=layout) if layout else ndd.reshape(tensor, layout="")

    def get_property(self, key: str) -> str:
        """The property "source_info" or "layout"."""
        return {"source_info": self.source_info, "layout": self.layout}[key]()

    def copy_to_external(self, ptr: Any) -> None:
        """Copies the elements to an address in CPU memory, a `ctypes.c_void_p` or an integer."""
        _copy(self._tensor.cpu(), ptr)

    def as_cpu(self) -> PipelineTensor:
        """This tensor on the CPU."""
        return PipelineTensor(self._tensor.cpu())

    def torch(self, copy: bool = False) -> Any:
        """A torch tensor, sharing memory unless `copy`."""
        return self._tensor.torch(copy)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._tensor.torch().data_ptr()

    def source_info(self) -> str:
        """Where the sample came from, "" if unknown."""
        return str(self._tensor.source_info or "")

    def squeeze(self, dim: int | None = None) -> bool:
        """Drops axes of extent 1 (or axis `dim` alone); says whether there were any."""
        shape = self._tensor.shape
        axes = [i for i, e in enumerate(shape) if e == 1 and dim in (None, i)]
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
        return repr(self._tensor)


class TensorList:
    """One output of a pipeline: the samples of a batch. It keeps its memory: later runs do not change it."""

    def __init__(self, batch: Any):
        self._batch = batch

    @property
    def batch(self) -> Any:
        """The `ndd.Batch`."""
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
        """Gives the samples another layout, of a letter for each axis; "" or None takes it away."""
        self._batch = ndd.as_batch(self._batch, layout=layout or "")

    def reset(self) -> None:
        """Lets go of the samples: the list is empty afterwards."""
        self._batch = ndd.batch([], dtype=self._batch.dtype)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._batch.select(0).torch().data_ptr()

    def copy_to_external(self, ptr: Any) -> None:
        """Copies the samples one behind the other to an address in CPU memory, a `ctypes.c_void_p` or an integer."""
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
        """The samples as one tensor; RuntimeError if their shapes differ."""
        if not self.is_dense_tensor():
            raise RuntimeError(f"The samples differ in shape, so they are no dense tensor: {self._batch.shape[:4]}...")
        return PipelineTensor(ndd.as_tensor(self._batch).evaluate())

    def as_reshaped_tensor(self, shape: Any) -> PipelineTensor:
        """The samples as one tensor of that shape."""
        return PipelineTensor(ndd.reshape(ndd.as_tensor(self._batch), shape=list(shape)).evaluate())

    def as_array(self) -> np.ndarray:
        """The samples as one NumPy array (of a list on the CPU)."""
        return np.asarray(self.as_tensor())

    def at(self, index: int) -> Any:
        """Sample `index`: a NumPy array on the CPU, a tensor on the GPU; RuntimeError beyond the end."""
        if not -len(self) <= index < len(self):
            raise RuntimeError(f"Sample {index} is out of range: the list has {len(self)} samples")
        tensor = self._batch.select(int(index))
        on_cpu = self._batch.device.device_type == "cpu"
        return np.asarray(tensor) if on_cpu else PipelineTensor(tensor)

    def torch(self, copy: bool | None = None, pad: bool = False) -> Any:
        """The samples as one torch tensor; see `ndd.Batch.torch`."""
        return self._batch.torch(copy=copy, pad=pad)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return TensorList(self._batch.select(index))
        if not -len(self) <= index < len(self):
            raise IndexError(f"Sample {index} is out of range: the list has {len(self)} samples")
        return PipelineTensor(self._batch.select(int(index)))

    def __iter__(self) -> Iterator[PipelineTensor]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return repr(self._batch)


def _copy(tensor: Any, ptr: Any) -> None:
    array = np.ascontiguousarray(tensor)
    ctypes.memmove(int(getattr(ptr, "value", ptr)), array.ctypes.data, array.nbytes)
