"""Operators that apply the geometry of an image to its boxes, points and masks, for `ndd.Targets`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ndd._operator import Operand, PerSample, bad_sample, computed_on_host, like, operator, output
from ndd._tensor import Store
from ndd._tensor.dtype import float32, float64, int32
from ndd.ops.boxes.box_columns import check_threshold, cut_off, divided, least_upright
from ndd.ops.image.resize_geometry import LAYOUTS, asked_geometry
from ndd.ops.image.rotate import turned_extents
from ndd.ops.image.slice import slice_ends
from ndd.ops.image.warping import output_extents
from ndd.ops.image.window import rounded

_NO_WINDOW = dict.fromkeys(("start", "end", "rel_end", "shape", "rel_start", "rel_shape"))

# A *motion* describes where the pixels of an image go: float64 [2, 5], a row for x and one for y, `[a, b, shift, before,
# after]`. A point (x, y) in pixels goes to `a x + b y + shift`; the image is `before` wide or high before, and `after`
# afterwards.


@operator(layouts=LAYOUTS, masks=True, reads="anywhere", argument_shapes=False, register=False)
def flip_motion(images, /, *, horizontal: PerSample[int] = 0, vertical: PerSample[int] = 0):
    """The motion of `flip`; without arguments the identity."""
    return output(float64, 2)


# A batch: NumPy computes the numbers of all samples at once.
@flip_motion.batch
def _(call, images, *, horizontal, vertical):
    extents = _extents(images)[:, ::-1]
    mirrored = np.stack([horizontal.each() != 0, vertical.each() != 0], axis=1)
    return _motion(_diagonal(np.where(mirrored, -1.0, 1.0)), np.where(mirrored, extents, 0), extents, extents)


@operator(layouts=LAYOUTS, masks=True, reads="anywhere", argument_shapes=False, register=False)
def window_motion(
    images,
    /,
    *,
    rel_shape: PerSample[list[float]] = None,
    rel_start: PerSample[list[float]] = None,
    shape: PerSample[list[int]] = None,
    start: PerSample[list[int]] = None,
):
    """The motion of `slice`, whose windows begin and end between two pixels."""
    return output(float64, 2)


# A batch: NumPy computes the numbers of all samples at once.
@window_motion.batch
def _(call, images, **window):
    extents = _extents(images)[:, ::-1]
    low, high = map(rounded, slice_ends(extents, None, None, True, True, _NO_WINDOW | window))
    for i in np.flatnonzero((low == high).any(axis=1))[:1]:
        size = tuple((high - low)[i].tolist())
        raise bad_sample(int(i), f"boxes and points cannot follow into a window without pixels, (w, h) = {size}")
    return _motion(_diagonal(np.ones(low.shape)), -low, extents, high - low)


@operator(layouts=LAYOUTS, masks=True, reads="anywhere", argument_shapes=False, register=False)
def resize_motion(
    images,
    /,
    *,
    max_size: list[float] | None = None,
    mode: str | None = None,
    resize_longer: PerSample[float] = None,
    resize_shorter: PerSample[float] = None,
    resize_x: PerSample[float] = None,
    resize_y: PerSample[float] = None,
    roi_end: PerSample[list[float]] = None,
    roi_relative: bool = False,
    roi_start: PerSample[list[float]] = None,
    rule: str = "dali",
    size: PerSample[list[float]] = None,
    subpixel_scale: bool = True,
):
    """The motion of `resize`, which maps a region, possibly mirrored, to the whole output."""
    return output(float64, 2)


# A batch: NumPy computes the numbers of all samples at once.
@resize_motion.batch
def _(call, images, **arguments):
    extents = _extents(images)[:, ::-1]
    _, geometry = asked_geometry(images, resize_z=None, **arguments)
    low, high, after = (v[:, ::-1].astype(np.float64) for v in (geometry.start, geometry.end, geometry.size))
    scale = after / (high - low)
    return _motion(_diagonal(scale), -low * scale, extents, after)


@operator(layouts=LAYOUTS, masks=True, reads="anywhere", argument_shapes=False, register=False)
def turn_motion(
    images,
    /,
    *,
    angle: PerSample[float] = None,
    inverse_map: bool = False,
    keep_size: bool = False,
    matrix: PerSample[list[float]] = None,
    size: PerSample[list[float]] = None,
):
    """The motion of `rotate` (by `angle`) or `warp_affine` (by `matrix`)."""
    return output(float64, 2)


# A batch: NumPy computes the numbers of all samples at once.
@turn_motion.batch
def _(call, images, *, angle, inverse_map, keep_size, matrix, size):
    extents = _extents(images)
    if angle is None:
        canvas = output_extents(size, extents)
        forward = matrix.matrices(2, 3).astype(np.float64)
        linear, shift = forward[:, :, :2], forward[:, :, 2]
        if inverse_map:
            if not np.linalg.det(linear).all():
                raise RuntimeError(
                    "boxes and points cannot follow a `matrix` that has no inverse, as `inverse_map` asks for"
                )
            linear = np.linalg.inv(linear)
            shift = -np.einsum("nrc,nc->nr", linear, shift)
    else:
        c, s, canvas = turned_extents(angle.each(), size, keep_size, extents)
        linear = np.stack([c, s, -s, c], axis=-1).reshape(-1, 2, 2)
        shift = (canvas[:, ::-1] - np.einsum("nrc,nc->nr", linear, extents[:, ::-1])) / 2
    for i in np.flatnonzero((canvas == 0).any(axis=1))[:1]:
        raise bad_sample(
            int(i), f"boxes and points cannot follow to an image without pixels, (h, w) = {tuple(canvas[i].tolist())}"
        )
    return _motion(linear, shift, extents[:, ::-1], canvas[:, ::-1])


def _extents(images: Operand) -> np.ndarray:
    """The heights and widths, [N, 2]."""
    extents = images.shapes[:, [(images.layout or "").index(c) for c in "HW"]]
    for i in np.flatnonzero((extents == 0).any(axis=1))[:1]:
        raise bad_sample(int(i), f"images: expected some with pixels, got shape {tuple(images.shapes[i].tolist())}")
    return extents


def _diagonal(numbers: np.ndarray) -> np.ndarray:
    """Matrices [N, 2, 2] from their diagonals [N, 2]."""
    return numbers[:, :, None] * np.eye(2)


def _motion(linear: np.ndarray, shift: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Motions, float64 [N, 2, 5]."""
    return np.concatenate([linear, shift[..., None], before[..., None], after[..., None]], axis=2).astype(np.float64)


