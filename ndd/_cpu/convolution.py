"""Weighted sums of neighbouring pixels: separable filters and filters given whole, with a border of any kind.

Arrays are flat. A row of a plane is `width * channels` numbers that lie next to each other, so that a neighbour along
the row is `channels` further on, and every sum is one of shifted slices of a float32 buffer: `_combine`.

`store` is (low, high, even): the range of an integer output, and whether its halves are rounded to even or away from
zero; None for a float output.
"""

from __future__ import annotations

import numpy as np

from ndd._cpu.jit import kernel
from ndd._cpu.sampling import BORDERS, border_index

REFLECT_101 = BORDERS["reflect_101"]
_BLOCK = 1024  # numbers of a row at a time: sum and slices stay in the first cache


@kernel(fastmath={"contract"})
def _combine(buffer, starts, weights, count, out, added):
    """out[j] = sum of weights[i] * buffer[starts[i] + j], added to what is there if `added`."""
    for low in range(0, out.size, _BLOCK):
        part = out[low : low + _BLOCK]
        n = part.size
        i, more = 0, added
        while count - i >= 8:
            _eight(buffer, starts[i : i + 8], weights[i : i + 8], low, n, part, more)
            i, more = i + 8, True
        if count - i >= 4:
            _four(buffer, starts[i : i + 4], weights[i : i + 4], low, n, part, more)
            i, more = i + 4, True
        if count - i == 3:
            _three(buffer, starts[i : i + 3], weights[i : i + 3], low, n, part, more)
            i, more = i + 3, True
        while i < count:
            _one(buffer, starts[i], weights[i], low, n, part, more)
            i, more = i + 1, True
        if not more:
            part[:] = np.float32(0)


@kernel(fastmath={"contract"})
def _one(buffer, start, weight, low, n, out, more):
    a = buffer[start + low : start + low + n]
    for j in range(n):
        out[j] = out[j] * more + weight * a[j] if more else weight * a[j]


@kernel(fastmath={"contract"})
def _three(buffer, start, w, low, n, out, more):
    a, b, c = (
        buffer[start[0] + low : start[0] + low + n],
        buffer[start[1] + low : start[1] + low + n],
        buffer[start[2] + low : start[2] + low + n],
    )
    w0, w1, w2 = w[0], w[1], w[2]
    for j in range(n):
        total = w0 * a[j] + w1 * b[j] + w2 * c[j]
        out[j] = out[j] + total if more else total


@kernel(fastmath={"contract"})
def _four(buffer, start, w, low, n, out, more):
    a, b, c, d = (
        buffer[start[0] + low : start[0] + low + n],
        buffer[start[1] + low : start[1] + low + n],
        buffer[start[2] + low : start[2] + low + n],
        buffer[start[3] + low : start[3] + low + n],
    )
    w0, w1, w2, w3 = w[0], w[1], w[2], w[3]
    for j in range(n):
        total = w0 * a[j] + w1 * b[j] + w2 * c[j] + w3 * d[j]
        out[j] = out[j] + total if more else total


@kernel(fastmath={"contract"})
def _eight(buffer, start, w, low, n, out, more):
    a, b, c, d = (
        buffer[start[0] + low : start[0] + low + n],
        buffer[start[1] + low : start[1] + low + n],
        buffer[start[2] + low : start[2] + low + n],
        buffer[start[3] + low : start[3] + low + n],
    )
    e, f, g, h = (
        buffer[start[4] + low : start[4] + low + n],
        buffer[start[5] + low : start[5] + low + n],
        buffer[start[6] + low : start[6] + low + n],
        buffer[start[7] + low : start[7] + low + n],
    )
    w0, w1, w2, w3, w4, w5, w6, w7 = w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]
    for j in range(n):
        total = w0 * a[j] + w1 * b[j] + w2 * c[j] + w3 * d[j]
        total += w4 * e[j] + w5 * f[j] + w6 * g[j] + w7 * h[j]
        out[j] = out[j] + total if more else total


