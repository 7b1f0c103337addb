"""Powers of the frequencies in windows that move over a signal: sixteen windows at once, one in each lane of the vectors.

A window by itself gives a transform little to do side by side: OpenCV takes 0.22 us for 512 numbers, and as much again goes
into laying windows out, squares, and turning windows to columns. Where each of sixteen windows has a lane, all steps are the
same for all lanes, and the columns of a spectrogram come out as they are stored: 0.16 us in
all, in place of 0.41 (both with other work on the machine).

Products are rounded before they are added, so that the stand-in of NumPy gives the same to the last bit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ndd._cpu.jit import Compiled, kernel

LANES = 16
_LINE = 64  # bytes of a line of the cache: vectors that lie in two of them take twice as long
_PAIR = 2 * LANES  # floats of a complex number of each window: first the real parts


class Turns(NamedTuple):
    """What a transform of a length multiplies with."""

    factors: np.ndarray  # float32: of each stage, three complex ones for each first number of a block but the first
    order: np.ndarray  # int64: where each of the `n / 2` results lies
    last: np.ndarray  # float32 [n / 4 + 1, 2]: the complex factors that make real windows of pairs of numbers


def columns_for(rows: int, windows: int) -> np.ndarray:
    """Memory for at least so many columns, for `column_powers`."""
    wide = -(-windows // LANES) * LANES
    room = np.empty(rows * wide + LANES, np.float32)
    shift = -room.ctypes.data % _LINE // 4
    return room[shift : shift + rows * wide].reshape(rows, wide)


def can_transform(length: int, n: int) -> bool:
    """Whether `column_powers` knows windows of `length` numbers that are transformed as `n`: powers of two, no few numbers."""
    return length >= LANES and n & (n - 1) == 0


@functools.lru_cache(maxsize=16)
def turns(n: int) -> Turns:
    """The factors for real windows of `n` numbers, which are transformed as `n / 2` complex ones."""
    half = n // 2
    parts, order, size = [np.zeros(0)], np.zeros(half, np.int64), half
    left, weight = np.arange(half), half
    while size >= 4:
        turn = np.exp(-2j * np.pi / size * np.outer(np.arange(1, size // 4), [1, 2, 3]))
        parts.append(turn.reshape(-1).view(np.float64))
        weight //= 4
        order += left % 4 * weight
        left //= 4
        size //= 4
    if size == 2:
        order += left % 2
    last = np.exp(-2j * np.pi / n * np.arange(half // 2 + 1)).astype(np.complex64)
    return Turns(np.concatenate(parts).astype(np.float32), order, last.view(np.float32).reshape(-1, 2))


class _Step(Compiled):
    """A step of all lanes: `make(ir, builder, pointer)` for kernels, where `pointer(k, i)` is that of number `i` of array `k`."""

    def __init__(self, arrays: int, numbers: int, make: Callable[..., None]):
        self.arrays, self.numbers, self.make = arrays, numbers, make

    def inner(self) -> Any:
        return _intrinsic(self.arrays, self.numbers, self.make)

    def in_python(self) -> Any:
        raise NotImplementedError  # kernels that call it have a stand-in


@functools.cache
def _intrinsic(arrays: int, numbers: int, make: Callable[..., None]) -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    floats = ir.VectorType(ir.FloatType(), LANES)

    @intrinsic
    def step(typing_context, *given):
        def generate(context, builder, signature, arguments):
            kinds = signature.args[0].types
            values = [builder.extract_value(arguments[0], k) for k in range(len(kinds))]
            data = [context.make_array(kinds[k])(context, builder, values[k]).data for k in range(arrays)]
            places = [
                context.cast(builder, v, k, types.intp) for v, k in zip(values[arrays:], kinds[arrays:], strict=True)
            ]
            make(_Lanes(ir, builder, floats, data), *places)
            return context.get_dummy_value()

        return types.void(types.StarArgTuple.from_types(tuple(map(types.unliteral, given)))), generate

    return step


class _Lanes:
    """What steps are made of."""

    def __init__(self, ir: Any, builder: Any, floats: Any, data: list[Any]):
        self.ir, self.builder, self.floats, self.data = ir, builder, floats, data

    def place(self, first: Any, *others: Any) -> Any:
        """The sum of places; a Python number stands for itself."""
        for other in others:
            first = self.builder.add(first, self.number(other))
        return first

    def number(self, value: Any) -> Any:
        return self.ir.Constant(self.ir.IntType(64), value) if isinstance(value, int) else value

    def times(self, place: Any, factor: Any) -> Any:
        return self.builder.mul(place, self.number(factor))

    def load(self, array: int, place: Any) -> Any:
        return self.builder.load(self._vector(array, place), align=4)

    def store(self, value: Any, array: int, place: Any) -> None:
        self.builder.store(value, self._vector(array, place), align=4)

    def _vector(self, array: int, place: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(self.data[array], [place]), self.floats.as_pointer())

    def each(self, array: int, place: Any) -> Any:
        """A number for all lanes."""
        one = self.builder.load(self.builder.gep(self.data[array], [place]))
        nothing = self.ir.Constant(self.floats, self.ir.Undefined)
        zeros = self.ir.Constant(self.ir.VectorType(self.ir.IntType(32), LANES), [0] * LANES)
        first = self.builder.insert_element(nothing, one, self.ir.Constant(self.ir.IntType(32), 0))
        return self.builder.shuffle_vector(first, nothing, zeros)

    def function(self, name: str) -> Any:
        """One of LLVM's own, of a vector."""
        from numba.core import cgutils

        return cgutils.get_or_insert_function(
            self.builder.module, self.ir.FunctionType(self.floats, [self.floats]), name
        )

    def constant(self, value: float) -> Any:
        return self.ir.Constant(self.floats, [value] * LANES)

    def mixed(self, a: Any, b: Any, lanes: list[int]) -> Any:
        return self.builder.shuffle_vector(
            a, b, self.ir.Constant(self.ir.VectorType(self.ir.IntType(32), LANES), lanes)
        )


