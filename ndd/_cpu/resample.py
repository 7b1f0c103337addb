"""Separable resampling of an image on one thread: windowed filters with antialiasing, or the nearest pixel.

The `n_out` pixels of an axis are evenly spaced over the source coordinates `start..end`. Each output pixel is a
weighted sum of consecutive source pixels (its *taps*, see `filter_taps.py`); taps beyond the edge are the edge
pixel. All sums are float32; only the last pass is rounded.

Results are DALI's (2.4.0) to the last bit: taps are summed one after the other, with products rounded before they are added;
the axes are resampled in the order of least cost (`_least_cost`); and integers are rounded as in its loops: ties to even in
full vector registers, away from zero in the rest of a row.
"""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np

from ndd._compiled.intrinsics import array_at, empty, zeros
from ndd._compiled.jit import from_template, kernel
from ndd._compiled.sample_loops import next_index
from ndd._compiled.simd import PIXEL_WIDTH, sum_pixels
from ndd._cpu.filter_taps import (
    CUBIC,
    F32,
    NN,
    NN_CENTRE,
    NN_CORNER,
    NN_FUSED,
    TRIANGULAR,
    axis_taps,
    cut_taps,
    exact_taps,
    fused_nearest_taps,
    nearest_taps,
    quantise,
    reach,
    tap_count,
    window_taps,
)
from ndd._cpu.nearest_pixels import nearest_plane, pick_planes
from ndd._tensor.memory import host_empty

SPARE = PIXEL_WIDTH - 1  # numbers after a row, since its last pixel may be less than a register


@kernel(fastmath={"nsz"}, merged=True)
def add_rows(rows, index, weights, lo, hi, out):
    """out[x] = sum over k of weights[k] * rows[index[k], lo + x], in this order. It adds four rows at a time, which saves loads
    and stores."""
    taps = len(weights)
    k = (taps - 1) % 4 + 1
    r0, w0 = rows[index[0], lo:hi], weights[0]
    if k == 1:
        for x in range(len(out)):
            out[x] = w0 * np.float32(r0[x])
    elif k < 4:
        r1, w1 = rows[index[1], lo:hi], weights[1]
        for x in range(len(out)):
            out[x] = w0 * np.float32(r0[x]) + w1 * np.float32(r1[x])
        if k == 3:
            r2, w2 = rows[index[2], lo:hi], weights[2]
            for x in range(len(out)):
                out[x] += w2 * np.float32(r2[x])
    else:
        r1, r2, r3 = rows[index[1], lo:hi], rows[index[2], lo:hi], rows[index[3], lo:hi]
        w1, w2, w3 = weights[1], weights[2], weights[3]
        for x in range(len(out)):
            low = w0 * np.float32(r0[x]) + w1 * np.float32(r1[x])
            out[x] = (low + w2 * np.float32(r2[x])) + w3 * np.float32(r3[x])
    while k < taps:
        r0, r1, r2, r3 = (
            rows[index[k], lo:hi],
            rows[index[k + 1], lo:hi],
            rows[index[k + 2], lo:hi],
            rows[index[k + 3], lo:hi],
        )
        w0, w1, w2, w3 = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for x in range(len(out)):
            low = (out[x] + w0 * np.float32(r0[x])) + w1 * np.float32(r1[x])
            out[x] = (low + w2 * np.float32(r2[x])) + w3 * np.float32(r3[x])
        k += 4


@kernel(forceinline=True)
def _pixels_along(row, step, left, first, flat, taps, out):
    """`along_row` for 3 and 4 channels."""
    k, o = np.uint64(0), np.uint64(0)
    for i in range(len(first)):
        sum_pixels(row, np.uint64(first[i] - left) * step, step, flat, k, taps, out, o)
        k += taps
        o += step


@kernel(forceinline=True)
def _numbers_along(row, channels, left, first, flat, taps, out):
    """`along_row` for any number of channels."""
    k, o = np.uint64(0), np.uint64(0)
    for i in range(len(first)):
        begin = np.uint64(first[i] - left) * channels
        for c in range(channels):
            a, x = np.float32(0), begin + c
            for t in range(taps):
                a += flat[k + t] * row[x]
                x += channels
            out[o] = a
            o += np.uint64(1)
        k += taps


