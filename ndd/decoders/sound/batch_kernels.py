"""Decodes the sound files of a batch in compiled code: headers, then samples, mixed, resampled and converted.

A file of a second of speech takes 20 to 300 us. Reading its header in Python would take 100 us with the GIL, for which 16
threads would queue. Here one call reads all headers, and threads take files until none is left.

Plain WAV files are converted directly: with libsndfile instead, the speech loop falls from 487 to 370 files/s, and a file
costs 0.39 ms of CPU instead of 0.18 to decode. `flac.py` decodes FLAC, `vorbis.py` Ogg files of Vorbis, and libsndfile
(`libsndfile.py`) all others. Unusual and damaged files are left to `decode.py`.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.atomics import acquire_slot, atomic_store
from ndd._compiled.intrinsics import array_at, empty
from ndd._compiled.jit import kernel
from ndd._cpu.byte_order import big_endian, little_endian
from ndd._cpu.element_copies import copy_bytes
from ndd._cpu.windowed_sinc import resampled
from ndd.decoders.sound.flac import frames as flac_frames
from ndd.decoders.sound.libsndfile import CHANNELS as _CHANNELS, FORMAT as _FORMAT, RATE as _RATE, opened, read
from ndd.decoders.sound.mpeg import TRIMMED, sound_length
from ndd.decoders.sound.ogg import stream
from ndd.decoders.sound.vorbis import samples as vorbis_decoded
from ndd.decoders.sound.vorbis_setup import MOST_CHANNELS

# The columns of `facts`, with a row for each file. BITS: bits of a sample, or the format of a file that libsndfile has opened.
# SETUP: the place of Vorbis's setup header.
KIND, BEGIN, FRAMES, RATE, CHANNELS, BITS, FLOATS, SEEKS, HANDLE, FILE, SETUP, SETUP_BYTES = range(12)
FACTS = 12
UNKNOWN, WAV, FLAC, OPENED, VORBIS = range(5)
# The columns of `plan`. FIRST: the first wanted frame; COUNT: the number of wanted frames (-1: skip the file); EXACT: whether
# samples are only converted, not mixed or resampled; PLACE: the place in the output, and NEEDS: the scratch memory, both in
# elements; BEFORE: the frames that libsndfile decodes before the first; LENGTH: the frames of the result.
FIRST, COUNT, EXACT, PLACE, NEEDS, BEFORE, LENGTH = range(7)
PLANS = 7

_TAP_COST = 0.35  # nanoseconds of a resampling tap for each output number, on an Intel Xeon
_HEAD = 1 << 12  # the samples of a WAV file must begin within this many bytes, or libsndfile reads it
_PIECE = 1 << 12  # numbers of a WAV file that are converted at once: they fit into the L1 cache
_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_MOST = 512  # samples for each byte; FLAC files that claim more are left to libsndfile, which reads block by block
_WHOLE = 1 << 22  # bytes; longer Ogg files are left to libsndfile, which reads only the wanted part
_PAF, _FLAC_FORMAT, _MPEG_FORMAT = 5, 0x17, 0x23  # of SF_INFO
_SLOW, _MOST_STRETCHED = 256, 1024
# A file with more numbers than this for each of its bytes is read block by block, unless the numbers are few.
_MOST_MADE, _LITTLE = 1024, 1 << 24
# How libsndfile seeks: not at all, so it must decode from the beginning; exactly; in MPEG exactly if it decodes some frames
# before; in Vorbis exactly except in the last page.
NOWHERE, ANYWHERE, NEAR, PAGES = range(4)


_FLOATS = np.zeros(256, np.uint8)  # by subtype of SF_INFO: float, double, Vorbis, Opus, MPEG layers
_FLOATS[[6, 7, 0x60, 0x64, 0x80, 0x81, 0x82]] = 1


def _seeks() -> np.ndarray:
    """How libsndfile seeks, by subtype of SF_INFO. It cannot seek in GSM, G.72x, NMS, DWVW and DPCM, and seeks wrongly in PAF
    of 24 bits, ALAC of 20 bits and Opus."""
    table = np.full(256, NOWHERE, np.uint8)
    table[[1, 2, 3, 4, 5, 6, 7, 0x10, 0x11, 0x12, 0x13]] = ANYWHERE  # PCM, floats, u-law, A-law, ADPCM
    table[[0x80, 0x81, 0x82]], table[0x60] = NEAR, PAGES
    return table


SEEKABLE = _seeks()


@kernel(light=True)
def _wav(head, size, nbytes, facts):
    """Fills the facts of a WAV file. Those of a truncated file describe the samples that it has."""
    place, form, form_end = np.int64(12), np.int64(0), np.int64(0)
    while place + 8 <= size:
        name, length = big_endian(head, place, 4), little_endian(head, place + 4, 4)
        place += 8
        if name == 0x666D7420 and length >= 16 and place + 16 <= size:  # "fmt "
            form, form_end = place, min(place + length, size)
        elif name == 0x64617461:  # "data"
            if form == 0:
                return
            kind, channels = little_endian(head, form, 2), little_endian(head, form + 2, 2)
            rate, align = little_endian(head, form + 4, 4), little_endian(head, form + 12, 2)
            bits = little_endian(head, form + 14, 2)
            if kind == _EXTENSIBLE and form_end >= form + 26:
                kind = little_endian(head, form + 24, 2)
            known = (kind == _PCM and bits in (8, 16, 24, 32)) or (kind == _FLOAT and bits in (32, 64))
            if known and channels > 0 and rate > 0 and align == channels * bits // 8:
                facts[KIND], facts[BEGIN], facts[FRAMES] = WAV, place, min(length, nbytes - place) // align
                facts[RATE], facts[CHANNELS], facts[BITS], facts[FLOATS] = rate, channels, bits, kind == _FLOAT
            return
        place += length + length % 2


@kernel(light=True)
def _flac(data, nbytes, facts):
    """Fills the facts of a FLAC file."""
    # After a block's header (4 bytes): sizes of frames (10 bytes), then rate, channels, bits, length.
    rate, channels = big_endian(data, 18, 4) >> 12, (big_endian(data, 20, 1) >> 1 & 7) + 1
    bits, length = (big_endian(data, 20, 2) >> 4 & 31) + 1, big_endian(data, 21, 5) & (1 << 36) - 1
    place, last = np.int64(4), data[4] & 127 != 0 or data[7] != 34
    while not last and place + 4 <= nbytes:
        last, place = data[place] > 127, place + 4 + big_endian(data, place + 1, 3)
    if place <= 4 or place >= nbytes or bits not in (8, 16, 24) or rate == 0:
        return
    if 0 < length <= _MOST * nbytes:
        facts[KIND], facts[BEGIN], facts[FRAMES] = FLAC, place, length
        facts[RATE], facts[CHANNELS], facts[BITS] = rate, channels, bits


@kernel(light=True)
def headers(files, starts, facts):
    """Fills `facts`, initially zeros `[n, FACTS]`, for the plain WAV and FLAC files among `files`, int64 `[n, 2]`: addresses
    and sizes. Returns the number of other files. libsndfile decodes FLAC files from the middle, with `starts`, float64 `[n]`,
    above 0."""
    others = len(files)
    like = np.empty(0, np.uint8)
    for i in range(len(files)):
        nbytes = files[i, 1]
        if nbytes >= 42:
            data = array_at(files[i, 0], nbytes, like)
            name = big_endian(data, 0, 4)
            if name == 0x52494646 and big_endian(data, 8, 4) == 0x57415645 and nbytes >= 44:  # "RIFF", "WAVE"
                _wav(data, min(nbytes, _HEAD), nbytes, facts[i])
            elif name == 0x664C6143 and starts[i] == 0:  # "fLaC"
                _flac(data, nbytes, facts[i])
            others -= facts[i, KIND] != UNKNOWN
    return others


@headers.fallback
def _(files, starts, facts):
    """libsndfile reads all of them."""
    return len(files)


@kernel(light=True)
def _has_comments(address, nbytes, head):
    """Whether Vorbis's comment header, `nbytes` at `address`, is complete: libvorbis refuses files with an incomplete one."""
    copy_bytes(head.ctypes.data, address, 11)
    place = np.int64(11) + little_endian(head, 7, 4)  # after the name of the encoder
    if big_endian(head, 0, 7) != 0x03766F72626973 or place + 4 > nbytes:
        return False
    copy_bytes(head.ctypes.data, address + place, 4)
    count = little_endian(head, 0, 4)
    place += 4
    for _ in range(count):
        if place + 4 > nbytes:
            return False
        copy_bytes(head.ctypes.data, address + place, 4)
        place += 4 + little_endian(head, 0, 4)
    if place >= nbytes:
        return False
    copy_bytes(head.ctypes.data, address + place, 1)
    return head[0] & 1 != 0


