"""`ndd.decoders.video`: encoded videos, or parts of them, to frames."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from ndd._operator import Call, PerSample, Plan, Samples, bad_sample, operator, output
from ndd._operator.limits import MOST
from ndd._operator.naming import raise_first
from ndd._tensor.dtype import uint8
from ndd.decoders.video.file import VideoFile
from ndd.decoders.video.frames import PAD_MODES, fill_colour, padded


@operator(reads="cpu")
def video(
    encoded,
    /,
    *,
    affine: bool = True,
    build_index: bool = True,
    end_frame: PerSample[int] | None = None,
    fill_value: list[int] = (0,),  # type: ignore[assignment]
    frames: PerSample[list[int]] | None = None,
    pad_mode: str = "constant",
    sequence_length: PerSample[int] | None = None,
    start_frame: PerSample[int] | None = None,
    stride: PerSample[int] | None = None,
    times: PerSample[list[float]] | None = None,
):
    """Decodes videos of any kind that FFmpeg reads: H.264, HEVC, VP8, VP9, AV1, MPEG-4 and more, in MP4, Matroska, WebM, ...

    Gives RGB frames, u8 `[frames, height, width, 3]`, layout "FHWC". Decodes only the frames asked for, from the key frame
    before them on; without arguments the whole video.

    Args:
        encoded: the bytes of files, 1-D u8 on the CPU, as `readers.File` and `io.file.read` give them.
        start_frame: the first frame; default 0.
        end_frame: the frame after the last; default: the end of the video.
        stride: take every `stride`-th frame.
        sequence_length: how many frames come out, instead of `end_frame`.
        frames: numbers of frames, in any order and with repetitions, instead of the four arguments above.
        times: moments in seconds, instead of all others (not in DALI): the frame shown at each moment; the first frame
            before it, the last one after it.
        pad_mode: the replacement for frames that the video does not have: "constant" (`fill_value`), "edge" (the nearest
            frame), "reflect_101" or "reflect_1001" (mirrored at the last frame, or after it), "none" (they are left out).
        fill_value: one number, or red, green and blue.
        build_index, affine: accepted for compatibility with DALI, without effect.

    A video that is stored turned, as phones do, comes out upright. Colours follow the matrix that the stream names (BT.601,
    BT.709, BT.2020; BT.601 if it names none) and its range; DALI always uses BT.601. Otherwise 0.1 % of the numbers differ from
    DALI's, by 1 of 255.

    On a GPU the video engines (NVDEC) decode 4:2:0 of 8 to 12 bits: H.264, HEVC, VP8, VP9, MPEG-4 (off by up to 3 of 255 from the
    CPU: its transform is not defined to the last bit) and, on GPUs that can, AV1. The CPU decodes what is not 4:2:0, interlaced,
    too small or too large for the engines, damaged, or without times; the logger "ndd.video" reports that at the level INFO.

    Needs PyAV (the extra `video`).

    Raises RuntimeError for bytes that are not a video, have no video stream, or are damaged at a frame that is asked for;
    for arguments that exclude each other, a start beyond the end, and a stride below 1.

    >>> import ndd, numpy as np
    >>> clip = ndd.io.video.encode(np.full((10, 32, 48, 3), 128, np.uint8), rate=5)
    >>> ndd.decoders.video(clip, start_frame=2, sequence_length=3, stride=2).shape
    (3, 32, 48, 3)
    >>> ndd.decoders.video(clip, times=[0.0, 1.0, 1.1]).shape
    (3, 32, 48, 3)
    """
    if encoded.dtype is not uint8 or encoded.ndim == 0:
        raise RuntimeError(
            f"expected the bytes of an encoded video, uint8, got {encoded.ndim}-D {encoded.dtype}. "
            "ndd.io.file.read reads files."
        )
    fill_colour(fill_value)
    if pad_mode not in PAD_MODES:
        raise RuntimeError(f"pad_mode: expected one of {', '.join(map(repr, PAD_MODES))}, got {pad_mode!r}")
    sequence = {
        "start_frame": start_frame,
        "end_frame": end_frame,
        "stride": stride,
        "sequence_length": sequence_length,
    }
    for name, chosen in (("frames", frames), ("times", times)):
        others = {**sequence, "frames": frames, "times": times}
        clash = next((k for k, v in others.items() if v is not None and k != name), None)
        if chosen is not None and clash is not None:
            raise RuntimeError(f"`{name}` says which frames, so `{clash}` cannot be given with it")
    if sequence_length is not None and end_frame is not None:
        raise RuntimeError("`sequence_length` and `end_frame` cannot be given together")
    return Samples(output(uint8, 4, "FHWC"))


class Clip:
    """The frames of one sample: an open video, and the number of each frame of the output (-1: the fill value)."""

    def __init__(self, file: VideoFile, frames: np.ndarray, colour: np.ndarray):
        self.file, self.frames, self.colour = file, frames, colour

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The shape of the output."""
        return len(self.frames), self.file.shape.height, self.file.shape.width, 3

    def opened(self) -> Any:
        """The video, to be closed."""
        return contextlib.closing(self.file)

    def again(self) -> Any:
        """The video, opened once more for another thread, to be closed."""
        return contextlib.closing(VideoFile(self.file.source, 1, self.file.index))

    def decode(self, out: np.ndarray) -> None:
        """Writes the frames, and closes the video."""
        try:
            out[self.frames < 0] = self.colour
            self.file.read(self.frames, out)
        finally:
            self.file.close()


