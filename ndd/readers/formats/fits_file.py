"""FITS files: headers, and the images behind them as arrays.

A file is a row of HDUs, each a header and its data, in blocks of 2880 bytes. A header has lines ("cards") of 80
characters, `KEYWORD = value`; the data of an image are big-endian numbers, the first axis of the header the fastest.
(FITS Standard 4.0, sections 3 to 5 and 10.) Images that are compressed tile by tile are decoded by astropy.

Compiled code (`ndd/readers/formats/fits_images.py`) reads most files; this module reads those that it does not support.
"""

from __future__ import annotations

import functools
import gzip
import math
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ndd.readers.files.file_reading import OpenFiles
from ndd.readers.formats.fits_compressed import decompressed

_BLOCK, _CARD = 2880, 80
_GZIP = b"\x1f\x8b"  # the first bytes of a file that was compressed as a whole
_WHOLE = 1 << 20  # bytes: files up to this size are read in one piece
_PREFIX = 1 << 16  # of larger files: enough for most headers
_LONGEST = 4096  # blocks of a header: 12 MB; a longer one is not a header
_TYPES = {8: "u1", 16: ">i2", 32: ">i4", 64: ">i8", -32: ">f4", -64: ">f8"}
_UNSIGNED = {(8, -128.0): "i1", (16, 2.0**15): "u2", (32, 2.0**31): "u4", (64, 2.0**63): "u8"}  # (BITPIX, BZERO)
_KEPT = {b"XTENSION", b"BITPIX", b"NAXIS", b"PCOUNT", b"GCOUNT", b"GROUPS", b"BSCALE", b"BZERO", b"BLANK", b"ZIMAGE"}
_END = b"END".ljust(_CARD)
Read = Callable[[int, int], np.ndarray]  # bytes of a file: (offset, size)


class Hdu(NamedTuple):
    """The part of a header that describes the data; `header`, `data` and `end` are offsets in the file, `size` is in
    bytes."""

    text: bytes
    cards: dict[str, str]
    header: int
    data: int
    size: int
    shape: tuple[int, ...] = ()
    """The axes, the slowest first, as NumPy has them."""

    @property
    def end(self) -> int:
        """Where the next HDU begins."""
        return self.data + -(-self.size // _BLOCK) * _BLOCK

    def number(self, keyword: str, default: float | None = None) -> Any:
        """A number: an int if there is no default or the default is an int. ValueError if it is missing or not a number."""
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
        bits_per_value = self.number("BITPIX")
        if bits_per_value not in _TYPES:
            raise ValueError(f"expected BITPIX {', '.join(map(str, _TYPES))} in the FITS header, got {bits_per_value}")
        return bits_per_value

    @property
    def compressed(self) -> bool:
        """Whether it is a table of compressed tiles."""
        return self.cards.get("ZIMAGE") == "T"

    @property
    def image(self) -> bool:
        """Whether it is a plain image, with or without pixels."""
        return self.cards.get("XTENSION", "'IMAGE").startswith("'IMAGE") and self.cards.get("GROUPS") != "T"


def read_images(paths: Sequence[str], indices: Sequence[int]) -> list[tuple[np.ndarray, ...] | Exception]:
    """The images in HDUs `indices` (from 1) of some files, or the error of a file. Small files are read together."""
    with OpenFiles(paths) as files:
        sizes = np.where(files.sizes > _WHOLE, _PREFIX, files.sizes)
        beginnings = files.read(np.arange(len(paths)), np.zeros(len(paths)), sizes)
        whole = files.sizes.tolist()
        images: list[tuple[np.ndarray, ...] | Exception] = []
        hdus: list[Hdu] = []
        for place, beginning in enumerate(beginnings):
            try:
                read = _reader(files, place, beginning, whole[place])
                hdus = _hdus(read, max(indices), hdus)
                images.append(tuple(_image(read, hdus, index) for index in indices))
            except Exception as error:  # astropy raises many types for a damaged file
                images.append(error)
        return images


def _reader(files: OpenFiles, place: int, beginning: np.ndarray | OSError, whole: int) -> Read:
    if isinstance(beginning, OSError):
        raise beginning

    there = max(whole, len(beginning))
    if beginning[:2].tobytes() == _GZIP:
        beginning = _unpacked(beginning if there == len(beginning) else _range(files, place, 0, there))
        there = len(beginning)
    known = len(beginning)

    def read(offset: int, size: int) -> np.ndarray:
        end = offset + size
        if end > there:
            raise ValueError(f"expected at least {end} bytes of a FITS file, the file has {there}: it was cut off")
        return beginning[offset:end] if end <= known else _range(files, place, offset, size)

    return read


def _range(files: OpenFiles, place: int, offset: int, size: int) -> np.ndarray:
    piece = files.read([place], [offset], [size])[0]
    if isinstance(piece, OSError):
        raise piece
    return piece


def _unpacked(packed: np.ndarray) -> np.ndarray:
    """The content of a file that is completely compressed by gzip."""
    try:
        return np.frombuffer(gzip.decompress(packed.data), np.uint8)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"expected a complete gzip file, it is cut off or damaged: {error}") from error


