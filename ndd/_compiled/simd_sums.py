"""`advance_sums`, for kernels: 16 moving sums of squares side by side in vector registers.

Eight loads read eight consecutive numbers each; 24 shuffles transpose them.
"""

from __future__ import annotations

from typing import Any

from ndd._compiled.jit import Intrinsic

SUMS, GROUP = 16, 8  # sums side by side; numbers of each that are loaded at once


def _intrinsic() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    number, whole, index = ir.FloatType(), ir.IntType(64), ir.IntType(32)
    vector = ir.VectorType(number, GROUP)

    def turned(builder: Any, rows: list[Any]) -> list[Any]:
        """The columns of `GROUP` rows: rows that are `half` apart exchange every other run of `half` numbers."""
        half = GROUP // 2
        while half:
            lower = [GROUP + k - half if k & half else k for k in range(GROUP)]
            upper = [GROUP + k if k & half else k + half for k in range(GROUP)]
            masks = [ir.Constant(ir.VectorType(index, GROUP), mask) for mask in (lower, upper)]
            pairs = [(k - (k & half), k | half) for k in range(GROUP)]
            rows = [builder.shuffle_vector(rows[a], rows[b], masks[k == b]) for k, (a, b) in enumerate(pairs)]
            half //= 2
        return rows

    @intrinsic
    def advanced(typing_context, places, steps, squares, new, old, totals, largest):
        def generate(context, builder, signature, arguments):
            places, steps, squares, new, old, totals, largest = arguments
            table = context.make_array(signature.args[2])(context, builder, squares)
            rows = builder.udiv(table.nitems, ir.Constant(whole, SUMS))
            places, totals, largest = (
                context.make_array(signature.args[k])(context, builder, arguments[k]).data for k in (0, 5, 6)
            )

            def at(base, place):
                return builder.bitcast(builder.gep(base, [place]), vector.as_pointer())

            def next_row(row, step):
                row = builder.add(row, step)
                return builder.select(builder.icmp_unsigned("<", row, rows), row, builder.sub(row, rows))

            places_of = [cgutils.alloca_once_value(builder, row) for row in (new, old)]
            running = []
            for first in range(0, SUMS, GROUP):
                for sums in (totals, largest):
                    place = at(sums, ir.Constant(whole, first))
                    running.append((place, cgutils.alloca_once_value(builder, builder.load(place, align=4))))
            group = ir.Constant(whole, GROUP)
            with cgutils.for_range_slice(builder, ir.Constant(whole, 0), steps, group, whole) as (step, _):
                new, old = map(builder.load, places_of)
                for part in range(SUMS // GROUP):
                    first, loaded = part * GROUP, []
                    for k in range(first, first + GROUP):
                        source = builder.load(builder.gep(places, [ir.Constant(whole, k)]))
                        source = builder.add(source, builder.mul(step, ir.Constant(whole, 4)))
                        numbers = builder.load(builder.inttoptr(source, vector.as_pointer()), align=4)
                        loaded.append(builder.fmul(numbers, numbers))
                    (_, total_at), (_, most_at) = running[2 * part : 2 * part + 2]
                    total, most = builder.load(total_at), builder.load(most_at)
                    for k, column in enumerate(turned(builder, loaded)):
                        offset = ir.Constant(whole, k)
                        here, gone = builder.add(new, offset), next_row(old, offset)
                        here, gone = (
                            at(
                                table.data,
                                builder.add(builder.mul(row, ir.Constant(whole, SUMS)), ir.Constant(whole, first)),
                            )
                            for row in (here, gone)
                        )
                        total = builder.fadd(builder.fsub(total, builder.load(gone, align=4)), column)
                        builder.store(column, here, align=4)
                        most = builder.select(builder.fcmp_ordered(">", total, most), total, most)
                    builder.store(total, total_at)
                    builder.store(most, most_at)
                for row, place in zip((new, old), places_of, strict=True):
                    builder.store(next_row(row, group), place)
            for place, value in running:
                builder.store(builder.load(value), place, align=4)
            return context.get_dummy_value()

        floats, place = types.Array(types.float32, 1, "C"), types.int64
        return types.void(types.Array(types.int64, 1, "C"), place, floats, place, place, floats, floats), generate

    return advanced


advance_sums: Any = Intrinsic(_intrinsic)
"""`advance_sums(places, steps, squares, new, old, totals, largest)`: for each sum, `steps` times (a multiple of `GROUP`): its next
number squared is added to `totals` and stored in row `new` of `squares` `[rows, SUMS]`, and row `old` is subtracted; `largest` is
the largest total. `places`: the address of the numbers of each sum."""
