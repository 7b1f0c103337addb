"""TIFF's variant of LZW. The format: TIFF 6.0, section 13."""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd._compiled.unaligned import load_bits

_CLEAR, _FIRST, _CODES = 256, 258, 4096  # 257 ends the data
_LEAST, _MOST = 9, 12  # bits of a code
_WORD = 8  # bytes that are copied at once
_ONE, _TWO, _THREE, _SEVEN, _LONGEST, _CLEARS = (np.uint64(n) for n in (1, 2, 3, 7, _WORD, _CLEAR))


@kernel(light=True)
def _last_bytes(data, byte):
    """The next bytes as the highest bytes of a number."""
    word = np.uint64(0)
    for k in range(byte, byte + 8):
        word = word << np.uint64(8) | np.uint64(data[k] if k < data.size else 0)
    return word


@kernel(forceinline=True)
def _unpack_short(data, out, starts, sizes, at, written, size, free, cleared, width):
    """Writes strings of up to `_WORD` bytes, which nearly all are in a photograph, until another code comes, or the width of
    codes changes, or an end is near. Three quarters of the time of `unpack` alone, because so little is to be checked."""
    place, last, width_ = np.uint64(at), 8 * np.int64(data.size) - 64, np.uint64(width)
    to, before, behind = np.uint64(written), np.uint64(size), np.uint64(64) - width_
    new, full = np.uint64(free), np.uint64((1 << width) - (1 if width < _MOST else 0))
    first, room = np.uint64(cleared), np.int64(out.size) - _WORD
    while new < full and np.int64(place) <= last and np.int64(to) <= room:
        code = load_bits(data, place >> _THREE) << (place & _SEVEN) >> behind
        if code >= new or code - _CLEARS < _TWO:
            break
        length = np.uint64(sizes[code])
        if length > _LONGEST:
            break
        starts[new], sizes[new] = to - before - first, before + _ONE
        new += _ONE
        place += width_
        copied = load_bits(out, first + np.uint64(starts[code]))
        copied = code << np.uint64(56) if code < _CLEARS else copied
        for k in range(_WORD):
            out[to + np.uint64(k)] = np.uint8(copied >> np.uint64(56 - 8 * k))
        to += length
        before = length
    return np.int64(place), np.int64(to), np.int64(before), np.int64(new)


@kernel
def unpack(data, out):
    """Fills `out`, u8, from a chunk, u8. Returns whether the chunk is valid and long enough.

    A string is a place in the output, after the last code that clears the table, and a size. So no string waits for the bytes
    of another one, and the tables fit into the L1 cache with the output that they point to. A short string is copied, and a
    single byte written, without a branch, which would be unpredictable.
    """
    starts, sizes = empty(_CODES, np.uint32), empty(_CODES, np.uint16)
    for code in range(_CLEAR):
        starts[code], sizes[code] = 0, 1
    at, written, cleared, width, free = np.int64(0), np.int64(0), np.int64(0), np.int64(_LEAST), np.int64(0)
    size, total, bits = np.int64(0), np.int64(out.size), 8 * np.int64(data.size)
    while written < total:
        if size > 0:
            at, written, size, free = _unpack_short(data, out, starts, sizes, at, written, size, free, cleared, width)
            if free == (1 << width) - 1 and width < _MOST:
                width += 1
            if written == total:
                break
        if width > bits - at:
            return False
        byte = at >> 3
        word = load_bits(data, np.uint64(byte)) if data.size - byte >= 8 else _last_bytes(data, byte)
        word <<= np.uint64(at & 7)
        code = np.int64(word >> np.uint64(64 - width))
        at += width
        if code == _CLEAR:
            width, free, size, cleared = np.int64(_LEAST), np.int64(_FIRST), np.int64(0), written
            continue
        if code == _CLEAR + 1 or free == 0 or free == _CODES:  # the table is cleared first, and never too full
            return False
        is_new = code == free
        if size > 0:  # a new string: the last one, and the first byte of this one, which comes right after it
            if code > free:
                return False
            starts[np.uint64(free)], sizes[np.uint64(free)] = written - size - cleared, size + 1
            free += 1
            if free == (1 << width) - 1 and width < _MOST:
                width += 1
        elif code > _CLEAR:
            return False
        start, size = cleared + np.int64(starts[np.uint64(code)]), np.int64(sizes[np.uint64(code)])
        if total - written >= _WORD and size <= _WORD and not is_new:
            copied = load_bits(out, np.uint64(start))
            copied = np.uint64(code) << np.uint64(56) if code < _CLEAR else copied
            place = np.uint64(written)
            for k in range(_WORD):
                out[place + np.uint64(k)] = np.uint8(copied >> np.uint64(56 - 8 * k))
        else:
            size = min(size, total - written)
            if code < _CLEAR:
                out[written] = code
            else:
                for k in range(size):  # a string that is new reaches into itself
                    out[written + k] = out[start + k]
        written += size
    return True


unpack.fallback(lambda data, out: False)
