"""FITS files: headers, and the images behind them as arrays.

A file is a row of HDUs, each a header and its data, in blocks of 2880 bytes. A header has lines ("cards") of 80
characters, `KEYWORD = value`; the data of an image are big-endian numbers, the first axis of the header the fastest.
(FITS Standard 4.0, sections 3 to 5 and 10.) Images that are compressed tile by tile are decoded by astropy.
"""

from __future__ import annotations

import functools
import io
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ndd.installation import install_command
from ndd.readers.file_reading import OpenFiles

_BLOCK, _CARD = 2880, 80
_WHOLE = 1 << 20  # bytes: files up to this size are read in one piece
_PREFIX = 1 << 16  # of larger files: holds the headers of most
_LONGEST = 4096  # blocks of a header: 12 MB; what has no end after that is no header
_TYPES = {8: "u1", 16: ">i2", 32: ">i4", 64: ">i8", -32: ">f4", -64: ">f8"}
_UNSIGNED = {(8, -128.0): "i1", (16, 2.0**15): "u2", (32, 2.0**31): "u4", (64, 2.0**63): "u8"}  # (BITPIX, BZERO)
_KEPT = {b"XTENSION", b"BITPIX", b"NAXIS", b"PCOUNT", b"GCOUNT", b"GROUPS", b"BSCALE", b"BZERO", b"BLANK", b"ZIMAGE"}
_END = b"END".ljust(_CARD)
_EMPTY_PRIMARY = b"".join(
    card.ljust(_CARD)
    for card in (f"SIMPLE  = {'T':>20}".encode(), f"BITPIX  = {8:>20}".encode(), f"NAXIS   = {0:>20}".encode(), b"END")
).ljust(_BLOCK)

Read = Callable[[int, int], np.ndarray]  # bytes of a file: (offset, size)


class Hdu(NamedTuple):
    """A header, as far as it says what the data are; `header` and `data` are offsets in the file, `size` is bytes."""

    cards: dict[str, str]
    header: int
    data: int
    size: int
    shape: tuple[int, ...] = ()
    """The axes, the slowest first, as NumPy has them."""

    def number(self, keyword: str, default: float | None = None) -> Any:
        """A number: an int where there is no default or an int one. ValueError if it is missing or none."""
        text = self.cards.get(keyword)
        if text is None and default is not None:
            return default
        try:
            return float(str(text).replace("D", "E")) if isinstance(default, float) else int(str(text))
        except ValueError:
            raise ValueError(f"expected a number in the FITS header as {keyword}, got {text!r}") from None

    @property
    def bits(self) -> int:
        """BITPIX."""
        found = self.number("BITPIX")
        if found not in _TYPES:
            raise ValueError(f"expected BITPIX {', '.join(map(str, _TYPES))} in the FITS header, got {found}")
        return found

    @property
    def compressed(self) -> bool:
        """Whether it is a table of compressed tiles."""
        return self.cards.get("ZIMAGE") == "T"

    @property
    def image(self) -> bool:
        """Whether it is a plain image, with or without pixels."""
        return self.cards.get("XTENSION", "'IMAGE").startswith("'IMAGE") and self.cards.get("GROUPS") != "T"


def read_images(paths: Sequence[str], indices: Sequence[int]) -> list[tuple[np.ndarray, ...] | Exception]:
    """The images in HDUs `indices` (from 1) of some files, or what is wrong with a file. Small files are read together."""
    with OpenFiles(paths) as files:
        sizes = np.where(files.sizes > _WHOLE, _PREFIX, files.sizes)
        beginnings = files.read(np.arange(len(paths)), np.zeros(len(paths)), sizes)
        found: list[tuple[np.ndarray, ...] | Exception] = []
        for place, beginning in enumerate(beginnings):
            try:
                read = _reader(files, place, beginning)
                hdus = _hdus(read, max(indices))
                found.append(tuple(_image(read, hdus, index) for index in indices))
            except Exception as error:  # astropy raises many types for a damaged file
                found.append(error)
        return found


def _reader(files: OpenFiles, place: int, beginning: np.ndarray | OSError) -> Read:
    if isinstance(beginning, OSError):
        raise beginning

    there = max(int(files.sizes[place]), len(beginning))

    def read(offset: int, size: int) -> np.ndarray:
        end = offset + size
        if end > there:
            raise ValueError(f"expected at least {end} bytes of a FITS file, the file has {there}: it was cut off")
        if end <= len(beginning):
            return beginning[offset:end]
        piece = files.read([place], [offset], [size])[0]
        if isinstance(piece, OSError):
            raise piece
        return piece

    return read


