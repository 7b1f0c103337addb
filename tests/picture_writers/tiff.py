"""TIFF of any number of bits and channels, in strips, tiles and planes, in both byte orders, as TIFF and BigTIFF."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import PIL
import pytest
from PIL import Image

NONE, LZW, JPEG, DEFLATE, PACKBITS, OLD_DEFLATE, ZSTD = 1, 5, 7, 8, 32773, 32946, 50000
WHITE_IS_ZERO, GRAY, RGB, PALETTE, CMYK, YCBCR, LAB = 0, 1, 2, 3, 5, 6, 8
UNSIGNED, SIGNED, FLOAT = 1, 2, 3
_BYTE, _SHORT, _LONG, _RATIONAL, _UNDEFINED, _LONG8 = 1, 3, 4, 5, 7, 16
_CODES = {_BYTE: "B", _UNDEFINED: "B", _SHORT: "H", _LONG: "I", _LONG8: "Q"}
_LONGS = (256, 257, 273, 278, 279, 322, 323, 324, 325)


def tiff(
    pixels: np.ndarray,
    *,
    bits: int = 8,
    colours: int | None = GRAY,
    order: Literal["<", ">"] = "<",
    big: bool = False,
    planes: bool = False,
    compression: int = NONE,
    predictor: int = 1,
    tile: int = 0,
    rows: int = 16,
    kind: int | None = UNSIGNED,
    orientation: int = 1,
    fill_order: int = 1,
    tags: Mapping[int, Sequence[int] | None] | None = None,
) -> np.ndarray:
    """The file of pixels H x W x C, numbers of `bits` bits.

    `colours`: what they mean, None for no such tag; `kind`: the sample format; `predictor`: 2 stores differences to the pixel on
    the left, 3 the same of the bytes of floats; `tags`: further ones, or None in place of one that shall be missing. JPEG takes
    red, green and blue also for YCbCr, whose subsampling the tag 530 says; without tag 347 each chunk has tables of its own.
    """
    if compression == JPEG:
        factors = tuple((tags or {}).get(530) or (1, 1))
        own = 347 in (tags or {})
        tags = {347: [*as_jpeg(pixels, colours, factors, 1)], **(tags or {})}
    height, width, channels = pixels.shape
    high, wide = (tile, tile) if tile else (rows, width)
    grids = [pixels[:, :, c : c + 1] for c in range(channels)] if planes else [pixels]
    mark = {"<": b"II", ">": b"MM"}[order] + struct.pack(f"{order}H", 43 if big else 42)
    body = bytearray(mark + (struct.pack(f"{order}HHQ", 8, 0, 0) if big else bytes(4)))
    places, sizes = [], []
    for grid in grids:
        for part in _parts(grid, high, wide, bool(tile)):
            if compression == JPEG:
                stored = as_jpeg(part, colours, factors, 0 if own else 2)
            else:
                rows_of_bytes = _rows(_predicted(part, predictor, bits), bits, order, predictor)
                stored = _compressed(rows_of_bytes, compression, fill_order)
            places.append(len(body))
            sizes.append(len(stored))
            body += stored
    known: dict[int, Sequence[int] | None] = {
        256: [width], 257: [height], 258: [bits] * channels, 259: [compression], 274: [orientation], 277: [channels],
        284: [1 + planes],
    }  # fmt: skip
    known |= {322: [tile], 323: [tile], 324: places, 325: sizes} if tile else {273: places, 278: [rows], 279: sizes}
    known |= {} if colours is None else {262: [colours]}
    known |= {} if kind is None else {339: [kind] * channels}
    known |= {317: [predictor]} if predictor != 1 else {}
    known |= {266: [fill_order]} if fill_order != 1 else {}
    own = {RGB: 3, YCBCR: 3, LAB: 3, CMYK: 4}.get(colours or 0, 1)
    known |= {338: [0] * (channels - own)} if channels > own and colours is not None else {}
    return _with_directory(body, {t: v for t, v in (known | dict(tags or {})).items() if v is not None}, order, big)


def as_jpeg(part: np.ndarray, colours: int | None, factors: Sequence[int], stream: int, **options: Any) -> bytes:
    """A chunk as a JPEG. `stream` is Pillow's: whole, only the tables, all but the tables."""
    if tuple(map(int, PIL.__version__.split(".")[:2])) < (10, 2):
        pytest.skip("Pillow before 10.2 writes neither the tables of a JPEG alone nor RGB")
    held = io.BytesIO()
    form = {"keep_rgb": True} if colours == RGB else {"subsampling": sum(factors) - 2}
    image = Image.fromarray(part[:, :, 0] if part.shape[2] == 1 else part)
    image.save(held, "JPEG", quality=80, streamtype=stream, **({} if part.shape[2] == 1 else form), **options)
    return held.getvalue()


