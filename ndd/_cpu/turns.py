"""For kernels that work on many samples: the next one by a counter that all threads share, and arrays at addresses.

Such a kernel is called once by each thread, and takes samples until none is left. A call for each sample made threads wait
for the interpreter: 64 photographs through decode, resample and normalise were 256 calls, each of which lets go of it and
asks for it again.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from ndd._cpu.jit import Compiled


class _NextTurn(Compiled):
    def inner(self) -> Any:
        return _counted()

    def in_python(self) -> Any:
        return _counted_in_python


next_turn: Any = _NextTurn()
"""`next_turn(turns)`: the number in int64 `[1]`, which becomes one more, as one step among all threads."""


class _ArrayAt(Compiled):
    def inner(self) -> Any:
        return _placed()

    def in_python(self) -> Any:
        return _placed_in_python


array_at: Any = _ArrayAt()
"""`array_at(address, extents, like)`: the C-contiguous array of `like`'s element type there; `extents` as of `np.empty`. It
owns nothing: who calls the kernel holds the memory."""


def _counted_in_python(turns: np.ndarray) -> int:
    """Two threads may get the same number, which is no harm: they make the same of it."""
    found = int(turns[0])
    turns[0] = found + 1
    return found


def _placed_in_python(address: int, extents: Any, like: np.ndarray) -> np.ndarray:
    count = math.prod(extents) if isinstance(extents, tuple) else extents
    if not count:
        return np.empty(extents, like.dtype)
    memory: Any = (ctypes.c_uint8 * (count * like.itemsize)).from_address(address)
    return np.frombuffer(memory, like.dtype).reshape(extents)


def _counted() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def counted(typing_context, turns):
        def generate(context, builder, signature, arguments):
            place = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            return builder.atomic_rmw("add", place, ir.Constant(ir.IntType(64), 1), "monotonic")

        return types.int64(types.Array(types.int64, 1, "C")), generate

    return counted


def _placed() -> Any:
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic
    from numba.np import arrayobj

    @intrinsic
    def placed(typing_context, address, extents, like):
        kind = types.Array(like.dtype, 1 if isinstance(extents, types.Integer) else len(extents), "C")
        given = types.unliteral(extents)

        def generate(context, builder, signature, arguments):
            if isinstance(signature.args[1], types.BaseTuple):
                pairs = zip(signature.args[1].types, cgutils.unpack_tuple(builder, arguments[1]), strict=True)
            else:
                pairs = [(signature.args[1], arguments[1])]
            shape = [context.cast(builder, value, of, types.intp) for of, value in pairs]
            strides = [context.get_constant(types.intp, arrayobj.get_itemsize(context, kind))]
            for extent in reversed(shape):
                strides.append(builder.mul(strides[-1], extent))
            array = context.make_array(kind)(context, builder)
            whole = context.get_value_type(types.intp)
            arrayobj.populate_array(
                array,
                data=builder.inttoptr(arguments[0], context.get_data_type(kind.dtype).as_pointer()),
                shape=cgutils.pack_array(builder, shape, ty=whole),
                strides=cgutils.pack_array(builder, strides[-2::-1], ty=whole),
                itemsize=strides[0],
                meminfo=None,
            )
            return array._getvalue()

        return kind(types.int64, given, like), generate

    return placed
