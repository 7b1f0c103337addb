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
from ndd.decoders import _tiff_directory as tiff
from ndd.decoders._tiff_directory import Directory

_TAGS = {
    tiff.WIDTH, tiff.HEIGHT, tiff.BITS, tiff.COMPRESSION, tiff.COLOURS, tiff.FILL_ORDER, tiff.CHANNELS, tiff.STRIPS,
    tiff.STRIP_ROWS, tiff.STRIP_BYTES, tiff.PLANAR, tiff.PREDICTOR, tiff.TILE_WIDTH, tiff.TILE_ROWS, tiff.TILES,
    tiff.TILE_BYTES, tiff.SAMPLE_FORMAT,
}  # fmt: skip
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


def _tags(directory: Directory) -> dict[int, tuple[int, ...]]:
    """The numbers of each tag that matters here."""
    return {
        entry.tag: directory.numbers(entry)
        for entry in directory.entries()
        if entry.tag in _TAGS and entry.code and 1 <= entry.count <= _MOST_CHUNKS
    }


def _layout(data: memoryview) -> _Layout | None:
    directory = Directory(data)
    tags = _tags(directory)

    def first(tag: int, default: int) -> int:
        return tags.get(tag, (default,))[0]

    height, width, channels = first(tiff.HEIGHT, 0), first(tiff.WIDTH, 0), first(tiff.CHANNELS, 1)
    planar, compression = first(tiff.PLANAR, 1), first(tiff.COMPRESSION, 1)
    bits, kinds = set(tags.get(tiff.BITS, (1,))), set(tags.get(tiff.SAMPLE_FORMAT, (1,)))
    colours = first(tiff.COLOURS, -1)
    if planar == 1 and (channels == 1 or (channels == 3 and bits == {8} and colours != _GRAY)):
        return None  # what every library reads
    kind = _KINDS.get((bits.pop(), kinds.pop()))
    if kind is None or bits or kinds or planar not in (1, 2) or colours not in (_GRAY, _RGB):
        return None
    predictor = 1 if compression in _UNPREDICTED else first(tiff.PREDICTOR, 1)
    if first(tiff.FILL_ORDER, 1) != 1 or predictor not in (1, _HORIZONTAL) or (predictor != 1 and kind == "f4"):
        return None
    if compression not in (_NONE, *_DEFLATE, *_BY_PILLOW):
        return None
    tiled = tiff.TILES in tags
    rows = first(tiff.TILE_ROWS, 0) if tiled else min(first(tiff.STRIP_ROWS, height), height)
    columns = first(tiff.TILE_WIDTH, 0) if tiled else width
    places = tags.get(tiff.TILES if tiled else tiff.STRIPS, ())
    sizes = tags.get(tiff.TILE_BYTES if tiled else tiff.STRIP_BYTES, ())
    planes = channels if planar == 2 else 1
    if min(height, width, channels, rows, columns) < 1:
        return None
    if len(places) != planes * -(-height // rows) * -(-width // columns) or len(sizes) != len(places):
        return None
    dtype = np.dtype(directory.order + kind)
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
        tiff.WIDTH: row, tiff.HEIGHT: rows, tiff.BITS: 8, tiff.COMPRESSION: compression, tiff.COLOURS: _GRAY, tiff.STRIPS: 8,
        tiff.CHANNELS: 1, tiff.STRIP_ROWS: rows, tiff.STRIP_BYTES: len(chunk),
    }  # fmt: skip
    held = io.BytesIO()
    held.write(struct.pack("<2sHI", b"II", 42, 8 + len(chunk) + (len(chunk) & 1)))
    held.write(chunk.tobytes() + bytes(len(chunk) & 1))
    held.write(struct.pack("<H", len(numbers)))
    for tag, number in sorted(numbers.items()):
        held.write(struct.pack("<HHII", tag, 4, 1, number))
    held.write(bytes(4))
    return np.frombuffer(held.getvalue(), np.uint8)
