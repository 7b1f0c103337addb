"""`ndd.resize_crop_mirror`: resize, take a window, mirror; in one resampling of just that window."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._cpu.extents import cut_windows
from ndd._cpu.resample import resample
from ndd._cuda.resample import resample_batch
from ndd._operator import PerSample, bad_sample, like, operator
from ndd._tensor.dtype import DType
from ndd.ops.image.resize_geometry import (
    LAYOUTS,
    check_choice,
    check_types,
    limits,
    requested_extents,
    resample_plan,
    resize_geometry,
    source_region,
    spatial_axes,
)
from ndd.ops.image.window import columns
from ndd.types import DALIInterpType


@operator(layouts=LAYOUTS)
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
    size: PerSample[list[float]] = None,
    subpixel_scale: bool = True,
    temp_buffer_hint: int = 0,
):
    """Resizes, then takes a window, then mirrors; only the pixels of the window are computed.

    The result is that of `resize`, `crop` and `flip` one after the other (but for rounding in the last digit), at
    the cost of the window.

    Args:
        input: u8, i16, u16 or f32; layouts as `resize`.
        crop: height and width of the window, or depth, height and width (the depth does not matter to images); the
            fraction is dropped. 0 or less: the whole extent. A window may be larger than the resized image: beyond
            it the edge is repeated.
        crop_w, crop_h, crop_d: the same one by one; `crop_w` and `crop_h` go together.
        crop_pos_x, crop_pos_y, crop_pos_z: where the window lies, 0 (left, top, front) to 1. Its start is
            `crop_pos * (extent - crop)`, rounded.
        rounding: of the start: "round" (half away from zero) or "truncate".
        mirror: a sum of 1 (mirror horizontally), 2 (vertically) and 4 (front to back). DALI does so for HWC and DHWC
            only; in other layouts it mirrors other axes or none.
        antialias, dtype, interp_type, mag_filter, max_size, min_filter, mode, resize_longer, resize_shorter,
            resize_x, resize_y, resize_z, roi_end, roi_relative, roi_start, size, subpixel_scale: see `resize`.
        minibatch_size, temp_buffer_hint: have no effect.

    PIL and torchvision do it in three steps; torchvision's `center_crop` rounds half a pixel to even, and is black
    where the window is larger than the image.

    Raises RuntimeError as `resize`, for a `crop` of other than 2 or 3 numbers or beside `crop_w` and `crop_h`, one of
    these alone, positions outside [0, 1] and an unknown `rounding`; ValueError for other layouts and filters.

    >>> import ndd
    >>> image = ndd.tensor([[[0], [10], [20], [30]]], dtype=ndd.uint8, layout="HWC")
    >>> ndd.resize_crop_mirror(image, size=[1, 4], crop=[1, 2], crop_pos_x=0.0, mirror=1).torch().flatten()
    tensor([10,  0], dtype=torch.uint8)
    """
    return like(input, dtype=dtype)


@resize_crop_mirror.old_plan
def _(
    input,
    *,
    antialias,
    crop,
    crop_d,
    crop_h,
    crop_pos_x,
    crop_pos_y,
    crop_pos_z,
    crop_w,
    dtype,
    interp_type,
    mag_filter,
    max_size,
    min_filter,
    minibatch_size,
    mirror,
    mode,
    resize_longer,
    resize_shorter,
    resize_x,
    resize_y,
    resize_z,
    roi_end,
    roi_relative,
    roi_start,
    rounding,
    size,
    subpixel_scale,
    temp_buffer_hint,
):
    check_types(input, dtype)
    check_choice("rounding", rounding, ("round", "truncate"))
    axes = spatial_axes(input.layout)
    names = "".join(input.layout[a] for a in axes)
    extents = input.shapes[:, axes]
    wanted, mode = requested_extents(
        input.n,
        names,
        size=size,
        resize_x=resize_x,
        resize_y=resize_y,
        resize_z=resize_z,
        resize_shorter=resize_shorter,
        resize_longer=resize_longer,
        mode=mode,
    )
    start, end = source_region(extents, roi_start, roi_end, roi_relative)
    geometry = resize_geometry(
        extents, wanted, mode, limits(max_size, len(axes)), start, end, subpixel_scale=subpixel_scale
    )
    window = _window_extents(names, crop, {"D": crop_d, "H": crop_h, "W": crop_w})
    places = columns([{"D": crop_pos_z, "H": crop_pos_y, "W": crop_pos_x}[name] for name in names])
    bits = np.array([{"W": 1, "H": 2, "D": 4}[name] for name in names])
    mirrors = np.reshape(mirror, -1).astype(np.int64)
    wrong = cut_windows(
        geometry.size, geometry.start, geometry.end, window, places, rounding == "truncate", mirrors, bits
    )
    if wrong >= 0:
        sample, axis = divmod(wrong, len(names))
        letter = {"D": "z", "H": "y", "W": "x"}[names[axis]]
        place = places[sample if len(places) > 1 else 0, axis]
        raise bad_sample(sample, f"expected `crop_pos_{letter}` between 0 and 1, got {place:g}.")
    filters = {"interp_type": interp_type, "min_filter": min_filter, "mag_filter": mag_filter}
    return resample_plan(input, axes, geometry, filters, antialias)


def _window_extents(names: str, crop: Any, single: dict[str, Any]) -> np.ndarray:
    """Extents of the window, float64 `[N or 1, D]`; 0 for the whole extent."""
    if (single["H"] is None) != (single["W"] is None) or (single["D"] is not None and single["W"] is None):
        raise RuntimeError("`crop_w` and `crop_h` go together: expected both, got one.")
    if crop is None:
        return columns([single[name] for name in names])
    if single["W"] is not None:
        raise RuntimeError("`crop` and `crop_w`, `crop_h` exclude each other: both say how large the window is.")
    rows = crop if isinstance(crop, list) else list(np.atleast_2d(crop))
    window = np.zeros((len(rows), len(names)))
    for i, row in enumerate(rows):
        if len(row) not in (2, 3):
            raise bad_sample(i, f"expected `crop` with 2 (h, w) or 3 (d, h, w) elements, got {len(row)}.")
        given = min(len(row), len(names))
        window[i, len(names) - given :] = row[len(row) - given :]
    return window


@resize_crop_mirror.cpu
def _(image, out, axes, start, end, kind, radius):
    resample(image, out, axes, start, end, kind, radius)


@resize_crop_mirror.cuda
def _(launch, input, out, *, axes, kind, radius):
    resample_batch(launch, input.shapes, out.shape_array, axes, kind, radius, "resize.cu")
