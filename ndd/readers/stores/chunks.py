"""`ChunkStore`: records in chunks that are decoded as a whole, such as row groups and compressed shards."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ndd._execution.memoize import Memoized
from ndd.io.object_store import connections
from ndd.readers.stores.records import BYTES_OF_STORES, THREADS_OF_STORES, BatchedStore, Jobs, Records

_KEPT_BYTES = 1 << 28  # of decoded chunks, so that a shuffle with a buffer decodes a chunk once
_MOST_KEPT = 256  # chunks
_LEAST_KEPT = 2
# Threads that wait for chunks of an object store. Batches share chunks, so about half of the threads wait for another's request.
_THREADS = 2 * THREADS_OF_STORES


class ChunkStore(BatchedStore):
    """Records of which several are decoded together. The most recently used chunks stay decoded.

    A subclass decodes a chunk (`load`), returns rows of it (`rows`) and names them (`source_in`).

    Args:
        counts: the number of records of each chunk.
        largest: the approximate size of the largest decoded chunk, in bytes.
        remote: whether the chunks lie in an object store.
    """

    def __init__(self, counts: np.ndarray, largest: int, remote: bool):
        self.firsts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        limit = min(max(_KEPT_BYTES // max(largest, 1), _LEAST_KEPT), _MOST_KEPT)
        self._slots = Memoized(Slot, limit=limit)
        self.threads = 2  # one decodes the next chunk while the other takes rows of the current one
        if remote:  # a thread for each requested chunk
            self.at_once, self.bytes_together = connections(), BYTES_OF_STORES
            self.threads = min(_THREADS, limit)

    def load(self, chunk: int) -> Any:
        """A chunk, decoded."""
        raise NotImplementedError

    def rows(self, loaded: Any, rows: np.ndarray) -> Records:
        """Some rows of a decoded chunk."""
        raise NotImplementedError

    def __len__(self) -> int:
        return int(self.firsts[-1])

    def source_in(self, chunk: int, row: int) -> str:
        """The origin of a row of a chunk."""
        raise NotImplementedError

    def source(self, number: int) -> str:
        """The origin of a record, see `source_in`."""
        return self.sources([number])[0]

    def sources(self, numbers: Sequence[int]) -> list[str]:
        """The sources of several records."""
        chunks = np.searchsorted(self.firsts, numbers, "right") - 1
        rows = np.asarray(numbers, np.int64) - self.firsts[chunks]
        return [self.source_in(chunk, row) for chunk, row in zip(chunks.tolist(), rows.tolist(), strict=True)]

    def records(self, numbers: Sequence[int]) -> Records:
        """Several records, chunk by chunk."""
        reading = _Reading(self, numbers)
        for job in range(reading.count):
            reading.run(job)
        return reading.records()

    def jobs(self, numbers: Sequence[int]) -> Jobs | None:
        """A job for each chunk in an object store, so that no chunk waits for the response to another."""
        return _Reading(self, numbers) if self.at_once > 1 else None

    def of_chunk(self, chunk: int, numbers: np.ndarray) -> Records:
        """Some records of a chunk; if it cannot be read, its error in the place of each."""
        try:
            with self._slots.using(chunk) as slot:
                return self.rows(slot.filled(self.load, chunk), numbers - self.firsts[chunk])
        except Exception as error:
            return Records.of([error] * len(numbers))

    def close(self) -> None:
        """Drops the decoded chunks."""
        self._slots.clear()


class _Reading(Jobs):
    """The reading of some records: a job for each chunk."""

    def __init__(self, store: ChunkStore, numbers: Sequence[int]):
        self._store = store
        listed = np.asarray(numbers, np.int64)
        chunks = np.searchsorted(store.firsts, listed, "right") - 1
        self._order = np.argsort(chunks, kind="stable")
        starts = np.flatnonzero(np.diff(chunks[self._order], prepend=-1))
        groups = np.split(self._order, starts[1:])
        self._work = [(int(chunks[places[0]]), listed[places]) for places in groups]
        self._parts: list[Any] = [None] * len(groups)
        self.count = len(groups)

    def run(self, job: int) -> None:
        """Reads the records of a chunk."""
        self._parts[job] = self._store.of_chunk(*self._work[job])

    def records(self) -> Records:
        """All records, in the order of `numbers`."""
        return Records.joined(self._parts).picked(np.argsort(self._order))


class Slot:
    """Holds a decoded chunk, or anything else that takes long to compute. One thread fills it; only threads that need the same
    chunk wait."""

    def __init__(self, chunk: Any):
        self._lock = threading.Lock()
        self._value: Any = None

    def filled(self, load: Callable[[Any], Any], chunk: Any) -> Any:
        """`load(chunk)`, computed once."""
        with self._lock:
            if self._value is None:
                self._value = load(chunk)
            return self._value
