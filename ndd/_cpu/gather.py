"""Copies scattered bytes into one buffer. Threads take pieces of the result, which do not depend on the samples' sizes."""

from __future__ import annotations

import ctypes

import numpy as np

from ndd._compiled.jit import kernel
from ndd._compiled.sample_loops import next_index
from ndd._cpu.element_copies import copy_bytes

PIECE = 1 << 17  # bytes of a piece


@kernel
def gather_loop(counter, limit, sources, ends, target):
    """Copies the bytes at the addresses `sources` to the address `target`, a piece of the result at a time.

    `ends`: where each sample ends there, in bytes from `target` on. Both are int64 `[N]`, of one sample at least.
    """
    total, k = ends[-1], 0
    for _ in range(limit):
        at = next_index(counter) * PIECE
        if at >= total:
            break
        stop = min(at + PIECE, total)
        while ends[k] <= at:
            k += 1
        while at < stop:
            size, begin = min(ends[k], stop) - at, ends[k - 1] if k else np.int64(0)
            copy_bytes(target + at, sources[k] + at - begin, size)
            at, k = at + size, k + 1
        k -= 1  # the next piece may begin inside the same sample
    return True


@gather_loop.fallback
def _(counter, limit, sources, ends, target):
    places = ends.tolist()
    begins, total = [0, *places], places[-1]
    for _ in range(limit):
        at = next_index(counter) * PIECE
        if at >= total:
            break
        stop, k = min(at + PIECE, total), int(np.searchsorted(ends, at, side="right"))
        while at < stop:
            size = min(places[k], stop) - at
            ctypes.memmove(target + at, int(sources[k]) + at - begins[k], size)
            at, k = at + size, k + 1
    return True
