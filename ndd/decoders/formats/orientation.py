"""The orientation that an EXIF says: a TIFF structure in a JPEG, PNG, WebP or AVIF, or the header of a TIFF.

The value is EXIF's: 1 upright, 2 mirrored, 3 turned by 180 degrees, 4 flipped, 5 to 8 the same with the axes swapped.
Anything that cannot be read counts as 1: a broken tag must not cost the picture.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from ndd.decoders.formats.tiff_directory import ORIENTATION, SHORT, Directory
from ndd.decoders.jpeg.segments import segments

_MARK = b"Exif\0\0"
_MOST_ENTRIES = 512  # of a directory
_CODES = ("B", "H", "I")  # of the types that writers give it


def swaps_axes(orientation: int) -> bool:
    """Whether an upright picture has height and width exchanged."""
    return orientation >= 5


def of_tiff(data: memoryview) -> int:
    """Orientation from a TIFF structure: a TIFF file, or the payload of an EXIF segment or chunk."""
    return next(iter(told(data)), 1)


def of_jpeg(data: memoryview) -> int:
    """Orientation from the EXIF segments of a JPEG. As with DALI, the last one that has the tag says whether the picture is
    turned, the first one how. (Where the first says no and the last a turn by 90 degrees, DALI gives memory that nobody wrote.)"""
    turns = [
        turn for begin, end in _in_jpeg(data) if data[begin - 2 : begin] == b"\0\0" for turn in told(data[begin:end])
    ]
    return turns[0] if turns and turns[-1] != 1 else 1


def told(data: memoryview) -> list[int]:
    """The orientation of a TIFF structure that has one: one number or none. The mark that belongs in front of it in a JPEG may
    stand there in other files too: some writers put it there."""
    if bytes(data[: len(_MARK)]) == _MARK:
        data = data[len(_MARK) :]
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


def with_plain_exif(data: np.ndarray) -> np.ndarray:
    """A JPEG whose EXIF says the orientation and nothing else: a copy if it had any, else the file itself.

    nvImageCodec's parser of EXIF spoils memory if a damaged entry claims too many values.
    """
    view = data.data
    places = list(_in_jpeg(view))
    if not places:
        return data
    plain = data.copy()
    for start, end in places:
        text = struct.pack(">2sHIHHHIHHI", b"MM", 42, 8, 1, ORIENTATION, SHORT, 1, of_jpeg(view), 0, 0)
        plain[start:end] = np.frombuffer(text.ljust(end - start, b"\0")[: end - start], np.uint8)
    return plain


def _in_jpeg(data: memoryview) -> Iterator[tuple[int, int]]:
    for marker, _, begin, end in segments(data):
        if marker == 0xE1 and data[begin : begin + 4] == b"Exif":
            yield min(begin + 6, len(data)), min(max(end, begin + 6), len(data))
