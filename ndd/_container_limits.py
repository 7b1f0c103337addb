"""The limits of the container that this process runs in: CPUs and memory (Linux control groups, versions 1 and 2).

Docker, Kubernetes, systemd and Slurm set them on the control group of the process or on one of those around it. Each of these
applies, so the least one counts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


@cache
def cpu_quota() -> int | None:
    """The CPUs that the container may use, rounded up; None if it has no quota. Read once."""
    version_2 = _limits("", ["cpu.max"], 2)
    version_1 = _limits("cpu", ["cpu.cfs_quota_us", "cpu.cfs_period_us"], 2)
    quotas = [-(-us // period) for us, period in (*version_2, *version_1) if us > 0 and period > 0]
    return min(quotas, default=None)


@cache
def memory_limit() -> int | None:
    """The bytes that the container may use; None if it has no limit. Version 1 says about 2**63 for "no limit". Read once."""
    version_2 = _limits("", ["memory.max"], 1)
    version_1 = _limits("memory", ["memory.limit_in_bytes"], 1)
    return min((limit for (limit,) in (*version_2, *version_1)), default=None)


def _limits(controller: str, files: list[str], count: int) -> Iterator[list[int]]:
    """The `count` numbers in these files, of each control group that has them. Version 2 names no controller."""
    for group in _groups(controller):
        with contextlib.suppress(OSError, ValueError):  # no such file, or "max"
            numbers = [int(word) for file in files for word in (group / file).read_text().split()]
            if len(numbers) == count:
                yield numbers


def _groups(controller: str) -> set[Path]:
    """The folders of the control group of this process and of those around it, as far as they are mounted here. In most
    containers the root is the container's own group, whatever the path of the group is called."""
    paths = ["/"]
    with contextlib.suppress(OSError, ValueError):
        for line in _OWN.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controller in controllers.split(","):
                paths.append(path)
    below = [Path(path.strip("/")) for path in paths]
    return {_CGROUPS / controller / group for path in below for group in (path, *path.parents)}
