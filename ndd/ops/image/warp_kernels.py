"""The source points of a warped image's pixels: affine maps, waves, a sphere. Also the warp of volumes.

Points are float32, computed in DALI's order, because the last bit decides between two pixels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._compiled.intrinsics import empty, multiply_add, overlapping
from ndd._compiled.jit import kernel
from ndd._compiled.libm import c_cos, c_sin
from ndd._compiled.simd import prefetch_to_read
from ndd._cpu.sampling import linear_taps, nearest_points, nearest_taps, sample_rows, store_row

_TILE = 256  # DALI accumulates steps over this many pixels of a row
_POINTS = 1 << 15  # computed at a time, so that they stay in the cache
_STREAMS = 16  # rows of an image that a processor prefetches at once
_NEAR = 1 << 20  # bytes that fit into the cache of one core
LARGE = 1 << 30  # from this many elements on places need more than 32 bits
CENTRED = 4  # rows of a matrix for `centred_points`, or one more
_OUTSIDE = np.int64(-(1 << 60))
NO_MATRIX, NO_WAVE, APPLIED = np.empty((0, 0), np.float32), np.empty(0, np.float32), np.int32(1)
"""Empty arguments for `warp_image`, of the types of the real ones."""


@kernel
def warp_image(image, out, applied, matrix, wave, rgb, large, nearest, border, fill, stored_fill, rounds, low, high):
    """Warps an image [H, W, C]. The points come from one of the `..._points` below: `affine_points` of `matrix`,
    `centred_points` if it has `CENTRED` rows or more, `water_points` of `wave`, or `sphere_points` if both are empty
    (`NO_MATRIX`, `NO_WAVE`), so that one compilation serves all. Neither image is empty. Without `applied` it copies.

    `rgb` is None unless both images have RGB pixels in bytes, at least `LEAST` (`rgb_sampling.py`). `large` is None for images
    of less than `LARGE` elements. The other arguments are those of `sample_rows`.
    """
    if not applied:
        source, target = image.reshape(image.size), out.reshape(out.size)
        for i in range(out.size):
            target[i] = source[i]
        return
    height, width, _ = out.shape
    if rgb is None:
        words = None
        out_words = None
    else:
        words = overlapping(image.reshape(image.size), np.uint32)
        out_words = overlapping(out.reshape(out.size), np.uint32)
    # A rotated row visits cache lines in an order that a processor cannot predict.
    if matrix.size and abs(matrix[1, 0]) * width > _STREAMS and image.size * image.itemsize < _NEAR:
        bring_near(image.reshape(image.size))
    if large is None:  # 32-bit places are faster
        outside, place = np.int32(-LARGE), empty((4, width), np.int32)
    else:
        outside, place = _OUTSIDE, empty((4, width), np.int64)
    rows = min(height, 1 + _POINTS // width)
    all_x, all_y = empty((rows, width), np.float32), empty((rows, width), np.float32)
    for first in range(0, height, rows):
        xs, ys = all_x[: height - first], all_y[: height - first]
        if matrix.shape[0] >= CENTRED:
            centred_points(first, xs, ys, matrix)
        elif matrix.size:
            affine_points(first, xs, ys, matrix)
        elif wave.size:
            water_points(first, xs, ys, wave)
        else:
            sphere_points(first, xs, ys, height, width)
        sample_rows(
            image, words, xs, ys, place, outside, out, out_words, first,
            nearest, border, fill, stored_fill, rounds, low, high,
        )  # fmt: skip


warp_image.fallback()


@kernel
def affine_points(first, xs, ys, m):
    """m @ (x + 0.5, y + 0.5, 1)."""
    for k in range(len(xs)):
        _affine_line(m, first + k, xs[k], ys[k])


affine_points.fallback()


@kernel
def _affine_line(m, y, xs, ys):
    """Points m @ (x + 0.5, y + 0.5, 1) of a row. Steps are accumulated as in DALI, which decides between two pixels."""
    half, tile = np.float32(0.5), np.float32(_TILE)
    across, down = m[0, 0], m[1, 0]
    v = np.float32(y) + half
    left, top = m[0, 1] * v + (across * half + m[0, 2]), m[1, 1] * v + (down * half + m[1, 2])
    for start in range(0, xs.size, _TILE):
        _added_up(left, top, across, down, xs[start : start + _TILE], ys[start : start + _TILE])
        left, top = left + across * tile, top + down * tile


@kernel
def _added_up(x, y, across, down, xs, ys):
    for i in range(xs.size):
        xs[i], ys[i] = x, y
        x, y = x + across, y + down


@_added_up.fallback
def _(x, y, across, down, xs, ys):
    xs[:], ys[:] = across, down
    xs[0], ys[0] = x, y
    np.add.accumulate(xs, out=xs)
    np.add.accumulate(ys, out=ys)


@kernel
def centred_points(first, xs, ys, m):
    """The points of torch's `grid_sample` for the rule "torchvision": the same numbers with the same roundings.

    The rows of `m` are [a, b, c], [d, e, f], from pixels relative to the centre of the result to fractions of the image from -1
    to 1; [x, y, 1 for the nearest pixel], the first pixel of the result relative to its centre; and [half of the width, half of
    the height, whether both products are rounded] of the image. For a perspective the fractions are from 0 to 2 before the
    division by the value of a fifth row.
    """
    half, one, rounded = np.float32(0.5), np.float32(1), m[3, 2] != 0
    for k in range(len(xs)):
        v = m[2, 1] + np.float32(first + k)
        for i in range(xs.shape[1]):
            u = m[2, 0] + np.float32(i)
            x, y = _share(u, v, m[0], rounded), _share(u, v, m[1], rounded)
            if m.shape[0] > CENTRED:
                z = _share(u, v, m[4], rounded)
                x, y = x / z - one, y / z - one
            x, y = (x + one) * m[3, 0] - half, (y + one) * m[3, 1] - half
            if m[2, 2] != 0:  # halves to even
                x, y = np.rint(x), np.rint(y)
            xs[k, i], ys[k, i] = x + half, y + half


@kernel(light=True)
def _share(u, v, row, rounded):
    added = v * row[1] + u * row[0] if rounded else multiply_add(v, row[1], u * row[0])
    return added + row[2]


@centred_points.fallback
def _(first, xs, ys, m):
    u, v = m[2, 0] + np.arange(xs.shape[1], dtype=np.float32), m[2, 1] + first + np.arange(len(xs), dtype=np.float32)
    exact = np.float32 if m[3, 2] else np.float64
    sums = [(v[:, None].astype(exact) * row[1] + u * row[0]).astype(np.float32) + row[2] for row in m]
    for out, share, extent in ((xs, sums[0], m[3, 0]), (ys, sums[1], m[3, 1])):
        if len(m) > CENTRED:
            with np.errstate(divide="ignore", invalid="ignore"):
                share = share / sums[4] - np.float32(1)
        at = (share + np.float32(1)) * extent - np.float32(0.5)
        out[...] = (np.rint(at) if m[2, 2] else at) + np.float32(0.5)


@kernel
def bring_near(flat):
    """Loads an image into the cache in order, which is much faster than in the order of a rotated row."""
    for i in range(0, flat.size, 64 // flat.itemsize):
        prefetch_to_read(flat, i)


@kernel
def water_points(first, xs, ys, wave):
    """(x + a sin(f y + p), y + b cos(g x + q)); `wave` is [a, f, p, b, g, q]."""
    shift = empty(xs.shape[1], np.float32)
    for x in range(xs.shape[1]):
        shift[x] = wave[3] * c_cos(wave[4] * np.float32(x) + wave[5])
    for k in range(len(xs)):
        y = np.float32(first + k)
        across = wave[0] * c_sin(wave[1] * y + wave[2])
        for x in range(xs.shape[1]):
            xs[k, x] = np.float32(x) + across
            ys[k, x] = y + shift[x]


@water_points.fallback
def _(first, xs, ys, wave):
    down, right = first + np.arange(len(xs), dtype=np.float32), np.arange(xs.shape[1], dtype=np.float32)
    sine, cosine = c_sin.in_python(), c_cos.in_python()
    across = np.array([sine(a) for a in wave[1] * down + wave[2]], np.float32) * wave[0]
    shift = np.array([cosine(a) for a in wave[4] * right + wave[5]], np.float32) * wave[3]
    np.add(right, across[:, None], out=xs)
    np.add(down[:, None], shift, out=ys)


@kernel
def sphere_points(first, xs, ys, height, width):
    """With d relative to the centre: centre + d |d| / (half of the longer side)."""
    half = np.float32(0.5)
    cx, cy = np.float32(width) * half, np.float32(height) * half
    longest = np.float32(max(width // 2, height // 2, 1))
    for k in range(len(xs)):
        v = np.float32(first + k) + half - cy
        for x in range(width):
            u = np.float32(x) + half - cx
            stretch = np.sqrt(u * u + v * v) / longest
            xs[k, x], ys[k, x] = cx + u * stretch, cy + v * stretch


@sphere_points.fallback
def _(first, xs, ys, height, width):
    half = np.float32(0.5)
    cx, cy = np.float32(width) * half, np.float32(height) * half
    u = np.arange(width, dtype=np.float32) + half - cx
    v = (first + np.arange(len(xs), dtype=np.float32) + half - cy)[:, None]
    stretch = np.sqrt(u * u + v * v) / np.float32(max(width // 2, height // 2, 1))
    xs[...], ys[...] = cx + u * stretch, cy + v * stretch


@kernel
def _volume_line(m, y, z, points):
    """`_affine_line` for a volume: m is 3x4 and maps (x, y, z, 1)."""
    half = np.float32(0.5)
    v, w = np.float32(y) + half, np.float32(z) + half
    for a in range(3):
        start = m[a, 2] * w + (m[a, 1] * v + (m[a, 0] * half + m[a, 3]))
        for x in range(points.shape[1]):
            if x % _TILE == 0:
                at = start
                start += m[a, 0] * np.float32(_TILE)
            points[a, x] = at
            at += m[a, 0]


@kernel
def _voxels_of_a_line(flat, a, b, px, qx, outside):
    """Interpolates between two voxels of a line."""
    first = np.float32(flat[a]) if a >= 0 else outside
    return first * px + (np.float32(flat[b]) if b >= 0 else outside) * qx


@kernel
def _linear_voxels(flat, channels, place, share, fill, row):
    """Interpolates each point from the eight voxels around it, in DALI's order of operations."""
    one, outside = np.float32(1), fill[0]
    for i in range(share.shape[1]):
        left, right = place[0, i], place[1, i]
        a, b = place[2, i] + place[4, i], place[3, i] + place[4, i]
        c, d = place[2, i] + place[5, i], place[3, i] + place[5, i]
        qx, qy, qz = share[0, i], share[1, i], share[2, i]
        px, py = one - qx, one - qy
        for k in range(channels):
            front = (
                _voxels_of_a_line(flat, left + a + k, right + a + k, px, qx, outside) * py
                + _voxels_of_a_line(flat, left + b + k, right + b + k, px, qx, outside) * qy
            )
            back = (
                _voxels_of_a_line(flat, left + c + k, right + c + k, px, qx, outside) * py
                + _voxels_of_a_line(flat, left + d + k, right + d + k, px, qx, outside) * qy
            )
            row[i * channels + k] = front + (back - front) * qz


