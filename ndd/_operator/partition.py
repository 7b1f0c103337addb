"""How a batch is divided among threads on the CPU: into samples, pieces of samples, or runs of samples.

A compiled kernel is called inside one compiled loop (`_compiled/sample_loops.py`) that a team of threads joins, so that Python is
entered once a batch. With a Python task for each sample, threads wait for the interpreter at the beginning and the end of
each task: with 16 threads, 64 photographs of 0.9 ms each took 22 ms. A Python kernel gets arrays: a few large ones if
samples follow each other in memory and may be cut, otherwise those of each sample.

The plan says how a kernel sees the memory (`View`), and the operator what may be cut (`cut` of `@operator`).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ndd._compiled.jit import Kernel
from ndd._compiled.nontemporal_stores import by_blocks
from ndd._compiled.sample_loops import loop_over_samples
from ndd._compiled.thread_team import ALONE, joined, team_of
from ndd._operator.naming import raise_first
from ndd._tensor import Store
from ndd._tensor.operand import Operand
from ndd._tensor.store import grouped, is_contiguous, volumes

if TYPE_CHECKING:
    from ndd._operator.call import Call

# The approximate cost of one more thread for a batch. On 16 hardware threads of 8 cores, 0.8 ms of work took 0.24 ms with the
# number of threads that this gives, 0.42 with half as many and 0.46 with a third; 3 ms took 0.46 and 5 ms 0.65 with any of
# them.
_WAKE_SECONDS = 5e-6
_CALL_SECONDS = 2e-6  # the approximate time of a call without work
_TINY = 1 << 13  # bytes of a batch that are little work for any kernel
_BYTES = 1 << 26  # the approximate size of one call: Python handles signals (Ctrl-C) in between
_SHARE = 32  # one of this many samples of a batch is timed
_MUCH_SECONDS = 256 * _WAKE_SECONDS  # work that is worth 16 threads: the time of one sample tells
_FIRST_CALLS, _CALLS = 3, 64  # the first calls are timed, then one of this many
_ALONE = 1 << 17  # bytes of a batch for which one thread is enough
_FEWEST = 1 << 14  # elements of a batch from which on a kernel that cuts it is worth compiling
_ELEMENTS = 1 << 15  # the fewest of a piece
_MOST = 1 << 18  # the most of a piece, which one thread may do after the others have ended
_EACH = 8  # the fewest pieces of a thread
_GATHERED = 1 << 12  # elements up to which copying scattered samples together is cheaper than many calls
# Bytes of results from which on non-temporal stores bypass the cache. 38 MB of float32 made from bytes take 2.3 ms of a core
# instead of 3.5, and 6.3 instead of 7.6 with a reduction that reads them; with 19 MB the latter take 3.0 instead of 2.5.
# Bytes made from bytes gain nothing.
_FAR = 1 << 25
_RUN_BYTES = 1 << 17  # the fewest bytes of a run of samples


class CostEstimate:
    """The measured cost of a loop: seconds for each byte of a batch, on one thread.

    Args:
        seconds: if that is known.
    """

    __slots__ = ("_calls", "seconds")

    def __init__(self, seconds: float | None = None):
        self.seconds = seconds or 0.0
        self._calls = 0 if seconds is None else _FIRST_CALLS

    def is_due(self) -> bool:
        """Whether this call is timed. All calls are until one has been: loops that are being compiled do nothing."""
        self._calls += 1
        return not self.seconds or self._calls <= _FIRST_CALLS or self._calls % _CALLS == 0

    def note(self, seconds: float) -> None:
        """Notes the seconds a byte of one call. The first call may have compiled, and earlier ones may have used a fallback."""
        known = self.seconds
        if not known or seconds < known / 4:
            self.seconds = seconds
        else:
            self.seconds = min(known, seconds) if self._calls <= _FIRST_CALLS else (known + seconds) / 2


def parallel_for(
    context: Any,
    loop: Kernel | Callable[..., Any],
    fields: tuple[Any, ...],
    count: int,
    nbytes: int,
    held: Any,
    cost: CostEstimate | None = None,
) -> bool:
    """Runs `loop(counter, limit, *fields)` on as many threads as pay off, until all of `count` samples have been taken.

    Args:
        context: the owner of the threads.
        loop: takes up to `limit` samples, by `next_index(counter)`, and returns True. It returns False while it is being
            compiled: then nothing has been done, and nothing will be.
        count, nbytes: the number of samples, and the approximate number of bytes that are moved.
        held: everything whose addresses the loop knows.
        cost: what is known of such loops; default: the first samples are timed.

    Returns whether all samples are done.
    """
    counter, shared = np.array([0]), joined(loop)
    limit = max(1, _BYTES * count // (nbytes + 1))
    threads = 1
    if count > 1 and nbytes > _TINY:
        cost = cost or CostEstimate()
        if cost.is_due():
            some = 1
            if cost.seconds * nbytes <= _MUCH_SECONDS:
                some = min(limit, max(1, count // _SHARE, count * _TINY // nbytes))
            begun = perf_counter()
            if not shared(ALONE, 0, counter, some, fields):
                return False
            cost.note(max(perf_counter() - begun - _CALL_SECONDS, 1e-8) * count / (some * nbytes))
        # work / threads + threads * cost is least for threads = sqrt(work / cost).
        threads = min(int((cost.seconds * nbytes / _WAKE_SECONDS) ** 0.5), count - int(counter[0]))
        if threads > 1:
            threads = min(threads, context.num_threads)

    # Ctrl-C ends only the caller's share: the memory that other threads write to stays valid until they end.
    def share(_: int, _held: Any = held) -> None:
        while counter[0] < count and shared(ALONE, 0, counter, limit, fields):
            pass

    if threads > 1:
        team = team_of(context.thread_pool) if shared.__class__ is Kernel else None
        if team is not None and team.ensure(threads - 1):
            while counter[0] < count and shared(team.board, threads - 1, counter, limit, fields) is True:
                pass
        if counter[0] < count:  # a fallback computes, or there is no team: Python threads
            for error in context.thread_pool.run(share, threads).values():
                raise error
    else:
        share(0)
    return bool(counter[0] >= count)


class View(NamedTuple):
    """How a kernel sees the memory of each sample of an input or output.

    Args:
        extents: int64 `[N, ndim]`; "flat": all elements along one axis; "rows": all axes but the last along one; default: those of
            the sample.
        dtype: NumPy's; "bits": unsigned integers of as many bytes, for kernels that only move elements (four compiled ones serve
            all types, float16 among them); default: that of the sample.
    """

    extents: Any = None
    dtype: Any = None

    def of(self, store: Store | Operand) -> Seen:
        """The memory of a store in this view, for `each_sample`."""
        return Seen(store, self)


class Seen(NamedTuple):
    """The memory of a store in another view."""

    store: Store | Operand
    view: View


class Rows(NamedTuple):
    """A field with a value for each sample: a number of `[N]`, or a row of `[N, ...]`; and the owners of the memory, if
    these are addresses."""

    values: np.ndarray
    owners: Any = None


_VIEWS = {"flat": View("flat"), "rows": View("rows"), "bytes": View("flat", np.uint8), "bits": View(None, "bits")}
_BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def view_of(view: Any) -> View | None:
    """A view as a plan may give it: extents, "flat", "rows", "bytes" (uint8 along one axis) or "bits" stand for a `View`."""
    if view is None or view.__class__ is View:
        return view
    return _VIEWS[view] if view.__class__ is str else View(view)


def resolved(view: View | None, store: Store, n: int) -> tuple[np.ndarray, np.dtype]:
    """The extents, int64 `[n, ndim]`, and the element type as which a kernel sees the samples of a store."""
    extents, dtype = view and view.extents, seen_dtype(view, store)
    if extents is None:
        extents = store.shape_array
    elif extents.__class__ is str and extents == "rows":
        extents = store.shape_array
        extents = grouped(extents, extents.shape[1] - 1) if extents.shape[1] else np.ones((store.n, 2), np.int64)
    elif extents.__class__ is str:
        factor = store.dtype.bytes // dtype.itemsize
        if store.whole is None:
            extents = store.sizes[:, None] * factor if factor != 1 else store.sizes[:, None]
        else:
            extents = np.empty((store.n, 1), np.int64)
            extents.fill(store.whole.size // (store.n or 1) * factor)
    return (extents if len(extents) == n else np.broadcast_to(extents, (n, extents.shape[1]))), dtype


def seen_dtype(view: View | None, store: Store) -> np.dtype:
    """The element type as which a kernel sees the samples of a store."""
    dtype, kind = store.dtype.numpy, view and view.dtype
    if kind is None:
        return dtype
    return _BITS[dtype.itemsize] if kind.__class__ is str and kind == "bits" else np.dtype(kind)


class Memory(NamedTuple):
    """A parameter of a kernel that is an array: the memory of operand `number`, in a view."""

    number: int
    view: View | None


class _Place(NamedTuple):
    """The place of a `Memory` among the fields of a loop, with all that is known before its addresses."""

    slot: int
    number: int
    extents: np.ndarray
    like: np.ndarray
    offsets: np.ndarray | None


class Cut(NamedTuple):
    """How samples may be cut into pieces for several threads."""

    threads: int
    joined: bool
    """The samples follow each other in memory and count as one."""
    bypass: bool
    """Stores to 1-D results bypass the cache."""


class SampleLoop:
    """A compiled kernel over the samples of a batch, or over pieces of them: everything but the addresses, which differ from
    call to call.

    Args:
        kernel: computes one sample.
        fields: its arguments: `Memory`; `Rows`; all else is the same for all samples.
        stores: the operands that `Memory` names. Their shapes and types matter, their addresses do not.
        n: the number of samples.
        work: the approximate work of each sample, or of every sample, in bytes; default: the bytes of the arrays.
        order: the numbers of the samples that are worked on; default: all, the largest first.
        cut: how the work is divided along the first axis of the views, which is equally long in all of them.
    """

    __slots__ = ("_order", "_places", "fields", "kernel", "loop", "n", "nbytes", "of")

    def __init__(
        self,
        kernel: Kernel,
        fields: list[Any],
        stores: list[Any],
        n: int,
        work: Any = None,
        order: Any = None,
        cut: Cut | None = None,
    ):
        self.kernel, self.n, self.of = kernel, n, None
        self.loop = loop_over_samples(kernel)
        self.fields: list[Any] = []
        self._places: list[_Place] = []
        for slot, field in enumerate(fields):
            if field.__class__ is Memory:
                extents, dtype = resolved(field.view, stores[field.number], n)
                extents = np.ascontiguousarray(extents)
                like = np.empty((0,) * extents.shape[1], dtype)
                self._places.append(_Place(slot, field.number, extents, like, None))
                self.fields.append((None,))
            else:
                self.fields.append(np.ascontiguousarray(field.values) if field.__class__ is Rows else (field,))
        used = [stores[place.number] for place in self._places]
        if work is None:
            self.nbytes = sum([store.nbytes() for store in used])
        else:
            self.nbytes = int(work.sum() if work.__class__ is np.ndarray else work)
        if cut is not None:
            order = self._cut(cut)
        elif order is None:  # the order matters only to several threads
            order = np.arange(n) if self.nbytes < _ALONE else _largest_first(n, used, work)
        self._order = order

    def _cut(self, cut: Cut) -> np.ndarray:
        """Divides the work; returns the order of the pieces. Most batches have shapes of their own, so this runs at each call."""
        extents = [place.extents for place in self._places]
        counts = extents[-1][:, 0]
        if not all([(other[:, 0] == counts).all() for other in extents[:-1]]):
            raise ValueError(
                f"{self.kernel.function.__name__}: the axis that may be cut is not equally long in all views"
            )
        flat = all([other.shape[1] == 1 for other in extents])
        rows = [] if flat else [volumes(other[:, 1:]) for other in extents]
        # A reduction writes little and reads much: the largest view tells the work.
        work = np.maximum.reduce(rows) if rows else None
        width = 1 if work is None else int(work.max(initial=1))
        total = int((counts if work is None else counts * work).sum())
        threads = cut.threads if total > _MOST else 1
        length = max(min(max(total // (_EACH * threads), _ELEMENTS), _MOST) // max(width, 1), 1)
        pieces = _pieces(counts, length, cut.joined)
        if pieces is not None:
            of, begins, counts = pieces
            for k, place in enumerate(self._places):
                own = counts[:, None] if flat else extents[k][of]
                own[:, 0] = counts
                offsets = begins * place.like.dtype.itemsize
                self._places[k] = place._replace(extents=own, offsets=offsets if flat else offsets * rows[k][of])
            self.of, work = of, work if work is None else work[of]
            self.fields = [f if isinstance(f, tuple) else f[of] for f in self.fields]
        operands = len(extents) - 1
        if operands in (1, 2) and flat:
            self.loop = loop_over_samples(by_blocks(self.kernel, operands))
            self.fields.insert(operands + 1, (cut.bypass,))
        if cut.joined:
            return np.arange(len(counts))
        # A long piece that is begun last leaves the other threads idle: the largest come first.
        return np.argsort(-counts if work is None else -counts * work, kind="stable")

    def run(self, call: Call, stores: list[Any], held: Any = None) -> None:
        """Does all of it."""
        fields, n, of = list(self.fields), self.n, self.of
        for slot, number, extents, like, offsets in self._places:
            places = stores[number].pointers()
            if len(places) != n:
                places = np.broadcast_to(places, (n,))
            if of is not None:
                places = places[of] + offsets
            fields[slot] = (np.ascontiguousarray(places), extents, like)
        order = self._order
        parallel_for(
            call.context, self.loop, (order, tuple(fields)), len(order), self.nbytes, (stores, fields, held),
            call.cost(self.kernel),
        )  # fmt: skip


def _pieces(counts: np.ndarray, length: int, joined: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Pieces of at most `length` rows: the sample of each, its first row and its number of rows; None if each sample is one
    piece. If the samples are joined, all pieces are of sample 0."""
    if joined:
        total = int(counts.sum())
        begins = np.arange(0, max(total, 1), length)
        return np.zeros(len(begins), np.int64), begins, np.minimum(total - begins, length)
    if not len(counts) or counts.max() <= length:
        return None
    parts = -(-counts // length)
    of = np.repeat(np.arange(len(counts)), parts)
    begins = (np.arange(len(of)) - np.repeat(np.cumsum(parts) - parts, parts)) * length
    return of, begins, np.minimum(counts[of] - begins, length)


def bits_of(value: Any) -> Any:
    """Numbers as compiled kernels take them: float16 numbers as their bits."""
    half = getattr(value, "dtype", None) == np.float16
    return value.view(np.uint16) if half else value


def _largest_first(n: int, stores: list[Any], work: Any) -> np.ndarray:
    """The numbers of the samples, ordered by their work or by the size in the largest store."""
    if work.__class__ is np.ndarray:
        return np.argsort(-work, kind="stable")
    if all([store.uniform() for store in stores]):
        return np.arange(n)
    largest = max([store for store in stores if store.n == n], key=Store.nbytes)
    return np.argsort(-largest.sizes, kind="stable")


def each_sample(
    call: Call, kernel: Kernel, *fields: Any, nbytes: int | None = None, order: Any = None, held: Any = None
) -> None:
    """Calls a kernel for each sample of a batch, within one call of a compiled loop: for operators with `.batch`.

    Args:
        call: the batch.
        kernel: computes one sample.
        fields: its arguments: stores and operands, of which it gets the array of the sample (C-contiguous: a copy where the
            sample is strided); `View(...).of(store)`, the same in other extents; `Rows`; all else is the same for all samples.
        nbytes: the approximate number of bytes that are moved; default: the bytes of the arrays.
        order: the numbers of the samples that are worked on; default: all, the largest first.
        held: other objects whose addresses the kernel knows.
    """
    stores: list[Any] = []
    parameters: list[Any] = []
    for field in fields:
        view, value = (field.view, field.store) if field.__class__ is Seen else (None, field)
        if value.__class__ is Operand:
            value = value._store
        if value.__class__ is Store:
            parameters.append(Memory(len(stores), view))
            stores.append(value.contiguous())
        else:
            parameters.append(value)
    n = max([store.n for store in stores] or [len(field.values) for field in fields if field.__class__ is Rows])
    SampleLoop(kernel, parameters, stores, n, nbytes, order).run(call, stores, (fields, held))


# ---- what may be cut


def too_few_to_compile(out: Store) -> bool:
    """Whether a result has so few elements that a kernel that cuts it is not worth compiling."""
    return out.element_count() < _FEWEST


def is_large(operands: list[Any]) -> bool:
    """Whether the number of threads decides how a batch is cut. Asking for it takes 5 us."""
    return any([store is not None and store.element_count() > _MOST for store in operands])


def uses_nontemporal_stores(out: Store) -> bool:
    """Whether a result is too large to stay in the cache."""
    return out.dtype.bytes > 1 and out.nbytes() >= _FAR


def are_consecutive(operands: list[Any], n: int, copied: int = 0) -> bool:
    """Whether the samples follow each other in memory in all operands; up to `copied` elements may be scattered."""
    for store in operands:
        if store is None or store.flat is not None or (store.whole is not None and is_contiguous(store.whole)):
            continue
        if n > 1 and store.element_count() > copied:
            return False
    return True


def rows_are_alike(operands: list[Any], views: list[Any], n: int) -> bool:
    """Whether the rows of the views, which may be cut, are alike in all samples."""
    for store, view in zip(operands, views, strict=True):
        if store is None:
            continue
        if store.n != n:
            return False
        extents, _ = resolved(view, store, n)
        if extents.shape[1] > 1 and (extents[:, 1:] != extents[:1, 1:]).any():
            return False
    return True


def sample_arrays(store: Store | None, view: View | None, n: int) -> list[Any]:
    """The samples of an operand as arrays, in a view; one Tensor among batches is for every sample."""
    if store is None:
        return [None] * n
    arrays = store.arrays()
    if view is not None:
        extents, dtype = resolved(view, store, len(arrays) if len(arrays) == n else n)
        arrays = arrays if len(arrays) == n else arrays * n
        return [a.reshape(-1).view(dtype).reshape(e) for a, e in zip(arrays, extents.tolist(), strict=True)]
    return arrays if len(arrays) == n else arrays * n


def row_pieces(operands: list[Any], views: list[Any], context: Any) -> list[tuple[Any, ...]] | None:
    """Rows of arguments for a Python kernel that may be cut along the first axis of its views; None if the samples do not
    follow each other in memory."""
    n = operands[-1].n
    if not (are_consecutive(operands, n, _GATHERED) and rows_are_alike(operands, views, n)):
        return None
    arrays: list[Any] = []
    for store, view in zip(operands, views, strict=True):
        if store is not None:
            extents, dtype = resolved(view, store, n)
            flat = store.flat if store.whole is None else store.whole
            if flat is None:
                flat = np.concatenate([array.reshape(-1) for array in store.arrays()])
            shape = (int(extents[:, 0].sum()), *extents[0, 1:].tolist())
            arrays.append(flat.reshape(-1).view(dtype).reshape(shape))
        else:
            arrays.append(None)
    if any([a is not None and len(a) != len(arrays[-1]) for a in arrays]):
        return None
    return _parts(arrays, [True] * len(arrays), len(arrays[-1]), context)


def array_pieces(operands: list[Any], views: list[Any], context: Any) -> list[tuple[Any, ...]] | None:
    """Rows of arguments for an elementwise Python kernel, over several samples or parts of them; None if the samples must be
    taken one by one."""
    *stores, out = operands
    if any([store is None for store in stores]):
        return None
    arrays = _flat(stores, out)
    if arrays is not None:
        for k, view in enumerate(views):
            if view is not None and view.dtype is not None:
                arrays[k] = arrays[k].view(seen_dtype(view, operands[k]))
        return _parts(arrays, [a.ndim == 1 and a.size == arrays[-1].size for a in arrays], arrays[-1].size, context)
    arrays = _stretched(stores, out)
    if arrays is None or any([view is not None for view in views]):
        return None
    wide = [a.ndim == out.whole.ndim and len(a) == len(out.whole) for a in arrays]
    return _parts(arrays, wide, len(out.whole), context)


def _parts(arrays: list[Any], wide: list[bool], length: int, context: Any) -> list[tuple[Any, ...]]:
    """As many parts of the arrays as there are threads, if they are large; arrays that are not `wide` go to each part."""
    count = 1 + arrays[-1].size // _ELEMENTS
    if count > 1:  # asking for the number of threads takes 5 us
        count = min(count, length, context.num_threads)
    if count <= 1:
        return [tuple(arrays)]
    edges = [length * k // count for k in range(count + 1)]
    return [
        tuple([a[start:end] if w and a is not None else a for a, w in zip(arrays, wide, strict=True)])
        for start, end in pairwise(edges)
    ]


def _flat(stores: list[Store], out: Store) -> list[Any] | None:
    """Every operand as a 1-D array (or one number), if all have the shapes of the output."""
    arrays: list[Any] = []
    for store in (*stores, out):
        if store.shapes != out.shapes:
            number = len(store.shapes) == 1 and store.arrays()[0]
            if number is False or number.size != 1:
                return None
            arrays.append(number.reshape(()))
            continue
        flat = store.flat
        if flat is None:
            whole = store.dense()
            if whole is not None and is_contiguous(whole):
                flat = whole.reshape(-1)
            elif out.element_count() <= _GATHERED:
                flat = np.concatenate([a.reshape(-1) for a in store.arrays()])
            else:
                return None
        arrays.append(flat)
    return arrays


def _stretched(stores: list[Store], out: Store) -> list[Any] | None:
    """Operands `[N, ...]` that broadcast unchanged to the output `[N, ...]`."""
    if out.whole is None or len(out.shapes) == 1:
        return None
    arrays: list[Any] = []
    for store in stores:
        if len(store.shapes) == 1:
            arrays.append(store.arrays()[0])
            continue
        whole = store.dense()
        if whole is None or not is_contiguous(whole):
            return None
        missing = out.whole.ndim - whole.ndim
        arrays.append(whole.reshape(len(whole), *(1,) * missing, *whole.shape[1:]) if missing else whole)
    return [*arrays, out.whole]


def _dense(store: Store) -> np.ndarray | None:
    """An input as one array `[N, ...]`. A few scattered elements are copied together: many calls cost more."""
    whole = store.dense()
    if whole is None and store.uniform() and store.element_count() <= _GATHERED:
        return store.stacked()
    return whole


def each_run(call: Call, stores: list[Any], work: Callable[..., None]) -> None:
    """For operators with `.batch`: calls `work(samples, *arrays)` for runs of samples.

    Args:
        call: the batch.
        stores: inputs and outputs, the last one an output.
        work: gets a slice of the numbers of the samples, and of each store an array `[samples, ...]`. Where the samples of each
            store have one shape, a run is what a thread gets; else it is one sample. A store of one sample serves all.
    """
    out = stores[-1]
    n = out.n
    wholes: list[Any] = [*map(_dense, stores[:-1]), out.dense()]
    if all([whole is not None for whole in wholes]):
        wholes = [w if len(w) == n else np.broadcast_to(w, (n, *w.shape[1:])) for w in wholes]
        parts = max(1, min(call.threads, n, out.nbytes() // _RUN_BYTES))
    else:
        wholes, parts = [store.arrays() * (n if store.n != n else 1) for store in stores], n

    def run(k: int) -> None:
        first, last = n * k // parts, n * (k + 1) // parts
        if isinstance(wholes[-1], list):
            work(slice(first, last), *[arrays[first][None] for arrays in wholes])
        else:
            work(slice(first, last), *[whole[first:last] for whole in wholes])

    failed = call.spread(run, parts, out.nbytes())
    raise_first({n * k // parts: error for k, error in failed.items()})
