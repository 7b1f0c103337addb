"""For kernels: atomic operations on numbers that several threads share, and calls of code by its address.

Each operation is sequentially consistent: a thread that sees its result also sees what was written before it. `numbers` is a
contiguous int64 array, `k` an index.
"""

# numba's private names are not in its types.
# pyright: reportPrivateImportUsage=false, reportAttributeAccessIssue=false
from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ndd._compiled.jit import Intrinsic, kernel


def _fetch_add_in_python(numbers: np.ndarray, k: int, more: int) -> int:
    value = int(numbers[k])
    numbers[k] = value + more
    return value


def _place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    return builder.gep(data, [arguments[1]])


def _of_numbers(count: int, result: str, generate: Any) -> Any:
    """An intrinsic of `count` arguments: `numbers`, `k` and int64 numbers."""
    from numba import types
    from numba.extending import intrinsic

    kinds = (types.Array(types.int64, 1, "C"), *[types.int64] * (count - 1))
    result_type = getattr(types, result)(*kinds)

    def code(context, builder, signature, arguments):
        return generate(context, builder, _place(context, builder, signature, arguments), arguments[2:])

    makers = {
        2: lambda typing_context, numbers, k: (result_type, code),
        3: lambda typing_context, numbers, k, value: (result_type, code),
        4: lambda typing_context, numbers, k, old, new: (result_type, code),
    }
    return intrinsic(makers[count])


def _fetch_add() -> Any:
    return _of_numbers(3, "int64", lambda context, builder, place, a: builder.atomic_rmw("add", place, a[0], "seq_cst"))


def _atomic_load() -> Any:
    return _of_numbers(2, "int64", lambda context, builder, place, a: builder.load_atomic(place, "seq_cst", 8))


def _atomic_store() -> Any:
    def generate(context, builder, place, a):
        builder.store_atomic(a[0], place, "seq_cst", 8)
        return context.get_dummy_value()

    return _of_numbers(3, "void", generate)


def _compare_exchange() -> Any:
    def generate(context, builder, place, a):
        return builder.extract_value(builder.cmpxchg(place, a[0], a[1], "seq_cst", "seq_cst"), 1)

    return _of_numbers(4, "boolean", generate)


fetch_add: Any = Intrinsic(_fetch_add, _fetch_add_in_python)
"""`fetch_add(numbers, k, more)`: adds `more` to `numbers[k]`. Returns the old value."""

atomic_load: Any = Intrinsic(_atomic_load)
"""`atomic_load(numbers, k)`: the value of `numbers[k]`."""

atomic_store: Any = Intrinsic(_atomic_store)
"""`atomic_store(numbers, k, value)`: sets `numbers[k]`."""

compare_exchange: Any = Intrinsic(_compare_exchange)
"""`compare_exchange(numbers, k, old, new)`: sets `numbers[k]` to `new` if it is `old`. Returns whether it was."""


@kernel
def acquire_slot(taken):
    """The index of a slot of `taken` that was free (0) and is now this thread's (1). There is one for each thread.
    `atomic_store(taken, k, 0)` frees it."""
    k = 0
    while not compare_exchange(taken, k, 0, 1):
        k = (k + 1) % len(taken)
    return k


@functools.cache
def _without_references() -> Any:
    from numba import types

    def without(context: Any, builder: Any, kind: Any, value: Any) -> Any:
        """The value, with arrays that do not count references: several threads share it, and the counting is not atomic
        (`linking.py`)."""
        if isinstance(kind, types.BaseTuple):
            for k, member in enumerate(kind.types):
                item = without(context, builder, member, builder.extract_value(value, k))
                value = builder.insert_value(value, item, k)
        elif isinstance(kind, types.Array):
            array = context.make_array(kind)(context, builder, value)
            array.meminfo, array.parent = (field.type(None) for field in (array.meminfo, array.parent))
            value = array._getvalue()
        return value

    return without


def entry_point(signature_of: Any, call: Any) -> Any:
    """An intrinsic like `thread_entry`. It reserves memory on the caller's stack for the arguments, a status and numba's
    description of an error, and generates a function that calls a kernel with the arguments and writes status and error.

    Args:
        signature_of: returns the signature of the called kernel, from the typing context, the kernel's type and the arguments'
            types.
        call: generates the call, from the context, the builder, the function, its signature, the types of the arguments and the
            arguments.
    """
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.core.callconv import excinfo_t
    from numba.extending import intrinsic

    without = _without_references()
    number = ir.IntType(64)

    @intrinsic
    def thread_entry(typing_context, called, fields):
        own_signature = signature_of(typing_context, called, fields.types)
        result = types.UniTuple(types.int64, 2)

        def generate(context, builder, signature, arguments):
            value = without(context, builder, fields, arguments[1])
            kept = ir.LiteralStructType([value.type, ir.IntType(32), ir.PointerType(excinfo_t)])
            memory = cgutils.alloca_once(builder, kept)
            builder.store(value, cgutils.gep_inbounds(builder, memory, 0, 0))
            builder.store(ir.IntType(32)(0), cgutils.gep_inbounds(builder, memory, 0, 1))

            # numba's calling convention, so that numba's code for `loop` may raise an error.
            convention = context.call_conv
            kind = convention.get_function_type(types.int32, (types.int64,))
            inside = ir.Function(builder.module, kind, builder.module.get_unique_name("joined"))
            inside.linkage = "internal"
            convention.decorate_function(inside, ["place"], (types.int64,))
            own = ir.IRBuilder(inside.append_basic_block("entry"))
            place = own.inttoptr(convention.get_arguments(inside)[0], kept.as_pointer())
            values = own.load(cgutils.gep_inbounds(own, place, 0, 0))
            values = [own.extract_value(values, k) for k in range(len(fields.types))]
            call(context, own, context.get_function(called, own_signature), own_signature, fields.types, values)
            convention.return_value(own, ir.IntType(32)(0))

            outer = ir.Function(
                builder.module, ir.FunctionType(ir.VoidType(), [number]), builder.module.get_unique_name("entry")
            )
            outer.linkage = "internal"
            own = ir.IRBuilder(outer.append_basic_block("entry"))
            status, _ = convention.call_function(own, inside, types.int32, (types.int64,), outer.args)
            with cgutils.if_unlikely(own, status.is_error):
                place = own.inttoptr(outer.args[0], kept.as_pointer())
                own.store(status.code, cgutils.gep_inbounds(own, place, 0, 1))
                own.store(status.excinfoptr, cgutils.gep_inbounds(own, place, 0, 2))
            own.ret_void()
            pair = [builder.ptrtoint(pointer, number) for pointer in (outer, memory)]
            return context.make_tuple(builder, result, pair)

        return result(called, fields), generate

    return thread_entry


