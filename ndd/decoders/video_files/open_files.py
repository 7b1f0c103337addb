"""Videos that stay open while they are read, and their decoders."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from ndd.decoders.video_files.file import VideoFile
from ndd.decoders.video_files.index import Index, key_before

_KEPT_OPEN = 16  # videos, or as many as were in use at the same time; each holds a decoder with some frames


class _Opened:
    """One open video: who uses it, and where its decoder will be."""

    def __init__(self, name: str, until: int):
        self.name, self.until, self.busy = name, until, True
        self.file: VideoFile | None = None
        self.last = False  # to be closed by who uses it now


class OpenVideos:
    """Open videos, each used by one thread at a time.

    A thread that wants frames gets, of the decoders of the video, the one that needs to decode least: one that stands
    at or before the first frame, after the key frame from which it would otherwise be decoded. If such a one is in use
    it is waited for, because it passes by anyway: so several threads read a video in sequence as fast as one decoder can. Not
    so if most of the way is still to be gone then.

    Args:
        threads: how many threads of FFmpeg a decoder has.
        file_of: for the name of a video its path, or its bytes, u8.
    """

    def __init__(self, threads: int, file_of: Callable[[str], str | np.ndarray]):
        self._threads, self._file_of = threads, file_of
        self._keeps, self._ended = True, False
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._opened: list[_Opened] = []  # the least recently used is the first
        self._limit = _KEPT_OPEN

    @contextmanager
    def using(self, name: str, index: Index, first: int, last: int) -> Iterator[VideoFile]:
        """The video, for these frames."""
        if os.getpid() != self._process:  # a forked child: the threads of FFmpeg do not exist here
            self._start()
        mine = self._taken(name, key_before(index["keys"], first), first, last + 1)
        try:
            if mine.file is None:
                mine.file = VideoFile(self._file_of(name), self._threads, index)
            yield mine.file
        except BaseException:
            if mine.file is None:
                with self._changed:
                    if not mine.last:
                        self._opened.remove(mine)
            raise
        finally:
            with self._changed:
                mine.busy = False
                if mine.file is not None:
                    mine.until = mine.file.position
                self._changed.notify_all()
            if mine.last and mine.file is not None:
                mine.file.close()

    def end(self) -> None:
        """Close for ever, whatever `resume` says."""
        if os.getpid() == self._process:
            self._ended = True
            self.close()

    def resume(self) -> None:
        """Keep videos open again."""
        self._keeps = not self._ended

    def close(self) -> None:
        """Close what nobody uses, and what is in use as soon as it no longer is. Lookahead may be at work, and batches not yet
        decoded: until `resume`, what they ask for is opened for this alone."""
        with self._changed:
            self._keeps = False
            gone = [one for one in self._opened if not one.busy]
            for one in self._opened:
                one.last = one.busy
            self._opened = []
        for one in gone:
            if one.file is not None:
                one.file.close()

    def __del__(self) -> None:
        self.end()

    def _taken(self, name: str, key: int, first: int, until: int) -> _Opened:
        old = None
        with self._changed:
            while True:
                same = [one for one in self._opened if one.name == name]
                idle = [one for one in same if not one.busy and key <= one.until <= first]
                # One that will only come to the key frame saves nothing.
                if idle or not any(key < one.until <= first < 2 * one.until - key for one in same):
                    break
                self._changed.wait()
            free = [one for one in same if not one.busy]
            if idle:
                mine = max(idle, key=lambda one: one.until)
            elif free:
                mine = free[0]
            else:
                mine = _Opened(name, until)
                unused = next((one for one in self._opened if not one.busy), None)
                self._limit = max(self._limit, sum(one.busy for one in self._opened) + 1)
                if len(self._opened) >= self._limit and unused is not None:
                    old = unused
                    self._opened.remove(old)
                self._opened.append(mine)
            mine.busy, mine.until = True, until
            self._opened.remove(mine)
            if not self._keeps:
                mine.last = True
            else:
                self._opened.append(mine)
        if old is not None and old.file is not None:
            old.file.close()
        return mine