@kernel(merged=True)
def along_row(row, channels, left, first, weights, out):
    """out[i, c] = sum over k of weights[i, k] * row[first[i] - left + k, c], channels interleaved.

    `row` and `out` have `SPARE` more numbers. Unsigned indices need no check for negative ones, and the compiler unrolls loops
    over few taps.
    """
    taps, flat = np.uint64(weights.shape[1]), weights.ravel()
    if channels == 3:
        if taps == 2:
            _pixels_along(row, np.uint64(3), left, first, flat, np.uint64(2), out)
        elif taps == 3:
            _pixels_along(row, np.uint64(3), left, first, flat, np.uint64(3), out)
        elif taps == 4:
            _pixels_along(row, np.uint64(3), left, first, flat, np.uint64(4), out)
        elif taps == 5:
            _pixels_along(row, np.uint64(3), left, first, flat, np.uint64(5), out)
        else:
            _pixels_along(row, np.uint64(3), left, first, flat, taps, out)
    elif channels == 4:
        _pixels_along(row, np.uint64(4), left, first, flat, taps, out)
    elif channels == 1:
        if taps == 2:
            _numbers_along(row, np.uint64(1), left, first, flat, np.uint64(2), out)
        elif taps == 3:
            _numbers_along(row, np.uint64(1), left, first, flat, np.uint64(3), out)
        elif taps == 4:
            _numbers_along(row, np.uint64(1), left, first, flat, np.uint64(4), out)
        elif taps == 5:
            _numbers_along(row, np.uint64(1), left, first, flat, np.uint64(5), out)
        else:
            _numbers_along(row, np.uint64(1), left, first, flat, taps, out)
    else:
        _numbers_along(row, np.uint64(channels), left, first, flat, taps, out)


@kernel(merged=True)
def put_row(line, out, even, behind, low, high):
    """Store float32 values; for integers (`low < high`) they are rounded and saturated, ties to even from `even` to
    `behind`, else away from zero."""
    if low < high:
        _put_away(line[:even], out[:even], low, high)
        _put_even(line[even:behind], out[even:behind], low, high)
        _put_away(line[behind:], out[behind:], low, high)
    else:
        for x in range(len(out)):
            out[x] = line[x]


REGISTER = 16  # bytes of results that DALI's loops round at a time
_NEAREST = (NN, NN_FUSED, NN_CORNER, NN_CENTRE)
# The order of the two passes. torch resamples rows first, and rounds bytes in between.
ACROSS, DOWN, ACROSS_IN_BYTES = range(3)


@kernel
def put_rows(values, out, even, behind, low, high):
    """`put_row` for each row."""
    for i in range(len(out)):
        put_row(values[i], out[i], even, behind, low, high)


@kernel
def _put_even(line, out, low, high):
    for x in range(len(out)):
        out[x] = np.int32(min(max(np.rint(line[x]), low), high))


@kernel
def _put_away(line, out, low, high):
    for x in range(len(out)):
        value = min(max(line[x], low), high)
        whole = np.trunc(value)
        tip = np.copysign(np.float32(1), value) if abs(value - whole) >= np.float32(0.5) else np.float32(0)
        out[x] = np.int32(whole + tip)


