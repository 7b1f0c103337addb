"""Measures how long a CUDA stream worked, with events before and after the work. Nothing waits for the GPU while the loop
runs."""

from __future__ import annotations

import time
from typing import Any

import torch


class Timing:
    """The events around some work on a stream. Work of other streams in the meantime makes it longer.

    Args:
        stream: torch's stream.
    """

    __slots__ = ("_anchor", "_begin", "_end", "_seconds", "stream")

    def __init__(self, stream: Any):
        self.stream = int(stream.cuda_stream)
        self._anchor = _anchor_of(stream)
        self._begin, self._end = _event(), _event()
        self._begin.record(stream)
        self._seconds: tuple[int, float] | None = None

    def end(self, stream: Any) -> None:
        """Records the end, after the work is queued."""
        self._end.record(stream)

    def measured(self) -> tuple[int, float]:
        """When the work began, on the clock of `time.perf_counter_ns`, and how many seconds it took. Waits for the GPU."""
        if self._seconds is None:
            self._end.synchronize()
            moment, anchor = self._anchor
            begun = moment + int(anchor.elapsed_time(self._begin) * 1e6)
            self._seconds = begun, self._begin.elapsed_time(self._end) / 1e3
        return self._seconds


def has_gpu() -> bool:
    """Whether torch has a GPU."""
    return torch.cuda.is_available()


def _event() -> Any:
    return torch.cuda.Event(enable_timing=True)


_anchors: dict[int, tuple[int, Any]] = {}


def _anchor_of(stream: Any) -> tuple[int, Any]:
    """A time of the host, and a GPU event that was reached at that time. This waits once for each GPU."""
    number = stream.device_index
    known = _anchors.get(number)
    if known is None:
        anchor = _event()
        anchor.record(stream)
        anchor.synchronize()
        known = _anchors[number] = time.perf_counter_ns(), anchor
    return known
