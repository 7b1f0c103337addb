"""Images read between their pixels: rows of points, with what lies outside filled, repeated or mirrored.

A point is (x, y) from the corner of the image: the middle of pixel 0 is at 0.5. A row is done in steps, each of them a
simple loop: where its pixels lie, fetching them, mixing them, and storing the numbers in the type of the output.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._cpu.jit import kernel

BORDERS = {"constant": 0, "replicate": 1, "reflect": 2, "reflect_101": 3, "wrap": 4}

_OUTSIDE = np.int32(-(1 << 30))  # a place that stands for the fill value, also when another place is added to it
_FAR = np.float32(1 << 30)


def store_limits(source: np.dtype, target: np.dtype, nearest: bool) -> tuple[bool, np.floating, np.floating]:
    """Whether numbers must be rounded, and the range of the integer type that they are rounded to."""
    number = source if nearest else np.dtype(np.float32)
    if target.kind == "f" or number.kind != "f":
        return False, np.float32(0), np.float32(0)
    kind = np.float64 if target.itemsize > 2 else np.float32
    return True, kind(np.iinfo(target).min), kind(np.iinfo(target).max)


def overlapping_words(image: np.ndarray) -> np.ndarray:
    """The bytes of an image as 32-bit words, one that starts at every byte: three channels are read at once."""
    return np.ndarray((image.size - 3,), np.uint32, image, strides=(1,))


_NO_WORDS = overlapping_words(np.zeros(8, np.uint8))
_MANY = 6  # words that are none of these


def words_of(image: np.ndarray, out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`overlapping_words` of both where there are RGB pixels in bytes; else words that `sample_row` ignores."""
    rgb = image.dtype == out.dtype == np.uint8 and image.shape[-1] == 3
    if not rgb or image.size < 9 or out.size < 9 or image.size >= 1 << 30:
        return _NO_WORDS, _NO_WORDS
    return overlapping_words(image), overlapping_words(out)


def place_type(image: np.ndarray) -> Any:
    """The type of places in an image: 32 bits, which is faster, wherever they hold them."""
    return np.int32 if image.size < 1 << 30 else np.int64


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
def _bounded(value):
    """A coordinate that a place can be made of; NaN lies outside."""
    value = value if value > -_FAR else -_FAR
    return value if value < _FAR else _FAR


@kernel
def _place_pixels(pixel, n, step, border, place):
    """Where the pixels of a line of `n` lie, with `step` between two neighbours; below 0: outside."""
    zero, last = np.int32(0), np.int32(n - 1)
    if border == 0:
        for i in range(pixel.size):
            at = pixel[i]
            place[i] = at * step if (at >= zero) & (at <= last) else _OUTSIDE
    elif border == 1:
        for i in range(pixel.size):
            at = pixel[i]
            at = at if at > zero else zero
            place[i] = (at if at < last else last) * step
    else:
        for i in range(pixel.size):
            place[i] = border_index(pixel[i], n, border) * step


@kernel
def _linear_taps(at, n, step, border, first, second, share, pixel):
    """The two pixels that each coordinate lies between, and the share of the second."""
    half, one = np.float32(0.5), np.int32(1)
    for i in range(at.size):
        value = _bounded(at[i] - half)
        left = np.floor(value)
        share[i] = value - left
        pixel[i] = np.int32(left)
    _place_pixels(pixel, n, step, border, first)
    for i in range(pixel.size):
        pixel[i] += one
    _place_pixels(pixel, n, step, border, second)


@kernel
def _nearest_taps(at, n, step, border, place, pixel):
    for i in range(at.size):
        pixel[i] = np.int32(np.floor(_bounded(at[i])))
    _place_pixels(pixel, n, step, border, place)


@kernel
def rounded(value):
    """To a whole number; halves away from zero, as DALI's warps do it."""
    whole = np.trunc(value)
    rest = value - whole
    half = np.float32(0.5)
    return whole + np.float32(1 if rest >= half else 0) - np.float32(1 if rest <= -half else 0)


