"""Reading many files in one call that releases the GIL: from Python each file costs 45 us of it, here none."""

from __future__ import annotations

import numpy as np

from ndd._cpu.jit import External, kernel

_open = External("open", "int32(uintp, int32)")
_close = External("close", "int32(int32)")
_seek = External("lseek", "int64(int32, int64, int32)")
_read = External("read", "int64(int32, uintp, int64)")
_END, _START = 2, 0
_LARGEST = 1 << 40


@kernel
def open_files(paths, starts, flags, handles, sizes):
    """Opens the zero-terminated paths in `paths` that begin at `starts`: handles (-1: it failed) and sizes in bytes."""
    base = paths.ctypes.data
    for i in range(len(starts)):
        handle = _open(base + starts[i], flags)
        size = np.int64(0)
        if handle >= 0:
            size = _seek(handle, 0, _END)
            if size < 0 or size > _LARGEST:  # a pipe, or a folder (which "ends" at 2**63 - 1)
                _close(handle)
                handle = np.int32(-1)
                size = np.int64(0)
            else:
                _seek(handle, 0, _START)
        handles[i] = handle
        sizes[i] = size


@kernel
def read_and_close(handles, sizes, starts, target, done):
    """Reads each open file to its place in `target` and closes it: bytes read, -1 after an error."""
    base = target.ctypes.data
    for i in range(len(handles)):
        handle = handles[i]
        if handle < 0:
            continue
        got = np.int64(0)
        while got < sizes[i]:
            count = _read(handle, base + starts[i] + got, sizes[i] - got)
            if count < 0:
                got = np.int64(-1)
                break
            if count == 0:
                break
            got += count
        _close(handle)
        done[i] = got
