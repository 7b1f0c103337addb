"""What the driver's video parser calls, and copying a picture, compiled: none of it holds the GIL.

The parser calls back twice a frame. As Python functions these took the GIL each time, from the threads of the other
decoders; 8 of them on small frames mostly waited for each other.

`connect` says where the driver's functions are, before anything else here is used. A decoder has a `State`, 8-byte numbers:
the handle of its session (0: refuse), the first status of `cuvidDecodePicture` that was not 0, how many events were noted, and
the events, 3 numbers each: the first bytes of `CUVIDPARSERDISPINFO` for a picture that is shown; the number of a picture that
is decoded, with -1 as `progressive`.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ndd._cpu.inlined import zeros
from ndd._cpu.jit import External, kernel
from ndd._execution.fork import whole

_EVENTS = 128  # more than a packet, or the end of a stream, makes: a session has 32 surfaces at most
_HANDLE, _STATUS, _COUNT, _FIRST = range(4)
_DECODED = -1
_EVENT = struct.Struct("=iiiiq")

_FUNCTIONS = {
    "cuvidMapVideoFrame64": "int32(uintp, int32, uintp, uintp, uintp)",
    "cuvidUnmapVideoFrame64": "int32(uintp, uint64)",
    "cuvidGetDecodeStatus": "int32(uintp, int32, uintp)",
    "cuMemcpy2DAsync_v2": "int32(uintp, uintp)",
    "cuStreamSynchronize": "int32(uintp)",
}
_map, _unmap, _ask_status, _copy_rows, _wait = (External(name, signature) for name, signature in _FUNCTIONS.items())
# In `CUDA_MEMCPY2D`, as 8-byte numbers.
_SOURCE, _SOURCE_ROW = 4, 6


class Event(NamedTuple):
    """A picture that is shown, or, where `progressive` is negative, one that is decoded."""

    number: int
    progressive: int
    top_first: int
    repeat: int
    time: int

    @property
    def decoded(self) -> bool:
        """Whether it is about decoding."""
        return self.progressive == _DECODED


class State:
    """What the compiled functions know of a decoder; see above. It must live as long as its parser."""

    def __init__(self) -> None:
        self.numbers = np.zeros(_FIRST + 3 * _EVENTS, np.int64)
        self.address: int = self.numbers.ctypes.data
        self._memory = self.numbers.data

    def decode_with(self, session: int) -> None:
        """Sends pictures to a session from here on; 0: to none."""
        self._memory[_HANDLE] = session

    def clear(self) -> None:
        """Forgets the events."""
        self._memory[_STATUS] = self._memory[_COUNT] = 0

    @property
    def status(self) -> int:
        """The first status of `cuvidDecodePicture` that was not 0."""
        return self._memory[_STATUS]

    def events(self) -> Iterator[Event]:
        """What happened since `clear`."""
        for k in range(self._memory[_COUNT]):
            yield Event(*_EVENT.unpack_from(self._memory, 8 * (_FIRST + 3 * k)))


def connect(video: object, cuda: object) -> None:
    """Makes the functions of the driver's loaded libraries (of ctypes) known to compiled code."""
    import ctypes

    from llvmlite import binding

    for name in (*_FUNCTIONS, "cuvidDecodePicture"):
        function = getattr(video if name.startswith("cuvid") else cuda, name)
        binding.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)


def callbacks() -> tuple[int, int]:
    """The addresses of what the parser calls for a picture to decode, and for one to show; it gets those of a `State`."""
    with whole:
        engine = _engine()
    return engine.get_function_address("decode"), engine.get_function_address("show")


@functools.cache
def _engine() -> Any:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(jit=True)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(str(_written())), machine)
    engine.finalize_object()
    return engine


def _written() -> Any:
    """The two functions. Numba's way to such ones (`cfunc`) takes 0.4 s in each process, this 10 ms."""
    from llvmlite import ir

    whole_number, number, pointer = ir.IntType(32), ir.IntType(64), ir.IntType(64).as_pointer()
    module = ir.Module()
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
    # The third number of 4 bytes is that of the picture.
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
    return module


@kernel
def copy_picture(session, number, mapping, stream, copies, firsts, status):
    """Copies a picture of a session; the copy is there when this returns. Gives which call failed, and its status.

    `mapping`, `status`: the addresses of structures. `copies`: u64 `[2, 16]`, for luma and chroma, where only the sources
    are missing; `firsts`: i64 `[2, 2]`, for each the first row and the first byte of a row.
    """
    found = zeros(2, np.uint64)
    failed = _map(session, number, found.ctypes.data, found.ctypes.data + 8, mapping)
    if failed:
        return 0, failed
    step = 1
    for k in range(2):
        copies[k, _SOURCE] = found[0] + np.uint64(firsts[k, 0]) * found[1] + np.uint64(firsts[k, 1])
        copies[k, _SOURCE_ROW] = found[1]
        if not failed:
            failed = _copy_rows(copies.ctypes.data + 128 * k, stream)
    if not failed:
        step, failed = 2, _wait(stream)
    _ask_status(session, number, status)
    _unmap(session, found[0])
    return step, failed


CALLS = ("cuvidMapVideoFrame64", "cuMemcpy2DAsync", "cuStreamSynchronize")
"""What `copy_picture` says has failed."""
