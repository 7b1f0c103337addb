"""RLE8 and RLE4, the run lengths of BMP. The format: https://learn.microsoft.com/windows/win32/gdi/bitmap-compression"""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel


@kernel
def _put(out, y, x, index, wraps):
    """Writes a pixel. Returns the place of the next one."""
    if wraps and x >= out.shape[1]:
        y, x = y + 1, 0
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = index
    return y, x + 1


@kernel
def unpack_runs(data, bits, wraps, out):
    """Writes the palette index of each pixel into `out`, u8 `[rows, columns]` in the order of the file, initially zeros.
    Skipped pixels stay 0. Pixels beyond the end of a row are dropped; with `wraps` they begin the next row.

    Returns the number of rows that end with a code in the file, and whether the file is complete.
    """
    height, width = out.shape
    at, y, x, ended = 0, 0, 0, 0
    while y < height:
        if data.size - at < 2:
            return ended, y == height - 1 and x >= width
        count, value = np.int64(data[at]), np.int64(data[at + 1])
        at += 2
        if count > 0:
            for i in range(count):
                index = value if bits == 8 else (value & 15 if i & 1 else value >> 4)
                y, x = _put(out, y, x, index, wraps)
        elif value == 0:
            y, x, ended = y + 1, 0, ended + 1
        elif value == 1:
            return ended, True
        elif value == 2:
            if data.size - at < 2:
                return ended, False
            x, y = x + np.int64(data[at]), y + np.int64(data[at + 1])
            at += 2
        else:
            size = value if bits == 8 else (value + 1) // 2
            if size > data.size - at:
                return ended, False
            for i in range(value):
                stored = np.int64(data[at + (i if bits == 8 else i // 2)])
                index = stored if bits == 8 else (stored & 15 if i & 1 else stored >> 4)
                y, x = _put(out, y, x, index, wraps)
            at += size + (size & 1)
    return ended, True
