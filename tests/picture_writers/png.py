"""PNG of any colour type, depth and interlacing, with any chunks."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GRAY, RGB, PALETTE, GRAY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GRAY: 1, RGB: 3, PALETTE: 1, GRAY_ALPHA: 2, RGBA: 4}
DEPTHS = {GRAY: (1, 2, 4, 8, 16), RGB: (8, 16), PALETTE: (1, 2, 4, 8), GRAY_ALPHA: (8, 16), RGBA: (8, 16)}
# x and y of the first pixel of each pass of Adam7, and the steps to the next ones
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


class Chunk(NamedTuple):
    name: bytes
    body: bytes = b""

    def packed(self) -> bytes:
        return (
            struct.pack(">I", len(self.body))
            + self.name
            + self.body
            + struct.pack(">I", zlib.crc32(self.name + self.body))
        )


def png(
    pixels: np.ndarray,
    colour: int,
    depth: int = 8,
    *,
    interlaced: bool = False,
    palette: np.ndarray | None = None,
    before: Sequence[Chunk] = (),
    after: Sequence[Chunk] = (),
) -> np.ndarray:
    """The file of pixels H x W x C (numbers of `depth` bits; palette indices for PALETTE).

    `palette`: colours, N x 3; `before`, `after`: chunks around IDAT, tRNS and bKGD behind the palette.
    """
    height, width = pixels.shape[:2]
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    chunks = [Chunk(b"IHDR", head), *(c for c in before if c.name not in (b"tRNS", b"bKGD", b"eXIf"))]
    if palette is not None:
        chunks.append(Chunk(b"PLTE", palette.astype(np.uint8).tobytes()))
    chunks += [c for c in before if c.name in (b"tRNS", b"bKGD", b"eXIf")]
    rows = b"".join(_rows(p, depth) for p in parts(pixels, interlaced))
    chunks += [Chunk(b"IDAT", zlib.compress(rows)), *after, Chunk(b"IEND")]
    return np.frombuffer(SIGNATURE + b"".join(c.packed() for c in chunks), np.uint8)


def parts(pixels: np.ndarray, interlaced: bool) -> Iterator[np.ndarray]:
    """The pixels of each pass."""
    if not interlaced:
        yield pixels
        return
    for x, y, across, down in _PASSES:
        part = pixels[y::down, x::across]
        if part.size:
            yield part


def _rows(pixels: np.ndarray, depth: int) -> bytes:
    flat = pixels.reshape(len(pixels), -1)
    if depth == 16:
        packed = np.frombuffer(flat.astype(">u2").tobytes(), np.uint8).reshape(len(flat), -1)
    elif depth == 8:
        packed = flat.astype(np.uint8)
    else:
        bits = np.unpackbits(flat.astype(np.uint8)[:, :, None], axis=2)[:, :, 8 - depth :]
        packed = np.packbits(bits.reshape(len(flat), -1), axis=1)
    return b"".join(b"\0" + row.tobytes() for row in packed)


def gamma(value: float) -> Chunk:
    return Chunk(b"gAMA", struct.pack(">I", round(value * 100000)))


def srgb(intent: int = 0) -> Chunk:
    return Chunk(b"sRGB", bytes([intent]))


def chromaticities(*xy: float) -> Chunk:
    """White, red, green and blue, x and y each."""
    return Chunk(b"cHRM", struct.pack(">8I", *(round(v * 100000) for v in xy)))


def profile(data: bytes) -> Chunk:
    return Chunk(b"iCCP", b"profile\0\0" + zlib.compress(data))


def orientation(value: int, mark: bytes = b"") -> Chunk:
    """eXIf with an orientation; `mark` stands in front of it."""
    return Chunk(b"eXIf", mark + exif(value))


def exif(value: int, order: str = ">") -> bytes:
    """A TIFF structure that says an orientation and nothing else."""
    signature = b"MM" if order == ">" else b"II"
    return signature + struct.pack(f"{order}HIHHHIHHI", 42, 8, 1, 274, 3, 1, value, 0, 0)
