"""DALI's functions for memory, under the names that its users import. Here torch allocates: they call its allocators."""

from __future__ import annotations

import torch

from ndd.pipeline.outputs import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU


def ReleaseUnusedMemory() -> None:
    """Gives memory of GPUs that nothing uses back to the driver."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def PreallocateDeviceMemory(bytes: int, device_id: int = 0) -> None:
    """Makes torch's allocator reserve that many bytes of a GPU now, for later use.

    Args:
        bytes: the number of bytes.
        device_id: the number of the GPU.
    """
    torch.empty(bytes, dtype=torch.uint8, device=f"cuda:{device_id}")


def PreallocatePinnedMemory(bytes: int) -> None:
    """Makes torch's allocator reserve that many bytes of pinned memory now, for later use.

    Args:
        bytes: the number of bytes.
    """
    torch.empty(bytes, dtype=torch.uint8, pin_memory=True)


def GetCUDADeviceCount() -> int:
    """The number of GPUs."""
    return torch.cuda.device_count()


_factors = {"DeviceBufferGrowthFactor": 1.1, "HostBufferGrowthFactor": 1.1, "HostBufferShrinkThreshold": 0.5}


def _set(name: str, value: float) -> None:
    low, high = (0.0, 1.0) if name.endswith("Threshold") else (1.0, 4.0)
    if not low <= value <= high:
        raise ValueError(f"Set{name}: expected a number from {low:g} to {high:g}, got {value}")
    _factors[name] = float(value)


def SetDeviceBufferGrowthFactor(factor: float) -> None:
    """Only changes the result of `GetDeviceBufferGrowthFactor`: each result has its own memory, so no buffer grows.

    Args:
        factor: 1 to 4. ValueError for others.
    """
    _set("DeviceBufferGrowthFactor", factor)


def GetDeviceBufferGrowthFactor() -> float:
    """The current factor; the default is 1.1."""
    return _factors["DeviceBufferGrowthFactor"]


def SetHostBufferGrowthFactor(factor: float) -> None:
    """Only changes the result of `GetHostBufferGrowthFactor`; see `SetDeviceBufferGrowthFactor`.

    Args:
        factor: 1 to 4. ValueError for others.
    """
    _set("HostBufferGrowthFactor", factor)


def GetHostBufferGrowthFactor() -> float:
    """The current factor; the default is 1.1.

    >>> import ndd
    >>> ndd.backend.GetHostBufferGrowthFactor()
    1.1
    """
    return _factors["HostBufferGrowthFactor"]


def SetBufferGrowthFactor(factor: float) -> None:
    """Both of `SetDeviceBufferGrowthFactor` and `SetHostBufferGrowthFactor`.

    Args:
        factor: 1 to 4. ValueError for others.

    >>> import ndd
    >>> ndd.backend.SetBufferGrowthFactor(1.1)
    """
    SetDeviceBufferGrowthFactor(factor)
    SetHostBufferGrowthFactor(factor)


def SetHostBufferShrinkThreshold(threshold: float) -> None:
    """Only changes the result of `GetHostBufferShrinkThreshold`; see `SetDeviceBufferGrowthFactor`.

    Args:
        threshold: 0 to 1. ValueError for others.
    """
    _set("HostBufferShrinkThreshold", threshold)


def GetHostBufferShrinkThreshold() -> float:
    """The current factor; the default is 0.5."""
    return _factors["HostBufferShrinkThreshold"]


__all__ = [
    "GetCUDADeviceCount",
    "GetDeviceBufferGrowthFactor",
    "GetHostBufferGrowthFactor",
    "GetHostBufferShrinkThreshold",
    "PreallocateDeviceMemory",
    "PreallocatePinnedMemory",
    "ReleaseUnusedMemory",
    "SetBufferGrowthFactor",
    "SetDeviceBufferGrowthFactor",
    "SetHostBufferGrowthFactor",
    "SetHostBufferShrinkThreshold",
    "TensorCPU",
    "TensorGPU",
    "TensorListCPU",
    "TensorListGPU",
]
