"""What `jpeg.py` computes in vector registers: the inverse cosine transform of a block, and pixels of three colours.

Both are libjpeg-turbo's to the last bit (`jidctint`, "islow", with 16-bit sums and saturation as its vector code has them,
and `jdcolor`). In loops they take the compiler seconds, and three times as long to run, for it finds no way to turn a block.
"""

from __future__ import annotations

from typing import Any

from ndd._cpu.jit import Intrinsic

PIXELS = 16  # that `store_pixels` makes
COPIED = 32  # bytes that `copy_plain` reads and writes

_LANES = 16  # two blocks at once
_DC_BITS, _PASS_BITS = 13, 2
# 1.402, -0.344, -0.714 and 1.772 times 65536, with 1, 0, -1 and 2 taken off: then they are of 16 bits, which is quicker.
_RED_CR, _GREEN_CB, _GREEN_CR, _BLUE_CB = 91881 - 65536, -22554, 65536 - 46802, 116130 - 131072


def _load_bits() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def load(typing_context, data, at):
        def generate(context, builder, signature, arguments):
            start = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            place = builder.bitcast(builder.gep(start, [arguments[1]]), ir.IntType(64).as_pointer())
            return builder.bswap(builder.load(place, align=1))

        return types.uint64(types.Array(types.uint8, 1, "C"), types.uint64), generate

    return load


def _copy_plain() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def copy(typing_context, data, at, out, place):
        def generate(context, builder, signature, arguments):
            many, marks = ir.VectorType(ir.IntType(8), COPIED), ir.IntType(COPIED)

            def place_of(array, at):
                start = context.make_array(signature.args[array])(context, builder, arguments[array]).data
                return builder.bitcast(builder.gep(start, [arguments[at]]), many.as_pointer())

            read = builder.load(place_of(0, 1), align=1)
            builder.store(read, place_of(2, 3), align=1)
            found = builder.bitcast(builder.icmp_signed("==", read, ir.Constant(many, [-1] * COPIED)), marks)
            whole = ir.IntType(64)
            found = builder.or_(builder.zext(found, whole), ir.Constant(whole, 1 << COPIED))
            return builder.cttz(found, ir.Constant(ir.IntType(1), 1))

        bytes_, place_ = types.Array(types.uint8, 1, "C"), types.uint64
        return types.int64(bytes_, place_, bytes_, place_), generate

    return copy


