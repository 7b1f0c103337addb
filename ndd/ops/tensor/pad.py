"""`ndd.pad`: pads arrays at the end of each axis."""

from __future__ import annotations

import numpy as np

from ndd._cpu.windows import grow_extents
from ndd._operator import Operand, PerSample, Values, bad_sample, like, operator
from ndd._tensor import bind_operations
from ndd.ops.image.window import cut_on_gpu, window_plan
from ndd.ops.tensor.axes import axes_of, check_axes, unless_empty


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
        shape: the smallest extent of each of these axes; -1 or no `shape`: the largest in the batch.
        align: the extents become multiples of this.
        fill_value: the value of the new elements; converted as in C (the fraction is dropped, integers wrap around).

    `out[i] = in[i] if i < extent else fill_value` along each axis, for `i < ceil(max(extent, shape) / align) * align`.
    (`np.pad` and `torch.nn.functional.pad` take the padding of each side.) An extent never shrinks. One number in `shape` or
    `align` applies to all axes (DALI refuses it as a list of one number). An empty list counts as missing. The layout stays.

    Raises RuntimeError for axes that do not exist and for an `align` below 1.

    >>> import ndd
    >>> ndd.pad(ndd.batch([[1, 2, 3], [4]]), fill_value=-1).torch()
    tensor([[ 1,  2,  3],
            [ 4, -1, -1]], dtype=torch.int32)
    >>> ndd.pad(ndd.demo.photo("cat"), axis_names="HW", shape=[320, 440]).shape
    (320, 440, 3)
    """
    check_axes(unless_empty(axes), axis_names or None, input.layout, input.ndim)
    return like(input)


@pad.plan
def _(input, *, align, axes, axis_names, fill_value, shape):
    shapes = _grown(input, align, axes, axis_names, shape)
    return window_plan(input, np.zeros_like(shapes), shapes, fill_value.each()[:, None], input.dtype)


def _grown(
    input: Operand, align: Values | None, axes: Values | None, axis_names: str | None, shape: Values | None
) -> np.ndarray:
    """The shapes of the outputs, int64 `[N, axes]`."""
    chosen = axes_of(unless_empty(axes), axis_names or None, input.layout, input.ndim)
    extents = np.ascontiguousarray(input.shapes)
    shapes = np.empty_like(extents)
    wrong = grow_extents(extents, chosen, _rows(shape, chosen, 0), _rows(align, chosen, 1), shapes)
    if wrong >= 0:
        raise bad_sample(wrong, "`align` must be at least 1 on every axis")
    return shapes


def _rows(value: Values | None, axes: np.ndarray, default: int) -> np.ndarray:
    """An argument as int64 `[N or 1, axes or 1]`."""
    value = unless_empty(value)
    if value is None:
        return np.full((1, 1), default)
    return np.ascontiguousarray(value.rows(axes.shape[1], repeat=True))


pad.cuda("../image/window.cu")(cut_on_gpu)

bind_operations(pad=pad)
pad.operator.independent_samples = False  # it pads to the largest
