"""Filters images with a window of weights: each output row is a sum of shifted slices of input rows.

A buffer holds as many rows as the window has, with their borders; the next row replaces the oldest.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import array_at, empty, zeros
from ndd._compiled.jit import kernel
from ndd._compiled.simd import COLUMNS, sum_places
from ndd.ops.filter.convolution import add_slice, pad_rows, put_row

WORTH_LINES = 12  # from this many weights on a column and a row can be faster
SEVERAL = 49  # from this many weights on sums halfway between two bytes are rare
LINES = 81  # up to this many weights a column and a row together are faster than a transform
FOURIER = 130  # from this many weights on a Fourier transform is faster


@kernel
def filter_image(image, weights, fill, out, origin, border, store):
    """Filters each plane of `image` `[planes, height, width, channels]` with weights `[rows, columns]`.

    Output element `o` of an axis begins at input element `o - origin`; the first of its three numbers is unused. Pixels outside
    are `fill[0]`, or 0 without one, if `border` is constant. `store` is as in `convolution.py`.
    """
    outside = np.float32(0) if fill is None else np.float32(fill[0])
    height, width, channels = image.shape[1:]
    rows, columns = weights.shape
    column, row = empty(rows, np.float32), empty(columns, np.float32)
    least = WORTH_LINES if store is None else SEVERAL
    as_lines = rows * columns > least and _fewer_as_lines(rows, columns) and split(weights, column, row)
    if out.size == 0 or image.size == 0:
        return
    count = out.shape[2] * channels
    length = count + (columns - 1) * channels
    room = max(count, COLUMNS)
    size = room if as_lines else room + (columns - 1) * channels
    ring, total = zeros(rows * size, np.float32), empty(room, np.float32)
    line, steps = zeros(room + (columns - 1) * channels, np.float32), empty(columns, np.int64)
    for k in range(columns):
        steps[k] = k * channels
    used = _weights_in_use(weights, as_lines)
    taps, starts = empty(used.shape[1], np.float32), empty(used.shape[1], np.int64)
    for t in range(taps.size):
        taps[t] = column[t] if as_lines else weights[used[0, t], used[1, t]]
    at_once = store is None and count >= COLUMNS
    for p in range(out.shape[0]):
        plane, results = image[p].reshape(height * width * channels), out[p].reshape(out.shape[1] * count)
        floats = array_at(results.ctypes.data, results.size, total)  # the same memory if `at_once`
        for y in range(out.shape[1] + rows - 1):
            newest = ring[y % rows * size : (y % rows + 1) * size]
            fresh = line if as_lines else newest
            pad_rows(
                plane, (height, width), channels, y - origin[1], origin[2], border, outside, fresh[:length], length
            )
            if as_lines:
                _sum_row(line, steps, row, newest, 0, count)
            first = y - rows + 1
            if first < 0:
                continue
            for t in range(taps.size):
                starts[t] = (first + used[0, t]) % rows * size + used[1, t] * channels
            _sum_row(ring, starts, taps, floats if at_once else total, first * count if at_once else 0, count)
            if not at_once:
                put_row(total[:count], results[first * count : (first + 1) * count], store)


@filter_image.fallback
def _(image, weights, fill, out, origin, border, store):
    height, width, channels = image.shape[1:]
    rows, columns = weights.shape
    column, row = np.empty(rows, np.float32), np.empty(columns, np.float32)
    least = WORTH_LINES if store is None else SEVERAL
    as_lines = rows * columns > least and _fewer_as_lines.interpreted(rows, columns)
    as_lines = as_lines and split.interpreted(weights, column, row)
    if out.size == 0 or image.size == 0:
        return
    outside = np.float32(0) if fill is None else np.float32(fill[0])
    across = (columns - 1) * channels
    length = out.shape[2] * channels + across
    padded = np.empty((out.shape[1] + rows - 1) * length, np.float32)
    size = out.shape[1] * length - across
    for plane, target in zip(image, out, strict=True):
        extents = height, width
        pad_rows.run_fallback(
            plane.reshape(-1), extents, channels, -origin[1], origin[2], border, outside, padded, length
        )
        sums = np.zeros(out.shape[1] * length, np.float32)
        if as_lines:
            lines = np.zeros_like(padded)
            for k in range(columns):
                add_slice(
                    padded[k * channels : padded.size - across + k * channels], row[k], lines[: lines.size - across]
                )
            for j in range(rows):
                add_slice(lines[j * length : j * length + size], column[j], sums[:size])
        else:
            for j, k in np.argwhere(weights != 0):
                start = j * length + k * channels
                add_slice(padded[start : start + size], weights[j, k], sums[:size])
        for y, out_row in enumerate(target):
            put_row.run_fallback(sums[y * length :][: out_row.size], out_row.reshape(-1), store)


@kernel
def _fewer_as_lines(rows, columns):
    return 2 * (rows + columns) <= rows * columns and rows + columns <= LINES


@kernel
def _sum_row(values, starts, weights, out, begin, count):
    """`out[begin + i] = sum over t of weights[t] * values[starts[t] + i]`, `i` below `count` (below 64, if that is more)."""
    last = max(count - COLUMNS, 0)
    for i in range(0, count, COLUMNS):
        place = min(i, last)
        sum_places(values, place, starts, weights, 0, weights.size, out, begin + place)


@kernel
def _weights_in_use(weights, as_lines):
    """The row and the column of each weight that is not zero, int64 `[2, N]`, so that infinities do not spread. For lines: the
    rows."""
    rows, columns = weights.shape
    places, n = empty((2, rows * columns), np.int64), 0
    for j in range(rows):
        for k in range(1 if as_lines else columns):
            if as_lines or weights[j, k] != 0:
                places[0, n], places[1, n] = j, k
                n += 1
    return places[:, :n]


@kernel
def split(weights, column, row):
    """Whether the weights are the product of a column and a row. Fills these in."""
    rows, columns = weights.shape
    peak, i, j = np.float32(0), 0, 0
    for y in range(rows):
        for x in range(columns):
            if not np.isfinite(weights[y, x]):
                return False
            if abs(weights[y, x]) > peak:
                peak, i, j = abs(weights[y, x]), y, x
    if peak == 0:
        return False
    for y in range(rows):
        column[y] = weights[y, j]
    for x in range(columns):
        row[x] = weights[i, x] / weights[i, j]
    for y in range(rows):
        for x in range(columns):
            if abs(column[y] * row[x] - weights[y, x]) > np.float32(3e-7) * peak:
                return False
    return True