def _hdus(read: Read, count: int) -> list[Hdu]:
    """The first HDUs of a file, at most `count`. ValueError if it is no FITS file."""
    found: list[Hdu] = []
    offset = 0
    while len(found) < count:
        try:
            start = read(offset, _BLOCK)[:10].tobytes()
        except ValueError:
            if not found:
                raise
            break  # the end of the file, or what is no block any more
        if start[:9] != (b"XTENSION=" if found else b"SIMPLE  ="):
            if not found:
                raise ValueError(f"expected a FITS file, which begins with 'SIMPLE  =', got {start!r}")
            break
        found.append(_header(read, offset))
        offset = found[-1].data + -(-found[-1].size // _BLOCK) * _BLOCK
    return found


def _header(read: Read, offset: int) -> Hdu:
    text = b""
    while not _ends(text):
        if len(text) >= _LONGEST * _BLOCK:
            raise ValueError(f"expected a FITS header of at most {_LONGEST} blocks, it goes on")
        text += read(offset + len(text), _BLOCK).tobytes()
    hdu = _parsed(text)
    return Hdu(hdu.cards, offset, offset + len(text), hdu.size, hdu.shape)


def _ends(text: bytes) -> bool:
    """Whether the last block of a header has the card END."""
    at = text.find(_END, max(0, len(text) - _BLOCK))
    while at % _CARD and at >= 0:
        at = text.find(_END, at + 1)
    return at >= 0


@functools.lru_cache(256)  # of the primary headers of a data set many are equal
def _parsed(text: bytes) -> Hdu:
    """What a header says; it begins at 0."""
    cards: dict[str, str] = {}
    for start in range(0, len(text), _CARD):
        keyword = text[start : start + 8].rstrip()
        if keyword in _KEPT or keyword.startswith(b"NAXIS"):
            value = text[start + 8 : start + _CARD].decode("latin-1")
            if value.startswith("= "):
                cards[keyword.decode("latin-1")] = value[2:].partition("/")[0].strip()
        elif keyword == b"END":
            break
    hdu = Hdu(cards, 0, len(text), 0)
    count = hdu.number("NAXIS")
    shape = tuple([hdu.number(f"NAXIS{k}") for k in range(count, 0, -1)]) if 0 <= count < 1000 else (-1,)
    if any(extent < 0 for extent in shape):
        raise ValueError(f"expected NAXIS 0 to 999 and axes from 0 in the FITS header, got {count}, {shape}")
    grouped = cards.get("GROUPS") == "T" and len(shape) > 1 and shape[-1] == 0
    points = math.prod(shape[:-1] if grouped else shape) if shape else 0
    extra, groups = hdu.number("PCOUNT", 0), hdu.number("GCOUNT", 1)
    if extra < 0 or groups < 0:
        raise ValueError(f"expected PCOUNT and GCOUNT from 0 in the FITS header, got {extra}, {groups}")
    size = abs(hdu.bits) // 8 * groups * (extra + points) if shape else 0
    return Hdu(cards, 0, len(text), size, shape)


def _image(read: Read, hdus: list[Hdu], index: int) -> np.ndarray:
    if index > len(hdus):
        raise ValueError(f"expected an image in HDU {index} (hdu_indices), the FITS file has {len(hdus)} HDU(s)")
    hdu = hdus[index - 1]
    if hdu.compressed:
        return _decompressed(read(hdu.header, hdu.data - hdu.header), read(hdu.data, hdu.size))
    if not hdu.image:
        kind = hdu.cards.get("XTENSION", "random groups")
        raise ValueError(f"expected an image in HDU {index} (hdu_indices), got {kind}")
    shape = hdu.shape
    if not shape:
        raise ValueError(f"expected an image in HDU {index} (hdu_indices), it has no data: NAXIS is 0")
    bits = hdu.bits
    stored = read(hdu.data, hdu.size)[: math.prod(shape) * abs(bits) // 8].view(_TYPES[bits]).reshape(shape)
    return _scaled(stored, hdu)


def _scaled(stored: np.ndarray, hdu: Hdu) -> np.ndarray:
    """The numbers that are meant: stored * BSCALE + BZERO, in the machine's byte order."""
    scale, zero = hdu.number("BSCALE", 1.0), hdu.number("BZERO", 0.0)
    native = stored.dtype.newbyteorder("=")
    if (scale, zero) == (1.0, 0.0):
        return stored.astype(native, copy=False)
    unsigned = _UNSIGNED.get((hdu.bits, zero)) if scale == 1.0 else None
    if unsigned is not None:  # the convention for types that FITS lacks: the highest bit is the other way round
        bits = stored.astype(f"u{stored.itemsize}")
        bits ^= bits.dtype.type(1 << (8 * stored.itemsize - 1))
        return bits.view(unsigned)
    found = stored.astype(native if native.kind == "f" else np.float32 if native.itemsize <= 2 else np.float64)
    if scale != 1.0:
        found *= scale
    found += zero
    if native.kind != "f" and "BLANK" in hdu.cards:
        found[stored == hdu.number("BLANK")] = np.nan
    return found


def _decompressed(header: np.ndarray, data: np.ndarray) -> np.ndarray:
    """The image in a table of compressed tiles."""
    try:
        from astropy.io import fits
    except ImportError as error:
        raise ImportError(
            f"compressed FITS images need astropy, which cannot be imported: {install_command('fits')}"
        ) from error
    padding = b"\0" * (-len(data) % _BLOCK)
    file = io.BytesIO(b"".join((_EMPTY_PRIMARY, header.tobytes(), data.tobytes(), padding)))
    with fits.open(file, memmap=False) as hdus:
        image = np.asarray(hdus[1].data)
    return np.ascontiguousarray(image, image.dtype.newbyteorder("="))
