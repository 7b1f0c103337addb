"""Element type conversions that NumPy has no fast loop for (see `ndd._tensor.convert` for the rules)."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from ndd._compiled.intrinsics import each
from ndd._compiled.jit import Kernel, kernel
from ndd._tensor.conversion_rules import limits_of_float, limits_of_int, numpy_type, rounded


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


float_to_int.meanwhile(rounded)


@kernel
def int_to_int(array, out, low, high):
    """Saturate between `low` and `high`, numbers of the type of `array`."""
    for i in range(array.size):
        out[i] = min(max(array[i], low), high)


@int_to_int.meanwhile
def _(array, out, low, high):
    np.copyto(out, np.minimum(np.maximum(array, low), high), casting="unsafe")


@kernel
def int_to_float(array, out):
    """To the nearest, ties to even; also any numbers to a type that has all of them, and floats to other floats."""
    for i in each(array.size):
        out[i] = array[i]


int_to_float.meanwhile()


@kernel
def half_to_float(bits, out):
    """float16 bits to float32."""
    result = out.view(np.uint32)
    for i in range(bits.size):
        word = np.uint32(bits[i])
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


@kernel
def float_to_half(bits, out):
    """float32 bits to float16 bits, to the nearest, ties to even."""
    values = bits.view(np.float32)
    for i in range(bits.size):
        sign = (bits[i] >> np.uint32(16)) & np.uint32(0x8000)
        body = bits[i] & np.uint32(0x7FFFFFFF)
        rounded = (
            body - np.uint32(0x38000000) + np.uint32(0xFFF) + ((body >> np.uint32(13)) & np.uint32(1))
        ) >> np.uint32(13)
        if body >= np.uint32(0x477FF000):
            rounded = np.uint32(0x7E00) if body > np.uint32(0x7F800000) else np.uint32(0x7C00)
        if body < np.uint32(0x38800000):
            # Subnormal: next to one half the spacing of float32 is that of float16, so the addition rounds.
            rounded = np.float32(abs(values[i]) + np.float32(0.5)).view(np.uint32) - np.uint32(0x3F000000)
        out[i] = np.uint16(sign | rounded)


@kernel
def float_to_bfloat16(bits, out):
    """float32 bits to bfloat16 bits, to the nearest, ties to even."""
    for i in range(bits.size):
        word = bits[i]
        rounded = (word + np.uint32(0x7FFF) + ((word >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
        if (word & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000):
            rounded = np.uint32(0x7FFF)
        out[i] = np.uint16(rounded)


class Conversion(NamedTuple):
    """A kernel `f(array, out, *numbers)`, and the types as which it takes the arrays' memory."""

    kernel: Kernel
    numbers: tuple[Any, ...]
    sees: Any
    makes: Any


@functools.cache
def conversion(src: str, dst: str) -> Conversion | None:
    """The kernel that converts 1-D arrays of type `src` to `dst` (short names) by the rule of `cast`; None where there is none."""
    source, target = numpy_type(src), numpy_type(dst)
    if (src, dst) == ("f16", "f32"):
        return Conversion(half_to_float, (), np.uint16, np.float32)
    if (src, dst) == ("f32", "f16"):
        return Conversion(float_to_half, (), np.uint32, np.uint16)
    if (src, dst) == ("f32", "bfloat16"):
        return Conversion(float_to_bfloat16, (), np.uint32, np.uint16)
    wide = "f16", "bfloat16"
    if src in wide or dst in wide or source.kind not in "iuf" or target.kind not in "iuf":
        return None
    if source.kind == "f" and target.kind != "f":
        return Conversion(float_to_int, limits_of_float(source, target, "cast"), source, target)
    if target.kind == "f" or source == target or limits_of_int(source, target) == (None, None):
        return Conversion(int_to_float, (), source, target)
    least, most = np.iinfo(source).min, np.iinfo(source).max
    low, high = limits_of_int(source, target)
    cut = source.type(least) if low is None else low, source.type(most) if high is None else high
    return Conversion(int_to_int, cut, source, target)
