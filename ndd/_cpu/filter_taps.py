"""The filters of resampling: the source pixels of each output pixel, and their weights.

Verified against DALI 2.4.0, to the last bit: filters other than the triangle are looked up, with linear
interpolation, in a table (65, 129 and 193 entries for GAUSSIAN, CUBIC and LANCZOS3), all in float32.
"""

from __future__ import annotations

import math

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel

F32 = np.float32
NN, CUBIC, LANCZOS3, TRIANGULAR, GAUSSIAN = 0, 2, 3, 4, 5
# CV-CUDA's nearest pixel. It differs from NN if two pixels are equally near.
NN_FUSED = 6
# The filters of torch and torchvision, with weights by formula, for pixels of the region only (see `exact_taps`): the nearest
# pixel by its corner or by its centre, three filters that are widened if an axis shrinks, and two that are not.
NN_CORNER, NN_CENTRE, SHARP_TRIANGLE, SHARP_CUBIC, SHARP_LANCZOS, NARROW_TRIANGLE, NARROW_CUBIC = range(7, 14)


def _gaussian_table() -> np.ndarray:
    t = (np.arange(65) - 32) / 32
    return np.exp(-4 * t * t).astype(F32)


def _cubic_table() -> np.ndarray:
    t = np.abs(np.arange(129) - 64) / 32
    near, far = (1.5 * t - 2.5) * t * t + 1, ((-0.5 * t + 2.5) * t - 4) * t + 2
    return np.where(t < 1, near, np.where(t < 2, far, 0)).astype(F32)


def _lanczos_table() -> np.ndarray:
    t = ((np.arange(97) - 96) / 32).astype(F32)
    half = _sinc(t) * _sinc(t / F32(3))
    half[0] = 0
    # The C library's sine, because DALI's table is computed with it: it is not correctly rounded everywhere.
    for entry, towards in ((61, -1), (79, 0), (86, 1), (87, 1), (93, 1)):
        half[entry] = np.nextafter(half[entry], F32(towards))
    return np.concatenate([half, half[-2::-1]])


def _sinc(t: np.ndarray) -> np.ndarray:
    angle = (t.astype(np.float64) * math.pi).astype(F32)
    with np.errstate(invalid="ignore"):
        return np.where(t == 0, F32(1), np.sin(angle.astype(np.float64)).astype(F32) / angle)


_TRIANGLE_TABLE = np.array([0, 1, 0], F32)
_GAUSSIAN_TABLE = _gaussian_table()
_CUBIC_TABLE = _cubic_table()
_LANCZOS_TABLE = _lanczos_table()


@kernel
def filter_table(kind):
    """The samples of a filter over its whole support."""
    if kind == CUBIC:
        return _CUBIC_TABLE
    if kind == LANCZOS3:
        return _LANCZOS_TABLE
    if kind == GAUSSIAN:
        return _GAUSSIAN_TABLE
    return _TRIANGLE_TABLE


@kernel
def filter_support(kind, radius):
    """Width of a filter in source pixels. That of the Gaussian is rounded as in DALI, which determines its taps."""
    if kind == GAUSSIAN:
        sigma = np.float32(np.float64(radius) * 0.5 / math.sqrt(2.0))
        return sigma * np.float32(4 * math.sqrt(2.0))
    return np.float32(2) * radius


@kernel
def tap_count(kind, radius):
    """The number of source pixels for an output pixel."""
    if kind in (NN, NN_FUSED, NN_CORNER, NN_CENTRE):
        return 1
    if kind > NN_CENTRE:
        return np.int64(math.ceil(np.float32(2) * radius)) + (1 if kind < NARROW_TRIANGLE else 0)
    last = np.float32(128 if kind == CUBIC else 192 if kind == LANCZOS3 else 64 if kind == GAUSSIAN else 2)
    return np.int64(math.ceil(last / (last / filter_support(kind, radius))))


@kernel
def reach(n_in, start, end, kind, radius):
    """The first source pixel that an output pixel may read, and the one after the last. DALI counts one more for NN."""
    half, spare = np.float32(0), 1
    if kind not in (NN, NN_FUSED, NN_CORNER, NN_CENTRE):
        half, spare = np.float32(0.5) * filter_support(kind, radius), 0
    low = min(max(np.int64(math.floor(min(start, end) - half)), 0), n_in - 1)
    high = np.int64(math.ceil(max(start, end) + half)) + spare
    return low, max(min(high, n_in), low + 1)


