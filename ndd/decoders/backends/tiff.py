"""TIFF: a decoder for files that libraries cannot read, or read more slowly or differently from DALI.

The first are strips and tiles of 1 to 16 and of 32 bits, of floats, of any number of channels, as planes, palettes or YCbCr.
Satellites and microscopes write files of 5 and more channels, and separate planes; cameras write 10 to 14 bits. Pillow reads
none of these, and divides premultiplied colours by alpha. OpenCV leaves planes of 16 bits unwritten, and mirrors turned
pictures of 16 bits twice. This decoder returns all numbers as they are stored.

Uncompressed chunks, deflate, LZW, PackBits, Zstandard and JPEG are unpacked here, so that gray, RGB and CMYK of 8 bits, which
Pillow reads too, take between a sixth and two thirds of its time; a file that fails here is left to it. Pillow unpacks LZMA: it
gets a chunk as a gray picture whose width is the number of bytes in a row.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ndd._execution.errors import raise_signalled
from ndd._tensor.memory import host_empty
from ndd.decoders.backend import Options, Unreadable, Window
from ndd.decoders.backends import libzstd, pillow, tiff_colors as _tiff_colours, tiff_jpeg, tiff_lzw, tiff_packbits
from ndd.decoders.backends.tiff_jpeg import Chunk
from ndd.decoders.backends.tiff_predictor import add_left
from ndd.decoders.headers import tiff_directory as tiff
from ndd.decoders.headers.header import Header
from ndd.decoders.headers.tiff_directory import (
    CMYK,
    FLOAT,
    GRAY,
    LAB,
    PALETTE,
    RGB,
    SIGNED,
    UNSAID,
    UNSIGNED,
    WHITE_IS_ZERO,
    YCBCR,
    Directory,
)
from ndd.decoders.pixels import channels_as
from ndd.decoders.png.libdeflate import inflated
from ndd.types import DALIImageType

_TAGS = {
    tiff.WIDTH, tiff.HEIGHT, tiff.BITS, tiff.COMPRESSION, tiff.COLOURS, tiff.FILL_ORDER, tiff.CHANNELS, tiff.STRIPS,
    tiff.STRIP_ROWS, tiff.STRIP_BYTES, tiff.PLANAR, tiff.PREDICTOR, tiff.TILE_WIDTH, tiff.TILE_ROWS, tiff.TILES,
    tiff.TILE_BYTES, tiff.EXTRA_CHANNELS, tiff.SAMPLE_FORMAT, tiff.COLOUR_MAP, tiff.LUMA, tiff.SUBSAMPLING, tiff.BLACK_AND_WHITE,
}  # fmt: skip
_NONE, _LZW, _JPEG, _DEFLATE, _PACKBITS, _LZMA, _ZSTANDARD = 1, 5, 7, (8, 32946), 32773, 34925, 50000
_UNPACK = {_LZW: tiff_lzw.unpack, _PACKBITS: tiff_packbits.unpack, _ZSTANDARD: libzstd.unpack}
# A file is damaged in which one of these has no whole number, or several where one is expected.
_NEEDED = {
    tiff.WIDTH, tiff.HEIGHT, tiff.BITS, tiff.COMPRESSION, tiff.COLOURS, tiff.CHANNELS, tiff.STRIPS, tiff.STRIP_ROWS,
    tiff.TILE_WIDTH, tiff.TILE_ROWS, tiff.TILES, tiff.STRIP_BYTES, tiff.TILE_BYTES, tiff.EXTRA_CHANNELS,
}  # fmt: skip
_ONE_NUMBER = {tiff.WIDTH, tiff.HEIGHT, tiff.COMPRESSION, tiff.COLOURS, tiff.CHANNELS, tiff.STRIP_ROWS}
_OPTIONAL = {tiff.STRIP_BYTES, tiff.TILE_BYTES}  # of a file with one chunk
_EXTRA = {0, 1, 2, 999}  # what extra channels may be; the last one is Corel's
_UNPREDICTED = (_NONE, _JPEG, _PACKBITS)  # libtiff applies no predictor to these, whatever the file says
# Predictors: differences from the pixel on the left, of numbers or of the bytes of floats.
_HORIZONTAL, _FLOATING = 2, 3
_WHOLE = {
    (8, UNSIGNED): "u1", (16, UNSIGNED): "u2", (32, UNSIGNED): "u4", (8, SIGNED): "i1", (16, SIGNED): "i2",
    (32, SIGNED): "i4", (16, FLOAT): "f2", (32, FLOAT): "f4", (64, FLOAT): "f8",
}  # fmt: skip
_MOST_NUMBERS = 1 << 20  # of a tag
_MOST_TABLES = 4096  # bytes; the standard's take 574
_ANY_CHUNK = 1 << 24  # bytes that a chunk may always have; the picture bounds larger chunks


class _Layout(NamedTuple):
    """How the numbers lie in the file: `planes` grids of chunks, each of `rows` x `columns` pixels of `depth` numbers.

    `kind`: NumPy's type of numbers of whole bytes; None for packed numbers of `bits` bits. `unit`: columns and rows of pixels
    that share a Cb and a Cr.
    """

    height: int
    width: int
    channels: int
    colours: int
    bits: int
    kind: np.dtype | None
    compression: int
    predictor: int
    backwards: bool
    planes: int
    rows: int
    columns: int
    tiled: bool
    unit: tuple[int, int]
    places: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def depth(self) -> int:
        return self.channels // self.planes


def decode(data: np.ndarray, header: Header, options: Options, window: Window | None) -> np.ndarray | None:
    """The backend. None for a file that other libraries read well, Unreadable for a damaged one."""
    left = False
    # Converting floats that nobody wrote would warn of NaN.
    used = options.used if window is None and np.dtype(header.dtype).kind != "f" else None
    try:
        directory = Directory(data.data)
        tags = _tags(directory)
        left = _is_left(directory, tags)
        if left and not _is_plain(tags):
            return None
        _check(directory, tags)
        layout = _layout(directory, tags, len(data))
        unused = 16 - layout.bits if 8 < layout.bits < 16 and layout.colours != PALETTE else 0
        part = window or used or (0, 0, layout.height, layout.width)
        with_alpha = options.output_type == DALIImageType.ANY_DATA
        if layout.compression == _JPEG:
            image = tiff_jpeg.pixels(
                _chunks(data, layout, part), part, layout.columns, layout.channels, layout.colours == RGB,
                _jpeg_tables(directory), len(data),
            )  # fmt: skip
        else:
            image = _tiff_colours.shown(_values(data, layout, part), layout.colours, layout.bits, tags, with_alpha)
    except (MemoryError, Unreadable):
        raise
    except Exception as error:  # struct.error, zlib.error, ValueError, errors of Pillow: a broken file
        raise_signalled(error)
        if left:
            return None
        raise Unreadable from error
    # DALI leaves such files to OpenCV.
    by_opencv = unused > 0 or layout.planes > 1 or header.orientation != 1
    by_opencv |= layout.colours in (CMYK, YCBCR) and layout.compression != _JPEG
    image = np.ascontiguousarray(channels_as(image, options.output_type, by_opencv, unused))
    if used is None:
        return image
    whole = host_empty((layout.height, layout.width, image.shape[2]), image.dtype)
    whole[used[0] : used[2], used[1] : used[3]] = image
    return whole


def _tags(directory: Directory) -> dict[int, tuple[float, ...]]:
    """The numbers of each tag in `_TAGS`."""
    return {
        entry.tag: directory.numbers(entry)
        for entry in directory.entries()
        if entry.tag in _TAGS and entry.code and 1 <= entry.count <= _MOST_NUMBERS
    }


def _check(directory: Directory, tags: dict[int, tuple[float, ...]]) -> None:
    """ValueError for a directory whose tags are damaged, or contradict each other, so that no other library reads the file."""
    channels, colours = _first(tags, tiff.CHANNELS, 1), _first(tags, tiff.COLOURS, -1)
    for entry in directory.entries():
        if entry.tag not in _NEEDED:
            continue
        least, most = 1, 1 if entry.tag in _ONE_NUMBER else _MOST_NUMBERS
        if entry.tag == tiff.EXTRA_CHANNELS:
            least, most = 0, channels
        is_number = entry.code not in ("", "II") or entry.kind in tiff.SIGNED_KINDS
        if not is_number or (entry.tag not in _OPTIONAL and not least <= entry.count <= most):
            raise ValueError(f"tag {entry.tag} with {entry.count} numbers of type {entry.kind}")
    if not {*tags.get(tiff.EXTRA_CHANNELS, ())} <= _EXTRA:
        raise ValueError("an unknown kind of channel")
    if channels > 1 and tiff.BITS not in tags:
        raise ValueError("several channels without a number of bits")
    if tiff.CHANNELS not in tags and colours in (RGB, YCBCR, CMYK):
        raise ValueError("colours without a number of channels")
    if tiff.TILES not in tags and (tiff.TILE_WIDTH in tags or tiff.TILE_ROWS in tags):
        raise ValueError("tiles without a place")


def _jpeg_tables(directory: Directory) -> bytes:
    """The tables that the chunks share; empty if there are none."""
    entry = next((e for e in directory.entries() if e.tag == tiff.JPEG_TABLES), None)
    if entry is None:
        return b""
    if entry.count > _MOST_TABLES:
        raise ValueError("JPEG tables that are too large")
    return directory.content(entry)


def _first(tags: dict[int, tuple[Any, ...]], tag: int, default: int) -> int:
    return tags.get(tag, (default,))[0]


def _compression(tags: dict[int, tuple[Any, ...]]) -> int:
    return _first(tags, tiff.COMPRESSION, _NONE)


def _is_left(directory: Directory, tags: dict[int, tuple[Any, ...]]) -> bool:
    """Whether this decoder leaves such a file to other libraries: they read it equally well, or nothing reads it."""
    colours, channels = _first(tags, tiff.COLOURS, -1), _first(tags, tiff.CHANNELS, 1)
    if _compression(tags) not in (_NONE, *_DEFLATE, *_UNPACK, _LZMA) or colours == LAB:
        return True
    if colours < 0 or _first(tags, tiff.PLANAR, 1) != 1 or not directory.is_common:
        return False
    bits, kinds = set(tags.get(tiff.BITS, (1,))), set(tags.get(tiff.SAMPLE_FORMAT, (UNSIGNED,)))
    if channels == 1 and kinds == {FLOAT}:
        return bits == {32}
    if channels == 1:
        return kinds == {UNSIGNED} and (bits <= {1, 2, 4, 8} or (bits == {16} and colours != PALETTE))
    return kinds == {UNSIGNED} and bits == {8} and (colours, channels) in ((RGB, 3), (CMYK, 4))


def _is_plain(tags: dict[int, tuple[Any, ...]]) -> bool:
    """Whether Pillow reads such a file correctly, but more slowly."""
    colours, bits, compression = _first(tags, tiff.COLOURS, -1), {*tags.get(tiff.BITS, ())}, _compression(tags)
    if compression == _JPEG:
        form = colours, _first(tags, tiff.CHANNELS, 1), _first(tags, tiff.PLANAR, 1)
        plain = form in ((GRAY, 1, 1), (RGB, 3, 1), (YCBCR, 3, 1))
        return plain and bits == {8} and {*tags.get(tiff.SAMPLE_FORMAT, ())} <= {UNSIGNED}
    unpacked_here = compression in (_NONE, *_DEFLATE, *_UNPACK)
    return unpacked_here and colours in (GRAY, RGB, CMYK) and bits == {8}


def _layout(directory: Directory, tags: dict[int, tuple[Any, ...]], total: int) -> _Layout:
    """ValueError for a file that cannot be read."""
    height, width, channels = _first(tags, tiff.HEIGHT, 0), _first(tags, tiff.WIDTH, 0), _first(tags, tiff.CHANNELS, 1)
    colours = _first(tags, tiff.COLOURS, GRAY if channels < 3 else RGB)
    (bits,), (kind,) = set(tags.get(tiff.BITS, (1,))), set(tags.get(tiff.SAMPLE_FORMAT, (UNSIGNED,)))
    kind = UNSIGNED if kind == UNSAID else kind
    whole = _WHOLE.get((bits, kind))
    compression, planar = _compression(tags), _first(tags, tiff.PLANAR, 1)
    predictor = 1 if compression in _UNPREDICTED else _first(tags, tiff.PREDICTOR, 1)
    unit = tuple(tags.get(tiff.SUBSAMPLING, (2, 2))) if colours == YCBCR else (1, 1)
    readable = (
        min(height, width, channels) > 0 and planar in (1, 2) and (whole or (kind == UNSIGNED and 1 <= bits <= 16))
        and _is_known(colours, channels, bits, kind) and _is_predicted(predictor, whole, unit)
        and len(unit) == 2 and {*unit} <= ({1, 2, 4} if planar == 1 else {1})
    )  # fmt: skip
    if not readable:
        raise ValueError("expected a sample format that is supported")
    tiled = tiff.TILES in tags
    rows = _first(tags, tiff.TILE_ROWS, 0) if tiled else min(_first(tags, tiff.STRIP_ROWS, height), height)
    columns = _first(tags, tiff.TILE_WIDTH, 0) if tiled else width
    places = tags.get(tiff.TILES if tiled else tiff.STRIPS, ())
    sizes = tags.get(tiff.TILE_BYTES if tiled else tiff.STRIP_BYTES, ())
    if len(places) == 1 and (not sizes or compression == _NONE):  # as libtiff does
        sizes = (max(total - places[0], 0),)
    planes = channels if planar == 2 else 1
    if min(rows, columns) < 1 or len(places) != planes * -(-height // rows) * -(-width // columns):
        raise ValueError("chunks that do not cover the picture")
    chunk, picture = (a * b * channels * bits // 8 for a, b in ((rows, columns), (height, width)))
    if len(sizes) != len(places) or chunk > max(_ANY_CHUNK, 4 * picture):
        raise ValueError("chunk sizes that do not fit the picture")
    return _Layout(
        height, width, channels, colours, bits, np.dtype(directory.order + whole) if whole else None, compression, predictor,
        _first(tags, tiff.FILL_ORDER, 1) == 2, planes, rows, columns, tiled, unit, places, sizes,
    )  # fmt: skip


def _is_known(colours: int, channels: int, bits: int, kind: int) -> bool:
    if colours in (PALETTE, CMYK, YCBCR) and kind != UNSIGNED:
        return False
    return {
        WHITE_IS_ZERO: True, GRAY: True, RGB: True, PALETTE: bits <= 16, CMYK: channels == 4 and bits in (8, 16),
        YCBCR: channels == 3 and bits == 8,
    }.get(colours, False)  # fmt: skip


def _is_predicted(predictor: int, kind: str | None, unit: tuple[int, ...]) -> bool:
    """Whether this predictor is valid for such numbers."""
    if predictor == 1:
        return True
    if kind is None or {*unit} != {1}:
        return False
    return predictor == (_FLOATING if kind[0] == "f" else _HORIZONTAL)


def _values(data: np.ndarray, layout: _Layout, part: Window) -> np.ndarray:
    """The numbers of a part of the picture, height x width x channels. Chunks outside it are not unpacked."""
    (y0, x0, y1, x1), depth = part, layout.depth
    out: Any = None  # allocated when the first chunk is good: a header may claim any size
    for stored, plane, top, left, high in _chunks(data, layout, part):
        values = _chunk(stored, high, layout)
        if out is None:
            out = host_empty((y1 - y0, x1 - x0, layout.channels), values.dtype)
        inside = values[max(y0 - top, 0) : y1 - top, max(x0 - left, 0) : x1 - left]
        target = out[max(top - y0, 0) :, max(left - x0, 0) :, plane * depth : (plane + 1) * depth]
        target[: inside.shape[0], : inside.shape[1]] = inside
    return out


def _chunks(data: np.ndarray, layout: _Layout, part: Window) -> Iterator[Chunk]:
    """The chunks with pixels of a part of the picture."""
    (y0, x0, y1, x1), rows, columns = part, layout.rows, layout.columns
    if y1 > layout.height or x1 > layout.width:
        raise ValueError("a part that reaches outside the picture")
    chunks, read = iter(zip(layout.places, layout.sizes, strict=True)), 0
    for plane in range(layout.planes):
        for top in range(0, layout.height, rows):
            high = rows if layout.tiled else min(rows, layout.height - top)
            for left in range(0, layout.width, columns):
                place, size = next(chunks)
                if place > len(data) or size > len(data) - place:
                    raise ValueError("a chunk ends beyond the file")
                if top < y1 and left < x1 and top + high > y0 and left + columns > x0:
                    read += size
                    if read > tiff.most_read(len(data)):
                        raise Unreadable("chunks that overlap")  # libtiff would take hours, too
                    yield Chunk(data[place : place + size], plane, top, left, high)


def _chunk(stored: np.ndarray, high: int, layout: _Layout) -> np.ndarray:
    """The numbers of a chunk of `high` rows, high x columns x depth."""
    if layout.backwards:
        stored = np.packbits(np.unpackbits(stored, bitorder="little"))
    columns, depth, (across, down) = layout.columns, layout.depth, layout.unit
    if (across, down) != (1, 1):
        units, row = -(-high // down), -(-columns // across) * (across * down + 2)
        return _tiff_colours.spread(_unpacked(stored, units, row, layout.compression), layout.unit, high, columns)
    row = -(-columns * depth * layout.bits // 8)
    held = _unpacked(stored, high, row, layout.compression)
    if layout.kind is None:
        return _split(held, columns * depth, layout.bits).reshape(high, columns, depth)
    if layout.predictor != 1:
        held = np.require(held, requirements=["C", "W"])  # the sums are computed in place
    if layout.predictor == _FLOATING:
        add_left(held, depth)
        held = held.reshape(high, layout.kind.itemsize, -1).transpose(0, 2, 1)
        held = np.ascontiguousarray(held).view(layout.kind.newbyteorder(">"))
    values = np.frombuffer(held, held.dtype if layout.predictor == _FLOATING else layout.kind).reshape(
        high, columns, depth
    )
    native = layout.kind.newbyteorder("=")
    if layout.predictor == _HORIZONTAL:
        values = values.astype(native, copy=False)
        add_left(values.reshape(high, -1), depth)
    return values.astype(np.float32 if native.kind == "f" else native, copy=False)


def _split(rows: np.ndarray, count: int, bits: int) -> np.ndarray:
    """`count` numbers of up to 16 bits from each row of bytes, the first bit first."""
    starts = np.arange(count) * bits
    padded = np.pad(rows, ((0, 0), (0, 2)))
    words = sum(padded[:, (starts >> 3) + k].astype(np.uint32) << (16 - 8 * k) for k in range(3))
    values = words >> (24 - bits - (starts & 7)).astype(np.uint32) & ((1 << bits) - 1)
    return values.astype(np.uint8 if bits <= 8 else np.uint16)


def _unpacked(chunk: np.ndarray, rows: int, row: int, compression: int) -> np.ndarray:
    """The bytes of a chunk: `rows` rows of `row` bytes. ValueError if there are fewer."""
    if compression == _NONE:
        unpacked: Any = chunk[: rows * row]
    elif compression in _DEFLATE:
        unpacked = inflated(np.ascontiguousarray(chunk), rows * row)
        if unpacked is None:  # zlib takes streams that are too long, or lack their checksum
            unpacked = np.frombuffer(zlib.decompressobj().decompress(chunk.data, rows * row), np.uint8)
    else:
        unpacked, unpack = host_empty((rows * row,), np.uint8), _UNPACK.get(compression)
        if unpack is None or not unpack(chunk, unpacked):
            with pillow.opened(_alone(chunk, rows, row, compression), "tiff") as picture:
                unpacked = np.asarray(picture).reshape(-1)
    if len(unpacked) != rows * row:
        raise ValueError("a chunk is too short")
    return np.ascontiguousarray(unpacked).reshape(rows, row)


def _alone(chunk: np.ndarray, rows: int, row: int, compression: int) -> np.ndarray:
    """A TIFF of one strip: a gray picture of these bytes."""
    numbers = {
        tiff.WIDTH: row, tiff.HEIGHT: rows, tiff.BITS: 8, tiff.COMPRESSION: compression, tiff.COLOURS: GRAY, tiff.STRIPS: 8,
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
