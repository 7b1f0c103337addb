"""A GPU that is none: the whole GPU path of ndd on the CPU, kernels built as C++ with g++.

`emulated_gpu` (a fixture of `conftest.py`) gives the machine two devices, "gpu:0" and "gpu:1", whose memory is CPU
memory of torch. Everything else is the real thing: plans, records, pointers, kernel text. A kernel's threads run one
after the other, as fibers if they need each other (`__syncthreads`, shuffles). Output memory is filled with garbage
and fenced, so that what a kernel forgets to write, or writes beside, is found.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib
import math
import os
import re
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from ndd.compile.pretended_gpu import TextsOnly, pretend

_PRELUDE = Path(__file__).with_name("cuda_as_cpp.h")
# The last: g++ else makes one variable of all that have a name in inline functions of any library, and two kernels would
# share what is `__shared__` in a function that both include, the second with the room that the first one needs.
_FLAGS = ("-std=c++17", "-O0", "-fPIC", "-w", "-ffp-contract=off", "-fno-strict-aliasing", "-fwrapv", "-fno-gnu-unique")
# What else a kernel calls, Python has loaded. Looking for it, and optimising, took half of the time of building.
_LINKED = ("-shared", "-nostdlib", "-lgcc")
_COOPERATIVE = re.compile(r"__sync(threads|warp)|__shfl_|_sync\(")
_KERNEL = re.compile(r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\(')
_NAMED = '#define KERNEL_NAME(name) extern "C" __global__ void name'
_PARAMETER_BYTES = 4096 - 16  # what a launch may carry on every driver, the other arguments left out
_FENCE = 64
_GARBAGE = 0xA5


class RecordedGpu:
    """What the fixture gives on a machine with a GPU: the same record of launches, nothing emulated."""

    real = True

    def __init__(self, compile: Any) -> None:
        self.texts: dict[str, set[str]] = {}
        self.launches: list[str] = []
        self._launch = compile.launch

    def launch(self, kernel: Any, *arguments: Any) -> None:
        self.texts.setdefault(kernel.text, set()).add(kernel.name)
        self.launches.append(kernel.name)
        self._launch(kernel, *arguments)


class EmulatedGpu:
    """What the fixture gives: the kernels launched so far."""

    count = 2
    real = False

    def __init__(self) -> None:
        self.texts: dict[str, set[str]] = {}  # kernel text -> names of kernels launched from it
        self.launches: list[str] = []
        self._fenced: list[Any] = []  # the last few outputs, with what lies around them

    # ---- in place of ndd._cuda.compile

    def function(self, text: str, name: str, device_id: int) -> Any:
        return name, text

    def launch(self, kernel: Any, grid: tuple[int, int], block: int, stream: int, arguments: list[Any]) -> None:
        name, text = kernel
        run = _built(text, name)
        self.texts.setdefault(text, set()).add(name)
        self.launches.append(name)
        if ctypes.sizeof(arguments[-1]) > _PARAMETER_BYTES:
            raise RuntimeError(
                f"kernel {name}: `Shared` has {ctypes.sizeof(arguments[-1])} bytes: too many for a launch"
            )
        addresses = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(a) for a in arguments])
        with _one_at_a_time:
            if not run(addresses, grid[0], grid[1], block):
                raise RuntimeError(f"kernel {name}: its threads wait for one another for ever")
        self.check_fences(name)

    # ---- in place of ndd._tensor.memory.device_empty

    def empty(self, shape: Any, torch_dtype: Any, device: Any) -> Any:
        import torch

        count = math.prod(shape) if isinstance(shape, tuple) else shape
        size = torch.empty(0, dtype=torch_dtype).element_size()
        whole = torch.full((count * size + 2 * _FENCE,), _GARBAGE, dtype=torch.uint8)
        self._fenced = [*self._fenced[-15:], whole]
        return whole[_FENCE : _FENCE + count * size].view(torch_dtype).view(shape)

    def check_fences(self, name: str) -> None:
        for whole in self._fenced:
            if not (bool((whole[:_FENCE] == _GARBAGE).all()) and bool((whole[-_FENCE:] == _GARBAGE).all())):
                raise AssertionError(f"kernel {name} wrote outside its output")


class ListedKernels(EmulatedGpu):
    """Takes the texts and runs nothing: what kernels were to write is zeros."""

    def launch(self, kernel: Any, *_: Any) -> None:
        name, text = kernel
        self.texts.setdefault(text, set()).add(name)

    empty = TextsOnly.empty


_one_at_a_time = threading.Lock()


def cache_folder() -> Path:
    """Where built kernels are kept between runs."""
    result = os.environ.get("NDD_TEST_KERNELS")
    folder = Path(result) if result else Path(tempfile.gettempdir()) / f"ndd-emulated-kernels-{os.getuid()}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _compile(source: str, output: Path) -> None:
    partial = output.with_name(f"{output.name}.{os.getpid()}.{threading.get_ident()}")
    command = ["g++", *_FLAGS, "-include", _prelude(), "-x", "c++", "-", "-o", str(partial), *_LINKED]
    done = subprocess.run(command, input=source, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the kernel does not compile as C++:\n{done.stderr[:3000]}")
    os.replace(partial, output)


def _prelude() -> str:
    """The path of the built-ins to include; precompiled once (0.2 s less for each kernel)."""
    text = _PRELUDE.read_text()
    folder = cache_folder() / hashlib.sha256((text + str(_FLAGS)).encode()).hexdigest()[:16]
    header, built = folder / "prelude.h", folder / "prelude.h.gch"
    if not built.exists():
        folder.mkdir(exist_ok=True)
        header.write_text(text)
        partial = built.with_suffix(f".{os.getpid()}")
        done = subprocess.run(
            ["g++", *_FLAGS, "-x", "c++-header", str(header), "-o", str(partial)], capture_output=True
        )
        if not done.returncode:
            os.replace(partial, built)
    return str(header)


@functools.cache
def _built(text: str, name: str) -> Any:
    """The C function that runs a kernel over a grid."""
    key = hashlib.sha256((text + name + _PRELUDE.read_text() + str(_FLAGS)).encode()).hexdigest()[:24]
    with _one_at_a_time:
        library = cache_folder() / f"{key}.so"
        if not library.exists():
            _compile(_source(text, name), library)
        run = ctypes.CDLL(str(library)).ndd_run
        run.restype = ctypes.c_int
        return run


def _source(text: str, name: str) -> str:
    # Kernels may be named as functions of C (`pow`): here they get names of their own.
    renamed = _KERNEL.sub(lambda m: f"static void ndd_kernel_{m.group(1)}(", text)
    renamed = renamed.replace(_NAMED, "#define KERNEL_NAME(name) static void ndd_kernel_##name")
    if not any(
        start in renamed
        for start in (f"ndd_kernel_{name}(", f"PER_ITEM({name})", f"PER_PACK({name})", f"KERNEL_NAME({name})")
    ):
        raise RuntimeError(f"the text has no `PER_ITEM({name})` and no `KERNEL_NAME({name})(`")
    cooperative = bool(_COOPERATIVE.search(text))
    block = (
        "if (!fibers::run(block, ndd_thread)) return 0;"
        if cooperative
        else "for (unsigned t = 0; t < block; t++) { threadIdx.x = t; ndd_thread(); }"
    )
    return f"""{renamed}
