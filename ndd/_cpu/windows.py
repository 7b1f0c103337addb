"""The windows of a batch: small loops over int64 arrays `[N, axes]`, in a tenth of the time of NumPy's calls; and `cut_bytes`,
which copies a window out of an array."""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import empty, zeros
from ndd._compiled.jit import kernel
from ndd._cpu.element_copies import copy_bytes, fill_line, filled, set_bytes

_MOST = np.int64((1 << 63) - 1)


@kernel(nogil=False)
def anchor_of(free, rounding):
    """Where a window begins that leaves `free` before it: see `ROUNDINGS` of window.py."""
    if rounding == 0:
        free += np.copysign(0.5, free)
    elif rounding == 2 and free > 0:
        free = np.rint(free)
    return np.int64(free)


@kernel(nogil=False)
def place_windows(extents, sizes, positions, rounding, anchors, shapes):
    """The windows of `crop`; `sizes` and `positions` are `[N or 1, axes]`.

    Returns the first sample and axis, as `sample * axes + axis`, whose position is not in [0, 1], else -1.
    """
    samples, axes = extents.shape
    for n in range(samples):
        for k in range(axes):
            size = sizes[n if len(sizes) > 1 else 0, k]
            anchors[n, k], shapes[n, k] = 0, extents[n, k]
            if not size >= 1:
                continue
            position = positions[n if len(positions) > 1 else 0, k]
            if not (position >= 0 and position <= 1):
                return n * axes + k
            shapes[n, k] = np.int64(size)
            # In float64: DALI's place of .7 (in f32 0.69999999) of 15 free pixels is 10, in 1500 of 1500 random windows.
            free = np.float64(extents[n, k] - shapes[n, k]) * position
            anchors[n, k] = anchor_of(free, rounding)
    return -1


@kernel(nogil=False)
def first_outside(anchors, shapes, extents):
    """The first sample whose window reaches outside, or -1."""
    for n in range(len(anchors)):
        for k in range(anchors.shape[1]):
            if anchors[n, k] < 0 or anchors[n, k] + shapes[n, k] > extents[n, k]:
                return n
    return -1


@kernel(nogil=False)
def join_axes(extents, starts, shapes, keep, joined, chunk, chunks):
    """Axes that are never cut joined to the one before, in the last places of `joined` `[3, N, slots]` (extent, start,
    size); `chunks` are the elements over `chunk`. Axis `keep` stays alone.

    Returns the number of axes that are left (if there is no room for them, no more than that), and the place of `keep`.
    """
    samples, axes = extents.shape
    slots = joined.shape[2]
    group = empty(axes, np.int64)
    groups, kept = 0, -1
    for k in range(axes):
        cut = False
        for n in range(samples):
            if starts[n, k] != 0 or extents[n, k] != shapes[n, k]:
                cut = True
                break
        if groups == 0 or cut or k == keep or groups - 1 == kept:
            groups += 1
            if k == keep:
                kept = groups - 1
        group[k] = groups - 1
    spare = slots - groups
    if spare < 0:
        return groups, -1
    for n in range(samples):
        for slot in range(slots):
            joined[0, n, slot], joined[1, n, slot], joined[2, n, slot] = 1, 0, 1
        total = 1
        for k in range(axes):
            slot = spare + group[k]
            joined[0, n, slot] *= extents[n, k]
            joined[1, n, slot] = joined[1, n, slot] * extents[n, k] + starts[n, k]
            joined[2, n, slot] *= shapes[n, k]
            total *= shapes[n, k]
        chunks[n] = (total + chunk - 1) // chunk
    return groups, spare + kept if kept >= 0 else -1


join_axes.fallback()


