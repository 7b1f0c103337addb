"""Element type conversions that NumPy has no fast loop for (see `ndd._tensor.convert` for the rules)."""

from __future__ import annotations

import numpy as np

from ndd._compiled.half import bfloat16_bits, half_bits
from ndd._compiled.intrinsics import each
from ndd._compiled.jit import kernel
from ndd._tensor.conversion_rules import rounded


@kernel
def float_to_int(array, out, half, low, high, above, top, nan):
    """Round by adding `half` and truncating; `high` is the last float that fits, `above` the first that does not."""
    for i in range(array.size):
        value = np.trunc(array[i] + np.copysign(half, array[i]))
        clamped = min(max(value, low), high) if value == value else low
        out[i] = clamped
        if value >= above:
            out[i] = top
        if value != value:
            out[i] = nan


float_to_int.fallback(rounded)


@kernel
def int_to_int(array, out, low, high):
    """Saturate between `low` and `high`, numbers of the type of `array`."""
    for i in range(array.size):
        out[i] = min(max(array[i], low), high)


@int_to_int.fallback
def _(array, out, low, high):
    np.copyto(out, np.minimum(np.maximum(array, low), high), casting="unsafe")


@kernel
def int_to_float(array, out):
    """Rounds to the nearest, ties to even. It also converts numbers to a type that can hold all of them, and floats to other
    floats."""
    for i in each(array.size):
        out[i] = array[i]


int_to_float.fallback()


@kernel
def half_to_float(array, out):
    """float16 bits to float32."""
    result = out.view(np.uint32)
    for i in range(array.size):
        word = np.uint32(array[i])
        sign = (word & np.uint32(0x8000)) << np.uint32(16)
        exponent = word & np.uint32(0x7C00)
        body = (word & np.uint32(0x7FFF)) << np.uint32(13)
        normal = body + np.uint32(0x38000000)
        if exponent == np.uint32(0x7C00):
            normal = body + np.uint32(0x70000000)
        if exponent == np.uint32(0):
            # A subnormal is its bits times 2**-24, which float32 holds exactly.
            out[i] = np.float32(word & np.uint32(0x3FF)) * np.float32(2.0**-24)
            result[i] |= sign
        else:
            result[i] = normal | sign


@half_to_float.fallback
def _(array, out):
    out[:] = array.view(np.float16)


@kernel
def float_to_half(array, out):
    """float32 bits to float16 bits, to the nearest, ties to even."""
    values = array.view(np.float32)
    for i in range(array.size):
        sign = (array[i] >> np.uint32(16)) & np.uint32(0x8000)
        body = array[i] & np.uint32(0x7FFFFFFF)
        rounded = (
            body - np.uint32(0x38000000) + np.uint32(0xFFF) + ((body >> np.uint32(13)) & np.uint32(1))
        ) >> np.uint32(13)
        if body >= np.uint32(0x477FF000):
            rounded = np.uint32(0x7E00) if body > np.uint32(0x7F800000) else np.uint32(0x7C00)
        if body < np.uint32(0x38800000):
            # Subnormal: next to one half the spacing of float32 is that of float16, so the addition rounds.
            rounded = np.float32(abs(values[i]) + np.float32(0.5)).view(np.uint32) - np.uint32(0x3F000000)
        out[i] = np.uint16(sign | rounded)


@float_to_half.fallback
def _(array, out):
    out.view(np.float16)[:] = array.view(np.float32)


@kernel
def float_to_bfloat16(array, out):
    """float32 bits to bfloat16 bits, to the nearest, ties to even."""
    for i in range(array.size):
        out[i] = bfloat16_bits(np.uint32(array[i]).view(np.float32))


@float_to_bfloat16.fallback
def _(array, out):
    rounded = (array + np.uint32(0x7FFF) + ((array >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    out[:] = np.where(np.isnan(array.view(np.float32)), np.uint32(0x7FFF), rounded)


@kernel
def element(value, limits, half):
    """A number as an element of the output: integers round halves away from zero and saturate.

    `limits` are the lowest and highest integer of an integer output, else None; `half` is True if the output holds float16 bits,
    False if bfloat16 bits, else None. numba compiles a kernel for each of these.
    """
    if half is not None:
        return half_bits(value) if half else bfloat16_bits(value)
    if limits is not None:
        value = min(max(value, limits[0]), limits[1])
        return np.trunc(value + np.copysign(np.float32(0.49999997), value))
    return value
