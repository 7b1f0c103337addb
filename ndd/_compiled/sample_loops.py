"""Compiled loops over samples, whose threads share a counter of the samples taken.

Such a loop is called once for a batch. Threads join it (`thread_team.py`) and take samples until none is left. With a call for each
sample, threads waited for the interpreter: 64 photographs through decode, resample and normalise were 256 calls, each of which
released the GIL and took it again.
"""

# What numba keeps private is not in its types.
# pyright: reportPrivateImportUsage=false, reportAttributeAccessIssue=false
from __future__ import annotations

import functools
import weakref
from typing import Any

import numpy as np

from ndd._compiled.intrinsics import array_over
from ndd._compiled.jit import Intrinsic, Kernel, from_template
from ndd._tensor.memory import memory_at


def _counted_in_python(counter: np.ndarray) -> int:
    """Two threads may get the same number, which does no harm: they compute the same."""
    found = int(counter[0])
    counter[0] = found + 1
    return found


def _counted() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def counted(typing_context, counter):
        def generate(context, builder, signature, arguments):
            place = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            return builder.atomic_rmw("add", place, ir.Constant(ir.IntType(64), 1), "monotonic")

        return types.int64(types.Array(types.int64, 1, "C")), generate

    return counted


next_index: Any = Intrinsic(_counted, _counted_in_python)
"""`next_index(counter)`: the number in `counter`, int64 `[1]`, which grows by one atomically."""


Samples = tuple[np.ndarray, np.ndarray, np.ndarray]
"""An array of each sample: their addresses, int64 `[N]`; their extents, int64 `[N, ndim]`; and an array without elements,
of their type and number of axes. They are C-contiguous."""


def samples(places: np.ndarray, extents: np.ndarray, dtype: np.dtype) -> Samples:
    """Arrays of these addresses, extents and type."""
    like = np.empty((0,) * extents.shape[1], dtype)
    return np.ascontiguousarray(places), np.ascontiguousarray(extents), like


def loop_over_samples(one: Kernel) -> Kernel:
    """The kernel `f(counter, limit, order, what)` that calls `one` for samples in turn, until none is left.

    Args:
        one: works on one sample.

    `order` has the numbers of the samples. `what` is a tuple, with for each parameter of `one` either `Samples`, or an array
    `[N, ...]` of whose rows each sample gets its own, or a tuple of one thing that all samples get.
    """
    found = _made.get(one)
    if found is None:
        found = from_template(_each, one.function, "_loop", {"light": True}, one=one)
        if one.has_fallback():
            found.fallback(functools.partial(_by_fallback, one))
        _made[one] = found
    return found


_made: weakref.WeakKeyDictionary[Kernel, Kernel] = weakref.WeakKeyDictionary()


def _each(counter, limit, order, what):
    for _ in range(limit):
        turn = next_index(counter)
        if turn >= len(order):
            break
        one(*of_sample(what, order[turn]))  # type: ignore[name-defined]  # noqa: F821
    return True


def _by_fallback(one: Kernel, counter: np.ndarray, limit: int, order: np.ndarray, what: tuple[Any, ...]) -> bool:
    for _ in range(limit):
        turn = _counted_in_python(counter)
        if turn >= len(order):
            break
        one.run_fallback(*_of_sample_in_python(what, order[turn]))
    return True


def _of_sample_in_python(what: tuple[Any, ...], i: int) -> tuple[Any, ...]:
    found: list[Any] = []
    for one in what:
        if not isinstance(one, tuple):
            found.append(one[i])
        elif len(one) == 1:
            found.append(one[0])
        else:
            places, extents, like = one
            found.append(memory_at(places[i], tuple(extents[i].tolist()), like.dtype))
    return tuple(found)


def _of_sample() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic
    from numba.np import arrayobj

    def type_of(field):
        if isinstance(field, types.Array):
            return field.dtype if field.ndim == 1 else field.copy(ndim=field.ndim - 1, layout="C", readonly=False)
        return field.types[0] if len(field) == 1 else field.types[2]

    @intrinsic
    def of_sample(typing_context, what, i):
        fields = what.types
        result = types.Tuple([type_of(field) for field in fields])

        def row(context, builder, kind, value, i):
            """Row `i` of a C-contiguous array: a number, or an array."""
            array = context.make_array(kind)(context, builder, value)
            extents = cgutils.unpack_tuple(builder, array.shape)
            step = i
            for extent in extents[1:]:
                step = builder.mul(step, extent)
            place = builder.gep(array.data, [step])
            if kind.ndim == 1:
                return context.unpack_value(builder, kind.dtype, place)
            return array_over(context, builder, type_of(kind), extents[1:], place)

        def generate(context, builder, signature, arguments):
            i, values = arguments[1], []
            for k, field in enumerate(fields):
                value = builder.extract_value(arguments[0], k)
                if isinstance(field, types.Array):
                    values.append(row(context, builder, field, value, i))
                elif len(field) == 1:
                    values.append(builder.extract_value(value, 0))
                else:
                    places, sizes, like = field.types
                    address = row(context, builder, places, builder.extract_value(value, 0), i)
                    table = context.make_array(sizes)(context, builder, builder.extract_value(value, 1))
                    first = builder.mul(i, cgutils.unpack_tuple(builder, table.shape)[1])
                    extents = [
                        builder.load(builder.gep(table.data, [builder.add(first, ir.Constant(first.type, d))]))
                        for d in range(like.ndim)
                    ]
                    data = builder.inttoptr(address, context.get_data_type(like.dtype).as_pointer())
                    values.append(array_over(context, builder, like, extents, data))
            found = context.make_tuple(builder, result, values)
            return arrayobj.impl_ret_borrowed(context, builder, result, found)

        return result(what, types.int64), generate

    return of_sample


of_sample: Any = Intrinsic(_of_sample, _of_sample_in_python)
"""`of_sample(what, i)`: the arguments for sample `i`, see `loop_over_samples`."""
