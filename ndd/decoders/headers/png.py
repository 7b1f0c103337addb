"""PNG, chunk by chunk: its header, its orientation, and the file reduced to the chunks that pixels need."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ndd.decoders.headers import orientation as _orientation
from ndd.decoders.headers.header import Header

_SIGNATURE_BYTES = 8
_PALETTE = 3
_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}  # by colour type
_LOWER_CASE = 0x20  # bit of a chunk's first letter: pixels do not need the chunk


class Chunk(NamedTuple):
    """A complete chunk."""

    name: bytes
    start: int
    """The first byte of length, name, body and checksum; `end` is the byte after them."""
    body: memoryview
    end: int


def _chunks(data: memoryview) -> Iterator[Chunk]:
    """The chunks up to IEND, or to the first one that is cut off."""
    position, total = _SIGNATURE_BYTES, len(data)
    while total - position >= 12:
        size, name = struct.unpack_from(">I4s", data, position)
        if size > total - position - 12:
            return
        start, position = position, position + 12 + size
        yield Chunk(name, start, data[start + 8 : start + 8 + size], position)
        if name == b"IEND":
            return


def read_header(data: memoryview) -> Header | None:
    """Size and channels from IHDR, orientation from eXIf."""
    length, name, width, height, bits, kind = struct.unpack_from(">I4sIIBB", data, _SIGNATURE_BYTES)
    channels = _CHANNELS.get(kind)
    if length != 13 or name != b"IHDR" or channels is None or max(width, height) >= 1 << 31:
        return None
    first = {chunk.name: chunk for chunk in reversed([*_chunks(data)])}
    turned = _orientation.of_tiff(first[b"eXIf"].body) if b"eXIf" in first else 1
    lost = kind == _PALETTE and b"PLTE" not in first  # Pillow would make it black
    return Header(height, width, channels, turned, np.uint16 if bits == 16 else np.uint8, damaged=lost)


def stripped(data: np.ndarray) -> np.ndarray | None:
    """The file with only the chunks that pixels need; None if one is missing or its checksum is wrong (libpng would complain on
    stderr). That of IEND, which has no content, does not count.

    Other chunks have unwanted effects: with gAMA or sRGB libpng mixes gray in linear light, which changes it by up to 60 of
    255; texts are unpacked, and frames of an animation are drawn.
    """
    view, kept, copied, end = data.data, [], _SIGNATURE_BYTES, 0
    for chunk in _chunks(view):
        if chunk.name[0] & _LOWER_CASE:
            kept.append(view[copied : chunk.start])
            copied = chunk.end
        elif chunk.name == b"IEND":
            end = chunk.end
        elif struct.unpack_from(">I", view, chunk.end - 4)[0] != zlib.crc32(view[chunk.start + 4 : chunk.end - 4]):
            return None
    if not end:
        return None
    return data if not kept else np.frombuffer(b"".join((view[:_SIGNATURE_BYTES], *kept, view[copied:end])), np.uint8)
