"""The limits that conversions of element types clamp to, for NumPy and for compiled loops (see `convert.py` for the
rules)."""

from __future__ import annotations

from typing import Any

import numpy as np

NUMPY = {
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "f16": "float16", "f32": "float32", "f64": "float64", "bool": "bool", "bfloat16": "uint16",
    "DataType": "int32", "ImageType": "int32", "InterpType": "int32",
}  # fmt: skip


def numpy_type(name: str) -> np.dtype:
    """The NumPy type that holds elements of the type with this short name."""
    return np.dtype(NUMPY[name])


def limits_of_int(source: np.dtype, target: np.dtype) -> tuple[Any, Any]:
    """The range that integers are clamped to, as numbers of their own type; None where all of them fit."""
    have, want = np.iinfo(source), np.iinfo(target)
    low = source.type(want.min) if want.min > have.min else None
    high = source.type(want.max) if want.max < have.max else None
    return low, high


def of_nan(target: np.dtype) -> int:
    """The integer that stands for NaN in a type."""
    if target.name == "uint64":
        return 1 << 63
    return int(np.iinfo(target).min) if target.name in ("int32", "int64") else 0


def rounded(array: np.ndarray, out: np.ndarray, half: Any, low: Any, high: Any, above: Any, top: Any, nan: Any) -> None:
    """Floats to integers by NumPy; `float_to_int` of `ndd._cpu.conversion` explains the numbers."""
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
