"""Each operator of the table on a batch, each library in a process of its own, in turn."""

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

Answer = Callable[[str], dict[str, Any]]
"""A library's answer for a row: `operator_side.Rows.answer`."""


def measure(setting: Setting, data: Path | None, batch_size: int = 64, only: str = "") -> Iterator[Result]:
    """Milliseconds for a batch, call to result; on a GPU many calls in a row and one wait at the end.

    On the CPU a library that computes a row on its GPU whatever the input has no number for it.
    """
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
    """How many rows there are, the geometric mean of their ratios, and those above 1.0 by name."""
    ratios = {r.name.rsplit(", ", 2)[0]: r.ratio for r in results if r.ratio is not None}
    if not ratios:
        return f"ops: {len(results)} rows, none with both numbers"
    above = [f"{row} {ratio:.2f}" for row, ratio in sorted(ratios.items(), key=lambda r: -r[1]) if ratio > 1]
    mean = f"geometric mean of the ratios {geometric_mean(ratios.values()):.3f}"
    return f"ops: {len(results)} rows, {len(ratios)} with both numbers; {mean}; above 1.0: {', '.join(above) or 'none'}"


class _Side:
    """The process of one library; where it ends at a row, the next row has a new one."""

    def __init__(self, side: str, *arguments: str):
        self._side, self._arguments = side, arguments
        self._process: Process | None = None

    def answer(self, row: str) -> dict[str, Any]:
        """The answer of the process, or that it ended. RuntimeError if it ends before the first row."""
        if self._process is None:
            self._process = Process("ndd.bench.operator_side", self._side, *self._arguments)
            self._process.ask("")  # nothing else is measured while it starts
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
            del timed[error.side]  # the other one is measured alone
            notes.append(str(error))
    ms = {side: each * 1e3 for side, each in times.items()}
    return Result("ops", title, "ms", ms.get("ndd"), ms.get("DALI"), "; ".join(notes))
