"""Images read between their pixels: rows of points, with what lies outside filled, repeated or mirrored.

A point is (x, y) from the corner of the image: the middle of pixel 0 is at 0.5.
"""

from __future__ import annotations

import numpy as np

from ndd._cpu.jit import kernel

BORDERS = {"constant": 0, "replicate": 1, "reflect": 2, "reflect_101": 3, "wrap": 4}


def store_limits(source: np.dtype, target: np.dtype, nearest: bool) -> tuple[bool, np.floating, np.floating]:
    """Whether numbers must be rounded, and the range of the integer type that they are rounded to."""
    number = source if nearest else np.dtype(np.float32)
    if target.kind == "f" or number.kind != "f":
        return False, np.float32(0), np.float32(0)
    kind = np.float64 if target.itemsize > 2 else np.float32
    return True, kind(np.iinfo(target).min), kind(np.iinfo(target).max)


@kernel
def border_index(i, n, border):
    """The pixel that stands for pixel `i` of a line of `n`; -1: the fill value."""
    if 0 <= i < n:
        return i
    if border == 0 or n <= 0:
        return -1
    if border == 1:
        return 0 if i < 0 else n - 1
    if border == 4:
        return i % n
    if border == 2:
        i %= 2 * n
        return i if i < n else 2 * n - 1 - i
    if n == 1:
        return 0
    i %= 2 * n - 2
    return i if i < n else 2 * n - 2 - i


@kernel
def _bounded(value, n, border):
    """A coordinate that an index can be made of; it does not matter how far outside a point is."""
    limit = np.float32(n + 1 if border < 2 else 1e9)
    if not value > -limit:  # also NaN
        return -limit
    return value if value < limit else limit


@kernel
def _linear_at_border(image, x, y, row, place, border, fill):
    height, width, channels = image.shape
    x, y = _bounded(x, width, border), _bounded(y, height, border)
    left, top = int(np.floor(x)), int(np.floor(y))
    fx, fy = np.float32(x - left), np.float32(y - top)
    x0, x1 = border_index(left, width, border), border_index(left + 1, width, border)
    y0, y1 = border_index(top, height, border), border_index(top + 1, height, border)
    for c in range(channels):
        outside = fill[c if fill.size > 1 else 0]
        p00 = np.float32(image[y0, x0, c]) if y0 >= 0 and x0 >= 0 else outside
        p01 = np.float32(image[y0, x1, c]) if y0 >= 0 and x1 >= 0 else outside
        p10 = np.float32(image[y1, x0, c]) if y1 >= 0 and x0 >= 0 else outside
        p11 = np.float32(image[y1, x1, c]) if y1 >= 0 and x1 >= 0 else outside
        above, below = p00 + (p01 - p00) * fx, p10 + (p11 - p10) * fx
        row[place + c] = above + (below - above) * fy


@kernel
def linear_row(image, xs, ys, row, border, fill):
    """Each point from the four pixels around it."""
    height, width, channels = image.shape
    flat = image.reshape(height * width * channels)
    half = np.float32(0.5)
    right, bottom = np.float32(width - 1), np.float32(height - 1)
    for i in range(xs.size):
        x, y = xs[i] - half, ys[i] - half
        if x >= 0 and y >= 0 and x < right and y < bottom:
            left, top = int(x), int(y)
            fx, fy = x - np.float32(left), y - np.float32(top)
            a = np.uint64((top * width + left) * channels)
            b = a + np.uint64(width * channels)
            if channels == 3:
                for c in range(np.uint64(3)):
                    p, q = np.float32(flat[a + c]), np.float32(flat[b + c])
                    above = p + (np.float32(flat[a + c + np.uint64(3)]) - p) * fx
                    below = q + (np.float32(flat[b + c + np.uint64(3)]) - q) * fx
                    row[np.uint64(3 * i) + c] = above + (below - above) * fy
            else:
                step = np.uint64(channels)
                for c in range(step):
                    p, q = np.float32(flat[a + c]), np.float32(flat[b + c])
                    above = p + (np.float32(flat[a + c + step]) - p) * fx
                    below = q + (np.float32(flat[b + c + step]) - q) * fx
                    row[np.uint64(channels * i) + c] = above + (below - above) * fy
        else:
            _linear_at_border(image, x, y, row, i * channels, border, fill)


@kernel
def nearest_row(image, xs, ys, row, border, fill):
    """Each point from the pixel that it lies in."""
    height, width, channels = image.shape
    for i in range(xs.size):
        x = border_index(int(np.floor(_bounded(xs[i], width, border))), width, border)
        y = border_index(int(np.floor(_bounded(ys[i], height, border))), height, border)
        place = i * channels
        if x < 0 or y < 0:
            for c in range(channels):
                row[place + c] = fill[c if fill.size > 1 else 0]
        elif channels == 3:
            row[place], row[place + 1], row[place + 2] = image[y, x, 0], image[y, x, 1], image[y, x, 2]
        else:
            for c in range(channels):
                row[place + c] = image[y, x, c]


@kernel
def store_row(row, out, rounds, low, high):
    """Numbers to the output's type: rounded and kept in its range, or as they are."""
    if rounds:
        for i in range(row.size):
            out[i] = min(max(np.rint(row[i]), low), high)
    else:
        for i in range(row.size):
            out[i] = row[i]


@kernel
def sample_row(image, xs, ys, row, exact, out, nearest, border, fill, rounds, low, high):
    """One row of the output; `row` (float32) and `exact` (as the image) are room for a row of numbers."""
    if nearest:
        nearest_row(image, xs, ys, exact, border, fill)
        store_row(exact, out, rounds, low, high)
    else:
        linear_row(image, xs, ys, row, border, fill)
        store_row(row, out, rounds, low, high)
