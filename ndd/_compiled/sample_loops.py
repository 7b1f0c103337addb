"""Compiled loops over samples, whose threads share a counter of the samples taken.

Such a loop is called once for a batch. Threads join it (`thread_team.py`) and take samples until none is left. With one call per
sample, threads would wait for the interpreter: 64 photographs through decode, resample and normalise are 256 calls, each of which
releases the GIL and takes it again.
"""

# numba has no types for its private names.
# pyright: reportPrivateImportUsage=false, reportAttributeAccessIssue=false
from __future__ import annotations

import functools
import inspect
import weakref
from typing import Any

import numpy as np

from ndd._compiled.atomics import entry_point
from ndd._compiled.intrinsics import array_over
from ndd._compiled.jit import Intrinsic, Kernel, template_of
from ndd._tensor.memory import memory_at


def _counted_in_python(counter: np.ndarray) -> int:
    """Two threads may get the same number, which is harmless: they compute the same sample."""
    value = int(counter[0])
    counter[0] = value + 1
    return value


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
"""`next_index(counter)`: the number in `counter`, int64 `[1]`, which is incremented atomically."""


Samples = tuple[np.ndarray, np.ndarray, np.ndarray]
"""One array per sample: their addresses, int64 `[N]`; their extents, int64 `[N, ndim]`; and an empty array of their type and number
of axes. The arrays are C-contiguous."""


def samples(places: np.ndarray, extents: np.ndarray, dtype: np.dtype) -> Samples:
    """Arrays of these addresses, extents and type."""
    like = np.empty((0,) * extents.shape[1], dtype)
    return np.ascontiguousarray(places), np.ascontiguousarray(extents), like


class SampleLoop(Kernel):
    """The result of `loop_over_samples`.

    Attributes:
        kernel: works on one sample.
    """

    def __init__(self, function: Any, kernel: Kernel):
        super().__init__(function, {"light": True})
        self.kernel = kernel


def loop_over_samples(kernel: Kernel) -> Kernel:
    """The kernel `f(counter, limit, order, fields)` that calls `kernel` for one sample after the other, until none is left.

    Args:
        kernel: works on one sample.

    `joined` (`thread_team.py`) compiles it. `order` has the numbers of the samples. `fields` is a tuple with one entry for each
    parameter of `kernel`: `Samples`; or an array `[N, ...]`, one row per sample; or a tuple of one value that all samples share.
    """
    loop = _loops.get(kernel)
    if loop is None:
        loop = SampleLoop(template_of(_each, kernel.function, "_loop", kernel=kernel), kernel)
        loop.urgency = kernel.urgency
        if kernel.has_fallback():
            loop.fallback(functools.partial(_by_fallback, kernel))
        _loops[kernel] = loop
    return loop


_loops: weakref.WeakKeyDictionary[Kernel, Kernel] = weakref.WeakKeyDictionary()


def _each(counter, limit, order, fields):
    for _ in range(limit):
        place = next_index(counter)
        if place >= len(order):
            break
        kernel(*of_sample(fields, order[place]))  # type: ignore[name-defined]  # noqa: F821
    return True


def _by_fallback(kernel: Kernel, counter: np.ndarray, limit: int, order: np.ndarray, fields: tuple[Any, ...]) -> bool:
    for _ in range(limit):
        place = _counted_in_python(counter)
        if place >= len(order):
            break
        kernel.run_fallback(*_of_sample_in_python(fields, order[place]))
    return True


def _of_sample_in_python(fields: tuple[Any, ...], i: int) -> tuple[Any, ...]:
    values: list[Any] = []
    for field in fields:
        if not isinstance(field, tuple):
            values.append(field[i])
        elif len(field) == 1:
            values.append(field[0])
        else:
            places, extents, like = field
            values.append(memory_at(places[i], tuple(extents[i].tolist()), like.dtype))
    return tuple(values)


