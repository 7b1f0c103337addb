"""The kernel for the TIFFs of a batch whose strips are JPEGs, as `backends/tiff_jpeg.py` decodes them. A loop of its own, because
the kernel for JPEGs takes long to compile."""

from __future__ import annotations

import numpy as np

from ndd._compiled.atomics import acquire_slot, atomic_store
from ndd._compiled.intrinsics import array_at, empty, zeros
from ndd._compiled.jit import kernel
from ndd._compiled.sample_loops import next_index
from ndd._cpu.element_copies import copy_bytes
from ndd.decoders.jpeg.baseline import decode as decode_jpeg
from ndd.decoders.jpeg.batch_headers import u16
from ndd.decoders.jpeg.huffman import LOOKS, SYMBOLS
from ndd.decoders.picture_table import (
    COLUMNS,
    DEPTH,
    FILE,
    FILE_BYTES,
    HIGH,
    IS_BGR,
    LEFT,
    OUT,
    OUT_BYTES,
    ROWS,
    TOP,
    USED_BOTTOM,
    USED_TOP,
    WIDE,
    is_inside,
)
from ndd.decoders.tiff import directory as tiff
from ndd.decoders.tiff.directory import chunk_of, most_read, read_layout

_HEAD = 2  # bytes of the marker that begins a JPEG
_WINDOW = 9  # numbers, see `baseline.decode`
_LEAST = 4


@kernel
def decode_loop(counter, limit, order, pictures, scratch, taken, done):
    """Decodes up to `limit` pictures in the order `order`, which threads share. Returns True.

    Args:
        pictures: int64 `[N, NUMBERS]`, see `picture_table`.
        scratch: u8 `[S, room]`, each row with `jpeg_room` for any of these files. Every thread uses one row.
        taken: int64 `[S]`, initially zeros: whether a thread uses the row.
        done: bool `[N]`, set for each picture that is decoded.
    """
    seat = acquire_slot(taken)
    own = scratch[seat]
    # As in `baseline.decode_loop`.
    tables, skips = empty((4, LOOKS), np.int64), empty((2, 2 * LOOKS), np.uint8)
    fields, numbers = empty((2, 4 * LOOKS), np.uint8), empty((2, 2 * LOOKS), np.int16)
    kept, made_of = zeros((4, 16 + SYMBOLS), np.uint8), zeros(4, np.int64)
    for _ in range(limit):
        turn = next_index(counter)
        if turn >= len(order):
            break
        row = pictures[order[turn]]
        data, out = array_at(row[FILE], row[FILE_BYTES], own), array_at(row[OUT], row[OUT_BYTES], own)
        done[order[turn]] = _decode(data, out, row, own, tables, skips, fields, numbers, kept, made_of)
    atomic_store(taken, seat, 0)
    return True


decode_loop.fallback(lambda *args: False)


@kernel
def _decode(data, out, row, scratch, tables, skips, fields, numbers, kept, made_of):
    layout, window = empty(tiff.LAYOUT, np.int64), empty(_WINDOW, np.int64)
    # The header must not have changed since the memory for the pixels was allocated.
    if not read_layout(data, layout) or row[ROWS] != layout[tiff.HEIGHT] or row[COLUMNS] != layout[tiff.WIDTH]:
        return False
    if not is_inside(row, out) or layout[tiff.COMPRESSION] != tiff.JPEG or row[IS_BGR]:
        return False
    rows, line, read, sampling = layout[tiff.ROWS], row[WIDE] * row[DEPTH], np.int64(0), np.int64(-1)
    # What stands before the strip's own segments: its first marker, and the segments of the tables.
    head = max(layout[tiff.TABLE_BYTES] - _HEAD, _HEAD)
    for chunk in range(layout[tiff.COUNT]):
        top = chunk * rows
        high = min(rows, row[ROWS] - top)
        first, last = max(top, row[TOP]), min(top + high, row[TOP] + row[HIGH])
        if first >= last or top >= row[USED_BOTTOM] or top + high <= row[USED_TOP]:
            continue
        place, size = chunk_of(data, layout, chunk)
        read += size + head
        if place < 0 or size < _LEAST or read > most_read(np.int64(len(data))) or head + size > len(scratch):
            return False
        stored = data[place : place + size]
        factors = _sampling_of(stored, high, row[COLUMNS], layout[tiff.CHANNELS])
        if factors < 0 or (sampling >= 0 and factors != sampling):
            return False
        sampling = factors
        scratch[0], scratch[1] = 0xFF, 0xD8
        if layout[tiff.TABLE_BYTES]:
            copy_bytes(scratch.ctypes.data, data.ctypes.data + layout[tiff.TABLES], head)
        copy_bytes(scratch.ctypes.data + head, stored.ctypes.data + _HEAD, size - _HEAD)
        whole = scratch[: head + size - _HEAD]
        window[0], window[1], window[2], window[3] = first - top, row[LEFT], last - top, row[LEFT] + row[WIDE]
        window[4], window[5], window[6], window[7] = first - top, row[LEFT], row[WIDE], row[DEPTH]
        window[8] = layout[tiff.IS_RGB]
        target = out[(first - row[TOP]) * line : (last - row[TOP]) * line]
        rest = scratch[len(whole) :]
        if not decode_jpeg(whole, target, window, rest, tables, skips, fields, numbers, kept, made_of):
            return False
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
