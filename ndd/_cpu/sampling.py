"""Samples images between pixels: rows of points; pixels outside are filled, repeated or mirrored.

A point is (x, y) from the corner of the image: the centre of pixel 0 is at 0.5. A row takes four simple loops: they locate its
pixels, read them, interpolate, and store the numbers in the type of the output.
"""

from __future__ import annotations

import functools

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd._cpu.rgb_sampling import linear_rgb, nearest_rgb

BORDERS = {"constant": 0, "replicate": 1, "reflect": 2, "reflect_101": 3, "wrap": 4}

_FAR = np.float32(1 << 30)


@functools.cache
def store_limits(source: np.dtype, target: np.dtype, nearest: bool) -> tuple[bool, np.floating, np.floating]:
    """Whether numbers must be rounded, and the range of the integer type that they are rounded to."""
    number = source if nearest else np.dtype(np.float32)
    if target.kind == "f" or number.kind != "f":
        return False, np.float32(0), np.float32(0)
    kind = np.float64 if target.itemsize > 2 else np.float32
    return True, kind(np.iinfo(target).min), kind(np.iinfo(target).max)


@kernel
def border_index(i, n, border):
    """The pixel that replaces pixel `i` of a line of `n`; -1: the fill value."""
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
def _bounded(value):
    """A coordinate clamped to the range of a place; NaN is outside."""
    value = value if value > -_FAR else -_FAR
    return value if value < _FAR else _FAR


@kernel
def _place_pixels(pixel, n, step, border, outside, place):
    """The places of the pixels of a line of `n`, with `step` between neighbours; below 0: outside."""
    zero, last = np.int32(0), np.int32(n - 1)
    if border == 0:
        for i in range(pixel.size):
            at = pixel[i]
            place[i] = at * step if (at >= zero) & (at <= last) else outside
    elif border == 1:
        for i in range(pixel.size):
            at = pixel[i]
            at = at if at > zero else zero
            place[i] = (at if at < last else last) * step
    else:
        for i in range(pixel.size):
            place[i] = border_index(pixel[i], n, border) * step


@kernel
def linear_taps(at, n, step, border, outside, first, second, share, pixel):
    """The two pixels around each coordinate, and the share of the second."""
    half, one = np.float32(0.5), np.int32(1)
    for i in range(at.size):
        value = _bounded(at[i] - half)
        left = np.floor(value)
        share[i] = value - left
        pixel[i] = np.int32(left)
    _place_pixels(pixel, n, step, border, outside, first)
    for i in range(pixel.size):
        pixel[i] += one
    _place_pixels(pixel, n, step, border, outside, second)


@kernel
def nearest_taps(at, n, step, border, outside, place, pixel):
    for i in range(at.size):
        pixel[i] = np.int32(np.floor(_bounded(at[i])))
    _place_pixels(pixel, n, step, border, outside, place)


@kernel
def rounded(value):
    """Rounds to an integer, halves away from zero, as DALI's warps do."""
    whole = np.trunc(value)
    rest = value - whole
    half = np.float32(0.5)
    return whole + np.float32(1 if rest >= half else 0) - np.float32(1 if rest <= -half else 0)


@kernel
def store_row(row, out, rounds, low, high):
    """Stores numbers in the output's type: rounded and saturated, or unchanged."""
    if rounds:
        for i in range(row.size):
            out[i] = min(max(rounded(row[i]), low), high)
    else:
        for i in range(row.size):
            out[i] = row[i]


@kernel
def _linear_points(flat, channels, place, share, fill, row):
    """Interpolates each point from the four pixels around it, in DALI's order of operations."""
    one = np.float32(1)
    for i in range(share.shape[1]):
        a, b = place[0, i] + place[2, i], place[1, i] + place[2, i]
        c, d = place[0, i] + place[3, i], place[1, i] + place[3, i]
        qx, qy = share[0, i], share[1, i]
        px = one - qx
        for k in range(channels):
            outside = fill[k if fill.size > 1 else 0]
            p00 = np.float32(flat[a + k]) if a >= 0 else outside
            p01 = np.float32(flat[b + k]) if b >= 0 else outside
            p10 = np.float32(flat[c + k]) if c >= 0 else outside
            p11 = np.float32(flat[d + k]) if d >= 0 else outside
            above, below = p00 * px + p01 * qx, p10 * px + p11 * qx
            row[i * channels + k] = above + (below - above) * qy


@kernel
def nearest_points(flat, channels, place, fill, out, rounds, low, high):
    for i in range(place.shape[1]):
        a = place[0, i] + place[2, i]
        for k in range(channels):
            if a < 0:
                out[i * channels + k] = fill[k if fill.size > 1 else 0]
            elif rounds:
                out[i * channels + k] = min(max(rounded(np.float32(flat[a + k])), low), high)
            else:
                out[i * channels + k] = flat[a + k]


