"""Sound files of a batch in compiled code: what their headers say, then their samples, mixed, resampled and converted.

Files of a second of speech take 20 to 300 us, and some 100 us of Python each if it is Python that reads the headers: for it
16 threads wait in turn. Here it is a call or two for several files, and none of them holds the GIL.

Plain WAV files are converted where they lie (libsndfile takes five times as long, or has to be opened first), FLAC files
are decoded by `flac.py`, all others by libsndfile (`sound_file.py`). Whatever is not as it should be is left out.
"""

from __future__ import annotations

import numpy as np

from ndd._cpu.flac import _frames as flac_frames
from ndd._cpu.jit import External, kernel
from ndd._cpu.sound_file import CHANNELS as _CHANNELS, FORMAT as _FORMAT, RATE as _RATE, opened, read
from ndd._cpu.windowed_sinc import _resample as resampled

# What a row of `facts` says of a file. BITS: of a sample; of a file that libsndfile has opened, its format.
KIND, BEGIN, FRAMES, RATE, CHANNELS, BITS, FLOATS, SEEKS, HANDLE, FILE = range(10)
FACTS = 10
UNKNOWN, WAV, FLAC, OPENED = range(4)
# What a row of `plan` wants of it: frames from FIRST on, COUNT of them (-1: none, leave it), as they are (EXACT) or mixed and
# resampled; PLACE: where in the output, in elements.
FIRST, COUNT, EXACT, PLACE = range(4)

_HEAD = 1 << 12  # bytes in which the samples of a WAV file must begin, else libsndfile reads it
_PIECE = 1 << 12  # numbers of a WAV file that are converted at once: they fit into the fastest cache
_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_MOST = 512  # samples a byte: a FLAC header that claims more is left to libsndfile, which reads block by block
LONGEST_BLOCK = 1 << 16  # of FLAC
_FLOATS, _SEEKS, _PAF = 1, 2, 5
_copy = External("memcpy", "uintp(uintp, uintp, uintp)")


def _subtypes() -> np.ndarray:
    """What subtypes of SF_INFO are: they hold floats, and libsndfile begins in the middle of them with the very samples.
    It cannot in GSM, G.72x, NMS, DWVW and DPCM, and is wrong in 24 bits of PAF, in ALAC of 20 bits and in Opus with long
    pages."""
    table = np.zeros(256, np.uint8)
    table[[6, 7, 0x60, 0x64, 0x80, 0x81, 0x82]] |= _FLOATS  # float, double, Vorbis, Opus, MPEG layers
    table[[1, 2, 3, 4, 5, 6, 7, 0x10, 0x11, 0x12, 0x13, 0x60, 0x80, 0x81, 0x82]] |= _SEEKS  # PCM, u-law to ADPCM
    return table


_SUBTYPES = _subtypes()


@kernel
def _little(head, at, count):
    value = np.int64(0)
    for k in range(count):
        value |= np.int64(head[at + k]) << (8 * k)
    return value


@kernel
def _big(head, at, count):
    value = np.int64(0)
    for k in range(count):
        value = value << 8 | np.int64(head[at + k])
    return value


@kernel
def _wav(head, size, nbytes, facts):
    """The facts of a WAV file, of one that is cut off those of what is there."""
    place, form, form_end = np.int64(12), np.int64(0), np.int64(0)
    while place + 8 <= size:
        name, length = _big(head, place, 4), _little(head, place + 4, 4)
        place += 8
        if name == 0x666D7420 and length >= 16 and place + 16 <= size:  # "fmt "
            form, form_end = place, min(place + length, size)
        elif name == 0x64617461:  # "data"
            if form == 0:
                return
            kind, channels, rate = _little(head, form, 2), _little(head, form + 2, 2), _little(head, form + 4, 4)
            align, bits = _little(head, form + 12, 2), _little(head, form + 14, 2)
            if kind == _EXTENSIBLE and form_end >= form + 26:
                kind = _little(head, form + 24, 2)
            known = (kind == _PCM and bits in (8, 16, 24, 32)) or (kind == _FLOAT and bits in (32, 64))
            if known and channels > 0 and rate > 0 and align == channels * bits // 8:
                facts[KIND], facts[BEGIN], facts[FRAMES] = WAV, place, min(length, nbytes - place) // align
                facts[RATE], facts[CHANNELS], facts[BITS], facts[FLOATS] = rate, channels, bits, kind == _FLOAT
            return
        place += length + length % 2


