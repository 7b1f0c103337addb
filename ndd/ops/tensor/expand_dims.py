"""`ndd.expand_dims` and `ndd.squeeze`: insert and remove axes of extent 1."""

from __future__ import annotations

from ndd._operator import bad_sample, like, operator
from ndd._tensor import Store
from ndd.ops.tensor.reshape import reshaped


@operator
def expand_dims(data, /, *, axes: list[int], new_axis_names: str | None = None):
    """Inserts axes of extent 1. Nothing is copied.

    Args:
        data: any rank, element type and layout.
        axes: the places of the new axes in the output.
        new_axis_names: their letters, in the order of `axes`; without them the result has no layout.

    With `axes=2` on HW, for instance: `out[y, x, 0] = in[y, x]`. (`numpy.expand_dims` takes negative axes too.)

    Raises RuntimeError for negative, repeated or too large axes, and for names if the input has no layout.

    >>> import ndd
    >>> ndd.expand_dims(ndd.tensor([[1, 2]], layout="HW"), axes=2, new_axis_names="C").layout
    'HWC'
    """
    places = axes.tolist()  # type: ignore[attr-defined]
    ndim = data.ndim + len(places)
    if any(a < 0 or a >= ndim for a in places):
        raise RuntimeError(f"expand_dims: `axes`: expected numbers from 0 to {ndim - 1}, got {places}")
    if len(set(places)) != len(places):
        raise RuntimeError(f"expand_dims: `axes`: an axis occurs more than once in {places}")
    if not places:
        return data
    if not new_axis_names:
        return like(data, ndim=ndim, layout=None)
    if len(new_axis_names) != len(places):
        raise RuntimeError(f"expand_dims: `new_axis_names` {new_axis_names!r} does not name {len(places)} axes")
    if data.ndim and not data.layout:
        raise RuntimeError("expand_dims: `new_axis_names` needs an input with a layout")
    rest = iter(data.layout or "")
    names = dict(zip(places, new_axis_names, strict=True))
    return like(data, ndim=ndim, layout="".join(names.get(a) or next(rest) for a in range(ndim)))


@expand_dims.views
def _(call, data: Store, *, axes, new_axis_names) -> Store:
    places = set(axes.tolist())

    def expanded(shape: tuple[int, ...]) -> tuple[int, ...]:
        rest = iter(shape)
        return tuple([1 if a in places else next(rest) for a in range(len(shape) + len(places))])

    alike = data.uniform()
    shapes = [expanded(data.shapes[0])] * data.n if alike else [expanded(s) for s in data.shapes]
    return reshaped(data, shapes, call.outs[0].layout)


@operator
def squeeze(data, /, *, axes: list[int] | None = None, axis_names: str | None = None):
    """Removes axes of extent 1, and their letters from the layout. Nothing is copied.

    Without C, an HWC image is `out[y, x] = in[y, x, 0]`. The axes must be named; NumPy and torch remove all of them by default.

    Args:
        data: any rank, element type and layout.
        axes: the axes, by number; negative ones count from the back (DALI 2.4.0 ignores these, and axes that do not exist,
            which are an error here).
        axis_names: the axes, by letter. Give one of the two.

    Raises RuntimeError for an axis whose extent is not 1.

    >>> import ndd
    >>> ndd.squeeze(ndd.tensor([[[1], [2]]], layout="HWC"), axis_names="C").layout
    'HW'
    """
    places = _squeezed(data.layout, data.ndim, axes, axis_names)
    layout = "".join(c for a, c in enumerate(data.layout or "") if a not in places) or None
    return like(data, ndim=data.ndim - len(places), layout=layout) if places else data


def _squeezed(layout: str | None, ndim: int, axes, axis_names: str | None) -> set[int]:
    if (axes is None) == (axis_names is None):
        raise RuntimeError("squeeze: give either `axes` or `axis_names`")
    if axis_names is not None:
        missing = [c for c in axis_names if c not in (layout or "")]
        if missing:
            raise RuntimeError(f"squeeze: `axis_names`: there is no axis {missing[0]!r} in the layout {layout or ''!r}")
        dropped = [(layout or "").index(c) for c in axis_names]
    else:
        dropped = [int(a) + ndim * (a < 0) for a in axes]
        if any(not 0 <= a < ndim for a in dropped):
            raise RuntimeError(f"squeeze: `axes`: expected numbers from {-ndim} to {ndim - 1}, got {axes.tolist()}")
    if len(set(dropped)) != len(dropped):
        raise RuntimeError(f"squeeze: an axis is named more than once: {dropped}")
    return set(dropped)


@squeeze.views
def _(call, data: Store, *, axes, axis_names) -> Store:
    ndim = len(data.shapes[0])
    places = _squeezed(data.layout, ndim, axes, axis_names)
    shapes = []
    for i, shape in enumerate(data.shapes[:1] if data.uniform() else data.shapes):
        wrong = [a for a in places if shape[a] != 1]
        if wrong:
            raise bad_sample(i, f"expected the extent 1 of axis {wrong[0]}, which is removed, got shape {shape}")
        shapes.append(tuple([e for a, e in enumerate(shape) if a not in places]))
    return reshaped(data, shapes * data.n if data.uniform() else shapes, call.outs[0].layout)
