"""Lookahead: what is known of a reader's next batches, and the threads that work on them before the loop asks.

What is done to them, and when, is `_operator/ahead.py`.

Three batches, so that the decoders have work while the loop takes a result and asks for the next one, and while what comes
behind a decode is done: with one they were idle for 1.6 of 4.8 ms a batch of 64 on an H200, with two for a tenth of the time,
with three for a fiftieth. A fourth brings nothing. Where several batches are worked on as one, three times as many.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ndd._execution.memoize import Memoized
from ndd._tensor import Store

DEPTH = 3  # how many batches ahead, or several that are worked on as one


class Following:
    """The way from a batch of a reader to the next ones.

    Args:
        peek: `peek(k)` gives the store of the same output k batches later, or None if that has not been read; never
            waits.
        memory: a dict that all batches of one output share: what was done to those before.
    """

    __slots__ = ("_peek", "memory")
    any = False  # whether there ever was one: programs without readers need not look

    def __init__(self, peek: Callable[[int], Store | None], memory: dict[str, Any]):
        self._peek = peek
        self.memory = memory
        Following.any = True

    def store(self, distance: int) -> Store | None:
        """The store of a coming batch, if it is there."""
        return self._peek(distance)


_PYTHONS_SWITCH_SECONDS, _SWITCH_SECONDS = 0.005, 0.0005


def _pool() -> ThreadPoolExecutor:
    """One thread more than works at once, so that what is prepared for one batch overlaps the decoding of those before.

    Python lets a thread that waits for the interpreter wait 5 ms, twice a batch of 64, before it interrupts the one that
    has it. With a tenth of that the loop on an H200 gives 18,700 images/s instead of 16,400. The interval is the process'
    own, so one that somebody has set stays.
    """
    if sys.getswitchinterval() == _PYTHONS_SWITCH_SECONDS:
        sys.setswitchinterval(_SWITCH_SECONDS)
    return ThreadPoolExecutor(DEPTH + 1, "ndd-lookahead", initializer=lambda: setattr(_local, "ahead", True))


class _Local(threading.local):
    ahead = False


_local = _Local()
threads = Memoized(_pool)


def is_ahead() -> bool:
    """Whether this thread works on what the loop has not asked for yet, beside others that do."""
    return _local.ahead


def enabled() -> bool:
    """Whether lookahead is on; the environment variable `NDD_LOOKAHEAD=0` turns it off."""
    return os.environ.get("NDD_LOOKAHEAD", "1") != "0"
