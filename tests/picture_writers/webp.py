"""WebP around the picture data that a library encoded, with any chunks."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

ICC, ALPHA, EXIF, XMP, ANIMATION = 0x20, 0x10, 0x08, 0x04, 0x02  # flags of VP8X


class Chunk(NamedTuple):
    name: bytes
    body: bytes = b""

    def packed(self) -> bytes:
        return self.name + struct.pack("<I", len(self.body)) + self.body + bytes(len(self.body) & 1)


def chunks(data: np.ndarray) -> Iterator[Chunk]:
    """Those of a file."""
    held, place = data.tobytes(), 12
    while place + 8 <= len(held):
        name, size = struct.unpack_from("<4sI", held, place)
        yield Chunk(name, held[place + 8 : place + 8 + size])
        place += 8 + size + (size & 1)


def riff(parts: Sequence[Chunk]) -> np.ndarray:
    """A file of these chunks."""
    body = b"WEBP" + b"".join(c.packed() for c in parts)
    return np.frombuffer(b"RIFF" + struct.pack("<I", len(body)) + body, np.uint8)


def extended(width: int, height: int, flags: int = 0) -> Chunk:
    """VP8X: what the canvas is, and what chunks there are."""
    return Chunk(
        b"VP8X",
        struct.pack("<B3xHBHB", flags, width - 1 & 0xFFFF, width - 1 >> 16, height - 1 & 0xFFFF, height - 1 >> 16),
    )
