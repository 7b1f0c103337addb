"""What a JPEG file loses of an image, without the file: bit for bit what libjpeg-turbo writes and reads again.

Between the cosine transforms there are only multiples of quanta: the Huffman codes, which lose nothing, are half of the work
of a library that writes a file and reads it.
"""

from __future__ import annotations

import numpy as np

from ndd._cpu.inlined import empty, zeros
from ndd._cpu.jit import kernel
from ndd._cpu.jpeg import BORDER, store_row, widened
from ndd._cpu.jpeg_blocks import FACTORS, PIXELS, load_pixels, lose

_SIZE, _HALF = 16, 8  # rows and columns of a unit, and of its chroma
# The quanta of the JPEG standard (annex K), row by row, of luma and of chroma.
_QUANTA = np.array(
    [
        [
            [16, 11, 10, 16, 24, 40, 51, 61],
            [12, 12, 14, 19, 26, 58, 60, 55],
            [14, 13, 16, 24, 40, 57, 69, 56],
            [14, 17, 22, 29, 51, 87, 80, 62],
            [18, 22, 37, 56, 68, 109, 103, 77],
            [24, 35, 55, 64, 81, 104, 113, 92],
            [49, 64, 78, 87, 103, 121, 120, 101],
            [72, 92, 95, 98, 112, 100, 103, 99],
        ],
        [
            [17, 18, 24, 47, 99, 99, 99, 99],
            [18, 21, 26, 66, 99, 99, 99, 99],
            [24, 26, 56, 99, 99, 99, 99, 99],
            [47, 66, 99, 99, 99, 99, 99, 99],
            [99, 99, 99, 99, 99, 99, 99, 99],
            [99, 99, 99, 99, 99, 99, 99, 99],
            [99, 99, 99, 99, 99, 99, 99, 99],
            [99, 99, 99, 99, 99, 99, 99, 99],
        ],
    ],
    np.uint8,
)


