"""Sound files to samples: libsndfile by soundfile, and what it does not know by FFmpeg (`_ffmpeg_sound.py`)."""

from __future__ import annotations

import contextlib
import functools
import io
import os
from typing import Any, NamedTuple

import numpy as np

from ndd._cpu import sound_file
from ndd._cpu.windowed_sinc import resample
from ndd._tensor.memory import host_empty
from ndd.decoders._flac import stream_of
from ndd.decoders._wav import Samples, samples_of

_BLOCK = 1 << 22  # frames that are read at once where a header may claim too many
_FLOATS = ("FLOAT", "DOUBLE", "VORBIS", "OPUS", "MPEG_LAYER_I", "MPEG_LAYER_II", "MPEG_LAYER_III")
_FLOAT_SUBTYPES = (6, 7, 0x60, 0x64, 0x80, 0x81, 0x82)  # the same, as SF_INFO has them
# Where libsndfile begins in the middle with the very samples: it cannot in GSM, G.72x, NMS, DWVW and DPCM, and is wrong in
# 24 bits of PAF, in ALAC of 20 bits and in Opus with long pages.
_SEEKS = {
    "PCM_S8": 1, "PCM_16": 2, "PCM_24": 3, "PCM_32": 4, "PCM_U8": 5, "FLOAT": 6, "DOUBLE": 7, "ULAW": 0x10, "ALAW": 0x11,
    "IMA_ADPCM": 0x12, "MS_ADPCM": 0x13, "VORBIS": 0x60, "MPEG_LAYER_I": 0x80, "MPEG_LAYER_II": 0x81, "MPEG_LAYER_III": 0x82,
}  # fmt: skip
_SEEK_SUBTYPES, _PAF = tuple(_SEEKS.values()), 5  # as SF_INFO has them, the format above 16 bits of subtype
_NAME = np.frombuffer(b"sound\0", np.uint8).copy()
_READERS = {"float32": "sf_readf_float", "int16": "sf_readf_short", "int32": "sf_readf_int"}
_C_TYPES = {"float32": "float *", "int16": "short *", "int32": "int *"}
_FULL = {np.dtype(np.int16): np.float32(32767), np.dtype(np.int32): np.float32(2147483647)}


class Wanted(NamedTuple):
    """What is wanted of a recording."""

    dtype: np.dtype  # float32, int16 or int32
    downmix: bool
    sample_rate: float  # 0 or less: that of the file
    quality: float
    start: float = 0.0  # seconds
    duration: float | None = None  # seconds; None: to the end


@functools.cache
def soundfile() -> Any:
    """The module; ImportError, with what to install, where it is missing."""
    try:
        import soundfile
    except (ImportError, OSError) as error:
        raise ImportError(f'sound files need soundfile: pip install "ndd-dataloading[audio]" ({error})') from None
    return soundfile


def decode(source: np.ndarray | str, wanted: Wanted) -> tuple[np.ndarray, float]:
    """The samples `(n, channels)`, or `(n,)` with `downmix`, and the file's rate. `source`: the bytes of a file, of
    which only those that are needed are looked at, or its path. RuntimeError for what cannot be decoded."""
    found = None if isinstance(source, str) else _plain(source, wanted) or _quick(source, wanted)
    if found is not None:
        return found
    failed = soundfile().LibsndfileError
    with contextlib.ExitStack() as held:
        try:
            found = held.enter_context(_opened(source))
        except failed as error:
            refusal = error.error_string.rstrip(".")
        else:
            rate = float(found.samplerate)
            first, count = _part(found.frames, rate, wanted)
            exact = _exact(found.channels, rate, found.subtype in _FLOATS, wanted)
            try:
                before = 0 if found.subtype in _SEEKS and found.format != "PAF" else first
                if first > before:
                    found.seek(first)
                samples = _read(found, before + count, wanted.dtype.name if exact else "float32")[before:]
            except failed as error:
                raise RuntimeError(f"the sound cannot be decoded: {error.error_string}") from None
            if exact:
                return (samples[:, 0] if wanted.downmix else samples), rate
            return finished(samples, rate, wanted), rate
    return _by_ffmpeg(source, wanted, refusal)


def _plain(data: np.ndarray, wanted: Wanted) -> tuple[np.ndarray, float] | None:
    """As `decode`, without libsndfile; None for what it has to decode."""
    found = samples_of(data)
    if found is not None:
        return _of_samples(found, *_part(len(found.frames), found.rate, wanted), wanted)
    stream = stream_of(data)
    if stream is not None:
        first, count = _part(stream.length, stream.rate, wanted)
        found = None if first else stream.samples(count)  # libsndfile knows how to begin in the middle
        if found is not None:
            return _of_samples(found, 0, count, wanted)
    return None


