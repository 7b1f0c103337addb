"""`ndd.pad`: larger arrays, filled up at the end of each axis."""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import array_at
from ndd._compiled.jit import kernel
from ndd._cpu.windows import grow_extents
from ndd._operator import Operand, PerSample, Values, bad_sample, like, operator
from ndd._operator.on_cpu import allocated
from ndd._operator.runs import aligned_places, each_run_in_turns, flat_of, run_edges
from ndd._tensor import bind_operations
from ndd.ops.image.window import cut_on_gpu, elements_of, window_plan
from ndd.ops.tensor.axes import axes_of, check_axes, unless_empty

# By element size: a kernel moves bits, whatever they mean.
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_SEVERAL = 8  # arrays that are filled up together: the plan for fewer costs less, for it is kept


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


@pad.batch
def _(call, input, *, align, axes, axis_names, fill_value, shape):
    """Several arrays of one axis or two; others are for the plan, which is kept for the next ones of the same shapes."""
    words = _WORDS.get(input.dtype.numpy.itemsize)
    places = aligned_places(input) if 1 <= input.ndim <= 2 and call.n >= _SEVERAL else None
    if places is None or words is None:
        return None
    shapes = _grown(input, align, axes, axis_names, shape)
    store = allocated(shapes, call.outs[0])
    out, starts = flat_of(store).view(words), store.volumes.offsets
    fill = elements_of(fill_value.each(), input.dtype).view(words)
    before, after = (
        extents if input.ndim == 2 else np.insert(extents, 0, 1, axis=1) for extents in (input.shapes, shapes)
    )
    nbytes = out.itemsize * (input.volumes.total + out.size)
    edges = run_edges(call, input, nbytes)
    each_run_in_turns(call, edges, nbytes, _filled_up, places, before, out, starts, after, fill, held=input)
    return store


@kernel
def _filled_up(start, stop, places, before, out, starts, after, fill):
    """Arrays `start` up to `stop` of extents `before` `[N, 2]` at addresses, to those of extents `after` in `out`. NumPy takes a
    call for each border."""
    for n in range(start, stop):
        (height, width), wide, at = before[n], after[n, 1], starts[n]
        array = array_at(places[n], height * width, out)
        for r in range(height):
            row = array[r * width : (r + 1) * width]
            target = out[at + r * wide : at + (r + 1) * wide]
            for i in range(width):
                target[i] = row[i]
            target[width:] = fill[n]
        out[at + height * wide : at + after[n, 0] * wide] = fill[n]


@_filled_up.meanwhile
def _(start, stop, places, before, out, starts, after, fill):
    for n in range(start, stop):
        (height, width), (high, wide) = before[n].tolist(), after[n].tolist()
        target = out[starts[n] : starts[n] + high * wide].reshape(high, wide)
        target[:height, :width] = array_at(places[n], height * width, out).reshape(height, width)
        target[:height, width:] = fill[n]
        target[height:] = fill[n]


pad.cuda("../image/window.cu")(cut_on_gpu)

bind_operations(pad=pad)
pad.operator.independent_samples = False  # it fills up to the largest
