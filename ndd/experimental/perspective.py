"""Perspective warps without OpenCV: RGB images in bytes, and points far outside a repeated image.

OpenCV walks from mirror image to mirror image until it is inside, and reads outside the image if a coordinate is NaN. For the
most common images this code takes three quarters of its time, bit for bit the same: each step corresponds to its vector code
for processors with fused multiply-add.
"""

from __future__ import annotations

import functools
import platform
from typing import Any

import numpy as np

from ndd._compiled.intrinsics import empty, multiply_add, overlapping
from ndd._compiled.jit import kernel
from ndd._compiled.processor import processor_has
from ndd._cpu.opencv import single_threaded
from ndd._cpu.rgb_sampling import mix_rgb, rgb_word, store_rgb, word_at
from ndd._cpu.sampling import border_index

_REPEATED = 2  # borders from this number on repeat the image without end
_NEAR = 64.0  # the most images that OpenCV may walk
_FAR = np.float32(1 << 30)  # coordinates from here on are outside
_ROUNDING = 1e-5  # more than the float32 rounding error of a sum of three products
_LINEAR, _INVERSE_MAP = 1, 16  # OpenCV's flags
_LANES = 16  # points that OpenCV computes at once; the rest of a row is added in another order


def _corners(targets: np.ndarray) -> np.ndarray:
    """The corner pixels of outputs, as columns (x, y, 1): `[N, 3, 4]`. `targets`: `[N, 2]`, H and W."""
    last = np.maximum(targets - 1, 0)
    corners = np.zeros((len(targets), 3, 4))
    corners[:, 0, 1::2], corners[:, 1, 2:], corners[:, 2] = last[:, 1:], last[:, :1], 1
    return corners


def beyond_opencv(maps: np.ndarray, sources: np.ndarray, targets: np.ndarray, cubic: bool, border: int) -> Any:
    """Whether each sample of a batch cannot be passed to OpenCV. `maps` [N, 3, 3] map output pixels to the input."""
    odd = ~np.isfinite(maps).all(axis=(1, 2))
    if border < _REPEATED:
        return odd
    with np.errstate(all="ignore"):
        x, y, w = (maps @ _corners(targets)).transpose(1, 0, 2)
        # If the third component keeps its sign, the farthest point is that of a corner.
        far = np.abs(np.stack([x, y], axis=1) / w[:, None]).max(axis=2) <= _NEAR * sources[:, ::-1]
        near = far.all(axis=1) & ((w > 0).all(axis=1) | (w < 0).all(axis=1))
    return odd | ~near | (cubic & (sources == 1).any(axis=1))


