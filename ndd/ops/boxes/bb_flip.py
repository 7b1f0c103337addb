"""`ndd.bb_flip`: mirrors boxes with their images."""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel
from ndd._operator import PerSample, Plan, like, operator
from ndd.ops.boxes.box_columns import check_columns


@operator(types=("f32",))
def bb_flip(input, /, *, horizontal: PerSample[int] = 1, ltrb: bool = False, vertical: PerSample[int] = 0):
    """Mirrors boxes as `flip` mirrors their image.

    Args:
        input: float32 boxes, (N, 4) or (4,), as fractions of the image's width and height; (0,) for none.
        ltrb: boxes are left, top, right, bottom. Default: x, y, width, height.
        horizontal, vertical: mirror along this direction unless 0.

    A mirrored box extends from `1 - right` to `1 - left`. Widths and heights are recomputed as `right - left`, so that their
    last bit may change, as in DALI. Shape and type stay; boxes need not lie inside the image. torchvision's `horizontal_flip`
    takes boxes in pixels.

    Raises RuntimeError for other types, and where a box is not 4 numbers (DALI reads past the end).

    >>> import ndd
    >>> ndd.bb_flip(ndd.tensor([[0.0, 0.25, 0.25, 0.5]])).torch()
    tensor([[0.7500, 0.2500, 0.2500, 0.5000]])
    """
    return like(input)


@bb_flip.plan
def _(input, *, horizontal, ltrb, vertical):
    check_columns(input)
    mirror = np.array([horizontal.each() != 0, vertical.each() != 0], np.int32).T.copy()
    return Plan(input.shapes, {"mirror": mirror}, {"ltrb": ltrb}, view="flat")


@bb_flip.cpu
@kernel
def _mirrored(boxes, out, mirror, ltrb):
    one = np.float32(1)
    for p in range(0, boxes.size, 4):
        for axis in range(2):
            low, high = boxes[p + axis], boxes[p + 2 + axis]
            if not ltrb:
                high += low
            if mirror[axis]:
                low, high = one - high, one - low
            out[p + axis] = low
            out[p + 2 + axis] = high if ltrb else high - low


bb_flip.cuda("bb_flip.cu")
