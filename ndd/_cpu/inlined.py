"""For kernels: what numba makes a function of its own for at every new pair of types (`min` and `max` of numbers, `empty`,
`zeros`), made in place; `each`, and `multiply_add`.

A function costs 50 to 100 ms of compiling, what is made here 2 ms.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from ndd._cpu.jit import Compiled


class _Extreme(Compiled):
    """`min` or `max` of two or more numbers, as Python has them: the first of equal ones, and NaN is passed over."""

    def __init__(self, before: Any):
        self.before = before

    def inner(self) -> Any:
        return _extreme(self.before)

    def in_python(self) -> Any:
        return self._of_arrays

    def _of_arrays(self, first: Any, *others: Any) -> Any:
        for value in others:
            first = np.where(self.before(value, first), value, first)[()]
        return first


class _Array(Compiled):
    def __init__(self, zeroed: bool):
        self.zeroed = zeroed

    def inner(self) -> Any:
        return _array(self.zeroed)

    def in_python(self) -> Any:
        return np.zeros if self.zeroed else np.empty


EXTREMES: dict[str, Compiled] = {"min": _Extreme(operator.lt), "max": _Extreme(operator.gt)}
"""What stands in kernels for Python's functions of these names."""

empty: Any = _Array(zeroed=False)
"""`empty(n, dtype)`, `empty((n, m), dtype)`: `np.empty`, but that the product of the extents may not overflow."""

zeros: Any = _Array(zeroed=True)
"""The same for `np.zeros`."""


class _Each(Compiled):
    def inner(self) -> Any:
        return range

    def in_python(self) -> Any:
        return lambda n: (slice(n),)


each: Any = _Each()
"""`for i in each(n)`: `range`, for simple loops over arrays. Python does it in one go, with a slice for `i`."""


class _Fused(Compiled):
    def inner(self) -> Any:
        return _multiply_add()


multiply_add: Any = _Fused()
"""`multiply_add(a, b, c)` of float32: a b + c, rounded once. Python has none before 3.13."""


@functools.cache
def _multiply_add() -> Any:
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def fused(typing_context, a, b, c):
        def generate(context, builder, signature, arguments):
            return builder.fma(*arguments)

        return types.float32(types.float32, types.float32, types.float32), generate

    return fused


@functools.cache
def _extreme(before: Any) -> Any:
    from numba import types
    from numba.cpython.builtins import do_minmax
    from numba.extending import intrinsic

    @intrinsic
    def extreme(typing_context, *numbers):
        if len(numbers) < 2 or not all(isinstance(n, types.Number | types.Boolean) for n in numbers):
            return None
        plain = [types.unliteral(n) for n in numbers]
        result = typing_context.unify_types(*plain)

        def generate(context, builder, signature, arguments):
            kinds = signature.args[0].types
            values = [builder.extract_value(arguments[0], i) for i in range(len(kinds))]
            return do_minmax(context, builder, kinds, values, before)

        return result(types.StarArgTuple.from_types(plain)), generate

    return extreme


@functools.cache
def _array(zeroed: bool) -> Any:
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic
    from numba.np import arrayobj

    @intrinsic
    def array(typing_context, extents, dtype):
        count = 1 if isinstance(extents, types.Integer) else len(extents)
        kind = types.Array(dtype.dtype, count, "C")
        given = types.unliteral(extents)

        def generate(context, builder, signature, arguments):
            whole = context.get_value_type(types.intp)
            if isinstance(signature.args[0], types.BaseTuple):
                pairs = zip(signature.args[0].types, cgutils.unpack_tuple(builder, arguments[0]), strict=True)
            else:
                pairs = [(signature.args[0], arguments[0])]
            shape = [context.cast(builder, value, of, types.intp) for of, value in pairs]
            strides = [context.get_constant(types.intp, arrayobj.get_itemsize(context, kind))]
            for extent in reversed(shape):
                strides.append(builder.mul(strides[-1], extent))
            align = context.get_constant(types.uint32, context.get_preferred_array_alignment(kind.dtype))
            memory = context.nrt.meminfo_alloc_aligned(builder, strides[-1], align)
            data = context.nrt.meminfo_data(builder, memory)
            if zeroed:
                cgutils.memset(builder, data, strides[-1], 0)
            array = context.make_array(kind)(context, builder)
            arrayobj.populate_array(
                array,
                data=builder.bitcast(data, context.get_data_type(kind.dtype).as_pointer()),
                shape=cgutils.pack_array(builder, shape, ty=whole),
                strides=cgutils.pack_array(builder, strides[-2::-1], ty=whole),
                itemsize=strides[0],
                meminfo=memory,
            )
            return array._getvalue()

        return kind(given, dtype), generate

    return array
