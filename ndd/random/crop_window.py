"""Random windows of an image with a random share of its area and a random aspect ratio.

Shared by `random_resized_crop`, `random_crop_generator` and `decoders.image_random_crop`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ndd._compiled.jit import kernel
from ndd._cpu.draws import below, canonical
from ndd._cpu.philox import new_cursor, seek

_F = np.float32
# DALI's constant: windows are drawn from streams whose key differs from the operator's own.
_OTHER_KEY = np.array([0x12345678ABCDEFE, 0, 0, 0], np.uint64)


def crop_window(
    shapes_hw: Any, streams: np.ndarray, area: Any, aspect: Any, num_attempts: int, of_torchvision: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Draw a window for each image: its anchor and its shape, int64 `[N, 2]` each, as (y, x) and (h, w).

    The share of the area is uniform in `area`, the aspect ratio (width / height) is uniform in its logarithm in
    `aspect`; a window that does not fit, or that is outside `aspect` after rounding to whole pixels, is drawn again. After
    `num_attempts` draws, or if no window can satisfy both, the largest shape with a permitted ratio is taken. The anchor is
    uniform among the places where the window fits. Window i depends only on sample i of `streams` (`Draws.streams`).

    With `of_torchvision` a window is drawn again only if it does not fit, and the window after all attempts is in the middle,
    whatever its share of the area.
    """
    low, high = _range("random_area", area)
    narrow, wide = _range("random_aspect_ratio", aspect)
    if not narrow > 0:
        raise RuntimeError(f"expected `random_aspect_ratio` above 0, got {[narrow, wide]}.")
    streams = streams ^ _OTHER_KEY
    shapes = np.ascontiguousarray(shapes_hw, np.int64).reshape(-1, 2)
    anchors, windows = np.empty_like(shapes), np.empty_like(shapes)
    limits = np.array([low, high, narrow, wide, *np.log(np.array([narrow, wide], np.float32))], np.float32)
    _draw(shapes, streams, limits, max(int(num_attempts), 0), of_torchvision, anchors, windows)
    return anchors, windows


def _range(name: str, values: Any) -> tuple[float, float]:
    bounds = np.asarray(values, np.float64).reshape(-1)
    if bounds.size not in (1, 2):
        raise RuntimeError(f"expected `{name}` with 1 or 2 numbers (start, end), got {bounds.size}.")
    low, high = float(bounds[0]), float(bounds[-1])
    if not low <= high:
        raise RuntimeError(f"expected `{name}` to be a range (start <= end), got {bounds.tolist()}.")
    return low, high


@kernel(nogil=False)
def _draw(shapes, streams, limits, attempts, of_torchvision, anchors, windows):
    cursor = new_cursor()
    for n in range(len(shapes)):
        seek(cursor, streams[n], 0)
        height, width = shapes[n, 0], shapes[n, 1]
        if height <= 0 or width <= 0:
            anchors[n], windows[n] = 0, 0
            continue
        if of_torchvision:
            fits, h, w = _draw_fitting(cursor, height, width, limits, attempts)
        else:
            fits = True
            h, w = _draw_shape(cursor, height, width, limits, attempts)
        windows[n, 0], windows[n, 1] = h, w
        if not fits:
            anchors[n, 0], anchors[n, 1] = (height - h) // 2, (width - w) // 2
            continue
        anchors[n, 0] = below(cursor, np.uint64(height - h + 1))
        anchors[n, 1] = below(cursor, np.uint64(width - w + 1))


_draw.fallback()


@kernel(inline="always")
def _between(cursor, low, high):
    return _F(canonical(cursor, False)) * (high - low) + low


@kernel
def _draw_fitting(cursor, height, width, limits, attempts):
    """Whether a window fits, and its height and width; otherwise those of the largest window with a permitted ratio."""
    narrow, wide, whole = np.float64(limits[2]), np.float64(limits[3]), np.float64(height) * np.float64(width)
    for _ in range(attempts):
        target = np.float64(_between(cursor, limits[0], limits[1])) * whole
        ratio = math.exp(np.float64(_between(cursor, limits[4], limits[5])))
        w, h = np.int64(np.rint(np.sqrt(target * ratio))), np.int64(np.rint(np.sqrt(target / ratio)))
        if 0 < w <= width and 0 < h <= height:
            return True, h, w
    h, w = height, width
    if width < narrow * height:
        h = np.int64(np.rint(width / narrow))
    elif width > wide * height:
        w = np.int64(np.rint(height * wide))
    return False, max(h, 1), max(w, 1)


@kernel
def _draw_shape(cursor, height, width, limits, attempts):
    """Height and width of a window, with DALI's float32 steps."""
    low, high, narrow, wide = limits[0], limits[1], limits[2], limits[3]
    whole = _F(height * width)
    widest = max(1, np.int64(_F(height) * wide))
    highest = max(1, np.int64(_F(width) * (_F(1) / narrow)))
    if _F(height * widest) < low * whole:  # the image is too wide: even the widest window is too small
        return height, min(widest, width)
    if _F(width * highest) < low * whole:
        return min(highest, height), width
    for _ in range(attempts):
        target = _between(cursor, low, high) * whole
        ratio = _F(math.exp(np.float64(_between(cursor, limits[4], limits[5]))))
        w = max(1, np.int64(np.floor(np.sqrt(target * ratio) + _F(0.5))))
        h = max(1, np.int64(np.floor(np.sqrt(target / ratio) + _F(0.5))))
        if w <= width and h <= height and narrow <= _F(w) / _F(h) <= wide:
            return h, w
    ratio = _F(width) / _F(height)
    h, w = height, width
    if ratio > wide:
        w = min(widest, width)
    elif ratio < narrow:
        h = min(highest, height)
    scale = np.float64(np.sqrt(min(_F(1), max(high, _F(0)) * whole / _F(h * w))))
    return max(1, np.int64(h * scale)), max(1, np.int64(w * scale))
