"""Where the pixels of a warped image come from: affine maps, waves, a sphere; and volumes.

Points are float32 and worked out in DALI's order: the last bit decides between two pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._cpu.jit import inner_kernel, kernel
from ndd._cpu.rgb_sampling import words_of
from ndd._cpu.sampling import border_index, place_type, rounded, sample_rows

_TILE = 256  # DALI adds steps up over so many pixels of a row
_POINTS = 1 << 15  # that are worked out before they are read: they stay in the cache


def warped(points: Callable[..., None], image: np.ndarray, out: np.ndarray, how: tuple[Any, ...], *given: Any) -> None:
    """An image [H, W, C] read at what one of the `..._points` below says; neither array is empty.

    `how` is (nearest, border, fill, stored fill, rounds, low, high), see `sample_rows`.
    """
    height, width, _ = out.shape
    words, out_words = words_of(image, out)
    place = np.empty((4, width), place_type(image))
    rows = min(height, 1 + _POINTS // width)
    xs, ys = np.empty((rows, width), np.float32), np.empty((rows, width), np.float32)
    for first in range(0, height, rows):
        some_x, some_y = xs[: height - first], ys[: height - first]
        points(first, some_x, some_y, *given)
        sample_rows(image, words, some_x, some_y, place, out, out_words, first, *how)


@kernel
def affine_points(first, xs, ys, m):
    """m @ (x + 0.5, y + 0.5, 1)."""
    for k in range(len(xs)):
        _affine_line(m, first + k, xs[k], ys[k])


@inner_kernel
def _affine_line(m, y, xs, ys):
    """Points m @ (x + 0.5, y + 0.5, 1) of a row: steps added up, which decides between two pixels."""
    half, tile = np.float32(0.5), np.float32(_TILE)
    across, down = m[0, 0], m[1, 0]
    v = np.float32(y) + half
    left, top = m[0, 1] * v + (across * half + m[0, 2]), m[1, 1] * v + (down * half + m[1, 2])
    for start in range(0, xs.size, _TILE):
        _added_up(left, top, across, down, xs[start : start + _TILE], ys[start : start + _TILE])
        left, top = left + across * tile, top + down * tile


@inner_kernel
def _added_up(x, y, across, down, xs, ys):
    for i in range(xs.size):
        xs[i], ys[i] = x, y
        x, y = x + across, y + down


@kernel
def bring_near(flat):
    """Reads a byte of each cache line: in order, which is much faster than as a turned row comes upon them."""
    found = np.uint8(0)
    for i in range(0, flat.size, 64):
        found |= flat[i]
    return found


@kernel
def water_points(first, xs, ys, wave):
    """(x + a sin(f y + p), y + b cos(g x + q)); `wave` is [a, f, p, b, g, q]."""
    shift = np.empty(xs.shape[1], np.float32)
    for x in range(xs.shape[1]):
        shift[x] = wave[3] * np.cos(wave[4] * np.float32(x) + wave[5])
    for k in range(len(xs)):
        y = np.float32(first + k)
        across = wave[0] * np.sin(wave[1] * y + wave[2])
        for x in range(xs.shape[1]):
            xs[k, x] = np.float32(x) + across
            ys[k, x] = y + shift[x]


@kernel
def sphere_points(first, xs, ys, height, width):
    """With d from the middle: middle + d |d| / (half of the longer side)."""
    half = np.float32(0.5)
    cx, cy = np.float32(width) * half, np.float32(height) * half
    longest = np.float32(max(width // 2, height // 2, 1))
    for k in range(len(xs)):
        v = np.float32(first + k) + half - cy
        for x in range(width):
            u = np.float32(x) + half - cx
            stretch = np.sqrt(u * u + v * v) / longest
            xs[k, x], ys[k, x] = cx + u * stretch, cy + v * stretch


@inner_kernel
def _axis_taps(at, n, nearest, border, index):
    """The one or two pixels of a line that a coordinate is made of (-1: the fill value); gives the share of the second."""
    value = at - np.float32(0.5) if nearest is None else at
    limit = np.float32(1 << 30)
    value = -limit if not value > -limit else min(value, limit)
    left = np.floor(value)
    first = int(left)
    index[0], index[1] = border_index(first, n, border), border_index(first + 1, n, border)
    return value - left


@inner_kernel
def _voxel_line(image, index, j, k, c, outside, px, qx):
    """Two voxels of a line, mixed."""
    a = b = outside
    if index[1, j] >= 0 and index[2, k] >= 0:
        if index[0, 0] >= 0:
            a = np.float32(image[index[2, k], index[1, j], index[0, 0], c])
        if index[0, 1] >= 0:
            b = np.float32(image[index[2, k], index[1, j], index[0, 1], c])
    return a * px + b * qx


@inner_kernel
def _linear_voxel(image, index, qx, qy, qz, fill, out, rounds, low, high):
    """A voxel from the eight around it; the order of the operations is DALI's."""
    one = np.float32(1)
    px, py = one - qx, one - qy
    for c in range(out.size):
        front = (
            _voxel_line(image, index, 0, 0, c, fill, px, qx) * py
            + _voxel_line(image, index, 1, 0, c, fill, px, qx) * qy
        )
        back = (
            _voxel_line(image, index, 0, 1, c, fill, px, qx) * py
            + _voxel_line(image, index, 1, 1, c, fill, px, qx) * qy
        )
        value = front + (back - front) * qz
        out[c] = min(max(rounded(value), low), high) if rounds else value


@inner_kernel
def _nearest_voxel(image, index, stored_fill, out, rounds, low, high):
    for c in range(out.size):
        if index[0, 0] < 0 or index[1, 0] < 0 or index[2, 0] < 0:
            out[c] = stored_fill
            continue
        value = image[index[2, 0], index[1, 0], index[0, 0], c]
        if rounds:
            out[c] = min(max(rounded(np.float32(value)), low), high)
        else:
            out[c] = value


@kernel
def warp_volume(image, out, m, nearest, border, fill, stored_fill, rounds, low, high):
    """`warp_affine` of [D, H, W, C]: m is 3x4 and takes (x, y, z, 1)."""
    depth, height, width, _ = out.shape
    index = np.empty((3, 2), np.int64)
    half = np.float32(0.5)
    at, start = np.empty(3, np.float32), np.empty(3, np.float32)
    for z in range(depth):
        w = np.float32(z) + half
        for y in range(height):
            v = np.float32(y) + half
            for a in range(3):
                start[a] = m[a, 2] * w + (m[a, 1] * v + (m[a, 0] * half + m[a, 3]))
            for x in range(width):
                if x % _TILE == 0:
                    for a in range(3):
                        at[a] = start[a]
                        start[a] += m[a, 0] * np.float32(_TILE)
                qx = _axis_taps(at[0], image.shape[2], nearest, border, index[0])
                qy = _axis_taps(at[1], image.shape[1], nearest, border, index[1])
                qz = _axis_taps(at[2], image.shape[0], nearest, border, index[2])
                if nearest is None:
                    _linear_voxel(image, index, qx, qy, qz, fill[0], out[z, y, x], rounds, low, high)
                else:
                    _nearest_voxel(image, index, stored_fill[0], out[z, y, x], rounds, low, high)
                for a in range(3):
                    at[a] += m[a, 0]
