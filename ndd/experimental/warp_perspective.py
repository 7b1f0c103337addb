"""`ndd.experimental.warp_perspective`: images through a perspective map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ndd._cpu.sampling import BORDERS
from ndd._cpu.warp import warp_perspective as warp
from ndd._operator import PerSample, Plan, like, operator
from ndd.ops.image.warping import (
    LINEAR,
    check_interpolation,
    image_views,
    inverted,
    matrices,
    output_extents,
    sampling,
)
from ndd.types import DALIInterpType

_ORIGINS = {"corner": 0.5, "center": 0.0}


@operator(layouts=("HW", "HWC", "FHWC", "CHW", "FCHW"), frames=True, host_inputs=(1,))
def warp_perspective(
    input,
    matrix_input=None,
    /,
    *,
    border_mode: str = "constant",
    fill_value: Sequence[float] = (),
    interp_type: DALIInterpType = LINEAR,
    inverse_map: bool = True,
    matrix: PerSample[list[float]] = None,
    pixel_origin: str = "corner",
    size: PerSample[list[float]] = None,
):
    """Moves the pixels of images by a perspective map.

    Args:
        input: layout HW, HWC or CHW, with a leading F for video. uint8, uint16, int16 or float32.
        matrix_input: the matrix as an input, in place of `matrix`.
        matrix: 3x3 numbers, or nine in one list. Video may have one for each frame.
        inverse_map: the matrix says where in the input a pixel of the output comes from; if False, the reverse.
        size: (H, W) of the output. Default: that of the input.
        interp_type: INTERP_LINEAR or INTERP_NN.
        border_mode: what lies outside the image: "constant" (`fill_value`), "replicate", "reflect", "reflect_101" or
            "wrap".
        fill_value: one number, or one for each channel. Default: 0.
        pixel_origin: what (0, 0) is: the "corner" of the first pixel, or its "center" as in OpenCV.

    `(X, Y, Z) = M @ (x, y, 1)`, and the pixel is read at (X / Z, Y / Z). Layout and type stay.

    Differs from DALI: INTERP_CUBIC is refused, and int16 is as exact as the others.

    Raises RuntimeError for other types, names and interpolations and for a matrix or a size of another shape.

    >>> import ndd
    >>> image = ndd.tensor([[1.0, 2.0, 3.0]], layout="HW")
    >>> ndd.experimental.warp_perspective(image, matrix=[1, 0, 1, 0, 1, 0, 0, 0, 1]).torch()
    tensor([[2., 3., 0.]])
    """
    check_interpolation("warp_perspective", interp_type)
    if input.dtype.name not in ("u8", "u16", "i16", "f32"):
        raise RuntimeError(
            f"warp_perspective: The operator accepts the following input types: uint8, int16, uint16, float, not "
            f"{input.dtype}"
        )
    if border_mode not in BORDERS:
        raise RuntimeError(f"warp_perspective: Invalid border_mode argument: {border_mode}. Use one of {[*BORDERS]}")
    if pixel_origin not in _ORIGINS:
        raise RuntimeError(f"warp_perspective: Invalid pixel_origin argument: {pixel_origin}. Use one of {[*_ORIGINS]}")
    return like(input)


@warp_perspective.plan
def _(input, matrix_input, *, border_mode, fill_value, interp_type, inverse_map, matrix, pixel_origin, size):
    shapes, layout = input.shapes, input.layout
    axes = [layout.index("H"), layout.index("W")]
    channels = shapes[:, layout.index("C")] if "C" in layout else np.ones(input.n, np.int64)
    fill = fill_value if len(fill_value) else (0.0,)
    if len(fill) > 1 and (channels != len(fill)).any():
        raise RuntimeError(
            f"Number of values provided as a fill_value should match the number of channels. Number of channels: "
            f"{channels.max()}. Number of values provided: {len(fill)}."
        )
    maps = matrices(matrix, matrix_input, input.n, (3, 3))
    maps = maps if inverse_map else inverted(maps)
    targets = output_extents(size, shapes[:, axes])
    outputs = shapes.copy()
    outputs[:, axes] = targets
    per_sample = {
        "matrix": np.ascontiguousarray(maps, np.float64),
        "view": image_views(shapes[:, axes], channels, targets),
    }
    shared: dict[str, Any] = {"origin": _ORIGINS[pixel_origin], "planar": layout == "CHW"}
    border = BORDERS[border_mode]
    return Plan(
        outputs, per_sample, {**shared, **sampling(input, input.dtype, interp_type, border, fill, layout == "CHW")}
    )


@warp_perspective.cpu
def _(image, matrix_input, out, matrix, origin, planar, how):
    if not out.size:
        return
    if not image.size:
        out[...] = how[2][0]
    elif planar:
        for c, (plane, target) in enumerate(zip(image, out, strict=True)):
            fill = how[2][c : c + 1] if len(how[2]) > 1 else how[2]
            warp(plane[..., None], target[..., None], matrix, origin, *how[:2], fill, *how[3:])
    elif image.ndim == 2:
        warp(image[..., None], out[..., None], matrix, origin, *how)
    else:
        warp(image, out, matrix, origin, *how)


@warp_perspective.cuda("warp_perspective.cu")
def _(launch, image, matrix_input, out):
    view = launch.plan.per_sample["view"]
    launch("warp_perspective", view[:, 3].astype(np.int64) * view[:, 4], kept="all")
