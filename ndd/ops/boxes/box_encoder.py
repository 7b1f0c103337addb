"""`ndd.box_encoder`: assigns boxes to anchors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd._operator import Plan, operator, output
from ndd._tensor.dtype import float32, int32
from ndd.ops.boxes.box_columns import check_boxes, check_labels


@operator(types=("f32",), outputs=2)
def box_encoder(
    boxes,
    labels,
    /,
    *,
    anchors: Sequence[float],
    criteria: float = 0.5,
    means: Sequence[float] = (0.0, 0.0, 0.0, 0.0),
    offset: bool = False,
    scale: float = 1.0,
    stds: Sequence[float] = (1.0, 1.0, 1.0, 1.0),
):
    """Assigns to each anchor a box and its label: the training targets of SSD ("SSD: Single Shot MultiBox Detector", section
    2.2).

    Args:
        boxes: float32 (N, 4): left, top, right, bottom, as fractions of the image.
        labels: int32 (N,) or (N, 1); 0 is the background's.
        anchors: A default boxes in the form of `boxes`: 4 A numbers, or an array (A, 4). An array is much faster than a list:
            SSD300 has 8732.
        criteria: an anchor gets its best box if their intersection over union is above this, from 0 to 1.
        offset: return distances from the anchor in place of boxes.
        scale: with `offset`, boxes and anchors are multiplied by it first.
        means, stds: with `offset`, 4 numbers each (x, y, w, h) to subtract and to divide by.

    Returns float32 (A, 4) and int32 (A,). An anchor gets the box with the greatest intersection over union. Each box also gets
    the anchor that fits it best, even below `criteria`. Of equally good ones the last counts, and of two boxes with the same
    best anchor the later. The result is the box as (centre x, centre y, width, height); an anchor without a box returns its own
    coordinates, and label 0. With `offset`: `((box centre - anchor centre) / anchor size - mean) / std` and `(ln(box size /
    anchor size) - mean) / std`, 0 for an anchor without a box. Overlaps are computed in float32, so that CPU, GPU and DALI make
    the same choices.

    Raises RuntimeError for other types and shapes, another number of labels than of boxes (DALI reads past the end),
    no anchors (DALI crashes) or anchors whose count is not a multiple of 4, `means` or `stds` of other than 4 numbers, a std of
    0 and a `criteria` outside 0..1.

    >>> import ndd
    >>> boxes, labels = ndd.tensor([[0.0, 0.0, 0.5, 0.5]]), ndd.tensor([7])
    >>> ndd.box_encoder(boxes, labels, anchors=[0, 0, 0.5, 0.75, 0.5, 0.5, 1, 1])[1].torch()
    tensor([7, 0], dtype=torch.int32)
    """
    check_labels(labels)
    count = np.size(anchors)
    if not count or count % 4:
        raise RuntimeError(f"`anchors`: expected a positive multiple of 4 numbers, got {count}")
    for name, values in (("means", means), ("stds", stds)):
        if np.size(values) != 4:
            raise RuntimeError(f"`{name}`: expected 4 numbers (x, y, w, h), got {np.size(values)}")
    if not np.all(stds):
        raise RuntimeError(f"`stds`: expected numbers other than 0, got {np.asarray(stds).tolist()}")
    if not 0 <= criteria <= 1:
        raise RuntimeError(f"`criteria`: expected a number in 0..1, got {criteria}")
    return output(float32, 2), output(int32, 1)


@box_encoder.plan
def _(boxes, labels, *, anchors, criteria, means, offset, scale, stds):
    check_boxes(boxes, (4,), labels)
    corners = anchors.reshape(-1, 4)
    numbers = np.concatenate((means, 1 / stds)).astype(np.float32)
    shared = {"criteria": np.float32(criteria), "scale": np.float32(scale), "offset": offset}
    shared |= {"anchors": corners, "anchor_count": len(corners), "numbers": numbers}
    shapes = [np.tile(np.array(shape), (boxes.n, 1)) for shape in ([len(corners), 4], [len(corners)])]
    work = boxes.sizes * len(corners)  # an anchor and a box take about as long as moving 4 bytes
    return Plan(shapes, {}, shared, view={"labels": "flat"}, work=work)


@box_encoder.cpu
@kernel
def _encode(boxes, labels, out, out_labels, anchors, numbers, criteria, scale, offset):
    count = len(anchors)
    sides = empty((4, count), np.float32)  # the inner loop runs over anchors in vector registers
    for a in range(count):
        for k in range(4):
            sides[k, a] = anchors[a, k]
    most, overlap, match = empty(count, np.float32), empty(count, np.float32), empty(count, np.int32)
    bits = overlap.view(np.int32)
    for a in range(count):
        most[a], match[a] = np.float32(-1), np.int32(-1)
    zero, two, half = np.float32(0), np.float32(2), np.float32(0.5)
    left, top, right, bottom = sides[0], sides[1], sides[2], sides[3]
    for b in range(len(boxes)):
        l, t, r, d = boxes[b, 0], boxes[b, 1], boxes[b, 2], boxes[b, 3]
        area = (r - l) * (d - t)
        for a in range(count):
            w = min(r, right[a]) - max(l, left[a])
            h = min(d, bottom[a]) - max(t, top[a])
            shared = w * h if w > zero and h > zero else zero
            union = area + (right[a] - left[a]) * (bottom[a] - top[a]) - shared
            overlap[a] = shared / union if shared > zero else zero
        # The bits of floats from 0 on, as integers, have the same order, so their maximum is computed in vector registers. NaN
        # is above infinity.
        best = np.int32(0)
        for a in range(count):
            best = max(best, bits[a] if bits[a] <= 0x7F800000 else np.int32(0))
        at = count - 1
        while at >= 0 and bits[at] != best:
            at -= 1
        if at >= 0:
            overlap[at] = two
        for a in range(count):
            if overlap[a] >= most[a]:
                most[a], match[a] = overlap[a], b
    for a in range(count):
        matched, b = most[a] > criteria, match[a]
        out_labels[a] = labels[b] if matched else 0
        for k in range(2):
            low, high = (boxes[b, k], boxes[b, k + 2]) if matched else (sides[k, a], sides[k + 2, a])
            centre, side = (low + high) * half, high - low
            if offset:
                own, unit = (sides[k, a] + sides[k + 2, a]) * half * scale, (sides[k + 2, a] - sides[k, a]) * scale
                centre = ((centre * scale - own) / unit - numbers[k]) * numbers[k + 4] if matched else zero
                side = (np.log(side * scale / unit) - numbers[k + 2]) * numbers[k + 6] if matched else zero
            out[a, k], out[a, k + 2] = centre, side


@box_encoder.cuda("box_encoder.cu")
def _(launch, boxes, labels, out, out_labels, *, anchors):
    """First a block of threads searches the best anchor of each box, then a thread the best box of each anchor."""
    counts = boxes.shapes[:, 0]
    fields = {"anchors": launch.table(anchors), "best": launch.scratch(counts, np.int32)}
    launch("best_anchor", counts * 256, per_sample=fields)
    launch("box_encoder", len(anchors), per_sample=fields)
