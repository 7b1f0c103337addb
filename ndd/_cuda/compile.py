"""From kernel text to a function on a GPU: NVRTC through cupy, cached in memory and on disk."""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import Any

_OPTIONS = ("--std=c++17", "-default-device")
_lock = threading.Lock()


def cupy() -> Any:
    """The cupy module, or an ImportError that says what to install."""
    try:
        import cupy as module
    except ImportError as error:
        raise ImportError(
            "GPU operators need cupy, which is not installed. Install it with the extra that fits the driver: "
            "`pip install ndd[cuda13]` or `pip install ndd[cuda12]` (`python -m ndd doctor` says which)"
        ) from error
    return module


@functools.lru_cache(maxsize=4096)
def _compiled(text: str, name: str, device_id: int) -> Any:
    module = cupy()
    with module.cuda.Device(device_id):
        return module.RawModule(code=text, options=_OPTIONS, backend="nvrtc").get_function(name).kernel


def function(text: str, name: str, device_id: int) -> Any:
    """The compiled kernel `name`; 0.1 to 1 s the first time on a machine, later from cupy's cache on disk."""
    with _lock:
        return _compiled(text, name, device_id)


def launch(kernel: Any, grid: tuple[int, int], block: int, stream: int, arguments: list[Any]) -> None:
    """Starts a kernel. `arguments` are ctypes values (structs by value as byte buffers)."""
    launch_kernel, _ = _driver()
    addresses = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(a) for a in arguments])
    launch_kernel(kernel.ptr, grid[0], grid[1], 1, block, 1, 1, 0, stream, ctypes.addressof(addresses), 0)


def copy_to_gpu(target: int, source: int, nbytes: int, stream: int) -> None:
    """Queues a copy from pinned memory; addresses and the `cudaStream_t` are integers."""
    _driver()[1](target, source, nbytes, 1, stream)


@functools.cache
def _driver() -> tuple[Any, Any]:
    from cupy_backends.cuda.api import driver, runtime

    return driver.launchKernel, runtime.memcpyAsync
