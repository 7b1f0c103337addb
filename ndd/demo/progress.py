"""A progress bar in a few lines: redrawn on a terminal; in a log file one line an epoch, or one for each step."""

from __future__ import annotations

import sys
import time

_WIDTH = 24


class Bar:
    """Call it after every batch; `done()` leaves the last line standing.

    Args:
        title: stands before the bar.
        total: the number of batches to come.
        each: where the output is not a terminal, print a line for every batch instead of the last one: for steps that take
            seconds.
    """

    def __init__(self, title: str, total: int, each: bool = False):
        self.title = title
        self.total = total
        self._each = each
        self._began = time.monotonic()
        self.count = 0
        self.live = sys.stdout.isatty()
        self.line = ""
        self._shown = 0.0

    def __call__(self, text: str) -> None:
        """One batch more; `text` stands behind the bar."""
        self.count += 1
        filled = min(_WIDTH, _WIDTH * self.count // max(self.total, 1))
        bar = "#" * filled + "." * (_WIDTH - filled)
        previous, self.line = len(self.line), f"{self.title} [{bar}] {self.count}/{self.total}  {text}"
        now = time.monotonic()
        if self.live and (now - self._shown > 0.1 or self.count == self.total):
            print("\r" + self.line.ljust(previous), end="", flush=True)
            self._shown = now
        if self._each and not self.live:
            print(f"{self.title}: {self.count} of {self.total}, {now - self._began:.1f} s: {text}", flush=True)

    def done(self) -> None:
        """Ends the line."""
        if self.live or not self._each:
            print("\r" + self.line if self.live else self.line, flush=True)
