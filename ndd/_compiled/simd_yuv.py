"""Video's YUV 4:2:0 in vector registers: a row of RGB pixels from luma and chroma, and chroma between its columns."""

from __future__ import annotations

from typing import Any

from ndd._compiled.jit import Intrinsic

EVEN_U, ODD_U, EVEN_V, ODD_V = range(4)
"""Rows of chroma, interpolated at the pixels of a row."""

# Bytes. The frames of a sequence are more than a cache holds, and waiting for their lines took up to a tenth of the time of
# decoding 720p; a kilobyte less or more does not matter.
_FETCHED_AHEAD = 2048

rgb_of_row: Any = Intrinsic(lambda: _intrinsics()["rgb"])
"""`rgb_of_row(line, near, far, width, factors, out)`: the pixels of a row as `rgb_of_420` computes them, from its luma and two rows
of chroma from `between_inner_columns`. Returns the number of pixels written: none for a short row, otherwise all but an odd
last one. The compiler vectorises a loop too, but it packs 8 numbers at a time and stores byte by byte: 0.7 ns a pixel."""

between_inner_columns: Any = Intrinsic(lambda: _intrinsics()["columns"])
"""`between_inner_columns(row, middle, even, odd)`: a row of chroma at its pixels, without both ends. Returns where it stopped, 1 in
a short row. The compiler does not vectorise a loop that reads three places of one row and writes to two others."""


