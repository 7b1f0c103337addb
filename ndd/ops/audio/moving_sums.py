"""Moving sums of squares, where each addition is rounded: 16 intervals side by side, each a chain of additions.

An addition waits 4 cycles for the one before, and a number of the signal takes two: one interval after the other, that is all
the time. Vector registers add up 16 of them at once; what eight loads find in memory one behind the other is turned across
lanes by 24 shuffles.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import Intrinsic, kernel
from ndd._cpu.element_copies import copy_bytes

BLOCK = 512  # steps of an interval of which only the largest sum is kept
_LANES, _GROUP = 16, 8  # intervals side by side; numbers of each that are loaded at once
_CHUNK = 64  # steps for which it is settled where the numbers lie
_BYTES = 4 * _CHUNK


_advance: Any = Intrinsic(lambda: _intrinsic())
"""`_advance(places, steps, squares, new, old, totals, largest)`: for each lane, `steps` times (a multiple of `_GROUP`), its next
number squared replaces row `new` of `squares` `[rows, _LANES]`, after row `old` has left `totals` and the square come in;
`largest` keeps the largest. `places`: where the numbers of each lane lie."""


@kernel
def largest_sums(places, sizes, order, window, interval, firsts, before, largest):
    """For each block of `BLOCK` steps: the sum before it and its largest sum, NaN passed over. The sum at `i` is that of
    `x[k] ** 2` over the last `window` samples, the square before them taken from the sum before, the newest added. At
    multiples of `interval` it is formed anew, oldest first.

    Args:
        places, sizes: the addresses of signals in float32, and how many numbers they have.
        order: the signals, those with a long last interval first.
        firsts: the first block of each signal; an interval begins with a block of its own.
    """
    rows = (window + _GROUP - 1) // _GROUP * _GROUP
    state = empty(2 * _LANES, np.float32)
    squares, spare = empty(rows * _LANES, np.float32), empty((_LANES + 1) * _CHUNK, np.float32)
    lanes, sources = empty((_LANES, 4), np.int64), empty(_LANES, np.int64)
    count, longest = 0, 0
    for last in range(2):  # the whole intervals of all signals, then their last ones
        for k in range(len(order)):
            s = order[k]
            whole = sizes[s] // interval
            for number in range(whole, whole + (sizes[s] % interval > 0)) if last else range(whole):
                place = number * interval
                size = min(interval, sizes[s] - place)
                lanes[count, 0] = places[s] + 4 * place
                lanes[count, 1] = places[s] + 4 * max(0, place - window + 1)
                lanes[count, 2] = lanes[count, 0] + 4 * size
                lanes[count, 3] = firsts[s] + number * ((interval + BLOCK - 1) // BLOCK)
                count, longest = count + 1, max(longest, size)
                if count == _LANES:
                    _side_by_side(lanes, count, longest, window, squares, state, spare, sources, before, largest)
                    count, longest = 0, 0
    if count:
        _side_by_side(lanes, count, longest, window, squares, state, spare, sources, before, largest)


@kernel
def _side_by_side(lanes, count, longest, window, squares, state, spare, sources, before, largest):
    """Intervals `lanes` `[_LANES, 4]`: the addresses of the first number, of the first one of its sum and of the end, and the
    first block."""
    rows = len(squares) // _LANES
    totals, most = state[:_LANES], state[_LANES:]
    squares[:], totals[:], spare[:] = 0, 0, 0
    nothing = np.int64(spare.ctypes.data) + _LANES * _BYTES
    step = -((window + _GROUP - 2) // _GROUP * _GROUP)
    new, old = 0, (rows - window) % rows
    while step < longest:
        size = min(_CHUNK, (-step if step < 0 else longest - step) + _GROUP - 1) // _GROUP * _GROUP
        if step >= 0 and step % BLOCK == 0:
            for lane in range(count):
                if lanes[lane, 0] + 4 * step < lanes[lane, 2]:
                    before[lanes[lane, 3] + step // BLOCK] = totals[lane]
            most[:] = -np.inf
        for lane in range(_LANES):
            sources[lane] = nothing
            if lane < count:
                at, low, high = lanes[lane, 0] + 4 * step, lanes[lane, 1], lanes[lane, 2]
                end = at + 4 * size
                if at >= low and end <= high:
                    sources[lane] = at
                elif end > low and at < high:  # what lies outside is 0, which leaves sums as they are, or smaller
                    spare[lane * _CHUNK : (lane + 1) * _CHUNK] = 0
                    sources[lane] = np.int64(spare.ctypes.data) + lane * _BYTES
                    first = max(at, low)
                    copy_bytes(sources[lane] + first - at, first, min(end, high) - first)
        _advance(sources, size, squares, new, old, totals, most)
        new, old, step = (new + size) % rows, (old + size) % rows, step + size
        if step > 0 and (step % BLOCK == 0 or step >= longest):
            block = (step - 1) // BLOCK
            for lane in range(count):
                if lanes[lane, 0] + 4 * block * BLOCK < lanes[lane, 2]:
                    largest[lanes[lane, 3] + block] = most[lane]


def _intrinsic() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    number, whole, index = ir.FloatType(), ir.IntType(64), ir.IntType(32)
    vector = ir.VectorType(number, _GROUP)

    def turned(builder: Any, rows: list[Any]) -> list[Any]:
        """The columns of `_GROUP` rows: rows that are `half` apart exchange every other run of `half` numbers."""
        half = _GROUP // 2
        while half:
            lower = [_GROUP + k - half if k & half else k for k in range(_GROUP)]
            upper = [_GROUP + k if k & half else k + half for k in range(_GROUP)]
            masks = [ir.Constant(ir.VectorType(index, _GROUP), mask) for mask in (lower, upper)]
            pairs = [(k - (k & half), k | half) for k in range(_GROUP)]
            rows = [builder.shuffle_vector(rows[a], rows[b], masks[k == b]) for k, (a, b) in enumerate(pairs)]
            half //= 2
        return rows

    @intrinsic
    def advanced(typing_context, places, steps, squares, new, old, totals, largest):
        def generate(context, builder, signature, arguments):
            places, steps, squares, new, old, totals, largest = arguments
            table = context.make_array(signature.args[2])(context, builder, squares)
            rows = builder.udiv(table.nitems, ir.Constant(whole, _LANES))
            places, totals, largest = (
                context.make_array(signature.args[k])(context, builder, arguments[k]).data for k in (0, 5, 6)
            )

            def at(base, place):
                return builder.bitcast(builder.gep(base, [place]), vector.as_pointer())

            def next_row(row, step):
                row = builder.add(row, step)
                return builder.select(builder.icmp_unsigned("<", row, rows), row, builder.sub(row, rows))

            places_of = [cgutils.alloca_once_value(builder, row) for row in (new, old)]
            kept = []
            for first in range(0, _LANES, _GROUP):
                for sums in (totals, largest):
                    place = at(sums, ir.Constant(whole, first))
                    kept.append((place, cgutils.alloca_once_value(builder, builder.load(place, align=4))))
            group = ir.Constant(whole, _GROUP)
            with cgutils.for_range_slice(builder, ir.Constant(whole, 0), steps, group, whole) as (step, _):
                new, old = map(builder.load, places_of)
                for part in range(_LANES // _GROUP):
                    first, loaded = part * _GROUP, []
                    for lane in range(first, first + _GROUP):
                        source = builder.load(builder.gep(places, [ir.Constant(whole, lane)]))
                        source = builder.add(source, builder.mul(step, ir.Constant(whole, 4)))
                        found = builder.load(builder.inttoptr(source, vector.as_pointer()), align=4)
                        loaded.append(builder.fmul(found, found))
                    (_, total_at), (_, most_at) = kept[2 * part : 2 * part + 2]
                    total, most = builder.load(total_at), builder.load(most_at)
                    for k, column in enumerate(turned(builder, loaded)):
                        offset = ir.Constant(whole, k)
                        here, gone = builder.add(new, offset), next_row(old, offset)
                        here, gone = (
                            at(
                                table.data,
                                builder.add(builder.mul(row, ir.Constant(whole, _LANES)), ir.Constant(whole, first)),
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
            for place, value in kept:
                builder.store(builder.load(value), place, align=4)
            return context.get_dummy_value()

        floats, place = types.Array(types.float32, 1, "C"), types.int64
        return types.void(types.Array(types.int64, 1, "C"), place, floats, place, place, floats, floats), generate

    return advanced
