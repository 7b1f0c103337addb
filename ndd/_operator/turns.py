"""Samples that threads take in turn, inside one call of a compiled loop for each thread (`_cpu/turns.py`).

A task for each sample makes threads wait for the interpreter, which they ask for at its beginning and its end: with 16
threads, 64 photographs of 0.9 ms each took 22 ms. Here they ask once for each thread and batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_EACH = 1 << 17  # bytes for a thread, at least: to wake one takes as long as a core needs for some 100 kB
_BYTES = 1 << 26  # of one call, about: in between Python looks for signals (Ctrl-C)


def in_turns(context: Any, loop: Callable[[np.ndarray, int], bool], count: int, nbytes: int, held: Any) -> bool:
    """See `Call.in_turns`."""
    turns = np.array([0])
    most = max(1, _BYTES * count // (nbytes + 1))

    # Ctrl-C ends the caller's share alone: what the others write to lives as long as they do.
    def share(_: int, _held: Any = held) -> None:
        while turns[0] < count and loop(turns, most):
            pass

    threads = min(count, 1 + nbytes // _EACH)
    if threads > 1:
        threads = min(threads, context.num_threads)
    if threads > 1:
        for error in context.thread_pool.run(share, threads).values():
            raise error
    else:
        share(0)
    return bool(turns[0] >= count)