def _type_of_sample(field: Any) -> Any:
    from numba import types

    if isinstance(field, types.Array):
        return field.dtype if field.ndim == 1 else field.copy(ndim=field.ndim - 1, layout="C", readonly=False)
    return field.types[0] if len(field) == 1 else field.types[2]


def _row(context: Any, builder: Any, kind: Any, value: Any, i: Any) -> Any:
    """Row `i` of a C-contiguous array: a number, or an array."""
    from numba.core import cgutils

    array = context.make_array(kind)(context, builder, value)
    extents = cgutils.unpack_tuple(builder, array.shape)
    step = i
    for extent in extents[1:]:
        step = builder.mul(step, extent)
    place = builder.gep(array.data, [step])
    if kind.ndim == 1:
        return context.unpack_value(builder, kind.dtype, place)
    return array_over(context, builder, _type_of_sample(kind), extents[1:], place)


def _values_of_sample(context: Any, builder: Any, fields: Any, sample_fields: Any, i: Any) -> list[Any]:
    """The arguments for sample `i`, of the tuple `sample_fields` of these types."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    values = []
    for k, field in enumerate(fields):
        value = builder.extract_value(sample_fields, k)
        if isinstance(field, types.Array):
            values.append(_row(context, builder, field, value, i))
        elif len(field) == 1:
            values.append(builder.extract_value(value, 0))
        else:
            places, sizes, like = field.types
            address = _row(context, builder, places, builder.extract_value(value, 0), i)
            table = context.make_array(sizes)(context, builder, builder.extract_value(value, 1))
            first = builder.mul(i, cgutils.unpack_tuple(builder, table.shape)[1])
            extents = [
                builder.load(builder.gep(table.data, [builder.add(first, ir.Constant(first.type, d))]))
                for d in range(like.ndim)
            ]
            data = builder.inttoptr(address, context.get_data_type(like.dtype).as_pointer())
            values.append(array_over(context, builder, like, extents, data))
    return values


def _samples_entry() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    number = ir.IntType(64)

    def signature_of(typing_context: Any, kernel: Any, kinds: Any) -> Any:
        *_, fields = kinds
        return kernel.get_call_type(typing_context, tuple([_type_of_sample(field) for field in fields.types]), {})

    def call(context: Any, builder: Any, kernel: Any, signature: Any, kinds: Any, field_values: Any) -> None:
        """Does the same as `_each`, without counting references to the arguments of `kernel`."""
        counter = context.make_array(kinds[0])(context, builder, field_values[0]).data
        limit = context.cast(builder, field_values[1], kinds[1], types.int64)
        order = context.make_array(kinds[2])(context, builder, field_values[2])
        count = cgutils.unpack_tuple(builder, order.shape)[0]
        with cgutils.for_range(builder, limit) as loop:
            place = builder.atomic_rmw("add", counter, number(1), "monotonic")
            with cgutils.if_unlikely(builder, builder.icmp_signed(">=", place, count)):
                loop.do_break()
            i = _row(context, builder, kinds[2], field_values[2], place)
            i = context.cast(builder, i, kinds[2].dtype, types.int64)
            values = _values_of_sample(context, builder, kinds[3].types, field_values[3], i)
            if inspect.Parameter.VAR_POSITIONAL in [each.kind for each in signature.pysig.parameters.values()]:
                last = len(signature.args) - 1
                values[last:] = [context.make_tuple(builder, signature.args[last], values[last:])]
            kernel(builder, values)

    return entry_point(signature_of, call)


samples_entry: Any = Intrinsic(_samples_entry)
"""`samples_entry(kernel, (counter, limit, order, fields))`: `thread_entry` of `loop_over_samples(kernel)`, which then need not
be compiled."""


def _only_joined() -> Any:
    raise TypeError("`joined` of a loop over samples is compiled (`thread_team.py`), never the loop itself")


of_sample: Any = Intrinsic(_only_joined, _of_sample_in_python)
"""`of_sample(fields, i)`: the arguments for sample `i`, see `loop_over_samples`."""
