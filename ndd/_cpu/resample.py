"""Separable resampling of an image on one thread: windowed filters with antialiasing, or the nearest pixel.

An axis of `n_out` pixels is spread evenly over the source coordinates `start..end`. Each output pixel is a
weighted sum of consecutive source pixels (its *taps*, see `filter_taps.py`); taps beyond the edge count for the edge
pixel. All sums are float32, the first pass is not rounded.
"""

from __future__ import annotations

import math

import numpy as np

from ndd._cpu.filter_taps import F32, NN, NN_FUSED, axis_taps
from ndd._cpu.jit import kernel
from ndd._tensor.memory import host_empty


@kernel(fastmath={"contract", "nsz"})
def add_rows(rows, first, weights, lo, hi, out):
    """out[x] = sum over k of weights[k] * rows[first + k, lo + x]. Four rows a sweep, to spare loads and stores."""
    taps = len(weights)
    k = taps % 4
    if k == 0:
        for x in range(len(out)):
            out[x] = np.float32(0)
    else:
        r0, w0 = rows[first, lo:hi], weights[0]
        for x in range(len(out)):
            out[x] = w0 * np.float32(r0[x])
    for j in range(1, k):
        r0, w0 = rows[first + j, lo:hi], weights[j]
        for x in range(len(out)):
            out[x] += w0 * np.float32(r0[x])
    while k < taps:
        r0, r1, r2, r3 = (
            rows[first + k, lo:hi],
            rows[first + k + 1, lo:hi],
            rows[first + k + 2, lo:hi],
            rows[first + k + 3, lo:hi],
        )
        w0, w1, w2, w3 = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for x in range(len(out)):
            low = w0 * np.float32(r0[x]) + w1 * np.float32(r1[x])
            out[x] += low + w2 * np.float32(r2[x]) + w3 * np.float32(r3[x])
        k += 4


@kernel(fastmath={"contract", "nsz"})
def along_row(row, channels, left, first, weights, out):
    """out[i, c] = sum over k of weights[i, k] * row[first[i] - left + k, c], channels interleaved.

    Unsigned indices spare the test for negative ones: 1.7 times as fast.
    """
    n_out, taps = weights.shape
    step = np.uint64(channels)
    one, two = np.uint64(1), np.uint64(2)
    flat = weights.ravel()
    k, o = np.uint64(0), np.uint64(0)
    for i in range(n_out):
        begin = np.uint64(first[i] - left) * step
        if channels == 3:
            a = b = c = np.float32(0)
            for _ in range(taps):
                w = flat[k]
                a += w * row[begin]
                b += w * row[begin + one]
                c += w * row[begin + two]
                begin += step
                k += one
            out[o] = a
            out[o + one] = b
            out[o + two] = c
            o += step
        else:
            head = k
            for c in range(channels):
                a = np.float32(0)
                x = begin + np.uint64(c)
                k = head
                for _ in range(taps):
                    a += flat[k] * row[x]
                    x += step
                    k += one
                out[o] = a
                o += one


@kernel
def put_row(line, out, rounding, low, high):
    """Store float32 values; for integers they are rounded (ties to even, as DALI's vector code) and saturated."""
    if rounding:
        for x in range(len(out)):
            out[x] = np.int32(min(max(np.rint(line[x]), low), high))
    else:
        for x in range(len(out)):
            out[x] = line[x]