@kernel(light=True)
def vorbis_headers(files, which, facts):
    """Fills the `facts` of the files among `which` that are Ogg files with one complete stream of Vorbis."""
    head, numbers = np.empty(282, np.uint8), np.zeros(6, np.int64)
    for k in range(len(which)):
        i = which[k]
        address, nbytes = files[i, 0], files[i, 1]
        if nbytes > _WHOLE or not stream(address, nbytes, head, numbers):
            continue
        # The first page has one packet (`stream`). After its header of 28 bytes: 1, "vorbis", version, channels, rate, sizes.
        copy_bytes(head.ctypes.data, address, 64)
        channels, rate = little_endian(head, 39, 1), little_endian(head, 40, 4)
        short, long = little_endian(head, 56, 1) & 15, little_endian(head, 56, 1) >> 4
        known = (
            head[26] == 1
            and head[27] == 30
            and big_endian(head, 28, 7) == 0x01766F72626973
            and little_endian(head, 35, 4) == 0
        )
        known = known and 0 < channels <= MOST_CHANNELS and 0 < rate < 1 << 31
        known = known and 6 <= short <= long <= 13 and head[57] & 1 != 0
        if (
            not known
            or numbers[5] < 16
            or numbers[1] < 8
            or numbers[3] <= 0
            or not _has_comments(address + numbers[4], numbers[5], head)
        ):
            continue
        copy_bytes(head.ctypes.data, address + numbers[0], 7)
        if big_endian(head, 0, 7) != 0x05766F72626973:
            continue
        facts[i, KIND], facts[i, FLOATS], facts[i, BEGIN], facts[i, FRAMES] = VORBIS, 1, numbers[2], numbers[3]
        facts[i, RATE], facts[i, CHANNELS], facts[i, SETUP], facts[i, SETUP_BYTES] = (
            rate,
            channels,
            numbers[0],
            numbers[1],
        )