static void** ndd_arguments;
static void ndd_thread() {{
  ndd_kernel_{name}(*(const Sample**)ndd_arguments[0], *(int*)ndd_arguments[1], *(Shared*)ndd_arguments[2]);
}}
extern "C" int ndd_run(void** arguments, unsigned columns, unsigned rows, unsigned block) {{
  ndd_arguments = arguments;
  gridDim = {{columns, rows, 1}};
  blockDim = {{block, 1, 1}};
  for (unsigned y = 0; y < rows; y++)
    for (unsigned x = 0; x < columns; x++) {{
      blockIdx = {{x, y, 0}};
      threadIdx = {{0, 0, 0}};
      {block}
    }}
  return 1;
}}
"""


def install(patch: pytest.MonkeyPatch, gpu: EmulatedGpu | None = None) -> EmulatedGpu | RecordedGpu:
    """Puts the emulation in place until `patch` is undone; on a machine with a GPU a record of what it does."""
    import torch

    import ndd

    if torch.cuda.is_available():
        compile = importlib.import_module("ndd._cuda.compile")
        recorded = RecordedGpu(compile)
        patch.setattr(compile, "launch", recorded.launch)
        return recorded
    gpu = gpu or EmulatedGpu()
    pretend(gpu, patch.setattr)
    assert ndd.Device("gpu").device_id == 0
    return gpu
