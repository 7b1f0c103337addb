"""JPEG in vector registers: the cosine transform of a block and its inverse, RGB to YCbCr and back. For the decoder
(`decoders/jpeg/baseline.py`) and `jpeg_compression_distortion`.

All equal libjpeg-turbo to the last bit (`jfdctint`, `jidctint`, "islow", with the 16-bit sums and saturation of its vector
code, `jccolor` and `jdcolor`). Loops take seconds to compile and run three times as long, because the compiler does not
transpose a block.
"""

from __future__ import annotations

from typing import Any

from ndd._compiled.jit import Intrinsic
from ndd._compiled.simd_rgb import store_rgb
from ndd._compiled.unaligned import element_pointer

PIXELS = 16  # that `store_pixels` writes
COPIED = 32  # bytes that `copy_plain` reads and writes

_COLUMNS = 16  # two blocks at once
FACTORS = 4 * 8 * _COLUMNS  # numbers of a table for `lose`
_QUANTUM, _HALF, _RECIPROCAL, _SCALE = range(4)  # its parts
_DC_BITS, _PASS_BITS = 13, 2
# 1.402, -0.344, -0.714 and 1.772 times 65536, after subtracting 1, 0, -1 and 2: they then fit 16 bits, which is faster.
_RED_CR, _GREEN_CB, _GREEN_CR, _BLUE_CB = 91881 - 65536, -22554, 65536 - 46802, 116130 - 131072
# 0.299, half of 0.587 and 0.114, and those of the chroma planes, times 65536.
_LUMA, _BLUE, _RED = (19595, 38470 // 2, 7471), (-11059, -21709, 32768), (32768, -27439, -5329)


def _copy_plain() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def copy(typing_context, data, at, out, place):
        def generate(context, builder, signature, arguments):
            many, marks = ir.VectorType(ir.IntType(8), COPIED), ir.IntType(COPIED)

            def place_of(array, at):
                start = element_pointer(
                    context, builder, signature.args[array], arguments[array], arguments[at], COPIED
                )
                return builder.bitcast(start, many.as_pointer())

            read = builder.load(place_of(0, 1), align=1)
            builder.store(read, place_of(2, 3), align=1)
            markers = builder.bitcast(builder.icmp_signed("==", read, ir.Constant(many, [-1] * COPIED)), marks)
            whole = ir.IntType(64)
            markers = builder.or_(builder.zext(markers, whole), ir.Constant(whole, 1 << COPIED))
            return builder.cttz(markers, ir.Constant(ir.IntType(1), 1))

        bytes_, place_ = types.Array(types.uint8, 1, "C"), types.uint64
        return types.int64(bytes_, place_, bytes_, place_), generate

    return copy


class _Vectors:
    """Operations on vectors of `count` integers of `bits` bits."""

    def __init__(self, builder: Any, bits: int, count: int):
        from llvmlite import ir

        self.ir, self.builder, self.count = ir, builder, count
        self.kind = ir.VectorType(ir.IntType(bits), count)

    def all(self, number: int) -> Any:
        return self.ir.Constant(self.kind, [number] * self.count)

    def of_bytes(self, place: Any) -> Any:
        """The `count` bytes from a pointer on."""
        kind = self.ir.VectorType(self.ir.IntType(8), self.count)
        pointer = self.builder.bitcast(place, kind.as_pointer())
        return self.builder.zext(self.builder.load(pointer, align=1), self.kind)

    def clamped(self, value: Any, low: int, high: int) -> Any:
        for limit, sign in ((self.all(low), ">"), (self.all(high), "<")):
            value = self.builder.select(self.builder.icmp_signed(sign, value, limit), value, limit)
        return value

    def times(self, value: Any, factor: int) -> Any:
        return self.builder.mul(value, self.all(factor))

    def rounded(self, value: Any, bits: int) -> Any:
        return self.builder.ashr(self.builder.add(value, self.all(1 << (bits - 1))), self.all(bits))


def _shuffled(builder: Any, first: Any, second: Any, places: list[int]) -> Any:
    from llvmlite import ir

    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places))


