"""Geometry of the boxes, masks and points of `ndd.Targets`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import ndd
from ndd.torchvision.values import sizes_of


def followed(
    targets: ndd.Targets,
    images: Callable[[Any], Any],
    maps: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    masks: Callable[[Any], Any] | None = None,
) -> ndd.Targets:
    """`ndd.Targets` after a geometric change. As in torchvision, boxes are cut off at the border, and none is dropped.

    Args:
        images, masks: functions that move pixels; without `masks`, `images` moves the masks too.
        maps: takes the sizes of the images (int64 `[N, 2]`, H and W); returns the maps `[N or 1, 2, 3]` from a pixel of the
            source to one of the result, x before y, and the sizes of the results `[N or 1, 2]`.
    """
    # Maps of fractions work for all formats.
    form = {"format": targets.format, "normalized": targets.normalized}
    whole = targets.convert(format="xyxy", normalized=True)
    boxes, points = whole.boxes, whole.points
    if boxes is not None or points is not None:
        sizes = sizes_of(whole.images)
        matrices = _of_fractions(*maps(sizes), sizes)
        matrix = ndd.batch(matrices) if isinstance(whole.images, ndd.Batch) else matrices[0].tolist()
        if boxes is not None:
            boxes = ndd.bbox_transform(boxes, MT=matrix, remove_threshold=0.0)
        if points is not None:
            points = _moved_points(points, matrix)
    layers = {name: getattr(whole, name) for name in ("masks", "semantic")}
    moved = {name: None if v is None else _moved_masks(v, masks or images) for name, v in layers.items()}
    result = dataclasses.replace(whole, images=images(whole.images), boxes=boxes, points=points, **moved)
    return result.convert(**form)


def _moved_points(points: Any, matrix: Any) -> Any:
    """Points (P, 2), or K for each box (N, K, 2)."""
    if points.ndim == 2:
        return ndd.coord_transform(points, MT=matrix)
    moved = ndd.coord_transform(ndd.reshape(points, shape=[-1, 2]), MT=matrix)
    if not isinstance(points, ndd.Batch):
        return ndd.reshape(moved, shape=list(points.shape))
    return ndd.reshape(moved, shape=ndd.batch([np.array(shape, np.int32) for shape in points.shape]))


def _of_fractions(maps: np.ndarray, result: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Maps in fractions of the extents, float32 `[N, 2, 3]`."""
    count = len(sizes)
    maps = np.broadcast_to(maps, (count, 2, 3)).astype(np.float64).copy()
    into = np.maximum(np.broadcast_to(result, (count, 2)), 1)[:, ::-1]
    maps[:, :, :2] *= sizes[:, None, ::-1]
    return (maps / into[:, :, None]).astype(np.float32)


def _moved_masks(masks: Any, move: Callable[[Any], Any]) -> Any:
    """Masks HW, HWC or NHW: N counts as channels."""
    layout = masks.layout
    if layout == "HW" or not layout or layout.endswith("C"):
        return move(masks)
    return ndd.reinterpret(move(ndd.reinterpret(masks, layout="CHW")), layout=layout)
