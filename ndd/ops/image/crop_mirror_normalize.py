"""`ndd.crop_mirror_normalize`: crop, mirror, normalise and change layout and type, in one pass."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ndd._operator import PerSample, Plan, Values, View, bad_sample, like, operator
from ndd._operator.deprecated import ignored, renamed
from ndd._operator.unit_warnings import warn_of_unit_range
from ndd._tensor import DType
from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import bfloat16, float16, float32, uint8
from ndd.ops.image.crop import LAYOUTS, spatial_axes
from ndd.ops.image.normalize_lines import normalize
from ndd.ops.image.window import bounded, check_crop, check_policy, crop_window, elements_of, numbers_of

_INPUT_TYPES = ("u8", "i16", "u16", "i32", "f16", "f32")
_OUTPUT_TYPES = ("f32", "f16", "bfloat16", "u8", "i8")
_AXES = "FDHWC"
_NO_MEAN = Values("mean", np.zeros(1, np.float32), 1, np.dtype("f4"), True, False)
_NO_STD = Values("std", np.ones(1, np.float32), 1, np.dtype("f4"), True, False)
_GROUP = 4  # pixels that a GPU thread computes


@operator(layouts=LAYOUTS, masks=True, types=_INPUT_TYPES, argument_shapes=False)
def crop_mirror_normalize(
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
    mean: PerSample[list[float]] = (0.0,),
    mirror: PerSample[int] = 0,
    out_of_bounds_policy: str = "error",
    output_dtype: DType | None = None,
    output_layout: str = "CHW",
    pad_output: bool = False,
    rounding: str = "round",
    scale: float = 1.0,
    shift: float = 0.0,
    std: PerSample[list[float]] = (1.0,),
):
    """Prepares images for a network: crops, mirrors and normalises them, and changes layout and element type, in one pass.

    Args:
        input: images HWC or CHW, volumes DHWC or CDHW, video with F in front (or CFHW, CFDHW). Without a layout HWC,
            DHWC or FDHWC by rank. u8, i16, u16, i32, f16 or f32. A mask, HW, counts as one channel and comes out as HW.
        crop, crop_d, crop_h, crop_w, crop_pos_x, crop_pos_y, crop_pos_z, rounding, out_of_bounds_policy: the window,
            see `crop`; the whole image by default.
        mirror: mirror the window left to right unless 0.
        mean, std: one number, or one for each channel. Two empty lists: 0 and 1. (One empty list crashes DALI 2.4.0.)
        scale, shift: applied after `mean` and `std`.
        dtype: f32 (default), f16, bfloat16 (not in DALI), u8 or i8; integers are rounded, halves away from zero,
            and saturate.
        output_layout: any order of the input's axes; "CHW" by default, so video and volumes need "FCHW", "CDHW", ...;
            "" keeps the input's.
        pad_output: pad the channels to a power of two (3 to 4) with 0, or with `fill_values` under policy "pad".
        fill_values: the value outside the image and in added channels under the policy "pad", which is not normalised: one
            number, or one for each channel.
        image_type, output_dtype: old arguments; the first has no effect, the second means `dtype`.

    `out = (in - mean) * scale / std + shift`, in 32-bit floats. torchvision's `Normalize` comes after a division by 255, so
    multiply its mean and std by 255; a warning says so for bytes with a mean and std below 1. Its `CenterCrop` rounds halves to
    even (an anchor of 2.5 becomes 2), this operator up (3).

    Raises ValueError for other layouts, RuntimeError for an output layout with other axes, numbers of channels that do
    not fit, and other types.

    >>> import ndd, numpy as np
    >>> image = ndd.tensor(np.full((2, 2, 3), 100, np.uint8), layout="HWC")
    >>> out = ndd.crop_mirror_normalize(image, mean=[100, 90, 80], std=[10])
    >>> out.layout, out.torch()[:, 0, 0].tolist()
    ('CHW', [0.0, 1.0, 2.0])
    >>> ndd.crop_mirror_normalize(ndd.demo.photo("cat"), crop=(200, 200), mirror=1, mean=[124, 116, 104], std=[58, 57, 57]).shape
    (3, 200, 200)
    """
    ignored("crop_mirror_normalize", "image_type", image_type)
    chosen = renamed("crop_mirror_normalize", "output_dtype", output_dtype, "dtype", dtype) or float32
    if chosen.name not in _OUTPUT_TYPES:
        raise RuntimeError(f"`dtype`: expected float32, float16, bfloat16, uint8 or int8, got {chosen}")
    check_crop("crop_mirror_normalize", crop=crop, crop_d=crop_d, crop_h=crop_h, crop_w=crop_w, rounding=rounding)
    check_policy(out_of_bounds_policy)
    if not shift:
        warn_of_unit_range("crop_mirror_normalize", input, mean, std, scale, mean="mean", std="std")
    layout = output_layout or input.layout
    if sorted(layout) != sorted(input.layout):
        proper = input.layout.replace("C", "").replace("HW", "CHW").replace("DCHW", "CDHW")
        raise RuntimeError(
            f"`output_layout` {layout!r} does not have the axes of the input, {input.layout!r}. "
            f'Give output_layout="{proper}", for example'
        )
    return like(input, dtype=chosen, layout=layout)


@crop_mirror_normalize.plan
def _(call, input, *, mirror, **arguments):
    shapes, per_sample, shared = call.once_for_shapes(
        "mirror", input.shapes, lambda: _without_mirror(input, **arguments)
    )
    result_type = arguments["dtype"] or arguments["output_dtype"] or float32
    out = View("flat", "bits") if result_type is float16 else "flat"
    per_sample = {**per_sample, "mirror": mirror.each() != 0}
    kernel = _kernel(input.dtype.numpy, result_type, shared["by_pixel"])
    return Plan(shapes, per_sample, shared, kernel=kernel, view={"image": "flat", "out": out})


def _kernel(kind: np.dtype, result_type: DType, by_pixel: bool) -> functools.partial[None]:
    """The function that normalises images of this element type to `result_type`."""
    half = {float16: True, bfloat16: False}.get(result_type)
    numbers = {"limits": _limits(result_type), "half": half, "by_pixel": by_pixel or None}
    return functools.partial(_from_half if kind == np.float16 else normalize, **numbers)


def _from_half(image, out, geometry, mirror, mean, gain, shift, fill, limits, half, by_pixel) -> None:
    """Converts the image to float32, because no compiled kernel takes float16."""
    wider = convert_array(image, "f16", "f32")
    fill = fill.view(np.uint16) if half is not None else fill
    normalize(wider, out, geometry, mirror, mean, gain, shift, fill, limits, half, by_pixel)


def _without_mirror(
    input, *, dtype, fill_values, image_type, mean, out_of_bounds_policy, output_dtype, output_layout, pad_output, scale,
    shift, std, **window,
):  # fmt: skip
    layout, n, policy = input.layout, input.n, out_of_bounds_policy.lower()
    if not any([values.varies or np.size(values.constant) for values in (mean, std)]):
        mean, std = _NO_MEAN, _NO_STD
    output_layout = output_layout or layout
    # Rows as in normalize_lines.py. The samples are last, so that a row of one axis is contiguous.
    table = np.zeros((5, 5, n), np.int64)
    size, start, extent, step_in, step_out = table
    places = [_AXES.index(c) for c in layout]
    extent[...] = 1
    for place, column in zip(places, input.shapes.T, strict=True):
        extent[place] = column
    size[...] = extent
    if any(window[name] is not None for name in ("crop", "crop_d", "crop_h", "crop_w")):
        axes, letters = spatial_axes(layout)
        spatial = [places[a] for a in axes]
        extents = extent[spatial].T
        anchors, sizes, _ = bounded(*crop_window(extents, letters, **window), extents, policy)
        start[spatial], size[spatial] = anchors.T, sizes.T
    channels = extent[4]
    if pad_output:
        size[4] = [1 << (c - 1).bit_length() if c else 0 for c in channels.tolist()]
    out_places = [_AXES.index(c) for c in output_layout]
    _steps(step_in, extent, places)
    _steps(step_out, size, out_places)
    with np.errstate(divide="ignore", over="ignore"):
        gain = np.float32(scale) / _by_channel(std, channels)
    per_sample = {
        "geometry": np.ascontiguousarray(table.transpose(2, 0, 1)),
        "mean": _by_channel(mean, channels),
        "gain": gain,
    }
    fill = _fill(
        fill_values if policy in ("pad", "constant") else (0.0,), size[4], channels, dtype or output_dtype or float32
    )
    by_pixel = layout[-1] == output_layout[-1] == "C" and layout[-2] == output_layout[-2] == "W"
    shapes = np.ascontiguousarray(size[out_places].T)
    return shapes, per_sample, {"shift": np.float32(shift), "fill": fill, "by_pixel": by_pixel}


def _steps(steps: np.ndarray, extents: np.ndarray, places: list[int]) -> None:
    """Fills in the number of elements between neighbours along each axis, for arrays with axes in the order `places`."""
    running: Any = 1
    for place in reversed(places):
        steps[place] = running
        running = running * extents[place]


def _by_channel(values: Values, channels: np.ndarray) -> np.ndarray:
    """`mean` or `std` as float32 `[N, channels]`."""
    rows = values.rows()
    if rows.shape[1] != 1:
        _check_channels(values.name, rows.shape[1], channels != rows.shape[1], channels)
    result = np.empty((len(channels), int(channels.max())), np.float32)
    result[...] = rows
    return result


def _check_channels(name: str, count: int, wrong: np.ndarray, channels: np.ndarray) -> None:
    if wrong.any():
        sample = int(wrong.argmax())
        text = f"`{name}`: expected 1 number or {channels[sample]}, one for each channel, got {count}"
        raise bad_sample(sample, text)


def _fill(values: Any, out_channels: np.ndarray, channels: np.ndarray, dtype: DType) -> np.ndarray:
    """The fill of each output channel, as elements."""
    most = max(int(out_channels.max()), 1)
    result = np.zeros(most, dtype.numpy)  # type: ignore[attr-defined]
    if len(values) <= 1:
        if np.any(values):
            result[...] = elements_of(values, dtype)
        return result
    _check_channels("fill_values", len(values), (out_channels != len(values)) & (channels != len(values)), channels)
    count = min(most, len(values))
    result[:count] = elements_of(values, dtype)[:count]
    return result


@functools.cache
def _limits(dtype: DType) -> tuple[np.float32, np.float32] | None:
    """The lowest and the highest integer of a type, None for floats."""
    if dtype.kind is DType.Kind.float:
        return None
    return np.float32(np.iinfo(dtype.numpy).min), np.float32(np.iinfo(dtype.numpy).max)


def _part(image, plan):
    """The pixels of images HWC that it reads: their begin and end, `[N, 2]` each."""
    size, start = plan.per_sample["geometry"][:, :2, 2:4].transpose(1, 0, 2)
    return start, start + size


crop_mirror_normalize.fuses("decoders", "crop", "crop_h")(_part)


@crop_mirror_normalize.cuda("crop_mirror_normalize.cu")
def _(launch, image, out, geometry, fill):
    size = geometry[:, 0]
    groups = size[:, :3].prod(axis=1) * -(-size[:, 3] // _GROUP)  # each row has whole groups
    shared = {"fill": numbers_of(fill, out.dtype)}
    launch("crop_mirror_normalize", groups, shared=shared, macros={"GROUP": _GROUP})


@crop_mirror_normalize.fuses("resize.cu")
def _(image, plan):
    """Whether the kernels of resize.cu can do this with their results (normalized.cuh): HWC, a window inside."""
    geometry = plan.per_sample["geometry"]
    size, start, extent = geometry[:, 0], geometry[:, 1], geometry[:, 2]
    inside = image.layout == "HWC" and image.dtype is uint8
    return inside and bool(((start >= 0) & (start + size <= extent)).all())
