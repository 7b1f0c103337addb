"""`sum_pixels`, for kernels: four neighbouring floats at once, where the compiler finds no loop to do so by itself.

A pixel of three channels is less than a vector register, so that loops over channels and taps stay one number at a time:
with a register for each pixel, whose fourth number is let go, they are three times as fast.
"""

from __future__ import annotations

from typing import Any

from ndd._cpu.jit import Compiled

LANES = 4


class _SumPixels(Compiled):
    def inner(self) -> Any:
        return _intrinsic()


sum_pixels: Any = _SumPixels()
"""`sum_pixels(row, begin, step, weights, k, taps, out, o)`:
`out[o : o + 4] = sum over t below taps of weights[k + t] * row[begin + t * step : begin + t * step + 4]`,
in this order, products rounded before they are added. Contiguous float32 arrays; nothing is checked: four numbers
must be there at each place."""


def _intrinsic() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    number, whole = ir.FloatType(), ir.IntType(64)
    lanes = ir.VectorType(number, LANES)
    nothing = ir.Constant(lanes, ir.Undefined)
    first_lane = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)

    @intrinsic
    def summed(typing_context, row, begin, step, weights, k, taps, out, o):
        def generate(context, builder, signature, arguments):
            row, begin, step, weights, k, taps, out, o = arguments
            row, weights, out = (
                context.make_array(kind)(context, builder, array).data
                for kind, array in ((signature.args[0], row), (signature.args[3], weights), (signature.args[6], out))
            )
            row, weights = builder.gep(row, [begin]), builder.gep(weights, [k])
            total = cgutils.alloca_once(builder, lanes)
            builder.store(ir.Constant(lanes, [0.0] * LANES), total)

            def add(tap):
                source = builder.bitcast(builder.gep(row, [builder.mul(tap, step)]), lanes.as_pointer())
                weight = builder.load(builder.gep(weights, [tap]))
                weight = builder.insert_element(nothing, weight, ir.Constant(ir.IntType(32), 0))
                product = builder.fmul(
                    builder.shuffle_vector(weight, nothing, first_lane), builder.load(source, align=4)
                )
                builder.store(builder.fadd(builder.load(total), product), total)

            fours, one = builder.and_(taps, ir.Constant(whole, -4)), ir.Constant(whole, 1)
            with cgutils.for_range_slice(builder, ir.Constant(whole, 0), fours, ir.Constant(whole, 4), whole) as (
                tap,
                _,
            ):
                for t in range(4):
                    add(builder.add(tap, ir.Constant(whole, t)))
            with cgutils.for_range_slice(builder, fours, taps, one, whole) as (tap, _):
                add(tap)
            target = builder.bitcast(builder.gep(out, [o]), lanes.as_pointer())
            builder.store(builder.load(total), target, align=4)
            return context.get_dummy_value()

        floats, place = types.Array(types.float32, 1, "C"), types.uint64
        return types.void(floats, place, place, floats, place, place, floats, place), generate

    return summed
