"""TIFFs of any number of channels, as stored: strips and tiles of whole numbers of 8 or 16 bits or of 32-bit floats.

Satellites and microscopes write files of 5 and more channels, and planes one after the other. Pillow knows neither; OpenCV
leaves memory as it was where planes of 16 bits should be, mirrors turned ones of 16 bits a second time, and Pillow divides
colours by an alpha that they have been multiplied with. DALI gives all of these as they are stored, and so does this.

Uncompressed chunks and deflate are read here. Other compressions are Pillow's: a chunk is shown to it as a gray picture
as wide as a row has bytes, which is all that it is before its numbers are put together.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ndd._execution.errors import raise_signalled

_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _COLOURS, _FILL_ORDER, _CHANNELS = 256, 257, 258, 259, 262, 266, 277
_STRIPS, _STRIP_ROWS, _STRIP_BYTES, _PLANAR, _PREDICTOR = 273, 278, 279, 284, 317
_TILE_WIDTH, _TILE_ROWS, _TILES, _TILE_BYTES, _KIND = 322, 323, 324, 325, 339
_TAGS = {
    _WIDTH, _HEIGHT, _BITS, _COMPRESSION, _COLOURS, _FILL_ORDER, _CHANNELS, _STRIPS, _STRIP_ROWS, _STRIP_BYTES, _PLANAR,
    _PREDICTOR, _TILE_WIDTH, _TILE_ROWS, _TILES, _TILE_BYTES, _KIND,
}  # fmt: skip
_CODES = {1: "B", 3: "H", 4: "I", 16: "Q"}
_GRAY, _RGB = 1, 2
_NONE, _DEFLATE, _BY_PILLOW = 1, (8, 32946), (5, 32773, 34925, 50000)  # LZW, PackBits, LZMA, Zstandard
_UNPREDICTED = (_NONE, 32773)  # libtiff knows no predictors of these, whatever a file says
_HORIZONTAL = 2  # the predictor that stores differences to the pixel on the left
_KINDS = {(8, 1): "u1", (16, 1): "u2", (32, 3): "f4"}  # by bits and sample format
_MOST_CHUNKS = 1 << 20


class _Layout(NamedTuple):
    """How the numbers lie in the file: `planes` grids of chunks, each of `rows` x `columns` pixels of `depth` numbers."""

    height: int
    width: int
    channels: int
    dtype: np.dtype
    compression: int
    differences: bool
    planes: int
    rows: int
    columns: int
    tiled: bool
    places: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def depth(self) -> int:
        return self.channels // self.planes


def decode(data: np.ndarray, opened: Callable[[np.ndarray], Any]) -> np.ndarray | None:
    """Height x width x channels as stored; None if the file is damaged, or of a kind that other libraries read well.

    `opened` gives Pillow's picture of the bytes of a TIFF.
    """
    try:
        layout = _layout(data.data)
        return None if layout is None else _pixels(data, layout, opened)
    except MemoryError:
        raise
    except Exception as error:  # struct.error, zlib.error, ValueError, what Pillow raises: a broken file
        raise_signalled(error)
        return None


def _directory(data: memoryview) -> tuple[str, dict[int, tuple[int, ...]]]:
    """The byte order, and the numbers of each tag of the first directory."""
    order = "<" if data[0] == ord("I") else ">"
    big = struct.unpack_from(order + "H", data, 2)[0] == 43
    offset, count_code, many_code, step, inline = ("Q", "Q", "Q", 20, 8) if big else ("I", "H", "I", 12, 4)
    (start,) = struct.unpack_from(order + offset, data, 8 if big else 4)
    (count,) = struct.unpack_from(order + count_code, data, start)
    first = start + struct.calcsize(count_code)
    found: dict[int, tuple[int, ...]] = {}
    for entry in range(first, first + min(count, 4096) * step, step):
        tag, kind, many = struct.unpack_from(order + "HH" + many_code, data, entry)
        code = _CODES.get(kind)
        if tag not in _TAGS or code is None or not 1 <= many <= _MOST_CHUNKS:
            continue
        place = entry + step - inline
        if struct.calcsize(code) * many > inline:
            (place,) = struct.unpack_from(order + offset, data, place)
        found[tag] = struct.unpack_from(f"{order}{many}{code}", data, place)
    return order, found


def _layout(data: memoryview) -> _Layout | None:
    order, tags = _directory(data)

    def first(tag: int, default: int) -> int:
        return tags.get(tag, (default,))[0]

    height, width, channels, planar = first(_HEIGHT, 0), first(_WIDTH, 0), first(_CHANNELS, 1), first(_PLANAR, 1)
    bits, kinds, compression = set(tags.get(_BITS, (1,))), set(tags.get(_KIND, (1,))), first(_COMPRESSION, 1)
    colours = first(_COLOURS, -1)
    if planar == 1 and (channels == 1 or (channels == 3 and bits == {8} and colours != _GRAY)):
        return None  # what every library reads
    kind = _KINDS.get((bits.pop(), kinds.pop()))
    if kind is None or bits or kinds or planar not in (1, 2) or colours not in (_GRAY, _RGB):
        return None
    predictor = 1 if compression in _UNPREDICTED else first(_PREDICTOR, 1)
    if first(_FILL_ORDER, 1) != 1 or predictor not in (1, _HORIZONTAL) or (predictor != 1 and kind == "f4"):
        return None
    if compression not in (_NONE, *_DEFLATE, *_BY_PILLOW):
        return None
    tiled = _TILES in tags
    rows = first(_TILE_ROWS, 0) if tiled else min(first(_STRIP_ROWS, height), height)
    columns = first(_TILE_WIDTH, 0) if tiled else width
    places = tags.get(_TILES if tiled else _STRIPS, ())
    sizes = tags.get(_TILE_BYTES if tiled else _STRIP_BYTES, ())
    planes = channels if planar == 2 else 1
    if min(height, width, channels, rows, columns) < 1:
        return None
    if len(places) != planes * -(-height // rows) * -(-width // columns) or len(sizes) != len(places):
        return None
    dtype = np.dtype(order + kind)
    return _Layout(
        height,
        width,
        channels,
        dtype,
        compression,
        predictor == _HORIZONTAL,
        planes,
        rows,
        columns,
        tiled,
        places,
        sizes,
    )


def _pixels(data: np.ndarray, layout: _Layout, opened: Callable[[np.ndarray], Any]) -> np.ndarray:
    height, width, rows, columns, depth = layout.height, layout.width, layout.rows, layout.columns, layout.depth
    native = layout.dtype.newbyteorder("=")
    chunks = iter(zip(layout.places, layout.sizes, strict=True))
    out: Any = None  # made when a first chunk was good: a header may claim anything
    for plane in range(layout.planes):
        for top in range(0, height, rows):
            high = rows if layout.tiled else min(rows, height - top)
            for left in range(0, width, columns):
                place, size = next(chunks)
                if place + size > len(data):
                    raise ValueError("a chunk ends behind the file")
                stored = _unpacked(
                    data[place : place + size], high, columns * depth * native.itemsize, layout.compression, opened
                )
                values = np.frombuffer(stored, layout.dtype).reshape(high, columns, depth)
                if layout.differences:
                    values = np.cumsum(values, axis=1, dtype=native)
                if out is None:
                    out = np.empty((height, width, layout.channels), native)
                seen = values[: height - top, : width - left]
                part = out[top : top + rows, left : left + columns]
                part[:, :, plane * depth : (plane + 1) * depth] = seen
    return out


def _unpacked(chunk: np.ndarray, rows: int, row: int, compression: int, opened: Callable[[np.ndarray], Any]) -> Any:
    """The bytes of a chunk: `rows` rows of `row` bytes. ValueError if there are fewer."""
    if compression == _NONE:
        found: Any = chunk[: rows * row]
    elif compression in _DEFLATE:
        found = zlib.decompressobj().decompress(chunk.data, rows * row)
    else:
        with opened(_alone(chunk, rows, row, compression)) as picture:
            found = np.asarray(picture).reshape(-1)
    if len(found) != rows * row:
        raise ValueError("a chunk is too short")
    return found


def _alone(chunk: np.ndarray, rows: int, row: int, compression: int) -> np.ndarray:
    """A TIFF of one strip: a gray picture whose bytes these are."""
    numbers = {
        _WIDTH: row, _HEIGHT: rows, _BITS: 8, _COMPRESSION: compression, _COLOURS: _GRAY, _STRIPS: 8, _CHANNELS: 1,
        _STRIP_ROWS: rows, _STRIP_BYTES: len(chunk),
    }  # fmt: skip
    held = io.BytesIO()
    held.write(struct.pack("<2sHI", b"II", 42, 8 + len(chunk) + (len(chunk) & 1)))
    held.write(chunk.tobytes() + bytes(len(chunk) & 1))
    held.write(struct.pack("<H", len(numbers)))
    for tag, number in sorted(numbers.items()):
        held.write(struct.pack("<HHII", tag, 4, 1, number))
    held.write(bytes(4))
    return np.frombuffer(held.getvalue(), np.uint8)
