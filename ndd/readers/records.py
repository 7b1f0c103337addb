"""`RecordStore`: what a concrete reader provides, "how many" and "give me record i"."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from ndd.readers.output import Record

Held = TypeVar("Held")

_opening = threading.RLock()


def _after_fork() -> None:
    """In a forked child: a thread of the parent that held the lock does not exist here."""
    global _opening
    _opening = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class RecordStore:
    """Random access to the records of a data set. A concrete reader subclasses it; the base reader does the rest.

    Implement `__len__`, `record` and `source`. Methods are called from several threads at once. Build an index in the
    constructor: a reader makes its store when the first sample is asked for, and once. Keep files and the like open
    in an `Opened`. A store never knows about epochs, batches, shards, shuffling or devices.
    """

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


class Opened(Generic[Held]):
    """What a store holds open: made by `make` at first use, and again after `close` and in a forked child.

    What is held must close itself when nobody refers to it any more (files of Python and `OpenFiles` do). So a thread
    that still reads finishes with what it has, and nothing is closed under it. `make` must not refer to the store, or
    both would wait for the collector.
    """

    def __init__(self, make: Callable[[], Held]):
        self._make = make
        self._held: tuple[int, Held] | None = None

    def get(self) -> Held:
        """The thing, open in this process."""
        held = self._held
        if held is None or held[0] != os.getpid():
            with _opening:
                held = self._held
                if held is None or held[0] != os.getpid():
                    held = self._held = os.getpid(), self._make()
        return held[1]

    def close(self) -> None:
        """Give it up."""
        self._held = None
