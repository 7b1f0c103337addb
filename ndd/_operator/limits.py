"""Limits of arguments that determine how much work an operator does for each element. They are far above any real use and
catch mistakes.

The size of a result needs no limit of its own: memory has one, and the error tells the bytes. These arguments cost time without
memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

MOST: dict[str, int] = {
    "mask_size": 1 << 12,
    "window_size": 1 << 12,
    "iterations": 1 << 12,
    "tiles_x": 1 << 9,
    "tiles_y": 1 << 9,
    "num_attempts": 1 << 16,
    "total_num_attempts": 1 << 20,
    "nfilter": 1 << 14,
    "nfft": 1 << 24,
    "window_length": 1 << 24,
    "n_mfcc": 1 << 14,
    "sequence_length": 1 << 24,
}
RISE = 1 << 12  # the largest growth of a sound's samples by resampling


def excess(name: str, values: Any) -> tuple[int, str] | None:
    """The first row of an argument's values that is too large, and the text of the error."""
    most = MOST.get(name)
    if most is None or isinstance(values, list):
        return None
    rows = np.asarray(values)
    if rows.dtype.kind not in "iuf" or not rows.size or rows.max() <= most:
        return None
    place = tuple(np.argwhere(rows > most)[0].tolist())
    return (place[0] if place else 0), f"expected numbers up to {most:,}, got {rows[place]:,}"
