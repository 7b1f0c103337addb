"""Shards of MDS and LitData: a count, the offset of each sample as u32, and the samples."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ndd._execution.memoize import Memoized
from ndd._execution.signal_safe import start
from ndd._tensor.secrets import without_secrets
from ndd.io.object_store import connections, is_remote
from ndd.readers.files.file_reading import OpenFiles, beginnings, read_slowly, whole_file
from ndd.readers.files.file_tree import listed_names
from ndd.readers.files.table_arguments import cannot_open
from ndd.readers.formats.arrow import inflated
from ndd.readers.formats.encoded_fields import Layout
from ndd.readers.stores.chunks import ChunkStore
from ndd.readers.stores.records import BYTES_OF_STORES, THREADS_OF_STORES, BatchedStore, Records, RecordStore

_KEPT_OFFSETS = 1 << 22  # of samples: 16 MB
_AHEAD = 32  # shards whose offsets are requested together


class Shard(NamedTuple):
    """One file."""

    path: str
    count: int
    """The number of its samples."""
    codec: str
    """The codec that compressed the whole shard; "" for none."""
    size: int
    """Its size in bytes when decompressed; approximate if it is not compressed."""


def read_indexes(reader: str, kind: str, path: Any, take: Callable[[str, Any], None]) -> None:
    """Calls `take` with each folder and the content of its `index.json`.

    RuntimeError for an index that cannot be read, or for which `take` raises ValueError, KeyError, TypeError or
    AttributeError.
    """
    for folder in listed_names(reader, "path", path):
        folder = folder.removesuffix("index.json")
        index = os.path.join(folder, "index.json")
        try:
            take(folder, json.loads(whole_file(index)))
        except OSError as error:
            raise cannot_open(reader, error) from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise RuntimeError(
                f"{reader}: {without_secrets(index)}: expected an index of {kind}, got {reason}"
            ) from error


def shard_store(shards: Sequence[Shard], layout: Layout, unpack: Unpack | None = None) -> RecordStore:
    """The samples of all shards. Shards that are compressed, or that `unpack` opens, are read one at a time."""
    if unpack is not None or any(shard.codec for shard in shards):
        return _WholeShards(shards, layout, unpack or _plain)
    return _Shards(shards, layout)


def offsets_in(head: np.ndarray, count: int, size: int) -> np.ndarray:
    """The offsets of the samples of a shard and the end of the last, from its first bytes. ValueError for impossible
    offsets."""
    if len(head) < 4 * (count + 2):
        raise ValueError(f"expected a shard of {count} samples, got {size} bytes")
    numbers = np.frombuffer(head[: 4 * (count + 2)].tobytes(), "<u4")
    offsets = numbers[1:]
    if numbers[0] != count:
        raise ValueError(f"expected a shard of {count} samples, as the index says, got one of {numbers[0]}")
    if offsets[0] < 4 * (count + 2) or offsets[-1] > size or (offsets[1:] < offsets[:-1]).any():
        raise ValueError(f"expected samples within the {size} bytes of the shard, got wrong offsets")
    return offsets


class _Shards(BatchedStore):
    """Samples are read one by one; the offsets of the most recently used shards are cached."""

    def __init__(self, shards: Sequence[Shard], layout: Layout):
        self._paths = [shard.path for shard in shards]
        self._counts = np.array([shard.count for shard in shards], np.int64)
        self.firsts = np.concatenate([[0], np.cumsum(self._counts)])
        self._layout = layout
        limit = min(max(_KEPT_OFFSETS // max(int(self._counts.max(initial=1)), 1), 16), 4096)
        self._heads = Memoized(_Head, limit=limit)
        self._ahead = min(_AHEAD, limit // 2)
        self._asking = Memoized(threading.Lock)
        self._remote = any(map(is_remote, self._paths))
        if self._remote:
            self.bytes_together = BYTES_OF_STORES
            self.at_once, self.threads = connections(), THREADS_OF_STORES
            self.record_bytes = sum(shard.size for shard in shards) // max(int(self.firsts[-1]), 1)

    def __len__(self) -> int:
        return int(self.firsts[-1])

    def source(self, number: int) -> str:
        """ "shard.00000.mds sample 17": the sample's place in its shard."""
        return self.sources([number])[0]

    def sources(self, numbers: Sequence[int]) -> list[str]:
        """The places of several samples."""
        shards = np.searchsorted(self.firsts, numbers, "right") - 1
        rows = np.asarray(numbers, np.int64) - self.firsts[shards]
        return [f"{self._paths[shard]} sample {row}" for shard, row in zip(shards.tolist(), rows.tolist(), strict=True)]

    def records(self, numbers: Sequence[int]) -> Records:
        """Several samples, whose ranges are read together, whatever their shards."""
        listed = np.asarray(numbers, np.int64)
        shards = np.searchsorted(self.firsts, listed, "right") - 1
        order = np.lexsort((listed, shards))
        used, which = np.unique(shards[order], return_inverse=True)
        heads = self._filled(used.tolist())
        begins, sizes = np.zeros(len(order), np.int64), np.zeros(len(order), np.int64)
        faults: dict[int, Exception] = {}
        rows = (listed - self.firsts[shards])[order]
        for k, head in enumerate(heads):
            places = np.flatnonzero(which == k)
            if isinstance(head.offsets, Exception):
                faults.update(dict.fromkeys(places.tolist(), head.offsets))
                continue
            begins[places] = head.offsets[rows[places]]
            sizes[places] = head.offsets[rows[places] + 1] - begins[places]
        good = np.array([place for place in range(len(order)) if place not in faults], np.int64)
        if not len(good):
            return Records.of([faults[place] for place in range(len(order))]).picked(np.argsort(order))
        known: Any = [head.status for head in heads]
        with OpenFiles([self._paths[shard] for shard in used.tolist()], known if self._remote else None) as files:
            data, starts, failed = files.read_packed(which[good], begins[good], sizes[good])
        sizes[good[list(failed)]] = 0
        records = self._layout.records(data, starts, sizes[good])
        records = records.without({place: error for place, error in failed.items()})
        return _with_faults(records, good, faults, len(order)).picked(np.argsort(order))

    def _filled(self, shards: list[int]) -> list[_Head]:
        """The heads of some shards. Unknown ones are requested together."""
        heads = [self._heads(shard) for shard in shards]
        if any(head.offsets is None for head in heads):
            with self._asking():  # the other threads mostly want the same
                heads = self._asked(shards, heads)[: len(shards)]
        elif self._remote and len(shards) <= 2:
            self._ask_ahead(shards[-1])
        return heads

    def _ask_ahead(self, shard: int) -> None:
        """In stored order: requests the heads of the shards that follow while the present ones are read."""
        middle = min(shard + self._ahead // 2, len(self._paths) - 1)
        asking = self._asking()
        if self._heads(middle).offsets is not None or not asking.acquire(blocking=False):
            return

        def ask() -> None:
            try:
                self._asked([middle], [self._heads(middle)])
            finally:
                asking.release()

        start(threading.Thread(target=ask, name="ndd-heads", daemon=True))

    def _asked(self, shards: list[int], heads: list[_Head]) -> list[_Head]:
        """`heads`, filled. In a store, the heads of some shards after them are requested as well."""
        heads = list(heads)
        missing = [k for k, head in enumerate(heads) if head.offsets is None]
        if missing and self._remote:
            following = range(
                shards[-1] + 1, min(shards[-1] + 1 + max(self._ahead - len(missing), 0), len(self._paths))
            )
            more = [shard for shard in following if self._heads(shard).offsets is None]
            missing += range(len(shards), len(shards) + len(more))
            shards, heads = [*shards, *more], [*heads, *map(self._heads, more)]
        if missing:
            paths = [self._paths[shards[k]] for k in missing]
            counts = self._counts[[shards[k] for k in missing]].tolist()
            starts = beginnings(paths, [4 * (count + 2) for count in counts])
            for k, beginning, count in zip(missing, starts, counts, strict=True):
                status: Any = beginning
                try:
                    if isinstance(beginning, BaseException):
                        raise beginning
                    status, piece = beginning
                    heads[k].status, heads[k].offsets = status, offsets_in(piece, count, status.size)
                except (OSError, ValueError) as error:  # of these records only: the file may exist the next time
                    heads[k] = _Head(shards[k], error, status)
        return heads

    def close(self) -> None:
        """Forgets the offsets."""
        self._heads.clear()


class _Head:
    """The offsets of a shard, or the error of reading them, and its entry in the store."""

    __slots__ = ("offsets", "status")

    def __init__(self, shard: int, offsets: Any = None, status: Any = None):
        self.offsets, self.status = offsets, status


def _with_faults(records: Records, places: np.ndarray, faults: dict[int, Exception], count: int) -> Records:
    """Records for some of `count` positions; the others are errors."""
    if not faults:
        return records
    every: dict[int, BaseException] = {**faults, **{int(places[k]): error for k, error in records.faults.items()}}
    return Records(count, records.columns, dict(sorted(every.items())))


Unpack = Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]
"""The samples of a whole shard, and the offset of each and of the end of the last, of its bytes and count."""


def _plain(data: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    return data, offsets_in(data, count, len(data))


class _WholeShards(ChunkStore):
    def __init__(self, shards: Sequence[Shard], layout: Layout, unpack: Unpack):
        counts = np.array([shard.count for shard in shards], np.int64)
        super().__init__(
            counts, max((shard.size for shard in shards), default=1), any(is_remote(shard.path) for shard in shards)
        )
        self._shards, self._layout, self._unpack = list(shards), layout, unpack

    def source_in(self, chunk: int, row: int) -> str:
        """As of shards that are not compressed."""
        return f"{self._shards[chunk].path} sample {row}"

    def load(self, chunk: int) -> tuple[np.ndarray, np.ndarray]:
        shard = self._shards[chunk]
        data: Any = read_slowly(shard.path)
        if isinstance(data, Exception):
            raise data
        if shard.codec:
            data = inflated(shard.codec, data, shard.size)
        return self._unpack(data, shard.count)

    def rows(self, loaded: tuple[np.ndarray, np.ndarray], rows: np.ndarray) -> Records:
        """Some of its samples."""
        data, offsets = loaded
        begins = offsets[rows].astype(np.int64)
        return self._layout.records(data, begins, offsets[rows + 1] - begins)