video.operator.empty_ndim = 1


@video.plan
def _(call: Call, encoded, fill_value, pad_mode, frames, times, **sequence: Any) -> Plan:
    data, colour, n = encoded.arrays, fill_colour(fill_value), len(encoded.arrays)
    clips: list[Any] = [None] * n
    threads = max(call.threads // max(n, 1), 1)

    def open_one(i: int) -> None:
        file = VideoFile(data[i].reshape(-1), threads)
        try:
            if frames is not None:
                wanted = frames.arrays()[i].reshape(-1).astype(np.int64)
            elif times is not None:
                wanted = file.at(times.arrays()[i].reshape(-1))
            else:
                wanted = _sequence(i, file.shape.frames, **sequence)
            clips[i] = Clip(file, padded(wanted, file.shape.frames, pad_mode), colour)
        except BaseException:
            file.close()
            raise

    errors = call.spread(open_one, n)
    if errors:
        for clip in clips:
            if clip is not None:
                clip.file.close()
        raise_first(errors)
    return Plan([clip.shape for clip in clips], {"clip": clips}, {"fill": colour})


def _sequence(i: int, count: int, start_frame: Any, end_frame: Any, stride: Any, sequence_length: Any, **_: Any) -> Any:
    """The numbers of the frames of sample `i`; some may lie beyond the end."""
    start, end, step, length = (
        None if v is None else int(v.each()[i]) for v in (start_frame, end_frame, stride, sequence_length)
    )
    start, step = start or 0, 1 if step is None else step
    if step < 1:
        raise bad_sample(i, f"stride: expected a number from 1, got {step}")
    if start >= count:
        raise bad_sample(i, f"start_frame {start} is out of bounds, expected one below {count}")
    if length is not None:
        if length < 0:
            raise bad_sample(i, f"sequence_length: expected a number from 0, got {length}")
        return start + step * np.arange(length, dtype=np.int64)
    end = count if end is None else end
    if end <= start:
        raise bad_sample(i, f"end_frame ({end}) must be greater than start_frame ({start})")
    if end - start > MOST["sequence_length"]:
        raise bad_sample(i, f"end_frame: expected up to {MOST['sequence_length']:,} frames, got {end - start:,}")
    return np.arange(start, end, step, dtype=np.int64)


@video.cpu
def _(encoded, out, clip):
    clip.decode(out)


@video.cuda
def _(launch, encoded, out, clip, fill):
    """The engines of the GPU decode, else the CPU. The number of launches is the same for any batch."""
    from ndd.decoders.video import gpu as _video_gpu  # four modules that GPUs alone need

    pieces, wanted, count = [], [], 0
    wide = _video_gpu.pieces_at_once(len(clip))
    for i, sample in enumerate(clip):
        exists = sample.frames >= 0
        frames, places = np.unique(sample.frames[exists], return_inverse=True)
        wanted.append(np.full(len(sample.frames), -1))
        wanted[-1][exists] = places.reshape(-1) + count
        count += len(frames)
        index = sample.file.index
        for k, part in enumerate(_video_gpu.cut(index, frames, wide)):
            using = sample.again if k else sample.opened
            pieces.append(_video_gpu.Piece(using, index, part, np.full(len(part), i)))
    pictures = _video_gpu.decoded(launch.call, pieces)
    _video_gpu.convert(launch, [sample.file.index for sample in clip], pictures, wanted, fill)
