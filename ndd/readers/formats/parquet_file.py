"""Row groups of a Parquet file: the positions of their columns, their statistics and their rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ndd._tensor import Packed
from ndd.io.object_store import Status
from ndd.readers.files.file_reading import OpenFiles
from ndd.readers.files.seekable_file import SeekableFile
from ndd.readers.formats.arrow import Locate, Opened, Values, arrow, opened, storage_type
from ndd.readers.formats.parquet_footer import RowGroup, row_groups
from ndd.readers.formats.parquet_pages import is_large, large_values

_TAIL = 1 << 16  # bytes at the end of a file that are read first
_TESTS: dict[str, Any] = {
    "==": lambda low, high, value: low <= value <= high,
    "!=": lambda low, high, value: not low == high == value,
    "<": lambda low, high, value: low < value,
    "<=": lambda low, high, value: low <= value,
    ">": lambda low, high, value: high > value,
    ">=": lambda low, high, value: high >= value,
    "in": lambda low, high, values: any(low <= value <= high for value in values),
}
COMPARISONS = tuple(_TESTS)


class Footer(NamedTuple):
    """The metadata of a Parquet file, and the store of the file."""

    metadata: Any
    groups: list[RowGroup]
    schema: Any
    status: Status | None


def footers(paths: Sequence[str]) -> list[Footer | Exception]:
    """The metadata of each file, or the error of reading it. All ends are requested together."""
    files = OpenFiles(paths)
    with files:
        sizes = np.asarray(files.sizes)
        tails = files.read(
            range(len(paths)), np.maximum(sizes - _TAIL, 0), np.where(sizes < 0, -1, np.minimum(sizes, _TAIL))
        )
        lengths = [_footer_size(tail) for tail in tails]
        for place, (size, length) in enumerate(zip(sizes.tolist(), lengths, strict=True)):
            if _TAIL < length <= size:
                tails[place] = files.read([place], [size - length], [length])[0]
    statuses: Any = files.statuses or [None] * len(paths)
    return [
        tail if isinstance(tail, Exception) else _footer(tail, status)
        for tail, status in zip(tails, statuses, strict=True)
    ]


def _footer_size(tail: Any) -> int:
    """The bytes of a footer with its length and magic, found from the end of the file."""
    return 0 if isinstance(tail, Exception) or len(tail) < 8 else int(tail[-8:-4].view("<u4")[0]) + 8


def _footer(tail: np.ndarray, status: Status | None) -> Footer | Exception:
    try:
        metadata = arrow().parquet.read_metadata(arrow().BufferReader(tail))
        groups = row_groups(tail[-_footer_size(tail) : -8].tobytes())
        if len(groups) != metadata.num_row_groups:
            raise ValueError(f"{metadata.num_row_groups} row groups, {len(groups)} described")
        schema = metadata.schema.to_arrow_schema()
        schema.names  # decoded on first use  # noqa: B018
        return Footer(metadata, groups, schema, status)
    except Exception as error:  # pyarrow raises OSError, ArrowInvalid and others
        return ValueError(f"expected the metadata of a Parquet file at its end: {error}")


def may_hold(footer: Footer, group: int, predicate: Sequence[tuple[str, str, Any]]) -> bool:
    """Whether some row of a row group may fulfil all conditions, by its statistics."""
    leaves = {leaf.path: leaf for leaf in footer.groups[group].leaves}
    for name, comparison, value in predicate:
        if name not in leaves or footer.schema.get_field_index(name) < 0:
            continue
        kind = footer.schema.field(name).type
        least, most = (_bound(kind, encoded) for encoded in (leaves[name].least, leaves[name].most))
        try:
            if least is not None and most is not None and not _TESTS[comparison](least, most, value):
                return False
        except TypeError:  # a value of another type than the column's: nothing is known
            continue
    return True


def _bound(kind: Any, encoded: bytes | None) -> Any:
    """The least or greatest value of a column of integers, floats or texts; None for other columns, and if it is unknown."""
    types = arrow().types
    if not isinstance(encoded, bytes):
        return None
    if types.is_string(kind) or types.is_large_string(kind):
        return encoded.decode("utf-8", "replace")
    if len(encoded) in (4, 8) and types.is_integer(kind):
        return int.from_bytes(encoded, "little", signed=not types.is_unsigned_integer(kind))
    if len(encoded) == kind_width(kind) and types.is_floating(kind):
        return float(np.frombuffer(encoded, f"<f{len(encoded)}")[0])
    return None


def kind_width(kind: Any) -> int:
    """The bytes of a float type; 0 for types without a width."""
    return kind.bit_width // 8 if arrow().types.is_floating(kind) else 0


def read_group(path: str, footer: Footer, group: int, columns: Sequence[str], locate: Locate) -> Opened:
    """Some columns of a row group. Their bytes are read first, in large ranges."""
    leaves = [leaf for leaf in footer.groups[group].leaves if _is_of(leaf.path, columns)]
    offsets, sizes = [leaf.offset for leaf in leaves], [leaf.size for leaf in leaves]
    ready: dict[str, Any] = {}
    with SeekableFile(path, offsets, sizes, footer.status) as ranges:
        for name in columns:
            values = _large_values(ranges, footer, group, name)
            if values is not None:
                ready[name] = partial(_placed, values)
        others = [name for name in columns if name not in ready]
        if others:
            file = arrow().parquet.ParquetFile(arrow().PythonFile(ranges, "r"), metadata=footer.metadata)
            table = file.read_row_group(group, columns=others, use_threads=False)
            if table.num_rows != footer.groups[group].rows:
                raise ValueError(
                    f"expected {footer.groups[group].rows} rows in row group {group}, got {table.num_rows}"
                )
            ready.update(zip(others, opened(table.select(others), path.rpartition("/")[0], locate), strict=True))
    return [ready[name] for name in columns]


def _placed(values: Packed, rows: np.ndarray) -> Values:
    return values.picked(rows), {}


def _large_values(ranges: SeekableFile, footer: Footer, group: int, name: str) -> Packed | None:
    """A column of large bytes, or of structs with a field `bytes`; None if pyarrow has to read it."""
    kind = storage_type(footer.schema.field(name).type)
    types, leaves = arrow().types, footer.groups[group].leaves
    if types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
        name, kind = f"{name}.bytes", kind.field("bytes").type
    if not (types.is_binary(kind) or types.is_large_binary(kind)):
        return None
    places = [place for place, leaf in enumerate(leaves) if leaf.path == name]
    if len(places) != 1 or not is_large(leaves[places[0]]):
        return None
    leaf, described = leaves[places[0]], footer.metadata.schema.column(places[0])
    if described.path != name or described.max_repetition_level or leaf.count != footer.groups[group].rows:
        return None
    return large_values(ranges.part(leaf.offset, leaf.size), leaf, described.max_definition_level)


def bytes_of(group: RowGroup, columns: Sequence[str]) -> int:
    """The approximate bytes of some columns of a row group when decoded."""
    return sum(leaf.plain_size for leaf in group.leaves if _is_of(leaf.path, columns))


def _is_of(leaf: str, columns: Sequence[str]) -> bool:
    return leaf in columns or leaf.partition(".")[0] in columns
