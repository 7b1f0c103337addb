"""`readers.Parquet`: columns of Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ndd._execution.memoize import Memoized
from ndd._tensor.secrets import without_secrets
from ndd.io.object_store import is_remote
from ndd.readers.files.file_tree import FilePath
from ndd.readers.files.table_arguments import column_names, container_files, inside
from ndd.readers.formats.arrow import Opened, check_columns, rows_of
from ndd.readers.formats.parquet_file import COMPARISONS, Footer, bytes_of, footers, may_hold, read_group
from ndd.readers.output import Output
from ndd.readers.reader import Reader
from ndd.readers.stores.chunks import ChunkStore, Slot
from ndd.readers.stores.records import Records

_KEPT_FOOTERS = 256  # files: a footer of many row groups takes a MB
_ASKED_AT_ONCE = 1024  # footers


class Parquet(Reader):
    """Reads columns of Parquet files, with one output for each of `columns`.

    * Bytes, and structs with a field `bytes` (as Hugging Face stores pictures and sound), are u8 `[size]`: encoded
      pictures for `decoders.image`. If `bytes` is null, the file at `path` is read, relative to the Parquet file.
    * Numbers are arrays `[1]` of their type; a missing float is NaN. Lists of numbers are arrays, with one dimension for each
      level; nested lists of unequal lengths stay Python lists.
    * Texts and everything else are Python objects: a `str` for a sample, a list of them for a batch.

    Rows come in the order of the files and row groups. A row group is read as a whole, in large ranges and ahead of its use; the
    most recently used row groups stay decoded (256 MB). So `random_shuffle=True` reads each row group once. With
    `shuffle="global"` and more data than that, each row costs a whole row group: write small row groups for it
    (`row_group_size=100` for pictures), as `datasets` does.

    Args:
        path: a file, a folder (its `*.parquet`, and those one level below, sorted by name), or a list of them; URLs as well.
        columns: the names of the columns, in the order of the outputs; a single name for one column.
        predicate: conditions such as `("year", ">=", 2020)`, with ==, !=, <, <=, >, >= or in. Row groups are skipped if, by
            their statistics, no row can fulfil all conditions; of the others all rows are read. A condition on a missing column
            excludes nothing. Default: no conditions.

    Raises (at the first sample): RuntimeError for a missing or broken file, a missing column, no rows, or more shards than rows.
    At its batch: RuntimeError for a row group that cannot be read, and for a null that is neither text nor float.

    >>> import ndd, pathlib, tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.parquet"
    >>> pq.write_table(pa.table({"image": [b"JPEG", b"..."], "label": [3, 1], "caption": ["a cat", "a dog"]}), path)
    >>> reader = ndd.readers.Parquet(path=path, columns=["image", "label", "caption"])
    >>> for image, label, caption in reader.next_epoch():
    ...     print(image.shape, label.torch().item(), caption)
    (4,) 3 a cat
    (3,) 1 a dog
    """

    _permutes_first = False

    @classmethod
    def _outputs(cls, *, columns: Any = (), **arguments: Any) -> tuple[Output, ...]:
        return tuple(Output(name) for name in column_names(cls._display, columns))

    def _open(
        self,
        *,
        path: FilePath | Sequence[FilePath],
        columns: str | Sequence[str],
        predicate: Sequence[tuple[str, str, object]] | None = None,
    ) -> ChunkStore:
        names = column_names(self._display, columns)
        conditions = _checked(self._display, predicate or ())
        paths = container_files(self._display, "path", path, "*.parquet")
        groups: list[tuple[int, int, int]] = []  # file, row group, rows
        largest = 0
        kept: list[Footer] = []
        for place, footer in enumerate(_all_footers(paths)):
            if isinstance(footer, Exception):
                raise RuntimeError(
                    f"{self._display}: Cannot open: {without_secrets(paths[place])}: {footer}"
                ) from footer
            check_columns(self._display, without_secrets(paths[place]), names, footer.schema.names)
            kept += [footer] if place < _KEPT_FOOTERS else []
            for number, group in enumerate(footer.groups):
                if group.rows and may_hold(footer, number, conditions):
                    groups.append((place, number, group.rows))
                    largest = max(largest, bytes_of(group, names))
        if not groups:
            raise RuntimeError(f"{self._display}: no rows in {', '.join(map(without_secrets, paths[:3]))}")
        return _RowGroups(paths, np.array(groups, np.int64), names, largest, kept)


def _all_footers(paths: Sequence[str]) -> Any:
    for start in range(0, len(paths), _ASKED_AT_ONCE):
        yield from footers(paths[start : start + _ASKED_AT_ONCE])


def _checked(reader: str, predicate: Any) -> list[tuple[str, str, Any]]:
    """The conditions. Raises ValueError for other values."""
    for condition in predicate:
        if not isinstance(condition, tuple | list) or len(condition) != 3 or condition[1] not in COMPARISONS:
            raise ValueError(
                f'{reader}: predicate: expected conditions such as ("year", ">=", 2020) with one of '
                f"{', '.join(COMPARISONS)}, got {condition!r}"
            )
    return [(name, comparison, value) for name, comparison, value in predicate]


class _RowGroups(ChunkStore):
    def __init__(self, paths: list[str], groups: np.ndarray, columns: list[str], largest: int, known: list[Footer]):
        super().__init__(groups[:, 2], largest, any(map(is_remote, paths)))
        self._paths, self._groups, self._columns = paths, groups, columns
        self._footers = Memoized(Slot, limit=_KEPT_FOOTERS)
        for place, footer in enumerate(known):
            self._footers(place).filled(lambda _, kept=footer: kept, place)

    def load(self, chunk: int) -> Opened:
        place, group, _ = self._groups[chunk].tolist()
        path = self._paths[place]
        with self._footers.using(place) as slot:
            footer = slot.filled(lambda _: _footer(path), place)
        return read_group(path, footer, group, self._columns, inside)

    def rows(self, loaded: Opened, rows: np.ndarray) -> Records:
        return rows_of(loaded, rows)

    def source_in(self, chunk: int, row: int) -> str:
        """ "a.parquet row group 3 row 17": the row's place in its row group."""
        place, group, _ = self._groups[chunk].tolist()
        return f"{self._paths[place]} row group {group} row {row}"


def _footer(path: str) -> Footer:
    (footer,) = footers([path])
    if isinstance(footer, Exception):
        raise footer
    return footer
