"""Kernels for the TIFFs of a batch: headers and pixels. `libdeflate.available` and
`libzstd.available` must have connected their functions."""

from __future__ import annotations

import numpy as np

from ndd._compiled.atomics import acquire_slot, atomic_store
from ndd._compiled.intrinsics import array_at, empty
from ndd._compiled.jit import kernel
from ndd._compiled.sample_loops import next_index
from ndd.decoders.backends.libzstd import decompress as decompress_zstandard
from ndd.decoders.backends.tiff_colors import mixed
from ndd.decoders.backends.tiff_lzw import unpack as unpack_lzw
from ndd.decoders.backends.tiff_packbits import unpack as unpack_packbits
from ndd.decoders.backends.tiff_predictor import add_left
from ndd.decoders.jpeg import batch_headers as facts_of
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
    USED_LEFT,
    USED_RIGHT,
    USED_TOP,
    WIDE,
    copy_pixels,
    is_inside,
)
from ndd.decoders.png.libdeflate import alloc as alloc_decompressor, free as free_decompressor, inflate
from ndd.decoders.tiff import directory as tiff
from ndd.decoders.tiff.directory import chunk_of, most_read, read_layout

_GOOD, _HEIGHT, _WIDTH, _CHANNELS, _ORIENTATION = (
    facts_of.GOOD, facts_of.HEIGHT, facts_of.WIDTH, facts_of.CHANNELS, facts_of.ORIENTATION,
)  # fmt: skip
_TIFF, _JPEG_TIFF, _NONE, _LZW, _JPEG, _PACKBITS, _ZSTANDARD = (
    facts_of.TIFF, facts_of.JPEG_TIFF, tiff.NONE, tiff.LZW, tiff.JPEG, tiff.PACKBITS, tiff.ZSTANDARD,
)  # fmt: skip


@kernel
def look(addresses, sizes, like, facts):
    """Fills `facts`, int64 `[N, FACTS]`, of the common TIFFs among the files whose headers are not known yet, `sizes[i]` bytes
    at `addresses[i]`. `like` is any array of u8."""
    layout = empty(tiff.LAYOUT, np.int64)
    for i in range(len(sizes)):
        row = facts[i]
        if row[_GOOD] == 0 and read_layout(array_at(addresses[i], sizes[i], like), layout):
            row[_GOOD] = _JPEG_TIFF if layout[tiff.COMPRESSION] == _JPEG else _TIFF
            row[_HEIGHT], row[_WIDTH] = layout[tiff.HEIGHT], layout[tiff.WIDTH]
            row[_CHANNELS], row[_ORIENTATION] = layout[tiff.CHANNELS], 1


@look.fallback
def _(addresses, sizes, like, facts):
    pass  # Python reads all of them


@kernel
def decode_loop(counter, limit, order, pictures, scratch, taken, inflates, has_zstandard, done):
    """Decodes up to `limit` pictures in the order `order`, which threads share. Returns True.

    Args:
        pictures: int64 `[N, NUMBERS]`, see `picture_table`.
        scratch: u8 `[S, room]`, each row with room for a chunk of any of these files. Every thread uses one row.
        taken: int64 `[S]`, initially zeros: whether a thread uses the row.
        inflates, has_zstandard: whether libdeflate and libzstd are available.
        done: bool `[N]`, set for each picture that is decoded.
    """
    decompressor = alloc_decompressor() if inflates else np.uintp(0)
    seat = acquire_slot(taken)
    own = scratch[seat]
    for _ in range(limit):
        turn = next_index(counter)
        if turn >= len(order):
            break
        row = pictures[order[turn]]
        data, out = array_at(row[FILE], row[FILE_BYTES], own), array_at(row[OUT], row[OUT_BYTES], own)
        done[order[turn]] = _decode(data, out, row, own, decompressor, has_zstandard)
    atomic_store(taken, seat, 0)
    if decompressor:
        free_decompressor(decompressor)
    return True


decode_loop.fallback(lambda *args: False)


