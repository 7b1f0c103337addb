"""Copies of elements as bytes, for kernels that only move them: one compiled kernel serves all types."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._compiled.jit import External, kernel

copy_bytes: Any = External("memcpy", "uintp(uintp, uintp, uintp)")
"""`copy_bytes(to, from, count)`: C's `memcpy`."""

set_bytes: Any = External("memset", "uintp(uintp, int32, uintp)")
"""`set_bytes(to, value, count)`: C's `memset`."""


@kernel
def copied(source, out):
    """Copies an array of bytes to another of the same size."""
    copy_bytes(out.ctypes.data, source.ctypes.data, np.uintp(source.size))


@copied.fallback
def _(source, out):
    out[...] = source


@kernel
def fill_line(line, fill, item, first, inner, filled):
    """Fills bytes `[n]` with the elements of an array from number `first` on; element i is number `i // inner % count` of the
    `count` in `fill`, of `item` bytes each.

    Returns a number that identifies the content of the line among lines of the same array and length. If it equals `filled`,
    nothing is written.
    """
    count = fill.size // item
    if count == 1:
        if filled == 0:
            return 0
        number, period = 0, item
    elif first % inner + line.size // item <= inner:
        number, period = first // inner % count, item
    else:
        number, period = count + first % (inner * count), inner * count * item
    if number == filled:
        return number
    known = min(line.size, period)
    for i in range(known):
        line[i] = fill[(first + i // item) // inner % count * item + i % item]
    while known < line.size:
        more = min(known, line.size - known)
        copy_bytes(np.uintp(line.ctypes.data) + np.uintp(known), line.ctypes.data, np.uintp(more))
        known += more
    return number


def filled(shape, fill, item, inner):
    """The same in Python: an array of these extents as bytes `[elements, item]`."""
    elements = np.arange(int(np.prod(shape)))
    return fill.reshape(-1, item)[elements // max(1, inner) % (len(fill) // item)]