@kernel
def nearest_taps(n_out, n_in, start, end, origin_at, accumulate):
    """The source pixel of each output pixel. `accumulate` steps from pixel to pixel, as DALI does along all axes but
    the last. Coordinates are relative to source pixel `origin_at`, which decides between two equally near pixels."""
    first = empty(n_out, np.int64)
    start, end = start - np.float32(origin_at), end - np.float32(origin_at)
    scale = (end - start) / np.float32(n_out)
    position = start + np.float32(0.5) * scale
    for i in range(n_out):
        if not accumulate:
            position = (np.float32(i) + np.float32(0.5)) * scale + start
        first[i] = min(max(np.int64(math.floor(position)) + origin_at, 0), n_in - 1)
        position += scale
    return first


nearest_taps.fallback()


@kernel
def fused_nearest_taps(n_out, n_in, start, end):
    """The source pixel of each output pixel, at a multiple of the scale, added with a single rounding."""
    first = empty(n_out, np.int64)
    scale = (end - start) / np.float32(n_out)
    origin = np.float64(start + np.float32(0.5) * scale)
    for i in range(n_out):
        position = np.float32(i * np.float64(scale) + origin)
        first[i] = min(max(np.int64(math.floor(position)), 0), n_in - 1)
    return first


fused_nearest_taps.fallback()


@kernel
def exact_weight(kind, x):
    """The value of torch's filter at `x`, in units of its width: a cubic has a = -0.5 if it may be widened, else -0.75."""
    x, one, two = abs(x), np.float32(1), np.float32(2)
    if kind in (SHARP_TRIANGLE, NARROW_TRIANGLE):
        return max(one - x, np.float32(0))
    if kind == SHARP_LANCZOS:
        if x >= np.float32(3):
            return np.float32(0)
        if x == np.float32(0):
            return one
        angle = np.float64(x) * math.pi
        return np.float32(3 * math.sin(angle) * math.sin(angle / 3) / (angle * angle))
    a = np.float32(-0.5) if kind == SHARP_CUBIC else np.float32(-0.75)
    if x < one:
        return ((a + two) * x - (a + np.float32(3))) * x * x + one
    if x < two:
        return (((x - np.float32(5)) * x + np.float32(8)) * x - np.float32(4)) * a
    return np.float32(0)


