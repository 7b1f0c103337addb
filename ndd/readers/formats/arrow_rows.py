"""Rows of a data set of Hugging Face, and of the record batches of Arrow files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ndd.io.object_store import Status, is_remote
from ndd.readers.files.table_arguments import inside
from ndd.readers.formats.arrow import Opened, opened, rows_of
from ndd.readers.formats.arrow_file import read_batch
from ndd.readers.stores.chunks import ChunkStore
from ndd.readers.stores.records import BatchedStore, Records, detached


class DatasetRows(BatchedStore):
    """The rows of a data set in memory, or mapped by the library."""

    def __init__(self, dataset: Any, columns: list[str]):
        self._table = dataset.with_format("arrow").select_columns(columns)
        self._columns = columns
        files = getattr(dataset, "cache_files", None) or [{"filename": "data set"}]
        self._name = files[0]["filename"]

    def __len__(self) -> int:
        return len(self._table)

    def source(self, number: int) -> str:
        """The first file of the data set, and the row."""
        return f"{self._name} row {number}"

    def records(self, numbers: Any) -> Records:
        """Several rows, copied: the data set is the user's."""
        count, first = len(numbers), numbers[0]
        together = list(numbers) == list(range(first, first + count))
        table = self._table[slice(first, first + count) if together else list(numbers)]
        return detached(rows_of(opened(table.select(self._columns)), np.arange(count)))[0]


class RecordBatches(ChunkStore):
    """The record batches of Arrow files."""

    def __init__(
        self, paths: list[str], known: dict[str, Status], schemas: list[Any], batches: np.ndarray, columns: list[str]
    ):
        super().__init__(batches[:, 3], int(batches[:, 2].max()), any(map(is_remote, paths)))
        self._paths, self._known, self._schemas = paths, known, schemas
        self._table, self._columns = batches, columns

    def load(self, chunk: int) -> Opened:
        """A record batch. Data of a store name no files of this machine."""
        place, offset, size, rows = self._table[chunk].tolist()
        path = self._paths[place]
        table = read_batch(path, self._known[path], self._schemas[place], offset, size, rows).select(self._columns)
        table.validate(full=True)  # the library follows the offsets of a damaged file wherever they lead
        folder = path.rpartition("/")[0]
        return opened(table, folder, inside if is_remote(folder) else os.path.join)

    def rows(self, loaded: Opened, rows: np.ndarray) -> Records:
        """Some of its rows."""
        return rows_of(loaded, rows)

    def source_in(self, chunk: int, row: int) -> str:
        """ "data-00000-of-00001.arrow row 17": the row's place in its file."""
        place = int(self._table[chunk, 0])
        first = int(np.searchsorted(self._table[:, 0], place))
        return f"{self._paths[place]} row {row + int(self.firsts[chunk] - self.firsts[first])}"
