"""Decodes sound files: a batch in compiled code, the rest one by one with libsndfile, or with FFmpeg (`ffmpeg.py`) if
libsndfile does not know the format. The only importer of soundfile."""

from __future__ import annotations

import contextlib
import functools
import io
import os
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ndd._compiled.sample_loops import loop_over_samples
from ndd._compiled.thread_team import ALONE, joined
from ndd._cpu.windowed_sinc import lobes_of, resample, tables_of
from ndd._operator.limits import RISE
from ndd._operator.partition import CostEstimate, parallel_for
from ndd._tensor.memory import host_empty
from ndd._tensor.store import address
from ndd.decoders.sound import batch_kernels as sound_batch, ffmpeg as _ffmpeg_sound, libsndfile
from ndd.decoders.sound.batch_kernels import (
    ANYWHERE,
    BEFORE,
    CHANNELS,
    FILE,
    FIRST,
    FLAC,
    FRAMES,
    HANDLE,
    KIND,
    LENGTH,
    NEAR,
    NEEDS,
    NOWHERE,
    OPENED,
    PAGES,
    PLACE,
    RATE,
    SEEKABLE,
    SEEKS,
    UNKNOWN,
    VORBIS,
    WAV,
    stretches,
)
from ndd.decoders.sound.flac import LINE
from ndd.decoders.sound.mpeg import TRIMMED, sound_length
from ndd.decoders.sound.vorbis_files import Setup, setups
from ndd.installation import install_command

if TYPE_CHECKING:
    from ndd._compiled.jit import Kernel
    from ndd._operator import Call

# Nanoseconds to decode one number of a file, on an Intel Xeon.
_COSTS = np.zeros(1 + max(UNKNOWN, OPENED, FLAC, WAV, VORBIS))
_COSTS[[OPENED, VORBIS, FLAC, WAV]] = 30, 12, 8, 1
_ORDER = (OPENED, VORBIS, FLAC, WAV)  # in which threads take files: those of the first kinds take longest
_OPENING = 3e4  # nanoseconds: libsndfile takes about as long to open a file
_WORTH_A_THREAD = 3e4  # nanoseconds: waking a thread takes about as long
_CALL = 5e7  # nanoseconds: about the longest call; between calls Python handles signals (Ctrl-C)
_NEVER = 1 << 40
_BLOCK = 1 << 22  # frames that are read at once if a header may claim too many
_UNKNOWN_LENGTH = 2**63 - 1  # frames, if the header of a FLAC stream does not state them
_FLOATS = ("FLOAT", "DOUBLE", "VORBIS", "OPUS", "MPEG_LAYER_I", "MPEG_LAYER_II", "MPEG_LAYER_III")
_SUBTYPES = {
    "PCM_S8": 1, "PCM_16": 2, "PCM_24": 3, "PCM_32": 4, "PCM_U8": 5, "FLOAT": 6, "DOUBLE": 7, "ULAW": 0x10, "ALAW": 0x11,
    "IMA_ADPCM": 0x12, "MS_ADPCM": 0x13, "VORBIS": 0x60, "MPEG_LAYER_I": 0x80, "MPEG_LAYER_II": 0x81, "MPEG_LAYER_III": 0x82,
}  # fmt: skip
_MPEG_BEFORE = 20000  # frames: an MPEG frame depends on fewer frames before it, to 2e-7 of its samples
_MPEG_FRAMES = 2304  # samples of two MPEG frames: the largest allowed error of a length
_MPEG_WHOLE = 1 << 20  # up to this frame files are decoded from the beginning, in at most 40 ms, bit for bit
_PAGE = 1 << 16  # the most bytes of an Ogg page
_NAME = np.frombuffer(b"sound\0", np.uint8).copy()
_READERS = {"float32": "sf_readf_float", "int16": "sf_readf_short", "int32": "sf_readf_int"}
_C_TYPES = {"float32": "float *", "int16": "short *", "int32": "int *"}
_FULL = {np.dtype(np.int16): np.float32(32767), np.dtype(np.int32): np.float32(2147483647)}
_KINDS = ("float32", "int16", "int32")


class Wanted(NamedTuple):
    """The samples that the caller wants of a recording."""

    dtype: np.dtype  # float32, int16 or int32
    downmix: bool
    sample_rate: float  # 0 or less: the file's rate
    quality: float
    start: float = 0.0  # seconds
    duration: float | None = None  # seconds; None: to the end


