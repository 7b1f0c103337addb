"""`ndd.cat` and `ndd.stack`: join arrays along an axis, or along a new one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._compiled.intrinsics import array_at
from ndd._compiled.jit import kernel
from ndd._cpu.element_copies import copy_bytes
from ndd._operator import Plan, View, bad_sample, like, operator
from ndd._operator.partition import Rows, each_sample
from ndd._tensor.store import volumes

_NARROW = 32  # up to about this many elements a loop takes less time than memcpy


@operator
def cat(input_0, /, *inputs, axis: int | None = None, axis_name: str | None = None):
    """Joins arrays along an existing axis.

    Args:
        input_0, inputs: of one element type and number of axes; the extents agree on all axes but the joined one.
            An input without any elements is left out, whatever its shape (NumPy and torch count its extent); if none
            has elements, the first is the result.
        axis: the axis, by number (negative ones count from the back); default 0.
        axis_name: the axis, by its letter in the layout of the first input. Give one of the two.

    Along the axis `out[i] = input_0[i]` for `i < n`, the extent of `input_0`, then `out[n + i] = input_1[i]`, and so
    on. Type and layout are those of the first input.

    Raises RuntimeError for inputs of different types, ranks or extents, for an axis that does not exist and an `axis_name` that
    is not one letter.

    >>> import ndd
    >>> ndd.cat(ndd.tensor([1, 2]), ndd.tensor([3])).torch()
    tensor([1, 2, 3], dtype=torch.int32)
    """
    _check_alike("cat", input_0, inputs)
    if axis is not None and axis_name is not None:
        raise RuntimeError("cat: `axis` and `axis_name` exclude each other: give one")
    _joined_axis("cat", axis, axis_name, input_0.layout, input_0.ndim)
    return like(input_0)


@operator
def stack(input_0, /, *inputs, axis: int = 0, axis_name: str | None = None):
    """Joins arrays of one shape along a new axis.

    Args:
        input_0, inputs: of one element type and shape.
        axis: where the new axis is in the output; negative ones count from the back.
        axis_name: its letter; without it the result has no layout.

    With axis 0, `out[k, ...] = inputs[k][...]`.

    Raises RuntimeError for inputs of different types or shapes, for an axis outside the output, and for a name if the first
    input has no layout.

    >>> import ndd
    >>> ndd.stack(ndd.tensor([1, 2]), ndd.tensor([3, 4])).torch()
    tensor([[1, 2],
            [3, 4]], dtype=torch.int32)
    """
    _check_alike("stack", input_0, inputs)
    place = _new_axis(axis, input_0.ndim)
    if axis_name is None:
        return like(input_0, ndim=input_0.ndim + 1, layout=None)
    _check_letter("stack", axis_name)
    layout = input_0.layout or ""
    if input_0.ndim and not layout:
        raise RuntimeError("stack: `axis_name` needs a first input with a layout")
    return like(input_0, ndim=input_0.ndim + 1, layout=layout[:place] + axis_name + layout[place:])


def _check_alike(name: str, first: Any, others: tuple[Any, ...]) -> None:
    for i, other in enumerate(others):
        if other.dtype != first.dtype or other.ndim != first.ndim:
            raise RuntimeError(
                f"{name}: all inputs must have the same type and number of axes: input 0 is {first.dtype} with "
                f"{first.ndim} axes, input {i + 1} is {other.dtype} with {other.ndim}"
            )


def _check_letter(name: str, axis_name: str) -> None:
    if len(axis_name) != 1:
        raise RuntimeError(f"{name}: `axis_name`: expected one letter, got {axis_name!r}")


def _joined_axis(name: str, axis: int | None, axis_name: str | None, layout: str | None, ndim: int) -> int:
    if axis_name is not None:
        _check_letter(name, axis_name)
        if axis_name not in (layout or ""):
            raise RuntimeError(f"{name}: `axis_name`: there is no axis {axis_name!r} in the layout {layout or ''!r}")
        return (layout or "").index(axis_name)
    axis = axis or 0
    if not -ndim <= axis < ndim:
        raise RuntimeError(f"{name}: `axis`: expected a number from {-ndim} to {ndim - 1} for {ndim} axes, got {axis}")
    return axis % ndim


def _new_axis(axis: int, ndim: int) -> int:
    if not -ndim <= axis <= ndim:
        raise RuntimeError(f"stack: `axis`: expected a number from {-ndim} to {ndim} for {ndim} axes, got {axis}")
    return axis + ndim + 1 if axis < 0 else axis


@cat.plan
def _(*inputs, axis, axis_name):
    place = _joined_axis("cat", axis, axis_name, inputs[0].layout, inputs[0].ndim)
    full = [k for k, operand in enumerate(inputs) if volumes(operand.shapes).any()] or [0]
    first = inputs[full[0]]
    others = np.arange(first.ndim) != place
    for k in full:
        wrong = (inputs[k].shapes != first.shapes)[:, others].any(axis=1)
        if wrong.any():
            i = int(wrong.argmax())
            raise bad_sample(
                i,
                f"the arrays may differ only on axis {place}: input {full[0]} has shape "
                f"{tuple(first.shapes[i].tolist())}, input {k} {tuple(inputs[k].shapes[i].tolist())}",
            )
    extents = np.zeros((first.n, len(inputs)), np.int64)
    for k in full:
        extents[:, k] = inputs[k].shapes[:, place]
    shapes = first.shapes.copy()
    shapes[:, place] = extents.sum(axis=1)
    return _plan(shapes, extents, place)


@stack.plan
def _(*inputs, axis, axis_name):
    first = inputs[0]
    place = _new_axis(axis, first.ndim)
    for k, operand in enumerate(inputs):
        wrong = (operand.shapes != first.shapes).any(axis=1)
        if wrong.any():
            i = int(wrong.argmax())
            raise bad_sample(
                i,
                f"all arrays must have the same shape: input 0 has {tuple(first.shapes[i].tolist())}, "
                f"input {k} {tuple(operand.shapes[i].tolist())}",
            )
    shapes = np.insert(first.shapes, place, len(inputs), axis=1)
    extents = np.ones((first.n, len(inputs)), np.int64)
    return _plan(shapes, extents, place)


def _plan(shapes: np.ndarray, extents: np.ndarray, place: int) -> Plan:
    """All axes before the joined one are rows; `ends` has the end of each input's part in a row of the output."""
    inner = shapes[:, place + 1 :].prod(axis=1)
    return Plan(shapes, {"ends": np.cumsum(extents * inner[:, None], axis=1)})


