"""Kernels for the PNGs of a batch: headers, and pixels by libdeflate and libpng, whose functions `libdeflate.available` and
`libpng.library` must have connected.

Python reads unusual files: those of 16 bits, turned ones, and all that look damaged.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.atomics import acquire_slot, atomic_store
from ndd._compiled.intrinsics import array_at, zeros
from ndd._compiled.jit import kernel
from ndd._compiled.sample_loops import next_index
from ndd._cpu.element_copies import copy_bytes
from ndd.decoders.jpeg.batch_headers import CHANNELS, GOOD, HEIGHT, ORIENTATION, PNG, WIDTH
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
    WIDE,
    copy_pixels,
    is_inside,
)
from ndd.decoders.png.libdeflate import alloc as alloc_decompressor, free as free_decompressor
from ndd.decoders.png.libpng import begin, finish, free
from ndd.decoders.png.rows import CHUNK, IEND, IHDR, LOWER_CASE, SIGNATURE, big_endian, read_rows

_HEADED = 33  # bytes of the signature and the first chunk
_EXIF = 0x65584966  # the name of a chunk
_BEGIN, _THEN = 0x89504E47, 0x0D0A1A0A  # the signature
_CHECKSUM_OF_IEND = 0xAE426082
_MOST = 1_000_000  # rows or columns that libpng takes
_LARGEST_RATIO = 1040  # of inflated to compressed bytes, so that a few bytes cannot claim gigabytes
# Of a `png_image` as numbers of 32 bits: version, width, height, format, flags. It has 104 bytes.
_VERSION, _WIDTH, _HEIGHT, _FORMAT, _FLAGS, _IMAGE = 2, 3, 4, 5, 6, 13
_ALPHA, _COLOR, _BGR = 1, 2, 0x10  # of its format
_RED, _GREEN, _BLUE = 9797, 19234, 3737  # libpng's weights for gray, in units of 1 / 32768


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
def _looks_common(data, facts):
    """Fills the `facts` of a file. Returns whether libpng may decode it."""
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
    facts[HEIGHT], facts[WIDTH], facts[CHANNELS], facts[ORIENTATION] = height, width, channels, 1
    return _bytes_needed(data) > 0


@kernel(light=True)
def look(addresses, sizes, like, facts):
    """Fills `facts`, int64 `[N, FACTS]`, of the common PNGs among the files whose headers are not known yet, `sizes[i]` bytes
    at `addresses[i]`. `like` is any array of u8."""
    for i in range(len(sizes)):
        row = facts[i]
        if row[GOOD] == 0:
            if _looks_common(array_at(addresses[i], sizes[i], like), row):
                row[GOOD] = PNG
            else:
                row[:] = 0


@look.fallback
def _(addresses, sizes, like, facts):
    pass  # Python reads all of them


@kernel
def decode_loop(counter, limit, order, pictures, scratch, taken, inflates, done):
    """Decodes up to `limit` pictures in the order `order`, which threads share. Returns True.

    Args:
        pictures: int64 `[N, NUMBERS]`, see `picture_table`.
        scratch: u8 `[S, room]`, each row with room for any of these files, its pixels as stored, and two more bytes for each row
            of pixels. Every thread uses one row.
        taken: int64 `[S]`, initially zeros: whether a thread uses the row.
        inflates: whether libdeflate is available.
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
        done[order[turn]] = _decode(data, out, row, own, decompressor)
    atomic_store(taken, seat, 0)
    if decompressor:
        free_decompressor(decompressor)
    return True


decode_loop.fallback(lambda *args: False)


@kernel
def _decode(data, out, row, scratch, decompressor):
    height, width, top, left, high, wide = row[ROWS], row[COLUMNS], row[TOP], row[LEFT], row[HIGH], row[WIDE]
    needed, depth = _bytes_needed(data), row[DEPTH]
    if len(data) < _HEADED or needed == 0 or len(data) > len(scratch):
        return False
    # The header must not have changed since the memory for the pixels was allocated.
    if height != big_endian(data, 20) or width != big_endian(data, 16):
        return False
    if not is_inside(row, out):
        return False
    channels = _channels(data[25])
    whole = top == 0 and left == 0 and high == height and wide == width
    as_stored = whole and channels == depth and not row[IS_BGR]
    if decompressor and (as_stored or not data[28]):
        pixels = out if as_stored else scratch[len(data) :]
        if read_rows(data, height, width, channels, pixels, scratch, decompressor):
            if not as_stored:
                _take_window(pixels, width, channels, out, row)
            return True
    direct = whole and (channels == depth or (channels == 1 and depth == 3))
    stored = depth if direct else channels
    pixels = out if direct else scratch[len(data) :]
    blue_first = direct and row[IS_BGR] != 0
    if height * width * stored > len(pixels) or not _by_libpng(
        data, needed, height, width, stored, blue_first, pixels, scratch
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
    depth, to = row[DEPTH], np.int64(0)
    for y in range(row[TOP], row[TOP] + row[HIGH]):
        at = (y * width + row[LEFT]) * stored
        if depth == 1 and stored >= 3:
            for x in range(row[WIDE]):
                place = at + x * stored
                out[to + x] = _gray(pixels[place], pixels[place + 1], pixels[place + 2])
        else:
            copy_pixels(pixels, at, stored, out, to, depth, row[WIDE], row[IS_BGR] != 0 and stored >= 3)
        to += row[WIDE] * depth


@kernel(light=True)
def _gray(red, green, blue):
    """Gray as libpng mixes it for OpenCV, rounded down; three equal numbers give that number."""
    if red == green and green == blue:
        return red
    return np.uint8((_RED * np.int64(red) + _GREEN * np.int64(green) + _BLUE * np.int64(blue)) >> 15)