class Files(NamedTuple):
    """The files of a batch."""

    places: np.ndarray  # int64 [n, 2]: the address and the size of each
    array: Callable[[int], np.ndarray]  # uint8


class Decoded(NamedTuple):
    """The samples of a batch, `(n, channels)` or `(n,)` each, one after the other."""

    flat: np.ndarray
    shapes: np.ndarray  # int64 [n, 2] or [n, 1]
    places: np.ndarray  # where each begins
    done: np.ndarray  # whether each file is decoded
    rates: np.ndarray  # the files' sampling rates
    whole: bool  # all files are decoded, without gaps

    def parts(self) -> list[Any]:
        """The samples of each file; None if it is not decoded."""
        shapes = [tuple(shape) for shape in self.shapes.tolist()]
        starts = self.places.tolist()
        return [
            self.flat[start : start + prod(shape)].reshape(shape) if done else None
            for shape, start, done in zip(shapes, starts, self.done.tolist(), strict=True)
        ]


@functools.cache
def soundfile() -> Any:
    """The module soundfile. ImportError, with what to install, where it is missing."""
    try:
        import soundfile
    except (ImportError, OSError) as error:
        raise ImportError(f"sound files need soundfile: {install_command('audio')} ({error})") from None
    return soundfile


def decode_batch(
    files: Files,
    wanted: Wanted,
    rates: np.ndarray,
    starts: np.ndarray,
    durations: np.ndarray,
    call: Call | None = None,
) -> Decoded:
    """Decodes files in compiled code. Unusual and damaged ones are left to `decode`.

    20 steps of Python take as long as a WAV file of a second, so threads take files in turn inside compiled loops.

    Args:
        wanted: for all files, except the `rates`, `starts` and `durations`, float64 `[n]` (a duration of NaN extends to the
            end).
        call: its threads do the work; default: only this thread.
    """
    places = files.places
    facts = np.zeros((len(places), sound_batch.FACTS), np.int64)
    vorbis: list[tuple[Setup, np.ndarray]] = []
    rest = _NO_FILES
    if sound_batch.headers(places, starts, facts):
        vorbis = setups(files, _unknown(facts, places), facts)
        rest = _unknown(facts, places)
    try:
        if len(rest) and _connected():
            _work_on([_group(sound_batch.open_file, rest, (places, _NAME, facts), _OPENING * len(rest))], call)
        return _samples(files, facts, vorbis, wanted, rates, starts, durations, call)
    finally:
        for i in np.flatnonzero(facts[:, HANDLE]).tolist():  # files that an error left open
            libsndfile.read(facts[i, HANDLE].astype(np.uint64), facts[i, FILE].astype(np.int32), 0, 0, 1, 0, 0, 0)


def _unknown(facts: np.ndarray, places: np.ndarray) -> np.ndarray:
    return np.flatnonzero((facts[:, KIND] == UNKNOWN) & (places[:, 1] > 0))


def _samples(
    files: Files, facts: np.ndarray, vorbis: list[tuple[Setup, np.ndarray]], wanted: Wanted, rates: np.ndarray,
    starts: np.ndarray, durations: np.ndarray, call: Call | None,
) -> Decoded:  # fmt: skip
    """Decodes the files with known headers, and closes those that libsndfile has opened."""
    n, kinds, places, lobes = len(facts), facts[:, KIND], files.places, lobes_of(wanted.quality)
    plan, cost = np.zeros((n, sound_batch.PLANS), np.int64), np.empty(n)
    number = _KINDS.index(wanted.dtype.name)
    elements = sound_batch.plan_files(
        places, facts, rates, starts, durations, wanted.downmix, number == 0, _BLOCK, lobes, _COSTS, RISE, plan, cost
    )
    for i in np.flatnonzero((kinds == OPENED) & (plan[:, FIRST] > 0)).tolist():
        begin = _seekable(facts[i, SEEKS], int(plan[i, FIRST]), int(facts[i, FRAMES]), files.array(i))
        plan[i, BEFORE] = plan[i, FIRST] - begin
    flat = host_empty(elements, wanted.dtype)
    output = tuple([flat if flat.dtype == kind else _NONE[kind] for kind in _KINDS])
    got = np.full(n, -1, np.int64)
    facts_of = facts, plan, (number, wanted.downmix, rates, tables_of(lobes)), output, got
    present = set(kinds.tolist()) - {UNKNOWN}
    groups = [
        _decoding(kind, setup, those[np.argsort(-cost[those], kind="stable")], places, facts_of, cost, flat, call)
        for kind in sorted(present, key=_ORDER.index)
        for setup, those in (vorbis if kind == VORBIS else [(None, np.flatnonzero(kinds == kind))])
    ]
    _work_on(groups, call)
    shapes = got[:, None]
    if not wanted.downmix:
        shapes = np.empty((n, 2), np.int64)
        shapes[:, 0], shapes[:, 1] = got, facts[:, CHANNELS]
    whole = bool((got == plan[:, LENGTH]).all())
    return Decoded(flat, shapes, plan[:, PLACE], got >= 0, facts[:, RATE].astype(np.float64), whole)


