"""TIFF's variant of LZW. The format: TIFF 6.0, section 13."""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd._compiled.unaligned import load_bits

_CLEAR, _FIRST, _CODES = 256, 258, 4096  # 257 ends the data
_LEAST, _MOST = 9, 12  # bits of a code
_AT_ONCE = 7  # bytes of a string that fit into its number
_SIZE = np.uint64(8 * _AT_ONCE)  # the bit where its size begins; 0 for a longer one


@kernel(light=True)
def _last_bytes(data, byte):
    """The next bytes as the highest bytes of a number."""
    word = np.uint64(0)
    for k in range(byte, byte + 8):
        word = word << np.uint64(8) | np.uint64(data[k] if k < data.size else 0)
    return word


@kernel
def unpack(data, out):
    """Fills `out`, u8, from a chunk, u8. Returns whether the chunk is valid and long enough.

    A short string is a number with its bytes and size: it is written without a branch, which would be unpredictable. A longer
    one is a place in the output.
    """
    strings, starts, sizes = empty(_CODES, np.uint64), empty(_CODES, np.int64), empty(_CODES, np.int64)
    for code in range(_CLEAR):
        strings[code] = np.uint64(1) << _SIZE | np.uint64(code)
    at, written, width, free = np.int64(0), np.int64(0), np.int64(_LEAST), np.int64(0)
    last, size, total, bits = np.uint64(0), np.int64(0), out.size, 8 * data.size
    while written < total:
        if width > bits - at:
            return False
        byte = at >> 3
        word = load_bits(data, np.uint64(byte)) if data.size - byte >= 8 else _last_bytes(data, byte)
        word <<= np.uint64(at & 7)
        code = np.int64(word >> np.uint64(64 - width))
        at += width
        if code == _CLEAR:
            width, free, size = np.int64(_LEAST), np.int64(_FIRST), np.int64(0)
            continue
        if code == _CLEAR + 1 or free == 0 or free == _CODES:  # the table is cleared first, and never too full
            return False
        if size > 0:  # a new string: the last one, and the first byte of this one, which comes right after it
            if code > free:
                return False
            first = (strings[np.uint64(code)] if code < free else last) & np.uint64(255)
            if size < _AT_ONCE:
                strings[np.uint64(free)] = (last | first << np.uint64(8 * size)) + (np.uint64(1) << _SIZE)
            else:
                strings[np.uint64(free)] = last & ((np.uint64(1) << _SIZE) - np.uint64(1))
                starts[free], sizes[free] = written - size, size + 1
            free += 1
            if free == (1 << width) - 1 and width < _MOST:
                width += 1
        elif code > _CLEAR:
            return False
        last = strings[np.uint64(code)]
        size = np.int64(last >> _SIZE)
        if total - written >= _AT_ONCE + 1:
            place = np.uint64(written)
            for k in range(_AT_ONCE + 1):
                out[place + np.uint64(k)] = np.uint8(last >> np.uint64(8 * k))
        else:
            for k in range(min(size, total - written)):
                out[written + k] = np.uint8(last >> np.uint64(8 * k))
        if size == 0:
            size = min(sizes[code], total - written)
            for k in range(size):
                out[written + k] = out[starts[code] + k]
        written += size
    return True


unpack.fallback(lambda data, out: False)