def _complex(s: _Lanes, array: int, place: Any) -> tuple[Any, Any]:
    return s.load(array, place), s.load(array, s.place(place, LANES))


def _make_four(s: _Lanes, row: Any, span: Any, factor: Any = None) -> None:
    b = s.builder
    places = [s.times(s.place(row, *([span] * k)), _PAIR) for k in range(4)]
    (ar, ai), (br, bi), (cr, ci), (dr, di) = (_complex(s, 0, place) for place in places)
    er, ei, fr, fi = b.fadd(ar, cr), b.fadd(ai, ci), b.fsub(ar, cr), b.fsub(ai, ci)
    gr, gi, hr, hi = b.fadd(br, dr), b.fadd(bi, di), b.fsub(br, dr), b.fsub(bi, di)
    found = [
        (b.fadd(er, gr), b.fadd(ei, gi)),
        (b.fadd(fr, hi), b.fsub(fi, hr)),
        (b.fsub(er, gr), b.fsub(ei, gi)),
        (b.fsub(fr, hi), b.fadd(fi, hr)),
    ]
    for k, (place, (x, y)) in enumerate(zip(places, found, strict=True)):
        if k and factor is not None:
            wr, wi = s.each(1, s.place(factor, 2 * k - 2)), s.each(1, s.place(factor, 2 * k - 1))
            x, y = b.fsub(b.fmul(x, wr), b.fmul(y, wi)), b.fadd(b.fmul(x, wi), b.fmul(y, wr))
        s.store(x, 0, place)
        s.store(y, 0, s.place(place, LANES))


def _make_two(s: _Lanes, row: Any) -> None:
    b, first = s.builder, s.times(row, _PAIR)
    second = s.place(first, _PAIR)
    (ar, ai), (br, bi) = _complex(s, 0, first), _complex(s, 0, second)
    for x, y, place in ((b.fadd(ar, br), b.fadd(ai, bi), first), (b.fsub(ar, br), b.fsub(ai, bi), second)):
        s.store(x, 0, place)
        s.store(y, 0, s.place(place, LANES))


