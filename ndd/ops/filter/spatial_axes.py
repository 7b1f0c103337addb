"""The axes of an array that a filter runs along, and its samples as [planes, D, H, W, C]."""

from __future__ import annotations

import functools

import numpy as np


@functools.cache
def spatial_axes(layout: str | None, ndim: int) -> tuple[int, int]:
    """First spatial axis and the number of them. F and C may come before them, C after them."""
    if not layout:
        if not 1 <= ndim <= 3:
            raise RuntimeError(
                f"an array without a layout must have 1 to 3 axes, all of them spatial; this one has {ndim}"
            )
        return 0, ndim
    start = len(layout) - len(layout.lstrip("FC"))
    spatial = layout[start:].removesuffix("C")
    if not spatial:
        raise RuntimeError(f"No spatial axes found in the layout: {layout}")
    if "C" in spatial:
        raise RuntimeError(f"Only channel-first or channel-last layouts are supported, got: {layout}")
    if "F" in spatial:
        raise RuntimeError(f"For sequences, the layout should begin with 'F' or 'C', got: {layout}")
    for letter in "FC":
        if layout[:start].count(letter) > 1:
            raise RuntimeError(f"Found more than one {letter!r} axis before the spatial ones: {layout}")
    if len(spatial) > 3:
        raise RuntimeError(f"Too many dimensions, found: {len(spatial)} data axes in {layout}, at most 3 are supported")
    return start, len(spatial)


def as_volumes(shapes: np.ndarray, start: int, count: int) -> np.ndarray:
    """int64 [N, 5]: planes, depth, height, width, channels of each sample. Missing spatial axes have extent 1."""
    view = np.ones((len(shapes), 5), np.int64)
    if start:
        view[:, 0] = shapes[:, :start].prod(axis=1)
    view[:, 4 - count : 4] = shapes[:, start : start + count]
    if shapes.shape[1] > start + count:
        view[:, 4] = shapes[:, start + count]
    return view
