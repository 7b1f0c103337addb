"""`RecordStore`: the number of records of a data set, and record i. `Records`: several records that were read together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, Protocol

import numpy as np

from ndd._execution.errors import raise_signalled
from ndd._tensor import Packed
from ndd._tensor.memory import host_empty
from ndd._tensor.store import volumes
from ndd.readers.output import Column, Record

# One thread reads page-cached files ten times faster than a GPU decodes them, and more threads take cores from decoding: starting
# with four threads costs an H200's loop 10 to 25 %. More threads start when the user has to wait, as with a slow disk.
MOST_THREADS = 4
BYTES_OF_STORES = 1 << 22  # of neighbours that are requested together, as two requests
THREADS_OF_STORES = 16  # some request the next objects while others wait for the last, slow objects of earlier batches
_OF_AN_OBJECT = 200  # the approximate bytes of a text or another object
_HELD = 4  # times its own bytes that a batch may keep of a decoded chunk
_SMALL = 64  # bytes below which copying a record costs less than keeping it as an array of its own


class Records(Sequence[Any]):
    """Several records, stored by output, as a batch needs them: an array object for each record of 1 kB costs more than reading
    it. As a sequence it yields the records one by one, with an exception for each record that could not be read.

    Attributes:
        columns: for each output, the samples of the readable records.
        faults: the exceptions of the other records, by place, in ascending order.
    """

    __slots__ = ("_count", "_listed", "columns", "faults")

    def __init__(self, count: int, columns: Sequence[Column], faults: Mapping[int, BaseException]):
        self._count = count
        self.columns, self.faults = list(columns), faults
        self._listed: list[Any] | None = None

    @classmethod
    def from_columns(cls, columns: Sequence[Column], faults: Mapping[int, BaseException] | None = None) -> Records:
        """Records from columns with a sample for every record; the samples in the places of the faults are ignored."""
        every = cls(len(columns[0]), columns, {})
        if not faults:
            return every
        sound = every.picked([place for place in range(len(every)) if place not in faults])
        return cls(len(every), sound.columns, dict(sorted(faults.items())))

    @classmethod
    def of(cls, listed: Sequence[Record | BaseException]) -> Records:
        """Records that were read one by one. (`Records` are returned unchanged.)"""
        if isinstance(listed, Records):
            return listed
        faults = {place: record for place, record in enumerate(listed) if isinstance(record, BaseException)}
        sound = [record for record in listed if not isinstance(record, BaseException)]
        return cls(len(listed), [_column(list(samples)) for samples in zip(*sound, strict=True)], faults)

    @classmethod
    def joined(cls, parts: Sequence[Records]) -> Records:
        """The records of several parts, one after the other."""
        if len(parts) == 1:
            return parts[0]
        faults, count = {}, 0
        for part in parts:
            faults.update({count + place: error for place, error in part.faults.items()})
            count += len(part)
        columns = zip(*(part.columns for part in parts if part.columns), strict=True)
        return cls(count, [_joined(list(pieces)) for pieces in columns], faults)

    def picked(self, places: Sequence[int] | np.ndarray) -> Records:
        """Some of the records, in any order."""
        wanted = rows = np.asarray(places, np.int64)
        faults: dict[int, BaseException] = {}
        if self.faults:
            sound = np.ones(self._count, bool)
            sound[list(self.faults)] = False
            rows = (np.cumsum(sound) - 1)[wanted[sound[wanted]]]
            faults = {k: self.faults[place] for k, place in enumerate(wanted.tolist()) if place in self.faults}
        return Records(len(wanted), [_picked(column, rows) for column in self.columns] if len(rows) else [], faults)

    def without(self, faults: Mapping[int, BaseException]) -> Records:
        """The records without those that turn out to be unreadable later."""
        if not faults:
            return self
        every = {**self.faults, **faults}
        sound = self.picked([place for place in range(self._count) if place not in every])
        return Records(self._count, sound.columns, dict(sorted(every.items())))

    @property
    def nbytes(self) -> int:
        """The approximate memory of the records in bytes, without other content of their buffers."""
        packed = [column for column in self.columns if isinstance(column, Packed)]
        others = [c for c in self.columns if not isinstance(c, Packed)]
        samples = chain.from_iterable([c] if isinstance(c, np.ndarray) else c for c in others)
        total = sum(int(volumes(column.shapes).sum()) * column.dtype.itemsize for column in packed)
        return total + sum(getattr(sample, "nbytes", _OF_AN_OBJECT) for sample in samples)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: Any) -> Any:
        if self._listed is None:
            sound = zip(*(samples_of(column) for column in self.columns), strict=True)
            self._listed = [self.faults[k] if k in self.faults else next(sound) for k in range(self._count)]
        return self._listed[place]


def samples_of(column: Column) -> list[np.ndarray]:
    """The samples of a column one by one, as views."""
    if isinstance(column, Packed):
        return column.arrays()
    return [column[i, ...] for i in range(len(column))] if isinstance(column, np.ndarray) else column


def numbers_of(values: np.ndarray, starts: np.ndarray, counts: np.ndarray) -> np.ndarray | Packed:
    """Lists of numbers, such as labels, stored in `values` one after the other; as one array if all have the same length."""
    count = int(counts[0])
    if len(values) == count * len(counts) and (counts == count).all():
        return values.reshape(len(counts), count)
    return Packed.of(values, starts, counts)


def detached(records: Records, may_stay: bool = False) -> tuple[Records, bool]:
    """Records that do not hold the memory of a whole chunk, since their samples are copied to pooled memory; and whether some
    samples stay where they are.

    Args:
        records: rows of a decoded chunk, as places in its buffers.
        may_stay: whether samples that fill a good part of a buffer stay in it. They must have no other user then: users may
            write to their batches.
    """
    columns = [_detached(column, may_stay) if isinstance(column, Packed) else column for column in records.columns]
    packed = zip(records.columns, columns, strict=True)
    both = [(old, new) for old, new in packed if isinstance(old, Packed) and isinstance(new, Packed)]
    stay = any(first is buffer for old, new in both for first in new.buffers[:1] for buffer in old.buffers)
    return Records(len(records), columns, records.faults), stay


def _detached(samples: Packed, may_stay: bool) -> Packed:
    """Samples that stay are in the first buffers."""
    sizes = volumes(samples.shapes)
    wanted = np.bincount(samples.which, sizes, len(samples.buffers))
    held = np.array([len(buffer) if buffer.flags.writeable else np.inf for buffer in samples.buffers])
    stay = may_stay & (wanted * _HELD >= np.maximum(held, 1))
    kept = [buffer for buffer, stays in zip(samples.buffers, stay.tolist(), strict=True) if stays]
    which, starts = (np.cumsum(stay) - 1)[samples.which], samples.starts.copy()
    moved = np.flatnonzero(~stay[samples.which])
    if len(moved):
        which[moved] = len(kept)
        kept.append(_copied(samples, moved, sizes[moved]))
        starts[moved] = np.add.accumulate(sizes[moved]) - sizes[moved]
    return Packed(kept, which, starts, samples.shapes)


def _copied(samples: Packed, places: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Some samples, one after the other. Neighbours are copied in one piece."""
    which, begins = samples.which[places], samples.starts[places]
    target = host_empty(int(sizes.sum()), samples.dtype)
    far = (begins[1:] != begins[:-1] + sizes[:-1]) | (which[1:] != which[:-1])
    firsts = np.flatnonzero(np.concatenate([[True], far]))
    starts = np.append((np.add.accumulate(sizes) - sizes)[firsts], len(target)).tolist()
    runs = zip(pairwise(starts), which[firsts].tolist(), begins[firsts].tolist(), strict=True)
    for (start, end), buffer, begin in runs:
        target[start:end] = samples.buffers[buffer][begin : begin + end - start]
    return target


