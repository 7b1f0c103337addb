"""`ndd.sphere`: warps images onto a ball."""

from __future__ import annotations

import numpy as np

from ndd._operator import PerSample, Plan, like, operator
from ndd.ops.image.warping import NEAREST, check_interpolation, launch_warp, sampling, warp_kernels
from ndd.ops.image.window import wrapped
from ndd.types import DALIInterpType


@operator(layouts=("HWC",), masks=True, types=("u8", "f32"))
def sphere(
    input,
    /,
    *,
    fill_value: float = 0.0,
    interp_type: DALIInterpType = NEAREST,
    mask: PerSample[int] = 1,
):
    """Moves pixels as if the image lay on a ball.

    Args:
        input: layout HWC, uint8 or float32. A mask, HW, counts as one channel and comes out as HW.
        interp_type: INTERP_NN or INTERP_LINEAR.
        fill_value: the value outside the image; for uint8 converted as in C (the fraction is dropped, 300 -> 44).
        mask: 0 leaves the image unchanged.

    With d the vector from the centre of the image to the centre of a pixel, the pixel is read at `centre + d |d| / (half of the
    longer side)`; half of an odd side is rounded down. Results of INTERP_LINEAR are rounded, halves away from zero. Shape,
    layout and type stay. These places are relative to the corner of the image; those of `cv2.remap` are relative to the centre
    of the first pixel, i.e. 0.5 less.

    Differences from DALI: a constant `mask=0` returns the image, where DALI returns other memory; images without pixels are
    accepted.

    Raises ValueError for other layouts, RuntimeError for other types and interpolations.

    >>> import ndd
    >>> row = ndd.tensor([[[1], [2], [3], [4], [5], [6], [7]]], dtype=ndd.uint8, layout="HWC")
    >>> ndd.sphere(row)[0, :, 0].torch()
    tensor([1, 3, 4, 4, 4, 5, 7], dtype=torch.uint8)
    >>> ndd.sphere(ndd.demo.photo("cat")).shape
    (266, 400, 3)
    """
    check_interpolation(interp_type)
    return like(input)


@sphere.plan
def _(input, *, fill_value, interp_type, mask):
    applied = (mask.each() != 0).astype(np.int32)
    fill = float(wrapped(fill_value, input.dtype.numpy))
    plan = Plan(input.shapes, {"applied": applied}, sampling(input.dtype, input.dtype, interp_type, 0, fill))
    plan.kernel = warp_kernels(input, plan, input.dtype)
    return plan


@sphere.cuda("sphere.cu")
def _(launch, image, out):
    launch_warp(launch, "sphere")
