"""Reads files and ranges of files: many in one call without the GIL, into shared pooled memory. Nothing is mapped: the process
ends if a mapped file gets shorter, and mapping saves only 2 to 4 us of a record of 100 kB.

Paths may be URLs of objects (`ndd.io.object_store`); their ranges are requested in parallel.
A range that cannot be read is an `OSError` in its place and harms no other. Files that are not regular (a FIFO, a device, a
folder) and files that end too early are such errors; nothing here waits for data that does not come.
"""

from __future__ import annotations

import errno
import math
import os
import stat
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ndd._cpu import files as compiled
from ndd._tensor import Packed
from ndd._tensor.memory import host_empty
from ndd.io.object_store import (
    Status,
    connections,
    is_remote,
    object_beginnings,
    object_statuses,
    read_object_ranges,
    read_objects,
    single,
)

_GAP = 1 << 16  # bytes between two ranges that are read as one: a read call costs as much as 64 kB
_RUN = 1 << 20  # the longest read that joins ranges: 100 kB cost 18 us in reads of 1 MB, 30 us in reads of 16 MB
_MOST_ROOM = 1 << 26  # bytes: to open larger files twice costs next to nothing
_REQUEST = 1 << 21  # bytes: more of an object is read by several requests at once, each of at least this many


class OpenFiles:
    """Some files, opened together; closed with this object, which is also a context manager.

    Args:
        paths: the paths.
        known: the `statuses` of objects that were opened before, so that the store is not asked again.

    Attributes:
        paths: the paths.
        sizes: in bytes, int64; -1 for files that could not be opened.
    """

    def __init__(self, paths: Sequence[str], known: Sequence[Status | OSError] | None = None):
        self.paths = paths
        self._remote = _any_remote(paths)
        self.handles = np.full(len(paths), -1, np.int32)
        self._sizes = np.full(len(paths), -1, np.int64)
        self._statuses: list[Status | OSError] | None = None  # of objects, once somebody needs them
        if known is not None and self._remote:
            self._told(known)
        self._open = False
        if self._remote or not compiled.AVAILABLE:
            return
        text, starts = _zero_terminated(paths)
        status = np.empty(compiled.STATUS_BYTES, np.uint8)
        compiled.open_files(text, starts, compiled.OPEN_FLAGS, status, self.handles, self._sizes)
        self._open = True

    @property
    def sizes(self) -> np.ndarray:
        """See above."""
        if self._remote and self._statuses is None:
            self._told(statuses(self.paths))
        return self._sizes

    @property
    def statuses(self) -> list[Status | OSError] | None:
        """The statuses of the objects from their store; None for files."""
        return self._statuses if self._remote and len(self.sizes) else None

    def _told(self, statuses: Sequence[Status | OSError]) -> None:
        self._statuses = list(statuses)
        self._sizes[:] = [-1 if isinstance(s, OSError) else s.size for s in statuses]

    def read(self, numbers: Any, offsets: Any, sizes: Any) -> list[np.ndarray | OSError]:
        """`sizes[i]` bytes (-1: all) at `offsets[i]` of file `numbers[i]`, as views of one buffer, 64 bytes aligned."""
        numbers, offsets, sizes = (np.asarray(a, np.int64) for a in (numbers, offsets, sizes))
        beyond = self._beyond(numbers, offsets, sizes)
        if beyond:
            return self._without(beyond, numbers, offsets, sizes, self.read)
        if self._remote:
            return self._requested(numbers, offsets, sizes)[0]
        pieces: list[Any] = [None] * len(sizes)
        missing = list(range(len(sizes)))  # where there is no compiled reading
        if self._open:
            buffer, places, missing = self._read(self.handles[numbers], offsets, sizes)
            pieces = _pieces(buffer, places, sizes)
        for place in missing:
            pieces[place] = read_slowly(self.paths[int(numbers[place])], int(offsets[place]), int(sizes[place]))
        return pieces

    def _requested(
        self, numbers: np.ndarray, offsets: np.ndarray, sizes: np.ndarray
    ) -> tuple[list[Any], np.ndarray, np.ndarray]:
        """Ranges of objects as views of one buffer, the buffer, and the offset of each range in it. A range is requested in
        parts that run side by side. Objects that were not found are not requested again."""
        totals = self.sizes[numbers]
        sizes = np.where(totals < 0, 0, np.where(sizes < 0, np.maximum(totals - offsets, 0), sizes))
        room = (sizes + (compiled.ALIGNMENT - 1)) & -compiled.ALIGNMENT
        places = np.add.accumulate(room) - room
        buffer = host_empty(int(room.sum()), np.uint8)
        pieces: list[Any] = _pieces(buffer, places, sizes)
        paths: list[str] = []
        versions: list[str] = []
        parts: list[tuple[int, int, int]] = []  # the range, and where in it
        for k, (number, size) in enumerate(zip(numbers.tolist(), sizes.tolist(), strict=True)):
            status = (self._statuses or [])[number]
            if isinstance(status, OSError):
                pieces[k] = status
                continue
            count = max(size // _REQUEST, 1)
            cuts = [size * part // count for part in range(count + 1)]
            parts += [(k, begin, end) for begin, end in pairwise(cuts)]
            paths += [self.paths[number]] * count
            versions += [status.version] * count
        targets = [buffer[places[k] + begin : places[k] + end] for k, begin, end in parts]
        begins, lengths = [int(offsets[k]) + begin for k, begin, _ in parts], [end - begin for _, begin, end in parts]
        for (k, _, _), part in zip(parts, read_object_ranges(paths, begins, lengths, versions, targets), strict=True):
            if isinstance(part, BaseException):
                pieces[k] = part
        return pieces, buffer, places

    def _read(
        self, handles: np.ndarray, offsets: np.ndarray, sizes: np.ndarray, lead: Any = 0
    ) -> tuple[np.ndarray, np.ndarray, list[int]]:
        """One buffer, the offsets of the ranges in it (each `lead` bytes after an aligned one), and the numbers of the
        unreadable ranges."""
        room = (sizes + lead + (compiled.ALIGNMENT - 1)) & -compiled.ALIGNMENT  # 0 for -1
        places = np.add.accumulate(room) - room + lead
        buffer = host_empty(max(int(room.sum()), 0), np.uint8)  # a sum that wraps is seen where it is read
        done = np.empty(len(sizes), np.int64)
        incomplete = compiled.read_ranges(handles, offsets, sizes, places, buffer, done)
        return buffer, places, np.flatnonzero(done != sizes).tolist() if incomplete else []

    def read_joined(self, numbers: Any, offsets: Any, sizes: Any) -> list[np.ndarray | OSError]:
        """As `read`, but reads ranges that are close together, as in sequential reading, in one piece.

        They may begin at any address.
        """
        numbers, offsets, sizes = (np.asarray(a, np.int64) for a in (numbers, offsets, sizes))
        if not self._open and not self._remote:
            return self._read_apart(numbers, offsets, sizes)
        buffer, starts, errors = self.read_packed(numbers, offsets, sizes)
        pieces = _pieces(buffer, starts, sizes)
        for place, error in errors.items():
            pieces[place] = error
        return pieces

    def read_packed(self, numbers: Any, offsets: Any, sizes: Any) -> tuple[np.ndarray, np.ndarray, dict[int, OSError]]:
        """As `read_joined`, in one u8 array: the array, the offset of each range in it, and the errors of unreadable ranges,
        whose bytes are undefined."""
        numbers, offsets, sizes = (np.asarray(a, np.int64) for a in (numbers, offsets, sizes))
        beyond = self._beyond(numbers, offsets, sizes)
        if self._remote and not beyond:
            return self._packed_of_objects(numbers, offsets, sizes)
        if self._open and not beyond:
            first, run_of, run_sizes = _runs(numbers, offsets, sizes, _RUN)
            # As in the file: `ndd/_tensor/memory.py` says why.
            lead = offsets[first] % compiled.ALIGNMENT
            buffer, places, missing = self._read(self.handles[numbers[first]], offsets[first], run_sizes, lead=lead)
            if not missing:
                return buffer, places[run_of] + offsets - offsets[first][run_of], {}
        pieces = self._read_apart(numbers, offsets, sizes)
        errors = {place: piece for place, piece in enumerate(pieces) if isinstance(piece, OSError)}
        sizes = sizes.copy()
        sizes[list(errors)] = 0
        starts = np.add.accumulate(sizes) - sizes
        buffer = host_empty(int(sizes.sum()), np.uint8)
        for place, start in enumerate(starts.tolist()):
            if place not in errors:
                buffer[start : start + len(pieces[place])] = pieces[place]
        return buffer, starts, errors

    def _packed_of_objects(
        self, numbers: np.ndarray, offsets: np.ndarray, sizes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, dict[int, OSError]]:
        """As `read_packed`, of ranges within their objects: each response goes to its place in the array at once."""
        first, run_of, run_sizes = _runs(numbers, offsets, sizes, np.iinfo(np.int64).max)
        pieces, buffer, places = self._requested(numbers[first], offsets[first], run_sizes)
        starts = places[run_of] + offsets - offsets[first][run_of]
        errors: dict[int, OSError] = {}
        failed = [run for run, piece in enumerate(pieces) if isinstance(piece, BaseException)]
        for place in np.flatnonzero(np.isin(run_of, failed)).tolist() if failed else ():
            piece, size = pieces[run_of[place]], int(sizes[place])
            if getattr(piece, "errno", None) == errno.EIO:  # the object ends within the run: this range may be there
                piece = read_slowly(self.paths[int(numbers[place])], int(offsets[place]), size)
            if isinstance(piece, np.ndarray):
                buffer[starts[place] : starts[place] + size] = piece
            else:
                errors[place] = piece
        return buffer, starts, errors

    def _read_apart(self, numbers: np.ndarray, offsets: np.ndarray, sizes: np.ndarray) -> list[Any]:
        """Reads run by run: files without compiled reading, and runs with a missing part."""
        beyond = self._beyond(numbers, offsets, sizes)
        if beyond:
            return self._without(beyond, numbers, offsets, sizes, self._read_apart)
        if self._remote:
            return self.read_joined(numbers, offsets, sizes)
        first, run_of, run_sizes = _runs(numbers, offsets, sizes, _RUN)
        runs = self.read(numbers[first], offsets[first], run_sizes)
        starts = (offsets - offsets[first][run_of]).tolist()
        pieces: list[Any] = []
        for place, (run, start, size) in enumerate(zip(run_of.tolist(), starts, sizes.tolist(), strict=True)):
            piece = runs[run]
            if isinstance(piece, OSError):  # this range may be there
                piece = read_slowly(self.paths[int(numbers[place])], int(offsets[place]), size)
            else:
                piece = piece[start : start + size]
            pieces.append(piece)
        return pieces

    def _beyond(self, numbers: np.ndarray, offsets: np.ndarray, sizes: np.ndarray) -> list[int]:
        """The ranges that end beyond their files, as in a wrong index. They may have any size, and their sum may wrap."""
        totals = self.sizes[numbers]
        outside = (offsets < 0) | (offsets > totals - np.maximum(sizes, 0))
        return np.flatnonzero(outside & (totals >= 0)).tolist() if outside.any() else []

    def _without(
        self, beyond: list[int], numbers: np.ndarray, offsets: np.ndarray, sizes: np.ndarray, read: Any
    ) -> Any:
        """The result of `read` for all ranges except these, which are tried one by one: a file may have grown."""
        inside = np.ones(len(sizes), bool)
        inside[beyond] = False
        results: list[Any] = [None] * len(sizes)
        if inside.any():
            pieces = read(numbers[inside], offsets[inside], sizes[inside])
            for place, piece in zip(np.flatnonzero(inside).tolist(), pieces, strict=True):
                results[place] = piece
        for place in beyond:
            path, offset, size = self.paths[int(numbers[place])], int(offsets[place]), int(sizes[place])
            total = int(self.sizes[numbers[place]])
            results[place] = _ends_early(path, offset, size, total) if self._remote else read_slowly(path, offset, size)
        return results

    def close(self) -> None:
        """Close the files. No thread may be reading from them."""
        if not self._open:
            return
        self._open = False
        if len(self.handles) > 1:
            compiled.close_files(self.handles)
        elif self.handles[0] >= 0:
            os.close(int(self.handles[0]))
        self.handles[:] = -1

    def __del__(self) -> None:
        if os is not None:  # otherwise the interpreter is shutting down, and closes them itself
            self.close()

    def __enter__(self) -> OpenFiles:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _zero_terminated(paths: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The paths as C wants them, in one u8 array, and where each begins. A path with a zero in it (C would see only the part
    before) and a path that no file can have become empty, and no file has an empty path."""
    try:
        text = os.fsencode("\0".join(paths) + "\0")
    except UnicodeEncodeError:
        return _zero_terminated([path if _is_encodable(path) else "" for path in paths])
    # Not in NumPy: it releases the GIL for more than 500 elements, and the other threads of a reader keep it for a while.
    encoded = text.split(b"\0")[:-1]
    if len(encoded) != len(paths):
        return _zero_terminated(["" if "\0" in path else path for path in paths])
    starts = np.add.accumulate([0, *[len(path) + 1 for path in encoded[:-1]]], dtype=np.int64)
    return np.frombuffer(text, np.uint8), starts


def _is_encodable(path: str) -> bool:
    try:
        return bool(os.fsencode(path))
    except UnicodeEncodeError:
        return False


def _any_remote(paths: Sequence[str]) -> bool:
    return "://" in "\0".join(paths) and any(map(is_remote, paths))


def statuses(paths: Sequence[str]) -> list[Status | OSError]:
    """Size and state of each file, or the error of asking for it."""
    return _each(paths, object_statuses, _status)


def beginnings(paths: Sequence[str], sizes: Sequence[int]) -> list[tuple[Status, np.ndarray] | OSError]:
    """Size, state and first bytes (`sizes[i]`, or all that there are) of each file, or the error of asking for it."""
    remote = [place for place, path in enumerate(paths) if is_remote(path)]
    asked = object_beginnings([paths[place] for place in remote], [sizes[place] for place in remote]) if remote else []
    by_place = dict(zip(remote, asked, strict=True))
    return [
        by_place[k] if k in by_place else _beginning(*both) for k, both in enumerate(zip(paths, sizes, strict=True))
    ]


def _beginning(path: str, size: int) -> tuple[Status, np.ndarray] | OSError:
    stated = _status(path)
    if isinstance(stated, OSError):
        return stated
    data = read_slowly(path, 0, min(size, stated.size))
    return data if isinstance(data, OSError) else (stated, data)


def status(path: str) -> Status:
    """Size and state of a file. OSError if there is none."""
    return single(statuses([path]))


def _status(path: str) -> Status | OSError:
    try:
        stated = os.stat(path)
        return Status(stated.st_size, str(stated.st_mtime_ns))
    except OSError as error:
        return error
    except ValueError as error:
        return OSError(errno.EINVAL, str(error), path)


def _each(paths: Sequence[str], objects: Any, local: Any) -> list[Any]:
    """`objects` applied to all URLs together, and `local` to each of the other paths."""
    remote = [path for path in paths if is_remote(path)]
    answers = iter(objects(remote) if remote else ())
    return [next(answers) if is_remote(path) else local(path) for path in paths]


def _runs(
    numbers: np.ndarray, offsets: np.ndarray, sizes: np.ndarray, longest: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Joins ranges that lie close together into runs of up to about `longest` bytes: the first range of each run, the run
    of each range, and the sizes of the runs."""
    ends = offsets + sizes
    gaps = offsets[1:] - ends[:-1]
    far = (numbers[1:] != numbers[:-1]) | (gaps < 0) | (gaps > _GAP)
    far |= ends[1:] // longest != ends[:-1] // longest
    first = np.flatnonzero(np.concatenate([[True], far]))
    last = np.concatenate([first[1:], [len(sizes)]]) - 1
    return first, np.cumsum(np.concatenate([[0], far])), ends[last] - offsets[first]


def _pieces(buffer: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> list[Any]:
    return [buffer[a:b] for a, b in zip(starts.tolist(), (starts + sizes).tolist(), strict=True)]


class UsualSize:
    """The bytes of a file of a data set, learnt from files that were read: space is allocated before the sizes are known."""

    __slots__ = ("_bytes",)

    def __init__(self) -> None:
        self._bytes = 0.0

    def room(self, count: int) -> int:
        """Bytes that mostly suffice for this many files; 0 at first. Threads may call this while others `learn`."""
        wanted = (self._bytes + compiled.ALIGNMENT) * (count + math.sqrt(count)) if self._bytes else 0
        return int(min(wanted, _MOST_ROOM)) & -compiled.ALIGNMENT

    def learn(self, sizes: np.ndarray) -> None:
        """Some sizes, in bytes."""
        mean = min(float(sizes.sum(dtype=np.float64)) / len(sizes), _MOST_ROOM)
        self._bytes = (3 * self._bytes + mean) / 4 if self._bytes else mean


def read_files(paths: Sequence[str], usual: UsualSize | None = None) -> tuple[Packed | list[Any], dict[int, Exception]]:
    """The bytes of each file, as ranges of one buffer or two if possible, and the errors of unreadable files, whose bytes are
    undefined. Callers that read many files of a data set pass the same `usual` each time, so that few files are opened twice."""
    if not compiled.AVAILABLE or _any_remote(paths):
        contents = _each(paths, read_objects, read_slowly)
    else:
        packed, missing = _read_whole(paths, usual)
        if not missing:
            return packed, {}
        contents: list[Any] = [*packed.arrays()]
        for place in missing:
            contents[place] = read_slowly(paths[place])
    return contents, {place: piece for place, piece in enumerate(contents) if isinstance(piece, Exception)}


def _read_whole(paths: Sequence[str], usual: UsualSize | None) -> tuple[Packed, list[int]]:
    """The bytes of each file, and the numbers of the files that could not be read."""
    text, starts = _zero_terminated(paths)
    buffer = host_empty(usual.room(len(paths)) if usual else 0, np.uint8)
    places, sizes, done = np.empty((3, len(paths)), np.int64)
    incomplete = compiled.read_files(text, starts, compiled.OPEN_FLAGS, buffer, places, sizes, done)
    if usual:
        usual.learn(sizes)
    packed = Packed.of(buffer, places, sizes)
    left = np.flatnonzero(done == compiled.NO_ROOM) if incomplete else ()
    if len(left):
        more, again = _room_for(sizes[left]), np.empty((3, len(left)), np.int64)
        compiled.read_files(text, starts[left], compiled.OPEN_FLAGS, more, *again)
        places[left], sizes[left], done[left] = again
        packed.buffers = [buffer, more] if len(buffer) else [more]
        packed.which[left] = len(packed.buffers) - 1
    return packed, np.flatnonzero(done != sizes).tolist() if incomplete else []


def _room_for(sizes: np.ndarray) -> np.ndarray:
    """Memory for files of these sizes, whose sum may exceed 64 bits; an empty array if there is not enough."""
    blocks = sum(-(-size // compiled.ALIGNMENT) for size in sizes.tolist())
    try:
        return host_empty(blocks * compiled.ALIGNMENT, np.uint8)
    except MemoryError:  # reading the files one by one tells which is too large
        return np.empty(0, np.uint8)


class RegularFile:
    """An open file that is read piece by piece, as for an index; a context manager. OSError if it is not a regular file.
    Pieces of an object that lie close together are requested at once; a caller that reads on gets twice as much each time, up
    to 2 MB for each connection, in requests that run side by side. `known`: its status, if the store has returned it already.

    Attributes:
        size: in bytes, when it was opened.
    """

    def __init__(self, path: str, known: Status | None = None):
        self._path, self._handle = path, -1
        self._block, self._start = np.empty(0, np.uint8), 0  # the last requested part of an object
        if is_remote(path):
            self._object = OpenFiles([path], [known or status(path)])
            self.size = int(self._object.sizes[0])
            return
        self._handle = os.open(path, compiled.OPEN_FLAGS)
        try:
            self.size = _regular_size(self._handle, path)
        except OSError:
            os.close(self._handle)
            raise

    def read(self, offset: int, size: int) -> bytes:
        """`size` bytes at `offset`, fewer where the file ends."""
        if self._handle < 0:
            return self._requested(offset, min(size, self.size - offset))
        if hasattr(os, "pread"):
            return os.pread(self._handle, size, offset)
        os.lseek(self._handle, offset, os.SEEK_SET)  # Windows
        return os.read(self._handle, size)

    def _requested(self, offset: int, size: int) -> bytes:
        if size <= 0:
            return b""
        end = self._start + len(self._block)
        if not self._start <= offset <= offset + size <= end:
            reads_on = self._start < offset <= end + _REQUEST
            ahead = min(2 * len(self._block), connections() * _REQUEST) if reads_on else 0
            wanted = min(max(size, _REQUEST, ahead), self.size - offset)
            self._block, self._start = single(self._object.read([0], [offset], [wanted])), offset
        return self._block[offset - self._start :][:size].tobytes()

    def __enter__(self) -> RegularFile:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._handle >= 0:
            os.close(self._handle)


def whole_file(path: str) -> bytes:
    """The bytes of a file that is read once, as for an index, in memory that is not pooled. OSError as above."""
    with RegularFile(path) as file:
        parts = []
        while (done := sum(map(len, parts))) < file.size:  # a read call stops at 2 GB
            part = file.read(done, file.size - done)
            if not part:
                raise OSError(errno.EIO, "The file ends too early", path)
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _regular_size(handle: int, path: str) -> int:
    status = os.fstat(handle)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "Not a regular file", path)
    return status.st_size


def read_slowly(path: str, offset: int = 0, size: int = -1) -> np.ndarray | OSError:
    """Reads one range (default: to the end) in Python, where no compiled code can, and to find the error of a file. Returns an
    OSError if the file is not regular or ends before the range does."""
    if is_remote(path):
        return read_object_ranges([path], [offset], [size])[0]
    try:
        handle = os.open(path, compiled.OPEN_FLAGS)
        try:
            whole = _regular_size(handle, path)
            if offset < 0 or offset > whole - max(size, 0):
                raise _ends_early(path, offset, size, whole)
            target = host_empty(whole - offset if size < 0 else size, np.uint8)
            done = _read_into(handle, target, offset)
        finally:
            os.close(handle)
        if done < len(target):
            raise _ends_early(path, offset, len(target), offset + done)
        return target
    except OSError as error:
        return error
    except ValueError as error:  # a path with a zero in it
        return OSError(errno.EINVAL, str(error), path)
    except MemoryError as error:  # a sparse file may be of any size
        return OSError(errno.ENOMEM, str(error), path)


def _ends_early(path: str, offset: int, size: int, total: int) -> OSError:
    wanted = f"{size} bytes at {offset}" if offset else f"{size} bytes"
    return OSError(errno.EIO, f"The file ends too early (expected {wanted}, got {max(total - offset, 0)})", path)


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
