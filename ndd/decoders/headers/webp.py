"""WebP, chunk by chunk: its signature, its header, its orientation, and whether it is complete."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from ndd.decoders.headers import orientation as _orientation
from ndd.decoders.headers.header import Header

_RIFF_BYTES = 12
_ALPHA, _EXIF, _ANIMATION = 0x10, 0x08, 0x02  # flags of VP8X


def is_webp(data: memoryview) -> bool:
    """Whether the file is a RIFF container of WebP."""
    return data[:4] == b"RIFF" and data[8:12] == b"WEBP"


def _chunks(data: memoryview) -> Iterator[tuple[bytes, memoryview | None]]:
    """Name and body of each chunk. The body of a last chunk that is cut off is None."""
    position, end = _RIFF_BYTES, min(len(data), 8 + struct.unpack_from("<I", data, 4)[0])
    while end - position >= 8:
        name, size = struct.unpack_from("<4sI", data, position)
        position += 8
        if size > end - position:
            yield name, None
            return
        yield name, data[position : position + size]
        position += size + (size & 1)  # a chunk of odd length is padded


def read_header(data: memoryview) -> Header | None:
    """The header, from the first chunk: VP8X describes the canvas, VP8 (lossy) or VP8L (lossless) the picture."""
    (name,) = struct.unpack_from("<4s", data, _RIFF_BYTES)
    channels, turned = 3, 1
    if name == b"VP8X":
        flags, *extents = struct.unpack_from("<B3xHBHB", data, 20)
        width, height = (extents[i] + (extents[i + 1] << 16) + 1 for i in (0, 2))
        channels = 4 if flags & _ALPHA else 3
        turned = _turned(data) if flags & _EXIF else 1
    elif name == b"VP8 ":
        start, width, height = struct.unpack_from("<3x3sHH", data, 20)
        if start != b"\x9d\x01\x2a":
            return None
        width, height = width & 0x3FFF, height & 0x3FFF
    elif name == b"VP8L":
        mark, sizes = struct.unpack_from("<BI", data, 20)
        if mark != 0x2F:
            return None
        width, height = (sizes & 0x3FFF) + 1, (sizes >> 14 & 0x3FFF) + 1
        channels = 4 if sizes >> 28 & 1 else 3
    else:
        return None
    return Header(height, width, channels, turned)


def is_animated(data: memoryview) -> bool:
    """Whether a file, whose header has been read, has frames."""
    return data[12:16] == b"VP8X" and bool(data[20] & _ANIMATION)


def _turned(data: memoryview) -> int:
    for name, body in _chunks(data):
        if name == b"EXIF" and body is not None:
            return _orientation.of_tiff(body)
    return 1


def stripped(data: np.ndarray) -> np.ndarray | None:
    """The file; None if it is cut off."""
    return data if all(body is not None for _, body in _chunks(data.data)) else None
