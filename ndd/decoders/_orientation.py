"""EXIF orientation from the container of an image: JPEG, PNG, WebP, TIFF. Reads headers only, never pixels.

The value is EXIF's: 1 upright, 2 mirrored, 3 turned by 180 degrees, 4 flipped, 5 to 8 the same with the axes swapped.
Anything that cannot be read counts as 1: a broken tag must not cost the picture.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np

from ndd.decoders._jpeg_segments import segments
from ndd.decoders._tiff_directory import ORIENTATION, SHORT, Directory

_MOST_ENTRIES = 512  # of a directory
_CODES = ("B", "H", "I")  # of the types that writers give it


def swaps_axes(orientation: int) -> bool:
    """Whether an upright picture has height and width exchanged."""
    return orientation >= 5


def of_tiff(data: memoryview) -> int:
    """Orientation from a TIFF structure: a TIFF file, or the payload of an EXIF segment."""
    return next(iter(told(data)), 1)


def of_jpeg(data: memoryview) -> int:
    """Orientation from the EXIF segments of a JPEG. As with DALI, the last one that has the tag says whether the picture is
    turned, the first one how. (Where the first says no and the last a turn by 90 degrees, DALI gives memory that nobody wrote.)"""
    turns = [
        turn for begin, end in _in_jpeg(data) if data[begin - 2 : begin] == b"\0\0" for turn in told(data[begin:end])
    ]
    return turns[0] if turns and turns[-1] != 1 else 1


def told(data: memoryview) -> list[int]:
    """The orientation of a TIFF structure that has one: one number or none."""
    if bytes(data[:2]) not in (b"II", b"MM"):
        return []
    try:
        directory = Directory(data)
        for entry in directory.entries(_MOST_ENTRIES):
            if entry.tag == ORIENTATION and entry.code in _CODES:
                found = directory.number(entry.code, entry.at)  # however many it claims to have
                return [found if 1 <= found <= 8 else 1]
    except (struct.error, OverflowError):
        pass
    return []


def of_png(data: memoryview) -> int:
    """Orientation from the eXIf chunk."""
    position = 8
    try:
        while True:
            size, name = struct.unpack_from(">I4s", data, position)
            if name == b"eXIf":
                return of_tiff(data[position + 8 : position + 8 + size])
            if name == b"IEND":
                return 1
            position += 12 + size
    except struct.error:
        return 1


def of_webp(data: memoryview) -> int:
    """Orientation from the EXIF chunk of an extended WebP. With an "Exif" mark in front of it, as some writers put
    there against the specification, it does not count, as in DALI."""
    if bytes(data[12:16]) != b"VP8X":
        return 1
    position = 12
    try:
        while True:
            name, size = struct.unpack_from("<4sI", data, position)
            if name == b"EXIF":
                return of_tiff(data[position + 8 : position + 8 + size])
            position += 8 + size + (size & 1)
    except struct.error:
        return 1


def with_plain_exif(data: np.ndarray) -> np.ndarray:
    """A JPEG, PNG or WebP whose EXIF says the orientation and nothing else: a copy if it had any, else the file itself.

    nvImageCodec's parser of EXIF spoils memory if a damaged entry claims too many values.
    """
    view = data.data
    head = bytes(view[:4])
    find = _in_jpeg if head[:2] == b"\xff\xd8" else _in_png if head == b"\x89PNG" else _in_webp
    found = list(find(view))
    if not found:
        return data
    plain = data.copy()
    for start, end in found:
        turn = of_jpeg(view) if find is _in_jpeg else of_tiff(view[start:end])
        text = struct.pack(">2sHIHHHIHHI", b"MM", 42, 8, 1, ORIENTATION, SHORT, 1, turn, 0, 0)
        plain[start:end] = np.frombuffer(text.ljust(end - start, b"\0")[: end - start], np.uint8)
        if find is _in_png:
            plain[end : end + 4] = np.frombuffer(struct.pack(">I", zlib.crc32(plain[start - 4 : end].data)), np.uint8)
    return plain


def _in_jpeg(data: memoryview) -> Iterator[tuple[int, int]]:
    for marker, _, begin, end in segments(data):
        if marker == 0xE1 and data[begin : begin + 4] == b"Exif":
            yield min(begin + 6, len(data)), min(max(end, begin + 6), len(data))


def _in_png(data: memoryview) -> Iterator[tuple[int, int]]:
    position = 8
    while position + 12 <= len(data):
        size, name = struct.unpack_from(">I4s", data, position)
        if name == b"eXIf" and position + 12 + size <= len(data):
            yield position + 8, position + 8 + size
        if name == b"IEND":
            return
        position += 12 + size


def _in_webp(data: memoryview) -> Iterator[tuple[int, int]]:
    position, last = 12, min(len(data), 8 + struct.unpack_from("<I", data, 4)[0])
    while position + 8 <= last:
        name, size = struct.unpack_from("<4sI", data, position)
        if name == b"EXIF":
            yield position + 8, min(position + 8 + size, len(data))
        position += 8 + size + (size & 1)
