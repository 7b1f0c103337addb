"""Compiled loops over the functions of nvImageCodec's C library: one call without the GIL for a batch.

`connect` must be called first. Structures are passed as their bytes; `at` has the places of the numbers in
`nvimgcodecImageInfo_t` and `nvimgcodecCodeStreamView_t` that differ between pictures. A status other than 0 is the error of its
picture, which later steps skip.

A pipe holds the numbers of the idle decoders, one byte each, so that a thread hands a decoder to the next thread without
Python. With a Python queue both threads would need the GIL first.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

from ndd._compiled.intrinsics import zeros
from ndd._compiled.jit import External, kernel

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
# The indices of `at`; places are in units of 4 bytes (8 for the last three).
AT_HEIGHT, AT_WIDTH, AT_CHANNELS, AT_FORMAT, AT_SPACE, AT_TURN, AT_START, AT_END = range(8)
AT_STRIDE, AT_BUFFER, AT_STREAM = range(8, 11)

NOT_MADE = -2  # not a status of the library: the decoder does not exist yet

_DECODED = 1  # nvimgcodecProcessingStatus_t
_TRIES = 100  # reads from the pipe, which signals may interrupt

_of_library = [External(name, signature) for name, signature in FUNCTIONS.items()]
_create, _cut, _parse, _image, _decode, _wait, _statuses, _destroy = _of_library
_read, _write = (External(f"ndd_pipe_{name}", "int32(int32, uintp, uintp)") for name in ("read", "write"))


def connect(library: object) -> None:
    """Makes the functions of the loaded library (of ctypes), and those for pipes, known to compiled code."""
    windows = sys.platform == "win32"
    system: Any = ctypes.CDLL("ucrtbase" if windows else None)
    for external in _of_library:
        external.connect(getattr(library, external.name))
    for external, name in ((_read, "read"), (_write, "write")):
        external.connect(getattr(system, f"_{name}" if windows else name))


@kernel
def prepare(
    instance, address, size, extents, swapped, window, target, shape, kind, upright, stream, parsed, view, info, at, handles,
    failed,
):  # fmt: skip
    """Describes one picture to the library: its bytes, its window, the memory for its pixels.

    A picture is refused if the extents that the library finds, or the swap of height and width, differ from the caller's: its
    pixels would not fit.

    Args:
        window: y0, x0, y1, x1; empty for the whole picture.
        kind: sample format and colour space.
        parsed, view, info: the bytes of structures. Each picture gets copies, because threads prepare several at once.
        handles: uint64 `[3]`, of a stream, a window and an image, which are reused. The library caches the header that it has
            read.
        failed: `[1]`, set to the status.
    """
    numbers = parsed.copy().view(np.int32)
    status = _create(instance, handles.ctypes.data, address, size, 0)
    if status == 0:
        status = _parse(handles[0], numbers.ctypes.data)
    fits = numbers[at[AT_HEIGHT]] == extents[0] and numbers[at[AT_WIDTH]] == extents[1]
    if status == 0 and not (fits and (numbers[at[AT_TURN]] % 180 != 0) == swapped):
        status = -1
    if status == 0 and len(window):
        place = view.copy().view(np.int32)
        for axis in range(2):
            place[at[AT_START] + axis] = window[axis]
            place[at[AT_END] + axis] = window[2 + axis]
        status = _cut(handles[0], handles.ctypes.data + 8, place.ctypes.data)
    if status == 0:
        wide = info.copy().view(np.int64)
        image = wide.view(np.int32)
        wide[at[AT_STREAM]], wide[at[AT_BUFFER]], wide[at[AT_STRIDE]] = stream, target, shape[1] * shape[2]
        image[at[AT_HEIGHT]], image[at[AT_WIDTH]], image[at[AT_CHANNELS]] = shape[0], shape[1], shape[2]
        image[at[AT_FORMAT]], image[at[AT_SPACE]] = kind[0], kind[1]
        for k in range(3):  # degrees and flips
            image[at[AT_TURN] + k] = numbers[at[AT_TURN] + k] if upright else 0
        status = _image(instance, handles.ctypes.data + 16, image.ctypes.data)
    failed[0] = status


prepare.fallback()


@kernel
def _number_of_an_idle_one(waiting):
    """Waits for a decoder. Returns its number, or -1 if the pipe is broken."""
    number = zeros(1, np.uint8)
    for _ in range(_TRIES):
        if _read(waiting, number.ctypes.data, 1) == 1:
            return np.int64(number[0])
    return np.int64(-1)


def _largest_first_in_python(numbers: np.ndarray, sizes: np.ndarray) -> None:
    numbers[:] = numbers[np.argsort(-sizes[numbers], kind="stable")]


@kernel
def _largest_first(numbers, sizes):
    """Sorts the numbers of pictures by size, the largest first, then by number. Shell's sort compiles in a ninth of the time of
    NumPy's."""
    gap = len(numbers) // 2
    while gap > 0:
        for k in range(gap, len(numbers)):
            picture, at = numbers[k], k
            while at >= gap:
                before = numbers[at - gap]
                if sizes[before] > sizes[picture] or (sizes[before] == sizes[picture] and before < picture):
                    break
                numbers[at] = before
                at -= gap
            numbers[at] = picture
        gap //= 2


_largest_first.interpreted_as(_largest_first_in_python)


@kernel
def decode(decoders, mine, idle, params, sizes, handles, which, failed):
    """Decodes a batch. Returns when the CPU's work is done and the GPU's is queued.

    Args:
        decoders: their handles; 0 for a decoder that does not exist yet.
        mine: the number of the decoder that the caller holds; -1 for the next idle one.
        idle: the ends of the pipe with the numbers of idle decoders, (to read, to write).
        sizes: bytes of the pictures.
        handles: `[M, 3]`, see `prepare`.
        which: the column of the handles: 0 for whole pictures, 1 for windows.
        failed: the statuses of `prepare`; not 0 afterwards for pictures that were not decoded.

    Returns:
        0, or the status of a decoder that refuses everything; and the number of the decoder, which the caller then holds.
    """
    number = np.int64(mine)
    sound = np.flatnonzero(failed == 0)
    if not len(sound):
        return np.int64(0), number
    # The engines and the library's threads take pictures in this order, so that none of them works on a large one at the end
    # while the others are idle: 3.9 to 3.6 ms for 64 ImageNet JPEGs, 12.0 to 10.9 for 256 (H200, 16 cores).
    _largest_first(sound, sizes)
    sources, images, statuses = handles[:, which][sound], handles[:, 2][sound], zeros(len(sound), np.uint32)
    if number < 0:
        number = _number_of_an_idle_one(idle[0])
    decoder = decoders[number] if number >= 0 else np.uint64(0)  # read once: another thread may set it to 0
    if decoder == 0:
        return np.int64(NOT_MADE), number
    future, size = zeros(1, np.uint64), zeros(1, np.uint64)
    status = _decode(decoder, sources.ctypes.data, images.ctypes.data, len(sound), params, future.ctypes.data)
    if status == 0:
        _wait(future[0])
        status = _statuses(future[0], statuses.ctypes.data, size.ctypes.data)
        _destroy(future[0])
    if status == 0:
        size[0] = number
        _write(idle[1], size.ctypes.data, 1)  # its first byte: all machines that numba supports are little-endian
    for k in range(len(sound)):
        if statuses[k] != _DECODED:
            failed[sound[k]] = 1
    return np.int64(status), number


decode.fallback()
