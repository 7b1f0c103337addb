"""From the pixels of a file to those that were asked for: element type, YCbCr, orientation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd.decoders.headers.orientation import swaps_axes

# BT.601, studio swing: Y in 16..235, Cb and Cr in 16..240, for RGB in 0..255.
_GRAY = np.array([0.299, 0.587, 0.114])
_TO_YCBCR = np.array(
    [219 / 255 * _GRAY, 224 / 255 * ([0, 0, 1] - _GRAY) / 1.772, 224 / 255 * ([1, 0, 0] - _GRAY) / 1.402], np.float32
)
_OFFSET = np.array([0.0625, 0.5, 0.5], np.float32)  # of the number of levels: 16, 128, 128 for u8

Window = tuple[int, int, int, int]  # y0, x0, y1, x1
_UPSIDE_DOWN, _BACKWARDS = (3, 4, 7, 8), (2, 3, 6, 7)  # orientations whose rows, or columns, run from the end

SUPPORTED = ("u8", "i8", "u16", "i16", "u32", "i32", "f32")


def largest(dtype: Any) -> float:
    """What full brightness is in an element type: the largest integer, or 1."""
    dtype = np.dtype(dtype)
    return 1.0 if dtype.kind == "f" else float(np.iinfo(dtype).max)


def scale(dtype: Any, source: Any) -> float:
    """What brings full brightness of `source` to that of `dtype`: a 32-bit number, rounded twice as in DALI."""
    return float(np.float32(largest(dtype)) * (np.float32(1) / np.float32(largest(source))))


def convert(image: np.ndarray, dtype: Any, ycbcr: bool = False) -> np.ndarray:
    """An image (u8, u16) in another element type, full brightness to full brightness; `ycbcr` also changes the colours.

    In 32-bit floats, as DALI: v * (max_out * (1 / max_in)), rounded half up and saturated for integers.
    """
    dtype = np.dtype(dtype)
    if ycbcr:
        return _ycbcr(image, dtype)
    if image.dtype == dtype:
        return image
    return _stored(image.astype(np.float32), scale(dtype, image.dtype), None, dtype)


def _stored(values: np.ndarray, scale: float, offset: Any, dtype: np.dtype) -> np.ndarray:
    values *= np.float32(scale)
    if offset is not None:
        values += offset
    if dtype.kind == "f":
        return values.astype(dtype, copy=False)
    limits = np.iinfo(dtype)
    if limits.bits == 32:  # above 2^23 a half would be rounded away, or up
        values = values.astype(np.float64)
    values += np.float32(0.5)
    np.floor(values, out=values)
    return np.clip(values, limits.min, limits.max, out=values).astype(dtype)


def ycbcr_matrix() -> tuple[np.ndarray, np.ndarray]:
    """float32 `M`, `o` with YCbCr = RGB @ M + o * levels; `levels` is 1 for floats, else 256, 65536, ..."""
    return np.ascontiguousarray(_TO_YCBCR.T), _OFFSET


def _ycbcr(image: np.ndarray, dtype: np.dtype) -> np.ndarray:
    red, green, blue = image.reshape(-1, 3).T.astype(np.float32)
    mixed = np.empty((len(red), 3), np.float32)
    for channel, (of_red, of_green, of_blue) in enumerate(_TO_YCBCR):  # in this order: the last bit decides on ties
        mixed[:, channel] = of_red * red + of_green * green + of_blue * blue
    levels = 1 if dtype.kind == "f" else largest(dtype) + 1
    offset = _OFFSET * np.float32(levels)
    return _stored(mixed, largest(dtype) / largest(image.dtype), offset, dtype).reshape(image.shape)


def as_stored(window: Window, size: tuple[int, int], orientation: int) -> Window:
    """Where a window of the upright picture, which has this (height, width), lies in the picture as stored."""
    (y0, x0, y1, x1), (height, width) = window, size
    if orientation in _UPSIDE_DOWN:
        y0, y1 = height - y1, height - y0
    if orientation in _BACKWARDS:
        x0, x1 = width - x1, width - x0
    return (x0, y0, x1, y1) if swaps_axes(orientation) else (y0, x0, y1, x1)


def upright(image: np.ndarray, orientation: int) -> np.ndarray:
    """The picture turned and mirrored as its EXIF orientation (1 to 8) says; C-contiguous."""
    if orientation == 1:
        return image
    if swaps_axes(orientation):
        image = image.swapaxes(0, 1)
    rows = -1 if orientation in _UPSIDE_DOWN else 1
    columns = -1 if orientation in _BACKWARDS else 1
    return np.ascontiguousarray(image[::rows, ::columns])