@kernel
def sample_rows(
    image, words, xs, ys, place, outside, out, out_words, first, nearest, border, fill, stored_fill, rounds, low, high
):
    """Samples rows of the output from row `first` on, at the points (xs, ys) [rows, width].

    `place` [4, width] is scratch memory for a row. `outside` is a place that means the fill value, also after another place is
    added to it. Both are 32-bit, which is faster, if that holds all places. `fill` has float32 numbers for interpolation,
    `stored_fill` the same numbers in the output's type. `nearest` and `words` are None or True: numba compiles only one branch
    for an argument that is None.
    """
    height, width, channels = image.shape
    flat, wide = image.reshape(height * width * channels), out.shape[1]
    # 32-bit numbers, so that the loops over places handle twice as many at once.
    n, lines, step, stride = np.int32(width), np.int32(height), np.int32(channels), np.int32(width * channels)
    pixel, share = empty(wide, np.int32), empty((2, wide), np.float32)
    row = empty(wide * channels, np.float32)
    for k in range(len(xs)):
        line, start = out[first + k].reshape(wide * channels), (first + k) * wide * channels
        if nearest is not None:
            nearest_taps(xs[k], n, step, border, outside, place[0], pixel)
            nearest_taps(ys[k], lines, stride, border, outside, place[2], pixel)
            if words is None:
                nearest_points(flat, channels, place, stored_fill, line, rounds, low, high)
            else:
                nearest_rgb(flat, words, place[0], place[2], stored_fill, line, out_words, start)
        else:
            linear_taps(xs[k], n, step, border, outside, place[0], place[1], share[0], pixel)
            linear_taps(ys[k], lines, stride, border, outside, place[2], place[3], share[1], pixel)
            if words is None:
                _linear_points(flat, channels, place, share, fill, row)
                store_row(row, line, rounds, low, high)
            else:
                linear_rgb(flat, words, place, share, fill, line, out_words, start)


@sample_rows.fallback
def _(
    image, words, xs, ys, place, outside, out, out_words, first, nearest, border, fill, stored_fill, rounds, low, high
):
    height, width = image.shape[:2]
    target, one = out[first : first + len(xs)], np.float32(1)
    if words is not None:
        fill = fill.astype(np.uint8)
    with np.errstate(all="ignore"):
        if nearest is not None:
            lines, columns = (
                _pixels(np.floor(_within(ys)), height, border),
                _pixels(np.floor(_within(xs)), width, border),
            )
            pixels = image[lines, columns]
            if rounds:
                pixels = _rounded(pixels.astype(np.float32)).clip(low, high)
            target[...] = np.where(((lines < 0) | (columns < 0))[..., None], stored_fill, pixels.astype(out.dtype))
            return
        x, y = _within(xs - np.float32(0.5)), _within(ys - np.float32(0.5))
        left, top = np.floor(x), np.floor(y)
        columns, lines = _pixels(left, width, border), _pixels(top, height, border)
        behind, below = _pixels(left + one, width, border), _pixels(top + one, height, border)
        qx, qy = (x - left)[..., None], (y - top)[..., None]

        def mixed(line: np.ndarray) -> np.ndarray:
            return _floats(image, line, columns, fill) * (one - qx) + _floats(image, line, behind, fill) * qx

        above = mixed(lines)
        pixels = above + (mixed(below) - above) * qy
        target[...] = _rounded(pixels).clip(low, high) if rounds else pixels


def _within(values: np.ndarray) -> np.ndarray:
    """`_bounded`."""
    values = np.where(values > -_FAR, values, -_FAR)
    return np.where(values < _FAR, values, _FAR)


def _pixels(whole: np.ndarray, n: int, border: int) -> np.ndarray:
    """`border_index` of whole numbers in float32."""
    at = whole.astype(np.int64)
    if border == BORDERS["constant"]:
        return np.where((at >= 0) & (at < n), at, -1)
    if border == BORDERS["replicate"]:
        return at.clip(0, n - 1)
    if border == BORDERS["wrap"]:
        return at % n
    again = 2 * n if border == BORDERS["reflect"] else max(2 * n - 2, 1)
    at %= again
    return np.where(at < n, at, again - (border == BORDERS["reflect"]) - at)


def _floats(image: np.ndarray, lines: np.ndarray, columns: np.ndarray, fill: np.ndarray) -> np.ndarray:
    """Pixels as float32, with the fill outside."""
    pixels = image[lines, columns].astype(np.float32)
    outside = (lines < 0) | (columns < 0)
    if outside.any():
        pixels[outside] = fill
    return pixels


def _rounded(values: np.ndarray) -> np.ndarray:
    """`rounded`."""
    whole = np.trunc(values)
    rest, half, one = values - whole, np.float32(0.5), np.float32(1)
    return whole + (rest >= half) * one - (rest <= -half) * one
