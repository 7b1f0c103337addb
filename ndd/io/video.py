"""`ndd.io.video`: writes frames as a video file, to look at results, and reads a video piece by piece."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from ndd._tensor import Batch
from ndd._tensor.construct import make_batch
from ndd._tensor.device import DeviceLike, device as to_device
from ndd._tensor.memory import host_empty
from ndd.atomic_file import atomic_file
from ndd.decoders.video.clips import on_gpu
from ndd.decoders.video.file import VideoFile
from ndd.decoders.video.frames import padded
from ndd.decoders.video.index import library, scan
from ndd.decoders.video.open_files import OpenVideos

_QUALITY = {"libx264": "crf", "libx265": "crf", "libvpx-vp9": "crf", "libsvtav1": "crf"}
# Pixels: with narrower frames the libraries write beyond their memory (x265 4.2 from the second frame on, SVT-AV1 4.1; a
# checking malloc detected it, over all encoders and sizes up to 64).
_LEAST_WIDTH = {"libx265": 49, "libsvtav1": 26}
_CODECS = {"mp4": "libx264", "mov": "libx264", "mkv": "libx264", "webm": "libvpx-vp9", "avi": "mpeg4"}


def write(
    path: str | os.PathLike[str],
    frames: Any,
    *,
    rate: float = 25,
    codec: str | None = None,
    quality: int = 23,
    key_interval: int | None = None,
) -> None:
    """Writes a video file atomically: it is complete or missing.

    Args:
        path: the file; its ending determines the format: mp4, mov, mkv (H.264), webm (VP9), avi (MPEG-4).
        frames: u8 `[frames, height, width, channels]` with 3 channels (RGB) or 1 (gray): a Tensor (also on a GPU), an array, or
            any other object that NumPy can read.
        rate: frames a second.
        codec: FFmpeg's name of an encoder, such as "libx265"; default as above.
        quality: the "crf" of H.264, HEVC, VP9 and AV1, 0 (lossless) to 51; other codecs ignore it.
        key_interval: the most frames between two key frames; default: the encoder's.

    Needs PyAV. Raises RuntimeError for frames of another form, ValueError for an unknown format or codec and for an invalid
    rate or interval, before the file is created. Raises RuntimeError also for frames that the encoder refuses, and for widths
    below 49 with libx265 and below 26 with libsvtav1, which then write beyond their memory.

    Raises as `encode`: ValueError, RuntimeError or ImportError; OSError for a file that cannot be written.

    >>> import ndd, numpy as np, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "gray.mp4")
    >>> ndd.io.video.write(path, np.full((10, 32, 48, 1), 128, np.uint8), rate=5)
    >>> ndd.decoders.video(ndd.io.file.read(path)).shape
    (10, 32, 48, 3)
    """
    path = os.fsdecode(path)
    format = os.path.splitext(path)[1][1:].lower() or "mp4"
    array = _checked(frames, format, rate, codec, key_interval)
    plain = os.path.isfile(path) or not os.path.exists(path)  # otherwise a pipe or a device
    with atomic_file(os.path.realpath(path)) if plain else open(path, "wb") as file:
        _encode(file, array, format, rate, codec, quality, key_interval)


def encode(
    frames: Any,
    *,
    rate: float = 25,
    format: str = "mp4",
    codec: str | None = None,
    quality: int = 23,
    key_interval: int | None = None,
) -> np.ndarray:
    """Does the same as `write` in memory: returns the bytes of the file, u8 `[size]`. `format` replaces the ending of a path.

    Args:
        frames, rate, codec, quality, key_interval: as for `write`.
        format: "mp4", "mov", "mkv", "webm" or "avi".

    Raises ValueError for an unknown format or codec and numbers out of range, RuntimeError for frames that the encoder
    does not take, ImportError without PyAV.

    >>> import ndd, numpy as np
    >>> clip = ndd.io.video.encode(np.zeros((3, 32, 48, 3), np.uint8), format="webm")
    >>> clip[:4].tobytes()
    b'\\x1aE\\xdf\\xa3'
    """
    memory = io.BytesIO()
    _encode(memory, _checked(frames, format, rate, codec, key_interval), format, rate, codec, quality, key_interval)
    return np.frombuffer(memory.getvalue(), np.uint8)


def _checked(frames: Any, ending: str, rate: float, codec: str | None, interval: int | None) -> np.ndarray:
    """The frames as an array. Errors are raised before a file is created."""
    array = np.asarray(frames.cpu() if hasattr(frames, "cpu") else frames)
    if array.dtype != np.uint8 or array.ndim != 4 or array.shape[3] not in (1, 3) or not array.size:
        raise RuntimeError(
            "expected frames as uint8 of shape (frames, height, width, 3 or 1) and at least one of them, got "
            f"{array.dtype} of shape {array.shape}"
        )
    if ending not in _CODECS and codec is None:
        raise ValueError(f"format: expected one of {', '.join(_CODECS)}, got {ending!r}; or say a codec")
    if not 0 < float(rate) < float("inf"):
        raise ValueError(f"rate: expected frames a second, above 0, got {rate}")
    if interval is not None and not 0 < interval < 1 << 31:
        raise ValueError(f"key_interval: expected a number of frames, above 0, got {interval}")
    if codec is not None and codec not in library().codecs_available:
        raise ValueError(f"codec: expected FFmpeg's name of an encoder, such as 'libx265', got {codec!r}")
    least = _LEAST_WIDTH.get(_encoder(codec), 1) if codec else 1
    if array.shape[2] < least:
        raise RuntimeError(
            f"codec {codec!r} encodes frames of {least} pixels in width and more, got frames of "
            f"{array.shape[1]}x{array.shape[2]}: make them wider, or take codec='libx264'"
        )
    return array


def _encoder(codec: str) -> str:
    """The encoder's own name: FFmpeg takes "hevc" for libx265 too."""
    av = library()
    try:
        encoder = av.Codec(codec, "w")
    except av.codec.codec.UnknownCodecError:
        encoder = None
    if encoder is None or encoder.type != "video":
        raise ValueError(f"codec: expected an encoder of video, FFmpeg's {codec!r} is none")
    return encoder.name


