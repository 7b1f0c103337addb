"""`ndd.full`, `ones`, `zeros` and their `_like` forms: arrays of one value."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._operator import PerSample, bad_sample, like, operator, output
from ndd._tensor import Device, DType, Store
from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import int32
from ndd._tensor.memory import host_empty


@operator(host_inputs=(0,))
def full(fill_value, /, *, layout: str | None = None, shape: PerSample[list[int]] = None):
    """Arrays filled with a value.

    Args:
        fill_value: a number, or an array that broadcasts to `shape`; its element type is that of the result.
        shape: the shape; default: that of `fill_value`.
        layout: a letter for each axis.

    Raises RuntimeError for negative extents, for a value that does not broadcast and a layout of another length.

    >>> import ndd
    >>> ndd.full([1, 2], shape=[2, 2]).torch()
    tensor([[1, 2],
            [1, 2]], dtype=torch.int32)
    """
    return _spec("full", fill_value.dtype, shape, layout, fill_value.ndim)


@operator(host_inputs=(1,))
def full_like(data_like, fill_value, /):
    """Arrays of the shape, element type and layout of `data_like`, filled with `fill_value` (converted as by `cast`).

    >>> import ndd
    >>> ndd.full_like(ndd.tensor([1, 2]), 5.5).torch()
    tensor([6, 6], dtype=torch.int32)
    """
    return like(data_like)


@operator
def ones(*, dtype: DType | None = None, layout: str | None = None, shape: PerSample[list[int]] = None):
    """Arrays of ones.

    Args:
        shape: the shape; default: a scalar.
        dtype: the element type; default i32.
        layout: a letter for each axis.

    >>> import ndd
    >>> ndd.ones(shape=[2]).torch()
    tensor([1, 1], dtype=torch.int32)
    """
    return _spec("ones", dtype or int32, shape, layout, 0)


@operator
def ones_like(data_like, /, *, dtype: DType | None = None):
    """Ones of the shape and layout of `data_like`, of its element type or `dtype`.

    >>> import ndd
    >>> ndd.ones_like(ndd.tensor([[5.0, 6.0]])).torch()
    tensor([[1., 1.]])
    """
    return like(data_like, dtype=dtype)


@operator
def zeros(*, dtype: DType | None = None, layout: str | None = None, shape: PerSample[list[int]] = None):
    """Arrays of zeros.

    Args:
        shape: the shape; default: a scalar.
        dtype: the element type; default i32.
        layout: a letter for each axis.

    >>> import ndd
    >>> ndd.zeros(shape=[2], batch_size=3).shape
    [(2,), (2,), (2,)]
    """
    return _spec("zeros", dtype or int32, shape, layout, 0)


@operator
def zeros_like(data_like, /, *, dtype: DType | None = None):
    """Zeros of the shape and layout of `data_like`, of its element type or `dtype`.

    >>> import ndd
    >>> ndd.zeros_like(ndd.tensor([[5, 6]])).torch()
    tensor([[0, 0]], dtype=torch.int32)
    """
    return like(data_like, dtype=dtype)


def _spec(name: str, dtype: DType, shape: Any, layout: str | None, ndim: int) -> Any:
    known: int | None = ndim
    if shape is not None:
        known = len(shape) if isinstance(shape, np.ndarray) and shape.ndim == 1 else None
    if layout and known is not None and len(layout) != known:
        raise RuntimeError(f"{name}: `layout` {layout!r} has {len(layout)} letters, the shape {known} axes")
    return output(dtype, known, layout or None)


@full.views
def _(job, value: Store, *, layout, shape) -> Store:
    shapes = list(value.shapes) if shape is None else _shapes(shape, job.n)
    return _filled(job, shapes, value.dtype, layout, value)


@full_like.views
def _(job, data_like: Store, value: Store) -> Store:
    return _filled(job, data_like.shapes, data_like.dtype, data_like.layout, value)


@ones.views
def _(job, *, dtype, layout, shape) -> Store:
    return _filled(job, _shapes(shape, job.n), dtype or int32, layout, 1)


@zeros.views
def _(job, *, dtype, layout, shape) -> Store:
    return _filled(job, _shapes(shape, job.n), dtype or int32, layout, 0)


@ones_like.views
def _(job, data_like: Store, *, dtype) -> Store:
    return _filled(job, data_like.shapes, dtype or data_like.dtype, data_like.layout, 1)


@zeros_like.views
def _(job, data_like: Store, *, dtype) -> Store:
    return _filled(job, data_like.shapes, dtype or data_like.dtype, data_like.layout, 0)


def _shapes(shape: Any, n: int) -> list[tuple[int, ...]]:
    if shape is None:
        return [()] * n
    rows = shape if isinstance(shape, list) else np.broadcast_to(shape, (n, np.shape(shape)[-1]))
    found = [tuple(int(e) for e in row) for row in rows]
    for i, own in enumerate(found):
        if any(e < 0 for e in own):
            raise bad_sample(i, f"`shape`: extents must not be negative, got {own}")
    return found


def _filled(job: Any, shapes: list[tuple[int, ...]], dtype: DType, layout: str | None, value: Any) -> Store:
    """The arrays; `value` is a number or the store of values that broadcast."""
    if layout and shapes and len(layout) != len(shapes[0]):
        raise RuntimeError(f"`layout` {layout!r} has {len(layout)} letters, the shape {len(shapes[0])} axes")
    kind = dtype.numpy  # type: ignore[attr-defined]
    uniform = all(s == shapes[0] for s in shapes)
    flat = host_empty(sum(int(np.prod(s, dtype=np.int64)) for s in shapes), kind)
    forms: dict[str, Any] = {"whole": flat.reshape((len(shapes), *shapes[0]))} if uniform else {"flat": flat}
    store = Store(dtype, layout or None, Device.CPU, list(shapes), **forms)
    if isinstance(value, Store):
        for i, (target, source) in enumerate(zip(store.arrays(), value.arrays(), strict=True)):
            _broadcast(target, convert_array(np.asarray(source), value.dtype.name, dtype.name), i)
    else:
        flat[...] = convert_array(np.array(value, np.int32), "i32", dtype.name)
    if job.device.device_id is None:
        return store
    from ndd._cuda import transfer

    return transfer.to_gpu(store, job.device)


def _broadcast(target: np.ndarray, source: np.ndarray, i: int) -> None:
    while source.ndim > target.ndim and source.shape[0] == 1:
        source = source[0]
    try:
        target[...] = source
    except ValueError:
        raise bad_sample(i, f"a value of shape {source.shape} does not broadcast to shape {target.shape}") from None
