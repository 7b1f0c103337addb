"""The overhead of a call: operators on four tiny images."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np

from ndd.bench.libraries import Setting
from ndd.bench.rounds import Result, interleaved

_CALLS = 400


def measure(setting: Setting) -> Iterator[Result]:
    """One operator with evaluation, a chain of eight, and the part that the caller waits for."""
    tiny = [np.zeros((4, 4, 3), np.uint8)] * 4
    batches = {
        name: library.batch(tiny, layout="HWC", device=setting.device).evaluate()
        for name, library in setting.libraries.items()
    }

    def compare(name: str, unit_calls: int, times: Callable[[Any, Any], float], target: str) -> Result:
        sides = {
            side: (lambda library=library, batch=batches[side]: times(library, batch))
            for side, library in setting.libraries.items()
        }
        for side in sides.values():
            side()
        rates = interleaved(sides, setting.rounds)
        us = {side: value * 1e6 / unit_calls for side, value in rates.items()}
        return Result("dispatch", name, "us", us["ndd"], us.get("DALI"), target)

    place = setting.device.upper()
    on_cpu = setting.device == "cpu"
    yield compare(f"flip, 4 tiny images, call + evaluate, {place}", 1, _single_call, "ratio <= 0.20" if on_cpu else "")
    yield compare(f"x + 1, 4 tiny images, call + evaluate, {place}", 1, _add, "")
    yield compare(f"chain of 8 flips, call + evaluate, {place}", 1, _chain, "ratio <= 0.10" if on_cpu else "")
    yield compare(f"caller's share of one operator, {place}", 8, _caller, "<= 15 us")


def _single_call(library: Any, batch: Any) -> float:
    flip = library.flip

    def times() -> Iterator[float]:
        for _ in range(_CALLS):
            start = time.perf_counter()
            flip(batch, horizontal=1).evaluate()
            yield time.perf_counter() - start

    return median(times())


def _add(library: Any, batch: Any) -> float:
    def times() -> Iterator[float]:
        for _ in range(_CALLS):
            start = time.perf_counter()
            (batch + 1).evaluate()
            yield time.perf_counter() - start

    return median(times())


def _chain(library: Any, batch: Any) -> float:
    flip = library.flip

    def times() -> Iterator[float]:
        for _ in range(_CALLS // 8):
            value = batch
            start = time.perf_counter()
            for _ in range(8):
                value = flip(value, horizontal=1)
            value.evaluate()
            yield time.perf_counter() - start

    return median(times())


def _caller(library: Any, batch: Any) -> float:
    flip = library.flip

    def times() -> Iterator[float]:
        for _ in range(_CALLS // 8):
            value = batch
            start = time.perf_counter()
            for _ in range(8):
                value = flip(value, horizontal=1)
            yield time.perf_counter() - start
            value.evaluate()

    return median(times())
