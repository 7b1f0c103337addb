"""`ndd.resize_crop_mirror`: resizes, crops and mirrors in one resampling of the window."""

from __future__ import annotations

import numpy as np

from ndd._cpu.windows import place_windows
from ndd._cuda.resample import resample_batch
from ndd._operator import PerSample, like, operator
from ndd._tensor.dtype import DType
from ndd.ops.image.resample_on_cpu import resample_on_cpu
from ndd.ops.image.resize_extents import cut_windows
from ndd.ops.image.resize_geometry import (
    LAYOUTS,
    TYPES,
    Geometry,
    asked_geometry,
    check_resize,
    resample_plan,
    resampled_part,
)
from ndd.ops.image.window import ROUNDINGS, check_crop, crop_places, crop_sizes, misplaced
from ndd.types import DALIInterpType


@operator(layouts=LAYOUTS, masks=True, types=TYPES, argument_shapes=False)
def resize_crop_mirror(
    input,
    /,
    *,
    antialias: bool = True,
    crop: PerSample[list[float]] = None,
    crop_d: PerSample[float] = None,
    crop_h: PerSample[float] = None,
    crop_pos_x: PerSample[float] = 0.5,
    crop_pos_y: PerSample[float] = 0.5,
    crop_pos_z: PerSample[float] = 0.5,
    crop_w: PerSample[float] = None,
    dtype: DType | None = None,
    interp_type: PerSample[DALIInterpType] = None,
    mag_filter: PerSample[DALIInterpType] = None,
    max_size: list[float] | None = None,
    min_filter: PerSample[DALIInterpType] = None,
    minibatch_size: int = 32,
    mirror: PerSample[int] = 0,
    mode: str | None = None,
    resize_longer: PerSample[float] = None,
    resize_shorter: PerSample[float] = None,
    resize_x: PerSample[float] = None,
    resize_y: PerSample[float] = None,
    resize_z: PerSample[float] = None,
    roi_end: PerSample[list[float]] = None,
    roi_relative: bool = False,
    roi_start: PerSample[list[float]] = None,
    rounding: str = "round",
    rule: str = "dali",
    size: PerSample[list[float]] = None,
    subpixel_scale: bool = True,
    temp_buffer_hint: int = 0,
):
    """Resizes, then takes a window, then mirrors; only the pixels of the window are computed.

    The result is that of `resize`, `crop` and `flip` one after the other (except for rounding in the last digit), at the cost
    of the window.

    Args:
        input: u8, i16, u16 or f32; layouts as `resize`. A mask, HW, counts as one channel and comes out as HW.
        crop: height and width of the window, or depth, height and width (the depth does not matter to images); the
            fraction is dropped. 0 or less: the whole extent. A window may be larger than the resized image: beyond it the edge
            is repeated, for the nearest pixel too (there DALI's CPU operator reads memory after the row, or crashes).
        crop_w, crop_h, crop_d: the same numbers separately; `crop_w` and `crop_h` belong together.
        crop_pos_x, crop_pos_y, crop_pos_z: the position of the window, 0 (left, top, front) to 1. Its start is
            `crop_pos * (extent - crop)`, rounded.
        rounding: how the start is rounded: "round" (half away from zero), "truncate" or "even" (half to even, see `crop`).
        rule: see `resize`. With "torchvision" the result is that of `resize`, `crop` and `flip` to the last bit.
        mirror: a sum of 1 (mirror horizontally), 2 (vertically) and 4 (front to back). DALI does so for HWC and DHWC
            only; in other layouts it mirrors other axes or none.
        antialias, dtype, interp_type, mag_filter, max_size, min_filter, mode, resize_longer, resize_shorter,
            resize_x, resize_y, resize_z, roi_end, roi_relative, roi_start, size, subpixel_scale: see `resize`.
        minibatch_size, temp_buffer_hint: have no effect.

    PIL and torchvision need three steps. torchvision's `center_crop` rounds half a pixel to even, and pads with black if the
    window is larger than the image.

    Raises RuntimeError as `resize`, for a `crop` of other than 2 or 3 numbers or beside `crop_w` and `crop_h`, one of
    these alone, positions outside [0, 1] and an unknown `rounding`; ValueError for other layouts and filters.

    >>> import ndd
    >>> image = ndd.tensor([[[0], [10], [20], [30]]], dtype=ndd.uint8, layout="HWC")
    >>> ndd.resize_crop_mirror(image, size=[1, 4], crop=[1, 2], crop_pos_x=0.0, mirror=1).torch().flatten()
    tensor([10,  0], dtype=torch.uint8)
    >>> ndd.resize_crop_mirror(ndd.demo.photo("cat"), resize_shorter=160, crop=(160, 160), mirror=1).shape
    (160, 160, 3)
    """
    check_resize("resize_crop_mirror", **locals())
    check_crop("resize_crop_mirror", crop=crop, crop_d=crop_d, crop_h=crop_h, crop_w=crop_w, rounding=rounding)
    return like(input, dtype=dtype)


@resize_crop_mirror.plan
def _(input, *, mirror, rounding, **arguments):
    axes, geometry = asked_geometry(input, **arguments)
    letters = "".join(input.layout[a] for a in axes)
    sizes, places = crop_sizes(letters, **arguments), crop_places(letters, **arguments)
    bits = np.array([{"W": 1, "H": 2, "D": 4}[letter] for letter in letters])
    if arguments["rule"] == "torchvision":
        geometry, wrong = _windows_of_results(geometry, sizes, places, rounding, (mirror.each()[:, None] & bits) != 0)
    else:
        window = (sizes, places, ROUNDINGS.index(rounding), mirror.each(), bits)
        wrong = cut_windows(geometry.size, geometry.start, geometry.end, *window)
    if wrong >= 0:
        raise misplaced(wrong, letters, places, arguments)
    return resample_plan(input, axes, geometry, **arguments)


def _windows_of_results(
    geometry: Geometry, sizes: np.ndarray, places: np.ndarray, rounding: str, mirrored: np.ndarray
) -> tuple[Geometry, int]:
    """Windows of the complete results, mirrored by `mirrored` `[N or 1, D]`, and the result of `place_windows`."""
    whole = np.ascontiguousarray(geometry.size)
    corners, shapes = np.empty_like(whole), np.empty_like(whole)
    wrong = place_windows(whole, sizes, places, ROUNDINGS.index(rounding), corners, shapes)
    start, end = (
        np.where(mirrored, *ends) for ends in ((geometry.end, geometry.start), (geometry.start, geometry.end))
    )
    skip = np.where(mirrored, whole - corners - shapes, corners)
    return Geometry(whole, start, end, (skip, shapes)), wrong


# A batch: the two passes of all images are one compiled loop, which plans them too.
resize_crop_mirror.batch(resample_on_cpu)
resize_crop_mirror.fuses("decoders", "crop", "crop_h", "roi_start")(resampled_part)
resize_crop_mirror.cuda("resize.cu")(resample_batch)
