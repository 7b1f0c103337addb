"""FLAC files as they lie in memory, where nothing about them is unusual: the rest is left to libsndfile."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ndd._cpu import flac
from ndd.decoders._wav import Samples

_BITS = (8, 16, 24)
_MOST = 512  # samples a byte: a header that claims more is left to libsndfile, which reads block by block


class Stream(NamedTuple):
    """What the header of a file says."""

    data: np.ndarray
    begin: int  # of its frames
    rate: int
    channels: int
    bits: int
    length: int  # in samples of each channel

    def samples(self, count: int) -> Samples | None:
        """The first `count` samples; None for a file that is damaged or has something unusual in it."""
        out = np.empty((count, self.channels), np.int32)
        fine = flac.decoded(self.data, self.begin, self.length, self.bits, out)
        return Samples(out, self.rate, self.bits) if fine else None


def stream_of(data: np.ndarray) -> Stream | None:
    """The header of a FLAC file, None for what is none."""
    if len(data) < 42 or data[:4].tobytes() != b"fLaC":
        return None
    # After a block's head (one byte, its length in three): sizes of frames (10 bytes), then rate, channels, bits, length.
    facts = int.from_bytes(data[18:26].tobytes(), "big")
    rate, channels, bits, length = facts >> 44, (facts >> 41 & 7) + 1, (facts >> 36 & 31) + 1, facts & (1 << 36) - 1
    place, last = 4, data[4] & 127 != 0 or data[7] != 34
    while not last and place + 4 <= len(data):
        head = int.from_bytes(data[place : place + 4].tobytes(), "big")
        last, place = bool(head >> 31), place + 4 + (head & 0xFFFFFF)
    if place <= 4 or place >= len(data) or bits not in _BITS or not rate or not 0 < length <= _MOST * len(data):
        return None
    return Stream(data, place, rate, channels, bits, length)