@kernel
def _flac(head, address, nbytes, facts):
    """The facts of a FLAC file."""
    # After a block's head (one byte, its length in three): sizes of frames (10 bytes), then rate, channels, bits, length.
    rate, channels = _big(head, 18, 4) >> 12, (_big(head, 20, 1) >> 1 & 7) + 1
    bits, length = (_big(head, 20, 2) >> 4 & 31) + 1, _big(head, 21, 5) & (1 << 36) - 1
    place, last = np.int64(4), head[4] & 127 != 0 or head[7] != 34
    while not last and place + 4 <= nbytes:
        _copy(head.ctypes.data, address + place, 4)
        last, place = head[0] > 127, place + 4 + _big(head, 1, 3)
    if place <= 4 or place >= nbytes or bits not in (8, 16, 24) or rate == 0:
        return
    if 0 < length <= _MOST * nbytes:
        facts[KIND], facts[BEGIN], facts[FRAMES] = FLAC, place, length
        facts[RATE], facts[CHANNELS], facts[BITS] = rate, channels, bits


@kernel
def headers(files, facts):
    """Fills `facts`, zeros `[n, FACTS]`, for the plain WAV and FLAC files among `files`, int64 `[n, 2]`: addresses and bytes."""
    head = np.empty(_HEAD, np.uint8)
    for i in range(len(files)):
        address, nbytes = files[i, 0], files[i, 1]
        size = min(nbytes, _HEAD)
        if size >= 42:
            _copy(head.ctypes.data, address, size)
            name = _big(head, 0, 4)
            if name == 0x52494646 and _big(head, 8, 4) == 0x57415645 and size >= 44:  # "RIFF", "WAVE"
                _wav(head, size, nbytes, facts[i])
            elif name == 0x664C6143:  # "fLaC"
                _flac(head, address, nbytes, facts[i])


@headers.meanwhile
def _(files, facts):
    """libsndfile reads them all."""


@kernel
def open_files(files, which, name, facts):
    """Opens files with libsndfile, and fills their `facts`; `connect` in `decoders/_sound_file.py` comes first."""
    info = np.zeros(8, np.int32)
    for k in range(len(which)):
        i = which[k]
        handle, file = opened(files[i, 0], files[i, 1], name, info)
        if handle == 0:
            continue
        form = np.int64(info[_FORMAT])
        subtype = _SUBTYPES[form & 0xFF] if form & 0xFFFF < 256 else 0
        facts[i, KIND], facts[i, HANDLE], facts[i, FILE] = OPENED, np.int64(handle), file
        facts[i, FRAMES] = np.int64(info[0]) & 0xFFFFFFFF | np.int64(info[1]) << 32
        facts[i, RATE], facts[i, CHANNELS], facts[i, BITS] = info[_RATE], info[_CHANNELS], form
        facts[i, FLOATS] = (subtype & _FLOATS) != 0
        facts[i, SEEKS] = (subtype & _SEEKS) != 0 and form >> 16 & 0xFFF != _PAF


@open_files.meanwhile
def _(files, which, name, facts):
    """soundfile opens them."""


@kernel
def _levels_put(levels, kind, floats, shorts, ints, place):
    """int32 numbers of full scale to where they belong."""
    last = place + levels.size
    if kind == 0:
        singles = floats[place:last]
        for k in range(levels.size):
            singles[k] = np.float32(levels[k]) * np.float32(2.0**-31)
    elif kind == 1:
        halves = shorts[place:last]
        for k in range(levels.size):
            halves[k] = levels[k] >> 16
    else:
        ints[place:last] = levels


