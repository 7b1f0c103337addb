"""GIF, AVIF, most TIFFs, and pictures that OpenCV cannot decode, by Pillow. It refuses incomplete files."""

from __future__ import annotations

import functools
import importlib
import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._execution.errors import raise_signalled
from ndd.decoders.backend import Options, Window
from ndd.decoders.headers.header import Header
from ndd.decoders.pixels import cut, gray_as, to_gray, upright
from ndd.decoders.size_limits import check_memory
from ndd.types import DALIImageType

_PLUGINS = {
    "jpeg": "JpegImagePlugin.JpegImageFile", "png": "PngImagePlugin.PngImageFile", "webp": "WebPImagePlugin.WebPImageFile",
    "gif": "GifImagePlugin.GifImageFile", "tiff": "TiffImagePlugin.TiffImageFile",
    "jpeg2000": "Jpeg2KImagePlugin.Jpeg2KImageFile", "pnm": "PpmImagePlugin.PpmImageFile",
    "avif": "AvifImagePlugin.AvifImageFile",
}  # fmt: skip
_COLOUR_MAP = 320


@functools.cache
def library() -> Any:
    """The module PIL.Image, or None where Pillow is not installed."""
    try:
        from PIL import Image
    except ImportError:
        return None
    return Image


@functools.cache
def _plugin(name: str) -> Any:
    """Pillow's class for a format; None without Pillow.

    `Image.open` would try every other format too (it runs Ghostscript for an EPS), and has its own limit of pixels, while ndd
    has checked its limit already.
    """
    if library() is None:
        return None
    module, kind = _PLUGINS[name].split(".")
    # Pillow warns of damaged tags. Setting a filter during the call would not be thread-safe.
    warnings.filterwarnings("ignore", module=r"PIL\.TiffImagePlugin")
    return getattr(importlib.import_module(f"PIL.{module}"), kind)


def opened(data: np.ndarray | memoryview, name: str) -> Any:
    """Pillow's image of a file of this format. RuntimeError if Pillow refuses it, or is not installed."""
    plugin = _plugin(name)
    if plugin is None:
        raise RuntimeError("Pillow is not installed")
    try:
        return plugin(io.BytesIO(data if isinstance(data, memoryview) else data.data))
    except MemoryError:
        raise
    except Exception as error:  # Pillow's plugins raise errors of any kind for broken files
        raise RuntimeError(f"Pillow cannot read it ({error or type(error).__name__})") from None


def read_header(
    data: memoryview, name: str, orientation: Callable[[memoryview], int] = lambda data: 1
) -> Header | None:
    """The header of a file, read by Pillow, for formats without a parser of ours. `orientation` reads how the picture is
    turned."""
    try:
        with opened(data, name) as image:
            width, height = image.size
            return Header(height, width, {"L": 1, "LA": 2, "RGBA": 4}.get(image.mode, 3), orientation(data))
    except RuntimeError:
        check_memory()
        return None


def decode(data: np.ndarray, header: Header, options: Options, window: Window | None) -> np.ndarray | None:
    """The backend. It decodes whole pictures."""
    if library() is None:
        return None
    try:
        image = _decoded(data, header, options.output_type)
    except MemoryError:
        raise
    except Exception as error:  # OSError, SyntaxError, ValueError, struct.error, ...: a broken file
        raise_signalled(error)
        return None
    return cut(image, window)


def _decoded(data: np.ndarray, header: Header, output_type: DALIImageType) -> np.ndarray:
    with opened(data, header.format) as image:
        if header.format != "tiff":
            return _pixels(image, header, output_type)
        size = getattr(image, "_tile_size", None)
        if size is not None:  # otherwise Pillow allocates it, after checking its own limit of pixels
            image.im = library().core.new(image.mode, size)
        pixels = _tiff_pixels(image, header, output_type)
        # Pillow turns a TIFF upright: turn it back.
        return upright(pixels, {6: 8, 8: 6}.get(header.orientation, header.orientation))


def _tiff_pixels(image: Any, header: Header, output_type: DALIImageType) -> np.ndarray:
    if image.mode == "P":
        colours = np.array(image.tag_v2[_COLOUR_MAP], np.uint16).reshape(3, -1).T
        rgb = np.take(colours, np.asarray(image), axis=0)
    elif image.mode == "CMYK":
        inks = 255 - np.asarray(image).astype(np.uint16)
        rgb = (inks[:, :, :3] * inks[:, :, 3:] // 255).astype(np.uint8)
        if output_type == DALIImageType.ANY_DATA:
            return np.concatenate((rgb, np.full_like(rgb[:, :, :1], 255)), axis=2)
    elif image.mode == "F":
        return gray_as(np.asarray(image)[:, :, None], output_type)
    elif header.channels < 3 or output_type == DALIImageType.ANY_DATA:
        return _pixels(image, header, output_type)
    else:
        rgb = np.asarray(image.convert("RGB"))
    if output_type == DALIImageType.GRAY:
        return to_gray(rgb, header.orientation != 1 or image.mode == "CMYK")
    return rgb[:, :, ::-1] if output_type == DALIImageType.BGR else rgb


def _pixels(image: Any, header: Header, output_type: DALIImageType) -> np.ndarray:
    if image.mode.startswith("I"):
        return gray_as(np.asarray(image).astype(np.uint16)[:, :, None], output_type)
    if output_type == DALIImageType.ANY_DATA:
        mode = {1: "L", 2: "LA", 4: "RGBA"}.get(header.channels, "RGB")
    else:
        mode = "L" if output_type == DALIImageType.GRAY else "RGB"
    pixels = np.asarray(image.convert(mode))
    if pixels.ndim == 2:
        return pixels[:, :, None]
    return pixels[:, :, ::-1] if output_type == DALIImageType.BGR else pixels
