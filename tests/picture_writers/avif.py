"""AVIF around the AV1 data of a file that Pillow encoded: properties and EXIF in any of the forms that the boxes have."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import numpy as np

PLAIN = (b"ispe", b"pixi", b"av1C", b"colr")


def boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Name and body of each."""
    place = 0
    while place + 8 <= len(data):
        size, name = struct.unpack_from(">I4s", data, place)
        yield name, data[place + 8 : place + size]
        place += size


def box(name: bytes, body: bytes, *, wide: bool = False) -> bytes:
    """`wide`: with a length of 64 bits."""
    return (
        struct.pack(">I4sQ", 1, name, 16 + len(body)) + body
        if wide
        else struct.pack(">I4s", 8 + len(body), name) + body
    )


def full(name: bytes, version: int, flags: int, body: bytes) -> bytes:
    return box(name, struct.pack(">I", version << 24 | flags) + body)


def irot(quarters: int) -> bytes:
    """Anticlockwise."""
    return box(b"irot", bytes([quarters]))


def imir(axis: int) -> bytes:
    """0: top and bottom change places, 1: left and right."""
    return box(b"imir", bytes([axis]))


def avif(
    encoded: np.ndarray,
    turns: Sequence[bytes] = (),
    exif: bytes = b"",
    *,
    brands: Sequence[bytes] = (b"avif", b"mif1", b"miaf"),
    wide: bool = False,
    in_idat: bool = False,
) -> np.ndarray:
    """The AV1 picture of `encoded`, a file of one item, with these further properties, in this order, and this EXIF.

    `wide`: numbers of items and properties of 32 and 15 bits instead of 16 and 7, lengths of boxes of 64; `in_idat`: the EXIF
    lies inside of the meta box.
    """
    top = dict(boxes(encoded.tobytes()))
    meta = dict(boxes(top[b"meta"][4:]))
    known = [box(n, b) for n, b in boxes(dict(boxes(meta[b"iprp"]))[b"ipco"]) if n in PLAIN]
    picture, properties = top[b"mdat"], [*known, *turns]
    number, version = (">I", 1) if wide else (">H", 0)
    main, other = struct.pack(number, 1), struct.pack(number, 2)
    # Readers must understand what has the first bit.
    marks = [p[4:8] in (b"av1C", b"irot", b"imir") for p in properties]
    links = b"".join(
        struct.pack(">H", k | mark << 15) if wide else bytes([k | mark << 7]) for k, mark in enumerate(marks, 1)
    )
    ipma = struct.pack(">I", 1) + main + bytes([len(properties)]) + links
    iprp = box(b"ipco", b"".join(properties)) + full(b"ipma", version, int(wide), ipma)
    items = [full(b"infe", 2 + wide, 0, main + b"\0\0av01Color\0")]
    if exif:
        items.append(full(b"infe", 2 + wide, 0, other + b"\0\0ExifExif\0"))
    ftyp = box(b"ftyp", brands[0] + bytes(4) + b"".join(brands))

    def whole(start: int) -> bytes:
        extents = [(main, 0, start, len(picture))]
        if exif:
            extents.append((other, int(in_idat), 0 if in_idat else start + len(picture), len(exif)))
        form = 2 if wide else 1
        iloc = struct.pack(">H", 0x4440) + struct.pack(number, len(extents))
        for item, method, place, length in extents:
            iloc += item + struct.pack(">HHIHII", method, 0, 0, 1, place, length)
        body = bytes(4) + box(b"hdlr", meta[b"hdlr"]) + full(b"pitm", version, 0, main) + full(b"iloc", form, 0, iloc)
        body += full(b"iinf", version, 0, struct.pack(number, len(items)) + b"".join(items)) + box(b"iprp", iprp)
        if exif:
            body += full(b"iref", version, 0, box(b"cdsc", other + struct.pack(">H", 1) + main))
        if exif and in_idat:
            body += box(b"idat", exif)
        return ftyp + box(b"meta", body, wide=wide)

    head = whole(0)
    held = picture + (b"" if in_idat else exif)
    start = len(head) + (16 if wide else 8)
    return np.frombuffer(whole(start) + box(b"mdat", held, wide=wide), np.uint8)
