"""`ndd.transpose`: axes in another order."""

from __future__ import annotations

import functools

import numpy as np

from ndd._cpu.jit import kernel
from ndd._operator import Plan, like, operator


@operator
def transpose(
    input, /, *, output_layout: str | None = None, perm: list[int] | None = None, transpose_layout: bool = True
):
    """Puts the axes in another order.

    Args:
        input: any rank, layout and element type.
        perm: for each axis of the output the axis of the input that it is; default: all axes reversed.
        transpose_layout: whether the layout is put in the same order; if not, it stays as it is.
        output_layout: the layout of the output, whatever the input's.

    Raises RuntimeError for a `perm` that is no permutation of the axes, and for a layout of another length.

    >>> import ndd, numpy as np
    >>> ndd.transpose(ndd.tensor(np.zeros((4, 5, 3)), layout="HWC"), perm=[2, 0, 1]).layout
    'CHW'
    """
    order = _order(perm, input.ndim)
    if output_layout is not None:
        if output_layout and len(output_layout) != input.ndim:
            raise RuntimeError(
                f"transpose: `output_layout` {output_layout!r} has {len(output_layout)} letters for {input.ndim} axes"
            )
        return like(input, layout=output_layout or None)
    if input.layout and transpose_layout:
        return like(input, layout="".join(input.layout[a] for a in order))
    return input


def _order(perm, ndim: int) -> tuple[int, ...]:
    if perm is None:
        return tuple(range(ndim))[::-1]
    order = tuple(perm.tolist())
    if sorted(order) != list(range(ndim)):
        raise RuntimeError(f"transpose: `perm`: expected each of the numbers 0 to {ndim - 1} once, got {list(order)}")
    return order


@functools.cache
def _groups(order: tuple[int, ...]) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """Axes that stay next to each other, as they follow in the input, and the order of these groups in the output."""
    runs: list[list[int]] = []
    for axis in order:
        if runs and axis == runs[-1][-1] + 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    followed = sorted(runs)
    return tuple(map(tuple, followed)), tuple(followed.index(r) for r in runs)


@transpose.plan
def _(input, *, output_layout, perm, transpose_layout):
    order = _order(perm, input.ndim)
    shapes = input.shapes
    axes, places = _groups(order)
    extents = np.stack([shapes[:, list(group)].prod(axis=1) for group in axes], axis=1) if axes else None
    out_shapes = shapes[:, list(order)]
    if extents is None:
        extents, places = np.ones((input.n, 1), np.int64), (0,)
    if input.spec.device.device_id is None:
        return Plan(out_shapes, {"extents": extents.tolist()}, {"places": places})
    steps = np.ones_like(extents)
    for k in range(extents.shape[1] - 2, -1, -1):
        steps[:, k] = steps[:, k + 1] * extents[:, k + 1]
    return Plan(out_shapes, {"size": extents[:, list(places)], "step": steps[:, list(places)]})


@transpose.cpu
def _(array, out, extents, places):
    source = array.reshape(extents)
    target = out.reshape([extents[p] for p in places])
    if places == (1, 0):
        _swapped(_bits(source)[None], _bits(target)[None])
    elif places == (0, 2, 1):
        _swapped(_bits(source), _bits(target))
    else:
        target[...] = source.transpose(places)


def _bits(array: np.ndarray) -> np.ndarray:
    """The elements as unsigned integers of their size: four compiled kernels serve all types."""
    return array.view(f"u{array.dtype.itemsize}")


@kernel
def _swapped(source, out):
    """The last two axes swapped."""
    for o in range(source.shape[0]):
        rows, columns = source.shape[1], source.shape[2]
        if columns <= 4:
            flat = source[o].reshape(rows * columns)
            for c in range(columns):
                _gather(flat, c, columns, out[o, c])
        elif rows <= 4:
            flat = out[o].reshape(rows * columns)
            if rows == 3:
                first, second, third = source[o, 0], source[o, 1], source[o, 2]
                for x in range(columns):
                    flat[3 * x], flat[3 * x + 1], flat[3 * x + 2] = first[x], second[x], third[x]
            else:
                for r in range(rows):
                    for x in range(columns):
                        flat[rows * x + r] = source[o, r, x]
        else:
            for r0 in range(0, rows, 32):  # in blocks that the cache holds
                for c0 in range(0, columns, 32):
                    for c in range(c0, min(c0 + 32, columns)):
                        for r in range(r0, min(r0 + 32, rows)):
                            out[o, c, r] = source[o, r, c]


@kernel
def _gather(flat, start, step, out):
    row = flat[start:]
    if step == 3:  # constant steps become vector code
        for x in range(out.size):
            out[x] = row[3 * x]
    elif step == 4:
        for x in range(out.size):
            out[x] = row[4 * x]
    else:
        for x in range(out.size):
            out[x] = row[step * x]


transpose.cuda("transpose.cu")
