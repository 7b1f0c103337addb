"""Baseline JPEGs, or windows of them, to pixels, bit for bit as libjpeg-turbo decodes them (ISO/IEC 10918-1).

64 photographs of 500 x 375 (107 kB) take 53 ms of CPU time: 29 for Huffman codes, 11 for cosine transforms, 5 to 7 for colours.
libjpeg-turbo takes 89 (simplejpeg). For a window only its own blocks are transformed, the codes before it are skipped in less
than half the time, and nothing below it is read.

It decodes the files of common data sets: sequential, 8 bits, one scan, gray or YCbCr, with chroma planes of full size, of half
the width, or of half the width and height; and RGB and Adobe's CMYK, as RGB, with planes of full size. It refuses all others, and
damaged files: libjpeg-turbo decodes them or reports the error. Damage below a window goes unnoticed if the file has its end;
libjpeg-turbo does not notice changed bits either.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.atomics import acquire_slot, atomic_store
from ndd._compiled.intrinsics import array_at, empty, zeros
from ndd._compiled.jit import kernel
from ndd._compiled.sample_loops import next_index
from ndd._compiled.simd_jpeg import COPIED, PIXELS, copy_plain, store_inks, store_pixels, transform
from ndd._compiled.unaligned import load_bits
from ndd.decoders.jpeg.batch_headers import reads, u16
from ndd.decoders.jpeg.huffman import BLOCK, FRAME, LOOKS, NAMES, PLACES, SIZE, SYMBOLS, make_tables, read_units

BORDER = 32  # bytes of memory around a plane's rows
UNIT = 1536  # the most bytes of a unit's codes, which are read without checking the end for each

_RUN = 16  # units that are transformed at once: their coefficients stay in the L1 cache
_LEAST_WIDTH = 16  # narrower chroma is not smoothed
_MOST_BITS = 15  # of a first coefficient, of 8 or 12 bits: libjpeg-turbo refuses tables with more


def room(size: int, width: int) -> int:
    """Bytes of `scratch` that `decode` needs for an encoded file of `size` bytes and rows of `width` pixels."""
    return size + UNIT + 10 * BORDER + 70 * (width + 5 * 16 + 2 * BORDER)


PLACE = 4  # the column of a picture's `window` in its row, see `decode_loop`
NUMBERS = PLACE + 9


@kernel(light=True)
def decode_loop(counter, limit, order, pictures, scratch, taken, done):
    """Decodes up to `limit` pictures in the order `order`, which threads share. Returns True.

    Args:
        pictures: int64 `[N, NUMBERS]`: address and bytes of the encoded picture, address and bytes of `out`, and `window`,
            see `decode`.
        scratch: u8 `[S, room]`, with `room` for each of these pictures; every thread takes a row.
        taken: int64 `[S]`, initially zeros: whether a thread uses the row.
        done: bool `[N]`, set for each picture that is decoded.
    """
    seat = acquire_slot(taken)
    own = scratch[seat]
    # Lookup tables, which are reused from picture to picture, and the codes that they were made from.
    tables, skips = empty((4, LOOKS), np.int64), empty((2, 2 * LOOKS), np.uint8)
    fields, numbers = empty((2, 4 * LOOKS), np.uint8), empty((2, 2 * LOOKS), np.int16)
    kept, made_of = zeros((4, 16 + SYMBOLS), np.uint8), zeros(4, np.int64)
    for _ in range(limit):
        turn = next_index(counter)
        if turn >= len(order):
            break
        row = pictures[order[turn]]
        data, out = array_at(row[0], row[1], own), array_at(row[2], row[3], own)
        done[order[turn]] = decode(data, out, row[PLACE:], own, tables, skips, fields, numbers, kept, made_of)
    atomic_store(taken, seat, 0)
    return True


def _usual_fields():
    numbers, scratch = np.empty(0, np.int64), np.empty((0, 0), np.uint8)
    return numbers, np.empty((0, NUMBERS), np.int64), scratch, numbers, np.empty(0, bool)


decode_loop.fallback(lambda *args: False)
decode_loop.usual = _usual_fields
decode_loop.leaves = lambda counter, limit, order, pictures, *_: (
    1.8e-8 * pictures[order, 1].sum()
)  # by the bytes of files
decode_loop.urgency = 1.4  # other libraries, which decode meanwhile, take twice as long: no time of this fallback


@kernel(light=True)
def decode(data, out, window, scratch, tables, skips, fields, numbers, kept, made_of):
    """Decodes rows y0 to y1 and columns x0 to x1 of a picture. Returns whether it could.

    Args:
        out: u8, an image HWC, contiguous. Pixels to the right of the window may be overwritten too.
        window: y0, x0, y1, x1; then y, x of the first pixel of `out`; then the width of `out` and its channels, 3 (RGB) or 1
            (gray); then whether the three components are red, green and blue, not YCbCr.
        scratch: u8, `room` bytes.
        tables, skips, fields, numbers, kept, made_of: see `make_tables`.

    Codes below the window are not read.
    """
    # For each Huffman table (DC, AC; two of each): the number of codes of 1 to 16 bits, then the symbols.
    codes = zeros((4, 16 + SYMBOLS), np.uint8)
    steps = zeros(4 * BLOCK, np.int16)
    frame = zeros(FRAME, np.int64)
    begin = _read_headers(data, frame, steps, codes)
    if begin < 0:
        return False
    bits = scratch[: len(data) - begin + UNIT]
    nbytes, end = unstuffed(data, begin, bits)
    if nbytes < 0 or data[end + 1] != 0xD9:
        return False
    return pixels(
        bits,
        nbytes,
        frame,
        steps,
        codes,
        out,
        window,
        scratch[len(bits) :],
        tables,
        skips,
        fields,
        numbers,
        kept,
        made_of,
    )


@kernel(light=True)
def _read_headers(data, frame, steps, codes):
    """Returns the place where the scan begins, or -1 for a file that this decoder refuses."""
    at, end = 2, len(data)
    has_frame, tables = False, 0  # a bit for each table that is there
    while at + 4 <= end:
        if data[at] != 0xFF:
            return -1
        marker, length = data[at + 1], u16(data, at + 2)
        after = at + 2 + length
        if length < 2 or after > end:
            return -1
        at += 4
        if marker == 0xDB:
            tables |= read_steps(data, at, after, steps)
        elif marker == 0xC4:
            tables |= read_huffman(data, at, after, codes)
        elif marker == 0xC0 or marker == 0xC1:
            if has_frame or not read_frame(data, at, length, frame):
                return -1
            has_frame = True
        elif marker == 0xDA:
            count = frame[SIZE, 2]
            if not has_frame or length != 6 + 2 * count or data[at] != count:
                return -1
            for c in range(count):
                chosen = np.int64(data[at + 2 + 2 * c])
                needed = (1 << frame[c, 2]) | (16 << (chosen >> 4)) | (64 << (chosen & 15))
                if data[at + 1 + 2 * c] != frame[NAMES, c] or (chosen & 0xEE) or tables & needed != needed:
                    return -1
                frame[c, 3] = chosen
            tail = at + 1 + 2 * count
            plain = data[tail] == 0 and data[tail + 1] == 63 and data[tail + 2] == 0
            return after if plain else -1
        elif marker == 0xEE and length >= 14 and reads(data, at, 0x41, 0x64, 0x6F, 0x62):  # "Adobe"
            frame[SIZE, 3] = data[at + 11] == 0
        elif not (0xE0 <= marker <= 0xEF or marker == 0xFE):  # also restart intervals
            return -1
        if tables < 0:
            return -1
        at = after
    return -1


@kernel(light=True)
def read_steps(data, at, after, steps):
    """Reads the steps of quantisation in a segment; returns a bit for each table, -1 for a segment that is refused."""
    tables = 0
    while at < after:
        which = np.int64(data[at])
        if which > 3 or at + 65 > after:  # also tables of 16 bits
            return -1
        for k in range(64):
            steps[which * BLOCK + PLACES[k]] = data[at + 1 + k]
        tables |= 1 << which
        at += 65
    return tables


@kernel(light=True)
def read_huffman(data, at, after, codes):
    """Reads the Huffman codes in a segment: of each table (DC, AC; two of each) the number of codes of 1 to 16 bits, then the
    symbols. Returns a bit for each table, from 16 on; -1 for a segment that is refused."""
    tables = 0
    while at < after:
        kind = np.int64(data[at])
        if (kind & 0xEE) or at + 17 > after:
            return -1
        which = 2 * (kind >> 4) + (kind & 1)
        count = 0
        for k in range(16):
            count += np.int64(data[at + 1 + k])
        if count > SYMBOLS or at + 17 + count > after:
            return -1
        for k in range(16 + count):
            codes[which, k] = data[at + 1 + k]
            if k >= 16 and which < 2 and data[at + 1 + k] > _MOST_BITS:
                return -1
        at += 17 + count
        tables |= 16 << which
    return tables


@kernel(light=True)
def read_frame(data, at, length, frame):
    """Reads a frame header of 8 bits and one, three or four components; returns whether it is one."""
    if length < 11 or data[at] != 8 or (data[at + 5] != 1 and data[at + 5] != 3 and data[at + 5] != 4):
        return False
    count = np.int64(data[at + 5])
    if length != 8 + 3 * count:
        return False
    frame[SIZE, 0], frame[SIZE, 1], frame[SIZE, 2] = u16(data, at + 1), u16(data, at + 3), count
    for c in range(count):
        part = at + 6 + 3 * c
        frame[NAMES, c] = data[part]
        frame[c, 0], frame[c, 1], frame[c, 2] = data[part + 1] >> 4, data[part + 1] & 15, data[part + 2]
        if frame[c, 2] > 3:
            return False
    return True


@kernel(light=True)
def sampling(frame):
    """How many blocks of luma stand side by side and one above the other in a unit; zeros for other samplings than those of
    `decode`, and for chroma too narrow to be smoothed."""
    channels = frame[SIZE, 2]
    across, down = (frame[0, 0], frame[0, 1]) if channels == 3 else (1, 1)
    usual = across <= 2 and down <= across and across > 0 and down > 0
    for c in range(1, channels):
        usual = usual and frame[c, 0] == 1 and frame[c, 1] == 1
    if channels != 3:
        usual = usual and frame[0, 0] == 1 and frame[0, 1] == 1
    if not usual or (across > 1 and frame[SIZE, 1] < _LEAST_WIDTH):
        return 0, 0
    return across, down


@kernel
def unstuffed(data, begin, bits):
    """Copies a scan, which begins at `begin`, without the zeros after 0xFF. Returns the number of bytes, and where the marker lies
    that ends it; -1 and the end of the file if none does."""
    at, end, count = begin, len(data), 0
    while at + COPIED <= end:
        plain = copy_plain(data, np.uint64(at), bits, np.uint64(count))
        if plain == COPIED:  # the usual case, which the branch predictor learns, so it need not wait for the count
            at += COPIED
            count += COPIED
            continue
        at += plain
        count += plain
        if at + 1 == end:
            return -1, end
        if data[at + 1] != 0:
            break
        at += 2
        count += 1
    while at < end:
        if data[at] == 0xFF:
            if at + 1 == end:
                return -1, end
            if data[at + 1] != 0:
                bits[count : count + BORDER] = 0
                return count, at
            bits[count] = 0xFF
            at += 2
        else:
            bits[count] = data[at]
            at += 1
        count += 1
    return -1, end


@kernel
def pixels(
    bits, nbytes, frame, steps, codes, out, window, scratch, tables, skips, fields, numbers, kept, made_of
):  # fmt: skip
    """Reads the scan, and makes the rows of `out` as soon as their planes are complete."""
    height, width, channels = frame[SIZE, 0], frame[SIZE, 1], frame[SIZE, 2]
    across, down = sampling(frame)
    y0, x0, rows, columns = window[0], window[1], window[2] - window[0], window[3] - window[1]
    first = (y0 - window[4]) * window[6] + x0 - window[5]
    if not across or y0 + rows > height or x0 + columns > width:
        return False
    is_rgb = window[8] != 0
    if channels == 4 and not (frame[SIZE, 3] and window[7] == 3):
        return False
    if is_rgb and (channels != 3 or across != 1 or window[7] != 3):
        return False
    # The units of the scan that the window needs, with one chroma pixel around it.
    high, wide = 8 * down, 8 * across
    up, left = max(0, (y0 - 2) // high), max(0, (x0 - 2) // wide)
    units_down, units_across = (height + high - 1) // high, (width + wide - 1) // wide
    low, right = min(units_down, (y0 + rows + 1) // high + 1), min(units_across, (x0 + columns + 1) // wide + 1)
    stride = (right - left) * wide + 2 * BORDER
    chroma_stride = (right - left) * 8 + 2 * BORDER
    # The rows of two units alternate, so that the L1 cache holds them.
    luma_size, chroma_size = 2 * high * stride + 2 * BORDER, 16 * chroma_stride + 2 * BORDER
    luma = scratch[:luma_size]
    blue = scratch[luma_size : luma_size + chroma_size]
    red = scratch[luma_size + chroma_size : luma_size + 2 * chroma_size]
    black = scratch[luma_size + 2 * chroma_size : luma_size + 3 * chroma_size]
    planes = channels + is_rgb
    if is_rgb:
        black[:] = 255  # red, green and blue are inks without black
    begin_last = luma_size + max(planes - 1, 2) * chroma_size
    last = scratch[begin_last : begin_last + 3 * stride + 2 * BORDER]
    wide_blue, wide_red = zeros(stride + 2 * BORDER, np.uint8), zeros(stride + 2 * BORDER, np.uint8)
    luma_blocks, unit_blocks = down * across, down * across + channels - 1
    blocks = zeros(_RUN * unit_blocks * BLOCK + 1, np.int16)
    stream, before = zeros(3, np.uint64), zeros(4, np.int64)
    mixed = zeros(chroma_stride, np.int16)
    stream[1] = load_bits(bits, np.uint64(0))
    skipping = up > 0 or left > 0 or right < units_across
    if not make_tables(frame, steps, codes, tables, fields, numbers, skips, skipping, kept, made_of):
        return False
    wide_blue[:] = 128
    wide_red[:] = 128
    done = 0
    for unit in range(low):
        # The units before the window, runs of units in it, the units after it. Above the window all are before it.
        column = 0
        while column < units_across:
            inside = unit >= up and left <= column < right
            end = units_across if unit < up or column >= right else min(column + _RUN, right) if inside else left
            units = end - column
            if inside:
                blocks[:] = 0
            if not read_units(
                units, inside, luma_blocks, bits, nbytes, stream, before, frame, steps, codes, tables, fields, numbers,
                skips, blocks,
            ):  # fmt: skip
                return False
            for c in range(channels if inside else 0):
                wider, lower, step, target, offset = across, down, stride, 0, 0
                if c:
                    wider, lower, step, target = 1, 1, chroma_stride, luma_size + (c - 1) * chroma_size
                    offset = (luma_blocks + c - 1) * BLOCK
                target += (unit & 1) * lower * 8 * step + BORDER + (column - left) * 8 * wider
                for _ in range(lower):
                    for k in range(0, units * wider, 2):  # two neighbours at once; the last one may have none
                        first_block = offset + k // wider * unit_blocks * BLOCK
                        second_block = first_block + (unit_blocks if wider == 1 else 1) * BLOCK
                        if k + 1 == units * wider:
                            second_block = first_block
                        transform(
                            blocks, np.uint64(first_block), np.uint64(second_block), steps, np.uint64(frame[c, 2] * BLOCK),
                            scratch, np.uint64(target + 8 * k), np.uint64(step),
                        )  # fmt: skip
                    target += 8 * step
                    offset += wider * BLOCK
            column = end
        if unit < up:
            continue
        # The rows whose chroma is complete; halved chroma also needs the row below.
        ready = (unit + 1) * high - (1 if down == 2 else 0)
        ready = min(rows, (height if unit + 1 == units_down else ready) - y0)
        for row in range(done, ready):
            _row(
                luma, blue, red, black, stride, chroma_stride, planes, across, down, y0 + row, x0 - left * wide,
                (height + down - 1) // down, (width + across - 1) // across - left * 8, columns, mixed,
                wide_blue, wide_red, last, out, (first + row * window[6]) * window[7], window[7],
            )  # fmt: skip
        done = max(done, ready)
    used = np.int64(stream[0])
    return done == rows and (low < units_down or (used + 7) >> 3 == nbytes)


@kernel
def _row(
    luma, blue, red, black, stride, chroma_stride, planes, across, down, y, x, chroma_rows, chroma_columns, columns, mixed,
    wide_blue, wide_red, last, out, place, out_channels,
):  # fmt: skip
    """Computes row `y` of the picture from the planes, beginning at column `x`. Chroma ends at `chroma_rows` and
    `chroma_columns`."""
    begin = y % (16 * down) * stride + BORDER + x
    if out_channels == 1:
        for k in range(columns):
            out[np.uint64(place + k)] = luma[np.uint64(begin + k)]
        return
    cb, cr, at = wide_blue, wide_red, BORDER
    if planes >= 3 and across == 1:
        cb, cr, at = blue, red, begin
    elif planes == 3:
        at = BORDER + x
        near = y // down
        far = near if down == 1 else near - 1 if y % 2 == 0 else near + 1
        far = min(max(far, 0), chroma_rows - 1)
        near_at, far_at = near % 16 * chroma_stride + BORDER, far % 16 * chroma_stride + BORDER
        even, odd = (4, 8) if down == 1 else (8, 7)
        first, end = max(0, x // 2), min(chroma_columns, (x + columns + 1) // 2)
        for plane, target in ((blue, wide_blue), (red, wide_red)):
            _widened(plane, near_at, far_at, even, odd, first, end, chroma_columns, mixed, target)
    # Vectors may write beyond the row, because the next row is written later; the last rows are exceptions.
    ends = len(out) - place - 3 * columns < 3 * PIXELS
    target, start = (last, 0) if ends else (out, place)
    for k in range(0, columns, PIXELS):
        if planes == 4:
            store_inks(luma, cb, cr, black, np.uint64(begin + k), target, np.uint64(start + 3 * k))
        else:
            store_pixels(luma, np.uint64(begin + k), cb, cr, np.uint64(at + k), target, np.uint64(start + 3 * k))
    if ends:
        for k in range(3 * columns):
            out[place + k] = last[k]


@kernel
def _widened(plane, near, far, even, odd, first, end, columns, mixed, target):
    """Widens a row of chroma, with a quarter of each neighbour mixed in: the fancy upsampling of `jdsample`. `even` and `odd` are
    added for rounding. All arrays are read from index 0 on, so that the compiler makes vector code."""
    count = end - first
    nearer, farther = plane[near + first - 1 : near + end + 1], plane[far + first - 1 : far + end + 1]
    for k in range(count + 2):
        mixed[k] = 3 * np.int16(nearer[k]) + np.int16(farther[k])
    if first == 0:
        mixed[0] = mixed[1]
    if end == columns:
        mixed[count + 1] = mixed[count]
    middle, after, out = mixed[1:], mixed[2:], target[BORDER + 2 * first :]
    for k in range(count):
        three = 3 * np.int32(middle[k])
        out[np.uint64(2 * k)] = (three + mixed[k] + even) >> 4
        out[np.uint64(2 * k + 1)] = (three + after[k] + odd) >> 4
