"""`ndd.slice`: a window of each array, by its position, size or end along named axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ndd._operator import PerSample, Values, bad_sample, like, operator
from ndd._operator.deprecated import ignored, renamed
from ndd._tensor import DType
from ndd.ops.image.borders import BORDERS, cut_with_border, mirrored_plan
from ndd.ops.image.crop import bounded_plan, window_dtype
from ndd.ops.image.window import check_policy, cut_part, rounded
from ndd.ops.tensor.axes import axes_of, check_axes, unless_empty

_DEFAULT_LAYOUTS = {2: "HW", 3: "HWC", 4: "DHWC", 5: "FDHWC"}
_FAR = 2.0**62  # limit of places, so that distances fit into 64 bits


@operator(reads={"anchor": "cpu", "shape_input": "cpu"}, argument_shapes=False)
def slice(
    data,
    anchor=None,
    shape_input=None,
    /,
    *,
    axes: PerSample[list[int]] = None,
    axis_names: str | None = None,
    dtype: DType | None = None,
    end: PerSample[list[int]] = None,
    fill_values: Sequence[float] = (0.0,),
    image_type: Any = None,
    normalized_anchor: bool = True,
    normalized_shape: bool = True,
    out_of_bounds_policy: str = "error",
    output_dtype: DType | None = None,
    rel_end: PerSample[list[float]] = None,
    rel_shape: PerSample[list[float]] = None,
    rel_start: PerSample[list[float]] = None,
    shape: PerSample[list[int]] = None,
    start: PerSample[list[int]] = None,
):
    """Cuts a window out of each array.

    The window is given by two inputs, or by named arguments; both list one number for each of the axes.

    Args:
        data: arrays of any rank and element type but bool.
        anchor, shape_input: i32, i64 or f32. Integers are absolute. Floats are fractions of the extent, unless
            `normalized_anchor=False` or `normalized_shape=False`.
        start, rel_start: the start of the window, absolute or as a fraction of the extent; default 0.
        end, rel_end, shape, rel_shape: its end or its size; default: to the end of the axis.
        axes: the axes of these numbers; negative ones count from the back, an empty list means all.
        axis_names: the axes by their letters; default "WH": x first. An array without a layout counts as HW, HWC or
            DHWC by rank.
        out_of_bounds_policy: "error", "pad" (or "constant") with `fill_values`, or "trim_to_shape"; or, of the same type, a
            border of the image's own pixels: "edge" (the last one repeated), "reflect" (mirrored at it), "symmetric"
            (mirrored with it repeated).
        fill_values: one number, or one for each channel.
        dtype: u8, f16, f32 or the input's type (default). Conversion drops fractions and saturates.
        image_type, output_dtype: old arguments; the first has no effect, the second means `dtype`.
        normalized_anchor, normalized_shape: whether the floats of `anchor`, or of `shape_input`, are fractions of the
            extent.

    `out = data[start : end]` along each of the axes, as in NumPy, but negative numbers lie before the array and do not
    count from its end. Fractions of the extent are rounded, halves away from zero, separately for start and end. The
    layout stays.

    Raises RuntimeError for a window outside the array, for axes that do not exist, and for arguments that exclude each other.

    >>> import ndd
    >>> ndd.slice(ndd.tensor([0, 1, 2, 3, 4]), start=1, end=3, axes=0).torch()
    tensor([1, 2], dtype=torch.int32)
    >>> ndd.slice(ndd.demo.photo("cat"), rel_start=[0.2, 0.3], rel_shape=[0.6, 0.5], axis_names="HW").shape
    (160, 200, 3)
    """
    ignored("slice", "image_type", image_type)
    chosen = window_dtype(data.dtype, renamed("slice", "output_dtype", output_dtype, "dtype", dtype))
    check_policy(out_of_bounds_policy, BORDERS)
    if not data.ndim:
        raise RuntimeError("a scalar has no axes to cut")
    check_axes(axes, _names(axes, axis_names), data.layout or _DEFAULT_LAYOUTS.get(data.ndim), data.ndim)
    check_slice(
        anchor,
        shape_input,
        start=start,
        rel_start=rel_start,
        end=end,
        rel_end=rel_end,
        shape=shape,
        rel_shape=rel_shape,
    )
    return like(data, dtype=chosen)


def check_slice(anchor: Any, shape_input: Any, **named: Any) -> None:
    """RuntimeError unless the window is given in exactly one way; also for region decoders."""
    present = [name for name, value in named.items() if unless_empty(value) is not None]
    if anchor is not None:
        if any(value is not None for value in named.values()):
            raise RuntimeError("give the window by inputs or by name, not both: there are names beside `anchor`")
        if shape_input is None:
            raise RuntimeError("the input `anchor` needs the input `shape_input` beside it, or use `start=`, `shape=`")
        kind, other = anchor.dtype, shape_input.dtype
        if kind != other:
            raise RuntimeError(f"`anchor` and `shape_input` must be of one type, got {kind} and {other}")
        if kind.name not in ("i32", "i64", "f32"):
            raise RuntimeError(f"`anchor` and `shape_input`: expected int32, int64 or float32, got {kind}")
        return
    for names in (("start", "rel_start"), ("end", "rel_end", "shape", "rel_shape")):
        several = [f"`{name}`" for name in names if name in present]
        if len(several) > 1:
            raise RuntimeError(f"{', '.join(several)} exclude each other: give one")
    if all(value is None for value in named.values()):
        raise RuntimeError(
            "a window is missing: give `start`, `end` or `shape` (or their rel_ forms), or two more inputs"
        )


def _names(axes: Any, axis_names: str | None) -> str | None:
    return "WH" if axes is None and axis_names is None else axis_names


@slice.plan
def _(
    data, anchor, shape_input, *, axes, axis_names, dtype, fill_values, image_type, normalized_anchor, normalized_shape,
    out_of_bounds_policy, output_dtype, **named,
):  # fmt: skip
    layout = data.layout or _DEFAULT_LAYOUTS.get(data.ndim)
    axes = axes_of(axes, _names(axes, axis_names), layout, data.ndim)
    rows = np.arange(data.n)[:, None]
    extents = data.shapes[rows, axes]
    low, high = slice_ends(extents, anchor, shape_input, normalized_anchor, normalized_shape, named)
    starts, shapes = np.zeros_like(data.shapes), data.shapes.copy()
    first = rounded(low)
    starts[rows, axes] = first
    shapes[rows, axes] = rounded(high) - first
    chosen = dtype or output_dtype or data.dtype
    if out_of_bounds_policy.lower() in BORDERS:
        return mirrored_plan(data, starts, shapes, out_of_bounds_policy.lower(), chosen)
    return bounded_plan(data, starts, shapes, out_of_bounds_policy, fill_values, chosen, layout)


def slice_ends(
    extents: np.ndarray,
    anchor: Any,
    shape_input: Any,
    normalized_anchor: bool,
    normalized_shape: bool,
    named: dict[str, Any],
) -> tuple[np.ndarray, np.ndarray]:
    """The begin and end of the windows of `slice` along the chosen axes, before rounding; also for region decoders."""
    if anchor is None:
        low, high = _from_names(extents, **{k: unless_empty(v) for k, v in named.items()})
        _refuse(~((np.abs(low) < _FAR) & (np.abs(high) < _FAR)), "expected places below 2**62, got larger ones or NaN")
        _refuse(high < low, "the end of a window must not lie before its start")
        return low, high
    low, size = _numbers(anchor, extents), _numbers(shape_input, extents)
    if anchor.dtype.name == "f32":
        low = low * extents if normalized_anchor else low
        size = size * extents if normalized_shape else size
    _refuse(
        ~((np.abs(low) < _FAR) & (np.abs(low + size) < _FAR)), "expected places below 2**62, got larger ones or NaN"
    )
    return low, low + size


def _numbers(operand: Any, extents: np.ndarray) -> np.ndarray:
    """The values of a positional input as float64 `[N, axes]`."""
    whole = operand.whole
    if whole is not None and whole.size == extents.size:
        return whole.reshape(extents.shape).astype(np.float64)
    arrays = operand.arrays if operand.varies else operand.arrays[:1]
    values = [a.reshape(-1) for a in arrays]
    for i, row in enumerate(values):
        if len(row) != extents.shape[1]:
            text = f"anchor and shape need {extents.shape[1]} elements, one for each axis, got {len(row)}"
            raise bad_sample(i, text)
    return np.broadcast_to(np.array(values, np.float64), extents.shape)


def _from_names(
    extents: np.ndarray,
    start: Values | None,
    rel_start: Values | None,
    end: Values | None,
    rel_end: Values | None,
    shape: Values | None,
    rel_shape: Values | None,
) -> tuple[np.ndarray, np.ndarray]:
    """The begin and end of the windows, before rounding."""
    low, high = _places(start, rel_start, extents), _places(end, rel_end, extents)
    low = np.zeros(extents.shape) if low is None else low.astype(np.float64)
    sizes = _places(shape, rel_shape, extents)
    if sizes is not None:
        _refuse(sizes < 0, f"`{'rel_shape' if shape is None else 'shape'}` must not be negative")
        high = low + sizes
        if rel_start is not None and rel_shape is not None:  # here DALI multiplies in 64 bits
            shares = [v.rows(extents.shape[1], repeat=True).astype(np.float64) for v in (rel_start, rel_shape)]
            high = shares[0] * extents + shares[1] * extents
    return low, extents if high is None else high


def _places(absolute: Values | None, share: Values | None, extents: np.ndarray) -> np.ndarray | None:
    """Numbers for each axis, or shares of the extents. They are 32-bit, which affects the rounding of halves: 0.45 of 10 is
    4.5."""
    if absolute is not None:
        return absolute.rows(extents.shape[1], repeat=True)
    return None if share is None else share.rows(extents.shape[1], repeat=True) * extents.astype(np.float32)


def _refuse(wrong: np.ndarray, text: str) -> None:
    if wrong.any():
        raise bad_sample(int(wrong.any(axis=1).argmax()), text)


slice.fuses("decoders")(cut_part)
slice.cuda("window.cu")(cut_with_border)
