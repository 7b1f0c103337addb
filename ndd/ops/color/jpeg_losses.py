"""The losses of a JPEG file without the file, bit for bit as if written and read with libjpeg-turbo.

Between the cosine transforms, coefficients are only rounded to multiples of quanta; the Huffman codes are lossless. 64 images
of 224 x 224 take 7.3 ms of CPU time, half of it for the transforms; a file in memory (OpenCV, simplejpeg) takes 20 ms.
"""

from __future__ import annotations

import functools

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd._compiled.simd_jpeg import FACTORS, PIXELS, load_pixels, lose, store_smoothed
from ndd._cpu.opencv import single_threaded

LEAST_WIDTH = 5  # columns of an image with smoothed chroma

_SIZE, _HALF = 16, 8  # rows and columns of a unit, and of its chroma
_MARGIN = 32  # bytes between rows of planes
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


@functools.cache
def factors_of_qualities() -> np.ndarray:
    """The factors of `lose` for luma and then for chroma, u16 `[101, 2 * FACTORS]`, for qualities 1 to 100.

    To divide n < 2**15 by d, 2**b < d <= 2**(b + 1): n times 2**(16 + b) / d, rounded up, less 16 + b bits.
    """
    quality = np.arange(101).clip(1)
    percent = np.where(quality < 50, 5000 // quality, 200 - 2 * quality)
    quanta = ((_QUANTA * percent[:, None, None, None] + 50) // 100).clip(1, 255)
    divisors = 8 * quanta
    bits = np.ceil(np.log2(divisors)).astype(int) - 1
    parts = [quanta, 4 * quanta, -(-(1 << (16 + bits)) // divisors), 1 << (16 - bits)]
    factors = np.stack(parts, axis=2).astype(np.uint16)
    return np.concatenate([factors, factors], axis=-1).reshape(101, 2 * FACTORS)


@kernel
def lose_as_jpeg(image, out, quality, factors):
    """Fills `out` with an image after its losses in a JPEG file with halved chroma.

    Args:
        image: u8 RGB, HWC, at least `LEAST_WIDTH` columns: chroma of narrower images is not smoothed.
        quality: 1 to 100.
        factors: those of all qualities.
    """
    height, width = image.shape[0], image.shape[1]
    if out.size == 0:
        return
    rgb, pixels, steps = image.reshape(image.size), out.reshape(out.size), factors[quality]
    # The rows of two units alternate, so that the L1 cache holds them.
    columns, halved = (width + _SIZE - 1) // _SIZE * _SIZE, (width + 1) // 2
    stride, chroma_stride = columns + _MARGIN, columns // 2 + _HALF + _MARGIN
    planes = empty(2 * _SIZE * (stride + chroma_stride) + _MARGIN, np.uint8)
    first_blue, to_red = 2 * _SIZE * stride + _MARGIN, _SIZE * chroma_stride
    edge = empty(6 * PIXELS, np.uint8)
    last = empty(3 * columns, np.uint8)
    units, chroma_rows = (height + _SIZE - 1) // _SIZE, (height + 1) // 2
    done = 0
    for unit in range(units):
        at = (unit & 1) * _SIZE * stride
        blue_at = first_blue + (unit & 1) * _HALF * chroma_stride
        for k in range(_HALF):
            y = _SIZE * unit + 2 * k
            here, there = at + 2 * k * stride, blue_at + k * chroma_stride
            if y < height:
                _load_rows(
                    rgb, 3 * width * y, 3 * width * min(y + 1, height - 1), width, planes, here, stride, there,
                    there + to_red, edge,
                )  # fmt: skip
                continue
            # Below the image its last rows are repeated; for chroma the halved rows are.
            _copy_below(planes, here - stride, stride, columns)
            _copy_below(planes, here, stride, columns)
            _copy_below(planes, there - chroma_stride, chroma_stride, columns // 2)
            _copy_below(planes, there + to_red - chroma_stride, chroma_stride, columns // 2)
        for part in range(4):
            place, step, size, table = at + (part & 1) * _HALF * stride, stride, columns, 0
            if part > 1:
                place, step, size, table = blue_at + (part & 1) * to_red, chroma_stride, columns // 2, FACTORS
            for k in range(0, size, _SIZE):
                lose(planes, np.uint64(place + k), np.uint64(step), steps, np.uint64(table))
        for k in range(2 * _HALF):
            row = blue_at + (k & 1) * to_red + (k >> 1) * chroma_stride
            planes[row - 1], planes[row + halved] = planes[row], planes[row + halved - 1]
        # The rows whose chroma, and the chroma row below, are complete.
        ready = height if unit + 1 == units else _SIZE * (unit + 1) - 1
        for y in range(done, ready):
            near, begin = y >> 1, y % (2 * _SIZE) * stride
            far = min(max(near + 1 if y & 1 else near - 1, 0), chroma_rows - 1)
            near = first_blue + near % _SIZE * chroma_stride
            far = first_blue + far % _SIZE * chroma_stride
            # Bytes after a row are overwritten by the next row, except in the last rows.
            start, ends = 3 * width * y, 3 * (width * (y + 1) + PIXELS) > out.size
            target, place = (last, 0) if ends else (pixels, start)
            for k in range(0, width, PIXELS):
                store_smoothed(
                    planes, np.uint64(begin + k), np.uint64(near + k // 2), np.uint64(far + k // 2), np.uint64(to_red),
                    target, np.uint64(place + 3 * k),
                )  # fmt: skip
            if ends:
                for k in range(3 * width):
                    pixels[start + k] = last[k]
        done = ready


@lose_as_jpeg.fallback
def _(image, out, quality, factors):
    lose_by_opencv(image, out, int(quality))


def lose_by_opencv(image: np.ndarray, out: np.ndarray, quality: int) -> None:
    """Does the same with a file in memory."""
    if image.size:
        cv2 = single_threaded()
        written = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
        cv2.cvtColor(cv2.imdecode(written, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB, dst=out)


@kernel
def _load_rows(rgb, above, below, width, planes, at, stride, blue_at, red_at, edge):
    """Loads two rows of pixels, from `above` and `below`, and repeats the last pixel after them."""
    for k in range(0, width, PIXELS):
        source, one, two = rgb, above + 3 * k, below + 3 * k
        if k + PIXELS > width:
            for i in range(PIXELS):
                x = 3 * min(k + i, width - 1)
                for c in range(3):
                    edge[3 * i + c], edge[3 * (PIXELS + i) + c] = rgb[above + x + c], rgb[below + x + c]
            source, one, two = edge, 0, 3 * PIXELS
        load_pixels(
            source, np.uint64(one), np.uint64(two), planes, np.uint64(at + k), np.uint64(stride),
            np.uint64(blue_at + k // 2), np.uint64(red_at + k // 2),
        )  # fmt: skip


@kernel
def _copy_below(planes, at, stride, size):
    for k in range(at, at + size):
        planes[k + stride] = planes[k]
