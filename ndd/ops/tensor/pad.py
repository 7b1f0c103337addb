"""`ndd.pad`: larger arrays, filled up at the end of each axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._cpu.windows import grow_extents
from ndd._operator import PerSample, Plan, bad_sample, like, operator
from ndd._tensor import DType, bind_operations
from ndd._tensor.convert import convert_array
from ndd.ops.image.window import conversion, cut, gpu_window, wrapped
from ndd.ops.tensor.axes import axes_of, per_axis, unless_empty


@operator
def pad(
    input,
    /,
    *,
    align: PerSample[list[int]] = None,
    axes: PerSample[list[int]] = None,
    axis_names: str | None = None,
    fill_value: PerSample[float] = 0.0,
    shape: PerSample[list[int]] = None,
):
    """Pads each array at the end of its axes: to the largest extent in the batch, to a shape, to a multiple.

    Args:
        input: any rank, layout and element type (DALI 2.4.0 refuses float64 and more than five axes).
        axes, axis_names: the axes to pad, by number (negative ones count from the back) or by letter; default: all.
        shape: the least extent of each of these axes; -1 or no `shape`: the largest in the batch.
        align: the extents become multiples of this.
        fill_value: what the new elements are; converted as in C (the fraction is dropped, integers wrap around).

    `out[i] = in[i] if i < extent else fill_value` along each axis, for `i < ceil(max(extent, shape) / align) * align`.
    (`np.pad` and `torch.nn.functional.pad` take how much to add at each side.) An extent never shrinks. One
    number in `shape` or `align` goes for all axes. An empty list counts as not given. The layout stays.

    Raises RuntimeError for axes that are not there and for an `align` below 1.

    >>> import ndd
    >>> ndd.pad(ndd.batch([[1, 2, 3], [4]]), fill_value=-1).torch()
    tensor([[ 1,  2,  3],
            [ 4, -1, -1]], dtype=torch.int32)
    """
    return like(input)


@pad.old_plan
def _(input, *, align, axes, axis_names, fill_value, shape):
    axes, shape, align = (unless_empty(v) for v in (axes, shape, align))
    chosen = axes_of(axes, axis_names or None, input.layout, input.ndim)
    extents = np.ascontiguousarray(input.shapes)
    shapes = np.empty_like(extents)
    least, multiple = _rows("shape", shape, chosen, 0), _rows("align", align, chosen, 1)
    wrong = grow_extents(extents, chosen, least, multiple, shapes)
    if wrong >= 0:
        raise bad_sample(wrong, "`align` must be at least 1 on every axis")
    starts = np.zeros_like(shapes)
    if input.spec.device.device_id is not None:
        fill = np.asarray(fill_value, np.float64).reshape(-1, 1)
        if input.dtype.numpy.kind != "f" and input.dtype.name != "bfloat16":
            fill = wrapped(fill, input.dtype.numpy).astype(np.float64)
        return Plan(shapes, *gpu_window(input.shapes, starts, shapes, fill, None))
    fill = np.broadcast_to(fill_element(fill_value, input.dtype), (input.n,))
    per_sample: dict[str, Any] = {"start": starts.tolist(), "fill": fill}
    return Plan(shapes, per_sample, {"convert": conversion(input.dtype.name, input.dtype.name)})


def _rows(name: str, value: Any, axes: np.ndarray, default: int) -> np.ndarray:
    """An argument as int64 `[N or 1, axes or 1]`."""
    if value is None:
        return np.full((1, 1), default)
    return np.ascontiguousarray(np.atleast_2d(per_axis(name, value, axes)), np.int64)


def fill_element(values: Any, dtype: DType) -> np.ndarray:
    """Numbers as elements of a type, by C's conversion; bfloat16 as its bits."""
    if dtype.name == "bfloat16":
        return convert_array(np.asarray(values, np.float32), "f32", "bfloat16")
    return wrapped(values, dtype.numpy)  # type: ignore[attr-defined]


@pad.cpu
def _(array, out, start, fill, convert):
    cut(array, out, start, fill, convert)


@pad.cuda("../image/window.cu")
def _(launch, array, out, chunks):
    launch("window", chunks)


bind_operations(pad=pad)
