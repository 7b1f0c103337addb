"""For kernels: replacements for functions that numba compiles separately for every new pair of types (`min` and `max` of
numbers, `empty`, `zeros`), generated in place; and `array_at`, `overlapping`, `each`, and `multiply_add`.

A function takes 50 to 100 ms to compile, these replacements 2 ms.
"""

# numba has no types for its private names.
# pyright: reportPrivateImportUsage=false, reportAttributeAccessIssue=false
from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from ndd._compiled.jit import REPLACED, Compiled, Intrinsic
from ndd._tensor.memory import memory_at


class _Extreme(Compiled):
    """`min` or `max` of two or more numbers, as in Python: the first of equal numbers, ignoring NaN."""

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


REPLACED.update(min=_Extreme(operator.lt), max=_Extreme(operator.gt))

empty: Any = Intrinsic(lambda: _array(zeroed=False), np.empty)
"""`empty(n, dtype)`, `empty((n, m), dtype)`: `np.empty`; the product of the extents must not overflow."""

zeros: Any = Intrinsic(lambda: _array(zeroed=True), np.zeros)
"""The same for `np.zeros`."""

array_at: Any = Intrinsic(lambda: _array_at(), lambda address, extents, like: memory_at(address, extents, like.dtype))
"""`array_at(address, extents, like)`: the C-contiguous array of `like`'s element type there; `extents` as of `np.empty`. It
owns no memory: the caller of the kernel does. So one call can take samples that are not adjacent."""

overlapping: Any = Intrinsic(lambda: _overlapping(), lambda flat, dtype: _overlapping_words(flat, np.dtype(dtype)))
"""`overlapping(flat, dtype)`: the bytes of a contiguous array as words that start at every byte. It owns no memory."""

each: Any = Intrinsic(lambda: range, lambda n: (slice(n),))
"""`for i in each(n)`: `range`, for simple loops over arrays. In the interpreter there is one iteration, with a slice for
`i`."""


multiply_add: Any = Intrinsic(lambda: _multiply_add())
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

    @intrinsic
    def array(typing_context, extents, dtype):
        count = 1 if isinstance(extents, types.Integer) else len(extents)
        kind = types.Array(dtype.dtype, count, "C")
        plain = types.unliteral(extents)

        def generate(context, builder, signature, arguments):
            shape, strides = _shape_and_strides(context, builder, kind, signature.args[0], arguments[0])
            align = context.get_constant(types.uint32, context.get_preferred_array_alignment(kind.dtype))
            memory = context.nrt.meminfo_alloc_aligned(builder, strides[-1], align)
            data = context.nrt.meminfo_data(builder, memory)
            if zeroed:
                cgutils.memset(builder, data, strides[-1], 0)
            data = builder.bitcast(data, context.get_data_type(kind.dtype).as_pointer())
            return _array_over(context, builder, kind, shape, strides, data, memory)

        return kind(plain, dtype), generate

    return array


@functools.cache
def _array_at() -> Any:
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def looked_at(typing_context, address, extents, like):
        kind = types.Array(like.dtype, 1 if isinstance(extents, types.Integer) else len(extents), "C")
        plain = types.unliteral(extents)

        def generate(context, builder, signature, arguments):
            shape, strides = _shape_and_strides(context, builder, kind, signature.args[1], arguments[1])
            data = builder.inttoptr(arguments[0], context.get_data_type(kind.dtype).as_pointer())
            return _array_over(context, builder, kind, shape, strides, data, None)

        return kind(types.int64, plain, like), generate

    return looked_at


def _overlapping_words(flat: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return np.ndarray((flat.size - dtype.itemsize + 1,), dtype, flat, strides=(1,))


@functools.cache
def _overlapping() -> Any:
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic
    from numba.np import arrayobj

    @intrinsic
    def words(typing_context, flat, dtype):
        kind = types.Array(dtype.dtype, 1, "A", aligned=False)

        def generate(context, builder, signature, arguments):
            source = context.make_array(signature.args[0])(context, builder, arguments[0])
            size, one = (context.get_constant(types.intp, n) for n in (arrayobj.get_itemsize(context, kind), 1))
            count = builder.sub(cgutils.unpack_tuple(builder, source.shape)[0], builder.sub(size, one))
            data = builder.bitcast(source.data, context.get_data_type(kind.dtype).as_pointer())
            return _array_over(context, builder, kind, [count], [one, size], data, None, size)

        return kind(flat, dtype), generate

    return words


def _shape_and_strides(context: Any, builder: Any, kind: Any, of: Any, extents: Any) -> tuple[list[Any], list[Any]]:
    """For an intrinsic: the shape of a C-contiguous array of numba's type `kind`, from `extents`, an integer or a tuple of numba's
    type `of`; and its strides, the innermost first, with the bytes of all of it after them."""
    from numba import types
    from numba.core import cgutils

    pairs: Any = [(of, extents)]
    if isinstance(of, types.BaseTuple):
        pairs = zip(of.types, cgutils.unpack_tuple(builder, extents), strict=True)
    shape = [context.cast(builder, value, one, types.intp) for one, value in pairs]
    return shape, _strides(context, builder, kind, shape)


def _strides(context: Any, builder: Any, kind: Any, shape: list[Any]) -> list[Any]:
    from numba import types
    from numba.np import arrayobj

    strides = [context.get_constant(types.intp, arrayobj.get_itemsize(context, kind))]
    for extent in reversed(shape):
        strides.append(builder.mul(strides[-1], extent))
    return strides


def array_over(context: Any, builder: Any, kind: Any, shape: list[Any], data: Any) -> Any:
    """For an intrinsic: the C-contiguous array of numba's type `kind` over `data`, any pointer. It owns no memory."""
    data = builder.bitcast(data, context.get_data_type(kind.dtype).as_pointer())
    return _array_over(context, builder, kind, shape, _strides(context, builder, kind, shape), data, None)


def _array_over(
    context: Any,
    builder: Any,
    kind: Any,
    shape: list[Any],
    strides: list[Any],
    data: Any,
    memory: Any,
    size: Any = None,
) -> Any:
    """For an intrinsic: the array over `data`, with the result of `_shape_and_strides`. `memory` is its owner, or None; `size`
    is that of an element, if it is not the innermost stride."""
    from numba import types
    from numba.core import cgutils
    from numba.np import arrayobj

    array, whole = context.make_array(kind)(context, builder), context.get_value_type(types.intp)
    arrayobj.populate_array(
        array,
        data=data,
        shape=cgutils.pack_array(builder, shape, ty=whole),
        strides=cgutils.pack_array(builder, strides[-2::-1], ty=whole),
        itemsize=strides[0] if size is None else size,
        meminfo=memory,
    )
    return array._getvalue()
