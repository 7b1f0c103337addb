"""`ObjectCache`: a folder that keeps parts of objects, up to a size; shared by any number of processes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import time
from pathlib import Path

import numpy as np

from ndd._execution.cache_folders import others_who_write
from ndd._tensor.memory import host_empty
from ndd.atomic_file import SUFFIX, atomic_file

_LOW = 0.9  # of the limit: the size after files have been removed
_LOOK = 0.05  # of the limit: after writing this much the folder is measured again, because other processes write too
_ABANDONED = 3600.0  # seconds after which an unfinished file belongs to a process that died
_PAUSE = 60.0  # seconds without writing after the disk was full


class ObjectCache:
    """Files named by their content. The least recently used files are removed first.

    A file is complete or missing, and is read only if no other user (except root) can have written it. After a failure the
    object is read again; it is never an error.
    """

    def __init__(self, folder: str, limit: int):
        self._folder = Path(folder)
        self._limit = limit
        self._lock = threading.Lock()
        self._unseen = limit + 1  # bytes written since the folder was measured; at first: all
        self._silent_until = 0.0

    def get(self, key: str, target: np.ndarray | None = None) -> np.ndarray | None:
        """The data under this key, in `target` if there is one, or None."""
        path = self._path(key)
        try:
            with open(path, "rb", buffering=0) as file:
                status = os.fstat(file.fileno())
                if others_who_write(status):
                    return None
                data = host_empty(status.st_size, np.uint8) if target is None else target
                if len(data) != status.st_size:
                    return None
                done = 0
                while done < len(data):
                    count = file.readinto(data[done:].data)
                    if not count:
                        return None
                    done += count
            os.utime(path)
        except OSError:
            return None
        return data

    def put(self, key: str, data: np.ndarray) -> None:
        """Stores data if there is room."""
        if data.nbytes > self._limit or time.monotonic() < self._silent_until:
            return
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with atomic_file(path, private=True) as file:
                file.write(data.data)
        except OSError:
            self._silent_until = time.monotonic() + _PAUSE
        with self._lock:
            self._unseen += data.nbytes
            if self._unseen > _LOOK * self._limit:
                self._unseen = 0
                self._trim()

    def _path(self, key: str) -> Path:
        name = hashlib.sha256(key.encode(errors="surrogateescape")).hexdigest()
        return self._folder / name[:2] / name[2:]

    def _trim(self) -> None:
        """Removes the least recently used files if the folder is too large."""
        files: list[tuple[float, int, str]] = []
        total = 0
        for path in self._folder.glob("??/*"):
            with contextlib.suppress(OSError):  # another process has removed it
                status = path.stat()
                if path.suffix == SUFFIX and time.time() - status.st_mtime > _ABANDONED:
                    path.unlink()
                    continue
                total += status.st_size
                if path.suffix != SUFFIX:
                    files.append((status.st_mtime, status.st_size, str(path)))
        if total <= self._limit * (1 - _LOOK):
            return
        for _, size, path in sorted(files):
            if total <= self._limit * _LOW:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
            total -= size
