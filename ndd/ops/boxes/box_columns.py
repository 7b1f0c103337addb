"""The columns of an array of boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._operator import Operand, bad_sample
from ndd._tensor import Device, Spec, Store
from ndd._tensor.dtype import dtype, int32


def check_columns(boxes: Operand) -> None:
    """RuntimeError unless the last axis has the 4 numbers of a box, or the sample is empty."""
    shapes = boxes.shapes
    if boxes.ndim == 0:
        raise RuntimeError("expected boxes, (N, 4) or (4,), got one number")
    for i in np.flatnonzero((shapes[:, -1] != 4) & (boxes.sizes > 0))[:1]:
        raise bad_sample(int(i), f"expected boxes of 4 numbers, (N, 4) or (4,), got shape {tuple(shapes[i].tolist())}")


def check_boxes(boxes: Operand, columns: tuple[int, ...], labels: Operand | None) -> None:
    """RuntimeError unless every sample is (N, `columns`), with labels (N,) or (N, 1) if there are labels."""
    shapes, counts = boxes.shapes, None if labels is None else labels.sizes
    fitting = shapes.shape[1] == 2 and bool(np.logical_or.reduce([shapes[:, 1] == k for k in columns]).all())
    if fitting and (counts is None or bool((counts == shapes[:, 0]).all())):
        return
    listed = " or ".join([f"(N, {k})" for k in columns])
    for i, shape in enumerate(shapes.tolist()):
        if len(shape) != 2 or shape[1] not in columns:
            raise bad_sample(i, f"boxes: expected shape {listed}, got {tuple(shape)}")
        if counts is not None and counts[i] != shape[0]:
            raise bad_sample(i, f"labels: expected {shape[0]}, one for each box, got {counts[i]}")


def check_labels(labels: Spec | None) -> None:
    """RuntimeError unless labels are int32, (N,) or (N, 1)."""
    if labels is not None and (labels.dtype is not int32 or labels.ndim not in (1, 2)):
        raise RuntimeError(f"labels: expected int32 of shape (N,) or (N, 1), got {labels.dtype} of {labels.ndim} axes")


def joined(values: Operand) -> np.ndarray:
    """The rows of all samples one after the other."""
    flat, shapes = values.flat, values.shapes
    if flat is not None and shapes[0, 1:].all() and (shapes[:, 1:] == shapes[0, 1:]).all():
        return flat.reshape(-1, *shapes[0, 1:].tolist())
    arrays = values.arrays
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def divided(rows: np.ndarray, counts: np.ndarray) -> Store:
    """Divides rows into samples, `counts[i]` rows for sample i: the inverse of `joined`."""
    shapes = np.empty((len(counts), rows.ndim), np.int64)
    shapes[:, 0], shapes[:, 1:] = counts, rows.shape[1:]
    same = (counts == counts[0]).all()
    form: dict[str, Any] = (
        {"whole": rows.reshape(tuple([len(counts), *shapes[0].tolist()]))} if same else {"flat": rows.reshape(-1)}
    )
    return Store(dtype(rows.dtype), None, Device.CPU, shapes, **form)


def check_threshold(remove_threshold: float | None) -> None:
    """RuntimeError unless it is a share of an area, from 0 to below 1."""
    if remove_threshold is not None and not 0 <= remove_threshold < 1:
        raise RuntimeError(f"`remove_threshold`: expected a number from 0 to below 1, got {remove_threshold}")


def least_upright(corners: np.ndarray, linear: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """The smallest upright boxes, [N, 4] left, top, right, bottom, that contain boxes after the maps [N, 2, 2] and [N, 2,
    1]."""
    left, top, right, bottom = corners.T
    four = np.stack([[left, right, left, right], [top, top, bottom, bottom]])  # [2, 4, boxes]
    moved = np.einsum("brc,ckb->brk", linear, four) + shift
    return np.concatenate([moved.min(axis=2), moved.max(axis=2)], axis=1)


def cut_off(boxes: np.ndarray, end: Any, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """Boxes (left, top, right, bottom) cut off at 0 and `end`, and whether at least this share of each is left."""
    inside = np.clip(boxes, 0, end)
    with np.errstate(invalid="ignore", divide="ignore"):
        return inside, _area(inside) / _area(boxes) >= threshold


def _area(boxes: np.ndarray) -> np.ndarray:
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
