"""Converts the numbers of a TIFF to colours: palettes, CMYK, YCbCr, and numbers that do not fill their bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._compiled.jit import kernel
from ndd._tensor.memory import host_empty
from ndd.decoders.backends.palette import colours_at
from ndd.decoders.headers.tiff_directory import BLACK_AND_WHITE, CMYK, COLOUR_MAP, LUMA, PALETTE, WHITE_IS_ZERO, YCBCR

_SHIFT, _HALF = 16, 1 << 15  # libtiff computes in whole numbers
_FARTHEST = 128 * 32  # the largest distance from black


def shown(
    values: np.ndarray, colours: int, bits: int, tags: dict[int, tuple[Any, ...]], with_alpha: bool
) -> np.ndarray:
    """The colours of the numbers; of CMYK `with_alpha` or without. As in DALI, fewer than 8 bits are scaled to 8, and 9 to 15
    bits are shifted to 16. "White is zero" files of more than 8 bits are not inverted."""
    if colours == PALETTE:
        table = np.array(tags[COLOUR_MAP], np.uint16).reshape(3, 1 << bits)
        return colours_at(values[:, :, 0], np.ascontiguousarray(table.T))
    if colours == CMYK:
        return _of_inks(values, 4 if with_alpha else 3)
    if colours == YCBCR:
        return _of_ycbcr(values, tags)
    if bits < 8:
        values = (values.astype(np.uint16) * 255 // ((1 << bits) - 1)).astype(np.uint8)
    elif 8 < bits < 16:
        values = values << np.uint16(16 - bits)
    return ~values if colours == WHITE_IS_ZERO and values.dtype == np.uint8 else values


def _of_inks(inks: np.ndarray, channels: int) -> np.ndarray:
    """RGB, or opaque RGBA."""
    colours = host_empty((*inks.shape[:2], channels), inks.dtype)
    _mix(np.ascontiguousarray(inks), colours)
    return colours


@kernel(light=True)
def mixed(colour, black, bits):
    """The product of two shares of full brightness, u32, as such a share of `bits` bits: product // full."""
    product = colour * black + np.uint32(1)
    return (product + (product >> bits)) >> bits


@kernel
def _mix(inks, colours):
    height, width, channels = colours.shape
    bits = np.uint32(8 * inks.itemsize)
    full = (np.uint32(1) << bits) - np.uint32(1)
    for y in range(height):
        row, target = inks[y], colours[y]
        for x in range(width):
            black = full - np.uint32(row[x, 3])
            for c in range(3):
                target[x, c] = mixed(full - np.uint32(row[x, c]), black, bits)
        if channels == 4:
            for x in range(width):
                target[x, 3] = full


@_mix.fallback
def _(inks, colours):
    full, wide = np.iinfo(inks.dtype).max, np.uint16 if inks.dtype == np.uint8 else np.uint32
    black = full - inks[:, :, 3].astype(wide)
    colours[:, :, 3:] = full
    for channel in range(3):
        colours[:, :, channel] = (full - inks[:, :, channel].astype(wide)) * black // full


def spread(rows: np.ndarray, unit: tuple[int, int], high: int, columns: int) -> np.ndarray:
    """Y, Cb and Cr of each pixel from rows of units: a unit has the Y of some columns and rows, then their common Cb and Cr."""
    across, down = unit
    units = rows.reshape(len(rows), -1, across * down + 2)
    luma = units[:, :, :-2].reshape(*units.shape[:2], down, across).transpose(0, 2, 1, 3)
    chroma = units[:, :, -2:].repeat(down, axis=0).repeat(across, axis=1)
    return np.concatenate((luma.reshape(*chroma.shape[:2], 1), chroma), axis=2)[:high, :columns]


def _of_ycbcr(values: np.ndarray, tags: dict[int, tuple[Any, ...]]) -> np.ndarray:
    """RGB by libtiff's rule: a table for each number, from the weights of the colours in Y and the levels of black and white."""
    red, green, blue = tags.get(LUMA, (0.299, 0.587, 0.114))[:3]
    ends = (*tags.get(BLACK_AND_WHITE, ()), *(0, 255, 128, 255, 128, 255)[len(tags.get(BLACK_AND_WHITE, ())) :])
    if not green:
        raise ValueError("green has no weight in Y")
    luma = _scaled(ends[0], ends[1], 0, 255)
    of_blue, of_red = (_scaled(ends[k] - 128, ends[k + 1] - 128, -128, 127) for k in (2, 4))
    to_red, to_blue = 2 - 2 * red, 2 - 2 * blue
    shares = [_fixed(v) for v in (to_red, red * to_red / green, to_blue, blue * to_blue / green)]
    y, cb, cr = (table[values[:, :, k]] for k, table in enumerate((luma, of_blue, of_red)))
    mixed = (
        y + (shares[0] * cr + _HALF >> _SHIFT),
        y + (-shares[1] * cr - shares[3] * cb + _HALF >> _SHIFT),
        y + (shares[2] * cb + _HALF >> _SHIFT),
    )
    return np.stack([np.clip(m, 0, 255).astype(np.uint8) for m in mixed], axis=2)


def _fixed(share: float) -> int:
    return int(min(max(np.float32(share), 0), 2) * (1 << _SHIFT) + 0.5)


def _scaled(black: float, white: float, first: int, full: int) -> np.ndarray:
    """The value of each byte, from 0 for black to `full` for white."""
    span = np.float32(white) - np.float32(black)
    numbers = (np.arange(first, first + 256) - int(black)) * np.float32(full) / (span or np.float32(1))
    return np.clip(numbers, -_FARTHEST, _FARTHEST).astype(np.int64)
