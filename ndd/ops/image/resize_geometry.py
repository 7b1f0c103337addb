"""Output sizes and source regions of the resampling operators, for a whole batch at once.

Everything here is arithmetic on arrays of shape ``[N, D]`` (N samples, D resized axes); no pixel is touched.
The rule, established against DALI 2.4.0: extents are computed in double precision, a missing extent (0) follows
the geometric mean of the given scales, and a region of interest is a pair of float32 coordinates whose
order says whether the axis is mirrored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ndd._cpu.extents import choose_filters, fit_extents
from ndd._cuda.resample import plane_view
from ndd._operator import Operand, Plan, bad_sample

LAYOUTS = ("HWC", "FHWC", "CHW", "FCHW", "CFHW", "DHWC", "FDHWC", "CDHW", "FCDHW", "CFDHW")
MODES = ("default", "stretch", "not_larger", "not_smaller")
ROUNDINGS = ("round", "truncate", "ceil")

# Values of InterpType. LINEAR with antialiasing is the triangular filter; without, the same filter of radius 1.
NN, LINEAR, CUBIC, LANCZOS3, TRIANGULAR, GAUSSIAN = range(6)
# A region without extent is taken to be this wide, in pixels.
NARROWEST = np.float32(1e-3)

# Radius of each filter, in source pixels, where nothing shrinks.
BASE_RADIUS = np.array([0.5, 1.0, 2.0, 3.0, 1.0, 1.0], np.float32)
_WIDENS = np.arange(6) != NN
_NEVER = np.zeros(6, bool)


@dataclass(frozen=True)
class Geometry:
    """How each axis is resampled: ``size`` output pixels spread evenly over source coordinates ``start..end``.

    ``start > end`` mirrors the axis. All arrays are ``[N, D]``; ``size`` is int64, the others float32.
    """

    size: NDArray[np.int64]
    start: NDArray[np.float32]
    end: NDArray[np.float32]

    def of(self, axes: list[int]) -> Geometry:
        """That of some of the axes."""
        return Geometry(self.size[:, axes], self.start[:, axes], self.end[:, axes])


def spatial_axes(layout: str) -> list[int]:
    """Numbers of the axes that are resized, ascending."""
    return [i for i, name in enumerate(layout) if name in "DHW"]


def requested_extents(
    count: int,
    spatial: str,
    *,
    size: Any = None,
    resize_x: Any = None,
    resize_y: Any = None,
    resize_z: Any = None,
    resize_shorter: Any = None,
    resize_longer: Any = None,
    mode: str | None = None,
) -> tuple[NDArray[np.float64], str]:
    """Turn the alternative ways to ask for a size into one ``[N, D]`` array (0 = not given) and a mode.

    ``spatial`` names the resized axes, e.g. ``"HW"`` or ``"DHW"``.
    """
    by_axis = {"W": resize_x, "H": resize_y, "D": resize_z}
    separate = any(extent is not None for extent in by_axis.values())
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
    if separate:
        wanted = np.zeros((count, len(spatial)))
        for axis, name in enumerate(spatial):
            if by_axis[name] is not None:
                wanted[:, axis] = by_axis[name]
    elif size is not None:
        wanted = per_axis("size", size, count, len(spatial))
    elif resize_shorter is not None:
        wanted, mode = _same_for_axes(resize_shorter, count, len(spatial)), "not_smaller"
    else:
        wanted, mode = _same_for_axes(resize_longer, count, len(spatial)), "not_larger"
    check_extents(wanted)
    return wanted, mode or "default"


def check_extents(wanted: NDArray[np.float64]) -> None:
    """RuntimeError for NaN, infinite and absurd extents."""
    bad = ~(np.abs(wanted) < 2**31)
    if bad.any():
        sample = int(bad.any(axis=1).argmax())
        raise bad_sample(sample, f"expected finite output extents below 2**31, got {wanted[sample].tolist()}.")


def _same_for_axes(value: Any, count: int, ndim: int) -> NDArray[np.float64]:
    return np.broadcast_to(np.reshape(value, (-1, 1)), (count, ndim)).astype(np.float64)


def per_axis(name: str, value: Any, count: int, ndim: int) -> NDArray[np.float64]:
    """A vector argument (`[k]`, or per sample `[N, k]` or a list of vectors) as `[N, D]`; k = 1 serves all axes."""
    rows = value if isinstance(value, list) else np.atleast_1d(np.asarray(value, np.float32))
    if isinstance(rows, list):
        for i, row in enumerate(rows):
            if len(row) not in (1, ndim):
                raise bad_sample(i, _wrong_length(name, len(row), ndim))
        return np.stack([np.broadcast_to(row, ndim) for row in rows]).astype(np.float64)
    if rows.shape[-1] not in (1, ndim):
        raise RuntimeError(f"{_wrong_length(name, rows.shape[-1], ndim)}")
    return np.broadcast_to(rows, (count, ndim)).astype(np.float64)


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
    roi_start: Any = None,
    roi_end: Any = None,
    roi_relative: bool = False,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The part of the source that is resampled, ``[N, D]`` each; the whole image without a region."""
    if (roi_start is None) != (roi_end is None):
        given, other = ("roi_start", "roi_end") if roi_end is None else ("roi_end", "roi_start")
        raise RuntimeError(f"expected `roi_start` and `roi_end` together, got only `{given}`. Give `{other}` too.")
    count, ndim = extents.shape
    if roi_start is None:
        return np.zeros((count, ndim)), extents.astype(np.float64)
    start = per_axis("roi_start", roi_start, count, ndim)
    end = per_axis("roi_end", roi_end, count, ndim)
    if roi_relative:
        start, end = start * extents, end * extents
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
    input: Operand, axes: list[int], geometry: Geometry, filters: dict[str, Any], antialias: bool
) -> Plan:
    """The plan of an operator whose output is `input` resampled along `axes` (ascending)."""
    kind, radius = axis_filters(geometry, antialias=antialias, **filters)
    shapes = input.shapes.copy()
    shapes[:, axes] = geometry.size
    per_sample = {"start": geometry.start, "end": geometry.end, "kind": kind, "radius": radius}
    shared: dict[str, Any] = {"axes": tuple(axes)}
    if len(axes) > 1:
        per_sample["view"] = plane_view(input.shapes, shapes, axes[-2])
        shared["pair"] = np.array([len(axes) - 2, len(axes) - 1], np.int32)
    return Plan(shapes, per_sample, shared)


