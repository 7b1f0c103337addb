"""`TableRows`: rows of a table in memory, and the files that it names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ndd.io.object_store import connections, is_remote
from ndd.readers.files.file_reading import UsualSize, read_files
from ndd.readers.files.file_tree import path_text
from ndd.readers.output import Column
from ndd.readers.stores.records import THREADS_OF_STORES, BatchedStore, Records


class TableRows(BatchedStore):
    """Rows of columns: numbers `[N, 1]`, or lists of anything else. `paths`: the columns that name files."""

    def __init__(self, columns: list[Any], paths: list[int], root: str):
        self._columns, self._paths, self._root = columns, paths, root
        self._usual = {k: UsualSize() for k in paths}
        names = [str(columns[k][0]) for k in paths]
        if is_remote(root) or any(map(is_remote, names)):
            self.at_once, self.threads = connections(), THREADS_OF_STORES

    def __len__(self) -> int:
        return len(self._columns[0])

    def source(self, number: int) -> str:
        """The path; "row 17" without one."""
        path = self._columns[self._paths[0]][number] if self._paths else None
        return f"row {number}" if not _is_path(path) else self._whole(path)

    def _whole(self, path: Any) -> str:
        name = path_text("readers.Table", "data", path)
        return name if is_remote(name) else os.path.join(self._root, name)

    def records(self, numbers: Sequence[int]) -> Records:
        """Several rows; the files of a column are read together."""
        columns: list[Column] = []
        faults: dict[int, Exception] = {}
        for k, values in enumerate(self._columns):
            picked = values[np.asarray(numbers)] if isinstance(values, np.ndarray) else [values[n] for n in numbers]
            if k in self._paths:
                named = [place for place, path in enumerate(picked) if _is_path(path)]
                wrong = ValueError("expected the path of a file, got none")
                faults.update({place: wrong for place in range(len(picked)) if not _is_path(picked[place])})
                whole = [self._whole(picked[place]) for place in named]
                contents, failed = read_files(whole, self._usual[k]) if named else ([], {})
                faults.update({named[place]: error for place, error in failed.items()})
                picked = _spread(contents, named, len(picked))
            columns.append(picked)
        return Records.from_columns(columns, faults)


def _is_path(value: Any) -> bool:
    return isinstance(value, str | os.PathLike) and bool(os.fspath(value))


def _spread(contents: Any, places: list[int], count: int) -> Column:
    """Contents spread to some of `count` places; the others are empty."""
    if len(places) == count:
        return contents
    rows = contents.arrays() if hasattr(contents, "arrays") else contents
    spread: list[Any] = [np.empty(0, np.uint8)] * count
    for place, content in zip(places, rows, strict=True):
        spread[place] = content
    return spread
