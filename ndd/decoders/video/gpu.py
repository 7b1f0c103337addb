"""Frames of videos to GPU memory: the video engines decode, or the CPU if they cannot, and one launch converts all frames to RGB.

A `Piece` is a sequence of ascending frames of one video, which one decoder decodes in one go. Pieces run on the threads of the
pool, so that all engines of a GPU are busy; long pieces are cut at key frames.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ndd._cuda.launch import pinned_empty
from ndd._operator import bad_sample
from ndd._operator.naming import raise_first
from ndd._tensor.memory import torch_device
from ndd.decoders.video import nvdec as _nvdec
from ndd.decoders.video.color import factors
from ndd.decoders.video.file import VideoFile
from ndd.decoders.video.index import Index, Picture

_KERNEL = Path(__file__).with_name("video.cu")
_FILL, _NV12, _P016, _RGB = range(4)
_AT_ONCE = 8  # an H200 has 7 engines
_WORTH_A_PIECE = 8  # frames
_log = logging.getLogger("ndd.video")


class Piece(NamedTuple):
    """Frames to be decoded in one go.

    Attributes:
        using: returns a context manager in which the video is open.
        index: the index of the video.
        frames: their numbers, ascending.
        samples: the first sample that needs each frame, for errors.
    """

    using: Callable[[], AbstractContextManager[VideoFile]]
    index: Index
    frames: np.ndarray
    samples: np.ndarray


def cut(index: Index, frames: np.ndarray, wanted: int) -> list[np.ndarray]:
    """Cuts ascending frames into up to `wanted` parts that begin at key frames, of at least `_WORTH_A_PIECE` frames.

    >>> [part.tolist() for part in cut({"keys": np.array([0, 10, 20, 30])}, np.arange(4, 32), 3)]
    [[4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19], [20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31]]
    """
    least = max(len(frames) // max(wanted, 1), _WORTH_A_PIECE)
    places = [0]
    for place in np.searchsorted(frames, index["keys"]).tolist():
        if place - places[-1] >= least and len(frames) - place >= _WORTH_A_PIECE:
            places.append(place)
    return np.split(frames, places[1:])


def pieces_at_once(videos: int) -> int:
    """The best number of pieces for each of `videos` videos."""
    return max(_AT_ONCE // max(videos, 1), 1)


class Pictures:
    """Decoded frames on a GPU: `table`, int64 `[N, 2]`, has the address and the kind of each."""

    def __init__(self, sizes: np.ndarray, device: Any):
        # Frames begin at multiples of 4, for the engine's copies.
        ends = np.cumsum(-(-sizes // 4) * 4)
        self.memory = torch.empty(int(ends[-1]) if len(ends) else 0, dtype=torch.uint8, device=torch_device(device))
        self.table = np.zeros((len(sizes), 2), np.int64)
        if len(ends):
            self.table[:, 0] = self.memory.data_ptr() + np.concatenate([[0], ends[:-1]])
        self.uploaded: list[Any] = []


def decoded(call: Any, pieces: Sequence[Piece], ycbcr: bool = False) -> Pictures:
    """Decodes the frames of all pieces, in their order. Runs with the stream of the call current."""
    counts = [len(piece.frames) for piece in pieces]
    pictures = Pictures(np.repeat([_bytes(piece.index) for piece in pieces], counts), call.device)
    parts = np.split(pictures.table, np.cumsum(counts)[:-1])
    on_host: dict[int, Any] = {}

    def decode_piece(i: int) -> None:
        piece = pieces[i]
        with piece.using() as file:
            frames = piece.frames.tolist()
            if not frames:
                return
            file.expect(frames)
            if _by_engine(call, file, frames, parts[i]):
                return
            file.expect(frames)
            _, height, width = file.shape
            on_host[i] = pinned_empty(len(frames) * height * width * 3)
            out = on_host[i].numpy().reshape(len(frames), height, width, 3)
            for frame, place, sample in zip(frames, out, piece.samples.tolist(), strict=True):
                try:
                    file.write(frame, [place], ycbcr)
                except RuntimeError as error:
                    raise bad_sample(sample, str(error)) from error

    errors = call.spread(decode_piece, len(pieces))
    raise_first({getattr(error, "sample", int(pieces[i].samples[0])): error for i, error in errors.items()})
    for i, host in on_host.items():
        there = host.to(torch_device(call.device), non_blocking=True)
        pictures.uploaded.append(there)
        size = there.numel() // counts[i]
        parts[i][:, 0] = there.data_ptr() + size * np.arange(counts[i])
        parts[i][:, 1] = _RGB
    return pictures


def convert(
    launch: Any,
    indices: Sequence[Index],
    pictures: Pictures,
    wanted: Sequence[np.ndarray],
    fill: Any,
    ycbcr: bool = False,
) -> None:
    """Writes output 0.

    Args:
        indices: the index of each sample's video.
        wanted: the numbers of its frames among `pictures` (-1: `fill`).
    """
    stored = [Picture(*index["picture"].tolist()) for index in indices]
    numbers = np.concatenate(wanted)
    table = np.zeros((max(len(numbers), 1), 2), np.int64)
    table[: len(numbers)][numbers >= 0] = pictures.table[numbers[numbers >= 0]]
    counts = np.array([len(frames) for frames in wanted], np.int64)
    shapes = launch.outputs[0].shapes
    launch(
        "video",
        shapes[:, 0] * shapes[:, 1] * shapes[:, 2],
        per_sample={
            "pictures": launch.table(table), "first": np.cumsum(counts) - counts,
            "turns": np.array([picture.turns for picture in stored], np.int32),
            "factors": np.array([_factors(picture) for picture in stored], np.float32).reshape(-1, 7),
        },
        shared={"fill": np.asarray(fill, np.uint8), "ycbcr": int(ycbcr)},
        macros={"FILL": _FILL, "NV12": _NV12, "P016": _P016, "RGB": _RGB},
        file=str(_KERNEL),
    )  # fmt: skip


def _factors(picture: Picture) -> np.ndarray:
    """The factors for the kernel, which scales values of more than 8 bits to 8 integer bits."""
    shifted = factors(picture.matrix, bool(picture.full_range), max(picture.bits, 8)).copy()
    shifted[1:6] *= 1 << max(picture.bits, 8) - 8
    return shifted


def _bytes(index: Index) -> int:
    """The bytes of a frame from the engine; 0 if the engines cannot decode the video."""
    bits = Picture(*index["picture"].tolist()).bits
    height, width = index["size"].tolist()
    return (height + height % 2) * (width + width % 2) * 3 // 2 * (1 if bits == 8 else 2) if bits else 0


def _by_engine(call: Any, file: VideoFile, frames: list[int], table: np.ndarray) -> bool:
    """Decodes frames with an engine. Returns whether it did. After a refusal the engine is not tried again for this file."""
    if file.refused is not None:
        return False
    picture = Picture(*file.index["picture"].tolist())
    try:
        if not picture.bits or file.index["untimed"][0]:
            raise _nvdec.Refused("the engines decode only 4:2:0 that is not interlaced, with the times of its frames")
        _decoder(call, file, picture)
        file.copy(frames, table[:, 0].tolist())
    except (_nvdec.Refused, RuntimeError) as error:
        file.refused = str(error)
        file.decode_by(None)
        name = file.source if isinstance(file.source, str) else "a video"
        _log.info("%s is decoded on the CPU: %s", name, error)
        return False
    table[:, 1] = _NV12 if picture.bits == 8 else _P016
    return True


def _decoder(call: Any, file: VideoFile, picture: Picture) -> None:
    """Sets an engine's decoder for a file, or continues with it. It writes to memory only after the current work of the call's
    stream."""
    stream = call.stream._torch
    if not file.by_ffmpeg:
        file.decoder.wait_for(stream)
        return
    _, height, width = file.shape
    size = (width, height) if picture.turns % 2 else (height, width)
    codec, extradata = file.codec
    file.decode_by(lambda _: _nvdec.Decoder(codec, extradata, call.device.device_id, size, stream))
