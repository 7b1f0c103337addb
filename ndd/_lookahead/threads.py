"""The threads that run ahead of a loop, and the switch that turns them off.

Three batches ahead, so that the decoders have work while the loop takes a result and asks for the next one, and while what
comes after a decode is done: with one batch ahead they are idle for 1.6 of 4.8 ms a batch of 64 on an H200, with two for a
tenth of the time, with three for a fiftieth. A fourth gains nothing. Where batches are merged, three merged ones.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from ndd._execution.memoize import Memoized

DEPTH = 3  # batches ahead, or merged ones
_MOST_BYTES = 1 << 30
_PYTHONS_SWITCH_SECONDS, _SWITCH_SECONDS = 0.005, 0.0005


class _Local(threading.local):
    ahead = False
    relaxed = False


_local = _Local()


def _pool() -> ThreadPoolExecutor:
    """One thread more than work at once, so that the preparation of one batch overlaps the decoding of earlier ones.

    Python lets a thread that waits for the interpreter wait 5 ms, twice a batch of 64, before it interrupts the one that
    has it. With a tenth of that the loop on an H200 gives 18,700 images/s instead of 16,400. The interval belongs to the
    process, so one that somebody has set stays.
    """
    if sys.getswitchinterval() == _PYTHONS_SWITCH_SECONDS:
        sys.setswitchinterval(_SWITCH_SECONDS)
    return ThreadPoolExecutor(DEPTH + 1, "ndd-lookahead", initializer=lambda: setattr(_local, "ahead", True))


gpu_threads = Memoized(_pool)
# On the CPU all cores work on one batch: the one that the loop comes to first.
cpu_thread = Memoized(lambda: ThreadPoolExecutor(1, thread_name_prefix="ndd-lookahead"))


def is_ahead() -> bool:
    """Whether this thread computes ahead of the loop, beside threads that the loop waits for."""
    return _local.ahead


def is_relaxed() -> bool:
    """Whether this thread works for a loop that takes batches more slowly than they are made, see `pace.py`."""
    return _local.relaxed


@contextlib.contextmanager
def at_pace(relaxed: bool) -> Iterator[None]:
    """Within it `is_relaxed()` is `relaxed`."""
    _local.relaxed = relaxed
    try:
        yield
    finally:
        _local.relaxed = False


def enabled() -> bool:
    """Whether lookahead is on; the environment variable `NDD_LOOKAHEAD=0` turns it off."""
    return os.environ.get("NDD_LOOKAHEAD", "1") != "0"


def most_bytes() -> int:
    """The most bytes of results that lookahead holds, apart from one batch: `NDD_LOOKAHEAD_BYTES`, by default 1 GiB."""
    return int(os.environ.get("NDD_LOOKAHEAD_BYTES", _MOST_BYTES))
