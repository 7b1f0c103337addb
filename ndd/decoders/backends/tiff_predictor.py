"""TIFF's predictor: numbers that are stored as differences from those on the left. The format: TIFF 6.0, section 14."""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel

_ONE, _TWO = np.uint64(1), np.uint64(2)


@kernel
def add_left(rows, depth):
    """Adds to each number of `rows`, a matrix of whole numbers, the sum of those before it in its row, with `depth` channels, in
    place."""
    height, width = rows.shape
    for y in range(height):
        row = rows[y]
        if depth == 3 and width % 3 == 0:  # three sums in registers: a third of the time
            red, green, blue = row[0] - row[0], row[0] - row[0], row[0] - row[0]
            for x in range(0, width, 3):
                place = np.uint64(x)
                red += row[place]
                green += row[place + _ONE]
                blue += row[place + _TWO]
                row[place], row[place + _ONE], row[place + _TWO] = red, green, blue
            continue
        for c in range(min(depth, width)):
            total = row[c] - row[c]
            for x in range(c, width, depth):
                total += row[x]
                row[x] = total


@add_left.fallback
def _(rows, depth):
    values = rows.reshape(len(rows), -1, depth)
    np.cumsum(values, axis=1, dtype=rows.dtype, out=values)