@operator(reads="cpu", outputs=2, register=False)
def boxes_moved(
    boxes,
    motion,
    /,
    *,
    format: str,
    normalized: bool,
    made_format: str,
    made_normalized: bool,
    remove_threshold: float | None = None,
    min_size: float = 0.0,
    min_area: float = 0.0,
    clamp: bool = False,
):
    """Boxes after a motion, and the numbers of those that are left. Without `remove_threshold` no box is dropped for being
    outside. Boxes are cut off only with `clamp`. `min_size` and `min_area` are in pixels."""
    check_threshold(remove_threshold)
    return output(float32, 2), output(int32, 1)


# A batch: the number of boxes that are left follows from their values.
@boxes_moved.batch
def _(
    call,
    boxes,
    motion,
    *,
    format,
    normalized,
    made_format,
    made_normalized,
    remove_threshold,
    min_size,
    min_area,
    clamp,
):
    counts = _box_counts(boxes)
    owner = np.repeat(np.arange(call.n), counts)
    moves = np.stack(motion.arrays)[owner]
    linear, shift, before, after = moves[:, :, :2], moves[:, :, 2:3], moves[:, :, 3], moves[:, :, 4]
    flat = [a.reshape(-1, 4) for a in boxes.arrays]
    corners = corners_of(np.concatenate(flat).astype(np.float64), format)
    corners *= np.tile(before, 2) if normalized else 1
    moved = least_upright(corners, linear, shift)
    moved = moved.clip(0, np.tile(after, 2)) if clamp else moved
    kept = np.ones(len(moved), bool)
    if remove_threshold is not None:  # without one NaN stays too
        touching = ((moved[:, :2] <= after) & (moved[:, 2:] >= 0)).all(axis=1)
        moved, kept = cut_off(moved, np.tile(after, 2), remove_threshold)
        # A box without an area has no share: with a threshold of 0 it stays if it touches the image.
        kept = np.where(_has_area(corners), kept & _has_area(moved), touching & (remove_threshold == 0))
        sides = moved[:, 2:] - moved[:, :2]
        kept &= (sides >= min_size).all(axis=1) & (sides.prod(axis=1) >= min_area)
    moved = as_format(moved / (np.tile(after, 2) if made_normalized else 1), made_format)
    left_over = np.bincount(owner[kept], minlength=call.n)
    numbers = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    return [divided(moved[kept].astype(np.float32), left_over), divided(numbers[kept].astype(np.int32), left_over)]


boxes_moved.cuda(computed_on_host)


def _box_counts(boxes: Operand) -> np.ndarray:
    """The number of boxes of each sample, which is (N, 4) or empty."""
    shapes = boxes.shapes
    for i in np.flatnonzero((shapes[:, -1] != 4) & (boxes.sizes > 0) if boxes.ndim == 2 else boxes.sizes > 0)[:1]:
        raise bad_sample(int(i), f"boxes: expected shape (N, 4), got {tuple(shapes[i].tolist())}")
    return boxes.sizes // 4


def _has_area(boxes: np.ndarray) -> np.ndarray:
    return np.asarray((boxes[:, 2:] > boxes[:, :2]).all(axis=1))


def corners_of(boxes: np.ndarray, format: str) -> np.ndarray:
    """Boxes [N, 4] of a format as left, top, right, bottom: a copy."""
    first, second = boxes[:, :2], boxes[:, 2:]
    if format == "xyxy":
        return boxes.copy()
    low = first if format == "xywh" else first - second / 2
    return np.concatenate([low, low + second], axis=1)


