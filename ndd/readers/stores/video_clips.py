"""Sequences of frames as records.

A video is indexed once (`files/index_cache.py` keeps the index) and stays open while it is read. The frames of all sequences of
a batch are decoded in the order of the file, each once, even if sequences overlap. The work is divided among threads at key
frames, not by sequences, so that no packet is decoded twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from ndd._execution.cpus import cpu_count
from ndd._execution.errors import is_no_fault_of_data
from ndd._tensor.memory import host_empty
from ndd._tensor.secrets import without_secrets
from ndd._tensor.user_line import warn_user
from ndd.decoders.size_limits import get_max_pixels
from ndd.decoders.video.file import VideoFile
from ndd.decoders.video.frames import padded
from ndd.decoders.video.index import Index, key_before, scan
from ndd.decoders.video.open_files import OpenVideos
from ndd.io.object_store import is_remote
from ndd.readers.files.file_reading import whole_file
from ndd.readers.files.index_cache import all_inside, all_within, cached, has_columns
from ndd.readers.files.video_list import Listed
from ndd.readers.output import Record
from ndd.readers.stores.records import BatchedStore, Jobs

_WORTH_KEEPING = 1 << 18  # bytes of a video: indexing a smaller one is faster than finding and checking a cached index
_SCANS_AT_ONCE = 8
_READ_TOGETHER = 8  # sequences: the approximate size of a batch


class Layout(NamedTuple):
    """The form of a sequence: its number of frames, their distance, the distance between sequences, and the padding.
    With `whole_strides` a sequence spans `length * stride` frames, and only one sequence of a video is padded. Without, it ends
    at its last frame, and every sequence that begins in the video but does not end in it is padded."""

    length: int
    stride: int
    step: int
    pad_mode: str
    fill: np.ndarray
    uniform: bool = False
    ycbcr: bool = False
    whole_strides: bool = False


class Extras(NamedTuple):
    """The outputs beside the frames of a sequence."""

    labels: bool
    frame_num: str
    timestamps: bool


class _Clip:
    """A sequence that is being read: its number, the video, the frames in it (-1: none), and the array for them."""

    def __init__(self, number: int, video: int, frames: np.ndarray):
        self.number, self.video, self.frames = number, video, frames
        self.out: Any = None
        self.error: BaseException | None = None


class _Piece(NamedTuple):
    """Ascending frames of a video that are decoded in one go, the array for each, and whether decoding ends after them."""

    video: int
    frames: dict[int, list[tuple[_Clip, int]]]
    ends: bool


class _Reading:
    """Sequences that are read together (`Jobs`)."""

    def __init__(self, store: ClipStore, clips: list[_Clip]):
        self._store, self._clips = store, clips
        for clip in clips:
            try:
                clip.out = store.empty(clip)
            except Exception as error:
                clip.error = error
        whole = [clip for clip in clips if clip.error is None]
        self._pieces = [] if store.numbers_only else store.pieces(whole)
        self.count = max(len(self._pieces), 1)

    def run(self, job: int) -> None:
        """Decodes a piece."""
        for piece in self._pieces[job : job + 1]:  # none if there is only padding
            try:
                self._store.decode(piece)
            except BaseException as error:
                for clip, _ in chain.from_iterable(piece.frames.values()):
                    clip.error = clip.error or error

    def records(self) -> list[Record | BaseException]:
        """The sequences, when all is decoded."""
        return [self._store.record_of(clip) for clip in self._clips]


class ClipStore(BatchedStore):
    """Sequences by number; with `numbers_only` i64 `[1 + F]`, those of the video and of its frames, in the place of frames
    (`decoders/video/clips.py` decodes them)."""

    def __init__(
        self,
        reader: str,
        videos: Sequence[Listed],
        part: Callable[[Listed, Index], tuple[int, int]],
        layout: Layout,
        extras: Extras,
        in_order: bool,
        skips: bool,
        numbers_only: bool = False,
    ):
        self._videos, self.indices = _scanned(reader, videos, skips)
        self.layout, self._extras = layout, extras
        self.fill, self.ycbcr = layout.fill, layout.ycbcr
        self._parts = [part(video, index) for video, index in zip(self._videos, self.indices, strict=True)]
        starts = [_starts(layout, *ends) for ends in self._parts]
        self._first = np.concatenate([*starts, np.empty(0, np.int64)])
        self._video = np.repeat(np.arange(len(starts)), [len(s) for s in starts])
        if not len(self._first):
            raise RuntimeError(
                f"{reader}: No files found with a sequence of {layout.length} frames, {layout.stride} apart, among "
                f"{len(videos)} videos"
            )
        self.numbers_only = numbers_only
        cores = cpu_count()
        self.in_turn = in_order and not numbers_only
        self.threads = 1 if in_order and numbers_only else cores
        # The pieces of a batch are decoded concurrently by one thread each, which costs 10 to 20 % less than FFmpeg's threads. In
        # sequential reading there may be fewer pieces than threads, if videos are long and their key frames rare.
        threads = max(int(cores / self._pieces_at_once()), 1) if self.in_turn else 1
        self._open = OpenVideos(threads, _file_of)

    def _pieces_at_once(self) -> float:
        """The approximate number of pieces of `_READ_TOGETHER` sequences, at least 1."""
        keys = sum(len(index["keys"]) for index in self.indices) / sum(len(index["times"]) for index in self.indices)
        frames = _READ_TOGETHER * self.layout.length * self.layout.stride
        return max(frames * keys, _READ_TOGETHER * len(self._videos) / len(self._first), 1.0)

    def __len__(self) -> int:
        return len(self._first)

    def source(self, number: int) -> str:
        """ "walk.mp4 frame 32": the sequence's first frame."""
        return f"{self._videos[self._video[number]].path} frame {self._first[number]}"

    def records(self, numbers: Sequence[int]) -> Sequence[Record | BaseException]:
        """Several sequences; each frame of a video is decoded once."""
        jobs = self._reading(numbers)
        for job in range(jobs.count):
            jobs.run(job)
        return jobs.records()

    def jobs(self, numbers: Sequence[int]) -> Jobs | None:
        """Divides the decoding of these sequences among threads."""
        return None if self.numbers_only else self._reading(numbers)

    def _reading(self, numbers: Sequence[int]) -> _Reading:
        self._open.resume()
        videos = self._video[np.asarray(numbers, np.int64)].tolist()
        clips = [
            _Clip(number, video, self._frames(video, number)) for number, video in zip(numbers, videos, strict=True)
        ]
        return _Reading(self, clips)

    def using(self, video: int, first: int, last: int) -> AbstractContextManager[VideoFile]:
        """An open video, for the frames from `first` to `last`."""
        return self._open.using(self._videos[video].path, self.indices[video], first, last)

    def close(self) -> None:
        """Closes the videos. Batches that are decoded later open them themselves, until records are read again."""
        self._open.close()

    def end(self) -> None:
        """Closes the videos. Batches that are still to be decoded open them themselves."""
        self._open.end()

    def _frames(self, video: int, number: int) -> np.ndarray:
        """The numbers of the frames of a sequence; -1 for a frame with the fill value."""
        layout, (start, end) = self.layout, self._parts[video]
        first = int(self._first[number])
        if layout.uniform:
            return np.floor(np.linspace(start, end - 1, layout.length) + 0.5).astype(np.int64)
        wanted = first + layout.stride * np.arange(layout.length, dtype=np.int64)
        if wanted[-1] < end:
            return wanted
        return padded(wanted, end, layout.pad_mode)  # reflected frames may lie before the part, as in DALI

    def empty(self, clip: _Clip) -> np.ndarray:
        """The array for a sequence; frames beyond the video have the fill value."""
        if self.numbers_only:
            return np.concatenate([[clip.video], clip.frames])
        height, width = self.indices[clip.video]["size"].tolist()
        out = host_empty((len(clip.frames), height, width, 3), np.uint8)
        missing = clip.frames < 0
        if missing.any():
            out[missing] = self.fill
        return out

    def pieces(self, clips: Sequence[_Clip]) -> list[_Piece]:
        """The pieces that may be decoded concurrently, cut at key frames. In sequential reading there is a piece for each thread,
        if there are enough key frames; otherwise there is a cut wherever the decoder can skip frames between two requested ones."""
        pieces: list[_Piece] = []
        together = self._in_order(clips)
        share = sum(len(clip.frames) for clip in clips) / self.threads / 2
        for of_one in together:
            frames: dict[int, list[tuple[_Clip, int]]] = {}
            for clip in of_one:
                for place, frame in enumerate(clip.frames.tolist()):
                    if frame >= 0:
                        frames.setdefault(frame, []).append((clip, place))
            every = sorted(frames)
            cuts = self._cuts(of_one[0].video, every, share)
            for begin, end in pairwise(cuts):
                # In random order a later piece may continue from here, and draining the decoder gains nothing.
                ends = self.in_turn and end < len(every)
                pieces.append(_Piece(of_one[0].video, {frame: frames[frame] for frame in every[begin:end]}, ends))
        return pieces

    def _cuts(self, video: int, frames: list[int], share: float) -> list[int]:
        """Where pieces begin in `frames`, and its length."""
        keys, cuts = self.indices[video]["keys"].tolist(), [0]
        for place in range(1, len(frames)):
            key, before = key_before(keys, frames[place]), frames[place - 1]
            if (key > before and place - cuts[-1] >= share) if self.in_turn else key > before + 1:
                cuts.append(place)
        return [*cuts, len(frames)] if frames else []

    def _in_order(self, clips: Sequence[_Clip]) -> list[list[_Clip]]:
        """The sequences of each video. In sequential reading, the sequences of the next epoch form a separate group: the
        decoder starts again for them after the end of the video."""
        groups: dict[tuple[int, int], list[_Clip]] = {}
        epoch, last = 0, -1
        for clip in clips:
            if self.in_turn and clip.number <= last:
                epoch += 1
            last = clip.number
            groups.setdefault((clip.video, epoch), []).append(clip)
        return list(groups.values())

    def decode(self, piece: _Piece) -> None:
        """Writes the frames of a piece."""
        frames = list(piece.frames)
        with self.using(piece.video, frames[0], frames[-1]) as file:
            file.expect(frames, piece.ends)
            for frame in frames:
                here = [(clip, place) for clip, place in piece.frames[frame] if clip.error is None]
                if here:
                    try:
                        file.write(frame, [clip.out[place] for clip, place in here], self.ycbcr)
                    except RuntimeError as error:
                        for clip, _ in here:
                            clip.error = error

    def record_of(self, clip: _Clip) -> Record | BaseException:
        """A sequence as a record."""
        if clip.error is not None:
            return clip.error
        return clip.out, *self._more(clip.video, int(self._first[clip.number]), clip.frames)

    def _more(self, video: int, first: int, clip: np.ndarray) -> Iterator[np.ndarray]:
        if self._extras.labels:
            yield np.array([self._videos[video].label], np.int32)
        if self._extras.frame_num == "scalar":
            yield np.array([first], np.int32)
        elif self._extras.frame_num == "sequence":
            yield clip.astype(np.int32)
        if self._extras.timestamps:
            index = self.indices[video]
            numerator, denominator = index["time_base"].tolist()
            after_first = index["times"][clip] - index["times"][0]
            yield np.where(clip < 0, -1.0, after_first * (numerator / denominator))


