"""The frames of a sequence, and the replacements of frames outside the video."""

from __future__ import annotations

import numpy as np

_EDGE = ("edge", "repeat")
_REFLECT = ("reflect_101", "reflect")
_SYMMETRIC = ("reflect_1001", "symmetric")
PAD_MODES = ("none", "", "constant", *_EDGE, *_REFLECT, *_SYMMETRIC)


def padded(frames: np.ndarray, count: int, mode: str) -> np.ndarray:
    """Replaces frame numbers outside the `count` frames of a video: drops them ("none"), or replaces them with -1 ("constant", for
    a fill value), the nearest frame ("edge"), or the frame reflected at the last one, without ("reflect_101") or with
    ("reflect_1001") repeating it.

    >>> padded(np.arange(3, 9), 5, "reflect_101").tolist()
    [3, 4, 3, 2, 1, 0]
    """
    inside = (frames >= 0) & (frames < count)
    if inside.all():
        return frames
    if mode in ("none", ""):
        return frames[inside]
    if mode == "constant":
        return np.where(inside, frames, -1)
    if mode in _EDGE:
        return frames.clip(0, count - 1)
    if mode in _REFLECT:
        period = max(2 * count - 2, 1)
        places = frames % period
        return np.where(places < count, places, period - places)
    period = 2 * count
    places = frames % period
    return np.where(places < count, places, period - 1 - places)


def fill_colour(value: object) -> np.ndarray:
    """`fill_value` as an RGB colour, u8 `[3]`. Raises RuntimeError for an invalid one."""
    numbers = np.atleast_1d(np.asarray(value))
    if numbers.size not in (1, 3):
        raise RuntimeError(f"fill_value: expected one number, or one for each of the 3 channels, got {numbers.size}")
    if ((numbers < 0) | (numbers > 255)).any():
        raise RuntimeError(f"fill_value: expected numbers from 0 to 255, got {numbers.tolist()}")
    return np.broadcast_to(numbers.astype(np.uint8).reshape(-1), 3)