def _make_powers(s: _Lanes, p: Any, q: Any, k: Any, here: Any, there: Any, root: bool) -> None:
    b = s.builder
    (ar, ai), (br, bi) = _complex(s, 0, s.times(p, _PAIR)), _complex(s, 0, s.times(q, _PAIR))
    wr, wi = s.each(1, s.times(k, 2)), s.each(1, s.place(s.times(k, 2), 1))
    er, ei, fr, fi = b.fadd(ar, br), b.fsub(ai, bi), b.fadd(ai, bi), b.fsub(br, ar)
    x, y = b.fsub(b.fmul(fr, wr), b.fmul(fi, wi)), b.fadd(b.fmul(fr, wi), b.fmul(fi, wr))
    for re, im, place in ((b.fadd(er, x), b.fadd(ei, y), here), (b.fsub(er, x), b.fsub(ei, y), there)):
        power = b.fmul(b.fadd(b.fmul(re, re), b.fmul(im, im)), s.constant(0.25))
        if root:
            power = b.call(s.function("llvm.sqrt.v16f32"), [power])
        s.store(power, 2, place)


def _make_laid(s: _Lanes, start: Any, step: Any, j: Any) -> None:
    """Numbers `j` to `j + 15` of sixteen windows, times those of the window: rows become lanes."""
    b, window = s.builder, s.load(1, j)
    place = s.place(start, j)
    rows = []
    for _ in range(LANES):
        rows.append(b.fmul(s.load(0, place), window))
        place = s.place(place, step)
    distance = 1
    while distance < LANES:
        low = [i + (LANES if i & distance else 0) - (i & distance) for i in range(LANES)]
        high = [i + (LANES if i & distance else distance) for i in range(LANES)]
        for r in range(LANES):
            if not r & distance:
                one, other = rows[r], rows[r + distance]
                rows[r], rows[r + distance] = s.mixed(one, other, low), s.mixed(one, other, high)
        distance *= 2
    target = s.times(j, LANES)
    for r in range(LANES):
        s.store(rows[r], 2, s.place(target, r * LANES))


_four: Any = _Step(2, 3, _make_four)
_plain_four: Any = _Step(1, 2, _make_four)
_two: Any = _Step(1, 1, _make_two)
_power: Any = _Step(3, 5, functools.partial(_make_powers, root=False))
_magnitude: Any = _Step(3, 5, functools.partial(_make_powers, root=True))
_laid: Any = _Step(3, 3, _make_laid)


@kernel
def _outside(signal, start, begin, end, reflect, line):
    """`line[begin:end]`, all of which lies outside of the signal, of which `line[0]` is sample `start`."""
    n = signal.size
    period = max(1, 2 * (n - 1))
    for j in range(begin, end):
        i = np.int64(start + j)
        i = -i if i < 0 else i
        i = i if i < n else period - i
        if i < 0:  # farther away than the signal is long: a division takes 10 ns
            i %= period
            i = i if i < n else period - i
        line[j] = signal[i] if reflect else np.float32(0)