def as_format(corners: np.ndarray, format: str) -> np.ndarray:
    """The inverse of `corners_of`."""
    low, high = corners[:, :2], corners[:, 2:]
    if format == "xyxy":
        return corners
    return np.concatenate([low if format == "xywh" else (low + high) / 2, high - low], axis=1)


@operator(reads="cpu", outputs=2, register=False)
def points_moved(
    points, motion, /, *, normalized: bool, made_normalized: bool, drop: bool = False, clamp: bool = False
):
    """Points (..., 2) after a motion, and the numbers of those that are left: with `drop` only those inside the image. With
    `clamp` points outside move to the nearest pixel inside."""
    return output(float32, points.ndim), output(int32, 1)


# A batch: the number of points that are left follows from their values.
@points_moved.batch
def _(call, points, motion, *, normalized, made_normalized, drop, clamp):
    moved, numbers = [], []
    for i, (values, move) in enumerate(zip(points.arrays, motion.arrays, strict=True)):
        if values.shape[-1] != 2:
            raise bad_sample(i, f"points: expected x and y, (..., 2), got shape {values.shape}")
        flat = values.reshape(-1, 2).astype(np.float64) * (move[:, 3] if normalized else 1)
        flat = flat @ move[:, :2].T + move[:, 2]
        flat = flat.clip(0, move[:, 4] - 1) if clamp else flat
        kept = np.flatnonzero(((flat >= 0) & (flat <= move[:, 4])).all(axis=1)) if drop else np.arange(len(values))
        flat = flat[kept] if drop else flat
        flat = flat / move[:, 4] if made_normalized else flat
        moved.append(flat.reshape(-1, *values.shape[1:]).astype(np.float32))
        numbers.append(kept.astype(np.int32))
    return [moved, numbers]


points_moved.cuda(computed_on_host)


@operator(reads="anywhere", register=False)
def one_for_each(values, owners, /, *, name: str, owner: str):
    """Returns the values, if there is one for each owner (a box or a point). Otherwise raises an error."""
    return values


@one_for_each.views
def _(call, values, owners, *, name, owner):
    counts, expected = values.shape_array[:, 0], owners.shape_array[:, 0]
    for i in np.flatnonzero(counts != expected)[:1]:
        raise bad_sample(int(i), f"{name}: expected {expected[i]}, one for each {owner}, got {counts[i]}")
    return values


@operator(reads={"kept": "cpu", "owners": "anywhere"}, register=False)
def rows_left(values, kept, owners, /):
    """The rows of the owners that are left; `kept` has their numbers, or a bool for each. Values of another length stay whole."""
    return values


@rows_left.views
def _(call, values, kept, owners):
    if (values.shape_array[:, 0] != owners.shape_array[:, 0]).any():
        return values
    parts = [_rows(i, v, k) for i, (v, k) in enumerate(zip(values.arrays(), kept.arrays(), strict=True))]
    shapes = [tuple(p.shape) for p in parts]
    return Store(values.dtype, values.layout, values.device, shapes, parts=parts, source_info=values.source_info)


def _rows(i: int, array: Any, kept: np.ndarray) -> Any:
    count = len(array)
    if kept.dtype == bool:
        if kept.shape != (count,):
            raise bad_sample(i, f"numbers: expected a bool for each of {count} boxes, got shape {kept.shape}")
        kept = np.flatnonzero(kept)
    outside = (kept < 0) | (kept >= count)
    if outside.any():
        raise bad_sample(i, f"numbers: expected those of {count} boxes, from 0, got {kept[outside][0]}")
    if np.array_equal(kept, np.arange(count)):
        return array
    if isinstance(array, np.ndarray):
        return array[kept]
    return array[torch.as_tensor(kept, dtype=torch.int64, device=array.device)]


@operator(reads="anywhere", register=False)
def masks_of(masks, images, /, *, axes: list[int], image_axes: list[int], layout: str, name: str):
    """Returns the masks, with a layout, if they are as large as their images. Otherwise raises an error."""
    return like(masks, layout=layout)


@masks_of.views
def _(call, masks, images, *, axes, image_axes, layout, name):
    extents, expected = masks.shape_array[:, axes], images.shape_array[:, image_axes]
    for i in np.flatnonzero((extents != expected).any(axis=1))[:1]:
        sizes = " x ".join(map(str, expected[i])), " x ".join(map(str, extents[i]))
        raise bad_sample(
            int(i),
            f"{name}: expected those as large as their image, {sizes[0]}, got {sizes[1]} (shape {masks.shapes[i]}, taken as "
            f'{layout}). A layout says which axes of a mask are which: "HW", "HWC", or "NHW" for one of each object',
            ValueError,
        )
    return masks.relabelled(layout)


_OWN = (
    flip_motion, window_motion, resize_motion, turn_motion, boxes_moved, points_moved, one_for_each, rows_left, masks_of,
)  # fmt: skip
for _own in _OWN:
    _own.operator.name = "Targets"  # the name in errors
