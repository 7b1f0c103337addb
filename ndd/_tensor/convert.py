"""Conversion of element types on the CPU: DALI's `cast` rule and the truncating rule of crop and slice.

`cast`: a float becomes an integer by rounding half away from zero and saturating; integers saturate; a float is true
when its rounded value is nonzero; what is too large for a float type becomes infinite. NaN gives 0 in integers of up
to 32 bits except int32; int32 and int64 get their minimum and uint64 gets 2**63.
`truncate`: the same, but the fraction is dropped. A bfloat16 array is held as its bits, in uint16.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

Step = Callable[[np.ndarray, np.ndarray], None]

_NUMPY = {
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "f16": "float16", "f32": "float32", "f64": "float64", "bool": "bool", "bfloat16": "uint16",
    "DataType": "int32", "ImageType": "int32", "InterpType": "int32",
}  # fmt: skip

# Below this many elements the NumPy passes beat (or equal) the compiled loop and cost no compilation.
COMPILED_FROM = 1 << 14


def numpy_type(name: str) -> np.dtype:
    """The NumPy type that holds elements of the type with this short name."""
    return np.dtype(_NUMPY[name])


def convert_array(
    array: np.ndarray, src: str, dst: str, out: np.ndarray | None = None, rule: str = "cast"
) -> np.ndarray:
    """`array`, holding type `src`, as type `dst` (short names), in `out` or a new array."""
    if out is None:
        out = np.empty(array.shape, _NUMPY[dst])
    converter(src, dst, rule)(array, out)
    return out


@cache
def converter(src: str, dst: str, rule: str = "cast") -> Step:
    """The function `f(array, out)` that converts `src` to `dst` (short names) by `rule` ("cast" or "truncate")."""
    if src == dst or (_NUMPY[src] == _NUMPY[dst] and "bfloat16" not in (src, dst)):
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
    source, target = np.dtype(_NUMPY[src]), np.dtype(_NUMPY[dst])
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
        from ndd._cpu.conversion import int_to_float

        int_to_float(array.reshape(-1), out.reshape(-1))
    else:
        _copy(array, out)


def _compiled(array: np.ndarray, out: np.ndarray) -> bool:
    return array.size >= COMPILED_FROM and array.flags.c_contiguous and out.flags.c_contiguous


def _in_two_steps(src: str, middle: str, dst: str, rule: str) -> Step:
    first, second = converter(src, middle, rule), converter(middle, dst, rule)
    kind = _NUMPY[middle]

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
        from ndd._cpu.conversion import half_to_float

        half_to_float(array.reshape(-1).view(np.uint16), out.reshape(-1))
    else:
        _quiet_copy(array, out)  # signalling NaN


def _float_to_half(array: np.ndarray, out: np.ndarray) -> None:
    if _compiled(array, out):
        from ndd._cpu.conversion import float_to_half

        float_to_half(array.reshape(-1).view(np.uint32), out.reshape(-1).view(np.uint16))
    else:
        _quiet_copy(array, out)


def widen_bfloat16(array: np.ndarray, out: np.ndarray) -> None:
    """bfloat16 bits to float32."""
    np.left_shift(array, 16, out=out.view(np.uint32), dtype=np.uint32)


def narrow_bfloat16(array: np.ndarray, out: np.ndarray) -> None:
    """float32 to bfloat16 bits, to the nearest, ties to even; any NaN becomes 0x7fff."""
    if _compiled(array, out):
        from ndd._cpu.conversion import float_to_bfloat16

        float_to_bfloat16(array.reshape(-1).view(np.uint32), out.reshape(-1))
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


def limits_of_int(source: np.dtype, target: np.dtype) -> tuple[Any, Any]:
    """What integers are cut to, lowest and highest, as numbers of their own type; None where all of them fit."""
    have, want = np.iinfo(source), np.iinfo(target)
    low = source.type(want.min) if want.min > have.min else None
    high = source.type(want.max) if want.max < have.max else None
    return low, high


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
            from ndd._cpu.conversion import int_to_int

            int_to_int(array.reshape(-1), out.reshape(-1), at_least, at_most)
        else:
            convert(array, out)

    return convert_any_size


def of_nan(target: np.dtype) -> int:
    """What NaN becomes in an integer type."""
    if target.name == "uint64":
        return 1 << 63
    return int(np.iinfo(target).min) if target.name in ("int32", "int64") else 0


def rounded(array: np.ndarray, out: np.ndarray, half: Any, low: Any, high: Any, above: Any, top: Any, nan: Any) -> None:
    """Floats to integers by NumPy; what the numbers mean stands at `float_to_int` of `ndd._cpu.conversion`."""
    with np.errstate(invalid="ignore"):
        value = np.trunc(array + np.copysign(half, array)) if half else np.trunc(array)
        np.copyto(out, np.minimum(np.maximum(value, low), high), casting="unsafe")
        if int(high) != top:
            np.copyto(out, top, where=value >= above)
        unknown = np.isnan(value)
        if unknown.any():
            np.copyto(out, nan, where=unknown)


def limits_of_float(source: np.dtype, target: np.dtype, rule: str) -> tuple[Any, ...]:
    """The numbers that `float_to_int` of `ndd._cpu.conversion` takes."""
    limits = np.iinfo(target)
    kind = source.type
    low = kind(limits.min)
    above = kind(float(limits.max + 1))  # the first value that does not fit: a power of two, exact
    high = kind(limits.max) if int(kind(limits.max)) <= limits.max else np.nextafter(above, kind(0))
    # Adding the number just below one half and truncating rounds half away from zero, without the errors of 0.5.
    half = np.nextafter(kind(0.5), kind(0)) if rule == "cast" else kind(0)
    return half, low, high, above, target.type(limits.max), target.type(of_nan(target))


def _float_to_int(source: np.dtype, target: np.dtype, rule: str) -> Step:
    numbers = limits_of_float(source, target, rule)

    def convert(array: np.ndarray, out: np.ndarray) -> None:
        if _compiled(array, out):
            from ndd._cpu.conversion import float_to_int

            float_to_int(array.reshape(-1), out.reshape(-1), *numbers)
        else:
            rounded(array, out, *numbers)

    return convert
