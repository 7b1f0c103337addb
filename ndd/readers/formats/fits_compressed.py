"""FITS images that are compressed tile by tile: a table with a row for each tile, which astropy decodes.

Astropy trusts the header: it looks for 300,000,000 columns if the header claims so many, and its decoders read beyond the
end of a tile. So the numbers in the header are compared with the data and its tiles first, and astropy gets a new header
made of the checked values. (FITS Standard 4.0, sections 7.3 and 10.)
"""

from __future__ import annotations

import io
import math
import re
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ndd.installation import install_command
from ndd.readers.formats.fits_tiles import is_whole_hcompress, is_whole_plio

_BLOCK, _CARD = 2880, 80
_WIDTHS = {"L": 1, "B": 1, "A": 1, "I": 2, "J": 4, "E": 4, "K": 8, "D": 8, "P": 8, "C": 8, "M": 16, "Q": 16}
_FORM = re.compile(r"'(\d{0,9})([A-Z])([A-Z]?)")
_INTEGER = re.compile(r"[+-]?\d{1,18}")
# The cards that decoding needs.
_NEEDED = re.compile(
    r"XTENSION|BITPIX|NAXIS[12]?|PCOUNT|GCOUNT|TFIELDS|THEAP|T(TYPE|FORM)\d{1,3}|ZIMAGE|ZCMPTYPE|ZBITPIX|ZNAXIS\d{0,3}|"
    r"ZTILE\d{1,3}|ZNAME\d{1,3}|ZVAL\d{1,3}|ZQUANTIZ|ZDITHER0|ZBLANK|BLANK|BSCALE|BZERO"
)
_METHODS = ("RICE_1", "RICE_ONE", "GZIP_1", "GZIP_2", "PLIO_1", "HCOMPRESS_1", "NOCOMPRESS")
_CHECKED = (
    "GZIP_1",
    "GZIP_2",
    "PLIO_1",
    "HCOMPRESS_1",
)  # the decoder of Rice codes stops at the end of a tile by itself
_OF_TILES = ("COMPRESSED_DATA", "GZIP_COMPRESSED_DATA", "UNCOMPRESSED_DATA")
_MOST = 2**31 - 1
_LARGE_TILE = 1 << 28  # pixels: the bytes of more do not fit the 32 bits in which astropy's decoders count
# An image of more bytes than the first number needs a byte of data for every so many of its own: anything else is a bomb.
_LARGE, _RATIO = 1 << 28, 4096
_EMPTY_PRIMARY = b"".join(
    card.ljust(_CARD)
    for card in (f"SIMPLE  = {'T':>20}".encode(), f"BITPIX  = {8:>20}".encode(), f"NAXIS   = {0:>20}".encode(), b"END")
).ljust(_BLOCK)


class _Column(NamedTuple):
    """A column of the table: where it is in a row, and the letters of its TFORM."""

    start: int
    form: str
    element: str


def decompressed(header: np.ndarray, data: np.ndarray) -> np.ndarray:
    """The image in a table of compressed tiles. ValueError if it is damaged, or claims more than its data can hold."""
    try:
        from astropy.io import fits
    except ImportError as error:
        raise ImportError(
            f"compressed FITS images need astropy, which cannot be imported: {install_command('fits')}"
        ) from error
    table = _Table(_cards(header.tobytes()), data)
    table.check()
    content = data.tobytes() + bytes(table.gap)
    file = io.BytesIO(b"".join((_EMPTY_PRIMARY, table.header(), content, b"\0" * (-len(content) % _BLOCK))))
    try:
        with fits.open(file, memmap=False) as hdus:
            image = np.asarray(hdus[1].data)  # type: ignore[union-attr]
            return np.ascontiguousarray(image, image.dtype.newbyteorder("="))
    except Exception as error:  # astropy raises many types for a damaged file
        raise ValueError(f"expected a compressed FITS image, astropy says {type(error).__name__}: {error}") from error


def _cards(text: bytes) -> dict[str, str]:
    """The values of the cards that are needed."""
    cards: dict[str, str] = {}
    for start in range(0, len(text), _CARD):
        card = text[start : start + _CARD].decode("latin-1")
        keyword = card[:8].rstrip()
        if keyword == "END":
            break
        if card[8:10] != "= " or not _NEEDED.fullmatch(keyword):
            continue
        value = card[10:].strip()
        end = value.find("'", 1) + 1 if value.startswith("'") else 0
        value = (value[:end] if end else value.partition("/")[0].strip()) or "''"
        if cards.setdefault(keyword, value) != value:
            raise ValueError(
                f"expected one {keyword} in the header of a compressed FITS image, got {cards[keyword]} and {value}"
            )
    return cards


