"""Moving sums of squares in which each addition is rounded: chains of additions for 16 intervals side by side.

An addition waits 4 cycles for the one before, and each number of the signal takes two additions, so the latency would take all
the time. Vector registers work on 16 intervals at once (`_compiled/simd_sums.py`).
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd._compiled.simd_sums import GROUP, SUMS, advance_sums
from ndd._cpu.element_copies import copy_bytes

BLOCK = 512  # steps of an interval; only the largest sum of a block is stored
_CHUNK = 64  # steps between two updates of the addresses of the numbers
_BYTES = 4 * _CHUNK


@kernel
def largest_sums(places, sizes, order, window, interval, firsts, before, largest):
    """For each block of `BLOCK` steps: the sum before it and its largest sum, ignoring NaN. The sum at `i` is that of `x[k] **
    2` over the last `window` samples: the oldest square is subtracted from the previous sum, and the newest added. At multiples
    of `interval` it is computed from scratch, oldest first.

    Args:
        places, sizes: the addresses and lengths of signals in float32.
        order: the signals, those with a long last interval first.
        firsts: the first block of each signal; an interval begins with a block of its own.
    """
    rows = (window + GROUP - 1) // GROUP * GROUP
    state = empty(2 * SUMS, np.float32)
    squares, spare = empty(rows * SUMS, np.float32), empty((SUMS + 1) * _CHUNK, np.float32)
    intervals, sources = empty((SUMS, 4), np.int64), empty(SUMS, np.int64)
    count, longest = 0, 0
    for last in range(2):  # the complete intervals of all signals, then their last ones
        for k in range(len(order)):
            s = order[k]
            whole = sizes[s] // interval
            for number in range(whole, whole + (sizes[s] % interval > 0)) if last else range(whole):
                place = number * interval
                size = min(interval, sizes[s] - place)
                intervals[count, 0] = places[s] + 4 * place
                intervals[count, 1] = places[s] + 4 * max(0, place - window + 1)
                intervals[count, 2] = intervals[count, 0] + 4 * size
                intervals[count, 3] = firsts[s] + number * ((interval + BLOCK - 1) // BLOCK)
                count, longest = count + 1, max(longest, size)
                if count == SUMS:
                    _side_by_side(intervals, count, longest, window, squares, state, spare, sources, before, largest)
                    count, longest = 0, 0
    if count:
        _side_by_side(intervals, count, longest, window, squares, state, spare, sources, before, largest)


@kernel
def _side_by_side(intervals, count, longest, window, squares, state, spare, sources, before, largest):
    """Computes the sums of the first `count` rows of `intervals` `[SUMS, 4]`: the addresses of the first number, of the first
    number in its sum and of the end, and the first block."""
    rows = len(squares) // SUMS
    totals, most = state[:SUMS], state[SUMS:]
    squares[:], totals[:], spare[:] = 0, 0, 0
    nothing = np.int64(spare.ctypes.data) + SUMS * _BYTES
    step = -((window + GROUP - 2) // GROUP * GROUP)
    new, old = 0, (rows - window) % rows
    while step < longest:
        size = min(_CHUNK, (-step if step < 0 else longest - step) + GROUP - 1) // GROUP * GROUP
        if step >= 0 and step % BLOCK == 0:
            for k in range(count):
                if intervals[k, 0] + 4 * step < intervals[k, 2]:
                    before[intervals[k, 3] + step // BLOCK] = totals[k]
            most[:] = -np.inf
        for k in range(SUMS):
            sources[k] = nothing
            if k < count:
                at, low, high = intervals[k, 0] + 4 * step, intervals[k, 1], intervals[k, 2]
                end = at + 4 * size
                if at >= low and end <= high:
                    sources[k] = at
                elif end > low and at < high:  # numbers outside are 0, so that sums stay equal or become smaller
                    spare[k * _CHUNK : (k + 1) * _CHUNK] = 0
                    sources[k] = np.int64(spare.ctypes.data) + k * _BYTES
                    first = max(at, low)
                    copy_bytes(sources[k] + first - at, first, min(end, high) - first)
        advance_sums(sources, size, squares, new, old, totals, most)
        new, old, step = (new + size) % rows, (old + size) % rows, step + size
        if step > 0 and (step % BLOCK == 0 or step >= longest):
            block = (step - 1) // BLOCK
            for k in range(count):
                if intervals[k, 0] + 4 * block * BLOCK < intervals[k, 2]:
                    largest[intervals[k, 3] + block] = most[k]
