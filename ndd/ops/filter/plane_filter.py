"""Filters planes with OpenCV: plain sums, a column and a row, or a Fourier transform, whichever is the fastest.

Bytes are summed as bytes where that is fast. Otherwise the sums are float32, rounded at the end with halves to even.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ndd._cpu.opencv import single_threaded
from ndd._cpu.sampling import BORDERS
from ndd.ops.filter.window_filter import FOURIER, LINES, SEVERAL, WORTH_LINES

_AS_BYTES = 36  # up to this many weights, sums of bytes are faster than those of floats
_CHANNELS = 128  # OpenCV's limit
_EDGE = 1  # cv2.BORDER_REPLICATE, used if all results lie inside and the border does not matter
_BYTE, _FLOAT = np.dtype(np.uint8), np.dtype(np.float32)


def filter_planes(
    array: np.ndarray,
    weights: np.ndarray,
    fill: float,
    out: np.ndarray,
    extents: Any,
    results: Any,
    origin: Any,
    border: int,
) -> bool:
    """Filters each image of `array` [planes, *extents, channels] into `out` [planes, *results, channels].

    `array` is of bytes or float32. Output element `o` of an axis begins at input element `o - origin`. Returns False, and does
    nothing, if OpenCV cannot do it or would not be exact.
    """
    height, width, channels = extents
    as_bytes = array.dtype == out.dtype == _BYTE and weights.size <= _AS_BYTES
    if channels > _CHANNELS or not _is_safe(array, weights, as_bytes):
        return False
    lines = None
    if weights.size > WORTH_LINES and (weights.size > SEVERAL or out.dtype == _FLOAT):
        lines = lines_of(weights) if 2 * sum(weights.shape) <= weights.size and sum(weights.shape) <= LINES else None
    images = array.reshape(-1, height, width, channels) if channels > 1 else array.reshape(-1, height, width)
    targets = out.reshape(-1, *results, channels) if channels > 1 else out.reshape(-1, *results)
    cv2 = single_threaded()
    padded = border == BORDERS["wrap"] or (border == BORDERS["constant"] and fill != 0)
    direct = (height, width) == tuple(results) and not padded and (as_bytes or out.dtype == _FLOAT)
    outside, anchor = _borders()[border], (origin[1], origin[0])
    for image, target in zip(images, targets, strict=True):
        if padded:
            image, outside, anchor = _with_border(image, weights.shape, results, origin, border, fill), _EDGE, (0, 0)
        if not as_bytes and image.dtype == _BYTE:
            image = image.astype(np.float32)
        place = target if direct else None
        if lines is not None:
            filtered = cv2.sepFilter2D(image, -1, lines[1], lines[0], dst=place, anchor=anchor, borderType=outside)
        else:
            filtered = cv2.filter2D(image, -1, weights, dst=place, anchor=anchor, borderType=outside)
        if not direct:
            _put(filtered[: results[0], : results[1]], target)
    return True


def _is_safe(array: np.ndarray, weights: np.ndarray, as_bytes: bool) -> bool:
    """Whether OpenCV is exact: sums of bytes must fit its 32-bit integers, and a transform would spread infinities."""
    if as_bytes:
        return float(np.abs(weights).sum()) * 255 < 2**30
    if weights.size < FOURIER:
        return True
    largest = 255 if array.dtype == _BYTE else float(np.abs(array).max())
    return bool(np.isfinite(float(np.abs(weights).sum()) * largest))


def lines_of(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The column and the row whose product is the weights; None if no such pair exists."""
    i, j = divmod(int(np.abs(weights).argmax()), weights.shape[1])
    peak = weights[i, j]
    if peak == 0 or not np.isfinite(peak):
        return None
    column, row = weights[:, j], weights[i] / peak
    if np.abs(column[:, None] * row - weights).max() > 3e-7 * abs(peak):
        return None
    return np.ascontiguousarray(column), row


def _with_border(image: np.ndarray, size: Any, results: Any, origin: Any, border: int, fill: float) -> np.ndarray:
    below = results[0] + size[0] - 1 - origin[0] - image.shape[0]
    behind = results[1] + size[1] - 1 - origin[1] - image.shape[1]
    return single_threaded().copyMakeBorder(
        image, origin[0], max(below, 0), origin[1], max(behind, 0), _borders()[border], value=(fill,) * 4
    )


def _put(filtered: np.ndarray, target: np.ndarray) -> None:
    if target.dtype == _FLOAT or filtered.dtype == target.dtype:
        target[...] = filtered
        return
    np.rint(filtered, out=filtered)
    np.clip(filtered, 0, 255, out=filtered)
    np.copyto(target, filtered, casting="unsafe")


@functools.cache
def _borders() -> dict[int, int]:
    cv2 = single_threaded()
    names = {"constant": "CONSTANT", "replicate": "REPLICATE", "reflect": "REFLECT", "reflect_101": "REFLECT_101"}
    return {BORDERS[k]: getattr(cv2, f"BORDER_{v}") for k, v in names.items()} | {BORDERS["wrap"]: cv2.BORDER_WRAP}
