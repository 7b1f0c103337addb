"""`ContainerStore`: records that are ranges of a few large files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import numpy as np

from ndd._execution.memoize import Memoized
from ndd._tensor.secrets import without_secrets
from ndd._tensor.user_line import warn_user
from ndd.io.object_store import Status, connections, is_remote
from ndd.readers.files.file_reading import OpenFiles, statuses
from ndd.readers.output import Record
from ndd.readers.stores.chunks import Slot
from ndd.readers.stores.records import BYTES_OF_STORES, THREADS_OF_STORES, BatchedStore, Records

_KEPT_OPEN = 64  # containers; a process may have 1024 files on most systems
_ASKED_AT_ONCE = 32  # containers in a store, as many as there are connections by default
# The bytes of records that share a buffer. The number of parts in which a batch is read varies. With one buffer for each part the
# memory pool holds buffers of every size: 200 to 230 MB after ten epochs of 20,000 records of 100 kB in batches of 256. Buffers of
# at most this size are reused for each other: 85 to 140 MB. With buffers of 8 MB a record takes 10 us instead of 9.
_TOGETHER = 1 << 24


class ContainerStore(BatchedStore):
    """Records by number: a container (an index into `paths`; ascending), an offset in it and a size, in bytes.

    A reader subclasses it; its `parse` converts the bytes of a record to outputs. Reading releases the GIL; neighbouring records
    of a batch are read in one piece.

    Args:
        paths: the containers: files, or addresses of objects.
        containers: the index of each record's path, ascending: int64 `[N]`.
        offsets: where each record begins in its container, in bytes: int64 `[N]`.
        sizes: the length of each record in bytes: int64 `[N]`.
    """

    def __init__(self, paths: Sequence[str], containers: np.ndarray, offsets: np.ndarray, sizes: np.ndarray):
        self.paths = list(paths)
        self.containers, self.offsets, self.sizes = containers, offsets, sizes
        self._files = Memoized(opened, limit=_KEPT_OPEN)
        self._statuses: Memoized[Slot] = Memoized(Slot)
        self.known: dict[str, Status] = {}  # those that the index was made from
        if any(map(is_remote, self.paths)):
            self.at_once, self.threads, self.bytes_together = connections(), THREADS_OF_STORES, BYTES_OF_STORES
            self.record_bytes = int(np.maximum(sizes, 0).sum(dtype=np.float64) / max(len(sizes), 1))

    def parse(self, number: int, data: np.ndarray) -> Record:
        """The outputs of record `number`, whose bytes are `data` (u8 `[size]`; other records may share its memory).

        For a bad record, raise a ValueError that tells the expected and the actual value; the base class adds reader, container
        and record.

        Args:
            number: of the record.
            data: its bytes, u8 `[size]`; do not write to them.
        """
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.offsets)

    def source(self, number: int) -> str:
        """ "train.rec record 17": the record's place in its container.

        Args:
            number: of the record.
        """
        return self.sources([number])[0]

    def sources(self, numbers: Sequence[int]) -> list[str]:
        """The sources of several records."""
        if len(self.paths) == 1:
            return [f"{self.paths[0]} record {number}" for number in numbers]
        containers = self.containers[np.asarray(numbers, np.int64)]
        firsts = np.searchsorted(self.containers, containers).tolist()
        return [
            f"{self.paths[container]} record {number - first}"
            for container, first, number in zip(containers.tolist(), firsts, numbers, strict=True)
        ]

    def records(self, numbers: Sequence[int]) -> Records:
        """Several records, read together."""
        listed = np.asarray(numbers, np.int64)
        containers = self.containers[listed]
        if (containers == containers[0]).all():
            return self._read_in_pieces(int(containers[0]), listed)
        order = np.argsort(containers, kind="stable")
        firsts = np.flatnonzero(np.diff(containers[order], prepend=-1))
        parts = [
            self._read_in_pieces(int(containers[places[0]]), listed[places]) for places in np.split(order, firsts[1:])
        ]
        return Records.joined(parts).picked(np.argsort(order))

    def _read_in_pieces(self, container: int, numbers: np.ndarray) -> Records:
        """`read` with buffers of about the same size. Remote ranges are requested all at once."""
        total = self.sizes[numbers].sum(
            dtype=np.float64
        )  # the sum of the sizes in a damaged index may overflow an int64
        pieces = 1 if self.at_once > 1 else int(min(-(-total // _TOGETHER), len(numbers)))
        if pieces < 2:
            return Records.of(self.read(container, numbers))
        return Records.joined([Records.of(self.read(container, p)) for p in np.array_split(numbers, pieces)])

    def read(self, container: int, numbers: np.ndarray) -> Records | Sequence[Record | BaseException]:
        """Several records of one container. Override it if it is cheaper to parse all of them at once.

        Args:
            container: index into `paths`.
            numbers: of the records, all in this container: int64 array.
        """
        pieces = self.ranges(container, self.offsets[numbers], self.sizes[numbers])
        return [self._parsed(number, piece) for number, piece in zip(numbers.tolist(), pieces, strict=True)]

    def ranges(self, container: int, offsets: np.ndarray, sizes: np.ndarray) -> list[np.ndarray | OSError]:
        """More bytes of a container, for a `parse` whose records refer to them.

        Args:
            container: index into `paths`.
            offsets, sizes: the beginning and the size of each range in bytes: int64 arrays.
        """
        with self._open(container) as file:
            return file.read_joined(np.zeros(len(offsets), np.int64), offsets, sizes)

    def packed(
        self, container: int, offsets: np.ndarray, sizes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, dict[int, OSError]]:
        """Bytes of a container in one array, the offset of each range in it, and the errors of unreadable ranges.

        Args:
            container: index into `paths`.
            offsets, sizes: the beginning and the size of each range in bytes: int64 arrays.
        """
        with self._open(container) as file:
            return file.read_packed(np.zeros(len(offsets), np.int64), offsets, sizes)

    def _open(self, container: int) -> AbstractContextManager[OpenFiles]:
        """A container. One thread requests the sizes of several objects at once, so that the others do not wait at the beginning
        of each."""
        known = self.known.get(self.paths[container])
        if known is None and self.at_once > 1:
            block, place = divmod(container, _ASKED_AT_ONCE)
            known = self._statuses(block).filled(self._ask, block)[place]
        return self._files.using(self.paths[container], known)

    def _ask(self, block: int) -> list[Status | None]:
        answers = statuses(self.paths[block * _ASKED_AT_ONCE :][:_ASKED_AT_ONCE])
        return [None if isinstance(status, OSError) else status for status in answers]

    def _parsed(self, number: int, piece: np.ndarray | OSError) -> Record | Exception:
        if isinstance(piece, OSError):
            return piece
        try:
            return self.parse(number, piece)
        except Exception as error:
            return error

    def close(self) -> None:
        """Close the containers."""
        self._files.clear()
        self._statuses.clear()


def opened(path: str, known: Status | None = None) -> OpenFiles:
    """A container. `known`: its status, if the object store has returned it already."""
    return OpenFiles([path], known and [known])


def warn_of_unlisted(reader: str, index: str, path: str, end: int, size: int) -> None:
    """Warns if the last record of an index file ends before its container does: records may be missing."""
    if end < size:
        index, path = without_secrets(index), without_secrets(path)
        warn_user(
            f"{reader}: index {index!r}: its last record ends at byte {end}, {path!r} at {size}: the bytes between them are not "
            "read. Is the index truncated, or older than the file?"
        )


def rows_at(data: np.ndarray, starts: np.ndarray, size: int) -> np.ndarray:
    """The `size` bytes at each offset in u8 `data`, as u8 `[N, size]`. Offsets outside are moved inside."""
    if len(data) < size:
        return np.zeros((len(starts), size), np.uint8)
    windows = np.ndarray(len(data) - size + 1, f"V{size}", data, strides=(1,))
    return windows[np.clip(starts, 0, len(windows) - 1)].view(np.uint8).reshape(len(starts), size)
