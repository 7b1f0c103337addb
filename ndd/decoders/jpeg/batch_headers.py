"""The headers of a batch of JPEGs in one call. For common files the result equals that of `header.read_header`.

For a GPU the files are copied to page-locked memory first, which its engines read as the stream runs. In the copy the EXIF is
reduced to the orientation.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import array_at
from ndd._compiled.jit import kernel
from ndd._cpu.element_copies import copy_bytes
from ndd._tensor.memory import memory_at

# The facts of a picture: its format if compiled code may decode it (JPEG, ...; 0: Python decides), size as stored, channels,
# EXIF orientation, and the scans of a JPEG: WHOLE if its first scan has all components (decoders stop after that scan),
# PROGRESSIVE, or 0.
FORMAT, HEIGHT, WIDTH, CHANNELS, ORIENTATION, SCANS, FACTS = 0, 1, 2, 3, 4, 5, 6
JPEG, PNG, TIFF, BMP, PNM, JPEG_TIFF, COLOUR_JPEG = range(1, 8)  # the last one codes RGB or CMYK instead of YCbCr
WHOLE, PROGRESSIVE = 1, 2

_LEAST = 10  # bytes of a frame header, with its marker
_TAG, _BYTE, _SHORT, _LONG, _ENTRIES = 274, 1, 3, 4, 512
_PLAIN = np.frombuffer(b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x01\0\0\0\0\0\0", np.uint8)  # 1 at byte 19
_MAX_SCANS, _FEW_SCANS, _MAX_SCANNED, _SHORT_FILE = 500, 16, 1 << 33, 1000  # as in `header.has_sane_scans`
_END = 64  # bytes at the end of the file that must hold the marker EOI

PEEKED = 2048  # bytes that hold the headers of most files without EXIF


@kernel(light=True)
def take(address, size, start, target, facts):
    """Copies an encoded picture, `size` bytes from `address`, to `start` of `target`. Fills `facts`, int64 `[FACTS]`, with zeros
    for a picture that is not good, and makes the EXIF of a good copy plain."""
    if size:
        copy_bytes(target.ctypes.data + start, address, size)
    if not _walk(target, start, start + size, facts, True) or not _is_sound(target, start, size, facts):
        facts[:] = 0


@take.fallback
def _(address, size, start, target, facts):
    target[start : start + size] = memory_at(address, size, target.dtype)
    facts[:] = 0  # Python looks at all of them


@kernel(light=True)
def read_headers(addresses, sizes, like, facts):
    """Fills `facts`, int64 `[N, FACTS]`, of the encoded pictures, `sizes[i]` bytes at `addresses[i]`, which do not change.
    A picture is good if Python would read the same facts; its pixels may still be damaged. `like` is any array of u8."""
    for i in range(len(sizes)):
        row = facts[i]
        if not _walk(array_at(addresses[i], sizes[i], like), 0, sizes[i], row, False):
            row[:] = 0


@read_headers.fallback
def _(addresses, sizes, like, facts):
    facts[...] = 0  # Python looks at all of them


read_headers.urgency = 0.5  # which halves the rate of a loop over photographs, and is no time of this fallback


@kernel(light=True)
def peek(addresses, sizes, start, shapes):
    """Fills `shapes`, int64 `[N, 3]`: height, width and channels as stored, of the JPEGs whose pixels begin within their first
    `PEEKED` bytes, with no EXIF before; zeros for all others. `start` is memory for these bytes."""
    for i in range(len(sizes)):
        end = min(sizes[i], start.size)
        shapes[i] = 0
        if end < _LEAST:
            continue
        copy_bytes(start.ctypes.data, addresses[i], end)
        at = 2 if start[0] == 0xFF and start[1] == 0xD8 else end
        height, width, channels = np.int64(0), np.int64(0), np.int64(0)
        while at + _LEAST <= end and start[at] == 0xFF:
            marker, length = start[at + 1], u16(start, at + 2)
            if marker == 0xDA:
                shapes[i, 0], shapes[i, 1], shapes[i, 2] = height, width, channels
                break
            if 0xC0 <= marker <= 0xCF and marker != 0xC4 and marker != 0xC8 and marker != 0xCC:
                if channels:
                    break
                height, width, channels = u16(start, at + 5), u16(start, at + 7), np.int64(start[at + 9])
            exif = marker == 0xE1 and reads(start, at + 4, 0x45, 0x78, 0x69, 0x66)
            if exif or marker < 0xC0 or marker == 0xFF or 0xD0 <= marker <= 0xD9 or length < 2:
                break
            at += 2 + length


@kernel(light=True)
def u16(data, at):
    """The number of 16 bits at `at`."""
    return (np.int64(data[at]) << 8) | np.int64(data[at + 1])


@kernel(light=True)
def _walk(data, first, end, facts, copied):
    """Reads the segments up to the pixels. Returns whether this is a plain picture of YCbCr or gray, or, if it is not a copy, of
    RGB or CMYK in one scan. Reduces the EXIF of a copy to the orientation. A file that is not a copy and has application segments
    after the frame header is left to Python."""
    if end - first < _LEAST or data[first] != 0xFF or data[first + 1] != 0xD8:
        return False
    at, exif, exif_end = first + 2, np.int64(0), np.int64(0)
    says_ycc, says_rgb, named_rgb, progressive = False, False, False, False
    facts[CHANNELS], facts[ORIENTATION] = 0, 1
    while at + 4 <= end:
        if data[at] != 0xFF:
            return False
        marker = data[at + 1]
        if marker == 0xFF:  # fill byte
            at += 1
            continue
        length = u16(data, at + 2)
        after = at + 2 + length
        if length < 2 or after > end or marker < 0xC0 or 0xD0 <= marker <= 0xD9:
            return False
        if marker == 0xDA:
            if length < 6:
                return False
            facts[SCANS] = PROGRESSIVE if progressive else WHOLE if data[at + 4] == facts[CHANNELS] else 0
            rgb = facts[CHANNELS] == 3 and not says_ycc and (says_rgb or named_rgb)
            facts[FORMAT] = COLOUR_JPEG if rgb or facts[CHANNELS] == 4 else JPEG
            if not facts[CHANNELS] or (facts[FORMAT] == COLOUR_JPEG and (copied or facts[SCANS] != WHOLE)):
                return False
            if exif:
                facts[ORIENTATION] = _orientation(data, exif, exif_end, copied)
                if not facts[ORIENTATION]:
                    return False
            if exif and copied:
                _make_plain(data, exif, exif_end, facts[ORIENTATION])
            return True
        if 0xC0 <= marker <= 0xCF and marker != 0xC4 and marker != 0xC8 and marker != 0xCC:
            channels = np.int64(data[at + 9]) if length >= 8 else 0
            well = marker <= 0xC2 and (channels == 1 or channels == 3 or channels == 4) and length == 8 + 3 * channels
            if facts[CHANNELS] or not well or data[at + 4] != 8:
                return False
            facts[HEIGHT], facts[WIDTH], facts[CHANNELS] = u16(data, at + 5), u16(data, at + 7), channels
            progressive = marker == 0xC2
            if not facts[HEIGHT] or not facts[WIDTH]:
                return False
            if channels == 3:
                named_rgb = data[at + 10] == 82 and data[at + 13] == 71 and data[at + 16] == 66
        elif facts[CHANNELS] and 0xE0 <= marker <= 0xEF and not copied:
            return False
        elif marker == 0xE1 and length >= 6 and reads(data, at + 4, 0x45, 0x78, 0x69, 0x66):  # "Exif"
            if exif or length < 8 or data[at + 8] or data[at + 9]:
                return False
            exif, exif_end = at + 10, after
        elif marker == 0xE0 and length >= 6 and reads(data, at + 4, 0x4A, 0x46, 0x49, 0x46):  # "JFIF"
            says_ycc = True
        elif marker == 0xEE and length >= 7 and reads(data, at + 4, 0x41, 0x64, 0x6F, 0x62):  # "Adobe"
            if length < 14 or facts[CHANNELS]:
                return False
            if not says_ycc and data[at + 8] == 0x65:
                says_ycc, says_rgb = data[at + 15] != 0, data[at + 15] == 0
        at = after
    return False


@kernel(light=True)
def reads(data, at, a, b, c, d):
    """Whether these four bytes are at `at`."""
    return data[at] == a and data[at + 1] == b and data[at + 2] == c and data[at + 3] == d


@kernel(light=True)
def _orientation(data, at, end, copied):
    """The orientation in a TIFF structure; 1 if it is damaged, 0 for a BigTIFF and, if this is not a copy, for a tag of type BYTE:
    Python reads these."""
    if end - at < 8 or data[at] != data[at + 1] or (data[at] != 0x49 and data[at] != 0x4D):
        return 1
    little = data[at] == 0x49
    if number(data, at + 2, 2, little) == 43:
        return 0
    start = at + number(data, at + 4, 4, little)
    if start + 2 > end:
        return 1
    count = min(number(data, start, 2, little), _ENTRIES)
    for entry in range(start + 2, start + 2 + 12 * count, 12):
        if entry + 4 > end:
            return 1
        kind = number(data, entry + 2, 2, little)
        if not copied and kind == _BYTE and number(data, entry, 2, little) == _TAG:
            return 0
        if number(data, entry, 2, little) == _TAG and kind in (_SHORT, _LONG):
            size = 2 if kind == _SHORT else 4
            if entry + 8 + size > end:
                return 1
            value = number(data, entry + 8, size, little)
            return value if 1 <= value <= 8 else 1
    return 1


@kernel(light=True)
def number(data, at, size, little):
    """The number of `size` bytes at this place, which lies inside `data`."""
    value = np.int64(0)
    for k in range(size):
        value = (value << 8) | np.int64(data[at + size - 1 - k if little else at + k])
    return value


@kernel(light=True)
def _make_plain(data, at, end, orientation):
    data[at:end] = 0
    for k in range(min(len(_PLAIN), end - at)):
        data[at + k] = _PLAIN[k]
    if at + 19 < end:
        data[at + 19] = orientation


@kernel(light=True)
def _is_sound(data, first, size, facts):
    """Whether the file is complete, with no more scans than a picture of its size can use."""
    ends, end = False, first + size
    for at in range(max(first, end - _END), end - 1):
        ends |= data[at] == 0xFF and data[at + 1] == 0xD9
    if not ends:
        return False
    if size < _SHORT_FILE or facts[SCANS] == WHOLE:
        return True
    marks, names, scans = data[first : end - 1], data[first + 1 : end], 0
    # Two arrays from 0 on: eight times as fast as one array with indices that may be negative.
    for k in range(len(marks)):
        scans += (marks[k] == 0xFF) & (names[k] == 0xDA)
    pixels = np.int64(facts[HEIGHT]) * np.int64(facts[WIDTH])
    return scans <= min(_MAX_SCANS, max(_FEW_SCANS, _MAX_SCANNED // pixels))
