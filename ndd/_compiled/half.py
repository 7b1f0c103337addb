"""`half_bits` and `bfloat16_bits`, for kernels: a float32 as the bits of the nearest float16 or bfloat16.

For float16 the processor's instruction is used if it has one.

That instruction (F16C on x86, always available on ARM) converts eight or sixteen numbers at once. Without it integer arithmetic
computes the bits, seven times slower.
"""

from __future__ import annotations

import platform
from typing import Any

import numpy as np

from ndd._compiled.jit import Intrinsic, kernel
from ndd._compiled.processor import processor_has


@kernel
def _assembled(value):
    bits = np.float32(value).view(np.uint32)
    sign = (bits >> np.uint32(16)) & np.uint32(0x8000)
    body = bits & np.uint32(0x7FFFFFFF)
    rounded = (body - np.uint32(0x38000000) + np.uint32(0xFFF) + ((body >> np.uint32(13)) & np.uint32(1))) >> np.uint32(
        13
    )
    if body >= np.uint32(0x477FF000):
        rounded = np.uint32(0x7E00) if body > np.uint32(0x7F800000) else np.uint32(0x7C00)
    if body < np.uint32(0x38800000):
        # Subnormal: around one half the spacing of float32 is that of float16, so the addition rounds.
        rounded = np.float32(abs(value) + np.float32(0.5)).view(np.uint32) - np.uint32(0x3F000000)
    return np.uint16(sign | rounded)


half_bits: Any = Intrinsic(lambda: _by_instruction() if _has_instruction() else _assembled.inner())


def _has_instruction() -> bool:
    return platform.machine().lower() in ("aarch64", "arm64") or processor_has("f16c")


def _by_instruction() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def converted(typing_context, value):
        def generate(context, builder, signature, arguments):
            return builder.bitcast(builder.fptrunc(arguments[0], ir.HalfType()), ir.IntType(16))

        return types.uint16(types.float32), generate

    return converted


@kernel
def bfloat16_bits(value):
    """A float32 as the bits of the nearest bfloat16, ties to even; NaN stays NaN."""
    bits = np.float32(value).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    if (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000):
        rounded = np.uint32(0x7FFF)
    return np.uint16(rounded)
