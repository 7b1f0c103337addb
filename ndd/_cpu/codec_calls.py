"""Loops over the functions of nvImageCodec's C library: a whole batch in one call that holds no GIL.

`connect` says where the functions are, before the first of these is called. Structures come as their bytes, and `at` says
where in `nvimgcodecImageInfo_t` and `nvimgcodecCodeStreamView_t` the numbers lie that change from picture to picture.
A status that is not 0 is the error of its picture, which is left out from there on.

Decoders that several threads share wait in a pipe, as a byte each, their number: one that is done goes to the next thread
without Python. By a queue of Python's, both threads had to get the GIL first.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ndd._cpu.inlined import zeros
from ndd._cpu.jit import External, kernel

FUNCTIONS = {
    "nvimgcodecCodeStreamCreateFromHostMem": "int32(uintp, uintp, uintp, uintp, uintp)",
    "nvimgcodecCodeStreamGetSubCodeStream": "int32(uintp, uintp, uintp)",
    "nvimgcodecCodeStreamGetImageInfo": "int32(uintp, uintp)",
    "nvimgcodecImageCreate": "int32(uintp, uintp, uintp)",
    "nvimgcodecDecoderDecode": "int32(uintp, uintp, uintp, int32, uintp, uintp)",
    "nvimgcodecFutureWaitForAll": "int32(uintp)",
    "nvimgcodecFutureGetProcessingStatus": "int32(uintp, uintp, uintp)",
    "nvimgcodecFutureDestroy": "int32(uintp)",
}
# What `at` holds, in units of 4 bytes (8 for the last three).
AT_HEIGHT, AT_WIDTH, AT_CHANNELS, AT_FORMAT, AT_SPACE, AT_TURN, AT_START, AT_END = range(8)
AT_STRIDE, AT_BUFFER, AT_STREAM = range(8, 11)

NOT_MADE = -2  # a status of ours: the decoder with this number has no handle yet

_DECODED = 1  # nvimgcodecProcessingStatus_t
_TRIES = 100  # to read from the pipe: signals interrupt it

_create, _cut, _parse, _image, _decode, _wait, _statuses, _destroy = (External(n, s) for n, s in FUNCTIONS.items())
_read, _write = (External(f"ndd_pipe_{name}", "int32(int32, uintp, uintp)") for name in ("read", "write"))


def connect(library: object) -> None:
    """Makes the functions of a loaded library (of ctypes) known to compiled code, and those that read and write pipes."""
    import ctypes

    from llvmlite import binding

    windows = sys.platform == "win32"
    system: Any = ctypes.CDLL("ucrtbase" if windows else None)
    found = {name: getattr(library, name) for name in FUNCTIONS}
    found |= {f"ndd_pipe_{name}": getattr(system, f"_{name}" if windows else name) for name in ("read", "write")}
    for name, function in found.items():
        binding.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)


@kernel
def _describe(instance, addresses, sizes, extents, swapped, info, at, streams, turns, failed):
    """A code stream for each picture, and how it is turned to be upright (degrees, flips).

    One whose extents as stored, or whether height and width change places, are not those given is refused: its pixels
    would not fit. `streams` keeps the handles, which are used again; the library keeps the header that it has read.
    """
    numbers = info.view(np.int32)
    for i in range(len(sizes)):
        status = _create(instance, streams.ctypes.data + 8 * i, addresses[i], sizes[i], 0)
        if status == 0:
            status = _parse(streams[i], info.ctypes.data)
        for k in range(3):
            turns[i, k] = numbers[at[AT_TURN] + k]
        fits = numbers[at[AT_HEIGHT]] == extents[i, 0] and numbers[at[AT_WIDTH]] == extents[i, 1]
        if status == 0 and not (fits and (turns[i, 0] % 180 != 0) == swapped[i]):
            status = -1
        failed[i] = status


@kernel
def _cut_out(windows, view, at, streams, parts, failed):
    """For each window (y0, x0, y1, x1) a stream of that part alone; one without rows stands for the whole picture."""
    numbers = view.view(np.int32)
    for i in range(len(windows)):
        if failed[i]:
            continue
        for axis in range(2):
            numbers[at[AT_START] + axis] = windows[i, axis]
            numbers[at[AT_END] + axis] = windows[i, 2 + axis]
        failed[i] = _cut(streams[i], parts.ctypes.data + 8 * i, view.ctypes.data)


@kernel
def _place(instance, targets, shapes, kinds, turns, stream, info, at, images, failed):
    """Says where the pixels of each picture go: HWC of `shapes`, in sample format and colour space `kinds`, turned."""
    numbers, wide = info.view(np.int32), info.view(np.int64)
    wide[at[AT_STREAM]] = stream
    for i in range(len(targets)):
        if failed[i]:
            continue
        numbers[at[AT_HEIGHT]], numbers[at[AT_WIDTH]], numbers[at[AT_CHANNELS]] = (
            shapes[i, 0],
            shapes[i, 1],
            shapes[i, 2],
        )
        numbers[at[AT_FORMAT]], numbers[at[AT_SPACE]] = kinds[i, 0], kinds[i, 1]
        for k in range(3):
            numbers[at[AT_TURN] + k] = turns[i, k]
        wide[at[AT_STRIDE]] = shapes[i, 1] * shapes[i, 2]
        wide[at[AT_BUFFER]] = targets[i]
        failed[i] = _image(instance, images.ctypes.data + 8 * i, info.ctypes.data)


@kernel
def _number_of_an_idle_one(waiting):
    """Waits for a decoder; -1 if the pipe is broken."""
    number = zeros(1, np.uint8)
    for _ in range(_TRIES):
        if _read(waiting, number.ctypes.data, 1) == 1:
            return np.int64(number[0])
    return np.int64(-1)


@kernel
def _largest_first(numbers, sizes):
    """Sorts the numbers of pictures by size, those of one size by number: Shell's sort, which compiles in a ninth of the time
    that NumPy's takes."""
    gap = len(numbers) // 2
    while gap > 0:
        for k in range(gap, len(numbers)):
            one, at = numbers[k], k
            while at >= gap:
                before = numbers[at - gap]
                if sizes[before] > sizes[one] or (sizes[before] == sizes[one] and before < one):
                    break
                numbers[at] = before
                at -= gap
            numbers[at] = one
        gap //= 2


