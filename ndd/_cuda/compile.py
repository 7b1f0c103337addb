"""From kernel text to a function on a GPU: NVRTC, cached in memory and on disk; cupy binds NVRTC and the driver."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ndd._cuda.cupy_module import cupy
from ndd._cuda.driver import call
from ndd._execution.cache_folders import (
    chosen_folder,
    folder_to_write,
    folders_to_read,
    read_own,
    temporary_folder,
    user_folder,
)
from ndd._execution.compile_notice import compiling
from ndd._execution.kernel_archives import archive, refuse, targets
from ndd._execution.machine_locks import alone
from ndd.atomic_file import atomic_file

_KERNELS = "kernels compiled for GPUs"
OPTIONS = ("--std=c++17", "-default-device")
_three = struct.Struct("3Q").pack  # a third of the time of an array of ctypes
_lock = threading.Lock()
_loaded: dict[tuple[str, str, int], Kernel] = {}
_loading: dict[tuple[str, str, int], threading.Lock] = {}


class Kernel(NamedTuple):
    """A function on a GPU. `owner` keeps it loaded."""

    ptr: int
    name: str
    text: str
    owner: Any


def _load(text: str, name: str, device_id: int) -> Kernel:
    module = cupy()
    with module.cuda.Device(device_id) as device:
        capability = int(device.compute_capability)
        for code in packaged(text, capability):
            try:
                return _function(module, code, text, name)
            except module.cuda.driver.CUDADriverError as error:  # the driver is too old for it
                refuse(f"the driver cannot load the kernels of this package ({error})")
        return _function(module, binary(text, name, _architecture(capability)), text, name)


def _function(module: Any, code: bytes, text: str, name: str) -> Kernel:
    program = module.cuda.function.Module()
    program.load(code)
    kernel = program.get_function(name)
    return Kernel(kernel.ptr, name, text, kernel)


def packaged(text: str, capability: int) -> Iterator[bytes]:
    """The packaged code of a kernel text for a GPU of this compute capability, such as 86: machine code for the same generation
    and the same or a lower capability; otherwise portable code (PTX), which the driver translates."""
    there = {target: int(target.partition("_")[2]) for target in targets() if target.startswith(("sm_", "compute_"))}
    older = sorted((number, target) for target, number in there.items() if number <= capability)
    of_generation = [t for number, t in older if t.startswith("sm_") and number // 10 == capability // 10]
    for target in (of_generation or [t for _, t in older if t.startswith("compute_")])[::-1]:
        files = archive(target)
        if files is not None and (code := files.read(packaged_name(text))):
            yield code


def packaged_name(text: str) -> str:
    """The key of a text's code in an archive. It does not depend on the compiler's version."""
    return hashlib.sha256("\0".join((text, *OPTIONS)).encode()).hexdigest()


def compiler() -> str:
    """The version of the compiler."""
    return ".".join(map(str, _nvrtc().getVersion()))


def function(text: str, name: str, device_id: int) -> Kernel:
    """The compiled kernel `name`; 0.1 to 1 s the first time on a machine, later from the cache on disk."""
    key = text, name, device_id
    loaded = _loaded.get(key)
    if loaded is None:
        with _lock:
            own = _loading.setdefault(key, threading.Lock())
        with own:  # other threads may compile other kernels at the same time
            loaded = _loaded.get(key)
            if loaded is None:
                loaded = _loaded[key] = _load(text, name, device_id)
    return loaded


@functools.cache
def _nvrtc() -> Any:
    cupy()  # finds the library
    from cupy_backends.cuda.libs import nvrtc

    return nvrtc


@functools.cache
def _architecture(capability: int) -> str:
    """NVRTC's name for a GPU. For a GPU that is newer than NVRTC it is the newest one that NVRTC knows; the driver translates
    the code."""
    known = _nvrtc().getSupportedArchs()
    if capability in known:
        return f"sm_{capability}"
    return f"compute_{max((a for a in known if a < capability), default=min(known))}"


def binary(text: str, name: str, architecture: str) -> bytes:
    """The machine code of a text (`name` is one of its kernels). It is read from the cache folder, or compiled and stored
    there. `architecture` is NVRTC's name, such as "sm_90".

    Not `cupy.RawModule`: that compiles with `-ftz=true`, which makes subnormal numbers 0, unlike the CPU and DALI.
    """
    name_of_file = f"ndd_{_key(text, architecture)}.bin"
    kept = _cached_binary(name_of_file)
    if kept is not None:
        return kept
    folder = cache_folder()
    with alone(folder, name_of_file) as waited:  # ranks and workers of one machine start at the same time
        kept = _cached_binary(name_of_file) if waited else None
        if kept is not None:
            return kept
        with compiling(folder):
            code = _compiled(text, architecture)
        with contextlib.suppress(OSError):  # a read-only or full disk: the next process compiles again
            if folder is not None:
                with atomic_file(folder / name_of_file, private=True) as file:
                    file.write(_checksum(name_of_file, code) + code)
    return code


def _cached_binary(name_of_file: str) -> bytes | None:
    for place in folders_to_read(chosen_folder("gpu-kernels"), _other_folders(), _KERNELS):
        with contextlib.suppress(OSError):
            checksum, kept = (whole := read_own(place / name_of_file))[:32], whole[32:]
            if _checksum(name_of_file, kept) == checksum:
                return kept
    return None


def _checksum(name_of_file: str, content: bytes) -> bytes:
    """The digest at the beginning of a file. It does not match a damaged or renamed file, whose kernel is then compiled
    again."""
    return hashlib.sha256(name_of_file.encode() + content).digest()


def cache_folder() -> Path | None:
    """The folder of compiled kernels: `gpu-kernels` in `NDD_CACHE_DIR`, else cupy's cache folder, else the user's cache folder
    or the folder for temporary files; None if none of these can be used."""
    return folder_to_write(chosen_folder("gpu-kernels"), _other_folders(), _KERNELS)


def _other_folders() -> list[Path]:
    of_cupy, of_user = os.environ.get("CUPY_CACHE_DIR"), user_folder()
    if of_cupy:  # and no other folder
        return [Path(os.path.expanduser(of_cupy))]
    home = os.path.expanduser("~/.cupy/kernel_cache")
    folders = [] if home.startswith("~") else [Path(home)]  # a user without a home
    return [*folders, *([] if of_user is None else [of_user / "gpu-kernels"]), temporary_folder("ndd-gpu-kernels")]


def _key(text: str, architecture: str) -> str:
    identity = "\0".join((text, architecture, *OPTIONS, str(_nvrtc().getVersion())))
    return hashlib.sha256(identity.encode()).hexdigest()


def _compiled(text: str, architecture: str) -> bytes:
    nvrtc = _nvrtc()
    program = nvrtc.createProgram(text, "kernel.cu", [], [])
    try:
        nvrtc.compileProgram(program, [*OPTIONS, f"-arch={architecture}"])
        return nvrtc.getCUBIN(program) if architecture.startswith("sm_") else nvrtc.getPTX(program)
    except nvrtc.NVRTCError as error:
        raise RuntimeError(f"a kernel does not compile: {error}\n{nvrtc.getProgramLog(program)}") from None
    finally:
        nvrtc.destroyProgram(program)


def launch(kernel: Kernel, grid: tuple[int, int], block: int, stream: int, arguments: list[Any]) -> None:
    """Starts a kernel. `arguments` are three ctypes values (structs by value as byte buffers)."""
    first, second, third = arguments
    addresses = _three(ctypes.addressof(first), ctypes.addressof(second), ctypes.addressof(third))
    call("cuLaunchKernel", kernel.ptr, grid[0], grid[1], 1, block, 1, 1, 0, stream, addresses, 0)


def copy_to_gpu(target: int, source: int, nbytes: int, stream: int) -> None:
    """Queues a copy from pinned memory; addresses and the `cudaStream_t` are integers."""
    call("cuMemcpyHtoDAsync_v2", target, source, nbytes, stream)


def copy_on_gpu(target: int, source: int, nbytes: int, stream: int) -> None:
    """Queues a copy from GPU memory to GPU memory, as above."""
    if nbytes:
        call("cuMemcpyDtoDAsync_v2", target, source, nbytes, stream)
