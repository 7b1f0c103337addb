"""Whole files as records."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import chain

import numpy as np

from ndd.io.object_store import connections, is_remote
from ndd.readers.files.file_reading import UsualSize, read_files
from ndd.readers.output import Record
from ndd.readers.stores.records import THREADS_OF_STORES, BatchedStore, Records

_SLASHES = ("/", "\\")  # a path is relative if it begins with neither and has no colon: `os.path` takes 0.6 us a name
_ASKED_AT_ONCE = 256  # remote objects: as many as there may be connections


class FileStore(BatchedStore):
    """Files by number: each has a folder, a name and a label. A subclass may override `read`.

    Attributes:
        classes: the names of the labels from 0 on; None for labels without names.
        usual: the known sizes of files.
    """

    classes: list[str] | None = None

    files_at_once = 64
    """The number of files that `read` gets at once. A thread waits for the interpreter between two calls. Lower it if `read` has
    them open together: a process may have 256 or 1024 open."""

    def __init__(
        self, folders: list[str], names: list[str], places: np.ndarray | None = None, labels: np.ndarray | None = None
    ):
        self._folders = [os.path.join(folder, "") for folder in folders]
        self._names = names
        self.usual = UsualSize()
        self._remote = "://" in "\0".join(chain(folders, names)) and any(map(is_remote, chain(folders, names)))
        if self._remote:
            self.at_once, self.threads = connections(), THREADS_OF_STORES
        self._places = np.zeros(len(names), np.int32) if places is None else places
        self._labels = np.zeros(len(names), np.int32) if labels is None else labels.reshape(-1)

    def __len__(self) -> int:
        return len(self._names)

    def source(self, number: int) -> str:
        """The path."""
        return self.sources([number])[0]

    def sources(self, numbers: Sequence[int]) -> list[str]:
        """The paths of several files."""
        names, folders = self._names, self._folders
        places = self._places[numbers].tolist()
        return [
            name if (name[:1] in _SLASHES or ":" in name) and self._is_whole(name) else folders[place] + name
            for name, place in zip([names[n] for n in numbers], places, strict=True)
        ]

    def _is_whole(self, name: str) -> bool:
        return os.path.isabs(name) or (self._remote and is_remote(name))

    def read(self, numbers: Sequence[int], paths: Sequence[str]) -> Records | Sequence[Record | BaseException]:
        """Some files as records of bytes and label."""
        contents, faults = read_files(paths, self.usual)
        return Records.from_columns([contents, self._labels[numbers].reshape(-1, 1)], faults)

    def records(self, numbers: Sequence[int]) -> Records:
        """Several files, read into shared buffers."""
        together = _ASKED_AT_ONCE if self._remote else self.files_at_once
        parts = [numbers[start : start + together] for start in range(0, len(numbers), together)]
        return Records.joined([Records.of(self.read(part, self.sources(part))) for part in parts])
