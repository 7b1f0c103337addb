"""`bayer_block`, for kernels: pixels of a Bayer mosaic as means of their neighbours, in vector registers.

A loop takes three times as long, because the compiler widens the numbers and stores pixels slowly.
"""

from __future__ import annotations

from typing import Any

from ndd._compiled.jit import Intrinsic
from ndd._compiled.simd_rgb import store_rgb

BLOCK_BYTES = 32  # bytes of a row that are converted at once


def _bayer_block() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def block(typing_context, flat, up, own, down, green, blue_row, out, place):
        bits = flat.dtype.bitwidth
        count = 8 * BLOCK_BYTES // bits

        def generate(context, builder, signature, arguments):
            flat, up, own, down, green, blue_row, out, place = arguments
            flat, out = (
                context.make_array(signature.args[k])(context, builder, a).data for k, a in ((0, flat), (6, out))
            )
            number, whole = ir.IntType(bits), ir.IntType(64)
            kind = ir.VectorType(number, count)
            wider = ir.VectorType(ir.IntType(2 * bits), count)
            xor, and_, or_ = builder.xor, builder.and_, builder.or_

            def read(row, step):
                where = builder.gep(flat, [builder.add(row, ir.Constant(whole, step))])
                return builder.load(builder.bitcast(where, kind.as_pointer()), align=bits // 8)

            def everywhere(flag):
                value = builder.trunc(builder.neg(flag), number)
                vector = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(whole, 0))
                return builder.shuffle_vector(
                    vector, vector, ir.Constant(ir.VectorType(ir.IntType(32), count), [0] * count)
                )

            def mean(a, b):
                one = ir.Constant(wider, [1] * count)
                total = builder.add(builder.add(builder.zext(a, wider), builder.zext(b, wider)), one)
                return builder.trunc(builder.lshr(total, one), kind)

            def mean_of_four(a, b, mean_ab, c, d, mean_cd):
                """The mean of two means. Both were rounded up, which may be once too often."""
                once = and_(and_(or_(xor(a, b), xor(c, d)), xor(mean_ab, mean_cd)), ir.Constant(kind, [1] * count))
                return builder.sub(mean(mean_ab, mean_cd), once)

            def chosen(mask, a, b):
                return xor(b, and_(xor(a, b), mask))

            above, below, left, right = read(up, 0), read(down, 0), read(own, -1), read(own, 1)
            corners = read(up, -1), read(up, 1), read(down, -1), read(down, 1)
            here, across, upright = read(own, 0), mean(left, right), mean(above, below)
            odd = xor(ir.Constant(kind, [0, -1] * (count // 2)), everywhere(green))  # green is here
            first = chosen(odd, across, here)
            middle = chosen(odd, here, mean_of_four(left, right, across, above, below, upright))
            pairs = mean(*corners[:2]), mean(*corners[2:])
            last = chosen(odd, upright, mean_of_four(*corners[:2], pairs[0], *corners[2:], pairs[1]))
            swapped = and_(xor(first, last), everywhere(blue_row))
            store_rgb(builder, [xor(first, swapped), middle, xor(last, swapped)], builder.gep(out, [place]))
            return context.get_dummy_value()

        place_ = types.uint64
        return types.void(flat, place_, place_, place_, place_, place_, out, place_), generate

    return block


bayer_block: Any = Intrinsic(_bayer_block)
"""`bayer_block(flat, up, own, down, green, blue_row, out, place)`: converts `BLOCK_BYTES` of a row to pixels, written to `out`
from `place` on. `flat` has the row from `own` on, the rows above and below from `up` and `down` on, and one more number on each
side of all. `green`: 1 if the first number is green; `blue_row`: 1 if the row has blue. 1-D arrays of u8 or u16; nothing is
checked."""
