"""Kernels for the BMPs of a batch: 24 or 32 bits without masks, or 8 bits with a palette, not compressed.

Python reads all other files, and those that look damaged. The format: Microsoft, "Bitmap Storage".
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import zeros
from ndd._compiled.jit import kernel
from ndd.decoders.jpeg.batch_headers import BMP, CHANNELS, GOOD, HEIGHT, WIDTH, number
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
    gray_of,
    look_of,
)

# What `_read_layout` finds out after the channels of the result: bits of a pixel, whether the first row is at the top, the first
# byte of the palette, its colours, the first byte of the pixels, and the bytes from row to row.
_BITS, _TOP_DOWN, _PALETTE, _COLOURS, _START, _STRIDE, _LAYOUT = range(CHANNELS + 1, CHANNELS + 8)

_HEADED = 54  # bytes of the smallest headers
_LARGEST = 124  # bytes of the largest header after that of the file
_MOST = 1_000_000  # rows or columns
_ENTRY, _ALL = 4, 256  # bytes of a colour in the palette; colours
_ONE, _TWO = np.uint64(1), np.uint64(2)


@kernel(light=True)
def _signed(value):
    """A number of 32 bits with a sign."""
    return value - (value >> 31 << 32)


@kernel
def _read_layout(data, layout):
    """Fills `layout`, int64 `[_LAYOUT]`. Returns whether the file is a common one with all of its pixels."""
    total = np.int64(len(data))
    if total < _HEADED or data[0] != 0x42 or data[1] != 0x4D:
        return False
    start, size = number(data, 10, 4, True), number(data, 14, 4, True)
    width, height = _signed(number(data, 18, 4, True)), _signed(number(data, 22, 4, True))
    bits, compression, colours = number(data, 28, 2, True), number(data, 30, 4, True), number(data, 46, 4, True)
    end = 14 + size
    if size < 40 or size > _LARGEST or compression != 0 or end > total:
        return False
    if not 0 < width <= _MOST or not 0 < abs(height) <= _MOST or (bits != 8 and bits != 24 and bits != 32):
        return False
    layout[GOOD], layout[HEIGHT], layout[WIDTH], layout[CHANNELS] = BMP, abs(height), width, bits // 8
    layout[_BITS], layout[_TOP_DOWN], layout[_PALETTE], layout[_COLOURS] = bits, height < 0, end, 0
    if bits == 8:
        count = min(colours if colours else np.int64(_ALL), (total - end) // _ENTRY)
        if count < 1 or colours > _ALL:
            return False
        layout[_COLOURS], layout[CHANNELS] = count, 1
        for k in range(count):
            at = end + k * _ENTRY
            if data[at] != data[at + 1] or data[at] != data[at + 2]:
                layout[CHANNELS] = 3
        end += count * _ENTRY
    used, layout[_START] = width * (bits // 8), start if start else end
    layout[_STRIDE] = (used + 3) // 4 * 4
    return (abs(height) - 1) * layout[_STRIDE] + used <= total - layout[_START]


@kernel
def _decode(data, layout, out, row, scratch, libraries):
    depth, bits = row[DEPTH], layout[_BITS]
    if depth != 3 and depth != 1:
        return False
    colours = zeros(_ALL * 3, np.uint8)
    if bits == 8:
        _read_palette(data, layout, depth, row[IS_BGR] != 0, colours)
    for y in range(row[USED_TOP], row[USED_BOTTOM]):
        stored = y if layout[_TOP_DOWN] else layout[HEIGHT] - 1 - y
        at = layout[_START] + stored * layout[_STRIDE] + row[LEFT] * (bits // 8)
        to = (y - row[TOP]) * row[WIDE] * depth
        if bits == 8:
            _look_up(data, at, colours, out, to, depth, row[WIDE])
        else:  # blue is stored first
            copy_pixels(data, at, bits // 8, out, to, depth, row[WIDE], row[IS_BGR] == 0, BY_OPENCV)
    return True


@kernel(light=True)
def _read_palette(data, layout, depth, is_bgr, colours):
    """Fills `colours`, u8 `[256 * 3]`, zeros before, with the `depth` channels of each colour."""
    for k in range(layout[_COLOURS]):
        at = layout[_PALETTE] + k * _ENTRY
        blue, green, red = data[at], data[at + 1], data[at + 2]
        if depth == 1:
            colours[k] = gray_of(red, green, blue, BY_OPENCV)
        else:
            first, last = (blue, red) if is_bgr else (red, blue)
            colours[3 * k], colours[3 * k + 1], colours[3 * k + 2] = first, green, last


@kernel
def _look_up(data, at, colours, out, to, depth, count):
    """Writes the colours of `count` pixels. Those beyond the palette are black."""
    source, target, size = np.uint64(at), np.uint64(to), np.uint64(depth)
    for _ in range(count):
        entry = np.uint64(data[source]) * size
        out[target] = colours[entry]
        if depth == 3:
            out[target + _ONE], out[target + _TWO] = colours[entry + _ONE], colours[entry + _TWO]
        source += _ONE
        target += size


look = look_of(_read_layout, _LAYOUT)
decode_loop = decode_loop_of(_read_layout, _decode, BMP, _LAYOUT)
