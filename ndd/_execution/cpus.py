"""The number of CPUs."""

from __future__ import annotations

import os

from ndd._container_limits import cpu_quota


def cpu_count() -> int:
    """The number of CPUs that this process may use: those it may run on, and no more than the quota of its container
    (`docker run --cpus`, the CPU limit of a pod), rounded up. Threads beyond a quota are stopped for most of each 0.1 s."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(allowed, cpu_quota() or allowed)
