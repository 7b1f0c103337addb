"""libsndfile from compiled code: one call without the GIL opens a file, another reads it.

`connect` must be called first. The bytes go through a file in memory (Linux): otherwise libsndfile would call a Python object
for every piece, and 16 threads would queue for the interpreter.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np

from ndd._compiled.jit import External, kernel

_FUNCTIONS = {
    "sf_open_fd": "uintp(int32, int32, uintp, int32)",
    "sf_seek": "int64(uintp, int64, int32)",
    "sf_readf_float": "int64(uintp, uintp, int64)",
    "sf_readf_short": "int64(uintp, uintp, int64)",
    "sf_readf_int": "int64(uintp, uintp, int64)",
    "sf_error": "int32(uintp)",
    "sf_close": "int32(uintp)",
}
_of_library = [External(name, signature) for name, signature in _FUNCTIONS.items()]
_open, _seek, _floats, _shorts, _ints, _error, _close = _of_library
_memory_file = External("memfd_create", "int32(uintp, uint32)")
_write = External("write", "int64(int32, uintp, int64)")
_rewind = External("lseek", "int64(int32, int64, int32)")
_close_file = External("close", "int32(int32)")
_READ, _CLOSED_BY_EXEC = 0x10, 1
_SKIPPED = 1 << 12  # frames that one call drops
FRAMES, RATE, CHANNELS, FORMAT = 0, 2, 3, 4  # places in SF_INFO, in units of 4 bytes (one of 64 bits, three of 32)


def connect(address_of: Callable[[str], int]) -> None:
    """Makes the functions of the loaded library known to compiled code, by the address of each."""
    for external in _of_library:
        external.connect(ctypes.c_void_p(address_of(external.name)))


@kernel
def opened(address, nbytes, name, info):
    """Opens the bytes at `address`, and fills `info`, int32 `[8]`. Returns (handle, file); the handle is 0 for data that is not
    sound."""
    file = _memory_file(name.ctypes.data, _CLOSED_BY_EXEC)
    done = np.int64(0)
    while file >= 0 and done < nbytes:
        more = _write(file, address + done, nbytes - done)
        if more <= 0:
            _close_file(file)
            file = np.int32(-1)
        done += more
    if file < 0:
        return np.uint64(0), np.int32(-1)
    _rewind(file, 0, 0)
    handle = np.uint64(_open(file, _READ, info.ctypes.data, 0))
    if handle == 0:
        _close_file(file)
    return handle, file


@kernel
def read(handle, file, first, before, channels, address, count, kind):
    """Reads `count` frames to `address`, as float32, int16 or int32 (`kind` 0 to 2), and closes the file. Returns the number of
    frames, or -1 if they cannot be decoded. Decoding begins at `first`; the first `before` frames, of `channels`, are dropped.
    With a `count` of 0 or less it only closes the file."""
    got = np.int64(0)
    if count > 0:
        if first > 0 and _seek(handle, first, 0) != first:
            got = np.int64(-1)
        skipped = np.empty(min(before, _SKIPPED) * channels, np.float32)
        while got == 0 and before > 0:
            more = _floats(handle, skipped.ctypes.data, min(before, _SKIPPED))
            got = np.int64(0) if more > 0 else np.int64(-1)
            before -= more
        if got == 0 and kind == 0:
            got = _floats(handle, address, count)
        elif got == 0 and kind == 1:
            got = _shorts(handle, address, count)
        elif got == 0:
            got = _ints(handle, address, count)
        if _error(handle) != 0:
            got = np.int64(-1)
    _close(handle)
    _close_file(file)
    return got
