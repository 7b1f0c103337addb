"""`load_bits`, for kernels that read bit streams: eight bytes from any place as one number."""

from __future__ import annotations

from typing import Any

from ndd._compiled.jit import Intrinsic


def element_pointer(context: Any, builder: Any, kind: Any, array: Any, at: Any, count: int) -> Any:
    """For an intrinsic: a pointer to element `at` of an array, from which `count` elements are used. Bounds are checked only
    with NUMBA_BOUNDSCHECK=1."""
    array = context.make_array(kind)(context, builder, array)
    if context.enable_boundscheck:
        last = builder.sub(array.nitems, array.nitems.type(count))
        outside = builder.or_(builder.icmp_signed("<", at, at.type(0)), builder.icmp_signed(">", at, last))
        with builder.if_then(outside, likely=False):
            context.call_conv.return_user_exc(builder, IndexError, ("vectors are out of bounds",))
    return builder.gep(array.data, [at])


def _load_bits() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def load(typing_context, data, at):
        def generate(context, builder, signature, arguments):
            start = element_pointer(context, builder, signature.args[0], arguments[0], arguments[1], 8)
            return builder.bswap(builder.load(builder.bitcast(start, ir.IntType(64).as_pointer()), align=1))

        return types.uint64(types.Array(types.uint8, 1, "C"), types.uint64), generate

    return load


load_bits: Any = Intrinsic(_load_bits)
"""`load_bits(data, at)`: the eight bytes from `at` as a uint64, the first one highest. Bounds are checked only with
NUMBA_BOUNDSCHECK=1."""
