"""Kernels for the TIFFs of a batch: headers and pixels. `libdeflate.available` and
`libzstd.available` must have connected their functions."""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel
from ndd.decoders.backends.libzstd import decompress as decompress_zstandard
from ndd.decoders.backends.tiff_colors import mixed
from ndd.decoders.backends.tiff_lzw import unpack as unpack_lzw
from ndd.decoders.backends.tiff_packbits import unpack as unpack_packbits
from ndd.decoders.backends.tiff_predictor import add_left
from ndd.decoders.jpeg.batch_headers import CHANNELS, HEIGHT, TIFF, WIDTH
from ndd.decoders.picture_table import (
    BY_NVIMGCODEC,
    BY_OPENCV,
    DEPTH,
    HIGH,
    IS_BGR,
    LEFT,
    LIBDEFLATE,
    LIBZSTD,
    TOP,
    WIDE,
    copy_pixels,
    decode_loop_of,
    gray_of,
    is_used,
    look_of,
)
from ndd.decoders.png.libdeflate import alloc as alloc_decompressor, free as free_decompressor, inflate
from ndd.decoders.tiff.directory import (
    CHUNK_COLUMNS,
    CHUNK_ROWS,
    COMPRESSION,
    IS_PREDICTED,
    IS_TILED,
    LAYOUT,
    LZW,
    NONE,
    PACKBITS,
    ZSTANDARD,
    chunk_of,
    most_read,
    read_layout,
)


@kernel
def _decode(data, layout, out, row, scratch, libraries):
    decompressor = alloc_decompressor() if libraries & LIBDEFLATE else np.uintp(0)
    is_whole = _decode_chunks(data, layout, out, row, scratch, decompressor, libraries & LIBZSTD)
    if decompressor:
        free_decompressor(decompressor)
    return is_whole


@kernel
def _decode_chunks(data, layout, out, row, scratch, decompressor, has_zstandard):
    height, width, rows, columns = layout[HEIGHT], layout[WIDTH], layout[CHUNK_ROWS], layout[CHUNK_COLUMNS]
    chunk, read = np.int64(0), np.int64(0)
    for top in range(0, height, rows):
        high = rows if layout[IS_TILED] else min(rows, height - top)
        for left in range(0, width, columns):
            if is_used(row, top, left, high, columns):
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
    channels, columns, compression = layout[CHANNELS], layout[CHUNK_COLUMNS], layout[COMPRESSION]
    line, size = columns * channels, len(stored)
    first, last = max(top, row[TOP]), min(top + high, row[TOP] + row[HIGH])
    begin, end = max(left, row[LEFT]), min(left + columns, row[LEFT] + row[WIDE])
    width, depth = row[WIDE] * row[DEPTH], row[DEPTH]
    values = stored
    if compression == NONE:
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
        if compression == LZW:
            if not unpack_lzw(stored, values):
                return False
        elif compression == PACKBITS:
            if not unpack_packbits(stored, values):
                return False
        elif compression == ZSTANDARD:
            source, target, count = stored.ctypes.data, values.ctypes.data, np.uintp(len(values))
            if not has_zstandard or decompress_zstandard(target, count, source, np.uintp(size)) != count:
                return False
        elif (
            not decompressor or inflate(decompressor, stored.ctypes.data, size, values.ctypes.data, len(values), 0) != 0
        ):
            return False
        if layout[IS_PREDICTED]:
            add_left(values.reshape(high, line), channels)
        if is_whole:
            return True
    for y in range(first, last):
        at = (y - top) * line + (begin - left) * channels
        to = (y - row[TOP]) * width + (begin - row[LEFT]) * depth
        if channels == 4:
            _mix_inks(values[at:], out[to:], end - begin, depth, row[IS_BGR] != 0)
        else:
            copy_pixels(values, at, channels, out, to, depth, end - begin, row[IS_BGR] != 0, BY_NVIMGCODEC)
    return True


@kernel
def _mix_inks(inks, out, count, depth, is_bgr):
    """Writes the colours of `count` pixels of cyan, magenta, yellow and black, as `tiff_colors` does: gray, RGB, or opaque RGBA."""
    full, bits = np.uint32(255), np.uint32(8)
    for x in range(count):
        at, to, black = 4 * x, depth * x, full - np.uint32(inks[4 * x + 3])
        red, green = mixed(full - np.uint32(inks[at]), black, bits), mixed(full - np.uint32(inks[at + 1]), black, bits)
        blue = mixed(full - np.uint32(inks[at + 2]), black, bits)
        if depth == 1:
            out[to] = gray_of(red, green, blue, BY_OPENCV)
        else:
            out[to], out[to + 1], out[to + 2] = (blue, green, red) if is_bgr else (red, green, blue)
        if depth == 4:
            out[to + 3] = 255


look = look_of(read_layout, LAYOUT)
decode_loop = decode_loop_of(read_layout, _decode, TIFF, LAYOUT)
