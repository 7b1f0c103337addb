"""Compiled code around the driver's video parser, without the GIL: its callbacks, sending packets, copying pictures.

The parser calls back twice a frame. Callbacks in Python take the GIL each time, and 8 decoders of small frames mostly wait for each
other. A Python call for each packet and picture has the same effect: with 16 threads an H200 reaches 2,500 to 4,000 frames of
320 x 180 a second, with its engines busy for a tenth of the time. One call for all packets of a clip reaches 20,000 and more.

`connect` must come first. A decoder has a `State`, 8-byte numbers: the handle of its session (0: refuse), the first status of
`cuvidDecodePicture` that was not 0, the number of events, and the events, 3 numbers each: the first bytes of
`CUVIDPARSERDISPINFO` for a picture that is shown; the number of a picture that is decoded, with -1 as `progressive`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._compiled.c_functions import c_functions
from ndd._compiled.intrinsics import zeros
from ndd._compiled.jit import External, kernel

_EVENTS = 128  # more than a packet, or the end of a stream, can cause: a session has at most 32 surfaces
_HANDLE, _STATUS, _COUNT, _FIRST = range(4)
_DECODED = -1

_FUNCTIONS = {
    "cuvidParseVideoData": "int32(uintp, uintp)",
    "cuvidMapVideoFrame64": "int32(uintp, int32, uintp, uintp, uintp)",
    "cuvidUnmapVideoFrame64": "int32(uintp, uintp)",
    "cuvidGetDecodeStatus": "int32(uintp, int32, uintp)",
    "cuMemcpy2DAsync_v2": "int32(uintp, uintp)",
    "cuStreamSynchronize": "int32(uintp)",
}
_functions = [External(name, signature) for name, signature in _FUNCTIONS.items()]
_parse, _map, _unmap, _ask_status, _copy_rows, _wait = _functions
_decode = External("cuvidDecodePicture", "int32(uintp, uintp)")  # the callbacks below call it
# Places in `CUDA_MEMCPY2D`, as 8-byte numbers.
_SOURCE, _SOURCE_ROW, _TARGET = 4, 6, 11
# The state of a picture, which the driver reports only for H.264 and HEVC.
_UNDER_WAY, _DAMAGED, _PAINTED_OVER = 1, 8, 9
CALLS = (
    "cuvidMapVideoFrame64", "cuMemcpy2DAsync", "cuStreamSynchronize", "cuvidParseVideoData", "cuvidDecodePicture",
)  # fmt: skip
"""The step that failed, in the result of `decode_packets`; the next two numbers mean that a picture was lost, or damaged."""
_MAP, _COPY, _SYNCHRONIZE, _PARSE, _DECODE, OVERRUN, _DAMAGE = range(7)
NEVER = -(1 << 63)
FORGOTTEN = 2
H264, HEVC = 1, 2


class State:
    """The state of a decoder for the compiled functions, see above. It must live as long as its parser."""

    def __init__(self) -> None:
        self.numbers = np.zeros(_FIRST + 3 * _EVENTS, np.int64)
        self.address: int = self.numbers.ctypes.data
        self._memory = self.numbers.data

    def decode_with(self, session: int) -> None:
        """Sets the session that gets the next pictures; 0: none."""
        self._memory[_HANDLE] = session


def connect(video: object, cuda: object) -> None:
    """Makes the functions of the driver's loaded libraries (of ctypes) known to compiled code."""
    for external in (*_functions, _decode):
        external.connect(getattr(video if external.name.startswith("cuvid") else cuda, external.name))


def callbacks() -> tuple[int, int]:
    """The addresses of the functions that the parser calls for a picture to decode, and for one to show. Both get a `State`."""
    decode, show = c_functions(_write_callbacks, "decode", "show")
    return decode, show


