"""Pages of Ogg files, for kernels. The format: RFC 3533. Only files with one stream are read, from its first page to its
last."""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel
from ndd._cpu.byte_order import little_endian
from ndd._cpu.element_copies import copy_bytes

_HEAD = 27  # bytes of a page before its lacing values
_CONTINUED, _FIRST, _LAST = 1, 2, 4  # flags of a page


def _crc_tables() -> np.ndarray:
    """CRC-32 of 0x04C11DB7, the highest bit first: `[k, b]` is that of byte `b` with `k` zeros after it."""
    tables = np.zeros((8, 256), np.uint32)
    for b in range(256):
        crc = b << 24
        for _ in range(8):
            crc = (crc << 1 ^ (0x04C11DB7 if crc >> 31 else 0)) & 0xFFFFFFFF
        tables[0, b] = crc
    for k in range(1, 8):
        tables[k] = (tables[k - 1] << 8) ^ tables[0][tables[k - 1] >> 24]
    return tables


_CRC = _crc_tables()


@kernel
def _crc(data, first, last):
    """The checksum of the bytes from `first` to `last`, with the page's own checksum (bytes 22 to 26) taken as 0."""
    crc = np.int64(0)
    at = first
    while at < first + 26:
        byte = np.int64(0) if at >= first + 22 else np.int64(data[at])
        crc = (crc << 8) & 0xFFFFFFFF ^ np.int64(_CRC[0, (crc >> 24) ^ byte])
        at += 1
    while at + 8 <= last:
        eight = data[at : at + 8]
        crc = np.int64(
            _CRC[7, (crc >> 24) ^ eight[0]] ^ _CRC[6, (crc >> 16) & 255 ^ eight[1]]
            ^ _CRC[5, (crc >> 8) & 255 ^ eight[2]] ^ _CRC[4, crc & 255 ^ eight[3]]
            ^ _CRC[3, eight[4]] ^ _CRC[2, eight[5]] ^ _CRC[1, eight[6]] ^ _CRC[0, eight[7]]
        )  # fmt: skip
        at += 8
    while at < last:
        crc = (crc << 8) & 0xFFFFFFFF ^ np.int64(_CRC[0, (crc >> 24) ^ data[at]])
        at += 1
    return crc


@kernel(light=True)
def stream(address, nbytes, head, numbers):
    """Whether the file of `nbytes` at `address` is one complete stream. It must begin with three packets, each within one page,
    the first alone in its page, the third at the end of its page. `numbers` is set to the byte where the third packet begins,
    its length, the byte of the page after it, the last position, the byte where the second packet begins, and its length.
    `head`, uint8 `[282]`, is scratch memory."""
    at, pages, packets, inside, size = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    serial = np.int64(0)
    while at + _HEAD < nbytes:
        copy_bytes(head.ctypes.data, address + at, min(np.int64(head.size), nbytes - at))
        segments, flags = np.int64(head[26]), np.int64(head[5])
        place = at + _HEAD + segments
        if little_endian(head, 0, 4) != 0x5367674F or head[4] != 0 or segments == 0 or place > nbytes:  # "OggS"
            return False
        serial = little_endian(head, 14, 4) if pages == 0 else serial
        if (
            little_endian(head, 14, 4) != serial
            or little_endian(head, 18, 4) != pages
            or (flags & _FIRST != 0) != (pages == 0)
            or (flags & _CONTINUED != 0) != (inside != 0)
        ):
            return False
        ends = np.int64(-1)
        for s in range(segments):
            size += head[_HEAD + s]
            place += head[_HEAD + s]
            inside = np.int64(1)
            if head[_HEAD + s] < 255:
                packets += 1
                inside, ends = np.int64(0), np.int64(s)
                if packets <= 3 and place - size < at + _HEAD + segments:
                    return False
                if packets == 2:
                    numbers[4], numbers[5] = place - size, size
                elif packets == 3:
                    numbers[0], numbers[1], numbers[2] = place - size, size, place
                    if s + 1 < segments:
                        return False
                size = np.int64(0)
        if place > nbytes or (pages == 0 and packets != 1):
            return False
        at = place
        pages += 1
        if flags & _LAST:
            numbers[3] = little_endian(head, 6, 8)
            return at == nbytes and inside == 0 and packets > 3 and ends >= 0
    return False


@kernel
def sound_pages(data, begin, nbytes):
    """Whether the pages fill the bytes, one of them begins at `begin`, and all checksums are right."""
    at, begins = np.int64(0), False
    while at < nbytes:
        begins |= at == begin
        if at + _HEAD > nbytes or at + _HEAD + data[at + 26] > nbytes:
            return False
        last = at + _HEAD + data[at + 26]
        for s in range(data[at + 26]):
            last += data[at + _HEAD + s]
        if last > nbytes or _crc(data, at, last) != little_endian(data, at + 22, 4):
            return False
        at = last
    return begins


@kernel
def packets(data, begin, nbytes):
    """Moves the packets in the pages from byte `begin` on to the beginning of `data`, one after the other.

    Returns:
        for each packet the byte where it ends, and the position of its page if it is the last packet that ends there, else -1.
    """
    at, count = begin, np.int64(0)
    while at < nbytes:
        segments = np.int64(data[at + 26])
        last = at + _HEAD + segments
        for s in range(segments):
            last += data[at + _HEAD + s]
            count += data[at + _HEAD + s] < 255
        at = last
    ends, positions = np.empty(count, np.int64), np.empty(count, np.int64)
    at, to, count = begin, np.int64(0), np.int64(0)
    lacing = np.empty(256, np.uint8)
    while at < nbytes:
        segments, position = np.int64(data[at + 26]), little_endian(data, at + 6, 8)
        place, last = at + _HEAD + segments, np.int64(-1)
        for s in range(segments):
            lacing[s] = data[at + _HEAD + s]
        for s in range(segments):
            size = np.int64(lacing[s])
            for k in range(size):
                data[to + k] = data[place + k]
            to += size
            place += size
            if size < 255:
                ends[count], positions[count] = to, -1
                last = count
                count += 1
        if last >= 0:
            positions[last] = position
        at = place
    return ends, positions
