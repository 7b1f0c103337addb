"""DALI's functions for memory, where code for it imports them from. torch allocates here: they speak to its allocators."""

from __future__ import annotations

import torch

from ndd.pipeline.outputs import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU


def ReleaseUnusedMemory() -> None:
    """Gives memory of GPUs that nothing uses back to the driver."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def PreallocateDeviceMemory(bytes: int, device_id: int = 0) -> None:
    """Makes torch's allocator take that many bytes of a GPU now, for what comes."""
    torch.empty(bytes, dtype=torch.uint8, device=f"cuda:{device_id}")


def PreallocatePinnedMemory(bytes: int) -> None:
    """Makes torch's allocator take that many bytes of pinned memory now, for what comes."""
    torch.empty(bytes, dtype=torch.uint8, pin_memory=True)


def GetCUDADeviceCount() -> int:
    """How many GPUs there are."""
    return torch.cuda.device_count()


__all__ = [
    "GetCUDADeviceCount",
    "PreallocateDeviceMemory",
    "PreallocatePinnedMemory",
    "ReleaseUnusedMemory",
    "TensorCPU",
    "TensorGPU",
    "TensorListCPU",
    "TensorListGPU",
]
