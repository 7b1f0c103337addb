"""Weighted sums of neighbouring pixels: separable and general filters, with a border of any kind.

Arrays are flat. A few rows at a time are copied as float32 into one buffer, each with its border beside it. Then a neighbour
along or across the rows is a fixed distance away, and a filter is a sum of shifted slices, `_combine`. (Its results for the border
itself are not used.)

`store` is (low, high, even): the range of an integer output, and whether its halves are rounded to even or away from
zero; None for a float output.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import each, empty, zeros
from ndd._compiled.jit import kernel
from ndd._cpu.sampling import BORDERS, border_index

REFLECT_101 = BORDERS["reflect_101"]
_BLOCK = 1024  # numbers at a time: sum and slices stay in the L1 cache
_STRIP = 8192  # numbers of the rows that are worked on together


@kernel(fastmath={"contract"})
def _combine(buffer, starts, weights, count, out, added):
    """out[j] = sum of weights[i] * buffer[starts[i] + j] for i below `count`, added to the old value if `added`."""
    for low in range(0, out.size, _BLOCK):
        part = out[low : low + _BLOCK]
        n = part.size
        if not added:
            part[:] = np.float32(0)
        i = 0
        while count - i >= 6:
            a = buffer[starts[i] + low : starts[i] + low + n]
            b = buffer[starts[i + 1] + low : starts[i + 1] + low + n]
            c = buffer[starts[i + 2] + low : starts[i + 2] + low + n]
            d = buffer[starts[i + 3] + low : starts[i + 3] + low + n]
            e = buffer[starts[i + 4] + low : starts[i + 4] + low + n]
            f = buffer[starts[i + 5] + low : starts[i + 5] + low + n]
            u, v, w = weights[i], weights[i + 1], weights[i + 2]
            x, y, z = weights[i + 3], weights[i + 4], weights[i + 5]
            for j in range(n):
                part[j] = part[j] + u * a[j] + v * b[j] + w * c[j] + x * d[j] + y * e[j] + z * f[j]
            i += 6
        while count - i >= 3:
            a = buffer[starts[i] + low : starts[i] + low + n]
            b = buffer[starts[i + 1] + low : starts[i + 1] + low + n]
            c = buffer[starts[i + 2] + low : starts[i + 2] + low + n]
            u, v, w = weights[i], weights[i + 1], weights[i + 2]
            for j in range(n):
                part[j] = part[j] + u * a[j] + v * b[j] + w * c[j]
            i += 3
        while i < count:
            a, u = buffer[starts[i] + low : starts[i] + low + n], weights[i]
            for j in range(n):
                part[j] = part[j] + u * a[j]
            i += 1


@kernel(fastmath={"contract"})
def add_slice(values, weight, out):
    """out[j] += weight * values[j], rounded once where the processor can, as `_combine` does: NumPy rounds twice."""
    for j in range(out.size):
        out[j] = out[j] + weight * values[j]


add_slice.never_interpreted()


@_combine.fallback
def _(buffer, starts, weights, count, out, added):
    if not added:
        out[:] = 0
    for start, weight in zip(starts[:count].tolist(), weights[:count], strict=True):
        add_slice(buffer[start : start + out.size], weight, out)


@kernel
def put_row(row, out, store):
    """Writes a row of sums as elements of the output."""
    if store is None:
        for j in range(out.size):
            out[j] = row[j]
        return
    low, high, even = store
    half = np.float32(0.49999997)
    shift = np.float32(12582912.0)  # near it the spacing of float32 is 1, so adding it rounds
    if even:
        for j in range(out.size):
            value = row[j] if row[j] > low else low
            value = value if value < high else high
            out[j] = (value + shift) - shift
    else:
        for j in range(out.size):
            value = row[j] if row[j] > low else low
            value = value if value < high else high
            out[j] = np.trunc(value + half)


@put_row.fallback
def _(row, out, store):
    if store is None:
        out[:] = row[: out.size]
        return
    low, high, even = store
    value = np.where(row[: out.size] > low, row[: out.size], low)
    value = np.where(value < high, value, high)
    shift = np.float32(12582912.0)
    out[:] = (value + shift) - shift if even else np.trunc(value + np.float32(0.49999997))


@kernel
def pad_rows(plane, extents, channels, first, before, border, fill, rows, length):
    """Rows `first`, first + 1, ... of a plane [*extents, channels] as float32, each with `before` pixels of border in front,
    and after it as many as fit into `length` numbers."""
    height, width = extents
    n, lead = width * channels, before * channels
    for y in range(rows.size // length):
        out = rows[y * length : (y + 1) * length]
        row = border_index(first + y, height, border)
        if row < 0:
            out[:] = fill
            continue
        line, middle = plane[row * n : row * n + n], out[lead : lead + n]
        for j in range(n):
            middle[j] = np.float32(line[j])
        outside = length // channels - width
        for i in range(outside):
            x = i - before if i < before else width + i - before
            of = border_index(x, width, border)
            for c in range(channels):
                out[lead + x * channels + c] = fill if of < 0 else middle[of * channels + c]


@pad_rows.fallback
def _(plane, extents, channels, first, before, border, fill, rows, length):
    height, width = extents
    index = border_index.in_python()
    lines = np.array([index(first + y, height, border) for y in range(rows.size // length)])
    columns = np.array([index(x - before, width, border) for x in range(length // channels)])
    padded = plane.reshape(height, width, channels)[lines[:, None], columns].astype(np.float32)
    padded[(lines < 0)[:, None] | (columns < 0)] = fill
    rows[:] = padded.reshape(-1)


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
            for j in each(out.size):
                out[j] *= scales[0]
        return
    out[:] = np.float32(0)
    for t in range(terms):
        a, b = bounds[t], bounds[t + 1]
        _combine(buffer, starts[a:b], weights[a:b], b - a, part[: out.size], False)
        for j in each(out.size):
            out[j] += scales[t] * part[j]


@kernel
def separable(source, out, planes, extents, results, channels, taps, windows, scales, border, fill, store):
    """Each plane [*extents, channels]: the sum over terms t of scales[t] times the plane filtered with taps[t, 1] along
    the height and taps[t, 2] along the width (taps[t, 0] is for the depth, see `along_depth`).

    `windows[t, axis]` is (index of the first weight in taps[t, axis], input element that it meets, counted from the
    output element, number of weights); `results` are the extents of the output.
    """
    terms, n, m = taps.shape[0], extents[1] * channels, results[1] * channels
    above, left = -windows[0, 1, 1], -windows[0, 2, 1]
    below, right = windows[0, 1, 2] - above, windows[0, 2, 2] - left
    for t in range(1, terms):
        above, below = max(above, -windows[t, 1, 1]), max(below, windows[t, 1, 1] + windows[t, 1, 2])
        left, right = max(left, -windows[t, 2, 1]), max(right, windows[t, 2, 1] + windows[t, 2, 2])
    more = above + below - 1  # rows that a row needs in addition to itself
    across = left + right - 1
    length = m + across * channels
    rows = min(results[0], max(_STRIP // max(length, 1) + 1, more))
    kept = more * length
    padded = empty((rows + more) * length, np.float32)
    fields = zeros(terms * (rows + more) * length, np.float32)
    total, part = empty(rows * length, np.float32), empty(rows * length, np.float32)
    starts, weights = empty(terms * taps.shape[2], np.int64), empty(terms * taps.shape[2], np.float32)
    bounds, size = zeros(terms + 1, np.int64), (rows + more) * length
    for t in range(terms):
        at, first, count = windows[t, 1]
        for k in range(count):
            starts[bounds[t] + k] = t * size + (above + first + k) * length
            weights[bounds[t] + k] = taps[t, 1, at + k]
        bounds[t + 1] = bounds[t] + count
    steps = empty(taps.shape[2], np.int64)
    for p in range(planes):
        plane = source[p * extents[0] * n : (p + 1) * extents[0] * n]
        for y in range(0, results[0], rows):
            n_rows = min(rows, results[0] - y)
            old = 0 if y == 0 else more  # rows that the strip before has filtered already
            fresh = padded[: (n_rows + more - old) * length]
            pad_rows(plane, extents, channels, y - above + old, left, border, fill, fresh, length)
            for t in range(terms):
                field = fields[t * size : (t + 1) * size]
                if old:
                    last = field[rows * length :]
                    for j in each(kept):
                        field[j] = last[j]
                at, first, count = windows[t, 2]
                for k in range(count):
                    steps[k] = (left + first + k) * channels
                target = field[old * length : old * length + fresh.size - across * channels]
                _combine(padded, steps, taps[t, 2, at : at + count], count, target, False)
            _sum_terms(fields, starts, weights, bounds, scales, part, total[: n_rows * length - across * channels])
            for i in range(n_rows):
                begin = (p * results[0] + y + i) * m
                put_row(total[i * length : i * length + m], out[begin : begin + m], store)


separable.fallback()


@kernel
def along_depth(fields, out, planes, depth, plane, taps, windows, scales, store):
    """The sum over terms t of scales[t] times fields[t] [planes, depth, plane], filtered with taps[t, 0] along the depth
    and reflected at the borders; `windows` as in `separable`."""
    terms, size = taps.shape[0], planes * depth * plane
    starts, weights = empty(terms * taps.shape[2], np.int64), empty(terms * taps.shape[2], np.float32)
    total, rest = empty(min(plane, _STRIP), np.float32), empty(min(plane, _STRIP), np.float32)
    bounds = zeros(terms + 1, np.int64)
    for p in range(planes):
        for z in range(depth):
            for low in range(0, plane, _STRIP):
                part = total[: min(_STRIP, plane - low)]
                for t in range(terms):
                    at, first, count = windows[t, 0]
                    for k in range(count):
                        from_layer = border_index(z + first + k, depth, REFLECT_101)
                        starts[bounds[t] + k] = t * size + (p * depth + from_layer) * plane + low
                        weights[bounds[t] + k] = taps[t, 0, at + k]
                    bounds[t + 1] = bounds[t] + count
                _sum_terms(fields, starts, weights, bounds, scales, rest, part)
                begin = (p * depth + z) * plane + low
                put_row(part, out[begin : begin + part.size], store)


@kernel
def correlate(source, out, planes, extents, results, channels, weights, anchor, border, fill, store):
    """Cross-correlation of volumes [planes, *extents, channels] with weights [depth, height, width].

    Output element `o` of an axis begins at input element `o - anchor`; `results` are the extents of the output.
    """
    depth, height, width = extents
    kd, kh, kw = weights.shape
    n, m = width * channels, results[2] * channels
    length = m + (kw - 1) * channels
    rows = min(results[1], max(_STRIP // max(length, 1) + 1, kh))
    padded = empty((rows + kh - 1) * length, np.float32)
    total = empty(rows * length, np.float32)
    starts = empty(kh * kw, np.int64)
    for j in range(kh):
        for k in range(kw):
            starts[j * kw + k] = j * length + k * channels
    for p in range(planes):
        for z in range(results[0]):
            for y in range(0, results[1], rows):
                n_rows = min(rows, results[1] - y)
                fresh = padded[: (n_rows + kh - 1) * length]
                sums = total[: n_rows * length - (kw - 1) * channels]
                for i in range(kd):
                    at = border_index(z - anchor[0] + i, depth, border)
                    if at < 0:
                        fresh[:] = fill
                    else:
                        plane = source[(p * depth + at) * height * n : (p * depth + at + 1) * height * n]
                        pad_rows(
                            plane, (height, width), channels, y - anchor[1], anchor[2], border, fill, fresh, length
                        )
                    _combine(padded, starts, weights[i].reshape(kh * kw), kh * kw, sums, i > 0)
                for i in range(n_rows):
                    begin = ((p * results[0] + z) * results[1] + y + i) * m
                    put_row(total[i * length : i * length + m], out[begin : begin + m], store)
