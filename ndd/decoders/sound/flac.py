"""FLAC frames to samples. The format: RFC 9639.

Why it is here: with libsndfile instead, the speech loop (`bench speech` on FLAC files of read speech, 2 to 3 s, two threads)
falls from 548 to 330 files/s, and a file costs 0.96 ms of CPU instead of 0.57; decoding alone 0.66 ms instead of 0.27. Any
fault (a checksum, a frame number, a reserved code) ends the decoding, and the caller asks libsndfile.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel
from ndd._compiled.leading_zeros import leading_zeros
from ndd._compiled.unaligned import load_bits
from ndd._cpu.element_copies import copy_bytes

_SHORT = 12  # up to this many coefficients are applied while the numbers are read; encoders use up to 8 or 12
_LONGEST = 32  # the most coefficients
_SURE = np.uint64(56)  # a load always provides this many bits
_BEFORE = 32  # numbers of a line before the first sample, of any value
LINE = _BEFORE + (1 << 16)  # the longest block
_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12 = (np.uint64(k) for k in range(1, 13))


def _crc_tables() -> np.ndarray:
    """CRC-16 of x^16 + x^15 + x^2 + 1: `[k, b]` is that of byte `b` with `k` zeros after it."""
    tables = np.zeros((16, 256), np.uint16)
    for b in range(256):
        crc = b << 8
        for _ in range(8):
            crc = (crc << 1) ^ (0x8005 if crc & 0x8000 else 0)
        tables[0, b] = crc & 0xFFFF
    for k in range(1, 16):
        tables[k] = (tables[k - 1] << 8) ^ tables[0][tables[k - 1] >> 8]
    return tables


_CRC = _crc_tables()
_SIZES = np.array([0, 192, 576, 1152, 2304, 4608, 0, 0, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768])
_DEPTHS = np.array([0, 8, 12, -1, 16, 20, 24, 32])


@kernel
def _peek(data, at):
    """At least 57 bits from bit `at`, the first bit highest."""
    return load_bits(data, np.uint64(at >> 3)) << np.uint64(at & 7)


@kernel
def _unsigned(data, at, count):
    return np.int64(_peek(data, at) >> np.uint64(1) >> np.uint64(63 - count))


@kernel
def _signed(data, at, count):
    if count == 0:
        return np.int64(0)
    return np.int64(_peek(data, at)) >> np.int64(64 - count)


@kernel
def _crc16(data, first, last):
    """The CRC-16 of the bytes from `first` to `last`."""
    crc = np.int64(0)
    at = first
    while at + 16 <= last:  # only two of the 16 bytes depend on the previous step
        a, b = np.int64(load_bits(data, np.uint64(at))), np.int64(load_bits(data, np.uint64(at + 8)))
        a ^= crc << 48
        others = np.int64(
            _CRC[13, (a >> 40) & 255] ^ _CRC[12, (a >> 32) & 255] ^ _CRC[11, (a >> 24) & 255] ^ _CRC[10, (a >> 16) & 255]
            ^ _CRC[9, (a >> 8) & 255] ^ _CRC[8, a & 255] ^ _CRC[7, (b >> 56) & 255] ^ _CRC[6, (b >> 48) & 255]
            ^ _CRC[5, (b >> 40) & 255] ^ _CRC[4, (b >> 32) & 255] ^ _CRC[3, (b >> 24) & 255] ^ _CRC[2, (b >> 16) & 255]
            ^ _CRC[1, (b >> 8) & 255] ^ _CRC[0, b & 255]
        )  # fmt: skip
        crc = others ^ np.int64(_CRC[15, (a >> 56) & 255] ^ _CRC[14, (a >> 48) & 255])
        at += 16
    while at < last:
        crc = (crc << 8) & 0xFFFF ^ np.int64(_CRC[0, (crc >> 8) ^ np.int64(data[at])])
        at += 1
    return crc


@kernel
def _predicted(line, first, last, order, weights, shift):
    """Adds to each number its prediction from the numbers before it."""
    for i in range(first, last):
        total = np.int64(0)
        for j in range(order):
            total += weights[j] * line[i - 1 - j]
        line[i] += total >> shift


@kernel
def _numbers(data, at, end, order, size, line, weights, shift):
    """Fills `line` from `_BEFORE + order` on with the numbers after the first `order` of `size`, from their differences to the
    prediction. Returns the bit after them, or -1 if they are damaged."""
    method, parts_bits = _unsigned(data, at, 2), _unsigned(data, at + 2, 4)
    at += 6
    width, part = 4 + method, size >> parts_bits
    if method > 1 or part << parts_bits != size or part < order:
        return np.int64(-1)
    w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11 = (
        weights[0], weights[1], weights[2], weights[3], weights[4], weights[5],
        weights[6], weights[7], weights[8], weights[9], weights[10], weights[11],
    )  # fmt: skip
    o, some, many, most = np.uint64(_BEFORE + order), 0 < order <= _SHORT, 4 < order <= _SHORT, 8 < order <= _SHORT
    for p in range(1 << parts_bits):
        if at > end:
            return np.int64(-1)
        k, first, last = _unsigned(data, at, width), o, np.uint64(_BEFORE + part * (p + 1))
        at += width
        if k == (1 << width) - 1:  # plain differences
            k = _unsigned(data, at, 5)
            at += 5
            if at + k * np.int64(last - o) > end:
                return np.int64(-1)
            while o < last:
                line[o] = _signed(data, at, k)
                at += k
                o += _1
            _predicted(line, np.int64(first), np.int64(last), order, weights, shift)
            continue
        least, behind = np.uint64(k + 1), np.uint64(63 - k)
        # The highest `left` bits of `window` are unread, and byte `place` follows them. The bits below are valid too.
        window, place, left = _peek(data, at), np.uint64((at >> 3) + 7), np.uint64(56 - (at & 7))
        limit, near = np.uint64((end >> 3) + 8), line[o - _1]
        while o < last:
            window |= load_bits(data, place) >> left
            place += (np.uint64(63) - left) >> _3
            left |= _SURE
            if place > limit:
                return np.int64(-1)
            room = _SURE
            for _ in range(3):  # loading the next bits from memory takes as long as two numbers
                zeros = np.uint64(leading_zeros(window))
                if zeros + least <= room:
                    window <<= zeros
                    folded = np.int64(window >> behind) + (np.int64(zeros) - 1 << k)
                    window <<= least
                    left -= zeros + least
                    room -= zeros + least
                elif room < _SURE:
                    break
                else:
                    at, folded = _long(data, np.int64(place << _3) - np.int64(left), end, k)
                    if at > end:
                        return np.int64(-1)
                    window, place, left = _peek(data, at), np.uint64((at >> 3) + 7), np.uint64(56 - (at & 7))
                    room = np.uint64(0)
                number = folded >> 1 ^ -(folded & 1)
                if some:
                    far = w1 * line[o - _2] + w2 * line[o - _3] + w3 * line[o - _4]
                    if many:
                        far += (w4 * line[o - _5] + w5 * line[o - _6]) + (w6 * line[o - _7] + w7 * line[o - _8])
                        if most:
                            far += (w8 * line[o - _9] + w9 * line[o - _10]) + (
                                w10 * line[o - _11] + w11 * line[o - _12]
                            )
                    near = number + (far + w0 * near >> shift)
                    number = near
                line[o] = number
                o += _1
                if o == last:
                    break
        at = np.int64(place << _3) - np.int64(left)
        if order > _SHORT:
            _predicted(line, np.int64(first), np.int64(last), order, weights, shift)
    return at if at <= end else np.int64(-1)


@kernel
def _long(data, at, end, k):
    """Reads a number of many bits. Returns the bit after it, and the number."""
    high = np.int64(0)
    while at <= end and _peek(data, at) >> np.uint64(8) == 0:
        high += 56
        at += 56
    if at > end:
        return at, high
    zeros = leading_zeros(_peek(data, at))
    return at + zeros + 1 + k, (high + zeros) << k | _unsigned(data, at + zeros + 1, k)


@kernel
def _subframe(data, at, end, bits, size, line, weights):
    """Fills `line[:size]`. Returns the bit after the subframe, or -1 if it is damaged or incomplete."""
    if at > end:
        return np.int64(-1)
    kind, wasted = _unsigned(data, at, 8), np.int64(0)
    at += 8
    if kind >> 7:
        return np.int64(-1)
    if kind & 1:
        wasted = leading_zeros(_peek(data, at)) + 1
        at += wasted
        bits -= wasted
        if bits < 1:
            return np.int64(-1)
    kind >>= 1
    if kind == 0:
        line[_BEFORE : _BEFORE + size] = _signed(data, at, bits)
        at += bits
    elif kind == 1:
        if at + bits * size > end:
            return np.int64(-1)
        for i in range(size):
            line[_BEFORE + i] = _signed(data, at, bits)
            at += bits
    elif 8 <= kind <= 12 or kind >= 32:
        order = kind - 8 if kind < 32 else kind - 31
        if order > size or at + order * bits > end:
            return np.int64(-1)
        for i in range(order):
            line[_BEFORE + i] = _signed(data, at, bits)
            at += bits
        weights[:] = 0
        shift = np.int64(0)
        if kind < 32:
            for j in range(order):  # binomial coefficients with alternating signs
                weights[j] = order if j == 0 else -weights[j - 1] * (order - j) // (j + 1)
        else:
            precision, shift = _unsigned(data, at, 4) + 1, _signed(data, at + 4, 5)
            at += 9
            if precision == 16 or shift < 0 or at + order * precision > end:
                return np.int64(-1)
            for j in range(order):
                weights[j] = _signed(data, at, precision)
                at += precision
        at = _numbers(data, at, end, order, size, line, weights, shift)
        if at < 0:
            return at
    else:
        return np.int64(-1)
    if wasted:
        for i in range(size):
            line[_BEFORE + i] <<= wasted
    return at


@kernel
def frames(address, words, begin, nbytes, length, bits, lines, out):
    """Fills `out`, int32 `[n, channels]` of full scale, from the frames at byte `begin` of a file of `nbytes` at `address` with
    `length` samples of each channel. Returns whether all were valid. `words`, uint64 `[nbytes // 8 + 4]`, and `lines`, int64
    `[channels, LINE]`, are scratch memory."""
    words[-4:] = 0
    data = words.view(np.uint8)
    copy_bytes(words.ctypes.data, address, nbytes)
    channels, done, total, up = out.shape[1], 0, len(out), 32 - bits
    weights = np.zeros(_LONGEST, np.int64)
    start, end, usual = begin, nbytes * 8, np.int64(0)
    while done < total:
        at = np.int64(start * 8)
        if at + 80 > end:
            return False
        head = _unsigned(data, at, 32)
        if head >> 17 != 0x7FFC:
            return False
        varies, size_code, rate_code = head >> 16 & 1, head >> 12 & 15, head >> 8 & 15
        assignment, depth = head >> 4 & 15, _DEPTHS[head >> 1 & 7]
        if (
            assignment > 10
            or (2 if assignment > 7 else assignment + 1) != channels
            or depth not in (0, bits)
            or head & 1
        ):
            return False
        at += 32
        first = _unsigned(data, at, 8)
        further = max(0, leading_zeros(~(np.uint64(first) << np.uint64(56))) - 1)
        number = first if first < 128 else first & (1 << 6 - further) - 1
        at += 8
        if further > 6 or 128 <= first < 192:
            return False
        for _ in range(further):
            number = number << 6 | _unsigned(data, at, 8) & 63
            at += 8
        size = np.int64(_SIZES[size_code])
        if 6 <= size_code <= 7:
            wide = 8 * (size_code - 5)
            size = _unsigned(data, at, wide) + 1
            at += wide
        at += 8 if rate_code == 12 else 16 if rate_code > 12 else 0
        at += 8  # the header's checksum, which that of the frame includes
        usual = usual if done else size
        if size == 0 or rate_code == 15 or done + size > length or number * (1 if varies else usual) != done:
            return False
        for c in range(channels):
            wider = (assignment in (8, 10) and c == 1) or (assignment == 9 and c == 0)
            at = _subframe(data, at, end, bits + wider, size, lines[c], weights)
            if at < 0:
                return False
        last = (at + 7) >> 3
        if last + 2 > nbytes or _crc16(data, start, last) != _unsigned(data, last * 8, 16):
            return False
        start = last + 2
        size = min(size, total - done)
        if channels == 1:
            only = out[done : done + size].reshape(-1)
            for i in range(size):
                only[i] = lines[0, _BEFORE + i] << up
        elif assignment < 8:
            for c in range(channels):
                for i in range(size):
                    out[done + i, c] = lines[c, _BEFORE + i] << up
        else:
            for i in range(size):
                a, b = lines[0, _BEFORE + i], lines[1, _BEFORE + i]
                if assignment == 8:
                    b = a - b
                elif assignment == 9:
                    a += b
                else:
                    mid = a << 1 | b & 1
                    a, b = mid + b >> 1, mid - b >> 1
                out[done + i, 0] = a << up
                out[done + i, 1] = b << up
        done += size
    return True
