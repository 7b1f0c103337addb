"""Row groups of a Parquet file: where their columns lie, what their statistics say, and their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ndd.readers.files.file_reading import OpenFiles
from ndd.readers.files.seekable_file import SeekableFile
from ndd.readers.formats.arrow import arrow

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


def footers(paths: Sequence[str]) -> list[Any]:
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
    return [tail if isinstance(tail, Exception) else _metadata(tail) for tail in tails]


def _footer_size(tail: Any) -> int:
    """The bytes of a footer with its length and magic, as the end of the file says."""
    return 0 if isinstance(tail, Exception) or len(tail) < 8 else int(tail[-8:-4].view("<u4")[0]) + 8


def _metadata(tail: np.ndarray) -> Any:
    try:
        return arrow().parquet.read_metadata(arrow().BufferReader(tail))
    except Exception as error:  # pyarrow raises OSError, ArrowInvalid and others
        return ValueError(f"expected the metadata of a Parquet file at its end: {error}")


def may_hold(group: Any, predicate: Sequence[tuple[str, str, Any]]) -> bool:
    """Whether the statistics of a row group leave it open that some row fulfils all of the conditions."""
    leaves = {group.column(k).path_in_schema: group.column(k) for k in range(group.num_columns)}
    for name, comparison, value in predicate:
        statistics = leaves[name].statistics if name in leaves else None
        if statistics is None or not statistics.has_min_max:
            continue
        try:
            if not _TESTS[comparison](statistics.min, statistics.max, value):
                return False
        except TypeError:  # a value of another type than the column's: nothing is known
            continue
    return True


def read_group(path: str, metadata: Any, group: int, columns: Sequence[str]) -> Any:
    """Some columns of a row group as a table. Their bytes are read first, in large ranges."""
    described = metadata.row_group(group)
    offsets, sizes = [], []
    for k in range(described.num_columns):
        leaf = described.column(k)
        if _is_of(leaf.path_in_schema, columns):
            first = leaf.data_page_offset
            if leaf.has_dictionary_page and leaf.dictionary_page_offset is not None:
                first = min(first, leaf.dictionary_page_offset)
            offsets.append(first)
            sizes.append(leaf.total_compressed_size)
    parquet = arrow().parquet
    with SeekableFile(path, offsets, sizes) as ranges:
        file = parquet.ParquetFile(arrow().PythonFile(ranges, "r"), metadata=metadata)
        table = file.read_row_group(group, columns=list(columns), use_threads=False)
    if table.num_rows != described.num_rows:
        raise ValueError(f"expected {described.num_rows} rows in row group {group}, got {table.num_rows}")
    return table.select(list(columns))


def bytes_of(group: Any, columns: Sequence[str]) -> int:
    """The bytes of some columns of a row group, decoded; about."""
    leaves = [group.column(k) for k in range(group.num_columns)]
    return sum(max(leaf.total_uncompressed_size, 0) for leaf in leaves if _is_of(leaf.path_in_schema, columns))


def _is_of(leaf: str, columns: Sequence[str]) -> bool:
    return leaf in columns or leaf.partition(".")[0] in columns
