"""Each operator of the table on a batch; the libraries take turns, each in its own process."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from ndd.bench.libraries import Setting
from ndd.bench.operator_table import TABLE
from ndd.bench.process import Process
from ndd.bench.rounds import Result, interleaved
from ndd.demo.folder import PHOTOS, scan

Answer = Callable[[str], dict[str, Any]]
"""A library's answer for a row: `operator_side.Rows.answer`."""


def measure(setting: Setting, data: Path | None, batch_size: int = 64, only: str = "") -> Iterator[Result]:
    """Milliseconds for a batch, from call to result; on a GPU many calls in a row with one wait at the end.

    On the CPU, a library has no number for a row that it always computes on its GPU.
    """
    scan(data or PHOTOS)  # raises an error for an unusable folder
    options = setting.device, str(setting.threads), str(data or ""), str(batch_size), str(setting.seconds)
    sides = {side: _Side(side, *options) for side in setting.libraries}
    try:
        for row in TABLE:
            if only in row:
                title = f"{row}, {batch_size} samples, {setting.device.upper()}"
                yield _compare(row, title, {name: side.answer for name, side in sides.items()}, setting.rounds)
    finally:
        for side in sides.values():
            side.close()


def summary(results: Sequence[Result]) -> str:
    """The number of rows, the geometric mean of their ratios, and the names of those above 1.0."""
    ratios = {r.name.rsplit(", ", 2)[0]: r.ratio for r in results if r.ratio is not None}
    if not ratios:
        return f"ops: {len(results)} rows, none with both numbers"
    above = [f"{row} {ratio:.2f}" for row, ratio in sorted(ratios.items(), key=lambda r: -r[1]) if ratio > 1]
    mean = f"geometric mean of the ratios {geometric_mean(ratios.values()):.3f}"
    return f"ops: {len(results)} rows, {len(ratios)} with both numbers; {mean}; above 1.0: {', '.join(above) or 'none'}"


class _Side:
    """The process of one library; if it ends in a row, the next row starts a new one."""

    def __init__(self, side: str, *arguments: str):
        self._side, self._arguments = side, arguments
        self._process: Process | None = None

    def answer(self, row: str) -> dict[str, Any]:
        """The answer of the process, or the message that it ended. RuntimeError if it ends before the first row."""
        if self._process is None:
            self._process = Process("ndd.bench.operator_side", self._side, *self._arguments)
            self._process.ask("")  # waits for the start, so that it disturbs no measurement
        try:
            return self._process.ask(row)
        except RuntimeError as error:
            self.close()
            return {"why": f"{self._side}: {error}"}

    def close(self) -> None:
        """Ends the process, if there is one."""
        if self._process is not None:
            self._process.close()
            self._process = None


class _NoNumber(Exception):
    def __init__(self, side: str, why: str):
        super().__init__(why)
        self.side = side


def _compare(row: str, title: str, answers: Mapping[str, Answer], rounds: int) -> Result:
    def seconds(side: str) -> float:
        answer = answers[side](row)
        if "why" in answer:
            raise _NoNumber(side, answer["why"])
        return answer["seconds"]

    timed, notes = {side: functools.partial(seconds, side) for side in answers}, []
    times: dict[str, float] = {}
    while timed and not times:
        try:
            interleaved(timed, 1)  # warms up
            times = interleaved(timed, rounds)
        except _NoNumber as error:
            del timed[error.side]  # the other side is measured alone
            notes.append(str(error))
    ms = {side: each * 1e3 for side, each in times.items()}
    return Result("ops", title, "ms", ms.get("ndd"), ms.get("DALI"), "; ".join(notes))
