"""`PieceStore`: records in pieces that are decoded whole, such as row groups and compressed shards."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from ndd._execution.memoize import Memoized
from ndd.io.object_store import connections
from ndd.readers.stores.records import BYTES_OF_STORES, THREADS_OF_STORES, BatchedStore, Records

_KEPT_BYTES = 1 << 28  # of decoded pieces, so that a shuffle with a buffer decodes a piece once
_MOST_KEPT = 256  # pieces
_LEAST_KEPT = 2


class PieceStore(BatchedStore):
    """Records of which several are decoded together. The pieces that were used last stay decoded.

    A subclass says how a piece is decoded (`load`) and gives rows of it (`rows`).

    Args:
        counts: the number of records of each piece.
        largest: the bytes of the largest piece, decoded; about.
        remote: whether the pieces lie in an object store.
    """

    def __init__(self, counts: np.ndarray, largest: int, remote: bool):
        self.firsts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        limit = min(max(_KEPT_BYTES // max(largest, 1), _LEAST_KEPT), _MOST_KEPT)
        self._slots = Memoized(_Slot, limit=limit)
        self.threads = 2  # one decodes the next piece while the other takes rows of the last
        if remote:  # a thread for each piece that is on its way
            self.at_once, self.bytes_together = connections(), BYTES_OF_STORES
            self.threads = min(THREADS_OF_STORES, limit)

    def load(self, piece: int) -> Any:
        """A piece, decoded."""
        raise NotImplementedError

    def rows(self, loaded: Any, rows: np.ndarray) -> Records:
        """Some rows of a decoded piece."""
        raise NotImplementedError

    def __len__(self) -> int:
        return int(self.firsts[-1])

    def piece_of(self, number: int) -> tuple[int, int]:
        """The piece that a record lies in, and its row there."""
        piece = int(np.searchsorted(self.firsts, number, "right")) - 1
        return piece, number - int(self.firsts[piece])

    def records(self, numbers: Sequence[int]) -> Records:
        """Several records, piece by piece."""
        listed = np.asarray(numbers, np.int64)
        pieces = np.searchsorted(self.firsts, listed, "right") - 1
        order = np.argsort(pieces, kind="stable")
        starts = np.flatnonzero(np.diff(pieces[order], prepend=-1))
        groups = np.split(order, starts[1:])
        parts = [self._of_piece(int(pieces[places[0]]), listed[places]) for places in groups]
        return Records.joined(parts).picked(np.argsort(order))

    def _of_piece(self, piece: int, numbers: np.ndarray) -> Records:
        try:
            with self._slots.using(piece) as slot:
                return self.rows(slot.filled(self.load, piece), numbers - self.firsts[piece])
        except Exception as error:
            return Records.of([error] * len(numbers))

    def close(self) -> None:
        """Forgets the decoded pieces."""
        self._slots.clear()


class _Slot:
    """A place for a decoded piece. One thread fills it; others that want the same piece wait, and only they."""

    def __init__(self, piece: int):
        self._lock = threading.Lock()
        self._value: Any = None

    def filled(self, load: Any, piece: int) -> Any:
        with self._lock:
            if self._value is None:
                self._value = load(piece)
            return self._value
