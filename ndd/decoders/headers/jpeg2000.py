"""JPEG 2000: the header of a file with boxes, and of a bare codestream."""

from __future__ import annotations

import struct

import numpy as np

from ndd.decoders.headers.header import Header

_MAX_TILES = 65535
_SUPERBOXES = (b"jp2h",)


def read_header(data: memoryview) -> Header | None:
    """The header from the boxes in front of the codestream and its SIZ segment, which must agree about the extents."""
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
            stream = _codestream(data, body)
            if stream is None or stated is None or not colours:
                return None
            if stated != (stream.height, stream.width, stream.channels):
                return None
            return stream._replace(channels=palette) if palette else stream
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
    # Neither OpenCV nor DALI decodes signed numbers, or components of different sizes.
    damaged = max(bits) > 16 or signed or len({c[1:] for c in components}) > 1
    return Header(bottom - top, right - left, count, 1, depth, damaged=damaged)
