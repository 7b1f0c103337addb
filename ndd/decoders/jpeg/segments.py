"""The segments of a JPEG: their places, and which scans a file lacks. Reads no pixels."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

SCAN, END, PROGRESSIVE = 0xDA, 0xD9, 0xC2
_NO_LENGTH = (0x01, *range(0xD0, 0xD8))  # TEM, RST0 to RST7
_segment = struct.Struct(">BBH").unpack_from  # 0xFF, marker, length
_next_marker = re.compile(rb"\xff[^\x00\x01\xd0-\xd7\xff]").search


class Segment(NamedTuple):
    """One segment: its marker is at `at`, its content between `begin` and `end`."""

    marker: int
    at: int
    begin: int
    end: int


def segments(data: memoryview) -> Iterator[Segment]:
    """The segments from the start of the file up to the first scan's header. Like libjpeg it skips markers without a length,
    and bytes between segments (old versions of Photoshop leave some)."""
    position, last = 2, len(data) - 4
    while position <= last:
        start, marker, length = _segment(data, position)
        if start != 0xFF or marker == 0:
            match = _next_marker(data, position)
            if match is None:
                return
            position = match.start()
        elif marker == 0xFF:  # fill byte
            position += 1
        elif marker in _NO_LENGTH:
            position += 2
        elif marker in (0xD8, END) or length < 2:
            return
        else:
            end = position + 2 + length
            yield Segment(marker, position, position + 4, end)
            if marker == SCAN:
                return
            position = end


def without_junk(data: np.ndarray) -> np.ndarray:
    """A JPEG with nothing between its segments: the file itself, or a copy. nvImageCodec refuses such files."""
    parts, begin, end = [], 0, 2
    for segment in segments(data.data):
        if segment.at != end:
            parts.append(data[begin:end])
            begin = segment.at
        end = segment.end
    return np.concatenate([*parts, data[begin:]]) if parts else data


def lacks_scans(data: memoryview) -> bool:
    """Whether a progressive JPEG lacks bits of some coefficients: libjpeg then smooths the picture, so that the pixels at the edge
    of a window would depend on the window."""
    left: dict[int, list[int]] = {}  # by component: the missing bits of each coefficient
    progressive, position = False, 0
    for segment in segments(data):
        if 0xC0 <= segment.marker <= 0xC3 and segment.end - segment.begin >= 6:
            progressive = segment.marker == PROGRESSIVE
            left = {name: [16] * 64 for name in bytes(data[segment.begin + 6 : segment.end : 3])}
        position = segment.at
    if not progressive:
        return False
    while position + 4 <= len(data):
        _, marker, length = _segment(data, position)
        if marker == SCAN:
            count, *scan = bytes(data[position + 4 : position + 2 + length])
            if len(scan) >= 2 * count + 3:
                first, last, bits = scan[2 * count : 2 * count + 3]
                for name in scan[: 2 * count : 2]:
                    if name in left:
                        left[name][first : last + 1] = [bits & 15] * len(left[name][first : last + 1])
        match = _next_marker(data, position + 2 + max(length, 2))
        if match is None or marker == END:
            break
        position = match.start()
    return any(map(any, left.values()))