@kernel
def exact_taps(n_out, n_in, start, end, kind, radius):
    """First source index `[n_out]` and weights `[n_out, taps]` by the rule of torch, Pillow and torchvision.

    Only pixels of the region are used, as if it had been cut out before: widened filters leave out pixels beyond it and are
    scaled to sum 1, the others repeat its edge. Pixels outside the image count as 0. Numbers are float32 where torch's are.
    """
    half, one = np.float32(0.5), np.float32(1)
    low = np.int64(math.floor(min(start, end)))
    extent = max(np.int64(math.ceil(max(start, end))) - low, 1)
    mirrored = end < start
    scale = np.float32(np.float64(abs(end - start)) / np.float64(n_out))
    taps = tap_count(kind, radius)
    first, weights = empty(n_out, np.int64), np.zeros((n_out, taps), np.float32)
    widened = max(scale, one)
    for i in range(n_out):
        place = n_out - 1 - i if mirrored else i
        if kind in (NN_CORNER, NN_CENTRE):
            shift = half if kind == NN_CENTRE else np.float32(0)
            pixel = min(np.int64(math.floor((np.float32(place) + shift) * scale)), extent - 1)
            first[i], weights[i, 0] = min(max(low + pixel, 0), n_in - 1), one
            continue
        centre, total = scale * (np.float32(place) + half), np.float32(0)
        if kind >= NARROW_TRIANGLE:
            begin = np.int64(math.floor(centre - half)) - (taps // 2 - 1)
            lowest = min(max(begin, 0), max(extent - taps, 0))
            for k in range(taps):
                weight = exact_weight(kind, np.float32(begin + k) - (centre - half))
                weights[i, min(max(begin + k, 0), extent - 1) - lowest] += weight
        else:
            lowest = max(np.int64(centre - radius + half), 0)
            behind = min(np.int64(centre + radius + half), extent)
            lowest = min(lowest, extent - 1)
            for k in range(min(behind - lowest, taps)):
                weight = exact_weight(kind, (np.float32(lowest + k) - centre + half) * (one / widened))
                weights[i, k] = weight
                total += weight
            for k in range(taps):
                weights[i, k] /= total
        first[i] = low + lowest
        for k in range(taps):
            if first[i] + k < 0 or first[i] + k >= n_in:
                weights[i, k] = 0
        if first[i] < 1 - taps or first[i] >= n_in:  # all taps are outside: any valid index will do
            first[i] = min(max(first[i], 1 - taps), n_in - 1)
    return first, weights


@kernel
def quantise(weights):
    """Quantises weights as torch does for bytes: 16 bits, with as many fraction bits as the largest weight allows."""
    largest, precision = np.float32(0), 0
    for i in range(weights.shape[0]):
        for k in range(weights.shape[1]):
            largest = max(largest, weights[i, k])
    while precision < 22 and np.int64(0.5 + np.float64(largest) * (1 << (precision + 1))) < 1 << 15:
        precision += 1
    unit = np.float64(1 << precision)
    for i in range(weights.shape[0]):
        for k in range(weights.shape[1]):
            weight = np.float64(weights[i, k]) * unit
            weights[i, k] = np.trunc(weight + np.copysign(0.5, weight)) / unit


@kernel
def cut_taps(first, weights, skip, count):
    """The taps of `count` output pixels from number `skip` on; beyond them those at the edge are repeated."""
    whole, taps = weights.shape
    if skip == 0 and count == whole:
        return first, weights
    part, part_weights = empty(count, np.int64), empty((count, taps), np.float32)
    for i in range(count):
        place = min(max(skip + i, 0), whole - 1)
        part[i] = first[place]
        for k in range(taps):  # a row assigned as a whole brings numba's texts for rows that do not fit: 0.7 s
            part_weights[i, k] = weights[place, k]
    return part, part_weights


cut_taps.fallback()


@kernel
def window_taps(n_out, n_in, start, end, kind, radius, origin_at):
    """First source index `[n_out]` and weights `[n_out, taps]` of each output pixel for a filter of DALI's; taps may lie outside
    the image. Coordinates are relative to source pixel `origin_at`, which changes their last bits."""
    start, end = start - np.float32(origin_at), end - np.float32(origin_at)
    table = filter_table(kind)
    last = len(table) - 1
    scale = (end - start) / np.float32(n_out)
    step = np.float32(last) / filter_support(kind, radius)
    origin = start + (np.float32(0.5) * scale - np.float32(0.5) - np.float32(last // 2) / step)
    taps = tap_count(kind, radius)
    first = empty(n_out, np.int64)
    weights = empty((n_out, taps), np.float32)
    for i in range(n_out):
        left = np.float32(i) * scale + origin
        index = np.int64(math.ceil(left))
        # All taps beyond an edge read the edge pixel, so one tap inside is enough.
        first[i] = min(max(index + origin_at, 1 - taps), n_in - 1)
        total = np.float32(0)
        for k in range(taps):
            x = ((np.float32(index) - left) + np.float32(k)) * step
            j = int(x)
            weight = np.float32(0)
            if last == 2:
                weight = max(min(x, np.float32(2) - x), weight)
            elif j <= last:
                behind = table[j + 1] if j < last else weight
                weight = table[j] + (x - np.float32(j)) * (behind - table[j])
            weights[i, k] = weight
            total += weight
        for k in range(taps):
            weights[i, k] /= total
    return first, weights


@window_taps.fallback
def _(n_out, n_in, start, end, kind, radius, origin_at):
    start, end, none = F32(start) - F32(origin_at), F32(end) - F32(origin_at), F32(0)
    table, support, taps = (
        filter_table.function(kind),
        filter_support.function(kind, radius),
        tap_count.in_python()(kind, radius),
    )
    last = len(table) - 1
    scale, step = (end - start) / F32(n_out), F32(last) / support
    origin = start + (F32(0.5) * scale - F32(0.5) - F32(last // 2) / step)
    left = np.arange(n_out).astype(F32) * scale + origin
    index = np.ceil(left).astype(np.int64)
    x = ((index.astype(F32) - left)[:, None] + np.arange(taps).astype(F32)) * step
    if last == 2:
        weights = np.maximum(np.minimum(x, F32(2) - x), none)
    else:
        j = np.minimum(x.astype(np.int64), last + 1)
        table = np.concatenate([table, np.zeros(2, F32)])
        low, behind = table[j], table[np.minimum(j + 1, last + 1)]
        weights = np.where(j <= last, low + (x - j.astype(F32)) * (behind - low), none)
    total = none
    for k in range(taps):  # in this order
        total = total + weights[:, k]
    return np.clip(index + origin_at, 1 - taps, n_in - 1), weights / np.reshape(total, (-1, 1))


@kernel
def axis_taps(n_out, n_in, start, end, kind, radius, origin_at, accumulate):
    """The same for any filter. `accumulate`: see `nearest_taps`."""
    if kind == NN:
        return nearest_taps(n_out, n_in, start, end, origin_at, accumulate), np.ones((n_out, 1), np.float32)
    if kind == NN_FUSED:
        return fused_nearest_taps(n_out, n_in, start, end), np.ones((n_out, 1), np.float32)
    if kind >= NN_CORNER:
        return exact_taps(n_out, n_in, start, end, kind, radius)
    return window_taps(n_out, n_in, start, end, kind, radius, origin_at)


axis_taps.fallback()
