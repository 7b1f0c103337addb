"""`ChunkStore`: records in chunks that are decoded whole, such as row groups and compressed shards."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from ndd._execution.memoize import Memoized
from ndd.io.object_store import connections
from ndd.readers.stores.records import BYTES_OF_STORES, THREADS_OF_STORES, BatchedStore, Records

_KEPT_BYTES = 1 << 28  # of decoded chunks, so that a shuffle with a buffer decodes a chunk once
_MOST_KEPT = 256  # chunks
_LEAST_KEPT = 2


class ChunkStore(BatchedStore):
    """Records of which several are decoded together. The chunks that were used last stay decoded.

    A subclass says how a chunk is decoded (`load`) and gives rows of it (`rows`).

    Args:
        counts: the number of records of each chunk.
        largest: the bytes of the largest chunk, decoded; about.
        remote: whether the chunks lie in an object store.
    """

    def __init__(self, counts: np.ndarray, largest: int, remote: bool):
        self.firsts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        limit = min(max(_KEPT_BYTES // max(largest, 1), _LEAST_KEPT), _MOST_KEPT)
        self._slots = Memoized(_Slot, limit=limit)
        self.threads = 2  # one decodes the next chunk while the other takes rows of the last
        if remote:  # a thread for each chunk that is on its way
            self.at_once, self.bytes_together = connections(), BYTES_OF_STORES
            self.threads = min(THREADS_OF_STORES, limit)

    def load(self, chunk: int) -> Any:
        """A chunk, decoded."""
        raise NotImplementedError

    def rows(self, loaded: Any, rows: np.ndarray) -> Records:
        """Some rows of a decoded chunk."""
        raise NotImplementedError

    def __len__(self) -> int:
        return int(self.firsts[-1])

    def chunk_of(self, number: int) -> tuple[int, int]:
        """The chunk that a record lies in, and its row there."""
        chunk = int(np.searchsorted(self.firsts, number, "right")) - 1
        return chunk, number - int(self.firsts[chunk])

    def records(self, numbers: Sequence[int]) -> Records:
        """Several records, chunk by chunk."""
        listed = np.asarray(numbers, np.int64)
        chunks = np.searchsorted(self.firsts, listed, "right") - 1
        order = np.argsort(chunks, kind="stable")
        starts = np.flatnonzero(np.diff(chunks[order], prepend=-1))
        groups = np.split(order, starts[1:])
        parts = [self._of_chunk(int(chunks[places[0]]), listed[places]) for places in groups]
        return Records.joined(parts).picked(np.argsort(order))

    def _of_chunk(self, chunk: int, numbers: np.ndarray) -> Records:
        try:
            with self._slots.using(chunk) as slot:
                return self.rows(slot.filled(self.load, chunk), numbers - self.firsts[chunk])
        except Exception as error:
            return Records.of([error] * len(numbers))

    def close(self) -> None:
        """Forgets the decoded chunks."""
        self._slots.clear()


class _Slot:
    """A place for a decoded chunk. One thread fills it; others that want the same chunk wait, and only they."""

    def __init__(self, chunk: int):
        self._lock = threading.Lock()
        self._value: Any = None

    def filled(self, load: Any, chunk: int) -> Any:
        with self._lock:
            if self._value is None:
                self._value = load(chunk)
            return self._value
