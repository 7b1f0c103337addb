"""Pictures whose headers lie: lengths, counts, offsets and the order of parts, by the structure of each format.

`mutated(number)` gives the name of a good file and a damaged one of it; each number stands for one file, for ever.
"""

from __future__ import annotations

import functools
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from encoded import encode, photo
from picture_writers import avif, bmp, png, tiff, webp
from PIL import Image

SEED = 34

# ---- good files


@functools.cache
def originals() -> list[tuple[str, bytes]]:
    """Small files of each kind that the parsers here tell apart."""
    pixels = photo(9, 13)
    rgb, gray = np.ascontiguousarray(pixels[..., :3]), pixels[..., :1]
    deep = pixels.astype(np.uint16) * 257
    palette = np.arange(48, dtype=np.uint8).reshape(16, 3) * 5
    turn = [png.orientation(6), png.gamma(0.5), png.srgb()]
    result: dict[str, np.ndarray] = {
        "rgba.png": png.png(pixels, png.RGBA, before=turn),
        "16.png": png.png(deep[..., :3], png.RGB, 16, interlaced=True, after=[png.orientation(3, b"Exif\0\0")]),
        "palette.png": png.png(gray >> 4, png.PALETTE, 4, palette=palette, before=[png.Chunk(b"tRNS", b"\0\x80")]),
        "gray_alpha.png": png.png(pixels[..., :2], png.GRAY_ALPHA, before=turn),
    }
    exif = webp.Chunk(b"EXIF", b"Exif\0\0" + png.exif(8) + b"\0")
    for name, source, options in (("lossy", rgb, {}), ("lossless", pixels, {"lossless": True}), ("alpha", pixels, {})):
        parts = [c for c in webp.chunks(encode(source, "WEBP", **options)) if c.name != b"VP8X"]
        flags = webp.EXIF | webp.ICC | (webp.ALPHA if source is pixels else 0)
        head = [webp.extended(13, 9, flags), webp.Chunk(b"ICCP", b"odd")]
        result[f"{name}.webp"] = webp.riff([*head, *parts, exif])
    Image.init()
    if "AVIF" in Image.SAVE:
        stored = encode(rgb, "AVIF")
        result["turned.avif"] = avif.avif(stored, [avif.irot(1), avif.imir(0)], bytes(4) + png.exif(6))
        result["exif.avif"] = avif.avif(stored, [], bytes(4) + png.exif(6), wide=True, in_idat=True)
    values, words = gray[..., 0] >> 4, deep[..., 0].astype(np.uint32) * 3
    runs = (
        bmp.run(9, 0x12) + bmp.END_OF_LINE + bmp.literal([1, 2, 3, 4, 5], 4) + bmp.delta(1, 1) + bmp.run(3, 7) + bmp.END
    )
    result |= {
        "4.bmp": bmp.bmp(bmp.packed(values, 4), 13, 9, 4, palette=palette),
        "os2.bmp": bmp.bmp(bmp.packed(values, 8), 13, 9, 8, header=bmp.OS2, palette=palette),
        "565.bmp": bmp.bmp(bmp.packed(words, 16), 13, 9, 16, bmp.BITFIELDS, masks=(0xF800, 0x7E0, 0x1F)),
        "v5.bmp": bmp.bmp(bmp.packed(words, 32), 13, 9, 32, bmp.BITFIELDS, header=bmp.V5, masks=(255, 65280, 0xFF0000, 1 << 31)),
        "rle4.bmp": bmp.bmp(runs, 13, 9, 4, bmp.RLE4, palette=palette),
        "rle8.bmp": bmp.bmp(runs * 9, 13, 9, 8, bmp.RLE8, palette=palette, top_down=True),
    }  # fmt: skip
    table = {320: list(range(48))}
    for name, source, form in (
        ("12", deep[..., :3] >> 4, {"bits": 12, "colours": tiff.RGB, "orientation": 6}),
        ("tiles", pixels, {"tile": 16, "compression": tiff.DEFLATE, "predictor": 2, "order": ">"}),
        ("big", deep, {"bits": 16, "colours": tiff.RGB, "big": True, "order": ">", "planes": True}),
        ("palette", values[..., None], {"bits": 4, "colours": tiff.PALETTE, "tags": table, "compression": tiff.LZW}),
        ("ycc", rgb, {"colours": tiff.YCBCR, "tags": {530: [1, 1], 529: [0.3, 0.6, 0.1], 532: [0, 255, 128, 255, 128, 255]}}),
        ("lab", rgb, {"colours": tiff.LAB, "orientation": 3}),
        ("float", rgb.astype(np.float32) / 255, {"bits": 32, "kind": tiff.FLOAT, "colours": tiff.RGB, "predictor": 3,
                                                 "compression": tiff.DEFLATE}),
        ("plain", rgb, {"colours": tiff.RGB, "compression": tiff.PACKBITS}),
    ):  # fmt: skip
        result[f"{name}.tif"] = tiff.tiff(source, **{"rows": 4, **form})
    return [(name, data.tobytes()) for name, data in result.items()]


