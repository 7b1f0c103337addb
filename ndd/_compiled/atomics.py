"""For kernels: numbers in memory that several threads work on, and calls of code by its address.

Each is one step among all threads, and what a thread wrote before it is seen by one that sees its result. `numbers` is an
int64 array in one piece, `k` a place in it.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ndd._compiled.jit import Intrinsic, kernel


def _added_in_python(numbers: np.ndarray, k: int, more: int) -> int:
    found = int(numbers[k])
    numbers[k] = found + more
    return found


def _place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    return builder.gep(data, [arguments[1]])


def _made(count: int, result: str, generate: Any) -> Any:
    """The intrinsic of `numbers`, `k` and int64 numbers, `count` in all."""
    from numba import types
    from numba.extending import intrinsic

    kinds = (types.Array(types.int64, 1, "C"), *[types.int64] * (count - 1))
    given = getattr(types, result)(*kinds)

    def code(context, builder, signature, arguments):
        return generate(context, builder, _place(context, builder, signature, arguments), arguments[2:])

    makers = {
        2: lambda typing_context, numbers, k: (given, code),
        3: lambda typing_context, numbers, k, value: (given, code),
        4: lambda typing_context, numbers, k, old, new: (given, code),
    }
    return intrinsic(makers[count])


def _added() -> Any:
    return _made(3, "int64", lambda context, builder, place, a: builder.atomic_rmw("add", place, a[0], "seq_cst"))


def _seen() -> Any:
    return _made(2, "int64", lambda context, builder, place, a: builder.load_atomic(place, "seq_cst", 8))


def _put() -> Any:
    def generate(context, builder, place, a):
        builder.store_atomic(a[0], place, "seq_cst", 8)
        return context.get_dummy_value()

    return _made(3, "void", generate)


def _swapped() -> Any:
    def generate(context, builder, place, a):
        return builder.extract_value(builder.cmpxchg(place, a[0], a[1], "seq_cst", "seq_cst"), 1)

    return _made(4, "boolean", generate)


added: Any = Intrinsic(_added, _added_in_python)
"""`added(numbers, k, more)`: adds to one of them. Gives what it was."""

seen: Any = Intrinsic(_seen)
"""`seen(numbers, k)`: what it is."""

put: Any = Intrinsic(_put)
"""`put(numbers, k, value)`: makes it this."""

swapped: Any = Intrinsic(_swapped)
"""`swapped(numbers, k, old, new)`: makes it `new` if it is `old`. Whether it was."""


@kernel
def seated(taken):
    """The first place of `taken` that is 0, which becomes 1: there is one for each thread. `put(taken, k, 0)` gives it back."""
    k = 0
    while not swapped(taken, k, 0, 1):
        k = (k + 1) % len(taken)
    return k


@functools.cache
def _owned_by_nobody() -> Any:
    from numba import types

    def without(context: Any, builder: Any, kind: Any, value: Any) -> Any:
        """The value, whose arrays count no references: several threads use it, who count without locking (`linking.py`)."""
        if isinstance(kind, types.BaseTuple):
            for k, one in enumerate(kind.types):
                item = without(context, builder, one, builder.extract_value(value, k))
                value = builder.insert_value(value, item, k)
        elif isinstance(kind, types.Array):
            array = context.make_array(kind)(context, builder, value)
            array.meminfo, array.parent = (field.type(None) for field in (array.meminfo, array.parent))
            value = array._getvalue()
        return value

    return without


def _job() -> Any:
    """Memory on the stack of the caller: the arguments, a status and what numba knows of an error. And a function that
    calls `loop` with the former, and writes the latter."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.core.callconv import excinfo_t
    from numba.extending import intrinsic

    without = _owned_by_nobody()
    number = ir.IntType(64)

    @intrinsic
    def job(typing_context, loop, what):
        called = loop.get_call_type(typing_context, tuple(what.types), {})
        found = types.UniTuple(types.int64, 2)

        def generate(context, builder, signature, arguments):
            value = without(context, builder, what, arguments[1])
            kept = ir.LiteralStructType([value.type, ir.IntType(32), ir.PointerType(excinfo_t)])
            memory = cgutils.alloca_once(builder, kept)
            builder.store(value, cgutils.gep_inbounds(builder, memory, 0, 0))
            builder.store(ir.IntType(32)(0), cgutils.gep_inbounds(builder, memory, 0, 1))

            # Numba's way of calling, so that what numba makes for `loop` may leave it by an error.
            convention = context.call_conv
            kind = convention.get_function_type(types.int32, (types.int64,))
            inside = ir.Function(builder.module, kind, builder.module.get_unique_name("joined"))
            inside.linkage = "internal"
            convention.decorate_function(inside, ["place"], (types.int64,))
            own = ir.IRBuilder(inside.append_basic_block("entry"))
            place = own.inttoptr(convention.get_arguments(inside)[0], kept.as_pointer())
            given = own.load(cgutils.gep_inbounds(own, place, 0, 0))
            given = [own.extract_value(given, k) for k in range(len(what.types))]
            context.get_function(loop, called)(own, given)
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
            pair = [builder.ptrtoint(one, number) for one in (outer, memory)]
            return context.make_tuple(builder, found, pair)

        return found(loop, what), generate

    return job


def _called() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def called(typing_context, entry, address):
        def generate(context, builder, signature, arguments):
            kind = ir.FunctionType(ir.VoidType(), [ir.IntType(64)])
            builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [arguments[1]])
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    return called


def _passed_on() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.core.callconv import excinfo_t
    from numba.extending import intrinsic

    @intrinsic
    def passed_on(typing_context, what, address):
        def generate(context, builder, signature, arguments):
            kept = ir.LiteralStructType([arguments[0].type, ir.IntType(32), ir.PointerType(excinfo_t)])
            memory = builder.inttoptr(arguments[1], kept.as_pointer())
            code = builder.load(cgutils.gep_inbounds(builder, memory, 0, 1))
            error = builder.load(cgutils.gep_inbounds(builder, memory, 0, 2))
            status = context.call_conv._get_return_status(builder, code, error)
            with cgutils.if_unlikely(builder, builder.icmp_signed("!=", code, code.type(0))):
                context.call_conv.return_status_propagate(builder, status)
            return context.get_dummy_value()

        return types.void(what, types.int64), generate

    return passed_on


job: Any = Intrinsic(_job)
"""`job(loop, what)`: a call of the kernel `loop` with what is in the tuple, by threads: the address of code, and of what it is
to be called with, which lives as long as the kernel that calls this. Nothing may go wrong in that kernel before all have left."""

called: Any = Intrinsic(_called)
"""`called(entry, address)`: calls what `job` gave."""

passed_on: Any = Intrinsic(_passed_on)
"""`passed_on(what, address)`: raises here what was raised in a thread, if anything was. `what` as of `job`."""
