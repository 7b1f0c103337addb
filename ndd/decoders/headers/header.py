"""What the header of an encoded image says: size, channels, orientation. Microseconds, and no pixel is touched."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from ndd.decoders.headers import orientation as _orientation
from ndd.decoders.jpeg.segments import segments
from ndd.types import DALIImageType


class Header(NamedTuple):
    """Size as stored (before orientation), channels of the file, EXIF orientation, element type.

    `format`: as `_formats.format_of` names it.

    `plain_jpeg`: 8-bit Huffman JPEG with 1 or 3 components, which every JPEG library decodes to the same pixels.
    `coded_rgb`: a JPEG whose three components are R, G and B themselves: nvJPEG converts them all the same.
    `damaged`: the size can be read, but no library will decode this (and some would complain on stderr).
    """

    height: int
    width: int
    channels: int
    orientation: int = 1
    dtype: Any = np.uint8
    plain_jpeg: bool = False
    damaged: bool = False
    coded_rgb: bool = False
    format: str = "jpeg"

    def size(self, adjust_orientation: bool) -> tuple[int, int]:
        """(height, width) of the decoded picture."""
        if adjust_orientation and _orientation.swaps_axes(self.orientation):
            return self.width, self.height
        return self.height, self.width

    def out_channels(self, output_type: DALIImageType) -> int:
        """Channels of the decoded picture."""
        if output_type == DALIImageType.GRAY:
            return 1
        if output_type != DALIImageType.ANY_DATA:
            return 3
        return max(self.channels, 1)  # a damaged header may say 0: `on_error="fill"` makes one channel of zeros


_segment = struct.Struct(">BBH").unpack_from  # 0xFF, marker, length
_frame = struct.Struct(">BHHB").unpack_from  # bits, height, width, components
_LOSSY_HUFFMAN = (0xC0, 0xC1, 0xC2)  # baseline, extended sequential, progressive
_SEQUENTIAL = (0xC0, 0xC1)
# Frames, tables, and what may stand around them; no fill bytes, and no markers without a length.
_SEGMENTS = frozenset((*range(0xC0, 0xC8), *range(0xC9, 0xD0), 0xDA, 0xDB, 0xDD, *range(0xE0, 0xF0), 0xFE))
_FRAME_BYTES = 10  # up to its components
_NO_FRAME = (0xC4, 0xC8, 0xCC)  # tables and the reserved marker between the frame headers
_RGB_NAMES = (82, 71, 66)  # component names "R", "G", "B"


def jpeg(data: memoryview) -> Header | None:
    """The header of a JPEG, by walking its segments up to the first scan; None if it is something else or broken."""
    if len(data) < _FRAME_BYTES or data[0] != 0xFF or data[1] != 0xD8:
        return None
    frame: tuple[int, memoryview] | None = None
    says_ycc: bool | None = None  # JFIF means YCbCr; else Adobe's segment says; else the names of the components
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
    return Header(height, width, channels, _orientation.of_jpeg(data), depth, plain, damaged, rgb)


_MAX_SCANS = 500  # as libjpeg-turbo's own tests of hostile files allow; a photograph has about ten
_MAX_SCANNED = 1 << 33  # pixels, over all scans: about five seconds


def may_be_decoded(data: memoryview, header: Header) -> bool:
    """Whether nothing speaks against decoding but the pixels: a JPEG has a scan (nvImageCodec loses 60 kB of memory at each
    one without, and says on stderr "Input file read error"), but no more of them than it can have use for (thousands of empty
    ones, each over all pixels, cost ten bytes each and hours)."""
    if header.damaged:
        return False
    if header.format == "jpeg":
        if _first_scan(data)[1]:
            return True
        most = min(_MAX_SCANS, max(16, _MAX_SCANNED // (header.height * header.width)))
        scans = bytes(data).count(b"\xff\xda")
        return scans > 0 and (len(data) < 1000 or scans <= most)
    return True


def _first_scan(data: memoryview) -> tuple[int, bool]:
    """Where the pixels of a JPEG begin (0 if that is not plain), and whether it is sequential and has all components in
    its first scan: decoders stop behind that, whatever follows.

    A photograph has ten segments before; counting marks instead takes 5 % of the time of decoding it."""
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


_LAST_BYTES = 64  # where the end of a file is sought first
_HALF_MARK = np.full(20, 0xFF, np.uint8)  # marks may begin with many of these; a cut-off scan header wants up to 15


def jpeg_with_end(data: np.ndarray) -> np.ndarray:
    """A JPEG whose pixels are followed by its end: the file itself, or a copy of a cut-off one with half a mark behind it.

    nvImageCodec refuses cut-off files if their last byte belongs to a block of pixels that is not whole. If it is the last
    one of a block (one cut of 40 in a photograph, most cuts in a clear sky), it says "Input file read error" on stderr and
    loses its memory: 312 kB of a picture of 500 x 375. Half a mark is never the last byte of a block. It adds no pixels:
    what would have been refused without it still is.
    """
    last = data[-_LAST_BYTES:].tobytes()
    if b"\xff\xd9" in last and b"\xff\xda" not in last:
        return data
    pixels = _first_scan(data.data)[0]
    return data if b"\xff\xd9" in data[pixels:].tobytes() else np.append(data, _HALF_MARK)
