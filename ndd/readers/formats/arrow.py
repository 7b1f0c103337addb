"""Columns of Apache Arrow, and Parquet files. This is the only importer of pyarrow.

Numbers become arrays `[1]`, lists of numbers arrays, bytes and encoded media (a struct with a field `bytes`, as Hugging Face
stores pictures and sound) u8 arrays; texts and everything else Python objects.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ndd._execution.memoize import Memoized
from ndd._tensor import Packed
from ndd.installation import install_command
from ndd.readers.files.file_reading import read_slowly
from ndd.readers.output import Column
from ndd.readers.stores.records import Records


def _imported() -> Any:
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        raise RuntimeError(f"Arrow and Parquet are read with pyarrow: {install_command('parquet')} ({error})") from None
    return pyarrow


arrow = Memoized(_imported)
"""`arrow()` is pyarrow."""


Locate = Callable[[str, str], str]
"""The path of a file that a row names, from a folder and the name. ValueError for a name that is not allowed."""


Values = tuple[Column, dict[int, Exception]]
"""The samples of some rows of a column, and the errors of the unreadable ones by place."""
Opened = Sequence[Callable[[np.ndarray], Values]]
"""A table whose columns are ready: a function of rows for each."""


def opened(table: Any, folder: str = "", locate: Locate = os.path.join) -> Opened:
    """The columns of a table, checked and laid out for `rows_of`. A file that a row names instead of bytes is in `folder`."""
    named = zip(table.column_names, table.columns, strict=True)
    return [_column(name, column, partial(locate, folder)) for name, column in named]


def rows_of(table: Opened, rows: np.ndarray) -> Records:
    """Some rows of a table: a column for each of its columns."""
    columns: list[Column] = []
    faults: dict[int, Exception] = {}
    for column in table:
        values, wrong = column(rows)
        columns.append(values)
        faults = {**wrong, **faults}
    return Records.from_columns(columns, faults)


def _column(name: str, column: Any, locate: Callable[[str], str]) -> Callable[[np.ndarray], Values]:
    types = arrow().types
    while isinstance(column.type, arrow().BaseExtensionType):
        column = _storage(column)
    kind = column.type
    if types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
        return partial(_media, name, column, _Binary(_field(column, "bytes")), locate)
    if _is_binary(kind):
        return partial(_bytes, name, _Binary(column))
    if types.is_integer(kind) or types.is_boolean(kind) or types.is_floating(kind):
        return partial(_picked, *_numbers(name, _taken(column, np.arange(len(column))), kind))
    return partial(_objects, name, column, kind)


def _picked(values: np.ndarray, wrong: dict[int, Exception], rows: np.ndarray) -> Values:
    listed = enumerate(rows.tolist()) if wrong else ()
    return values[rows], {place: wrong[row] for place, row in listed if row in wrong}


def _objects(name: str, column: Any, kind: Any, rows: np.ndarray) -> Values:
    """Lists of numbers as arrays, and everything else as Python objects; the entries of a dictionary as if they were stored
    directly."""
    types = arrow().types
    taken = _taken(column, rows)
    if types.is_dictionary(kind):
        plain = arrow().chunked_array([taken.dictionary_decode()])
        return _column(name, plain, str)(np.arange(len(rows)))
    inner, empty = kind, ()
    while types.is_list(inner) or types.is_large_list(inner) or types.is_fixed_size_list(inner):
        empty = *empty, inner.list_size if types.is_fixed_size_list(inner) else 0
        inner = inner.value_type
    if empty and (types.is_integer(inner) or types.is_floating(inner) or types.is_boolean(inner)):
        return _lists(name, taken, inner, empty)
    return taken.to_pylist(), {}


def _taken(column: Any, rows: np.ndarray) -> Any:
    """Rows of a chunked array as one array, whose offsets are checked: those of an Arrow file come as they are. (`pa.array`
    imports pandas where it is installed.)"""
    for chunk in column.chunks:
        chunk.validate()
    numbers = np.ascontiguousarray(rows, np.int64)
    taken = column.take(arrow().Int64Array.from_buffers(arrow().int64(), len(rows), [None, arrow().py_buffer(numbers)]))
    taken = taken.combine_chunks() if isinstance(taken, arrow().ChunkedArray) else taken
    taken.validate(full=True)
    return taken


def storage_type(kind: Any) -> Any:
    """The storage type of an extension type; any other type unchanged."""
    while isinstance(kind, arrow().BaseExtensionType):
        kind = kind.storage_type
    return kind


def _storage(column: Any) -> Any:
    return arrow().chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)


def _is_binary(kind: Any) -> bool:
    types = arrow().types
    return types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind) or _is_view(kind)


def _is_view(kind: Any) -> bool:
    return arrow().types.is_binary_view(kind)


def _null(name: str) -> ValueError:
    return ValueError(f"expected a value in column {name!r}, got null")


def _numbers(name: str, taken: Any, kind: Any) -> tuple[np.ndarray, dict[int, Exception]]:
    """`[N, 1]`. A null is NaN where there is one."""
    values = _plain(taken).reshape(-1, 1)
    if not taken.null_count or arrow().types.is_floating(kind):
        return values, {}
    return values, {place: _null(name) for place in np.flatnonzero(_nulls(taken)).tolist()}


def _lists(name: str, taken: Any, inner: Any, empty: tuple[int, ...]) -> Values:
    """Lists of numbers as arrays; lists in lists that are of unequal lengths stay lists. `empty`: the shape of the array of
    an empty list, 0 for a level whose lists have any length."""
    depth = len(empty)
    wrong: dict[int, Exception] = {place: _null(name) for place in np.flatnonzero(_nulls(taken)).tolist()}
    kind = _dtype(inner)
    samples: list[Any] = []
    for place, row in enumerate(taken):
        values = None
        if place not in wrong and depth == 1:
            values = row.values
            if values.null_count and kind.kind != "f":
                wrong[place], values = _null(name), None
            values = np.array([], kind) if values is None else _plain(values)
        elif place not in wrong:
            listed = row.as_py()
            try:
                values = np.array(listed, kind)
                if not values.size:  # the inner lists of an empty list do not say how many numbers they would hold
                    values = values.reshape(*values.shape, *empty[values.ndim :])
                values = values if values.ndim == depth else listed
            except (ValueError, TypeError):
                values = listed
        samples.append(values)
    return samples, wrong


def _nulls(array: Any) -> np.ndarray:
    return _plain(array.is_null())


def _dtype(kind: Any) -> np.dtype:
    """The element type of numbers or truth values. (`to_pandas_dtype` of pyarrow 24 and before imports pandas.)"""
    name = str(kind)
    return np.dtype({"halffloat": "float16", "float": "float32", "double": "float64"}.get(name, name))


def _plain(array: Any) -> np.ndarray:
    """A copy of numbers or truth values; a null is NaN, or 0 where there is none. (pyarrow's own conversion imports pandas where
    it is installed.)"""
    kind = _dtype(array.type)
    array = array.cast(arrow().uint8()) if kind.kind == "b" else array  # a truth value is a bit
    content, values = array.buffers()[1], np.zeros(len(array), kind)
    if content is not None:
        values[:] = np.frombuffer(content, kind, len(array), array.offset * kind.itemsize)
    if array.null_count:
        values[_nulls(array)] = np.nan if kind.kind == "f" else 0
    return values


def _bytes(name: str, column: _Binary, rows: np.ndarray) -> Values:
    values, missing = column.picked(rows)
    return values, {place: _null(name) for place in missing}


class _Binary:
    """The bytes of a chunked array."""

    def __init__(self, column: Any):
        self._firsts = np.cumsum([0, *map(len, column.chunks)], dtype=np.int64)
        self._chunks = [_opened(chunk) for chunk in column.chunks]

    def picked(self, rows: np.ndarray) -> tuple[Packed, list[int]]:
        """Some rows, where they lie, and which of them are null. ValueError for offsets that lie outside."""
        numbers = np.searchsorted(self._firsts, rows, "right") - 1
        order = np.argsort(numbers, kind="stable")
        parts: list[Packed] = []
        missing: list[int] = []
        for places in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
            number = int(numbers[places[0]])
            data, offsets, nulls = self._chunks[number]
            picked = rows[places] - self._firsts[number]
            begins = offsets[picked].astype(np.int64)
            sizes = offsets[picked + 1] - begins
            if nulls is not None:
                begins[nulls[picked]] = sizes[nulls[picked]] = 0
                missing += places[nulls[picked]].tolist()
            if (begins < 0).any() or (sizes < 0).any() or (begins > len(data) - sizes).any():
                raise ValueError(f"expected bytes within {len(data)}, got others: is the file damaged?")
            parts.append(Packed.of(data, begins, sizes))
        return Packed.joined(parts).picked(np.argsort(order)), missing


def _opened(chunk: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The data of an array of bytes, the offsets of its rows in them, and which are null."""
    pa = arrow()
    chunk.validate(full=_is_view(chunk.type))  # the cast follows the offsets of views
    if _is_view(chunk.type) or pa.types.is_fixed_size_binary(chunk.type) or pa.types.is_null(chunk.type):
        chunk = chunk.cast(pa.large_binary())
    _, offsets, data = chunk.buffers()
    kind = np.int64 if pa.types.is_large_binary(chunk.type) else np.int32
    listed = np.zeros(len(chunk) + 1, kind)
    if len(chunk):
        listed = np.frombuffer(offsets, kind, len(chunk) + 1, chunk.offset * np.dtype(kind).itemsize)
    content = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return content, listed, _nulls(chunk) if chunk.null_count else None


