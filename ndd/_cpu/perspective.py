"""Perspective warps pixel by pixel, for what OpenCV cannot be given: points far outside an image that is repeated.

OpenCV goes from mirror image to mirror image until it is inside, and reads beyond the image where a coordinate is no
number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._cpu.inlined import empty
from ndd._cpu.jit import kernel
from ndd._cpu.sampling import border_index

_REPEATED = 2  # borders from this number on repeat the image without end
_NEAR = 64.0  # times the image that OpenCV may walk


def beyond_opencv(maps: np.ndarray, sources: np.ndarray, targets: np.ndarray, cubic: bool, border: int) -> Any:
    """Which samples of a batch cannot be given to OpenCV; `maps` [N, 3, 3] say where a pixel of the output is read."""
    odd = ~np.isfinite(maps).all(axis=(1, 2))
    if border < _REPEATED:
        return odd
    ends = np.maximum(targets[:, ::-1] - 1, 0)
    corners = np.ones((len(maps), 3, 4))
    corners[:, 0, 1::2], corners[:, 1, 2:] = ends[:, :1], ends[:, 1:]
    with np.errstate(all="ignore"):
        x, y, w = (maps @ corners).transpose(1, 0, 2)
        # Where the third component keeps its sign, the farthest point is that of a corner.
        far = np.abs(np.stack([x, y], axis=1) / w[:, None]).max(axis=2) <= _NEAR * sources[:, ::-1]
        near = far.all(axis=1) & ((w > 0).all(axis=1) | (w < 0).all(axis=1))
    return odd | ~near | (cubic & (sources == 1).any(axis=1))


@kernel
def _near(at, n, interp, border):
    """A coordinate that shows the same as `at` and is of reasonable size."""
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
    """The first of the pixels that a coordinate is made of, and how many they are; `weight` receives their weights."""
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