@kernel
def _put(row, out, store):
    """A row of sums as elements of the output."""
    if store is None:
        for j in range(out.size):
            out[j] = row[j]
        return
    low, high, even = store
    half = np.float32(0.49999997)
    shift = np.float32(12582912.0)  # next to it the spacing of float32 is 1: adding it rounds
    if even:
        for j in range(out.size):
            value = row[j] if row[j] > low else low
            value = value if value < high else high
            out[j] = (value + shift) - shift
    else:
        for j in range(out.size):
            value = row[j] if row[j] > low else low
            value = value if value < high else high
            out[j] = np.trunc(value + np.copysign(half, value))


@kernel
def _padded_row(plane, row, width, channels, before, after, border, fill, out):
    """Row number `row` of a plane (-1: outside) as float32, with `before` and `after` pixels of border."""
    n, lead = width * channels, before * channels
    if row < 0:
        out[:] = fill
        return
    line = plane[row * n : row * n + n]
    middle = out[lead : lead + n]
    for j in range(n):
        middle[j] = np.float32(line[j])
    for x in range(before + after):
        x = x - before if x < before else width + x - before
        of = border_index(x, width, border)
        for c in range(channels):
            out[lead + x * channels + c] = fill if of < 0 else middle[of * channels + c]


@kernel
def _sum_terms(buffer, starts, weights, bounds, scales, part, out):
    """out = the sum over terms t of scales[t] times the weighted sum of slices bounds[t] to bounds[t + 1].

    Weights of a Laplacian are whole numbers: scaling their sums keeps the zero of an even area exactly zero.
    """
    terms = scales.size
    same = True
    for t in range(1, terms):
        same = same and scales[t] == scales[0]
    if same:
        _combine(buffer, starts, weights, bounds[terms], out, False)
        if scales[0] != 1:
            for j in range(out.size):
                out[j] *= scales[0]
        return
    for t in range(terms):
        a, b = bounds[t], bounds[t + 1]
        _combine(buffer, starts[a:b], weights[a:b], b - a, part, False)
        if t == 0:
            for j in range(out.size):
                out[j] = scales[0] * part[j]
        else:
            for j in range(out.size):
                out[j] += scales[t] * part[j]


@kernel
def separable(source, out, planes, extents, results, channels, taps, windows, scales, border, fill, store):
    """Each plane [*extents, channels]: the sum over terms t of scales[t] times the plane filtered with taps[t, 0] along
    the height and taps[t, 1] along the width.

    `windows[t, axis]` is (index of the first weight in taps[t, axis], input element that it meets, counted from the
    output element, number of weights); `results` are the extents of the output.
    """
    terms, most = taps.shape[0], taps.shape[2]
    height, n, m = extents[0], extents[1] * channels, results[1] * channels
    above, left = -min(windows[:, 0, 1]), -min(windows[:, 1, 1])
    below = max(windows[:, 0, 1] + windows[:, 0, 2]) - 1
    right = max(windows[:, 1, 1] + windows[:, 1, 2]) - 1 + results[1] - extents[1]
    # A tall window: every row is kept, and one of border. Else the rows around the one to make.
    whole = above + below >= height
    rows = height + 1 if whole else above + below + 1
    ring = np.empty(terms * rows * m, np.float32)
    padded = np.empty((left + extents[1] + right) * channels, np.float32)
    total, part = np.empty(m, np.float32), np.empty(m, np.float32)
    starts, weights = np.empty(terms * most, np.int64), np.empty(terms * most, np.float32)
    steps, bounds = np.empty(most, np.int64), np.zeros(terms + 1, np.int64)
    for p in range(planes):
        plane = source[p * height * n : (p + 1) * height * n]
        target = out[p * results[0] * m : (p + 1) * results[0] * m]
        ready = 0 if whole else -above
        for y in range(results[0]):
            while ready < (rows if whole else y + below + 1):
                row = border_index(ready, height, border)
                if whole and ready == height:
                    row = -1
                _padded_row(plane, row, extents[1], channels, left, right, border, fill, padded)
                slot = ready % rows
                for t in range(terms):
                    at, first, count = windows[t, 1]
                    for k in range(count):
                        steps[k] = (left + first + k) * channels
                    begin = (t * rows + slot) * m
                    _combine(padded, steps, taps[t, 1, at : at + count], count, ring[begin : begin + m], False)
                ready += 1
            made = 0
            for t in range(terms):
                at, first, count = windows[t, 0]
                for k in range(count):
                    row = y + first + k
                    slot = row % rows
                    if whole:
                        slot = border_index(row, height, border)
                        slot = height if slot < 0 else slot
                    starts[made], weights[made] = (t * rows + slot) * m, taps[t, 0, at + k]
                    made += 1
                bounds[t + 1] = made
            _sum_terms(ring, starts, weights, bounds, scales, part, total)
            _put(total, target[y * m : y * m + m], store)