def _encode(
    file: Any, array: np.ndarray, ending: str, rate: float, codec: str | None, quality: int, interval: int | None
) -> None:
    av = library()
    count, height, width, channels = array.shape
    form = {"mkv": "matroska"}.get(ending, ending)
    name = codec or _CODECS[ending]
    try:
        with av.open(file, "w", format=form) as container:
            stream = container.add_stream(name, rate=Fraction(rate).limit_denominator(100_000))
            stream.width, stream.height = width, height
            # For odd sizes H.264 and HEVC have no 4:2:0, and MPEG-4 has nothing else.
            stream.pix_fmt = "yuv444p" if (width % 2 or height % 2) and name != "mpeg4" else "yuv420p"
            options = {_QUALITY[name]: str(quality)} if name in _QUALITY else {}
            if name == "libvpx-vp9":
                options["b"] = "0"
            stream.options = options
            if interval is not None:
                stream.codec_context.gop_size = interval
            for i in range(count):
                image = np.ascontiguousarray(array[i] if channels == 3 else np.repeat(array[i], 3, axis=2))
                frame = av.VideoFrame.from_ndarray(image, "rgb24")
                frame.pts = i
                container.mux(stream.encode(frame))
            container.mux(stream.encode())
    except av.FFmpegError as error:
        if isinstance(error, MemoryError):
            raise
        # An error of the file, such as a full disk, after which closing it failed too.
        if isinstance(error.__context__, OSError):
            raise error.__context__ from None
        raise RuntimeError(
            f"FFmpeg's encoder {name!r} cannot make a file of format {ending!r} of frames of {height}x{width}: {error}"
        ) from error


