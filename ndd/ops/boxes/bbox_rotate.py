"""`ndd.bbox_rotate`: boxes of turned images."""

from __future__ import annotations

import numpy as np

from ndd._operator import PerSample, bad_sample, computed_on_host, operator, output
from ndd._tensor.dtype import float32, int32
from ndd.ops.boxes.columns import check_boxes, check_labels, cut_off, divided, joined
from ndd.ops.image.rotate import turned_extents


@operator(types=("f32",), reads="cpu", outputs=lambda labels: 2 if labels else 1)
def bbox_rotate(
    bboxes,
    labels=None,
    /,
    *,
    angle: PerSample[float],
    bbox_layout: str = "xyXY",
    bbox_normalized: bool = True,
    input_shape: PerSample[list[int]],
    keep_size: bool = False,
    mode: str = "expand",
    remove_threshold: float = 0.1,
    shape_layout: str = "HW",
    size: PerSample[list[float]] = None,
):
    """Turns boxes as `rotate` turns their image, and drops those that leave it.

    Args:
        bboxes: float32 (N, 4).
        labels: int32 (N,) or (N, 1), which go with their boxes. The call then has two results.
        angle: in degrees, counter-clockwise, as in `rotate`.
        input_shape: extents of the image before it is turned, in the order of `shape_layout`.
        shape_layout: where H and W stand in `input_shape`; what comes behind them in it does not matter.
        keep_size, size: as in `rotate`: the canvas that the image gets. `size` is (H, W); one excludes the other.
        bbox_layout: "xyXY", left, top, right, bottom, or "xyWH", left, top, width, height.
        bbox_normalized: boxes are fractions of the image, and come out as fractions of the canvas. Else pixels.
        mode: what becomes of the turned box, whose sides are no longer upright. "expand": the least box that holds it.
            "fixed": one of the old width and height about the same middle, exchanged if the other one is wide where this one
            is high. "halfway": the mean of the two.
        remove_threshold: boxes are cut off at the border of the canvas. One of which less than this share of its area is
            left is dropped. From 0, which keeps all that have an area when they are turned, to below 1. (Of a box without
            width or height, turned by a right angle, nothing is left; in DALI rounding decides.)

    Turn the boxes with the extents that the image has *before* `rotate`. Boxes need not lie inside the image. Results on
    a GPU are worked out on the CPU, since how many there are depends on them.

    Raises RuntimeError for other types, shapes, layouts and modes, another number of labels than of boxes, both
    `keep_size` and `size`, and a `remove_threshold` that is not in [0, 1).

    >>> import ndd
    >>> boxes = ndd.tensor([[0.25, 0.5, 0.5, 0.75]])
    >>> ndd.bbox_rotate(boxes, angle=90, input_shape=[100, 200]).torch()
    tensor([[0.5000, 0.5000, 0.7500, 0.7500]])
    """
    check_labels(labels)
    if bbox_layout not in ("xyXY", "xyWH"):
        raise RuntimeError(f'`bbox_layout`: expected "xyXY" or "xyWH", got {bbox_layout!r}')
    if mode not in ("expand", "halfway", "fixed"):
        raise RuntimeError(f'`mode`: expected "expand", "halfway" or "fixed", got {mode!r}')
    if not {"H", "W"} <= set(shape_layout):
        raise RuntimeError(f"`shape_layout`: expected a layout with H and W, got {shape_layout!r}")
    if keep_size and size is not None:
        raise RuntimeError("`keep_size` and `size` exclude each other")
    if not 0 <= remove_threshold < 1:
        raise RuntimeError(f"`remove_threshold`: expected a number from 0 to below 1, got {remove_threshold}")
    boxes = output(float32, 2)
    return boxes if labels is None else (boxes, output(int32, labels.ndim))


@bbox_rotate.batch
def _(
    call, bboxes, labels, *, angle, bbox_layout, bbox_normalized, input_shape, keep_size, mode, remove_threshold,
    shape_layout, size,
):  # fmt: skip
    check_boxes(bboxes, (4,), labels)
    extents = _heights_and_widths(input_shape, shape_layout)
    degrees = angle.each()
    for i in np.flatnonzero(~np.isfinite(degrees))[:1]:
        raise bad_sample(int(i), f"`angle`: expected a finite number, got {degrees[i]}")
    c, s, canvas = turned_extents(degrees, size, keep_size, extents)
    owner = np.repeat(np.arange(call.n), bboxes.shapes[:, 0])
    # A row for each number of a box, [4, N]: NumPy is several times as fast on long rows as on rows of two.
    boxes = joined(bboxes).T.astype(np.float64, order="C")
    if bbox_layout == "xyWH":
        boxes[2:] += boxes[:2]
    rows = np.concatenate([extents.T[::-1], canvas.T[::-1], c[None], s[None]])[:, owner]
    before, after = rows[:2], rows[2:4]
    if bbox_normalized:
        boxes[:2] *= before
        boxes[2:] *= before
    turned = _turned(boxes, before, after, rows[4], rows[5], mode)
    if bbox_normalized:
        with np.errstate(invalid="ignore", divide="ignore"):
            turned[:2] /= after
            turned[2:] /= after
    inside, kept = cut_off(turned.T, 1 if bbox_normalized else np.tile(after.T, 2), remove_threshold)
    if bbox_layout == "xyWH":
        inside[:, 2:] -= inside[:, :2]
    left = np.bincount(owner[kept], minlength=call.n)
    found = divided(inside[kept].astype(np.float32), left)
    return found if labels is None else (found, divided(joined(labels)[kept], left))


def _heights_and_widths(input_shape, shape_layout: str) -> np.ndarray:
    found = np.empty((input_shape.n, 2), np.int64)
    wanted = [shape_layout.index("H"), shape_layout.index("W")]
    for i, shape in enumerate(input_shape.distinct()):
        if shape.ndim != 1 or len(shape) < len(shape_layout):
            text = f"`input_shape`: expected {len(shape_layout)} numbers, {shape_layout}, got {shape.tolist()}"
            raise input_shape.error(i, text)
        found[i if input_shape.varies else slice(None)] = shape[wanted]
    return found


def _turned(boxes: np.ndarray, before: np.ndarray, after: np.ndarray, c, s, mode: str) -> np.ndarray:
    """Upright boxes about what rectangles in images of these widths and heights become, in pixels of the canvas."""
    # Of a right angle one of them is 4e-8 for 0: a box without width would get an area, and be kept.
    c, s = np.where(np.abs(c) < 1e-6, 0, c), np.where(np.abs(s) < 1e-6, 0, s)
    half = (boxes[2:] - boxes[:2]) / 2
    x, y = boxes[:2] + half - before / 2
    middle = np.stack([c * x + s * y, c * y - s * x]) + after / 2
    c, s, (w, h) = np.abs(c), np.abs(s), np.abs(half)
    whole = np.stack([c * w + s * h, c * h + s * w])
    if mode == "expand":
        return np.concatenate([middle - whole, middle + whole])
    # At 45 degrees all are as wide as high, but for rounding: they count as wide (in DALI rounding decides).
    wide = whole[0] >= whole[1] * (1 - 1e-6)
    low, high = np.sort(half, axis=0)
    half = np.where(wide, [high, low], [low, high])
    if mode == "halfway":
        half = (half + whole) / 2
    return np.concatenate([middle - half, middle + half])


bbox_rotate.cuda(computed_on_host)