def _interleaved(builder: Any, rows: list[Any], parts: int) -> list[Any]:
    """The numbers of row i and of row i + half interleaved, in each of `parts` equal parts of a vector, each of which is one
    register of 16 bytes. log2(n) calls transpose n rows."""
    count, half = rows[0].type.count, len(rows) // 2
    size = count // parts
    columns = []
    for first, second in zip(rows[:half], rows[half:], strict=True):
        for begin in (0, size // 2):
            order = [p * size + begin + k for p in range(parts) for k in range(size // 2)]
            columns.append(_shuffled(builder, first, second, [n for k in order for n in (k, count + k)]))
    return columns


def _odd_half(builder: Any, wide: _Vectors, seven: Any, five: Any, three: Any, one: Any) -> list[Any]:
    """The rotations that the odd halves of the transform and of its inverse share, in 32 bits, for frequencies 1, 3, 5, 7."""
    add, times = builder.add, wide.times
    z3, z4 = (builder.sext(add(*pair), wide.kind) for pair in ((seven, three), (five, one)))  # of 16 bits
    z3, z4 = add(times(z3, 9633 - 16069), times(z4, 9633)), add(times(z3, 9633), times(z4, 9633 - 3196))
    seven, five, three, one = (builder.sext(value, wide.kind) for value in (seven, five, three, one))
    return [
        add(z4, add(times(one, 12299 - 7373), times(seven, -7373))),
        add(z3, add(times(three, 25172 - 20995), times(five, -20995))),
        add(z4, add(times(five, 16819 - 20995), times(three, -20995))),
        add(z3, add(times(seven, 2446 - 7373), times(one, -7373))),
    ]


def _forward_pass(builder: Any, rows: list[Any], second: bool) -> list[Any]:
    """Eight samples to eight frequencies, both vectors of 16 bits. The first pass scales by four and the second undoes it, so that
    the result has eight times the scale of a sample. The clamps never change a value: without them, the compiler multiplies by
    other numbers that have the same low bits but do not fit into 16 bits."""
    wide = _Vectors(builder, 32, _COLUMNS)
    add, sub, times, short = builder.add, builder.sub, wide.times, rows[0].type
    sums = [add(rows[k], rows[7 - k]) for k in range(4)]
    p, q, r, s = add(sums[0], sums[3]), add(sums[1], sums[2]), sub(sums[0], sums[3]), sub(sums[1], sums[2])
    bits, same = _DC_BITS + (_PASS_BITS if second else -_PASS_BITS), _Vectors(builder, 16, _COLUMNS)
    coefficients = {0: add(p, q), 4: sub(p, q)}
    for k, value in coefficients.items():
        coefficients[k] = same.rounded(value, _PASS_BITS) if second else builder.shl(value, same.all(_PASS_BITS))
    r, s = builder.sext(r, wide.kind), builder.sext(s, wide.kind)
    turned = {2: add(times(r, 4433 + 6270), times(s, 4433)), 6: add(times(r, 4433), times(s, 4433 - 15137))}
    odd = _odd_half(builder, wide, *(sub(rows[k], rows[7 - k]) for k in (3, 2, 1, 0)))
    turned |= dict(zip((1, 3, 5, 7), odd, strict=True))
    for k, value in turned.items():
        coefficients[k] = builder.trunc(wide.clamped(wide.rounded(value, bits), -0x8000, 0x7FFF), short)
    return [coefficients[k] for k in range(8)]


def _pass(builder: Any, rows: list[Any], bits: int) -> list[Any]:
    """The inverse transform along one axis of eight vectors of 16 bits. Returns vectors of 32 bits, with the rounding of the last
    `bits` bits already added: a shift is all that is left."""
    wide = _Vectors(builder, 32, _COLUMNS)
    add, sub, times = builder.add, builder.sub, wide.times

    def widened(value: Any) -> Any:
        return builder.sext(value, wide.kind)

    def scaled(value: Any) -> Any:
        return builder.shl(widened(value), wide.all(_DC_BITS))

    two, six = widened(rows[2]), widened(rows[6])
    low, high = add(times(two, 4433), times(six, 4433 - 15137)), add(times(two, 4433 + 6270), times(six, 4433))
    total, difference = scaled(add(rows[0], rows[4])), scaled(sub(rows[0], rows[4]))  # of 16 bits
    even = [add(total, high), add(difference, low), sub(difference, low), sub(total, high)]

    odd = _odd_half(builder, wide, *(rows[k] for k in (7, 5, 3, 1)))
    even = [add(e, wide.all(1 << (bits - 1))) for e in even]
    first = [add(e, o) for e, o in zip(even, odd, strict=True)]
    last = [sub(e, o) for e, o in zip(even, odd, strict=True)]
    return first + last[::-1]


def _store_blocks(builder: Any, rows: list[Any], out: Any, at: Any, stride: Any) -> None:
    """The pixels of two blocks of frequencies, side by side in eight rows of `out` from `at`."""
    from llvmlite import ir

    wide = _Vectors(builder, 32, _COLUMNS)
    rows = _pass(builder, rows, _DC_BITS - _PASS_BITS)
    rows = [builder.ashr(r, wide.all(_DC_BITS - _PASS_BITS)) for r in rows]
    rows = [builder.trunc(wide.clamped(r, -0x8000, 0x7FFF), ir.VectorType(ir.IntType(16), _COLUMNS)) for r in rows]
    for _ in range(3):
        rows = _interleaved(builder, rows, 2)
    bits = _DC_BITS + _PASS_BITS + 3
    columns = _pass(builder, rows, bits)
    # Each number has 14 bits left: two columns share one register.
    mask = wide.all(0xFFFF)
    pairs = []
    for k in range(4):
        low = builder.and_(builder.ashr(columns[k], wide.all(bits)), mask)
        high = builder.and_(builder.ashr(columns[k + 4], wide.all(bits - 16)), wide.all(-0x10000))
        words = _Vectors(builder, 16, 2 * _COLUMNS)
        pair = builder.bitcast(builder.or_(low, high), words.kind)
        pairs.append(builder.trunc(words.clamped(pair, -128, 127), ir.VectorType(ir.IntType(8), 2 * _COLUMNS)))
    for _ in range(2):
        pairs = _interleaved(builder, pairs, 2)
    for k, pair in enumerate(pairs):
        pair = builder.xor(pair, _Vectors(builder, 8, 2 * _COLUMNS).all(-128))
        for half in range(2):
            order = [8 * half + n for n in range(8)] + [16 + 8 * half + n for n in range(8)]
            row = _shuffled(builder, pair, pair, order)
            place = builder.add(at, builder.mul(stride, ir.Constant(ir.IntType(64), 2 * k + half)))
            builder.store(row, builder.bitcast(builder.gep(out, [place]), row.type.as_pointer()), align=1)


def _transform() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def transform(typing_context, blocks, first, second, steps, row, out, at, stride):
        def generate(context, builder, signature, arguments):
            short = ir.VectorType(ir.IntType(16), 8)
            both = list(range(_COLUMNS))

            def element(array, at, count):
                return element_pointer(context, builder, signature.args[array], arguments[array], at, count)

            first, second, factors = (
                builder.bitcast(element(array, arguments[at], 64), short.as_pointer())
                for array, at in ((0, 1), (0, 2), (3, 4))
            )
            rows = []
            for r in range(8):
                left, right, row = (
                    builder.load(builder.gep(start, [ir.Constant(ir.IntType(64), r)]), align=2)
                    for start in (first, second, factors)
                )
                rows.append(builder.mul(_shuffled(builder, left, right, both), _shuffled(builder, row, row, both)))
            at, stride = arguments[6:]
            element(5, builder.add(at, builder.mul(stride, stride.type(7))), _COLUMNS)
            out = context.make_array(signature.args[5])(context, builder, arguments[5]).data
            _store_blocks(builder, rows, out, at, stride)
            return context.get_dummy_value()

        numbers, bytes_ = types.Array(types.int16, 1, "C"), types.Array(types.uint8, 1, "C")
        place = types.uint64
        return types.void(numbers, place, place, numbers, place, bytes_, place, place), generate

    return transform


def _store_colours(builder: Any, luma: Any, blue: Any, red: Any, out: Any) -> None:
    """Pixels of YCbCr (16 bits, chroma less 128) to `out`, a pointer to bytes."""
    from llvmlite import ir

    eight, short, wide = (
        ir.VectorType(ir.IntType(8), PIXELS),
        _Vectors(builder, 16, PIXELS),
        _Vectors(builder, 32, PIXELS),
    )
    add, sub, times = builder.add, builder.sub, wide.times

    def upper(value: Any, factor: int) -> Any:
        product = times(builder.sext(value, wide.kind), factor)
        return builder.trunc(builder.ashr(product, wide.all(16)), short.kind)

    def share(value: Any, factor: int) -> Any:
        """`value` times `factor / 65536`, rounded: the upper 16 bits of twice the product, halved."""
        return short.rounded(upper(builder.shl(value, short.all(1)), factor), 1)

    # The rounded sum of two products: the carry of the lower 16 bits, and their highest bit.
    low = short.times(blue, _GREEN_CB)
    total = add(low, short.times(red, _GREEN_CR))
    carried = builder.zext(builder.icmp_unsigned("<", total, low), short.kind)
    green = add(upper(blue, _GREEN_CB), upper(red, _GREEN_CR))
    green = add(green, add(carried, builder.lshr(total, short.all(15))))
    colours = [
        add(add(luma, red), share(red, _RED_CR)),
        add(sub(luma, red), green),
        add(add(luma, add(blue, blue)), share(blue, _BLUE_CB)),
    ]
    store_rgb(builder, [builder.trunc(short.clamped(value, 0, 255), eight) for value in colours], out)


def _store_pixels() -> Any:
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def store(typing_context, luma, at, blue, red, chroma_at, out, place):
        def generate(context, builder, signature, arguments):
            short = _Vectors(builder, 16, PIXELS)

            def element(k, at, count):
                return element_pointer(context, builder, signature.args[k], arguments[k], arguments[at], count)

            def read(k, at, less):
                return builder.sub(short.of_bytes(element(k, at, PIXELS)), short.all(less))

            planes = read(0, 1, 0), read(2, 4, 128), read(3, 4, 128)
            _store_colours(builder, *planes, element(5, 6, 3 * PIXELS))
            return context.get_dummy_value()

        bytes_, place = types.Array(types.uint8, 1, "C"), types.uint64
        return types.void(bytes_, place, bytes_, bytes_, place, bytes_, place), generate

    return store


def _store_inks() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def store(typing_context, cyan, magenta, yellow, black, at, out, place):
        def generate(context, builder, signature, arguments):
            short, eight = _Vectors(builder, 16, PIXELS), ir.VectorType(ir.IntType(8), PIXELS)

            def element(k, at, count):
                return element_pointer(context, builder, signature.args[k], arguments[k], arguments[at], count)

            def read(k):
                return short.of_bytes(element(k, 4, PIXELS))

            def share(value):
                more = builder.add(builder.mul(value, black), short.all(1))
                # The same as a division of the product by 255; no sum has more than 16 bits.
                more = builder.add(more, builder.lshr(more, short.all(8)))
                return builder.trunc(builder.lshr(more, short.all(8)), eight)

            black = read(3)
            store_rgb(builder, [share(read(k)) for k in range(3)], element(5, 6, 3 * PIXELS))
            return context.get_dummy_value()

        bytes_, place = types.Array(types.uint8, 1, "C"), types.uint64
        return types.void(bytes_, bytes_, bytes_, bytes_, place, bytes_, place), generate

    return store


def _store_smoothed() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def store(typing_context, planes, at, near, far, to_red, out, place):
        def generate(context, builder, signature, arguments):
            planes, at, near, far, to_red, out, place = arguments
            planes, out = (
                context.make_array(signature.args[k])(context, builder, a).data for k, a in ((0, planes), (5, out))
            )
            eight, whole = ir.VectorType(ir.IntType(8), PIXELS), ir.IntType(64)
            short = _Vectors(builder, 16, PIXELS)
            add = builder.add

            few = ir.VectorType(ir.IntType(8), PIXELS // 2)

            def read(place, kind):
                where = builder.bitcast(builder.gep(planes, [place]), kind.as_pointer())
                return builder.load(where, align=1)

            def chroma(place):
                """Eight samples of blue, then of red."""
                two = _shuffled(builder, read(place, few), read(add(place, to_red), few), list(range(PIXELS)))
                return builder.zext(two, short.kind)

            before, middle, after = (
                add(short.times(chroma(add(near, step)), 3), chroma(add(far, step)))
                for step in (ir.Constant(whole, n) for n in (-1, 0, 1))
            )
            half = PIXELS // 2
            three = short.times(middle, 3)
            # Chroma is stored with an offset of 128.
            even, odd = (
                builder.sub(builder.ashr(add(add(three, side), short.all(bias)), short.all(4)), short.all(128))
                for side, bias in ((before, 8), (after, 7))
            )
            blue, red = (
                _shuffled(builder, even, odd, [c * half + k + PIXELS * n for k in range(half) for n in range(2)])
                for c in range(2)
            )
            luma = builder.zext(read(at, eight), short.kind)
            _store_colours(builder, luma, blue, red, builder.gep(out, [place]))
            return context.get_dummy_value()

        bytes_, place = types.Array(types.uint8, 1, "C"), types.uint64
        return types.void(bytes_, place, place, place, place, bytes_, place), generate

    return store


def _lose() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def lose(typing_context, plane, at, stride, factors, table):
        def generate(context, builder, signature, arguments):
            plane, at, stride, factors, table = arguments
            plane, factors = (
                context.make_array(signature.args[k])(context, builder, a).data for k, a in ((0, plane), (3, factors))
            )
            short = _Vectors(builder, 16, _COLUMNS)
            whole, wide = ir.IntType(64), ir.VectorType(ir.IntType(32), _COLUMNS)

            def read(k, part):
                place = builder.add(table, ir.Constant(whole, (part * 8 + k) * _COLUMNS))
                return builder.load(builder.bitcast(builder.gep(factors, [place]), short.kind.as_pointer()), align=2)

            def high_half(a, b, extend):
                product = builder.mul(extend(a, wide), extend(b, wide))
                return builder.trunc(builder.ashr(product, ir.Constant(wide, [16] * _COLUMNS)), short.kind)

            rows = []
            for k in range(8):
                place = builder.gep(plane, [builder.add(at, builder.mul(stride, ir.Constant(whole, k)))])
                rows.append(builder.sub(short.of_bytes(place), short.all(128)))
            for second in (False, True):
                for _ in range(3):
                    rows = _interleaved(builder, rows, 2)
                rows = _forward_pass(builder, rows, second)
            for k, row in enumerate(rows):
                negative, minus = builder.icmp_signed("<", row, short.all(0)), builder.neg(row)
                steps = builder.add(builder.select(negative, minus, row), read(k, _HALF))
                steps = high_half(steps, read(k, _RECIPROCAL), builder.zext)
                steps = high_half(steps, read(k, _SCALE), builder.sext)
                value = builder.mul(steps, read(k, _QUANTUM))
                rows[k] = builder.select(negative, builder.neg(value), value)
            _store_blocks(builder, rows, plane, at, stride)
            return context.get_dummy_value()

        bytes_, place = types.Array(types.uint8, 1, "C"), types.uint64
        return types.void(bytes_, place, place, types.Array(types.uint16, 1, "C"), place), generate

    return lose


def _load_pixels() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def load(typing_context, rgb, above, below, planes, at, stride, blue_at, red_at):
        def generate(context, builder, signature, arguments):
            wide, eight = _Vectors(builder, 32, PIXELS), ir.VectorType(ir.IntType(8), PIXELS)
            add, times, whole = builder.add, wide.times, ir.IntType(64)
            rgb, planes = (context.make_array(signature.args[k])(context, builder, arguments[k]).data for k in (0, 3))

            def colours(place):
                parts = []
                for part in range(3):
                    where = builder.gep(rgb, [add(place, ir.Constant(whole, part * PIXELS))])
                    parts.append(builder.load(builder.bitcast(where, eight.as_pointer()), align=1))
                for colour in range(3):
                    places = [3 * n + colour for n in range(PIXELS)]
                    two = _shuffled(builder, parts[0], parts[1], [n if n < 2 * PIXELS else 0 for n in places])
                    order = [k if n < 2 * PIXELS else n - PIXELS for k, n in enumerate(places)]
                    yield builder.zext(_shuffled(builder, two, parts[2], order), wide.kind)

            def weighted(r, g, b, factors, shift, bias):
                total = add(add(times(r, factors[0]), times(g, factors[1])), add(times(b, factors[2]), wide.all(bias)))
                return builder.ashr(total, wide.all(shift))

            sums = [wide.all(0), wide.all(0)]
            for k, place in enumerate(arguments[1:3]):
                r, g, b = colours(place)
                y = weighted(r, add(g, g), b, _LUMA, 16, 32768)
                where = builder.gep(planes, [add(arguments[4], builder.mul(arguments[5], ir.Constant(whole, k)))])
                builder.store(builder.trunc(y, eight), builder.bitcast(where, eight.as_pointer()), align=1)
                middle = (128 << 16) + 32767
                for c, factors in enumerate((_BLUE, _RED)):
                    sums[c] = add(sums[c], weighted(r, g, b, factors, 16, middle))
            half, few = range(0, PIXELS, 2), _Vectors(builder, 32, PIXELS // 2)
            bias = ir.Constant(few.kind, [1, 2] * (PIXELS // 4))
            for total, place in zip(sums, arguments[6:], strict=True):
                pair = add(*(_shuffled(builder, total, total, [n + k for n in half]) for k in range(2)))
                mean = builder.lshr(add(pair, bias), few.all(2))
                mean = builder.trunc(mean, ir.VectorType(ir.IntType(8), PIXELS // 2))
                where = builder.bitcast(builder.gep(planes, [place]), mean.type.as_pointer())
                builder.store(mean, where, align=1)
            return context.get_dummy_value()

        bytes_, place = types.Array(types.uint8, 1, "C"), types.uint64
        return types.void(bytes_, place, place, bytes_, place, place, place, place), generate

    return load


copy_plain: Any = Intrinsic(_copy_plain)
"""`copy_plain(data, at, out, place)`: copies `COPIED` bytes and returns how many of them come before the first 0xFF. Bounds are
checked, here and below, only with NUMBA_BOUNDSCHECK=1."""

transform: Any = Intrinsic(_transform)
"""`transform(blocks, first, second, steps, row, out, at, stride)`: the pixels of two blocks, side by side in eight rows of
`out` from `at` on. The blocks are 64 int16 numbers each, row by row, from `first` and `second` on, times the 64 of `steps` from
`row` on."""

store_pixels: Any = Intrinsic(_store_pixels)
"""`store_pixels(luma, at, blue, red, chroma_at, out, place)`: the next 16 pixels of YCbCr as RGB, 48 bytes."""

store_inks: Any = Intrinsic(_store_inks)
"""`store_inks(cyan, magenta, yellow, black, at, out, place)`: the next 16 pixels as RGB, 48 bytes: each ink times black, over 255,
rounded down. The inks are stored inverted, 255 for none."""

store_smoothed: Any = Intrinsic(_store_smoothed)
"""`store_smoothed(planes, at, near, far, to_red, out, place)`: the same for chroma of half the width and height, with a quarter of
each neighbour mixed in. Two rows of blue chroma start at `near` and `far`, those of red `to_red` numbers later. It reads one sample
before and seven after the eight that belong to the pixels."""

lose: Any = Intrinsic(_lose)
"""`lose(plane, at, stride, factors, table)`: quantises the frequencies of two blocks, side by side in eight rows of `plane` (u8)
from `at` on, in place. `factors` (u16) has `FACTORS` numbers from `table` on; for each of the eight rows of the blocks, twice the
eight numbers of four tables: the quanta; 4 times the quanta; and two factors that divide by 8 times the quanta, each followed by a
shift of 16 bits."""

load_pixels: Any = Intrinsic(_load_pixels)
"""`load_pixels(rgb, above, below, planes, at, stride, blue_at, red_at)`: 16 RGB pixels of two rows as YCbCr, with chroma of half
the width and height."""
