"""LMDB: where in `data.mdb` the records are, and a store of them.

The file is read directly: without an LMDB library (whose memory map ends the process if the file is cut off), without a lock
file, and without anything that a fork or several threads could break. It consists of pages; page numbers and sizes are in
the byte order of a 64-bit little-endian machine:

* a page begins with 16 bytes: its number (8), 2 unused, its kind (2: 1 branch, 2 leaf, 4 overflow, 8 meta), and for
  branches and leaves the end of a table of 2-byte node addresses that follows;
* pages 0 and 1 are meta pages: the one with the higher transaction number is in force. It names the root of the tree;
* a node has 8 bytes (size or child in 4, more of it or flags in 2, size of the key in 2), the key, and in a leaf the
  record, or the number of the overflow page after whose 16 bytes the record lies in one piece.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence

import numpy as np

from ndd.io.file import from_where
from ndd.io.object_store import is_remote, without_query
from ndd.readers.files.file_reading import OpenFiles
from ndd.readers.files.index_cache import Index, all_inside, all_within, cached, has_columns
from ndd.readers.stores.container import ContainerStore, rows_at
from ndd.readers.stores.records import Records

_MAGIC, _VERSION = 0xBEEFC0DE, 1
_META = struct.Struct("<16xII16xI48xHH24xQqQQ")  # the fields of a meta page that `_meta` gives
_HEAD, _NODE = 16, 8  # bytes of a page's and of a node's head
_BRANCH, _LEAF = 1, 2
_KINDS = 0x2F  # branch, leaf, overflow, meta, and leaves of keys alone
_OUTSIDE = 1  # of a node: its record is on an overflow page
_DUPLICATES = 4  # of a table: several records for a key
_DEEPEST = 32  # levels of a tree, as in LMDB itself
_LARGEST_PAGE = 1 << 16  # bytes, as in LMDB itself
_MOST_PAGES = 1 << 44  # so that offsets are numbers of 64 bits
_AT_ONCE = 1024  # pages


class LmdbStore(ContainerStore):
    """The records of one or several LMDBs, in the order of their keys, one LMDB after the other.

    A subclass interprets the bytes of records in `contents`.
    """

    def __init__(self, reader: str, paths: Sequence[str]):
        files = [os.path.join(path, "data.mdb") if _is_folder(path) else path for path in paths]
        indices = [_index(reader, path) for path in files]
        counts = [len(index["offsets"]) for index in indices]
        if not sum(counts):
            raise RuntimeError(f"{reader}: No records in {', '.join(files)}")
        joined = {name: np.concatenate([index[name] for index in indices]) for name in indices[0]}
        self.heads, self.marks = joined["heads"], joined["marks"]
        super().__init__(files, np.repeat(np.arange(len(files)), counts), joined["offsets"], joined["sizes"])

    def contents(self, data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> Records:
        """The outputs of several records: bytes `starts[i]` to `ends[i]` of `data`. A ValueError for a damaged record."""
        raise NotImplementedError

    def read(self, container: int, numbers: np.ndarray) -> Records:
        """The outputs of those records that could be read and that still match the index."""
        offsets, sizes, heads = self.offsets[numbers], self.sizes[numbers], self.heads[numbers]
        data, starts, failed = self.packed(container, offsets, sizes)
        good = np.ones(len(numbers), np.bool_)
        good[list(failed)] = False
        good &= rows_at(data, starts, 8).view("<i8")[:, 0] == self.marks[numbers]
        contents = self.contents(data, np.where(good, starts + heads, 0), np.where(good, starts + sizes, 0))
        if good.all():
            return contents
        listed = list(contents)
        for place in np.flatnonzero(~good).tolist():
            listed[place] = failed.get(place) or ValueError(
                f"expected a record of {sizes[place] - heads[place]} bytes at byte {offsets[place]}, but something else "
                "is there: was the LMDB written to after it was opened? Make a new reader"
            )
        return Records.of(listed)


def _is_folder(path: str) -> bool:
    return not without_query(path).endswith(".mdb") if is_remote(path) else os.path.isdir(path)


def _index(reader: str, path: str) -> Index:
    try:
        return cached(path, "lmdb", 1, lambda: _indexed(path), check=lambda index, size: _is_of(path, index, size))
    except ValueError as error:
        raise RuntimeError(f"{reader}: {path}: {error}") from error
    except OSError as error:
        raise RuntimeError(f"{reader}: Cannot open: {path}{from_where(path)}: {error.strerror}") from error


def _is_of(path: str, index: Index, size: int) -> bool:
    """Whether an index may belong to an LMDB, which counts its records."""
    if not has_columns(index, offsets="int64 n", sizes="int64 n", heads="int64 n", marks="int64 n"):
        return False
    offsets, sizes, heads, _ = index.values()
    with OpenFiles([path]) as file:
        records = _tree(file)[-1]
    inside = all_inside(offsets, sizes, size) and all_within(heads, _NODE, size) and bool((heads <= sizes).all())
    return len(offsets) == records and inside


def _indexed(path: str) -> Index:
    """The places of an LMDB's records. Each has the offset of the head of its node or overflow page, the bytes of head and
    record, those of the head alone, and the head's first 8. ValueError for a file that is not an LMDB."""
    with OpenFiles([path]) as file:
        page_size, root, depth, last, expected = _tree(file)
        pages = np.array([root] if depth else [], np.int64)
        for level in range(depth):
            if not len(pages) or np.any((pages < 2) | (pages > last)) or len(np.unique(pages)) < len(pages):
                raise ValueError(
                    f"expected an LMDB of {last + 1} pages, but its tree leads to other pages, or to one page twice"
                )
            gives = _children if level < depth - 1 else _records
            parts = [gives(*_nodes(file, pages[i : i + _AT_ONCE], page_size)) for i in range(0, len(pages), _AT_ONCE)]
            pages = np.concatenate(parts) if level < depth - 1 else pages
    rows = np.concatenate([np.empty((0, 4), np.int64), *(parts if depth else [])])
    if len(rows) != expected:
        raise ValueError(f"expected the {expected} records that the LMDB counts, found {len(rows)}")
    if np.any((rows[:, 0] < 2 * page_size) | (rows[:, 0] + rows[:, 1] > (last + 1) * page_size)):
        raise ValueError(f"expected an LMDB of {last + 1} pages, but some of its records lie outside")
    return {name: np.ascontiguousarray(rows[:, k]) for k, name in enumerate(("offsets", "sizes", "heads", "marks"))}


