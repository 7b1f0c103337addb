"""Pictures of a batch turned and mirrored by their EXIF orientation, in compiled code."""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import array_at
from ndd._compiled.jit import kernel
from ndd._compiled.sample_loops import next_index
from ndd.decoders.headers.orientation import BACKWARDS, FIRST_SWAPPED, UPSIDE_DOWN

# The columns of a picture in `turn_loop`: address of the stored pixels, address of the upright ones, height and width as stored,
# bytes of a pixel, orientation.
STORED, UPRIGHT, HEIGHT, WIDTH, PIXEL, ORIENTATION, NUMBERS = range(7)
_ONE, _TWO = np.uint64(1), np.uint64(2)
_TILE = 32  # rows and columns that are copied together, so that both sides stay in the L1 cache


@kernel
def turn_loop(counter, limit, order, pictures, like, done):
    """Turns up to `limit` pictures in the order `order`, which threads share. Returns True.

    Args:
        pictures: int64 `[N, NUMBERS]`, see above.
        like: any array of u8.
        done: bool `[N]`: pictures that were not decoded are left out.
    """
    for _ in range(limit):
        k = next_index(counter)
        if k >= len(order):
            break
        row = pictures[order[k]]
        if done[order[k]]:
            nbytes = row[HEIGHT] * row[WIDTH] * row[PIXEL]
            _turn(array_at(row[STORED], nbytes, like), array_at(row[UPRIGHT], nbytes, like), row)
    return True


@turn_loop.fallback
def _(counter, limit, order, pictures, like, done):
    return False


@kernel
def _turn(stored, upright, row):
    height, width, pixel, orientation = row[HEIGHT], row[WIDTH], row[PIXEL], row[ORIENTATION]
    # Bytes from a row, or a column, of the upright picture to the next one in the stored picture.
    down, right = width * pixel, pixel
    if orientation >= FIRST_SWAPPED:
        height, width, down, right = width, height, pixel, width * pixel
    first = np.int64(0)
    if orientation in UPSIDE_DOWN:
        first, down = first + (height - 1) * down, -down
    if orientation in BACKWARDS:
        first, right = first + (width - 1) * right, -right
    for top in range(0, height, _TILE):
        for left in range(0, width, _TILE):
            count = min(_TILE, width - left)
            for y in range(top, min(top + _TILE, height)):
                at, to = first + y * down + left * right, (y * width + left) * pixel
                _copy_pixels(stored, at, right, upright, to, count, pixel)


@kernel(light=True)
def _copy_pixels(stored, at, right, upright, to, count, pixel):
    """Copies pixels that lie `right` bytes apart. Indices without a sign need no check whether they count from the end, which
    takes six times as long."""
    source, target, step = np.uint64(at), np.uint64(to), np.uint64(right)  # a step back wraps, as it should
    size = np.uint64(pixel)
    for _ in range(count):
        if pixel == 3:
            red, green, blue = stored[source], stored[source + _ONE], stored[source + _TWO]
            upright[target], upright[target + _ONE], upright[target + _TWO] = red, green, blue
        else:
            for c in range(size):
                upright[target + c] = stored[source + c]
        source += step
        target += size
