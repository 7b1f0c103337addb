"""`compile --archives DIR`: the kernels of a wheel, an archive for each level of processors and each generation of GPUs.

Calls are made with code for the lowest level, which runs on every machine that builds wheels. For a higher level the same
calls are made with that code, and what they called is compiled for the level, and not run.
"""

from __future__ import annotations

import os
from pathlib import Path

from ndd._compiled import jit, kernel_file
from ndd._compiled.cpu_levels import environment
from ndd._compiled.kernel_cache import INNER, libraries
from ndd._execution import kernel_archives

ALL_GPUS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120", "compute_120")


def begin(folder: Path, level: str, cache: str) -> None:
    """Makes this process, which has not imported numba yet, compile for a level and use the archives of `folder`."""
    os.environ.update(environment(level), NDD_CACHE_DIR=cache)
    kernel_archives.folder = folder


def compile_called() -> None:
    """Compiles the kernels that were called in this process for the processor that it compiles for."""
    for kernel in list(jit.called_kernels):
        kernel.compile_for_target()


def write_for_cpu(folder: Path, level: str, cache: Path) -> None:
    """The archive of a level, of the files that processes left in `cache`."""
    files, target = [], {}
    for path in cache.glob(f"*{kernel_file.SUFFIX}"):
        if not path.name.startswith(INNER):
            content = path.read_bytes()
            header, _ = kernel_file.unpacked(content, {"libraries": libraries()})
            target = header["target"]
            files.append((path.name, content))
    if not files:
        raise RuntimeError(f"nothing was compiled for {level}")
    size = kernel_archives.write_archive(folder, level, {"target": target, "libraries": libraries()}, files)
    _say(level, len(files), size)


def write_for_gpu(folder: Path, architecture: str, codes: dict[str, bytes], compiler: str) -> None:
    """The archive of a generation; `codes` are by the names that kernels have there."""
    header = {"target": {"architecture": architecture}, "libraries": {"nvrtc": compiler}}
    _say(architecture, len(codes), kernel_archives.write_archive(folder, architecture, header, codes.items()))


def _say(target: str, count: int, size: int) -> None:
    print(f"{target}: {count} kernels, {size / 1e6:.2f} MB", flush=True)
