"""BMP: every header from OS/2's to V5, 1 to 32 bits, palettes, masks and run lengths. Header and decoder.

It follows the file: masks may lie anywhere, five bits of white are 255, and pixels beyond the end of a row of run lengths are
dropped. OpenCV, and so DALI, shifts five bits (248), mistakes some masks for others and lets long rows spill over.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from ndd.decoders.backend import Options, Window
from ndd.decoders.formats.bmp_runs import unpack_runs
from ndd.decoders.formats.header import Header
from ndd.decoders.pixels import channels_as, cut

_FILE_BYTES = 14
_OS2, _INFO, _OS2_V2, _LARGEST = 12, 40, 64, 124  # headers, by their length
_RGB, _RLE8, _RLE4, _BITFIELDS, _ALPHA_BITFIELDS = 0, 1, 2, 3, 6
_BITS_OF = {
    _RGB: (1, 2, 4, 8, 16, 24, 32), _RLE8: (8,), _RLE4: (4,), _BITFIELDS: (16, 32), _ALPHA_BITFIELDS: (16, 32),
}  # fmt: skip
_USUAL_MASKS = {16: (0x7C00, 0x3E0, 0x1F), 24: (0xFF0000, 0xFF00, 0xFF), 32: (0xFF0000, 0xFF00, 0xFF, 0xFF000000)}
_MASKS_AT = _FILE_BYTES + 40


class _Layout(NamedTuple):
    """How the pixels lie in the file. `palette`: u8 `[N, 3]`, RGB; `masks`: of red, green, blue and maybe alpha."""

    height: int
    width: int
    top_down: bool
    bits: int
    compression: int
    masks: tuple[int, ...]
    palette: np.ndarray
    start: int

    @property
    def is_gray(self) -> bool:
        """Whether the file has a palette of grays."""
        return len(self.palette) > 0 and bool((self.palette == self.palette[:, :1]).all())


def read_header(data: memoryview) -> Header | None:
    """The header. A picture whose palette holds only grays is gray."""
    layout = _layout(data)
    if layout is None:
        return None
    channels = 1 if layout.is_gray else 4 if layout.bits == 32 else max(3, len(layout.masks))
    return Header(layout.height, layout.width, channels)


def _layout(data: memoryview) -> _Layout | None:
    start, size = struct.unpack_from("<I4xI", data, 10)[0], struct.unpack_from("<I", data, _FILE_BYTES)[0]
    compression, colours, entry, end = _RGB, 0, 4, _FILE_BYTES + size
    if size == _OS2:
        width, height, planes, bits = struct.unpack_from("<HHHH", data, 18)
        entry = 3
    elif _INFO <= size <= _LARGEST:
        width, height, planes, bits, compression = struct.unpack_from("<iiHHI", data, 18)
        (colours,) = struct.unpack_from("<I", data, 46)
    else:
        return None
    if bits not in _BITS_OF.get(compression, ()) or planes > 1 or width < 0:
        return None
    masks = _USUAL_MASKS.get(bits, ())
    if compression in (_BITFIELDS, _ALPHA_BITFIELDS):
        if size == _OS2_V2:  # this number means fax compression there
            return None
        count = 4 if size > 52 or compression == _ALPHA_BITFIELDS else 3
        masks = struct.unpack_from(f"<{count}I", data, _MASKS_AT)
        masks = masks if masks[-1] else masks[:3]  # no alpha
        end = max(end, _MASKS_AT + 4 * count)
        if not all(_is_run(mask) for mask in masks):
            return None
    table = np.empty((0, 3), np.uint8)
    if bits <= 8:
        count = min(colours or 1 << bits, 1 << bits)
        stored = data[end : end + count * entry] if start <= end else data[end : min(end + count * entry, start)]
        whole = np.frombuffer(stored[: len(stored) // entry * entry], np.uint8).reshape(-1, entry)
        table, end = whole[:, 2::-1], end + len(whole) * entry
    return _Layout(abs(height), width, height < 0, bits, compression, masks, table, max(start, end))


def _is_run(mask: int) -> bool:
    """Whether the bits of a mask are adjacent."""
    low = mask & -mask
    return mask & (mask + low) == 0


def decode(data: np.ndarray, header: Header, options: Options, window: Window | None) -> np.ndarray | None:
    """The backend: None for a file that is cut off."""
    image = _colours(data)
    if image is None:
        return None
    return cut(channels_as(image, options.output_type, by_opencv=True), window)


def _colours(data: np.ndarray) -> np.ndarray | None:
    """Height x width x gray, RGB or RGBA."""
    layout = _layout(data.data)
    if layout is None:
        return None
    rows = _runs(data, layout) if layout.compression in (_RLE8, _RLE4) else _rows(data, layout)
    if rows is None:
        return None
    rows = rows if layout.top_down else rows[::-1]
    if layout.bits <= 8:
        colours = np.zeros((256, 1 if layout.is_gray else 3), np.uint8)  # colours beyond the palette are black
        colours[: len(layout.palette)] = layout.palette[:, : colours.shape[1]]
        return colours[_indices(rows, layout)]
    return _masked(rows, layout)


def _rows(data: np.ndarray, layout: _Layout) -> np.ndarray | None:
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


def _runs(data: np.ndarray, layout: _Layout) -> np.ndarray | None:
    """The palette index of each pixel. In a file that ends none of its rows, a row begins where the one before is full."""
    stored, shape = np.ascontiguousarray(data[layout.start :]), (layout.height, layout.width)
    out = np.zeros(shape, np.uint8)
    ended, is_whole = unpack_runs(stored, layout.bits, False, out)
    if not ended:
        out = np.zeros(shape, np.uint8)
        _, is_whole = unpack_runs(stored, layout.bits, True, out)
    return out if is_whole else None


def _indices(rows: np.ndarray, layout: _Layout) -> np.ndarray:
    """The palette index of each pixel."""
    if layout.bits == 8 or layout.compression != _RGB:
        return rows
    shifts = np.arange(8 - layout.bits, -1, -layout.bits, dtype=np.uint8)
    split = rows[:, :, None] >> shifts & ((1 << layout.bits) - 1)
    return split.reshape(len(rows), -1)[:, : layout.width]


def _masked(rows: np.ndarray, layout: _Layout) -> np.ndarray:
    """The channels under the masks, scaled so that full brightness is 255, rounded down. 32 bits without a mask for alpha are
    opaque."""
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