def _column(samples: list[np.ndarray]) -> Column:
    """Small samples of one shape (labels) as one array `[N, ...]`, others unchanged."""
    first = samples[0]
    if len(samples) > 1 and isinstance(first, np.ndarray) and first.nbytes <= _SMALL:
        kind = first.shape, first.dtype
        if all((sample.shape, sample.dtype) == kind for sample in samples):
            joined = np.concatenate(samples) if first.ndim else np.array(samples, first.dtype)
            return joined.reshape(len(samples), *first.shape)
    return samples


def _picked(column: Column, places: np.ndarray) -> Column:
    if isinstance(column, Packed):
        return column.picked(places)
    return column[places] if isinstance(column, np.ndarray) else [column[place] for place in places.tolist()]


def _joined(pieces: list[Any]) -> Column:
    """The columns of one output, one after the other; as a list of samples if they differ in type or shape."""
    first = pieces[0]
    if all(isinstance(piece, Packed) and (piece.dtype, piece.ndim) == (first.dtype, first.ndim) for piece in pieces):
        return Packed.joined(pieces)
    kinds = {(piece.dtype, piece.shape[1:]) if isinstance(piece, np.ndarray) else None for piece in pieces}
    if len(kinds) == 1 and None not in kinds:
        return np.concatenate(pieces)
    return [sample for piece in pieces for sample in samples_of(piece)]


