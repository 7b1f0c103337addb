"""Non-temporal stores: large results that bypass the cache, for kernels that work element by element.

A usual store first reads the cache line that it changes: converting 36 million bytes to float32 took 17.5 ms, and 8 ms with
non-temporal stores (a Xeon core with 2 MB of cache). Later reads miss the cache, so this is for results that are too large to
stay there.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import Intrinsic, Kernel, from_template

_BLOCK = 1 << 12  # elements that are computed in the cache before they are written to memory
_LINE = 64  # bytes


def by_blocks(kernel: Kernel, operands: int) -> Kernel:
    """The kernel `f(x, out, bypass, ...)`, or for two operands `f(x, y, out, bypass, ...)`, that computes `kernel(x, out, ...)`.

    The arrays are 1-D and have the same length, and element `i` of `out` depends only on elements `i` of the operands. `bypass`:
    whether the stores to `out` bypass the cache.
    """
    blocked = _blocked.get(kernel, {}).get(operands)
    if blocked is None:
        loop = _one_operand if operands == 1 else _two_operands
        blocked = from_template(loop, kernel.function, "_by_blocks", {}, kernel=kernel)
        if kernel.has_fallback():
            blocked.fallback(functools.partial(_by_fallback, kernel, operands))
        _blocked.setdefault(kernel, {})[operands] = blocked
    return blocked


_blocked: weakref.WeakKeyDictionary[Kernel, dict[int, Kernel]] = weakref.WeakKeyDictionary()


def _one_operand(x, out, bypass, *numbers):
    block = empty(_BLOCK if bypass else 0, out.dtype)
    start, n = 0, out.size
    if bypass:  # the first block ends at the start of a cache line
        n = _BLOCK - out.ctypes.data % _LINE // out.itemsize
    while start < out.size:
        n = min(n, out.size - start)
        target = block[:n] if bypass else out[start : start + n]
        kernel(x[start : start + n], target, *numbers)  # type: ignore[name-defined]  # noqa: F821
        if bypass:
            stream(target, out, start)
        start, n = start + n, _BLOCK


def _two_operands(x, y, out, bypass, *numbers):
    block = empty(_BLOCK if bypass else 0, out.dtype)
    start, n = 0, out.size
    if bypass:
        n = _BLOCK - out.ctypes.data % _LINE // out.itemsize
    while start < out.size:
        n = min(n, out.size - start)
        target = block[:n] if bypass else out[start : start + n]
        kernel(x[start : start + n], y[start : start + n], target, *numbers)  # type: ignore[name-defined]  # noqa: F821
        if bypass:
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
            destination = context.make_array(signature.args[1])(context, builder, arguments[1])
            size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(out.dtype)))
            count = builder.mul(cgutils.unpack_tuple(builder, array.shape)[0], size)
            data, place = (
                builder.bitcast(array.data, byte),
                builder.bitcast(builder.gep(destination.data, [arguments[2]]), byte),
            )
            head = builder.and_(builder.neg(builder.ptrtoint(place, whole)), ir.Constant(whole, _LINE - 1))
            head = builder.select(builder.icmp_unsigned("<", head, count), head, count)
            lines = builder.and_(builder.sub(count, head), ir.Constant(whole, -_LINE))
            end = builder.add(head, lines)
            cgutils.raw_memcpy(builder, place, data, head, 1)
            nontemporal = builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
            step = ir.Constant(whole, _LINE)
            with cgutils.for_range_slice(builder, head, end, step, whole) as (k, _):
                vector = builder.load(builder.bitcast(builder.gep(data, [k]), line.as_pointer()), align=1)
                target = builder.bitcast(builder.gep(place, [k]), line.as_pointer())
                builder.store(vector, target, align=_LINE).set_metadata("nontemporal", nontemporal)
            cgutils.raw_memcpy(builder, builder.gep(place, [end]), builder.gep(data, [end]), builder.sub(count, end), 1)
            return context.get_dummy_value()

        return types.void(source, out, types.int64), generate

    return streamed


stream: Any = Intrinsic(_streamed, _streamed_by_python)
"""`stream(source, out, start)`: `out[start : start + source.size] = source`, with non-temporal stores. C-contiguous 1-D arrays of
one type.

Other threads see the result after this thread's next lock or atomic operation, such as that at the end of a kernel call.
"""
