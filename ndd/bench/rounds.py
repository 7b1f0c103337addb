"""Measuring two libraries fairly: in turn, several rounds, medians."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

_PAUSE = 0.02  # lets background work of one side (read-ahead, freeing memory) end before the other is timed


@dataclass
class Result:
    """One line of the report: the same work timed in both libraries."""

    section: str
    name: str
    unit: str
    ndd: float | None
    dali: float | None
    target: str = ""

    @property
    def ratio(self) -> float | None:
        """ndd's number over DALI's."""
        return self.ndd / self.dali if self.ndd is not None and self.dali else None

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "ratio": self.ratio}


def interleaved(sides: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The median of `rounds` results of each side, measured ABAB...; rounds begin with alternating sides."""
    rates: dict[str, list[float]] = {name: [] for name in sides}
    order = list(sides)
    for _ in range(rounds):
        for name in order:
            time.sleep(_PAUSE)
            rates[name].append(sides[name]())
        order.reverse()
    return {name: median(values) for name, values in rates.items()}


def synchronize(device: str) -> None:
    """Waits for everything that any library has queued on the GPU."""
    if device == "gpu":
        import torch

        torch.cuda.synchronize()


def rate_of(work: Callable[[], int], device: str) -> float:
    """What `work` counts, per second, with all that it queued on the GPU."""
    synchronize(device)
    start = time.perf_counter()
    count = work()
    synchronize(device)
    return count / (time.perf_counter() - start)


def seconds_each(work: Callable[[], Any], count: int, wait: Callable[[], None]) -> float:
    """Seconds for one of `count` calls of `work`; `wait` waits for the work that they queued, and is part of the time."""
    wait()
    start = time.perf_counter()
    for _ in range(count):
        work()
    wait()
    return (time.perf_counter() - start) / count


def enough_calls(work: Callable[[], Any], wait: Callable[[], None], seconds: float) -> int:
    """The number of calls that take about `seconds`; also warms up."""
    work()
    once = seconds_each(work, 2, wait)
    return max(1, min(2000, int(seconds / max(once, 1e-7))))
