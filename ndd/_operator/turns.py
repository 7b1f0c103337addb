"""Samples that threads take in turn, inside one call of a compiled loop for each thread (`_cpu/turns.py`).

A task for each sample makes threads wait for the interpreter, which they ask for at its beginning and its end: with 16
threads, 64 photographs of 0.9 ms each took as long as 25 ms. Here they ask once for each thread and batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ndd._operator.call import Call

_EACH = 1 << 17  # bytes for a thread, at least: to wake one takes as long as a core needs for some 100 kB
_BYTES = 1 << 26  # of one call, about: in between Python looks for signals (Ctrl-C)


def in_turns(call: Call, loop: Callable[[np.ndarray, int], bool], count: int, nbytes: int) -> bool:
    """Runs `loop(turns, most)` on as many threads as is worth it, until all of `count` samples have been taken.

    Args:
        loop: a kernel that takes up to `most` samples, by `next_turn(turns)`, and says True. False: nothing was done,
            nor will be, since it is being compiled.
        nbytes: about the bytes that the work moves.

    Gives whether all is done.
    """
    turns = np.array([0])
    most = max(1, _BYTES * count // (nbytes + 1))

    def share(_: int) -> None:
        while turns[0] < count and loop(turns, most):
            pass

    threads = min(count, 1 + nbytes // _EACH)
    if threads > 1:
        threads = min(threads, call.threads)
    if threads > 1:
        for error in call.context.thread_pool.run(share, threads).values():
            raise error
    else:
        share(0)
    return bool(turns[0] >= count)
