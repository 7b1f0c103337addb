"""Samples that threads take in turn, inside one compiled loop (`_compiled/sample_loops.py`) that a thread team joins.

A task for each sample makes threads wait for the interpreter, which they ask for at its beginning and its end: with 16
threads, 64 photographs of 0.9 ms each took 22 ms. Here Python is asked once for a batch, by the thread that it is for.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ndd._compiled.jit import Kernel
from ndd._compiled.sample_loops import each_in_turn, samples
from ndd._compiled.thread_team import ALONE, joined, team_of
from ndd._cpu.gather import PIECE, gather_turns
from ndd._tensor import Store
from ndd._tensor.operand import Operand

if TYPE_CHECKING:
    from ndd._operator.call import Call

# What one thread more costs a batch, about. On 16 hardware threads of 8 cores 0.8 ms of work took 0.24 ms with what this gives,
# 0.42 with half as many threads and 0.46 with a third; 3 ms took 0.46 and 5 ms 0.65 with any of them.
_WAKE_SECONDS = 5e-6
_TINY = 1 << 13  # bytes of a batch that no kernel has much work with
_BYTES = 1 << 26  # of one call, about: in between Python looks for signals (Ctrl-C)
_SHARE = 32  # of a batch the time of one sample in so many is taken
_MUCH_SECONDS = 256 * _WAKE_SECONDS  # of work, from which on 16 threads are worth it: one sample tells
_FIRST_CALLS, _CALLS = 3, 64  # it is taken at each of the first calls, and at one in so many later ones
_ALONE = 1 << 17  # bytes of a batch that one thread is enough for
ALL_DONE = np.empty(0, np.int64)
"""What `.cpu_turns` gives where no sample is left."""


class Pace:
    """How long a loop works for each byte of a batch, on one thread.

    Args:
        seconds: if that is known.
    """

    __slots__ = ("_calls", "seconds")

    def __init__(self, seconds: float | None = None):
        self.seconds = seconds or 0.0
        self._calls = 0 if seconds is None else _FIRST_CALLS

    def is_due(self) -> bool:
        """Whether the time of this call is to be taken. As long as none was, it is: loops that are being compiled leave all."""
        self._calls += 1
        return not self.seconds or self._calls <= _FIRST_CALLS or self._calls % _CALLS == 0

    def note(self, seconds: float) -> None:
        """What a byte took at a call; the first one may have compiled, and a stand-in have answered before."""
        known = self.seconds
        if not known or seconds < known / 4:
            self.seconds = seconds
        else:
            self.seconds = min(known, seconds) if self._calls <= _FIRST_CALLS else (known + seconds) / 2


def in_turns(
    context: Any,
    loop: Kernel | Callable[..., Any],
    what: tuple[Any, ...],
    count: int,
    nbytes: int,
    held: Any,
    pace: Pace | None = None,
) -> bool:
    """See `Call.in_turns`. `pace`: of such loops; else the first samples tell."""
    turns, shared = np.array([0]), joined(loop)
    most = max(1, _BYTES * count // (nbytes + 1))
    threads = 1
    if count > 1 and nbytes > _TINY:
        pace = pace or Pace()
        if pace.is_due():
            much = pace.seconds * nbytes > _MUCH_SECONDS
            some = 1 if much else min(most, max(1, count // _SHARE))
            begun = perf_counter()
            if not shared(ALONE, 0, turns, some, what):
                return False
            pace.note((perf_counter() - begun) * count / (some * nbytes))
        # Work / threads + threads * what one costs is least for the root of their quotient.
        threads = min(int((pace.seconds * nbytes / _WAKE_SECONDS) ** 0.5), count - int(turns[0]))
        if threads > 1:
            threads = min(threads, context.num_threads)

    # Ctrl-C ends the caller's share alone: what the others write to lives as long as they do.
    def share(_: int, _held: Any = held) -> None:
        while turns[0] < count and shared(ALONE, 0, turns, most, what):
            pass

    if threads > 1:
        team = team_of(context.thread_pool) if shared.__class__ is Kernel else None
        if team is not None and team.ensure(threads - 1):
            while turns[0] < count and shared(team.board, threads - 1, turns, most, what) is True:
                pass
        if turns[0] < count:  # a stand-in answers, or there is no team: threads of Python's
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
    """Calls a kernel for each sample of a batch, within one call of a compiled loop.

    Args:
        call: the batch.
        kernel: what works on one sample.
        what: its arguments: stores and operands, of which it gets the array of the sample (C-contiguous: a copy where the
            sample is strided); `Seen`, the same in other extents; `Rows`; all else is the same for all samples.
        nbytes: about what is moved; default: the bytes of the arrays.
        order: the numbers of the samples that are worked on; default: all, the largest first.

    Gives `ALL_DONE`.
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
        order = np.arange(n) if nbytes < _ALONE else _largest_first(n, [store for _, store, *_ in memory])
    loop, fields = each_in_turn(kernel), (order, tuple(given))
    in_turns(call.context, loop, fields, len(order), nbytes, (memory, what), call.pace(kernel))
    return ALL_DONE


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
    call.in_turns(gather_turns, (sources, ends, target), -(-nbytes // PIECE), 2 * nbytes, (held, out))