@kernel
def filter_planes(image, out, channels, y_first, y_weights, x_first, x_weights, rounding, low, high):
    """Two passes over each plane of `[planes, H, W * channels]`, the cheaper one first, a row at a time.

    A row on its way is either the sum of some source rows, resampled along x (down first), or one source row
    resampled along x and kept in a ring until the sums that need it are done (across first).
    """
    rows_out, width_out = out.shape[1], out.shape[2]
    y_taps, x_taps = y_weights.shape[1], x_weights.shape[1]
    lo, hi = x_first[0] * channels, x_first[0] * channels
    for x in range(len(x_first)):
        lo, hi = min(lo, x_first[x] * channels), max(hi, (x_first[x] + x_taps) * channels)
    used = abs(y_first[rows_out - 1] - y_first[0]) + y_taps
    # Rows are added with vector instructions, along a row there are none: its steps cost about four times as much.
    down_first = rows_out * ((hi - lo) * y_taps + 4 * width_out * x_taps) <= (
        used * (hi - lo + 4 * width_out * x_taps) + rows_out * width_out * y_taps
    )
    slots = 1 if down_first else y_taps
    needed = np.ones((1, 1), np.float32)
    mixed = np.empty(hi - lo, np.float32)
    ring = np.empty((slots, width_out), np.float32)
    held = np.empty(slots, np.int64)
    turned = np.empty(slots, np.float32)
    line = np.empty(width_out, np.float32)
    for p in range(len(image)):
        for k in range(slots):
            held[k] = -1
        for y in range(rows_out):
            begin = y_first[y]
            weights = y_weights[y] if down_first else needed[0]
            for k in range(slots):
                slot = (begin + k) % slots
                turned[slot] = y_weights[y, k]
                if down_first or held[slot] != begin + k:
                    add_rows(image[p], begin + k, weights, lo, hi, mixed)
                    along_row(mixed, channels, lo // channels, x_first, x_weights, ring[slot])
                    held[slot] = begin + k
            if not down_first:
                add_rows(ring, 0, turned, 0, width_out, line)
            put_row(ring[0] if down_first else line, out[p, y], rounding, low, high)


@kernel
def pick_planes(image, out, channels, y_first, x_first):
    """Nearest pixel along both axes: copies, no arithmetic."""
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    offsets = np.empty(len(x_first), np.uint32)
    for x in range(len(x_first)):
        offsets[x] = x_first[x] * channels
    for p in range(len(image)):
        for y in range(len(y_first)):
            source, target = image[p, y_first[y]], out[p, y]
            if channels == 3:
                for x in range(len(offsets)):
                    a, b = np.uint64(offsets[x]), np.uint64(x) * three
                    red, green, blue = source[a], source[a + one], source[a + two]
                    target[b] = red
                    target[b + one] = green
                    target[b + two] = blue
            else:
                b = np.uint64(0)
                for x in range(len(offsets)):
                    for c in range(channels):
                        target[b] = source[np.uint64(offsets[x]) + np.uint64(c)]
                        b += one


@kernel
def filter_rows(image, out, first, weights, rounding, low, high):
    """Resample the middle axis of `[outer, n, inner]`."""
    inner = image.shape[2]
    line = np.empty(inner, np.float32)
    for o in range(len(image)):
        for i in range(len(first)):
            add_rows(image[o], first[i], weights[i], 0, inner, line)
            put_row(line, out[o, i], rounding, low, high)


def resample(image: np.ndarray, out: np.ndarray, axes: tuple[int, ...], start, end, kind, radius) -> None:
    """Resample `image` along `axes` (ascending) into `out`. `start`, `end`, `kind`, `radius` have a value an axis.

    The last two axes, if neighbours, are done together; each other one in a pass of its own, with float32 in
    between, those that shrink most first.
    """
    if out.size == 0 or image.size == 0:
        return
    order = _order(image.shape, out.shape, axes)
    for number, group in enumerate(order):
        shape = list(image.shape)
        for i in group:
            shape[axes[i]] = out.shape[axes[i]]
        last = number == len(order) - 1
        target = out if last else host_empty(shape, out.dtype if _exact(image, out, kind, group) else F32)
        _pass(image, target, *([values[i] for i in group] for values in (axes, start, end, kind, radius)))
        image = target
    if not order:
        np.copyto(out, image, casting="unsafe")


def _exact(image, out, kind, group) -> bool:
    return image.dtype == out.dtype and all(kind[i] in _NEAREST for i in group)


def _order(shape: tuple[int, ...], out_shape: tuple[int, ...], axes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Numbers of the axes, grouped into passes."""
    numbers = list(range(len(axes)))
    pair = []
    if len(axes) >= 2 and axes[-1] == axes[-2] + 1:
        pair = [tuple(numbers[-2:])]
        numbers = numbers[:-2]

    def growth(group: tuple[int, ...]) -> float:
        return math.prod(out_shape[axes[i]] / shape[axes[i]] for i in group)

    return sorted([*((i,) for i in numbers), *pair], key=growth)


def _pass(image, out, axes, start, end, kind, radius) -> None:
    """One pass over one axis, or over two neighbouring ones."""
    y, x = axes[0], axes[-1]
    outer, inner = math.prod(image.shape[:y]), math.prod(image.shape[x + 1 :])
    height, width, height_out, width_out = image.shape[y], image.shape[x], out.shape[y], out.shape[x]
    if y < x:
        nearest = kind[0] in _NEAREST and kind[1] in _NEAREST
        down = axis_taps(height_out, height, start[0], end[0], kind[0], radius[0], nearest)
        across = axis_taps(width_out, width, start[1], end[1], kind[1], radius[1], False)
    else:
        taps = axis_taps(width_out, width, start[0], end[0], kind[0], radius[0], False)
        if inner >= _WIDE:
            shape, shape_out = (outer, width, inner), (outer, width_out, inner)
            filter_rows(image.reshape(shape), out.reshape(shape_out), *taps, *_range_of(out.dtype))
            return
        height, height_out, outer = outer, outer, 1
        nearest, across = kind[0] in _NEAREST, taps
        down = np.arange(height), np.ones((height, 1), F32)
    image = image.reshape(outer, height, width * inner)
    out = out.reshape(outer, height_out, width_out * inner)
    if nearest and image.dtype == out.dtype:
        pick_planes(image, out, inner, down[0], across[0])
    else:
        filter_planes(image, out, inner, *down, *across, *_range_of(out.dtype))


_NEAREST = (NN, NN_FUSED)

# Elements behind an axis from which on it is cheaper to add rows than to step along them.
_WIDE = 16


def _range_of(dtype: np.dtype) -> tuple[bool, np.float32, np.float32]:
    """Whether results are rounded, and to what they are clamped."""
    if dtype.kind == "f":
        return False, F32(0), F32(0)
    info = np.iinfo(dtype)
    return True, F32(info.min), F32(info.max)
