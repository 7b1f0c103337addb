"""Coming batches as the inputs of calls that are made ahead: one alone, or several merged into one.

Merged, Python works once for all of them, and decoders get more at a time. A batch of 64 pictures lasted 3.3 ms on an
H200, of which Python took 2.4 on some thread: threads waited for the interpreter, not for the GPU. Four batches merged into one
of 256 take hardly more Python time than one: 26,200 images/s of random_resized_crop instead of 18,200.

The result is split into the batches again, each in its own memory, so that the merging cannot be noticed.
This holds for operators whose result for a sample does not depend on the rest of the batch (`Operator.independent_samples`).
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ndd._cuda import compile
from ndd._tensor import Store
from ndd._tensor.dtype import torch_dtype
from ndd._tensor.memory import device_empty
from ndd._tensor.packed import Packed
from ndd._tensor.store import address, is_contiguous

_SMALL = 1 << 12  # elements: fewer are copied to be one array


class _EndedInvocation:
    """Takes the place of an invocation that has ended."""

    finished, error, queued, begun, loop_position, work = True, None, True, True, None, None


class SingleBatch(_EndedInvocation):
    """One coming batch. The batch refers to the results, so this refers to the batch only weakly.

    Attributes:
        n: its number of samples.
    """

    def __init__(self, store: Store):
        self.n = store.n
        self._store = weakref.ref(store)

    def result(self, index: int) -> Store:
        """The batch's store."""
        store = self._store()
        if store is None:
            raise RuntimeError("the reader has dropped this batch")
        return store

    def draws(self, places: Sequence[Any]) -> Any:
        """The draws of a random operator for this batch, at the only one of `places`."""
        return places[0]


class MergedBatches(_EndedInvocation):
    """Several coming batches as one. It refers to their memory, not to the batches, which refer to the results.

    Attributes:
        n: their number of samples together.
    """

    def __init__(self, batches: Sequence[Store]):
        self._sources = [store.source_info for store in batches]
        self._counts = [store.n for store in batches]
        self.n = sum(self._counts)
        self._store = _merged(batches)
        if all(self._sources):
            self._store.source_info = _Sources(self._sources)  # type: ignore[assignment]

    def result(self, index: int) -> Store:
        """The samples of all batches."""
        return self._store

    def draws(self, places: Sequence[Any]) -> Any:
        """The draws of a random operator for all batches, each at one of `places`."""
        return None if places[0] is None else MergedDraws(places, self._counts)

    def split(self, merged: Store, stream: Any) -> list[Store] | None:
        """A result as the batches that it consists of. On a GPU `stream`, on which it was made, copies them. None where
        samples were left out."""
        if merged.n != self.n or merged.dropped or merged.partial or not merged.batched:
            return None
        if not merged.on_cpu and merged.whole is not None and not is_contiguous(merged.whole):
            return None
        parts, start = [], 0
        for number, count in enumerate(self._counts):
            rows = slice(start, start + count)
            start += count
            part = _rows(merged, rows, stream)
            if merged.source_info.__class__ is _Sources:
                part.source_info = self._sources[number]
            elif merged.source_info is not None:
                part.source_info = merged.source_info[rows]
            parts.append(part)
        return parts


class MergedDraws:
    """The draws of a call for merged batches: each batch gets the numbers that a call for it alone would draw."""

    __slots__ = ("_counts", "_places")

    def __init__(self, places: Sequence[Any], counts: Sequence[int]):
        self._places, self._counts = places, counts

    def streams(self, n: int) -> np.ndarray:
        """The streams of all samples, as `random.streams.Draws` gives them."""
        if n != sum(self._counts):  # frames of videos, for example: it is unknown which belong to which batch
            raise ValueError(f"expected {sum(self._counts)} samples of {len(self._counts)} batches, got {n}")
        return np.concatenate([place.streams(count) for place, count in zip(self._places, self._counts, strict=True)])


class _Sources(Sequence[Any]):
    """The sources of the samples of merged batches, for errors."""

    def __init__(self, parts: Sequence[Sequence[Any]]):
        self._parts = parts

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __getitem__(self, place: Any) -> Any:
        return [source for part in self._parts for source in part][place]


def _merged(batches: Sequence[Store]) -> Store:
    first = batches[0]
    shapes = np.concatenate([store.shape_array for store in batches])
    merged = Store(first.dtype, first.layout, first.device, shapes)
    if all([store.packed is not None for store in batches]):
        merged.packed = Packed.joined([store.packed for store in batches])
    elif merged.on_cpu and merged.element_count() <= _SMALL and _all_of_one_shape(batches):
        merged.whole = np.concatenate([store.whole for store in batches])
    else:
        merged.parts = [array for store in batches for array in store.arrays()]
    if all([store.scales is not None for store in batches]):
        merged.scales = [scale for store in batches for scale in store.scales or ()]
    return merged


def _all_of_one_shape(batches: Sequence[Store]) -> bool:
    """Whether the samples of all batches have one shape, and each batch is one array."""
    first = batches[0].whole
    return first is not None and all([s.whole is not None and s.whole.shape[1:] == first.shape[1:] for s in batches])


def _rows(store: Store, rows: slice, stream: Any) -> Store:
    """Some consecutive samples of a batch; on a GPU in their own memory."""
    part = Store(store.dtype, store.layout, store.device, store.shape_array[rows])
    offset, size = int(store.volumes.offsets[rows.start]), int(np.add.reduce(store.sizes[rows]))
    if store.packed is not None:
        packed = store.packed
        part.packed = Packed(packed.buffers, packed.which[rows], packed.starts[rows], packed.shapes[rows])
    elif store.whole is not None:
        shape = (rows.stop - rows.start, *store.whole.shape[1:])
        part.whole = store.whole[rows] if store.on_cpu else _copied(store, store.whole, offset, shape, stream)
    elif store.flat is not None:
        end = offset + size
        part.flat = store.flat[offset:end] if store.on_cpu else _copied(store, store.flat, offset, (size,), stream)
    else:
        part.parts = (store.parts or [])[rows]
    part.scales = None if store.scales is None else store.scales[rows]
    part.stream, part.ready = store.stream, store.ready
    return part


def _copied(store: Store, memory: Any, offset: int, shape: tuple[int, ...], stream: Any) -> Any:
    """A tensor of its own with the elements of `memory` from `offset` on. Views would share its memory, and its version, by
    which torch tells whether what a gradient needs was written to."""
    copy = device_empty(shape, torch_dtype(store.dtype), store.device)
    width = store.dtype.bytes
    compile.copy_on_gpu(copy.data_ptr(), address(memory) + offset * width, prod(shape) * width, stream.handle)
    return copy
