"""BMP headers, from OS/2's to V5: sizes, palettes and masks."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from ndd.decoders.headers.header import Header

_FILE_BYTES = 14
_OS2, _INFO, _OS2_V2, _LARGEST = 12, 40, 64, 124  # headers, by their length
RGB, RLE8, RLE4, _BITFIELDS, _ALPHA_BITFIELDS = 0, 1, 2, 3, 6
_BITS_OF = {
    RGB: (1, 2, 4, 8, 16, 24, 32), RLE8: (8,), RLE4: (4,), _BITFIELDS: (16, 32), _ALPHA_BITFIELDS: (16, 32),
}  # fmt: skip
_USUAL_MASKS = {16: (0x7C00, 0x3E0, 0x1F), 24: (0xFF0000, 0xFF00, 0xFF), 32: (0xFF0000, 0xFF00, 0xFF, 0xFF000000)}
_MASKS_AT = _FILE_BYTES + 40
_MOST_COLOURS = 256  # that a palette may claim, also one of fewer bits


class Layout(NamedTuple):
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
    layout = layout_of(data)
    if layout is None:
        return None
    channels = 1 if layout.is_gray else 4 if layout.bits == 32 else max(3, len(layout.masks))
    return Header(layout.height, layout.width, channels)


def layout_of(data: memoryview) -> Layout | None:
    """The layout that the header states; None for a header that no backend reads."""
    start, size = struct.unpack_from("<I4xI", data, 10)[0], struct.unpack_from("<I", data, _FILE_BYTES)[0]
    compression, colours, entry, end = RGB, 0, 4, _FILE_BYTES + size
    if size == _OS2:
        width, height, _, bits = struct.unpack_from("<HHHH", data, 18)
        entry = 3
    elif _INFO <= size <= _LARGEST:
        width, height, _, bits, compression = struct.unpack_from("<iiHHI", data, 18)
        (colours,) = struct.unpack_from("<I", data, 46)
    else:
        return None
    if bits not in _BITS_OF.get(compression, ()) or width < 0:
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
        if colours > _MOST_COLOURS:
            return None
        count = min(colours or 1 << bits, 1 << bits)
        stored = data[end : end + count * entry]
        whole = np.frombuffer(stored[: len(stored) // entry * entry], np.uint8).reshape(-1, entry)
        table, end = whole[:, 2::-1], end + len(whole) * entry
    return Layout(abs(height), width, height < 0, bits, compression, masks, table, start or end)


def _is_run(mask: int) -> bool:
    """Whether the bits of a mask are adjacent."""
    low = mask & -mask
    return mask & (mask + low) == 0