def check_types(input: Operand, dtype: Any) -> None:
    """Resampling reads u8, i16, u16 and f32, and writes the same type or f32."""
    if input.dtype.name not in ("u8", "i16", "u16", "f32"):
        raise RuntimeError(f"expected input of type u8, i16, u16 or f32, got {input.dtype.name}. Use `cast` first.")
    if dtype is not None and dtype.name not in ("f32", input.dtype.name):
        raise RuntimeError(f"expected `dtype` f32 or that of the input ({input.dtype.name}), got {dtype.name}.")


def axis_filters(
    geometry: Geometry,
    interp_type: Any = None,
    min_filter: Any = None,
    mag_filter: Any = None,
    antialias: bool = True,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Filter kind and radius (in source pixels) of every axis, ``[N, D]`` each.

    ``min_filter`` serves the axes that shrink, ``mag_filter`` the others. An antialiasing filter of a shrinking
    axis is widened by the scale.
    """
    shrink = _filter_choice("min_filter", min_filter, interp_type)
    grow = shrink if min_filter is mag_filter is None else _filter_choice("mag_filter", mag_filter, interp_type)
    kind, radius = np.empty(geometry.size.shape, np.int32), np.empty(geometry.size.shape, np.float32)
    widens = _WIDENS if antialias else _NEVER
    arrays = (np.ascontiguousarray(a) for a in (geometry.size, geometry.start, geometry.end))
    choose_filters(*arrays, shrink, grow, widens, BASE_RADIUS, kind, radius)
    return kind, radius


def _filter_choice(name: str, specific: Any, interp_type: Any) -> NDArray[np.int64]:
    value = specific if specific is not None else interp_type
    chosen = np.array(LINEAR if value is None else value, np.int64).reshape(-1)
    if chosen.size and (chosen.min() < NN or chosen.max() > GAUSSIAN):
        raise RuntimeError(f"expected an InterpType (0 to {GAUSSIAN}) for `{name}`, got {chosen.tolist()}.")
    chosen[chosen == LINEAR] = TRIANGULAR
    return chosen


def _widen(start: NDArray[np.float32], end: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give every region an extent, keeping its centre and direction (float32 all through, as DALI)."""
    centre = (start + end) * np.float32(0.5)
    half = np.copysign(NARROWEST * np.float32(0.5), end - start)
    narrow = np.abs(end - start) < NARROWEST
    start, end = np.where(narrow, centre - half, start), np.where(narrow, centre + half, end)
    return start.astype(np.float64), end.astype(np.float64)


def check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """RuntimeError unless a word is one of the allowed ones."""
    if value not in allowed:
        raise RuntimeError(f"expected `{name}` to be one of {', '.join(allowed)}, got {value!r}.")


def _wrong_length(name: str, got: int, ndim: int) -> str:
    return f"expected `{name}` to be a number or {ndim} numbers (one for each resized axis), got {got} numbers."
