"""`ContainerStore`: records that are ranges of a few large files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ndd._execution.kept import Kept
from ndd.readers.file_reading import OpenFiles
from ndd.readers.output import Record
from ndd.readers.records import RecordStore

_KEPT_OPEN = 64  # containers; a process may have 1024 files on most systems


class ContainerStore(RecordStore):
    """Records by number: a container (a place in `paths`; ascending), an offset in it and a size, in bytes.

    A reader subclasses it and says in `parse` what the bytes of a record mean. Reading releases the GIL; records that
    lie next to each other and are asked for together are read in one piece.
    """

    def __init__(self, paths: Sequence[str], containers: np.ndarray, offsets: np.ndarray, sizes: np.ndarray):
        self.paths = list(paths)
        self.containers, self.offsets, self.sizes = containers, offsets, sizes
        self._files = Kept(_opened, limit=_KEPT_OPEN)

    def parse(self, number: int, data: np.ndarray) -> Record:
        """The outputs of record `number`, whose bytes are `data` (u8 `[size]`; other records may share its memory).

        Raise ValueError with what was expected and what is there; the base adds reader, container and record.
        """
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.offsets)

    def source(self, number: int) -> str:
        """ "train.rec record 17": the record's place in its container."""
        if len(self.paths) == 1:
            return f"{self.paths[0]} record {number}"
        container = self.containers[number]
        return f"{self.paths[container]} record {number - int(np.searchsorted(self.containers, container))}"

    def record(self, number: int) -> Record:
        """One record."""
        found = self.records([number])[0]
        if isinstance(found, Exception):
            raise found
        return found

    def records(self, numbers: Sequence[int]) -> list[Record | Exception]:
        """Several records, read together."""
        found: list[Record | Exception] = [IndexError("not read")] * len(numbers)
        listed = np.asarray(numbers, np.int64)
        containers = self.containers[listed]
        for container in np.unique(containers).tolist():
            places = np.flatnonzero(containers == container)
            chosen = listed[places]
            read = self._read(container, self.offsets[chosen], self.sizes[chosen])
            for place, record in zip(places.tolist(), self.parse_together(chosen, *read), strict=True):
                found[place] = record
        return found

    def parse_together(
        self, numbers: np.ndarray, data: np.ndarray, starts: np.ndarray, failed: dict[int, OSError]
    ) -> list[Record | Exception]:
        """The outputs of several records; the bytes of `numbers[i]` begin at `starts[i]` of `data`, if `failed` has no
        `i`. Override it where records are cheaper to parse together than one by one."""
        sizes = self.sizes[numbers]
        found: list[Record | Exception] = []
        for place, (number, start, size) in enumerate(
            zip(numbers.tolist(), starts.tolist(), sizes.tolist(), strict=True)
        ):
            try:
                found.append(failed[place] if place in failed else self.parse(number, data[start : start + size]))
            except Exception as error:
                found.append(error)
        return found

    def ranges(self, container: int, offsets: np.ndarray, sizes: np.ndarray) -> list[np.ndarray | OSError]:
        """Bytes of a container: for `parse`, where a record points at more of them."""
        data, starts, failed = self._read(container, offsets, sizes)
        return [
            failed.get(i, data[start : start + size]) for i, (start, size) in enumerate(zip(starts, sizes, strict=True))
        ]

    def _read(
        self, container: int, offsets: np.ndarray, sizes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, dict[int, OSError]]:
        with self._files.using(self.paths[container]) as file:
            return file.read_joined(np.zeros(len(offsets), np.int64), offsets, sizes)

    def close(self) -> None:
        """Close the containers."""
        self._files.clear()


def _opened(path: str) -> OpenFiles:
    return OpenFiles([path])
