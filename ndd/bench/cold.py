"""The README's loop from the start of its process: how soon it is fast when nothing is compiled yet.

`python -m ndd.bench.cold SIDE ...` runs one side in its own process. It prints the time of each batch, in seconds since the
parent process started it. (DALI's side imports ndd too, which takes 0.3 s beside torch.)
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ndd.bench.libraries import Setting
from ndd.bench.loop_sides import dynamic
from ndd.bench.process import failure
from ndd.bench.rounds import Result, synchronize
from ndd.demo.folder import PHOTOS, scan

_SECONDS = 30.0
_AT = (5, 10, 20, 30)
_SHARE = 0.8
_WINDOW = 2.0  # seconds over which a rate is measured
_FILES = 4096
_SIDES = {"ndd": "ndd", "DALI": "DALI dynamic"}


def main(argv: list[str] | None = None) -> None:
    """Runs the loop for some seconds; prints the times of the batches as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("side", choices=_SIDES.values())
    parser.add_argument("--begun", type=float, required=True, help="by the system's monotonic clock")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    args = parser.parse_args(argv)
    args.loop = "random_resized_crop"
    times: list[float] = []
    for _ in dynamic(args, scan(args.data).repeated(_FILES), {}):
        synchronize(args.device)
        times.append(time.monotonic() - args.begun)
        if times[-1] > args.seconds:
            break
    print(json.dumps(times), flush=True)


def measure(setting: Setting, data: Path | None, batch_size: int | None = None) -> Iterator[Result]:
    """Seconds to the first batch and to 80 % of the warm rate, and the number of batches by then: with an empty cache, and with
    the cache of an earlier process. Both have the kernels of the wheel."""
    scan(data or PHOTOS)  # raises an error for an unusable folder
    with tempfile.TemporaryDirectory(prefix="ndd-bench-") as cache:
        empty = _times("ndd", setting, data, batch_size, {"NDD_CACHE_DIR": cache})
        theirs = _times("DALI", setting, data, batch_size, {}) if "DALI" in setting.libraries else None
        _times("ndd", setting, data, batch_size, {"NDD_CACHE_DIR": cache, "NDD_COMPILE_IN_BACKGROUND": "0"})
        full = _times("ndd", setting, data, batch_size, {"NDD_CACHE_DIR": cache})
    warm = warm_rate(full)
    for state, ours in (("empty cache", empty), ("full cache", full)):
        yield from _compared(f"{state}, {setting.device.upper()}, {setting.threads} threads", ours, warm, theirs)


def _compared(state: str, ours: list[float], warm: float, theirs: list[float] | None) -> Iterator[Result]:
    def row(name: str, unit: str, number: Any, target: str = "") -> Result:
        other = None if theirs is None else number(theirs, warm_rate(theirs))
        return Result("cold", f"{name}; {state}", unit, number(ours, warm), other, target)

    yield row("first batch", "s", lambda times, _: times[0])
    for at in _AT:
        target = "ratio >= 1" if at >= 20 else ""
        yield row(f"batches by {at} s", "batches", lambda times, _, at=at: float(bisect_right(times, at)), target)
    yield row("to 80 % of the warm rate", "s", seconds_to, "<= 15 s")


def warm_rate(times: list[float]) -> float:
    """Batches a second in the second half of the time."""
    middle = times[-1] / 2
    return (len(times) - bisect_right(times, middle)) / (times[-1] - middle)


def seconds_to(times: list[float], warm: float) -> float | None:
    """The first time at which the rate of the next two seconds is 80 % of the warm rate; None if it never is."""
    needed = _SHARE * warm * _WINDOW
    for k, begin in enumerate(times):
        if begin + _WINDOW > times[-1]:
            break
        if bisect_right(times, begin + _WINDOW) - k - 1 >= needed:
            return begin
    return None


def _times(
    side: str, setting: Setting, data: Path | None, batch_size: int | None, environment: dict[str, str]
) -> list[float]:
    command = [
        sys.executable, "-m", "ndd.bench.cold", _SIDES[side], "--device", setting.device, "--data", str(data or PHOTOS),
        "--threads", str(setting.threads), "--seconds", str(_SECONDS), "--batch-size", str(batch_size or 64),
        "--begun", str(time.monotonic()),
    ]  # fmt: skip
    users = {"NDD_COMPILE_IN_BACKGROUND": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **users, **environment})
    if done.returncode:
        raise RuntimeError(f"the loop of {side} failed:\n{failure(done)}")
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
