"""The cost of starting: the import, and the first call of an operator without and with compiled kernels on the disk."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ndd._compiled.kernel_file import SUFFIX
from ndd.bench.libraries import Setting, enumerations, finish
from ndd.bench.operator_inputs import arrays, inputs
from ndd.bench.operator_table import TABLE
from ndd.bench.process import failure
from ndd.bench.rounds import Result, interleaved

_IMPORT = "import torch, time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
_FIRST = "from ndd.bench.start import first_call; print(*first_call({side!r}, {call!r}, {device!r}))"
FEW = ("flip", "resize 224", "crop_mirror_normalize", "random_resized_crop 224")
"""The calls that `bench import` measures, lines of `bench ops`."""
_SAMPLES = 4
_TARGET = "<= 2 s"
_MODULES = {"ndd": "ndd", "DALI": "nvidia.dali.experimental.dynamic"}


def measure_import(setting: Setting) -> Iterator[Result]:
    """Seconds that the import adds to torch's, each in its own process."""
    sides = {
        side: lambda module=module: _numbers(_IMPORT.format(module=module))[0]
        for side, module in _MODULES.items()
        if side in setting.libraries
    }
    times = interleaved(sides, min(setting.rounds, 5))
    yield Result("import", "import, over torch's own", "s", times["ndd"], times.get("DALI"), "<= 0.3 s")


def measure_first_call(setting: Setting) -> Iterator[Result]:
    """Seconds of the first call in a process: with empty compile caches, then with the caches of that process."""
    for name in FEW:
        theirs = _first_call("DALI", name, setting.device, {})[0] if "DALI" in setting.libraries else None
        with tempfile.TemporaryDirectory(prefix="ndd-bench-") as folder:
            for state, target in (("compiled anew", _TARGET), ("from the disk cache", "")):
                title = f"first {name} in a process, {state}, {setting.device.upper()}"
                ours = _first_call("ndd", name, setting.device, {"NDD_CACHE_DIR": folder})[0]
                yield Result("import", title, "s", ours, theirs, target)


def measure_first_calls(setting: Setting, only: str = "") -> Iterator[Result]:
    """The same for each line of `bench ops`, with empty caches; beside the target, seconds of CPU time in both states and the
    number of compiled kernels, which is 0 for kernels in the wheel."""
    for name in TABLE:
        if only not in name:
            continue
        title, ours, theirs = f"first {name} in a process, {setting.device.upper()}", None, None
        try:
            with tempfile.TemporaryDirectory(prefix="ndd-bench-") as folder:
                ours, spent = _first_call("ndd", name, setting.device, {"NDD_CACHE_DIR": folder})
                # One process compiles all kernels, the next one loads them.
                _first_call("ndd", name, setting.device, {"NDD_CACHE_DIR": folder, "NDD_COMPILE_IN_BACKGROUND": "0"})
                _, seconds = _first_call("ndd", name, setting.device, {"NDD_CACHE_DIR": folder})
                compiled = _kept_kernels(Path(folder))
            note = (
                f"{_TARGET}; {spent:.2f} s of CPU time, {seconds:.2f} from the disk cache; {compiled} kernels compiled"
            )
            if "DALI" in setting.libraries:
                theirs = _first_call("DALI", name, setting.device, {})[0]
        except RuntimeError as error:  # not in one of the libraries, or not on this device
            note = str(error)
        yield Result("first", title, "s", ours, theirs, note)


def _kept_kernels(folder: Path) -> int:
    """The number of CPU kernels that were compiled because the package does not have them."""
    return len(list(folder.rglob(f"*{SUFFIX}")))


def first_call(side: str, name: str, device: str) -> tuple[float, float]:
    """Makes the first call of this process, one of `bench ops`: seconds to the value, and seconds of CPU time."""
    import torch

    library = importlib.import_module(_MODULES[side])
    x = inputs(library, arrays(None, _SAMPLES), device, enumerations(side))
    begin, begin_cpu = time.perf_counter(), time.process_time()
    finish(TABLE[name](library, x))
    if device == "gpu":
        torch.cuda.synchronize()
    return time.perf_counter() - begin, time.process_time() - begin_cpu


def _first_call(side: str, name: str, device: str, environment: dict[str, str]) -> list[float]:
    users = {"NDD_COMPILE_IN_BACKGROUND": "1"}  # the default outside of benchmarks
    return _numbers(_FIRST.format(side=side, call=name, device=device), users | environment)


def _numbers(code: str, environment: dict[str, str] | None = None) -> list[float]:
    """The last line that a new Python process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"a measuring process failed: {failure(done).splitlines()[-1]}")
    return [float(word) for word in done.stdout.splitlines()[-1].split()]