@kernel
def _floats_put(x, step, kind, floats, shorts, ints, place):
    """float32 numbers to every `step`th element from `place` on."""
    if kind == 0:
        if step == 1:
            floats[place : place + x.size] = x
        else:
            for k in range(x.size):
                floats[place + k * step] = x[k]
    elif kind == 1:
        for k in range(x.size):
            value = np.float64(np.rint(x[k] * np.float32(32767)))
            shorts[place + k * step] = np.int16(min(max(value, -32768.0), 32767.0))
    else:
        for k in range(x.size):
            value = np.float64(np.rint(x[k] * np.float32(2147483647)))
            ints[place + k * step] = np.int32(min(max(value, -2147483648.0), 2147483647.0))


@kernel
def _wav_samples(address, bits, of_floats, count, kind, floats, shorts, ints, place):
    """`count` numbers at `address` of a WAV file to element `place` of the output for `kind`."""
    raw, levels = np.empty(_PIECE, np.float64), np.empty(_PIECE, np.int32)
    singles, words, halves, octets = raw.view(np.float32), raw.view(np.int32), raw.view(np.int16), raw.view(np.uint8)
    width = bits // 8
    for start in range(0, count, _PIECE):
        n = min(_PIECE, count - start)
        first, last = place + start, place + start + n
        _copy(raw.ctypes.data, address + start * width, n * width)
        if of_floats:
            target = floats[first:last]
            for k in range(n):
                target[k] = singles[k] if width == 4 else np.float32(raw[k])
        elif width == 2 and kind == 0:
            target = floats[first:last]
            for k in range(n):
                target[k] = np.float32(halves[k]) * np.float32(2.0**-15)
        else:
            if width == 1:
                for k in range(n):
                    levels[k] = (np.int32(octets[k]) - np.int32(128)) << 24
            elif width == 2:
                for k in range(n):
                    levels[k] = np.int32(halves[k]) << 16
            elif width == 3:
                for k in range(n):
                    b = np.int32(octets[3 * k]) << 8 | np.int32(octets[3 * k + 1]) << 16
                    levels[k] = b | np.int32(octets[3 * k + 2]) << 24
            else:
                levels[:n] = words[:n]
            _levels_put(levels[:n], kind, floats, shorts, ints, first)


@kernel
def _finished(x, channels, downmix, rate, wanted, kind, floats, shorts, ints, place, own, y, tables):
    """float32 samples `[n * channels]` mixed, resampled, converted and put to their place; how many frames they are."""
    n = x.size // channels
    if downmix and channels > 1:
        for i in range(n):
            total = x[i * channels]
            for c in range(1, channels):
                total += x[i * channels + c]
            own[i] = total / np.float32(channels)
        x, channels = own[:n], 1
    length = n
    if wanted > 0 and wanted != rate:
        length = np.int64(np.ceil(n * (wanted / rate)))
    for c in range(channels):
        one = x
        if channels > 1:
            one = own[:n]
            for i in range(n):
                one[i] = x[i * channels + c]
        if wanted > 0 and wanted != rate:
            taps, low, high, coarse = tables
            resampled(one, y[:length], rate / wanted, taps, low, high, coarse)
            one = y[:length]
        _floats_put(one, channels, kind, floats, shorts, ints, place + c)
    return length