def _file_of(path: str) -> str | np.ndarray:
    """The input of FFmpeg: a path, or the bytes of a remote file."""
    return np.frombuffer(whole_file(path), np.uint8) if is_remote(path) else path


def _starts(layout: Layout, start: int, end: int) -> np.ndarray:
    """Where the sequences of a part begin."""
    if layout.uniform:
        return np.arange(start, min(start + 1, end), dtype=np.int64)
    taken = layout.length * layout.stride if layout.whole_strides else (layout.length - 1) * layout.stride + 1
    full = np.arange(start, max(end - taken + 1, start), layout.step, dtype=np.int64)
    every = np.arange(start, max(end, start), layout.step, dtype=np.int64)
    if layout.pad_mode == "none":
        return full
    return every[: len(full) + 1] if layout.whole_strides else every


_COLUMNS = {
    "times": "int64 n", "decode_times": "int64 n", "keys": "int64 k", "marks": "int64 n", "time_base": "int64 2",
    "size": "int64 2", "untimed": "bool 1", "picture": "int64 4", "codec": "uint8 c", "extradata": "uint8 e",
    "packets": "int64 p 3", "sent": "int64 s",
}  # fmt: skip
_MOST = np.iinfo(np.int64).max


def _is_of(index: Index, size: int) -> bool:
    """Whether `index` is plausible for a video of `size` bytes."""
    if not has_columns(index, **_COLUMNS):
        return False
    frames, packets, (height, width) = len(index["times"]), index["packets"], index["size"].tolist()
    ascending = [bool((values[:-1] < values[1:]).all()) for values in (index["times"], index["keys"])]
    return (
        0 < frames <= size
        and all(ascending)
        and all_within(index["keys"], 0, frames - 1)
        and all_within(index["time_base"], 1, _MOST)
        and min(height, width) > 0
        and height * width <= get_max_pixels()
        and index["codec"].tobytes().isascii()
        and all_inside(packets[:, 0], packets[:, 1], size)
        and len(index["sent"]) == (frames if len(packets) else 0)
        and all_within(index["sent"], 0, len(packets) - 1)
    )


