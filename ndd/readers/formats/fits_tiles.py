"""Whether the compressed tiles of FITS images are complete: libraries that decode them read beyond the end of incomplete ones,
and return whatever is there as pixels.

HCOMPRESS (R. White): a head of 25 bytes (0xDD99; height, width and scale of 4 bytes, the sum of 8; a number of bit planes for
each kind of quadrant), then the bit planes of four quadrants, each a nybble 0 and its bits, or a nybble 15 and a quadtree in a
code of Huffman's kind; a nybble 0; and a sign for each coefficient that is not 0. PLIO: numbers of 16 bits, a head that says how
many, then instructions of 4 bits with an operand of 12.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import zeros
from ndd._compiled.jit import kernel
from ndd._cpu.byte_order import big_endian

_HEAD = 25  # bytes
_MOST_PLANES = 63
_SET_HIGH = 1  # the instruction of PLIO that has a second word


@kernel
def _bits(data, at, count):
    """`count` bits from bit `at` on; -1 if they are missing."""
    if at < 0 or count > 8 * data.size - at:
        return -1
    value = 0
    for k in range(at, at + count):
        value = value << 1 | data[k >> 3] >> (7 - (k & 7)) & 1
    return value


@kernel
def _code(data, at):
    """The four bits that a code of 3 to 6 bits means, and the bit after it; -1 for that bit if the code is incomplete."""
    code = _bits(data, at, 3)
    if code < 0:
        return 0, -1
    if code < 4:
        return 1 << code, at + 3
    code = _bits(data, at, 4)
    if code < 0:
        return 0, -1
    if code < 13:
        return (3, 5, 10, 12, 15)[code - 8], at + 4
    code = _bits(data, at, 5)
    if code < 0:
        return 0, -1
    if code < 31:
        return (6, 7, 9, 11, 13)[code - 26], at + 5
    code = _bits(data, at, 6)
    if code < 0:
        return 0, -1
    return (0 if code == 62 else 14), at + 6


@kernel
def _expanded(data, at, codes, height, width):
    """Replaces each code by four, as far as these are within `height` by `width`, and reads anew those that are not 0."""
    for i in range(height - 1, -1, -1):
        for j in range(width - 1, -1, -1):
            bit = 3 - 2 * (i & 1) - (j & 1)
            inner = codes[0, i >> 1, j >> 1] >> bit & 1
            codes[1, i, j] = inner
            if inner and at >= 0:
                codes[1, i, j], at = _code(data, at)
    for i in range(height):
        for j in range(width):
            codes[0, i, j] = codes[1, i, j]
    return at


@kernel
def _plane(data, at, codes, height, width):
    """Reads a bit plane of a quadrant to `codes[0]`, four coefficients each; the bit after it, -1 if it is not whole."""
    form, at = _bits(data, at, 4), at + 4
    rows, columns = (height + 1) // 2, (width + 1) // 2
    if form == 0:
        for i in range(rows):
            for j in range(columns):
                code = _bits(data, at, 4)
                if code < 0:
                    return -1
                codes[0, i, j], at = code, at + 4
        return at
    if form != 15:
        return -1
    levels = 0
    while 1 << levels < max(height, width):
        levels += 1
    codes[0, 0, 0], at = _code(data, at)
    for level in range(levels - 1, 0, -1):
        step = 1 << level
        at = _expanded(data, at, codes, (height + step - 1) // step, (width + step - 1) // step)
    return at


@kernel
def _quadrant(data, at, codes, known, planes):
    """Reads the bit planes of a quadrant; `known` becomes 1 for what is not 0. -1 if they are not whole."""
    height, width = known.shape
    for _ in range(planes):
        if at < 0 or height == 0 or width == 0:
            break
        at = _plane(data, at, codes, height, width)
        if at < 0:
            break
        for i in range(height):
            for j in range(width):
                known[i, j] |= codes[0, i >> 1, j >> 1] >> (3 - 2 * (i & 1) - (j & 1)) & 1
    return at


@kernel
def is_whole_hcompress(data, height, width):
    """Whether the bytes are a complete tile of this size, compressed by HCOMPRESS."""
    if data.size < _HEAD or data[0] != 0xDD or data[1] != 0x99:
        return False
    if big_endian(data, 2, 4) != height or big_endian(data, 6, 4) != width:
        return False
    known = zeros((height, width), np.uint8)
    rows, columns = (height + 1) // 2, (width + 1) // 2
    codes = zeros((2, (rows + 1) // 2 + 1, (columns + 1) // 2 + 1), np.uint8)
    at = np.int64(8 * _HEAD)
    for k in range(4):
        planes = np.int64(data[22 + (k + 1) // 2])
        if planes > _MOST_PLANES:
            return False
        first_row, last_row = (0, rows) if k < 2 else (rows, height)
        first, last = (0, columns) if k % 2 == 0 else (columns, width)
        at = _quadrant(data, at, codes, known[first_row:last_row, first:last], planes)
        if at < 0:
            return False
    if _bits(data, at, 4) != 0:
        return False
    signs = 0
    for i in range(height):
        for j in range(width):
            signs += known[i, j]
    return signs <= 8 * data.size - ((at + 4 + 7) & ~7)


@kernel
def is_whole_plio(words):
    """Whether numbers of 16 bits are a complete tile compressed by PLIO, by its head."""
    if words.size < 4:
        return False
    count, first = np.int64(words[2]), np.int64(3)
    if count <= 0:
        if words.size < 5:
            return False
        count, first = (np.int64(words[4]) << 15) + np.int64(words[3]), np.int64(words[1])
    if first < 3 or count > words.size:
        return False
    at = first
    while at < count:
        at += 2 if words[at] >> 12 == _SET_HIGH else 1
    return at <= words.size
