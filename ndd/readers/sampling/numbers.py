"""`Numbers`: sample numbers that are computed on demand, for orders that are too long to keep in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Union

import numpy as np

LISTED = 1 << 22  # samples: an order of up to this length is an array, 32 MB
_BLOCK = 4096  # numbers that are computed at once

Listing = Union[np.ndarray, "Numbers"]


class Numbers:
    """A sequence of sample numbers: `at(places)` for the places of a range.

    Args:
        places: where in the order the numbers stand.
        at: computes the numbers at some places, int64.
    """

    def __init__(self, places: range, at: Callable[[np.ndarray], np.ndarray]):
        self._places, self._at = places, at
        self._block: tuple[int, np.ndarray] = (0, np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Numbers(self._places[index], self._at)
        if isinstance(index, np.ndarray):
            return self._at(self._places.start + self._places.step * index.astype(np.int64))
        return int(self._at(np.array([self._places[index]], np.int64))[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        places = np.arange(self._places.start, self._places.stop, self._places.step)
        return self._at(places).astype(dtype or np.int64, copy=False)

    def taken(self, start: int, stop: int) -> np.ndarray:
        """The numbers from place `start` to `stop`; the ones after them are computed along with them."""
        stop = min(stop, len(self))
        first, block = self._block
        if not first <= start <= stop <= first + len(block):
            first, block = start, np.asarray(self[start : max(stop, start + _BLOCK)])
            self._block = first, block
        return block[start - first : stop - first]


def taken(listing: Listing, start: int, stop: int) -> np.ndarray:
    """The numbers of a listing from place `start` to `stop`."""
    return listing[start:stop] if isinstance(listing, np.ndarray) else listing.taken(start, stop)


def counted(places: range) -> Listing:
    """The numbers of a range, as a listing."""
    if len(places) <= LISTED:
        return np.arange(places.start, places.stop, places.step)
    return Numbers(places, lambda numbers: numbers)


def joined(parts: Sequence[Listing], added: int = 0) -> Listing:
    """Several listings, one after the other, with `added` added to each number."""
    parts = [part for part in parts if len(part)]
    total = sum(map(len, parts))
    if total <= LISTED:
        return np.concatenate([np.empty(0, np.int64), *map(np.asarray, parts)]) + added
    starts = np.cumsum([0, *map(len, parts)])
    return Numbers(range(total), lambda places: _in_parts(parts, starts, places) + added)


def _in_parts(parts: Sequence[Listing], starts: np.ndarray, places: np.ndarray) -> np.ndarray:
    which = np.searchsorted(starts, places, "right") - 1
    numbers = np.empty(len(places), np.int64)
    for k in np.unique(which).tolist():
        inside = which == k
        numbers[inside] = parts[k][places[inside] - starts[k]]
    return numbers