_NO_FILES = np.empty(0, np.int64)
_NONE = {kind: np.empty(0, kind) for kind in _KINDS}


class _Group(NamedTuple):
    """Files for one compiled loop."""

    loop: Any
    arguments: tuple[Any, ...]  # the first is the files, those that take longest first
    work: float  # nanoseconds


def _group(kernel: Kernel, which: np.ndarray, arguments: tuple[Any, ...], work: float) -> _Group:
    """Calls of `kernel(i, *arguments)` for the files `which`."""
    numbers = np.arange(which.max() + 1)
    return _Group(loop_over_samples(kernel), (which, (numbers, *[(value,) for value in arguments])), work)


def _decoding(
    kind: int, setup: Setup | None, which: np.ndarray, places: np.ndarray, of: tuple[Any, ...], cost: np.ndarray,
    flat: np.ndarray, call: Call | None,
) -> _Group:  # fmt: skip
    facts, plan, *_ = of
    seats = min(call.threads if call else 1, len(which))

    def rooms(count: int, dtype: Any) -> np.ndarray:
        return host_empty((seats * count,), dtype).reshape(seats, count)

    first = np.zeros(seats, np.int64), rooms(int(plan[which, NEEDS].max()), np.float32)
    work = float(cost[which].sum())
    if kind == OPENED:
        return _group(sound_batch.read_opened, which, (*first, *of, flat.ctypes.data), work)
    arguments = *first, places, *of
    if kind == WAV:
        return _group(sound_batch.decode_wav, which, arguments, work)
    words = rooms(int(places[which, 1].max()) // 8 + 4, np.uint64)
    if kind == FLAC:
        channels = int(facts[which, CHANNELS].max())
        lines = host_empty((seats * channels * LINE,), np.int64).reshape(seats, channels, LINE)
        return _group(sound_batch.decode_flac, which, (*arguments, words, lines), work)
    return _group(sound_batch.decode_vorbis, which, (*arguments, words, *setup), work)  # type: ignore[misc]


def _work_on(groups: list[_Group], call: Call | None) -> None:
    """Runs the loops. Loops that are still being compiled do nothing. With several groups each thread works on one after the
    other, so that none waits for the last file of a group."""
    if call is not None and len(groups) == 1:
        loop, arguments, nanoseconds = groups[0]
        parallel_for(call.context, loop, arguments, len(arguments[0]), int(nanoseconds), arguments, CostEstimate(1e-9))
        return
    counters, files = [np.array([0]) for _ in groups], sum([len(group.arguments[0]) for group in groups])
    work = sum([group.work for group in groups])
    most = max(1, int(_CALL * files / (work + 1)))

    def share(_: int) -> None:
        for counter, group in zip(counters, groups, strict=True):
            while counter[0] < len(group.arguments[0]) and joined(group.loop)(ALONE, 0, counter, most, group.arguments):
                pass

    try:
        if call is None:
            share(0)
            return
        for error in call.spread(share, min(files, call.threads, 1 + int(work / _WORTH_A_THREAD))).values():
            raise error
    finally:
        for counter in counters:
            counter[0] += _NEVER  # Ctrl-C ends only this thread; this stops the others from taking files


class _LeftError(Exception):
    """libsndfile does not know a file, or stops too early: FFmpeg may do better. `samples`: libsndfile's result."""

    def __init__(self, refusal: str, samples: tuple[np.ndarray, float] | None = None):
        super().__init__(refusal)
        self.samples = samples


def decode(source: np.ndarray | str, wanted: Wanted) -> tuple[np.ndarray, float]:
    """Decodes one file, given as bytes or as a path. Returns the samples `(n, channels)`, or `(n,)` with `downmix`, and the
    rate of the file. RuntimeError if it cannot be decoded."""
    try:
        return _by_libsndfile(source, wanted)
    except _LeftError as error:
        left = error
    try:
        decoded = _by_ffmpeg(source, wanted, str(left))
    except RuntimeError:
        if left.samples is None:
            raise
        return left.samples
    return decoded if left.samples is None or len(decoded[0]) > len(left.samples[0]) else left.samples


def _by_libsndfile(source: np.ndarray | str, wanted: Wanted) -> tuple[np.ndarray, float]:
    failed = soundfile().LibsndfileError
    with contextlib.ExitStack() as held:
        try:
            sound = held.enter_context(_opened(source))
        except failed as error:
            raise _LeftError(error.error_string.rstrip(".")) from None
        rate = float(sound.samplerate)
        if sound.format == "MP3" and sound_length(_bytes(source)) > sound.frames + TRIMMED:
            raise _LeftError(f"it has more than the {sound.frames} samples that libsndfile finds")
        first, count = _part(sound.frames, rate, wanted)
        _check_stretch(rate, wanted)
        exact = _exact(sound.channels, rate, sound.subtype in _FLOATS, wanted)
        how = NOWHERE if sound.format == "PAF" else SEEKABLE[_SUBTYPES.get(sound.subtype, 0)]
        try:
            begin = first and _seekable(how, first, sound.frames, source)
            if begin:
                sound.seek(begin)
            samples = _read(sound, first - begin + count, wanted.dtype.name if exact else "float32")[first - begin :]
        except failed as error:
            if sound.format == "MP3":  # more than a kilobyte of other data between two frames
                raise _LeftError(error.error_string) from None
            raise RuntimeError(f"the sound cannot be decoded: {error.error_string}") from None
        if sound.format == "FLAC" and len(samples) < count and sound.frames < _UNKNOWN_LENGTH:
            # The file is cut off between two blocks, which libsndfile does not notice.
            raise RuntimeError(f"the sound is cut off: expected {count} samples, got {len(samples)}")
        missing = count - len(samples)
        if exact:
            samples = samples[:, 0] if wanted.downmix else samples
        else:
            samples = finished(samples, rate, wanted)
        # For example at bytes that look like a frame of another rate.
        if sound.format == "MP3" and missing > _MPEG_FRAMES:
            raise _LeftError(f"the sound ends {missing} samples early", (samples, rate))
        return samples, rate


def decode_one(source: np.ndarray, wanted: Wanted) -> tuple[np.ndarray, float]:
    """Does the same as `decode` for bytes in memory, in compiled code if possible."""
    duration = np.nan if wanted.duration is None else wanted.duration
    decoded = decode_several([source], wanted, np.array([wanted.start]), np.array([duration], np.float64))
    if not decoded.done[0]:
        return decode(source, wanted)
    return decoded.parts()[0], float(decoded.rates[0])


def decode_several(sources: Sequence[np.ndarray], wanted: Wanted, starts: np.ndarray, durations: np.ndarray) -> Decoded:
    """Does the same as `decode_batch` for bytes in memory, on this thread."""
    places = np.array([(address(source), source.size) for source in sources], np.int64)
    rates = np.full(len(sources), wanted.sample_rate, np.float64)
    return decode_batch(Files(places, lambda i: sources[i]), wanted, rates, starts, durations)


def _exact(channels: int, rate: float, floats: bool, wanted: Wanted) -> bool:
    """Whether samples are only converted: neither mixed, nor resampled, nor from floats to integers."""
    if (wanted.downmix and channels > 1) or _other_rate(rate, wanted):
        return False
    return wanted.dtype.kind == "f" or not floats


def _seekable(how: int, first: int, frames: int, source: np.ndarray | str) -> int:
    """The frame at which libsndfile must begin so that the samples from `first` on equal those of the whole file."""
    if how == ANYWHERE:
        return first
    if how == NEAR:
        return first - _MPEG_BEFORE if first > _MPEG_WHOLE else 0
    return max(0, min(first, frames - _last_page(source))) if how == PAGES else 0


def _bytes(source: np.ndarray | str) -> np.ndarray:
    return np.memmap(source, np.uint8, "r") if isinstance(source, str) else source


def _last_page(source: np.ndarray | str) -> int:
    """An upper bound of the frames in the last page of an Ogg file, where seeking in libsndfile is off by up to a page."""
    data = _bytes(source)
    end = data[-2 * _PAGE :].tobytes()
    last = end.rfind(b"OggS")
    before = end.rfind(b"OggS", 0, max(last, 0))
    if before < 0 or last + 14 > len(end):
        return len(data) << 10
    until, since = (int.from_bytes(end[at + 6 : at + 14], "little", signed=True) for at in (last, before))
    return max(0, until - since) + (1 << 13)  # plus the longest window of Vorbis


def _by_ffmpeg(source: np.ndarray | str, wanted: Wanted, refusal: str) -> tuple[np.ndarray, float]:
    samples, rate = _ffmpeg_sound.decode(source, refusal)
    _check_stretch(rate, wanted)
    first, count = _part(len(samples), rate, wanted)
    return finished(samples[first : first + count], rate, wanted), rate


def _part(frames: int, rate: float, wanted: Wanted) -> tuple[int, int]:
    """The first wanted frame, and the number of wanted frames."""
    first = int(np.floor(wanted.start * rate))
    if not 0 <= first <= frames:
        raise RuntimeError(f"`start`={wanted.start:g} s is not in the recording, which has {frames / rate:g} s")
    count = frames - first
    if wanted.duration is not None:
        count = min(count, int(np.floor(wanted.duration * rate)))
    return first, count


def _check_stretch(rate: float, wanted: Wanted) -> None:
    """Refuses a rate that would turn a few bytes into gigabytes."""
    if stretches.interpreted(rate, wanted.sample_rate):  # two numbers are not worth a kernel
        raise RuntimeError(
            f"the file states a sampling rate of {rate:g} Hz, too low to resample to {wanted.sample_rate:g} Hz: it is damaged"
        )


def _other_rate(rate: float, wanted: Wanted) -> bool:
    return wanted.sample_rate > 0 and wanted.sample_rate != rate


def finished(samples: np.ndarray, rate: float, wanted: Wanted) -> np.ndarray:
    """Samples, float32 `(n, channels)`, downmixed, resampled and in the wanted element type."""
    if wanted.downmix:
        samples = samples[:, 0] if samples.shape[1] == 1 else samples.mean(axis=1, dtype=np.float32)
    if _other_rate(rate, wanted):
        length = int(np.ceil(len(samples) * wanted.sample_rate / rate))
        out = host_empty((length, *samples.shape[1:]), np.float32)
        if wanted.sample_rate > RISE * rate:
            raise RuntimeError(
                f"`sample_rate`: expected up to {RISE:,} times that of the file, {rate:g} Hz, got {wanted.sample_rate:,.0f}"
            )
        resample(np.ascontiguousarray(samples), out, rate / wanted.sample_rate, wanted.quality)
        samples = out
    if wanted.dtype.kind == "f":
        return samples
    full, limits = _FULL[wanted.dtype], np.iinfo(wanted.dtype)
    levels = np.rint(samples * full).astype(np.float64)
    return np.clip(levels, limits.min, limits.max).astype(wanted.dtype)


def _read(file: Any, count: int, dtype: str) -> np.ndarray:
    """The next `count` frames, or fewer if the file is cut off. They are read in blocks, because a header may claim too many.

    It calls libsndfile's functions, because soundfile's seek after reading, which decodes a FLAC file again.
    """
    library = soundfile()
    read, kind = getattr(library._snd, _READERS[dtype]), _C_TYPES[dtype]
    blocks = []
    while True:
        block = host_empty((min(count, _BLOCK), file.channels), np.dtype(dtype))
        got = read(file._file, library._ffi.cast(kind, block.ctypes.data), len(block))
        library._error_check(library._snd.sf_error(file._file))
        blocks.append(block[:got])
        count -= got
        if count <= 0 or got < len(block):
            break
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def _opened(source: np.ndarray | str) -> Any:
    """A `soundfile.SoundFile`."""
    return soundfile().SoundFile(source if isinstance(source, str) else io.BytesIO(source.tobytes()))


@functools.cache
def _connected() -> bool:
    """Connects libsndfile to compiled code. Returns whether that is possible."""
    library = soundfile()
    if not hasattr(os, "memfd_create"):
        return False
    libsndfile.connect(lambda name: int(library._ffi.cast("uintptr_t", library._ffi.addressof(library._snd, name))))
    return True
