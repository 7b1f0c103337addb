"""Uncompressed WAV files as they lie in memory: libsndfile takes five times as long, or has to be opened first."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from ndd._cpu.jit import kernel

_HEAD = 1 << 12  # bytes in which the samples must begin, else libsndfile reads the file
_CHUNK, _FORMAT = struct.Struct("<4sI"), struct.Struct("<HHIIHH")
_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_STORED = {
    (_PCM, 8): "u1", (_PCM, 16): "<i2", (_PCM, 24): "u1", (_PCM, 32): "<i4", (_FLOAT, 32): "<f4", (_FLOAT, 64): "<f8",
}  # fmt: skip


@kernel
def _scaled(stored, out, scale):
    for i in range(out.size):
        out[i] = np.float32(stored[i]) * scale


@_scaled.meanwhile
def _(stored, out, scale):
    np.copyto(out, stored, casting="unsafe")  # NumPy does both at once in pieces, a quarter slower
    np.multiply(out, scale, out=out)


class Samples(NamedTuple):
    """The samples of a file, not yet converted."""

    frames: np.ndarray  # [n, channels], of 24 bits [n, channels, 3] bytes
    rate: int
    bits: int

    @property
    def floats(self) -> bool:
        """Whether the file holds floats."""
        return self.frames.dtype.kind == "f"

    def part(self, first: int, count: int, dtype: np.dtype, out: np.ndarray) -> np.ndarray:
        """`count` frames as float32, int16 or int32: integers keep their upper bits, as floats they are below 1."""
        stored = self.frames[first : first + count]
        if stored.dtype.kind == "f":
            np.copyto(out, stored, casting="unsafe")
            return out
        bits = self.bits
        if stored.ndim == 3:
            wide = np.zeros((*stored.shape[:2], 4), np.uint8)
            wide[..., 1:] = stored
            stored, bits = wide.view("<i4")[..., 0], 32
        elif stored.dtype == np.uint8:
            stored = stored.astype(np.int16) - np.int16(128)
        if dtype.kind == "f":
            _scaled(stored.reshape(-1), out.reshape(-1), np.float32(2.0 ** (1 - bits)))
            return out
        shift = dtype.itemsize * 8 - bits
        if shift < 0:
            np.copyto(out, stored >> -shift, casting="unsafe")
        else:
            np.left_shift(stored, shift, out=out, dtype=dtype)
        return out


def samples_of(data: np.ndarray) -> Samples | None:
    """The samples of a WAV file, of one that is cut off those that are there; None for whatever is not plain."""
    head = data[:_HEAD].tobytes()  # reading numbers out of an array takes five times as long
    if len(head) < 44 or head[:4] != b"RIFF" or head[8:12] != b"WAVE":
        return None
    place, header = 12, None
    while place + 8 <= len(head):
        name, size = _CHUNK.unpack_from(head, place)
        place += 8
        if name == b"fmt " and size >= 16:
            header = head[place : place + min(size, 40)]
        elif name == b"data":
            return None if header is None else _samples(data[place : place + size], header)
        place += size + size % 2
    return None


def _samples(data: np.ndarray, header: bytes) -> Samples | None:
    if len(header) < 16:
        return None
    kind, channels, rate, _, align, bits = _FORMAT.unpack_from(header)
    if kind == _EXTENSIBLE and len(header) >= 26:
        kind = int.from_bytes(header[24:26], "little")
    stored = _STORED.get((kind, bits))
    if stored is None or not channels or not rate or align != channels * bits // 8:
        return None
    frames = data[: len(data) // align * align].view(stored)
    return Samples(frames.reshape((-1, channels, 3) if bits == 24 else (-1, channels)), rate, bits)
