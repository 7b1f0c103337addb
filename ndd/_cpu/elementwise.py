"""Arithmetic on NumPy arrays by DALI's rules, where they are not NumPy's.

Every function of `OPERATIONS` takes `(out, *operands)`: arrays of any element type that broadcast to the shape of
`out`, whose type is the result's. Integers wrap; `//` and `%` of integers truncate toward zero and refuse a zero divisor;
`//` of floats divides; an integer to a negative power is 0; comparisons of integers are right across signedness;
`min` and `max` give the second operand where the comparison fails (NaN).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._cpu.jit import kernel

# From this size on the compiled loop is worth its compilation.
_COMPILED_FROM = 1 << 14


def _plain(ufunc: np.ufunc) -> Callable[..., None]:
    """A ufunc computed in the type of the result; nothing to warn of: integers wrap, floats follow IEEE."""

    def run(out: np.ndarray, *operands: np.ndarray) -> None:
        ufunc(*operands, out=out, dtype=out.dtype, casting="unsafe")

    return run


def _quiet(ufunc: np.ufunc) -> Callable[..., None]:
    def run(out: np.ndarray, *operands: np.ndarray) -> None:
        with np.errstate(all="ignore"):
            ufunc(*operands, out=out, dtype=out.dtype, casting="unsafe")

    return run


def _same(array: np.ndarray, out: np.ndarray) -> np.ndarray:
    """The operand in the result's type (C's conversion: integers wrap)."""
    return array if array.dtype == out.dtype else array.astype(out.dtype)


def _check_divisor(divisor: np.ndarray) -> None:
    if not divisor.all():
        raise ValueError("Integer division by zero.")


def _divide(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        if out.dtype.kind == "f":
            np.true_divide(a, b, out=out, dtype=out.dtype, casting="unsafe")
            return
        a, b = _same(a, out), _same(b, out)
        _check_divisor(b)
        np.floor_divide(a, b, out=out)
        if out.dtype.kind == "i":
            # floor is one too low where the signs differ and something remains
            wrong = (a ^ b) < 0
            wrong &= np.fmod(a, b) != 0
            np.add(out, wrong, out=out, casting="unsafe")


def _remainder(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    if out.dtype.kind != "f":
        b = _same(b, out)
        _check_divisor(b)
    with np.errstate(all="ignore"):
        if out.dtype == np.float32 and a.dtype != b.dtype:
            # An integer is not rounded to float32 before its remainder is taken.
            np.copyto(out, np.fmod(a, b, dtype=np.float64, casting="unsafe"), casting="unsafe")
        else:
            np.fmod(a, b, out=out, dtype=out.dtype, casting="unsafe")


def _power(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    if out.dtype.kind == "f":
        with np.errstate(all="ignore"):
            np.power(a, b, out=out, dtype=out.dtype, casting="unsafe")
        return
    a, b = _same(a, out), _same(b, out)
    if out.dtype.kind == "i":
        negative = b < 0
        if negative.any():
            np.power(a, np.where(negative, out.dtype.type(0), b), out=out)
            np.copyto(out, out.dtype.type(0), where=negative)
            return
    np.power(a, b, out=out)


def _comparison(ufunc: np.ufunc) -> Callable[..., None]:
    def run(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
        if a.dtype != b.dtype:
            ka, kb = a.dtype.kind, b.dtype.kind
            # DALI compares an integer with a float in the float's own type, NumPy in float64.
            if ka == "f" and kb != "f":
                b = b.astype(a.dtype)
            elif kb == "f" and ka != "f":
                a = a.astype(b.dtype)
        ufunc(a, b, out=out)

    return run


def _select(compare: np.ufunc, plain: np.ufunc) -> Callable[..., None]:
    """`a if compare(a, b) else b`."""

    def run(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
        if out.dtype.kind != "f":
            plain(a, b, out=out, dtype=out.dtype, casting="unsafe")
            return
        a, b = _same(a, out), _same(b, out)
        if out.size >= _COMPILED_FROM and a.shape == b.shape == out.shape and _all_contiguous(a, b, out):
            (smaller if plain is np.minimum else larger)(a.reshape(-1), b.reshape(-1), out.reshape(-1))
            return
        first = compare(a, b)
        np.copyto(out, b)
        np.copyto(out, a, where=first)

    return run


def _all_contiguous(*arrays: np.ndarray) -> bool:
    return all(a.flags.c_contiguous for a in arrays)


def _clamp(out: np.ndarray, value: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    value, low, high = _same(value, out), _same(low, out), _same(high, out)
    if out.dtype.kind != "f":
        np.minimum(np.maximum(value, low), high, out=out)
        return
    np.copyto(out, value)
    np.copyto(out, low, where=out < low)
    np.copyto(out, high, where=out > high)


def _shift(ufunc: np.ufunc) -> Callable[..., None]:
    """Shifts as a CPU does them: the count is taken modulo the width, of at least 32 bits."""

    def run(out: np.ndarray, a: np.ndarray, count: np.ndarray) -> None:
        kind = out.dtype
        if kind.kind == "b":
            np.copyto(out, a if ufunc is np.left_shift else a & ~count)
            return
        wide = kind if kind.itemsize >= 4 else np.dtype(np.int32)
        kept = count.astype(kind) & kind.type(63 if kind.itemsize == 8 else 31)
        value = a.astype(kind)
        if wide is kind:
            ufunc(value, kept, out=out)
        else:
            np.copyto(out, ufunc(value, kept, dtype=wide), casting="unsafe")

    return run


def _reciprocal_root(out: np.ndarray, a: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        np.sqrt(a, out=out, dtype=out.dtype, casting="unsafe")
        np.divide(1, out, out=out)


def _absolute(out: np.ndarray, a: np.ndarray) -> None:
    np.absolute(a, out=out)


def _copy(out: np.ndarray, a: np.ndarray) -> None:
    np.copyto(out, a)


@kernel
def smaller(a, b, out):
    """`a if a < b else b`."""
    for i in range(out.size):
        out[i] = a[i] if a[i] < b[i] else b[i]


@kernel
def larger(a, b, out):
    """`a if a > b else b`."""
    for i in range(out.size):
        out[i] = a[i] if a[i] > b[i] else b[i]


_MATH = {
    "fabs": np.fabs, "sqrt": np.sqrt, "cbrt": np.cbrt, "exp": np.exp, "log": np.log, "log2": np.log2,
    "log10": np.log10, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "floor": np.floor, "ceil": np.ceil,
}  # fmt: skip

OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": _quiet(np.add),
    "sub": _quiet(np.subtract),
    "mul": _quiet(np.multiply),
    "fdiv": _quiet(np.true_divide),
    "div": _divide,
    "mod": _remainder,
    "pow": _power,
    "fpow": _quiet(np.power),
    "atan2": _plain(np.arctan2),
    "min": _select(np.less, np.minimum),
    "max": _select(np.greater, np.maximum),
    "clamp": _clamp,
    "bitand": _plain(np.bitwise_and),
    "bitor": _plain(np.bitwise_or),
    "bitxor": _plain(np.bitwise_xor),
    "lshift": _shift(np.left_shift),
    "rshift": _shift(np.right_shift),
    "eq": _comparison(np.equal),
    "neq": _comparison(np.not_equal),
    "lt": _comparison(np.less),
    "leq": _comparison(np.less_equal),
    "gt": _comparison(np.greater),
    "geq": _comparison(np.greater_equal),
    "minus": _plain(np.negative),
    "plus": _copy,
    "bitnot": _plain(np.invert),
    "abs": _absolute,
    "rsqrt": _reciprocal_root,
    **{name: _quiet(ufunc) for name, ufunc in _MATH.items()},
}
