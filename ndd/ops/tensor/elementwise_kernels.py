"""Arithmetic on NumPy arrays by DALI's rules, which differ from NumPy's.

Every function of `OPERATIONS` takes `(out, *operands)`: arrays of any element type that broadcast to the shape of
`out`, whose type is the result's. Integers wrap; `//` and `%` of integers truncate toward zero and refuse a zero
divisor; `//` of floats divides; an integer to a negative power is 0; comparisons of signed with unsigned numbers are by value
(in DALI a negative integer is less than every float, and -1 == -1.0 is False); `min` and `max` return the second operand if the
comparison fails (NaN).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ndd._compiled.jit import Kernel, from_template, kernel

# From this size on the compiled loop is worth its compilation.
_COMPILED_FROM = 1 << 14
_INNER = 512  # elements of an inner loop that outweigh its overhead


def _plain(ufunc: np.ufunc) -> Callable[..., None]:
    """A ufunc computed in the type of the result, without warnings: integers wrap, floats follow IEEE."""

    def run(out: np.ndarray, *operands: np.ndarray) -> None:
        ufunc(*operands, out=out, dtype=out.dtype, casting="unsafe")

    return run


def _quiet(ufunc: np.ufunc) -> Callable[..., None]:
    def run(out: np.ndarray, *operands: np.ndarray) -> None:
        kind = out.dtype
        if kind.kind != "f":  # integers wrap without a warning, and errstate costs more than a small addition
            ufunc(*operands, out=out, dtype=kind, casting="unsafe")
            return
        with np.errstate(all="ignore"):
            ufunc(*operands, out=out, dtype=kind, casting="unsafe")

    return run


def _arithmetic(ufunc: np.ufunc, number: int) -> Callable[..., None]:
    """NumPy converts operands of other types piece by piece; a compiled loop converts each element as it is read."""
    by_numpy = _quiet(ufunc)

    def run(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
        if out.size < _COMPILED_FROM or not _convertible(out, a, b) or not _flat_or_one(out, a, b):
            by_numpy(out, a, b)
        elif b.size == 1:
            with_number(a.reshape(-1), out.reshape(-1), b.astype(out.dtype).reshape(-1), number)
        elif a.size == 1:
            number_with(b.reshape(-1), out.reshape(-1), a.astype(out.dtype).reshape(-1), number)
        else:
            pairwise(a.reshape(-1), b.reshape(-1), out.reshape(-1), number)

    return run


def _convertible(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> bool:
    """Whether the compiled loops support these types and are faster than NumPy: float32, or integers of up to 32 bits."""
    if out.dtype == np.float32:
        kinds = {x.dtype for x in (a, b) if x.size > 1 and x.dtype != np.float32}
        return bool(kinds) and all(k.kind in "iu" and k.itemsize <= 4 for k in kinds)
    return (
        out.dtype.kind in "iu"
        and out.itemsize <= 4
        and any(x.size > 1 and x.dtype != out.dtype for x in (a, b))
        and all(x.dtype.kind in "iu" and x.itemsize <= 4 for x in (a, b))
    )


def _same(array: np.ndarray, out: np.ndarray) -> np.ndarray:
    """The operand in the result's type (converted as in C: integers wrap)."""
    return array if array.dtype == out.dtype else array.astype(out.dtype)


