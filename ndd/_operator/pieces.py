"""Elementwise operators on the CPU: a few large pieces in place of many samples.

Where samples lie behind each other, one call of the kernel does them all (a call costs more than a small sample), and
one large sample is divided among the threads.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ndd._tensor import Store
from ndd._tensor.store import is_contiguous

_ELEMENTS = 1 << 15  # of a piece, at least
_GATHERED = 1 << 12  # elements of samples that lie apart, up to which copying them together is cheaper than many calls


def pieces(stores: list[Store], out: Store, pool: Any) -> list[tuple[Any, ...]] | None:
    """Rows of (inputs..., output) for the kernel; None if the samples must be taken one by one."""
    found = _flat(stores, out)
    if found is None:
        found = _stretched(stores, out)
        if found is None:
            return None
        wide, length = [a.ndim == out.whole.ndim and len(a) == len(out.whole) for a in found], len(out.whole)  # type: ignore[arg-type]
    else:
        wide, length = [a.ndim == 1 and a.size == found[-1].size for a in found], found[-1].size
    count = 1 + found[-1].size // _ELEMENTS
    if count > 1:
        count = min(count, length, pool.num_threads)
    if count <= 1:
        return [tuple(found)]
    edges = [length * k // count for k in range(count + 1)]
    return [
        tuple([a[start:end] if w else a for a, w in zip(found, wide, strict=True)]) for start, end in pairwise(edges)
    ]


def _flat(stores: list[Store], out: Store) -> list[Any] | None:
    """Every operand as a 1-D array (or one number), if all have the shapes of the output."""
    found = []
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
            if whole is None and store.uniform() and len(store.shapes) * store.arrays()[0].size <= _GATHERED:
                whole = store.stacked()
            if whole is None or not is_contiguous(whole):
                return None
            flat = whole.reshape(-1)
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
