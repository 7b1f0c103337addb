"""Sequences of frames on a GPU: readers and `io.video.sequences` return frame numbers, and these functions decode them."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from typing import Any, Protocol
from weakref import WeakValueDictionary

import numpy as np

from ndd._operator import Plan, operator, output
from ndd._tensor.dtype import uint8
from ndd.decoders.video.file import VideoFile
from ndd.decoders.video.index import Index


class Videos(Protocol):
    """The videos of sequences, by number.

    Attributes:
        indices: of the videos.
        fill: the colour that replaces a missing frame, u8 `[3]`.
        ycbcr: whether frames are Y, Cb and Cr.
    """

    indices: list[Index]
    fill: np.ndarray
    ycbcr: bool

    def using(self, video: int, first: int, last: int) -> AbstractContextManager[VideoFile]:
        """A context in which a video is open, for these frames."""
        ...


_known: WeakValueDictionary[int, Videos] = WeakValueDictionary()


def on_gpu(clips: Any, videos: Videos, device: Any) -> Any:
    """The frames of sequences, in the form of `decoded_clips`. They are decoded when they are needed, so the `source_info` of
    `clips` must keep the videos alive."""
    _known[id(videos)] = videos
    return decoded_clips(clips, videos=id(videos), device=device)


@operator(reads="cpu", register=False)
def decoded_clips(clips, /, *, videos: int):
    """Decodes sequences, i64 `[1 + F]`: the number of a video and its frame numbers (-1: the fill value), to u8 "FHWC". The
    sequences of a video are decoded together, each frame once."""
    return output(uint8, 4, "FHWC")


class _Clip:
    """A sequence: the videos, the number of its video, the numbers of its frames."""

    def __init__(self, videos: Videos, row: np.ndarray):
        self.videos, self.video, self.frames = videos, int(row[0]), row[1:]

    @property
    def index(self) -> Index:
        """The index of the video."""
        return self.videos.indices[self.video]


@decoded_clips.plan
def _(clips, *, videos):
    listed = [_Clip(_known[videos], row) for row in clips.arrays]
    shapes = [(len(clip.frames), *clip.index["size"].tolist(), 3) for clip in listed]
    return Plan(shapes, {"clip": listed})


@decoded_clips.cuda
def _(launch, clips, out, clip):
    from ndd.decoders.video import gpu as _video_gpu  # four modules that GPUs alone need

    videos, numbers = clip[0].videos, np.array([sequence.video for sequence in clip])
    each = np.unique(numbers).tolist()
    pieces, wanted, count = [], [np.full(len(sequence.frames), -1) for sequence in clip], 0
    for video in each:
        samples = np.flatnonzero(numbers == video).tolist()
        wanting = np.repeat(samples, [len(clip[i].frames) for i in samples])
        frames, first = np.unique(np.concatenate([clip[i].frames for i in samples]), return_index=True)
        frames, wanting = frames[frames >= 0], wanting[first[frames >= 0]]
        for i in samples:
            exists = clip[i].frames >= 0
            wanted[i][exists] = count + np.searchsorted(frames, clip[i].frames[exists])
        count += len(frames)
        index = videos.indices[video]
        for part in _video_gpu.cut(index, frames, _video_gpu.pieces_at_once(len(each))):
            using = functools.partial(videos.using, video, int(part[0]), int(part[-1]))
            pieces.append(_video_gpu.Piece(using, index, part, wanting[np.searchsorted(frames, part)]))
    pictures = _video_gpu.decoded(launch.call, pieces, videos.ycbcr)
    _video_gpu.convert(launch, [sequence.index for sequence in clip], pictures, wanted, videos.fill, videos.ycbcr)