@vorbis_headers.fallback
def _(*_args):
    """libsndfile decodes them during the 12 s of compiling, with a difference of 4e-7."""


@kernel
def stretches(rate, wanted):
    """Whether a rate is too low to be resampled to the wanted one: no recording has it, and the result would take gigabytes."""
    return rate < _SLOW and rate * _MOST_STRETCHED < wanted


@kernel(nogil=False)
def plan_files(files, facts, rates, starts, durations, downmix, floats, block, lobes, costs, most_rise, plan, cost):
    """Fills `plan` `[n, PLANS]`, except BEFORE, and `cost`, float64 `[n]`: nanoseconds. Returns the number of elements of the
    output.

    NumPy calls would take twice as long as decoding 64 files of a second, while the other threads are idle.

    Args:
        rates, starts, durations: float64 `[n]`. A rate of 0 or less keeps that of the file; a duration of NaN extends to the
            end.
        downmix, floats: whether the result has one channel, and whether it has floats.
        block: the most frames of files whose headers may claim too many.
        lobes: those of the resampling filter.
        costs: the cost of decoding a number, by KIND.
        most_rise: the largest ratio of the new rate to that of a file.
    """
    at = np.int64(0)
    for i in range(len(facts)):
        kind, frames, channels, rate = facts[i, KIND], facts[i, FRAMES], facts[i, CHANNELS], np.float64(facts[i, RATE])
        first, limit = np.floor(starts[i] * rate), np.floor(durations[i] * rate)
        count, most = frames - first, np.float64(block)
        if limit < count:
            count = limit
        if kind in (FLAC, VORBIS):
            most = max(most, np.float64(16 * files[i, 1]))
        fine = kind != UNKNOWN and first >= 0 and first <= frames and (kind == WAV or count <= most)
        fine = fine and not stretches(rate, rates[i])
        other = rates[i] > 0 and rates[i] != rate
        fine = fine and rates[i] <= rate * most_rise
        exact = not other and (channels == 1 or not downmix) and (floats or facts[i, FLOATS] == 0)
        plan[i, FIRST], plan[i, COUNT] = 0, -1
        total = count * channels * (rates[i] / rate if other else 1.0)
        fine = fine and (kind == WAV or total <= max(_LITTLE, _MOST_MADE * files[i, 1]))
        if fine:
            plan[i, FIRST], plan[i, COUNT] = np.int64(first), np.int64(count)
        kept = max(plan[i, COUNT], 0)
        length = kept
        if fine and other:  # as in `_finish`; the ratio by itself would be rounded
            length = np.int64(min(np.ceil(kept * rates[i] / rate), 2.0**53))
        size = length if downmix else length * channels
        ready = exact and (kind == OPENED or floats)  # needs no scratch memory, and no `_finish`
        plan[i, EXACT], plan[i, PLACE], plan[i, LENGTH] = exact, at, length
        plan[i, NEEDS] = 0 if ready else kept * channels
        cost[i] = kept * channels * costs[kind]
        if other:
            cost[i] += size * 2 * lobes * _TAP_COST
        at += size
    return at


