"""Basic indexing of samples: from the user's index to views of arrays."""

# This package may use attributes that are private to users, such as `Handle._value`.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

from ndd._tensor.extent_inference import infer_extents
from ndd._tensor.handle import Handle
from ndd._tensor.store import Store, empty_store, extents_of
from ndd._tensor.type_guards import is_array, is_tuple

Index = Any  # an int, a slice of ints, or either with handles in it


def check_ranges(ranges: Any, value: Any) -> tuple[Index, ...] | None:
    """The indices as a tuple without Ellipsis, an entry for each leading axis; None if everything is selected.

    Mistakes that can be seen before the value exists raise TypeError and ValueError. Too many indices of a Batch raise
    RuntimeError, as in DALI, whose Batches do not count them.
    """
    indices: list[Any] = list(ranges) if is_tuple(ranges) else [ranges]
    is_batch = hasattr(value, "batch_size")
    if is_batch:  # DALI counts the indices of a Tensor before it looks at them
        indices = [_checked(r) for r in indices]
    if all(r is Ellipsis or _is_full(r) for r in indices):
        return None  # however many there are, also of a scalar
    dots = [i for i, r in enumerate(indices) if r is Ellipsis]
    if len(dots) > 1:
        raise ValueError("Only one Ellipsis is allowed.")
    ndim = value.ndim
    while is_batch and len(indices) - len(dots) > ndim and _is_full(indices[-1]):
        indices.pop()  # as in DALI, which counts them for Tensors only
    if len(indices) - len(dots) > ndim:
        raise (RuntimeError if is_batch else ValueError)(
            f"Number of ranges ({len(indices) - len(dots)}) is greater than the number of dimensions of the tensor "
            f"({ndim})"
        )
    if not is_batch:
        indices = [_checked(r) for r in indices]
    if dots:
        fill = [slice(None)] * (ndim - len(indices) + 1)
        indices[dots[0] : dots[0] + 1] = fill
    return tuple(indices)


def _is_slice(r: Any) -> TypeGuard[slice[Any, Any, Any]]:
    return isinstance(r, slice)


def _is_full(r: Any) -> bool:
    return _is_slice(r) and r.start is None and r.stop is None and r.step is None


def _checked(r: Any) -> Any:
    if r is Ellipsis:
        return r
    if _is_slice(r):
        return slice(*(None if b is None else _bound(b) for b in (r.start, r.stop, r.step)))
    return _bound(r)


def _bound(value: Any) -> Any:
    if isinstance(value, Handle):
        if value.ndim:
            raise RuntimeError(f"Array indices must be scalar (0D). Got {value.ndim}D tensor.")
        return value
    array = np.asarray(value) if not isinstance(value, int) else None
    if array is None:
        return int(value)
    if array.dtype.kind not in "iubf":
        advice = ". ndd.expand_dims makes a new axis" if value is None else ""
        raise ValueError(f"An index must be an integer, got {value!r}{advice}")
    if array.ndim:
        raise RuntimeError(f"Array indices must be scalar (0D). Got {array.ndim}D tensor.")
    return int(array)


def index_handles(indices: tuple[Index, ...]) -> list[Handle]:
    """The handles among the bounds."""
    flat = [b for r in indices for b in ((r.start, r.stop, r.step) if _is_slice(r) else (r,))]
    return [b for b in flat if isinstance(b, Handle)]


def result_layout(layout: str | None, indices: tuple[Index, ...]) -> str | None:
    """The layout without the letters of the axes that an integer drops."""
    if not layout:
        return None
    kept = [c for i, c in enumerate(layout) if i >= len(indices) or _is_slice(indices[i])]
    return "".join(kept) or None