def _intrinsics() -> dict[str, Any]:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    byte, short, whole, step, number = (*map(ir.IntType, (8, 16, 32, 64)), ir.FloatType())
    zero, one = (ir.Constant(step, k) for k in range(2))

    def vector(kind, values):
        return ir.Constant(ir.VectorType(kind, len(values)), list(values))

    def everywhere(builder, value, n):
        vector_of = builder.insert_element(ir.Constant(ir.VectorType(value.type, n), ir.Undefined), value, zero)
        return builder.shuffle_vector(vector_of, vector_of, vector(whole, [0] * n))

    def place(builder, array, at, kind):
        return builder.bitcast(builder.gep(array.data, [at]), kind.as_pointer())

    def arrays(context, builder, signature, arguments, places):
        return [context.make_array(signature.args[k])(context, builder, arguments[k]) for k in places]

    def blocks(builder, begin, end, n):
        """A loop over blocks of `n` from `begin` to `end`. The last block moves back if it would reach beyond `end`. Also
        returns where it stops: at `begin` if there is no whole block."""
        many = ir.Constant(step, n)
        until = builder.select(builder.icmp_signed(">=", builder.sub(end, begin), many), end, begin)
        return cgutils.for_range_slice(builder, begin, until, many, step), until, builder.sub(end, many)

    @intrinsic
    def columns(typing_context, row, middle, even, odd):
        n = 32
        shorts, numbers = ir.VectorType(short, n), ir.VectorType(number, n)

        def generate(context, builder, signature, arguments):
            row, even, odd = arrays(context, builder, signature, arguments, (0, 2, 3))
            kind = ir.VectorType(ir.IntType(signature.args[0].dtype.bitwidth), n)
            middle = everywhere(builder, builder.trunc(arguments[1], short), n)
            last = builder.sub(builder.extract_value(row.shape, 0), one)
            loop, until, latest = blocks(builder, one, last, n)
            with loop as (index, _):
                at = builder.select(builder.icmp_signed("<", index, latest), index, latest)

                def samples(by):
                    samples_read = builder.load(
                        place(builder, row, builder.add(at, ir.Constant(step, by)), kind), align=1
                    )
                    return samples_read if kind == shorts else builder.zext(samples_read, shorts)

                here = builder.sub(builder.mul(samples(0), vector(short, [3] * n)), middle)
                for out, by in ((even, -1), (odd, 1)):
                    samples_of = builder.sitofp(builder.add(here, samples(by)), numbers)
                    builder.store(samples_of, place(builder, out, at, numbers), align=4)
            return until

        return types.intp(row, types.int32, even, odd), generate

    @intrinsic
    def rgb(typing_context, line, near, far, width, factors, out):
        bits = line.dtype.bitwidth

        def generate(context, builder, signature, arguments):
            features = context.codegen().magic_tuple()[-1].split(",")
            packs = next((k for k in (512, 256) if {512: "+avx512bw", 256: "+avx2"}[k] in features), 0)
            n = 8 if packs == 256 else 16
            line, near, far, factors, out = arrays(context, builder, signature, arguments, (0, 1, 2, 4, 5))
            numbers, wholes = ir.VectorType(number, n), ir.VectorType(whole, n)
            read = ir.VectorType(ir.IntType(2 * bits), n)

            def sum_of(first, factor, value):
                return builder.fadd(first, builder.fmul(factor, value, flags=["contract"]), flags=["contract"])

            def called(name, kind, *values):
                kinds = ir.FunctionType(kind, [value.type for value in values])
                return builder.call(cgutils.get_or_insert_function(builder.module, kinds, name), values)

            def packed(channels):
                """The bytes of three channels, each the left and the right pixels of pairs, in two vectors; and where in them the
                channel of a pixel is."""
                if not packs:
                    return *packed_anywhere(channels), lambda x, c: x + 2 * n * c
                family, ending = ("llvm.x86.avx512.", ".512") if packs == 512 else ("llvm.x86.avx2.", "")
                words, bytes_ = ir.VectorType(short, 2 * n), ir.VectorType(byte, 4 * n)
                red, green, blue = (called(f"{family}packssdw{ending}", words, *sides) for sides in channels)
                first, second = (
                    called(f"{family}packuswb{ending}", bytes_, *two) for two in ((red, green), (blue, blue))
                )
                # These instructions pack each 16 bytes of a register separately.
                return first, second, lambda x, c: 16 * (x // 8) + 4 * (x % 2) + x // 2 % 4 + (0, 8, 4 * n)[c]

            def packed_anywhere(channels):
                bytes_of = []
                for left, right in channels:
                    low, high = vector(whole, [65535] * n), vector(whole, [16] * n)
                    both = builder.or_(builder.and_(left, low), builder.shl(right, high))
                    both = builder.bitcast(both, ir.VectorType(short, 2 * n))
                    for test, bound in (("<", 0), (">", 255)):
                        limit = vector(short, [bound] * (2 * n))
                        both = builder.select(builder.icmp_signed(test, both, limit), limit, both)
                    bytes_of.append(builder.trunc(both, ir.VectorType(byte, 2 * n)))
                red, green, blue = bytes_of
                both = vector(whole, range(4 * n))
                return builder.shuffle_vector(red, green, both), builder.shuffle_vector(blue, blue, both)

            def chroma(kind, at):
                long = builder.mul(ir.Constant(step, kind), builder.extract_value(near.shape, 1))
                here, beside = (
                    builder.load(place(builder, array, builder.add(long, at), numbers), align=4)
                    for array in (near, far)
                )
                return sum_of(beside, vector(number, [3.0] * n), here)

            offset, luma, rv, gu, gv, bu = (
                everywhere(builder, builder.load(builder.gep(factors.data, [ir.Constant(step, k)])), n)
                for k in range(6)
            )
            loop, until, latest = blocks(builder, zero, builder.ashr(arguments[3], one), n)
            with loop as (index, _):
                at = builder.select(builder.icmp_signed("<", index, latest), index, latest)
                # Two pixels of luma in one number, the left one in its lower half.
                pair = builder.load(place(builder, line, builder.mul(at, ir.Constant(step, 2)), read), align=1)
                pair = pair if read == wholes else builder.zext(pair, wholes)
                left, right = builder.and_(pair, vector(whole, [(1 << bits) - 1] * n)), vector(whole, [bits] * n)
                both = left, builder.lshr(pair, right)
                base = [sum_of(offset, luma, builder.sitofp(value, numbers)) for value in both]
                cu, cv = ([chroma(even, at), chroma(even + 1, at)] for even in (EVEN_U, EVEN_V))
                channels = []
                for terms in (((rv, cv),), ((gu, cu), (gv, cv)), ((bu, cu),)):
                    sides = list(base)
                    for side in (0, 1):
                        for factor, chroma_of in terms:
                            sides[side] = sum_of(sides[side], factor, chroma_of[side])
                    channels.append([builder.fptosi(value, wholes) for value in sides])
                first, second, where = packed(channels)
                to = builder.mul(at, ir.Constant(step, 6))
                for begin in range(0, 6 * n, 4 * n):
                    order = [where(k // 3, k % 3) for k in range(begin, min(begin + 4 * n, 6 * n))]
                    samples_of = builder.shuffle_vector(first, second, vector(whole, order))
                    there = place(builder, out, builder.add(to, ir.Constant(step, begin)), samples_of.type)
                    builder.store(samples_of, there, align=1)
                for begin in range(0, 6 * n, 48):
                    ahead = builder.gep(out.data, [builder.add(to, ir.Constant(step, begin + _FETCHED_AHEAD))])
                    how = (ir.Constant(whole, k) for k in (1, 3, 1))  # to be written, to stay, data
                    called("llvm.prefetch.p0i8", ir.VoidType(), ahead, *how)
            return builder.shl(until, one)

        return types.intp(line, near, far, types.intp, factors, out), generate

    return {"rgb": rgb, "columns": columns}
