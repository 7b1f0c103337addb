"""Samples of different shapes, as many in one call of a compiled loop as a thread gets.

A task for each sample is some Python and two or three hand-overs of the interpreter between threads: 64 spectrograms took
three quarters of their time for that. For samples of one shape `.cpu_batch` does the same (`pieces.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ndd._operator.naming import raise_first
from ndd._operator.on_cpu import allocated
from ndd._tensor import Store
from ndd._tensor.operand import Operand

if TYPE_CHECKING:
    from ndd._operator.call import Call

ALL_DONE = np.empty(0, np.int64)
"""What `.cpu_turns` gives where no sample is left."""

_EACH = 3  # runs of a thread, so that one that begins late has less to do
_BYTES = 1 << 17  # of a run, at least

Work = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, slice], None]


def in_runs(call: Call, input: Operand, work: Work, shapes: np.ndarray | None = None) -> Store:
    """The output of a call, of `shapes`, int64 `[N, ndim]`; else it has those of `input`.

    `work(x, out, starts, sizes, targets, run)` gets all elements, 1-D (`x` may have others between them, see
    `Operand.elements`), for the samples of a run where they begin in `x`, how many elements they have there and where they begin
    in `out`, int64, and which of the batch they are.
    """
    x, starts = input.elements()
    sizes = input.volumes.sizes
    store = allocated(input.shapes if shapes is None else shapes, call.outs[0])
    targets = input.volumes.offsets if shapes is None else store.volumes.offsets
    out = flat_of(store)
    nbytes = input.volumes.total * x.itemsize + out.nbytes
    each_run(call, input, nbytes, lambda run: work(x, out, starts[run], sizes[run], targets[run], run))
    return store


def each_run(call: Call, input: Operand, nbytes: int, work: Callable[[slice], None]) -> None:
    """`work(run)` for each run, the samples of the batch that a slice tells; `nbytes` are what is read and written in all."""
    starts, total = input.volumes.offsets, input.volumes.total
    edges = _edges(starts, total, min(call.n, _EACH * call.threads, nbytes // _BYTES) if nbytes > _BYTES else 1)
    raise_first(call.spread(lambda k: work(slice(edges[k], edges[k + 1])), len(edges) - 1, nbytes))


def operands(call: Call, stores: list[Any], n: int) -> list[Operand]:
    """The inputs of `.cpu_turns` for `n` samples (the frames of video count as samples)."""
    return [Operand(store, spec, n) for store, spec in zip(stores, call.settled.specs, strict=True)]


def aligned_places(input: Operand) -> np.ndarray | None:
    """The addresses of the samples, int64 `[N]`, wherever they lie; None where one is no multiple of an element's size."""
    places = input.pointers()
    return None if (places % input.dtype.bytes).any() else places


def flat_of(store: Store) -> np.ndarray:
    """The elements of what `allocated` gives."""
    return store.whole.reshape(-1) if store.flat is None else store.flat


def _edges(starts: np.ndarray, total: int, parts: int) -> list[int]:
    """The first samples of runs of about as many elements each, and the number of samples."""
    if parts < 2:
        return [0, len(starts)]
    marks = np.arange(parts) * (total / parts)
    cuts = [*np.searchsorted(starts, marks).tolist(), len(starts)]
    return [0] + [end for start, end in pairwise(cuts) if end > start]
