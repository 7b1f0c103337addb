"""The first directory of a common TIFF: gray, RGB or CMYK of 8 bits, upright, in strips or tiles that are not compressed, or
compressed by deflate, LZW, PackBits or Zstandard; and gray, RGB or YCbCr in strips that are JPEGs. The format: TIFF 6.0, sections
2 to 8, 13 and 15, and TIFF Technical Note 2.

Python reads all other files: BigTIFF, tags that are repeated or out of order, and whatever looks damaged.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd.decoders.headers import tiff_directory as tiff
from ndd.decoders.jpeg.batch_headers import CHANNELS, GOOD, HEIGHT, JPEG_TIFF, TIFF, WIDTH, number

# What `read_layout` finds out after the channels: the compression, whether numbers are differences from the pixel on the left,
# rows and columns of a chunk, whether chunks are tiles, the numbers of chunks, their bytes in the file: place, and bytes of a
# number; the same of their sizes; the byte order; the place and the bytes of the tables that JPEGs share; and whether their
# components are red, green and blue.
(
    COMPRESSION, IS_PREDICTED, CHUNK_ROWS, CHUNK_COLUMNS, IS_TILED, COUNT, PLACES, PLACE_BYTES, SIZES, SIZE_BYTES, IS_BIG,
    TABLES, TABLE_BYTES, IS_RGB, LAYOUT,
) = range(CHANNELS + 1, CHANNELS + 16)  # fmt: skip
NONE, LZW, JPEG, DEFLATE, OLD_DEFLATE, PACKBITS, ZSTANDARD = 1, 5, 7, 8, 32946, 32773, 50000

_TAGS_AT = 10  # the least offset of the first tag
_TAG = 12  # bytes of a tag
_MOST_TAGS = 4096
_MOST = 1_000_000  # rows or columns
_LARGEST_RATIO = 1100  # of unpacked to packed bytes, so that a few bytes cannot claim gigabytes
_SPARE = 1 << 20  # bytes that a tile may have beyond those of the picture
MOST_TABLES = 4096  # bytes; the standard's take 574
_SHORT, _LONG, _BYTES = tiff.SHORT, 4, 7
_UNSIGNED, _GRAY, _RGB, _CMYK, _YCBCR, _HORIZONTAL = tiff.UNSIGNED, tiff.GRAY, tiff.RGB, tiff.CMYK, tiff.YCBCR, 2
# The tags that matter, in the order of a file, and their places among them.
_TAGS = np.array([
    tiff.WIDTH, tiff.HEIGHT, tiff.BITS, tiff.COMPRESSION, tiff.COLOURS, tiff.FILL_ORDER, tiff.STRIPS, tiff.ORIENTATION,
    tiff.CHANNELS, tiff.STRIP_ROWS, tiff.STRIP_BYTES, tiff.PLANAR, tiff.PREDICTOR, tiff.TILE_WIDTH, tiff.TILE_ROWS, tiff.TILES,
    tiff.TILE_BYTES, tiff.EXTRA_CHANNELS, tiff.SAMPLE_FORMAT, tiff.JPEG_TABLES, tiff.SUBSAMPLING,
])  # fmt: skip
(
    _WIDTH, _HEIGHT, _BITS, _COMPRESSION, _COLOURS, _FILL_ORDER, _STRIPS, _ORIENTATION, _CHANNELS, _STRIP_ROWS, _STRIP_BYTES,
    _PLANAR, _PREDICTOR, _TILE_WIDTH, _TILE_ROWS, _TILES, _TILE_BYTES, _EXTRA_CHANNELS,
    _SAMPLE_FORMAT, _JPEG_TABLES, _SUBSAMPLING,
) = range(len(_TAGS))  # fmt: skip


@kernel
def _find_tags(data, entries):
    """Fills `entries`, int64 `[tags, 3]`: how many numbers each of `_TAGS` has, 0 without the tag, the first byte of the numbers,
    and the bytes of a number. All of them lie inside `data`. Returns the byte order, 1 for the big end first, or -1 for a file
    that is left to Python."""
    entries[:] = 0
    total = np.int64(len(data))
    if total < _TAGS_AT or data[0] != data[1] or (data[0] != 0x49 and data[0] != 0x4D):
        return -1
    is_big = data[0] == 0x4D
    start = number(data, 4, 4, not is_big)
    if number(data, 2, 2, not is_big) != 42 or start > total - 2:
        return -1
    tags, last, k = number(data, start, 2, not is_big), np.int64(-1), 0
    if tags > _MOST_TAGS or tags * _TAG > total - start - 2:
        return -1
    for at in range(start + 2, start + 2 + tags * _TAG, _TAG):
        tag = number(data, at, 2, not is_big)
        if tag <= last:
            return -1
        last = tag
        while k < len(_TAGS) and _TAGS[k] < tag:
            k += 1
        if k == len(_TAGS) or _TAGS[k] != tag:
            continue
        kind, count, place = number(data, at + 2, 2, not is_big), number(data, at + 4, 4, not is_big), at + 8
        are_tables = k == _JPEG_TABLES
        size = np.int64(1 if are_tables else 2 if kind == _SHORT else 4)
        if count * size > 4:
            place = number(data, at + 8, 4, not is_big)
        is_known = kind == _BYTES if are_tables else kind in (_SHORT, _LONG)
        if not is_known or count == 0 or place > total or count * size > total - place:
            return -1
        entries[k, 0], entries[k, 1], entries[k, 2] = count, place, size
    return np.int64(is_big)


@kernel(light=True)
def _value(data, entries, tag, default, is_big):
    """The only number of a tag; `default` without the tag, -1 if there are several."""
    if entries[tag, 0] == 1:
        return number(data, entries[tag, 1], entries[tag, 2], not is_big)
    return np.int64(-1 if entries[tag, 0] else default)


@kernel(light=True)
def _all_are(data, entries, tag, expected, is_big):
    """Whether a tag is missing, or all of its numbers are the expected one."""
    matching = 0
    for k in range(entries[tag, 0]):
        matching += number(data, entries[tag, 1] + k * entries[tag, 2], entries[tag, 2], not is_big) == expected
    return matching == entries[tag, 0]


@kernel
def read_layout(data, layout):
    """Fills `layout`, int64 `[LAYOUT]`. Returns whether the file is a common one, and its directory is sound. The places and
    sizes of its chunks may still be wrong."""
    entries = empty((len(_TAGS), 3), np.int64)
    order = _find_tags(data, entries)
    if order < 0:
        return False
    is_big = order == 1
    for tag in (_FILL_ORDER, _ORIENTATION, _PLANAR):
        if _value(data, entries, tag, 1, is_big) != 1:
            return False
    height, width = _value(data, entries, _HEIGHT, 0, is_big), _value(data, entries, _WIDTH, 0, is_big)
    channels, colours = _value(data, entries, _CHANNELS, 1, is_big), _value(data, entries, _COLOURS, -1, is_big)
    if not 0 < height <= _MOST or not 0 < width <= _MOST:
        return False
    compression = _value(data, entries, _COMPRESSION, NONE, is_big)
    is_jpeg = compression == JPEG
    if (channels, colours) not in ((1, _GRAY), (3, _RGB), (3, _YCBCR) if is_jpeg else (4, _CMYK)):
        return False
    if entries[_BITS, 0] != channels or not _all_are(data, entries, _BITS, 8, is_big):
        return False
    if not _all_are(data, entries, _SAMPLE_FORMAT, _UNSIGNED, is_big):
        return False
    is_packed = compression in (LZW, DEFLATE, OLD_DEFLATE, ZSTANDARD)
    predictor = (
        _value(data, entries, _PREDICTOR, 1, is_big) if is_packed else np.int64(1)
    )  # libtiff ignores it for the others
    if (not is_packed and compression not in (NONE, PACKBITS, JPEG)) or predictor not in (1, _HORIZONTAL):
        return False
    is_tiled = entries[_TILES, 0] > 0
    if is_jpeg and (is_tiled or not _has_jpegs(data, entries, is_big)):
        return False
    if entries[_EXTRA_CHANNELS, 0] > 0 or (not is_tiled and entries[_TILE_WIDTH, 0] + entries[_TILE_ROWS, 0] > 0):
        return False
    if is_tiled:
        rows, columns = _value(data, entries, _TILE_ROWS, 0, is_big), _value(data, entries, _TILE_WIDTH, 0, is_big)
    else:
        rows, columns = min(_value(data, entries, _STRIP_ROWS, height, is_big), height), width
    picture = height * width * channels
    if not 0 < rows <= _MOST or not 0 < columns <= _MOST or rows * columns * channels > picture + _SPARE:
        return False
    places, sizes = (_TILES, _TILE_BYTES) if is_tiled else (_STRIPS, _STRIP_BYTES)
    count = ((height + rows - 1) // rows) * ((width + columns - 1) // columns)
    if entries[places, 0] != count or entries[sizes, 0] != count or picture > _LARGEST_RATIO * np.int64(len(data)):
        return False
    layout[GOOD], layout[HEIGHT], layout[WIDTH] = JPEG_TIFF if is_jpeg else TIFF, height, width
    layout[CHANNELS], layout[COMPRESSION], layout[IS_PREDICTED] = channels, compression, predictor == _HORIZONTAL
    layout[CHUNK_ROWS], layout[CHUNK_COLUMNS], layout[IS_TILED] = rows, columns, is_tiled
    layout[COUNT], layout[IS_BIG] = count, is_big
    layout[PLACES], layout[PLACE_BYTES] = entries[places, 1], entries[places, 2]
    layout[SIZES], layout[SIZE_BYTES] = entries[sizes, 1], entries[sizes, 2]
    layout[TABLES], layout[TABLE_BYTES], layout[IS_RGB] = (
        entries[_JPEG_TABLES, 1],
        entries[_JPEG_TABLES, 0],
        colours == _RGB,
    )
    return True


@kernel(light=True)
def _has_jpegs(data, entries, is_big):
    """Whether the tags that only JPEGs need are usual."""
    for k in range(entries[_SUBSAMPLING, 0]):
        step = entries[_SUBSAMPLING, 2]
        if number(data, entries[_SUBSAMPLING, 1] + k * step, step, not is_big) not in (1, 2, 4):
            return False
    at, count = entries[_JPEG_TABLES, 1], entries[_JPEG_TABLES, 0]
    if entries[_SUBSAMPLING, 0] not in (0, 2) or count > MOST_TABLES:
        return False
    if count == 0:
        return True
    begins = count >= 4 and data[at] == 0xFF and data[at + 1] == 0xD8
    return begins and data[at + count - 2] == 0xFF and data[at + count - 1] == 0xD9


@kernel(light=True)
def chunk_of(data, layout, chunk):
    """The place and the bytes of a chunk; -1 twice if it ends beyond the file."""
    is_big, place, size = layout[IS_BIG] != 0, layout[PLACE_BYTES], layout[SIZE_BYTES]
    size = number(data, layout[SIZES] + chunk * size, size, not is_big)
    place = number(data, layout[PLACES] + chunk * place, place, not is_big)
    if layout[COMPRESSION] == NONE and layout[COUNT] == 1:  # as libtiff does
        size = max(np.int64(len(data)) - place, 0)
    if place > len(data) or size > len(data) - place:
        return np.int64(-1), np.int64(-1)
    return place, size


most_read = kernel(tiff.most_read, light=True)


def most_chunk_bytes(heights: np.ndarray, widths: np.ndarray, channels: np.ndarray) -> int:
    """The most bytes that a chunk of one of these pictures may have."""
    return int((heights * widths * channels).max()) + _SPARE
