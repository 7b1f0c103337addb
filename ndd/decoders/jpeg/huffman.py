"""The Huffman codes of a baseline JPEG: lookup tables for the next bits of a scan, and the coefficients that they give.

One lookup of ten bits gives one code or two, with their coefficients and places: 12.5 lookups for a block of 18 codes. More
bits are not faster, because their tables do not fit into the L1 cache (64 whole photographs take 59.0, 59.0 and 61.0 ms of CPU
time with 10, 11 and 12 bits). Three lookups for one load of the register are not faster either, nor are coefficients that are
always cut from the bits to avoid a branch (2 % slower). An entry is read from memory byte by byte: shifting it out of one
number took 5 % longer, because only two ports of the processor shift. A lookup takes about 12 cycles, and a third more where
branches cannot be predicted: at the ends of blocks and for coefficients that do not fit. One lookup for each word instead of
two takes 10 % longer.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel
from ndd._compiled.unaligned import load_bits

BLOCK = 64  # coefficients
# The rows of the numbers of a frame: four components, with sampling factors (columns, rows), quantisation table, DC and AC table;
# the names of the components; height, width, number of components, and whether they are the inks of Adobe's CMYK.
NAMES, SIZE, FRAME = 4, 5, (6, 4)
SYMBOLS = 256

_PEEK = 10  # bits
LOOKS = 1 << _PEEK
BEHIND = np.uint64(64 - _PEEK)
_MAX_SIZE = 11  # bits of a coefficient
_END_OF_BLOCK = 127  # as a run of zeros: leads beyond the block from any place
_LONG = 1 << 7
LIMIT = 4096  # dequantised coefficients below it fit into libjpeg-turbo's sums of 16 bits
_FULL, _ENDED, _ENDS = np.uint64(64), np.uint64(_END_OF_BLOCK + 2), np.uint64(63)  # places
_ONE, _TWO, _THREE, _FOUR = (np.uint64(n) for n in range(1, 5))
_SEVEN = np.uint64(7)


def _zigzag() -> np.ndarray:
    order = sorted(range(64), key=lambda k: (k // 8 + k % 8, k // 8 if (k // 8 + k % 8) % 2 else k % 8))
    return np.array(order + [64] * (256 - 64), np.uint8)


PLACES = _zigzag()  # of the coefficients in a block; places beyond it are overwritten by the next block's first one


@kernel(light=True)
def make_tables(frame, steps, codes, tables, fields, numbers, skips, skipping, kept, made_of):
    """Fills the lookup tables for the codes that the components of `frame` use. Returns whether the codes are valid.

    Tables that were made from the same codes are reused: most files have those of the standard. `kept`, u8 like `codes`, has
    the codes of the tables, and `made_of`, int64 `[4]`, their other parameters; both are initially zeros.
    """
    largest = 1
    for k in range(len(steps)):
        largest = max(largest, np.int64(steps[k]))
    for c in range(frame[SIZE, 2]):
        dc, ac = frame[c, 3] >> 4, frame[c, 3] & 1
        if c == 2 and frame[c, 3] == frame[1, 3]:
            continue
        if not _is_made(codes[dc], 1, kept[dc], made_of, dc):
            if not _make_table(codes[dc], False, 1 << _MAX_SIZE, tables[dc]):
                return False
            made_of[dc] = 1
        below = LIMIT // largest
        if not _is_made(codes[2 + ac], 2 + 2 * below + skipping, kept[2 + ac], made_of, 2 + ac):
            if not _make_table(codes[2 + ac], True, below, tables[2 + ac]):
                return False
            _make_pairs(tables[2 + ac], fields[ac], numbers[ac])
            if skipping:
                _make_skips(tables[2 + ac], skips[ac])
            made_of[2 + ac] = 2 + 2 * below + skipping
    return True


@kernel
def _is_made(codes, table, kept, made_of, which):
    """Whether a table was made from these codes and the parameters in `table`. If not, it is marked as invalid: the caller
    makes it next."""
    differs = made_of[which] != table
    for k in range(len(codes)):
        differs |= codes[k] != kept[k]
    if differs:
        made_of[which] = 0
        for k in range(len(codes)):  # `kept[:] = codes` would make numba compile an error's text, which takes a second
            kept[k] = codes[k]
    return not differs


@kernel
def _make_table(codes, is_ac, most, table):
    """Fills a table with the code at the beginning of each combination of next bits. Returns whether the codes are valid.

    An entry holds: the bits of the code and of the coefficient after it (byte 0), the run of zeros before (byte 1), one more
    than that (byte 3), the bits of the code alone (byte 4), and the coefficient (16 bits from bit 48 on). With `_LONG` in byte
    0 the coefficient is missing, and byte 2 has its number of bits; this is so for coefficients from `most` on. An entry
    without bits means that the code is longer than a lookup."""
    if not make_lookups(codes, table):
        return False
    for ahead in range(LOOKS):
        size, entry = np.int64(table[ahead]) & 255, np.int64(_LONG | 32 << 32)
        bits, run = _meaning(np.int64(table[ahead]) >> 8, is_ac)
        spare = _PEEK - size - bits
        if size and bits <= _MAX_SIZE:
            entry = run << 8 | (run + 1) << 24 | size << 32 | (size + bits)
            if spare < 0 or 1 << bits > most:
                entry |= bits << 16 | _LONG
            else:
                number = ahead >> spare & ((1 << bits) - 1)
                value = number if number >> max(0, bits - 1) else number + 1 - (1 << bits)
                entry |= (run + 1) << 16 | value << 48
        table[ahead] = entry
    return True


@kernel
def make_lookups(codes, table):
    """Fills a table that has, for the next bits of a scan, the code that they begin with: its bits, and its symbol from bit 8 on;
    0 if it is longer than a lookup. Returns whether the codes are valid."""
    code, known = np.int64(0), np.int64(16)
    table[:] = 0
    for size in range(1, 17):
        count = np.int64(codes[size - 1])
        if code + count >= 1 << size:  # no code is all ones
            return False
        for _ in range(count if size <= _PEEK else 0):
            first = code << (_PEEK - size)
            table[first : first + (1 << (_PEEK - size))] = np.int64(codes[known]) << 8 | size
            code += 1
            known += 1
        if size > _PEEK:
            code += count
        code <<= 1
    return True


@kernel
def _meaning(symbol, is_ac):
    """The number of bits of the coefficient (more than any coefficient has, for an invalid symbol), and the run of zeros before
    it."""
    bits, run = np.int64(symbol) & 15, np.int64(symbol) >> 4
    if not is_ac:
        return np.int64(symbol), np.int64(0)
    if not bits and run != 15:
        run = np.int64(_END_OF_BLOCK)
    return bits if bits < _MAX_SIZE else np.int64(_MAX_SIZE + 1), run


@kernel
def _make_pairs(table, fields, numbers):
    """Fills the tables of two codes for one lookup, where the bits hold both. Fields: the bits of both; the zeros before the first
    coefficient; the places of the first and the zeros before the second; the places of both. A missing second coefficient is
    zero, and the next one overwrites it."""
    for ahead in range(LOOKS):
        entry = np.int64(table[ahead])
        used, places = entry & 63, entry >> 24 & 255
        following = np.int64(table[(ahead << used) & (LOOKS - 1)])
        total, second, after = (
            used + (following & 63),
            places + (following >> 8 & 255),
            places + (following >> 24 & 255),
        )
        if (entry | following) & _LONG or total > _PEEK or places > 64:
            total, second, after, following = entry & 255, places, places, np.int64(0)
        fields[4 * ahead], fields[4 * ahead + 1] = total, entry >> 8 & 255
        fields[4 * ahead + 2], fields[4 * ahead + 3] = second, after
        numbers[2 * ahead], numbers[2 * ahead + 1] = entry >> 48, following >> 48


@kernel
def _make_skips(table, skips):
    """Fills the table for skipping: the bits of up to three codes with their coefficients, if the bits hold these codes, and the
    places of a block that they fill; 64 if they hold none."""
    for ahead in range(LOOKS):
        entry = np.uint64(table[ahead])
        used, places = entry & np.uint64(63), entry >> np.uint64(24) & np.uint64(255)
        places = places if used else np.uint64(64)
        for _ in range(2):
            entry = np.uint64(table[np.uint64(ahead) << used & np.uint64(LOOKS - 1)])
            whole = used + (entry >> np.uint64(32) & np.uint64(63)) <= np.uint64(_PEEK) and places < np.uint64(64)
            used += entry & np.uint64(63) if whole else np.uint64(0)
            places += entry >> np.uint64(24) & np.uint64(255) if whole else np.uint64(0)
        skips[2 * ahead], skips[2 * ahead + 1] = used, places


@kernel
def long_code(ahead, codes):
    """The entry, as in `make_lookups`, of a code that is longer than a lookup; 0 for an invalid one."""
    code, known = np.int64(0), np.int64(16)
    for size in range(1, 17):
        count = np.int64(codes[size - 1])
        place = np.int64(ahead >> np.uint64(64 - size)) - code
        if place < count:
            return np.int64(codes[known + place]) << 8 | size
        known += count
        code = (code + count) << 1
    return np.int64(0)


@kernel
def _long_code(ahead, codes, is_ac):
    """The entry, as in `_make_table`, of a code that is longer than a lookup; 0 for an invalid one."""
    size = long_code(ahead, codes)
    bits, run = _meaning(size >> 8, is_ac)
    size &= 255
    return run << 8 | bits << 16 | (run + 1) << 24 | (size + bits) | _LONG if size and bits <= _MAX_SIZE else 0


@kernel
def _number(ahead, entry):
    """The coefficient in the bits after a code, for an entry without it. It is positive if the highest bit is set."""
    bits = np.uint64(entry >> 16 & 255)
    behind = ahead << np.uint64((entry & 63) - (entry >> 16 & 255))
    number = np.int64(behind >> np.uint64(1) >> (np.uint64(63) - bits))
    return number if behind >> np.uint64(63) else number + 1 - (1 << np.int64(bits))


@kernel(forceinline=True)
def _put(fields, numbers, ac, look, k, blocks, block):
    """Writes the coefficients of a lookup to their places after `k` in a block. Returns the place after them."""
    place = np.uint64(PLACES[k + np.uint64(fields[ac, look * _FOUR + _ONE])])
    blocks[block + place] = numbers[ac, look * _TWO]
    place = np.uint64(PLACES[k + np.uint64(fields[ac, look * _FOUR + _TWO])])
    blocks[block + place] = numbers[ac, look * _TWO + _ONE]
    return k + np.uint64(fields[ac, look * _FOUR + _THREE])


@kernel
def read_units(
    units, inside, luma_blocks, bits, nbytes, stream, before, frame, steps, codes, tables, fields, numbers, skips, blocks,
):  # fmt: skip
    """Reads units. Returns whether they are valid.

    Args:
        units: how many.
        inside: whether to write the coefficients to `blocks`, which holds zeros.
        luma_blocks: the number of luma blocks of a unit.
        bits: the scan without stuffed zeros, `nbytes`, and memory after it that may be read.
        stream: the number of bits read; the current word, which holds the next bits; the number of bits read from that word.
        before: the first coefficient of the last block of each component.
        steps: of the quantisation. No product with them reaches `LIMIT`; nothing is multiplied here.

    The word for the next lookup is loaded at the beginning of this one, so that it is ready when the end of this one is known.
    At least 20 bits of it are left, two lookups: 7 bits of its first byte are gone, and at most a lookup and a long code, 37
    bits.
    """
    at, word, low = stream[0], stream[1], stream[2]
    channels, block = frame[SIZE, 2], np.uint64(0)
    for _ in range(units):
        for c in range(channels):
            dc, ac = np.uint64(frame[c, 3] >> 4), np.uint64(frame[c, 3] & 1)
            row = np.uint64(frame[c, 2] * BLOCK)
            for _ in range(luma_blocks if c == 0 else 1):
                ahead = word << low
                word, low = load_bits(bits, at >> _THREE), at & _SEVEN
                entry = np.int64(tables[dc, ahead >> BEHIND])
                number = entry >> 48
                if entry & _LONG:
                    ahead = word << low
                    if not entry & 63:
                        entry = _long_code(ahead, codes[dc], False)
                        if not entry:
                            return False
                    number = _number(ahead, entry)
                low += np.uint64(entry & 63)
                at += np.uint64(entry & 63)
                before[c] += number
                k = np.uint64(1)
                if not inside:
                    while True:
                        ahead = word << low
                        word, low = load_bits(bits, at >> _THREE), at & _SEVEN
                        look = (ahead >> BEHIND) * _TWO
                        used, after = np.uint64(skips[ac, look]), k + np.uint64(skips[ac, look + _ONE])
                        if after < _FULL:
                            k = after
                            low += used
                            at += used
                            continue
                        if after == _FULL or after - _ENDED < _ENDS:
                            break
                        # A long code, or codes that reach into the next block.
                        ahead = word << low
                        entry = np.int64(tables[_TWO + ac, ahead >> BEHIND])
                        if not entry & 63:
                            entry = _long_code(ahead, codes[_TWO + ac], True)
                            if not entry:
                                return False
                        after = k + np.uint64(entry >> 24 & 255)
                        used = np.uint64(entry & 63)
                        if after >= _FULL:
                            break
                        k = after
                        low += used
                        at += used
                else:
                    number = before[c]
                    if abs(number * np.int64(steps[row])) >= LIMIT:
                        return False
                    blocks[block] = np.int16(number)
                    while True:
                        ahead = word << low
                        word, low = load_bits(bits, at >> _THREE), at & _SEVEN
                        look = ahead >> BEHIND
                        used = np.uint64(fields[ac, look * _FOUR])
                        if used < np.uint64(_LONG):
                            after = _put(fields, numbers, ac, look, k, blocks, block)
                            if after >= _FULL:
                                break
                            k = after
                            ahead <<= used
                            low += used
                            at += used
                            # The next codes, in the same word.
                            look = ahead >> BEHIND
                            used = np.uint64(fields[ac, look * _FOUR])
                            if used < np.uint64(_LONG):
                                after = _put(fields, numbers, ac, look, k, blocks, block)
                                if after >= _FULL:
                                    break
                                k = after
                                low += used
                                at += used
                                continue
                        ahead = word << low
                        entry = np.int64(tables[_TWO + ac, look])
                        if not entry & 63:
                            entry = _long_code(ahead, codes[_TWO + ac], True)
                            if not entry:
                                return False
                        number = _number(ahead, entry)
                        place = np.uint64(PLACES[k + np.uint64(entry >> 8 & 255)])
                        blocks[block + place] = np.int16(number)
                        after = k + np.uint64(entry >> 24 & 255)
                        if number and abs(number * np.int64(steps[row + (place & np.uint64(63))])) >= LIMIT:
                            return False
                        used = np.uint64(entry & 63)
                        if after >= _FULL:
                            break
                        k = after
                        low += used
                        at += used
                    block += np.uint64(BLOCK)
                # The block is full, or its end is coded. Otherwise the second code of two belongs to the next block.
                if after != _FULL and after - _ENDED >= _ENDS:
                    entry = np.int64(tables[_TWO + ac, ahead >> BEHIND])
                    if entry & _LONG or k + np.uint64(entry >> 24 & 255) != _FULL:
                        return False
                    used = np.uint64(entry & 63)
                low += used
                at += used
        if np.int64(at) > 8 * nbytes:  # reading beyond the end until here is safe: it is scratch memory
            return False
    stream[0], stream[1], stream[2] = at, word, low
    return True
