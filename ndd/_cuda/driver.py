"""Functions of the CUDA driver, called with the GIL held. They take 1 to 5 us. A thread that released the GIL for such a call
would wait 0.2 to 0.5 ms to get it back, because the other threads of a loop with lookahead want it too."""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

import torch

from ndd._cuda.cupy_module import cupy

_NO_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT: the thread has no current context yet
_NOT_READY = 600  # CUDA_ERROR_NOT_READY


def call(name: str, *arguments: Any, device_id: int | None = None) -> None:
    """Calls a function of the driver, on a GPU (default: torch's current one). RuntimeError with its error's name if it fails."""
    status = _functions()[name](*arguments)
    if status:
        _check(name, _again(status, name, arguments, device_id))


def is_done(name: str, *arguments: Any, device_id: int | None = None) -> bool:
    """The same for a query: whether the work has finished."""
    status = _again(_functions()[name](*arguments), name, arguments, device_id)
    if status != _NOT_READY:
        _check(name, status)
    return status != _NOT_READY


def _check(name: str, status: int) -> None:
    if status:
        text = ctypes.c_char_p()
        _functions()["cuGetErrorName"](status, ctypes.addressof(text))
        raise RuntimeError(f"{name} failed: {(text.value or b'error').decode()} ({status})")


def _again(status: int, name: str, arguments: tuple[Any, ...], device_id: int | None) -> int:
    """Calls a function again if it failed for lack of a context. In a new thread torch's current GPU is the first one. A
    context on it would take half a gigabyte, though the call is for another GPU."""
    if status != _NO_CONTEXT:
        return status
    if device_id is None:
        device_id = torch.cuda.current_device()
    cupy().cuda.runtime.setDevice(device_id)
    return _functions()[name](*arguments)


@functools.cache
def _functions() -> dict[str, Any]:
    library = ctypes.PyDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    pointer, number = ctypes.c_void_p, ctypes.c_uint
    functions = {
        "cuLaunchKernel": [pointer, *[number] * 7, pointer, pointer, pointer],
        "cuMemcpyHtoDAsync_v2": [ctypes.c_uint64, pointer, ctypes.c_size_t, pointer],
        "cuMemcpyDtoDAsync_v2": [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, pointer],
        "cuEventCreate": [pointer, number],
        "cuEventRecord": [pointer, pointer],
        "cuEventQuery": [pointer],
        "cuEventDestroy_v2": [pointer],
        "cuStreamWaitEvent": [pointer, pointer, number],
        "cuGetErrorName": [ctypes.c_int, pointer],
    }
    for name, kinds in functions.items():
        getattr(library, name).argtypes = kinds
    return {name: getattr(library, name) for name in functions}
