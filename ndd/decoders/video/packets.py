"""The packets of a video, several at a time, and their places in the file.

FFmpeg returns packets one by one, and PyAV releases the GIL for each. With decoders of a GPU's engines on several threads, that
takes most of the time of a small frame. In an MP4 file packets are plain bytes, so several are read at once, from the places in the
index.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

_OF_PLAIN_BYTES = "mov,mp4,m4a,3gp,3g2,mj2"  # FFmpeg's name of the container
_GAP = 1 << 16  # a smaller gap between packets (sound) is read together with them


class Packets(NamedTuple):
    """Packets in the order of decoding.

    Attributes:
        data: their bytes, one after the other.
        sizes: in bytes, i64 `[N]`.
        times: when their frames are shown, i64 `[N]`.
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
        """The contents of PyAV's packets."""
        parts = [bytes(packet) for packet in packets]
        sizes = np.array([len(part) for part in parts], np.int64)
        return cls(b"".join(parts), sizes, np.array([packet.pts for packet in packets], np.int64))


class Places:
    """Records the places of the packets of a file, while FFmpeg returns them in the order of decoding.

    Args:
        source: a path, or the bytes of a file, u8.
        kind: FFmpeg's name of the container.
    """

    def __init__(self, source: str | np.ndarray, kind: str):
        self._file: PlainFile | None = None
        self._rows: list[tuple[int, int, int]] = []
        if kind == _OF_PLAIN_BYTES:
            with contextlib.suppress(OSError):
                self._file = PlainFile(source)

    def note(self, packet: Any) -> None:
        """Records PyAV's next packet. The first packets, and fewer and fewer of the later ones, are compared with the file: in an
        encrypted container, or for a codec whose packets FFmpeg rebuilds, they differ from the beginning."""
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

    def table(self) -> np.ndarray:
        """Place, size and time of each packet, i64 `[N, 3]`; no rows if the packets are not plain bytes of the file."""
        rows = self._rows if self._file is not None else []
        self._end()
        return np.array(rows, np.int64).reshape(-1, 3)

    def _end(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None


def rows_of(packets: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The row of `packets` that has each time, i64."""
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
        """Reads bytes; fewer at the end of the file."""
        if self._bytes is not None:
            return self._bytes[place : place + size].tobytes()
        if self._file is None:
            raise ValueError("the file is closed")
        if hasattr(os, "pread"):
            return os.pread(self._file, size, place)
        os.lseek(self._file, place, os.SEEK_SET)  # Windows
        return os.read(self._file, size)

    def packets(self, rows: np.ndarray) -> Packets:
        """Reads packets, by rows of `Places.table`. Raises RuntimeError if the file has changed."""
        if not len(rows):
            return Packets.none()
        begins, sizes = rows[:, 0], rows[:, 1]
        ends = begins + sizes
        gaps = begins[1:] - ends[:-1]
        cuts = np.flatnonzero((gaps < 0) | (gaps > _GAP)) + 1
        parts = []
        for run in np.split(np.arange(len(rows)), cuts):
            start = int(begins[run[0]])
            content = self.read(start, int(ends[run[-1]]) - start)
            if len(content) < int(ends[run[-1]]) - start:
                raise RuntimeError("the file has become shorter")
            if gaps[run[:-1]].any():
                parts += [
                    content[b - start : e - start]
                    for b, e in zip(begins[run].tolist(), ends[run].tolist(), strict=True)
                ]
            else:
                parts.append(content)
        return Packets(b"".join(parts), sizes, rows[:, 2])

    def close(self) -> None:
        """Closes it."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def __del__(self) -> None:
        self.close()