def spread(array: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Repeats a small stretched operand along the last axes of `out`, so that NumPy's inner loop is long."""
    if array.size == 1 or array.size == out.size or out.size < _COMPILED_FROM:
        return array
    axis, inner = out.ndim, 1
    while axis and inner < _INNER:
        axis -= 1
        inner *= out.shape[axis]
    lead = array.shape[: max(0, array.ndim - out.ndim + axis)]
    if inner > 64 * _INNER or array.size * _INNER < int(np.prod(lead)) * inner:
        return array
    return np.ascontiguousarray(np.broadcast_to(array, (*lead, *out.shape[axis:])))


def _check_divisor(divisor: np.ndarray) -> None:
    if not divisor.all():
        raise ValueError("Integer division by zero.")


def _divide(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    if out.dtype.kind == "f":
        with np.errstate(all="ignore"):
            np.true_divide(a, b, out=out, dtype=out.dtype, casting="unsafe")
        return
    b = _same(b, out)
    _check_divisor(b)
    a = _same(a, out)
    if _flat_or_one(out, a, b):
        _compiled(quotient_by_float if out.dtype.itemsize <= 4 else quotient, out, a, b)
    elif out.dtype.itemsize <= 4:
        # float64 quotients of 32-bit integers never round across a whole number
        np.copyto(out, np.true_divide(a, b).astype(np.int64), casting="unsafe")
    else:
        _divide_wide(out, a, b)


def _divide_wide(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        np.floor_divide(a, b, out=out)
        if out.dtype.kind == "i":
            # floor is one too low if the signs differ and there is a remainder
            wrong = (a ^ b) < 0
            wrong &= np.fmod(a, b) != 0
            np.add(out, wrong, out=out, casting="unsafe")


def _remainder(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    if out.dtype.kind != "f":
        b = _same(b, out)
        _check_divisor(b)
    with np.errstate(all="ignore"):
        if out.dtype == np.float32 and a.dtype != b.dtype:
            # An integer is not rounded to float32 before the remainder.
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
        if _flat_or_one(out, a, b):
            _compiled(smaller if plain is np.minimum else larger, out, a, b)
            return
        first = compare(a, b)
        np.copyto(out, b)
        np.copyto(out, a, where=first)

    return run


def _flat_or_one(out: np.ndarray, *operands: np.ndarray) -> bool:
    """Whether a compiled loop applies: many elements, and operands as large as `out` or single numbers."""
    if out.size < _COMPILED_FROM or not out.flags.c_contiguous:
        return False
    return all([a.size == 1 or (a.shape == out.shape and a.flags.c_contiguous) for a in operands])


def _compiled(loop: Any, out: np.ndarray, *operands: np.ndarray) -> None:
    arguments: list[Any] = []
    for a in operands:
        arguments += [a.reshape(-1), 0 if a.size == 1 else 1]
    loop(out.reshape(-1), *arguments)


def _clamp(out: np.ndarray, value: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    value, low, high = _same(value, out), _same(low, out), _same(high, out)
    if _flat_or_one(out, value, low, high):
        _compiled(clamped, out, value, low, high)
        return
    if out.dtype.kind != "f":
        np.minimum(np.maximum(value, low), high, out=out)
        return
    np.copyto(out, value)
    np.copyto(out, low, where=out < low)
    np.copyto(out, high, where=out > high)


def _shift(ufunc: np.ufunc) -> Callable[..., None]:
    """Shifts as a CPU does: the count is taken modulo the width, of at least 32 bits."""

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


# Compiled loops of arithmetic: + (0), - (1), * (2), / (3).


@kernel
def with_number(a, out, b, operation):
    """The operation on a[i] and one number."""
    kind = out.dtype.type
    y = kind(b[0])
    if operation == 0:
        for i in range(out.size):
            out[i] = kind(a[i]) + y
    elif operation == 1:
        for i in range(out.size):
            out[i] = kind(a[i]) - y
    elif operation == 2:
        for i in range(out.size):
            out[i] = kind(a[i]) * y
    else:
        for i in range(out.size):
            out[i] = kind(a[i]) / y


@kernel
def number_with(b, out, a, operation):
    """The operation on one number and b[i]."""
    kind = out.dtype.type
    x = kind(a[0])
    if operation == 0:
        for i in range(out.size):
            out[i] = x + kind(b[i])
    elif operation == 1:
        for i in range(out.size):
            out[i] = x - kind(b[i])
    elif operation == 2:
        for i in range(out.size):
            out[i] = x * kind(b[i])
    else:
        for i in range(out.size):
            out[i] = x / kind(b[i])


@kernel
def pairwise(a, b, out, operation):
    """The operation on a[i] and b[i]."""
    kind = out.dtype.type
    if operation == 0:
        for i in range(out.size):
            out[i] = kind(a[i]) + kind(b[i])
    elif operation == 1:
        for i in range(out.size):
            out[i] = kind(a[i]) - kind(b[i])
    elif operation == 2:
        for i in range(out.size):
            out[i] = kind(a[i]) * kind(b[i])
    else:
        for i in range(out.size):
            out[i] = kind(a[i]) / kind(b[i])


_ARITHMETIC = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "fdiv": np.true_divide}


@with_number.fallback
def _(a, out, b, operation):
    _by_numpy(operation, a, b, out)


@number_with.fallback
def _(b, out, a, operation):
    _by_numpy(operation, a, b, out)


@pairwise.fallback
def _(a, b, out, operation):
    _by_numpy(operation, a, b, out)


def _by_numpy(operation: int, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    [*_ARITHMETIC.values()][operation](a, b, out=out, dtype=out.dtype, casting="unsafe")


# Functions of one operand, with NumPy's results.


def _by_element(x, out):
    kind = out.dtype.type
    for i in range(out.size):
        out[i] = function(kind(x[i]))  # type: ignore[name-defined]  # noqa: F821


def _of_one(ufunc: np.ufunc) -> Kernel:
    loop = from_template(_by_element, _by_element, f"_{ufunc.__name__}", {}, function=ufunc)
    loop.fallback(lambda x, out: ufunc(x, out=out, dtype=out.dtype, casting="unsafe"))
    return loop


_OF_ONE = {
    "sqrt": _of_one(np.sqrt), "fabs": _of_one(np.fabs), "minus": _of_one(np.negative), "floor": _of_one(np.floor),
    "ceil": _of_one(np.ceil),
}  # fmt: skip
_OF_ONE["abs"] = _OF_ONE["fabs"]


def loop_of(name: str, out: np.dtype, operands: list[Any]) -> Kernel | partial[None] | None:
    """The kernel `f(*arrays, out)` of 1-D arrays for an operation; None if there is none.

    `operands` are the types of the arrays, and constants, 0-d.
    """
    types = [o for o in operands if not isinstance(o, np.ndarray)]
    if not all([_whole_or_float(kind) for kind in (out, *types)]):
        return None
    if name in _OF_ONE:
        return _OF_ONE[name] if out.kind == "f" and len(types) == 1 else None
    if name not in _ARITHMETIC:
        return None
    number = [*_ARITHMETIC].index(name)
    a, b = operands
    if isinstance(b, np.ndarray):
        return partial(with_number, b=b.astype(out).reshape(-1), operation=number)
    if isinstance(a, np.ndarray):
        return partial(number_with, a=a.astype(out).reshape(-1), operation=number)
    return partial(pairwise, operation=number)


def _whole_or_float(kind: np.dtype) -> bool:
    """Whether the loops support the type: bool and float16 are left to NumPy."""
    return kind.kind in "iuf" and kind != np.float16


# Compiled loops: operands with the step (1, or 0 for a single number) from one element to the next.


@kernel
def smaller(out, a, step_a, b, step_b):
    """`a if a < b else b`."""
    for i in range(out.size):
        x, y = a[i * step_a], b[i * step_b]
        out[i] = x if x < y else y


@kernel
def larger(out, a, step_a, b, step_b):
    """`a if a > b else b`."""
    for i in range(out.size):
        x, y = a[i * step_a], b[i * step_b]
        out[i] = x if x > y else y


@kernel
def clamped(out, a, step_a, low, step_low, high, step_high):
    """Raised to `low`, then lowered to `high`."""
    if step_a == 1 and step_low == 0 and step_high == 0:
        bottom, top = low[0], high[0]
        for i in range(out.size):
            x = bottom if a[i] < bottom else a[i]
            out[i] = top if x > top else x
        return
    for i in range(out.size):
        x, bottom, top = a[i * step_a], low[i * step_low], high[i * step_high]
        x = bottom if x < bottom else x
        out[i] = top if x > top else x


@kernel
def quotient_by_float(out, a, step_a, b, step_b):
    """Integers of up to 32 bits: exact, since a float64 quotient of these never rounds across a whole number."""
    if step_a == 1 and step_b == 0:
        divisor = np.float64(b[0])
        for i in range(out.size):
            out[i] = np.int64(np.float64(a[i]) / divisor)
        return
    for i in range(out.size):
        out[i] = np.int64(np.float64(a[i * step_a]) / np.float64(b[i * step_b]))


@kernel
def quotient(out, a, step_a, b, step_b):
    """Truncates toward zero; `//` floors."""
    for i in range(out.size):
        x, y = a[i * step_a], b[i * step_b]
        q = x // y
        out[i] = q + 1 if (q < 0 and q * y != x) else q


_MATH = {
    "fabs": np.fabs, "sqrt": np.sqrt, "cbrt": np.cbrt, "exp": np.exp, "log": np.log, "log2": np.log2,
    "log10": np.log10, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "floor": np.floor, "ceil": np.ceil,
}  # fmt: skip

OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": _arithmetic(np.add, 0),
    "sub": _arithmetic(np.subtract, 1),
    "mul": _arithmetic(np.multiply, 2),
    "fdiv": _arithmetic(np.true_divide, 3),
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