def _of_samples(found: Samples, first: int, count: int, wanted: Wanted) -> tuple[np.ndarray, float]:
    rate, channels = float(found.rate), found.frames.shape[1]
    exact = _exact(channels, rate, found.floats, wanted)
    kind = wanted.dtype if exact else np.dtype(np.float32)
    samples = found.part(first, count, kind, host_empty((count, channels), kind))
    if exact:
        return (samples[:, 0] if wanted.downmix else samples), rate
    return finished(samples, rate, wanted), rate


def _exact(channels: int, rate: float, floats: bool, wanted: Wanted) -> bool:
    """Whether samples are only converted: neither mixed nor resampled nor floats that are to become integers."""
    if (wanted.downmix and channels > 1) or _other_rate(rate, wanted):
        return False
    return wanted.dtype.kind == "f" or not floats


def _by_ffmpeg(source: np.ndarray | str, wanted: Wanted, refusal: str) -> tuple[np.ndarray, float]:
    from ndd.decoders import _ffmpeg_sound

    samples, rate = _ffmpeg_sound.decode(source, refusal)
    first, count = _part(len(samples), rate, wanted)
    return finished(samples[first : first + count], rate, wanted), rate


def _part(frames: int, rate: float, wanted: Wanted) -> tuple[int, int]:
    """The first frame that is wanted, and how many are."""
    first = int(np.floor(wanted.start * rate))
    if not 0 <= first <= frames:
        raise RuntimeError(f"`start`={wanted.start:g} s is not in the recording, which has {frames / rate:g} s")
    count = frames - first
    if wanted.duration is not None:
        count = min(count, int(np.floor(wanted.duration * rate)))
    return first, count


def _other_rate(rate: float, wanted: Wanted) -> bool:
    return wanted.sample_rate > 0 and wanted.sample_rate != rate


def finished(samples: np.ndarray, rate: float, wanted: Wanted) -> np.ndarray:
    """float32 `(n, channels)` downmixed, resampled and in the wanted element type."""
    if wanted.downmix:
        samples = samples[:, 0] if samples.shape[1] == 1 else samples.mean(axis=1, dtype=np.float32)
    if _other_rate(rate, wanted):
        length = int(np.ceil(len(samples) * (wanted.sample_rate / rate)))
        out = host_empty((length, *samples.shape[1:]), np.float32)
        resample(np.ascontiguousarray(samples), out, rate / wanted.sample_rate, wanted.quality)
        samples = out
    if wanted.dtype.kind == "f":
        return samples
    full, limits = _FULL[wanted.dtype], np.iinfo(wanted.dtype)
    levels = np.rint(samples * full).astype(np.float64)
    return np.clip(levels, limits.min, limits.max).astype(wanted.dtype)


def _read(file: Any, count: int, dtype: str) -> np.ndarray:
    """The next `count` frames, fewer if the file is cut off. A header that claims very many is not believed.

    By libsndfile's own functions: those of soundfile seek after reading, which in a FLAC file means to decode again.
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
    """Whether compiled code can call libsndfile."""
    library = soundfile()
    if not hasattr(os, "memfd_create"):
        return False
    from llvmlite import binding

    for name in sound_file.FUNCTIONS:
        address = library._ffi.cast("uintptr_t", library._ffi.addressof(library._snd, name))
        binding.add_symbol(name, int(address))
    return True


def _quick(data: np.ndarray, wanted: Wanted) -> tuple[np.ndarray, float] | None:
    """As `decode`, by libsndfile from compiled code; None for what fails, claims to be very long or has to be
    read from its beginning."""
    if not len(data) or not _connected():
        return None
    info = np.zeros(8, np.int32)
    handle, file = sound_file.opened(data.ctypes.data, len(data), _NAME, info)
    if not handle:
        return None
    address = count = first = kind = 0
    samples = None
    try:
        frames, rate = int(info[:2].view(np.int64)[0]), float(info[sound_file.RATE])
        channels, subtype = int(info[sound_file.CHANNELS]), int(info[sound_file.FORMAT]) & 0xFFFF
        first, wanted_count = _part(frames, rate, wanted)
        exact = _exact(channels, rate, subtype in _FLOAT_SUBTYPES, wanted)
        seeks = subtype in _SEEK_SUBTYPES and int(info[sound_file.FORMAT]) >> 16 & 0xFFF != _PAF
        if wanted_count <= _BLOCK and (seeks or not first):
            samples = host_empty((wanted_count, channels), wanted.dtype if exact else np.dtype(np.float32))
            address, count = samples.ctypes.data, wanted_count
            kind = ("float32", "int16", "int32").index(samples.dtype.name)
    finally:
        got = sound_file.read(handle, file, first, address, count, kind)
    if samples is None or got < 0:
        return None
    samples = samples[:got]
    if exact:
        return (samples[:, 0] if wanted.downmix else samples), rate
    return finished(samples, rate, wanted), rate
