"""`ndd.transpose`: reorders axes."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ndd._compiled.jit import kernel
from ndd._cpu.element_copies import copied
from ndd._operator import Plan, View, like, operator


@operator
def transpose(
    input, /, *, output_layout: str | None = None, perm: list[int] | None = None, transpose_layout: bool = True
):
    """Reorders the axes.

    Args:
        input: any rank, layout and element type.
        perm: for each output axis the number of the input axis, from 0; default: all axes reversed (`numpy.transpose` and
            `torch.permute` also take negative axes).
        transpose_layout: whether the layout is reordered too; if not, it stays.
        output_layout: the layout of the output, whatever the layout of the input.

    `out[i[perm[0]], i[perm[1]], ...] = in[i[0], i[1], ...]`; the extents move along.

    Raises RuntimeError for a `perm` that is not a permutation of the axes, and for a layout of another length or an empty one.

    >>> import ndd, numpy as np
    >>> ndd.transpose(ndd.tensor(np.zeros((4, 5, 3)), layout="HWC"), perm=[2, 0, 1]).layout
    'CHW'
    >>> ndd.transpose(ndd.demo.photo("cat"), perm=[1, 0, 2]).shape
    (400, 266, 3)
    """
    order = _order(perm, input.ndim)
    if output_layout is not None:
        if not output_layout:
            raise RuntimeError(
                "transpose: `output_layout` is empty; `transpose_layout=False` leaves the layout as it is"
            )
        if len(output_layout) != input.ndim:
            raise RuntimeError(
                f"transpose: `output_layout` {output_layout!r} has {len(output_layout)} letters for {input.ndim} axes"
            )
        return like(input, layout=output_layout)
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


@functools.lru_cache(1024)
def _groups(order: tuple[int, ...]) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """Groups of axes that stay adjacent, in the order of the input, and the order of these groups in the output."""
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
    axes, places = _groups(order) if order else (((),), (0,))  # a scalar counts as an axis of extent 1
    extents = np.stack([shapes[:, list(group)].prod(axis=1) for group in axes], axis=1)
    if len(places) == 1:
        how: dict[str, Any] = {"kernel": copied, "view": "bytes"}
    elif places in ((1, 0), (0, 2, 1)):
        before = np.ones((input.n, 3), np.int64)
        before[:, -len(places) :] = extents
        how = {"kernel": _swapped, "view": {"source": View(before, "bits"), "out": View(before[:, [0, 2, 1]], "bits")}}
    else:
        how = {
            "kernel": _by_numpy,
            "view": {"source": View(extents, "bits"), "out": View(extents[:, list(places)], "bits")},
        }
    return Plan(shapes[:, list(order)], {"extents": extents}, {"places": places}, **how)


def _by_numpy(source, out, places):
    out[...] = source.transpose(places)


@kernel
def _swapped(source, out):
    """Swaps the last two axes."""
    rows, columns = source.shape[1], source.shape[2]
    if not out.size:
        return
    for o in range(source.shape[0]):
        flat, target = source[o].reshape(rows * columns), out[o].reshape(rows * columns)
        if columns <= 4:
            _apart(flat, out[o])
        elif rows <= 4:
            _together(source[o], target)
        else:
            _by_eights(flat, target, rows, columns)


@_swapped.fallback
def _(source, out):
    out[...] = source.swapaxes(1, 2)


@kernel
def _apart(flat, out):
    """Separates up to four interleaved rows. One pass with constant steps becomes vector code."""
    if out.shape[0] == 2:
        a, b = out[0], out[1]
        for x in range(a.size):
            a[x], b[x] = flat[2 * x], flat[2 * x + 1]
    elif out.shape[0] == 3:
        a, b, c = out[0], out[1], out[2]
        for x in range(a.size):
            a[x], b[x], c[x] = flat[3 * x], flat[3 * x + 1], flat[3 * x + 2]
    elif out.shape[0] == 4:
        a, b, c, d = out[0], out[1], out[2], out[3]
        for x in range(a.size):
            a[x], b[x], c[x], d[x] = flat[4 * x], flat[4 * x + 1], flat[4 * x + 2], flat[4 * x + 3]
    else:
        a = out[0]
        for x in range(a.size):
            a[x] = flat[x]


@kernel
def _together(source, out):
    """Interleaves up to four rows."""
    if source.shape[0] == 2:
        a, b = source[0], source[1]
        for x in range(a.size):
            out[2 * x], out[2 * x + 1] = a[x], b[x]
    elif source.shape[0] == 3:
        a, b, c = source[0], source[1], source[2]
        for x in range(a.size):
            out[3 * x], out[3 * x + 1], out[3 * x + 2] = a[x], b[x], c[x]
    elif source.shape[0] == 4:
        a, b, c, d = source[0], source[1], source[2], source[3]
        for x in range(a.size):
            out[4 * x], out[4 * x + 1], out[4 * x + 2], out[4 * x + 3] = a[x], b[x], c[x], d[x]
    else:
        a = source[0]
        for x in range(a.size):
            out[x] = a[x]


@kernel
def _by_eights(source, out, rows, columns):
    """Works on eight rows at a time: it reads from eight cache lines and writes to one."""
    whole = rows // 8 * 8
    for r in range(0, whole, 8):
        for c in range(columns):
            i, o = r * columns + c, c * rows + r
            out[o], out[o + 1] = source[i], source[i + columns]
            out[o + 2], out[o + 3] = source[i + 2 * columns], source[i + 3 * columns]
            out[o + 4], out[o + 5] = source[i + 4 * columns], source[i + 5 * columns]
            out[o + 6], out[o + 7] = source[i + 6 * columns], source[i + 7 * columns]
    for r in range(whole, rows):
        for c in range(columns):
            out[c * rows + r] = source[r * columns + c]


@transpose.cuda("transpose.cu")
def _(launch, input, out, extents, places):
    order = list(places)
    steps = np.ones_like(extents)
    steps[:, :-1] = np.cumprod(extents[:, :0:-1], axis=1)[:, ::-1]
    launch("transpose", per_sample={"size": extents[:, order], "step": steps[:, order]})
