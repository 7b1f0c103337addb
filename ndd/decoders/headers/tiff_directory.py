"""The first directory of a TIFF, or of EXIF data, which is a TIFF: its tags and the places of their numbers. Reads no
pixels."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

WIDTH, HEIGHT, BITS, COMPRESSION, COLOURS, FILL_ORDER, ORIENTATION, CHANNELS = 256, 257, 258, 259, 262, 266, 274, 277
STRIPS, STRIP_ROWS, STRIP_BYTES, PLANAR, PREDICTOR = 273, 278, 279, 284, 317
TILE_WIDTH, TILE_ROWS, TILES, TILE_BYTES, SAMPLE_FORMAT = 322, 323, 324, 325, 339
COLOUR_MAP, EXTRA_CHANNELS, JPEG_TABLES, LUMA, SUBSAMPLING, BLACK_AND_WHITE = 320, 338, 347, 529, 530, 532

WHITE_IS_ZERO, GRAY, RGB, PALETTE, CMYK, YCBCR, LAB = 0, 1, 2, 3, 5, 6, 8  # values of COLOURS
UNSIGNED, SIGNED, FLOAT, UNSAID = 1, 2, 3, 4  # values of SAMPLE_FORMAT

SHORT = 3
SIGNED_KINDS = (6, 8, 9, 17)  # of whole numbers
_CODES = {1: "B", SHORT: "H", 4: "I", 16: "Q"}  # of the types of whole numbers: BYTE, SHORT, LONG, LONG8
_RATIONAL, _UNDEFINED = 5, 7
_MOST_ENTRIES = 4096
_MOST_READ, _ALWAYS_READ = 8, 1 << 20  # bytes of chunks for each byte of the file, or of any file


def most_read(nbytes: int) -> int:
    """The most bytes of chunks that are read from a file of so many bytes. Chunks may lie on top of one another, and a few bytes
    that many chunks share must not cost hours."""
    return max(_ALWAYS_READ, _MOST_READ * nbytes)


class Entry(NamedTuple):
    """One tag.

    Attributes:
        kind: the number of its type.
        code: the code of its type in `struct`; "II" for a fraction, "" for other types, bytes without a meaning among them.
        count: how many numbers it has.
        at: the byte in the entry that holds the first number, or the offset of all numbers.
        place: the byte of the first number, or of bytes without a meaning.
    """

    tag: int
    kind: int
    code: str
    count: int
    at: int
    place: int


class Directory:
    """The directory that the header points to. The chain of further ones, which may run in a circle, is ignored.

    All methods raise struct.error if the file ends too early, and OverflowError for an offset that no memory can have.

    Attributes:
        order: the byte order, "<" or ">".
        is_common: whether Pillow reads such directories: all but big-endian BigTIFF.
    """

    def __init__(self, data: memoryview):
        self._data = data
        self.order = "<" if data[0] == ord("I") else ">"
        big = self.number("H", 2) == 43  # BigTIFF: 8-byte offsets, 20-byte entries
        self.is_common = not big or self.order == "<"
        self._offset, counts, self._count, self._inline = ("Q", "Q", "Q", 8) if big else ("I", "H", "I", 4)
        start = self.number(self._offset, 8 if big else 4)
        self._entries = self.number(counts, start)
        self._first = start + struct.calcsize(counts)

    def entries(self, most: int = _MOST_ENTRIES) -> Iterator[Entry]:
        """The tags in the order of the file, at most `most`."""
        form = f"{self.order}HH{self._count}"
        head = struct.calcsize(form)
        step = head + self._inline
        for start in range(self._first, self._first + min(self._entries, most) * step, step):
            tag, kind, count = struct.unpack_from(form, self._data, start)
            code, at = "II" if kind == _RATIONAL else _CODES.get(kind, ""), start + head
            outside = (struct.calcsize(code) or kind == _UNDEFINED) * count > self._inline
            yield Entry(tag, kind, code, count, at, self.number(self._offset, at) if outside else at)

    def number(self, code: str, place: int) -> int:
        """The number at byte `place` of the file."""
        return struct.unpack_from(self.order + code, self._data, place)[0]

    def numbers(self, entry: Entry) -> tuple[float, ...]:
        """All numbers of a tag."""
        if entry.code == "II":
            pairs = struct.unpack_from(f"{self.order}{2 * entry.count}I", self._data, entry.place)
            return tuple(over / under if under else 0.0 for over, under in zip(pairs[::2], pairs[1::2], strict=True))
        return struct.unpack_from(f"{self.order}{entry.count}{entry.code}", self._data, entry.place)

    def content(self, entry: Entry) -> bytes:
        """The bytes of a tag whose type is bytes, with or without a meaning; fewer if the file ends."""
        return bytes(self._data[entry.place : entry.place + entry.count])