def _write_callbacks(ir: Any, module: Any) -> None:
    """The two functions."""
    whole_number, number, pointer = ir.IntType(32), ir.IntType(64), ir.IntType(64).as_pointer()
    callback = ir.FunctionType(whole_number, [pointer, pointer])
    driver = ir.Function(module, ir.FunctionType(whole_number, [number, pointer]), "cuvidDecodePicture")

    def at(builder: Any, numbers: Any, place: Any) -> Any:
        return builder.gep(numbers, [number(place) if isinstance(place, int) else place])

    def note(builder: Any, state: Any, event: Callable[[int], Any]) -> None:
        counted = at(builder, state, _COUNT)
        count = builder.load(counted)
        with builder.if_then(builder.icmp_signed("<", count, number(_EVENTS))):
            place = builder.add(builder.mul(count, number(3)), number(_FIRST))
            for k in range(3):
                builder.store(event(k), at(builder, state, builder.add(place, number(k))))
            builder.store(builder.add(count, number(1)), counted)

    decode = ir.Function(module, callback, "decode")
    state, picture = decode.args
    builder = ir.IRBuilder(decode.append_basic_block())
    session = builder.load(at(builder, state, _HANDLE))
    with builder.if_then(builder.icmp_signed("==", session, number(0))):
        builder.ret(whole_number(0))
    # The third 4-byte number is the number of the picture.
    surface = builder.and_(builder.load(at(builder, picture, 1)), number(0xFFFFFFFF))
    marked = builder.or_(surface, number(_DECODED << 32))
    note(builder, state, lambda k: number(0) if k else marked)
    status = builder.call(driver, [session, picture])
    failed = builder.icmp_signed("!=", status, whole_number(0))
    with builder.if_then(failed):
        builder.store(builder.sext(status, number), at(builder, state, _STATUS))
    builder.ret(builder.zext(builder.not_(failed), whole_number))

    show = ir.Function(module, callback, "show")
    state, shown = show.args
    builder = ir.IRBuilder(show.append_basic_block())
    ends = builder.icmp_signed("==", builder.ptrtoint(shown, number), number(0))
    with builder.if_then(builder.not_(ends)):
        note(builder, state, lambda k: builder.load(at(builder, shown, k)))
    builder.ret(whole_number(1))


@kernel
def decode_packets(parser, stream, state, data, packets, begins, head, codec, wanted, places, mapping, status, waits):
    """Sends packets to a parser, and copies the requested pictures that it outputs, until it has copied all. Copies are complete on
    return.

    Args:
        state: the numbers of a `State`.
        data: u8, the packets, one after the other. `head` more bytes before packet `begins` are sent with it.
        packets: i64 `[N, 4]`: flags, size, time; and 1 for a packet to skip unless other frames need it, or `FORGOTTEN` for one
            whose pictures are not needed.
        codec: `H264` or `HEVC` if units in packets begin with their lengths, else 0.
        wanted: i64 `[M, 2]`: ascending times, and the addresses to copy the pictures to, which become 0.
        places, mapping, status, waits: see `copy_picture`.

    Returns the step that failed (`CALLS`), its status (0: none failed), the number of packets that were sent, and the time of the
    last picture that was output, or `NEVER`.
    """
    packet = zeros(4, np.int64)
    step, failed, end, last, sent, copied, missing = 0, 0, 0, NEVER, 0, 0, 0
    for i in range(wanted.shape[0]):
        missing += wanted[i, 1] != 0
    for i in range(packets.shape[0]):
        sent = i + 1
        begin = end
        first = begin + (head if i == begins else 0)
        end = first + packets[i, 1]
        size, needed = end - begin, True
        if codec:
            size, needed = with_start_codes(data, begin, first, end, codec)
        if packets[i, 3] == 1 and not needed:
            continue
        packet[0], packet[1], packet[2], packet[3] = packets[i, 0], size, data.ctypes.data + begin, packets[i, 2]
        state[_STATUS], state[_COUNT] = 0, 0
        failed = _parse(parser, packet.ctypes.data)
        if state[_STATUS]:
            step, failed = _DECODE, state[_STATUS]
        elif failed:
            step = _PARSE
        if failed:
            break
        if packets[i, 3] == FORGOTTEN:
            continue
        count = state[_COUNT]
        if count == _EVENTS:
            step, failed = OVERRUN, 1
            break
        for k in range(count):
            at = _FIRST + 3 * k
            number, time = state[at] & 0xFFFFFFFF, state[at + 2]
            if state[at] >> 32 == _DECODED:
                continue
            last = time
            place = _place(wanted, time)
            if place < 0:
                continue
            for later in range(k + 1, count):
                if state[_FIRST + 3 * later] & 0xFFFFFFFF == number:
                    step, failed = OVERRUN, 1
            if failed:
                break
            mapping[0], mapping[2] = state[at] >> 32, state[at + 1] & 0xFFFFFFFF
            mapping[3] = state[at + 1] >> 32 < 0
            step, failed = copy_picture(
                state[_HANDLE], number, wanted[place, 1], stream, places, mapping, status, waits
            )
            copied += 1
            if failed:
                break
            wanted[place, 1] = 0
        if failed or (copied and copied == missing):
            break
    if copied and not waits:
        late = _wait(stream)
        if late and not failed:
            step, failed = _SYNCHRONIZE, late
    return step, failed, sent, last


