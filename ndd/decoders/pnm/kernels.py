"""Kernels for the PNMs of a batch: gray (P5) and RGB (P6) in bytes, of which 255 is the largest.

Python reads all other files, and those that look damaged. The format: Netpbm, "pgm" and "ppm".
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel
from ndd.decoders.jpeg.batch_headers import CHANNELS, GOOD, HEIGHT, PNM, WIDTH
from ndd.decoders.picture_table import (
    BY_OPENCV,
    DEPTH,
    IS_BGR,
    LEFT,
    TOP,
    USED_BOTTOM,
    USED_TOP,
    WIDE,
    copy_pixels,
    decode_loop_of,
    look_of,
)

_START, _LAYOUT = CHANNELS + 1, CHANNELS + 2  # the first byte of the pixels, which `_read_layout` finds out

_MOST = 1_000_000  # rows or columns
_MOST_HEAD = 4096  # bytes of the header, as in `headers/pnm.py`
_LARGEST = 255
_COMMENT, _ZERO, _NINE, _SPACE, _TAB, _LINE, _RETURN = 0x23, 0x30, 0x39, 0x20, 0x09, 0x0A, 0x0D


@kernel(light=True)
def _is_space(byte):
    return byte == _SPACE or _TAB <= byte <= _RETURN


@kernel(light=True)
def _next_number(data, at, end):
    """The place after white space and comments and the number between them and further white space, and the number; -1 if
    there is none. OpenCV refuses or misreads files with a comment that begins without white space."""
    is_whole = at < end and _is_space(data[at])
    while at < end and (_is_space(data[at]) or data[at] == _COMMENT):
        if data[at] == _COMMENT:
            while at < end and data[at] != _LINE and data[at] != _RETURN:
                at += 1
        at += 1
    value, digits = np.int64(0), 0
    while at < end and _ZERO <= data[at] <= _NINE and digits < 9:
        value = 10 * value + np.int64(data[at]) - _ZERO
        at += 1
        digits += 1
    is_whole = is_whole and digits > 0 and at < end and _is_space(data[at])
    return at, value if is_whole else np.int64(-1)


@kernel
def _read_layout(data, layout):
    """Fills `layout`, int64 `[_LAYOUT]`. Returns whether the file is a common one with all of its pixels."""
    total = np.int64(len(data))
    if total < 3 or data[0] != 0x50 or (data[1] != 0x35 and data[1] != 0x36):
        return False
    end = min(total, _MOST_HEAD)
    at, width = _next_number(data, np.int64(2), end)
    at, height = _next_number(data, at, end)
    at, largest = _next_number(data, at, end)
    if not 0 < width <= _MOST or not 0 < height <= _MOST or largest != _LARGEST:
        return False
    layout[GOOD], layout[HEIGHT], layout[WIDTH], layout[_START] = PNM, height, width, at + 1
    layout[CHANNELS] = 3 if data[1] == 0x36 else 1
    return height * width * layout[CHANNELS] <= total - layout[_START]


@kernel
def _decode(data, layout, out, row, scratch, libraries):
    depth, channels = row[DEPTH], layout[CHANNELS]
    for y in range(row[USED_TOP], row[USED_BOTTOM]):
        at = layout[_START] + (y * layout[WIDTH] + row[LEFT]) * channels
        to = (y - row[TOP]) * row[WIDE] * depth
        copy_pixels(data, at, channels, out, to, depth, row[WIDE], row[IS_BGR] != 0, BY_OPENCV)
    return True


look = look_of(_read_layout, _LAYOUT)
decode_loop = decode_loop_of(_read_layout, _decode, PNM, _LAYOUT)
