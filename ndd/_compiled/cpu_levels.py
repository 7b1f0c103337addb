"""Levels of processors that the package's kernels are compiled for: each has the features that all processors of the level
share.

Kernels that are compiled on a machine are for its own processor. The names of features are those of LLVM.
"""

from __future__ import annotations

import platform
import sys

_V2 = "cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3"
_V3 = f"{_V2} avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave"
_V4 = f"{_V3} avx512bw avx512cd avx512dq avx512f avx512vl"
_CPUS = {"armv8": "generic"}  # LLVM's name for a level
LEVELS = {
    ("linux", "x86_64"): {"x86-64-v3": _V3, "x86-64-v4": _V4},
    ("linux", "aarch64"): {"armv8": "fp-armv8 neon"},
}.get((sys.platform, platform.machine()), {})  # fmt: skip
"""The features of each level that this system has wheels for, the lowest level first."""


def environment(level: str) -> dict[str, str]:
    """The environment in which numba compiles for a level."""
    features = ",".join(f"+{name}" for name in LEVELS[level].split())
    return {"NUMBA_CPU_NAME": _CPUS.get(level, level), "NUMBA_CPU_FEATURES": features}


def runs_on(target: dict[str, str], machine: dict[str, str]) -> bool:
    """Whether code for one target runs wherever code for the other does."""
    needed, there = target["features"].split(","), machine["features"].split(",")
    return target["triple"].split("-")[0] == machine["triple"].split("-")[0] and set(needed) <= set(there)
