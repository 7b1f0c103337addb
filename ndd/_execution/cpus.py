"""The number of CPUs."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")


def cpu_count() -> int:
    """The number of CPUs that this process may use: those it may run on, and no more than the quota of its container
    (`docker run --cpus`, the CPU limit of a pod), rounded up. Threads beyond a quota are stopped for most of each 0.1 s."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = container_quota()
    return allowed if quota is None else min(allowed, quota)


@cache
def container_quota() -> int | None:
    """The CPUs that the container may use, rounded up; None if it has no quota. Read once."""
    try:
        quota, period = (_CGROUPS / "cpu.max").read_text().split()  # cgroup 2
    except (OSError, ValueError):
        try:
            quota, period = [(_CGROUPS / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period")]
        except (OSError, ValueError):
            return None
    try:
        microseconds, of = int(quota), int(period)
    except ValueError:  # "max"
        return None
    return -(-microseconds // of) if microseconds > 0 and of > 0 else None
