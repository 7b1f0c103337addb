"""Output sizes and source regions of the resampling operators, for a whole batch at once.

All arrays have shape ``[N, D]`` (N samples, D resized axes); no pixel is read. The rule, verified against DALI 2.4.0: extents
are computed in double precision, a missing extent (0) follows the geometric mean of the given scales, and a region of interest
is a pair of float32 coordinates whose order says whether the axis is mirrored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ndd._cpu.filter_taps import (
    NARROW_CUBIC,
    NARROW_TRIANGLE,
    NN_CENTRE,
    NN_CORNER,
    SHARP_CUBIC,
    SHARP_LANCZOS,
    SHARP_TRIANGLE,
)
from ndd._operator import Operand, Plan, Values, bad_sample
from ndd._operator.unit_warnings import warn_of_part_of_pixel
from ndd._tensor import DType, Spec
from ndd._tensor.small_arrays import columns, few_zeros
from ndd.ops.image.resize_extents import choose_filters, fit_extents

LAYOUTS = ("HWC", "FHWC", "CHW", "FCHW", "CFHW", "DHWC", "FDHWC", "CDHW", "FCDHW", "CFDHW")
MODES = ("default", "stretch", "not_larger", "not_smaller")
ROUNDINGS = ("round", "truncate", "ceil")
RULES = ("dali", "torchvision")
TYPES = ("u8", "i16", "u16", "f32")

# Values of InterpType. LINEAR with antialiasing is the triangular filter; without, the same filter of radius 1.
NN, LINEAR, CUBIC, LANCZOS3, TRIANGULAR, GAUSSIAN = range(6)
# The width of a region without extent, in pixels.
NARROWEST = np.float32(1e-3)
# The largest distance of a region from the image, in pixels: a filter of that width has a table of 80 MB.
_OUTSIDE = 1e7

# Radius of each filter, in source pixels, if nothing shrinks.
BASE_RADIUS = np.array([0.5, 1.0, 2.0, 3.0, 1.0, 1.0, 0.5, 0.5, 0.5, 1.0, 2.0, 3.0, 1.0, 2.0], np.float32)
_WIDENS = (np.arange(14) != NN) & (np.arange(14) < NARROW_TRIANGLE)
_NEVER = np.zeros(14, bool)
# The filters of the rule "torchvision" with antialiasing and without; -1: none.
_WIDE_KINDS = np.array([NN_CENTRE, -1, SHARP_CUBIC, SHARP_LANCZOS, SHARP_TRIANGLE, -1])
_NARROW_KINDS = np.array([NN_CORNER, -1, NARROW_CUBIC, -1, NARROW_TRIANGLE, -1])
_TRIANGLES = np.array([TRIANGULAR])


@dataclass(frozen=True)
class Geometry:
    """The resampling of each axis: ``size`` output pixels are evenly spaced over source coordinates ``start..end``.

    ``start > end`` mirrors the axis. With a ``window`` (first pixel and extent) only that part of the output is computed. All
    arrays are ``[N, D]``; ``start`` and ``end`` are float32, the others int64.
    """

    size: NDArray[np.int64]
    start: NDArray[np.float32]
    end: NDArray[np.float32]
    window: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    def of(self, axes: list[int]) -> Geometry:
        """The geometry of some of the axes."""
        return Geometry(self.size[:, axes], self.start[:, axes], self.end[:, axes])

    def behind_one(self) -> Geometry:
        """The geometry with an axis of one pixel in front."""
        start, end = (np.insert(a, 0, i, axis=1) for i, a in enumerate((self.start, self.end)))
        return Geometry(np.insert(self.size, 0, 1, axis=1), start, end)


def spatial_axes(layout: str) -> list[int]:
    """Numbers of the axes that are resized, ascending."""
    return [i for i, name in enumerate(layout) if name in "DHW"]


def check_resize(
    operator: str,
    input: Spec,
    *,
    dtype: DType | None,
    max_size: Any,
    mode: str | None,
    resize_longer: Any,
    resize_shorter: Any,
    resize_x: Any,
    resize_y: Any,
    resize_z: Any,
    roi_end: Any,
    roi_start: Any,
    size: Any,
    rule: str = "dali",
    **_: Any,
) -> None:
    """RuntimeError for arguments of `resize` that are wrong for all images."""
    check_dtype(input, dtype)
    separate = any(extent is not None for extent in (resize_x, resize_y, resize_z))
    ways = separate + (size is not None) + (resize_shorter is not None) + (resize_longer is not None)
    if ways != 1:
        raise RuntimeError(
            f"expected exactly one way to give the size, got {ways}. "
            "Use `size`, or any of `resize_x`, `resize_y`, `resize_z`, or `resize_shorter`, or `resize_longer`."
        )
    if mode is not None:
        check_choice("mode", mode, MODES)
        if resize_shorter is not None or resize_longer is not None:
            raise RuntimeError(
                "`resize_shorter`, `resize_longer` and `mode` exclude each other: "
                "each of them says which extent decides. Leave `mode` out."
            )
    limits(max_size, len(spatial_axes(input.layout or "")))
    check_choice("rule", rule, RULES)
    sizes = {"size": size, "resize_x": resize_x, "resize_y": resize_y, "resize_z": resize_z}
    warn_of_part_of_pixel(
        operator,
        "the output has one along that axis. `ndd.tensor_resize(..., scales=...)` takes factors",
        **sizes,
        resize_shorter=resize_shorter,
        resize_longer=resize_longer,
    )
    check_region(roi_start, roi_end)


def check_region(roi_start: Any, roi_end: Any) -> None:
    """RuntimeError if only one end of a region is given."""
    if (roi_start is None) != (roi_end is None):
        present, other = ("roi_start", "roi_end") if roi_end is None else ("roi_end", "roi_start")
        raise RuntimeError(f"expected `roi_start` and `roi_end` together, got only `{present}`. Give `{other}` too.")


def check_dtype(input: Spec, dtype: DType | None) -> None:
    """Resampling writes the type that it reads, or f32."""
    if dtype is not None and dtype.name not in ("f32", input.dtype.name):
        raise RuntimeError(f"expected `dtype` f32 or that of the input ({input.dtype.name}), got {dtype.name}.")


def asked_geometry(
    input: Operand,
    *,
    max_size: Any,
    mode: str | None,
    resize_longer: Values | None,
    resize_shorter: Values | None,
    resize_x: Values | None,
    resize_y: Values | None,
    resize_z: Values | None,
    roi_end: Values | None,
    roi_relative: bool,
    roi_start: Values | None,
    size: Values | None,
    subpixel_scale: bool,
    rule: str = "dali",
    **_: Any,
) -> tuple[list[int], Geometry]:
    """The axes that are resized, and how, from the arguments of `resize`."""
    layout = input.layout or ""
    axes = spatial_axes(layout)
    extents = np.ascontiguousarray(columns(input.shapes, axes))
    wanted = few_zeros(extents.shape, np.float64)
    if size is not None:
        wanted[...] = per_axis(size, len(axes))
    elif resize_shorter is not None:
        wanted[...], mode = resize_shorter.each()[:, None], "not_smaller"
    elif resize_longer is not None:
        wanted[...], mode = resize_longer.each()[:, None], "not_larger"
    for k, axis in enumerate(axes):
        extent = {"W": resize_x, "H": resize_y, "D": resize_z}[layout[axis]]
        if extent is not None:
            wanted[:, k] = extent.each()
    check_extents(wanted)
    start, end = source_region(extents, roi_start, roi_end, roi_relative)
    most = limits(max_size, len(axes))
    if rule == "torchvision":
        subpixel_scale = False
        if mode in ("not_smaller", "not_larger") and (resize_shorter or resize_longer):
            source = np.abs(end - start)
            wanted, mode, most = _whole_sides(source, wanted, resize_longer is not None, most), "stretch", None
    return axes, resize_geometry(extents, wanted, mode or "default", most, start, end, subpixel_scale=subpixel_scale)


def _whole_sides(
    source: NDArray[np.float64], wanted: NDArray[np.float64], longer: bool, most: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Both sides in whole pixels by torchvision's rule, from the `wanted` side. The other side is rounded down, twice if the
    longer one would be above `most`."""
    order = np.argsort(source, axis=1, kind="stable")
    short, long = (np.take_along_axis(source, order[:, [k]], 1)[:, 0] for k in (0, -1))
    asked = np.trunc(np.abs(wanted[:, 0]))
    with np.errstate(divide="ignore", invalid="ignore"):
        if longer:
            small, large = np.trunc(asked * short / long), asked
        else:
            small, large = asked, np.trunc(asked * long / short)
            if most is not None:
                over = large > most[0]
                small, large = np.where(over, np.trunc(most[0] * small / large), small), np.where(over, most[0], large)
    sides = np.stack([small, large], axis=1)
    sides = np.where(source > 0, sides, 0)
    rounded = np.empty_like(sides)
    np.put_along_axis(rounded, order, sides, 1)
    return np.copysign(np.maximum(rounded, 1), wanted)


