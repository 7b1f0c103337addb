"""A few large pieces of a batch in place of many samples, on the CPU: a call costs more than a small sample.

Elementwise operators: where samples lie behind each other, one call of the kernel does them all, and one large sample
is divided among the threads. Operators with a kernel for whole batches (`cpu_batch`): samples of one shape, as many in
one piece as a thread gets. `each_piece`: compiled kernels, which also take the pieces of samples that lie apart within
one call.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ndd._compiled.jit import Kernel
from ndd._compiled.nontemporal_stores import by_blocks
from ndd._compiled.sample_loops import each_in_turn, samples
from ndd._operator.turns import Rows, Seen, in_turns
from ndd._tensor import Store
from ndd._tensor.store import is_contiguous

if TYPE_CHECKING:
    from ndd._operator.call import Call
    from ndd._operator.operator import Operator
    from ndd._operator.plan import Plan

_ELEMENTS = 1 << 15  # of a piece, at least
_GATHERED = 1 << 12  # elements of samples that lie apart, up to which copying them together is cheaper than many calls
_BYTES = 1 << 17  # of a piece of a batch, at least
_FEWEST = 1 << 14  # elements of a batch, from which on compiled kernels are worth their compilation
_MOST = 1 << 18  # elements of a piece of `each_piece`: what one thread has more to do than another in the end
_EACH = 8  # such pieces of a thread, at least
# Bytes of results from which on they go to memory past the cache. 38 MB of float32 made of bytes: 2.3 ms of a core, not 3.5; with
# a reduction that reads them 6.3, not 7.6; of 19 MB those take 3.0, not 2.5. Bytes made of bytes gain nothing.
_FAR = 1 << 25
_COPIED = 1 << 14  # bytes of a sample, up to which copying it costs less than a call of its own


def pieces(stores: list[Store], out: Store, context: Any) -> list[tuple[Any, ...]] | None:
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
        count = min(count, length, context.num_threads)
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
            if whole is not None and is_contiguous(whole):
                flat = whole.reshape(-1)
            else:
                flat = gathered(store.arrays(), out.element_count())
                if flat is None:
                    return None
        found.append(flat)
    return found


def gathered(arrays: list[np.ndarray], count: int) -> np.ndarray | None:
    """The `count` elements of samples that lie apart, copied one behind the other; None if they are too many for that."""
    return np.concatenate([a.reshape(-1) for a in arrays]) if count <= _GATHERED else None


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
        parts = min(parts, context.num_threads)
    edges = [count * k // parts for k in range(parts + 1)] if parts > 1 else [0, count]
    rows = []
    for start, end in pairwise(edges):
        cut = [a if a is None else a[start:end] for a in arrays] if parts > 1 else arrays
        own = [v[start:end] if each and parts > 1 else v for v, each in named]
        inputs = (tuple(cut[:lead]),) if every else cut[:lead]
        rows.append((*inputs, *cut[lead:], *own))
    return rows


def _together(store: Store, count: int) -> Any:
    """The samples as one C-contiguous array `[N, ...]`; None if they have not one shape, or are too large to copy."""
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
    if arrays[0].nbytes > _COPIED or not store.uniform():
        return None
    return np.concatenate(arrays if shape else [a[None] for a in arrays]).reshape(count, *shape)


def each_piece(
    call: Call, kernel: Kernel, operands: list[Store | Seen], out: Store | Seen, *what: Any
) -> np.ndarray | None:
    """Calls an elementwise kernel for pieces of the samples, wherever they lie, within one call.

    Args:
        call: the batch.
        kernel: `f(*operands, out, *what)`, of 1-D arrays: element `i` of `out` is made of elements `i` of the operands.
        operands: one or two stores, whose samples have as many elements as those of `out`; `Seen` for another type of as many
            bytes.
        out: what `allocated` gives.
        what: further arguments: `Rows` (each piece gets the one of its sample); all else is the same for all.

    Gives no numbers, as `.cpu_turns` does where no sample is left; None if it is not worth it, or cannot be.
    """
    made: Any = out.store if isinstance(out, Seen) else out
    if few(made):
        return None
    seen = [one if isinstance(one, Seen) else Seen(one) for one in (*operands, out)]
    stores: list[Any] = [one.store for one in seen]
    count, total = made.n, _size(made)
    far = made.dtype.bytes > 1 and total * made.dtype.bytes >= _FAR
    own = any([isinstance(one, Rows) for one in what])
    if not far and _done_elsewhere(call, stores, own):
        return None
    sizes = stores[-1].volumes.sizes
    if any([s.n != count or not np.array_equal(s.volumes.sizes, sizes) for s in stores[:-1]]):
        return None
    stores = [s.contiguous() for s in stores]
    places, widths = [s.pointers() for s in stores], [s.dtype.bytes for s in stores]
    if not own and count > 1 and all([_adjoin(p, sizes * w) for p, w in zip(places, widths, strict=True)]):
        places, sizes = [p[:1] for p in places], np.array([total])
    threads = call.threads if total > _MOST else 1
    length = min(max(total // (_EACH * threads), _ELEMENTS), _MOST)
    of = np.arange(len(sizes))
    if sizes.max() > length:
        counts = -(-sizes // length)
        of = np.repeat(of, counts)
        begin = (np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)) * length
        places = [p[of] + begin * w for p, w in zip(places, widths, strict=True)]
        sizes = np.minimum(sizes[of] - begin, length)
    given: list[Any] = [
        samples(p, sizes[:, None], np.dtype(one.dtype or s.dtype.numpy))
        for p, s, one in zip(places, stores, seen, strict=True)
    ]
    given.append((far,))
    given += [np.ascontiguousarray(one.values[of]) if isinstance(one, Rows) else (one,) for one in what]
    loop, fields, order = each_in_turn(by_blocks(kernel, len(operands))), tuple(given), np.arange(len(sizes))
    nbytes, held = total * sum(widths), (stores, what)
    in_turns(call.context, loop, (order, fields), len(order), nbytes, held, call.pace(kernel))
    return order[:0]


def few(made: Store) -> bool:
    """Whether the elements of a result that `allocated` gave are too few for `each_piece`."""
    return _size(made) < _FEWEST


def _size(made: Store) -> int:
    return (made.whole if made.flat is None else made.flat).size


def _done_elsewhere(call: Call, stores: list[Any], own: bool) -> bool:
    """Whether `pieces` or `batch_pieces` make as few tasks of these samples, in less Python."""
    together = all([s.flat is not None or (s.whole is not None and is_contiguous(s.whole)) or s.n == 1 for s in stores])
    if together and not own:
        return True
    if call.op.cpu_batch is None or not stores[-1].uniform():
        return False
    return together or stores[0].nbytes() <= _COPIED * stores[0].n


def _adjoin(places: np.ndarray, nbytes: np.ndarray) -> bool:
    """Whether samples lie one behind the other."""
    return np.array_equal(places[1:], places[:-1] + nbytes[:-1])
