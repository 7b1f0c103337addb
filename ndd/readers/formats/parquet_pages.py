"""Large values of a column chunk of Parquet, as views of its pages, because pyarrow copies each of them.

Whatever is unusual here is left to pyarrow: nulls, values that several rows share, other encodings, small values, damage.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from ndd._tensor import Packed
from ndd.readers.formats.arrow import inflated
from ndd.readers.formats.parquet_footer import Compact, Leaf

LARGE = 2048  # bytes of a value that is worth a step of Python
_BYTE_ARRAY = 6
_CODECS = {0: "", 1: "snappy", 2: "gz", 4: "br", 6: "zstd"}
_DATA, _INDEX, _DICTIONARY, _DATA_V2 = range(4)  # types of pages
_PLAIN, _PLAIN_DICTIONARY, _RLE, _RLE_DICTIONARY = 0, 2, 3, 8  # encodings
_UNUSUAL = (ValueError, KeyError, TypeError, IndexError, AttributeError, struct.error)

_Content = tuple[np.ndarray, int, int]  # a buffer, and where the content of a page begins and ends in it
# Of each value the number of its buffer, where it begins, and its size.
_Places = tuple[np.ndarray, np.ndarray, np.ndarray]


def is_large(leaf: Leaf) -> bool:
    """Whether a column chunk holds values of bytes that are large on average."""
    return leaf.kind == _BYTE_ARRAY and leaf.codec in _CODECS and 0 < leaf.count * LARGE <= leaf.plain_size


def large_values(data: np.ndarray, leaf: Leaf, depth: int) -> Packed | None:
    """The values of a column chunk that is not in a list, each in a place of its own; None if pyarrow has to read them.

    Args:
        data: the column chunk, u8.
        leaf: its description.
        depth: the definition level of a value that is not null.
    """
    pages = _Pages(data, leaf, depth)
    try:
        return pages.values()
    except _UNUSUAL:
        return None


class _Pages:
    def __init__(self, data: np.ndarray, leaf: Leaf, depth: int):
        self._data, self._leaf, self._depth = data, leaf, depth
        self._buffers: list[np.ndarray] = []
        self._dictionary: _Places | None = None
        self._used: list[np.ndarray] = []  # entries of the dictionary

    def values(self) -> Packed:
        """All values. ValueError, or another of `_UNUSUAL`, for pages that are left to pyarrow."""
        at, parts = 0, []
        while at < len(self._data):
            compact = Compact(self._data.data[at:])
            header = compact.struct(0)
            at += compact.at
            size = header[3]
            if not 0 <= size <= len(self._data) - at or not 0 <= header[2] <= self._leaf.plain_size:
                raise ValueError("a page of a wrong size")
            if header[1] == _DICTIONARY:
                self._dictionary = self._plain(self._content(at, at + size, header[2]), header[7][1])
            elif header[1] != _INDEX:
                parts.append(self._page(header, at, at + size))
            at += size
        which, starts, sizes = (np.concatenate(column) for column in zip(*parts, strict=True))
        if len(starts) != self._leaf.count or not _all_differ(self._used):
            raise ValueError("another number of values, or values that rows share")
        return Packed(self._buffers, which, starts, sizes.reshape(-1, 1))

    def _page(self, header: dict[int, Any], begin: int, end: int) -> _Places:
        if header[1] == _DATA:
            count, encoding, of_levels = header[5][1], header[5][2], header[5][3]
            content = buffer, at, end = self._content(begin, end, header[2])
            levels = buffer[:0]
            if self._depth:
                (size,) = struct.unpack_from("<I", buffer.data, at)
                levels, content = buffer[at + 4 : end][:size], (buffer, at + 4 + size, end)
        else:
            page = header[8]
            count, encoding, of_levels = page[1], page[4], _RLE
            size = page[5] + page[6]
            if header[1] != _DATA_V2 or page[6] or not 0 <= size <= min(end - begin, header[2]):
                raise ValueError("lists, or levels of a wrong size")
            levels = self._data[begin : begin + size]
            content = self._content(begin + size, end, header[2] - size, page.get(7, True))
        # A run of levels can claim any number of values, but each has a size or an entry of its own.
        most = (content[2] - content[1]) // 4 if encoding == _PLAIN else self._entries()
        if not 0 <= count <= min(most, self._leaf.count):
            raise ValueError("too many values")
        if self._depth and (
            of_levels != _RLE or (numbers(levels, self._depth.bit_length(), count) != self._depth).any()
        ):
            raise ValueError("nulls")
        if encoding == _PLAIN:
            return self._plain(content, count)
        if encoding not in (_PLAIN_DICTIONARY, _RLE_DICTIONARY) or self._dictionary is None:
            raise ValueError("another encoding")
        buffer, at, end = content
        entries = numbers(buffer[at + 1 : end], int(buffer[at]), count)
        self._used.append(entries)
        which, starts, sizes = self._dictionary
        return which[entries], starts[entries], sizes[entries]

    def _entries(self) -> int:
        return 0 if self._dictionary is None else len(self._dictionary[1])

    def _content(self, begin: int, end: int, size: int, packed: bool = True) -> _Content:
        codec = _CODECS[self._leaf.codec] if packed else ""
        if not codec:
            return self._data, begin, end
        return inflated(codec, self._data[begin:end], size), 0, size

    def _plain(self, content: _Content, count: int) -> _Places:
        """The places of values, each after its size as u32."""
        buffer, at, end = content
        if not self._buffers or self._buffers[-1] is not buffer:
            self._buffers.append(buffer)
        view, starts, sizes = buffer.data, [], []
        for _ in range(count):
            (size,) = struct.unpack_from("<I", view, at)
            at += 4
            if size > end - at:
                raise ValueError("a value beyond its page")
            starts.append(at)
            sizes.append(size)
            at += size
        return np.full(count, len(self._buffers) - 1), np.array(starts, np.int64), np.array(sizes, np.int64)


def _all_differ(used: list[np.ndarray]) -> bool:
    return not used or len(np.unique(np.concatenate(used))) == sum(map(len, used))


def numbers(data: np.ndarray, width: int, count: int) -> np.ndarray:
    """`count` numbers of `width` bits in runs: one number and its count; or groups of eight, packed."""
    if not 1 <= width <= 32:
        raise ValueError(f"numbers of {width} bits")
    compact, left, parts = Compact(data.data), count, [np.zeros(0, np.int64)]
    while left > 0:
        head = compact.varint()
        length = head >> 1
        if not length:
            raise ValueError("a run of nothing")
        if head & 1:
            packed = np.frombuffer(compact.take(length * width), np.uint8)[: -(-left // 8) * width]
            bits = np.zeros((8 * len(packed) // width, 32), np.uint8)
            bits[:, :width] = np.unpackbits(packed, bitorder="little").reshape(-1, width)
            run = np.packbits(bits, axis=1, bitorder="little").view("<u4").ravel()[:left].astype(np.int64)
        else:
            run = np.full(min(length, left), int.from_bytes(compact.take(-(-width // 8)), "little"))
        parts.append(run)
        left -= len(run)
    return np.concatenate(parts)
