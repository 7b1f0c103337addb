"""Reads integers of several bytes from a file's bytes, for kernels. Integers of eight bytes are signed."""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel


@kernel
def little_endian(data, at, count):
    """The number in `count` bytes from `at` on, the lowest byte first."""
    value = np.int64(0)
    for k in range(count):
        value |= np.int64(data[at + k]) << (8 * k)
    return value


@kernel
def big_endian(data, at, count):
    """The same, the highest byte first."""
    value = np.int64(0)
    for k in range(count):
        value = value << 8 | np.int64(data[at + k])
    return value
