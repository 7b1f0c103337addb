"""`ndd.bbox_rotate`: turns boxes with their images."""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel
from ndd._operator import PerSample, bad_sample, computed_on_host, operator, output
from ndd._tensor.dtype import float32, int32
from ndd.ops.boxes.box_columns import check_boxes, check_labels, divided, joined
from ndd.ops.image.rotate import turned_extents

_MODES = ("expand", "fixed", "halfway")
_EXPAND, _HALFWAY = _MODES.index("expand"), _MODES.index("halfway")
_FEW = 4096  # up to this many boxes Python's interpreter does the work while the kernel is compiled: 0.1 s


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
        labels: int32 (N,) or (N, 1), one for each box. They are then the second result.
        angle: in degrees, counter-clockwise, as in `rotate`.
        input_shape: extents of the image before it is turned, in the order of `shape_layout`.
        shape_layout: the places of H and W in `input_shape`; extents after them do not matter.
        keep_size, size: the canvas of the turned image, as in `rotate`. `size` is (H, W). They exclude each other.
        bbox_layout: "xyXY", left, top, right, bottom, or "xyWH", left, top, width, height.
        bbox_normalized: boxes are fractions of the image, and the results fractions of the canvas. Otherwise both are pixels.
        mode: the upright box for a turned box. "expand": the smallest box that contains it. "fixed": a box of the old width and
            height with the same centre; they are exchanged if a wide box becomes a high one, or the reverse. "halfway": the
            mean of the two.
        remove_threshold: boxes are cut off at the border of the canvas. A box with less than this share of its area left is
            dropped. From 0, which keeps every turned box that has an area, to below 1. (A box without width or height has no
            area after a turn by a right angle; in DALI rounding decides.)

    Pass the extents of the image *before* `rotate`. Boxes need not lie inside the image. Results on a GPU are computed on the
    CPU, since the number of boxes depends on their values.

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
    if mode not in _MODES:
        raise RuntimeError(f'`mode`: expected "expand", "halfway" or "fixed", got {mode!r}')
    if not {"H", "W"} <= set(shape_layout):
        raise RuntimeError(f"`shape_layout`: expected a layout with H and W, got {shape_layout!r}")
    if keep_size and size is not None:
        raise RuntimeError("`keep_size` and `size` exclude each other")
    if not 0 <= remove_threshold < 1:
        raise RuntimeError(f"`remove_threshold`: expected a number from 0 to below 1, got {remove_threshold}")
    boxes = output(float32, 2)
    return boxes if labels is None else (boxes, output(int32, labels.ndim))


# A batch: the number of boxes that are left follows from their values.
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
    boxes, counts = joined(bboxes), bboxes.shapes[:, 0]
    sizes = np.concatenate([extents.T[::-1], canvas.T[::-1], c[None], s[None]])
    turned, kept, left = (
        np.empty((len(boxes), 4), np.float32),
        np.empty(len(boxes), np.int64),
        np.empty(call.n, np.int64),
    )
    total = turn_boxes(
        boxes, counts, sizes, bbox_layout == "xyWH", bool(bbox_normalized), _MODES.index(mode), float(remove_threshold),
        turned, kept, left,
    )  # fmt: skip
    result = divided(turned[:total], left)
    return result if labels is None else (result, divided(joined(labels)[kept[:total]], left))


def _heights_and_widths(input_shape, shape_layout: str) -> np.ndarray:
    sides = np.empty((input_shape.n, 2), np.int64)
    wanted = [shape_layout.index("H"), shape_layout.index("W")]
    for i, shape in enumerate(input_shape.distinct()):
        if shape.ndim != 1 or len(shape) < len(shape_layout):
            text = f"`input_shape`: expected {len(shape_layout)} numbers, {shape_layout}, got {shape.tolist()}"
            raise input_shape.error(i, text)
        sides[i if input_shape.varies else slice(None)] = shape[wanted]
    return sides


@kernel
def turn_boxes(boxes, counts, sizes, with_extents, normalized, mode, threshold, out, kept, left):
    """Computes the upright boxes for the turned boxes of all samples. Returns how many are kept; `left` has that count for each
    sample, `kept` their numbers. `sizes` is [6, N]: width and height before and after, cosine and sine."""
    row, n_kept = 0, 0
    for n in range(counts.size):
        width, height, new_width, new_height = sizes[0, n], sizes[1, n], sizes[2, n], sizes[3, n]
        # For a right angle one of them is 4e-8 instead of 0: a box without width would get an area, and be kept.
        c = 0.0 if abs(sizes[4, n]) < 1e-6 else sizes[4, n]
        s = 0.0 if abs(sizes[5, n]) < 1e-6 else sizes[5, n]
        right, bottom = (1.0, 1.0) if normalized else (new_width, new_height)
        before = n_kept
        for _ in range(counts[n]):
            x0, y0, x1, y1 = (
                np.float64(boxes[row, 0]),
                np.float64(boxes[row, 1]),
                np.float64(boxes[row, 2]),
                np.float64(boxes[row, 3]),
            )
            if with_extents:
                x1, y1 = x1 + x0, y1 + y0
            if normalized:
                x0, y0, x1, y1 = x0 * width, y0 * height, x1 * width, y1 * height
            across, down = (x1 - x0) / 2, (y1 - y0) / 2
            x, y = x0 + across - width / 2, y0 + down - height / 2
            middle_x, middle_y = c * x + s * y + new_width / 2, c * y - s * x + new_height / 2
            w, h = abs(across), abs(down)
            whole_w, whole_h = abs(c) * w + abs(s) * h, abs(c) * h + abs(s) * w
            w, h = whole_w, whole_h
            if mode != _EXPAND:
                # At 45 degrees all boxes are as wide as high, except for rounding. They count as wide (in DALI rounding
                # decides).
                low, high = min(across, down), max(across, down)
                w, h = (high, low) if whole_w >= whole_h * (1 - 1e-6) else (low, high)
            if mode == _HALFWAY:
                w, h = (w + whole_w) / 2, (h + whole_h) / 2
            x0, y0, x1, y1 = middle_x - w, middle_y - h, middle_x + w, middle_y + h
            if normalized:
                x0, y0, x1, y1 = x0 / new_width, y0 / new_height, x1 / new_width, y1 / new_height
            area = (x1 - x0) * (y1 - y0)
            x0, x1 = min(max(x0, 0.0), right), min(max(x1, 0.0), right)
            y0, y1 = min(max(y0, 0.0), bottom), min(max(y1, 0.0), bottom)
            if (x1 - x0) * (y1 - y0) / area >= threshold:
                if with_extents:
                    x1, y1 = x1 - x0, y1 - y0
                out[n_kept, 0], out[n_kept, 1], out[n_kept, 2], out[n_kept, 3] = x0, y0, x1, y1
                kept[n_kept] = row
                n_kept += 1
            row += 1
        left[n] = n_kept - before
    return n_kept


bbox_rotate.cuda(computed_on_host)
