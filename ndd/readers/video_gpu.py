"""Sequences of frames on a GPU: what the threads that read ahead give are the numbers of frames, decoded here."""

from __future__ import annotations

import functools
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ndd._operator import Plan, operator, output
from ndd._tensor.dtype import uint8

_stores: WeakValueDictionary[int, Any] = WeakValueDictionary()


def on_gpu(clips: Any, store: Any, device: Any) -> Any:
    """The frames of sequences, as `ClipStore` with `numbers_only` gives them."""
    _stores[id(store)] = store
    return decoded_clips(clips, store=id(store), device=device)


@operator(reads="cpu", register=False)
def decoded_clips(clips, /, *, store: int):
    """Decodes sequences: i64 `[1 + F]`, the number of the video and those of its frames (-1: filled), to u8 "FHWC". The
    sequences of one video are decoded in one go, each frame once."""
    return output(uint8, 4, "FHWC")


class _Clip:
    """A sequence: its store, the number of its video, those of its frames."""

    def __init__(self, store: Any, row: np.ndarray):
        self.store, self.video, self.frames = store, int(row[0]), row[1:]

    @property
    def index(self) -> Any:
        """That of the video."""
        return self.store.indices[self.video]


@decoded_clips.plan
def _(clips, *, store):
    listed = [_Clip(_stores[store], row) for row in clips.arrays]
    shapes = [(len(clip.frames), *clip.index["size"].tolist(), 3) for clip in listed]
    return Plan(shapes, {"clip": listed})


@decoded_clips.cuda
def _(launch, clips, out, clip):
    from ndd.decoders import _video_gpu

    store = clip[0].store
    videos = np.array([one.video for one in clip])
    each = np.unique(videos).tolist()
    pieces, wanted, count = [], [np.full(len(one.frames), -1) for one in clip], 0
    for video in each:
        samples = np.flatnonzero(videos == video).tolist()
        wanting = np.repeat(samples, [len(clip[i].frames) for i in samples])
        frames, first = np.unique(np.concatenate([clip[i].frames for i in samples]), return_index=True)
        frames, wanting = frames[frames >= 0], wanting[first[frames >= 0]]
        for i in samples:
            there = clip[i].frames >= 0
            wanted[i][there] = count + np.searchsorted(frames, clip[i].frames[there])
        count += len(frames)
        index = store.indices[video]
        for part in _video_gpu.cut(index, frames, _video_gpu.pieces_at_once(len(each))):
            using = functools.partial(store.using, video, int(part[0]), int(part[-1]))
            pieces.append(_video_gpu.Piece(using, index, part, wanting[np.searchsorted(frames, part)]))
    pictures = _video_gpu.decoded(launch.call, pieces, store.layout.ycbcr)
    _video_gpu.convert(launch, [one.index for one in clip], pictures, wanted, store.layout.fill, store.layout.ycbcr)
