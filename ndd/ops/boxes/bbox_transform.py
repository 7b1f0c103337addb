"""`ndd.bbox_transform`: maps boxes by matrices."""

from __future__ import annotations

import numpy as np

from ndd._operator import PerSample, computed_on_host, operator, output
from ndd._tensor.dtype import float32, int32
from ndd.ops.boxes.box_columns import (
    check_boxes,
    check_labels,
    check_threshold,
    cut_off,
    divided,
    joined,
    least_upright,
)


@operator(types=("f32",), reads="cpu", outputs=lambda labels, output_bbox_indices: 1 + labels + output_bbox_indices)
def bbox_transform(
    boxes,
    labels=None,
    /,
    *,
    MT: PerSample[list[float]],
    output_bbox_indices: bool = False,
    remove_threshold: float = 0.1,
):
    """Maps the corners of boxes, as `coord_transform` maps points, and returns the smallest upright boxes that contain them.

    Args:
        boxes: float32 (N, 4): left, top, right, bottom, as fractions of the image.
        labels: int32 (N,) or (N, 1), one for each box. They are then the second result.
        MT: [M T], 2 x 3 numbers or one list: x and y of a corner become `M @ (x, y) + T`, in fractions too.
            `ndd.transforms` makes such matrices.
        output_bbox_indices: also return the numbers of the boxes that are kept, int32 (M,), as the last result.
        remove_threshold: boxes are cut off at 0 and 1. A box with less than this share of its area left is dropped, and so is a
            box without an area; 0 keeps all of them.

    DALI has no such operator. `ndd.Targets` applies `crop`, `flip`, `rotate` and `warp_affine` to images together with their
    boxes. Results on a GPU are computed on the CPU.

    Raises RuntimeError for other types and shapes, and another number of labels than of boxes.

    >>> import ndd
    >>> boxes = ndd.tensor([[0.25, 0.5, 0.5, 0.75], [0.75, 0.75, 1.0, 1.0]])
    >>> ndd.bbox_transform(boxes, MT=ndd.transforms.crop(from_start=[0, 0.5], from_end=[0.5, 1])).torch()
    tensor([[0.5000, 0.0000, 1.0000, 0.5000]])
    """
    check_labels(labels)
    check_threshold(remove_threshold)
    outputs = [output(float32, 2)]
    if labels is not None:
        outputs.append(output(int32, labels.ndim))
    if output_bbox_indices:
        outputs.append(output(int32, 1))
    return tuple(outputs) if len(outputs) > 1 else outputs[0]


# A batch: the number of boxes that are left follows from their values.
@bbox_transform.batch
def _(call, boxes, labels, *, MT, output_bbox_indices, remove_threshold):
    check_boxes(boxes, (4,), labels)
    owner = np.repeat(np.arange(call.n), boxes.shapes[:, 0])
    matrices = MT.matrices(2, 3).astype(np.float64)[owner]
    moved = least_upright(joined(boxes).astype(np.float64), matrices[:, :, :2], matrices[:, :, 2:])
    inside, kept = cut_off(moved, 1, remove_threshold)
    kept |= remove_threshold == 0  # the share of a box without an area is not a number
    left_over = np.bincount(owner[kept], minlength=call.n)
    results = [divided(inside[kept].astype(np.float32), left_over)]
    if labels is not None:
        results.append(divided(joined(labels)[kept], left_over))
    if output_bbox_indices:
        counts = boxes.shapes[:, 0]
        numbers = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        results.append(divided(numbers[kept].astype(np.int32), left_over))
    return results if len(results) > 1 else results[0]


bbox_transform.cuda(computed_on_host)
