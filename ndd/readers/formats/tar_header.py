"""`wrong_headers`: checks the headers of an archive's members, to see whether they are at the places in an index.

A header of 512 bytes that was just read is not in the cache: reading all of it takes 1.6 us, a tenth of the time of a record
of 100 kB. If its magic and its size are right it is a header; in archives without magic the checksum tells.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import zeros
from ndd._compiled.jit import kernel

BLOCK = 512
_SIZE, _CHECKSUM, _MARK = 124, 148, 257  # where these fields begin; 12, 8 and 5 bytes
_LARGE = 1 << 33  # bytes: the size of such a member may stand in another header


@kernel
def _octal(data, start, end):
    value, digits = 0, 0
    for at in range(start, end):
        if 48 <= data[at] < 56:
            value, digits = value * 8 + data[at] - 48, digits + 1
        elif digits:
            break
    return value


@kernel
def _marked(data, start):
    same = 0
    for k, letter in enumerate(b"ustar"):
        same += data[start + _MARK + k] == letter
    return same == 5


@kernel
def _checksum_right(data, start):
    total = 8 * 32
    for at in range(start, start + _CHECKSUM):
        total += data[at]
    for at in range(start + _CHECKSUM + 8, start + BLOCK):
        total += data[at]
    return total == _octal(data, start + _CHECKSUM, start + _CHECKSUM + 8)


@kernel
def wrong_headers(data, starts, sizes):
    """For each position `starts[i]` of `data`: 0 for a header with `sizes[i]`, 1 for no header, 2 for another size."""
    states = zeros(len(starts), np.uint8)
    for i in range(len(starts)):
        start = starts[i]
        field = start + _SIZE
        size = _octal(data, field, field + 12)
        if data[field] == 128:
            size = 0
            for at in range(field + 4, field + 12):
                size = size * 256 + data[at]
        if size == sizes[i] and _marked(data, start):
            continue
        if not _checksum_right(data, start):
            states[i] = 1
        elif size != sizes[i] and sizes[i] < _LARGE:
            states[i] = 2
    return states
