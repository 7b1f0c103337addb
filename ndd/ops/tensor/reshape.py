"""`ndd.reshape` and `ndd.reinterpret`: the same bytes with another shape, layout or element type."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._operator import PerSample, bad_sample, like, operator
from ndd._tensor import DType, Spec, Store, bind_operations
from ndd._tensor.dtype import torch_dtype


@operator(reads={"shape_input": "cpu"})
def reshape(
    data,
    shape_input=None,
    /,
    *,
    layout: str | None = None,
    rel_shape: PerSample[list[float]] = None,
    shape: PerSample[list[int]] = None,
    src_dims: PerSample[list[int]] = None,
):
    """Returns the same elements in the same order, with another shape or layout. Nothing is copied.

    Args:
        data: any rank, element type and layout.
        shape_input: the shapes as a value: integers, one list for each sample.
        shape: the shape; one extent may be negative: it follows from the others.
        rel_shape: the extents as multiples of those of the input, rounded; a negative one follows from the others.
        src_dims: the axes of the input whose extents the output takes, -1 for a new axis of 1; with `rel_shape`,
            the axes that it multiplies.
        layout: the new layout, "" for none. By default it stays if the number of axes does.

    Give at most one of `shape_input`, `shape` and `rel_shape`. `src_dims` works as in DALI's pipelines. (DALI 2.4.0's dynamic
    mode ignores it: by itself it is an error, and beside a layout or `rel_shape` the axes do not change.)

    `out.flat[i] = in.flat[i]`, the last axis running fastest, as in NumPy and torch.

    Raises RuntimeError for a shape of another number of elements, or if no argument is given.

    >>> import ndd
    >>> ndd.reshape(ndd.tensor([[1, 2, 3], [4, 5, 6]]), shape=[3, -1]).torch()
    tensor([[1, 2],
            [3, 4],
            [5, 6]], dtype=torch.int32)
    """
    if layout is None and all(a is None for a in (shape_input, rel_shape, shape, src_dims)):
        raise RuntimeError("reshape: neither a new shape nor a layout is given")
    return _declared("reshape", data, data.dtype, layout, shape_input, rel_shape, shape, src_dims)


@operator(reads={"shape_input": "cpu"})
def reinterpret(
    data,
    shape_input=None,
    /,
    *,
    dtype: DType | None = None,
    layout: str | None = None,
    rel_shape: PerSample[list[float]] = None,
    shape: PerSample[list[int]] = None,
    src_dims: PerSample[list[int]] = None,
):
    """Returns the same bytes as elements of another type, with another shape or layout. Nothing is copied.

    Args:
        dtype: the element type; default: that of the input. Without a new shape the last extent changes with it.
        data, shape_input, layout, rel_shape, shape, src_dims: as in `reshape`; extents count new elements.

    `out.bytes[i] = in.bytes[i]`, as `view(dtype)` of NumPy and torch, followed by `reshape`.

    Raises RuntimeError if the bytes do not fill the new shape exactly, or if no argument is given.

    >>> import ndd
    >>> ndd.reinterpret(ndd.tensor([1.0]), dtype=ndd.uint32).torch()
    tensor([1065353216], dtype=torch.uint32)
    """
    if dtype is None and layout is None and all(a is None for a in (shape_input, rel_shape, shape, src_dims)):
        raise RuntimeError("reinterpret: neither a new shape nor a layout nor a type is given")
    return _declared("reinterpret", data, dtype or data.dtype, layout, shape_input, rel_shape, shape, src_dims)


def _declared(
    name: str, data: Any, dtype: DType, layout: str | None, shape_input: Any, rel_shape: Any, shape: Any, src_dims: Any
) -> Any:
    """The description of the output, with the rank if the arguments determine it."""
    if sum(a is not None for a in (shape_input, rel_shape, shape)) > 1:
        raise RuntimeError(f"{name}: a second input, `shape` and `rel_shape` exclude each other: give one")
    ndim: int | None = data.ndim
    for argument in (shape_input, rel_shape, shape, src_dims):
        if argument is not None:
            ndim = len(argument) if isinstance(argument, np.ndarray) and argument.ndim == 1 else None
            break
    if ndim is None:
        return Spec(dtype, len(layout) if layout else None, layout or None, data.device)
    return like(data, dtype=dtype, ndim=ndim, layout=_new_layout(name, data, ndim, layout))


def _new_layout(name: str, data: Any, ndim: int, layout: str | None) -> str | None:
    if layout is None:
        return data.layout if ndim == data.ndim else None
    if layout and len(layout) != ndim:
        raise RuntimeError(f"{name}: `layout` {layout!r} has {len(layout)} letters, the shape {ndim} axes")
    return layout or None


@reshape.views
def _(call, data: Store, shape_input: Store | None = None, *, layout, rel_shape, shape, src_dims) -> Store:
    return _viewed(data, shape_input, data.dtype, layout, rel_shape, shape, src_dims)


@reinterpret.views
def _(call, data: Store, shape_input: Store | None = None, *, dtype, layout, rel_shape, shape, src_dims) -> Store:
    return _viewed(data, shape_input, dtype or data.dtype, layout, rel_shape, shape, src_dims)


def _viewed(
    data: Store, shape_input: Any, dtype: DType, layout: Any, rel_shape: Any, shape: Any, src_dims: Any
) -> Store:
    old = data.shape_array
    factor = dtype.bytes / data.dtype.bytes
    alike = data.uniform() and shape_input is None and not any([v and v.varies for v in (shape, rel_shape, src_dims)])
    if alike:  # computed once for all samples
        old = old[:1]
    extents, factors, axes = (None if v is None else v.rows()[: len(old)] for v in (shape, rel_shape, src_dims))
    if axes is not None and not axes.shape[1] and (extents is not None or factors is not None):
        axes = None  # an empty list is treated as None
    if shape_input is not None:
        viewed = _from_input(shape_input)
        extents = np.broadcast_to(viewed, (len(old), viewed.shape[1]))
    if extents is not None:
        wanted = extents.copy()
    elif factors is not None:
        wanted = _relative(factors, axes, old)
    elif axes is not None:
        wanted = _last_scaled(_taken(axes, old), data.dtype.bytes, dtype.bytes)
    else:
        wanted = _last_scaled(old.copy(), data.dtype.bytes, dtype.bytes)
    _fill_in(wanted, old, factor)
    ndim = wanted.shape[1]
    if layout and len(layout) != ndim:
        raise RuntimeError(f"`layout` {layout!r} has {len(layout)} letters, the shape {ndim} axes")
    kept = data.layout if ndim == old.shape[1] else None
    shapes = [tuple(s) for s in wanted.tolist()]
    if alike:
        shapes *= data.n
    return reshaped(data, shapes, kept if layout is None else layout or None, dtype)


def _from_input(store: Store) -> np.ndarray:
    if store.dtype.name[0] not in "ui":
        raise RuntimeError(f"the shapes must be integers, got {store.dtype}")
    rows = store.arrays()
    if len(rows) == 1 and rows[0].ndim == 2:
        rows = list(rows[0])
    if any(r.ndim != 1 for r in rows):
        raise RuntimeError("the shapes must be lists of integers, one for each sample")
    if len({len(r) for r in rows}) > 1:
        raise RuntimeError("the shapes of all samples must have the same number of axes")
    return np.array(rows).astype(np.int64)


def _taken(src: np.ndarray, old: np.ndarray) -> np.ndarray:
    """The extents of the axes `src`; 1 for axis -1."""
    ndim = old.shape[1]
    wrong = (src < -1) | (src >= ndim)
    if wrong.any():
        raise RuntimeError(f"`src_dims`: expected axes from 0 to {ndim - 1}, or -1 for a new axis, got {src[wrong][0]}")
    padded = np.concatenate([old, np.ones((len(old), 1), old.dtype)], axis=1)
    return np.take_along_axis(padded, np.where(src < 0, ndim, src), axis=1)


def _relative(rel: np.ndarray, src: np.ndarray | None, old: np.ndarray) -> np.ndarray:
    count = rel.shape[1]
    if src is None:
        if (rel[:, old.shape[1] :] >= 0).any():
            raise RuntimeError(f"`rel_shape` has {count} elements for {old.shape[1]} axes; `src_dims` can add axes")
        base = np.pad(old, ((0, 0), (0, max(count - old.shape[1], 0))))[:, :count]  # further extents have no base
    else:
        if src.shape[1] != count:
            raise RuntimeError(f"`src_dims` and `rel_shape` differ in length: {src.shape[1]} and {count}")
        base = _taken(src, old)
    return np.where(rel < 0, -1, np.floor(rel.astype(np.float64) * base + 0.5)).astype(np.int64)


def _last_scaled(shapes: np.ndarray, old_bytes: int, new_bytes: int) -> np.ndarray:
    """The shapes with the last extent in elements of `new_bytes`."""
    if old_bytes == new_bytes:
        return shapes
    last = shapes[:, -1] * old_bytes if shapes.shape[1] else np.array([1])
    if not shapes.shape[1] or (last % new_bytes).any():
        raise RuntimeError(
            f"the last axis of shape {tuple(shapes[0].tolist())} with elements of {old_bytes} bytes does not hold a "
            f"whole number of elements of {new_bytes} bytes"
        )
    shapes[:, -1] = last // new_bytes
    return shapes


def _fill_in(wanted: np.ndarray, old: np.ndarray, factor: float) -> None:
    """Replaces negative extents in place by the remaining elements. RuntimeError if the elements do not fit."""
    open_ = wanted < 0
    if (open_.sum(axis=1) > 1).any():
        raise bad_sample(int((open_.sum(axis=1) > 1).argmax()), "only one extent may be negative")
    volume = old.prod(axis=1) / factor
    known = np.where(open_, 1, wanted).prod(axis=1)
    if (open_.any(axis=1) & (known == 0)).any():
        raise bad_sample(int(known.argmin()), "a negative extent is undefined beside an extent of 0")
    left = (volume // np.maximum(known, 1)).astype(np.int64)
    np.copyto(wanted, left[:, None], where=open_)
    wrong = wanted.prod(axis=1) != volume
    if wrong.any():
        i = int(wrong.argmax())
        raise bad_sample(
            i, f"shape {tuple(old[i].tolist())} does not fill shape {tuple(wanted[i].tolist())}: they differ in size"
        )


def reshaped(data: Store, shapes: list[tuple[int, ...]], layout: str | None, dtype: DType | None = None) -> Store:
    """The memory of a store with other shapes (and another element type); copied only if it is strided."""
    kind = dtype or data.dtype
    parts = None
    flat = data.flat
    whole = data.dense() if data.batched else None
    if flat is None and whole is not None:
        if not (whole.flags.c_contiguous if data.on_cpu else whole.is_contiguous()):
            whole = np.ascontiguousarray(whole) if data.on_cpu else whole.contiguous()
        flat = whole.reshape(-1)
    if flat is None:
        arrays = data.contiguous_arrays()
        if kind is not data.dtype:
            own = kind.numpy if data.on_cpu else torch_dtype(kind)
            arrays = [
                (a if a.ndim == len(s) > 0 and a.shape[:-1] == s[:-1] else a.reshape(-1)).view(own)
                for a, s in zip(arrays, shapes, strict=True)
            ]
        parts = [a.reshape(s) for a, s in zip(arrays, shapes, strict=True)]
    forms: dict[str, Any] = {"parts": parts}
    if flat is not None:
        flat = _typed(flat, kind, data)
        uniform = all([s == shapes[0] for s in shapes])
        forms = {"whole": flat.reshape((len(shapes), *shapes[0]))} if uniform else {"flat": flat}
    result = Store(kind, layout, data.device, shapes, source_info=data.source_info, **forms)
    result.stream, result.ready = data.stream, data.ready
    return result


def _typed(flat: Any, kind: DType, data: Store) -> Any:
    if kind is data.dtype:
        return flat
    return flat.view(kind.numpy if data.on_cpu else torch_dtype(kind))  # type: ignore[attr-defined]


bind_operations(reshape=reshape)
