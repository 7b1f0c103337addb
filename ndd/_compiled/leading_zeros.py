"""`leading_zeros` and `ones`, for kernels: how many bits of a number are 0 before its first 1, and how many are 1. One instruction
each, for which numba has no name; the codes of FLAC, Vorbis and progressive JPEG have one such number for each sample."""

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
