"""Non-temporal stores: large results that bypass the cache, for kernels that work element by element.

A usual store first reads the cache line that it changes: 36 million bytes that become float32 took 17.5 ms, and
8 ms past the cache (a core of a Xeon with 2 MB of its own). A later read finds nothing in the cache, so this is for results that
would not stay there.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import Intrinsic, Kernel, from_template

_BLOCK = 1 << 12  # elements that are made in the cache before they go to memory
_LINE = 64  # bytes


def by_blocks(one: Kernel, operands: int) -> Kernel:
    """The kernel `f(x, out, far, ...)`, for two operands `f(x, y, out, far, ...)`, that does as `one(x, out, ...)`.

    The arrays are 1-D and of one length, and element `i` of `out` is made of elements `i` of the operands. `far`: whether
    `out` goes to memory past the cache.
    """
    found = _made.get(one, {}).get(operands)
    if found is None:
        loop = _of_one if operands == 1 else _of_two
        found = from_template(loop, one.function, "_by_blocks", {}, one=one)
        if one.has_fallback():
            found.fallback(functools.partial(_by_fallback, one, operands))
        _made.setdefault(one, {})[operands] = found
    return found


_made: weakref.WeakKeyDictionary[Kernel, dict[int, Kernel]] = weakref.WeakKeyDictionary()


def _of_one(x, out, far, *numbers):
    block = empty(_BLOCK if far else 0, out.dtype)
    start, n = 0, out.size
    if far:  # the first one ends at a line of memory
        n = _BLOCK - out.ctypes.data % _LINE // out.itemsize
    while start < out.size:
        n = min(n, out.size - start)
        target = block[:n] if far else out[start : start + n]
        one(x[start : start + n], target, *numbers)  # type: ignore[name-defined]  # noqa: F821
        if far:
            stream(target, out, start)
        start, n = start + n, _BLOCK


def _of_two(x, y, out, far, *numbers):
    block = empty(_BLOCK if far else 0, out.dtype)
    start, n = 0, out.size
    if far:
        n = _BLOCK - out.ctypes.data % _LINE // out.itemsize
    while start < out.size:
        n = min(n, out.size - start)
        target = block[:n] if far else out[start : start + n]
        one(x[start : start + n], y[start : start + n], target, *numbers)  # type: ignore[name-defined]  # noqa: F821
        if far:
            stream(target, out, start)
        start, n = start + n, _BLOCK


def _by_fallback(kernel: Kernel, operands: int, *args: Any) -> None:
    kernel.run_fallback(*args[: operands + 1], *args[operands + 2 :])


def _streamed_by_python(source: np.ndarray, out: np.ndarray, start: int) -> None:
    out[start : start + source.size] = source


def _streamed() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    byte, whole = ir.IntType(8).as_pointer(), ir.IntType(64)
    line = ir.VectorType(whole, _LINE // 8)

    @intrinsic
    def streamed(typing_context, source, out, start):
        def generate(context, builder, signature, arguments):
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            taken = context.make_array(signature.args[1])(context, builder, arguments[1])
            size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(out.dtype)))
            count = builder.mul(cgutils.unpack_tuple(builder, array.shape)[0], size)
            data, place = (
                builder.bitcast(array.data, byte),
                builder.bitcast(builder.gep(taken.data, [arguments[2]]), byte),
            )
            head = builder.and_(builder.neg(builder.ptrtoint(place, whole)), ir.Constant(whole, _LINE - 1))
            head = builder.select(builder.icmp_unsigned("<", head, count), head, count)
            lines = builder.and_(builder.sub(count, head), ir.Constant(whole, -_LINE))
            end = builder.add(head, lines)
            cgutils.raw_memcpy(builder, place, data, head, 1)
            past = builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
            step = ir.Constant(whole, _LINE)
            with cgutils.for_range_slice(builder, head, end, step, whole) as (k, _):
                vector = builder.load(builder.bitcast(builder.gep(data, [k]), line.as_pointer()), align=1)
                target = builder.bitcast(builder.gep(place, [k]), line.as_pointer())
                builder.store(vector, target, align=_LINE).set_metadata("nontemporal", past)
            cgutils.raw_memcpy(builder, builder.gep(place, [end]), builder.gep(data, [end]), builder.sub(count, end), 1)
            return context.get_dummy_value()

        return types.void(source, out, types.int64), generate

    return streamed


stream: Any = Intrinsic(_streamed, _streamed_by_python)
"""`stream(source, out, start)`: `out[start : start + source.size] = source`, past the cache. C-contiguous 1-D arrays of one type.

Others see it once the thread has passed a lock or an atomic step, as it does to end a call of a kernel.
"""