def subscript(store: Store, indices: tuple[Index, ...]) -> Store:
    """The indexed samples: views. Bounds that are handles hold one integer for all or one for each sample."""
    layout = result_layout(store.layout, indices)
    if not store.n and store.whole is not None:
        return _without_samples(store, indices, layout)
    if not index_handles(indices) and store.dense() is not None and store.shapes:
        _check_bounds(indices, store.shapes[0], 0)
        key = (slice(None), *_clean(indices, store.shapes[0]))
        whole = _view(store.whole, key)
        shape = tuple(whole.shape[1:])
        result = Store(store.dtype, layout, store.device, [shape] * store.n, whole=whole)
    else:
        rows = _per_sample(indices, store.n)
        parts: list[Any] = []
        for i, (array, key) in enumerate(zip(store.arrays(), rows, strict=True)):
            _check_bounds(key, array.shape, i)
            parts.append(_view(array, _clean(key, array.shape)))
        result = Store(store.dtype, layout, store.device, [tuple(p.shape) for p in parts], parts=parts)
    result.batched, result.source_info = store.batched, store.source_info
    result.stream, result.ready = store.stream, store.ready
    return result


def _without_samples(store: Store, indices: tuple[Index, ...], layout: str | None) -> Store:
    """The result of indexing a batch without samples."""
    plain = () if index_handles(indices) else indices

    def shapes_of(shapes: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        return [np.broadcast_to(np.uint8(0), shapes[0])[_clean(plain, shapes[0])].shape]

    known = infer_extents(shapes_of, [(extents_of(store), store.layout)])
    dropped = sum(not isinstance(index, slice) for index in indices)
    ndim = store.ndim - dropped
    fits = known is not None and len(known[0]) == ndim
    return empty_store(store.dtype, layout, store.device, known[0] if fits else (0,) * ndim)  # type: ignore[index]


def _per_sample(indices: tuple[Index, ...], n: int) -> list[tuple[Index, ...]]:
    """The indices with numbers in place of handles, for each sample."""

    def numbers(bound: Any) -> list[Any]:
        if not isinstance(bound, Handle):
            return [bound] * n
        values = [int(a + np.copysign(0.5, a) if a.dtype.kind == "f" else a) for a in bound.cpu()._value().arrays()]
        if len(values) not in (1, n):  # a Batch as the index of a Tensor; DALI 2.4.0 gives a Tensor of two shapes
            raise ValueError(f"Inconsistent batch size: {len(values)} indices for {n} sample(s). Use Batch.slice[...]")
        return values * n if len(values) == 1 and n != 1 else values

    columns: list[list[Any]] = []
    for r in indices:
        if _is_slice(r):
            columns.append([slice(*b) for b in zip(numbers(r.start), numbers(r.stop), numbers(r.step), strict=True)])
        else:
            columns.append(numbers(r))
    return list(zip(*columns, strict=True))


def _check_bounds(indices: tuple[Index, ...], shape: tuple[int, ...], sample: int) -> None:
    for axis, r in enumerate(indices):
        if _is_slice(r):
            if r.step == 0:
                raise RuntimeError(
                    f"Step cannot be zero. Detected step == 0 at axis {axis} while processing sample #{sample}"
                )
        elif not -shape[axis] <= r < shape[axis]:
            extents = " x ".join(map(str, shape))
            raise RuntimeError(
                f"Index {r} is out of range for axis {axis} of length {shape[axis]}\n"
                f"Detected while processing sample #{sample} of shape ({extents})"
            )


def _clean(indices: tuple[Index, ...], shape: tuple[int, ...]) -> tuple[Index, ...]:
    return (*indices, Ellipsis) if len(indices) < len(shape) else (*indices, ...)


def _view(array: Any, key: tuple[Any, ...]) -> Any:
    if is_array(array):
        return array[key]
    flips: list[int] = []
    plain: list[Any] = []
    for axis, r in enumerate(key):  # torch takes no negative steps: flip first
        if _is_slice(r) and r.step is not None and r.step < 0:
            extent = array.shape[axis]
            start, stop, step = r.indices(extent)
            flips.append(axis)
            r = slice(extent - 1 - start, extent - 1 - stop, -step)
        plain.append(r)
    return (array.flip(flips) if flips else array)[tuple(plain)]
