"""`leading_zeros`, for kernels: the number of zero bits before the first 1 of a number. It is one instruction, which numba does
not offer; decoding FLAC and Vorbis needs it for each sample."""

from __future__ import annotations

from typing import Any

from ndd._compiled.jit import Intrinsic

leading_zeros: Any = Intrinsic(lambda: _intrinsic())
"""`leading_zeros(word)` of an uint64, int64: 0 to 64."""


def _intrinsic() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def counted(typing_context, word):
        def generate(context, builder, signature, arguments):
            return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

        return types.int64(types.uint64), generate

    return counted
