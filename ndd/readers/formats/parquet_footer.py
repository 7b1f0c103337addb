"""The footer of a Parquet file, in Thrift's compact protocol: its row groups and the places of their columns.

pyarrow 26 ends the process if the description of a column in a damaged footer contradicts itself
(`RowGroupMetaData.column`), so it only reads the data.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

_DEEPEST = 16
_MOST_ROWS = 1 << 40  # of a row group
_BOOLEANS = {1: True, 2: False}
_BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)


class Leaf(NamedTuple):
    """The part of a column (of a field, where it is a struct) in a row group."""

    path: str
    kind: int
    """The physical type of its values."""
    codec: int
    count: int
    """The number of its values, with nulls."""
    offset: int
    size: int
    plain_size: int
    """When decompressed."""
    least: bytes | None
    """The least value, as its type encodes it; None if it is not known."""
    most: bytes | None


class RowGroup(NamedTuple):
    """A row group."""

    rows: int
    leaves: list[Leaf]


def row_groups(footer: bytes) -> list[RowGroup]:
    """The row groups of a footer, without the length and magic at its end. ValueError for a damaged footer."""
    try:
        described = Compact(footer).struct(0)
        return [_row_group(group) for group in described.get(4, [])]
    except (KeyError, TypeError, AttributeError, IndexError, struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"expected the footer of a Parquet file: {type(error).__name__}: {error}") from None


def _row_group(group: dict[int, Any]) -> RowGroup:
    rows = group[3]
    if type(rows) is not int or not 0 <= rows <= _MOST_ROWS:
        raise ValueError(f"expected the footer of a Parquet file, got a row group of {rows!r} rows")
    return RowGroup(rows, [_leaf(column[3]) for column in group[1]])


def _leaf(described: dict[int, Any]) -> Leaf:
    path = ".".join(part.decode() for part in described[3])
    offset = described[9]
    if described.get(11) is not None and 0 < described[11] < offset:  # the dictionary is before the data
        offset = described[11]
    size, plain = described[7], described[6]
    kind, codec, count = described[1], described[4], described[5]
    if min(offset, size, plain, count) < 0:
        raise ValueError(f"expected the footer of a Parquet file, got {size} bytes at {offset} for column {path!r}")
    statistics = described.get(12) or {}
    return Leaf(path, kind, codec, count, offset, size, plain, statistics.get(6), statistics.get(5))


class Compact:
    """Reads Thrift's compact protocol: structs as dicts by number.

    Attributes:
        at: the place that is read next.
    """

    def __init__(self, data: bytes | memoryview):
        self._data, self.at = data, 0

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def varint(self) -> int:
        """A number of 7 bits in each byte."""
        value = shift = 0
        while shift < 70:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
        raise ValueError("expected the footer of a Parquet file, got a number of too many bytes")

    def _integer(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def take(self, size: int) -> Any:
        """Some bytes."""
        if size > len(self._data) - self.at:
            raise ValueError(f"expected the footer of a Parquet file, got a text of {size} bytes")
        self.at += size
        return self._data[self.at - size : self.at]

    def struct(self, depth: int) -> dict[int, Any]:
        """A struct, from here on."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            fields[number] = _BOOLEANS[kind] if kind in _BOOLEANS else self._value(kind, depth + 1)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError("expected the footer of a Parquet file, got structs of too many levels")
        if kind in _INTEGERS:
            return self._integer()
        if kind == _BINARY:
            return self.take(self.varint())
        if kind == _STRUCT:
            return self.struct(depth)
        if kind in (_LIST, _SET):
            return self._list(depth)
        if kind == _DOUBLE:
            return struct.unpack("<d", self.take(8))[0]
        if kind == _BYTE or kind in _BOOLEANS:  # in a list a truth value is a byte
            return self._byte()
        raise ValueError(f"expected the footer of a Parquet file, got a value of type {kind}")

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self.varint()
        if count > len(self._data) - self.at:
            raise ValueError(f"expected the footer of a Parquet file, got a list of {count} values")
        return [self._value(head & 15, depth + 1) for _ in range(count)]
