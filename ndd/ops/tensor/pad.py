"""`ndd.pad`: larger arrays, filled up at the end of each axis."""

from __future__ import annotations

import numpy as np

from ndd._cpu.jit import kernel
from ndd._cpu.windows import grow_extents
from ndd._operator import PerSample, Values, bad_sample, like, operator
from ndd._tensor import bind_operations
from ndd.ops.image.window import cut, cut_on_gpu, window_plan
from ndd.ops.tensor.axes import axes_of, check_axes, unless_empty

# By element size: a kernel moves bits, whatever they mean.
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


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
    number in `shape` or `align` goes for all axes (DALI refuses it as a list of one number). An empty list counts as not
    given. The layout stays.

    Raises RuntimeError for axes that are not there and for an `align` below 1.

    >>> import ndd
    >>> ndd.pad(ndd.batch([[1, 2, 3], [4]]), fill_value=-1).torch()
    tensor([[ 1,  2,  3],
            [ 4, -1, -1]], dtype=torch.int32)
    """
    check_axes(unless_empty(axes), axis_names or None, input.layout, input.ndim)
    return like(input)


@pad.plan
def _(input, *, align, axes, axis_names, fill_value, shape):
    chosen = axes_of(unless_empty(axes), axis_names or None, input.layout, input.ndim)
    extents = np.ascontiguousarray(input.shapes)
    shapes = np.empty_like(extents)
    wrong = grow_extents(extents, chosen, _rows(shape, chosen, 0), _rows(align, chosen, 1), shapes)
    if wrong >= 0:
        raise bad_sample(wrong, "`align` must be at least 1 on every axis")
    return window_plan(input, np.zeros_like(shapes), shapes, fill_value.each()[:, None], input.dtype)


def _rows(value: Values | None, axes: np.ndarray, default: int) -> np.ndarray:
    """An argument as int64 `[N or 1, axes or 1]`."""
    value = unless_empty(value)
    if value is None:
        return np.full((1, 1), default)
    return np.ascontiguousarray(value.rows(axes.shape[1], repeat=True))


@pad.cpu
def _(image, out, start, fill, channel, types):
    words = _WORDS.get(out.itemsize)
    if not 1 <= out.ndim <= 2 or not image.size or words is None or len(fill) != 1:
        cut(image, out, start, fill, channel, types)
        return
    rows, wide = image.reshape(-1, image.shape[-1]), out.reshape(-1, out.shape[-1])
    _filled_up(rows.view(words), wide.view(words), np.asarray(fill, out.dtype).view(words))


@kernel
def _filled_up(rows, out, fill):
    """In one call, for NumPy takes a call for each border: a third of the time of 64 spectrograms, which threads share badly."""
    height, width, value = len(rows), rows.shape[1], fill[0]
    for r in range(height):
        row, target = rows[r], out[r]
        for i in range(width):
            target[i] = row[i]
        target[width:] = value
    for r in range(height, len(out)):
        out[r, :] = value


@_filled_up.meanwhile
def _(rows, out, fill):
    height, width = rows.shape
    out[:height, :width] = rows
    out[:height, width:] = fill[0]
    out[height:] = fill[0]


pad.cuda("../image/window.cu")(cut_on_gpu)

bind_operations(pad=pad)
pad.operator.apart = False  # it fills up to the largest
