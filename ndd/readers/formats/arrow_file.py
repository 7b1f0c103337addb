"""The record batches of an Arrow file or stream: their places and rows."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from ndd.io.object_store import Status
from ndd.readers.files.file_reading import OpenFiles, RegularFile
from ndd.readers.files.index_cache import Index, all_inside, all_within, cached, has_columns
from ndd.readers.formats.arrow import arrow

_MAGIC = b"ARROW1"
_CONTINUED = 0xFFFFFFFF
_SCHEMA, _DICTIONARY, _RECORDS = 1, 2, 3  # types of messages
_LARGEST = 1 << 28  # bytes of a message's description


def record_batches(path: str, statuses: dict[str, Status]) -> Index:
    """`offset`, `size` (of message and data, in bytes) and `rows` of each record batch, and the offset and size of the schema.
    `statuses` gets the status of the file.

    OSError for a file that cannot be read, ValueError for one that is not an Arrow file.
    """
    return cached(path, "arrow", 1, lambda: _scanned(path), check=_fits, statuses=statuses)


def _fits(index: Index, size: int) -> bool:
    named = has_columns(index, offset="int64 n", size="int64 n", rows="int64 n", schema="int64 2")
    return (
        named
        and all_inside(index["offset"], index["size"], size)
        and all_inside(index["schema"][:1], index["schema"][1:], size)
        and all_within(index["rows"], 0, 1 << 40)
    )


def _scanned(path: str) -> Index:
    batches: list[tuple[int, int, int]] = []
    schema = None
    with RegularFile(path) as file:
        at = 8 if file.read(0, len(_MAGIC)) == _MAGIC else 0
        while at <= file.size - 8:
            marker, length = struct.unpack("<Ii", file.read(at, 8))
            head = 8
            if marker != _CONTINUED:  # before Arrow 0.15 there was no marker
                length, head = marker, 4
            if length == 0:
                break
            if not 0 < length <= min(_LARGEST, file.size - at - head):
                raise ValueError(f"{path}: expected a message of Arrow at byte {at}, got one of {length} bytes")
            kind, body, rows = _described(path, at, file.read(at + head, length))
            size = head + length + body
            if size > file.size - at:
                raise ValueError(f"{path}: a message of {size} bytes at {at} ends after the file: is it cut off?")
            if kind == _DICTIONARY:
                raise ValueError(f"{path}: expected plain columns, got dictionaries: write them with to_parquet")
            if kind == _RECORDS:
                batches.append((at, size, rows))
            elif schema is None:
                schema = at, size
            at += size
    if schema is None:
        raise ValueError(f"{path}: expected a file or stream of Arrow, got no schema")
    offsets, sizes, rows_of = np.array(batches, np.int64).reshape(-1, 3).T.copy()
    return {"offset": offsets, "size": sizes, "rows": rows_of, "schema": np.array(schema, np.int64)}


def _described(path: str, at: int, text: bytes) -> tuple[int, int, int]:
    """The type of a message, the size of its data, and the rows of a record batch, from its flatbuffer."""
    try:
        message = struct.unpack_from("<I", text)[0]
        kind = _field(text, message, 1, "<B")
        body = _field(text, message, 3, "<q")
        rows = 0
        if kind == _RECORDS:
            place = _place(text, message, 2)
            rows = _field(text, place + struct.unpack_from("<I", text, place)[0], 0, "<q") if place else -1
    except struct.error:
        kind = body = rows = -1
    if kind not in (_SCHEMA, _DICTIONARY, _RECORDS) or body < 0 or not 0 <= rows <= 1 << 40:
        raise ValueError(f"{path}: expected a message of Arrow at byte {at}: is the file damaged?")
    return kind, body, rows


def _place(text: bytes, table: int, number: int) -> int:
    """The position of a table's field; 0 if it has the default. struct.error for a position outside of the text."""
    vtable = table - struct.unpack_from("<i", text, table)[0]
    if not 0 <= vtable < len(text):
        raise struct.error("outside")
    if struct.unpack_from("<H", text, vtable)[0] < 6 + 2 * number:
        return 0
    offset = struct.unpack_from("<H", text, vtable + 4 + 2 * number)[0]
    return table + offset if offset else 0


def _field(text: bytes, table: int, number: int, form: str) -> int:
    place = _place(text, table, number)
    return struct.unpack_from(form, text, place)[0] if place else 0


def read_schema(path: str, known: Status, index: Index) -> Any:
    """The schema of a file. OSError for a file that cannot be read, ValueError for a damaged schema."""
    message = arrow().py_buffer(_bytes(path, known, *index["schema"].tolist()))
    try:
        schema = arrow().ipc.read_schema(message)
        schema.names  # decoded on first use  # noqa: B018
        return schema
    except (OSError, UnicodeDecodeError, arrow().ArrowException) as error:
        raise ValueError(f"{path}: expected a schema of Arrow: {error}") from None


def read_batch(path: str, known: Status, schema: Any, offset: int, size: int, rows: int) -> Any:
    """A record batch as a table."""
    batch = arrow().ipc.read_record_batch(arrow().py_buffer(_bytes(path, known, offset, size)), schema)
    if batch.num_rows != rows:
        raise ValueError(f"expected {rows} rows in the record batch at byte {offset}, got {batch.num_rows}")
    return arrow().Table.from_batches([batch])


def _bytes(path: str, known: Status, offset: int, size: int) -> np.ndarray:
    with OpenFiles([path], [known]) as files:
        (part,) = files.read([0], [offset], [size])
    if isinstance(part, Exception):
        raise part
    return part