def keeps_sign(maps: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Whether the third component of all points of a sample has one sign, far enough from 0 for float32, so that no point is
    NaN. OpenCV's results for other points depend on those around them. `targets`: `[N, 2]`, H and W of the outputs."""
    corners = _corners(targets)
    with np.errstate(all="ignore"):
        third = (maps[:, 2:] @ corners)[:, 0]
        least = _ROUNDING * (np.abs(maps[:, 2]) * corners.max(axis=2)).sum(axis=1)
        return ((third > least[:, None]).all(axis=1) | (third < -least[:, None]).all(axis=1)) & np.isfinite(least)


@kernel
def _near(at, n, interp, border):
    """An equivalent coordinate of `at` that is not too large."""
    if not abs(at) < 1e300:
        return 0.0 if border else -8.0
    if interp == 2:  # OpenCV's limits
        longest = max(n, 16)
        return min(max(at, -longest), 2 * longest)
    if border < 2:
        return min(max(at, -8.0), n + 8.0)
    period = n if border == 4 else 2 * n if border == 2 else max(2 * n - 2, 1)
    return at - np.floor(at / period) * period if abs(at) > period else at


@kernel
def _taps(at, interp, weight):
    """The first pixel of a coordinate's interpolation, and their number. `weight` receives their weights."""
    if interp == 0:
        weight[0] = 1.0
        return int(np.rint(at)), 1
    first = int(np.floor(at))
    x = at - first
    if interp == 1:
        weight[0], weight[1] = 1 - x, x
        return first, 2
    a = -0.75
    weight[0] = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a
    weight[1] = ((a + 2) * x - (a + 3)) * x * x + 1
    weight[2] = ((a + 2) * (1 - x) - (a + 3)) * (1 - x) * (1 - x) + 1
    weight[3] = 1.0 - weight[0] - weight[1] - weight[2]
    return first - 1, 4


@kernel
def warp_perspective(image, out, m, interp, border, fill, rounds, low, high):
    """Pixel (x, y) of `out` [H, W, C] is read at m @ (x, y, 1), divided by its third component."""
    height, width, channels = image.shape
    across, down = empty(4, np.float64), empty(4, np.float64)
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            w = m[2, 0] * x + m[2, 1] * y + m[2, 2]
            u, v = (m[0, 0] * x + m[0, 1] * y + m[0, 2]) / w, (m[1, 0] * x + m[1, 1] * y + m[1, 2]) / w
            left, taps = _taps(_near(u, width, interp, border), interp, across)
            top, taps = _taps(_near(v, height, interp, border), interp, down)
            for c in range(channels):
                total = 0.0
                for j in range(taps):
                    row = border_index(top + j, height, border)
                    for i in range(taps):
                        column = border_index(left + i, width, border)
                        inside = row >= 0 and column >= 0
                        value = np.float64(image[row, column, c]) if inside else fill[c]
                        total += value * (down[j] * across[i])
                out[y, x, c] = min(max(np.rint(total), low), high) if rounds else total


@functools.cache
def multiplies_and_adds() -> bool:
    """Whether `warp_rgb` equals OpenCV on this processor."""
    return platform.machine().lower() in ("x86_64", "amd64") and processor_has("fma")


@kernel
def warp_rgb(image, out, matrix, fill):
    """Pixel (x, y) of `out` is read at matrix @ (x, y, 1), divided by its third component, between four pixels of `image`;
    pixels outside are `fill`. No point may be NaN (`keeps_sign`).

    Both images are uint8 [H, W, 3] of at least `LEAST` bytes (`rgb_sampling.py`); `matrix` is [3, 3] and fits float32."""
    m = empty((3, 3), np.float32)
    for i in range(3):
        for j in range(3):
            m[i, j] = matrix[i, j]
    height, width, _ = image.shape
    flat, wide = image.reshape(height * width * 3), out.shape[1]
    pairs = overlapping(flat, np.uint64)  # two pixels are read at once
    out_words = overlapping(out.reshape(out.size), np.uint32)
    stride = np.int32(3 * width)
    share, pixel, place = empty((2, wide), np.float32), empty((2, wide), np.int32), empty(wide, np.int32)
    tap, row = empty((4, wide), np.uint32), empty(wide, np.uint32)
    outside = rgb_word(fill)
    for y in range(len(out)):
        _perspective_line(np.float32(y), m, share[0], share[1], pixel[0], pixel[1])
        _place_pairs(pixel[0], pixel[1], width, height, pairs.size, place)
        for i in range(wide):
            at = place[i]
            if at >= 0:
                above, below = pairs[np.uint32(at)], pairs[np.uint32(at + stride)]
                tap[0, i], tap[1, i] = above, above >> np.uint64(24)
                tap[2, i], tap[3, i] = below, below >> np.uint64(24)
            else:
                left, top = np.int64(pixel[0, i]), np.int64(pixel[1, i])
                tap[0, i] = _pixel_or(flat, left, top, width, height, outside)
                tap[1, i] = _pixel_or(flat, left + 1, top, width, height, outside)
                tap[2, i] = _pixel_or(flat, left, top + 1, width, height, outside)
                tap[3, i] = _pixel_or(flat, left + 1, top + 1, width, height, outside)
        mix_rgb(tap[0], tap[1], tap[2], tap[3], share[0], share[1], row, True)
        store_rgb(row, out[y].reshape(3 * wide), out_words, 3 * wide * y)


@warp_rgb.fallback
def _(image, out, matrix, fill):
    flags = _LINEAR | _INVERSE_MAP
    single_threaded().warpPerspective(
        image, matrix, out.shape[1::-1], out, flags, borderValue=np.resize(fill, 3).tolist()
    )


@kernel
def _perspective_line(y, m, share_x, share_y, column, line):
    """The points of a row: the pixel before each, and the share of the one after it."""
    x_start, y_start, w_start = y * m[0, 1], y * m[1, 1], y * m[2, 1]
    left, top, third = x_start + m[0, 2], y_start + m[1, 2], w_start + m[2, 2]
    across, down, deep = m[0, 0], m[1, 0], m[2, 0]
    together = share_x.size // _LANES * _LANES
    for i in range(together):
        x = np.float32(np.int32(i))
        w = multiply_add(deep, x, third)
        share_x[i], share_y[i] = multiply_add(across, x, left) / w, multiply_add(down, x, top) / w
    for i in range(together, share_x.size):
        x = np.float32(np.int32(i))
        w = multiply_add(deep, x, w_start) + m[2, 2]
        share_x[i] = (multiply_add(across, x, x_start) + m[0, 2]) / w
        share_y[i] = (multiply_add(down, x, y_start) + m[1, 2]) / w
    for i in range(share_x.size):
        u, v = share_x[i], share_y[i]
        first, second = np.floor(u), np.floor(v)
        share_x[i], share_y[i] = u - first, v - second
        column[i], line[i] = _whole(first), _whole(second)


@kernel
def _whole(value):
    value = value if value > -_FAR else -_FAR
    return np.int32(value if value < _FAR else _FAR)


@kernel
def _place_pairs(column, line, width, height, size, place):
    """The place of the upper pair, if all four pixels and both words are inside; otherwise below 0."""
    columns, lines, stride, none = np.int32(width - 1), np.int32(height - 1), np.int32(3 * width), np.int32(-1)
    last = np.int32(size - 3 * width)
    for i in range(place.size):
        left, top = column[i], line[i]
        inside = (left >= 0) & (left < columns) & (top >= 0) & (top < lines)
        at = top * stride + left * np.int32(3)
        place[i] = at if inside & (at < last) else none


@kernel
def _pixel_or(flat, x, y, width, height, outside):
    """A pixel, in the low three bytes; `outside` if there is none."""
    if x < 0 or x >= width or y < 0 or y >= height:
        return outside
    return word_at(flat, 3 * (y * width + x), outside)
