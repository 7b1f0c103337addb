"""`RecordStore`: what a concrete reader provides, "how many" and "give me record i"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Record = tuple[np.ndarray, ...]

_SMALL = 64  # bytes below which copying a record costs less than keeping it as an array of its own


class RecordStore:
    """Random access to the records of a data set. A concrete reader subclasses it; the base reader does the rest.

    Implement `__len__`, `record` and `source`. Methods are called from several threads at once. Build an index in the
    constructor: a reader makes its store when the first sample is asked for, and once. A store never knows about
    epochs, batches, shards, shuffling or devices.

    Attributes:
        fields: names of the outputs for readers whose samples are dicts; None for tuples.
        layouts: the layout of each output, shorter than the outputs if the rest has none.
    """

    fields: tuple[str, ...] | None = None
    layouts: tuple[str | None, ...] = ()

    def __len__(self) -> int:
        """How many records there are."""
        raise NotImplementedError

    def record(self, number: int) -> Record:
        """The outputs of one record, as C-contiguous arrays that nobody writes to afterwards."""
        raise NotImplementedError

    def source(self, number: int) -> str:
        """Where the record comes from, for `source_info` and errors: a file name, with a position if need be."""
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
        """Give up open files and maps."""


def columns(records: Sequence[Record]) -> list[Any]:
    """The outputs of several records, turned round: small outputs of one shape (labels) as one array `[N, ...]`,
    others as lists."""
    turned: list[Any] = []
    for column in zip(*records, strict=True):
        first = column[0]
        kind = first.shape, first.dtype
        if first.nbytes <= _SMALL and all((a.shape, a.dtype) == kind for a in column):
            joined = np.concatenate(column) if first.ndim else np.stack(column)
            turned.append(joined.reshape(len(column), *first.shape))
        else:
            turned.append(list(column))
    return turned
