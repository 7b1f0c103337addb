"""Poisson variates for kernels. `poisson.cuh` has the same for GPU kernels.

Elements with the same residue modulo 4 begin at the same word of their blocks (see `philox.py`). They advance from block to
block together, with two uniform numbers each, so that the compiler can fill vector registers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ndd._compiled.intrinsics import empty, zeros
from ndd._compiled.jit import kernel
from ndd._compiled.libm import c_lgamma, c_logs
from ndd._cpu.draws import uniform_at
from ndd._cpu.philox import CHUNK, STRIDE, philox_block

SMALL = 12.0
"""Below this mean uniform numbers are multiplied until the product is below exp(-mean)."""

CONSTANTS = 13
"""Numbers that depend only on the mean: a row of `constants` for each mean that recurs often."""

LOG_FACTORIALS = np.array([math.lgamma(k + 1.0) for k in range(1024)])

_BLOCKS = 4  # that a large mean reads at a time
_MOST = 2147483646.0
_PER_RESIDUE = CHUNK // 4
_U = np.uint64


@kernel
def prepare(c, mean):
    """Writes the numbers that depend only on the mean into a row; c[0] becomes 1."""
    c[0] = 1.0
    if not mean >= SMALL:
        c[1] = math.exp(-mean)
        return
    m = np.floor(mean)
    far = math.sqrt(2.0 * m * math.log(32.0 * m / (math.pi / 4)))
    d = np.floor(max(6.0, min(m, far)) + 0.5)
    width = 2.0 * m + d
    root, slope = math.sqrt(m), 1.0 / width
    left = root * math.sqrt(math.pi / 2)
    right = left + math.sqrt(math.pi / 4 * width) * math.exp(slope)
    one = right + 2.0 + math.exp(1.0 / 78.0)
    c[1], c[2], c[3], c[4], c[5], c[6] = m, d, width, root, slope, left
    c[7], c[8], c[9] = right, one, one + 2.0 * width * math.exp(-d * slope * (1.0 + d / 2.0)) / d
    c[10], c[11], c[12] = math.log(mean), c_lgamma(m + 1.0), math.sqrt(width / 2.0)


@kernel
def poisson_row(out, mean, stream, first, slots, constants, log_factorials):
    """Poisson counts as float32 for elements from `first` on (at most CHUNK); two words for each uniform number.

    `slots` is the row of `constants` for each element's mean; -1, the last row, is for means without a row of their own.
    """
    n = mean.size
    small, large = empty(_PER_RESIDUE, np.uint64), empty(_PER_RESIDUE, np.uint64)
    limit = empty(_PER_RESIDUE, np.float64)
    for residue in range(min(4, n)):
        few = many = 0
        for e in range(residue, n, 4):
            if not mean[e] >= SMALL:
                slot = slots[e]
                if slot < 0 or constants[slot, 0] == 0.0:
                    prepare(constants[slot], mean[e])
                small[few], limit[few] = _U(e >> 2), constants[slot, 1]
                few += 1
            elif not mean[e] < _MOST:
                out[e] = mean[e]
            else:
                large[many] = _U(e >> 2)
                many += 1
        position = stream[3] + _U(STRIDE) * _U(first + residue)
        base = stream[1] + (position >> _U(2))
        place = (stream[0], base, stream[2] + _U(base < stream[1]), position & _U(3))
        row = out[residue:]
        if few:
            _small(row, small[:few], limit[:few], place)
        if many:
            _large(row, large[:many], mean[residue:], place, slots[residue:], constants, log_factorials)


@kernel
def _blocks(a, b, c, d, index, key, base, sequence):
    """The words of the blocks at `base + STRIDE * index`."""
    for k in range(index.size):
        counter = base + _U(STRIDE) * index[k]
        a[k], b[k], c[k], d[k] = philox_block(key, counter, sequence + _U(counter < base))


@kernel
def _small(out, index, limit, place):
    """Counts for means below 12 and elements of one residue: the number of products of the first numbers above the limit."""
    n = index.size
    a, b, c, d = empty(n, np.uint32), empty(n, np.uint32), empty(n, np.uint32), empty(n, np.uint32)
    carry, product, count = empty(n, np.uint32), np.ones(n, np.float64), zeros(n, np.float64)
    key, base, sequence, phase = place
    odd, started, left, block = phase & _U(1), phase == _U(0), n, base
    while left > 0:
        _blocks(a[:left], b[:left], c[:left], d[:left], index[:left], key, block, sequence + _U(block < base))
        block += _U(1)
        if not started:  # the element begins within this block
            if phase == _U(1):
                _follow(product[:left], count[:left], limit, b, c)
            elif phase == _U(2):
                _follow(product[:left], count[:left], limit, c, d)
            started = True
        elif odd:
            _follow(product[:left], count[:left], limit, carry, a)
            _follow(product[:left], count[:left], limit, b, c)
        else:
            _follow(product[:left], count[:left], limit, a, b)
            _follow(product[:left], count[:left], limit, c, d)
        going = 0
        for k in range(left):
            going += product[k] > limit[k]
            carry[k] = d[k]
        if 4 * going <= 3 * left:
            left = _gather(out, index, limit, product, count, carry, left)


@kernel
def _follow(product, count, limit, low, high):
    """Multiplies one more number: the count increases if the product stays above the limit."""
    for k in range(product.size):
        product[k] *= np.float64((_U(high[k]) << _U(32)) | _U(low[k])) * 2.0**-64
        count[k] += 1.0 if product[k] > limit[k] else 0.0


@kernel
def _gather(out, index, limit, product, count, carry, left):
    """Writes the counts, and moves unfinished ones to the front. Returns the number of these."""
    kept = 0
    for k in range(left):
        e, bound, running, drawn, word = index[k], limit[k], product[k], count[k], carry[k]
        out[np.int64(e) << 2] = drawn
        index[kept], limit[kept], product[kept], count[kept], carry[kept] = e, bound, running, drawn, word
        kept += running > bound
    return kept


@kernel
def _large_numbers(numbers, index, place):
    """numbers[i, k] = uniform number i of the `index[k]`-th element of one residue."""
    n = index.size
    words = empty((4 * _BLOCKS, n), np.uint32)
    for j in range(_BLOCKS):
        block = place[1] + _U(j)
        _blocks(
            words[4 * j], words[4 * j + 1], words[4 * j + 2], words[4 * j + 3],
            index, place[0], block, place[2] + _U(block < place[1]),
        )  # fmt: skip
    for i in range(numbers.shape[0]):
        low = words[np.int64(place[3]) + 2 * i]
        high = words[np.int64(place[3]) + 2 * i + 1]
        for k in range(n):
            numbers[i, k] = np.float64((_U(high[k]) << _U(32)) | _U(low[k])) * 2.0**-64


@kernel
def _large(out, index, means, place, slots, constants, log_factorials):
    """Counts for the means of at least 12: Devroye's rejection from normal, constant and exponential pieces (1986).

    The code for a uniform number is repeated three times: a function would count references to the arrays for each number.
    """
    draws, last = 2 * _BLOCKS - ((np.int64(place[3]) + 1) >> 1), 1.0 - 2.0**-53
    numbers = empty((draws, index.size), np.float64)
    _large_numbers(numbers, index, place)
    pair = empty(2, np.float64)
    for column in range(index.size):
        element = np.int64(index[column])
        row = slots[element << 2]
        if row < 0 or constants[row, 0] == 0.0:
            prepare(constants[row], means[element << 2])
        m, d, width, root = constants[row, 1], constants[row, 2], constants[row, 3], constants[row, 4]
        slope, left, right, one = constants[row, 5], constants[row, 6], constants[row, 7], constants[row, 8]
        i, kept, spare = 0, False, 0.0
        while True:
            for j in range(2):
                pair[j] = min(numbers[i, column] if i < draws else uniform_at(place, element << 2, i, True), last)
                i += 1
            u, e = pair[0] * constants[row, 9], -math.log(1.0 - pair[1])
            weight = 0.0
            if u <= right:
                z, kept = spare, not kept
                if kept:
                    square = 2.0
                    while square > 1.0 or square == 0.0:
                        for j in range(2):
                            pair[j] = min(
                                numbers[i, column] if i < draws else uniform_at(place, element << 2, i, True), last
                            )
                            pair[j] = 2.0 * pair[j] - 1.0
                            i += 1
                        square = pair[0] * pair[0] + pair[1] * pair[1]
                    scale = math.sqrt(-2.0 * math.log(square) / square)
                    z, spare = pair[1] * scale, pair[0] * scale
                if u <= left:
                    x = np.floor(-abs(z) * root - 1.0)
                    weight = -z * z / 2.0
                    if x < -m:
                        continue
                else:
                    y = 1.0 + abs(z) * constants[row, 12]
                    x = np.ceil(y)
                    weight = y * (2.0 - y) * slope
                    if x > d:
                        continue
            elif u <= right + 1.0:
                x = -1.0
            elif u <= right + 2.0:
                x = 0.0
            elif u <= one:
                x = 1.0
                weight = 1.0 / 78.0
            else:
                number = min(numbers[i, column] if i < draws else uniform_at(place, element << 2, i, True), last)
                i += 1
                y = d - math.log(1.0 - number) * 2.0 * width / d
                x = np.ceil(y)
                weight = -d * slope * (1.0 + y / 2.0)
            k = np.int64(x + m)
            factorial = log_factorials[k] if k < log_factorials.size else c_lgamma(x + m + 1.0)
            if weight - e - x * constants[row, 10] <= constants[row, 11] - factorial:
                out[element << 2] = x + m
                break


@kernel
def _fill_words(out, stream, first, elements, index):
    """out[k] = the two words of uniform number index[k] of element `first + elements[k]`."""
    for k in range(elements.size):
        for j in range(2):
            position = stream[3] + _U(STRIDE) * _U(first + elements[k]) + _U(2 * index[k] + j)
            block, phase = stream[1] + (position >> _U(2)), position & _U(3)
            a, b, c, d = philox_block(stream[0], block, stream[2] + _U(block < stream[1]))
            out[k, j] = a if phase == _U(0) else b if phase == _U(1) else c if phase == _U(2) else d


class Counted:
    """Poisson counts for many means with NumPy, until `poisson_row` is compiled.

    Args:
        means: float64, for elements from `first` on of a sample with this `stream`.
    """

    def __init__(self, means: np.ndarray, stream: np.ndarray, first: int):
        self.stream = stream
        self.first = first
        self.counts = np.where(means >= _MOST, means, 0.0).astype(np.float32)
        distinct, self.row = np.unique(means, return_inverse=True)
        self.constants = np.zeros((len(distinct), CONSTANTS))
        fill = prepare.in_python()
        for c, mean in zip(self.constants, distinct.tolist(), strict=True):
            if not mean >= _MOST:
                fill(c, mean)
        self._small(np.flatnonzero(~(means >= SMALL)))
        self._large(np.flatnonzero((means >= SMALL) & (means < _MOST)))

    def _numbers(self, elements: np.ndarray, i: Any) -> np.ndarray:
        """Uniform number `i` of these elements."""
        words = np.empty((elements.size, 2), np.uint64)
        index = np.full(elements.size, i) if np.ndim(i) == 0 else i
        _fill_words(words, self.stream, self.first, elements, index)
        return ((words[:, 1] << _U(32)) | words[:, 0]).astype(np.float64) * 2.0**-64

    def _small(self, elements: np.ndarray) -> None:
        limit, product = self.constants[self.row[elements], 1], np.ones(elements.size)
        i = 0
        while elements.size:
            product *= self._numbers(elements, i)
            going = product > limit
            elements, limit, product = elements[going], limit[going], product[going]
            self.counts[elements] += np.float32(1)
            i += 1

    def _large(self, elements: np.ndarray) -> None:
        read = np.zeros(elements.size, np.int64)  # numbers of each element
        spare, kept = np.zeros(elements.size), np.zeros(elements.size, np.bool_)

        def drawn(of: np.ndarray) -> np.ndarray:
            uniform = np.minimum(self._numbers(elements[of], read[of]), 1.0 - 2.0**-53)
            read[of] += 1
            return uniform

        left = np.arange(elements.size)
        while left.size:
            m, d, width, root, slope, to_left, right, one, whole, log_mean, factorial, wide = (
                self.constants[self.row[elements[left]], 1:].T
            )  # fmt: skip
            u = drawn(left) * whole
            e = 1.0 - drawn(left)
            c_logs(e)
            x, weight, z = np.zeros(left.size), np.zeros(left.size), np.zeros(left.size)
            normal = u <= right
            z[normal] = spare[left[normal]]
            kept[left[normal]] ^= True
            self._polar(normal & kept[left], left, drawn, z, spare)
            below, above = normal & (u <= to_left), normal & (u > to_left)
            x[below] = np.floor(-abs(z[below]) * root[below] - 1.0)
            weight[below] = -z[below] * z[below] / 2.0
            y = 1.0 + abs(z[above]) * wide[above]
            x[above] = np.ceil(y)
            weight[above] = y * (2.0 - y) * slope[above]
            refused = (below & (x < -m)) | (above & (x > d))
            x[~normal & (u <= right + 1.0)] = -1.0
            single = (u > right + 2.0) & (u <= one)
            x[single], weight[single] = 1.0, 1.0 / 78.0
            tail = ~normal & (u > right + 2.0) & ~(u <= one)
            number = 1.0 - drawn(left[tail])
            c_logs(number)
            y = d[tail] - number * 2.0 * width[tail] / d[tail]
            x[tail] = np.ceil(y)
            weight[tail] = -d[tail] * slope[tail] * (1.0 + y / 2.0)
            k = (x + m).astype(np.int64)
            expected = LOG_FACTORIALS[k.clip(0, LOG_FACTORIALS.size - 1)]
            for far in np.flatnonzero((k >= LOG_FACTORIALS.size) & ~refused):
                expected[far] = c_lgamma(x[far] + m[far] + 1.0)
            good = ~refused & (weight + e - x * log_mean <= factorial - expected)
            self.counts[elements[left[good]]] = x[good] + m[good]
            left = left[~good]

    def _polar(self, wanted: np.ndarray, left: np.ndarray, drawn: Any, z: np.ndarray, spare: np.ndarray) -> None:
        """Draws two normals for each of the wanted elements: one to use now, one for later."""
        open_ = np.flatnonzero(wanted)
        while open_.size:
            p = 2.0 * drawn(left[open_]) - 1.0
            q = 2.0 * drawn(left[open_]) - 1.0
            square = p * p + q * q
            good = (square <= 1.0) & (square != 0.0)
            p, q, square, at = p[good], q[good], square[good], open_[good]
            logarithm = square.copy()
            c_logs(logarithm)
            scale = np.sqrt(-2.0 * logarithm / square)
            z[at], spare[left[at]] = q * scale, p * scale
            open_ = open_[~good]
