"""FLAC frames to samples. The format: RFC 9639.

libFLAC by libsndfile takes two to three times as long, and to open a file as long as a third of a second of speech. Whatever
is not as it should be (a checksum, a number of a frame, a reserved code) ends the decoding, and the caller asks libsndfile.
"""

from __future__ import annotations

import numpy as np

from ndd._cpu.jit import External, kernel
from ndd._cpu.leading_zeros import leading_zeros

_copy = External("memcpy", "uintp(uintp, uintp, uintp)")
_SHORT = 12  # coefficients that a loop of its own keeps in registers; encoders take up to 8, or to 12
_USUAL = 8  # those of most files: another loop, with fewer products
_LONGEST = 32  # coefficients


def _crc_tables() -> np.ndarray:
    """CRC-16 of x^16 + x^15 + x^2 + 1: `[k, b]` is that of byte `b` with `k` zeros behind it."""
    tables = np.zeros((8, 256), np.uint16)
    for b in range(256):
        crc = b << 8
        for _ in range(8):
            crc = (crc << 1) ^ (0x8005 if crc & 0x8000 else 0)
        tables[0, b] = crc & 0xFFFF
    for k in range(1, 8):
        tables[k] = (tables[k - 1] << 8) ^ tables[0][tables[k - 1] >> 8]
    return tables


_CRC = _crc_tables()
_SIZES = np.array([0, 192, 576, 1152, 2304, 4608, 0, 0, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768])
_DEPTHS = np.array([0, 8, 12, -1, 16, 20, 24, 32])


@kernel
def _peek(words, at):
    """The 64 bits from bit `at`."""
    i, s = at >> 6, np.uint64(at & 63)
    return words[i] << s | words[i + 1] >> np.uint64(1) >> np.uint64(63) - s


@kernel
def _unsigned(words, at, count):
    return np.int64(_peek(words, at) >> np.uint64(1) >> np.uint64(63 - count))


@kernel
def _signed(words, at, count):
    if count == 0:
        return np.int64(0)
    return np.int64(_peek(words, at)) >> np.int64(64 - count)


@kernel
def _crc16(words, first, last):
    """Of the bytes from `first` to `last`."""
    crc = np.int64(0)
    at = first
    while at + 8 <= last:
        w = np.int64(_peek(words, at * 8))
        w ^= crc << 48
        crc = np.int64(
            _CRC[7, (w >> 56) & 255] ^ _CRC[6, (w >> 48) & 255] ^ _CRC[5, (w >> 40) & 255] ^ _CRC[4, (w >> 32) & 255]
            ^ _CRC[3, (w >> 24) & 255] ^ _CRC[2, (w >> 16) & 255] ^ _CRC[1, (w >> 8) & 255] ^ _CRC[0, w & 255]
        )  # fmt: skip
        at += 8
    while at < last:
        crc = (crc << 8) & 0xFFFF ^ np.int64(_CRC[0, (crc >> 8) ^ _unsigned(words, at * 8, 8)])
        at += 1
    return crc


@kernel
def _residual(words, at, end, order, size, line):
    """Fills `line[order:size]` with the differences from the prediction; the bit behind them, -1 if they are damaged."""
    method, parts_bits = _unsigned(words, at, 2), _unsigned(words, at + 2, 4)
    at += 6
    width, part = 4 + method, size >> parts_bits
    if method > 1 or part << parts_bits != size or part < order:
        return np.int64(-1)
    o = np.int64(order)
    for p in range(1 << parts_bits):
        k, last = _unsigned(words, at, width), np.int64(part * (p + 1))
        at += width
        if k == (1 << width) - 1:  # plain numbers
            k = _unsigned(words, at, 5)
            at += 5
            if at + k * (last - o) > end:
                return np.int64(-1)
            while o < last:
                line[o] = _signed(words, at, k)
                at += k
                o += 1
            continue
        least, shift = k + 1, np.uint64(63 - k)
        window, left = np.uint64(0), np.int64(0)
        while o < last:
            if left < 48:  # some numbers are taken from 64 bits before these are looked for again
                if at > end:
                    return np.int64(-1)
                window, left = _peek(words, at), np.int64(64)
            zeros = leading_zeros(window)
            high, taken = zeros, zeros + least
            if taken > left:
                high = np.int64(0)
                while zeros == 64:
                    high += 64
                    at += 64
                    if at > end:
                        return np.int64(-1)
                    window = _peek(words, at)
                    zeros = leading_zeros(window)
                high += zeros
                at += zeros
                window, zeros, taken, left = _peek(words, at), np.int64(0), least, np.int64(64)
            window <<= np.uint64(zeros)
            low = np.int64((window << np.uint64(1)) >> np.uint64(1) >> shift)
            window <<= np.uint64(least)
            left -= taken
            at += taken
            folded = high << k | low
            line[o] = folded >> 1 ^ -(folded & 1)
            o += 1
    return at if at <= end else np.int64(-1)


