"""AVIF, box by box: its signature and how the picture is turned. Libraries decode it as it is stored."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from ndd.decoders.headers import orientation as _orientation
from ndd.decoders.pixels import upright

_BRANDS = (b"avif", b"avis")
_MOST_BRANDS = 64
_MOST_ITEMS = 1 << 16
_ANTICLOCKWISE = (1, 8, 3, 6)  # orientations, by quarter turns
_EXCHANGED = (4, 2)  # top and bottom, left and right
_PROBE = np.arange(6).reshape(2, 3)  # no two orientations look alike


def is_avif(data: memoryview) -> bool:
    """Whether the first box names AVIF as its main or a compatible brand."""
    if len(data) < 16 or bytes(data[4:8]) != b"ftyp":
        return False
    brands = bytes(data[8 : min(struct.unpack_from(">I", data)[0], 8 + 4 * _MOST_BRANDS)])
    return any(brands[k : k + 4] in _BRANDS for k in range(0, len(brands), 4))


def orientation(data: memoryview) -> int:
    """The orientation by `irot` and `imir` of the main picture, or without them by its EXIF as for other formats; 1 if
    damaged."""
    try:
        boxes = dict(_boxes(next(body for name, body in _boxes(data) if name == b"meta")[4:]))
        turns = list(_turns(boxes))
        if not turns:
            return _of_exif(data, boxes)
        picture = _PROBE
        for turn in turns:
            picture = upright(picture, turn)
        return next(o for o in range(1, 9) if np.array_equal(upright(_PROBE, o), picture))
    except (struct.error, KeyError, IndexError, StopIteration):
        return 1


def _boxes(data: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    """Name and body of each box, up to the first that is not completely in `data`."""
    position, total = 0, len(data)
    while total - position >= 8:
        size, name = struct.unpack_from(">I4s", data, position)
        head = 8
        if size == 1:
            size, head = struct.unpack_from(">Q", data, position + 8)[0], 16
        elif size == 0:
            size = total - position
        if size < head or size > total - position:
            return
        yield name, data[position + head : position + size]
        position += size


def _numbered(data: memoryview, position: int, wide: bool) -> tuple[int, int]:
    """A number of 16 or 32 bits, and the position after it."""
    return struct.unpack_from(">I" if wide else ">H", data, position)[0], position + (4 if wide else 2)


def _turns(boxes: dict[bytes, memoryview]) -> Iterator[int]:
    """The rotations and reflections of the main picture in order, each as an orientation."""
    main, _ = _numbered(boxes[b"pitm"], 4, boxes[b"pitm"][0] > 0)
    properties = dict(_boxes(boxes[b"iprp"]))
    known, table = list(_boxes(properties[b"ipco"])), properties[b"ipma"]
    wide_items, wide = table[0] > 0, table[3] & 1
    count, position = struct.unpack_from(">I", table, 4)[0], 8
    for _ in range(min(count, _MOST_ITEMS)):
        item, position = _numbered(table, position, wide_items)
        ends = position + 1 + table[position] * (1 + wide)
        if item != main:
            position = ends
            continue
        for at in range(position + 1, ends, 1 + wide):
            index = struct.unpack_from(">H", table, at)[0] & 0x7FFF if wide else table[at] & 0x7F
            name, body = known[index - 1] if 0 < index <= len(known) else (b"", table)
            if name == b"irot":
                yield _ANTICLOCKWISE[body[0] & 3]
            elif name == b"imir":
                yield _EXCHANGED[body[0] & 1]
        return


def _of_exif(data: memoryview, boxes: dict[bytes, memoryview]) -> int:
    """The orientation in the EXIF item. Its first four bytes are the offset of the TIFF structure."""
    listed = boxes[b"iinf"]
    _, position = _numbered(listed, 4, listed[0] > 0)
    for name, entry in _boxes(listed[position:]):
        if name == b"infe" and entry[0] >= 2:
            item, position = _numbered(entry, 4, entry[0] > 2)
            if bytes(entry[position + 2 : position + 6]) == b"Exif":
                body = _item(data, boxes, item)
                return _orientation.of_tiff(body[4 + struct.unpack_from(">I", body)[0] :])
    return 1


def _item(data: memoryview, boxes: dict[bytes, memoryview], wanted: int) -> memoryview:
    """The bytes of an item that has one extent. KeyError if there is none."""
    table = boxes[b"iloc"]
    version, sizes = table[0], struct.unpack_from(">H", table, 4)[0]
    of_offset, of_length, of_base, of_index = (sizes >> shift & 15 for shift in (12, 8, 4, 0))
    of_index = of_index if version else 0
    count, position = _numbered(table, 6, version > 1)
    for _ in range(min(count, _MOST_ITEMS)):
        item, position = _numbered(table, position, version > 1)
        method, position = _numbered(table, position, False) if version else (0, position)
        position += 2  # in this file
        base, position = int.from_bytes(table[position : position + of_base], "big"), position + of_base
        extents, position = _numbered(table, position, False)
        if item == wanted and extents == 1:
            numbers = bytes(table[position + of_index : position + of_index + of_offset + of_length])
            start = base + int.from_bytes(numbers[:of_offset], "big")
            length = int.from_bytes(numbers[of_offset:], "big")
            return (boxes[b"idat"] if method & 15 == 1 else data)[start:][:length]
        position += extents * (of_index + of_offset + of_length)
    raise KeyError(wanted)
