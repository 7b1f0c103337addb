"""The pixels of the simplest PNGs: 8 bits, without a palette. libdeflate inflates them, and a kernel reverses the filters.

A photograph of 500 x 375 takes a third of libpng's time. Unusual files are left to libpng, which detects damage.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel
from ndd._cpu.element_copies import copy_bytes
from ndd.decoders.png.libdeflate import crc32, inflate

SIGNATURE, CHUNK = 8, 12  # bytes of the signature, and of a chunk without its body
LOWER_CASE = 0x20  # bit of a chunk's first letter: pixels do not need the chunk
IHDR, PLTE, IDAT, IEND = 0x49484452, 0x504C5445, 0x49444154, 0x49454E44  # the names of chunks
_PALETTE = 3  # the colour type
# Of the seven passes of an interlaced file: the first row and column, and how far they lie apart.
_FIRST_ROW, _FIRST_COLUMN = (np.array(places, np.int64) for places in ((0, 0, 4, 0, 2, 0, 1), (0, 4, 0, 2, 0, 1, 0)))
_ROW_STEP, _COLUMN_STEP = (np.array(steps, np.int64) for steps in ((8, 8, 8, 4, 4, 2, 2), (8, 8, 4, 4, 2, 2, 1)))


@kernel(light=True)
def big_endian(data, at):
    """The 32-bit number at this place."""
    return (
        (np.int64(data[at]) << 24)
        | (np.int64(data[at + 1]) << 16)
        | (np.int64(data[at + 2]) << 8)
        | np.int64(data[at + 3])
    )


@kernel(light=True)
def _gathered(data, target):
    """The address and the number of the compressed bytes of a file; they are copied to `target` if they are in several chunks.
    (0, 0) if a checksum is wrong, or if pixels need unusual chunks."""
    total, at, first, count, chunks = np.int64(len(data)), np.int64(SIGNATURE), np.int64(0), np.int64(0), 0
    while total - at >= CHUNK:
        size, name = big_endian(data, at), big_endian(data, at + 4)
        body = at + 8
        if size > total - at - CHUNK:
            break
        at = body + size + 4
        if name >> 24 & LOWER_CASE:
            continue
        if np.int64(crc32(0, data.ctypes.data + body - 4, size + 4)) != big_endian(data, at - 4):
            break
        if name == IEND:
            return np.int64(data.ctypes.data if chunks == 1 else target.ctypes.data) + (
                first if chunks == 1 else 0
            ), count
        if name == IDAT:
            if chunks == 1:
                if count > len(target):
                    break
                copy_bytes(target.ctypes.data, data.ctypes.data + first, count)
            if chunks >= 1:
                if size > len(target) - count:
                    break
                copy_bytes(target.ctypes.data + count, data.ctypes.data + body, size)
            first = first if chunks else body
            count += size
            chunks += 1
        elif chunks or not (name == PLTE or (name == IHDR and body == SIGNATURE + 8)):
            break
    return np.int64(0), np.int64(0)


@kernel
def read_rows(data, height, width, channels, out, scratch, decompressor):
    """Writes all pixels of a file, as they are stored, to `out`, u8; False if libpng should read it.

    Args:
        data: u8, a file with a header of these extents.
        out: of `height * width * channels` numbers; it may be the end of `scratch` from `len(data)` on if the file is not
            interlaced.
        scratch: u8, with room for the file, for `out`, and for one more byte in each row; two if the file is interlaced.
        decompressor: from libdeflate's `alloc`.
    """
    if data[24] != 8 or data[25] == _PALETTE or data[26] != 0 or data[27] != 0 or data[28] > 1:
        return False
    line, kept, total = width * channels, np.int64(len(data)), np.int64(0)
    passes = 7 if data[28] else 1
    for k in range(passes):
        rows, columns = _part(k, passes, height, width)
        total += rows * (columns * channels + 1) if columns else 0
    if total > len(scratch) - kept or height * line > len(out):
        return False
    source, count = _gathered(data, scratch[:kept])
    raw = scratch[kept:][:total]
    if count == 0 or inflate(decompressor, source, count, raw.ctypes.data, len(raw), 0) != 0:
        return False
    if passes == 1:
        return _unfilter(raw, height, line, channels, out)
    for k in range(passes):
        rows, columns = _part(k, passes, height, width)
        if columns:
            if not _unfilter(raw, rows, columns * channels, channels, raw):
                return False
            for y in range(rows):
                first = ((_FIRST_ROW[k] + y * _ROW_STEP[k]) * width + _FIRST_COLUMN[k]) * channels
                _spread(raw[y * columns * channels :], columns, channels, _COLUMN_STEP[k] * channels, out[first:])
            raw = raw[rows * (columns * channels + 1) :]
    return True


@kernel(light=True)
def _part(k, passes, height, width):
    """Rows and columns of the pixels of a pass."""
    if passes == 1:
        return height, width
    rows = (height - _FIRST_ROW[k] + _ROW_STEP[k] - 1) // _ROW_STEP[k]
    return rows, (width - _FIRST_COLUMN[k] + _COLUMN_STEP[k] - 1) // _COLUMN_STEP[k]


@kernel
def _spread(row, columns, channels, step, out):
    """Writes a row of pixels to places that are `step` bytes apart."""
    for x in range(columns):
        for c in range(channels):
            out[np.uint64(x * step + c)] = row[np.uint64(x * channels + c)]


@kernel(light=True)
def _predicted(left, above, corner):
    """Paeth's predictor: the neighbour that is nearest to left + above - corner. It has no branches, which would be
    unpredictable."""
    by_left, by_above, by_corner = abs(above - corner), abs(left - corner), abs(left + above - 2 * corner)
    nearest = left if by_left <= by_above else above
    return nearest if min(by_left, by_above) <= by_corner else corner


@kernel
def _paeth(row, above, to, step):
    """Reverses the filter "Paeth" of a row. With three or four channels the neighbours stay in registers, which takes three fifths
    of the time."""
    line = len(to)
    if step >= 3:
        left, left1, left2, left3 = np.int32(0), np.int32(0), np.int32(0), np.int32(0)
        corner, corner1, corner2, corner3 = np.int32(0), np.int32(0), np.int32(0), np.int32(0)
        for x in range(0, line - step + 1, step):
            up, up1, up2 = np.int32(above[x]), np.int32(above[x + 1]), np.int32(above[x + 2])
            left = (np.int32(row[x]) + _predicted(left, up, corner)) & 255
            left1 = (np.int32(row[x + 1]) + _predicted(left1, up1, corner1)) & 255
            left2 = (np.int32(row[x + 2]) + _predicted(left2, up2, corner2)) & 255
            if step == 4:
                up3 = np.int32(above[x + 3])
                left3 = (np.int32(row[x + 3]) + _predicted(left3, up3, corner3)) & 255
                to[x + 3], corner3 = left3, up3
            to[x], to[x + 1], to[x + 2] = left, left1, left2
            corner, corner1, corner2 = up, up1, up2
        return
    for x in range(step):
        to[x] = row[x] + above[x]
    for x in range(step, line):
        left, corner = np.int32(to[x - step]), np.int32(above[x - step])
        to[x] = row[x] + _predicted(left, np.int32(above[x]), corner)


@kernel
def _unfilter(raw, height, line, step, out):
    """Reverses the filters of all rows. Returns False for an unknown filter. `out` may overlap `raw`: a place is written after
    it is read."""
    for y in range(height):
        start = y * (line + 1) + 1
        kind, row = raw[start - 1], raw[start : start + line]
        to = out[y * line : (y + 1) * line]
        above = out[max(y - 1, 0) * line : max(y, 1) * line]
        if y == 0 and (kind == 2 or kind == 4):  # the row above the first is 0
            kind = np.uint8(0) if kind == 2 else np.uint8(1)
        if kind == 0:
            for x in range(line):
                to[x] = row[x]
        elif kind == 1:
            for x in range(step):
                to[x] = row[x]
            for x in range(step, line):
                to[x] = row[x] + to[x - step]
        elif kind == 2:
            for x in range(line):
                to[x] = row[x] + above[x]
        elif kind == 3:
            for x in range(line):
                left = np.int32(to[x - step]) if x >= step else np.int32(0)
                to[x] = row[x] + ((left + (np.int32(above[x]) if y else np.int32(0))) >> 1)
        elif kind == 4:
            _paeth(row, above, to, step)
        else:
            return False
    return True
