"""Progressive JPEGs, or windows of them, to pixels, bit for bit as libjpeg-turbo decodes them (ISO/IEC 10918-1, annex G).

The scans of a file refine the coefficients of the whole picture, so these are kept until the last scan has been read. Their
pixels are then made as those of a baseline file (`baseline.py`), in the same order of units.

It decodes complete files of 8 bits, gray or YCbCr, with the samplings of `baseline.py`. It refuses all others: files whose scans
do not give each bit of each coefficient once (libjpeg-turbo smooths such pictures), or that are damaged.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.atomics import acquire_slot, atomic_store
from ndd._compiled.intrinsics import array_at, empty, zeros
from ndd._compiled.jit import from_template, kernel
from ndd._compiled.leading_zeros import leading_zeros, ones
from ndd._compiled.sample_loops import next_index
from ndd._compiled.unaligned import load_bits
from ndd.decoders.jpeg import baseline
from ndd.decoders.jpeg.baseline import PLACE, UNIT, read_frame, read_huffman, read_steps, sampling, unstuffed
from ndd.decoders.jpeg.batch_headers import u16
from ndd.decoders.jpeg.huffman import (
    BEHIND,
    BLOCK,
    FRAME,
    LIMIT,
    LOOKS,
    NAMES,
    PLACES,
    SIZE,
    SYMBOLS,
    long_code,
    make_lookups,
)

MOST_PIXELS = 1 << 25  # of a picture, whose coefficients each thread keeps: 2 to 6 bytes a pixel
_MOST_SCANS = 64  # an encoder that tries out scans writes about 12
_MOST_SHIFT = 10  # bits that a first scan may leave to later ones
_UNSEEN = 99  # bits that are missing of a coefficient that no scan has given
_ONE, _THREE, _SEVEN = np.uint64(1), np.uint64(3), np.uint64(7)
_FIRST_PLACE, _ALL = np.uint64(1 << 63), np.uint64((1 << 64) - 1)


@kernel
def decode_loop(counter, limit, order, pictures, scratch, taken, done):
    """See `baseline.decode_loop`."""
    seat = acquire_slot(taken)
    own = scratch[seat]
    for _ in range(limit):
        turn = next_index(counter)
        if turn >= len(order):
            break
        row = pictures[order[turn]]
        data, out = array_at(row[0], row[1], own), array_at(row[2], row[3], own)
        done[order[turn]] = _decode(data, out, row[PLACE:], own)
    atomic_store(taken, seat, 0)
    return True


decode_loop.fallback(lambda *args: False)


@kernel
def _decode(data, out, window, scratch):
    """Decodes a window of a picture, see `baseline.decode`; returns whether it can."""
    codes, tables = zeros((4, 16 + SYMBOLS), np.uint8), empty((4, LOOKS), np.int64)
    steps, frame = zeros(4 * BLOCK, np.int16), zeros(FRAME, np.int64)
    missing = empty((3, BLOCK), np.int64)  # of each coefficient of each component: the bits that no scan has given
    missing[:] = _UNSEEN
    coefficients, places = zeros(0, np.int16), zeros(0, np.uint64)
    at, end, scans, known, units_across, units = 2, len(data), 0, 0, 0, 0
    while at + 4 <= end and data[at] == 0xFF and data[at + 1] != 0xD9:
        marker, length = data[at + 1], u16(data, at + 2)
        after = at + 2 + length
        if length < 2 or after > end:
            return False
        at += 4
        if marker == 0xDB and not scans:
            known |= read_steps(data, at, after, steps)
        elif marker == 0xC4:
            read = read_huffman(data, at, after, codes)
            for which in range(4):
                if read & 16 << which and not make_lookups(codes[which], tables[which]):
                    return False
            known |= read
        elif marker == 0xC2 and not units:
            if not read_frame(data, at, length, frame) or frame[SIZE, 2] > 3:
                return False
            across, down = sampling(frame)
            if not across or frame[SIZE, 0] * frame[SIZE, 1] > MOST_PIXELS:
                return False
            units_across = (frame[SIZE, 1] + 8 * across - 1) // (8 * across)
            units = units_across * ((frame[SIZE, 0] + 8 * down - 1) // (8 * down))
            blocks = units * (across * down + frame[SIZE, 2] - 1)
            coefficients, places = zeros(blocks * BLOCK, np.int16), zeros(blocks, np.uint64)
        elif marker == 0xDA:
            scans += 1
            if not units or scans > _MOST_SCANS or length < 8:
                return False
            after = _read_scan(
                data, at, length, frame, known, steps, codes, tables, missing, units_across, scratch, coefficients, places
            )  # fmt: skip
        elif not (0xE0 <= marker <= 0xEF or marker == 0xFE):  # also restart intervals
            return False
        if known < 0 or after < 0:
            return False
        at = after
    if not units or at + 2 > end or data[at] != 0xFF or data[at + 1] != 0xD9:
        return False
    for c in range(frame[SIZE, 2]):
        for k in range(BLOCK):
            if missing[c, k]:
                return False
    return _pixels_of_coefficients(
        scratch, 0, frame, steps, codes, out, window, scratch[UNIT:], tables, tables, tables, coefficients, tables, tables
    )  # fmt: skip


@kernel
def _read_scan(
    data, at, length, frame, known, steps, codes, tables, missing, units_across, scratch, coefficients, places
):  # fmt: skip
    """Reads a scan, whose header begins at `at`; returns where the next segment begins, -1 for a scan that is refused.

    Args:
        known: the bits of the tables that were read.
        places: of each block the coefficients that are not zero, uint64, the first one highest.
    """
    count, tail = np.int64(data[at]), at + 1 + 2 * np.int64(data[at])
    if count < 1 or count > frame[SIZE, 2] or length != 6 + 2 * count:
        return -1
    first, last, high, low = np.int64(data[tail]), np.int64(data[tail + 1]), data[tail + 2] >> 4, data[tail + 2] & 15
    if last > 63 or first > last or low > _MOST_SHIFT or (first == 0) != (last == 0) or (first and count > 1):
        return -1
    if high and high != low + 1:
        return -1
    chosen, before = 0, -1
    for k in range(count):
        c = 0
        while c < frame[SIZE, 2] and frame[NAMES, c] != data[at + 1 + 2 * k]:
            c += 1
        used = np.int64(data[at + 2 + 2 * k])
        if c <= before or c == frame[SIZE, 2] or (used & 0xEE) or not known & 1 << frame[c, 2]:
            return -1
        frame[c, 3], chosen, before = used, chosen | 1 << c, c
        table = used >> 4 if not first else 2 + (used & 1)
        if (first or not high) and not known & 16 << table:
            return -1
        if first and missing[c, 0] == _UNSEEN:
            return -1
        for place in range(first, last + 1):
            if missing[c, place] != (high if high else _UNSEEN):
                return -1
            missing[c, place] = low
    begin = tail + 3
    bits = scratch[: len(data) - begin + UNIT]
    nbytes, end = unstuffed(data, begin, bits)
    if nbytes < 0:
        return -1
    across, down = sampling(frame)
    # A scan of one component has no blocks beyond its edge.
    alone, c = count == 1, before
    wide, tall = (across, down) if c == 0 else (1, 1)
    columns, rows = 0, 0
    if alone:
        columns = ((frame[SIZE, 1] * wide + across - 1) // across + 7) // 8
        rows = ((frame[SIZE, 0] * tall + down - 1) // down + 7) // 8
    unit_blocks = across * down + frame[SIZE, 2] - 1
    offset = 0 if c == 0 else across * down + c - 1
    if first == 0:
        read = _read_first_coefficients(
            bits, nbytes, chosen, high, low, frame, steps, codes, tables, across * down, unit_blocks, coefficients,
            units_across, wide, tall, offset, columns, rows,
        )  # fmt: skip
    else:
        read, eob = np.uint64(0), np.int64(0)
        table = 2 + (frame[c, 3] & 1)
        own_steps = steps[frame[c, 2] * BLOCK : (frame[c, 2] + 1) * BLOCK]
        largest = np.int64(0)
        for step in own_steps:
            largest = max(largest, np.int64(step))
        if high and (2 << low) * largest > LIMIT:
            return -1
        for row in range(rows):
            line = row // tall * units_across * unit_blocks + offset + row % tall * wide
            if high:
                read, eob = _refine_row(
                    bits, nbytes, read, eob, codes[table], tables[table], first, last, low, coefficients, places, line,
                    columns, wide - 1, unit_blocks,
                )  # fmt: skip
            else:
                read, eob = _read_row(
                    bits, nbytes, read, eob, codes[table], tables[table], first, last, low, own_steps, coefficients, places,
                    line, columns, wide - 1, unit_blocks,
                )  # fmt: skip
            if eob < 0:
                return -1
        if eob:
            return -1
    return end if (np.int64(read) + 7) >> 3 == nbytes else -1


@kernel
def _read_first_coefficients(
    bits, nbytes, chosen, high, low, frame, steps, codes, tables, luma_blocks, unit_blocks, coefficients, units_across,
    wide, tall, offset, columns, rows,
):  # fmt: skip
    """Reads the first coefficient of each block, or a bit of it; returns how many bits were read, too many for damaged ones."""
    at, before = np.uint64(0), zeros(3, np.int64)
    beyond = np.uint64(8 * nbytes + 64)  # readable: bits of a unit may be read there before that is noticed
    if rows:  # of one component
        c, halved = 0 if offset == 0 else offset - luma_blocks + 1, wide - 1
        for row in range(rows):
            line = row // tall * units_across * unit_blocks + offset + row % tall * wide
            for column in range(columns):
                block = (line + (column >> halved) * unit_blocks + (column & halved)) * BLOCK
                at = _read_first(
                    bits, at, beyond, c, high, low, frame, steps, codes, tables, before, coefficients, block
                )
                if np.int64(at) > 8 * nbytes:
                    return beyond
        return at
    for unit in range(len(coefficients) // (unit_blocks * BLOCK)):
        block = unit * unit_blocks * BLOCK
        for k in range(unit_blocks):
            c = 0 if k < luma_blocks else k - luma_blocks + 1
            if chosen & 1 << c:
                at = _read_first(
                    bits, at, beyond, c, high, low, frame, steps, codes, tables, before, coefficients, block
                )
            block += BLOCK
        if np.int64(at) > 8 * nbytes:
            return beyond
    return at


@kernel(forceinline=True)
def _read_first(bits, at, beyond, c, high, low, frame, steps, codes, tables, before, coefficients, block):
    """Reads the first coefficient of a block; returns the place of the bits after it, `beyond` for damaged ones."""
    ahead = load_bits(bits, at >> _THREE) << (at & _SEVEN)
    if high:
        coefficients[block] |= np.int16(ahead >> np.uint64(63)) << low
        return at + _ONE
    table = frame[c, 3] >> 4
    entry = tables[table, ahead >> BEHIND]
    if not entry:
        entry = long_code(ahead, codes[table])
        if not entry:
            return beyond
    size, bits_of_number = np.uint64(entry & 255), np.uint64(entry >> 8)
    before[c] += _number(ahead << size, bits_of_number)
    if (abs(before[c]) + 1 << np.int64(low)) * np.int64(steps[frame[c, 2] * BLOCK]) > LIMIT:
        return beyond
    coefficients[block] = np.int16(before[c] << np.int64(low))
    return at + size + bits_of_number


@kernel
def _number(ahead, bits):
    """The signed number in the next `bits` bits, 0 for none. It is positive if the highest bit is set."""
    number = np.int64(ahead >> _ONE >> (np.uint64(63) - bits))
    return number if ahead >> np.uint64(63) else number + 1 - (1 << np.int64(bits))


@kernel
def _read_row(
    bits, nbytes, at, eob, codes, table, first, last, low, steps, coefficients, places, line, columns, halved, unit_blocks
):  # fmt: skip
    """Reads the first bits of the coefficients `first` to `last` of a row of blocks; returns the place of the next bits and how
    many of the next blocks have none of these coefficients, -1 for damaged ones."""
    for column in range(columns):
        if eob:
            eob -= 1
            continue
        number = np.uint64(line + (column >> halved) * unit_blocks + (column & halved))
        block, seen, k = number * np.uint64(BLOCK), places[number], np.uint64(first)
        while k <= np.uint64(last):
            ahead = load_bits(bits, at >> _THREE) << (at & _SEVEN)
            entry = table[ahead >> BEHIND]
            if not entry:
                entry = long_code(ahead, codes)
                if not entry:
                    return at, np.int64(-1)
            size, run, width = np.uint64(entry & 255), np.uint64(entry >> 12), np.uint64(entry >> 8 & 15)
            ahead <<= size
            at += size
            if width:
                k += run
                value = _number(ahead, width)
                place = np.uint64(PLACES[k])
                if k > np.uint64(last) or (abs(value) + 1 << low) * np.int64(steps[place]) > LIMIT:
                    return at, np.int64(-1)
                coefficients[block + place] = np.int16(value << low)
                seen |= _FIRST_PLACE >> k
                at += width
                k += _ONE
            elif run == np.uint64(15):
                k += np.uint64(16)
            else:
                eob = (1 << np.int64(run)) - 1 + np.int64(ahead >> _ONE >> (np.uint64(63) - run))
                at += run
                break
        places[number] = seen
        if np.int64(at) > 8 * nbytes:
            return at, np.int64(-1)
    return at, eob


@kernel
def _refine_row(
    bits, nbytes, at, eob, codes, table, first, last, low, coefficients, places, line, columns, halved, unit_blocks
):  # fmt: skip
    """Reads one more bit of the coefficients `first` to `last` of a row of blocks; see `_read_row`.

    The bits of the coefficients that are not zero lie between the codes. They are collected for the end of the block: nothing
    foretells how many lie before a code, and a loop for them is mispredicted."""
    inside = _ALL >> np.uint64(first) & _ALL << np.uint64(63 - last)
    for column in range(columns):
        number = np.uint64(line + (column >> halved) * unit_blocks + (column & halved))
        block, seen = number * np.uint64(BLOCK), places[number]
        known, left = seen & inside, inside  # what was not zero before, and what is still to come
        collected, count = np.uint64(0), np.int64(0)
        while not eob and left:
            ahead = _ahead(bits, at)
            entry = table[ahead >> BEHIND]
            if not entry:
                entry = long_code(ahead, codes)
                if not entry:
                    return at, np.int64(-1)
            size, run, width = np.uint64(entry & 255), entry >> 12, np.uint64(entry >> 8 & 15)
            ahead <<= size
            at += size
            if not width and run < 15:
                eob = (1 << run) + np.int64(ahead >> _ONE >> np.uint64(63 - run))
                at += np.uint64(run)
                break
            if width > _ONE:
                return at, np.int64(-1)
            at += width
            zeros_left = left & ~known
            for _ in range(run):
                zeros_left &= ~(_FIRST_PLACE >> np.uint64(leading_zeros(zeros_left) & 63))
            k = np.uint64(leading_zeros(zeros_left) & 63)  # the place of the new coefficient
            after = _ALL >> k >> _ONE if zeros_left else np.uint64(0)
            passed = ones(known & left & ~after)
            collected = collected << np.uint64(passed) | _ahead(bits, at) >> _ONE >> np.uint64(63 - passed)
            at += np.uint64(passed)
            count += passed
            left &= after
            if width:
                if not zeros_left:
                    return at, np.int64(-1)
                value = 1 if ahead >> np.uint64(63) else -1
                coefficients[block + np.uint64(PLACES[k])] = np.int16(value << low)
                seen |= _FIRST_PLACE >> k
        if eob:
            eob -= 1
            passed = ones(known & left)
            collected = collected << np.uint64(passed) | _ahead(bits, at) >> _ONE >> np.uint64(63 - passed)
            at += np.uint64(passed)
            count += passed
        while known:
            k = np.uint64(leading_zeros(known))
            known ^= _FIRST_PLACE >> k
            count -= 1
            place = block + np.uint64(PLACES[k])
            value = np.int64(coefficients[place])
            bit = np.int64(collected >> np.uint64(count) & _ONE) << low
            coefficients[place] = np.int16(value + bit if value > 0 else value - bit)
        places[number] = seen
        if np.int64(at) > 8 * nbytes:
            return at, np.int64(-1)
    return at, eob


@kernel(forceinline=True)
def _ahead(bits, at):
    """The next 64 bits."""
    begin, low = at >> _THREE, at & _SEVEN
    return load_bits(bits, begin) << low | np.uint64(bits[begin + np.uint64(8)]) >> (np.uint64(8) - low)


@kernel
def _take_units(
    units, inside, luma_blocks, bits, nbytes, stream, before, frame, steps, codes, tables, fields, coefficients, skips, blocks,
):  # fmt: skip
    """Copies units from where the last call ended, in place of `read_units`."""
    count = units * (luma_blocks + frame[SIZE, 2] - 1) * BLOCK
    if inside:
        own = coefficients[before[0] :]
        for k in range(count):
            blocks[k] = own[k]
    before[0] += count
    return True


@kernel
def _no_tables(frame, steps, codes, tables, fields, numbers, skips, skipping, kept, made_of):
    """In place of `make_tables`."""
    return True


_pixels_of_coefficients = from_template(
    baseline.pixels.function, _decode.function, "_pixels", {}, read_units=_take_units, make_tables=_no_tables
)
