"""FITS files of a batch, read together: several threads take a share each, and compiled code reads it to its place in memory
that all share (`ndd/readers/formats/fits_images.py`), so images of one shape are one array. Python reads the rest."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ndd._cpu import files as compiled
from ndd._tensor import Packed
from ndd._tensor.memory import host_empty
from ndd.readers.formats import fits_images as images
from ndd.readers.formats.fits_file import read_images
from ndd.readers.output import Column
from ndd.readers.stores.records import MOST_THREADS, Records

AVAILABLE = compiled.AVAILABLE and sys.byteorder == "little"

_SECONDS_OF_A_SHARE = 1e-3  # the least for one more thread, which takes 50 us to wake
# Bytes: a larger batch is not one array, since the memory pool keeps 1 GB of a size and several batches are under way.
_ONE_ARRAY = 1 << 28
_OPEN_AT_ONCE = 32  # by Python
_WIDEST = 8  # bytes of an element
_KINDS = [np.dtype(kind) for kind in images.KINDS]
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", 0) | getattr(os, "O_CLOEXEC", 0)


class FitsNames:
    """The files of a data set, and facts about those read so far, which help with the next ones.

    Args:
        folder: which `names` are relative to; "" is the current one.
        names: of all files.
        indices: the HDUs to read, from 1.

    Attributes:
        sizes: the approximate bytes of an image, for each output; exact if most are equal. 0: not known yet.
        seconds: that a file took lately.
    """

    def __init__(self, folder: str, names: Sequence[str], indices: Sequence[int]):
        self.folder, self.indices = folder, np.array(indices, np.int64)
        self.sizes = np.zeros(len(indices), np.int64)
        self.seconds = 0.0
        self._text = np.frombuffer(os.fsencode("\0".join(names)) + b"\0", np.uint8)
        self._starts = np.concatenate([[0], np.flatnonzero(self._text == 0)[:-1] + 1])
        if len(self._starts) != len(names):
            raise ValueError("a name has a zero byte")

    @classmethod
    def of(cls, folder: str, names: Sequence[str], indices: Sequence[int]) -> FitsNames | None:
        """None if compiled code cannot open files, or files of these names."""
        try:
            return cls(folder, names, indices) if AVAILABLE else None
        except ValueError:
            return None

    def share_count(self, files: int) -> int:
        """The number of threads for so many files: 1, 2 or 4."""
        wanted = min(max(int(files * self.seconds / _SECONDS_OF_A_SHARE), 1), MOST_THREADS, files)
        return 1 << wanted.bit_length() - 1

    def read(self, which: np.ndarray, rooms: np.ndarray) -> np.ndarray:
        """Reads the files with these numbers to `rooms`; the facts of `fits_images`."""
        facts = np.zeros((len(which), len(self.indices), images.FACTS), np.int64)
        try:
            folder = os.open(self.folder or os.curdir, _FOLDER)
        except (OSError, ValueError):
            return facts
        try:
            images.read_images(folder, compiled.OPEN_FLAGS, self._text, self._starts[which], self.indices, rooms, facts)
        finally:
            os.close(folder)
        return facts

    def learn(self, nbytes: np.ndarray) -> None:
        """Notes the bytes of the images of some files, `[files, outputs]`."""
        middle = np.sort(nbytes, axis=0)[len(nbytes) // 2]
        equal = (nbytes == middle).sum(axis=0) * 2 > len(nbytes)
        mean = nbytes.sum(axis=0) // len(nbytes)
        self.sizes = np.where(equal, middle, mean + mean // 8)


class FitsBatch:
    """`Jobs` of some files; see the module.

    Args:
        names: of the data set.
        numbers: of the files.
        paths: returns the paths of some of them.

    Attributes:
        count: of shares.
    """

    def __init__(self, names: FitsNames, numbers: Sequence[int], paths: Callable[[Sequence[int]], list[str]]):
        self._names, self._numbers, self._paths = names, np.asarray(numbers, np.int64), paths
        n = len(self._numbers)
        if not names.sizes.all():
            names.learn(names.read(self._numbers[:1], np.zeros((len(names.sizes), 3), np.int64))[:, :, images.BYTES])
        self._sizes = names.sizes.tolist()
        self.count = names.share_count(n)
        total = n * sum(self._sizes)
        self._apart = total > _ONE_ARRAY  # each share has buffers of its own
        if self._apart:
            self.count = min(max(self.count, MOST_THREADS * -(-total // _ONE_ARRAY)), n)
        self._edges = [n * share // self.count for share in range(self.count + 1)]
        self._which = np.zeros(n, np.int64)  # the buffer of each image
        cuts = list(pairwise(self._edges if self._apart else (0, n)))
        try:
            # Of each output.
            self._buffers = [[_room((end - first) * size) for first, end in cuts] for size in self._sizes]
        except MemoryError:  # these files may be smaller
            self._sizes = [0] * len(self._sizes)
            self._buffers = [[_room(0)] * len(cuts) for _ in self._sizes]
        for buffer, (first, end) in enumerate(cuts):
            self._which[first:end] = buffer
        self._facts = np.zeros((n, len(self._sizes), images.FACTS), np.int64)
        self._lock = threading.Lock()
        self._others: list[dict[int, Any]] = [{} for _ in range(self.count)]  # read by Python, by share

    def run(self, job: int) -> None:
        """Reads a share."""
        begun, first, end = time.perf_counter(), self._edges[job], self._edges[job + 1]
        try:
            self._read(job, first, end)
        except BaseException as error:  # also what a signal raises: `read_now` looks for it
            self._others[job] = dict.fromkeys(range(first, end), error)
        self._names.seconds = _lately(self._names.seconds, (time.perf_counter() - begun) / (end - first))

    def _read(self, job: int, first: int, end: int) -> None:
        # Of its own buffers, or of those of all.
        buffer, begin = (job, 0) if self._apart else (0, first)
        rooms = [
            (buffers[buffer].ctypes.data, begin * size, (begin + end - first) * size)
            for buffers, size in zip(self._buffers, self._sizes, strict=True)
        ]
        facts = self._names.read(self._numbers[first:end], np.array(rooms, np.int64))
        states = facts[:, :, images.STATE]
        again = np.flatnonzero((states != images.LEFT).all(axis=1) & (states == images.CROWDED).any(axis=1))
        if len(again):
            facts[again] = self._read_again(first + again, facts[again, :, images.BYTES])
        self._facts[first:end] = facts
        left = (first + np.flatnonzero((facts[:, :, images.STATE] != images.DONE).any(axis=1))).tolist()
        for start in range(0, len(left), _OPEN_AT_ONCE):
            places = left[start : start + _OPEN_AT_ONCE]
            paths = self._paths(self._numbers[places].tolist())
            self._others[job].update(zip(places, read_images(paths, self._names.indices.tolist()), strict=True))

    def _read_again(self, places: np.ndarray, nbytes: np.ndarray) -> np.ndarray:
        """Reads the files that lacked room; their sizes, `[files, outputs]`, are known now."""
        new = [_room(int(total)) for total in (nbytes + _WIDEST).sum(axis=0)]
        rooms = np.array([(buffer.ctypes.data, 0, buffer.nbytes) for buffer in new], np.int64)
        facts = self._names.read(self._numbers[places], rooms)
        with self._lock:
            for buffers, buffer in zip(self._buffers, new, strict=True):
                buffers.append(buffer)
            self._which[places] = len(self._buffers[0]) - 1
        return facts

    def records(self) -> Records:
        """The images that were read."""
        n = len(self._numbers)
        others = {place: outcome for share in self._others for place, outcome in share.items()}
        faults = {place: outcome for place, outcome in others.items() if isinstance(outcome, BaseException)}
        if len(others) < n:
            places = [place for place in range(n) if place not in others] if others else slice(None)
            facts = self._facts[places]
            self._names.learn(facts[:, :, images.BYTES])
            columns = [self._column(k, facts[:, k], self._which[places]) for k in range(len(self._sizes))]
            if len(faults) == len(others) and all(column is not None for column in columns):
                return Records(n, [column for column in columns if column is not None], dict(sorted(faults.items())))
        return Records.of([others[place] if place in others else self._record(place) for place in range(n)])

    def _column(self, output: int, facts: np.ndarray, which: np.ndarray) -> Column | None:
        """The images of an output, without copying; None if they are of several kinds."""
        first, n = facts[0], len(facts)
        ndim = int(first[images.NDIM])
        alike = images.SHAPE + ndim
        if (facts[:, images.KIND : images.NDIM + 1] != first[images.KIND : images.NDIM + 1]).any():
            return None
        kind, size = _KINDS[first[images.KIND]], int(first[images.BYTES])
        shapes, places = facts[:, images.SHAPE : alike], facts[:, images.PLACE]
        if not which.any() and (shapes == shapes[0]).all() and (places == np.arange(n) * size).all():
            return self._buffers[output][0][: n * size].view(kind).reshape(n, *shapes[0].tolist())
        buffers = [buffer[: buffer.nbytes // _WIDEST * _WIDEST].view(kind) for buffer in self._buffers[output]]
        return Packed(buffers, which, places // kind.itemsize, shapes)

    def _record(self, place: int) -> tuple[np.ndarray, ...]:
        """The images of one file."""
        parts = []
        for buffers, facts in zip(self._buffers, self._facts[place].tolist(), strict=True):
            start, shape = facts[images.PLACE], facts[images.SHAPE : images.SHAPE + facts[images.NDIM]]
            piece = buffers[self._which[place]][start : start + facts[images.BYTES]]
            parts.append(piece.view(_KINDS[facts[images.KIND]]).reshape(shape))
        return tuple(parts)


def _room(nbytes: int) -> np.ndarray:
    return host_empty(-(-nbytes // _WIDEST) * _WIDEST, np.uint8)


def _lately(before: float, seconds: float) -> float:
    """Notes the time that a file took, unless the thread was delayed."""
    return seconds if not before else min(seconds, (3 * before + seconds) / 4)