def _parts(grid: np.ndarray, high: int, wide: int, padded: bool) -> Iterator[np.ndarray]:
    for top, left in np.ndindex(-(-grid.shape[0] // high), -(-grid.shape[1] // wide)):
        part = grid[top * high : (top + 1) * high, left * wide : (left + 1) * wide]
        yield np.pad(part, ((0, high - part.shape[0]), (0, wide - part.shape[1]), (0, 0))) if padded else part


def _predicted(part: np.ndarray, predictor: int, bits: int) -> np.ndarray:
    if predictor != 2:
        return part
    return np.diff(part.astype(np.int64), axis=1, prepend=0) & ((1 << bits) - 1)


def _rows(part: np.ndarray, bits: int, order: str, predictor: int) -> np.ndarray:
    """The bytes of each row."""
    flat = part.reshape(len(part), -1)
    if flat.dtype.kind == "f":
        if predictor == 3:  # the first bytes of all numbers, then the second ones; of all that the differences
            split = flat.astype(f">f{bits // 8}").view(np.uint8).reshape(len(flat), -1, bits // 8)
            stacked = split.transpose(0, 2, 1).reshape(len(flat), -1)
            shifted = np.pad(stacked, ((0, 0), (part.shape[2], 0)))[:, : stacked.shape[1]]
            return stacked - shifted
        return np.ascontiguousarray(flat.astype(f"{order}f{bits // 8}")).view(np.uint8)
    if bits in (8, 16, 32, 64):
        return np.ascontiguousarray(flat.astype(np.int64).astype(f"{order}u{bits // 8}")).view(np.uint8)
    digits = flat.astype(np.int64)[:, :, None] >> np.arange(bits - 1, -1, -1) & 1
    return np.packbits(digits.reshape(len(flat), -1).astype(np.uint8), axis=1)


def _compressed(rows: np.ndarray, compression: int, fill_order: int) -> bytes:
    if compression in (DEFLATE, OLD_DEFLATE):
        stored = zlib.compress(rows.tobytes())
    elif compression == LZW:
        held = io.BytesIO()
        Image.fromarray(rows).save(held, "TIFF", compression="tiff_lzw", strip_size=1 << 30)
        with Image.open(held) as image:
            (place,), (size,) = image.tag_v2[273], image.tag_v2[279]  # pyright: ignore[reportAttributeAccessIssue]
        stored = held.getvalue()[place : place + size]
    elif compression == PACKBITS:
        stored = b"".join(_literals(row.tobytes()) for row in rows)
    else:
        stored = rows.tobytes()
    if fill_order == 2:
        stored = np.packbits(np.unpackbits(np.frombuffer(stored, np.uint8), bitorder="little")).tobytes()
    return stored


def _literals(row: bytes) -> bytes:
    return b"".join(bytes([len(row[k : k + 128]) - 1]) + row[k : k + 128] for k in range(0, len(row), 128))


def _with_directory(body: bytearray, tags: dict[int, Sequence[int]], order: str, big: bool) -> np.ndarray:
    offset, room = ("Q", 8) if big else ("I", 4)
    entries = b""
    for tag, numbers in sorted(tags.items()):
        if tag in (529, 532):  # fractions
            kind, held = _RATIONAL, b"".join(struct.pack(f"{order}II", round(n * 10000), 10000) for n in numbers)
        else:
            kind = _UNDEFINED if tag == 347 else (_LONG8 if big else _LONG) if tag in _LONGS else _SHORT
            held = struct.pack(f"{order}{len(numbers)}{_CODES[kind]}", *numbers)
        if len(held) > room:
            place, stored = len(body), held
            body += stored + bytes(len(stored) & 1)
            held = struct.pack(f"{order}{offset}", place)
        entries += struct.pack(f"{order}HH{offset}", tag, kind, len(numbers)) + held.ljust(room, b"\0")
    if big:
        body[8:16] = struct.pack(f"{order}Q", len(body))
    else:
        body[4:8] = struct.pack(f"{order}I", len(body))
    count = struct.pack(f"{order}Q" if big else f"{order}H", len(tags))
    return np.frombuffer(bytes(body) + count + entries + bytes(room), np.uint8)
