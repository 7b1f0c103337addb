"""Random access to files that gzip or zlib has compressed as a whole, without all of the content in memory or on disk.

Deflate can only be read from its beginning. So the state of the decompressor (40 kB) is saved now and then: reading starts at
the last saved state before the requested offset, or where the previous read ended. Records in order are decompressed once.
"""

from __future__ import annotations

import errno
import threading
import zlib
from bisect import bisect_right
from typing import Any, NamedTuple

import numpy as np

from ndd._tensor.memory import host_empty
from ndd.readers.files.file_reading import RegularFile

_STEP = 1 << 18  # bytes that are decompressed at once
_PACKED_STEP = 1 << 16  # bytes of the file that are read for that
_EVERY = 1 << 20  # bytes between two saved states, at first
_MOST_STATES = 256  # with more, every second state is dropped
_LARGEST = 1 << 31  # the most bytes of one read: protobuf has no larger messages, and compressed zeros take no room
_EITHER = 32 + zlib.MAX_WBITS  # tells zlib to detect a gzip or zlib header
UNKNOWN = 1 << 62  # the size of content that was not decompressed to its end yet


def is_packed(head: bytes) -> bool:
    """Whether a file with these first bytes was compressed by gzip or zlib."""
    return head[:3] == b"\x1f\x8b\x08" or head[:2] in (b"x\x01", b"x\x5e", b"x\x9c", b"x\xda")


class _State(NamedTuple):
    """A saved state of the decompressor."""

    place: int
    """In the content."""
    packed: int
    """In the file."""
    engine: Any
    """The decompressor."""


class GzipFile:
    """The content of a compressed file. Threads may share it; one reads at a time.

    Attributes:
        size: the size of the content in bytes; `UNKNOWN` until its end has been reached.
        packed_size: the size of the file.
    """

    def __init__(self, path: str):
        self.path, self.size = path, UNKNOWN
        self._file = RegularFile(path)
        self.packed_size = self._file.size
        self._lock = threading.Lock()
        self._every = _EVERY
        self._states = [_State(0, 0, zlib.decompressobj(_EITHER))]  # ascending; copies of their engines are used
        self._begin(self._states[0])

    def _begin(self, state: _State) -> None:
        self._place, self._packed, self._engine = state.place, state.packed, state.engine.copy()
        self._waiting = b""  # bytes that were read and are not decompressed yet
        self._ready = b""  # content from `_place` on that was not requested yet

    @property
    def consumed(self) -> int:
        """The approximate number of bytes of the file that have been decompressed."""
        return self._packed

    def read(self, offset: int, size: int) -> bytes:
        """`size` bytes at `offset` of the content, fewer at its end. OSError for a file that is cut off or damaged."""
        with self._lock:
            self._go_to(offset)
            parts: list[bytes] = []
            while size > 0 and self._place == offset and self._more():
                parts.append(self._ready[:size])
                self._drop(len(parts[-1]))
                offset, size = offset + len(parts[-1]), size - len(parts[-1])
            return b"".join(parts)

    def _go_to(self, offset: int) -> None:
        """Decompresses up to an offset, from the nearest saved state."""
        best = self._states[max(bisect_right(self._states, offset, key=lambda state: state.place) - 1, 0)]
        if offset < self._place or best.place > self._place + len(self._ready):
            self._begin(best)
        while self._place < min(offset, self.size) and self._more():
            self._drop(min(offset - self._place, len(self._ready)))

    def _drop(self, count: int) -> None:
        self._place, self._ready = self._place + count, self._ready[count:]

    def _more(self) -> bool:
        """Decompresses one step; False at the end."""
        while not self._ready:
            if not self._waiting:
                self._waiting = self._file.read(self._packed, _PACKED_STEP)
                self._packed += len(self._waiting)
            ended = not self._waiting
            if self._engine.eof:
                self._waiting = self._waiting.lstrip(b"\0")
                if ended:
                    self.size = self._place
                    return False
                if self._waiting:  # files of gzip may follow each other
                    self._engine = zlib.decompressobj(_EITHER)
                continue
            if ended:
                raise OSError(errno.EIO, "The compressed file ends too early", self.path)
            self._keep_state()
            try:
                self._ready = self._engine.decompress(self._waiting, _STEP)
            except zlib.error as error:
                raise OSError(errno.EIO, f"The compressed file is damaged ({error})", self.path) from None
            self._waiting = self._engine.unused_data if self._engine.eof else self._engine.unconsumed_tail
        return True

    def _keep_state(self) -> None:
        """Saves the state if the last saved one is far behind."""
        if self._place < self._states[-1].place + self._every:
            return
        self._states.append(_State(self._place, self._packed - len(self._waiting), self._engine.copy()))
        if len(self._states) > _MOST_STATES:
            self._states, self._every = self._states[::2], 2 * self._every

    def read_packed(self, numbers: Any, offsets: Any, sizes: Any) -> tuple[np.ndarray, np.ndarray, dict[int, OSError]]:
        """As `OpenFiles.read_packed` of the content; `numbers` are zeros."""
        pieces: dict[int, bytes] = {}
        errors: dict[int, OSError] = {}
        for place in np.argsort(offsets, kind="stable").tolist():
            offset, size = int(offsets[place]), int(sizes[place])
            try:
                if size > _LARGEST:
                    raise OSError(
                        errno.EFBIG, f"A compressed record of {size} bytes is larger than any can be", self.path
                    )
                pieces[place] = self.read(offset, size)
                if len(pieces[place]) < size:
                    text = f"The content ends too early (expected {size} bytes at {offset}, got {len(pieces[place])})"
                    raise OSError(errno.EIO, text, self.path)
            except OSError as error:
                pieces[place], errors[place] = b"", error
        rooms = np.array([len(pieces[place]) for place in range(len(pieces))], np.int64)
        starts = np.add.accumulate(rooms) - rooms
        buffer = host_empty(int(rooms.sum()), np.uint8)
        for place, start in enumerate(starts.tolist()):
            buffer[start : start + len(pieces[place])] = np.frombuffer(pieces[place], np.uint8)
        return buffer, starts, errors

    def close(self) -> None:
        """Closes the file. No thread may be reading from it."""
        self._file.__exit__()

    def __enter__(self) -> GzipFile:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
