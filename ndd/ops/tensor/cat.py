"""`ndd.cat` and `ndd.stack`: arrays joined along an axis, or along a new one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._operator import Plan, bad_sample, like, operator

_CHUNK = 8  # elements that a GPU thread makes


@operator
def cat(input_0, /, *inputs, axis: int | None = None, axis_name: str | None = None):
    """Joins arrays along an axis that they have.

    Args:
        input_0, inputs: of one element type and number of axes; the extents agree on all axes but the joined one.
        axis: the axis, by number (negative ones count from the back); default 0.
        axis_name: the axis, by its letter in the layout of the first input. Give one of the two.

    The layout is that of the first input.

    Raises RuntimeError for inputs that do not fit.

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

    Raises RuntimeError for inputs that do not fit, and for a name where the first input has no layout.

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
    if not -max(ndim, 1) <= axis <= ndim:
        raise RuntimeError(f"stack: `axis`: expected a number from {-ndim} to {ndim} for {ndim} axes, got {axis}")
    return axis + ndim + 1 if axis < 0 else axis


@cat.plan
def _(*inputs, axis, axis_name):
    first = inputs[0]
    place = _joined_axis("cat", axis, axis_name, first.layout, first.ndim)
    others = np.arange(first.ndim) != place
    for k, operand in enumerate(inputs):
        wrong = (operand.shapes != first.shapes)[:, others].any(axis=1)
        if wrong.any():
            i = int(wrong.argmax())
            raise bad_sample(
                i,
                f"the arrays may differ only on axis {place}: input 0 has shape {tuple(first.shapes[i].tolist())}, "
                f"input {k} {tuple(operand.shapes[i].tolist())}",
            )
    extents = np.stack([operand.shapes[:, place] for operand in inputs], axis=1)
    shapes = first.shapes.copy()
    shapes[:, place] = extents.sum(axis=1)
    return _plan(shapes, extents, shapes[:, place + 1 :].prod(axis=1))


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
    return _plan(shapes, extents, shapes[:, place + 1 :].prod(axis=1))


def _plan(shapes: np.ndarray, extents: np.ndarray, inner: np.ndarray) -> Plan:
    """All axes before the joined one are rows; `ends` says where in a row of the output each input's part ends."""
    total = shapes.prod(axis=1)
    ends = np.cumsum(extents * inner[:, None], axis=1)
    return Plan(shapes, per_sample={"ends": ends, "total": total, "chunks": -(-total // _CHUNK)})


@cat.cpu
def _join(arrays, out, ends):
    if not out.size:
        return
    rows = out.reshape(-1, int(ends[-1]))
    start = 0
    for array, end in zip(arrays, ends.tolist(), strict=True):
        rows[:, start:end] = array.reshape(len(rows), end - start)
        start = end


stack.cpu(_join)


@cat.cuda("cat.cu")
def _launch_join(launch, *operands, chunks):
    launch("join", chunks)


stack.cuda("cat.cu")(_launch_join)