class _Lanes:
    """Vectors of `count` whole numbers of `bits` bits, and what is done with them."""

    def __init__(self, builder: Any, bits: int, count: int):
        from llvmlite import ir

        self.ir, self.builder, self.count = ir, builder, count
        self.kind = ir.VectorType(ir.IntType(bits), count)

    def all(self, number: int) -> Any:
        return self.ir.Constant(self.kind, [number] * self.count)

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
    """Row i between those of row i + half, in each of `parts` equal parts of a vector, which is one register of 16 bytes:
    log2(n) times of it exchange rows and columns."""
    count, half = rows[0].type.count, len(rows) // 2
    size = count // parts
    found = []
    for first, second in zip(rows[:half], rows[half:], strict=True):
        for begin in (0, size // 2):
            order = [p * size + begin + k for p in range(parts) for k in range(size // 2)]
            found.append(_shuffled(builder, first, second, [n for k in order for n in (k, count + k)]))
    return found


def _pass(builder: Any, rows: list[Any], bits: int) -> list[Any]:
    """The transform along one axis of eight vectors of 16 bits. 32 bits come out, half of what the last `bits` hold added: to
    be rounded they are only shifted."""
    wide = _Lanes(builder, 32, _LANES)
    add, sub, times = builder.add, builder.sub, wide.times

    def widened(value: Any) -> Any:
        return builder.sext(value, wide.kind)

    def scaled(value: Any) -> Any:
        return builder.shl(widened(value), wide.all(_DC_BITS))

    two, six = widened(rows[2]), widened(rows[6])
    low, high = add(times(two, 4433), times(six, 4433 - 15137)), add(times(two, 4433 + 6270), times(six, 4433))
    total, difference = scaled(add(rows[0], rows[4])), scaled(sub(rows[0], rows[4]))  # of 16 bits
    even = [add(total, high), add(difference, low), sub(difference, low), sub(total, high)]

    z3, z4 = widened(add(rows[7], rows[3])), widened(add(rows[5], rows[1]))  # of 16 bits
    z3, z4 = add(times(z3, 9633 - 16069), times(z4, 9633)), add(times(z3, 9633), times(z4, 9633 - 3196))
    seven, five, three, one = (widened(rows[k]) for k in (7, 5, 3, 1))
    odd = [
        add(z4, add(times(one, 12299 - 7373), times(seven, -7373))),
        add(z3, add(times(three, 25172 - 20995), times(five, -20995))),
        add(z4, add(times(five, 16819 - 20995), times(three, -20995))),
        add(z3, add(times(seven, 2446 - 7373), times(one, -7373))),
    ]
    even = [add(e, wide.all(1 << (bits - 1))) for e in even]
    first = [add(e, o) for e, o in zip(even, odd, strict=True)]
    last = [sub(e, o) for e, o in zip(even, odd, strict=True)]
    return first + last[::-1]


def _transform() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def transform(typing_context, blocks, first, second, steps, row, out, at, stride):
        def generate(context, builder, signature, arguments):
            blocks, first, second, steps, row, out, at, stride = arguments
            blocks, steps, out = (
                context.make_array(signature.args[k])(context, builder, arguments[k]).data for k in (0, 3, 5)
            )
            short, wide = ir.VectorType(ir.IntType(16), 8), _Lanes(builder, 32, _LANES)
            both = list(range(_LANES))

            def read(numbers, begin, r):
                start = builder.bitcast(builder.gep(numbers, [begin]), short.as_pointer())
                return builder.load(builder.gep(start, [ir.Constant(ir.IntType(64), r)]), align=2)

            rows = []
            for r in range(8):
                two = _shuffled(builder, read(blocks, first, r), read(blocks, second, r), both)
                factors = read(steps, row, r)
                rows.append(builder.mul(two, _shuffled(builder, factors, factors, both)))
            rows = _pass(builder, rows, _DC_BITS - _PASS_BITS)
            rows = [builder.ashr(r, wide.all(_DC_BITS - _PASS_BITS)) for r in rows]
            rows = [
                builder.trunc(wide.clamped(r, -0x8000, 0x7FFF), ir.VectorType(ir.IntType(16), _LANES)) for r in rows
            ]
            for _ in range(3):
                rows = _interleaved(builder, rows, 2)
            bits = _DC_BITS + _PASS_BITS + 3
            columns = _pass(builder, rows, bits)
            # 14 bits are left of each: two columns in one register.
            mask = wide.all(0xFFFF)
            pairs = []
            for k in range(4):
                low = builder.and_(builder.ashr(columns[k], wide.all(bits)), mask)
                high = builder.and_(builder.ashr(columns[k + 4], wide.all(bits - 16)), wide.all(-0x10000))
                words = _Lanes(builder, 16, 2 * _LANES)
                pair = builder.bitcast(builder.or_(low, high), words.kind)
                pairs.append(builder.trunc(words.clamped(pair, -128, 127), ir.VectorType(ir.IntType(8), 2 * _LANES)))
            for _ in range(2):
                pairs = _interleaved(builder, pairs, 2)
            for k, pair in enumerate(pairs):
                pair = builder.xor(pair, _Lanes(builder, 8, 2 * _LANES).all(-128))
                for half in range(2):
                    order = [8 * half + n for n in range(8)] + [16 + 8 * half + n for n in range(8)]
                    row = _shuffled(builder, pair, pair, order)
                    place = builder.add(at, builder.mul(stride, ir.Constant(ir.IntType(64), 2 * k + half)))
                    builder.store(row, builder.bitcast(builder.gep(out, [place]), row.type.as_pointer()), align=1)
            return context.get_dummy_value()

        numbers, bytes_ = types.Array(types.int16, 1, "C"), types.Array(types.uint8, 1, "C")
        place = types.uint64
        return types.void(numbers, place, place, numbers, place, bytes_, place, place), generate

    return transform


def _store_pixels() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def store(typing_context, luma, at, blue, red, chroma_at, out, place):
        def generate(context, builder, signature, arguments):
            wide, eight = _Lanes(builder, 32, PIXELS), ir.VectorType(ir.IntType(8), PIXELS)

            def read(k, at, less):
                start = context.make_array(signature.args[k])(context, builder, arguments[k]).data
                where = builder.bitcast(builder.gep(start, [arguments[at]]), eight.as_pointer())
                return builder.sub(builder.zext(builder.load(where, align=1), wide.kind), wide.all(less))

            y, cb, cr = read(0, 1, 0), read(2, 4, 128), read(3, 4, 128)
            add, sub, times = builder.add, builder.sub, wide.times
            high = add(y, cr), sub(y, cr), add(y, add(cb, cb))
            low = times(cr, _RED_CR), add(times(cb, _GREEN_CB), times(cr, _GREEN_CR)), times(cb, _BLUE_CB)
            red, green, blue = (
                builder.trunc(wide.clamped(add(h, wide.rounded(l, 16)), 0, 255), eight)
                for h, l in zip(high, low, strict=True)
            )
            out = context.make_array(signature.args[5])(context, builder, arguments[5]).data
            for part in range(3):  # a third of the bytes each
                numbers = range(part * PIXELS, (part + 1) * PIXELS)
                two = _shuffled(builder, red, green, [n // 3 + PIXELS * (n % 3 == 1) for n in numbers])
                order = [PIXELS + n // 3 if n % 3 == 2 else n % PIXELS for n in numbers]
                where = builder.add(arguments[6], ir.Constant(ir.IntType(64), part * PIXELS))
                where = builder.bitcast(builder.gep(out, [where]), eight.as_pointer())
                builder.store(_shuffled(builder, two, blue, order), where, align=1)
            return context.get_dummy_value()

        bytes_, place = types.Array(types.uint8, 1, "C"), types.uint64
        return types.void(bytes_, place, bytes_, bytes_, place, bytes_, place), generate

    return store


load_bits: Any = Intrinsic(_load_bits)
"""`load_bits(data, at)`: the eight bytes from `at` as an uint64, the first one highest. Nothing is checked, here and below."""

copy_plain: Any = Intrinsic(_copy_plain)
"""`copy_plain(data, at, out, place)`: copies `COPIED` bytes, and says how many of them come before the first 0xFF."""

transform: Any = Intrinsic(_transform)
"""`transform(blocks, first, second, steps, row, out, at, stride)`: the pixels of two blocks, side by side in eight rows of
`out` from `at`. Of each 64 numbers (int16, row by row) from `first` and `second`, times the 64 of `steps` from `row`."""

store_pixels: Any = Intrinsic(_store_pixels)
"""`store_pixels(luma, at, blue, red, chroma_at, out, place)`: the next 16 pixels of YCbCr as RGB, 48 bytes."""
