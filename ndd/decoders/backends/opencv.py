"""PNG, animated WebP, PNM, JPEG 2000 and CIELAB TIFF by OpenCV, and JPEG where nvImageCodec is missing."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ndd._cpu.opencv import opencv
from ndd.decoders.backend import Options, Window
from ndd.decoders.headers import tiff
from ndd.decoders.headers.header import Header
from ndd.decoders.pixels import cut, gray_as, to_gray
from ndd.types import DALIImageType


def decode(data: np.ndarray, header: Header, options: Options, window: Window | None) -> np.ndarray | None:
    """The backend. It decodes whole pictures."""
    cv2 = opencv()
    if cv2 is None:
        return None
    if header.format == "jpeg" and b"\xff\xd9" not in data[-64:].tobytes():
        return None  # OpenCV paints over what is missing, where DALI refuses the file
    if header.format == "tiff":
        lab = tiff.unturned_lab(data)
        if lab is None:
            return None  # OpenCV multiplies colours by alpha, and leaves memory unwritten where planes should be
        data = lab
    image = _decoded(cv2, data, header, options.output_type)
    return None if image is None else cut(image, window)


def _decoded(cv2: Any, data: np.ndarray, header: Header, output_type: DALIImageType) -> np.ndarray | None:
    if header.format == "jpeg2000" and header.channels == 1 and output_type != DALIImageType.ANY_DATA:
        # A codestream without boxes is decoded only as gray.
        plain = _decoded(cv2, data, header, DALIImageType.ANY_DATA)
        return None if plain is None else gray_as(plain, output_type)
    channels = header.out_channels(output_type)
    if channels == 2 and header.format != "png":
        return None  # OpenCV has no gray with alpha
    if channels in (2, 4):
        flags = cv2.IMREAD_UNCHANGED
    else:
        is_gray = channels == 1 and header.format != "tiff"
        colour = cv2.IMREAD_COLOR_BGR if output_type == DALIImageType.BGR else cv2.IMREAD_COLOR_RGB
        flags = cv2.IMREAD_GRAYSCALE if is_gray else colour
        flags |= 0 if header.dtype == np.uint8 else cv2.IMREAD_ANYDEPTH
    image = _imdecode(cv2, data, flags | cv2.IMREAD_IGNORE_ORIENTATION)
    if image is None or image.dtype != header.dtype:
        return None
    if image.ndim == 2:
        return image[:, :, None]
    if output_type == DALIImageType.GRAY and header.format == "tiff":
        return to_gray(image, by_opencv=True)
    if channels == 2:
        return np.ascontiguousarray(image[:, :, 2:])  # OpenCV gives gray three times, then alpha
    if channels == 3:
        return image
    try:
        return cv2.cvtColor(image, cv2.COLOR_BGRA2RGBA)
    except cv2.error:  # out of memory
        return None


_quiet = threading.Lock()
_decoding: list[int] = []  # the user's log level, once for each thread that is decoding


def _imdecode(cv2: Any, data: np.ndarray, flags: int) -> Any:
    """`cv2.imdecode` without its messages on stderr about damaged files: the caller gets an error for them."""
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