def _tree(file: OpenFiles) -> tuple[int, int, int, int, int]:
    """Bytes of a page, root and depth of the tree, last page in use, number of records."""
    page_size = _meta(file, 0)[0]
    chosen = max((_meta(file, at) for at in (0, page_size)), key=lambda meta: meta[-1])
    _, flags, depth, records, root, last, _ = chosen
    if depth > _DEEPEST or last > _MOST_PAGES:
        raise ValueError(f"expected an LMDB whose tree has at most {_DEEPEST} levels, got {depth} on {last + 1} pages")
    if flags & _DUPLICATES:
        raise ValueError("expected an LMDB with one record for each key, got one that may hold several")
    return page_size, root, depth, last, records


def _meta(file: OpenFiles, offset: int) -> tuple[int, ...]:
    """The fields of a meta page: bytes of a page, flags, depth, records and root of the tree, last page, number of the
    transaction."""
    data = file.read([0], [offset], [_META.size])[0]
    if isinstance(data, OSError):
        raise data
    magic, version, *facts = _META.unpack(data.tobytes())
    if (magic, version) != (_MAGIC, _VERSION) or facts[0] & (facts[0] - 1) or not 256 <= facts[0] <= _LARGEST_PAGE:
        raise ValueError(
            f"expected an LMDB, with {_MAGIC:#x} 1 at byte {offset + _HEAD} and pages of 256 to {_LARGEST_PAGE} bytes, got "
            f"{magic:#x} {version} and {facts[0]} bytes"
        )
    return tuple(facts)


def _nodes(file: OpenFiles, numbers: np.ndarray, page_size: int) -> tuple[np.ndarray, ...]:
    """All nodes of some branches, or of some leaves: the pages as `[N, bytes]`, which kind they are; and of each node its
    row in `pages`, its place in it, and its four 2-byte numbers."""
    pieces = file.read(np.zeros(len(numbers)), numbers * page_size, np.full(len(numbers), page_size))
    for piece in pieces:
        if isinstance(piece, OSError):
            raise piece
    pages = np.stack(pieces)  # type: ignore[arg-type]
    words = pages.view("<u2")
    kinds, table_ends = words[:, 5] & _KINDS, words[:, 6].astype(np.int64)
    wrong = (pages.view("<i8")[:, 0] != numbers) | (kinds != kinds[0]) | (table_ends < _HEAD)
    wrong |= (table_ends - _HEAD) // 2 > (page_size - _HEAD) // (_NODE + 2)  # nodes, which do not overlap
    counts = np.where(wrong, 0, table_ends - _HEAD) // 2
    rows = np.repeat(np.arange(len(numbers)), counts)
    places = words[rows, _HEAD // 2 + np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)]
    wrong[rows[(places < _HEAD) | (places > page_size - 8) | (places % 2 == 1)]] = True
    if np.any(wrong):
        number = numbers[np.argmax(wrong)]
        raise ValueError(
            f"expected page {number} of the LMDB's tree at byte {number * page_size}, but something else is there"
        )
    places = places.astype(np.int64)
    heads = [words[rows, places // 2 + k].astype(np.int64) for k in range(4)]
    return numbers, pages, kinds[:1], rows, places, *heads


def _children(
    numbers: np.ndarray, pages: np.ndarray, kind: np.ndarray, rows: np.ndarray, places: np.ndarray,
    low: np.ndarray, middle: np.ndarray, high: np.ndarray, key: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """The pages below some branches."""
    if kind[0] != _BRANCH:
        raise ValueError(f"expected page {numbers[0]} to be a branch of the LMDB's tree")
    return low | middle << 16 | high << 32


def _records(
    numbers: np.ndarray, pages: np.ndarray, kind: np.ndarray, rows: np.ndarray, places: np.ndarray,
    low: np.ndarray, high: np.ndarray, flags: np.ndarray, key: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """The records of some leaves: a row (offset, size, head, mark) for each."""
    page_size = pages.shape[1]
    if kind[0] != _LEAF:
        raise ValueError(f"expected page {numbers[0]} to be a leaf of the LMDB's tree")
    if np.any(flags & ~_OUTSIDE):
        raise ValueError("expected an LMDB with records in its main table, got one with named tables")
    sizes, starts, outside = low | high << 16, places + _NODE + key, flags == _OUTSIDE
    if np.any(starts + np.where(outside, 8, sizes) > page_size):
        raise ValueError(f"expected records that end within their pages, from page {numbers[0]} on")
    addresses = np.where(outside, starts, 0)[:, None] + np.arange(8)
    there = np.ascontiguousarray(pages[rows[:, None], addresses]).view("<i8")[:, 0]
    offsets = np.where(outside, np.clip(there, -1, _MOST_PAGES) * page_size, numbers[rows] * page_size + places)
    heads = np.where(outside, _HEAD, starts - places)
    marks = np.where(outside, there, low | high << 16 | key << 48)
    return np.stack([offsets, heads + sizes, heads, marks], axis=1)