plan_files.fallback()


@kernel
def open_file(i, files, name, facts):
    """Opens file `i` with libsndfile, and fills its `facts`. `libsndfile.connect` must be called first."""
    info = np.zeros(8, np.int32)
    handle, file = opened(files[i, 0], files[i, 1], name, info)
    if handle == 0:
        return
    form, length = np.int64(info[_FORMAT]), np.int64(info[0]) & 0xFFFFFFFF | np.int64(info[1]) << 32
    subtype = form & 0xFFFF
    if form >> 16 & 0xFFF == _MPEG_FORMAT:
        data = array_at(files[i, 0], files[i, 1], np.empty(0, np.uint8))
        if sound_length(data) > length + TRIMMED:
            read(handle, file, 0, 0, 1, 0, 0, 0)  # closes the file; `decode` reads such files
            return
    facts[i, KIND], facts[i, HANDLE], facts[i, FILE] = OPENED, np.int64(handle), file
    facts[i, FRAMES] = length
    facts[i, RATE], facts[i, CHANNELS], facts[i, BITS] = info[_RATE], info[_CHANNELS], form
    if subtype < 256:
        facts[i, FLOATS] = _FLOATS[subtype]
        facts[i, SEEKS] = NOWHERE if form >> 16 & 0xFFF == _PAF else SEEKABLE[subtype]


