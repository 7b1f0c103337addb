"""`SeekableFile`: a file or object for libraries that need a Python file object."""

from __future__ import annotations

import bisect
import io
from collections.abc import Sequence
from typing import Any

from ndd.io.object_store import Status
from ndd.readers.files.file_reading import OpenFiles, RegularFile

_GAP = 1 << 16  # bytes between two ranges that are read as one


class SeekableFile(io.RawIOBase):
    """A file or object that can be read and sought like a Python file object. Some ranges are read at once, in large requests
    that
    run side by side; others when they are asked for. ValueError for ranges beyond the end."""

    def __init__(self, path: str, offsets: Sequence[int] = (), sizes: Sequence[int] = (), known: Status | None = None):
        super().__init__()
        self.name, self._at, self._file = path, 0, RegularFile(path, known)
        if any(offset < 0 or offset > self._file.size - size for offset, size in zip(offsets, sizes, strict=True)):
            raise ValueError(f"a column lies beyond the {self._file.size} bytes of the file: is it cut off?")
        ranges = _joined(offsets, sizes)
        self._starts = [start for start, _ in ranges]
        self._parts: list[Any] = []
        if ranges:
            with OpenFiles([path], known and [known]) as files:
                self._parts = files.read([0] * len(ranges), self._starts, [end - start for start, end in ranges])
        for part in self._parts:
            if isinstance(part, Exception):
                raise part

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def size(self) -> int:
        """In bytes."""
        return self._file.size

    def tell(self) -> int:
        """The place that is read next."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Goes to a place."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size}[whence]
        if self._at < 0:
            raise ValueError("expected a place within the file, got one before its beginning")
        return self._at

    def read(self, size: int = -1) -> Any:
        """Bytes from the place on; fewer where the file ends. What was read at the beginning is not copied: a view."""
        left = max(self._file.size - self._at, 0)
        size = left if size < 0 else min(size, left)
        pieces: list[Any] = []
        while size > 0:
            piece = self._piece(size)
            if not len(piece):
                break
            pieces.append(piece)
            self._at, size = self._at + len(piece), size - len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _piece(self, size: int) -> Any:
        """Bytes from here on, at most `size`."""
        number = bisect.bisect_right(self._starts, self._at) - 1
        if number >= 0:
            inside = self._at - self._starts[number]
            if inside < len(self._parts[number]):
                return memoryview(self._parts[number])[inside : inside + size]
        following = self._starts[number + 1] if number + 1 < len(self._starts) else self._at + size
        return self._file.read(self._at, min(size, following - self._at))

    def part(self, offset: int, size: int) -> Any:
        """A range that was read at the beginning, as a view: u8."""
        number = bisect.bisect_right(self._starts, offset) - 1
        begin = offset - self._starts[number]
        return self._parts[number][begin : begin + size]

    def close(self) -> None:
        """Closes the file."""
        if not self.closed:
            self._file.__exit__()
        super().close()


def _joined(offsets: Sequence[int], sizes: Sequence[int]) -> list[tuple[int, int]]:
    """The starts and ends of ranges that are close together, ascending."""
    joined: list[tuple[int, int]] = []
    for offset, size in sorted(zip(offsets, sizes, strict=True)):
        if joined and offset - joined[-1][1] <= _GAP:
            joined[-1] = joined[-1][0], max(joined[-1][1], offset + size)
        elif size:
            joined.append((offset, offset + size))
    return joined