# ---- where lengths, counts and offsets stand


class Field(NamedTuple):
    place: int
    form: str  # of struct


class Part(NamedTuple):
    """A chunk or a box, as a whole."""

    start: int
    end: int


def parts_of_png(data: bytes) -> Iterator[Part]:
    place = 8
    while place + 12 <= len(data):
        end = place + 12 + struct.unpack_from(">I", data, place)[0]
        yield Part(place, end)
        place = end


def parts_of_webp(data: bytes) -> Iterator[Part]:
    place = 12
    while place + 8 <= len(data):
        size = struct.unpack_from("<I", data, place + 4)[0]
        yield Part(place, place + 8 + size + (size & 1))
        place += 8 + size + (size & 1)


_CONTAINERS = {b"meta": 4, b"iprp": 0, b"ipco": 0, b"iinf": 6, b"iref": 4}


def parts_of_avif(data: bytes, place: int = 0, end: int | None = None) -> Iterator[Part]:
    """Boxes, and those inside of them."""
    end = len(data) if end is None else end
    while place + 8 <= end:
        size, name = struct.unpack_from(">I4s", data, place)
        head = 16 if size == 1 else 8
        size = struct.unpack_from(">Q", data, place + 8)[0] if size == 1 else size
        if size < head or place + size > end:
            return
        yield Part(place, place + size)
        if name in _CONTAINERS:
            yield from parts_of_avif(data, place + head + _CONTAINERS[name], place + size)
        place += size


def fields(name: str, data: bytes) -> list[Field]:
    kind = name.split(".")[1]
    if kind == "png":
        inside = [Field(16, ">I"), Field(20, ">I"), *(Field(k, "B") for k in range(24, 29))]
        return [Field(p.start, ">I") for p in parts_of_png(data)] + inside
    if kind == "webp":
        inside = [Field(4, "<I"), Field(20, "B"), Field(24, "<I"), Field(26, "<I")]
        return [Field(p.start + 4, "<I") for p in parts_of_webp(data)] + inside
    if kind == "avif":
        lengths = [Field(p.start, ">I") for p in parts_of_avif(data)]
        small = [p for p in parts_of_avif(data) if p.end - p.start < 80]
        return lengths + [
            Field(k, form) for p in small for k in range(p.start + 8, p.end - 4) for form in ("B", ">H", ">I")
        ]
    if kind == "bmp":
        places = {10: "<I", 14: "<I", 18: "<i", 22: "<i", 26: "<H", 28: "<H", 30: "<I", 34: "<I", 46: "<I"}
        return [Field(k, form) for k, form in places.items()] + [Field(k, "<I") for k in range(54, 70, 4)]
    return list(fields_of_tiff(data))


