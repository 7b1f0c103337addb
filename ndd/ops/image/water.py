"""`ndd.water`: warps images in waves."""

from __future__ import annotations

import numpy as np

from ndd._operator import PerSample, Plan, like, operator
from ndd.ops.image.warping import NEAREST, check_interpolation, launch_warp, sampling, warp_kernels
from ndd.ops.image.window import wrapped
from ndd.types import DALIInterpType


@operator(layouts=("HWC",), masks=True, types=("u8", "f32"))
def water(
    input,
    /,
    *,
    ampl_x: float = 10.0,
    ampl_y: float = 10.0,
    fill_value: float = 0.0,
    freq_x: float = 0.04908738521,
    freq_y: float = 0.04908738521,
    interp_type: DALIInterpType = NEAREST,
    mask: PerSample[int] = 1,
    phase_x: float = 0.0,
    phase_y: float = 0.0,
):
    """Moves pixels in waves, as if the image lay under water.

    Args:
        input: layout HWC, uint8 or float32. A mask, HW, counts as one channel and comes out as HW.
        ampl_x, ampl_y: the amplitudes along x and y, in pixels.
        freq_x, freq_y: radians per pixel.
        phase_x, phase_y: radians.
        interp_type: INTERP_NN or INTERP_LINEAR.
        fill_value: the value outside the image; for uint8 converted as in C (the fraction is dropped, 300 -> 44).
        mask: 0 leaves the image unchanged.

    `out[y, x] = in[y + ampl_y cos(freq_y x + phase_y), x + ampl_x sin(freq_x y + phase_x)]`, relative to the corner of the
    image. INTERP_NN reads the pixel at the coordinates rounded down. INTERP_LINEAR interpolates between pixel centres, and
    rounds halves away from zero. Shape, layout and type stay. The coordinates of `cv2.remap` are relative to the centre of the
    first pixel: subtract 0.5.

    Differences from DALI: a constant `mask=0` returns the image, where DALI returns other memory; images without pixels are
    accepted.

    Raises ValueError for other layouts, RuntimeError for other types and interpolations.

    >>> import ndd
    >>> image = ndd.tensor([[[1], [2], [3]]], dtype=ndd.uint8, layout="HWC")
    >>> ndd.water(image, ampl_x=1, ampl_y=0, phase_x=1.58)[0, :, 0].torch()
    tensor([1, 2, 3], dtype=torch.uint8)
    >>> ndd.water(ndd.demo.photo("cat"), ampl_x=12, ampl_y=12, freq_x=0.04, freq_y=0.04).shape
    (266, 400, 3)
    """
    check_interpolation(interp_type)
    return like(input)


@water.plan
def _(input, *, ampl_x, ampl_y, fill_value, freq_x, freq_y, interp_type, mask, phase_x, phase_y):
    applied = (mask.each() != 0).astype(np.int32)
    wave = np.array([ampl_x, freq_x, phase_x, ampl_y, freq_y, phase_y], np.float32)
    fill = float(wrapped(fill_value, input.dtype.numpy))
    shared = {"wave": wave, **sampling(input.dtype, input.dtype, interp_type, 0, fill)}
    plan = Plan(input.shapes, {"applied": applied}, shared)
    plan.kernel = warp_kernels(input, plan, input.dtype)
    return plan


@water.cuda("water.cu")
def _(launch, image, out):
    launch_warp(launch, "water")