# A batch: a compiled kernel has a fixed number of arrays, so it gets the addresses of any number of inputs.
@cat.batch
def _join(call, plan, *stores):
    *stores, out = stores
    ends = plan.per_sample["ends"]
    places = np.empty(ends.shape, np.int64)
    for k, store in enumerate(stores):
        places[:, k] = store.pointers()
    table = View("flat", "bits").of(out)  # four compiled kernels serve all types
    each_sample(call, _joined, table, Rows(places, stores), Rows(ends), nbytes=2 * out.nbytes())


@kernel
def _joined(out, places, ends):
    """Joins rows of elements of arrays at these addresses. `ends` has the ends of the parts of a row."""
    if not out.size:
        return
    total = ends[-1]
    rows = out.size // total
    # Short rows, such as channels of pixels: several at a time, so that a line of the output is still in the cache when the
    # next input writes to it.
    narrow = total <= _NARROW * len(ends)
    some = max(1, 8192 // total) if narrow else 1
    for r in range(0, rows, some):
        end = min(r + some, rows)
        start = 0
        for k in range(len(ends)):
            width = ends[k] - start
            source = array_at(places[k], rows * width, out)
            if width and narrow and rows > 1:
                _place(source[r * width : end * width], out[r * total : end * total], start, width, total)
            elif width:
                to, part = out[r * total + start :], source[r * width : end * width]
                copy_bytes(to.ctypes.data, part.ctypes.data, np.uintp(part.nbytes))
            start = ends[k]


@_joined.fallback
def _(out, places, ends):
    start, rows = 0, out.reshape(-1, max(1, ends[-1]))
    for place, end in zip(places.tolist(), ends.tolist(), strict=True):
        rows[:, start:end] = array_at(place, len(rows) * (end - start), out).reshape(len(rows), end - start)
        start = end


@kernel
def _place(source, out, start, width, step):
    """Writes rows of `width` elements from `start` on, each `step` elements after the previous one."""
    rows = source.size // width
    if width == 1:
        for r in range(rows):
            out[start + r * step] = source[r]
    elif width == 3:  # constant widths become straight code
        for r in range(rows):
            at = start + r * step
            out[at], out[at + 1], out[at + 2] = source[3 * r], source[3 * r + 1], source[3 * r + 2]
    elif width == 4:
        for r in range(rows):
            at = start + r * step
            out[at], out[at + 1] = source[4 * r], source[4 * r + 1]
            out[at + 2], out[at + 3] = source[4 * r + 2], source[4 * r + 3]
    else:
        for r in range(rows):
            for c in range(width):
                out[start + r * step + c] = source[r * width + c]


# The same function as `cat`'s: it copies all inputs of all samples in one pass.
stack.batch(_join)


@cat.cuda("cat.cu")
def _launch_join(launch, *operands):
    launch("join", pack=8)


stack.cuda("cat.cu")(_launch_join)
