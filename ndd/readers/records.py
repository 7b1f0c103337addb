"""`RecordStore`: what a concrete reader provides, "how many" and "give me record i"."""

from __future__ import annotations

from collections.abc import Sequence

from ndd.readers.output import Record


class RecordStore:
    """Random access to the records of a data set. A concrete reader subclasses it; the base reader does the rest.

    Implement `__len__`, `record` and `source`. Methods are called from several threads at once. Build an index in the
    constructor: a reader makes its store when the first sample is asked for, and once. Hold files and the like in a
    `Kept` (`ContainerStore` does): it opens them again after `close` and in a forked child, and closes nothing under a
    thread that reads. A store never knows about epochs, batches, shards, shuffling or devices.
    """

    threads = 1
    """How many threads begin to read ahead; more come where the user has to wait. Raise it where a record is work."""

    def __len__(self) -> int:
        """How many records there are."""
        raise NotImplementedError

    def record(self, number: int) -> Record:
        """The outputs of one record in declared order, as C-contiguous arrays that nobody writes to afterwards.

        It may carry more behind them, for a reader's `_present`.
        """
        raise NotImplementedError

    def source(self, number: int) -> str:
        """Where the record comes from, for `source_info` and errors: a file, or a container and a record of it."""
        raise NotImplementedError

    def sources(self, numbers: Sequence[int]) -> list[str]:
        """The sources of several records. Override it where they are cheaper together."""
        return [self.source(number) for number in numbers]

    def records(self, numbers: Sequence[int]) -> list[Record | Exception]:
        """Several records; a record that cannot be read is an exception in its place, so that it harms no other.

        Override it where several records are cheaper together than one by one.
        """
        found: list[Record | Exception] = []
        for number in numbers:
            try:
                found.append(self.record(number))
            except Exception as error:
                found.append(error)
        return found

    def close(self) -> None:
        """Give up open files and maps. A store that is used again opens them again."""
