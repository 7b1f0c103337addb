"""The kernel for the TIFFs of a batch whose strips are JPEGs, as `backends/tiff_jpeg.py` decodes them. A loop of its own, because
the kernel for JPEGs takes long to compile."""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import empty, zeros
from ndd._compiled.jit import kernel
from ndd._cpu.element_copies import copy_bytes
from ndd.decoders.jpeg.baseline import decode as decode_jpeg
from ndd.decoders.jpeg.batch_headers import CHANNELS, HEIGHT, JPEG_TIFF, WIDTH, u16
from ndd.decoders.jpeg.huffman import LOOKS, SYMBOLS
from ndd.decoders.picture_table import (
    BY_NVIMGCODEC,
    DEPTH,
    HIGH,
    IS_BGR,
    LEFT,
    TOP,
    WIDE,
    copy_pixels,
    decode_loop_of,
    is_used,
)
from ndd.decoders.tiff.directory import (
    CHUNK_ROWS,
    COUNT,
    IS_RGB,
    LAYOUT,
    TABLE_BYTES,
    TABLES,
    chunk_of,
    most_read,
    read_layout,
)

_HEAD = 2  # bytes of the marker that begins a JPEG
_WINDOW = 9  # numbers, see `baseline.decode`
_LEAST = 4


@kernel
def _decode(data, layout, out, row, scratch, libraries):
    window = empty(_WINDOW, np.int64)
    # As in `baseline.decode_loop`.
    tables, skips = empty((4, LOOKS), np.int64), empty((2, 2 * LOOKS), np.uint8)
    fields, numbers = empty((2, 4 * LOOKS), np.uint8), empty((2, 2 * LOOKS), np.int16)
    kept, made_of = zeros((4, 16 + SYMBOLS), np.uint8), zeros(4, np.int64)
    rows, line, read, sampling = layout[CHUNK_ROWS], row[WIDE] * row[DEPTH], np.int64(0), np.int64(-1)
    is_converted = row[IS_BGR] != 0 or (row[DEPTH] == 1 and layout[CHANNELS] == 3)
    # What stands before the strip's own segments: its first marker, and the segments of the tables.
    head = max(layout[TABLE_BYTES] - _HEAD, _HEAD)
    for chunk in range(layout[COUNT]):
        top = chunk * rows
        high = min(rows, layout[HEIGHT] - top)
        if not is_used(row, top, 0, high, layout[WIDTH]):
            continue
        first, last = max(top, row[TOP]), min(top + high, row[TOP] + row[HIGH])
        place, size = chunk_of(data, layout, chunk)
        read += size + head
        if place < 0 or size < _LEAST or read > most_read(np.int64(len(data))) or head + size > len(scratch):
            return False
        stored = data[place : place + size]
        factors = _sampling_of(stored, high, layout[WIDTH], layout[CHANNELS])
        if factors < 0 or (sampling >= 0 and factors != sampling):
            return False
        sampling = factors
        scratch[0], scratch[1] = 0xFF, 0xD8
        if layout[TABLE_BYTES]:
            copy_bytes(scratch.ctypes.data, data.ctypes.data + layout[TABLES], head)
        copy_bytes(scratch.ctypes.data + head, stored.ctypes.data + _HEAD, size - _HEAD)
        whole = scratch[: head + size - _HEAD]
        window[0], window[1], window[2], window[3] = first - top, row[LEFT], last - top, row[LEFT] + row[WIDE]
        window[4], window[5], window[6], window[7] = (
            first - top,
            row[LEFT],
            row[WIDE],
            3 if is_converted else row[DEPTH],
        )
        window[8] = layout[IS_RGB]
        target, rest = out[(first - row[TOP]) * line : (last - row[TOP]) * line], scratch[len(whole) :]
        if is_converted:
            count = (last - first) * row[WIDE]
            colours, rest = rest[: 3 * count], rest[3 * count :]
        else:
            colours = target
        if not decode_jpeg(whole, colours, window, rest, tables, skips, fields, numbers, kept, made_of):
            return False
        if is_converted:
            copy_pixels(colours, 0, 3, target, 0, row[DEPTH], count, row[IS_BGR] != 0, BY_NVIMGCODEC)
    return True


@kernel(light=True)
def _sampling_of(stored, height, width, channels):
    """The sampling factors of a JPEG's components, as one number; -1 if it has not one frame, of this size and of 8 bits."""
    if stored[0] != 0xFF or stored[1] != 0xD8:
        return np.int64(-1)
    at, end, factors = np.int64(_HEAD), np.int64(len(stored)), np.int64(-1)
    while at + 4 <= end and stored[at] == 0xFF:
        marker, length = stored[at + 1], u16(stored, at + 2)
        if length < 2 or at + 2 + length > end:
            return np.int64(-1)
        if marker == 0xC0 or marker == 0xC1:
            if factors >= 0 or length < 8 + 3 * channels or stored[at + 4] != 8 or stored[at + 9] != channels:
                return np.int64(-1)
            if u16(stored, at + 5) != height or u16(stored, at + 7) != width:
                return np.int64(-1)
            factors = np.int64(0)
            for c in range(channels):
                factors = factors << 8 | np.int64(stored[at + 11 + 3 * c])
        if marker == 0xDA:
            return factors
        at += 2 + length
    return np.int64(-1)


decode_loop = decode_loop_of(read_layout, _decode, JPEG_TIFF, LAYOUT)