class Sources(Sequence[str]):
    """`store.sources(numbers)`, computed on first use: 256 texts take 30 us, and few are ever read."""

    __slots__ = ("_listed", "_numbers", "_store")

    def __init__(self, store: RecordStore, numbers: Sequence[int]):
        self._store, self._numbers = store, numbers
        self._listed: list[str] | None = None

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, place: Any) -> Any:
        if self._listed is None:
            self._listed = self._store.sources(self._numbers)
        return self._listed[place]

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (self[:],)


class Jobs(Protocol):
    """The work of reading some records, divided for several threads.

    Attributes:
        count: the number of pieces of work, at least 1.
    """

    count: int

    def run(self, job: int) -> None:
        """Does a piece of the work, on any thread. `records` reports errors."""
        ...

    def records(self) -> Sequence[Record | BaseException]:
        """The result of `RecordStore.records`, after all pieces are done."""
        ...


class RecordStore:
    """Random access to the records of a data set. A reader subclasses it; `Reader` does the rest.

    Implement `__len__`, `record` and `source`. Methods are called from several threads at once. Build an index in the
    constructor: a reader makes its store once, at the first sample. Keep open files and the like in a
    `Memoized`, as `ContainerStore` does: it opens them again after `close` and in a forked child, and closes no file that a
    thread is reading. A store knows nothing of epochs, batches, shards, shuffling or devices.
    """

    threads = 1
    """The number of threads that read ahead at first; more start when the user has to wait. Raise it if records are expensive to
    compute."""

    at_once = 1
    """The minimum number of records that are requested together, even if batches are smaller. Raise it if many records take as
    long as one, as with remote objects."""

    bytes_together = 0
    """The minimum number of bytes that are requested together, for stores that read neighbours in one request: a request of 50 ms
    is expensive for a record of 1 kB."""

    record_bytes = 0
    """The approximate size of a record in bytes, if an index tells it; 0: unknown until the first records are read."""

    in_turn = False
    """Whether reading a batch begins only after all earlier batches have been read, because records are cheapest in order."""

    def __len__(self) -> int:
        """The number of records."""
        raise NotImplementedError

    def record(self, number: int) -> Record:
        """The outputs of one record in declared order, as C-contiguous arrays that must not change afterwards. Other objects (a
        text, a dict) reach the user unchanged.

        More arrays may follow, for the reader's `_present`.

        Args:
            number: of the record, from 0 to `len(self) - 1`.
        """
        raise NotImplementedError

    def source(self, number: int) -> str:
        """The origin of the record, for `source_info` and errors: a file, or a container and the record's place in it.

        Args:
            number: of the record, from 0 to `len(self) - 1`.
        """
        raise NotImplementedError

    def sources(self, numbers: Sequence[int]) -> list[str]:
        """The sources of several records. Override it if they are cheaper together.

        Args:
            numbers: of the records.
        """
        return [self.source(number) for number in numbers]

    def records(self, numbers: Sequence[int]) -> Records | Sequence[Record | BaseException]:
        """Several records. A record that cannot be read is an exception in its place, so that it harms no other.

        Override it if several records are cheaper together than one by one: `Records.from_columns` takes outputs that share a
        buffer.

        Args:
            numbers: of the records, in any order.
        """
        records: list[Record | BaseException] = []
        for number in numbers:
            try:
                records.append(self.record(number))
            except Exception as error:
                records.append(error)
        return records

    def jobs(self, numbers: Sequence[int]) -> Jobs | None:
        """Divides these records among threads; None: each thread reads some of the records. Must not raise.

        Args:
            numbers: of the records, each from 0 to `len(self) - 1`.
        """
        return None

    def close(self) -> None:
        """Closes files. A store that is used again opens them again."""


class BatchedStore(RecordStore):
    """A store that reads several records together: it implements `records` in place of `record`."""

    def record(self, number: int) -> Record:
        """One record.

        Args:
            number: of the record.
        """
        record = self.records([number])[0]
        if isinstance(record, BaseException):
            raise record
        return record


def read_now(store: RecordStore, numbers: Sequence[int]) -> Records:
    """Reads records on the caller's thread. An exception of a signal handler is raised; it is not an error of a record."""
    records = Records.of(store.records(numbers))
    for error in records.faults.values():
        raise_signalled(error)
    return records