@kernel
def column_powers(signal, window, first, step, reflect, root, factors, order, last, out):
    """`out[f, t]`, float32: the power (with `root` the magnitude) of frequency `f` in the samples from `first + t * step`
    times `window`. What lies outside of the signal is its mirror image, or zeros.

    Args:
        window: float32, 16 numbers at least.
        factors, order, last: `turns` of the transform's length.
        out: `[n / 2 + 1, columns]`, a multiple of 16 columns.
    """
    n, half, wide, columns = signal.size, order.size, window.size, out.shape[1]
    line, room = np.empty((LANES - 1) * step + wide, np.float32), np.empty(half * _PAIR + LANES, np.float32)
    shift = -np.int64(room.ctypes.data) % _LINE // 4
    work = room[shift : shift + half * _PAIR]
    for t in range(0, columns, LANES):
        start = first + t * step
        if start >= 0 and start + line.size <= n:
            for j in range(0, wide, LANES):
                _laid(signal, window, work, start, step, min(j, wide - LANES))
        else:
            begin = min(max(-start, 0), line.size)
            end = max(min(n - start, line.size), begin)
            _outside(signal, start, 0, begin, reflect, line)
            line[begin:end] = signal[start + begin : start + end]
            _outside(signal, start, end, line.size, reflect, line)
            for j in range(0, wide, LANES):
                _laid(line, window, work, 0, step, min(j, wide - LANES))
        work[wide * LANES :] = 0
        size, f = half, 0
        while size >= 4:
            span = size // 4
            for block in range(0, half, size):
                _plain_four(work, block, span)
            for j in range(1, span):
                for block in range(j, half, size):
                    _four(work, factors, block, span, f)
                f += 6
            size = span
        if size == 2:
            for block in range(0, half, 2):
                _two(work, block)
        for k in range(half // 2 + 1):
            p, q = order[k], order[(half - k) & (half - 1)]
            if root:
                _magnitude(work, last, out, p, q, k, k * columns + t, (half - k) * columns + t)
            else:
                _power(work, last, out, p, q, k, k * columns + t, (half - k) * columns + t)


@column_powers.meanwhile
def _(signal, window, first, step, reflect, root, factors, order, last, out):
    n, half, wide = signal.size, order.size, window.size
    at = first + step * np.arange(out.shape[1]) + np.arange(wide)[:, None]
    if reflect:
        at %= max(1, 2 * (n - 1))
        at = np.where(at < n, at, 2 * (n - 1) - at)
    z = np.zeros((2 * half, out.shape[1]), np.float32)
    z[:wide] = np.where((at < 0) | (at >= n), np.float32(0), signal[np.clip(at, 0, n - 1)]) * window[:, None]
    re, im = z[::2].copy(), z[1::2].copy()
    size, f = half, 0
    while size >= 4:
        span = size // 4
        turned = np.ones((span, 3), np.complex64)
        turned[1:] = factors[f : f + 6 * (span - 1)].view(np.complex64).reshape(-1, 3)
        x, y = (part.reshape(half // size, 4, span, -1) for part in (re, im))
        e, g, h = x[:, 0] + x[:, 2], x[:, 0] - x[:, 2], x[:, 1] - x[:, 3]
        i, j, k = y[:, 0] + y[:, 2], y[:, 0] - y[:, 2], y[:, 1] - y[:, 3]
        b, c = x[:, 1] + x[:, 3], y[:, 1] + y[:, 3]
        x[:, 0], y[:, 0] = e + b, i + c
        for row, (p, q) in enumerate(((g + k, j - h), (e - b, i - c), (g - k, j + h))):
            wr, wi = (part[:, row, None] for part in (turned.real, turned.imag))
            x[:, row + 1], y[:, row + 1] = p * wr - q * wi, p * wi + q * wr
            x[:, row + 1, 0], y[:, row + 1, 0] = p[:, 0], q[:, 0]
        size, f = span, f + 6 * (span - 1)
    if size == 2:
        for part in (re, im):
            pairs = part.reshape(half // 2, 2, -1)
            pairs[:, 0], pairs[:, 1] = pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]
    here = np.arange(half // 2 + 1)
    p, q = order[here], order[-here % half]
    wr, wi = last[:, :1], last[:, 1:]
    e, i, x, y = re[p] + re[q], im[p] - im[q], im[p] + im[q], re[q] - re[p]
    x, y = x * wr - y * wi, x * wi + y * wr
    for a, b, target in ((e + x, i + y, here), (e - x, i - y, half - here)):
        power = (a * a + b * b) * np.float32(0.25)
        out[target] = np.sqrt(power) if root else power
