"""Kernels for the PNGs of a batch: headers, and pixels by libdeflate and libpng, whose functions `libdeflate.available` and
`libpng.library` must have connected.

Python reads unusual files: those of 16 bits, turned ones, and all that look damaged.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import zeros
from ndd._compiled.jit import kernel
from ndd._cpu.element_copies import copy_bytes
from ndd.decoders.jpeg.batch_headers import CHANNELS, GOOD, HEIGHT, PNG, WIDTH
from ndd.decoders.picture_table import (
    BY_LIBPNG,
    DEPTH,
    HIGH,
    IS_BGR,
    LEFT,
    TOP,
    WIDE,
    copy_pixels,
    decode_loop_of,
    look_of,
)
from ndd.decoders.png.libdeflate import alloc as alloc_decompressor, free as free_decompressor
from ndd.decoders.png.libpng import begin, finish, free
from ndd.decoders.png.rows import CHUNK, IEND, IHDR, LOWER_CASE, SIGNATURE, big_endian, read_rows

_NEEDED, _LAYOUT = CHANNELS + 1, CHANNELS + 2  # bytes of the chunks that pixels need, which `_read_layout` finds out

_HEADED = 33  # bytes of the signature and the first chunk
_EXIF = 0x65584966  # the name of a chunk
_BEGIN, _THEN = 0x89504E47, 0x0D0A1A0A  # the signature
_CHECKSUM_OF_IEND = 0xAE426082
_MOST = 1_000_000  # rows or columns that libpng takes
_LARGEST_RATIO = 1040  # of inflated to compressed bytes, so that a few bytes cannot claim gigabytes
# Of a `png_image` as numbers of 32 bits: version, width, height, format, flags. It has 104 bytes.
_VERSION, _WIDTH, _HEIGHT, _FORMAT, _FLAGS, _IMAGE = 2, 3, 4, 5, 6, 13
_ALPHA, _COLOR, _BGR = 1, 2, 0x10  # of its format


@kernel(light=True)
def _channels(kind):
    """Channels of the file, with alpha, by its colour type; 0 for an invalid one. A palette has three."""
    if kind == 0:
        return 1
    if kind == 4:
        return 2
    if kind == 2 or kind == 3:
        return 3
    return 4 if kind == 6 else 0


@kernel(light=True)
def _bytes_needed(data):
    """Bytes of the chunks that pixels need, with the signature; 0 for a file that Python should read."""
    at, needed, total = np.int64(SIGNATURE), np.int64(SIGNATURE), np.int64(len(data))
    while total - at >= CHUNK:
        size, name = big_endian(data, at), big_endian(data, at + 4)
        if size > total - at - CHUNK or name == _EXIF:
            return np.int64(0)
        if not data[at + 4] & LOWER_CASE:
            needed += size + CHUNK
        if name == IEND:
            return needed if size == 0 and big_endian(data, at + 8) == _CHECKSUM_OF_IEND else np.int64(0)
        at += size + CHUNK
    return np.int64(0)


@kernel(light=True)
def _read_layout(data, layout):
    """Fills `layout`, int64 `[_LAYOUT]`. Returns whether libpng may decode the file."""
    if len(data) < _HEADED or big_endian(data, 0) != _BEGIN or big_endian(data, 4) != _THEN:
        return False
    if big_endian(data, 8) != 13 or big_endian(data, 12) != IHDR:
        return False
    width, height, channels = big_endian(data, 16), big_endian(data, 20), _channels(data[25])
    if data[24] > 8 or not channels or not 0 < width <= _MOST or not 0 < height <= _MOST:
        return False
    bits = np.int64(data[24]) * (1 if data[25] == 3 else channels)
    if height * (width * bits // 8) > _LARGEST_RATIO * np.int64(len(data)):
        return False
    layout[GOOD], layout[HEIGHT], layout[WIDTH], layout[CHANNELS] = PNG, height, width, channels
    layout[_NEEDED] = _bytes_needed(data)
    return layout[_NEEDED] > 0


@kernel
def _decode(data, layout, out, row, scratch, libraries):
    height, width, channels, depth = layout[HEIGHT], layout[WIDTH], layout[CHANNELS], row[DEPTH]
    if len(data) > len(scratch):
        return False
    whole = row[HIGH] == height and row[WIDE] == width
    as_stored = whole and channels == depth and not row[IS_BGR]
    if libraries and (as_stored or not data[28]):
        pixels = out if as_stored else scratch[len(data) :]
        decompressor = alloc_decompressor()
        if decompressor:
            is_read = read_rows(data, height, width, channels, pixels, scratch, decompressor)
            free_decompressor(decompressor)
            if is_read:
                if not as_stored:
                    _take_window(pixels, width, channels, out, row)
                return True
    direct = whole and (channels == depth or (channels == 1 and depth == 3))
    stored = depth if direct else channels
    pixels = out if direct else scratch[len(data) :]
    blue_first = direct and row[IS_BGR] != 0
    if height * width * stored > len(pixels) or not _by_libpng(
        data, layout[_NEEDED], height, width, stored, blue_first, pixels, scratch
    ):
        return False
    if not direct:
        _take_window(pixels, width, stored, out, row)
    return True


@kernel
def _by_libpng(data, needed, height, width, stored, blue_first, pixels, scratch):
    """Writes all pixels of the file, in `stored` channels, to `pixels`. Returns whether they are valid."""
    address = data.ctypes.data
    if needed != len(data):
        _copy_needed(data, scratch)
        address = scratch.ctypes.data
    image = zeros(_IMAGE, np.int64).view(np.int32)
    image[_VERSION] = 1
    if begin(image.ctypes.data, address, needed) == 0:
        return False
    if np.int64(image[_HEIGHT]) != height or np.int64(image[_WIDTH]) != width:
        free(image.ctypes.data)
        return False
    image[_FORMAT] = (_ALPHA if stored % 2 == 0 else 0) | (_COLOR if stored > 2 else 0)
    if blue_first:
        image[_FORMAT] |= _BGR
    return finish(image.ctypes.data, 0, pixels.ctypes.data, 0, 0) != 0


@kernel(light=True)
def _copy_needed(data, scratch):
    """Copies the file without the chunks that pixels do not need."""
    copy_bytes(scratch.ctypes.data, data.ctypes.data, SIGNATURE)
    at, to = np.int64(SIGNATURE), np.int64(SIGNATURE)
    while True:
        size = big_endian(data, at) + CHUNK
        if not data[at + 4] & LOWER_CASE:
            copy_bytes(scratch.ctypes.data + to, data.ctypes.data + at, size)
            to += size
        if big_endian(data, at + 4) == IEND:
            return
        at += size


@kernel
def _take_window(pixels, width, stored, out, row):
    """Copies a window of pixels as stored, of 1 to 4 channels, in the channels of the result."""
    for y in range(row[HIGH]):
        at, to = ((row[TOP] + y) * width + row[LEFT]) * stored, y * row[WIDE] * row[DEPTH]
        copy_pixels(pixels, at, stored, out, to, row[DEPTH], row[WIDE], row[IS_BGR] != 0, BY_LIBPNG)


look = look_of(_read_layout, _LAYOUT)
decode_loop = decode_loop_of(_read_layout, _decode, PNG, _LAYOUT)