@kernel
def along_depth(fields, out, planes, depth, plane, taps, windows, scales, store):
    """The sum over terms t of scales[t] times fields[t] [planes, depth, plane], filtered with taps[t] along the depth
    and reflected at the borders; `windows` as in `separable`."""
    starts, weights = np.empty(taps.size, np.int64), np.empty(taps.size, np.float32)
    terms = taps.shape[0]
    total, rest = np.empty(min(plane, _BLOCK), np.float32), np.empty(min(plane, _BLOCK), np.float32)
    bounds = np.zeros(terms + 1, np.int64)
    size = planes * depth * plane
    for p in range(planes):
        for z in range(depth):
            for low in range(0, plane, _BLOCK):
                part = total[: min(_BLOCK, plane - low)]
                made = 0
                for t in range(terms):
                    at, first, count = windows[t]
                    for k in range(count):
                        slice_of = border_index(z + first + k, depth, REFLECT_101)
                        starts[made] = t * size + (p * depth + slice_of) * plane + low
                        weights[made] = taps[t, at + k]
                        made += 1
                    bounds[t + 1] = made
                _sum_terms(fields, starts, weights, bounds, scales, rest[: part.size], part)
                begin = (p * depth + z) * plane + low
                _put(part, out[begin : begin + part.size], store)


@kernel
def correlate(source, out, planes, extents, results, channels, weights, anchor, border, fill, store):
    """Cross-correlation of volumes [planes, *extents, channels] with weights [depth, height, width].

    Output element `o` of an axis begins at input element `o - anchor`; `results` are the extents of the output.
    """
    depth, height, width = extents
    kd, kh, kw = weights.shape
    n, m = width * channels, results[2] * channels
    length = m + (kw - 1) * channels
    ring = np.empty(kh * length, np.float32)
    totals = np.empty((results[1] if kd > 1 else 1, m), np.float32)
    starts, chosen = np.empty(kh * kw, np.int64), np.empty(kh * kw, np.float32)
    after = results[2] + kw - 1 - anchor[2] - width
    for p in range(planes):
        for z in range(results[0]):
            target = out[(p * results[0] + z) * results[1] * m : (p * results[0] + z + 1) * results[1] * m]
            for i in range(kd):
                at = border_index(z - anchor[0] + i, depth, border)
                plane = source[: height * n]
                if at >= 0:
                    plane = source[(p * depth + at) * height * n : (p * depth + at + 1) * height * n]
                ready = 0
                for y in range(results[1]):
                    while ready < y + kh:
                        row = border_index(ready - anchor[1], height, border) if at >= 0 else -1
                        line = ring[ready % kh * length : (ready % kh + 1) * length]
                        _padded_row(plane, row, width, channels, anchor[2], after, border, fill, line)
                        ready += 1
                    count = 0
                    for j in range(kh):
                        begin = (y + j) % kh * length
                        for k in range(kw):
                            starts[count], chosen[count] = begin + k * channels, weights[i, j, k]
                            count += 1
                    total = totals[y if kd > 1 else 0]
                    _combine(ring, starts, chosen, count, total, i > 0)
                    if i == kd - 1:
                        _put(total, target[y * m : y * m + m], store)
