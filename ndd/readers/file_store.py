"""Whole files as records: reading many at once into shared, pooled memory."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from ndd._tensor.memory import host_empty
from ndd.readers.records import Record, RecordStore

_OPEN_AT_ONCE = 32  # files opened before the first is read, so that they share one buffer
_ALIGNMENT = 64
_READ_ONLY = os.O_RDONLY | getattr(os, "O_BINARY", 0)


class FileStore(RecordStore):
    """Files by number: a folder and a name each, and a label."""

    def __init__(self, folders: list[str], names: list[str], places: np.ndarray | None, labels: np.ndarray):
        self._folders = folders
        self._names = names
        self._places = np.zeros(len(names), np.int32) if places is None else places
        self._labels = labels.reshape(-1, 1)

    def __len__(self) -> int:
        return len(self._names)

    def source(self, number: int) -> str:
        """The path."""
        return os.path.join(self._folders[self._places[number]], self._names[number])

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
    opened: list[tuple[int, int] | OSError] = []
    total = 0
    for path in paths:
        try:
            handle = os.open(path, _READ_ONLY)
            size = os.fstat(handle).st_size
            opened.append((handle, size))
            total += -(-size // _ALIGNMENT) * _ALIGNMENT
        except OSError as error:
            opened.append(error)
    buffer = host_empty(total, np.uint8)
    found: list[np.ndarray | Exception] = []
    start = 0
    for entry in opened:
        if isinstance(entry, OSError):
            found.append(entry)
            continue
        handle, size = entry
        try:
            found.append(_filled(handle, buffer[start : start + size]))
        except OSError as error:
            found.append(error)
        finally:
            os.close(handle)
        start += -(-size // _ALIGNMENT) * _ALIGNMENT
    return found


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