def warp_volume(image: np.ndarray, out: np.ndarray, m: np.ndarray, *how: Any) -> None:
    """Warps a volume [D, H, W, C], read at m @ (x + 0.5, y + 0.5, z + 0.5, 1)."""
    _warp_volume(image, _OUTSIDE, out, m, *how)


@kernel
def _warp_volume(image, outside, out, m, nearest, border, fill, stored_fill, rounds, low, high):
    width, channels = out.shape[2], out.shape[3]
    flat = image.reshape(image.size)
    line_step = image.shape[2] * channels
    steps = (channels, line_step, image.shape[1] * line_step)
    points, pixel = empty((3, width), np.float32), empty(width, np.int32)
    place, share = empty((6, width), np.int64), empty((3, width), np.float32)
    row = empty(width * channels, np.float32)
    for z in range(out.shape[0]):
        for y in range(out.shape[1]):
            _volume_line(m, y, z, points)
            line = out[z, y].reshape(width * channels)
            for a in range(3):
                n, first, second = image.shape[2 - a], place[2 * a], place[2 * a + 1]
                if nearest is None:
                    linear_taps(points[a], n, steps[a], border, outside, first, second, share[a], pixel)
                else:
                    nearest_taps(points[a], n, steps[a], border, outside, first, pixel)
            if nearest is None:
                _linear_voxels(flat, channels, place, share, fill, row)
                store_row(row, line, rounds, low, high)
            else:
                for i in range(width):
                    place[2, i] += place[4, i]
                nearest_points(flat, channels, place, stored_fill, line, rounds, low, high)