@kernel
def decode_wav(i, taken, rooms, files, facts, plan, wanted, output, got):
    """Decodes file `i`, a plain WAV file.

    Args:
        taken: int64 `[S]`, initially zeros: whether a thread uses the row of `rooms`.
        rooms: float32 `[S, r]`, scratch memory for one file in each row (NEEDS).
        wanted, output: see `_finish`.
        got: int64 `[n]`, set to the number of frames of each file; unchanged for a damaged one.
    """
    if plan[i, COUNT] < 0:
        return
    seat = acquire_slot(taken)
    room = rooms[seat]
    raw, wide = empty(_PIECE, np.float64), empty(_PIECE, np.int32)
    singles, words, halves, octets = raw.view(np.float32), raw.view(np.int32), raw.view(np.int16), raw.view(np.uint8)
    levels = room.view(np.int32)
    width, total = facts[i, BITS] // 8, plan[i, COUNT] * facts[i, CHANNELS]
    address = files[i, 0] + facts[i, BEGIN] + plan[i, FIRST] * facts[i, CHANNELS] * width
    as_floats = plan[i, EXACT] == 0 or wanted[0] == 0
    for start in range(0, total, _PIECE):
        n = min(_PIECE, total - start)
        copy_bytes(raw.ctypes.data, address + start * width, n * width)
        here, target = wide[:n], room[start : start + n]
        if not as_floats:
            here = levels[start : start + n]
        if plan[i, NEEDS] == 0:
            target = output[0][plan[i, PLACE] + start : plan[i, PLACE] + start + n]
        if facts[i, FLOATS] != 0:
            for k in range(n):
                target[k] = singles[k] if width == 4 else np.float32(raw[k])
            continue
        if width == 2 and as_floats:  # most files
            for k in range(n):
                target[k] = np.float32(halves[k]) * np.float32(2.0**-15)
            continue
        for k in range(n):
            if width == 1:
                here[k] = (np.int32(octets[k]) - np.int32(128)) << 24
            elif width == 2:
                here[k] = np.int32(halves[k]) << 16
            elif width == 3:
                lower = np.int32(octets[3 * k]) << 8 | np.int32(octets[3 * k + 1]) << 16
                here[k] = lower | np.int32(octets[3 * k + 2]) << 24
            else:
                here[k] = words[k]
        if as_floats:
            for k in range(n):
                target[k] = np.float32(here[k]) * np.float32(2.0**-31)
    got[i] = plan[i, COUNT]
    _finish(i, facts, plan, wanted, room, output, got)
    atomic_store(taken, seat, 0)


