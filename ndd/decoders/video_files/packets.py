"""The packets of a video, several at a time, and where they stand in its file.

FFmpeg gives them one by one, and for each one PyAV lets other threads have the interpreter. With the engines of a GPU, whose
decoders are as many threads, that was most of a small frame's time. In an MP4 file a packet is bytes as they stand in the file,
so there several are read at once, from places that the index knows.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

_OF_PLAIN_BYTES = "mov,mp4,m4a,3gp,3g2,mj2"  # a container, by FFmpeg's name
_GAP = 1 << 16  # bytes between packets, of sound: fewer are read with them


class Packets(NamedTuple):
    """Packets in the order in which they are decoded.

    Attributes:
        data: one behind the other.
        sizes: i64 `[N]`.
        times: when they are shown, i64 `[N]`.
    """

    data: bytes | bytearray
    sizes: np.ndarray
    times: np.ndarray

    @classmethod
    def none(cls) -> Packets:
        """No packets."""
        return cls.of([])

    @classmethod
    def of(cls, packets: Sequence[Any]) -> Packets:
        """PyAV's packets."""
        parts = [bytes(packet) for packet in packets]
        sizes = np.array([len(part) for part in parts], np.int64)
        return cls(b"".join(parts), sizes, np.array([packet.pts for packet in packets], np.int64))


class Places:
    """Notes where the packets of a file stand, while they go by in the order in which they are decoded.

    Args:
        source: a path, or the bytes of a file, u8.
        kind: the container, by FFmpeg's name.
    """

    def __init__(self, source: str | np.ndarray, kind: str):
        self._file: PlainFile | None = None
        self._rows: list[tuple[int, int, int]] = []
        if kind == _OF_PLAIN_BYTES:
            with contextlib.suppress(OSError):
                self._file = PlainFile(source)

    def note(self, packet: Any) -> None:
        """One more packet, PyAV's. Each is compared of the first ones, later fewer and fewer: a container that is encrypted, or
        a codec whose packets FFmpeg puts together anew, is not what it seems from the beginning."""
        if self._file is None:
            return
        count, place, time = len(self._rows), packet.pos, packet.pts
        if place is None or place < 0 or time is None or not (count & (count - 1) or self._is_there(packet)):
            self._end()
            return
        self._rows.append((place, packet.size, time))

    def _is_there(self, packet: Any) -> bool:
        try:
            return self._file is not None and self._file.read(packet.pos, packet.size) == bytes(packet)
        except OSError:
            return False

    def found(self) -> np.ndarray:
        """Place, size and time of each packet, i64 `[N, 3]`; none where they are not to be had from there."""
        rows = self._rows if self._file is not None else []
        self._end()
        return np.array(rows, np.int64).reshape(-1, 3)

    def _end(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None


def rows_of(packets: np.ndarray, times: np.ndarray) -> np.ndarray:
    """For each time the row of `packets` that has it, i64."""
    if not len(packets):
        return np.zeros(0, np.int64)
    order = np.argsort(packets[:, 2], kind="stable")
    return order[np.searchsorted(packets[order, 2], times)].astype(np.int64)


class PlainFile:
    """The bytes of a file."""

    def __init__(self, source: str | np.ndarray):
        self._bytes = None if isinstance(source, str) else source
        self._file = os.open(source, os.O_RDONLY | getattr(os, "O_BINARY", 0)) if isinstance(source, str) else None

    def read(self, place: int, size: int) -> bytes:
        """Some bytes; fewer where the file ends."""
        if self._bytes is not None:
            return self._bytes[place : place + size].tobytes()
        if self._file is None:
            raise ValueError("the file is closed")
        if hasattr(os, "pread"):
            return os.pread(self._file, size, place)
        os.lseek(self._file, place, os.SEEK_SET)  # Windows
        return os.read(self._file, size)

    def packets(self, rows: np.ndarray) -> Packets:
        """Packets that stand there, by rows of `Places.found`. RuntimeError if the file is not what it was."""
        if not len(rows):
            return Packets.none()
        begins, sizes = rows[:, 0], rows[:, 1]
        ends = begins + sizes
        gaps = begins[1:] - ends[:-1]
        cuts = np.flatnonzero((gaps < 0) | (gaps > _GAP)) + 1
        parts = []
        for one in np.split(np.arange(len(rows)), cuts):
            start = int(begins[one[0]])
            found = self.read(start, int(ends[one[-1]]) - start)
            if len(found) < int(ends[one[-1]]) - start:
                raise RuntimeError("the file is shorter than it was")
            if gaps[one[:-1]].any():
                parts += [
                    found[b - start : e - start] for b, e in zip(begins[one].tolist(), ends[one].tolist(), strict=True)
                ]
            else:
                parts.append(found)
        return Packets(b"".join(parts), sizes, rows[:, 2])

    def close(self) -> None:
        """Closes it."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def __del__(self) -> None:
        self.close()
