"""BMP: 1 to 32 bits, palettes, masks and run lengths, with every header from OS/2's to V5.

This backend follows the file: masks may lie anywhere, five bits of white are 255, and pixels beyond the end of a row of run
lengths are dropped. OpenCV, and so DALI, shifts five bits (248), mistakes some masks for others and lets long rows spill over.
"""

from __future__ import annotations

import numpy as np

from ndd.decoders.backend import Options, Window
from ndd.decoders.backends.bmp_runs import unpack_runs
from ndd.decoders.backends.palette import colours_at
from ndd.decoders.headers.bmp import RGB, RLE4, RLE8, Layout, layout_of
from ndd.decoders.headers.header import Header
from ndd.decoders.pixels import channels_as, cut


def decode(data: np.ndarray, header: Header, options: Options, window: Window | None) -> np.ndarray | None:
    """The backend: None for a file that is cut off."""
    image = _colours(data)
    if image is None:
        return None
    return cut(channels_as(image, options.output_type, by_opencv=True), window)


def _colours(data: np.ndarray) -> np.ndarray | None:
    """Height x width x gray, RGB or RGBA."""
    layout = layout_of(data.data)
    if layout is None:
        return None
    rows = _runs(data, layout) if layout.compression in (RLE8, RLE4) else _rows(data, layout)
    if rows is None:
        return None
    rows = rows if layout.top_down else rows[::-1]
    if layout.bits <= 8:
        colours = np.zeros((256, 1 if layout.is_gray else 3), np.uint8)  # colours beyond the palette are black
        colours[: len(layout.palette)] = layout.palette[:, : colours.shape[1]]
        return colours_at(_indices(rows, layout), colours)
    return _masked(rows, layout)


def _rows(data: np.ndarray, layout: Layout) -> np.ndarray | None:
    """The bytes of each row; None if some are missing. The padding of the last row may be missing."""
    used = -(-layout.width * layout.bits // 8)
    stride = -(-used // 4) * 4
    last = (layout.height - 1) * stride
    if layout.height < 1 or used < 1 or last + used > len(data) - layout.start:
        return None
    stored = data[layout.start :]
    return np.lib.stride_tricks.as_strided(
        stored, (layout.height, used), (stride * stored.strides[0], stored.strides[0])
    )


def _runs(data: np.ndarray, layout: Layout) -> np.ndarray | None:
    """The palette index of each pixel. In a file that ends none of its rows, a row begins where the one before is full."""
    stored, shape = np.ascontiguousarray(data[layout.start :]), (layout.height, layout.width)
    out = np.zeros(shape, np.uint8)
    ended, is_whole = unpack_runs(stored, layout.bits, False, out)
    if not ended:
        out = np.zeros(shape, np.uint8)
        _, is_whole = unpack_runs(stored, layout.bits, True, out)
    return out if is_whole else None


def _indices(rows: np.ndarray, layout: Layout) -> np.ndarray:
    """The palette index of each pixel."""
    if layout.bits == 8 or layout.compression != RGB:
        return rows
    shifts = np.arange(8 - layout.bits, -1, -layout.bits, dtype=np.uint8)
    split = rows[:, :, None] >> shifts & ((1 << layout.bits) - 1)
    return split.reshape(len(rows), -1)[:, : layout.width]


def _masked(rows: np.ndarray, layout: Layout) -> np.ndarray:
    """The channels under the masks, scaled so that full brightness is 255, rounded down. Pixels of 32 bits without a mask for
    alpha are opaque."""
    count = 4 if layout.bits == 32 else max(3, len(layout.masks))
    out = np.full((*rows.shape[:1], layout.width, count), 255, np.uint8)
    parts = rows.reshape(len(rows), layout.width, layout.bits // 8)
    words: np.ndarray | None = None
    for channel, mask in enumerate(layout.masks):
        shift = max((mask & -mask).bit_length() - 1, 0)
        full = mask >> shift
        if full == 255 and shift % 8 == 0:
            out[:, :, channel] = parts[:, :, shift // 8]
            continue
        if words is None:
            words = np.ascontiguousarray(parts).view(f"<u{layout.bits // 8}")[:, :, 0].astype(np.uint64)
        out[:, :, channel] = (words >> np.uint64(shift) & np.uint64(full)) * np.uint64(255) // np.uint64(max(full, 1))
    return out
