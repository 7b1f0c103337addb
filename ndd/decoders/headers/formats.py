"""Which format a file has, and the headers of BMP, PNM, TIFF and JPEG 2000, read number by number before a library sees
a byte of them.

nvImageCodec's own parsers of these formats die of some headers: of 40,000 mutated files JPEG 2000 killed the process 67
times (a subsampling of 0 divides by it) and PNM 15 times. Each parser here gives None for what it does not understand.
"""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np

from ndd.decoders.headers import avif as _avif, bmp as _bmp, png as _png, tiff as _tiff, webp as _webp
from ndd.decoders.headers.header import Header, may_be_decoded

_SIGNATURES = (
    (b"\xff\xd8", "jpeg"),
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"BM", "bmp"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"II*\0", "tiff"),
    (b"MM\0*", "tiff"),
    (b"II+\0", "tiff"),  # BigTIFF
    (b"MM\0+", "tiff"),
    (b"\0\0\0\x0cjP  \r\n\x87\n", "jpeg2000"),
    (b"\xff\x4f\xff\x51", "jpeg2000"),  # a codestream without boxes
)


def format_of(data: np.ndarray) -> str:
    """ "jpeg", "png", "webp", "bmp", "gif", "tiff", "jpeg2000", "pnm", "avif", or "" for anything else."""
    head = data[:12].tobytes()
    for signature, name in _SIGNATURES:
        if head.startswith(signature):
            return name
    if head[:4] == b"RIFF" and head[8:] == b"WEBP":
        return "webp"
    if _avif.is_avif(data.data):
        return "avif"
    return "pnm" if re.match(rb"P[1-6][\s#]", head) else ""


def _pnm(data: memoryview) -> Header | None:
    """P1 to P6: extents and the largest value are numbers between white space and comments."""
    number = rb"(?:\s|#[^\n\r]*[\n\r])+(\d{1,9})"
    head = bytes(data[:4096])
    kind = head[1] - ord("0")
    found = re.match(rb"P\d" + number * (2 if kind in (1, 4) else 3) + rb"(?=\s|#|$)", head)
    if found is None:
        return None
    width, height, largest = (int(n) for n in (*found.groups(), b"1")[:3])
    if not 1 <= largest <= 65535:
        return None
    channels = 3 if kind in (3, 6) else 1
    body = len(data) - found.end() - 1
    bits = {4: 1, 5: 8, 6: 24}.get(kind, 8 * channels) * (2 if largest > 255 and kind in (5, 6) else 1)
    short = body * 8 < height * ((width + 7) // 8 * 8 if kind == 4 else width) * bits if kind >= 4 else body < height
    # Libraries keep 16 bits of those files alone that use them all.
    depth = np.uint16 if largest == 65535 else np.uint8
    return Header(height, width, channels, 1, depth, damaged=short)


_MAX_TILES = 65535
_SUPERBOXES = (b"jp2h",)


def _jpeg2000(data: memoryview) -> Header | None:
    """The boxes in front of the codestream, and its SIZ segment, which must agree about the extents."""
    if data[0] == 0xFF:
        return _codestream(data, 0)
    place, end = 0, len(data)
    stated, colours, palette = None, False, 0
    while place + 8 <= end:
        length, name = struct.unpack_from(">I4s", data, place)
        head = 8
        if length == 1:
            (length,), head = struct.unpack_from(">Q", data, place + 8), 16
        elif length == 0:
            length = end - place
        if length < head:
            return None
        body = place + head
        if name == b"jp2c":
            found = _codestream(data, body)
            if found is None or stated is None or not colours or stated != (found.height, found.width, found.channels):
                return None
            return found._replace(channels=palette) if palette else found
        if place + length > end:
            return None
        if name == b"ihdr":
            stated = struct.unpack_from(">IIH", data, body)
        elif name == b"colr":
            colours = True
        elif name == b"pclr":
            palette = data[body + 2]
            if not 1 <= palette <= 4:
                return None
        place = body if name in _SUPERBOXES else place + length
    return None


def _codestream(data: memoryview, start: int) -> Header | None:
    marker, size, length, _, right, bottom, left, top, *tile, count = struct.unpack_from(">HHHHIIIIIIIIH", data, start)
    if marker != 0xFF4F or size != 0xFF51 or not 1 <= count <= 4 or length != 38 + 3 * count:
        return None
    width, height, tile_left, tile_top = tile
    if left >= right or top >= bottom or not width or not height or tile_left > left or tile_top > top:
        return None
    if tile_left + width <= left or tile_top + height <= top or max(right, bottom) >= 1 << 31:
        return None
    if -(-(right - tile_left) // width) * -(-(bottom - tile_top) // height) > _MAX_TILES:
        return None
    components = [tuple(data[start + 42 + 3 * i : start + 45 + 3 * i]) for i in range(count)]
    if any(len(c) != 3 or not c[1] or not c[2] for c in components):
        return None
    bits = [(c[0] & 0x7F) + 1 for c in components]
    signed = any(c[0] & 0x80 for c in components)
    depth = np.uint8 if max(bits) <= 8 else np.uint16
    # OpenCV and DALI know no signed numbers, and no components of sizes of their own.
    damaged = max(bits) > 16 or signed or len({c[1:] for c in components}) > 1
    return Header(bottom - top, right - left, count, 1, depth, damaged=damaged)


_READERS = {
    "png": _png.read_header,
    "webp": _webp.read_header,
    "pnm": _pnm,
    "bmp": _bmp.read_header,
    "tiff": _tiff.read_header,
    "jpeg2000": _jpeg2000,
}


def read_header(data: np.ndarray, name: str) -> Header | None:
    """The header of a file of one of these formats; None if it is damaged."""
    reader: Any = _READERS[name]
    try:
        found = reader(data.data)
    except (struct.error, IndexError, OverflowError):
        return None
    return None if found is None else found._replace(format=name)


READS = frozenset(_READERS)
_BARE: dict[str, Any] = {"png": _png.bare, "webp": _webp.bare}


def bare(data: np.ndarray, header: Header) -> np.ndarray | None:
    """The file as decoders may see it, without what has no say in its pixels; None if it is damaged or cut off."""
    if not may_be_decoded(data.data, header):
        return None
    reader = _BARE.get(header.format)
    return data if reader is None else reader(data)