def _scanned(reader: str, videos: Sequence[Listed], skips: bool) -> tuple[list[Listed], list[Index]]:
    """The readable videos and their indices. Several files are scanned at a time, each once."""

    def index_of(path: str) -> Index | Exception:
        try:
            if is_remote(path):
                return scan(_file_of(path))
            return cached(path, "video", 6, lambda: scan(path), _WORTH_KEEPING, _is_of)
        except (OSError, RuntimeError, ValueError) as error:
            return error

    paths = list(dict.fromkeys(video.path for video in videos))
    with ThreadPoolExecutor(_SCANS_AT_ONCE, "ndd-video-index") as pool:
        scanned = dict(zip(paths, pool.map(index_of, paths), strict=True))
    bad = {path: index for path, index in scanned.items() if isinstance(index, Exception)}
    if bad:
        first = next((path for path, error in bad.items() if is_no_fault_of_data(error)), next(iter(bad)))
        reason = without_secrets(f"{first}: {bad[first]}")
        if not skips or is_no_fault_of_data(bad[first]):
            raise RuntimeError(f"{reader}: {reason}") from bad[first]
        warn_user(f"{reader}: {len(bad)} files are skipped, the first is {reason}")
    good = [video for video in videos if not isinstance(scanned[video.path], Exception)]
    return good, [scanned[video.path] for video in good]  # type: ignore[misc]
