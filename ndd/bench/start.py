"""What starting costs: the import beside torch's, and the first call of an operator on a new and on a known machine."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from ndd.bench.libraries import Setting
from ndd.bench.rounds import Result, interleaved

_IMPORT = "import torch, time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
_FIRST = """
import torch, time, numpy, {module} as m
images = m.batch([numpy.zeros((300, 400, 3), numpy.uint8)] * 4, layout="HWC", device="{device}").evaluate()
t = time.perf_counter()
m.{call}.evaluate()
if "{device}" == "gpu":
    torch.cuda.synchronize()
print(time.perf_counter() - t)
"""
_CALLS = {
    "flip": "flip(images)",
    "resize": "resize(images, size=[224, 224])",
    "crop_mirror_normalize": "crop_mirror_normalize(images, mean=[1.0], std=[2.0])",
    "random_resized_crop": "random_resized_crop(images, size=[224, 224])",
}
_MODULES = {"ndd": "ndd", "DALI": "nvidia.dali.experimental.dynamic"}


def measure_import(setting: Setting) -> Iterator[Result]:
    """Seconds that the import adds to torch's, each in a process of its own."""
    sides = {
        side: lambda module=module: _seconds(_IMPORT.format(module=module))
        for side, module in _MODULES.items()
        if side in setting.libraries
    }
    found = interleaved(sides, min(setting.rounds, 5))
    yield Result("import", "import, over torch's own", "s", found["ndd"], found.get("DALI"), "<= 0.3 s")


def measure_first_call(setting: Setting) -> Iterator[Result]:
    """Seconds of the first call in a process: with empty compile caches, then with those that it left."""
    for name, call in _CALLS.items():
        if not hasattr(setting.libraries["ndd"], name):
            continue
        theirs = None
        if "DALI" in setting.libraries:
            theirs = _first_call("DALI", call, setting.device, {})
        with tempfile.TemporaryDirectory(prefix="ndd-bench-") as folder:
            caches = {"NUMBA_CACHE_DIR": f"{folder}/numba", "CUPY_CACHE_DIR": f"{folder}/cupy"}
            for state, target in (("compiled anew", "<= 2 s"), ("from the disk cache", "")):
                title = f"first {name} in a process, {state}, {setting.device.upper()}"
                yield Result("import", title, "s", _first_call("ndd", call, setting.device, caches), theirs, target)


def _first_call(side: str, call: str, device: str, environment: dict[str, str]) -> float:
    return _seconds(_FIRST.format(module=_MODULES[side], call=call, device=device), environment)


def _seconds(code: str, environment: dict[str, str] | None = None) -> float:
    """The number that a fresh Python prints last."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no output"]
        raise RuntimeError(f"a measuring process failed: {lines[-1]}")
    return float(done.stdout.split()[-1])
