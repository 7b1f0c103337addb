"""A few large pieces of a batch in place of many samples, on the CPU: a call costs more than a small sample.

Elementwise operators: where samples lie behind each other, one call of the kernel does them all, and one large sample
is divided among the threads. Operators with a kernel for whole batches (`cpu_batch`): samples of one shape, as many in
one piece as a thread gets.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ndd._cpu.together import copy_together
from ndd._tensor import Store
from ndd._tensor.memory import host_empty
from ndd._tensor.store import is_contiguous

if TYPE_CHECKING:
    from ndd._operator.operator import Operator
    from ndd._operator.plan import Plan

_ELEMENTS = 1 << 15  # of a piece, at least
_TOGETHER = 1 << 19  # bytes of samples that lie apart that a thread copies together at once: they stay in its cache
_BYTES = 1 << 17  # of a piece of a batch, at least
_COPIED = 1 << 14  # bytes of a sample, up to which it is copied at once, be it strided or not


class Apart:
    """The samples of a store that lie apart in memory: the thread that works on some of them copies them together, in one
    compiled call. A call of the kernel for each of them takes longer, for threads that wait for the interpreter.

    Args:
        store: holds the memory; each sample is C-contiguous.
        shape: of all samples; None: they are taken as one run of elements, whatever their shapes.
    """

    __slots__ = ("_chosen", "_places", "_shape", "_sizes", "_store")

    def __init__(self, store: Store, shape: tuple[int, ...] | None, chosen: slice = slice(None)):
        self._store, self._shape, self._chosen = store, shape, chosen
        self._places = store.pointers()[chosen]
        self._sizes = store.volumes.sizes[chosen] * store.dtype.numpy.itemsize

    @property
    def nbytes(self) -> int:
        """Of all of them."""
        return int(self._sizes.sum())

    def __getitem__(self, chosen: slice) -> Apart:
        return Apart(self._store, self._shape, chosen)

    def together(self) -> np.ndarray:
        """As one array, `[N, ...]` or `[elements]`."""
        if len(self._places) == 1:
            alone = self._store.arrays()[self._chosen][0]
            return alone.reshape(-1) if self._shape is None else alone[None]
        found = host_empty(self.nbytes, np.uint8)
        copy_together(self._places, self._sizes, found)
        shape = (-1,) if self._shape is None else (len(self._places), *self._shape)
        return found.view(self._store.dtype.numpy).reshape(shape)


def together(row: tuple[Any, ...]) -> list[Any]:
    """A row of arguments, ready for the kernel."""
    return [a.together() if a.__class__ is Apart else tuple(together(a)) if a.__class__ is tuple else a for a in row]


def pieces(stores: list[Store], out: Store, context: Any) -> list[tuple[Any, ...]] | None:
    """Rows of (inputs..., output) for the kernel, see `together`; None if the samples must be taken one by one."""
    found = _flat(stores, out)
    if found is None:
        found = _stretched(stores, out)
        if found is None:
            return None
        wide, length = [a.ndim == out.whole.ndim and len(a) == len(out.whole) for a in found], len(out.whole)  # type: ignore[arg-type]
    elif any([a.__class__ is Apart for a in found]):
        return _whole_samples(found, out, context)
    else:
        wide, length = [a.ndim == 1 and a.size == found[-1].size for a in found], found[-1].size
    count = 1 + found[-1].size // _ELEMENTS
    if count > 1:
        count = min(count, length, context.num_threads)
    if count <= 1:
        return [tuple(found)]
    edges = [length * k // count for k in range(count + 1)]
    return [
        tuple([a[start:end] if w else a for a, w in zip(found, wide, strict=True)]) for start, end in pairwise(edges)
    ]


def _whole_samples(found: list[Any], out: Store, context: Any) -> list[tuple[Any, ...]]:
    """The rows where samples of an operand lie apart."""
    starts, total = out.volumes.offsets, out.volumes.total
    count = 1 + total // _ELEMENTS
    if count > 1:
        nbytes = sum([a.nbytes for a in found if a.__class__ is Apart])
        count = min(count, max(context.num_threads, nbytes // _TOGETHER))
    edges = edges_of(starts, total, count)
    ends = [*starts.tolist(), total]
    rows = []
    for first, behind in pairwise(edges):
        part = slice(ends[first], ends[behind])
        rows.append(tuple([a[first:behind] if a.__class__ is Apart else a[part] if a.ndim else a for a in found]))
    return rows


def edges_of(starts: np.ndarray, total: int, parts: int) -> list[int]:
    """The first samples of runs of about as many elements each, and the number of samples; where they start is `starts`."""
    if parts < 2:
        return [0, len(starts)]
    marks = np.arange(parts) * (total / parts)
    cuts = [*np.searchsorted(starts, marks).tolist(), len(starts)]
    return [0] + [end for start, end in pairwise(cuts) if end > start]


def _flat(stores: list[Store], out: Store) -> list[Any] | None:
    """Every operand as a 1-D array, as `Apart` or as one number, if all have the shapes of the output."""
    found: list[Any] = []
    for store in (*stores, out):
        if store.shapes != out.shapes:
            one = len(store.shapes) == 1 and store.arrays()[0]
            if one is False or one.size != 1:
                return None
            found.append(one.reshape(()))
            continue
        flat = store.flat
        if flat is None:
            whole = store.dense()
            if whole is not None and is_contiguous(whole):
                flat = whole.reshape(-1)
            elif store.contiguous() is store:
                flat = Apart(store, None)
            else:
                return None
        found.append(flat)
    return found


def _stretched(stores: list[Store], out: Store) -> list[Any] | None:
    """Operands `[N, ...]` that broadcast as they are to the output `[N, ...]`."""
    if out.whole is None or len(out.shapes) == 1:
        return None
    found = []
    for store in stores:
        if len(store.shapes) == 1:
            found.append(store.arrays()[0])
            continue
        whole = store.dense()
        if whole is None or not is_contiguous(whole):
            return None
        missing = out.whole.ndim - whole.ndim
        found.append(whole.reshape(len(whole), *(1,) * missing, *whole.shape[1:]) if missing else whole)
    return [*found, out.whole]


def batch_pieces(
    op: Operator, plan: Plan, stores: list[Any], results: list[Store], context: Any
) -> list[tuple[Any, ...]] | None:
    """What `cpu_batch` is called with: a row of arguments for each piece; None if the samples differ in shape."""
    count = len(results[0].shapes)
    every = op.cpu_batch_inputs is None
    taken = stores if every else [stores[i] if i < len(stores) else None for i in op.cpu_batch_inputs]  # type: ignore[union-attr]
    arrays: list[Any] = [None if store is None else _together(store, count) for store in taken]
    for store, array in zip(taken, arrays, strict=True):
        if store is not None and array is None:
            return None
    lead = len(arrays)
    arrays += [r.whole for r in results]
    if any([a is None for a in arrays[lead:]]):
        return None
    nbytes = sum([a.nbytes for a in arrays if a is not None])
    names = op.cpu_batch_names[(1 if every else lead) + len(results) :]
    named = [plan.field(k) for k in names]
    parts = min(nbytes // _BYTES, count)
    if parts > 1:  # to ask for the number of threads takes 5 us
        apart = sum([a.nbytes for a in arrays if a.__class__ is Apart])
        parts = min(parts, max(context.num_threads, apart // _TOGETHER))
    edges = [count * k // parts for k in range(parts + 1)] if parts > 1 else [0, count]
    rows = []
    for start, end in pairwise(edges):
        cut = [a if a is None else a[start:end] for a in arrays] if parts > 1 else arrays
        own = [v[start:end] if each and parts > 1 else v for v, each in named]
        inputs = (tuple(cut[:lead]),) if every else cut[:lead]
        rows.append((*inputs, *cut[lead:], *own))
    return rows


def _together(store: Store, count: int) -> Any:
    """The samples as one C-contiguous array `[N, ...]`, or as `Apart`; None if they have not one shape, or are strided."""
    if len(store.shapes) != count:
        return None
    whole = store.whole
    if whole is None and store.flat is not None:
        whole = store.dense()
    if whole is not None and is_contiguous(whole):
        return whole
    arrays = store.arrays()
    shape = store.shapes[0]
    if count == 1 and is_contiguous(arrays[0]):
        return arrays[0][None]
    if not store.uniform():
        return None
    if arrays[0].nbytes <= _COPIED:
        return np.concatenate(arrays if shape else [a[None] for a in arrays]).reshape(count, *shape)
    return Apart(store, shape) if store.contiguous() is store else None
