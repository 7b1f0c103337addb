"""The first directory of a common TIFF: gray or RGB of 8 bits, upright, in strips or tiles that are not compressed, or
compressed by deflate, LZW or PackBits. The format: TIFF 6.0, sections 2 to 8, 13 and 15.

Python reads all other files: BigTIFF, tags that are repeated or out of order, and whatever looks damaged.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel
from ndd.decoders.headers import tiff_directory as tiff

# What `read_layout` finds out: the size, channels, compression, whether numbers are differences from the pixel on the left,
# rows and columns of a chunk, whether chunks are tiles, the numbers of chunks, their bytes in the file: place, and bytes of a
# number; the same of their sizes; and the byte order.
(
    HEIGHT, WIDTH, CHANNELS, COMPRESSION, IS_PREDICTED, ROWS, COLUMNS, IS_TILED, COUNT, PLACES, PLACE_BYTES, SIZES, SIZE_BYTES,
    IS_BIG, LAYOUT,
) = range(15)  # fmt: skip
NONE, LZW, DEFLATE, OLD_DEFLATE, PACKBITS = 1, 5, 8, 32946, 32773

_TAGS_AT = 10  # the least offset of the first tag
_TAG = 12  # bytes of a tag
_MOST_TAGS = 4096
_MOST = 1_000_000  # rows or columns
_LARGEST_RATIO = 1100  # of unpacked to packed bytes, so that a few bytes cannot claim gigabytes
_SPARE = 1 << 20  # bytes that a tile may have beyond those of the picture
_SHORT, _LONG = tiff.SHORT, 4
_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _COLOURS = tiff.WIDTH, tiff.HEIGHT, tiff.BITS, tiff.COMPRESSION, tiff.COLOURS
_FILL_ORDER, _ORIENTATION, _CHANNELS, _PLANAR = tiff.FILL_ORDER, tiff.ORIENTATION, tiff.CHANNELS, tiff.PLANAR
_STRIPS, _STRIP_ROWS, _STRIP_BYTES, _PREDICTOR = tiff.STRIPS, tiff.STRIP_ROWS, tiff.STRIP_BYTES, tiff.PREDICTOR
_TILE_WIDTH, _TILE_ROWS, _TILES, _TILE_BYTES = tiff.TILE_WIDTH, tiff.TILE_ROWS, tiff.TILES, tiff.TILE_BYTES
_SAMPLE_FORMAT, _UNSIGNED, _GRAY, _RGB = tiff.SAMPLE_FORMAT, tiff.UNSIGNED, tiff.GRAY, tiff.RGB
_HORIZONTAL = 2
_UNSAID = -1


@kernel(light=True)
def number(data, at, size, is_big):
    """The number of 2 or 4 bytes at this place, which lies inside `data`."""
    value = np.int64(0)
    for k in range(size):
        value |= np.int64(data[at + k]) << (8 * (size - 1 - k if is_big else k))
    return value


@kernel(light=True)
def _all_are(data, at, size, count, expected, is_big):
    for k in range(count):
        if number(data, at + k * size, size, is_big) != expected:
            return False
    return True


@kernel(light=True)
def begins_tiff(data):
    """Whether the file has the signature of a TIFF, and is no BigTIFF."""
    if len(data) < _TAGS_AT or data[0] != data[1] or (data[0] != 0x49 and data[0] != 0x4D):
        return False
    return number(data, 2, 2, data[0] == 0x4D) == 42


@kernel
def read_layout(data, layout):
    """Fills `layout`, int64 `[LAYOUT]`. Returns whether the file is a common one, and its directory is sound. The places and
    sizes of its chunks may still be wrong."""
    layout[:] = 0
    if not begins_tiff(data):
        return False
    is_big, total = data[0] == 0x4D, np.int64(len(data))
    start = number(data, 4, 4, is_big)
    if start > total - 2:
        return False
    tags = number(data, start, 2, is_big)
    if tags > _MOST_TAGS or tags * _TAG > total - start - 2:
        return False
    layout[COMPRESSION], layout[ROWS], layout[IS_BIG] = NONE, _UNSAID, is_big
    last, bits, colours, sizes, predictor = np.int64(-1), np.int64(0), np.int64(-1), np.int64(0), np.int64(1)
    layout[CHANNELS] = 1
    for k in range(tags):
        at = start + 2 + k * _TAG
        tag, kind, count = number(data, at, 2, is_big), number(data, at + 2, 2, is_big), number(data, at + 4, 4, is_big)
        if tag <= last:
            return False
        last = tag
        wide = tag == _STRIPS or tag == _STRIP_BYTES or tag == _TILES or tag == _TILE_BYTES
        several = wide or tag == _BITS or tag == _SAMPLE_FORMAT
        single = (
            (_WIDTH <= tag <= _HEIGHT) or (_COMPRESSION <= tag <= _COLOURS) or tag == _FILL_ORDER or tag == _ORIENTATION
            or tag == _CHANNELS or tag == _STRIP_ROWS or tag == _PLANAR or tag == _PREDICTOR
            or (_TILE_WIDTH <= tag <= _TILE_ROWS)
        )  # fmt: skip
        if not single and not several:
            continue
        if (kind != _SHORT and kind != _LONG) or count < 1 or (single and count != 1):
            return False
        size = np.int64(2 if kind == _SHORT else 4)
        place = at + 8
        if count * size > 4:
            place = number(data, at + 8, 4, is_big)
            if place > total or count * size > total - place:
                return False
        if tag == _BITS:
            bits = count if _all_are(data, place, size, count, 8, is_big) else np.int64(-1)
        elif tag == _SAMPLE_FORMAT:
            if not _all_are(data, place, size, count, _UNSIGNED, is_big):
                return False
        elif tag == _STRIPS or tag == _TILES:
            if layout[COUNT]:
                return False
            layout[COUNT], layout[PLACES], layout[PLACE_BYTES], layout[IS_TILED] = count, place, size, tag == _TILES
        elif wide:
            if sizes:
                return False
            sizes, layout[SIZES], layout[SIZE_BYTES] = count, place, size
        else:
            value = number(data, place, size, is_big)
            if tag == _WIDTH:
                layout[WIDTH] = value
            elif tag == _HEIGHT:
                layout[HEIGHT] = value
            elif tag == _COMPRESSION:
                layout[COMPRESSION] = value
            elif tag == _COLOURS:
                colours = value
            elif tag == _CHANNELS:
                layout[CHANNELS] = value
            elif tag == _PREDICTOR:
                predictor = value
            elif tag == _STRIP_ROWS or tag == _TILE_ROWS:
                layout[ROWS] = value
            elif tag == _TILE_WIDTH:
                layout[COLUMNS] = value
            elif value != 1:  # the order of bits, a turned picture, planes
                return False
    return _is_common(layout, total, bits, colours, sizes, predictor)


@kernel(light=True)
def _is_common(layout, total, bits, colours, sizes, predictor):
    """Whether the numbers of the tags fit each other. Fills in what follows from them."""
    height, width, channels, compression = layout[HEIGHT], layout[WIDTH], layout[CHANNELS], layout[COMPRESSION]
    if not 0 < height <= _MOST or not 0 < width <= _MOST or bits != channels or sizes != layout[COUNT]:
        return False
    if not ((channels == 1 and colours == _GRAY) or (channels == 3 and colours == _RGB)):
        return False
    packed = compression == LZW or compression == DEFLATE or compression == OLD_DEFLATE
    if not packed and compression != NONE and compression != PACKBITS:
        return False
    if packed and predictor != 1 and predictor != _HORIZONTAL:
        return False
    layout[IS_PREDICTED] = packed and predictor == _HORIZONTAL  # libtiff ignores it for the others
    picture = height * width * channels
    if not layout[IS_TILED]:
        layout[ROWS], layout[COLUMNS] = height if layout[ROWS] == _UNSAID else min(layout[ROWS], height), width
    rows, columns = layout[ROWS], layout[COLUMNS]
    if not 0 < rows <= _MOST or not 0 < columns <= _MOST or rows * columns * channels > picture + _SPARE:
        return False
    chunks = ((height + rows - 1) // rows) * ((width + columns - 1) // columns)
    return layout[COUNT] == chunks and picture <= _LARGEST_RATIO * total


def most_chunk_bytes(heights: np.ndarray, widths: np.ndarray, channels: np.ndarray) -> int:
    """The most bytes that a chunk of one of these pictures may have."""
    return int((heights * widths * channels).max()) + _SPARE
