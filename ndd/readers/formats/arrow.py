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
from ndd.readers.stores.records import Records, copied


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


def rows_of(table: Any, rows: np.ndarray, folder: str = "", locate: Locate = os.path.join) -> Records:
    """Some rows of a table: a column for each of its columns. A file that a row names in place of bytes lies in `folder`."""
    columns: list[Column] = []
    faults: dict[int, Exception] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        values, wrong = _column(name, column, rows, partial(locate, folder))
        columns.append(values)
        faults = {**wrong, **faults}
    return Records.from_columns(columns, faults)


Found = tuple[Column, dict[int, Exception]]


def _column(name: str, column: Any, rows: np.ndarray, locate: Callable[[str], str]) -> Found:
    types = arrow().types
    kind = column.type
    while isinstance(kind, arrow().BaseExtensionType):
        column, kind = _storage(column), kind.storage_type
    if types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
        return _media(name, column, rows, locate)
    if _is_binary(kind):
        return _bytes(name, column, rows)
    taken = _taken(column, rows)
    if types.is_dictionary(kind):
        taken = taken.dictionary_decode()
        kind = taken.type
        if _is_binary(kind):
            return _bytes(name, arrow().chunked_array([taken]), np.arange(len(rows)))
    if types.is_integer(kind) or types.is_boolean(kind) or types.is_floating(kind):
        return _numbers(name, taken, kind)
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


def _storage(column: Any) -> Any:
    return arrow().chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)


def _is_binary(kind: Any) -> bool:
    types = arrow().types
    return types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind) or _is_view(kind)


def _is_view(kind: Any) -> bool:
    return arrow().types.is_binary_view(kind)


def _null(name: str) -> ValueError:
    return ValueError(f"expected a value in column {name!r}, got null")


def _numbers(name: str, taken: Any, kind: Any) -> Found:
    """`[N, 1]`. A null is NaN where there is one."""
    wrong: dict[int, Exception] = {}
    if taken.null_count:
        if not arrow().types.is_floating(kind):
            wrong = {place: _null(name) for place in np.flatnonzero(_nulls(taken)).tolist()}
        taken = taken.fill_null(np.nan if arrow().types.is_floating(kind) else False if kind == arrow().bool_() else 0)
    return _plain(taken).reshape(-1, 1), wrong


def _lists(name: str, taken: Any, inner: Any, empty: tuple[int, ...]) -> Found:
    """Lists of numbers as arrays; lists in lists that are of unequal lengths stay lists. `empty`: the shape of the array of
    an empty list, 0 for a level whose lists have any length."""
    depth = len(empty)
    wrong: dict[int, Exception] = {place: _null(name) for place in np.flatnonzero(_nulls(taken)).tolist()}
    kind = np.dtype(inner.to_pandas_dtype())
    samples: list[Any] = []
    for place, row in enumerate(taken):
        values = None
        if place not in wrong and depth == 1:
            values = row.values
            if values.null_count and kind.kind != "f":
                wrong[place], values = _null(name), None
            values = (
                np.array([], kind)
                if values is None
                else _plain(values.fill_null(np.nan) if values.null_count else values)
            )
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


def _plain(array: Any) -> np.ndarray:
    """A copy of numbers or truth values without nulls. (pyarrow's own conversion imports pandas where it is installed.)"""
    kind = np.dtype(array.type.to_pandas_dtype())
    array = array.cast(arrow().uint8()) if kind.kind == "b" else array  # a truth value is a bit
    content = array.buffers()[1]
    if content is None:
        return np.empty(0, kind)
    return np.frombuffer(content, kind, len(array), array.offset * kind.itemsize).copy()


def _bytes(name: str, column: Any, rows: np.ndarray) -> Found:
    """The bytes of some rows in pooled memory: rows of a batch must not hold the memory of their whole row group."""
    values, missing = _copied(column, rows)
    return values, {place: _null(name) for place in missing}


def _copied(column: Any, rows: np.ndarray) -> tuple[Packed, list[int]]:
    """The bytes of some rows of a chunked array, and which are null. ValueError for offsets that lie outside."""
    firsts = np.concatenate([[0], np.cumsum([len(chunk) for chunk in column.chunks], dtype=np.int64)])
    chunks = np.searchsorted(firsts, rows, "right") - 1
    order = np.argsort(chunks, kind="stable")
    parts: list[Packed] = []
    missing: list[int] = []
    for places in np.split(order, np.flatnonzero(np.diff(chunks[order])) + 1):
        number = int(chunks[places[0]])
        data, offsets, nulls = _opened(column.chunk(number))
        picked = rows[places] - firsts[number]
        begins = offsets[picked].astype(np.int64)
        sizes = offsets[picked + 1] - begins
        if nulls is not None:
            begins[nulls[picked]] = sizes[nulls[picked]] = 0
            missing += places[nulls[picked]].tolist()
        if (begins < 0).any() or (sizes < 0).any() or (begins > len(data) - sizes).any():
            raise ValueError(f"expected bytes within {len(data)}, got others: is the file damaged?")
        parts.append(copied(data, begins, sizes))
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


def _media(name: str, column: Any, rows: np.ndarray, locate: Callable[[str], str]) -> Found:
    """Pictures and the like as Hugging Face stores them: bytes, or a file's path where these are null."""
    inner = arrow().chunked_array([_child(chunk, "bytes") for chunk in column.chunks], _type_of(column.type, "bytes"))
    values, missing = _copied(inner, rows)
    wrong: dict[int, Exception] = {}
    if not missing:
        return values, wrong
    paths = [None] * len(rows)
    if column.type.get_field_index("path") >= 0:
        chunks = [_child(chunk, "path") for chunk in column.chunks]
        paths = _taken(arrow().chunked_array(chunks, _type_of(column.type, "path")), rows).to_pylist()
    parts, order = [values], np.arange(len(rows))
    for place in missing:
        path = paths[place]
        try:
            content = read_slowly(locate(path)) if path else _null(name)
        except ValueError as error:
            content = error
        if isinstance(content, Exception):
            wrong[place] = content
        else:
            order[place] = len(rows) + len(parts) - 1
            parts.append(Packed.of(content, np.zeros(1, np.int64), np.array([len(content)])))
    return Packed.joined(parts).picked(order), wrong


def _type_of(struct: Any, field: str) -> Any:
    return struct.field(struct.get_field_index(field)).type


def _child(chunk: Any, field: str) -> Any:
    """A field of a struct; null where the struct is."""
    chunk.validate()
    return arrow().compute.struct_field(chunk, chunk.type.get_field_index(field))


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