def _media(name: str, column: Any, content: _Binary, locate: Callable[[str], str], rows: np.ndarray) -> Values:
    """Pictures and the like as Hugging Face stores them: bytes, or a file's path where these are null."""
    values, missing = content.picked(rows)
    wrong: dict[int, Exception] = {}
    if not missing:
        return values, wrong
    paths = [None] * len(rows)
    if column.type.get_field_index("path") >= 0:
        paths = _taken(_field(column, "path"), rows).to_pylist()
    parts, order = [values], np.arange(len(rows))
    for place in missing:
        path = paths[place]
        try:
            read = read_slowly(locate(path)) if path else _null(name)
        except ValueError as error:
            read = error
        if isinstance(read, Exception):
            wrong[place] = read
        else:
            order[place] = len(rows) + len(parts) - 1
            parts.append(Packed.of(read, np.zeros(1, np.int64), np.array([len(read)])))
    return Packed.joined(parts).picked(order), wrong


def _field(column: Any, name: str) -> Any:
    """A field of a struct; null where the struct is."""
    number = column.type.get_field_index(name)
    for chunk in column.chunks:
        chunk.validate()
    fields = [arrow().compute.struct_field(chunk, number) for chunk in column.chunks]
    return arrow().chunked_array(fields, column.type.field(number).type)


