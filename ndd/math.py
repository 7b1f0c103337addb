"""Elementwise mathematics on tensors and batches.

Every function takes a Tensor, a Batch, a number, a list, a NumPy array or a tensor of another library. It returns a Tensor,
or a Batch if one of its operands is a Batch. Operands broadcast as in NumPy, within each sample.

Integers become float32 and float64 stays float64, except where a function says otherwise. float16, and booleans without
numbers, raise RuntimeError, as in DALI.

>>> import ndd
>>> ndd.math.sqrt(ndd.tensor([1, 4, 9])).torch()
tensor([1., 2., 3.])
"""

from __future__ import annotations

from typing import Any

from ndd.ops.tensor.elementwise import apply

__all__ = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "clamp",
    "cos",
    "cosh",
    "exp",
    "fabs",
    "floor",
    "fpow",
    "log",
    "log2",
    "log10",
    "max",
    "min",
    "pow",
    "rsqrt",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]


def abs(input: Any) -> Any:
    """Absolute value; keeps the element type (the minimum of a signed integer stays unchanged)."""
    return apply("abs", input)


def fabs(input: Any) -> Any:
    """Absolute value as a floating-point number."""
    return apply("fabs", input)


def sqrt(input: Any) -> Any:
    """Square root; NaN for negative numbers."""
    return apply("sqrt", input)


def rsqrt(input: Any) -> Any:
    """Reciprocal of the square root; infinite at 0, 0 at infinity (DALI's CPU operator gives NaN for both)."""
    return apply("rsqrt", input)


def cbrt(input: Any) -> Any:
    """Cubic root."""
    return apply("cbrt", input)


def exp(input: Any) -> Any:
    """The exponential function."""
    return apply("exp", input)


def log(input: Any) -> Any:
    """Natural logarithm."""
    return apply("log", input)


def log2(input: Any) -> Any:
    """Logarithm to base 2."""
    return apply("log2", input)


def log10(input: Any) -> Any:
    """Logarithm to base 10."""
    return apply("log10", input)


def sin(input: Any) -> Any:
    """Sine of an angle in radians."""
    return apply("sin", input)


def cos(input: Any) -> Any:
    """Cosine of an angle in radians."""
    return apply("cos", input)


def tan(input: Any) -> Any:
    """Tangent of an angle in radians."""
    return apply("tan", input)


def asin(input: Any) -> Any:
    """Inverse sine, in radians."""
    return apply("asin", input)


def acos(input: Any) -> Any:
    """Inverse cosine, in radians."""
    return apply("acos", input)


def atan(input: Any) -> Any:
    """Inverse tangent, in radians."""
    return apply("atan", input)


def sinh(input: Any) -> Any:
    """Hyperbolic sine."""
    return apply("sinh", input)


def cosh(input: Any) -> Any:
    """Hyperbolic cosine."""
    return apply("cosh", input)


def tanh(input: Any) -> Any:
    """Hyperbolic tangent."""
    return apply("tanh", input)


def asinh(input: Any) -> Any:
    """Inverse hyperbolic sine."""
    return apply("asinh", input)


def acosh(input: Any) -> Any:
    """Inverse hyperbolic cosine."""
    return apply("acosh", input)


def atanh(input: Any) -> Any:
    """Inverse hyperbolic tangent."""
    return apply("atanh", input)


def floor(input: Any) -> Any:
    """The largest whole number that is not above the value, as a floating-point number."""
    return apply("floor", input)


def ceil(input: Any) -> Any:
    """The smallest whole number that is not below the value, as a floating-point number."""
    return apply("ceil", input)


def pow(base: Any, exponent: Any) -> Any:
    """`base` to the power `exponent`, in their common type; an integer to a negative power is 0."""
    return apply("pow", base, exponent)


def fpow(base: Any, exponent: Any) -> Any:
    """`base` to the power `exponent`, as a floating-point number."""
    return apply("fpow", base, exponent)


def min(left: Any, right: Any) -> Any:
    """The smaller of two values, in their common type; `right` if they do not compare (NaN)."""
    return apply("min", left, right)


def max(left: Any, right: Any) -> Any:
    """The larger of two values, in their common type; `right` if they do not compare (NaN)."""
    return apply("max", left, right)


def atan2(x: Any, y: Any) -> Any:
    """The angle whose tangent is `x / y`, in radians, by the signs of both: a full circle."""
    return apply("atan2", x, y)


def clamp(value: Any, lo: Any, hi: Any) -> Any:
    """`value` raised to at least `lo`, then lowered to at most `hi`, in the common type of all three."""
    return apply("clamp", value, lo, hi)
