"""`readers.Table`: a table of paths, labels and other values, from pandas, polars or a list."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ndd.io.object_store import is_remote
from ndd.readers.files.file_tree import FilePath, path_text
from ndd.readers.files.table_arguments import column_names
from ndd.readers.output import Output
from ndd.readers.reader import Reader
from ndd.readers.stores.records import RecordStore
from ndd.readers.stores.table_rows import TableRows


class Frame(Protocol):
    """A frame of pandas, polars or pyarrow, a data set, a dict of lists: columns by name."""

    def __getitem__(self, name: Any) -> Any: ...


class Table(Reader):
    """Reads the rows of a table and the files that they name, with one output for each of `columns`.

    * Files are u8 `[size]`: encoded pictures for `decoders.image`.
    * Numbers are arrays `[1]` of their column's type. Bytes are u8 arrays; arrays are unchanged.
    * Texts and everything else are Python objects: a `str` for a sample, a list of them for a batch.

    A CSV file in one line: `Table(polars.read_csv("train.csv"), columns=["path", "label"], file_root="photos")`.

    Args:
        data: a frame of pandas or polars, a table of pyarrow, a dict of lists, a list of dicts, or a list of tuples with the
            values of `columns` in order; for one column also a list of its values.
        columns: the names of the columns, in the order of the outputs; a single name for one column.
        files: the columns of paths. Default: no column if there are bytes or arrays; else the first column of `pathlib.Path`s,
            or of texts whose first value is a URL or the path of an existing file; else the first column of texts.
        file_root: the folder that paths are relative to; it may be a URL. Default: the working directory.

    Raises (at the first sample): RuntimeError for a missing column, no rows, columns of unequal lengths, or more shards than
    rows. At its batch: RuntimeError for a missing path and for a file that cannot be read.

    >>> import ndd, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("a.jpg", "b.jpg"):
    ...     _ = (folder / name).write_bytes(name.encode())
    >>> rows = [("a.jpg", 3, "a cat"), ("b.jpg", 1, "a dog")]
    >>> reader = ndd.readers.Table(rows, columns=["path", "label", "caption"], file_root=folder)
    >>> for image, label, caption in reader.next_epoch():
    ...     print(image.shape, label.torch().item(), caption)
    (5,) 3 a cat
    (5,) 1 a dog
    """

    _leading = ("data",)

    @classmethod
    def _outputs(cls, *, columns: Any = (), **arguments: Any) -> tuple[Output, ...]:
        return tuple(Output(name) for name in column_names(cls._display, columns))

    def _open(
        self,
        *,
        data: Frame | Sequence[object],
        columns: str | Sequence[str],
        file_root: FilePath | None = None,
        files: str | Sequence[str] | None = None,
    ) -> RecordStore:
        names = column_names(self._display, columns)
        listed = [_values(value) for value in _by_name(self._display, data, names)]
        lengths = {len(values) for values in listed}
        if len(lengths) != 1 or not max(lengths):
            raise RuntimeError(f"{self._display}: data: expected rows in columns of one length, got {sorted(lengths)}")
        root = "" if file_root is None else path_text(self._display, "file_root", file_root)
        wanted = _path_column(names, listed, root) if files is None else column_names(self._display, files, "files")
        strange = [name for name in wanted if name not in names]
        if strange:
            raise RuntimeError(f"{self._display}: files: expected some of `columns`, got {strange[0]!r}")
        return TableRows(listed, [names.index(name) for name in wanted], root)


def _by_name(reader: str, data: Any, names: list[str]) -> list[Any]:
    """The selected columns."""
    there = data if isinstance(data, Mapping) else getattr(data, "columns", getattr(data, "column_names", None))
    if hasattr(data, "column_names"):  # in pyarrow `columns` are the data
        there = getattr(data, "column_names")
    if there is not None and not callable(there):
        missing = [name for name in names if name not in list(there)]
        if missing:
            known = ", ".join(map(str, there))
            raise RuntimeError(f"{reader}: columns: data has no column {missing[0]!r}; it has {known}")
        return [data[name] for name in names]
    if not isinstance(data, Iterable):
        raise TypeError(f"{reader}: data: expected a frame or a list of rows, got {type(data).__name__}")
    rows = list(data)
    if len(names) == 1 and not any(isinstance(row, tuple | list | Mapping) for row in rows):
        return [rows]
    for number, row in enumerate(rows):
        dicts = isinstance(row, Mapping)
        if not (
            all(name in row for name in names) if dicts else isinstance(row, tuple | list) and len(row) == len(names)
        ):
            raise RuntimeError(
                f"{reader}: data: expected {', '.join(names)} in each row, got {row!r:.80} in row {number}"
            )
    keys = names if rows and isinstance(rows[0], Mapping) else range(len(names))
    return [[row[key] for row in rows] for key in keys]


def _values(column: Any) -> np.ndarray | list[Any]:
    """A column of numbers as an array `[N, 1]`, any other as a list."""
    typed = column.to_numpy() if hasattr(column, "to_numpy") else column
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            column = getattr(column, method)()
            break
    listed = list(column)
    if all(isinstance(value, bool | int | float | np.number | np.bool_) for value in listed):
        is_typed = isinstance(typed, np.ndarray) and typed.dtype.kind in "biuf"
        numbers = np.array(typed if is_typed else listed)  # a copy
        if numbers.dtype != object and numbers.ndim == 1:
            return numbers.reshape(-1, 1)
    return [np.frombuffer(value, np.uint8) if isinstance(value, bytes) else value for value in listed]


def _path_column(names: list[str], columns: list[Any], root: str) -> list[str]:
    """The names of the columns that seem to hold paths."""
    firsts = [next((value for value in values if value is not None), None) for values in columns]
    paths = [name for name, first in zip(names, firsts, strict=True) if isinstance(first, os.PathLike)]
    kinds = zip(columns, firsts, strict=True)
    if paths or any(isinstance(values, list) and isinstance(first, np.ndarray) for values, first in kinds):
        return paths
    texts = [(name, first) for name, first in zip(names, firsts, strict=True) if isinstance(first, str)]
    there = [n for n, text in texts if is_remote(text) or is_remote(root) or os.path.isfile(os.path.join(root, text))]
    return (there or [name for name, _ in texts])[:1]
