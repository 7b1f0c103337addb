"""BMP of every header, depth, mask and compression."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

RGB, RLE8, RLE4, BITFIELDS, ALPHA_BITFIELDS = 0, 1, 2, 3, 6
OS2, OS2_SHORT, INFO, V2, V3, OS2_V2, V4, V5 = 12, 16, 40, 52, 56, 64, 108, 124  # headers, by their length
END_OF_LINE, END = b"\0\0", b"\0\1"


def packed(values: np.ndarray, bits: int) -> bytes:
    """Numbers H x W of so many bits in rows of whole words, the last row first."""
    if bits < 8:
        digits = np.unpackbits(values.astype(np.uint8)[:, :, None], axis=2)[:, :, 8 - bits :]
        rows = np.packbits(digits.reshape(len(values), -1), axis=1)
    else:
        kept = values.astype("<u4")[:, :, None].view(np.uint8)[:, :, : bits // 8]
        rows = kept.reshape(len(values), -1)
    return np.pad(rows, ((0, 0), (0, -rows.shape[1] % 4)))[::-1].tobytes()


def bmp(
    body: bytes,
    width: int,
    height: int,
    bits: int,
    compression: int = RGB,
    *,
    header: int = INFO,
    palette: np.ndarray | None = None,
    masks: Sequence[int] = (),
    top_down: bool = False,
    colours: int | None = None,
    gap: int = 0,
    offset: int | None = None,
) -> np.ndarray:
    """The file of a body.

    `palette`: colours N x 3, RGB; `masks`: of red, green, blue and perhaps alpha; `colours`: how many the header claims; `gap`:
    bytes between all that and the body; `offset`: of the body, as the header claims.
    """
    entry = 3 if header == OS2 else 4
    table = b"" if palette is None else b"".join(bytes(c[::-1]) + bytes(entry - 3) for c in palette.astype(np.uint8))
    count = (0 if palette is None else len(palette)) if colours is None else colours
    stated = -height if top_down else height
    if header == OS2:
        info = struct.pack("<IHHHH", header, width, height, 1, bits)
    else:
        info = struct.pack("<IiiHHIIiiII", header, width, stated, 1, bits, compression, len(body), 2835, 2835, count, 0)
        inside = struct.pack(f"<{len(masks)}I", *masks)
        info = info + inside.ljust(header - INFO, b"\0") if header > INFO else info[:header] + inside
    start = 14 + len(info) + len(table) + gap
    file = b"BM" + struct.pack("<IHHI", start + len(body), 0, 0, start if offset is None else offset)
    return np.frombuffer(file + info + table + bytes(gap) + body, np.uint8)


def run(count: int, value: int) -> bytes:
    """RLE: so many pixels alike; of RLE4 two colours in turn."""
    return bytes([count, value])


def literal(values: Sequence[int], bits: int = 8) -> bytes:
    """RLE: pixels one by one, three at least."""
    stored = (
        bytes(values) if bits == 8 else bytes(a << 4 | b for a, b in zip(values[::2], [*values[1::2], 0], strict=False))
    )
    return bytes([0, len(values)]) + stored + bytes(len(stored) & 1)


def delta(right: int, up: int) -> bytes:
    """RLE: goes on elsewhere; what lies between is not written."""
    return bytes([0, 2, right, up])
