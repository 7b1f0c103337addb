"""Rows of RGB pixels in bytes, sampled between pixels: the part of `ndd._cpu.sampling` for the most common images.

A pixel is fetched as a word of 32 bits, whose fourth byte belongs to the next one.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import empty, multiply_add
from ndd._compiled.jit import kernel

LEAST = 9
"""The smallest size, in bytes, of an image whose pixels are read as words."""


@kernel
def word_at(flat, place, fill):
    """The pixel at a place, in the low three bytes; `fill` for a place below 0."""
    if place < 0:
        return fill
    return np.uint32(np.uint32(flat[place]) | np.uint32(flat[place + 1]) << 8 | np.uint32(flat[place + 2]) << 16)


@kernel
def _fetch_ends(flat, place, fill, tap, first, last):
    for i in range(first, last):
        tap[0, i] = word_at(flat, place[0, i] + place[2, i], fill)
        tap[1, i] = word_at(flat, place[1, i] + place[2, i], fill)
        tap[2, i] = word_at(flat, place[0, i] + place[3, i], fill)
        tap[3, i] = word_at(flat, place[1, i] + place[3, i], fill)


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
def fetch_words(flat, words, place, fill, tap, begin, end):
    """Reads the four pixels of each point as words, without bounds checks between the ends of the row."""
    left, right, top, bottom = place[0], place[1], place[2], place[3]
    first, last, limit = begin, end, np.int32(words.size)
    while first < last and not _has_words(left[first], right[first], top[first], bottom[first], limit):
        first += 1
    while first < last and not _has_words(left[last - 1], right[last - 1], top[last - 1], bottom[last - 1], limit):
        last -= 1
    left, right, top, bottom = left[first:last], right[first:last], top[first:last], bottom[first:last]
    if not _all_have_words(left, right, top, bottom, limit):
        last = first
    _fetch_ends(flat, place, fill, tap, begin, first)
    _fetch_inside(
        words, left[: last - first], right, top, bottom,
        tap[0][first:last], tap[1][first:last], tap[2][first:last], tap[3][first:last],
    )  # fmt: skip
    _fetch_ends(flat, place, fill, tap, last, end)


@kernel
def _is_outside(place, i):
    """Whether no pixel of a point lies inside."""
    return max(place[0, i], place[1, i]) + max(place[2, i], place[3, i]) < 0


@kernel
def byte_of(word, shift):
    return np.float32(np.int32((word >> np.uint32(shift)) & np.uint32(255)))


@kernel
def _mixed_byte(a, b, c, d, shift, qx, qy, fused):
    """Interpolates one channel of four pixels, and returns it at its place in a word. `fused`: as OpenCV does, otherwise as
    DALI's warps do (`_linear_points` in `sampling.py`)."""
    a, b, c, d = byte_of(a, shift), byte_of(b, shift), byte_of(c, shift), byte_of(d, shift)
    if fused:
        above, below = multiply_add(qx, b - a, a), multiply_add(qx, d - c, c)
        whole = np.int32(np.rint(multiply_add(qy, below - above, above)))
    else:
        px = np.float32(1) - qx
        above, below = a * px + b * qx, c * px + d * qx
        value = above + (below - above) * qy
        whole = np.int32(value)  # it lies in 0..255
        whole += np.int32(value - np.float32(whole) >= np.float32(0.5))
    return np.uint32(whole) << np.uint32(shift)


@kernel
def mix_rgb(a, b, c, d, qx, qy, row, fused):
    """Fills `row` with pixels interpolated from the four around each point: `a` and `b` above, `c` and `d` below. `qx` and `qy`
    are the shares of the second column and row. `fused`: see `_mixed_byte`."""
    for i in range(row.size):
        red = _mixed_byte(a[i], b[i], c[i], d[i], 0, qx[i], qy[i], fused)
        green = _mixed_byte(a[i], b[i], c[i], d[i], 8, qx[i], qy[i], fused)
        row[i] = red | green | _mixed_byte(a[i], b[i], c[i], d[i], 16, qx[i], qy[i], fused)


@kernel
def rgb_word(fill):
    """A fill value as a pixel in the low three bytes."""
    red, green, blue = np.uint32(fill[0]), np.uint32(fill[1 % fill.size]), np.uint32(fill[2 % fill.size])
    return np.uint32(red | green << np.uint32(8) | blue << np.uint32(16))


@kernel
def linear_rgb(flat, words, place, share, fill, out, out_words, start):
    """Samples a row of RGB pixels in bytes, with the words that begin in them, to the output from `start` on."""
    n = share.shape[1]
    tap, row = empty((4, n), np.uint32), empty(n, np.uint32)
    outside = rgb_word(fill)
    first, last = np.int64(0), np.int64(n)
    while first < last and _is_outside(place, first):
        first += 1
    while first < last and _is_outside(place, last - 1):
        last -= 1
    row[:first], row[last:] = outside, outside
    fetch_words(flat, words, place, outside, tap, first, last)
    mix_rgb(
        tap[0][first:last], tap[1][first:last], tap[2][first:last], tap[3][first:last],
        share[0][first:last], share[1][first:last], row[first:last], False,
    )  # fmt: skip
    store_rgb(row, out, out_words, start)


@kernel
def store_rgb(row, out, out_words, start):
    """Writes a row of pixels, one word each, to the output from `start` on."""
    n = row.size
    for i in range(n - 1):  # the fourth byte belongs to the next pixel, which is written later
        out_words[np.uint64(start) + np.uint64(3) * np.uint64(i)] = row[i]
    for k in range(3):
        out[3 * (n - 1) + k] = (row[n - 1] >> np.uint32(8 * k)) & np.uint32(255)


@kernel
def nearest_rgb(flat, words, left, top, fill, out, out_words, start):
    row = empty(left.size, np.uint32)
    outside = rgb_word(fill)
    limit = np.uint32(words.size)
    for i in range(left.size):
        at = np.uint32(left[i] + top[i])
        row[i] = words[at] if at < limit else word_at(flat, left[i] + top[i], outside)
    store_rgb(row, out, out_words, start)
