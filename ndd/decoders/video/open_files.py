"""Videos that stay open between reads, and their decoders."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from ndd.decoders.video.file import VideoFile
from ndd.decoders.video.index import Index, key_before

_KEPT_OPEN = 16  # videos, or the most that were in use at once; each holds a decoder with some frames


class _Opened:
    """One open video: whether it is in use, and where its decoder will stand."""

    def __init__(self, name: str, until: int):
        self.name, self.until, self.busy = name, until, True
        self.file: VideoFile | None = None
        self.last = False  # the current user closes it


class OpenVideos:
    """Open videos, each used by one thread at a time.

    A thread gets the decoder of the video that has the fewest frames to decode: one at or before the first requested frame, but
    after the key frame at which a new decoder would begin. If such a decoder is in use, the thread waits for it, so several
    threads read a video in sequence as fast as one decoder can. It does not wait if that would save less than half of the way from
    the key frame.

    Args:
        threads: the number of FFmpeg's threads for each decoder.
        file_of: returns the path of a video by its name, or its bytes, u8.
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
        """The open video, for these frames."""
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
        """Closes all videos permanently: `resume` has no effect any more."""
        if os.getpid() == self._process:
            self._ended = True
            self.close()

    def resume(self) -> None:
        """Allows videos to stay open again."""
        self._keeps = not self._ended

    def close(self) -> None:
        """Closes the idle videos now, and those in use as soon as they are idle. Lookahead and pending batches may still use
        videos: until `resume` these are opened for one use each."""
        with self._changed:
            self._keeps = False
            idle = [video for video in self._opened if not video.busy]
            for video in self._opened:
                video.last = video.busy
            self._opened = []
        for video in idle:
            if video.file is not None:
                video.file.close()

    def __del__(self) -> None:
        self.end()

    def _taken(self, name: str, key: int, first: int, until: int) -> _Opened:
        old = None
        with self._changed:
            while True:
                same = [video for video in self._opened if video.name == name]
                idle = [video for video in same if not video.busy and key <= video.until <= first]
                # A decoder at the key frame saves nothing.
                if idle or not any(key < video.until <= first < 2 * video.until - key for video in same):
                    break
                self._changed.wait()
            free = [video for video in same if not video.busy]
            if idle:
                mine = max(idle, key=lambda video: video.until)
            elif free:
                mine = free[0]
            else:
                mine = _Opened(name, until)
                unused = next((video for video in self._opened if not video.busy), None)
                self._limit = max(self._limit, sum(video.busy for video in self._opened) + 1)
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
