"""`ndd.tensor_resize`: resizes any axes of a tensor."""

from __future__ import annotations

import numpy as np

from ndd._cuda.resample import resample_batch
from ndd._operator import PerSample, like, operator
from ndd._tensor.dtype import DType
from ndd.ops.image.resample_on_cpu import resample_on_cpu
from ndd.ops.image.resize_geometry import (
    MODES,
    ROUNDINGS,
    TYPES,
    check_choice,
    check_dtype,
    check_extents,
    check_region,
    limits,
    per_axis,
    resample_plan,
    resize_geometry,
    source_region,
)
from ndd.types import DALIInterpType


@operator(types=TYPES)
def tensor_resize(
    input,
    /,
    *,
    alignment: PerSample[list[float]] = (0.5,),
    antialias: bool = True,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    dtype: DType | None = None,
    interp_type: PerSample[DALIInterpType] = None,
    mag_filter: PerSample[DALIInterpType] = None,
    max_size: list[float] | None = None,
    min_filter: PerSample[DALIInterpType] = None,
    minibatch_size: int = 32,
    mode: str | None = None,
    roi_end: PerSample[list[float]] = None,
    roi_relative: bool = False,
    roi_start: PerSample[list[float]] = None,
    scales: PerSample[list[float]] = None,
    size_rounding: str = "round",
    sizes: PerSample[list[float]] = None,
    subpixel_scale: bool = True,
    temp_buffer_hint: int = 0,
):
    """Resizes tensors along any axes, with the filters and the rule of `resize`.

    The size is given by `sizes` or by `scales`, one number for each of the axes or one for all.

    Args:
        input: u8, i16, u16 or f32, at least one axis, any layout.
        alignment: the fixed point of the region when rounding changes the size (see `subpixel_scale`): 0 its start, 0.5 its
            centre, 1 its end; one number for all axes or one for each.
        antialias: widen the filter where an axis shrinks.
        axes: numbers of the axes to resize, negative ones count from the end; default: all.
        axis_names: the same by letters of the layout.
        dtype: f32, or the type of the input (the default).
        interp_type, mag_filter, min_filter: see `resize`.
        max_size: upper bound of the extents; one number, or one for each axis.
        mode: "default", "stretch", "not_larger" or "not_smaller", see `resize`.
        roi_start, roi_end, roi_relative: the region to resize, one number for each axis; see `resize`.
        scales: extents as multiples of the region's.
        size_rounding: how fractional extents are rounded: "round" (half up), "truncate" or "ceil".
        sizes: extents; 0 means a missing one, which follows `mode`; a negative one mirrors.
        subpixel_scale: if rounding changed the size, change the region by the same factor.
        minibatch_size, temp_buffer_hint: have no effect.

    Along each axis `out[i] = sum of f((j + 0.5 - x) / s) * in[j]` with
    `x = start + (i + 0.5) * (end - start) / n_out`: see `resize` for the filters `f`, `s` and rounding. With
    `subpixel_scale`, where rounding took the extent from `n` to `n_out`, the region is `p + (start - p) * n_out / n`
    to `p + (end - p) * n_out / n` with `p = start + (end - start) * alignment`.

    The other axes keep their extents. The layout stays. DALI resizes at most 3 axes at once; here there is no limit. If an
    extent does not change, DALI resamples that axis in some cases only; here its region and `subpixel_scale` always apply. An
    axis that only follows `mode` is fixed at its centre if `alignment` is 0.5, otherwise at its start (DALI: at its start
    whenever an alignment is given, even 0.5). With `antialias=False`, linear resizing of all of an axis gives the numbers of
    `torch.nn.functional.interpolate(mode="linear", align_corners=False)`.

    Raises RuntimeError for scalars, other types, both or neither of `sizes` and `scales`, both of `axes` and
    `axis_names`, numbers that are not one for each axis, unknown letters and words, and `scales` with "not_larger" or
    "not_smaller"; IndexError for an axis that does not exist, ValueError for a repeated one.

    >>> import ndd
    >>> ndd.tensor_resize(ndd.tensor([0.0, 1.0, 2.0, 3.0]), scales=0.5).torch()
    tensor([0.6250, 2.3750])
    >>> ndd.tensor_resize(ndd.tensor([[0.0, 8.0]]), sizes=[4], axes=[1]).torch()
    tensor([[0., 2., 6., 8.]])
    """
    if input.ndim == 0:
        raise RuntimeError("expected at least one axis, got a scalar.")
    check_dtype(input, dtype)
    if (sizes is None) == (scales is None):
        raise RuntimeError(
            f"expected either `sizes` or `scales`, got {'neither' if sizes is None else 'both'}. Give one of them."
        )
    check_choice("size_rounding", size_rounding, ROUNDINGS)
    check_choice("mode", mode or "default", MODES)
    if scales is not None and mode in ("not_larger", "not_smaller"):
        raise RuntimeError(f"`scales` and mode {mode!r} exclude each other: the mode keeps the ratio. Give `sizes`.")
    limits(max_size, len(_chosen_axes(input, axes, axis_names)) or input.ndim)
    check_region(roi_start, roi_end)
    return like(input, dtype=dtype)


