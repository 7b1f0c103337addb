"""Decoding without nvImageCodec (macOS has none): simplejpeg if installed, else OpenCV, else Pillow. The only importer
of simplejpeg and Pillow in this room.

All three stand on libjpeg-turbo and give the pixels of DALI for JPEG; simplejpeg is the fastest (5 to 11 % over
nvImageCodec on one core), so it is used beside nvImageCodec too. OpenCV paints over what is missing from a truncated
JPEG, where DALI refuses: it only gets files that have their end.
"""

from __future__ import annotations

import functools
import io
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from ndd._cpu.opencv import opencv
from ndd._tensor.memory import host_empty
from ndd.decoders import _orientation
from ndd.decoders._header import Header, jpeg
from ndd.decoders._pixels import upright
from ndd.types import DALIImageType

if TYPE_CHECKING:
    from ndd.decoders._sample import Options

Window = tuple[int, int, int, int]

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


def is_foreign(data: np.ndarray) -> bool:
    """Whether this is a format that nvImageCodec does not know and Pillow does: GIF (its first frame) and AVIF."""
    head = data[:12].tobytes()
    return head[:6] in (b"GIF87a", b"GIF89a") or head[4:12] in (b"ftypavif", b"ftypavis")


def read_header(data: np.ndarray) -> Header:
    """The header by Pillow; RuntimeError if it cannot be read."""
    found = jpeg(data.data)
    if found is not None:
        return found
    orientation = _orientation.of_image(data.data)
    with _opened(data) as image:
        width, height = image.size
        channels, dtype = _MODES.get(image.mode, (3, np.uint8))
        if image.format == "TIFF":
            if _orientation.swaps_axes(orientation):  # Pillow turns TIFF, and nothing else, upright by itself
                width, height = height, width
            if max(image.tag_v2.get(_BITS_PER_SAMPLE, (8,))) > 8:
                dtype = np.uint16
    return Header(height, width, channels, orientation, dtype)


_BITS_PER_SAMPLE = 258
_MODES: dict[str, tuple[int, Any]] = {
    "1": (1, np.uint8), "L": (1, np.uint8), "LA": (2, np.uint8), "RGB": (3, np.uint8), "RGBA": (4, np.uint8),
    "CMYK": (4, np.uint8), "I;16": (1, np.uint16), "I;16B": (1, np.uint16), "I": (1, np.uint16),
}  # fmt: skip


def _opened(data: np.ndarray) -> Any:
    library = _pillow()
    if library is None:
        raise RuntimeError(f"{_NOT_OURS}. {_INSTALL}")
    try:
        return library.open(io.BytesIO(data.data))
    except library.DecompressionBombError as error:
        raise RuntimeError(str(error)) from None
    except MemoryError:
        raise
    except Exception as error:  # Pillow's format plugins raise what they like on broken files
        raise RuntimeError(f"{_NOT_OURS} ({error or type(error).__name__})") from None


def decode(data: np.ndarray, header: Header, options: Options, window: Window | None) -> np.ndarray | None:
    """The picture (or the window of it) as HWC, or None if it cannot be decoded. YCbCr comes back as RGB."""
    image: np.ndarray | None = None
    if header.plain_jpeg:
        image = decode_plain_jpeg(data, header, options)
    for attempt in (_by_opencv, by_pillow):
        if image is None:
            image = attempt(data, header, options.output_type)
    return None if image is None else arranged(image, header, options, window)


def arranged(image: np.ndarray, header: Header, options: Options, window: Window | None) -> np.ndarray:
    """A picture as stored in its file, turned upright if that is asked for, and cut; C-contiguous."""
    image = upright(image, header.orientation if options.adjust_orientation else 1)
    if window is not None:
        y0, x0, y1, x1 = window
        image = image[y0:y1, x0:x1]
    return np.ascontiguousarray(image)


def _by_opencv(data: np.ndarray, header: Header, output_type: DALIImageType) -> np.ndarray | None:
    cv2 = opencv()
    is_jpeg = data[:2].tobytes() == b"\xff\xd8"
    if cv2 is None or is_foreign(data) or (is_jpeg and b"\xff\xd9" not in data[-64:].tobytes()):
        return None
    if data[:2].tobytes() in (b"II", b"MM") and header.dtype == np.uint8:
        return None  # TIFF: it turns some upright unasked, and multiplies colours by alpha; it has 16 bits, though
    if header.channels == 2 and output_type == DALIImageType.ANY_DATA:
        return None  # it knows no gray with alpha
    if output_type == DALIImageType.ANY_DATA:
        flags = cv2.IMREAD_UNCHANGED
    else:
        flags = cv2.IMREAD_GRAYSCALE if output_type == DALIImageType.GRAY else cv2.IMREAD_COLOR_BGR
        flags |= cv2.IMREAD_ANYDEPTH
    image = _imdecode(cv2, data, flags | cv2.IMREAD_IGNORE_ORIENTATION)
    if image is None or image.dtype not in (np.uint8, np.uint16):
        return None
    if image.ndim == 2:
        return image[:, :, None]
    if output_type == DALIImageType.ANY_DATA and header.channels == 3:
        image = image[:, :, :3]  # a palette with transparency counts as RGB
    if output_type == DALIImageType.BGR:
        return image
    try:
        return cv2.cvtColor(image, cv2.COLOR_BGRA2RGBA if image.shape[2] == 4 else cv2.COLOR_BGR2RGB)
    except cv2.error:  # out of memory
        return None


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
    if _pillow() is None:
        return None
    try:
        with _opened(data) as image:
            pixels = _pillow_pixels(image, header, output_type)
            if image.format == "TIFF":  # turned upright already: turn it back
                pixels = upright(pixels, {6: 8, 8: 6}.get(header.orientation, header.orientation))
            return pixels
    except MemoryError:
        raise
    except Exception:  # OSError, SyntaxError, ValueError, struct.error, ...: a broken file, whatever it is called
        return None


def _pillow_pixels(image: Any, header: Header, output_type: DALIImageType) -> np.ndarray:
    if image.mode.startswith("I"):
        gray = np.asarray(image).astype(np.uint16)[:, :, None]
        alone = output_type in (DALIImageType.GRAY, DALIImageType.ANY_DATA)
        return gray if alone else np.repeat(gray, 3, axis=2)
    if output_type == DALIImageType.ANY_DATA:
        mode = {1: "L", 2: "LA", 4: "RGBA"}.get(header.channels, "RGB")
    else:
        mode = "L" if output_type == DALIImageType.GRAY else "RGB"
    pixels = np.asarray(image.convert(mode))
    if pixels.ndim == 2:
        return pixels[:, :, None]
    return pixels[:, :, ::-1] if output_type == DALIImageType.BGR else pixels
