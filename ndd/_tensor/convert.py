"""Conversion of element types on the CPU: DALI's `cast` rule and the truncating rule of crop and slice.

`cast`: a float becomes an integer by rounding half away from zero and saturating; integers saturate; a float is true when
its rounded value is nonzero; a number too large for a float type becomes infinite. NaN gives 0 in integers of up to 32 bits
except int32; int32 and int64 get their minimum, and uint64 gets 2**63.

`truncate`: the same, but the fraction is dropped. A bfloat16 array is held as its bits, in uint16.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ndd._tensor.conversion_rules import NUMPY, limits_of_float, limits_of_int, rounded

Step = Callable[[np.ndarray, np.ndarray], None]

# Below this many elements the NumPy passes beat (or equal) the compiled loop and cost no compilation.
COMPILED_FROM = 1 << 14


def convert_array(
    array: np.ndarray, src: str, dst: str, out: np.ndarray | None = None, rule: str = "cast"
) -> np.ndarray:
    """`array`, holding type `src`, as type `dst` (short names), in `out` or a new array."""
    if out is None:
        out = np.empty(array.shape, NUMPY[dst])
    converter(src, dst, rule)(array, out)
    return out


@cache
def converter(src: str, dst: str, rule: str = "cast") -> Step:
    """The function `f(array, out)` that converts `src` to `dst` (short names) by `rule` ("cast" or "truncate")."""
    if src == dst or (NUMPY[src] == NUMPY[dst] and "bfloat16" not in (src, dst)):
        return _copy
    if src == "bfloat16":
        return widen_bfloat16 if dst == "f32" else _in_two_steps(src, "f32", dst, rule)
    if dst == "bfloat16":
        return narrow_bfloat16 if src == "f32" else _in_two_steps(src, "f32", dst, rule)
    if {src, dst} == {"f16", "f32"}:
        return _half_to_float if src == "f16" else _float_to_half
    if src == "f16":
        return _in_two_steps(src, "f32", dst, rule)
    if dst == "f16":
        return _in_two_steps(src, "f32", dst, rule)  # also float64, as DALI does
    source, target = np.dtype(NUMPY[src]), np.dtype(NUMPY[dst])
    if target.kind == "b":
        return _float_to_bool(source, rule) if source.kind == "f" else _int_to_bool
    if source.kind == "b" or target.kind == "f":
        if source.kind in "iu" and target == np.float32:
            return _int_to_float
        return _quiet_copy if source.kind == "f" else _copy
    return _float_to_int(source, target, rule) if source.kind == "f" else _int_to_int(source, target)


def _copy(array: np.ndarray, out: np.ndarray) -> None:
    np.copyto(out, array, casting="unsafe")


def _quiet_copy(array: np.ndarray, out: np.ndarray) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        np.copyto(out, array, casting="unsafe")


def _int_to_float(array: np.ndarray, out: np.ndarray) -> None:
    if _compiled(array, out):
        _loops().int_to_float(array.reshape(-1), out.reshape(-1))
    else:
        _copy(array, out)


def _compiled(array: np.ndarray, out: np.ndarray) -> bool:
    return array.size >= COMPILED_FROM and array.flags.c_contiguous and out.flags.c_contiguous


@cache
def _loops() -> Any:
    """The compiled loops, in a layer above this one, for large arrays only."""
    # Importing it at the top would be a circle: the compiler's package needs `Store`.
    from ndd._cpu import conversion

    return conversion


def _in_two_steps(src: str, middle: str, dst: str, rule: str) -> Step:
    first, second = converter(src, middle, rule), converter(middle, dst, rule)
    kind = NUMPY[middle]

    def convert(array: np.ndarray, out: np.ndarray) -> None:
        if array.size <= COMPILED_FROM or not (array.flags.c_contiguous and out.flags.c_contiguous):
            between = np.empty(array.shape, kind)
            first(array, between)
            second(between, out)
            return
        # In blocks, so that the intermediate stays in the cache.
        source, target = array.reshape(-1), out.reshape(-1)
        between = np.empty(COMPILED_FROM, kind)
        for start in range(0, source.size, COMPILED_FROM):
            piece = source[start : start + COMPILED_FROM]
            held = between[: piece.size]
            first(piece, held)
            second(held, target[start : start + COMPILED_FROM])

    return convert


def _half_to_float(array: np.ndarray, out: np.ndarray) -> None:
    if _compiled(array, out):
        _loops().half_to_float(array.reshape(-1).view(np.uint16), out.reshape(-1))
    else:
        _quiet_copy(array, out)  # signalling NaN


def _float_to_half(array: np.ndarray, out: np.ndarray) -> None:
    if _compiled(array, out):
        _loops().float_to_half(array.reshape(-1).view(np.uint32), out.reshape(-1).view(np.uint16))
    else:
        _quiet_copy(array, out)


def widen_bfloat16(array: np.ndarray, out: np.ndarray) -> None:
    """bfloat16 bits to float32."""
    np.left_shift(array, 16, out=out.view(np.uint32), dtype=np.uint32)


def narrow_bfloat16(array: np.ndarray, out: np.ndarray) -> None:
    """float32 to bfloat16 bits, to the nearest, ties to even; any NaN becomes 0x7fff."""
    if _compiled(array, out):
        _loops().float_to_bfloat16(array.reshape(-1).view(np.uint32), out.reshape(-1))
        return
    bits = np.ascontiguousarray(array).view(np.uint32).reshape(array.shape)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    np.copyto(out, rounded, casting="unsafe")
    np.copyto(out, np.uint16(0x7FFF), where=np.isnan(array))


def _int_to_bool(array: np.ndarray, out: np.ndarray) -> None:
    np.not_equal(array, 0, out=out)


def _float_to_bool(source: np.dtype, rule: str) -> Step:
    limit = source.type(0.5 if rule == "cast" else 1)

    def convert(array: np.ndarray, out: np.ndarray) -> None:
        np.less(np.abs(array), limit, out=out)  # false for NaN, which counts as true
        np.logical_not(out, out=out)

    return convert


def _int_to_int(source: np.dtype, target: np.dtype) -> Step:
    low, high = limits_of_int(source, target)
    if low is None and high is None:
        return _copy
    at_least = source.type(np.iinfo(source).min) if low is None else low
    at_most = source.type(np.iinfo(source).max) if high is None else high

    def convert(array: np.ndarray, out: np.ndarray) -> None:
        held = None if array.ndim else np.empty((), source)
        if low is not None:
            array = held = np.maximum(array, low, out=held)
        if high is not None:
            array = np.minimum(array, high, out=held)
        np.copyto(out, array, casting="unsafe")

    def convert_any_size(array: np.ndarray, out: np.ndarray) -> None:
        if _compiled(array, out):
            _loops().int_to_int(array.reshape(-1), out.reshape(-1), at_least, at_most)
        else:
            convert(array, out)

    return convert_any_size


def _float_to_int(source: np.dtype, target: np.dtype, rule: str) -> Step:
    numbers = limits_of_float(source, target, rule)

    def convert(array: np.ndarray, out: np.ndarray) -> None:
        if _compiled(array, out):
            _loops().float_to_int(array.reshape(-1), out.reshape(-1), *numbers)
        else:
            rounded(array, out, *numbers)

    return convert
