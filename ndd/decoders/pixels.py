"""Converts the pixels of a backend to the requested form: channels, gray, element type, YCbCr, orientation, window."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ndd._cpu.opencv import opencv
from ndd.decoders.backend import Window
from ndd.decoders.headers.orientation import BACKWARDS, UPSIDE_DOWN, swaps_axes
from ndd.types import DALIImageType

# BT.601, studio swing: Y in 16..235, Cb and Cr in 16..240, for RGB in 0..255.
_GRAY = np.array([0.299, 0.587, 0.114])
_TO_YCBCR = np.array(
    [219 / 255 * _GRAY, 224 / 255 * ([0, 0, 1] - _GRAY) / 1.772, 224 / 255 * ([1, 0, 0] - _GRAY) / 1.402], np.float32
)
_OFFSET = np.array([0.0625, 0.5, 0.5], np.float32)  # as a share of the number of levels: 16, 128, 128 for u8

_LARGEST_PIXEL = 32  # bytes, for OpenCV

SUPPORTED = ("u8", "i8", "u16", "i16", "u32", "i32", "f32")
"""Element types of the result."""


def cut(image: np.ndarray, window: Window | None) -> np.ndarray:
    """The window of a picture, C-contiguous."""
    y0, x0, y1, x1 = window or (0, 0, *image.shape[:2])
    return np.ascontiguousarray(image[y0:y1, x0:x1])


def channels_as(image: np.ndarray, output_type: DALIImageType, by_opencv: bool = False, unused: int = 0) -> np.ndarray:
    """The channels of an output type, HWC. The first three of three or more channels are red, green and blue; the first of one
    or two is gray, whatever the file says about the others. `by_opencv` and `unused`: see `to_gray`."""
    if output_type == DALIImageType.ANY_DATA:
        return image
    if image.shape[2] < 3:
        return gray_as(image[:, :, :1], output_type)
    rgb = image[:, :, :3]
    if output_type == DALIImageType.GRAY:
        return to_gray(rgb, by_opencv, unused)
    return rgb[:, :, ::-1] if output_type == DALIImageType.BGR else rgb


def gray_as(gray: np.ndarray, output_type: DALIImageType) -> np.ndarray:
    """Gray itself, or three copies of it if the output type has colours."""
    if output_type in (DALIImageType.GRAY, DALIImageType.ANY_DATA):
        return gray
    colours = np.empty((*gray.shape[:2], 3), gray.dtype)
    for channel in range(3):  # a third of the time of np.repeat
        colours[:, :, channel] = gray[:, :, 0]
    return colours


def to_gray(rgb: np.ndarray, by_opencv: bool = False, unused: int = 0, rounded: bool = True) -> np.ndarray:
    """Converts colours to gray, with DALI's rounding.

    nvImageCodec computes gray in 32-bit floats, rounded half up; for JPEGs it is not `rounded`. Files that it leaves to OpenCV
    (turned ones, planes, CMYK, YCbCr, numbers with `unused` lowest bits) are computed in 14-bit integers.
    """
    if by_opencv and rgb.dtype in (np.uint8, np.uint16):
        mixed = (rgb >> rgb.dtype.type(unused)) @ np.array([4899, 9617, 1868], np.int32)
        return ((mixed + 8192 >> 14) << unused).astype(rgb.dtype)[:, :, None]
    red, green, blue = (rgb[:, :, c].astype(np.float32) for c in range(3))
    mixed = red * np.float32(0.299) + green * np.float32(0.587) + blue * np.float32(0.114)
    if rounded and rgb.dtype.kind != "f":
        mixed += np.float32(0.5)
    return mixed.astype(rgb.dtype)[:, :, None]


def largest(dtype: Any) -> float:
    """Full brightness in an element type: the largest integer, or 1."""
    dtype = np.dtype(dtype)
    return 1.0 if dtype.kind == "f" else float(np.iinfo(dtype).max)


def scale(dtype: Any, source: Any) -> float:
    """The factor from full brightness of `source` to that of `dtype`: a 32-bit number, rounded twice as in DALI."""
    return float(np.float32(largest(dtype)) * (np.float32(1) / np.float32(largest(source))))


def convert(image: np.ndarray, dtype: Any, ycbcr: bool = False) -> np.ndarray:
    """An image (u8, u16) in another element type: full brightness stays full brightness. `ycbcr` also converts the colours.

    As in DALI it is computed in 32-bit floats, v * (max_out * (1 / max_in)); integers are rounded half up and saturated.
    """
    dtype = np.dtype(dtype)
    if ycbcr:
        return _ycbcr(image, dtype)
    if image.dtype == dtype:
        return image
    return _rounded(image.astype(np.float32), scale(dtype, image.dtype), None, dtype)


def _rounded(values: np.ndarray, scale: float, offset: Any, dtype: np.dtype) -> np.ndarray:
    values *= np.float32(scale)
    if offset is not None:
        values += offset
    if dtype.kind == "f":
        return values.astype(dtype, copy=False)
    limits = np.iinfo(dtype)
    if limits.bits == 32:  # float32 cannot add a half above 2^23
        values = values.astype(np.float64)
    values += np.float32(0.5)
    np.floor(values, out=values)
    return np.clip(values, limits.min, limits.max, out=values).astype(dtype)


def ycbcr_matrix() -> tuple[np.ndarray, np.ndarray]:
    """float32 `M` and `o` with YCbCr = RGB @ M + o * levels, where `levels` is 1 for floats, else 256, 65536, ..."""
    return np.ascontiguousarray(_TO_YCBCR.T), _OFFSET


def _ycbcr(image: np.ndarray, dtype: np.dtype) -> np.ndarray:
    red, green, blue = image.reshape(-1, 3).T.astype(np.float32)
    mixed = np.empty((len(red), 3), np.float32)
    for channel, (of_red, of_green, of_blue) in enumerate(_TO_YCBCR):
        # In this order: the last bit decides ties.
        mixed[:, channel] = of_red * red + of_green * green + of_blue * blue
    levels = 1 if dtype.kind == "f" else largest(dtype) + 1
    offset = _OFFSET * np.float32(levels)
    return _rounded(mixed, largest(dtype) / largest(image.dtype), offset, dtype).reshape(image.shape)


def as_stored(window: Window, size: tuple[int, int], orientation: int) -> Window:
    """The same window in the picture as stored; `size` is the (height, width) of the upright picture."""
    (y0, x0, y1, x1), (height, width) = window, size
    if orientation in UPSIDE_DOWN:
        y0, y1 = height - y1, height - y0
    if orientation in BACKWARDS:
        x0, x1 = width - x1, width - x0
    return (x0, y0, x1, y1) if swaps_axes(orientation) else (y0, x0, y1, x1)


def upright(image: np.ndarray, orientation: int) -> np.ndarray:
    """The picture turned and mirrored by its EXIF orientation, 1 to 8; C-contiguous."""
    if orientation == 1:
        return image
    turned = _upright_by_opencv(image, orientation)
    if turned is not None:
        return turned
    if swaps_axes(orientation):
        image = image.swapaxes(0, 1)
    rows = -1 if orientation in UPSIDE_DOWN else 1
    columns = -1 if orientation in BACKWARDS else 1
    return np.ascontiguousarray(image[::rows, ::columns])


def _upright_by_opencv(image: np.ndarray, orientation: int) -> np.ndarray | None:
    """The same in half of NumPy's time or less; None where OpenCV is missing, cannot turn such pixels, or memory is short."""
    cv2, height, width = opencv(), *image.shape[:2]
    pixel = image.itemsize * math.prod(image.shape[2:])
    if cv2 is None or not 0 < pixel <= _LARGEST_PIXEL:
        return None
    turned = np.ascontiguousarray(image).view(np.uint8).reshape(height, width, pixel)
    try:
        if swaps_axes(orientation):
            turned = cv2.transpose(turned)
            height, width = width, height
        upside_down, backwards = orientation in UPSIDE_DOWN, orientation in BACKWARDS
        if upside_down or backwards:
            turned = cv2.flip(turned, -1 if upside_down and backwards else int(backwards))
    except cv2.error:
        return None
    return turned.reshape(-1).view(image.dtype).reshape(height, width, *image.shape[2:])
