"""Elementwise mathematics on tensors and batches.

Every function takes a Tensor, a Batch, a number, a list, a NumPy array or a tensor of another library. It returns a Tensor,
or a Batch if one of its operands is a Batch. Operands broadcast as in NumPy, within each sample.

Integers become float32 and float64 stays float64, except where a function says otherwise.

Raises RuntimeError for float16, for booleans without numbers (as in DALI), for text and for samples that do not broadcast;
ValueError for None and for batches of different sizes; OverflowError for Python integers beyond 32 bits.

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
    """Absolute value; keeps the element type (the minimum of a signed integer stays unchanged).

    Args:
        input: numbers, a Tensor or a Batch.

    >>> import ndd
    >>> ndd.math.abs(ndd.tensor([-2, 3])).torch()
    tensor([2, 3], dtype=torch.int32)
    """
    return apply("abs", input)


def fabs(input: Any) -> Any:
    """Absolute value as a floating-point number.

    Args:
        input: numbers, a Tensor or a Batch.

    >>> import ndd
    >>> ndd.math.fabs(ndd.tensor([-2, 3])).torch()
    tensor([2., 3.])
    """
    return apply("fabs", input)


def sqrt(input: Any) -> Any:
    """Square root; NaN for negative numbers.

    Args:
        input: numbers, a Tensor or a Batch.

    >>> import ndd
    >>> ndd.math.sqrt(ndd.tensor([1, 4])).torch()
    tensor([1., 2.])
    """
    return apply("sqrt", input)


def rsqrt(input: Any) -> Any:
    """Reciprocal of the square root; infinite at 0, 0 at infinity (DALI's CPU operator gives NaN for both).

    Args:
        input: numbers, a Tensor or a Batch.

    >>> import ndd
    >>> ndd.math.rsqrt(ndd.tensor([1, 4])).torch()
    tensor([1.0000, 0.5000])
    """
    return apply("rsqrt", input)


def cbrt(input: Any) -> Any:
    """Cubic root.

    Args:
        input: numbers, a Tensor or a Batch.

    >>> import ndd
    >>> ndd.math.cbrt(ndd.tensor([2, -27])).torch()
    tensor([ 1.2599, -3.0000])
    """
    return apply("cbrt", input)


def exp(input: Any) -> Any:
    """The exponential function.

    Args:
        input: numbers, a Tensor or a Batch.

    >>> import ndd
    >>> ndd.math.exp(ndd.tensor([0, 1])).torch()
    tensor([1.0000, 2.7183])
    """
    return apply("exp", input)


def log(input: Any) -> Any:
    """Natural logarithm.

    Args:
        input: numbers, a Tensor or a Batch; -infinity at 0, NaN below.

    >>> import ndd
    >>> ndd.math.log(ndd.tensor([1.0, 10.0])).torch()
    tensor([0.0000, 2.3026])
    """
    return apply("log", input)


def log2(input: Any) -> Any:
    """Logarithm to base 2.

    Args:
        input: numbers, a Tensor or a Batch; -infinity at 0, NaN below.

    >>> import ndd
    >>> ndd.math.log2(ndd.tensor([1, 8])).torch()
    tensor([0., 3.])
    """
    return apply("log2", input)


def log10(input: Any) -> Any:
    """Logarithm to base 10.

    Args:
        input: numbers, a Tensor or a Batch; -infinity at 0, NaN below.

    >>> import ndd
    >>> ndd.math.log10(ndd.tensor([2, 1000])).torch()
    tensor([0.3010, 3.0000])
    """
    return apply("log10", input)


def sin(input: Any) -> Any:
    """Sine of an angle in radians.

    Args:
        input: angles in radians: numbers, a Tensor or a Batch.

    >>> import ndd
    >>> ndd.math.sin(ndd.tensor([0.0, 1.5708])).torch()
    tensor([0., 1.])
    """
    return apply("sin", input)


def cos(input: Any) -> Any:
    """Cosine of an angle in radians.

    Args:
        input: angles in radians: numbers, a Tensor or a Batch.

    >>> import ndd
    >>> ndd.math.cos(ndd.tensor([0.0, 3.1416])).torch()
    tensor([ 1., -1.])
    """
    return apply("cos", input)


def tan(input: Any) -> Any:
    """Tangent of an angle in radians.

    Args:
        input: angles in radians: numbers, a Tensor or a Batch.

    >>> import ndd
    >>> ndd.math.tan(ndd.tensor([0.0, 0.7854])).torch()
    tensor([0.0000, 1.0000])
    """
    return apply("tan", input)


def asin(input: Any) -> Any:
    """Inverse sine, in radians.

    Args:
        input: numbers, a Tensor or a Batch; NaN outside -1 to 1.

    >>> import ndd
    >>> ndd.math.asin(ndd.tensor([0.0, 1.0])).torch()
    tensor([0.0000, 1.5708])
    """
    return apply("asin", input)


def acos(input: Any) -> Any:
    """Inverse cosine, in radians.

    Args:
        input: numbers, a Tensor or a Batch; NaN outside -1 to 1.

    >>> import ndd
    >>> ndd.math.acos(ndd.tensor([1.0, 0.0])).torch()
    tensor([0.0000, 1.5708])
    """
    return apply("acos", input)


def atan(input: Any) -> Any:
    """Inverse tangent, in radians.

    Args:
        input: numbers, a Tensor or a Batch.

    >>> import ndd
    >>> ndd.math.atan(ndd.tensor([0.0, 1.0])).torch()
    tensor([0.0000, 0.7854])
    """
    return apply("atan", input)


def sinh(input: Any) -> Any:
    """Hyperbolic sine.

    Args:
        input: numbers, a Tensor or a Batch.

    >>> import ndd
    >>> ndd.math.sinh(ndd.tensor([0.0, 1.0])).torch()
    tensor([0.0000, 1.1752])
    """
    return apply("sinh", input)


def cosh(input: Any) -> Any:
    """Hyperbolic cosine.

    Args:
        input: numbers, a Tensor or a Batch.

    >>> import ndd
    >>> ndd.math.cosh(ndd.tensor([0.0, 1.0])).torch()
    tensor([1.0000, 1.5431])
    """
    return apply("cosh", input)


def tanh(input: Any) -> Any:
    """Hyperbolic tangent.

    Args:
        input: numbers, a Tensor or a Batch.

    >>> import ndd
    >>> ndd.math.tanh(ndd.tensor([0.0, 1.0])).torch()
    tensor([0.0000, 0.7616])
    """
    return apply("tanh", input)


def asinh(input: Any) -> Any:
    """Inverse hyperbolic sine.

    Args:
        input: numbers, a Tensor or a Batch.

    >>> import ndd
    >>> ndd.math.asinh(ndd.tensor([0.0, 1.0])).torch()
    tensor([0.0000, 0.8814])
    """
    return apply("asinh", input)


def acosh(input: Any) -> Any:
    """Inverse hyperbolic cosine.

    Args:
        input: numbers, a Tensor or a Batch; NaN below 1.

    >>> import ndd
    >>> ndd.math.acosh(ndd.tensor([1.0, 2.0])).torch()
    tensor([0.0000, 1.3170])
    """
    return apply("acosh", input)


def atanh(input: Any) -> Any:
    """Inverse hyperbolic tangent.

    Args:
        input: numbers, a Tensor or a Batch; infinite at -1 and 1, NaN beyond.

    >>> import ndd
    >>> ndd.math.atanh(ndd.tensor([0.0, 0.5])).torch()
    tensor([0.0000, 0.5493])
    """
    return apply("atanh", input)


def floor(input: Any) -> Any:
    """The largest whole number that is not above the value, as a floating-point number.

    Args:
        input: numbers, a Tensor or a Batch.

    >>> import ndd
    >>> ndd.math.floor(ndd.tensor([1.7, -1.2])).torch()
    tensor([ 1., -2.])
    """
    return apply("floor", input)


def ceil(input: Any) -> Any:
    """The smallest whole number that is not below the value, as a floating-point number.

    Args:
        input: numbers, a Tensor or a Batch.

    >>> import ndd
    >>> ndd.math.ceil(ndd.tensor([1.2, -1.7])).torch()
    tensor([ 2., -1.])
    """
    return apply("ceil", input)


def pow(base: Any, exponent: Any) -> Any:
    """`base` to the power `exponent`, in their common type; an integer to a negative power is 0.

    Args:
        base, exponent: numbers, a Tensor or a Batch; shapes broadcast within each sample.

    >>> import ndd
    >>> ndd.math.pow(ndd.tensor([2, 3]), 2).torch()
    tensor([4, 9], dtype=torch.int32)
    """
    return apply("pow", base, exponent)


def fpow(base: Any, exponent: Any) -> Any:
    """`base` to the power `exponent`, as a floating-point number.

    Args:
        base, exponent: numbers, a Tensor or a Batch; shapes broadcast within each sample.

    >>> import ndd
    >>> ndd.math.fpow(ndd.tensor([2, 3]), -1).torch()
    tensor([0.5000, 0.3333])
    """
    return apply("fpow", base, exponent)


def min(left: Any, right: Any) -> Any:
    """The smaller of two values, in their common type; `right` if they do not compare (NaN).

    Args:
        left, right: numbers, a Tensor or a Batch; shapes broadcast within each sample.

    >>> import ndd
    >>> ndd.math.min(ndd.tensor([1, 5]), 3).torch()
    tensor([1, 3], dtype=torch.int32)
    """
    return apply("min", left, right)


def max(left: Any, right: Any) -> Any:
    """The larger of two values, in their common type; `right` if they do not compare (NaN).

    Args:
        left, right: numbers, a Tensor or a Batch; shapes broadcast within each sample.

    >>> import ndd
    >>> ndd.math.max(ndd.tensor([1, 5]), 3).torch()
    tensor([3, 5], dtype=torch.int32)
    """
    return apply("max", left, right)


def atan2(x: Any, y: Any) -> Any:
    """The angle whose tangent is `x / y`, in radians, by the signs of both: a full circle.

    Args:
        x, y: numbers, a Tensor or a Batch; shapes broadcast within each sample.

    >>> import ndd
    >>> ndd.math.atan2(ndd.tensor([1.0, -1.0]), 0.0).torch()
    tensor([ 1.5708, -1.5708])
    """
    return apply("atan2", x, y)


def clamp(value: Any, lo: Any, hi: Any) -> Any:
    """`value` raised to at least `lo`, then lowered to at most `hi`, in the common type of all three.

    Args:
        value: numbers, a Tensor or a Batch.
        lo, hi: likewise; a number for each sample is a Batch.

    >>> import ndd
    >>> ndd.math.clamp(ndd.tensor([-1, 5, 300]), 0, 255).torch()
    tensor([  0,   5, 255], dtype=torch.int32)
    """
    return apply("clamp", value, lo, hi)