def check_columns(reader: str, path: str, columns: Sequence[str], there: Sequence[str]) -> None:
    """Raises RuntimeError for a missing column."""
    missing = [name for name in columns if name not in there]
    if missing:
        raise RuntimeError(f"{reader}: columns: {path} has no column {missing[0]!r}; it has {', '.join(there)}")


_CODECS = {"zstd": "zstd", "br": "brotli", "gz": "gzip", "bz2": "bz2", "snappy": "snappy"}
_MOST_SAVED = 1 << 13  # times that data may grow: a size in a damaged index must not ask for all memory


def inflated(codec: str, data: np.ndarray, size: int) -> np.ndarray:
    """Decompresses data to `size` bytes. ValueError if it has another size."""
    if codec not in _CODECS:
        raise ValueError(f"expected one of the compressions {', '.join(_CODECS)}, got {codec!r}")
    if not 0 <= size <= _MOST_SAVED * (len(data) + 8):
        raise ValueError(f"expected data that grows to {size} bytes, got {len(data)} bytes of {codec}")
    pa = arrow()
    try:
        if codec == "snappy":
            if _snappy_size(data) != size:  # the library fills only as much of its buffer
                raise ValueError(f"expected snappy data of {size} bytes, got {_snappy_size(data)}")
            content = pa.Codec("snappy").decompress(pa.py_buffer(data), size)
        else:
            with pa.CompressedInputStream(pa.BufferReader(data), _CODECS[codec]) as stream:
                content = stream.read_buffer(size + 1)
    except (OSError, pa.ArrowException) as error:
        raise ValueError(f"the compressed data ({codec}) is damaged: {error}") from None
    if content.size != size:
        raise ValueError(
            f"expected {codec} data of {size} bytes, got {'more' if content.size > size else content.size}"
        )
    return np.frombuffer(content, np.uint8)


def _snappy_size(data: np.ndarray) -> int:
    """The size of the content that snappy data state: a number of up to five bytes, 7 bits each, at the beginning."""
    size = 0
    for place, byte in enumerate(data[:5].tolist()):
        size |= (byte & 127) << 7 * place
        if byte < 128:
            break
    return size


def frame_size(frame: np.ndarray) -> int:
    """The size of the content that the header of a zstd frame states. ValueError if it does not state it."""
    described = int(frame[4]) if len(frame) > 4 else 0
    single, form = described >> 5 & 1, described >> 6
    at = 5 + (not single) + (0, 1, 2, 4)[described & 3]
    width = (single, 2, 4, 8)[form]
    if not width or len(frame) < at + width:
        raise ValueError("expected a zstd frame that states the size of its content")
    return int.from_bytes(frame[at : at + width].tobytes(), "little") + (256 if width == 2 else 0)