@kernel
def decode_flac(i, taken, rooms, files, facts, plan, wanted, output, got, all_words, all_lines):
    """Does the same for a FLAC file. The rows of `all_words` and `all_lines` are `words` and `lines` of `flac.py`."""
    count, channels, nbytes = plan[i, COUNT], facts[i, CHANNELS], files[i, 1]
    if count < 0:
        return
    seat = acquire_slot(taken)
    room, words, lines = rooms[seat], all_words[seat], all_lines[seat]
    here, target = room.view(np.int32)[: count * channels], output[0][:0]
    if plan[i, NEEDS] == 0:
        target = output[0][plan[i, PLACE] : plan[i, PLACE] + count * channels]
        here = target.view(np.int32)
    own, out = words[: nbytes // 8 + 4], here.reshape((count, channels))
    bits = facts[i, BITS]
    if flac_frames(files[i, 0], own, facts[i, BEGIN], nbytes, facts[i, FRAMES], bits, lines[:channels], out):
        got[i] = count
        for k in range(target.size):
            target[k] = np.float32(here[k]) * np.float32(2.0**-31)
        _finish(i, facts, plan, wanted, room, output, got)
    atomic_store(taken, seat, 0)


@kernel
def decode_vorbis(
    i, taken, rooms, files, facts, plan, wanted, output, got, all_words, table, values, factors, order
):  # fmt: skip
    """Does the same for an Ogg file of Vorbis. The tables are those of its setup header, see `vorbis.py`."""
    count, channels, nbytes = plan[i, COUNT], facts[i, CHANNELS], files[i, 1]
    if count < 0:
        return
    seat = acquire_slot(taken)
    room, words = rooms[seat], all_words[seat]
    target = room[: count * channels]
    if plan[i, NEEDS] == 0:
        target = output[0][plan[i, PLACE] : plan[i, PLACE] + count * channels]
    own, out, length = words[: nbytes // 8 + 4], target.reshape((count, channels)), facts[i, FRAMES]
    first, begin = plan[i, FIRST], facts[i, BEGIN]
    if vorbis_decoded(files[i, 0], own, begin, nbytes, length, table, values, factors, order, first, out):
        got[i] = count
        _finish(i, facts, plan, wanted, room, output, got)
    atomic_store(taken, seat, 0)


@kernel
def read_opened(i, taken, rooms, facts, plan, wanted, output, got, place):
    """Does the same for a file that libsndfile has opened, and closes it. `place`: the address of the output."""
    seat = acquire_slot(taken)
    room, kind = rooms[seat], np.int64(wanted[0])
    file, handle = np.int32(facts[i, FILE]), np.uint64(facts[i, HANDLE])
    facts[i, HANDLE] = 0
    address, type_there = np.int64(room.ctypes.data), np.int64(0)
    if plan[i, EXACT] != 0:
        address, type_there = place + plan[i, PLACE] * (2 if kind == 1 else 4), kind
    before, channels = plan[i, BEFORE], facts[i, CHANNELS]
    frames = read(handle, file, plan[i, FIRST] - before, before, channels, address, plan[i, COUNT], type_there)
    form = facts[i, BITS] >> 16 & 0xFFF
    cut = frames < plan[i, COUNT] and form in (_FLAC_FORMAT, _MPEG_FORMAT)  # `decode` reads such files
    if plan[i, COUNT] >= 0 and frames >= 0 and not cut:
        got[i] = frames
        _finish(i, facts, plan, wanted, room, output, got)
    atomic_store(taken, seat, 0)


def _left(*_args):
    """Leaves a file to `decode`, which gives the same samples with soundfile."""


for _kernel in (open_file, decode_wav, decode_flac, decode_vorbis, read_opened):
    _kernel.fallback(_left)


@kernel
def _put(numbers, at, step, kind, output):
    """Writes numbers to every `step`-th element of the output from `at` on."""
    floats, shorts, ints = output
    for k in range(numbers.size):
        if kind == 0:
            floats[at] = numbers[k]
        elif kind == 1:
            shorts[at] = np.int16(min(max(np.float64(np.rint(numbers[k] * np.float32(32767))), -32768.0), 32767.0))
        else:
            value = np.float64(np.rint(numbers[k] * np.float32(2147483647)))
            ints[at] = np.int32(min(max(value, -2147483648.0), 2147483647.0))
        at += step


@kernel
def _finish(i, facts, plan, wanted, room, output, got):
    """Mixes, resamples and converts the `got[i]` frames of file `i` in `room`, and writes them to their place.

    Args:
        wanted: the element type of the output (0 float32, 1 int16, 2 int32); whether to mix down; the wanted sampling rates,
            float64 `[n]`, 0 for that of the file; the tables of the resampling.
        room: float32, or int32 where the samples of EXACT files and of FLAC stay integers.
        output: arrays of float32, int16 and int32; only one has elements.
    """
    kind, downmix, rates, tables = wanted
    floats, shorts, ints = output
    taps, low, high, coarse = tables
    n, channels, place = got[i], facts[i, CHANNELS], plan[i, PLACE]
    if plan[i, NEEDS] == 0:
        return
    x, here = room[: n * channels], room.view(np.int32)[: n * channels]
    if plan[i, EXACT] != 0:
        if kind == 1:
            halves = shorts[place : place + here.size]
            for k in range(here.size):
                halves[k] = here[k] >> 16
        elif kind == 2:
            words = ints[place : place + here.size]
            for k in range(here.size):
                words[k] = here[k]
        return
    if facts[i, KIND] == FLAC:
        for k in range(here.size):
            x[k] = np.float32(here[k]) * np.float32(2.0**-31)
    if downmix and channels > 1:
        for t in range(n):
            total = x[t * channels]
            for c in range(1, channels):
                total += x[t * channels + c]
            x[t] = total / np.float32(channels)
        x, channels = x[:n], 1
    rate, other = np.float64(facts[i, RATE]), rates[i]
    resamples = other > 0 and other != rate
    if resamples:
        got[i] = np.int64(np.ceil(n * other / rate))
    for c in range(channels):
        line = x
        if channels > 1:
            line = empty(n, np.float32)
            for t in range(n):
                line[t] = x[t * channels + c]
        if resamples and channels == 1 and kind == 0:
            resampled(line, floats[place : place + got[i]], rate / other, taps, low, high, coarse)
            return
        if resamples:
            new = empty(got[i], np.float32)
            resampled(line, new, rate / other, taps, low, high, coarse)
            line = new
        _put(line, place + c, channels, kind, output)