@kernel
def store_row(row, out, rounds, low, high):
    """Numbers to the output's type: rounded and kept in its range, or as they are."""
    if rounds:
        for i in range(row.size):
            out[i] = min(max(rounded(row[i]), low), high)
    else:
        for i in range(row.size):
            out[i] = row[i]


@kernel
def _linear_points(flat, channels, place, share, fill, row):
    """Each point from the four pixels around it; the order of the operations is DALI's."""
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
def _nearest_points(flat, channels, place, fill, out, rounds, low, high):
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
def _word_at(flat, place, fill):
    """The pixel at a place, in the low three bytes."""
    if place < 0:
        return fill
    return np.uint32(flat[place]) | np.uint32(flat[place + 1]) << 8 | np.uint32(flat[place + 2]) << 16


@kernel
def _fetch_ends(flat, place, fill, tap, first, last):
    for i in range(first, last):
        tap[0, i] = _word_at(flat, place[0, i] + place[2, i], fill)
        tap[1, i] = _word_at(flat, place[1, i] + place[2, i], fill)
        tap[2, i] = _word_at(flat, place[0, i] + place[3, i], fill)
        tap[3, i] = _word_at(flat, place[1, i] + place[3, i], fill)


@kernel
def _has_words(left, right, top, bottom, last):
    """Whether all four pixels of a point lie inside, with one byte more."""
    low, high = min(left, right) + min(top, bottom), max(left, right) + max(top, bottom)
    return (low >= 0) & (high < last)


@kernel
def _all_have_words(left, right, top, bottom, last):
    lowest, highest = np.int32(0), np.int32(0)
    for i in range(left.size):
        lowest = min(lowest, np.int32(min(left[i], right[i]) + min(top[i], bottom[i])))
        highest = max(highest, np.int32(max(left[i], right[i]) + max(top[i], bottom[i])))
    return lowest >= 0 and highest < last


@kernel
def _fetch_inside(words, left, right, top, bottom, a, b, c, d):
    for i in range(left.size):
        a[i] = words[np.uint32(left[i] + top[i])]
        b[i] = words[np.uint32(right[i] + top[i])]
        c[i] = words[np.uint32(left[i] + bottom[i])]
        d[i] = words[np.uint32(right[i] + bottom[i])]


@kernel
def _fetch(flat, words, place, fill, tap):
    """The four pixels of each point as words: without a question to each of them between the ends of the row."""
    left, right, top, bottom = place[0], place[1], place[2], place[3]
    first, last, limit = 0, left.size, np.int32(words.size)
    while first < last and not _has_words(left[first], right[first], top[first], bottom[first], limit):
        first += 1
    while first < last and not _has_words(left[last - 1], right[last - 1], top[last - 1], bottom[last - 1], limit):
        last -= 1
    left, right, top, bottom = left[first:last], right[first:last], top[first:last], bottom[first:last]
    if not _all_have_words(left, right, top, bottom, limit):
        last = first
    _fetch_ends(flat, place, fill, tap, 0, first)
    _fetch_inside(
        words, left[: last - first], right, top, bottom,
        tap[0][first:last], tap[1][first:last], tap[2][first:last], tap[3][first:last],
    )  # fmt: skip
    _fetch_ends(flat, place, fill, tap, last, place.shape[1])


@kernel
def _byte(word, shift):
    return np.float32(np.int32((word >> np.uint32(shift)) & np.uint32(255)))


@kernel
def _mixed_byte(a, b, c, d, shift, qx, qy):
    """`_linear_points` for one channel of four fetched pixels, back in its place in a word."""
    px = np.float32(1) - qx
    above = _byte(a, shift) * px + _byte(b, shift) * qx
    below = _byte(c, shift) * px + _byte(d, shift) * qx
    value = above + (below - above) * qy
    whole = np.int32(value)  # it lies in 0..255
    rest = value - np.float32(whole)
    return np.uint32(np.uint32(whole) + np.uint32(rest >= np.float32(0.5))) << np.uint32(shift)


