"""`sum_pixels`, `sum_rows`, `sum_few`, `sum_places`, `transpose_tile`, `prefetch_to_write` and `prefetch_to_read`, for kernels.

The compiler does not vectorise these loops by itself.
A pixel of three channels does not fill a vector register, so loops over channels and taps handle one number at a time. With a
register for each pixel, whose fourth number is dropped, they are three times as fast. Sums of rows stay in registers until all rows
are added, which halves their time. A transpose gathers number by number, which takes three times as long as transposing 16 x 16
numbers in registers.
"""

from __future__ import annotations

import functools
from typing import Any

from ndd._compiled.jit import Intrinsic

PIXEL_WIDTH = 4
COLUMNS = 64
TILE = 16


sum_pixels: Any = Intrinsic(lambda: _intrinsic(PIXEL_WIDTH, ()))
"""`sum_pixels(row, begin, step, weights, k, taps, out, o)`:
`out[o : o + 4] = sum over t below taps of weights[k + t] * row[begin + t * step : begin + t * step + 4]`,
in this order, with products rounded before they are added. The arrays are contiguous float32. Bounds are not checked: four
numbers must exist at each place."""

sum_rows: Any = Intrinsic(lambda: _intrinsic(COLUMNS, ("contract",)))
"""The same for 64 numbers; products and sums are rounded together if the processor can."""

sum_few: Any = Intrinsic(lambda: _intrinsic(TILE, ("contract",)))
"""The same as `sum_rows`, bit for bit, for 16 numbers."""

sum_places: Any = Intrinsic(lambda: _intrinsic(COLUMNS, ("contract",), anywhere=True))
"""`sum_places(row, begin, starts, weights, k, taps, out, o)`: the same as `sum_rows` for numbers at any places: those of tap
`t` begin at `row[begin + starts[t]]`, int64."""


def _transpose_tile(x: Any, i: int, j: int, out: Any, k: int, l: int) -> None:
    out[k : k + TILE, l : l + TILE] = x[i : i + TILE, j : j + TILE].T


transpose_tile: Any = Intrinsic(lambda: _tile_intrinsic(), _transpose_tile)
"""`transpose_tile(x, i, j, out, k, l)`: `out[k : k + 16, l : l + 16] = x[i : i + 16, j : j + 16].T`. C-contiguous float32 arrays
`[rows, columns]`; nothing is checked."""


prefetch_to_write: Any = Intrinsic(lambda: _prefetch_intrinsic(to_write=True), lambda x, i: None)
"""`prefetch_to_write(x, i)`: loads the cache line of `x[i]` into the cache, to be written soon. `x` has one axis."""

prefetch_to_read: Any = Intrinsic(lambda: _prefetch_intrinsic(to_write=False), lambda x, i: None)
"""The same, to be read soon."""


def _prefetch_intrinsic(to_write: bool) -> Any:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
    written, soon, data = (ir.Constant(number, value) for value in (int(to_write), 3, 1))

    @intrinsic
    def fetched(typing_context, x, i):
        def generate(context, builder, signature, arguments):
            kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
            prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            place = builder.bitcast(builder.gep(array.data, [arguments[1]]), byte)
            builder.call(prefetch, [place, written, soon, data])
            return context.get_dummy_value()

        return types.void(x, types.int64), generate

    return fetched


def _tile_intrinsic() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    row = ir.VectorType(ir.FloatType(), TILE)
    places = ir.VectorType(ir.IntType(32), TILE)

    @intrinsic
    def turned(typing_context, x, i, j, out, k, l):
        def generate(context, builder, signature, arguments):
            def rows_of(number):
                """The addresses of 16 rows from a place on."""
                array = context.make_array(signature.args[number])(context, builder, arguments[number])
                wide = cgutils.unpack_tuple(builder, array.shape)[1]
                place = builder.add(builder.mul(arguments[number + 1], wide), arguments[number + 2])
                pointers = [builder.gep(array.data, [place])]
                while len(pointers) < TILE:
                    pointers.append(builder.gep(pointers[-1], [wide]))
                return [builder.bitcast(pointer, row.as_pointer()) for pointer in pointers]

            rows = [builder.load(place, align=4) for place in rows_of(0)]
            step = 1
            while step < TILE:  # in each pair of rows, every other run of `step` numbers is exchanged
                left = ir.Constant(places, [n - step + TILE if n & step else n for n in range(TILE)])
                right = ir.Constant(places, [n + TILE if n & step else n + step for n in range(TILE)])
                for n in range(TILE):
                    if not n & step:
                        pair = rows[n], rows[n | step]
                        rows[n], rows[n | step] = (builder.shuffle_vector(*pair, which) for which in (left, right))
                step *= 2
            for value, place in zip(rows, rows_of(3), strict=True):
                builder.store(value, place, align=4)
            return context.get_dummy_value()

        floats, place = types.Array(types.float32, 2, "C"), types.int64
        return types.void(floats, place, place, floats, place, place), generate

    return turned


@functools.cache
def _intrinsic(width: int, flags: tuple[str, ...], anywhere: bool = False) -> Any:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    number, whole = ir.FloatType(), ir.IntType(64)
    vector = ir.VectorType(number, width)
    nothing = ir.Constant(vector, ir.Undefined)
    to_all = ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width)

    @intrinsic
    def summed(typing_context, row, begin, step, weights, k, taps, out, o):
        def generate(context, builder, signature, arguments):
            row, begin, step, weights, k, taps, out, o = arguments
            row, weights, out = (
                context.make_array(kind)(context, builder, array).data
                for kind, array in ((signature.args[0], row), (signature.args[3], weights), (signature.args[6], out))
            )
            row, weights = builder.gep(row, [begin]), builder.gep(weights, [k])
            starts = context.make_array(signature.args[2])(context, builder, step).data if anywhere else None
            total = cgutils.alloca_once(builder, vector)
            builder.store(ir.Constant(vector, [0.0] * width), total)

            def add(tap):
                start = builder.load(builder.gep(starts, [tap])) if anywhere else builder.mul(tap, step)
                source = builder.bitcast(builder.gep(row, [start]), vector.as_pointer())
                weight = builder.load(builder.gep(weights, [tap]))
                weight = builder.insert_element(nothing, weight, ir.Constant(ir.IntType(32), 0))
                product = builder.fmul(
                    builder.shuffle_vector(weight, nothing, to_all), builder.load(source, align=4), flags=flags
                )
                builder.store(builder.fadd(builder.load(total), product, flags=flags), total)

            fours, one = builder.and_(taps, ir.Constant(whole, -4)), ir.Constant(whole, 1)
            with cgutils.for_range_slice(builder, ir.Constant(whole, 0), fours, ir.Constant(whole, 4), whole) as (
                tap,
                _,
            ):
                for t in range(4):
                    add(builder.add(tap, ir.Constant(whole, t)))
            with cgutils.for_range_slice(builder, fours, taps, one, whole) as (tap, _):
                add(tap)
            target = builder.bitcast(builder.gep(out, [o]), vector.as_pointer())
            builder.store(builder.load(total), target, align=4)
            return context.get_dummy_value()

        floats, place = types.Array(types.float32, 1, "C"), types.uint64
        steps = types.Array(types.int64, 1, "C") if anywhere else place
        return types.void(floats, place, steps, floats, place, place, floats, place), generate

    return summed
