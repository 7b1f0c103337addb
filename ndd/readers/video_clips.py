"""Sequences of frames as records: where each begins, and decoding those that are asked for together.

A video is indexed once (`index_cache.py` keeps the index) and stays open while it is read. The frames of sequences that are
asked for together are decoded in the order of the file, each once, however often sequences overlap.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import NamedTuple

import numpy as np

from ndd._execution.errors import is_no_fault_of_data
from ndd._tensor.memory import host_empty
from ndd.decoders._open_videos import OpenVideos
from ndd.decoders._video_file import Index, VideoFile, scan
from ndd.decoders._video_frames import padded
from ndd.io.object_store import is_remote
from ndd.readers.file_reading import whole_file
from ndd.readers.index_cache import cached
from ndd.readers.output import Record
from ndd.readers.records import RecordStore
from ndd.readers.video_list import Listed

_WORTH_KEEPING = 1 << 18  # bytes of a video: smaller ones are indexed in less time than a file takes to find and check
_SCANS_AT_ONCE = 8


class Layout(NamedTuple):
    """What makes a sequence: how many frames, how far apart, how far apart sequences begin; how what is missing is padded.
    `whole_strides`: it takes `length * stride` frames, and one sequence of a video is padded (else up to its last frame,
    and all are that begin in the video)."""

    length: int
    stride: int
    step: int
    pad_mode: str
    fill: np.ndarray
    uniform: bool = False
    ycbcr: bool = False
    whole_strides: bool = False


class Extras(NamedTuple):
    """What comes with the frames of a sequence."""

    labels: bool
    frame_num: str
    timestamps: bool


class ClipStore(RecordStore):
    """Sequences by number; with `numbers_only` i64 `[1 + F]`, those of the video and of its frames, in the place of frames
    (`decoders/_video_clips.py` decodes them)."""

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
        # In sequence one decoder does all the work; otherwise the threads that read ahead have one each.
        cores = os.cpu_count() or 1
        self.threads = 1 if in_order else cores
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
        self._numbers_only = numbers_only
        self._open = OpenVideos(cores if in_order and not numbers_only else 1, _file_of)

    def __len__(self) -> int:
        return len(self._first)

    def source(self, number: int) -> str:
        """ "walk.mp4 frame 32": the sequence's first frame."""
        return f"{self._videos[self._video[number]].path} frame {self._first[number]}"

    def record(self, number: int) -> Record:
        """One sequence."""
        found = self.records([number])[0]
        if isinstance(found, Exception):
            raise found
        return found

    def records(self, numbers: Sequence[int]) -> list[Record | Exception]:
        """Several sequences, those of one video in one go."""
        self._open.resume()
        listed = np.asarray(numbers, np.int64)
        found: list[Record | Exception] = [IndexError("not read")] * len(numbers)
        videos = self._video[listed]
        for video in np.unique(videos).tolist():
            places = np.flatnonzero(videos == video).tolist()
            try:
                read = self._read(video, listed[places])
            except Exception as error:
                read = [error] * len(places)
            for place, record in zip(places, read, strict=True):
                found[place] = record
        return found

    def using(self, video: int, first: int, last: int) -> AbstractContextManager[VideoFile]:
        """A video, open, for these frames."""
        return self._open.using(self._videos[video].path, self.indices[video], first, last)

    def close(self) -> None:
        """Close the videos; batches that are decoded later open them for this alone, until records are read again."""
        self._open.close()

    def end(self) -> None:
        """Close the videos; what is still decoded opens them for this alone."""
        self._open.end()

    def _frames(self, video: int, number: int) -> np.ndarray:
        """The numbers of the frames of a sequence; -1 for one that is filled."""
        layout, (start, end) = self.layout, self._parts[video]
        first = int(self._first[number])
        if layout.uniform:
            return np.floor(np.linspace(start, end - 1, layout.length) + 0.5).astype(np.int64)
        wanted = first + layout.stride * np.arange(layout.length, dtype=np.int64)
        if wanted[-1] < end:
            return wanted
        return padded(wanted, end, layout.pad_mode)  # a mirror may show what is before the part, as in DALI

    def _read(self, video: int, numbers: np.ndarray) -> list[Record | Exception]:
        index = self.indices[video]
        height, width = index["size"].tolist()
        clips = [self._frames(video, number) for number in numbers.tolist()]
        if self._numbers_only:
            rows = [np.concatenate([[video], clip]) for clip in clips]
            return [self._record(video, number, *each) for number, *each in zip(numbers, rows, clips, strict=True)]
        outs = [host_empty((len(clip), height, width, 3), np.uint8) for clip in clips]
        places: dict[int, list[tuple[int, np.ndarray]]] = {}
        for k, (clip, out) in enumerate(zip(clips, outs, strict=True)):
            for place, frame in enumerate(clip.tolist()):
                if frame < 0:
                    out[place] = self.fill
                else:
                    places.setdefault(frame, []).append((k, out[place]))
        failed: dict[int, Exception] = {}
        wanted = sorted(places)
        if wanted:
            with self.using(video, wanted[0], wanted[-1]) as file:
                file.expect(wanted)
                for frame in wanted:
                    here = [(k, place) for k, place in places[frame] if k not in failed]
                    if here:
                        try:
                            file.write(frame, [place for _, place in here], self.ycbcr)
                        except RuntimeError as error:
                            failed.update(dict.fromkeys([k for k, _ in here], error))
        return [
            failed[k] if k in failed else self._record(video, *each)
            for k, each in enumerate(zip(numbers, outs, clips, strict=True))
        ]

    def _record(self, video: int, number: int, frames: np.ndarray, clip: np.ndarray) -> Record:
        return frames, *self._more(video, int(self._first[number]), clip)

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
    """What FFmpeg opens: a path, or the bytes of a remote file."""
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


def _scanned(reader: str, videos: Sequence[Listed], skips: bool) -> tuple[list[Listed], list[Index]]:
    """The videos that can be read, and their indices; several files at a time, each once."""

    def one(path: str) -> Index | Exception:
        try:
            if is_remote(path):
                return scan(_file_of(path))
            return cached(path, "video", 5, lambda: scan(path), _WORTH_KEEPING)
        except (OSError, RuntimeError, ValueError) as error:
            return error

    paths = list(dict.fromkeys(video.path for video in videos))
    with ThreadPoolExecutor(_SCANS_AT_ONCE, "ndd-video-index") as pool:
        found = dict(zip(paths, pool.map(one, paths), strict=True))
    bad = {path: one for path, one in found.items() if isinstance(one, Exception)}
    if bad:
        first = next((path for path, error in bad.items() if is_no_fault_of_data(error)), next(iter(bad)))
        said = f"{first}: {bad[first]}"
        if not skips or is_no_fault_of_data(bad[first]):
            raise RuntimeError(f"{reader}: {said}") from bad[first]
        warnings.warn(f"{reader}: {len(bad)} files are left out, the first is {said}", UserWarning, stacklevel=6)
    good = [video for video in videos if not isinstance(found[video.path], Exception)]
    return good, [found[video.path] for video in good]  # type: ignore[misc]
