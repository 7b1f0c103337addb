"""Samples that threads take in turn, inside one call of a compiled loop for each thread (`_cpu/turns.py`).

A task for each sample makes threads wait for the interpreter, which they ask for at its beginning and its end: with 16
threads, 64 photographs of 0.9 ms each took 22 ms. Here they ask once for each thread and batch.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ndd._cpu.gather import PIECE, gather_turns
from ndd._cpu.jit import Kernel
from ndd._cpu.turns import each_in_turn, samples
from ndd._tensor import Store
from ndd._tensor.operand import Operand

if TYPE_CHECKING:
    from ndd._operator.call import Call

_EACH = 1 << 17  # bytes for a thread, at least: to wake one takes as long as a core needs for some 100 kB
_NONE = np.empty(0, np.int64)
_EACH_SECONDS = 50e-6  # or so much work
_CALL_SECONDS = 30e-6  # of Python around it, at most
_TINY = 1 << 13  # bytes of a batch that no kernel has much work with
_BYTES = 1 << 26  # of one call, about: in between Python looks for signals (Ctrl-C)


def in_turns(context: Any, loop: Callable[[np.ndarray, int], bool], count: int, nbytes: int, held: Any) -> bool:
    """See `Call.in_turns`."""
    turns = np.array([0])
    most = max(1, _BYTES * count // (nbytes + 1))

    # Ctrl-C ends the caller's share alone: what the others write to lives as long as they do.
    def share(_: int, _held: Any = held) -> None:
        while turns[0] < count and loop(turns, most):
            pass

    threads = min(count, 1 + nbytes // _EACH)
    if threads < count and nbytes > _TINY:  # few bytes may be much work: the first sample tells
        begun = perf_counter()
        if not loop(turns, 1):
            return False
        seconds = (perf_counter() - begun - _CALL_SECONDS) * (count - 1)
        threads = max(threads, min(count - 1, int(seconds / _EACH_SECONDS)))
    if threads > 1:
        threads = min(threads, context.num_threads)
    if threads > 1:
        for error in context.thread_pool.run(share, threads).values():
            raise error
    else:
        share(0)
    return bool(turns[0] >= count)


class Rows(NamedTuple):
    """What each sample has its own of: a number of `[N]`, or a row of `[N, ...]`; and the owners of memory, if these are
    addresses."""

    values: np.ndarray
    owners: Any = None


class Seen(NamedTuple):
    """The memory of each sample as an array of these extents, int64 `[N, ndim]`, and of this type (default: its own ones)."""

    store: Store | Operand
    extents: np.ndarray | None = None
    dtype: Any = None


def bytes_of(store: Store) -> Seen:
    """The memory of each sample as bytes, for kernels that move elements of any type."""
    whole = store.whole
    if whole is None:
        return Seen(store, store.sizes[:, None] * store.dtype.bytes, np.uint8)
    sizes = np.empty((len(whole), 1), np.int64)
    sizes.fill(whole.nbytes // (len(whole) or 1))
    return Seen(store, sizes, np.uint8)


def each_sample(call: Call, kernel: Kernel, *what: Any, nbytes: int | None = None, order: Any = None) -> np.ndarray:
    """Calls a kernel for each sample of a batch, within one call of a compiled loop for each thread.

    Args:
        call: the batch.
        kernel: what works on one sample.
        what: its arguments: stores and operands, of which it gets the array of the sample (C-contiguous: a copy where the
            sample is strided); `Seen`, the same in other extents; `Rows`; all else is the same for all samples.
        nbytes: about what is moved; default: the bytes of the arrays.
        order: the numbers of the samples that are worked on; default: all, the largest first.

    Gives no numbers: what `.cpu_turns` gives where no sample is left.
    """
    given: list[Any] = []
    memory: list[tuple[int, Any, Any, Any]] = []  # where it goes, the store, extents and type
    for one in what:
        kind = one.__class__
        if kind is Rows:
            given.append(np.ascontiguousarray(one.values))
            continue
        if kind is Store or kind is Operand:
            memory.append((len(given), one if kind is Store else one._store, None, None))
        elif kind is Seen:
            store = one.store
            memory.append((len(given), store if store.__class__ is Store else store._store, one.extents, one.dtype))
        given.append((one,))
    memory = [(k, store.contiguous(), extents, dtype) for k, store, extents, dtype in memory]
    n = max([store.n for _, store, *_ in memory])
    for k, store, extents, dtype in memory:
        places = store.pointers()
        if extents is None:
            extents = store.shape_array
        if store.n != n:
            places, extents = np.broadcast_to(places, (n,)), np.broadcast_to(extents, (n, extents.shape[1]))
        given[k] = samples(places, extents, np.dtype(dtype or store.dtype.numpy))
    if nbytes is None:
        nbytes = sum([store.nbytes() for _, store, *_ in memory])
    if order is None:  # which matters to threads
        order = np.arange(n) if nbytes < _EACH else _largest_first(n, [store for _, store, *_ in memory])
    loop, fields = each_in_turn(kernel), tuple(given)
    in_turns(call.context, lambda *turns: loop(*turns, order, fields), len(order), nbytes, (memory, what))
    return _NONE


def _largest_first(n: int, stores: list[Store]) -> np.ndarray:
    """The numbers of the samples in this order, of the largest of the stores."""
    if all([store.uniform() for store in stores]):
        return np.arange(n)
    largest = max([store for store in stores if store.n == n], key=Store.nbytes)
    return np.argsort(-largest.sizes, kind="stable")


def gather(call: Any, sources: np.ndarray, ends: np.ndarray, out: np.ndarray, held: Any) -> None:
    """Copies the bytes at the addresses `sources` into `out`, behind each other; `ends`: where each sample ends there, in bytes.

    `held`: what owns the memory that is read.
    """
    target, nbytes = out.ctypes.data, int(ends[-1])
    call.in_turns(
        lambda *turns: gather_turns(*turns, sources, ends, target), -(-nbytes // PIECE), 2 * nbytes, (held, out)
    )