def _hdus(read: Read, count: int, before: Sequence[Hdu] = ()) -> list[Hdu]:
    """The first HDUs of a file, at most `count`; `before` are those of another file, which most often begins in the same
    way. ValueError if it is not a FITS file."""
    hdus: list[Hdu] = []
    for hdu in before:
        try:
            if read(hdu.header, len(hdu.text)).tobytes() != hdu.text:
                break
        except ValueError:  # it ends there
            break
        hdus.append(hdu)
    while len(hdus) < count:
        offset = hdus[-1].end if hdus else 0
        try:
            start = read(offset, _BLOCK)[:10].tobytes()
        except ValueError:
            if not hdus:
                raise
            break  # the end of the file, or bytes that are not a block
        if start[:9] != (b"XTENSION=" if hdus else b"SIMPLE  ="):
            if not hdus:
                raise ValueError(f"expected a FITS file, which begins with 'SIMPLE  =', got {start!r}")
            break
        hdus.append(_header(read, offset))
    return hdus


def _header(read: Read, offset: int) -> Hdu:
    text = b""
    while not _ends(text):
        if len(text) >= _LONGEST * _BLOCK:
            raise ValueError(f"expected a FITS header of at most {_LONGEST} blocks, got a longer one")
        text += read(offset + len(text), _BLOCK).tobytes()
    return _parsed(text)._replace(header=offset, data=offset + len(text))


def _ends(text: bytes) -> bool:
    """Whether the last block of a header has the card END."""
    at = text.find(_END, max(0, len(text) - _BLOCK))
    while at % _CARD and at >= 0:
        at = text.find(_END, at + 1)
    return at >= 0


@functools.lru_cache(256)  # many primary headers of a data set are equal
def _parsed(text: bytes) -> Hdu:
    """The facts in a header that begins at 0."""
    cards: dict[str, str] = {}
    for start in range(0, len(text), _CARD):
        keyword = text[start : start + 8].rstrip()
        if keyword in _KEPT or keyword.startswith(b"NAXIS"):
            value = text[start + 8 : start + _CARD].decode("latin-1")
            if value.startswith("= "):
                cards[keyword.decode("latin-1")] = value[2:].partition("/")[0].strip()
        elif keyword == b"END":
            break
    hdu = Hdu(text, cards, 0, len(text), 0)
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
    return hdu._replace(size=size, shape=shape)


class _Form(NamedTuple):
    """The storage of an image's pixels, and their meaning."""

    dtype: np.dtype[Any]
    nbytes: int
    scale: float
    zero: float
    unsigned: str | None
    """The type that FITS lacks and BZERO stands for."""
    blank: int | None


@functools.lru_cache(256)
def _form(text: bytes, index: int) -> _Form | None:
    """How the image of HDU `index` is stored, by its header; None if it is compressed."""
    hdu = _parsed(text)
    if hdu.compressed:
        return None
    if not hdu.image:
        kind = hdu.cards.get("XTENSION", "random groups")
        raise ValueError(f"expected an image in HDU {index} (hdu_indices), got {kind}")
    if not hdu.shape:
        raise ValueError(f"expected an image in HDU {index} (hdu_indices), got one without data: NAXIS is 0")
    dtype, scale, zero = np.dtype(_TYPES[hdu.bits]), hdu.number("BSCALE", 1.0), hdu.number("BZERO", 0.0)
    unsigned = _UNSIGNED.get((hdu.bits, zero)) if scale == 1.0 else None
    blank = _blank(hdu) if unsigned is None and dtype.kind != "f" else None
    return _Form(dtype, math.prod(hdu.shape) * dtype.itemsize, scale, zero, unsigned, blank)


def _blank(hdu: Hdu) -> int | None:
    """The stored number that marks pixels without a value; None if the header has none, or one that is not a whole
    number."""
    try:
        return hdu.number("BLANK")
    except ValueError:
        return None


def _image(read: Read, hdus: list[Hdu], index: int) -> np.ndarray:
    if index > len(hdus):
        raise ValueError(f"expected an image in HDU {index} (hdu_indices), the FITS file has {len(hdus)} HDU(s)")
    hdu = hdus[index - 1]
    form = _form(hdu.text, index)
    if form is None:
        return decompressed(read(hdu.header, hdu.data - hdu.header), read(hdu.data, hdu.size))
    return _scaled(read(hdu.data, hdu.size)[: form.nbytes].view(form.dtype).reshape(hdu.shape), form)


def _scaled(stored: np.ndarray, form: _Form) -> np.ndarray:
    """The physical values: stored * BSCALE + BZERO, in the machine's byte order."""
    native = form.dtype.newbyteorder("=")
    if (form.scale, form.zero, form.blank) == (1.0, 0.0, None):
        return stored.astype(native, copy=False)
    if form.unsigned is not None:  # the convention for types that FITS lacks: the highest bit is inverted
        bits = stored.astype(f"u{stored.itemsize}")
        bits ^= bits.dtype.type(1 << (8 * stored.itemsize - 1))
        return bits.view(form.unsigned)
    scaled = stored.astype(native if native.kind == "f" else np.float32 if native.itemsize <= 2 else np.float64)
    if form.scale != 1.0:
        scaled *= form.scale
    scaled += form.zero
    if form.blank is not None:
        # In the machine's byte order: NumPy 2.1 crashes where it compares others with a number that their type does not hold.
        scaled[stored.astype(native, copy=False) == form.blank] = np.nan
    return scaled
