"""WebP by libwebp itself, from Pillow's wheel: straight into the result, and only the rows that are used.

OpenCV, which has libwebp too, decodes whole pictures and goes over the pixels once more. Animations are left to it.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from ndd._tensor.memory import host_empty
from ndd.decoders.backend import Options, Window
from ndd.decoders.bundled import PILLOW, copies
from ndd.decoders.headers import webp
from ndd.decoders.headers.header import Header
from ndd.decoders.pixels import cut
from ndd.types import DALIImageType

_ABI = 0x0200  # of decode.h; functions check its upper byte
_RGB, _RGBA, _BGR = 0, 1, 2  # WEBP_CSP_MODE
# libwebp smooths chroma across two rows and columns, and takes the edge of a window for the edge of the picture. So it decodes
# this many more on each side: an even number, as windows begin at even places.
_MARGIN = 4


class _Config(ctypes.Structure):
    """WebPDecoderConfig of decode.h, for pixels of one plane."""

    _fields_ = (
        ("input", ctypes.c_int * 10),
        ("colorspace", ctypes.c_int),
        ("width", ctypes.c_int),
        ("height", ctypes.c_int),
        ("is_external_memory", ctypes.c_int),
        ("pixels", ctypes.c_void_p),
        ("stride", ctypes.c_int),
        ("size", ctypes.c_size_t),
        ("_other_planes", ctypes.c_uint8 * 56),
        ("_padding", ctypes.c_uint32 * 4),
        ("_private_memory", ctypes.c_void_p),
        ("bypass_filtering", ctypes.c_int),
        ("no_fancy_upsampling", ctypes.c_int),
        ("use_cropping", ctypes.c_int),
        ("crop_left", ctypes.c_int),
        ("crop_top", ctypes.c_int),
        ("crop_width", ctypes.c_int),
        ("crop_height", ctypes.c_int),
        ("_further", ctypes.c_int * 12),
    )


@functools.cache
def _library() -> Any:
    """The library; None where Pillow's wheel has none."""
    # In the wheels of Pillow 12.0 it does not find the library that it needs by itself.
    for file in (*copies("libsharpyuv-", PILLOW), *copies("libwebp-", PILLOW)):
        try:
            library = ctypes.CDLL(str(file))
            library.WebPInitDecoderConfigInternal.argtypes = [ctypes.c_void_p, ctypes.c_int]
            library.WebPDecode.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
        except (OSError, AttributeError):
            continue
        if library.WebPInitDecoderConfigInternal(ctypes.byref(_Config()), _ABI):
            return library
    return None


def decode(data: np.ndarray, header: Header, options: Options, window: Window | None) -> np.ndarray | None:
    """The backend."""
    library, channels = _library(), header.out_channels(options.output_type)
    if library is None or channels < 3 or webp.is_animated(data.data):
        return None
    part = window or options.used or (0, 0, header.height, header.width)
    top, bottom = _widened(part[0], part[2], header.height)
    # A whole picture keeps its columns, so that the rows that are used lie where they belong.
    left, right = (0, header.width) if window is None else _widened(part[1], part[3], header.width)
    rows, columns = (header.height, header.width) if window is None else (bottom - top, right - left)
    image = host_empty((rows, columns, channels), np.uint8)
    used = image[top:bottom] if window is None else image
    config = _Config()
    library.WebPInitDecoderConfigInternal(ctypes.byref(config), _ABI)
    is_bgr = options.output_type == DALIImageType.BGR
    config.colorspace = _RGBA if channels == 4 else _BGR if is_bgr else _RGB
    config.is_external_memory = 1
    config.pixels, config.stride, config.size = used.ctypes.data, used.strides[0], used.nbytes
    if (bottom - top, right - left) != (header.height, header.width):
        config.use_cropping = 1
        config.crop_left, config.crop_top = left, top
        config.crop_width, config.crop_height = right - left, bottom - top
    data = np.ascontiguousarray(data)
    # libwebp checks that the picture has the size of the canvas, and that the window lies inside it.
    failed = library.WebPDecode(data.ctypes.data, data.size, ctypes.byref(config))
    if failed or (config.input[0], config.input[1]) != (header.width, header.height):
        return None
    if window is None:
        return image
    y0, x0, y1, x1 = window
    return cut(image, (y0 - top, x0 - left, y1 - top, x1 - left))


def _widened(begin: int, end: int, limit: int) -> tuple[int, int]:
    """A range of rows or columns with its margins; it begins at an even one."""
    return max((begin & ~1) - _MARGIN, 0), min(end + _MARGIN, limit)
