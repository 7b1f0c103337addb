"""Reads files and ranges of files in calls that release the GIL. From Python each file costs 45 us under the GIL.

Only regular files are read. They are opened with `O_NONBLOCK`. Anything else (a FIFO, a device, a folder) is closed
at once, so that no read waits forever.
"""

from __future__ import annotations

import os
import stat
import sys

import numpy as np

from ndd._compiled.jit import External, kernel
from ndd._compiled.sample_loops import next_index

STATUS_BYTES = 256  # room for `statx` (256 bytes on Linux) or `stat` (144 on macOS)
ALIGNMENT = 64  # bytes, of files that are read to one buffer
NO_ROOM = -1  # a value of `done` in `read_files`
_REGULAR, _KINDS = 0o100000, 0o170000

_open = External("open", "int32(uintp, int32)")
_close = External("close", "int32(int32)")
_pread = External("pread", "int64(int32, uintp, int64, int64)")

if sys.platform == "linux":
    # `statx`, unlike `fstat`, writes the same bytes on every architecture: mode at byte 28, size at byte 40.
    OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    AVAILABLE = True
    _statx = External("statx", "int32(int32, uintp, int32, uint32, uintp)")
    _EMPTY_PATH, _MODE_AND_SIZE = 0x1000, 0x201

    @kernel
    def _regular_size(handle, status):
        """The size of an open regular file; -1 for anything else."""
        status[:] = 0  # the first byte also serves as the empty path
        here = status.ctypes.data
        if _statx(handle, here, _EMPTY_PATH, _MODE_AND_SIZE, here) != 0:
            return np.int64(-1)
        if (np.int64(status.view(np.uint16)[14]) & _KINDS) != _REGULAR:
            return np.int64(-1)
        return status.view(np.int64)[5]

elif sys.platform == "darwin":
    # `struct stat` with 64-bit inodes: mode at byte 4, size at byte 96.
    OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    AVAILABLE = True
    _fstat = External("fstat" if os.uname().machine == "arm64" else "fstat$INODE64", "int32(int32, uintp)")

    @kernel
    def _regular_size(handle, status):
        """The size of an open regular file; -1 for anything else."""
        if _fstat(handle, status.ctypes.data) != 0:
            return np.int64(-1)
        if (np.int64(status.view(np.uint16)[2]) & _KINDS) != _REGULAR:
            return np.int64(-1)
        return status.view(np.int64)[12]

else:
    AVAILABLE = False
    OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0)

    @kernel
    def _regular_size(handle, status):
        """Not supported on this system: callers check `AVAILABLE` first."""
        return np.int64(-1)


@kernel
def _open_regular(path, flags, status):
    """Opens the regular file whose zero-terminated path is at this address. Returns its handle and size; -1 and 0 after an
    error."""
    handle, size = _open(path, flags), np.int64(0)
    if handle >= 0:
        size = _regular_size(handle, status)
        if size < 0:
            _close(handle)
            handle, size = np.int32(-1), np.int64(0)
    return handle, size


@kernel
def open_files(paths, starts, flags, status, handles, sizes):
    """Opens the zero-terminated paths in `paths` that begin at `starts`. Fills in handles (-1 after an error) and sizes in
    bytes.

    `status` is scratch memory of `STATUS_BYTES`.
    """
    base = paths.ctypes.data
    for i in range(len(starts)):
        handles[i], sizes[i] = _open_regular(base + starts[i], flags, status)


@open_files.fallback
def _(paths, starts, flags, status, handles, sizes):
    text = paths.tobytes()
    for i, start in enumerate(starts.tolist()):
        handles[i], sizes[i] = _opened(text[start : text.index(b"\0", start)], int(flags))


def _opened(path: bytes, flags: int) -> tuple[int, int]:
    try:
        handle = os.open(path, flags)
    except OSError:
        return -1, 0
    status = os.fstat(handle)
    if stat.S_ISREG(status.st_mode):
        return handle, status.st_size
    os.close(handle)
    return -1, 0


@kernel
def read_range(handle, address, size, offset):
    """Reads `size` bytes at `offset` of an open file to `address`. Returns the number of bytes read; -2 after an error, or if
    the handle is negative."""
    got = np.int64(-2) if handle < 0 else np.int64(0)
    while 0 <= got < size:
        count = _pread(handle, address + got, size - got, offset + got)
        if count < 0:
            got = np.int64(-2)
        if count <= 0:
            break
        got += count
    return got


def _read(handle: int, target: memoryview, offset: int) -> int:
    """`read_range` in Python."""
    got = 0
    try:
        while got < len(target):
            part = os.pread(handle, len(target) - got, offset + got)
            if not part:
                break
            target[got : got + len(part)] = part
            got += len(part)
    except OSError:
        return -2
    return got