@kernel
def _decode(data, out, row, scratch, decompressor, has_zstandard):
    layout = empty(tiff.LAYOUT, np.int64)
    # The header must not have changed since the memory for the pixels was allocated.
    if not read_layout(data, layout) or row[ROWS] != layout[tiff.HEIGHT] or row[COLUMNS] != layout[tiff.WIDTH]:
        return False
    if not is_inside(row, out) or layout[tiff.COMPRESSION] == _JPEG:
        return False
    height, width, rows, columns = row[ROWS], row[COLUMNS], layout[tiff.ROWS], layout[tiff.COLUMNS]
    chunk, read = np.int64(0), np.int64(0)
    for top in range(0, height, rows):
        high = rows if layout[tiff.IS_TILED] else min(rows, height - top)
        for left in range(0, width, columns):
            is_used = top < row[USED_BOTTOM] and top + high > row[USED_TOP]
            is_used = is_used and left < row[USED_RIGHT] and left + columns > row[USED_LEFT]
            if is_used:
                place, size = chunk_of(data, layout, chunk)
                read += size
                if place < 0 or read > most_read(np.int64(len(data))):
                    return False
                stored = data[place : place + size]
                if not _decode_chunk(stored, layout, top, left, high, out, row, scratch, decompressor, has_zstandard):
                    return False
            chunk += 1
    return True


@kernel
def _decode_chunk(stored, layout, top, left, high, out, row, scratch, decompressor, has_zstandard):
    """Writes the pixels of a chunk of `high` rows that lie in the window. Returns whether the chunk is whole."""
    channels, columns, compression = layout[tiff.CHANNELS], layout[tiff.COLUMNS], layout[tiff.COMPRESSION]
    line, size = columns * channels, len(stored)
    first, last = max(top, row[TOP]), min(top + high, row[TOP] + row[HIGH])
    begin, end = max(left, row[LEFT]), min(left + columns, row[LEFT] + row[WIDE])
    width, depth = row[WIDE] * row[DEPTH], row[DEPTH]
    values = stored
    if compression == _NONE:
        if size < high * line:
            return False
    else:
        is_whole = first == top and last == top + high and width == line and depth == channels and channels < 4
        is_whole = is_whole and not row[IS_BGR]
        if is_whole:
            values = out[(top - row[TOP]) * width : (last - row[TOP]) * width]
        elif high * line > len(scratch):
            return False
        else:
            values = scratch[: high * line]
        if compression == _LZW:
            if not unpack_lzw(stored, values):
                return False
        elif compression == _PACKBITS:
            if not unpack_packbits(stored, values):
                return False
        elif compression == _ZSTANDARD:
            source, target, count = stored.ctypes.data, values.ctypes.data, np.uintp(len(values))
            if not has_zstandard or decompress_zstandard(target, count, source, np.uintp(size)) != count:
                return False
        elif (
            not decompressor or inflate(decompressor, stored.ctypes.data, size, values.ctypes.data, len(values), 0) != 0
        ):
            return False
        if layout[tiff.IS_PREDICTED]:
            add_left(values.reshape(high, line), channels)
        if is_whole:
            return True
    for y in range(first, last):
        at = (y - top) * line + (begin - left) * channels
        to = (y - row[TOP]) * width + (begin - row[LEFT]) * depth
        if channels == 4:
            _mix_inks(values[at:], out[to:], end - begin, depth, row[IS_BGR] != 0)
        else:
            copy_pixels(values, at, channels, out, to, depth, end - begin, row[IS_BGR] != 0 and channels == 3)
    return True


@kernel
def _mix_inks(inks, out, count, depth, is_bgr):
    """Writes the colours of `count` pixels of cyan, magenta, yellow and black, as `tiff_colors` does: RGB, or opaque RGBA."""
    for x in range(count):
        black = np.uint32(255) - np.uint32(inks[4 * x + 3])
        for c in range(3):
            colour = np.uint32(255) - np.uint32(inks[4 * x + c])
            out[depth * x + (2 - c if is_bgr else c)] = mixed(colour, black, np.uint32(8))
        if depth == 4:
            out[4 * x + 3] = 255
