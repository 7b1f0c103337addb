"""`ndd.filter`: a filter given as an array of weights."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ndd._cpu.sampling import BORDERS
from ndd._operator import PerSample, Plan, bad_sample, operator
from ndd._tensor import DType, Spec
from ndd._tensor.dtype import float32
from ndd.ops.filter.convolution import correlate
from ndd.ops.filter.plane_filter import filter_planes
from ndd.ops.filter.separable import filtered_like, readable, room_for, stored
from ndd.ops.filter.spatial_axes import as_volumes, spatial_axes
from ndd.ops.filter.window_filter import FOURIER, filter_image

_TYPES = ("u8", "i8", "u16", "i16", "f16", "f32")
_BORDERS = {
    "reflect_101": BORDERS["reflect_101"], "reflect_1001": BORDERS["reflect"], "reflect": BORDERS["reflect"],
    "wrap": BORDERS["wrap"], "clamp": BORDERS["replicate"], "edge": BORDERS["replicate"],
    "constant": BORDERS["constant"], "fill": BORDERS["constant"],
}  # fmt: skip
_BYTE = (np.float32(0), np.float32(255), True)
_DOWN = 4  # results of a GPU thread
_UNROLLED = 81  # weights up to which a GPU kernel is compiled for their number


@operator(frames=True, types=_TYPES)
def filter(
    data,
    filter,
    fill_value=None,
    /,
    *,
    anchor: PerSample[list[int]] = (-1,),
    border: str = "reflect_101",
    dtype: DType | None = None,
    mode: str = "same",
):
    """Filters images, volumes and video with weights of your own.

    `out[i] = sum over k of filter[k] * data[i - anchor + k]` along the spatial axes, for each channel separately: a
    cross-correlation, i.e. a convolution with the reversed filter.

    Args:
        data: u8, i8, u16, i16, f16 or f32. Spatial axes are those that are not C or F: 2 or 3 of them, as in HW, HWC,
            CHW, DHW, DHWC, CDHW, with an F (video) before. Without a layout all axes are spatial.
        filter: float32 weights of as many axes as there are spatial ones; one array, or one for each sample, of any
            extents. Video may have one for each frame: a layout such as "FHW". Images with several filters each ("FHW") become
            videos, with a frame for each filter.
        fill_value: the value outside the array with `border="constant"` (default 0): a number of the type of the data, for all,
            or for each sample or frame (layout "F").
        anchor: the element of the filter at the place of the result, one number for each axis or one for all; -1 is the
            middle, `extent // 2`. (DALI 2.4.0 refuses one for all on the CPU.)
        border: the values outside the array: "reflect_101" (`dcb|abcd|cba`), "reflect_1001" or "reflect" (`cba|abcd|dcb`),
            "wrap" (`bcd|abcd|abc`), "clamp" or "edge" (`aaa|abcd|ddd`), "constant" or "fill" (`fill_value`).
        dtype: float32, or the type of the data (the default).
        mode: "same": the result has the extents of the data. "valid": only where the filter lies inside the data,
            `extent - filter extent + 1`; the anchor does not matter.

    Sums are float32; integers are rounded, halves to even, and saturated. The CPU computes a larger
    filter that is the product of a column and a row as two filters, and others of 130 weights or more by a Fourier
    transform: within 1e-5 of the largest.

    Equivalent to OpenCV's `filter2D` and `scipy.ndimage.correlate` (mode "mirror", "reflect", "wrap", "nearest", "constant").
    DALI 2.4.0 takes no volumes, i8 or f16 on the CPU, and gives the lowest number there if sums exceed int32.

    Errors: RuntimeError for other types, layouts, modes and borders, weights that are not float32, an anchor outside the
    filter, a filter larger than the data in mode "valid", a wrong number of frames.

    >>> import ndd, numpy as np
    >>> line = ndd.tensor([[1.0, 2.0, 4.0, 8.0]], layout="HW")
    >>> ndd.filter(line, [[-1.0, 1.0]], mode="valid").torch()
    tensor([[1., 2., 4.]])
    >>> ndd.filter(line, [[-1.0, 1.0]], border="constant").torch()
    tensor([[1., 1., 2., 4.]])
    >>> ndd.filter(ndd.demo.photo("coins"), np.float32([[-1, 0, 1]] * 3), anchor=[1, 1], dtype=ndd.float32).shape
    (303, 384, 3)
    """
    if filter.dtype is not float32:
        raise RuntimeError(f"Unsupported filter type: {filter.dtype}. Expected float32.")
    if fill_value is not None and fill_value.dtype is not data.dtype:
        raise RuntimeError(f"`fill_value` must have the type of the data, {data.dtype}; got {fill_value.dtype}")
    _known("border_type", border, _BORDERS)
    _known("mode", mode, ("same", "valid"))
    axes = _axes(data)
    per_frame = (data.layout or "")[:1] == "F"
    own = filter.ndim - (per_frame and (filter.layout or "")[:1] == "F")
    if own != axes:
        raise RuntimeError(
            "Filter dimensionality must match the number of spatial dimensions in the input samples. "
            f"Got {axes} spatial dimensions but the filter is {own} dimensional."
        )
    if fill_value is not None and fill_value.ndim != (per_frame and (fill_value.layout or "")[:1] == "F"):
        raise RuntimeError(f"`fill_value` must be one number for each sample, got {fill_value.ndim} dimensions")
    return filtered_like(data, dtype)


def _known(name: str, value: str, options: Any) -> None:
    if value.lower() not in options:
        raise RuntimeError(f"Unknown `{name}` was provided: {value!r}. Expected one of {', '.join(options)}.")


def _axes(data: Spec) -> int:
    layout = data.layout or ""
    if "F" in layout[1:] and layout[:1] != "F":
        raise RuntimeError(f"the frames must be the outermost dimension. Got the layout {layout}")
    count = spatial_axes(data.layout, data.ndim or 0)[1]
    if count == 1:
        raise RuntimeError(f"expected 2 or 3 spatial axes, got 1 in the layout {layout!r}")
    return count


@filter.plan
def _(data, filter, fill_value, *, anchor, border, dtype, mode):
    start, axes = spatial_axes(data.layout, data.ndim)
    sizes = filter.shapes
    empty = (sizes == 0).any(axis=1)
    if empty.any():
        raise bad_sample(int(empty.argmax()), "the filter has no elements")
    anchors = anchor.rows(axes, repeat=True, meaning="one for each spatial axis")
    outside = ((anchors < -1) | (anchors >= sizes)).any(axis=1)
    if outside.any():
        i = int(outside.argmax())
        shape = " x ".join(map(str, sizes[i].tolist()))
        raise bad_sample(i, f"`anchor` must lie within the filter of shape {shape}, got {anchors[i].tolist()}")
    shapes = data.shapes
    if mode.lower() == "valid":
        shapes = np.array(shapes)
        shapes[:, start : start + axes] -= sizes - 1
        small = (shapes[:, start : start + axes] <= 0).any(axis=1)
        if small.any():
            i = int(small.argmax())
            raise bad_sample(i, "the filter is bigger than the sample: this is not allowed in mode 'valid'")
        anchors = np.zeros_like(sizes)
    else:
        anchors = np.where(anchors < 0, sizes // 2, anchors)
    view = as_volumes(data.shapes, start, axes)
    origin = np.zeros((data.n, 3), np.int64)
    origin[:, 3 - axes :] = anchors
    results = as_volumes(shapes, start, axes)[:, 1:4]
    per_sample, shared = (
        {"view": view, "results": results, "origin": origin},
        {"border": _BORDERS[border.lower()], "axes": axes},
    )
    result_type = dtype or data.dtype
    if axes != 2 or not {data.dtype.name, result_type.name} <= {"u8", "f32"}:
        return Plan(shapes, per_sample, shared, kernel=paint_filtered)
    # With so many weights OpenCV's Fourier transform is faster.
    few = np.broadcast_to(sizes.prod(axis=1) < FOURIER, (data.n,))
    ours = functools.partial(filter_image, store=_BYTE if result_type.name == "u8" else None)
    planes = {"image": view[:, [0, 2, 3, 4]], "out": np.concatenate([view[:, :1], results[:, 1:], view[:, 4:]], axis=1)}
    return Plan(shapes, per_sample, shared, kernel={ours: few, paint_filtered: ~few}, view={**planes, "fill": "flat"})


def paint_filtered(image, weights, fill, out, view, results, origin, border) -> None:
    """Filters one sample on the CPU."""
    if not out.size or not image.size:
        return
    fill_value = np.float32(0 if fill is None else fill.item())
    planes, *extents, channels = view.tolist()
    results, origin = results.tolist(), origin.tolist()
    source, exact = readable(image), room_for(out)
    if weights.ndim == 3 or not filter_planes(
        source, weights, float(fill_value), exact, (*extents[1:], channels), results[1:], origin[1:], border
    ):
        volume = weights.reshape((1,) * (3 - weights.ndim) + weights.shape)
        correlate(
            source.reshape(-1), exact.reshape(-1), planes, tuple(extents), tuple(results), channels, volume,
            tuple(origin), border, fill_value, _BYTE if out.dtype == np.uint8 else None,
        )  # fmt: skip
    if exact is not out and out.dtype.kind in "iu":
        np.rint(exact, out=exact)
    stored(exact, out)


@filter.cuda("filter.cu")
def _(launch, data, weights, fill, out, *, view, results, axes):
    sizes = weights.shapes
    fixed = launch.n and (sizes == sizes[0]).all() and int(sizes[0, -2:].prod()) <= _UNROLLED
    height, width = sizes[0, -2:].tolist() if fixed else (0, 0)
    work = view[:, 0] * results[:, 0] * -(-results[:, 1] // _DOWN) * results[:, 2] * view[:, 4]
    macros = {"KERNEL_H": height, "KERNEL_W": width, "AXES": axes, "FILLED": fill is not None, "DOWN": _DOWN}
    launch("filter_rows", work, macros=macros)