@kernel
def read_ranges(handles, offsets, sizes, places, target, done):
    """Reads `sizes[i]` bytes at `offsets[i]` of open file `handles[i]` to `places[i]` of `target`.

    `done[i]`: the number of bytes read; -2 after an error, if the handle is negative, or if the range is not inside `target`,
    because the sum of the sizes has wrapped. Returns the number of incomplete ranges. It does not move the file position, so
    several threads and processes may read from one handle.
    """
    base = target.ctypes.data
    incomplete = 0
    for i in range(len(handles)):
        got = np.int64(-2)
        if places[i] >= 0 and sizes[i] <= len(target) - places[i]:
            got = read_range(handles[i], base + places[i], sizes[i], offsets[i])
        done[i] = got
        incomplete += got != sizes[i]
    return incomplete


@read_ranges.fallback
def _(handles, offsets, sizes, places, target, done):
    memory, wanted = memoryview(target), sizes.tolist()
    for i, (handle, offset, place) in enumerate(zip(handles.tolist(), offsets.tolist(), places.tolist(), strict=True)):
        done[i] = -2
        if handle >= 0 and place >= 0 and wanted[i] <= len(target) - place:
            done[i] = _read(handle, memory[place : place + wanted[i]], offset)
    return int(np.count_nonzero(done != sizes))


@kernel
def read_files(paths, starts, flags, target, places, sizes, done):
    """Reads whole files, whose zero-terminated paths in `paths` begin at `starts`, to `places[i]` of `target`, one after the
    other. Each is closed before the next is opened.

    `sizes[i]`: in bytes, 0 if it is not a regular file. `done[i]`: the number of bytes read, `NO_ROOM` if the rest of `target`
    is too small, -2 after an error. Returns the number of incomplete files.
    """
    status, text, base = np.empty(STATUS_BYTES, np.uint8), paths.ctypes.data, target.ctypes.data
    begin, incomplete = np.int64(0), 0
    for i in range(len(starts)):
        handle, size = _open_regular(text + starts[i], flags, status)
        got = np.int64(-2)
        if handle >= 0:
            got = np.int64(NO_ROOM)
            if size <= len(target) - begin:
                got = read_range(handle, base + begin, size, 0)
            _close(handle)
        places[i], sizes[i], done[i] = begin, size, got
        incomplete += got != size
        if got >= 0:
            begin += (size + (ALIGNMENT - 1)) & -ALIGNMENT
    return incomplete


@read_files.fallback
def _(paths, starts, flags, target, places, sizes, done):
    text, memory, begin = paths.tobytes(), memoryview(target), 0
    for i, start in enumerate(starts.tolist()):
        handle, size = _opened(text[start : text.index(b"\0", start)], int(flags))
        got = -2
        if handle >= 0:
            got = NO_ROOM
            if size <= len(target) - begin:
                got = _read(handle, memory[begin : begin + size], 0)
            os.close(handle)
        places[i], sizes[i], done[i] = begin, size, got
        if got >= 0:
            begin += -(-size // ALIGNMENT) * ALIGNMENT
    return int(np.count_nonzero(done != sizes))


@kernel
def close_files(handles):
    """Closes open files; negative handles are skipped."""
    for handle in handles:
        if handle >= 0:
            _close(handle)


@close_files.fallback
def _(handles):
    for handle in handles.tolist():
        if handle >= 0:
            os.close(handle)


@kernel
def open_loop(counter, limit, paths, starts, flags, handles, sizes):
    """Does the same as `open_files`, as a loop for several threads (`Call.parallel_for`)."""
    base, status = paths.ctypes.data, np.empty(STATUS_BYTES, np.uint8)
    for _ in range(limit):
        i = next_index(counter)
        if i >= len(starts):
            break
        handles[i], sizes[i] = _open_regular(base + starts[i], flags, status)
    return True


@open_loop.fallback
def _(*args):
    """Python reads the files, one by one."""
    return False


@kernel
def read_loop(counter, limit, order, handles, sizes, places, target, done):
    """Reads the complete files `order`, each to `places[i]` of `target`, and closes them, as a loop for several threads. A file
    that is closed, or is being read, has the handle -1. `done` is that of `read_ranges`."""
    base = target.ctypes.data
    for _ in range(limit):
        k = next_index(counter)
        if k >= len(order):
            break
        i = order[k]
        handle = handles[i]
        handles[i] = -1
        done[i] = read_range(handle, base + places[i], sizes[i], 0)
        if handle >= 0:
            _close(handle)
    return True


@read_loop.fallback
def _(*args):
    """Python reads the files, one by one."""
    return False
