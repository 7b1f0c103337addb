"""The colours of video: the matrix and range of a stream's Y, U and V, and frames to RGB."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ndd.decoders.video.yuv import rgb_of_420

PLANAR = {"yuv420p": 8, "yuvj420p": 8, "yuv420p10le": 10, "yuv420p12le": 12}  # formats of 4:2:0, and their bits
# swscale: bilinear chroma (2), full chroma in the output (0x2000), accurate rounding (0x40000)
_EXACT = 0x42002

# The weights of red and blue in Y, by the number of a matrix in H.273. As in DALI, BT.601 stands for 2, "unspecified".
_WEIGHTS = {1: (0.2126, 0.0722), 4: (0.30, 0.11), 7: (0.212, 0.087), 9: (0.2627, 0.0593), 10: (0.2627, 0.0593)}
_BT601 = (0.299, 0.114)
_SWS_MATRICES = {1: 1, 4: 4, 7: 7, 9: 9, 10: 9}  # by the same numbers; BT.601 is 5
FULL_RANGE = 2


@cache
def factors(matrix: int, full_range: bool, bits: int = 8) -> np.ndarray:
    """The factors for `rgb_of_420`: Y, U and V to R, G and B (ITU-T H.273, section 8.3). f32 `[7]`.

    >>> print(factors(2, False)[:2].round(2))
    [-18.13   1.16]
    """
    kr, kb = _WEIGHTS.get(matrix, _BT601)
    kg = 1 - kr - kb
    unit = 1 << bits - 8  # one level of 8 bits
    most = 255 * unit / (256 * unit - 1)  # the largest number of 10 bits is 1023, not 4 * 255
    low, luma, chroma = (0, most, most) if full_range else (16, 255 / 219, 255 / 224)
    rv, bu = 2 * (1 - kr) * chroma, 2 * (1 - kb) * chroma
    gu, gv = -bu * kb / kg, -rv * kr / kg
    slopes = np.array([luma, rv / 16, gu / 16, gv / 16, bu / 16]) / unit
    return np.array([0.5 - low * luma, *slopes, 512 * unit], np.float32)


def write_rgb(frame: Any, out: np.ndarray, turns: int = 0) -> None:
    """Writes a decoded frame to `out`, u8 RGB `[height, width, 3]`, after `turns` counterclockwise quarter turns. Raises
    RuntimeError for a frame of another size, which some streams contain."""
    upright = _upright(frame, out, turns)
    bits = PLANAR.get(frame.format.name)
    if bits is not None:
        y, u, v = _planes(frame, bits)
        full = frame.color_range == FULL_RANGE or frame.format.name == "yuvj420p"
        rgb_of_420(y, u, v, upright, factors(frame.colorspace, full, bits))
    else:  # 4:2:2, 4:4:4, gray, RGB
        matrix = _SWS_MATRICES.get(frame.colorspace, 5)
        upright[...] = frame.to_ndarray(
            format="rgb24", interpolation=_EXACT, src_colorspace=matrix, dst_colorspace=matrix,
            src_color_range=frame.color_range or 1, dst_color_range=FULL_RANGE,
        )  # fmt: skip
    _turn(upright, out, turns)


def write_ycbcr(frame: Any, out: np.ndarray, turns: int = 0) -> None:
    """The same for the stream's Y, Cb and Cr."""
    upright = _upright(frame, out, turns)
    bits, (height, width) = PLANAR.get(frame.format.name), upright.shape[:2]
    planes = (
        _planes(frame.reformat(format="yuv444p", interpolation=_EXACT), 8) if bits is None else _planes(frame, bits)
    )
    for channel, plane in enumerate(planes):
        whole = bits is None or channel == 0
        full = plane if whole else _spread(plane[: (height + 1) // 2, : (width + 1) // 2])
        full = full[:height, :width]
        upright[..., channel] = (
            full if full.dtype == np.uint8 else np.floor(full / (1 << (bits or 8) - 8) + 0.5).clip(0, 255)
        )
    _turn(upright, out, turns)


def _planes(frame: Any, bits: int) -> list[np.ndarray]:
    kind = np.uint8 if bits == 8 else np.uint16
    return [np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size).view(kind) for plane in frame.planes]


def _spread(plane: np.ndarray) -> np.ndarray:
    """Chroma at every pixel, f32: linear between samples in the middle of four pixels, as in `rgb_of_420`."""
    chroma = plane.astype(np.float32)
    for axis in (0, 1):
        wide = np.repeat(chroma, 2, axis)
        beside = np.concatenate([wide.take([0], axis), wide, wide.take([-1], axis)], axis)
        count = wide.shape[axis]
        # The neighbour of an even pixel is the previous sample, that of an odd pixel the next one.
        near = np.stack([beside.take(range(0, count, 2), axis), beside.take(range(3, count + 2, 2), axis)], axis + 1)
        chroma = (3 * wide + near.reshape(wide.shape)) / 4
    return chroma


def _upright(frame: Any, out: np.ndarray, turns: int) -> np.ndarray:
    """Memory for a frame before its rotation: `out` itself without rotation."""
    height, width = (out.shape[1], out.shape[0]) if turns % 2 else (out.shape[0], out.shape[1])
    if (frame.height, frame.width) != (height, width):
        raise RuntimeError(
            f"expected frames of {height}x{width}, the size of the first one, got one of {frame.height}x{frame.width}"
        )
    return np.empty((height, width, 3), np.uint8) if turns else out


def _turn(upright: np.ndarray, out: np.ndarray, turns: int) -> None:
    if turns:
        out[...] = np.rot90(upright, turns)
