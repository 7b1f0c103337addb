"""`leading_zeros` and `ones`, for kernels: the number of zero bits before the first 1 of a number, and the number of bits that
are 1. Each is one instruction, which numba does not offer; decoding FLAC, Vorbis and progressive JPEGs needs one a number."""

from __future__ import annotations

from typing import Any

from ndd._compiled.jit import Intrinsic

leading_zeros: Any = Intrinsic(lambda: _intrinsic(lambda builder, word, no: builder.ctlz(word, no)))
"""`leading_zeros(word)` of an uint64, int64: 0 to 64."""

ones: Any = Intrinsic(lambda: _intrinsic(lambda builder, word, no: builder.ctpop(word)))
"""`ones(word)` of an uint64, int64: 0 to 64."""


def _intrinsic(count: Any) -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def counted(typing_context, word):
        def generate(context, builder, signature, arguments):
            return count(builder, arguments[0], ir.Constant(ir.IntType(1), 0))

        return types.int64(types.uint64), generate

    return counted