@tensor_resize.plan
def _(
    input, *, alignment, axes, axis_names, max_size, mode, roi_end, roi_relative, roi_start, scales, size_rounding, sizes,
    subpixel_scale, **arguments,
):  # fmt: skip
    chosen = _chosen_axes(input, axes, axis_names)
    if not chosen:
        chosen, sizes, scales = list(range(input.ndim)), None, None
    count = len(chosen)
    extents = input.shapes.copy()
    start, end = np.zeros(extents.shape), extents.astype(np.float64)
    start[:, chosen], end[:, chosen] = source_region(extents[:, chosen], roi_start, roi_end, roi_relative)
    # An axis that is not listed counts as one with a requested extent, which matters for `mode`.
    wanted = np.abs(end - start)
    if sizes is not None:
        wanted[:, chosen] = per_axis(sizes, count)
    else:
        wanted[:, chosen] = (1 if scales is None else per_axis(scales, count)) * extents[:, chosen]
    check_extents(wanted)
    pivots = per_axis(alignment, count)
    # An axis that only follows `mode` is fixed as in DALI: at its start, if an alignment is given.
    pivot, most = np.full(extents.shape, 0.5 if (pivots == 0.5).all() else 0.0), None
    pivot[:, chosen] = pivots
    if max_size is not None:
        most = np.zeros(input.ndim)
        most[chosen] = limits(max_size, count)
    geometry = resize_geometry(
        extents, wanted, mode or "default", most, start, end, subpixel_scale=subpixel_scale, alignment=pivot,
        rounding=size_rounding,
    )  # fmt: skip
    moved = (geometry.size != extents) | (geometry.start != 0) | (geometry.end != extents)
    resampled = _resampled(moved.any(axis=0).tolist())
    geometry = geometry.of(resampled)
    if input.ndim == 1:  # DALI treats a 1-D array as a row of pixels
        resampled, geometry = [-1, 0], geometry.behind_one()
    plan = resample_plan(input, resampled, geometry, **arguments)
    blurred = (plan.per_sample["kind"] == DALIInterpType.INTERP_GAUSSIAN).any(axis=0)
    passes = [i for i, a in enumerate(resampled) if a >= 0 and (blurred[i] or moved[:, a].any())]
    plan.shared["moved"] = tuple(passes) or (len(resampled) - 1,)
    return plan


def _resampled(moved: list[bool]) -> list[int]:
    """The axes that DALI resamples: at least two adjacent ones, and all between the first and the last that change. An axis
    that does not change affects ties, the order of the passes and the last bits of wide filters."""
    first, last = 0, len(moved)
    while last - first > 2 and not moved[first]:
        first += 1
    while last - first > 2 and not moved[last - 1]:
        last -= 1
    return list(range(first, last))


def _chosen_axes(input, axes, axis_names) -> list[int]:
    if axes is not None and axis_names is not None:
        raise RuntimeError("`axes` and `axis_names` exclude each other: both say which axes to resize.")
    if axis_names is not None:
        missing = [name for name in axis_names if name not in (input.layout or "")]
        if missing:
            raise RuntimeError(f"expected `axis_names` from the layout {input.layout!r}, got {missing[0]!r}.")
        chosen = [input.layout.index(name) for name in axis_names]
    elif axes is None:
        return list(range(input.ndim))
    else:
        chosen = [int(a) for a in axes]
        for a in chosen:
            if not -input.ndim <= a < input.ndim:
                raise IndexError(f"expected `axes` in [{-input.ndim}, {input.ndim - 1}], got {a}.")
        chosen = [a % input.ndim for a in chosen]
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"expected each axis once, got {chosen}.")
    return chosen


# A batch: the two passes of all images are one compiled loop, which plans them too.
tensor_resize.batch(resample_on_cpu)
tensor_resize.cuda("../image/resize.cu")(resample_batch)
