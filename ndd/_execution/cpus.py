"""The number of CPUs."""

from __future__ import annotations

import os


def cpu_count() -> int:
    """The number of CPUs that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
