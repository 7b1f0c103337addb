"""Decoding by simplejpeg, OpenCV and Pillow. The only importer of simplejpeg and Pillow in this room.

| format | library |
| --- | --- |
| BMP | `decoders/headers/bmp.py` |
| TIFF of 2, 4 or more channels, of planes, of colours of other than 8 bits, of YCbCr | `decoders/headers/tiff.py`, else as below |
| CIELAB TIFF | OpenCV |
| other TIFF, GIF, AVIF | Pillow |
| PNG, WebP, PNM, JPEG 2000 | OpenCV, else Pillow (of JPEG 2000 it alone knows gray with alpha) |
| JPEG without nvImageCodec (macOS has none) | simplejpeg (8-bit JPEG), else OpenCV, else Pillow |

Damaged files of these formats killed nvImageCodec (67 of 40,000 by JPEG 2000 alone); these survive them. Good ones have DALI's
pixels bit for bit, for it decodes most of them with OpenCV.

All stand on libjpeg-turbo and give the pixels of DALI for JPEG, as the kernel of `decoders/jpeg/backend.py` does for the common
ones; of libraries simplejpeg is the fastest (5 to 11 % over nvImageCodec on one core), so it is used beside nvImageCodec
too. OpenCV paints over what is missing from a truncated JPEG, where DALI refuses: it only gets files that have their end.
"""

from __future__ import annotations

import functools
import importlib
import io
import threading
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ndd._cpu.opencv import opencv
from ndd._execution.errors import raise_signalled
from ndd._tensor.memory import host_empty
from ndd.decoders._pixels import Window, upright
from ndd.decoders.headers import avif as _avif, bmp as _bmp, tiff as _tiff
from ndd.decoders.headers.header import Header
from ndd.types import DALIImageType

if TYPE_CHECKING:
    from ndd.decoders._sample import Options

_INSTALL = "Install nvidia-nvimgcodec-cu13 (or -cu12), or Pillow."
_NOT_OURS = "the data is no image in a format that can be read here"


@functools.cache
def simplejpeg() -> Any:
    """The module simplejpeg, or None where it is not installed."""
    try:
        import simplejpeg
    except ImportError:
        return None
    return simplejpeg


@functools.cache
def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        return None
    return Image


def decode_plain_jpeg(data: np.ndarray, header: Header, options: Options) -> np.ndarray | None:
    """An 8-bit JPEG as stored (no orientation), or None if simplejpeg is missing or finds anything wrong with it."""
    library = simplejpeg()
    if library is None:
        return None
    channels = header.out_channels(options.output_type)
    space = "GRAY" if channels == 1 else "BGR" if options.output_type == DALIImageType.BGR else "RGB"
    # Memory of ours, which is used again: fresh memory costs a page fault for every 4 kB, 5 % of the time.
    out = host_empty((header.height, header.width, channels), np.uint8)
    try:
        library.decode_jpeg(data, space, fastdct=options.fast_idct, buffer=out)
    except ValueError:  # also its warnings: truncated, damaged
        return None
    return out


_PLUGINS = {
    "jpeg": "JpegImagePlugin.JpegImageFile", "png": "PngImagePlugin.PngImageFile", "webp": "WebPImagePlugin.WebPImageFile",
    "gif": "GifImagePlugin.GifImageFile", "tiff": "TiffImagePlugin.TiffImageFile",
    "jpeg2000": "Jpeg2KImagePlugin.Jpeg2KImageFile", "pnm": "PpmImagePlugin.PpmImageFile",
    "avif": "AvifImagePlugin.AvifImageFile",
}  # fmt: skip


@functools.cache
def _plugin(name: str) -> Any:
    """Pillow's class for a format. `Image.open` would try every other one too (it runs Ghostscript for an EPS), and has
    a limit of pixels of its own; this room's is checked before."""
    if _pillow() is None:
        return None
    module, kind = _PLUGINS[name].split(".")
    # Its words about damaged tags; a filter that comes and goes would not be safe among threads.
    warnings.filterwarnings("ignore", module=r"PIL\.TiffImagePlugin")
    return getattr(importlib.import_module(f"PIL.{module}"), kind)


def read_header(data: np.ndarray, name: str) -> Header:
    """The header of a GIF or AVIF by Pillow; RuntimeError if it cannot be read."""
    with _opened(data, name) as image:
        width, height = image.size
        turned = _avif.orientation(data.data) if name == "avif" else 1
        return Header(height, width, {"L": 1, "LA": 2, "RGBA": 4}.get(image.mode, 3), turned, format=name)


