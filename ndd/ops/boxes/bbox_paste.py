"""`ndd.bbox_paste`: moves boxes to a larger canvas."""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel
from ndd._operator import PerSample, Plan, bad_sample, like, operator
from ndd.ops.boxes.box_columns import check_columns


@operator(types=("f32",))
def bbox_paste(
    input,
    /,
    *,
    ltrb: bool = False,
    paste_x: PerSample[float] = 0.5,
    paste_y: PerSample[float] = 0.5,
    ratio: PerSample[float],
):
    """Moves boxes as `paste` moves their image.

    Args:
        input: float32 boxes, (N, 4) or (4,), as fractions of the image's width and height.
        ratio: of the canvas' width and height to the image's; above 0.
        paste_x, paste_y: the position of the image on the canvas, from 0 (left, top) to 1 (right, bottom). `paste` refuses
            other numbers; here, as in DALI, larger numbers count as 1, and smaller ones are used as they are.
        ltrb: boxes are left, top, right, bottom. Default: x, y, width, height.

    A corner becomes `x / ratio + paste_x (1 - 1 / ratio)`, a width `w / ratio`: fractions of the canvas. Shape and type
    stay. `paste` puts images on whole pixels, so that boxes fit to one pixel.

    Raises RuntimeError for other types, where a box is not 4 numbers (DALI reads past the end), and for a `ratio` that
    is not above 0 (DALI gives NaN).

    >>> import ndd
    >>> ndd.bbox_paste(ndd.tensor([[0.0, 0.5, 0.5, 0.5]]), ratio=2, paste_x=0).torch()
    tensor([[0.0000, 0.5000, 0.2500, 0.2500]])
    """
    return like(input)


@bbox_paste.plan
def _(input, *, ltrb, paste_x, paste_y, ratio):
    check_columns(input)
    ratios = ratio.each().astype(np.float32)
    for i in np.flatnonzero(~(ratios > 0))[:1]:
        raise bad_sample(int(i), f"`ratio`: expected a number above 0, got {ratios[i]}")
    factor = np.float32(1) / ratios
    rest = np.float32(1) - factor
    shift = np.zeros((input.n, 4), np.float32)
    for axis, place in enumerate((paste_x, paste_y)):
        shift[:, axis] = np.minimum(place.each() * rest, rest)  # beyond 1 as 1, as in DALI; below 0 as it is
    if ltrb:
        shift[:, 2:] = shift[:, :2]
    return Plan(input.shapes, {"factor": factor, "shift": shift}, view="flat")


@bbox_paste.cpu
@kernel
def _moved(boxes, out, factor, shift):
    for p in range(boxes.size):
        out[p] = boxes[p] * factor + shift[p & 3]


bbox_paste.cuda("bbox_paste.cu")
