"""Decodes formats that libsndfile does not know, with FFmpeg: AAC (m4a, mp4), WMA, AC-3, WebM, the sound of video files."""

from __future__ import annotations

import errno
import io
from collections.abc import Iterator
from itertools import chain, groupby
from typing import Any

import numpy as np

from ndd.decoders import pyav
from ndd.installation import install_command

_MOST_FAULTS = 64  # consecutive errors of a container, after which the rest is abandoned
_NO_FILE = (errno.ENOENT, errno.EACCES)


def decode(source: np.ndarray | str, refusal: str) -> tuple[np.ndarray, float]:
    """All samples of the first audio stream, float32 `(n, channels)`, and their rate. A damaged file gives the samples of the
    packets that can be decoded; damaged FLAC is refused, as by libsndfile.

    RuntimeError, with libsndfile's error (`refusal`), where FFmpeg is not installed, or if there is nothing to decode.
    """
    if not len(source):
        raise RuntimeError(f"no sound can be read: {refusal}")
    av = pyav.library()
    if av is None:
        raise RuntimeError(
            f"no sound can be read: {refusal}. AAC, WMA and similar formats need av: {install_command('audio')}"
        )
    faults, damage = (av.error.FFmpegError, ValueError, OSError), list[BaseException]()
    try:
        file = source if isinstance(source, str) else io.BytesIO(source.tobytes())
        with pyav.opened(file) as container:
            if not container.streams.audio:
                raise RuntimeError("no sound can be read: the file has no audio stream")
            stream, whole = container.streams.audio[0], container.format.name == "flac"
            samples, rate = _samples(av, stream, _frames(container, stream, faults, damage), faults, damage)
    except faults as error:
        if isinstance(source, str) and getattr(error, "errno", None) in _NO_FILE:
            raise
        damage, whole, samples, rate = [error], True, np.empty((0, 1), np.float32), 0.0
    if rate <= 0 or (damage and (whole or not len(samples))):
        reason = getattr(damage[0], "strerror", None) or damage[0] if damage else "it has no sampling rate"
        raise RuntimeError(f"no sound can be read: {refusal}; FFmpeg: {reason}")
    return samples, rate


def _frames(container: Any, stream: Any, faults: Any, damage: list[BaseException]) -> Iterator[Any]:
    """The frames of all packets that can be decoded; the errors of the others go to `damage`."""
    if stream.codec_context is None:
        damage.append(ValueError("no decoder for the codec of its audio stream"))
        return
    packets, failed = container.demux(stream), 0
    while failed < _MOST_FAULTS:
        try:
            packet = next(packets, None)  # the last packet is empty and flushes the decoder
        except faults as error:
            damage.append(error)
            packets, failed = container.demux(stream), failed + 1  # continue after the damage
            continue
        if packet is None:
            return
        failed = 0
        try:
            yield from packet.decode()
        except faults as error:
            damage.append(error)


def _samples(
    av: Any, stream: Any, frames: Iterator[Any], faults: Any, damage: list[BaseException]
) -> tuple[np.ndarray, float]:
    """The samples of all frames, in the rate and channels of the first frame (in HE-AAC the second frame may be the first with
    two channels)."""
    context = stream.codec_context
    first = next(frames, None)
    if first is None:
        return np.empty((0, max(1, context.channels if context else 1)), np.float32), float(
            context.sample_rate if context else 0
        )
    parts = []
    for _, run in groupby(
        chain([first], frames), lambda frame: (frame.format.name, frame.layout.name, frame.sample_rate)
    ):
        converter = av.AudioResampler(format="flt", layout=first.layout, rate=first.sample_rate)
        try:
            for frame in chain(run, [None]):
                parts += [new.to_ndarray().reshape(-1, new.layout.nb_channels) for new in converter.resample(frame)]
        except faults as error:
            damage.append(error)
    channels = first.layout.nb_channels
    return np.concatenate([np.empty((0, channels), np.float32), *parts]), float(first.sample_rate)
