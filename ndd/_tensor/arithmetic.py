"""The operators `+ - * ...` of Tensor and Batch: each hands over to an elementwise operator."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._tensor.handle import operation

# What NumPy calls for `array + value`: its function, and our operator.
_OF_OPERATORS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "fdiv", "floor_divide": "div", "remainder": "mod",
    "power": "pow", "bitwise_and": "bitand", "bitwise_or": "bitor", "bitwise_xor": "bitxor", "left_shift": "lshift",
    "right_shift": "rshift", "equal": "eq", "not_equal": "neq", "less": "lt", "less_equal": "leq", "greater": "gt",
    "greater_equal": "geq",
}  # fmt: skip


class Arithmetic:
    """Operators of Python on values. Plain numbers, lists, NumPy arrays and torch tensors may stand on either side."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **named: Any) -> Any:
        """NumPy's functions take Tensors on the CPU as arrays, and give arrays: `np.sqrt(t)`, `np.sum(t)`, `acc += t`.

        `array + t` is ndd's operator, as `t + array` is, and so is `np.add(array, t)`, which looks the same from here.
        """
        reflected = len(inputs) == 2 and not isinstance(inputs[0], Arithmetic)
        if method == "__call__" and reflected and out is None and not named and ufunc.__name__ in _OF_OPERATORS:
            return operation(_OF_OPERATORS[ufunc.__name__])(*inputs)
        if hasattr(self, "batch_size") or any(hasattr(v, "batch_size") for v in inputs):
            raise TypeError(
                f"numpy.{ufunc.__name__} takes arrays, got a Batch, whose samples may have different shapes: use ndd.math "
                "and ndd.reductions, or batch.numpy() where all have one shape"
            )
        if out is not None:
            named["out"] = out
        arrays: list[Any] = [np.asarray(v) if isinstance(v, Arithmetic) else v for v in inputs]
        return getattr(ufunc, method)(*arrays, **named)

    def __add__(self, other: Any) -> Any:
        return operation("add")(self, other)

    def __radd__(self, other: Any) -> Any:
        return operation("add")(other, self)

    def __sub__(self, other: Any) -> Any:
        return operation("sub")(self, other)

    def __rsub__(self, other: Any) -> Any:
        return operation("sub")(other, self)

    def __mul__(self, other: Any) -> Any:
        return operation("mul")(self, other)

    def __rmul__(self, other: Any) -> Any:
        return operation("mul")(other, self)

    def __truediv__(self, other: Any) -> Any:
        return operation("fdiv")(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return operation("fdiv")(other, self)

    def __floordiv__(self, other: Any) -> Any:
        return operation("div")(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return operation("div")(other, self)

    def __mod__(self, other: Any) -> Any:
        return operation("mod")(self, other)

    def __rmod__(self, other: Any) -> Any:
        return operation("mod")(other, self)

    def __pow__(self, other: Any) -> Any:
        return operation("pow")(self, other)

    def __rpow__(self, other: Any) -> Any:
        return operation("pow")(other, self)

    def __and__(self, other: Any) -> Any:
        return operation("bitand")(self, other)

    def __rand__(self, other: Any) -> Any:
        return operation("bitand")(other, self)

    def __or__(self, other: Any) -> Any:
        return operation("bitor")(self, other)

    def __ror__(self, other: Any) -> Any:
        return operation("bitor")(other, self)

    def __xor__(self, other: Any) -> Any:
        return operation("bitxor")(self, other)

    def __rxor__(self, other: Any) -> Any:
        return operation("bitxor")(other, self)

    def __lshift__(self, other: Any) -> Any:
        return operation("lshift")(self, other)

    def __rlshift__(self, other: Any) -> Any:
        return operation("lshift")(other, self)

    def __rshift__(self, other: Any) -> Any:
        return operation("rshift")(self, other)

    def __rrshift__(self, other: Any) -> Any:
        return operation("rshift")(other, self)

    def __eq__(self, other: Any) -> Any:
        return operation("eq")(self, other)

    def __ne__(self, other: Any) -> Any:
        return operation("neq")(self, other)

    def __lt__(self, other: Any) -> Any:
        return operation("lt")(self, other)

    def __le__(self, other: Any) -> Any:
        return operation("leq")(self, other)

    def __gt__(self, other: Any) -> Any:
        return operation("gt")(self, other)

    def __ge__(self, other: Any) -> Any:
        return operation("geq")(self, other)

    __hash__ = None  # type: ignore[assignment]

    def __neg__(self) -> Any:
        return operation("minus")(self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return operation("abs")(self)

    def __invert__(self) -> Any:
        return operation("bitnot")(self)
