"""Sound that libsndfile does not know, by FFmpeg: AAC (m4a, mp4), WMA, AC-3, WebM, the sound of video files."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from ndd.decoders._metadata import any_metadata


def decode(source: np.ndarray | str, refusal: str) -> tuple[np.ndarray, float]:
    """All samples of the first audio stream, float32 `(n, channels)`, and their rate. RuntimeError with `refusal`, what
    libsndfile said, where FFmpeg is not installed or knows the file as little."""
    if not len(source):
        raise RuntimeError(f"no sound can be read: {refusal}")
    try:
        import av
    except ImportError:
        raise RuntimeError(
            f'no sound can be read: {refusal}. If it is AAC, WMA or the like: pip install "ndd-dataloading[audio]", for av'
        ) from None
    try:
        file = source if isinstance(source, str) else io.BytesIO(source.tobytes())
        with av.open(file, **any_metadata(av)) as container:
            if not container.streams.audio:
                raise RuntimeError("no sound can be read: the file has no audio stream")
            return _samples(av, container)
    except (av.error.FFmpegError, ValueError, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        said = getattr(error, "strerror", None) or error
        raise RuntimeError(f"no sound can be read: {refusal}; FFmpeg: {said}") from None


def _samples(av: Any, container: Any) -> tuple[np.ndarray, float]:
    stream = container.streams.audio[0]
    converter = av.AudioResampler(format="flt")
    parts = [
        made.to_ndarray().reshape(-1, stream.codec_context.channels)
        for frame in [*container.decode(stream), None]
        for made in converter.resample(frame)
    ]
    empty = np.empty((0, max(1, stream.codec_context.channels)), np.float32)
    return np.concatenate([empty, *parts]), float(stream.codec_context.sample_rate)