def fields_of_tiff(data: bytes) -> Iterator[Field]:
    order, is_big = "<>"[data[0] == ord("M")], 43 in data[2:4]
    wide, start, counts = ("Q", 8, "Q") if is_big else ("I", 4, "H")
    (first,) = struct.unpack_from(order + wide, data, start)
    yield from (Field(2, order + "H"), Field(start, order + wide), Field(first, order + counts))
    (count,) = struct.unpack_from(order + counts, data, first)
    step = 20 if is_big else 12
    for place in range(first + struct.calcsize(order + counts), first + count * step, step):
        yield from (Field(place, order + "H"), Field(place + 2, order + "H"), Field(place + 4, order + wide))
        value = place + (12 if is_big else 8)
        yield from (Field(value, order + form) for form in ("H", wide))


# ---- what is done to them: (random numbers, name, file) to the file

_NUMBERS = (0, 1, 2, 3, 4, 5, 7, 8, 12, 255, 256, 4095, 65535, 65536, 1 << 24, (1 << 31) - 1, 1 << 31, (1 << 32) - 12,
            (1 << 32) - 8, (1 << 32) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)  # fmt: skip


def lying_field(rng: np.random.Generator, name: str, data: bytearray) -> bytearray:
    known = fields(name, bytes(data))
    place, form = known[rng.integers(len(known))]
    if place + struct.calcsize(form) > len(data):
        return data
    (stated,) = struct.unpack_from(form, data, place)
    near = (stated + 1, stated - 1, stated * 2, len(data) - place, len(data), stated ^ 1 << int(rng.integers(8)))
    number = (_NUMBERS + near)[rng.integers(len(_NUMBERS) + len(near))]
    size = struct.calcsize(form)
    data[place : place + size] = (number & (1 << 8 * size) - 1).to_bytes(size, "big" if form[0] == ">" else "little")
    return data


def moved_part(rng: np.random.Generator, name: str, data: bytearray) -> bytearray:
    """One left out, doubled, exchanged with another, or cut, with or without its length."""
    walk = {"png": parts_of_png, "webp": parts_of_webp, "avif": parts_of_avif}.get(name.split(".")[1])
    known = [] if walk is None else [p for p in walk(bytes(data)) if p.end <= len(data)]
    if not known:
        return lying_field(rng, name, data)
    item, other = sorted(known[k] for k in rng.integers(len(known), size=2))
    body = data[item.start : item.end]
    way = rng.integers(5)
    if way == 0:
        return data[: item.start] + data[item.end :]
    if way == 1:
        return data[: item.end] + body * int(rng.integers(1, 4)) + data[item.end :]
    if way == 2 and item.end <= other.start:
        return (
            data[: item.start] + data[other.start : other.end] + data[item.end : other.start] + body + data[other.end :]
        )
    if way == 3:
        return data[: item.start] + body[: rng.integers(len(body))] + data[item.end :]
    return data[: item.end] + rng.bytes(int(rng.integers(1, 9))) + data[item.end :]


def cut(rng: np.random.Generator, _name: str, data: bytearray) -> bytearray:
    return data[: rng.integers(len(data))]


def other_bytes(rng: np.random.Generator, _name: str, data: bytearray) -> bytearray:
    for _ in range(rng.integers(1, 5)):
        data[rng.integers(len(data))] = int(rng.integers(256))
    return data


_WAYS: tuple[Callable[..., bytearray], ...] = (lying_field,) * 5 + (moved_part,) * 3 + (cut, other_bytes)


def with_checksums(data: bytearray) -> bytearray:
    for part in parts_of_png(bytes(data)):
        if part.end <= len(data):
            struct.pack_into(">I", data, part.end - 4, zlib.crc32(data[part.start + 4 : part.end - 4]))
    return data


def mutated(number: int) -> tuple[str, np.ndarray]:
    rng = np.random.default_rng([SEED, number])
    name, original = originals()[number % len(originals())]
    data = bytearray(original)
    for _ in range(1 + (rng.random() < 0.3) + (rng.random() < 0.1)):
        if len(data) > 40:
            try:
                data = _WAYS[rng.integers(len(_WAYS))](rng, name, data)
            except struct.error:  # damaged so much already that its structure is lost
                break
    if name.endswith("png") and rng.random() < 0.8:
        data = with_checksums(data)
    return name, np.frombuffer(bytes(data), np.uint8)
