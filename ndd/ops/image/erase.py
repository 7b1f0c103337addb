"""`ndd.erase`: fills regions of an image with a value."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ndd._compiled.intrinsics import empty, zeros
from ndd._compiled.jit import kernel
from ndd._cpu.element_copies import copy_bytes, fill_line, filled
from ndd._operator import Operand, PerSample, Plan, Values, bad_sample, like, operator
from ndd._operator.partition import Rows
from ndd._operator.unit_warnings import warn_of_part_of_pixel
from ndd._tensor.store import volumes
from ndd.ops.image.window import elements_of, fill_axis, numbers_of
from ndd.ops.tensor.axes import axes_of

_DEFAULT_LAYOUTS = {2: "HW", 3: "HWC", 4: "DHWC", 5: "FDHWC"}


@operator(argument_shapes=False)
def erase(
    input,
    /,
    *,
    anchor: PerSample[list[float]] = None,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    centered_anchor: bool = False,
    fill_value: PerSample[list[float]] = (0.0,),
    normalized: bool | None = None,
    normalized_anchor: bool | None = None,
    normalized_shape: bool | None = None,
    shape: PerSample[list[float]] = None,
):
    """Fills regions of each array with a value.

    Args:
        input: any rank and element type (DALI 2.4.0 refuses float64 and bool).
        anchor: the begin of the regions (default 0; DALI 2.4.0 needs it with every shape): a number for each of the axes, for
            one region after the other.
        shape: the sizes of the regions, likewise.
        axes, axis_names: the axes of these numbers, by number or letter; default: all but C. An array without a layout counts
            as HW, HWC or DHWC by rank (DALI crashes for such arrays, and for negative axes).
        centered_anchor: the anchors are the centres of the regions.
        normalized: anchors and shapes are fractions of the extents.
        fill_value: one number, or one for each channel; converted as in C (the fraction is dropped, integers wrap).
        normalized_anchor, normalized_shape: the same for anchors or shapes alone; both default to False.

    In a region, for `start <= i < start + shape` along each of the axes, `out[i] = fill_value`, elsewhere
    `out[i] = in[i]`. Fractions of start and end are dropped, and parts outside the array ignored.
    torchvision's `erase` corresponds to one region with `anchor=[i, j], shape=[h, w], axis_names="HW"`.

    Raises RuntimeError for anchors and shapes that do not fit each other or the axes, or that are NaN.

    >>> import ndd
    >>> ndd.erase(ndd.tensor([[1, 2, 3], [4, 5, 6]], layout="HW"), anchor=[0, 1], shape=[2, 1]).torch()
    tensor([[1, 0, 3],
            [4, 0, 6]], dtype=torch.int32)
    >>> ndd.erase(ndd.demo.photo("cat"), anchor=[60, 80], shape=[90, 120], axis_names="HW", fill_value=0).shape
    (266, 400, 3)
    """
    if normalized is not None and (normalized_anchor is not None or normalized_shape is not None):
        raise RuntimeError("`normalized` excludes `normalized_anchor` and `normalized_shape`")
    _axes(axes, axis_names, input.layout, input.ndim)
    if not (normalized or normalized_shape):
        warn_of_part_of_pixel("erase", "it may erase nothing. `normalized=True` takes fractions", shape=shape)
    return like(input)


def _axes(axes: Any, axis_names: str | None, layout: str | None, ndim: int) -> np.ndarray:
    layout = layout or _DEFAULT_LAYOUTS.get(ndim)
    if axes is None and axis_names is None:
        axis_names = (layout or "").replace("C", "")
    return axes_of(None if axis_names else axes, axis_names, layout, ndim)[0]


@erase.plan
def _(
    input, *, anchor, axes, axis_names, centered_anchor, fill_value, normalized, normalized_anchor, normalized_shape, shape
):  # fmt: skip
    layout, n = input.layout or _DEFAULT_LAYOUTS.get(input.ndim), input.n
    chosen = _axes(axes, axis_names, layout, input.ndim)
    extents = input.shapes[:, None, chosen]
    sizes, counts = _regions(shape, extents, bool(normalized or normalized_shape))
    starts, own = np.zeros_like(sizes), counts
    if anchor is not None:
        starts, own = _regions(anchor, extents, bool(normalized or normalized_anchor))
    for i in np.flatnonzero(counts != own)[:1]:
        raise bad_sample(int(i), "`anchor` and `shape` must have the same number of elements")
    with np.errstate(invalid="ignore"):
        low = starts - sizes / 2 if centered_anchor else starts
        high = low + sizes
    for i in np.flatnonzero(np.isnan(high).any(axis=(1, 2)))[:1]:  # also infinite ones whose sum is none
        raise bad_sample(
            int(i), f"`anchor` and `shape`: expected numbers, got {starts[i].tolist()} and {sizes[i].tolist()}"
        )
    bounds = np.zeros((n, max(1, sizes.shape[1]), 2, input.ndim), np.int64)
    if sizes.shape[1]:
        bounds[:, :, 1] = input.shapes[:, None]
        bounds[:, :, 0, chosen] = np.clip(low, 0, extents)
        bounds[:, :, 1, chosen] = np.clip(high, 0, extents)
    if (bounds == bounds[:1]).all():
        bounds = np.broadcast_to(bounds[:1], bounds.shape)
    return region_plan(input, bounds, fill_value, layout)


def region_plan(input: Operand, bounds: np.ndarray, fill_value: Values, layout: str | None) -> Plan:
    """The plan that fills the regions `bounds`, int64 [N, regions, 2, axes] from begin to end, with a value for each sample."""
    n = input.n
    values = fill_value.rows() if fill_value.varies else fill_value.constant[None]
    fill = elements_of(values if values.size else np.zeros((1, 1)), input.dtype)
    channel = fill_axis(fill.shape[1], layout, input.shapes)
    fill = np.broadcast_to(fill, (n, fill.shape[1]))
    inner = volumes(input.shapes[:, channel + 1 :]) if channel >= 0 else np.ones(n, np.int64)
    elements = np.ascontiguousarray(fill).view(np.uint8)
    kernel = functools.partial(
        _erased, extents=Rows(input.shapes), fill=Rows(elements), item=input.dtype.bytes, inner=Rows(inner)
    )
    return Plan(input.shapes, {"bounds": bounds, "fill": fill}, {"channel": channel}, kernel=kernel, view="bytes")


def _regions(values: Values | None, extents: np.ndarray, normalized: bool) -> tuple[np.ndarray, np.ndarray]:
    """An argument in elements, float32 `[N, most regions, axes]`, 0 for missing regions, and the number of regions."""
    n, _, count = extents.shape
    if values is None:
        return np.zeros((n, 0, count), np.float32), np.zeros(n, np.int64)
    rows = values.distinct()
    sizes = np.array([row.size for row in rows])
    for length in sizes[sizes % count != 0 if count else sizes >= 0][:1]:
        text = f"`{values.name}`: expected a multiple of {count} elements, one for each axis, got {length}"
        raise RuntimeError(text)
    padded = np.zeros((len(rows), sizes.max()), np.float32)
    for own, row in zip(padded, rows, strict=True):
        own[: row.size] = row.reshape(-1)
    regions = padded.reshape(len(rows), -1, count) if padded.size else np.zeros((1, 0, count), np.float32)
    with np.errstate(invalid="ignore"):
        regions = regions * extents.astype(np.float32) if normalized else regions
    return np.broadcast_to(regions, (n, *regions.shape[1:])), np.broadcast_to(sizes, n)


@kernel
def _erased(image, out, extents, bounds, fill, item, inner):
    """A copy, of bytes, with the regions `bounds` `[regions, 2, axes]` filled (`fill_line`)."""
    if not out.size:
        return
    target = np.uintp(out.ctypes.data)
    copy_bytes(target, image.ctypes.data, np.uintp(image.size))
    axes = len(extents)
    index = zeros(axes + 1, np.int64)
    for low, high in bounds:
        axis, step = axes - 1, 1  # the last axis that is not filled from end to end, and its step in elements
        while axis > 0 and low[axis] == 0 and high[axis] == extents[axis]:
            step *= extents[axis]
            axis -= 1
        lines, start, length = 1, 0, step
        for k in range(axis):
            lines *= max(high[k] - low[k], 0)
        if axes:
            lines *= high[axis] > low[axis]
            start, length = low[axis] * step, (high[axis] - low[axis]) * step
        line = empty(length * item if lines else 0, np.uint8)
        filled = -1
        index[:] = 0
        for _ in range(lines):
            row = 0
            for k in range(axis):
                row = row * extents[k] + low[k] + index[k]
            first = start + (row * extents[axis] * step if axis > 0 else 0)
            filled = fill_line(line, fill, item, first, inner, filled)
            copy_bytes(target + np.uintp(first * item), line.ctypes.data, np.uintp(line.size))
            k = axis - 1
            while k >= 0:
                index[k] += 1
                if index[k] < high[k] - low[k]:
                    break
                index[k] = 0
                k -= 1


@_erased.fallback
def _(image, out, extents, bounds, fill, item, inner):
    out[...] = image
    elements, filling = out.reshape(*extents.tolist(), item), filled(out.size // item, fill, item, inner)
    filling = filling.reshape(elements.shape)
    for low, high in bounds.tolist():
        region = tuple([slice(a, max(a, b)) for a, b in zip(low, high, strict=True)])
        elements[region] = filling[region]


@erase.cuda("erase.cu")
def _(launch, input, out, fill):
    launch("erase", per_sample={"fill": numbers_of(fill, input.dtype)})
