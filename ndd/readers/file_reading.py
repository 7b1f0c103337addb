"""Bytes of files and of ranges of files: many in one call without the GIL, in shared pooled memory.

What cannot be read is an `OSError` in its place and harms nothing else. A file that is no regular file (a FIFO, a
device, a folder) and a file that ends too early are such errors; nothing here waits for data that does not come.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from typing import Any

import numpy as np

from ndd._cpu import files as compiled
from ndd._tensor.memory import host_empty

_ALIGNMENT = 64
_GAP = 1 << 16  # bytes between two ranges that are read through: a read call costs as much as 64 kB
_RUN = 1 << 20  # the longest read that joins ranges: 100 kB cost 18 us in reads of 1 MB, 30 us in reads of 16 MB


class OpenFiles:
    """Some files, opened together; closed with this object, which is also a context manager.

    Attributes:
        paths: as given.
        sizes: in bytes, int64; -1 for what could not be opened.
    """

    def __init__(self, paths: Sequence[str]):
        self.paths = paths
        self.handles = np.full(len(paths), -1, np.int32)
        self.sizes = np.full(len(paths), -1, np.int64)
        self._open = False
        if not compiled.AVAILABLE:
            return
        encoded = [os.fsencode(path) + b"\0" for path in paths]
        starts = np.zeros(len(paths), np.int64)
        np.cumsum([len(e) for e in encoded[:-1]], out=starts[1:])
        joined, status = np.frombuffer(b"".join(encoded), np.uint8), np.empty(compiled.STATUS_BYTES, np.uint8)
        compiled.open_files(joined, starts, compiled.OPEN_FLAGS, status, self.handles, self.sizes)
        self._open = True

    def read(self, numbers: Any, offsets: Any, sizes: Any) -> list[np.ndarray | OSError]:
        """`sizes[i]` bytes (-1: all) at `offsets[i]` of file `numbers[i]`, as views of one buffer, 64 bytes aligned."""
        numbers, offsets, sizes = (np.asarray(a, np.int64) for a in (numbers, offsets, sizes))
        buffer, places, missing = self._read(self.handles[numbers], offsets, sizes)
        found = _pieces(buffer, places, sizes)
        for place in missing:
            found[place] = read_slowly(self.paths[int(numbers[place])], int(offsets[place]), int(sizes[place]))
        return found

    def read_whole(self) -> list[np.ndarray | OSError]:
        """The bytes of each file, as views of one buffer. Closes the files."""
        buffer, places, missing = self._read(self.handles, np.zeros(len(self.paths), np.int64), self.sizes, close=True)
        found = _pieces(buffer, places, self.sizes)
        for place in missing:  # after closing the others: a process may be short of handles for all of them at once
            found[place] = read_slowly(self.paths[place])
        return found

    def _read(
        self, handles: np.ndarray, offsets: np.ndarray, sizes: np.ndarray, close: bool = False
    ) -> tuple[np.ndarray, np.ndarray, list[int]]:
        """A buffer, where in it the ranges begin, and the numbers of those that could not be read, which hold anything."""
        room = (sizes + (_ALIGNMENT - 1)) & -_ALIGNMENT  # 0 for -1
        places = np.add.accumulate(room) - room
        buffer = host_empty(int(room.sum()), np.uint8)
        if not self._open:  # no compiled reading here
            return buffer, places, list(range(len(sizes)))
        done = np.empty(len(sizes), np.int64)
        self._open = not close  # before: whatever interrupts this, no handle is closed twice
        incomplete = compiled.read_ranges(handles, offsets, sizes, places, buffer, done, close)
        return buffer, places, np.flatnonzero(done != sizes).tolist() if incomplete else []

    def read_joined(self, numbers: Any, offsets: Any, sizes: Any) -> tuple[np.ndarray, np.ndarray, dict[int, OSError]]:
        """As `read`: the buffer, where in it each range begins, and the errors of those that could not be read.

        Ranges that follow each other closely, as in sequential reading, are read in one piece and may begin anywhere.
        """
        numbers, offsets, sizes = (np.asarray(a, np.int64) for a in (numbers, offsets, sizes))
        ends = offsets + sizes
        gaps = offsets[1:] - ends[:-1]
        far = (numbers[1:] != numbers[:-1]) | (gaps < 0) | (gaps > _GAP)
        far |= ends[1:] // _RUN != ends[:-1] // _RUN  # a new piece every 1 MB
        first = np.flatnonzero(np.concatenate([[True], far]))
        run_of = np.cumsum(np.concatenate([[0], far]))
        last = np.concatenate([first[1:], [len(sizes)]]) - 1
        buffer, runs, missing = self._read(self.handles[numbers[first]], offsets[first], ends[last] - offsets[first])
        starts = runs[run_of] + offsets - offsets[first][run_of]
        failed: dict[int, OSError] = {}
        for i in np.flatnonzero(np.isin(run_of, missing)).tolist() if missing else ():
            # Perhaps only a part of the run is missing: ask for this range alone.
            piece = read_slowly(self.paths[int(numbers[i])], int(offsets[i]), int(sizes[i]))
            if isinstance(piece, OSError):
                failed[i] = piece
            else:
                buffer[starts[i] : starts[i] + sizes[i]] = piece
        return buffer, starts, failed

    def close(self) -> None:
        """Close the files. Nobody may be reading from them."""
        if not self._open:
            return
        self._open = False
        if len(self.handles) > 1:
            compiled.close_files(self.handles)
        elif self.handles[0] >= 0:
            os.close(int(self.handles[0]))
        self.handles[:] = -1

    def __del__(self) -> None:
        if os is not None:  # else the interpreter goes down, and closes them itself
            self.close()

    def __enter__(self) -> OpenFiles:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def read_files(paths: Sequence[str]) -> list[np.ndarray | OSError]:
    """The bytes of each file, as views of one buffer."""
    return OpenFiles(paths).read_whole()


def _pieces(buffer: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> list[Any]:
    return [buffer[a:b] for a, b in zip(starts.tolist(), (starts + sizes).tolist(), strict=True)]


def read_slowly(path: str, offset: int = 0, size: int = -1) -> np.ndarray | OSError:
    """One range (by default all to the end) from Python: where there is no compiled reading, and to learn what is
    wrong with a file. OSError if it is no regular file, or ends before the range does."""
    try:
        handle = os.open(path, compiled.OPEN_FLAGS)
        try:
            status = os.fstat(handle)
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "Not a regular file", path)
            target = host_empty(status.st_size - offset if size < 0 else size, np.uint8)
            done = _read_into(handle, target, offset)
        finally:
            os.close(handle)
        if done < len(target):
            wanted = f"{len(target)} bytes at {offset}" if offset else f"{len(target)} bytes"
            raise OSError(errno.EIO, f"The file ends too early (expected {wanted}, got {done})", path)
        return target
    except OSError as error:
        return error


def _read_into(handle: int, target: np.ndarray, offset: int) -> int:
    done = 0
    if not hasattr(os, "preadv"):  # Windows
        os.lseek(handle, offset, os.SEEK_SET)
    while done < len(target):
        if hasattr(os, "preadv"):
            count = os.preadv(handle, (target[done:].data,), offset + done)
        else:
            data = os.read(handle, len(target) - done)
            count = len(data)
            target[done : done + count] = np.frombuffer(data, np.uint8)
        if not count:
            break
        done += count
    return done