@kernel
def even_run(first, taps, low, high, channels, vector_width):
    """The begin and end, in elements, of the loop over `vector_width` pixels at a time: from the first pixel whose taps are all
    inside."""
    begin, behind = len(first), 0
    for x in range(len(first)):
        if first[x] >= low and first[x] + taps <= high:
            begin, behind = min(begin, x), x + 1
    begin = min(begin, behind)
    return begin * channels, (begin + (behind - begin) // vector_width * vector_width) * channels


@kernel(light=True)
def plane_taps(height, width, rows, columns, channels, start, end, kind, radius, whole, skip, vector_width):
    """The plan of resampling an image along y and x by DALI's filters: the order, the taps of both axes, and the run of elements
    in a row of the result whose ties are rounded to even (`put_row`)."""
    top, bottom = reach(height, start[0], end[0], kind[0], radius[0])
    left, right = reach(width, start[1], end[1], kind[1], radius[1])
    y_taps, x_taps = tap_count(kind[0], radius[0]), tap_count(kind[1], radius[1])
    down_cost, across_cost = 3 + y_taps, 3 + 1.4 * x_taps  # as in `_least_cost`
    down_first = rows * (right - left) * down_cost + rows * columns * across_cost < (
        (bottom - top) * columns * across_cost + rows * columns * down_cost
    )
    y = window_taps(rows, height, start[0], end[0], kind[0], radius[0], 0 if down_first else top)
    x = window_taps(columns, width, start[1], end[1], kind[1], radius[1], left if down_first else 0)
    even, behind = 0, columns * channels // vector_width * vector_width
    if down_first:
        even, behind = even_run(x[0], x_taps, left, right, channels, vector_width)
    return DOWN if down_first else ACROSS, y[0], y[1], x[0], x[1], even, behind


plane_taps.fallback()


@kernel
def exact_plane_taps(height, width, rows, columns, channels, start, end, kind, radius, whole, skip, vector_width):
    """The same by torch's filters. `whole` and `skip`: see `resample_plan`."""
    y = exact_taps(whole[0], height, start[0], end[0], kind[0], radius[0])
    x = exact_taps(whole[1], width, start[1], end[1], kind[1], radius[1])
    if vector_width == REGISTER:  # bytes
        quantise(y[1])
        quantise(x[1])
    y, x = cut_taps(y[0], y[1], skip[0], rows), cut_taps(x[0], x[1], skip[1], columns)
    return ACROSS_IN_BYTES, y[0], y[1], x[0], x[1], 0, 0


exact_plane_taps.fallback()


@kernel
def filter_planes(image, out, channels, order, y_first, y_weights, x_first, x_weights, even, behind, low, high):
    """Two passes over each plane of `[planes, H, W * channels]`, a row at a time.

    An intermediate row is either a sum of source rows, which is then resampled along x (down first), or a source row resampled
    along x, which stays in a ring buffer until the sums that need it are done (across first).
    """
    down_first, in_bytes = order == DOWN, order == ACROSS_IN_BYTES and low < high
    height, width = image.shape[1], image.shape[2] // channels
    rows_out, width_out = out.shape[1], out.shape[2]
    y_taps, x_taps = y_weights.shape[1], x_weights.shape[1]
    lo, hi = x_first[0], x_first[0]
    for x in range(len(x_first)):
        lo, hi = min(lo, x_first[x]), max(hi, x_first[x] + x_taps)
    a, b = max(lo, 0), min(hi, width)
    mixed = zeros((hi - lo) * channels + SPARE, np.float32)
    inside = mixed[(a - lo) * channels : (b - lo) * channels]
    slots = 1 if down_first else y_taps
    ring = empty((slots, width_out + SPARE), np.float32)
    held = empty(slots, np.int64)
    index = empty(y_taps, np.int64)
    line = empty(width_out + SPARE, np.float32)
    ready = line[:width_out]
    alone, needed = empty(1, np.int64), np.ones(1, np.float32)
    for p in range(len(image)):
        held[:] = -1
        for y in range(rows_out):
            for k in range(y_taps):
                index[k] = min(max(y_first[y] + k, 0), height - 1)
            if down_first:
                add_rows(image[p], index, y_weights[y], a * channels, b * channels, inside)
                _repeat_edges(mixed, channels, a - lo, b - lo)
                along_row(mixed, channels, lo, x_first, x_weights, line)
            else:
                for k in range(y_taps):
                    row = index[k]
                    index[k] = slot = row % slots
                    if held[slot] != row:
                        alone[0] = held[slot] = row
                        add_rows(image[p], alone, needed, a * channels, b * channels, inside)
                        _repeat_edges(mixed, channels, a - lo, b - lo)
                        along_row(mixed, channels, lo, x_first, x_weights, ring[slot])
                        if in_bytes:
                            _bound_row(ring[slot], low, high)
                add_rows(ring, index, y_weights[y], 0, width_out, ready)
            put_row(ready, out[p, y], even, behind, low, high)


@kernel
def _bound_row(row, low, high):
    """Rounds a row to integers in the range of the result; halves are rounded up."""
    for x in range(len(row)):
        row[x] = min(max(np.floor(row[x] + np.float32(0.5)), low), high)


@filter_planes.fallback
@np.errstate(invalid="ignore")  # the compiled loops do not warn of infinite pixels either
def _(image, out, channels, order, y_first, y_weights, x_first, x_weights, even, behind, low, high):
    rows = image.reshape(*image.shape[:2], -1, channels)
    for axis in (1, 2) if order == DOWN else (2, 1):
        first, weights = (y_first, y_weights) if axis == 1 else (x_first, x_weights)
        last, mixed = rows.shape[axis] - 1, F32(0)
        for k in range(weights.shape[1]):
            share = weights[:, k].reshape((-1, 1, 1) if axis == 1 else (-1, 1))
            mixed = mixed + share * rows.take(np.clip(first + k, 0, last), axis).astype(F32, copy=False)
        rows = mixed
        if axis == 2 and order == ACROSS_IN_BYTES and low < high:
            rows = np.floor(rows + F32(0.5)).clip(low, high)
    pixels = rows.reshape(out.shape)
    if low < high:
        bounded = pixels.clip(low, high)
        whole = np.trunc(bounded)
        pixels = whole + np.copysign(abs(bounded - whole) >= F32(0.5), bounded)
        pixels[..., even:behind] = np.rint(bounded[..., even:behind])
    out[...] = pixels


@kernel(light=True)
def filter_loop(
    counter, limit, order, sources, targets, source_like, like, extents, sizes, start, end, kind, radius, whole, skip,
    vector_width, low, high
):  # fmt: skip
    """Resamples up to `limit` images in the order `order`, which threads share. Returns True.

    Args:
        sources, targets: the addresses of the images and of the results, int64 `[N]`.
        source_like, like: any arrays of their element types.
        extents: planes, height, width and channels of each image, int64 `[N, 4]`.
        sizes: height and width of each result, int64 `[N, 2]`.
        start, end, kind, radius, whole, skip: those of `resample`, `[N, 2]`.
    """
    for _ in range(limit):
        turn = next_index(counter)
        if turn >= len(order):
            break
        i = order[turn]
        planes, height, width, channels = extents[i, 0], extents[i, 1], extents[i, 2], extents[i, 3]
        rows, columns = sizes[i, 0], sizes[i, 1]
        image = array_at(sources[i], (planes, height, width * channels), source_like)
        out = array_at(targets[i], (planes, rows, columns * channels), like)
        first, y_first, y_weights, x_first, x_weights, even, behind = plane_taps(
            height, width, rows, columns, channels, start[i], end[i], kind[i], radius[i], whole[i], skip[i], vector_width,
        )  # fmt: skip
        filter_planes(image, out, channels, first, y_first, y_weights, x_first, x_weights, even, behind, low, high)
    return True


def loop_fields(order, sources, targets, dtypes, extents, sizes, start, end, kind, radius, whole, skip) -> tuple:
    """The arguments of `filter_loop` after the first two, for images and results of these element types."""
    source_like, like = [np.empty(0, dtype) for dtype in dtypes]
    rows = map(np.ascontiguousarray, (extents, sizes, start, end, kind, radius, whole, skip))
    return order, sources, targets, source_like, like, *rows, REGISTER // like.itemsize, *range_of(like.dtype)


def _usual_fields() -> tuple:
    """For bytes."""
    numbers, pairs, floats = np.empty(0, np.int64), np.empty((0, 2), np.int64), np.empty((0, 2), F32)
    rows = pairs, pairs, floats, floats, pairs.astype(np.int32), floats, pairs, pairs
    return loop_fields(numbers, numbers, numbers, (np.uint8, np.uint8), *rows)


filter_loop.usual = _usual_fields
# Loops of their own: a program has filters of one rule, and torch's take a fifth of the time to compile.
exact_filter_loop = from_template(
    filter_loop.function, filter_loop, "_exact", {"light": True}, plane_taps=exact_plane_taps
)
for _each in (filter_loop, exact_filter_loop):
    _each.fallback(lambda *args: False)
    _each.urgency = 2.0  # NumPy takes twenty times as long, and a photograph is decoded before by a library


@kernel
def _repeat_edges(line, channels, begin, behind):
    """Sets the pixels before `begin` and from `behind` on to those of the edges."""
    for x in range(begin):
        for c in range(channels):
            line[x * channels + c] = line[begin * channels + c]
    for x in range(behind, (len(line) - SPARE) // channels):
        for c in range(channels):
            line[x * channels + c] = line[(behind - 1) * channels + c]


@kernel
def filter_axis(image, out, first, weights, period, even, behind, low, high):
    """Resamples the middle axis of `[outer, n, inner]`. `even` and `behind` (see `put_row`) apply to each `period` elements of
    the result."""
    n, inner = image.shape[1], image.shape[2]
    n_out, taps = weights.shape
    if inner >= 16:  # adding rows is then cheaper than stepping along them
        index, line = empty(taps, np.int64), empty(inner, np.float32)
        for o in range(len(image)):
            for i in range(n_out):
                for k in range(taps):
                    index[k] = min(max(first[i] + k, 0), n - 1)
                add_rows(image[o], index, weights[i], 0, inner, line)
                for at in range(0, inner, period):
                    line_part, out_part = line[at : at + period], out[o, i, at : at + period]
                    passed = i * inner % period if period > inner else 0
                    a = min(max(even - passed, 0), len(out_part))
                    b = min(max(behind - passed, a), len(out_part))
                    put_row(line_part, out_part, a, b, low, high)
        return
    lo, hi = min(first[0], first[-1]), max(first[0], first[-1]) + taps
    a, b = max(lo, 0), min(hi, n)
    line, mixed = empty(n_out * inner + SPARE, np.float32), zeros((hi - lo) * inner + SPARE, np.float32)
    inside, alone, needed = mixed[(a - lo) * inner : (b - lo) * inner], zeros(1, np.int64), np.ones(1, np.float32)
    lines = image.reshape(len(image), n * inner)
    for o in range(len(image)):
        alone[0], target = o, out[o].ravel()
        add_rows(lines, alone, needed, a * inner, b * inner, inside)
        _repeat_edges(mixed, inner, a - lo, b - lo)
        along_row(mixed, inner, lo, first, weights, line)
        for at in range(0, n_out * inner, period):
            put_row(line[at : at + period], target[at : at + period], even, behind, low, high)


def resample(image: np.ndarray, out: np.ndarray, axes: tuple[int, ...], *values: np.ndarray) -> None:
    """Resample `image` along `axes` into `out`: two or more neighbours, ascending; -1 is an axis of one pixel before
    the image's own. `values`: start, end, kind, radius, whole and skip (see `resample_plan`), each with a value an axis."""
    if out.size == 0 or image.size == 0:
        return
    if axes[0] < 0:
        image, out, axes = image[None], out[None], tuple(axis + 1 for axis in axes)
    start, end, kind, _, whole, skip = values
    nearest = [k in _NEAREST for k in kind.tolist()]
    if all(nearest):
        return _pick(image, out, axes, start, end, kind, whole, skip)
    exact = kind[0] > NN_FUSED
    # The loops write bytes and float32; other types are rounded afterwards, which saves compiling the loops for each pair of
    # types (5 s). Doing the same for their input would cost a fifth of the speed of 16-bit images.
    target = out if out.dtype in MADE else host_empty(out.shape, F32)
    extents, sizes = [image.shape[axis] for axis in axes], [out.shape[axis] for axis in axes]
    moved = [
        k not in _EXACT or a != 0 or not b == n == m
        for k, a, b, n, m in zip(kind, start, end, extents, sizes, strict=True)
    ]
    if moved == [True, True] and (exact or not any(nearest)):
        y, x = axes
        channels = math.prod(out.shape[x + 1 :])
        taps = (exact_plane_taps if exact else plane_taps)(
            *extents, *sizes, channels, *values, REGISTER // out.itemsize
        )
        planes = image.reshape(_plane(image.shape, y)), target.reshape(_plane(out.shape, y))
        filter_planes(*planes, channels, *taps, *range_of(target.dtype))
        rounding = sizes[1] * channels, *taps[-2:]
    else:
        rounding = _one_by_one(image, target, axes, moved, values, REGISTER // out.itemsize)
    if target is not out:
        period, even, behind = rounding
        put_rows(target.reshape(-1, period), out.reshape(-1, period), even, behind, *range_of(out.dtype))


def _plane(shape: tuple[int, ...], y: int) -> tuple[int, int, int]:
    return math.prod(shape[:y]), shape[y], math.prod(shape[y + 1 :])


def _pick(image, out, axes, start, end, kind, whole, skip) -> None:
    """Takes the nearest pixel along all axes."""
    extents, sizes = [image.shape[axis] for axis in axes], [out.shape[axis] for axis in axes]
    if kind[0] == NN_FUSED:
        picked = [fused_nearest_taps(*place) for place in zip(sizes, extents, start, end, strict=True)]
    elif kind[0] > NN_FUSED:
        taps = [exact_taps(*place, F32(0.5)) for place in zip(whole, extents, start, end, kind, strict=True)]
        picked = [cut_taps(*part)[0] for part in zip(*zip(*taps, strict=True), skip, sizes, strict=True)]
    elif len(axes) == 2:
        picked = nearest_plane(*extents, *sizes, start, end)
    else:
        spans = [reach(n, a, b, NN, F32(0)) for n, a, b in zip(extents, start, end, strict=True)]
        first = _least_cost(tuple([b - a for a, b in spans]), tuple(sizes), (1,) * len(axes))[0]
        picked = [
            nearest_taps(
                sizes[i], extents[i], start[i], end[i], 0 if i == first else spans[i][0], int(i < len(axes) - 1)
            )
            for i in range(len(axes))
        ]
    for axis, first in zip(axes[:-2], picked[:-2], strict=True):
        image = image.take(first, axis)
    y = axes[-2]
    channels = math.prod(out.shape[y + 2 :])
    pick_planes(image.reshape(_plane(image.shape, y)), out.reshape(_plane(out.shape, y)), channels, *picked[-2:])


def _one_by_one(image, out, axes, changes, values, vector_width) -> tuple[int, int, int]:
    """Makes one pass along each axis that changes, with float32 in between. Returns the elements whose ties are rounded to
    even: in each `period` of the result, from `even` to `behind`."""
    low, high = range_of(out.dtype)
    start, end, kind, radius, whole, skip = values
    extents, sizes = [image.shape[axis] for axis in axes], [out.shape[axis] for axis in axes]
    spans = [reach(*place) for place in zip(extents, start, end, kind, radius, strict=True)]
    taps = [tap_count(*filter_) for filter_ in zip(kind, radius, strict=True)]
    order = _least_cost(tuple([b - a for a, b in spans]), tuple(sizes), tuple(taps))
    last = order[-1]
    origins = [0 if i == order[0] else span[0] for i, span in enumerate(spans)]
    moved = [i for i in order if changes[i]] or [last]
    along = {
        i: cut_taps(
            *axis_taps(whole[i], extents[i], start[i], end[i], kind[i], radius[i], origins[i], int(i < len(axes) - 1)),
            skip[i],
            sizes[i],
        )
        for i in {*moved, last}
    }
    # The last pass decides how ties are rounded, even where it changes nothing.
    channels = math.prod(out.shape[axes[-1] + 1 :])
    period = math.prod(sizes[-2:] if last == len(axes) - 3 else sizes[-1:]) * channels
    even, behind = 0, period // vector_width * vector_width
    if kind[last] in _NEAREST:
        even = behind = 0
    elif last == len(axes) - 1:
        first, weights = along[last]
        even, behind = even_run(first, weights.shape[1], *spans[last], channels, vector_width)
    for i in moved:
        axis, ready = axes[i], i == moved[-1]
        shape = *image.shape[:axis], out.shape[axis], *image.shape[axis + 1 :]
        target = out if ready else host_empty(shape, F32)
        view = (math.prod(shape[:axis]), -1, math.prod(shape[axis + 1 :]))
        ties = (period, even, behind, low, high) if ready else (view[2], 0, 0, F32(0), F32(0))
        filter_axis(np.ascontiguousarray(image.reshape(view)), target.reshape(view), *along[i], *ties)
        image = target
    return period, even, behind


@functools.lru_cache(1024)
def _least_cost(extents: tuple[int, ...], sizes: tuple[int, ...], taps: tuple[int, ...]) -> tuple[int, ...]:
    """The cheapest order of the axes by DALI's estimate: an element of a pass along x costs 3 + 1.4 taps, along y 3 + taps,
    along others 3 + 1.2 taps; a pass computes only the elements that later passes need."""
    count = len(extents)
    prices = [3 + (1.4 if i == count - 1 else 1.0 if i == count - 2 else 1.2) * taps[i] for i in range(count)]

    def cost(order: tuple[int, ...]) -> float:
        now, total = list(extents), 0.0
        for i in order:
            now[i] = sizes[i]
            total += math.prod(now) * prices[i]
        return total

    return min(itertools.permutations(range(count - 1, -1, -1)), key=cost)


_EXACT = (CUBIC, TRIANGULAR)  # the filters whose weights are 1 and 0 if nothing changes
MADE = (np.dtype(np.uint8), np.dtype(F32))


def range_of(dtype: np.dtype) -> tuple[np.float32, np.float32]:
    """The range of results, which are rounded and then clamped; floats are neither."""
    if dtype.kind == "f":
        return F32(0), F32(0)
    info = np.iinfo(dtype)
    return F32(info.min), F32(info.max)