@kernel
def _mixed(a, b, c, d, qx, qy, row):
    for i in range(row.size):
        red = _mixed_byte(a[i], b[i], c[i], d[i], 0, qx[i], qy[i])
        green = _mixed_byte(a[i], b[i], c[i], d[i], 8, qx[i], qy[i])
        row[i] = red | green | _mixed_byte(a[i], b[i], c[i], d[i], 16, qx[i], qy[i])


@kernel
def _linear_rgb(flat, words, place, share, fill, out, out_words, start):
    """A row of RGB pixels in bytes, with the words that begin in them; it begins at `start` of the output."""
    n = share.shape[1]
    tap, row = np.empty((4, n), np.uint32), np.empty(n, np.uint32)
    outside = np.uint32(0)
    for k in range(3):
        outside |= np.uint32(fill[k if fill.size > 1 else 0]) << np.uint32(8 * k)
    _fetch(flat, words, place, outside, tap)
    _mixed(tap[0], tap[1], tap[2], tap[3], share[0], share[1], row)
    _store_rgb(row, out, out_words, start)


@kernel
def _store_rgb(row, out, out_words, start):
    n = row.size
    for i in range(n - 1):  # the fourth byte belongs to the pixel that follows, which is written after it
        out_words[np.uint64(start) + np.uint64(3) * np.uint64(i)] = row[i]
    for k in range(3):
        out[3 * (n - 1) + k] = (row[n - 1] >> np.uint32(8 * k)) & np.uint32(255)


@kernel
def _nearest_rgb(flat, words, left, top, fill, out, out_words, start):
    row = np.empty(left.size, np.uint32)
    outside = np.uint32(0)
    for k in range(3):
        outside |= np.uint32(fill[k if fill.size > 1 else 0]) << np.uint32(8 * k)
    limit = np.uint32(words.size)
    for i in range(left.size):
        at = np.uint32(left[i] + top[i])
        row[i] = words[at] if at < limit else _word_at(flat, left[i] + top[i], outside)
    _store_rgb(row, out, out_words, start)


@kernel
def sample_row(
    image, words, xs, ys, place, share, row, out, out_words, y, nearest, border, fill, stored_fill, rounds, low, high
):
    """Row `y` of the output, from the points (xs, ys).

    Room for a row: `place` [4, width], `share` float32 [2, width], `row` float32 [width * channels]. `fill` holds
    float32 numbers to be mixed with pixels, `stored_fill` the same in the output's type.
    """
    height, width, channels = image.shape
    flat, line = image.reshape(height * width * channels), out[y].reshape(out.shape[1] * channels)
    # 32-bit numbers: the loops over places then take twice as many at once.
    n, lines, step, stride = np.int32(width), np.int32(height), np.int32(channels), np.int32(width * channels)
    pixel = np.empty(xs.size, np.int32)
    if nearest:
        _nearest_taps(xs, n, step, border, place[0], pixel)
        _nearest_taps(ys, lines, stride, border, place[2], pixel)
        if words.size >= _MANY:
            _nearest_rgb(flat, words, place[0], place[2], stored_fill, line, out_words, y * line.size)
            return
        _nearest_points(flat, channels, place, stored_fill, line, rounds, low, high)
        return
    _linear_taps(xs, n, step, border, place[0], place[1], share[0], pixel)
    _linear_taps(ys, lines, stride, border, place[2], place[3], share[1], pixel)
    if words.size >= _MANY:
        _linear_rgb(flat, words, place, share, fill, line, out_words, y * line.size)
        return
    _linear_points(flat, channels, place, share, fill, row)
    store_row(row, line, rounds, low, high)
