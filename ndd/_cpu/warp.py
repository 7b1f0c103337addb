"""Where the pixels of a warped image come from: affine and perspective maps, waves, a sphere, maps given as images.

Every kernel here takes `image` and `out` [H, W, C], what its map needs, and `how`: (nearest, border, fill, rounds, low,
high), see `ndd._cpu.sampling`. Coordinates are float32, as DALI computes them.
"""

from __future__ import annotations

import numpy as np

from ndd._cpu.jit import kernel
from ndd._cpu.sampling import border_index, sample_row


@kernel
def warp_affine(image, out, m, nearest, border, fill, rounds, low, high):
    """Pixel (x, y) is read at m @ (x + 0.5, y + 0.5, 1)."""
    height, width, channels = out.shape
    xs, ys = np.empty(width, np.float32), np.empty(width, np.float32)
    row, exact = np.empty(width * channels, np.float32), np.empty(width * channels, image.dtype)
    flat = out.reshape(height, width * channels)
    half = np.float32(0.5)
    for y in range(height):
        v = np.float32(y) + half
        for start in range(0, width, 256):  # steps added up, anew every 256 pixels: DALI's choice between two pixels
            u = np.float32(start) + half
            sx, sy = m[0, 0] * u + (m[0, 1] * v + m[0, 2]), m[1, 0] * u + (m[1, 1] * v + m[1, 2])
            for x in range(start, min(start + 256, width)):
                xs[x], ys[x] = sx, sy
                sx += m[0, 0]
                sy += m[1, 0]
        sample_row(image, xs, ys, row, exact, flat[y], nearest, border, fill, rounds, low, high)


@kernel
def warp_perspective(image, out, m, origin, nearest, border, fill, rounds, low, high):
    """Pixel (x, y) is read at m @ (x + o, y + o, 1), divided by its third component, from `o` of the first pixel."""
    height, width, channels = out.shape
    xs, ys = np.empty(width, np.float32), np.empty(width, np.float32)
    row, exact = np.empty(width * channels, np.float32), np.empty(width * channels, image.dtype)
    flat = out.reshape(height, width * channels)
    for y in range(height):
        v = y + origin
        for x in range(width):
            u = x + origin
            w = m[2, 0] * u + m[2, 1] * v + m[2, 2]
            w = 1 / w if w != 0 else 0.0
            xs[x] = (m[0, 0] * u + m[0, 1] * v + m[0, 2]) * w + (0.5 - origin)
            ys[x] = (m[1, 0] * u + m[1, 1] * v + m[1, 2]) * w + (0.5 - origin)
        sample_row(image, xs, ys, row, exact, flat[y], nearest, border, fill, rounds, low, high)


@kernel
def warp_water(image, out, wave, nearest, border, fill, rounds, low, high):
    """Pixel (x, y) is read at (x + a sin(f y + p), y + b cos(g x + q)); `wave` is [a, f, p, b, g, q]."""
    height, width, channels = out.shape
    xs, ys = np.empty(width, np.float32), np.empty(width, np.float32)
    shift = np.empty(width, np.float32)
    row, exact = np.empty(width * channels, np.float32), np.empty(width * channels, image.dtype)
    flat = out.reshape(height, width * channels)
    for x in range(width):
        shift[x] = wave[3] * np.cos(wave[4] * np.float32(x) + wave[5])
    for y in range(height):
        across = wave[0] * np.sin(wave[1] * np.float32(y) + wave[2])
        for x in range(width):
            xs[x] = np.float32(x) + across
            ys[x] = np.float32(y) + shift[x]
        sample_row(image, xs, ys, row, exact, flat[y], nearest, border, fill, rounds, low, high)


@kernel
def warp_sphere(image, out, nearest, border, fill, rounds, low, high):
    """With d from the middle, a pixel is read at middle + d |d| / (half of the longer side)."""
    height, width, channels = out.shape
    xs, ys = np.empty(width, np.float32), np.empty(width, np.float32)
    row, exact = np.empty(width * channels, np.float32), np.empty(width * channels, image.dtype)
    flat = out.reshape(height, width * channels)
    half = np.float32(0.5)
    cx, cy = np.float32(width) * half, np.float32(height) * half
    scale = np.float32(1) / np.float32(max(width // 2, height // 2, 1))
    for y in range(height):
        v = np.float32(y) + half - cy
        for x in range(width):
            u = np.float32(x) + half - cx
            stretch = np.sqrt(u * u + v * v) * scale
            xs[x], ys[x] = cx + u * stretch, cy + v * stretch
        sample_row(image, xs, ys, row, exact, flat[y], nearest, border, fill, rounds, low, high)


@kernel
def warp_by_maps(image, out, map_x, map_y, shift, nearest, border, fill, rounds, low, high):
    """Pixel (x, y) is read at (map_x[y, x], map_y[y, x]) + shift."""
    height, width, channels = out.shape
    xs, ys = np.empty(width, np.float32), np.empty(width, np.float32)
    row, exact = np.empty(width * channels, np.float32), np.empty(width * channels, image.dtype)
    flat = out.reshape(height, width * channels)
    for y in range(height):
        for x in range(width):
            xs[x], ys[x] = map_x[y, x] + shift, map_y[y, x] + shift
        sample_row(image, xs, ys, row, exact, flat[y], nearest, border, fill, rounds, low, high)


@kernel
def _axis_taps(at, n, nearest, border, index, weight):
    """The one or two pixels of a line that a coordinate is made of; -1 stands for the fill value."""
    value = at if nearest else at - np.float32(0.5)
    limit = np.float32(n + 1)
    value = -limit if not value > -limit else min(value, limit)
    first = int(np.floor(value))
    index[0], index[1] = border_index(first, n, border), border_index(first + 1, n, border)
    weight[1] = np.float32(0) if nearest else np.float32(value - first)
    weight[0] = np.float32(1) - weight[1]


@kernel
def warp_volume(image, out, m, nearest, border, fill, rounds, low, high):
    """`warp_affine` of [D, H, W, C]: m is 3x4 and takes (x, y, z, 1)."""
    depth, height, width, channels = out.shape
    index, weight = np.empty((3, 2), np.int64), np.empty((3, 2), np.float32)
    half = np.float32(0.5)
    taps = 1 if nearest else 2
    for z in range(depth):
        for y in range(height):
            for x in range(width):
                u, v, w = np.float32(x) + half, np.float32(y) + half, np.float32(z) + half
                for a in range(3):
                    at = m[a, 0] * u + m[a, 1] * v + m[a, 2] * w + m[a, 3]
                    _axis_taps(at, image.shape[2 - a], nearest, border, index[a], weight[a])
                for c in range(channels):
                    total = 0.0  # float64: a single pixel of an int32 volume stays exact
                    for k in range(taps):
                        for j in range(taps):
                            for i in range(taps):
                                value = np.float64(fill[0])
                                if index[0, i] >= 0 and index[1, j] >= 0 and index[2, k] >= 0:
                                    value = np.float64(image[index[2, k], index[1, j], index[0, i], c])
                                total += value * (weight[0, i] * weight[1, j] * weight[2, k])
                    if rounds:
                        total = min(max(np.rint(total), low), high)
                    out[z, y, x, c] = total