@kernel
def _predicted(line, order, size, weights, shift):
    """Adds to each number the prediction from those before."""
    if order > _SHORT:
        for i in range(order, size):
            total = np.int64(0)
            for j in range(order):
                total += weights[j] * line[i - 1 - j]
            line[i] += total >> shift
        return
    for i in range(order, min(size, _SHORT)):
        total = np.int64(0)
        for j in range(order):
            total += weights[j] * line[i - 1 - j]
        line[i] += total >> shift
    if size <= _SHORT:
        return
    w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11 = (
        weights[0], weights[1], weights[2], weights[3], weights[4], weights[5],
        weights[6], weights[7], weights[8], weights[9], weights[10], weights[11],
    )  # fmt: skip
    last = line[_SHORT - 1]
    if order <= _USUAL:
        for i in range(_SHORT, size):
            past = line[i - _SHORT : i]
            far = (w1 * past[10] + w2 * past[9] + w3 * past[8]) + (w4 * past[7] + w5 * past[6])
            last = line[i] + (far + (w6 * past[5] + w7 * past[4]) + w0 * last >> shift)
            line[i] = last
        return
    for i in range(_SHORT, size):
        past = line[i - _SHORT : i]
        far = (
            (w1 * past[10] + w2 * past[9] + w3 * past[8])
            + (w4 * past[7] + w5 * past[6])
            + (w6 * past[5] + w7 * past[4])
        )
        far += (w8 * past[3] + w9 * past[2]) + (w10 * past[1] + w11 * past[0])
        last = line[i] + (far + w0 * last >> shift)
        line[i] = last


@kernel
def _subframe(words, at, end, bits, size, line, weights):
    """Fills `line[:size]`; the bit behind the subframe, -1 if it is damaged."""
    kind, wasted = _unsigned(words, at, 8), np.int64(0)
    at += 8
    if kind >> 7:
        return np.int64(-1)
    if kind & 1:
        wasted = leading_zeros(_peek(words, at)) + 1
        at += wasted
        bits -= wasted
        if bits < 1:
            return np.int64(-1)
    kind >>= 1
    if kind == 0:
        line[:size] = _signed(words, at, bits)
        at += bits
    elif kind == 1:
        if at + bits * size > end:
            return np.int64(-1)
        for i in range(size):
            line[i] = _signed(words, at, bits)
            at += bits
    elif 8 <= kind <= 12 or kind >= 32:
        order = kind - 8 if kind < 32 else kind - 31
        if order > size or at + order * bits > end:
            return np.int64(-1)
        for i in range(order):
            line[i] = _signed(words, at, bits)
            at += bits
        weights[:] = 0
        shift = np.int64(0)
        if kind < 32:
            for j in range(order):  # binomial numbers, of alternating sign
                weights[j] = order if j == 0 else -weights[j - 1] * (order - j) // (j + 1)
        else:
            precision, shift = _unsigned(words, at, 4) + 1, _signed(words, at + 4, 5)
            at += 9
            if precision == 16 or shift < 0:
                return np.int64(-1)
            for j in range(order):
                weights[j] = _signed(words, at, precision)
                at += precision
        at = _residual(words, at, end, order, size, line)
        if at < 0:
            return at
        _predicted(line, order, size, weights, shift)
    else:
        return np.int64(-1)
    if wasted:
        for i in range(size):
            line[i] <<= wasted
    return at


@kernel
def frames(address, words, begin, nbytes, length, bits, lines, out):
    """Fills `out`, int32 `[n, channels]`, from the frames at byte `begin` of a file of `nbytes` at `address` with `length`
    samples of each channel; whether all of it was well. `words`, uint64 `[nbytes // 8 + 3]`, and `lines`, int64
    `[channels, 65536]`, are written to."""
    words[-3:] = 0
    _copy(words.ctypes.data, address, nbytes)
    for i in range(words.size):
        w = words[i]
        w = w >> np.uint64(32) | w << np.uint64(32)
        w = (w >> np.uint64(16)) & np.uint64(0xFFFF0000FFFF) | (w & np.uint64(0xFFFF0000FFFF)) << np.uint64(16)
        words[i] = (w >> np.uint64(8)) & np.uint64(0xFF00FF00FF00FF) | (w & np.uint64(0xFF00FF00FF00FF)) << np.uint64(8)
    channels, done, total = out.shape[1], 0, len(out)
    weights = np.zeros(_LONGEST, np.int64)
    start, end, usual = begin, nbytes * 8, np.int64(0)
    while done < total:
        at = np.int64(start * 8)
        if at + 80 > end:
            return False
        head = _unsigned(words, at, 32)
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
        first = _unsigned(words, at, 8)
        further = max(0, leading_zeros(~(np.uint64(first) << np.uint64(56))) - 1)
        number = first if first < 128 else first & (1 << 6 - further) - 1
        at += 8
        if further > 6 or 128 <= first < 192:
            return False
        for _ in range(further):
            number = number << 6 | _unsigned(words, at, 8) & 63
            at += 8
        size = np.int64(_SIZES[size_code])
        if 6 <= size_code <= 7:
            wide = 8 * (size_code - 5)
            size = _unsigned(words, at, wide) + 1
            at += wide
        at += 8 if rate_code == 12 else 16 if rate_code > 12 else 0
        at += 8  # the header's checksum: that of the frame covers it
        usual = usual if done else size
        if size == 0 or rate_code == 15 or done + size > length or number * (1 if varies else usual) != done:
            return False
        for c in range(channels):
            wider = (assignment in (8, 10) and c == 1) or (assignment == 9 and c == 0)
            at = _subframe(words, at, end, bits + wider, size, lines[c], weights)
            if at < 0:
                return False
        last = (at + 7) >> 3
        if last + 2 > nbytes or _crc16(words, start, last) != _unsigned(words, last * 8, 16):
            return False
        start = last + 2
        size = min(size, total - done)
        if assignment < 8:
            for c in range(channels):
                for i in range(size):
                    out[done + i, c] = lines[c, i]
        else:
            for i in range(size):
                a, b = lines[0, i], lines[1, i]
                if assignment == 8:
                    b = a - b
                elif assignment == 9:
                    a += b
                else:
                    mid = a << 1 | b & 1
                    a, b = mid + b >> 1, mid - b >> 1
                out[done + i, 0] = a
                out[done + i, 1] = b
        done += size
    return True