class _Table:
    """A header's facts about the table and its image; ValueError for impossible ones.

    Attributes:
        gap: bytes between the rows and the heap that they point into.
    """

    def __init__(self, cards: dict[str, str], data: np.ndarray):
        self._cards, self._data = cards, data
        for keyword, value in (("BITPIX", 8), ("NAXIS", 2), ("GCOUNT", 1)):
            self._number(keyword, value, value)
        self._width, self._rows = (self._number(f"NAXIS{k}", 0, len(data)) for k in (1, 2))
        table, extra = self._width * self._rows, self._number("PCOUNT", 0, len(data))
        if table > len(data) - extra:
            raise ValueError(f"expected {table + extra} bytes of a compressed FITS image, got {len(data)}")
        self.gap = self._number("THEAP", table, table + extra, table) - table
        self._heap = data[table + self.gap : table + extra]
        self._columns = dict(self._read_columns(self._number("TFIELDS", 1, 999)))
        self._method = self._text("ZCMPTYPE")
        self._size = abs(self._number("ZBITPIX", -64, 64)) // 8
        count = self._number("ZNAXIS", 1, 64)
        self._shape = [self._number(f"ZNAXIS{k}", 0, _MOST) for k in range(count, 0, -1)]
        first = self._shape[-1] or 1
        tile = [self._number(f"ZTILE{k}", 1, _MOST, first if k == 1 else 1) for k in range(count, 0, -1)]
        self._tile = [min(pair) if pair[1] else 1 for pair in zip(tile, self._shape, strict=True)]

    def _number(self, keyword: str, least: int, most: int, default: int | None = None) -> int:
        text = self._cards.get(keyword)
        if text is None and default is not None:
            return default
        if text is None or not _INTEGER.fullmatch(text) or not least <= int(text) <= most:
            expected = least if least == most else f"{least} to {most}"
            raise ValueError(f"expected {expected} as {keyword} in the header of a compressed FITS image, got {text}")
        return int(text)

    def _text(self, keyword: str) -> str:
        return self._cards.get(keyword, "").strip("'").rstrip()

    def _read_columns(self, count: int) -> Iterator[tuple[str, _Column]]:
        start = 0
        for k in range(1, count + 1):
            form = _FORM.match(self._cards.get(f"TFORM{k}", ""))
            if form is None or (form[2] not in _WIDTHS and form[2] != "X"):
                raise ValueError(
                    f"expected a type as TFORM{k} of a compressed FITS image, got {self._cards.get(f'TFORM{k}')}"
                )
            times = int(form[1] or 1)
            yield self._text(f"TTYPE{k}"), _Column(start, form[2], form[3])
            start += -(-times // 8) if form[2] == "X" else times * _WIDTHS[form[2]]
        if start != self._width:
            raise ValueError(
                f"expected rows of {start} bytes in a compressed FITS image as TFORM says, got {self._width}"
            )

    def header(self) -> bytes:
        """A header of the checked cards."""
        cards = [f"{keyword:<8}= {value:>20}".ljust(_CARD).encode("latin-1") for keyword, value in self._ordered()]
        text = b"".join([*cards, b"END".ljust(_CARD)])
        return text.ljust(-(-len(text) // _BLOCK) * _BLOCK)

    def _ordered(self) -> list[tuple[str, str]]:
        first = ("XTENSION", "BITPIX", "NAXIS", "NAXIS1", "NAXIS2", "PCOUNT", "GCOUNT", "TFIELDS")
        values = {**dict.fromkeys(first, ""), **self._cards, "XTENSION": "'BINTABLE'"}
        return list(values.items())

    def check(self) -> None:
        """Raises ValueError for an image that the data cannot hold, and for incomplete tiles."""
        if self._method not in _METHODS:
            raise ValueError(
                f"expected ZCMPTYPE {', '.join(_METHODS)} of a compressed FITS image, got {self._method!r}"
            )
        nbytes = math.prod(self._shape) * self._size
        if nbytes > max(_LARGE, _RATIO * len(self._data)):
            raise ValueError(
                f"expected an image that {len(self._data)} bytes can hold, the FITS header claims {nbytes} bytes"
            )
        counts = [-(-extent // tile) for extent, tile in zip(self._shape, self._tile, strict=True)]
        if math.prod(counts) > self._rows or math.prod(self._tile) > _LARGE_TILE:
            raise ValueError(
                f"expected {math.prod(counts)} tiles of up to {_LARGE_TILE} pixels in a compressed FITS image, got {self._rows} "
                f"rows and tiles of {math.prod(self._tile)} pixels"
            )
        self._check_settings()
        places = {name: self._places(name) for name in _OF_TILES if name in self._columns}
        if math.prod(counts) and "COMPRESSED_DATA" not in places:
            raise ValueError("expected a column COMPRESSED_DATA in a compressed FITS image, there is none")
        packed_sizes = places["COMPRESSED_DATA"][: math.prod(counts), 0] if math.prod(counts) else np.empty(0, np.int64)
        for row in np.flatnonzero((packed_sizes == 0) | (self._method in _CHECKED)).tolist():
            size, start = places["COMPRESSED_DATA"][row].tolist()
            if size:
                self._check_tile(self._heap[start : start + size], self._method, self._tile_shape(row, counts), row)
            elif "GZIP_COMPRESSED_DATA" in places:
                size, start = places["GZIP_COMPRESSED_DATA"][row].tolist()
                self._check_tile(self._heap[start : start + size], "GZIP_1", self._tile_shape(row, counts), row)

    def _check_settings(self) -> None:
        """Numbers that astropy hands to decoders in C."""
        if self._text("ZQUANTIZ").startswith("SUBTRACTIVE"):
            self._number("ZDITHER0", 1, 10000)
        limits = {
            "BLOCKSIZE": (1, 1 << 16),
            "BYTEPIX": (1, 8),
        }  # the others are in the tiles too, or do not address memory
        for k in range(1, 1000):
            name = self._text(f"ZNAME{k}").upper()
            if name in limits and self._method in ("RICE_1", "RICE_ONE"):
                self._number(f"ZVAL{k}", *limits[name])

    def _places(self, name: str) -> np.ndarray:
        """The size and the position of each tile's data, int64 `[rows, 2]`."""
        column = self._columns[name]
        if column.form not in ("P", "Q"):
            raise ValueError(
                f"expected places (P or Q) as TFORM of {name} in a compressed FITS image, got {column.form}"
            )
        kind = np.dtype(">i4" if column.form == "P" else ">i8")
        rows = self._data[: self._rows * self._width].reshape(self._rows, self._width)
        cut = np.ascontiguousarray(rows[:, column.start : column.start + 2 * kind.itemsize])
        places = cut.view(kind).astype(np.int64)
        itemsize = _WIDTHS.get(column.element, 1)
        outside = (places[:, 0] < 0) | (places[:, 1] < 0) | (places[:, 0] > len(self._heap) // itemsize)
        outside |= places[:, 1] > len(self._heap) - np.where(outside, 0, places[:, 0]) * itemsize
        for row in np.flatnonzero(outside)[:1].tolist():
            raise ValueError(
                f"tile {row} of a compressed FITS image lies outside of its {len(self._heap)} bytes of tiles"
            )
        places[:, 0] *= itemsize
        return places

    def _tile_shape(self, row: int, counts: list[int]) -> list[int]:
        """The extents of a tile: those at the far edges may be smaller."""
        where = np.unravel_index(row, counts)
        return [
            min(tile, extent - int(k) * tile) for k, tile, extent in zip(where, self._tile, self._shape, strict=True)
        ]

    def _check_tile(self, tile: np.ndarray, method: str, shape: list[int], row: int) -> None:
        whole = True
        if method.startswith("GZIP"):
            whole = _unpacked_size(tile, 8 * math.prod(shape)) <= 8 * math.prod(shape)
        elif method == "PLIO_1":
            whole = len(tile) % 2 == 0 and bool(is_whole_plio(tile.view(">i2").astype(np.int16)))
        elif method == "HCOMPRESS_1":
            extents = [extent for extent in shape if extent != 1]
            whole = len(extents) == 2 and bool(is_whole_hcompress(np.ascontiguousarray(tile), *extents))
        if not whole:
            raise ValueError(
                f"expected tile {row} of a compressed FITS image as {method} of {shape} pixels, it is damaged"
            )


def _unpacked_size(tile: np.ndarray, most: int) -> int:
    """The number of bytes that gzip has packed; more than `most` if the data is damaged."""
    try:
        return len(zlib.decompressobj(31).decompress(tile.tobytes(), most + 1))
    except zlib.error:
        return most + 1