def _thread_entry() -> Any:
    return entry_point(
        lambda typing_context, loop, kinds: loop.get_call_type(typing_context, kinds, {}),
        lambda context, builder, loop, signature, kinds, values: loop(builder, values),
    )


_FOUR = 4


def _address_of() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def address_of(typing_context, kernel):
        kinds = (types.int64,) * _FOUR
        own_signature = kernel.get_call_type(typing_context, kinds, {})

        def generate(context, builder, signature, arguments):
            number = ir.IntType(64)
            convention = context.call_conv
            kind = convention.get_function_type(types.int32, kinds)
            inside = ir.Function(builder.module, kind, builder.module.get_unique_name("called"))
            inside.linkage = "internal"
            convention.decorate_function(inside, list("abcd"), kinds)
            own = ir.IRBuilder(inside.append_basic_block("entry"))
            context.get_function(kernel, own_signature)(own, convention.get_arguments(inside))
            convention.return_value(own, ir.IntType(32)(0))
            kind = ir.FunctionType(ir.VoidType(), [number] * _FOUR)
            outer = ir.Function(builder.module, kind, builder.module.get_unique_name("c_function"))
            outer.linkage = "internal"
            own = ir.IRBuilder(outer.append_basic_block("entry"))
            convention.call_function(own, inside, types.int32, kinds, outer.args)
            own.ret_void()
            return builder.ptrtoint(outer, number)

        return types.int64(kernel), generate

    return address_of


def _call_kept() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def call_kept(typing_context, numbers, k, a, b, c):
        kinds = (types.Array(types.int64, 1, "C"), *[types.int64] * _FOUR)

        def generate(context, builder, signature, arguments):
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            kind = ir.FunctionType(ir.VoidType(), [ir.IntType(64)] * _FOUR)
            function = builder.inttoptr(builder.load(builder.gep(data, [arguments[1]])), kind.as_pointer())
            builder.call(function, [builder.ptrtoint(data, ir.IntType(64)), *arguments[2:]])
            return context.get_dummy_value()

        return types.void(*kinds), generate

    return call_kept


def _call_address() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def call_address(typing_context, entry, address):
        def generate(context, builder, signature, arguments):
            kind = ir.FunctionType(ir.VoidType(), [ir.IntType(64)])
            builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [arguments[1]])
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    return call_address


def _reraise() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.core.callconv import excinfo_t
    from numba.extending import intrinsic

    @intrinsic
    def reraise(typing_context, fault, address):
        def generate(context, builder, signature, arguments):
            kept = ir.LiteralStructType([arguments[0].type, ir.IntType(32), ir.PointerType(excinfo_t)])
            memory = builder.inttoptr(arguments[1], kept.as_pointer())
            code = builder.load(cgutils.gep_inbounds(builder, memory, 0, 1))
            error = builder.load(cgutils.gep_inbounds(builder, memory, 0, 2))
            status = context.call_conv._get_return_status(builder, code, error)
            with cgutils.if_unlikely(builder, builder.icmp_signed("!=", code, code.type(0))):
                context.call_conv.return_status_propagate(builder, status)
            return context.get_dummy_value()

        return types.void(fault, types.int64), generate

    return reraise


thread_entry: Any = Intrinsic(_thread_entry)
"""`thread_entry(loop, what)`: an entry point for threads that run the kernel `loop` with the arguments in the tuple `what`: the
address of its code and that of its argument, which is on the stack of the calling kernel. That kernel must not return or raise
before all threads have left."""

call_address: Any = Intrinsic(_call_address)
"""`call_address(entry, address)`: calls an entry point of `thread_entry`."""

reraise: Any = Intrinsic(_reraise)
"""`reraise(what, address)`: raises the error that a thread met in the entry point, if any. `what` is that of `thread_entry`."""

address_of: Any = Intrinsic(_address_of)
"""`address_of(kernel)`: the address of a C function of four int64 that calls the kernel, which must not raise. It is valid for
the life of the process."""

call_kept: Any = Intrinsic(_call_kept)
"""`call_kept(numbers, k, a, b, c)`: calls the function at the address `numbers[k]`, a result of `address_of`, with the address
of `numbers`, and `a`, `b` and `c`."""
