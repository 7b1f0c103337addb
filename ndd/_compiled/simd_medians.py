"""`sort_columns` and `median_of_columns`, for kernels: medians of 3 x 3 numbers, in vector registers.

Each column of three is sorted once, for the three windows that it belongs to. The median of nine is the median of three numbers:
the largest of the small ones, the median of the middle ones and the smallest of the large ones.
"""

from __future__ import annotations

from typing import Any

from ndd._compiled.jit import Intrinsic

BLOCK_BYTES = 64  # bytes of a row that are processed at once


class _Sorted:
    """Comparisons of vectors of unsigned integers."""

    def __init__(self, builder: Any, bits: int):
        from llvmlite import ir

        self.builder, self.bytes = builder, bits // 8
        self.kind = ir.VectorType(ir.IntType(bits), BLOCK_BYTES // self.bytes)

    def read(self, data: Any, at: Any) -> Any:
        place = self.builder.bitcast(self.builder.gep(data, [at]), self.kind.as_pointer())
        return self.builder.load(place, align=self.bytes)

    def write(self, value: Any, data: Any, at: Any) -> None:
        place = self.builder.bitcast(self.builder.gep(data, [at]), self.kind.as_pointer())
        self.builder.store(value, place, align=self.bytes)

    def smaller(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.icmp_unsigned("<", a, b), a, b)

    def larger(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.icmp_unsigned(">", a, b), a, b)

    def middle(self, a: Any, b: Any, c: Any) -> Any:
        return self.larger(self.smaller(a, b), self.smaller(self.larger(a, b), c))


def _sort_columns() -> Any:
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def sort(typing_context, rows, first, second, third, out, at, length):
        def generate(context, builder, signature, arguments):
            rows, out = (context.make_array(signature.args[k])(context, builder, arguments[k]).data for k in (0, 4))
            vectors = _Sorted(builder, signature.args[0].dtype.bitwidth)
            a, b, c = (vectors.read(rows, place) for place in arguments[1:4])
            small, large = vectors.smaller(a, b), vectors.larger(a, b)
            rest = vectors.smaller(large, c)
            sorted_columns = vectors.smaller(small, rest), vectors.larger(small, rest), vectors.larger(large, c)
            place = arguments[5]
            for value in sorted_columns:
                vectors.write(value, out, place)
                place = builder.add(place, arguments[6])
            return context.get_dummy_value()

        place = types.uint64
        return types.void(rows, place, place, place, out, place, place), generate

    return sort


def _median_of_columns() -> Any:
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def median(typing_context, columns, at, step, length, out, place):
        def generate(context, builder, signature, arguments):
            columns, out = (context.make_array(signature.args[k])(context, builder, arguments[k]).data for k in (0, 4))
            at, step, length = arguments[1:4]
            vectors = _Sorted(builder, signature.args[0].dtype.bitwidth)
            rows = []
            for _ in range(3):
                places = at, builder.add(at, step), builder.add(at, builder.add(step, step))
                rows.append([vectors.read(columns, place) for place in places])
                at = builder.add(at, length)
            small, middle, large = rows
            medians = vectors.middle(
                vectors.larger(vectors.larger(small[0], small[1]), small[2]),
                vectors.middle(*middle),
                vectors.smaller(vectors.smaller(large[0], large[1]), large[2]),
            )
            vectors.write(medians, out, arguments[5])
            return context.get_dummy_value()

        place = types.uint64
        return types.void(columns, place, place, place, out, place), generate

    return median


sort_columns: Any = Intrinsic(_sort_columns)
"""`sort_columns(rows, first, second, third, out, at, length)`: sorts the columns of three rows of `BLOCK_BYTES` bytes that start at
`first`, `second` and `third` in `rows`. The smallest of each column goes to `out` from `at` on, the middle one `length` later, the
largest `2 * length` later. 1-D arrays of u8 or u16; nothing is checked, here and below."""

median_of_columns: Any = Intrinsic(_median_of_columns)
"""`median_of_columns(columns, at, step, length, out, place)`: `BLOCK_BYTES` of medians, to `out` from `place` on. `columns` is the
output of `sort_columns`, from `at` on, for three neighbours that are `step` apart."""
