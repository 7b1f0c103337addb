"""The header of one JPEG, read in Python, and the check whether the file may be decoded. `batch_headers.py` reads those of a
batch."""

from __future__ import annotations

import struct

import numpy as np

from ndd.decoders.headers import orientation as _orientation
from ndd.decoders.headers.header import Header
from ndd.decoders.jpeg.segments import PROGRESSIVE, segments

_segment = struct.Struct(">BBH").unpack_from  # 0xFF, marker, length
_frame = struct.Struct(">BHHB").unpack_from  # bits, height, width, components
_LOSSY_HUFFMAN = (0xC0, 0xC1, 0xC2)  # baseline, extended sequential, progressive
_SEQUENTIAL = (0xC0, 0xC1)
# Frames, tables, and the segments around them; neither fill bytes nor markers without a length.
_SEGMENTS = frozenset((*range(0xC0, 0xC8), *range(0xC9, 0xD0), 0xDA, 0xDB, 0xDD, *range(0xE0, 0xF0), 0xFE))
_FRAME_BYTES = 10  # up to the components
_NO_FRAME = (0xC4, 0xC8, 0xCC)  # tables and the reserved marker among the markers of frame headers
_RGB_NAMES = (82, 71, 66)  # components that are called "R", "G" and "B"


def read_header(data: memoryview) -> Header | None:
    """The header, from the segments up to the first scan. None for a damaged file, or one that is not a JPEG."""
    if len(data) < _FRAME_BYTES or data[0] != 0xFF or data[1] != 0xD8:
        return None
    frame: tuple[int, memoryview] | None = None
    says_ycc: bool | None = None  # JFIF means YCbCr; else Adobe's segment decides; else the names of the components
    for marker, at, begin, end in segments(data):
        if 0xC0 <= marker <= 0xCF and marker not in _NO_FRAME:
            frame = frame or (marker, data[at : max(end, at + _FRAME_BYTES)])
        elif marker == 0xE0 and data[begin : begin + 4] == b"JFIF":
            says_ycc = True
        elif marker == 0xEE and says_ycc is None and data[begin : begin + 5] == b"Adobe":
            says_ycc = data[begin + 11 : begin + 12] != b"\0"
    if frame is None or len(frame[1]) < _FRAME_BYTES:
        return None
    marker, text = frame
    bits, height, width, channels = _frame(text, 4)
    if not height or not width:
        return None
    plain = marker in _LOSSY_HUFFMAN and bits == 8 and channels in (1, 3)
    damaged = _segment(text)[2] != 8 + 3 * channels
    rgb = channels == 3 and not damaged and says_ycc is not True
    rgb = rgb and (says_ycc is False or tuple(text[10:18:3]) == _RGB_NAMES)
    depth = np.uint8 if bits <= 8 else np.uint16
    return Header(
        height, width, channels, _orientation.of_jpeg(data), depth, plain, damaged, rgb, marker == PROGRESSIVE
    )


_MAX_SCANS = 500  # the limit in libjpeg-turbo's own tests of hostile files; a photograph has about ten
_MAX_SCANNED = 1 << 33  # pixels over all scans: about five seconds


def has_sane_scans(data: memoryview, header: Header) -> bool:
    """Whether a JPEG has a scan, and no more of them than a picture of its size can use.

    nvImageCodec loses 60 kB of memory at each file without a scan, and writes "Input file read error" to stderr. Thousands of
    empty scans over all pixels take ten bytes each, and hours to decode.
    """
    if first_scan(data)[1]:
        return True
    most = min(_MAX_SCANS, max(16, _MAX_SCANNED // (header.height * header.width)))
    scans = bytes(data).count(b"\xff\xda")
    return scans > 0 and (len(data) < 1000 or scans <= most)


def first_scan(data: memoryview) -> tuple[int, bool]:
    """The offset of the pixels of a JPEG (0 if its segments are unusual), and whether the file is sequential with all
    components in its first scan. Decoders then stop after that scan.

    A photograph has ten segments before its pixels; counting all scan markers takes 5 % of the time of decoding it.
    """
    position, components = 2, 0
    while position + _FRAME_BYTES <= len(data):
        start, marker, length = _segment(data, position)
        if start != 0xFF or length < 2 or marker not in _SEGMENTS:
            break
        if marker == 0xDA:
            return position + 2 + length, data[position + 4] == components
        if marker <= 0xCF and marker not in _NO_FRAME:
            if components:
                break
            components = data[position + 9] if marker in _SEQUENTIAL else -1
        position += 2 + length
    return 0, False


_LAST_BYTES = 64  # where the end marker is searched first
_HALF_MARK = np.full(20, 0xFF, np.uint8)  # a marker may begin with many 0xFF; a truncated scan header needs up to 15


def with_end(data: np.ndarray) -> np.ndarray:
    """A JPEG with an end after its pixels: the file itself, or a copy of a truncated one with half a marker appended.

    nvImageCodec refuses a truncated file if its last byte belongs to an incomplete block of pixels. If that byte is the last
    one of a block (one cut of 40 in a photograph, most cuts in a clear sky), it writes "Input file read error" to stderr
    and leaks memory: 312 kB for a picture of 500 x 375. Half a marker is never the last byte of a block. It adds no pixels, so
    the library still refuses every file that it would have refused.
    """
    last = data[-_LAST_BYTES:].tobytes()
    if b"\xff\xd9" in last and b"\xff\xda" not in last:
        return data
    pixels = first_scan(data.data)[0]
    return data if b"\xff\xd9" in data[pixels:].tobytes() else np.append(data, _HALF_MARK)
