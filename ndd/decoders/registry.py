"""The table of picture formats: the signature, the parser of the header, and the backends of each.

A new format is a file in `headers/` and a line in `FORMATS`.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ndd.decoders.backend import Backend, Options, Window
from ndd.decoders.backends import bmp as bmp_backend, libwebp, opencv, pillow, simplejpeg, tiff as tiff_backend
from ndd.decoders.headers import avif, bmp, jpeg2000, png, pnm, tiff, webp
from ndd.decoders.headers.header import Header
from ndd.decoders.jpeg import header as jpeg
from ndd.decoders.nvimgcodec import python_api as nvimgcodec
from ndd.types import DALIImageType

_LONGEST = (1 << 31) - 1  # rows or columns that every library can count


class Format(NamedTuple):
    """A picture format.

    Attributes:
        matches: whether a file has the signature of this format.
        read_header: see `ndd.decoders.headers`.
        backends: those that decode it, the first choice first; for JPEG see `_jpeg_backends`.
        stripped: returns the file without the parts that must not influence its pixels, or None for a damaged or truncated
            file.
    """

    matches: Callable[[memoryview], bool]
    read_header: Callable[[memoryview], Header | None]
    backends: tuple[Backend, ...]
    stripped: Callable[[np.ndarray], np.ndarray | None] | None = None


def _begins(*signatures: bytes) -> Callable[[memoryview], bool]:
    return lambda data: data[:12].tobytes().startswith(signatures)


_gif = functools.partial(pillow.read_header, name="gif")
_avif = functools.partial(pillow.read_header, name="avif", orientation=avif.orientation)

FORMATS = {
    "jpeg": Format(_begins(b"\xff\xd8"), jpeg.read_header, ()),
    "png": Format(_begins(b"\x89PNG\r\n\x1a\n"), png.read_header, (opencv, pillow), png.stripped),
    "bmp": Format(_begins(b"BM"), bmp.read_header, (bmp_backend,)),
    "gif": Format(_begins(b"GIF87a", b"GIF89a"), _gif, (pillow,)),
    # OpenCV decodes only CIELAB.
    "tiff": Format(_begins(b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"), tiff.read_header, (tiff_backend, opencv, pillow)),
    # Only Pillow decodes gray with alpha.
    "jpeg2000": Format(
        _begins(b"\0\0\0\x0cjP  \r\n\x87\n", b"\xff\x4f\xff\x51"), jpeg2000.read_header, (opencv, pillow)
    ),
    "webp": Format(webp.is_webp, webp.read_header, (libwebp, opencv, pillow), webp.stripped),
    "avif": Format(avif.is_avif, _avif, (pillow,)),
    "pnm": Format(pnm.is_pnm, pnm.read_header, (opencv, pillow)),
}


def backends(header: Header, options: Options, window: Window | None) -> tuple[Backend, ...]:
    """The backends on the CPU that try a picture, one after the other, until one succeeds.

    Damaged files of formats other than JPEG kill nvImageCodec; OpenCV and Pillow survive them. OpenCV gives DALI's pixels bit
    for bit, because DALI decodes most of these formats with it. The kernel in `jpeg/` is tried first for common JPEGs.
    """
    if header.format == "jpeg":
        return _jpeg_backends(header, options, window)
    return FORMATS[header.format].backends


def _jpeg_backends(header: Header, options: Options, window: Window | None) -> tuple[Backend, ...]:
    """All of them use libjpeg-turbo and give DALI's pixels.

    simplejpeg is the fastest (5 to 11 % faster than nvImageCodec on one core), but decodes only whole pictures. OpenCV and
    Pillow paint over the missing part of a truncated file, while nvImageCodec refuses it. So they are used only where
    nvImageCodec is not installed (it has no release for macOS), and for files that it cannot decode.
    """
    any_data = options.output_type == DALIImageType.ANY_DATA
    plain: tuple[Backend, ...] = (simplejpeg,) if header.plain_jpeg else ()
    if nvimgcodec.library() is None:
        return (*plain, opencv, pillow)
    if header.channels == 4 and not any_data and options.is_turned(header):
        return opencv, pillow  # DALI, too, decodes turned CMYK with OpenCV, whose colours differ
    if window is not None:
        plain = ()
    if any_data and header.channels in (2, 4):
        return (*plain, nvimgcodec, pillow)
    return (*plain, nvimgcodec)


def format_of(data: np.ndarray) -> str:
    """The name of the format in `FORMATS`; "" for any other data."""
    view = data.data
    return next((name for name, known in FORMATS.items() if known.matches(view)), "")


def read_header(data: np.ndarray) -> Header:
    """The header of an encoded picture, u8, of any format. RuntimeError if the data is not a picture, or
    its header is damaged."""
    data = data.reshape(-1)
    name = format_of(data)
    header = header_as(data, name)
    if header is None or not (0 < header.height <= _LONGEST and 0 < header.width <= _LONGEST):
        raise RuntimeError(_no_picture(data))
    return header


def header_as(data: np.ndarray, name: str) -> Header | None:
    """The header of a file of the format `name`; None if it is damaged or `name` is ""."""
    if not name:
        return None
    try:
        header = FORMATS[name].read_header(data.data)
    except (struct.error, IndexError, OverflowError):
        return None
    return None if header is None else header._replace(format=name)


def _no_picture(data: np.ndarray) -> str:
    if not len(data):
        return "expected an encoded image, got 0 bytes: an empty file, or one that cannot be read"
    head = data[:8].tobytes()
    return f"expected an encoded image, got {len(data)} bytes from {head!r} on: no known format, or a damaged header"


def may_be_decoded(data: memoryview, header: Header) -> bool:
    """Whether the file looks sound up to its pixels."""
    return not header.damaged and (header.format != "jpeg" or jpeg.has_sane_scans(data, header))


def stripped(data: np.ndarray, header: Header) -> np.ndarray | None:
    """The file as backends get it; None if it is damaged or cut off. See `Format`."""
    if not may_be_decoded(data.data, header):
        return None
    strip = FORMATS[header.format].stripped
    return data if strip is None else strip(data)
