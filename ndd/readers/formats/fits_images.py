"""Plain images of FITS files in compiled code: a call opens files, reads their headers, and reads the pixels to where they are
wanted, in the machine's byte order.

Why it is here: the parser in Python (`fits_file.py`) holds the interpreter, for which reader threads wait in turn. With the
parser alone an image costs 20 us of CPU instead of 9.5 (1 kB, two threads; 60 instead of 39 for 100 kB). On a machine with 16
threads and an H200 the reader gives 0.9 times as many images as DALI with the parser alone, 3.8 times as many with this module.

It knows the plain case: images without compression and scaling (but for the BZERO of types that FITS lacks), cards as the
standard writes them. Everything else, errors included, is left to `fits_file.py`, which gives the same result for every
file, or says why it cannot be read.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import array_at
from ndd._compiled.jit import External, kernel
from ndd._cpu.byte_order import big_endian
from ndd._cpu.element_copies import copy_bytes
from ndd._cpu.files import read_range

KINDS = ("u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")
"""The element types of images, as NumPy names them; `KIND` is a place in this list."""

MOST_AXES = 8
# A row of `facts` about an image: its outcome, its element type, its axes (the slowest first, from SHAPE on), where
# it begins in its buffer and how many bytes it has there.
STATE, KIND, NDIM, PLACE, BYTES, SHAPE = range(6)
FACTS = SHAPE + MOST_AXES
LEFT, DONE, CROWDED = range(3)
"""The outcome: the image is left to Python; it was read; or there was no room, and the other facts tell the size that it
needs."""
# A row of `rooms` about a buffer: its address, where in it the next image may begin, and where the last must end.
ADDRESS, USED, LIMIT = range(3)

_BLOCK, _CARD = 2880, 80
_HEAD = 12 * _BLOCK  # bytes: a header or pixels up to this size are read at once
_FIRST = 3 * _BLOCK  # read of the first file; of later files as much as the one before needed
_MORE = 4 * _BLOCK  # read of a header that goes on, or stands behind other data
_LONGEST = 4096  # blocks of a header
_LINE = 64  # bytes: a block of 2880 is 45 of them
_LARGE = 1 << 40  # bytes or elements: more cannot be an image
_PIECE = 1 << 16  # bytes of pixels that are read at once, and byte-swapped while they are in the cache

# The facts in the cards seen so far: `cards`, int64. UNLIKE: whether it is not a plain image; SEEN: a bit for each card.
_BITPIX, _NAXIS, _PCOUNT, _GCOUNT, _BSCALE, _BZERO, _UNLIKE, _SEEN, _AXES = range(9)
_CARD_FACTS = _AXES + MOST_AXES
_HAS_BITPIX, _HAS_NAXIS, _HAS_AXES = 1, 2, 4


def _word(text: str) -> int:
    """Eight characters as the number that `big_endian` makes of them."""
    return int.from_bytes(text.ljust(8).encode(), "big")


_SIMPLE, _XTENSION, _END = _word("SIMPLE"), _word("XTENSION"), _word("END")
_BITPIX_CARD, _NAXIS_CARD, _BLANK_CARD = _word("BITPIX"), _word("NAXIS"), _word("BLANK")
_PCOUNT_CARD, _GCOUNT_CARD, _GROUPS_CARD = _word("PCOUNT"), _word("GCOUNT"), _word("GROUPS")
_BSCALE_CARD, _BZERO_CARD, _ZIMAGE_CARD = _word("BSCALE"), _word("BZERO"), _word("ZIMAGE")
_IMAGE = int.from_bytes(b"'IMAGE", "big")
_EQUALS, _SPACE, _POINT, _SLASH, _ZERO, _NINE = b"= ./09"

_openat = External("openat", "int32(int32, uintp, int32)")
_close = External("close", "int32(int32)")
_pread = External("pread", "int64(int32, uintp, int64, int64)")


@kernel
def _value(head, at):
    """Where the value of the card at `at` begins, and where the card ends."""
    first, end = at + 10, at + _CARD
    while first < end and head[first] == _SPACE:
        first += 1
    return first, end


@kernel
def _ends(head, place, end):
    """Whether nothing but a comment follows."""
    while place < end and head[place] == _SPACE:
        place += 1
    return place == end or head[place] == _SLASH


@kernel
def _integer(head, at, point):
    """The value of a card, and whether it is an integer of up to 18 digits; with `point` it may have a decimal point and
    zeros."""
    place, end = _value(head, at)
    negative = place < end and head[place] == 45
    if place < end and (negative or head[place] == 43):
        place += 1
    first, number = place, np.int64(0)
    while place < end and place < first + 19 and _ZERO <= head[place] <= _NINE:
        number = number * 10 + (np.int64(head[place]) - _ZERO)
        place += 1
    fine = first < place < first + 19
    if point and place < end and head[place] == _POINT:
        place += 1
        while place < end and head[place] == _ZERO:
            place += 1
    return -number if negative else number, fine and _ends(head, place, end)


@kernel
def _card(head, at, cards):
    """Takes in one card. Returns 0 if the header goes on, 1 if it ends, -1 if Python must read it."""
    first = head[at]
    # B, E, G, N, P, X, Z: the other cards do not describe the layout of the data.
    if first != 66 and first != 69 and first != 71 and first != 78 and first != 80 and first != 88 and first != 90:
        return 0
    name = big_endian(head, at, 8)
    if name == _END:
        for k in range(8, _CARD):
            if head[at + k] != _SPACE:
                return -1
        return 1
    for k in range(8):
        if head[at + k] < _SPACE:  # a tab counts as a space in Python
            return -1
    if head[at + 8] != _EQUALS or head[at + 9] != _SPACE:
        return 0
    if name == _XTENSION:
        place, end = _value(head, at)
        cards[_UNLIKE] |= place + 6 > end or big_endian(head, place, 6) != _IMAGE
        return 0
    if name in (_ZIMAGE_CARD, _BLANK_CARD):
        cards[_UNLIKE] = 1
        return 0
    if name == _GROUPS_CARD:
        return -1
    to, bit = -1, 0
    if name == _BITPIX_CARD:
        to, bit = _BITPIX, _HAS_BITPIX
    elif name == _NAXIS_CARD:
        to, bit = _NAXIS, _HAS_NAXIS
    elif name == _PCOUNT_CARD:
        to = _PCOUNT
    elif name == _GCOUNT_CARD:
        to = _GCOUNT
    elif name == _BSCALE_CARD:
        to = _BSCALE
    elif name == _BZERO_CARD:
        to = _BZERO
    elif name >> 24 == _NAXIS_CARD >> 24 and name & 0xFFFF == 0x2020:
        axis = (name >> 16 & 0xFF) - _ZERO - 1
        if 0 <= axis < MOST_AXES:
            to, bit = _AXES + axis, _HAS_AXES << axis
    if to < 0:
        return 0
    cards[to], fine = _integer(head, at, to in (_BSCALE, _BZERO))
    cards[_SEEN] |= bit
    return 0 if fine else -1


@kernel
def _points(cards):
    """The number of elements by the header; -1 if Python must read it."""
    bits, axes = cards[_BITPIX], cards[_NAXIS]
    if cards[_SEEN] & 3 != 3 or axes < 0 or axes > MOST_AXES:
        return np.int64(-1)
    if bits not in (8, 16, 32, 64, -32, -64) or cards[_PCOUNT] < 0 or cards[_GCOUNT] < 0:
        return np.int64(-1)
    if cards[_PCOUNT] > _LARGE or cards[_GCOUNT] > _LARGE:
        return np.int64(-1)
    points = np.int64(axes > 0)
    for axis in range(axes):
        extent = cards[_AXES + axis]
        if cards[_SEEN] & (_HAS_AXES << axis) == 0 or extent < 0 or extent > _LARGE:
            return np.int64(-1)
        if extent > 0 and points > _LARGE // extent:
            return np.int64(-1)
        points *= extent
    if axes > 0:
        points += cards[_PCOUNT]
        if cards[_GCOUNT] > 0 and points > _LARGE // cards[_GCOUNT]:
            return np.int64(-1)
        points *= cards[_GCOUNT]
    return points


@kernel
def _kind(cards):
    """The index in `KINDS` of the type that the stored numbers mean; -1 for numbers that must be scaled."""
    bits, zero = cards[_BITPIX], cards[_BZERO]
    if cards[_BSCALE] != 1 or (bits < 0 and zero != 0):
        return -1
    if bits < 0:
        return 8 if bits == -32 else 9
    whole = 0 if bits == 8 else 2 if bits == 16 else 4 if bits == 32 else 6
    if zero == 0:
        return whole
    return whole + 1 if bits < 64 and zero == (-128 if bits == 8 else 1 << (bits - 1)) else -1


@kernel
def _turn(address, count, bits, flip):
    """Swaps the bytes of numbers of `bits` in place, to the machine's order; with `flip` it also inverts the highest bit. The
    compiler recognises these shifts and makes one instruction for 32 bytes of them."""
    if bits == 8 and flip:
        octets = array_at(address, count, np.empty(0, np.uint8))
        for k in range(count):
            octets[k] = octets[k] ^ np.uint8(128)
    elif bits == 16:
        halves, top = array_at(address, count, np.empty(0, np.uint16)), np.uint16(0x8000 if flip else 0)
        for k in range(count):
            x = np.uint32(halves[k])
            halves[k] = np.uint16(x << np.uint32(8) | x >> np.uint32(8)) ^ top
    elif bits == 32:
        words, top = array_at(address, count, np.empty(0, np.uint32)), np.uint32(0x80000000 if flip else 0)
        for k in range(count):
            x = words[k]
            inner = (x & np.uint32(0xFF00)) << np.uint32(8) | x >> np.uint32(8) & np.uint32(0xFF00)
            words[k] = np.uint32(x << np.uint32(24) | inner | x >> np.uint32(24)) ^ top
    elif bits == 64:
        longs, top = array_at(address, count, np.empty(0, np.uint64)), np.uint64(int(flip)) << np.uint64(63)
        pairs, octets = np.uint64(0x0000FFFF0000FFFF), np.uint64(0x00FF00FF00FF00FF)
        for k in range(count):
            x = longs[k]
            x = x << np.uint64(32) | x >> np.uint64(32)
            x = (x & pairs) << np.uint64(16) | x >> np.uint64(16) & pairs
            x = (x & octets) << np.uint64(8) | x >> np.uint64(8) & octets
            longs[k] = x ^ top


@kernel
def _pixels(handle, head, begin, have, offset, target, points, kind, cards, scratch):
    """Reads the numbers at `offset` of a file to `target`, and returns whether the file has all of them. The first of them may
    be in `head`."""
    bits, flip = abs(cards[_BITPIX]), kind < 8 and kind % 2 == 1
    width, here = bits // 8, scratch.ctypes.data
    at_once = _PIECE // width
    for first in range(0, points, at_once):
        n = min(at_once, points - first)
        at, nbytes = offset + first * width, n * width
        if at + nbytes <= begin + have:
            copy_bytes(here, head.ctypes.data + at - begin, nbytes)
        elif read_range(handle, here, nbytes, at) != nbytes:
            return False
        _turn(here, n, bits, flip)
        copy_bytes(target + first * width, here, nbytes)
    return True


@kernel
def _image(handle, head, begin, have, offset, cards, scratch, room, facts):
    """Reads the image whose header was taken in, and whose data begin at `offset` of the file; `head` has `have` bytes from
    `begin` on. False if Python must read it."""
    axes, points = cards[_NAXIS], _points(cards)
    if cards[_UNLIKE] != 0 or points < 1 or cards[_PCOUNT] != 0 or cards[_GCOUNT] != 1:
        return False
    kind, width = _kind(cards), abs(cards[_BITPIX]) // 8
    if kind < 0:
        return False
    nbytes = points * width
    facts[KIND], facts[NDIM] = kind, axes
    for axis in range(axes):
        facts[SHAPE + axis] = cards[_AXES + axes - 1 - axis]
    place = (room[USED] + width - 1) // width * width
    if place + nbytes > room[LIMIT]:
        # If the last byte is missing, the header may claim any size: no memory is allocated for it.
        last = offset + nbytes - 1
        is_there = _pread(handle, scratch.ctypes.data, 1, last) == 1
        facts[STATE], facts[BYTES] = CROWDED if is_there else LEFT, nbytes if is_there else 0
        return is_there
    if not _pixels(handle, head, begin, have, offset, room[ADDRESS] + place, points, kind, cards, scratch):
        return False
    facts[STATE], facts[PLACE], facts[BYTES] = DONE, place, nbytes
    room[USED] = place + nbytes
    return True


@kernel
def _images(handle, indices, rooms, facts, head, cards, scratch, ahead):
    """Reads the images of one file, `ahead` bytes of it first. Returns how many bytes to read first of the next file."""
    begin, offset, last = np.int64(0), np.int64(0), np.int64(0)
    have = _pread(handle, head.ctypes.data, ahead, 0)
    for k in range(len(indices)):
        last = max(last, indices[k])
    wanted = np.int64(0)
    for number in range(1, last + 1):
        for k in range(_CARD_FACTS):
            cards[k] = k in (_GCOUNT, _BSCALE)
        ended, blocks, mark = 0, 0, _SIMPLE if number == 1 else _XTENSION
        while ended == 0:
            if offset + _BLOCK > begin + have:
                begin, have = offset, _pread(handle, head.ctypes.data, _MORE, offset)
            at = offset - begin
            if have < _BLOCK or blocks == _LONGEST:
                return ahead
            if blocks == 0 and (big_endian(head, at, 8) != mark or head[at + 8] != _EQUALS):
                return ahead
            for card in range(at, at + _BLOCK, _CARD):
                ended = _card(head, card, cards)
                if ended != 0:
                    break
            offset, blocks = offset + _BLOCK, blocks + 1
        points = _points(cards)
        if ended < 0 or points < 0:
            return ahead
        nbytes = points * (abs(cards[_BITPIX]) // 8)
        for k in range(len(indices)):
            if indices[k] == number and not _image(
                handle, head, begin, have, offset, cards, scratch, rooms[k], facts[k]
            ):
                return ahead
        if number == last:
            wanted = offset + nbytes if offset + nbytes <= _HEAD else min(offset, _HEAD)
        offset += (nbytes + _BLOCK - 1) // _BLOCK * _BLOCK
    return wanted


@kernel
def _aligned(nbytes):
    """Memory aligned like blocks of files: an AMD EPYC copies from a file to 16 bytes after such an address 2 to 7 times
    slower."""
    memory = np.empty(nbytes + _LINE, np.uint8)
    shift = -memory.ctypes.data & (_LINE - 1)
    return memory[shift : shift + nbytes]


@kernel
def read_images(folder, flags, names, starts, indices, rooms, facts):
    """Reads the images in HDUs `indices` (int64, from 1) of some files, each into its output's buffer after the one before.

    Args:
        folder: the handle of the folder that names are relative to.
        flags: those of `open`.
        names, starts: zero-terminated names, u8, and where in them that of each file begins, int64.
        rooms: int64 `[outputs, 3]`; USED moves on.
        facts: zeros, int64 `[files, outputs, FACTS]`. A file has all its images if each is DONE. Places in rooms that LEFT and
        CROWDED files had begun to fill stay empty.

    The size and kind of a file are not requested before it is read: that saves one of four system calls. FIFOs, terminals and
    folders refuse a read at an offset at once; other devices hold no such header.
    """
    head, scratch = _aligned(_HEAD), _aligned(_PIECE)
    cards = np.empty(_CARD_FACTS, np.int64)
    base, ahead = names.ctypes.data, np.int64(_FIRST)
    for i in range(len(starts)):
        handle = _openat(folder, base + starts[i], flags)
        if handle >= 0:
            ahead = _images(handle, indices, rooms, facts[i], head, cards, scratch, ahead)
            _close(handle)


@read_images.fallback
def _(*args):
    """Python reads all files."""