def check_extents(wanted: NDArray[np.float64]) -> None:
    """RuntimeError for NaN, infinite and absurd extents."""
    bad = ~(np.abs(wanted) < 2**31)
    if bad.any():
        sample = int(bad.any(axis=1).argmax())
        raise bad_sample(sample, f"expected finite output extents below 2**31, got {wanted[sample].tolist()}.")


def per_axis(values: Values, ndim: int) -> NDArray[np.float64]:
    """A vector argument as float64 `[N, D]`; one number serves all axes."""
    return values.rows(ndim, repeat=True, meaning="one for each resized axis").astype(np.float64)


def limits(max_size: Any, ndim: int) -> NDArray[np.float64] | None:
    """``max_size`` as one upper bound per axis (0 or negative = none)."""
    if max_size is None:
        return None
    bound = np.asarray(max_size, np.float32).astype(np.float64).reshape(-1)
    if bound.size not in (1, ndim):
        raise RuntimeError(f"expected `max_size` with 1 or {ndim} elements, got {bound.size}.")
    return np.broadcast_to(bound, (ndim,))


def source_region(
    extents: NDArray[np.int64],
    roi_start: Values | None,
    roi_end: Values | None,
    roi_relative: bool,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The part of the source to resample, ``[N, D]`` each; the whole image without a region."""
    if roi_start is None or roi_end is None:
        return few_zeros(extents.shape, np.float64), extents.astype(np.float64)
    start, end = per_axis(roi_start, extents.shape[1]), per_axis(roi_end, extents.shape[1])
    if roi_relative:
        start, end = start * extents, end * extents
    for name, places in (("roi_start", start), ("roi_end", end)):
        near = (places >= -_OUTSIDE) & (places <= extents + _OUTSIDE)  # False for NaN
        if not near.all():
            i = int(np.flatnonzero(~near.all(axis=1))[0])
            limit = f"at most {_OUTSIDE:,.0f} pixels outside the {' x '.join(map(str, extents[i]))} of the input"
            raise bad_sample(i, f"`{name}`: expected a place {limit}, got {np.broadcast_to(places, extents.shape)[i]}")
    return _widen(start.astype(np.float32), end.astype(np.float32))


def resize_geometry(
    extents: NDArray[np.int64],
    wanted: NDArray[np.float64],
    mode: str,
    max_size: NDArray[np.float64] | None,
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    *,
    subpixel_scale: bool = True,
    alignment: ArrayLike = 0.5,
    rounding: str = "round",
) -> Geometry:
    """Resolve missing extents, round to whole pixels and fit the source region to the rounded size.

    ``wanted`` may be negative (mirror) and 0 (not given). With ``subpixel_scale`` the region grows or shrinks about
    its ``alignment`` point by the same factor as the rounding did, so that the scale is exactly the requested one.
    """
    count, axes = extents.shape
    size = np.empty((count, axes), np.int64)
    first, last = np.empty((count, axes), np.float32), np.empty((count, axes), np.float32)
    fit_extents(
        *(np.ascontiguousarray(a) for a in (extents, wanted)),
        MODES.index(mode),
        np.empty(0) if max_size is None else np.array(max_size, np.float64),
        *(np.ascontiguousarray(a) for a in (start, end)),
        subpixel_scale,
        _aligned(alignment, axes),
        ROUNDINGS.index(rounding),
        size,
        first,
        last,
    )
    return Geometry(size, first, last)


def _aligned(alignment: ArrayLike, axes: int) -> NDArray[np.float64]:
    values = np.asarray(alignment, np.float64)
    return np.full((1, axes), values) if values.ndim == 0 else np.ascontiguousarray(np.atleast_2d(values))


def resample_plan(
    input: Operand,
    axes: list[int],
    geometry: Geometry,
    *,
    antialias: bool,
    interp_type: Values | None,
    mag_filter: Values | None,
    min_filter: Values | None,
    rule: str = "dali",
    **_: Any,
) -> Plan:
    """The plan of an operator whose output is `input` resampled along `axes` (ascending).

    Every axis has the kind and radius (in source pixels) of its filter, ``[N, D]`` each: ``min_filter`` serves the axes
    that shrink, ``mag_filter`` the others. An antialiasing filter of a shrinking axis is widened by the scale. ``whole`` is
    the extent of the complete result, whose first ``skip`` pixels are not computed (both 64-bit integers, ``[N, D]``).
    """
    kind, radius = np.empty(geometry.size.shape, np.int32), np.empty(geometry.size.shape, np.float32)
    shrink, grow = _filter(min_filter or interp_type), _filter(mag_filter or interp_type)
    if rule == "torchvision":
        shrink, grow = (_of_torchvision(kinds, antialias) for kinds in (shrink, grow))
    arrays = (np.ascontiguousarray(a) for a in (geometry.size, geometry.start, geometry.end))
    choose_filters(*arrays, shrink, grow, _WIDENS if antialias else _NEVER, BASE_RADIUS, kind, radius)
    skip, new_size = geometry.window or (few_zeros(geometry.size.shape, np.int64), geometry.size)
    shapes = input.shapes.copy()
    for number, axis in enumerate(axes):
        if axis >= 0:
            shapes[:, axis] = new_size[:, number - len(axes)]
    per_sample = {"start": geometry.start, "end": geometry.end, "kind": kind, "radius": radius}
    per_sample |= {"whole": geometry.size, "skip": skip}
    return Plan(shapes, per_sample, {"axes": tuple(axes)})


def _filter(values: Values | None) -> NDArray[np.int64]:
    """The filter of each sample, or one for all."""
    if values is None:
        return _TRIANGLES
    chosen = values.each().astype(np.int64)
    if chosen.min() < NN or chosen.max() > GAUSSIAN:
        raise RuntimeError(f"expected an InterpType (0 to {GAUSSIAN}) for `{values.name}`, got {chosen.tolist()}.")
    chosen[chosen == LINEAR] = TRIANGULAR
    return chosen


def _of_torchvision(kinds: NDArray[np.int64], antialias: bool) -> NDArray[np.int64]:
    filters = (_WIDE_KINDS if antialias else _NARROW_KINDS)[kinds]
    if (filters < 0).any():
        raise RuntimeError(
            '`rule="torchvision"` knows INTERP_NN, INTERP_LINEAR, INTERP_TRIANGULAR, INTERP_CUBIC and, with `antialias`, '
            f"INTERP_LANCZOS3, got InterpType {int(kinds[filters < 0][0])} with antialias={antialias}."
        )
    return filters


def _widen(start: NDArray[np.float32], end: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give every region an extent, keeping its centre and direction (in float32, as in DALI)."""
    centre = (start + end) * np.float32(0.5)
    half = np.copysign(NARROWEST * np.float32(0.5), end - start)
    narrow = np.abs(end - start) < NARROWEST
    start, end = np.where(narrow, centre - half, start), np.where(narrow, centre + half, end)
    return start.astype(np.float64), end.astype(np.float64)


def check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """RuntimeError unless a word is one of the allowed ones."""
    if value not in allowed:
        raise RuntimeError(f"expected `{name}` to be one of {', '.join(allowed)}, got {value!r}.")


def resampled_part(image, plan) -> tuple[np.ndarray, np.ndarray]:
    """The pixels of images HWC that a `resample_plan` reads: their begin and end, `[N, 2]` each."""
    start, end, whole, skip = (plan.per_sample[name] for name in ("start", "end", "whole", "skip"))
    new_size, scale = plan.shapes[:, list(plan.shared["axes"])], (end - start) / np.maximum(whole, 1)
    ends = start + skip * scale, start + (skip + new_size) * scale
    reach = np.ceil(plan.per_sample["radius"]) + 1
    return np.floor(np.minimum(*ends) - reach), np.ceil(np.maximum(*ends) + reach)
