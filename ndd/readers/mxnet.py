"""`readers.MXNet`: images and labels from MXNet's RecordIO files."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ndd._tensor import Packed
from ndd._tensor.dtype import float32, uint8
from ndd.io.file import from_where
from ndd.readers.files.file_reading import RegularFile, status
from ndd.readers.files.file_tree import MOST_BYTES, FilePath, is_offset, listed_names, path_texts, read_lines, words_of
from ndd.readers.files.index_cache import LEAST_TEXT, Index, all_within, cached, has_columns
from ndd.readers.output import Output, Record
from ndd.readers.reader import Reader
from ndd.readers.stores.container import ContainerStore, rows_at, warn_of_unlisted
from ndd.readers.stores.records import Records

_MAGIC = 0xCED7230A
_HEAD = struct.Struct("<II")  # of a part: magic, and kind (3 bits) and length (29 bits)
_ITEM = struct.Struct("<If16x")  # of a record's bytes: number of labels, one label, two ids
_REPORTED = 1 << 14  # records between two reports
_FIRST_READ = 1 << 22  # bytes, where the index leaves more room than that: it may list a few records only


class MXNet(Reader):
    """Reads MXNet RecordIO files. Outputs: the encoded image as u8 `[size]`, and the labels as f32 `[n]`.

    The labels are those of MXNet's `IRHeader`: the `flag` numbers that follow it, or its single label if `flag` is 0.
    Records come in the order of the file.

    Args:
        path: the record file (`.rec`). A list of files counts as one: offsets continue from file to file.
        index_path: the index (`.idx`), a line `key offset` for each record. Keys are ignored. Records that are not
            listed do not exist. An index that ends before the file raises a warning.

    Differences from DALI: records of several parts (images that contain the file's magic number) are joined; keys may
    be any text without spaces; a broken line of the index is an error; `shuffle_after_epoch` shuffles (in DALI 2.4.0 it
    reads the same shard in stored order).

    Raises (at the first sample): RuntimeError for a missing file, no or several index files, a broken or empty index, or more
    shards than records. At its batch: RuntimeError for a truncated or invalid record, as with the index of another file.

    >>> import ndd, pathlib, struct, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> item = struct.pack("<IfQQ", 0, 3.0, 0, 0) + b"JPEG"
    >>> _ = (folder / "a.rec").write_bytes(struct.pack("<II", 0xCED7230A, len(item)) + item)
    >>> _ = (folder / "a.idx").write_text("0 0")
    >>> reader = ndd.readers.MXNet(path=folder / "a.rec", index_path=folder / "a.idx")
    >>> for image, label in reader.next_epoch():
    ...     print(image.shape, label.torch().tolist())
    (4,) [3.0]
    """

    _permutes_first = False

    @classmethod
    def _outputs(cls, **arguments: Any) -> tuple[Output, ...]:
        return Output("image", uint8, 1), Output("label", float32, 1)

    def _open(
        self, *, path: FilePath | Sequence[FilePath], index_path: FilePath | Sequence[FilePath]
    ) -> ContainerStore:
        paths = listed_names(self._display, "path", path)
        indices = path_texts(self._display, "index_path", index_path)
        if len(indices) != 1:
            raise RuntimeError(f"{self._display}: index_path: expected exactly one index file, got {len(indices)}")
        index = indices[0]
        try:
            listed = cached(
                index,
                "mxnet",
                1,
                lambda: {"offsets": _listed_offsets(self._display, index)},
                LEAST_TEXT,
                _lists_offsets,
            )["offsets"]
            ends = np.cumsum([status(path).size for path in paths])
            self._warn_of_rest(index, paths, ends, int(listed[-1]))
        except OSError as error:
            where = from_where(error.filename)
            raise RuntimeError(f"{self._display}: Cannot open: {error.filename}{where}: {error.strerror}") from error
        containers = np.minimum(np.searchsorted(ends, listed, "right"), len(paths) - 1)
        last = np.maximum(np.append(listed[1:], ends[-1]), listed + _HEAD.size)
        sizes = np.minimum(np.minimum(last, np.maximum(ends[containers], listed + _HEAD.size)) - listed, _FIRST_READ)
        return _Records(paths, containers, listed - (ends - np.diff(ends, prepend=0))[containers], sizes)

    def _warn_of_rest(self, index: str, paths: list[str], ends: np.ndarray, offset: int) -> None:
        """Warns if the record at the last offset is not the last one of the files."""
        own = min(int(np.searchsorted(ends, offset, "right")), len(paths) - 1)
        begin = int(ends[own - 1]) if own else 0
        with RegularFile(paths[own]) as file:
            head = file.read(offset - begin, _HEAD.size)
        magic, kind_and_length = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0)
        if magic == _MAGIC and kind_and_length >> 29 == 0:  # else it has several parts, or its batch reports it
            end = offset + _HEAD.size + -(-kind_and_length // 4) * 4
            warn_of_unlisted(self._display, index, paths[-1], end, int(ends[-1]))


class _Records(ContainerStore):
    def read(self, container: int, numbers: np.ndarray) -> Records:
        """Parses records of one part together, and others (of several parts, or broken) one by one."""
        sizes = self.sizes[numbers]
        data, starts, faults = self.packed(container, self.offsets[numbers], sizes)
        magic, kinds, counts = rows_at(data, starts, _HEAD.size + 4).view("<u4").astype(np.int64).T
        ends = starts + _HEAD.size + (kinds & 0x1FFFFFFF)
        begins = starts + _HEAD.size + _ITEM.size + 4 * counts
        plain = (magic == _MAGIC) & (kinds >> 29 == 0) & (begins <= ends) & (ends <= starts + sizes)
        plain[list(faults)] = False
        counts = np.where(plain, counts, 0)
        labels = _labels(data, np.where(counts, starts + _HEAD.size + _ITEM.size, starts + _HEAD.size + 4), counts)
        records = Records.from_columns([Packed.of(data, begins, ends - begins), labels], faults)
        odd = [place for place in np.flatnonzero(~plain).tolist() if place not in faults]
        if not odd:
            return records
        listed = list(records)
        for place in odd:
            listed[place] = self._parsed(int(numbers[place]), data[starts[place] : starts[place] + sizes[place]])
        return Records.of(listed)

    def parse(self, number: int, data: np.ndarray) -> Record:
        item = self._joined(number, data)
        if len(item) < _ITEM.size:
            raise ValueError(f"expected a header of {_ITEM.size} bytes, got a record of {len(item)} bytes")
        count, label = _ITEM.unpack(item[: _ITEM.size].tobytes())
        start = _ITEM.size + 4 * count
        if start > len(item):
            raise ValueError(f"expected {count} labels, got a record of {len(item)} bytes")
        if not count:
            return item[start:], np.array([label], np.float32)
        return item[start:], np.frombuffer(item[_ITEM.size : start].tobytes(), "<f4").astype(np.float32, copy=False)

    def _joined(self, number: int, data: np.ndarray) -> np.ndarray:
        """The bytes of a record, which may consist of parts. Kinds of parts: 0 the only one, 1 the first, 2 a middle one, 3 the
        last. The writer leaves out the magic number between two parts."""
        parts, at = [], 0
        while True:
            magic, kind_and_length = _HEAD.unpack(self._bytes(number, data, at, _HEAD.size).tobytes())
            kind, length = kind_and_length >> 29, kind_and_length & 0x1FFFFFFF
            if magic != _MAGIC or kind not in ((2, 3) if parts else (0, 1)):
                raise ValueError(
                    f"expected a RecordIO header at byte {self.offsets[number] + at}, got {magic:#010x} "
                    f"{kind_and_length:#010x}: is the file damaged, or the index of another file?"
                )
            parts.append(self._bytes(number, data, at + _HEAD.size, length))
            if kind in (0, 3):
                break
            parts.append(np.frombuffer(_HEAD.pack(_MAGIC, 0)[:4], np.uint8))
            at += _HEAD.size + -(-length // 4) * 4
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _bytes(self, number: int, data: np.ndarray, start: int, size: int) -> np.ndarray:
        """Bytes of a record's file from the record's beginning on: from `data`, or read again if `data` ends earlier."""
        if start + size <= len(data):
            return data[start : start + size]
        pieces = self.ranges(int(self.containers[number]), self.offsets[[number]] + start, np.array([size]))[0]
        if isinstance(pieces, OSError):
            raise pieces
        return pieces


def _labels(data: np.ndarray, starts: np.ndarray, counts: np.ndarray) -> np.ndarray | Packed:
    """The labels of each record; a record with a count of 0 has one label."""
    most = max(1, int(counts.max()))
    if (np.maximum(counts, 1) == most).all():
        return rows_at(data, starts, 4 * most).view("<f4").astype(np.float32, copy=False)
    sizes = np.maximum(counts, 1)
    firsts = np.add.accumulate(sizes) - sizes
    places = np.repeat(starts - 4 * firsts, sizes) + 4 * np.arange(int(sizes.sum()))
    return Packed.of(rows_at(data, places, 4).view("<f4")[:, 0].astype(np.float32, copy=False), firsts, sizes)


def scan_recordio(path: str, report: Callable[[int, int], None] = lambda done, total: None) -> list[int]:
    """The offsets of the records of a file; a record of several parts counts once. Reads the 8 bytes before each part.

    `report(done, total)` is called regularly, with numbers of bytes. Raises OSError for a file that cannot be read, and
    ValueError for a truncated file or one that is not RecordIO.
    """
    offsets: list[int] = []
    at, parts = 0, 0
    with RegularFile(path) as file:
        while at < file.size:
            head = file.read(at, _HEAD.size)
            magic, kind_and_length = _HEAD.unpack(head.ljust(_HEAD.size, b"\0"))
            kind, end = kind_and_length >> 29, at + _HEAD.size + (kind_and_length & 0x1FFFFFFF)
            inside = kind in (2, 3)
            if len(head) == _HEAD.size and (magic != _MAGIC or inside != (parts > 0)):
                raise ValueError(
                    f"{path} record {len(offsets)}: expected a RecordIO header at byte {at}, got {magic:#010x} "
                    f"{kind_and_length:#010x}: is the file damaged?"
                )
            if len(head) < _HEAD.size or end > file.size:
                raise ValueError(f"{path} record {len(offsets)}: the file is truncated: it ends at {file.size}")
            if not inside:
                offsets.append(at)
                if not len(offsets) % _REPORTED:
                    report(at, file.size)
            parts = parts + 1 if kind in (1, 2) else 0
            at = at + _HEAD.size + -(-(end - at - _HEAD.size) // 4) * 4
        report(file.size, file.size)
    return offsets


def _lists_offsets(index: Index, size: int) -> bool:
    """Whether an index file of this size can list these offsets."""
    if not has_columns(index, offsets="int64 n"):
        return False
    offsets = index["offsets"]
    ascending = all_within(np.diff(offsets), 1, MOST_BYTES)
    return 0 < len(offsets) <= size // len("0 0") and all_within(offsets, 0, MOST_BYTES) and ascending


def _listed_offsets(reader: str, path: str) -> np.ndarray:
    """The offsets in an index, in ascending order, each once."""
    offsets = []
    for number, line in enumerate(read_lines(reader, path), 1):
        words = words_of(line)
        if not words:
            continue
        if len(words) != 2 or not is_offset(words[1]):
            raise RuntimeError(f'{reader}: index "{path}":{number}: expected a key and an offset, got {line!r}')
        offsets.append(int(words[1]))
    if not offsets:
        raise RuntimeError(f"{reader}: index {path!r} lists no records")
    return np.unique(np.array(offsets, np.int64))