def _opened(data: np.ndarray, name: str) -> Any:
    plugin = _plugin(name)
    if plugin is None:
        raise RuntimeError(f"{_NOT_OURS}. {_INSTALL}")
    try:
        return plugin(io.BytesIO(data.data))
    except MemoryError:
        raise
    except Exception as error:  # Pillow's format plugins raise what they like on broken files
        raise RuntimeError(f"{_NOT_OURS} ({error or type(error).__name__})") from None


def decode(data: np.ndarray, header: Header, options: Options, window: Window | None) -> np.ndarray | None:
    """The picture (or the window of it) as stored, HWC, or None if it cannot be decoded. YCbCr comes back as RGB."""
    image: np.ndarray | None = None
    if header.plain_jpeg:
        image = decode_plain_jpeg(data, header, options)
    expected = (header.height, header.width, header.out_channels(options.output_type))
    for attempt in (_by_reader_here, _by_opencv, by_pillow):
        if image is None:
            try:
                image = attempt(data, header, options.output_type)
            except _tiff.Unreadable:
                return None
            if image is not None and image.shape != expected:
                image = None  # not what the header says
    return None if image is None else cut(image, window)


def cut(image: np.ndarray, window: Window | None) -> np.ndarray:
    """The window of a picture, C-contiguous."""
    y0, x0, y1, x1 = window or (0, 0, *image.shape[:2])
    return np.ascontiguousarray(image[y0:y1, x0:x1])


def _by_reader_here(data: np.ndarray, header: Header, output_type: DALIImageType) -> np.ndarray | None:
    """BMP, and most kinds of TIFF. The first three channels are the colours, whatever the file says of the others; of two the
    first is gray."""
    by_opencv, unused = True, 0
    if header.format == "bmp":
        image = _bmp.decode(data)
    elif header.format == "tiff":
        pixels = _tiff.decode(data, functools.partial(_opened, name="tiff"))
        image, unused, by_opencv = pixels or (None, 0, False)
    else:
        return None
    if image is None or output_type == DALIImageType.ANY_DATA:
        return image
    if image.shape[2] < 3:
        return _spread(image[:, :, :1], output_type)
    rgb = image[:, :, :3]
    if output_type == DALIImageType.GRAY:
        return gray(rgb, by_opencv or header.orientation != 1, unused)
    return rgb[:, :, ::-1] if output_type == DALIImageType.BGR else rgb


def _by_opencv(data: np.ndarray, header: Header, output_type: DALIImageType) -> np.ndarray | None:
    cv2 = opencv()
    if cv2 is None or header.format in ("bmp", "gif", "avif"):
        return None
    if header.format == "jpeg" and b"\xff\xd9" not in data[-64:].tobytes():
        return None
    if header.format == "tiff":
        lab = _tiff.unturned_lab(data)
        if lab is None:
            return None  # it multiplies colours by alpha, and leaves memory as it was where planes should be
        data = lab
    if header.format == "jpeg2000" and header.channels == 1 and output_type != DALIImageType.ANY_DATA:
        plain = _by_opencv(data, header, DALIImageType.ANY_DATA)  # a codestream without boxes comes as gray alone
        return None if plain is None else _spread(plain, output_type)
    channels = header.out_channels(output_type)
    if channels == 2 and header.format != "png":
        return None  # it knows no gray with alpha
    if channels in (2, 4):
        flags = cv2.IMREAD_UNCHANGED
    else:
        is_gray = channels == 1 and header.format != "tiff"
        flags = cv2.IMREAD_GRAYSCALE if is_gray else cv2.IMREAD_COLOR_BGR
        flags |= 0 if header.dtype == np.uint8 else cv2.IMREAD_ANYDEPTH
    image = _imdecode(cv2, data, flags | cv2.IMREAD_IGNORE_ORIENTATION)
    if image is None or image.dtype != header.dtype:
        return None
    if image.ndim == 2:
        return image[:, :, None]
    if output_type == DALIImageType.GRAY and header.format == "tiff":
        return gray(image[:, :, ::-1], by_opencv=True)
    if channels == 2:
        return np.ascontiguousarray(image[:, :, 2:])  # gray came three times
    if output_type == DALIImageType.BGR:
        return image
    try:
        return cv2.cvtColor(image, cv2.COLOR_BGRA2RGBA if image.shape[2] == 4 else cv2.COLOR_BGR2RGB)
    except cv2.error:  # out of memory
        return None