@kernel
def _place(wanted, time):
    """The row of a time in `wanted`, if its picture is not copied yet; else -1."""
    low, high = 0, wanted.shape[0]
    while low < high:
        middle = (low + high) // 2
        if wanted[middle, 0] < time:
            low = middle + 1
        else:
            high = middle
    if low < wanted.shape[0] and wanted[low, 0] == time and wanted[low, 1]:
        return low
    return -1


@kernel
def copy_picture(session, number, target, stream, places, mapping, status, waits):
    """Begins to copy a picture of a session. Returns the step that failed, and its status.

    Args:
        places: i64 `[3, 16]`. The first two rows are `CUDA_MEMCPY2D`s for luma and chroma, without sources and targets. The third
            has the first row and the first byte in a row of each, then the bytes of luma.
        mapping, status: the driver's structures as i32.
        waits: whether the copy is complete on return.
    """
    surface = zeros(2, np.int64)  # address and pitch
    failed = _map(session, number, surface.ctypes.data, surface.ctypes.data + 8, mapping.ctypes.data)
    if failed:
        return _MAP, failed
    for k in range(2):
        places[k, _SOURCE] = surface[0] + places[2, 2 * k] * surface[1] + places[2, 2 * k + 1]
        places[k, _SOURCE_ROW] = surface[1]
        places[k, _TARGET] = target + k * places[2, 4]
        if not failed:
            failed = _copy_rows(places.ctypes.data + 128 * k, stream)
    step = _COPY
    if not failed:
        if waits:
            step, failed = _SYNCHRONIZE, _wait(stream)
        _ask_status(session, number, status.ctypes.data)
        if status[0] == _UNDER_WAY and not failed:
            step, failed = _SYNCHRONIZE, _wait(stream)
            _ask_status(session, number, status.ctypes.data)
        if not failed and (status[0] == _DAMAGED or status[0] == _PAINTED_OVER):
            step, failed = _DAMAGE, status[0]
    # The same stream writes to the surface again, after the copies.
    _unmap(session, surface[0])
    return step, failed


@kernel
def with_start_codes(data, begin, first, end, codec):
    """Replaces the 4-byte lengths of the units from `first` on with start codes. Returns the size from `begin` on, and whether
    other frames need the packet."""
    place, needed = first, False
    while place + 4 < end:
        size = np.int64(0)
        for k in range(4):
            size = size << 8 | data[place + k]
        data[place], data[place + 1], data[place + 2], data[place + 3] = 0, 0, 0, 1
        head = np.int64(data[place + 4])
        if codec == H264:
            if 1 <= head & 31 <= 5 and head >> 5 & 3 > 0:
                needed = True
        else:
            kind = head >> 1 & 63
            if kind < 32 and (kind > 14 or kind % 2 == 1):
                needed = True
        place += 4 + size
    return min(place, end) - begin, needed
