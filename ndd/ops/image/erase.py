"""`ndd.erase`: regions of an image filled with a value."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._operator import PerSample, Plan, bad_sample, like, operator
from ndd.ops.image.window import wrapped
from ndd.ops.tensor.axes import axes_of

_DEFAULT_LAYOUTS = {2: "HW", 3: "HWC", 4: "DHWC", 5: "FDHWC"}


@operator
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
        anchor: where the regions begin (default 0; DALI 2.4.0 wants it with every shape), a number for each of the
            axes, then the next region.
        shape: how large they are, likewise.
        axes, axis_names: the axes that the numbers are about, by number or letter; default: all but C. An array
            without a layout counts as HW, HWC or DHWC by rank (of such arrays, and of negative axes, DALI dies).
        centered_anchor: the anchors are the centres of the regions.
        normalized: anchors and shapes are fractions of the extents; `normalized_anchor` and `normalized_shape` say so
            for one of them.
        fill_value: one number, or one for each channel; converted as in C (the fraction is dropped, integers wrap).

    In a region, for `start <= i < start + shape` along each of the axes, `out[i] = fill_value`, elsewhere
    `out[i] = in[i]`. Start and end of a region lose their fractions; what lies outside the array is left away.
    torchvision's `erase` is one region with `anchor=[i, j], shape=[h, w], axis_names="HW"`.

    Raises RuntimeError for anchors and shapes that do not fit each other or the axes.

    >>> import ndd
    >>> ndd.erase(ndd.tensor([[1, 2, 3], [4, 5, 6]], layout="HW"), anchor=[0, 1], shape=[2, 1]).torch()
    tensor([[1, 0, 3],
            [4, 0, 6]], dtype=torch.int32)
    """
    if normalized is not None and (normalized_anchor is not None or normalized_shape is not None):
        raise RuntimeError("erase: `normalized` excludes `normalized_anchor` and `normalized_shape`")
    return like(input)


@erase.old_plan
def _(
    input, *, anchor, axes, axis_names, centered_anchor, fill_value, normalized, normalized_anchor, normalized_shape, shape
):  # fmt: skip
    layout = input.layout or _DEFAULT_LAYOUTS.get(input.ndim)
    if axes is None and axis_names is None:
        axis_names = (layout or "").replace("C", "")
    chosen = axes_of(None if axis_names else axes, axis_names, layout, input.ndim)[0]
    extents = input.shapes[:, chosen].astype(np.float32)
    sizes = _regions("shape", shape, extents, bool(normalized or normalized_shape))
    starts = _regions("anchor", anchor, extents, bool(normalized or normalized_anchor))
    if anchor is None:
        starts = [np.zeros_like(s) for s in sizes] if isinstance(sizes, list) else np.zeros_like(sizes)
    bounds = _bounds(starts, sizes, chosen, input.shapes, centered_anchor)
    fill = np.atleast_2d(wrapped(np.asarray(fill_value if len(fill_value) else (0.0,)), input.dtype.numpy))
    channel = layout.index("C") if layout and "C" in layout else None
    _check_fill(fill, channel, input)
    if input.spec.device.device_id is None:
        if fill.shape[1] > 1:
            fill = fill.reshape(*fill.shape, *(1,) * (input.ndim - channel - 1))
        if (bounds == bounds[:1]).all():
            bounds = np.broadcast_to(bounds[:1], bounds.shape)
        return Plan(input.shapes, {"bounds": bounds, "fill": np.broadcast_to(fill, (input.n, *fill.shape[1:]))})
    per_sample = {"bounds": bounds, "fill": np.broadcast_to(fill, (input.n, fill.shape[1])).astype(np.float64)}
    return Plan(input.shapes, per_sample, {"channel": -1 if channel is None or fill.shape[1] == 1 else channel})


def _regions(name: str, values: Any, extents: np.ndarray, normalized: bool) -> Any:
    """An argument as `[N, regions, axes]` in elements; a list of N arrays where the samples differ in length."""
    n, count = extents.shape
    if values is None:
        return np.zeros((n, 0, count), np.float32)
    if isinstance(values, list):
        return [_regions(name, v, e[None], normalized)[0] for v, e in zip(values, extents, strict=True)]
    length = np.shape(values)[-1]
    if not count or length % count:
        raise RuntimeError(f"`{name}`: expected a multiple of {count} elements, one for each axis, got {length}")
    regions = np.asarray(values, np.float32).reshape(-1, length // count, count)
    regions = regions * extents[:, None] if normalized else regions
    return np.broadcast_to(regions, (n, *regions.shape[1:]))


def _bounds(starts: Any, sizes: Any, axes: np.ndarray, shapes: np.ndarray, centered: bool) -> np.ndarray:
    """`[N, regions, 2, axes of the array]`: start and end; a region that a sample has not is empty."""
    n, ndim = shapes.shape
    if isinstance(starts, list) or isinstance(sizes, list):
        rows: list[Any] = [
            _bounds(a[None], b[None], axes, shapes[i : i + 1], centered)[0] if len(a) == len(b) else i
            for i, (a, b) in enumerate(zip(starts, sizes, strict=True))
        ]
        for row in rows:
            if isinstance(row, int):
                raise bad_sample(row, "`anchor` and `shape` must have the same number of elements")
        found = np.zeros((n, max(1, *(len(r) for r in rows)), 2, ndim), np.int64)
        for i, row in enumerate(rows):
            found[i, : len(row)] = row
        return found
    if starts.shape != sizes.shape:
        raise RuntimeError("`anchor` and `shape` must have the same number of elements")
    found = np.zeros((n, max(1, starts.shape[1]), 2, ndim), np.int64)
    if starts.shape[1]:
        low = starts - sizes / 2 if centered else starts
        extents = shapes[:, None, axes]
        found[:, :, 1] = shapes[:, None]
        found[:, :, 0, axes] = np.clip(low, 0, extents)
        found[:, :, 1, axes] = np.clip(low + sizes, 0, extents)
    return found


def _check_fill(fill: np.ndarray, channel: int | None, input: Any) -> None:
    count = fill.shape[1]
    if count == 1:
        return
    if channel is None:
        raise RuntimeError(f"`fill_value` has {count} elements, but the layout has no channel axis C")
    wrong = input.shapes[:, channel] != count
    if wrong.any():
        sample = int(wrong.argmax())
        raise bad_sample(
            sample, f"`fill_value` has {count} elements, the array has {input.shapes[sample, channel]} channels"
        )


@erase.cpu
def _(array, out, bounds, fill):
    out[...] = array
    _fill(out, bounds, fill, 0)


@erase.cpu_batch
def _(input, out, bounds, fill):
    out[...] = input
    if bounds.strides[0] == fill.strides[0] == 0:  # the same for all samples
        _fill(out, bounds[0], fill[0], 1)
        return
    for sample, own, value in zip(out, bounds, fill, strict=True):
        _fill(sample, own, value, 0)


def _fill(out: np.ndarray, bounds: np.ndarray, fill: np.ndarray, axis: int) -> None:
    """Fills the regions of an array, or of all samples in one, whose own axes begin at `axis`."""
    channel = out.ndim - axis - fill.ndim  # where `fill` has a number for each
    for low, high in bounds.tolist():
        region = out[(slice(None),) * axis + tuple([slice(a, b) for a, b in zip(low, high, strict=True)])]
        if region.size:
            region[...] = fill if fill.size == 1 else fill[low[channel] : high[channel]]


erase.cuda("erase.cu")