def gray(rgb: np.ndarray, by_opencv: bool = False, unused: int = 0, rounded: bool = True) -> np.ndarray:
    """Gray of a colour TIFF as nvImageCodec has it: in 32-bit floats, rounded half up; of those that it leaves to OpenCV
    (turned ones, planes, CMYK, YCbCr, numbers that leave their lowest bits `unused`) in whole numbers of 14 bits. Of JPEGs
    it is not `rounded`."""
    if by_opencv and rgb.dtype in (np.uint8, np.uint16):
        mixed = (rgb >> rgb.dtype.type(unused)) @ np.array([4899, 9617, 1868], np.int32)
        return ((mixed + 8192 >> 14) << unused).astype(rgb.dtype)[:, :, None]
    red, green, blue = (rgb[:, :, c].astype(np.float32) for c in range(3))
    mixed = red * np.float32(0.299) + green * np.float32(0.587) + blue * np.float32(0.114)
    if rounded and rgb.dtype.kind != "f":
        mixed += np.float32(0.5)
    return mixed.astype(rgb.dtype)[:, :, None]


_quiet = threading.Lock()
_decoding: list[int] = []  # the user's log level, once for each thread that is decoding


def _imdecode(cv2: Any, data: np.ndarray, flags: int) -> Any:
    """`cv2.imdecode` that does not write to stderr about damaged files: the caller gets an error for those."""
    with _quiet:
        _decoding.append(_decoding[-1] if _decoding else cv2.utils.logging.getLogLevel())
        cv2.utils.logging.setLogLevel(0)
    try:
        return cv2.imdecode(data, flags)
    except cv2.error:
        return None
    finally:
        with _quiet:
            level = _decoding.pop()
            if not _decoding:
                cv2.utils.logging.setLogLevel(level)


def by_pillow(data: np.ndarray, header: Header, output_type: DALIImageType) -> np.ndarray | None:
    """The picture as stored, by Pillow, which refuses what is incomplete."""
    if _pillow() is None or header.format not in _PLUGINS:
        return None
    try:
        with _opened(data, header.format) as image:
            if header.format != "tiff":
                return _pillow_pixels(image, header, output_type)
            size = getattr(image, "_tile_size", None)
            if size is not None:  # else Pillow would, and compare with its limit of pixels first
                image.im = _pillow().core.new(image.mode, size)
            pixels = _tiff_pixels(image, header, output_type)
            # turned upright already: turn it back
            return upright(pixels, {6: 8, 8: 6}.get(header.orientation, header.orientation))
    except MemoryError:
        raise
    except Exception as error:  # OSError, SyntaxError, ValueError, struct.error, ...: a broken file
        raise_signalled(error)
        return None


_COLOUR_MAP = 320


def _tiff_pixels(image: Any, header: Header, output_type: DALIImageType) -> np.ndarray:
    if image.mode == "P":
        colours = np.array(image.tag_v2[_COLOUR_MAP], np.uint16).reshape(3, -1).T
        rgb = colours[np.asarray(image)]
    elif image.mode == "CMYK":
        inks = 255 - np.asarray(image).astype(np.uint16)
        rgb = (inks[:, :, :3] * inks[:, :, 3:] // 255).astype(np.uint8)
        if output_type == DALIImageType.ANY_DATA:
            return np.concatenate((rgb, np.full_like(rgb[:, :, :1], 255)), axis=2)
    elif image.mode == "F":
        return _spread(np.asarray(image)[:, :, None], output_type)
    elif header.channels < 3 or output_type == DALIImageType.ANY_DATA:
        return _pillow_pixels(image, header, output_type)
    else:
        rgb = np.asarray(image.convert("RGB"))
    if output_type == DALIImageType.GRAY:
        return gray(rgb, header.orientation != 1 or image.mode == "CMYK")
    return rgb[:, :, ::-1] if output_type == DALIImageType.BGR else rgb


def _spread(gray: np.ndarray, output_type: DALIImageType) -> np.ndarray:
    """Gray as it is, or three times where colours are asked for."""
    return gray if output_type in (DALIImageType.GRAY, DALIImageType.ANY_DATA) else np.repeat(gray, 3, axis=2)


def _pillow_pixels(image: Any, header: Header, output_type: DALIImageType) -> np.ndarray:
    if image.mode.startswith("I"):
        return _spread(np.asarray(image).astype(np.uint16)[:, :, None], output_type)
    if output_type == DALIImageType.ANY_DATA:
        mode = {1: "L", 2: "LA", 4: "RGBA"}.get(header.channels, "RGB")
    else:
        mode = "L" if output_type == DALIImageType.GRAY else "RGB"
    pixels = np.asarray(image.convert(mode))
    if pixels.ndim == 2:
        return pixels[:, :, None]
    return pixels[:, :, ::-1] if output_type == DALIImageType.BGR else pixels
