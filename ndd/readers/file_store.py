"""Whole files as records: reading many at once into shared, pooled memory."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from ndd._tensor.memory import host_empty
from ndd.readers.records import Record, RecordStore

_OPEN_AT_ONCE = 32  # files opened before the first is read, so that they share one buffer
_ALIGNMENT = 64
_WITHOUT_GIL = hasattr(os, "readv")  # POSIX
_READ_ONLY = os.O_RDONLY | getattr(os, "O_BINARY", 0)


class FileStore(RecordStore):
    """Files by number: a folder and a name each, and a label."""

    def __init__(self, folders: list[str], names: list[str], places: np.ndarray | None, labels: np.ndarray):
        self._folders = [os.path.join(folder, "") for folder in folders]
        self._names = names
        self._places = np.zeros(len(names), np.int32) if places is None else places
        self._labels = labels.reshape(-1, 1)

    def __len__(self) -> int:
        return len(self._names)

    def source(self, number: int) -> str:
        """The path."""
        name = self._names[number]
        return name if os.path.isabs(name) else self._folders[self._places[number]] + name

    def record(self, number: int) -> Record:
        """(bytes, label)."""
        found = self.records([number])[0]
        if isinstance(found, Exception):
            raise found
        return found

    def records(self, numbers: Sequence[int]) -> list[Record | Exception]:
        """Several files, read into shared buffers."""
        found: list[Record | Exception] = []
        for start in range(0, len(numbers), _OPEN_AT_ONCE):
            part = numbers[start : start + _OPEN_AT_ONCE]
            contents = read_files([self.source(number) for number in part])
            for number, content in zip(part, contents, strict=True):
                found.append(content if isinstance(content, Exception) else (content, self._labels[number]))
        return found


def read_files(paths: Sequence[str]) -> list[np.ndarray | Exception]:
    """The bytes of each file, as views of one buffer; an OSError in place of what cannot be read."""
    if not _WITHOUT_GIL:
        return [_read_alone(path) for path in paths]
    from ndd._cpu.files import open_files, read_and_close

    encoded = [os.fsencode(path) + b"\0" for path in paths]
    starts = np.zeros(len(paths), np.int64)
    np.cumsum([len(e) for e in encoded[:-1]], out=starts[1:])
    handles, sizes = np.empty(len(paths), np.int32), np.empty(len(paths), np.int64)
    open_files(np.frombuffer(b"".join(encoded), np.uint8), starts, _READ_ONLY, handles, sizes)
    room = -(-sizes // _ALIGNMENT) * _ALIGNMENT
    places = np.cumsum(room) - room
    buffer, done = host_empty(int(room.sum()), np.uint8), np.full(len(paths), -1, np.int64)
    read_and_close(handles, sizes, places, buffer, done)
    return [
        buffer[place : place + count] if count >= 0 else _read_alone(path)
        for path, place, count in zip(paths, places.tolist(), done.tolist(), strict=True)
    ]


def _read_alone(path: str) -> np.ndarray | Exception:
    """One file, read from Python: where there is no `open` and `read` of POSIX, and to learn what is wrong with it."""
    try:
        handle = os.open(path, _READ_ONLY)
        try:
            return _filled(handle, host_empty(os.fstat(handle).st_size, np.uint8))
        finally:
            os.close(handle)
    except OSError as error:
        return error


def _filled(handle: int, target: np.ndarray) -> np.ndarray:
    """`target` with the file's bytes in it; shorter if the file has become shorter."""
    size = len(target)
    done = _read_into(handle, target)
    while 0 < done < size:
        more = _read_into(handle, target[done:])
        if not more:
            break
        done += more
    return target if done == size else target[:done]


if hasattr(os, "readv"):

    def _read_into(handle: int, target: np.ndarray) -> int:
        return os.readv(handle, (target.data,))

else:  # Windows

    def _read_into(handle: int, target: np.ndarray) -> int:
        data = os.read(handle, len(target))
        target[: len(data)] = np.frombuffer(data, np.uint8)
        return len(data)
