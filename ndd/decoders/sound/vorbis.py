"""Decodes packets of Vorbis. The format: "Vorbis I specification"; tables: `vorbis_setup.py`.

Why it is here: with libsndfile instead, the speech loop (`bench speech` on Ogg files of read speech, 2 to 6 s, two threads)
falls from 483 to 203 files/s, and a file costs 2.1 ms of CPU instead of 1.0. Decoding alone takes 2.0 ms instead of 0.7; a
third of it builds the tables again for every file. The price is 12 s of compiling, in the background, and 1,300 lines.

It computes in integers until the vectors are added up, then in float32, in the order of libvorbis's source: the samples equal
those of DALI to the last bit. (soundfile's libvorbis is compiled with `-ffast-math` and adds in another order: a difference of
4e-7.) Any fault ends the decoding, and the caller calls libsndfile.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel
from ndd._cpu.element_copies import copy_bytes
from ndd.decoders.sound.ogg import packets, sound_pages
from ndd.decoders.sound.vorbis_floor import ENDED, UNKNOWN, entry_of, heights_of, peek, shape
from ndd.decoders.sound.vorbis_setup import (
    ANGLE,
    BITS,
    CHANNELS,
    CLASSES,
    CODED,
    CODES,
    DIM,
    END,
    FIRST,
    FLOOR,
    FLOOR_AT,
    GROUP,
    LONG,
    MAGNITUDE,
    MAP_AT,
    MAPPING,
    MODE,
    MODE_AT,
    MODE_BITS,
    MODES,
    PAIRS,
    PHRASES,
    RESIDUE,
    RESIDUE_AT,
    SHORT,
    STAGE_BOOKS,
    STAGES,
    SUBMAP,
    SUBMAP_FLOOR,
    SUBMAP_RESIDUE,
    SUBMAPS,
    TYPE,
    VECTORS,
    WORDS,
)  # fmt: skip
from ndd.decoders.sound.vorbis_transform import inverse


@kernel
def _partition(words, at, end, table, values, book, lines, first, count):
    """Adds vectors of a codebook to `lines[first : first + count]`. Returns the bit after them, or -1 if the packet ends too
    early."""
    dim, bits, codes, vectors = (
        np.int64(table[book + DIM]),
        table[book + BITS],
        table[book + CODES],
        table[book + VECTORS],
    )
    mask = (np.int64(1) << bits) - 1
    i, last = np.int64(first), np.int64(first + count)
    while i < last:
        window = peek(words, at)
        e = np.int64(table[np.uint64(codes + (window & mask))])
        if e < 0:
            e = np.int64(table[np.uint64((-e >> 6) + (window >> bits & ((1 << (-e & 63)) - 1)))])
        at += e & 63
        if at > end:
            return np.int64(-1)
        v = vectors + (e >> 6) * dim
        if dim == 2 and i + 2 <= last:
            lines[np.uint64(i)] += values[np.uint64(v)]
            lines[np.uint64(i + 1)] += values[np.uint64(v + 1)]
        elif dim == 4 and i + 4 <= last:
            lines[np.uint64(i)] += values[np.uint64(v)]
            lines[np.uint64(i + 1)] += values[np.uint64(v + 1)]
            lines[np.uint64(i + 2)] += values[np.uint64(v + 2)]
            lines[np.uint64(i + 3)] += values[np.uint64(v + 3)]
        else:
            for j in range(min(dim, last - i)):
                lines[i + j] += values[v + j]
        i += dim
    return at


@kernel
def _strided(words, at, end, table, values, book, lines, first, count):
    """Does the same as `_partition` for a residue of type 0, in which the numbers of a vector are `count / dim` apart."""
    dim = table[book + DIM]
    step = count // dim
    for k in range(step):
        entry, length = entry_of(words, at, table, book)
        at += length
        if at > end:
            return np.int64(-1)
        for j in range(dim):
            lines[first + k + j * step] += values[table[book + VECTORS] + entry * dim + j]
    return at


@kernel
def _interleaved(words, at, end, table, values, book, lines, stride, bundle, channels, first, count):
    """Does the same as `_partition` for a residue of type 2, which interleaves the channels."""
    dim, i, last, c = np.int64(table[book + DIM]), first // channels, (first + count) // channels, 0
    while i < last:
        entry, length = entry_of(words, at, table, book)
        at += length
        if at > end:
            return np.int64(-1)
        v = table[book + VECTORS] + entry * dim
        for j in range(dim):
            if i >= last:
                break
            lines[bundle[c] * stride + i] += values[v + j]
            c += 1
            if c == channels:
                c = 0
                i += 1
    return at


@kernel
def _residue(words, at, end, table, values, residue, half, bundle, used, lines, stride, picked):
    """Adds a residue of the `used` channels of `bundle` to their lines. Returns the bit after it. If the packet ends too early,
    the rest is 0."""
    kind, group = table[residue + TYPE], np.int64(table[residue + GROUP])
    together = kind == 2
    begin, most = np.int64(table[residue + FIRST]), np.int64(half * used if together else half)
    parts = (min(np.int64(table[residue + END]), most) - begin) // group
    rows = 1 if together else used
    phrases = table[residue + PHRASES]
    dim = np.int64(table[phrases + DIM])
    if parts <= 0 or used == 0:
        return at
    if table[phrases + CODED] == 0:
        return at
    for stage in range(table[residue + STAGES]):
        i, word = np.int64(0), np.int64(0)
        while i < parts:
            if stage == 0:
                for j in range(rows):
                    entry, length = entry_of(words, at, table, phrases)
                    at += length
                    if at > end or entry >= table[residue + WORDS]:
                        return end
                    picked[j * stride + word] = table[residue + CLASSES] + entry * dim
            for k in range(min(dim, parts - i)):
                for j in range(rows):
                    c = table[picked[j * stride + word] + k]
                    book = table[residue + STAGE_BOOKS + c * 8 + stage]
                    if book < 0 or table[book + CODED] == 0:
                        continue
                    first = begin + (i + k) * group
                    place = bundle[j] * stride + first
                    if together and used > 1:
                        at = _interleaved(
                            words, at, end, table, values, book, lines, stride, bundle, used, first, group
                        )
                    elif kind == 0:
                        at = _strided(words, at, end, table, values, book, lines, place, group)
                    else:
                        at = _partition(words, at, end, table, values, book, lines, place, group)
                    if at < 0:
                        return end
            i += dim
            word += 1
    return at


@kernel
def _uncouple(magnitudes, angles, half):
    for i in range(half):
        m, a = magnitudes[i], angles[i]
        other = m - a if (m > 0) == (a > 0) else m + a
        magnitudes[i] = m if a > 0 else other
        angles[i] = other if a > 0 else m


@kernel
def _spectra(words, at, end, table, values, mapping, half, lines, stride, heights, present, bundle, picked):
    """Fills the lines of all channels of a block from its packet. Returns whether its form is known. `present[c]`: whether a
    line is not 0."""
    channels = table[CHANNELS]
    for c in range(channels):
        floor = table[FLOOR_AT] + table[mapping + SUBMAP_FLOOR + table[mapping + SUBMAP + c]] * FLOOR
        after = heights_of(words, at, end, table, floor, heights[c])
        if after == UNKNOWN:
            return False
        present[0, c] = present[1, c] = after >= 0
        at = after if after >= 0 else end if after == ENDED else min(at + 1, end)
        lines[c * stride : c * stride + half] = 0
    for p in range(table[mapping + PAIRS]):
        m, a = table[mapping + MAGNITUDE + p], table[mapping + ANGLE + p]
        if present[1, m] or present[1, a]:
            present[1, m] = present[1, a] = True
    for s in range(table[mapping + SUBMAPS]):
        residue = table[RESIDUE_AT] + table[mapping + SUBMAP_RESIDUE + s] * RESIDUE
        together, used, some = table[residue + TYPE] == 2, np.int64(0), False
        for c in range(channels):
            if table[mapping + SUBMAP + c] == s and (together or present[1, c]):
                bundle[used] = c
                used += 1
                some |= present[1, c]
        if some:
            at = _residue(words, at, end, table, values, residue, half, bundle, used, lines, stride, picked)
    for k in range(table[mapping + PAIRS]):
        p = table[mapping + PAIRS] - 1 - k
        m, a = table[mapping + MAGNITUDE + p] * stride, table[mapping + ANGLE + p] * stride
        _uncouple(lines[m : m + half], lines[a : a + half], half)
    for c in range(channels):
        if present[0, c]:
            floor = table[FLOOR_AT] + table[mapping + SUBMAP_FLOOR + table[mapping + SUBMAP + c]] * FLOOR
            shape(table, floor, heights[c], lines[c * stride : c * stride + half], half)
    return True


@kernel
def _copy(source, out):
    """`out[:] = source[: len(out)]`, without the error text that numba would compile for it, which takes a second."""
    for k in range(min(len(out), len(source))):
        out[k] = source[k]


@kernel
def _overlap(before, half_before, now, half, window):
    """Adds the first half of a block to the second half of the previous block."""
    short = min(half_before, half)
    left, total = (half_before - short) // 2, (half_before + half) // 2
    faded, risen = before[left : left + short], now[(half - short) // 2 :]
    for k in range(short):
        faded[k] = faded[k] * window[short - 1 - k] + risen[k] * window[k]
    if half > short:
        _copy(risen[short:], before[left + short : total])


@kernel
def samples(address, words, begin, nbytes, length, table, values, factors, order, first, out):
    """Fills `out`, float32 `[n, channels]`, with the samples from `first` on of a file of `nbytes` at `address`, whose sound
    begins at byte `begin` and has `length` samples of each channel. Returns whether all packets were valid.

    Args:
        words: uint64 `[nbytes // 8 + 4]`, scratch memory.
        table, values: see `vorbis_setup.py`.
        factors, order: those of short and of long blocks, see `vorbis_transform.py`.
    """
    data = words.view(np.uint8)
    words[-4:] = 0
    copy_bytes(words.ctypes.data, address, nbytes)
    if not sound_pages(data, begin, nbytes):
        return False
    ends, positions = packets(data, begin, nbytes)
    count = ends.size
    channels, wanted = out.shape[1], len(out)
    longest = np.int64(table[LONG])
    lines, picked = np.empty(channels * longest, np.float32), np.empty(channels * longest, np.int32)
    heights, present = np.empty((channels, 65), np.int64), np.empty((2, channels), np.bool_)
    bundle, work = np.empty(channels, np.int64), np.empty((4, longest // 2), np.float32)
    halves, now, flat = np.empty((channels, longest), np.float32), np.empty(longest, np.float32), out.reshape(-1)
    short_factors, long_factors = factors
    short_order, long_order = order
    position, half_before, at = np.int64(0), np.int64(0), np.int64(0)
    for k in range(count):
        end = ends[k] * 8
        window = peek(words, at)
        mode, bits = window >> 1 & ((1 << table[MODE_BITS]) - 1), 1 + table[MODE_BITS]
        if end == at or window & 1 or mode >= table[MODES]:
            return False
        long = table[table[MODE_AT] + mode * MODE] != 0
        mapping = table[MAP_AT] + table[table[MODE_AT] + mode * MODE + 1] * MAPPING
        half = np.int64(table[LONG] if long else table[SHORT])
        at += bits + 2 * long
        if at > end:
            return False
        after = position + (half_before + half) // 2 if k else np.int64(0)
        if after + (half + longest) // 2 > first:
            if not _spectra(
                words, at, end, table, values, mapping, half, lines, longest, heights, present, bundle, picked
            ):
                return False
            own_factors, own_order = (long_factors, long_order) if half == longest else (short_factors, short_order)
            slope = long_factors if min(half, half_before) == longest else short_factors
            skipped, kept = max(first - position, 0), min(first + wanted, after) - position
            for c in range(channels):
                before, line = halves[c], lines[c * longest : c * longest + half]
                if present[0, c]:
                    inverse(line, half, own_factors, own_order, work[0], work[1], work[2], work[3], now, line)
                else:
                    now[:half] = 0
                    line[:] = 0
                if skipped < kept:
                    _overlap(before, half_before, now, half, slope)
                    target = position - first
                    if channels == 1:
                        _copy(before[skipped:], flat[target + skipped : target + kept])
                    else:
                        for i in range(skipped, kept):
                            out[target + i, c] = before[i]
                _copy(line, before[:half])
        position, half_before, at = after, half, end
        if positions[k] >= 0 and positions[k] != position and (k + 1 < count or position < length):
            return False
        if position >= first + wanted and k + 1 < count:
            return True
    return position >= length