def sequences(
    video: Any,
    sequence_length: int,
    *,
    batch_size: int | None = None,
    device: DeviceLike = "cpu",
    pad_sequences: bool = False,
    threads: int = 1,
) -> Iterator[Any]:
    """Iterates over a video, `sequence_length` frames at a time: for a video too long for one value.

    Each sequence is a Tensor u8 "FHWC", RGB, upright; the last one has the remaining frames. Decoding continues from sequence
    to sequence. `decoders.video` and `readers.Video` give sequences from anywhere in a video.

    Args:
        video: a path, or the bytes of a file, u8 `[size]`: a Tensor, an array.
        sequence_length: frames, from 1.
        batch_size: return Batches of this many sequences; the last one may have fewer. On a GPU several engines decode the
            sequences of a batch.
        device: the device of the frames. A GPU's engines decode what they can, as in `decoders.video`.
        pad_sequences: pad the last sequence with black frames.
        threads: the number of FFmpeg's decoding threads.

    Needs PyAV. Raises ValueError for a length or a batch size below 1; RuntimeError for bytes that are not a video, and for a
    damaged frame.

    Raises TypeError or ValueError for an invalid device.

    >>> import ndd, numpy as np
    >>> clip = ndd.io.video.encode(np.zeros((10, 32, 48, 3), np.uint8))
    >>> [sequence.shape for sequence in ndd.io.video.sequences(clip, 6)]
    [(6, 32, 48, 3), (4, 32, 48, 3)]
    >>> [batch.batch_size for batch in ndd.io.video.sequences(clip, 2, batch_size=3)]
    [3, 2]
    """
    for name, number in (("sequence_length", sequence_length), ("batch_size", batch_size)):
        if number is not None and number < 1:
            raise ValueError(f"{name}: expected a number from 1, got {number}")
    where = to_device(device)
    parts = _OnGpu(video, threads, where) if where.device_type == "gpu" else _OnCpu(video, threads)
    with contextlib.closing(parts):
        numbers = np.arange(0, parts.count, sequence_length)[:, None] + np.arange(sequence_length)
        clips = [padded(frames, parts.count, "constant" if pad_sequences else "none") for frames in numbers]
        for at in range(0, len(clips), batch_size or 1):
            decoded = parts.decoded(clips[at : at + (batch_size or 1)])
            yield decoded if batch_size is not None else decoded.select(0)


class _OnCpu:
    """A video that is decoded on the CPU."""

    def __init__(self, video: Any, threads: int):
        self._file = VideoFile(_file_of(video), threads)
        self.count = self._file.shape.frames
        self.close = self._file.close

    def decoded(self, clips: list[np.ndarray]) -> Batch:
        """The frames with these numbers (-1: black)."""
        outs = [host_empty((len(clip), *self._file.shape[1:], 3), np.uint8) for clip in clips]
        for clip, out in zip(clips, outs, strict=True):
            self._file.read(clip, out)
            out[clip < 0] = 0
        return make_batch(outs, "FHWC")


class _OnGpu:
    """A video that is decoded on a GPU."""

    fill, ycbcr = np.zeros(3, np.uint8), False

    def __init__(self, video: Any, threads: int, device: Any):
        file = _file_of(video)
        self._device, self._name = device, file if isinstance(file, str) else "the video"
        self.indices = [scan(file)]
        self.count = len(self.indices[0]["times"])
        self._open = OpenVideos(threads, lambda _: file)

    def close(self) -> None:
        """Closes the video; sequences that are not yet decoded open it again."""
        self._open.end()

    def using(self, video: int, first: int, last: int) -> contextlib.AbstractContextManager[VideoFile]:
        """The video, open, for these frames."""
        return self._open.using(self._name, self.indices[video], first, last)

    def decoded(self, clips: list[np.ndarray]) -> Batch:
        """The frames with these numbers (-1: black)."""
        rows = [np.concatenate([[0], clip]) for clip in clips]
        sources = _Sources(f"{self._name} frame {clip[0]}" for clip in clips)
        sources.videos = self
        return on_gpu(make_batch(rows, source_info=sources), self, self._device)


class _Sources(list[str]):
    """The sources of sequences. It keeps the videos alive as long as they may still be decoded."""

    videos: Any


def _file_of(video: Any) -> str | np.ndarray:
    """A path, or the bytes of a file."""
    if isinstance(video, str | os.PathLike):
        return os.fsdecode(video)
    data = np.asarray(video.cpu() if hasattr(video, "cpu") else video)
    if data.dtype != np.uint8 or data.ndim != 1:
        raise RuntimeError(f"expected a path or the bytes of a video, uint8, got {data.ndim}-D {data.dtype}")
    return data


__all__ = ["encode", "sequences", "write"]
