"""Single tensors of a pipeline's output as torch tensors."""

from __future__ import annotations

from typing import Any

import torch

from ndd.types import DALIDataType

# torch's types by DALI's numbers of types.
to_torch_type = {
    DALIDataType.FLOAT: torch.float32,
    DALIDataType.FLOAT64: torch.float64,
    DALIDataType.FLOAT16: torch.float16,
    DALIDataType.UINT8: torch.uint8,
    DALIDataType.INT8: torch.int8,
    DALIDataType.BOOL: torch.bool,
    DALIDataType.INT16: torch.int16,
    DALIDataType.INT32: torch.int32,
    DALIDataType.INT64: torch.int64,
}


def to_torch_tensor(dali_tensor: Any, copy: bool = True) -> Any:
    """A torch tensor of one tensor of a pipeline's output (`out[0][i]`, `out[0].as_tensor()`) or of an `ndd.Tensor`.

    Args:
        copy: False shares the memory; it stays valid and unchanged for as long as the torch tensor is held. (DALI
            has no default here; the documentation says True.)
        dali_tensor: one sample of an output, or an `ndd.Tensor`.

    TypeError for a list of tensors: take one sample, or `as_tensor()`.

    >>> import ndd
    >>> from ndd.plugin.pytorch import to_torch_tensor
    >>> to_torch_tensor(ndd.tensor([1, 2]))
    tensor([1, 2], dtype=torch.int32)
    """
    tensor = getattr(dali_tensor, "_tensor", dali_tensor)
    if not hasattr(tensor, "torch"):
        raise TypeError(f"to_torch_tensor: expected a tensor of a pipeline, got {type(tensor).__name__}")
    if hasattr(dali_tensor, "as_tensor") or hasattr(tensor, "batch_size"):
        raise TypeError("Expected one tensor, got a list of them: take one sample (`[i]`) or `as_tensor()`")
    return tensor.torch(copy=copy)


def feed_ndarray(dali_tensor: Any, arr: Any, cuda_stream: Any = None) -> Any:
    """Copies a pipeline's tensor into the torch tensor `arr` and returns `arr`.

    Args:
        dali_tensor: one tensor (a sample, or `as_tensor()` of a list).
        arr: the destination, of the same type and shape; it may be strided.
        cuda_stream: the stream to copy on (a torch stream or a handle); default torch's current one.

    Raises AssertionError for another type, shape or kind of destination, as DALI does, and TypeError for a `cuda_stream` that is
    no stream.

    >>> import ndd, torch
    >>> from ndd.plugin.pytorch import feed_ndarray
    >>> feed_ndarray(ndd.tensor([1, 2]), torch.empty(2, dtype=torch.int32))
    tensor([1, 2], dtype=torch.int32)
    """
    source = getattr(dali_tensor, "_tensor", None)
    if hasattr(dali_tensor, "as_tensor") or (source is None and not hasattr(dali_tensor, "item")):
        raise AssertionError("feed_ndarray takes one tensor: use `as_tensor()` of a list, or one sample of it")
    source = dali_tensor if source is None else source
    if not isinstance(arr, torch.Tensor):
        raise AssertionError(f"The destination must be a torch tensor, got {type(arr).__name__}")
    values = source.torch()
    if values.dtype != arr.dtype:
        raise AssertionError(f"The types differ: the tensor has {values.dtype}, the destination {arr.dtype}")
    if values.shape != arr.shape:
        raise AssertionError(
            f"The shapes differ: the tensor has {tuple(values.shape)}, the destination {tuple(arr.shape)}"
        )
    if (
        cuda_stream not in (None, 0)
        and not isinstance(cuda_stream, int | torch.cuda.Stream)
        and not hasattr(cuda_stream, "cuda_stream")
    ):
        raise TypeError(f"cuda_stream must be a stream or its handle, got {type(cuda_stream).__name__}")
    if arr.is_cuda and cuda_stream not in (None, 0):
        wrapped = (
            cuda_stream if isinstance(cuda_stream, torch.cuda.Stream) else torch.cuda.ExternalStream(int(cuda_stream))
        )
        wrapped.wait_stream(torch.cuda.current_stream(arr.device))
        with torch.cuda.stream(wrapped):
            arr.copy_(values, non_blocking=True)
        values.record_stream(wrapped)
        return arr
    arr.copy_(values, non_blocking=True)
    return arr
