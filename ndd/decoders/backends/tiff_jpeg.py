"""Chunks of a TIFF that are JPEGs, all by one call of the kernel for baseline JPEGs.

Such a chunk lacks the tables that all chunks share: a tag has them. TIFF Technical Note 2 describes the format.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ndd._tensor.memory import host_empty
from ndd.decoders.backend import Unreadable, Window
from ndd.decoders.headers.tiff_directory import most_read
from ndd.decoders.jpeg import backend as _jpeg
from ndd.decoders.jpeg.segments import SCAN, segments

_START, _END = b"\xff\xd8", b"\xff\xd9"
_FRAMES = (0xC0, 0xC1)  # baseline, extended sequential
_frame = struct.Struct(">BHHB").unpack_from  # bits, height, width, components


class Chunk(NamedTuple):
    """Stored bytes, the plane, the place of the first pixel, and the number of rows."""

    stored: np.ndarray
    plane: int
    top: int
    left: int
    rows: int


def pixels(
    chunks: Iterable[Chunk], part: Window, columns: int, channels: int, is_rgb: bool, tables: bytes, size: int
) -> np.ndarray:
    """A part of the picture, HWC: RGB, or gray for one channel. ValueError for chunks that the kernel or libtiff refuses.

    Args:
        columns: of a chunk.
        is_rgb: whether the components are red, green and blue, not YCbCr.
        tables: a JPEG without a picture; empty if there is none.
        size: bytes of the file.
    """
    y0, x0, y1, x1 = part
    head = tables[: -len(_END)] or _START
    if not (head.startswith(_START) and tables.endswith(_END if tables else b"")):
        raise ValueError("no JPEG tables")
    pieces, places, begins, known, at = [], [], [], None, 0
    for chunk in chunks:
        known = _header(chunk, known, columns, channels)
        pieces += np.frombuffer(head, np.uint8), chunk.stored[len(_START) :]
        begins.append(at)
        at += len(head) + len(chunk.stored) - len(_START)
        if at > most_read(size):
            raise ValueError("chunks that overlap")
        top, left = max(y0, chunk.top), max(x0, chunk.left)
        bottom, right = min(y1, chunk.top + chunk.rows), min(x1, chunk.left + columns)
        places.append((top, left, bottom, right, chunk.top, chunk.left))
    data = np.concatenate(pieces)
    out = host_empty((y1 - y0, x1 - x0, channels), np.uint8)
    # The kernel may write to the right of a chunk, so those that lie side by side need memory of their own.
    are_strips = all(left == x0 and right == x1 for _, left, _, right, _, _ in places)
    decoded = out if are_strips else host_empty(out.shape, np.uint8)
    written, ends, rows = 0, [*begins[1:], at], []
    for (top, left, bottom, right, chunk_top, chunk_left), begin, end in zip(places, begins, ends, strict=True):
        count = (bottom - top) * (right - left) * channels
        window = top - chunk_top, left - chunk_left, bottom - chunk_top, right - chunk_left
        rows.append([
            data.ctypes.data + begin, end - begin, decoded.ctypes.data + written, count, *window, *window[:2],
            right - left, channels, is_rgb,
        ])  # fmt: skip
        written += count
    if not _jpeg.decode_all(rows):
        raise ValueError("a chunk that the kernel refuses")
    written, flat = 0, decoded.reshape(-1)
    for top, left, bottom, right, _, _ in () if are_strips else places:
        shape = bottom - top, right - left, channels
        count = shape[0] * shape[1] * channels
        out[top - y0 : bottom - y0, left - x0 : right - x0] = flat[written : written + count].reshape(shape)
        written += count
    return out


class _Header(NamedTuple):
    text: bytes  # up to the pixels
    rows: int
    factors: tuple[bytes, ...]


def _header(chunk: Chunk, known: _Header | None, columns: int, channels: int) -> _Header:
    """The header of a chunk; `known` is that of another one. ValueError if libtiff would refuse it, Unreadable if
    it is smaller than the chunk."""
    if known is not None and chunk.rows == known.rows and chunk.stored[: len(known.text)].tobytes() == known.text:
        return known
    header = None
    for segment in segments(chunk.stored.data):
        content = bytes(chunk.stored[segment.begin : segment.end])
        if segment.marker in _FRAMES:
            bits, height, width, components = _frame(content)
            if height < chunk.rows or width < columns:
                # libtiff leaves the rest of such a chunk as it is: memory that nothing has written before Pillow 13, in DALI too.
                raise Unreadable(f"expected a JPEG of {chunk.rows} x {columns} in a chunk, got {height} x {width}")
            if header is not None or (bits, height, width, components) != (8, chunk.rows, columns, channels):
                raise ValueError("a chunk of another size")
            header = _Header(b"", chunk.rows, tuple(content[7 + 3 * c : 8 + 3 * c] for c in range(channels)))
        if segment.marker == SCAN and header is not None:
            header = header._replace(text=chunk.stored[: segment.end].tobytes())
    if header is None or not header.text.startswith(_START) or (known and header.factors != known.factors):
        raise ValueError("a chunk that is no JPEG like the others")
    return header
