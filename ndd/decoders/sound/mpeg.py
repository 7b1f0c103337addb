"""The length of an MPEG sound file (MP3, MP2), from the headers of its frames. The format: ISO/IEC 11172-3, 13818-3.

libmpg123 trusts the first frame: a tag with the number of frames, which is wrong if another file is appended, or else a bit
rate, which is wrong for files of variable bit rate. It then drops the rest without an error. So the frames are counted here,
without decoding.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel
from ndd._cpu.byte_order import big_endian

TRIMMED = 5760  # the most samples of each channel without sound: the tag's frame, and the padding at both ends

# kbit/s by version (1; 2 and 2.5), layer (I, II, III) and number.
_BIT_RATES = np.array(
    [
        [
            [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 0],
            [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 0],
            [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0],
        ],
        [
            [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256, 0],
            [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0],
            [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0],
        ],
    ]
)
_RATES = np.array([44100, 48000, 32000])
_SAME = 0xFFFE0C00  # bits of a header that all frames of a file share: sync word, version, layer, sampling rate


@kernel
def _frame(head):
    """Bytes and samples of a frame with this header; 0 bytes for an invalid header."""
    version, layer, rate, bits = head >> 19 & 3, 3 - (head >> 17 & 3), head >> 10 & 3, head >> 12 & 15
    if head >> 21 != 0x7FF or version == 1 or layer == 3 or rate == 3:
        return np.int64(0), np.int64(0)
    later, padding = np.int64(version != 3), head >> 9 & 1
    speed = np.int64(_BIT_RATES[later, layer, bits]) * 1000
    hertz = np.int64(_RATES[rate]) >> (0 if version == 3 else 1 if version == 2 else 2)
    if speed == 0:
        return np.int64(0), np.int64(0)
    if layer == 0:
        return (12 * speed // hertz + padding) * 4, np.int64(384)
    samples = np.int64(576 if layer == 2 and later else 1152)
    return samples // 8 * speed // hertz + padding, samples


@kernel
def sound_length(data):
    """Samples of each channel in all frames of a file, u8, that have the format of its first frame. Data between frames is
    skipped."""
    end, at, first, total = np.int64(len(data)), np.int64(0), np.int64(0), np.int64(0)
    if end >= 10 and big_endian(data, 0, 3) == 0x494433:  # "ID3"
        at = 10 + (np.int64(data[6]) << 21 | np.int64(data[7]) << 14 | np.int64(data[8]) << 7 | np.int64(data[9]))
    while at + 4 <= end:
        head = big_endian(data, at, 4)
        size, samples = _frame(head)
        behind = at + size
        follows = size > 0 and (first == 0 or head & _SAME == first)
        if follows and behind + 4 <= end:  # a real frame is followed by another
            follows = first != 0 or (big_endian(data, behind, 4) & _SAME) == head & _SAME
        if follows:
            first = head & _SAME
            total += samples
            at = behind
        else:
            at += 1
    return total
