"""`ChunkStore`: records in chunks that are decoded as a whole, such as row groups and compressed shards."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ndd._execution.memoize import Memoized
from ndd.io.object_store import connections
from ndd.readers.stores.records import THREADS_OF_STORES, BatchedStore, Jobs, Records, detached

_KEPT_BYTES = 1 << 28  # of decoded chunks, so that a shuffle with a buffer decodes a chunk once
_MOST_KEPT = 256  # chunks
_LEAST_KEPT = 2
# Threads that wait for chunks of an object store. Batches share chunks, so about half of the threads wait for another's request.
_THREADS = 2 * THREADS_OF_STORES
_TOGETHER = (
    1 << 24
)  # bytes of a store's rows that are read together: shuffled, they lie in ten chunks, and each takes 0.3 ms
_REST = 4  # a chunk is given up when a quarter of its rows is left: a shuffle with a buffer asks for the last ones much later


class ChunkStore(BatchedStore):
    """Records of which several are decoded together. The most recently used chunks stay decoded. If there are more chunks than
    that, the one of which most rows have been asked for is dropped first, and its other rows are kept; and rows may be given to
    their batch without a copy, once: a second request decodes the chunk again.

    A subclass decodes a chunk (`load`), returns rows of it (`rows`) and names them (`source_in`).

    Args:
        counts: the number of records of each chunk.
        largest: the approximate size of the largest decoded chunk, in bytes.
        remote: whether the chunks are in an object store.
    """

    def __init__(self, counts: np.ndarray, largest: int, remote: bool):
        self.firsts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self.record_bytes = largest // max(int(counts.max(initial=1)), 1)
        mean = int(self.firsts[-1]) * self.record_bytes // max(len(counts), 1)
        limit = min(max(_KEPT_BYTES // max(mean, 1), _LEAST_KEPT), _MOST_KEPT)
        self._slots = Memoized(Slot, limit=limit)
        self._loaded = np.zeros(len(counts), bool)
        self._rests = _Rests() if len(counts) > limit else None
        self.threads = 2  # one decodes the next chunk while the other takes rows of the current one
        if remote:  # a thread for each requested chunk
            self.at_once, self.bytes_together = connections(), _TOGETHER
            self.threads = min(_THREADS, limit)

    def load(self, chunk: int) -> Any:
        """A chunk, decoded."""
        raise NotImplementedError

    def rows(self, loaded: Any, rows: np.ndarray) -> Records:
        """Some rows of a decoded chunk, as places in its buffers."""
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
        """A job for each chunk, so that none waits until another has been decoded; None if a thread has little to do."""
        reading = _Reading(self, numbers)
        return reading if self.at_once > 1 or (reading.count > 1 and not self._loaded[reading.chunks].all()) else None

    def of_chunk(self, chunk: int, numbers: np.ndarray) -> Records:
        """Some records of a chunk; if it cannot be read, its error in the place of each."""
        rows = numbers - self.firsts[chunk]
        try:
            if self._rests is not None:
                kept = self._rests.picked(chunk, rows)
                return self._of_loaded(chunk, rows, self._rests) if kept is None else kept
            with self._slots.using(chunk) as slot:
                return detached(self.rows(self._filled(slot, chunk), rows))[0]
        except Exception as error:
            return Records.of([error] * len(numbers))

    def _filled(self, slot: Slot, chunk: int) -> Any:
        loaded = slot.filled(self.load, chunk)
        self._loaded[chunk] = True
        return loaded

    def _of_loaded(self, chunk: int, rows: np.ndarray, rests: _Rests) -> Records:
        with self._slots.using(chunk) as slot:
            with slot.lock:
                records = rests.picked(chunk, rows)  # another thread has just released the chunk
                if records is not None:
                    return records
                if slot.lent is not None and slot.lent[rows].any():
                    slot.empty()
                loaded = self._filled(slot, chunk)
                if slot.asked is None or slot.lent is None:
                    slot.asked, slot.lent = np.zeros((2, int(self.firsts[chunk + 1] - self.firsts[chunk])), bool)
                lent, once = slot.lent, len(set(rows.tolist())) == len(rows)
                lent[rows] = slot.asked[rows] = True
                left = np.flatnonzero(~slot.asked)
                if len(left) * _REST <= len(slot.asked):
                    with contextlib.suppress(Exception):  # rows that were not requested may be damaged
                        rests.put(chunk, left, detached(self.rows(loaded, left))[0] if len(left) else None)
                        slot.empty()
                        self._loaded[chunk] = False
            records, stay = detached(self.rows(loaded, rows), once)
            lent[rows] = stay
            return records

    def close(self) -> None:
        """Drops the decoded chunks."""
        self._slots.clear()
        self._loaded[:] = False
        if self._rests is not None:
            self._rests.clear()


class _Reading(Jobs):
    """The reading of some records: a job for each chunk of `chunks`."""

    def __init__(self, store: ChunkStore, numbers: Sequence[int]):
        self._store = store
        listed = np.asarray(numbers, np.int64)
        chunks = np.searchsorted(store.firsts, listed, "right") - 1
        self._order = np.argsort(chunks, kind="stable")
        starts = np.flatnonzero(np.diff(chunks[self._order], prepend=-1))
        groups = np.split(self._order, starts[1:])
        self._work = [(int(chunks[places[0]]), listed[places]) for places in groups]
        self.chunks = [chunk for chunk, _ in self._work]
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
    chunk wait.

    Attributes:
        lock: held while it is filled.
        asked: the rows of a chunk that were requested since it was filled; None if none were.
        lent: those of them whose memory is in use elsewhere.
    """

    def __init__(self, chunk: Any):
        self.lock = threading.RLock()
        self.asked: np.ndarray | None = None
        self.lent: np.ndarray | None = None
        self._value: Any = None

    def filled(self, load: Callable[[Any], Any], chunk: Any) -> Any:
        """`load(chunk)`, computed once."""
        with self.lock:
            if self._value is None:
                self._value = load(chunk)
            return self._value

    def empty(self) -> None:
        """Forgets the value."""
        self._value = self.asked = self.lent = None


class _Rests:
    """The remaining rows of chunks, each until it is requested, up to a limit of bytes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, tuple[np.ndarray, Records, np.ndarray]] = OrderedDict()

    def put(self, chunk: int, rows: np.ndarray, records: Records | None) -> None:
        """Keeps some rows of a chunk, ascending; None for none."""
        with self._lock:
            self._kept.pop(chunk, None)
            if records is not None:
                self._kept[chunk] = rows, records, np.zeros(len(rows), bool)
            while sum(records.nbytes for _, records, _ in self._kept.values()) > _KEPT_BYTES:
                self._kept.popitem(last=False)

    def picked(self, chunk: int, rows: np.ndarray) -> Records | None:
        """Some rows of a chunk, if all of them are here and none has been returned before."""
        with self._lock:
            kept, records, asked = self._kept.get(chunk, (None, None, None))
            if kept is None or records is None or asked is None or not np.isin(rows, kept).all():
                return None
            places = np.searchsorted(kept, rows)
            if asked[places].any():
                return None
            asked[places] = True
            if asked.all():
                del self._kept[chunk]
        return detached(records.picked(places), len(set(rows.tolist())) == len(rows))[0]

    def clear(self) -> None:
        """Forgets all."""
        with self._lock:
            self._kept.clear()