@kernel
def decode(
    instance, decoders, mine, idle, params, addresses, sizes, extents, swapped, windows, targets, shapes, kinds, upright, stream,
    parsed, view, info, at, handles, failed,
):  # fmt: skip
    """Decodes a batch; returns when the CPU's work is done and a GPU's is queued.

    Args:
        decoders: their handles; 0 for one that is not made yet.
        mine: the number of the one that the caller has; -1 for the next that is idle.
        idle: the ends of the pipe, (to read, to write), where the numbers of those lie that nobody uses.
        windows: of no rows for whole pictures.
        failed: becomes 0 for what was decoded.

    Returns:
        0, or the status of a decoder that refuses everything, and its number, which the caller has then.
    """
    count, number = len(sizes), np.int64(mine)
    turns = zeros((count, 3), np.int32)
    _describe(instance, addresses, sizes, extents, swapped, parsed, at, handles[0], turns, failed)
    streams = handles[0]
    if len(windows):
        _cut_out(windows, view, at, handles[0], handles[1], failed)
        streams = handles[1]
    if not upright:
        turns[:] = 0
    _place(instance, targets, shapes, kinds, turns, stream, info, at, handles[2], failed)
    sound = np.flatnonzero(failed == 0)
    if not len(sound):
        return np.int64(0), number
    # The engines and the library's threads take pictures in this order, and none of them comes to the end with a large one
    # while the others have nothing to do: 3.9 to 3.6 ms for 64 ImageNet JPEGs, 12.0 to 10.9 for 256 (H200, 16 cores).
    _largest_first(sound, sizes)
    there, images, statuses = streams[sound], handles[2][sound], zeros(len(sound), np.uint32)
    if number < 0:
        number = _number_of_an_idle_one(idle[0])
    decoder = decoders[number] if number >= 0 else np.uint64(0)  # read once: another thread may set it to 0
    if decoder == 0:
        return np.int64(NOT_MADE), number
    future, size = zeros(1, np.uint64), zeros(1, np.uint64)
    status = _decode(decoder, there.ctypes.data, images.ctypes.data, len(sound), params, future.ctypes.data)
    if status == 0:
        _wait(future[0])
        status = _statuses(future[0], statuses.ctypes.data, size.ctypes.data)
        _destroy(future[0])
    if status == 0:
        size[0] = number
        _write(idle[1], size.ctypes.data, 1)  # the first byte of it: all that numba runs on are little-endian
    for k in range(len(sound)):
        if statuses[k] != _DECODED:
            failed[sound[k]] = 1
    return np.int64(status), number
