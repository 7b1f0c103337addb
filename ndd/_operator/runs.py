"""Samples of different shapes, as many in one call of a compiled loop as a thread gets.

A task for each sample is some Python and two or three hand-overs of the interpreter between threads: 64 spectrograms took
three quarters of their time for that. For samples of one shape `.cpu_batch` does the same (`pieces.py`), and where a kernel
works on one sample, `turns.py`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ndd._compiled.jit import Kernel
from ndd._compiled.sample_loops import each_in_turn
from ndd._tensor import Store
from ndd._tensor.operand import Operand

if TYPE_CHECKING:
    from ndd._operator.call import Call

_EACH = 2  # runs of a thread, so that one that begins late has less to do
_BYTES = 1 << 17  # of a run, at least


def run_edges(call: Call, input: Operand, nbytes: int) -> np.ndarray:
    """For `each_run_in_turns`: the first samples of runs, and the number of samples, int64. `nbytes`: as there."""
    parts = min(call.n, _EACH * call.threads, nbytes // _BYTES) if nbytes > _BYTES else 1
    return np.array(_edges(input.volumes.offsets, input.volumes.total, parts))


def each_run_in_turns(call: Call, edges: np.ndarray, nbytes: int, kernel: Kernel, *what: Any, held: Any) -> None:
    """`kernel(first, last, *what)` for each run, the samples of the batch from `first` up to `last`, inside one call of a compiled
    loop: for kernels that work on several samples side by side. `nbytes` is what is read and written, about; `held`: all of
    whose memory the kernel knows addresses."""
    order, fields = np.arange(len(edges) - 1), (edges[:-1], edges[1:], *[(one,) for one in what])
    call.in_turns(each_in_turn(kernel), (order, fields), len(order), nbytes, (held, what))


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
