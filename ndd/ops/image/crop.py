"""`ndd.crop`: a window of each image, by its size and relative position."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ndd._operator import PerSample, Plan, like, operator
from ndd._operator.deprecated import ignored, renamed
from ndd._tensor import DType
from ndd.ops.image.window import (
    bounded,
    check_crop,
    check_policy,
    crop_window,
    cut_on_gpu,
    cut_part,
    window_plan,
)

LAYOUTS = ("HWC", "CHW", "DHWC", "CDHW", "FHWC", "FCHW", "CFHW", "FDHWC", "FCDHW", "CFDHW")
_OUTPUT_TYPES = ("u8", "f16", "f32")


@operator(layouts=LAYOUTS, masks=True, argument_shapes=False)
def crop(
    input,
    /,
    *,
    crop: PerSample[list[float]] = None,
    crop_d: PerSample[float] = None,
    crop_h: PerSample[float] = None,
    crop_pos_x: PerSample[float] = 0.5,
    crop_pos_y: PerSample[float] = 0.5,
    crop_pos_z: PerSample[float] = 0.5,
    crop_w: PerSample[float] = None,
    dtype: DType | None = None,
    fill_values: Sequence[float] = (0.0,),
    image_type: Any = None,
    out_of_bounds_policy: str = "error",
    output_dtype: DType | None = None,
    rounding: str = "round",
):
    """Cuts a window of a given size out of each image.

    Args:
        input: images HWC or CHW, volumes DHWC or CDHW, video with F in front (or CFHW, CFDHW). Without a layout HWC,
            DHWC or FDHWC by rank. Any element type but bool. A mask, HW, counts as one channel and comes out as HW.
        crop: size of the window, (H, W) or (D, H, W); or `crop_h` and `crop_w` together, with `crop_d` for volumes
            (or for the frames of video without depth). A size below 1, or none given, keeps the whole extent;
            fractions are dropped.
        crop_pos_x, crop_pos_y, crop_pos_z: the position of the window, from 0 (start) to 1 (end) of the free space.
        rounding: how `position * (extent - size)` becomes an anchor: "round" (halves away from zero), "truncate", or "even"
            as in torchvision's `center_crop` (halves to even; towards zero where the window is larger than the image).
        out_of_bounds_policy: for windows larger than the image: "error", "pad" (or "constant") with `fill_values`,
            or "trim_to_shape".
        fill_values: one number, or one for each channel.
        dtype: u8, f16, f32 or the input's type (default). Conversion drops fractions and saturates.
        image_type, output_dtype: old arguments; the first has no effect, the second means `dtype`.
        crop_h, crop_w, crop_d: height, width and depth of the window in pixels, in place of `crop`.

    The anchor is `crop_pos * (extent - size)`, rounded. Position 0.5 is the centre crop of torchvision, with
    `rounding="even"`, and of PIL's `ImageOps.fit` without the scaling. The layout stays. Unlike DALI 2.4.0, layouts with
    five axes work.

    Raises ValueError for other layouts, RuntimeError for a window outside the image, a position outside [0, 1] and
    other types.

    >>> import ndd, numpy as np
    >>> image = ndd.tensor(np.arange(20, dtype=np.uint8).reshape(4, 5, 1), layout="HWC")
    >>> ndd.crop(image, crop=(2, 2), crop_pos_x=0, crop_pos_y=1)[:, :, 0].torch()
    tensor([[10, 11],
            [15, 16]], dtype=torch.uint8)
    >>> ndd.crop(ndd.demo.photo("astronaut"), crop=(160, 160), crop_pos_x=0.3, crop_pos_y=0).shape
    (160, 160, 3)
    """
    ignored("crop", "image_type", image_type)
    check_crop("crop", crop=crop, crop_d=crop_d, crop_h=crop_h, crop_w=crop_w, rounding=rounding)
    check_policy(out_of_bounds_policy)
    return like(input, dtype=window_dtype(input.dtype, renamed("crop", "output_dtype", output_dtype, "dtype", dtype)))


def window_dtype(source: DType, wanted: DType | None) -> DType:
    """The output type of operators that cut windows."""
    if source.name == "bool":
        raise RuntimeError("input of type bool is not supported: cast it to uint8")
    if wanted is None or wanted == source:
        return source
    if wanted.name not in _OUTPUT_TYPES:
        raise RuntimeError(f"`dtype`: expected uint8, float16, float32 or the input's type, got {wanted}")
    return wanted


@crop.plan
def _(input, *, dtype, fill_values, image_type, output_dtype, out_of_bounds_policy, **window):
    axes, letters = spatial_axes(input.layout)
    extents = input.shapes
    starts, shapes = np.zeros_like(extents), extents.copy()
    starts[:, axes], shapes[:, axes] = crop_window(extents[:, axes], letters, **window)
    chosen = dtype or output_dtype or input.dtype
    return bounded_plan(input, starts, shapes, out_of_bounds_policy, fill_values, chosen, input.layout)


@functools.cache
def spatial_axes(layout: str) -> tuple[list[int], str]:
    """The axes of a crop and their letters: frames count as depth if there is no depth."""
    as_depth = layout if "D" in layout else layout.replace("F", "D")
    axes = [i for i, c in enumerate(as_depth) if c in "DHW"]
    return axes, "".join(as_depth[i] for i in axes)


def bounded_plan(input, starts, shapes, policy: str, fill_values, dtype: DType, layout: str | None) -> Plan:
    """The plan of an operator whose output is a window of its input, under an out-of-bounds policy."""
    policy = policy.lower()
    starts, shapes, outside = bounded(starts, shapes, input.shapes, policy)
    if not len(fill_values) or (not outside and (len(fill_values) == 1 or policy not in ("pad", "constant"))):
        fill_values = (0,)  # the default, or without effect
    return window_plan(input, starts, shapes, np.atleast_2d(fill_values), dtype, layout)


crop.fuses("decoders", "crop", "crop_h")(cut_part)
crop.cuda("window.cu")(cut_on_gpu)
