"""The operators `+ - * ...` of Tensor and Batch: each hands over to an elementwise operator."""

from __future__ import annotations

from typing import Any

from ndd._tensor.operations import operation


class Arithmetic:
    """Python's operators on values. Plain numbers, lists, NumPy arrays and torch tensors may stand on either side."""

    __slots__ = ()

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
