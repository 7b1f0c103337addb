"""Filters of planes by OpenCV: plain sums, a column and a row, or a Fourier transform, whichever is the fastest.

Bytes are summed up as bytes where that is fast; else all is float32 and rounded at the end, halves to even.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ndd._cpu.opencv import single_threaded
from ndd._cpu.sampling import BORDERS

_FOURIER = 130  # weights from which OpenCV transforms
_AS_BYTES = 36  # weights up to which sums of bytes are faster than those of floats
_SEVERAL = 49  # weights from which bytes that lie halfway between two numbers are rare
_LINES = 81  # weights of a column and a row together, up to which these two are faster than a transform
_CHANNELS = 128  # OpenCV's limit
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

    `array` is of bytes or float32. Output element `o` of an axis begins at input element `o - origin`. False, and
    nothing done, where OpenCV cannot do it or would not be exact.
    """
    height, width, channels = extents
    padded = border == BORDERS["wrap"] or (border == BORDERS["constant"] and fill != 0)
    if channels > _CHANNELS or not _is_safe(array, weights):
        return False
    images = array.reshape(-1, height, width, channels) if channels > 1 else array.reshape(-1, height, width)
    targets = out.reshape(-1, *results, channels) if channels > 1 else out.reshape(-1, *results)
    step = _Step(weights, array.dtype == out.dtype == _BYTE)
    same = (height, width) == tuple(results)
    for image, target in zip(images, targets, strict=True):
        given, anchor, outside = image, origin, _borders()[border]
        if padded:
            given, anchor, outside = (
                _with_border(image, weights.shape, results, origin, border, fill),
                (0, 0),
                _inside(),
            )
        direct = same and not padded and (target.dtype == _FLOAT or step.bytes)
        found = step(given, anchor, outside, target if direct else None)
        if not direct:
            _put(found[: results[0], : results[1]], target)
    return True


def _is_safe(array: np.ndarray, weights: np.ndarray) -> bool:
    """Sums of bytes must fit OpenCV's 32-bit integers; infinities would spread by way of a transform."""
    total = float(np.abs(weights).sum())
    if array.dtype == _FLOAT and weights.size >= _FOURIER:
        return np.isfinite(total * float(np.abs(array).max()))
    return total * 255 < 2**30


class _Step:
    """Filters an image; `bytes` says that the result is bytes, not floats."""

    def __init__(self, weights: np.ndarray, as_bytes: bool):
        self.weights = weights
        count, both = weights.size, sum(weights.shape)
        self.bytes = as_bytes and count <= _AS_BYTES
        worth = 2 * both <= count and both <= _LINES and (count > _SEVERAL or not as_bytes)
        self.lines = lines_of(weights) if worth else None

    def __call__(self, image: np.ndarray, anchor: Any, border: int, out: np.ndarray | None) -> np.ndarray:
        cv2 = single_threaded()
        if not self.bytes and image.dtype == _BYTE:
            image = image.astype(np.float32)
        place = (anchor[1], anchor[0])
        if self.lines is not None:
            column, row = self.lines
            return cv2.sepFilter2D(image, -1, row, column, dst=out, anchor=place, borderType=border)
        return cv2.filter2D(image, -1, self.weights, dst=out, anchor=place, borderType=border)


def lines_of(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The column and the row whose product the weights are; None if there are none."""
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


def _put(found: np.ndarray, target: np.ndarray) -> None:
    if target.dtype == _FLOAT or found.dtype == target.dtype:
        target[...] = found
        return
    np.rint(found, out=found)
    np.clip(found, 0, 255, out=found)
    np.copyto(target, found, casting="unsafe")


@functools.cache
def _borders() -> dict[int, int]:
    cv2 = single_threaded()
    names = {"constant": "CONSTANT", "replicate": "REPLICATE", "reflect": "REFLECT", "reflect_101": "REFLECT_101"}
    return {BORDERS[k]: getattr(cv2, f"BORDER_{v}") for k, v in names.items()} | {BORDERS["wrap"]: cv2.BORDER_WRAP}


def _inside() -> int:
    """Where all that is kept lies inside, any border will do."""
    return single_threaded().BORDER_REPLICATE