@kernel
def lose_as_jpeg(image, out, quality):
    """Fills `out` with what is left of an image (u8 RGB, HWC) in a JPEG file of this quality, 1 to 100, with halved chroma."""
    height, width = image.shape[0], image.shape[1]
    if out.size == 0:
        return
    rgb, pixels = image.reshape(image.size), out.reshape(out.size)
    factors = empty(2 * FACTORS, np.uint16)
    _make_factors(quality, factors)
    # The rows of two units, in turn: the processor's nearest memory holds them.
    columns = (width + _SIZE - 1) // _SIZE * _SIZE
    stride, chroma_stride = columns + 2 * BORDER, columns // 2 + _HALF + 2 * BORDER
    luma = zeros(2 * _SIZE * stride, np.uint8)
    blue, red = zeros(_SIZE * chroma_stride, np.uint8), zeros(_SIZE * chroma_stride, np.uint8)
    wide_blue, wide_red = zeros(stride + 2 * BORDER, np.uint8), zeros(stride + 2 * BORDER, np.uint8)
    mixed, last, edge = zeros(chroma_stride, np.int16), empty(3 * stride, np.uint8), empty(6 * PIXELS, np.uint8)
    units, chroma_rows = (height + _SIZE - 1) // _SIZE, (height + 1) // 2
    done = 0
    for unit in range(units):
        at = (unit & 1) * _SIZE * stride + BORDER
        chroma_at = (unit & 1) * _HALF * chroma_stride + BORDER
        for k in range(_HALF):
            here, there = at + 2 * k * stride, chroma_at + k * chroma_stride
            y = _SIZE * unit + 2 * k
            if y < height:
                _load_rows(
                    rgb, 3 * width * y, 3 * width * min(y + 1, height - 1), width, luma, here, stride, blue, red, there,
                    edge,
                )  # fmt: skip
                continue
            # Below the image its last rows are repeated, of chroma those that are halved already.
            for x in range(columns):
                luma[here + x] = luma[here + stride + x] = luma[here - stride + x]
            for x in range(columns // 2):
                blue[there + x], red[there + x] = blue[there - chroma_stride + x], red[there - chroma_stride + x]
        for k in range(0, columns, _SIZE):
            for lower in range(0, _SIZE, _HALF):
                lose(luma, np.uint64(at + lower * stride + k), np.uint64(stride), factors, np.uint64(0))
        for k in range(0, columns // 2, _SIZE):
            lose(blue, np.uint64(chroma_at + k), np.uint64(chroma_stride), factors, np.uint64(FACTORS))
            lose(red, np.uint64(chroma_at + k), np.uint64(chroma_stride), factors, np.uint64(FACTORS))
        # Rows whose chroma is there, with the row below it.
        ready = height if unit + 1 == units else _SIZE * (unit + 1) - 1
        for y in range(done, ready):
            near = y // 2
            far = min(max(near - 1 if y % 2 == 0 else near + 1, 0), chroma_rows - 1)
            near, far = near % _SIZE * chroma_stride + BORDER, far % _SIZE * chroma_stride + BORDER
            _widen(blue, near, far, width, mixed, wide_blue)
            _widen(red, near, far, width, mixed, wide_red)
            begin = y % (2 * _SIZE) * stride + BORDER
            store_row(luma, begin, wide_blue, wide_red, BORDER, width, last, pixels, 3 * width * y)
        done = ready


@lose_as_jpeg.meanwhile
def _(image, out, quality):
    lose_by_opencv(image, out, int(quality))


def lose_by_opencv(image: np.ndarray, out: np.ndarray, quality: int) -> None:
    """The same by way of a file in memory."""
    from ndd._cpu.opencv import single_threaded

    if image.size:
        cv2 = single_threaded()
        written = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
        cv2.cvtColor(cv2.imdecode(written, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB, dst=out)


@kernel
def _make_factors(quality, factors):
    """The two tables of `lose`. To divide n < 2**15 by d, 2**b < d <= 2**(b + 1): n times 2**(16 + b) / d, rounded up, less
    16 + b bits."""
    percent = 5000 // quality if quality < 50 else 200 - 2 * quality
    tables = factors.reshape((2, 4, 8, 16))
    for t in range(2):
        for y in range(8):
            for x in range(8):
                quantum = min(max((_QUANTA[t, y, x] * percent + 50) // 100, 1), 255)
                bits, divisor = 2, 8 * quantum
                while 2 << bits < divisor:
                    bits += 1
                for k in (x, x + 8):
                    tables[t, 0, y, k], tables[t, 1, y, k] = quantum, 4 * quantum
                    tables[t, 2, y, k] = ((1 << (16 + bits)) + divisor - 1) // divisor
                    tables[t, 3, y, k] = 1 << (16 - bits)


@kernel
def _load_rows(rgb, above, below, width, luma, at, stride, blue, red, chroma_at, edge):
    """Two rows of pixels, from `above` and `below`; behind the last pixel it is repeated."""
    whole = width - width % PIXELS
    for k in range(0, whole, PIXELS):
        load_pixels(
            rgb, np.uint64(above + 3 * k), np.uint64(below + 3 * k), luma, np.uint64(at + k), np.uint64(stride), blue,
            red, np.uint64(chroma_at + k // 2),
        )  # fmt: skip
    if whole < width:
        for k in range(PIXELS):
            x = 3 * min(whole + k, width - 1)
            for c in range(3):
                edge[3 * k + c], edge[3 * (PIXELS + k) + c] = rgb[above + x + c], rgb[below + x + c]
        load_pixels(
            edge, np.uint64(0), np.uint64(3 * PIXELS), luma, np.uint64(at + whole), np.uint64(stride), blue, red,
            np.uint64(chroma_at + whole // 2),
        )  # fmt: skip


@kernel
def _widen(plane, near, far, width, mixed, out):
    """A row of chroma for each pixel, from `BORDER` on: of a narrow image it is only repeated."""
    columns = (width + 1) // 2
    if columns > 2:
        widened(plane, near, far, 8, 7, 0, columns, columns, mixed, out)
        return
    for x in range(width):
        out[BORDER + x] = plane[near + x // 2]
