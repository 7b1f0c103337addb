"""Computes output sizes, source regions and filters of resampling for a batch: small loops over float64 and int64 `[N, axes]`.

Numbers are rounded to float32 where DALI does so: this decides which of two equally near pixels "nearest" takes.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd._cpu.windows import anchor_of

DEFAULT, STRETCH, NOT_LARGER, NOT_SMALLER = range(4)
ROUND, TRUNCATE, CEIL = range(3)
_SMALLEST = 0.1  # a requested extent below this (in output pixels) widens the region no further


@kernel(nogil=False)
def _filled(wanted, source, mode, most, filled):
    """Extents of one sample after applying `mode` and `most` (0: no limit); negative: mirrored."""
    axes = len(wanted)
    limited = len(most) > 0
    n_sides, product = 0, 1.0
    smallest, largest = np.inf, 0.0
    for k in range(axes):
        if wanted[k] != 0 and source[k] != 0:
            scale = abs(np.float64(np.float32(wanted[k] / source[k])))
            n_sides += 1
            product *= scale
            smallest, largest = min(smallest, scale), max(largest, scale)
    if n_sides == 0:
        for k in range(axes):
            filled[k] = source[k]
        return
    if n_sides > 1:
        product = product ** (1.0 / n_sides)
    shared = smallest if mode == NOT_LARGER else largest
    if mode >= NOT_LARGER and limited:
        for k in range(axes):
            if most[k] > 0 and source[k] != 0:
                shared = min(shared, most[k] / abs(source[k]))
    for k in range(axes):
        is_given = wanted[k] != 0 and source[k] != 0
        if mode <= STRETCH:
            follow = source[k] if mode == STRETCH else source[k] * product
            filled[k] = wanted[k] if is_given else follow
        else:
            scale = np.float64(np.float32(wanted[k] / (source[k] if source[k] != 0 else 1.0)))
            follows = not is_given or abs(scale) != shared
            filled[k] = source[k] * np.copysign(shared, scale) if follows else wanted[k]
        if limited and most[k] > 0 and abs(filled[k]) > most[k]:
            filled[k] = np.copysign(most[k], filled[k])


@kernel(nogil=False)
def fit_extents(extents, wanted, mode, most, start, end, subpixel_scale, alignment, rounding, size, first, last):
    """`size` (int64), `first` and `last` (float32) of each axis: see `resize_geometry`. `alignment` is `[N or 1, axes]`."""
    samples, axes = extents.shape
    source, filled = empty(axes, np.float64), empty(axes, np.float64)
    for n in range(samples):
        for k in range(axes):
            source[k] = np.float64(np.float32(end[n, k] - start[n, k]))
        _filled(wanted[n], source, mode, most, filled)
        for k in range(axes):
            exact = np.float64(np.float32(filled[k]))
            magnitude = abs(exact)
            if rounding == ROUND:
                whole = np.floor(magnitude + 0.5)
            else:
                whole = np.ceil(magnitude) if rounding == CEIL else np.floor(magnitude)
            whole = max(whole, 1.0) if extents[n, k] > 0 else 0.0
            low, high = start[n, k], end[n, k]
            if exact < 0:
                low, high = high, low
            factor = whole / max(magnitude, _SMALLEST)
            if subpixel_scale and whole != magnitude and factor != 1:
                pivot = low + (high - low) * alignment[n if len(alignment) > 1 else 0, k]
                low, high = pivot + (low - pivot) * factor, pivot + (high - pivot) * factor
            size[n, k], first[n, k], last[n, k] = np.int64(whole), low, high


fit_extents.fallback()


@kernel(nogil=False)
def choose_filters(size, first, last, shrink, grow, widens, radii, kind, radius):
    """Kind and radius of every axis' filter. Filters of axes that shrink are widened by the scale if `widens[kind]`."""
    samples, axes = size.shape
    for n in range(samples):
        for k in range(axes):
            source = abs(last[n, k] - first[n, k])
            shrinks = np.float64(size[n, k]) < np.float64(source)
            chosen = shrink[n if len(shrink) > 1 else 0] if shrinks else grow[n if len(grow) > 1 else 0]
            kind[n, k], radius[n, k] = chosen, radii[chosen]
            if shrinks and widens[chosen]:
                radius[n, k] = radii[chosen] * source / np.float32(max(size[n, k], 1))


choose_filters.fallback()


@kernel(nogil=False)
def cut_windows(size, first, last, wanted, places, rounding, mirror, bits):
    """Limits resized images to windows: changes `size`, `first` and `last` of each axis in place.

    `wanted` (below 1: the whole extent, wherever its place is) and `places` are float64 `[N or 1, axes]`, `mirror` has the
    `bits` of the axes to mirror. Returns the first `sample * axes + axis` whose place is not in [0, 1], or -1.
    """
    samples, axes = size.shape
    for n in range(samples):
        for k in range(axes):
            place = places[n if len(places) > 1 else 0, k]
            extent = wanted[n if len(wanted) > 1 else 0, k]
            if extent >= 1 and not (place >= 0 and place <= 1):
                return n * axes + k
            window = np.int64(extent) if extent >= 1 else size[n, k]
            anchor = np.float64(anchor_of(place * np.float64(size[n, k] - window), rounding))
            low, high = first[n, k], last[n, k]
            if size[n, k] > 0:
                scale = np.float64(high - low) / max(size[n, k], 1)  # the difference is a float32
                if window != size[n, k]:
                    low, high = np.float32(low + anchor * scale), np.float32(low + (anchor + window) * scale)
                size[n, k] = window
            if mirror[n if len(mirror) > 1 else 0] & bits[k]:
                low, high = high, low
            first[n, k], last[n, k] = low, high
    return -1


cut_windows.fallback()
