"""Several coming batches as one: for what a lookahead does with them Python works once, and decoders get more at a time.

A batch of 64 pictures lasted 3.3 ms on an H200, of which Python had 2.4 on one thread or another: threads waited for the
interpreter, not for the GPU. Four batches worked on as one of 256 take hardly more of it than one: 26,200 images/s of
random_resized_crop instead of 18,200.

What comes out is cut into the batches again, each in memory of its own: nobody can see that they were made together.
That holds for operators with which a sample has its result whatever else is in the batch (`Operator.apart`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ndd._tensor import Store
from ndd._tensor.dtype import torch_dtype
from ndd._tensor.memory import device_empty
from ndd._tensor.packed import Packed
from ndd._tensor.store import address, is_contiguous

_SMALL = 1 << 12  # elements: fewer are copied to be one array


class Together:
    """In place of the invocation that several coming batches came from. It holds what they consist of, but not them.

    Attributes:
        n: how many samples they have together.
    """

    finished, error, queued, begun, link, work = True, None, True, True, None, None

    def __init__(self, batches: Sequence[Store]):
        self._sources = [store.source_info for store in batches]
        self._counts = [store.n for store in batches]
        self.n = sum(self._counts)
        self._store = _as_one(batches)
        if all(self._sources):
            self._store.source_info = _Sources(self._sources)  # type: ignore[assignment]

    def result(self, index: int) -> Store:
        """The samples of all batches."""
        return self._store

    def draws(self, places: Sequence[Any]) -> Draws:
        """What a random operator draws for all of them: for each batch at one of `places`."""
        return Draws(places, self._counts)

    def cut(self, found: Store, stream: Any) -> list[Store] | None:
        """A result as the batches that it consists of. On a GPU `stream`, on which it was made, copies them. None where
        samples were left out."""
        if found.n != self.n or found.dropped or found.partial or not found.batched:
            return None
        if not found.on_cpu and found.whole is not None and not is_contiguous(found.whole):
            return None
        parts, start = [], 0
        for number, count in enumerate(self._counts):
            rows = slice(start, start + count)
            start += count
            part = Store(found.dtype, found.layout, found.device, found.shape_array[rows])
            offset, size = int(found.volumes.offsets[rows.start]), int(np.add.reduce(found.sizes[rows]))
            if found.packed is not None:
                packed = found.packed
                part.packed = Packed(packed.buffers, packed.which[rows], packed.starts[rows], packed.shapes[rows])
            elif found.whole is not None:
                shape = (count, *found.whole.shape[1:])
                part.whole = found.whole[rows] if found.on_cpu else _copied(found, found.whole, offset, shape, stream)
            elif found.flat is not None:
                flat = found.flat
                end = offset + size
                part.flat = flat[offset:end] if found.on_cpu else _copied(found, flat, offset, (size,), stream)
            else:
                part.parts = (found.parts or [])[rows]
            if found.source_info is not None:
                theirs = found.source_info.__class__ is _Sources
                part.source_info = self._sources[number] if theirs else found.source_info[rows]
            part.scales = None if found.scales is None else found.scales[rows]
            part.stream, part.ready = found.stream, found.ready
            parts.append(part)
        return parts


class Draws:
    """What a call draws for several batches: for each as a call for it alone."""

    __slots__ = ("_counts", "_places")

    def __init__(self, places: Sequence[Any], counts: Sequence[int]):
        self._places, self._counts = places, counts

    def streams(self, n: int) -> np.ndarray:
        """The streams of all samples, as `random.streams.Draws` gives them."""
        if n != sum(self._counts):  # frames of videos, for example: nobody knows which of them are of which batch
            raise ValueError(f"expected {sum(self._counts)} samples of {len(self._counts)} batches, got {n}")
        found, start = np.empty((n, 4), np.uint64), 0
        for place, count in zip(self._places, self._counts, strict=True):
            found[start : start + count] = place.streams(count)
            start += count
        return found


class _Sources(Sequence[Any]):
    """Where the samples of several batches came from; asked for in errors alone."""

    def __init__(self, parts: Sequence[Sequence[Any]]):
        self._parts = parts

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __getitem__(self, place: Any) -> Any:
        return [source for part in self._parts for source in part][place]


def _as_one(batches: Sequence[Store]) -> Store:
    first = batches[0]
    shapes = np.concatenate([store.shape_array for store in batches])
    found = Store(first.dtype, first.layout, first.device, shapes)
    if all([store.packed is not None for store in batches]):
        found.packed = Packed.joined([store.packed for store in batches])
    elif found.on_cpu and found.element_count() <= _SMALL and _all_of_one_shape(batches):
        found.whole = np.concatenate([store.whole for store in batches])
    else:
        found.parts = [array for store in batches for array in store.arrays()]
    if all([store.scales is not None for store in batches]):
        found.scales = [scale for store in batches for scale in store.scales or ()]
    return found


def _all_of_one_shape(batches: Sequence[Store]) -> bool:
    """Whether the samples of all batches have one shape, and those of each lie in one array."""
    first = batches[0].whole
    return first is not None and all([s.whole is not None and s.whole.shape[1:] == first.shape[1:] for s in batches])


def _copied(found: Store, memory: Any, offset: int, shape: tuple[int, ...], stream: Any) -> Any:
    """A tensor of its own with the elements of `memory` from `offset` on. Views would share its memory, and its version, by
    which torch tells whether what a gradient needs was written to."""
    from ndd._cuda import compile

    made = device_empty(shape, torch_dtype(found.dtype), found.device)
    width = found.dtype.bytes
    compile.copy_on_gpu(made.data_ptr(), address(memory) + offset * width, prod(shape) * width, stream.handle)
    return made
