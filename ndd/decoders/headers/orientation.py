"""The EXIF orientation: in a TIFF structure inside a JPEG, PNG, WebP or AVIF, or in the header of a TIFF.

Values: 1 upright, 2 mirrored, 3 turned by 180 degrees, 4 flipped, 5 to 8 the same with the axes swapped. A tag that cannot be
read counts as 1: it must not cost the picture.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from ndd.decoders.headers.tiff_directory import ORIENTATION, SHORT, Directory
from ndd.decoders.jpeg.segments import segments

FIRST_SWAPPED = 5  # orientations from here on swap height and width
# Orientations whose rows, or columns, run from the end.
UPSIDE_DOWN, BACKWARDS = (3, 4, 7, 8), (2, 3, 6, 7)
_MARK = b"Exif\0\0"
_MOST_ENTRIES = 512  # of a directory
_CODES = ("B", "H", "I")  # the types that writers use for it


def swaps_axes(orientation: int) -> bool:
    """Whether turning the picture upright swaps height and width."""
    return orientation >= FIRST_SWAPPED


def of_tiff(data: memoryview) -> int:
    """The orientation in a TIFF structure: a TIFF file, or the payload of an EXIF segment or chunk."""
    return next(iter(_tag(data)), 1)


def of_jpeg(data: memoryview) -> int:
    """The orientation in the EXIF segments of a JPEG. As in DALI, the last segment with the tag decides whether the picture is
    turned, and the first one how. (If the first says upright and the last a turn by 90 degrees, DALI gives uninitialised
    memory.)"""
    turns = [
        turn for begin, end in _in_jpeg(data) if data[begin - 2 : begin] == b"\0\0" for turn in _tag(data[begin:end])
    ]
    return turns[0] if turns and turns[-1] != 1 else 1


def _tag(data: memoryview) -> list[int]:
    """The orientation of a TIFF structure if it has the tag, as a list of one or no number. "Exif" may precede the structure,
    as in a JPEG, because some writers put it into other files too."""
    if bytes(data[: len(_MARK)]) == _MARK:
        data = data[len(_MARK) :]
    if bytes(data[:2]) not in (b"II", b"MM"):
        return []
    try:
        directory = Directory(data)
        for entry in directory.entries(_MOST_ENTRIES):
            if entry.tag == ORIENTATION and entry.code in _CODES:
                turn = directory.number(entry.code, entry.at)  # whatever count the tag claims
                return [turn if 1 <= turn <= 8 else 1]
    except (struct.error, OverflowError):
        pass
    return []


def with_plain_exif(data: np.ndarray) -> np.ndarray:
    """A JPEG whose EXIF holds the orientation and nothing else: a copy, or the file itself if it has no EXIF.

    nvImageCodec's parser of EXIF corrupts memory if a damaged entry claims too many values.
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