@kernel(nogil=False)
def grow_extents(extents, axes, least, multiple, shapes):
    """Extents of `pad`: `axes` are `[N or 1, k]`; `least` (below 1: the largest in the batch) and `multiple`
    `[N or 1, k or 1]`. Gives the first sample with a multiple below 1, else -1.
    """
    largest = zeros(extents.shape[1], np.int64)
    for n in range(len(extents)):
        for axis in range(len(largest)):
            largest[axis] = max(largest[axis], extents[n, axis])
            shapes[n, axis] = extents[n, axis]
    for n in range(len(extents)):
        own = axes[n if len(axes) > 1 else 0]
        for k in range(len(own)):
            axis = own[k]
            wanted = least[n if len(least) > 1 else 0, k if least.shape[1] > 1 else 0]
            wanted = max(wanted if wanted > 0 else largest[axis], extents[n, axis])
            step = multiple[n if len(multiple) > 1 else 0, k if multiple.shape[1] > 1 else 0]
            if step < 1:
                return n
            missing = (step - wanted % step) % step
            shapes[n, axis] = wanted + min(missing, _MOST - wanted)  # a sum would wrap; no memory holds that many
    return -1


@kernel
def cut_bytes(image, out, extents, starts, sizes, fill, item, inner):
    """The window of an array that begins at `starts` and has `sizes`, as bytes; parts outside of the array are filled
    (`fill_line`).

    `extents`, `starts` and `sizes` are of axes as `join_axes` joins them, the last one counted in bytes.
    """
    if not out.size:
        return
    axes, length = len(sizes), sizes[-1]
    low, high = max(starts[-1], 0), min(starts[-1] + length, extents[-1])
    width = max(high - low, 0)
    before = low - starts[-1] if width else length
    outside = width < length
    for k in range(axes - 1):
        outside |= starts[k] < 0 or starts[k] + sizes[k] > extents[k]
    plain = (
        outside  # the border is one byte again and again: then all of it that lies one after the other is one `memset`
    )
    for i in range(1, fill.size):
        plain &= fill[i] == fill[0]
    line = empty(length if outside and not plain else 0, np.uint8)
    filled, since = -1, 0
    index = zeros(axes, np.int64)
    source, target = np.uintp(image.ctypes.data), np.uintp(out.ctypes.data)
    border, behind = np.uintp(line.ctypes.data), np.uintp(before + width)
    for at in range(0, out.size, length):
        row, inside = 0, width > 0
        for k in range(axes - 1):
            place = starts[k] + index[k]
            inside &= 0 <= place < extents[k]
            row = row * extents[k] + place
        to = target + np.uintp(at)
        if outside and not plain and not (inside and width == length):
            filled = fill_line(line, fill, item, at // item, inner, filled)
        if plain:
            if inside:
                if since < at + before:
                    set_bytes(target + np.uintp(since), np.int32(fill[0]), np.uintp(at + before - since))
                copy_bytes(to + np.uintp(before), source + np.uintp(row * extents[-1] + low), np.uintp(width))
                since = at + before + width
        elif inside:
            if before:
                copy_bytes(to, border, np.uintp(before))
            copy_bytes(to + np.uintp(before), source + np.uintp(row * extents[-1] + low), np.uintp(width))
            if before + width < length:
                copy_bytes(to + behind, border + behind, np.uintp(length - before - width))
        else:
            copy_bytes(to, border, np.uintp(length))
        k = axes - 2
        while k >= 0:
            index[k] += 1
            if index[k] < sizes[k]:
                break
            index[k] = 0
            k -= 1
    if plain and since < out.size:
        set_bytes(target + np.uintp(since), np.int32(fill[0]), np.uintp(out.size - since))


@cut_bytes.fallback
def _(image, out, extents, starts, sizes, fill, item, inner):
    low, high = np.maximum(starts, 0), np.minimum(starts + sizes, extents)
    out[...] = filled(out.size // item, fill, item, inner).reshape(-1)
    if (low < high).all():
        source = tuple([slice(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)])
        target = tuple([slice(a, b) for a, b in zip((low - starts).tolist(), (high - starts).tolist(), strict=True)])
        out.reshape(sizes.tolist())[target] = image.reshape(extents.tolist())[source]