@kernel
def plain_samples(files, which, facts, plan, rates, downmix, kind, tables, scratch, extents, floats, shorts, ints, got):
    """The samples of plain WAV and FLAC files to their places; `got[i]`: how many frames, -1 for a file to leave alone.

    Args:
        files, which: those of `which` among `files`.
        facts, plan: a row of each says what is in it and what is wanted.
        rates: float64 `[n]`, the wanted sampling rates, 0 for that of the file.
        kind: of the output, 0 to 2 for `floats`, `shorts`, `ints`, which see the same memory.
        tables: of the resampling.
        scratch: float64; room for as many numbers as `extents` says: of 64 bits for FLAC's bytes and for its lines, of 32 for
            the samples of a file, for one channel, and for one channel resampled.
    """
    words = scratch.view(np.uint64)[: extents[0]]
    begin = extents[0]
    lines = scratch.view(np.int64)[begin : begin + extents[1]].reshape((extents[1] // LONGEST_BLOCK, LONGEST_BLOCK))
    begin = (begin + extents[1]) * 2
    x = scratch.view(np.float32)[begin : begin + extents[2]]
    levels = scratch.view(np.int32)[begin : begin + extents[2]]
    begin += extents[2]
    own = scratch.view(np.float32)[begin : begin + extents[3]]
    begin += extents[3]
    y = scratch.view(np.float32)[begin : begin + extents[4]]
    for k in range(len(which)):
        i = which[k]
        about, wanted = facts[i], plan[i]
        channels, count, place, exact = about[CHANNELS], wanted[COUNT], wanted[PLACE], wanted[EXACT]
        total = count * channels
        if count < 0 or about[KIND] == OPENED or about[KIND] == UNKNOWN:
            continue
        if about[KIND] == WAV:
            address = files[i, 0] + about[BEGIN] + wanted[FIRST] * channels * (about[BITS] // 8)
            if exact:
                _wav_samples(address, about[BITS], about[FLOATS] != 0, total, kind, floats, shorts, ints, place)
            else:
                _wav_samples(address, about[BITS], about[FLOATS] != 0, total, 0, x, shorts, ints, 0)
        else:
            nbytes = files[i, 1]
            own_words = words[: nbytes // 8 + 3]
            out = levels[:total].reshape((count, channels))
            if not flac_frames(
                files[i, 0], own_words, about[BEGIN], nbytes, about[FRAMES], about[BITS], lines[:channels], out
            ):
                continue
            for j in range(total):
                levels[j] <<= 32 - about[BITS]
            if exact:
                _levels_put(levels[:total], kind, floats, shorts, ints, place)
            else:
                for j in range(total):
                    x[j] = np.float32(levels[j]) * np.float32(2.0**-31)
        got[i] = count
        if not exact:
            got[i] = _finished(
                x[:total], channels, downmix, np.float64(about[RATE]), rates[i], kind, floats, shorts, ints, place, own, y,
                tables,
            )  # fmt: skip


@plain_samples.meanwhile
def _(*given):
    """libsndfile decodes to the same samples."""


@kernel
def opened_samples(which, facts, plan, rates, downmix, kind, tables, scratch, extents, floats, shorts, ints, got):
    """As `plain_samples`, of files that libsndfile has opened; closes them."""
    x = scratch.view(np.float32)[: extents[2]]
    own = scratch.view(np.float32)[extents[2] : extents[2] + extents[3]]
    y = scratch.view(np.float32)[extents[2] + extents[3] : extents[2] + extents[3] + extents[4]]
    for k in range(len(which)):
        i = which[k]
        about, wanted = facts[i], plan[i]
        if about[KIND] != OPENED:
            continue
        channels, count, place = about[CHANNELS], wanted[COUNT], wanted[PLACE]
        address = x.ctypes.data
        if wanted[EXACT] and kind == 0:
            address = floats.ctypes.data + place * 4
        elif wanted[EXACT] and kind == 1:
            address = shorts.ctypes.data + place * 2
        elif wanted[EXACT]:
            address = ints.ctypes.data + place * 4
        found = read(
            np.uint64(about[HANDLE]), np.int32(about[FILE]), wanted[FIRST], np.uint64(address), count,
            kind if wanted[EXACT] else 0,
        )  # fmt: skip
        about[HANDLE] = 0
        if count < 0 or found < 0:
            continue
        got[i] = found
        if not wanted[EXACT]:
            got[i] = _finished(
                x[: found * channels], channels, downmix, np.float64(about[RATE]), rates[i], kind, floats, shorts, ints, place,
                own, y, tables,
            )  # fmt: skip
