"""Random numbers of the usual distributions, for kernels. Each element has its own words (`philox.py`).

`out` is `[N, elements]`, `streams` uint64 `[N, 4]`, parameters `[N]`, so that a small batch is one call. `draws.cuh` has the
same formulas for GPU kernels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ndd._compiled.intrinsics import each, empty, zeros
from ndd._compiled.jit import kernel
from ndd._compiled.libm import c_exp, c_log
from ndd._compiled.sample_loops import next_index
from ndd._cpu.philox import CHUNK, element_words, next_word, philox_block, seek, word_at

_U = np.uint64
_WORD = np.float32(2.0**-32)
_TURN = np.float32(2 * math.pi)
PIECE = 4 * CHUNK
"""Elements that a thread draws at a time."""
_COLUMNS = 128  # of a table of words
_FEW = 1 << 12  # up to this many numbers the interpreter takes less time than compiling


@kernel(inline="always")
def fused(a, b, c):
    """a * b + c in float64 with one rounding (except for ties of the last bit), as the hardware instruction."""
    product = a * b
    wide_a, wide_b = a * 134217729.0, b * 134217729.0
    high_a, high_b = wide_a - (wide_a - a), wide_b - (wide_b - b)
    low_a, low_b = a - high_a, b - high_b
    lost = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    total = product + c
    part = total - product
    exact = total + ((product - (total - part)) + (c - part) + lost)
    return exact if exact == exact else total  # NaN for infinite numbers


@kernel
def fill_uniform(out, streams, affine):
    """float32 with `affine` = start, scale, last: start + word * scale, rounded once, at most last; one word for each
    element."""
    words = empty((1, min(CHUNK, out.shape[1])), np.uint32)
    for n in range(out.shape[0]):
        start, scale, last = np.float64(affine[n, 0]), np.float64(affine[n, 1]), affine[n, 2]
        for first in range(0, out.shape[1], CHUNK):
            row = out[n, first : first + CHUNK]
            element_words(words[:, : row.size], streams[n], first)
            for e in each(row.size):
                row[e] = min(np.float32(np.float64(np.float32(words[0, e])) * scale + start), last)


fill_uniform.fallback()


def uniform_numbers(streams, count):
    """`count` uniform numbers from 0 to below 1 of each stream, float32 `[N, count]`."""
    out = np.empty((len(streams), count), np.float32)
    fill_uniform(out, streams, np.tile(np.array([0, _WORD, 1 - 2.0**-24], np.float32), (len(streams), 1)))
    return out


@kernel
def fill_uniform_wide(out, streams, affine):
    """The same in float64 with a 64-bit word: two words for each element."""
    words = empty((2, min(CHUNK, out.shape[1])), np.uint32)
    for n in range(out.shape[0]):
        start, scale, last = affine[n, 0], affine[n, 1], affine[n, 2]
        for first in range(0, out.shape[1], CHUNK):
            row = out[n, first : first + CHUNK]
            element_words(words[:, : row.size], streams[n], first)
            for e in range(row.size):
                word = np.float64((_U(words[1, e]) << _U(32)) | _U(words[0, e]))
                row[e] = min(fused(word, scale, start), last)


@kernel
def fill_coin(out, streams, threshold):
    """1 if a word is below threshold (a uint64 up to 2**32), else 0; one word for each element."""
    words = empty((1, min(CHUNK, out.shape[1])), np.uint32)
    for n in range(out.shape[0]):
        for first in range(0, out.shape[1], CHUNK):
            row = out[n, first : first + CHUNK]
            element_words(words[:, : row.size], streams[n], first)
            for e in each(row.size):
                row[e] = _U(words[0, e]) < threshold[n]


@kernel(nogil=False)
def fill_coins(out, streams, threshold):
    """The same for one number for each sample, with 1-D `out`. It is so short that it keeps the GIL."""
    for n in range(len(out)):
        place = streams[n, 0], streams[n, 1], streams[n, 2], streams[n, 3]
        out[n] = word_at(place, 0, 0) < threshold[n]


@fill_coins.fallback
def _(out, streams, threshold):
    key, counter, sequence, phase = streams.T
    block = counter + (phase >> _U(2))
    words = philox_block.function(key, block, sequence + (block < counter))
    out[...] = np.choose((phase & _U(3)).astype(np.intp), words) < threshold


@kernel
def below(cursor, limit):
    """A uint64 in [0, limit), each equally likely, from one word (two or more above 2**32): Lemire's method."""
    if limit > _U(1 << 32):
        while True:
            high = below_word(cursor, ((limit - _U(1)) >> _U(32)) + _U(1))
            word = (high << _U(32)) | _U(next_word(cursor))
            if word < limit:
                return word
    return below_word(cursor, limit)


@kernel
def below_word(cursor, limit):
    """The same for a limit up to 2**32: the high half of word * limit, unless the low half says to draw again."""
    refused = (_U(1 << 32) - limit) % limit
    product = _U(next_word(cursor)) * limit
    while (product & _U(0xFFFFFFFF)) < refused:
        product = _U(next_word(cursor)) * limit
    return product >> _U(32)


@kernel
def fill_index(out, streams, count):
    """int64 in [0, count), each equally likely; one word for each element, unless `below` needs more."""
    words = empty((1, min(CHUNK, out.shape[1])), np.uint32)
    cursor = empty(8, np.uint64)
    for n in range(out.shape[0]):
        limit = _U(count[n])
        refused = (_U(1 << 32) - limit) % limit if limit <= _U(1 << 32) else _U(1 << 32)
        for first in range(0, out.shape[1], CHUNK):
            row = out[n, first : first + CHUNK]
            element_words(words[:, : row.size], streams[n], first)
            for e in range(row.size):
                product = _U(words[0, e]) * limit
                if (product & _U(0xFFFFFFFF)) < refused:
                    seek(cursor, streams[n], first + e)
                    row[e] = below(cursor, limit)
                else:
                    row[e] = product >> _U(32)


def _rows(out: np.ndarray) -> Iterator[tuple[int, int, np.ndarray]]:
    """The parts of `out` [N, elements], each with its sample and first element."""
    for n in range(len(out)):
        for first in range(0, out.shape[1], 16 * CHUNK):
            yield n, first, out[n, first : first + 16 * CHUNK]


@kernel(inline="always")
def weighted(cumulative, count, word):
    """The first index whose cumulative probability reaches a 64-bit word / 2**64."""
    number = np.float64(word) * 2.0**-64
    low, high = 0, np.int64(count) - 1
    while low < high:
        middle = (low + high) >> 1
        if cumulative[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def fill_weighted_index(out, streams, cumulative, count):
    """int64 indices with given cumulative probabilities `[N, most]`; two words for each element."""
    words = empty((2, min(CHUNK, out.shape[1])), np.uint32)
    for n in range(out.shape[0]):
        for first in range(0, out.shape[1], CHUNK):
            row = out[n, first : first + CHUNK]
            element_words(words[:, : row.size], streams[n], first)
            for e in range(row.size):
                row[e] = weighted(cumulative[n], count[n], (_U(words[1, e]) << _U(32)) | _U(words[0, e]))


@kernel
def fill_index_in_order(out, streams, cumulative, count):
    """int64 indices, weighted if there are probabilities, from the words of a sample's first element one by one."""
    cursor = empty(8, np.uint64)
    for n in range(out.shape[0]):
        seek(cursor, streams[n], 0)
        for e in range(out.shape[1]):
            if cumulative.shape[1]:
                low = _U(next_word(cursor))
                out[n, e] = weighted(cumulative[n], count[n], (_U(next_word(cursor)) << _U(32)) | low)
            else:
                out[n, e] = below(cursor, _U(count[n]))


@kernel
def normal_row(out, stream, first):
    """Standard normals in float32 (at most CHUNK) for elements from `first` on: Box-Muller, two words for each element.

    sqrt(-2 ln u) cos(2 pi v) with u and v a word / 2**32 each. Logarithm and cosine are series in float64, rounded to float32
    once: equal on every machine and on the GPU, and in a form that fills vector registers.
    """
    size = out.size
    words = empty((2, size), np.uint32)
    element_words(words, stream, first, 0)
    value = empty(size, np.float64)
    bits = value.view(np.int64)
    for e in each(size):
        value[e] = max(np.float64(np.float32(words[0, e])) * 2.0**-32, 2.0**-33)
    for e in each(size):
        # value = m * 2**k with m in [1/sqrt 2, sqrt 2); ln m = 2 atanh((m - 1) / (m + 1))
        exponent = (bits[e] + np.int64(0x95F619980C433)) >> np.int64(52)
        bits[e] -= (exponent - np.int64(1023)) << np.int64(52)
        ratio = (value[e] - 1.0) / (value[e] + 1.0)
        s = ratio * ratio
        series = s / 15.0 + 1 / 13.0
        series = series * s + 1 / 11.0
        series = series * s + 1 / 9.0
        series = series * s + 1 / 7.0
        series = series * s + 1 / 5.0
        series = series * s + 1 / 3.0
        series = series * s + 1.0
        logarithm = np.float32(np.float64(exponent - np.int64(1023)) * 0.6931471805599453 + 2.0 * ratio * series)
        angle = np.float64(_TURN * (np.float32(words[1, e]) * _WORD))
        # cos(a) = sin(|a - pi| - pi / 2)
        x = abs(angle - math.pi) - math.pi / 2
        q = x * x
        sine = q / -342.0 + 1.0
        sine = sine * q / -272.0 + 1.0
        sine = sine * q / -210.0 + 1.0
        sine = sine * q / -156.0 + 1.0
        sine = sine * q / -110.0 + 1.0
        sine = sine * q / -72.0 + 1.0
        sine = sine * q / -42.0 + 1.0
        sine = sine * q / -20.0 + 1.0
        sine = (sine * q / -6.0 + 1.0) * x
        out[e] = np.sqrt(np.float32(-2.0) * logarithm) * np.float32(sine)


@kernel
def fill_normal(out, streams, mean, stddev):
    """float32 normals: mean + stddev * z, one rounding."""
    for n in range(out.shape[0]):
        centre, spread = np.float64(mean[n]), np.float64(stddev[n])
        for first in range(0, out.shape[1], CHUNK):
            row = out[n, first : first + CHUNK]
            normal_row(row, streams[n], first)
            for e in each(row.size):
                row[e] = np.float32(np.float64(row[e]) * spread + centre)


fill_normal.fallback()


@kernel
def fill_normal_loop(counter, limit, out, starts, sizes, ends, streams, mean, stddev):
    """The same for samples of any size, which begin at `starts[n]` in `out`, 1-D. Threads take pieces of PIECE elements of a
    sample; `ends[n]` counts the pieces up to sample n."""
    for _ in range(limit):
        turn = next_index(counter)
        if turn >= ends[-1]:
            break
        n, high = 0, len(ends) - 1
        while n < high:
            middle = (n + high) >> 1
            if ends[middle] > turn:
                high = middle
            else:
                n = middle + 1
        begin = (turn - ends[n]) * PIECE + (sizes[n] + PIECE - 1) // PIECE * PIECE
        centre, spread = np.float64(mean[n]), np.float64(stddev[n])
        for first in range(begin, min(begin + PIECE, sizes[n]), CHUNK):
            row = out[starts[n] + first : starts[n] + min(first + CHUNK, sizes[n])]
            normal_row(row, streams[n], first)
            for e in each(row.size):
                row[e] = np.float32(np.float64(row[e]) * spread + centre)
    return True


fill_normal_loop.fallback()


@kernel
def fill_normal_wide(out, streams, mean, stddev):
    """float64 normals: Box-Muller from two 64-bit words, four words for each element."""
    words = empty((4, min(CHUNK, out.shape[1])), np.uint32)
    for n in range(out.shape[0]):
        for first in range(0, out.shape[1], CHUNK):
            row = out[n, first : first + CHUNK]
            element_words(words[:, : row.size], streams[n], first)
            for e in range(row.size):
                u = np.float64((_U(words[1, e]) << _U(32)) | _U(words[0, e])) * 2.0**-64
                v = np.float64((_U(words[3, e]) << _U(32)) | _U(words[2, e])) * 2.0**-64
                z = math.sqrt(-2.0 * math.log(max(u, 2.0**-65))) * math.cos(2.0 * math.pi * v)
                row[e] = fused(z, stddev[n], mean[n])


@kernel
def canonical(cursor, wide):
    """A uniform number in [0, 1): from two words if `wide`, else from one, with the 24 bits of a float32."""
    if wide:
        low = _U(next_word(cursor))
        return min(np.float64((_U(next_word(cursor)) << _U(32)) | low) * 2.0**-64, 1.0 - 2.0**-53)
    return np.float64(min(np.float32(next_word(cursor)) * _WORD, np.float32(1.0 - 2.0**-24)))


@kernel
def store_rounded(values, out, half, low, high, of_nan):
    """Floats into integers: rounded half away from zero (`half` is the float below 1/2), saturated at low and high."""
    for i in range(values.size):
        rounded = min(max(np.trunc(values[i] + np.copysign(half, values[i])), low), high)
        out[i] = rounded if values[i] == values[i] else of_nan


# Draws that need a varying number of uniform numbers for each element take the first ones from a table. Further ones are rarely
# needed, and generated one by one.


@kernel
def uniform_rows(numbers, stream, first, skip):
    """numbers[i, c] = uniform number i of element `first + c` after `skip` words: one word each, two for float64."""
    wide = numbers.itemsize == 8
    words = empty((numbers.shape[0] * (2 if wide else 1), numbers.shape[1]), np.uint32)
    element_words(words, stream, first, skip)
    for i in range(numbers.shape[0]):
        for c in range(numbers.shape[1]):
            if wide:
                numbers[i, c] = np.float64((_U(words[2 * i + 1, c]) << _U(32)) | _U(words[2 * i, c])) * 2.0**-64
            else:
                numbers[i, c] = np.float32(words[i, c]) * _WORD


@kernel
def uniform_at(place, element, i, wide):
    """Uniform number `i` of an element, as float64."""
    if wide:
        high = word_at(place, element, 2 * i + 1)
        return np.float64((high << _U(32)) | word_at(place, element, 2 * i)) * 2.0**-64
    return np.float64(word_at(place, element, i)) * 2.0**-32


# Beta is computed from two gamma variates, one after the other. The polar method gives normals in pairs: the second of each
# gamma's pair is used for the next element, so the elements of a sample are drawn in order. `k`: see `beta_constants`.


def beta_constants(kind: type) -> np.ndarray:
    """The constants of these formulas in the type of the computation."""
    last = 1.0 - 2.0**-53 if kind is np.float64 else 1.0 - 2.0**-24
    return np.array([0.0, 1.0, 2.0, 1.0 / 3.0, 0.0331, 0.5, last, 9.0], kind)


@kernel
def fill_beta(out, streams, alpha, beta, k):
    """Numbers in [0, 1]: X / (X + Y) of two gamma variates, computed in the type of `out`, `alpha`, `beta` and `k`."""
    numbers = empty((8, min(_COLUMNS, out.shape[1])), out.dtype)
    shapes = empty(2, out.dtype)
    for n in range(out.shape[0]):
        shapes[0], shapes[1] = alpha[n], beta[n]
        _beta_sample(out[n], streams[n], shapes, k, numbers)


@fill_beta.fallback
def _(out, *args):
    (fill_beta.interpreted if out.size <= _FEW else fill_beta.waited_for)(out, *args)


@kernel
def _beta_sample(out, stream, shapes, k, numbers):
    """Draws one sample. The code for a uniform number is repeated four times: a function would count references to the arrays
    for each number, which costs more than the number.
    """
    rows, columns = numbers.shape
    wide = numbers.itemsize == 8
    place = (stream[0], stream[1], stream[2], stream[3])
    # If both shapes are below 1, X and Y may underflow, so their logarithms are combined.
    small = shapes[0] < k[1] and shapes[1] < k[1]
    spare, kept = empty(2, out.dtype), zeros(2, np.bool_)
    xy, cell = empty(2, out.dtype), empty(3, out.dtype)
    for e in range(out.size):
        c = e % columns
        if c == 0:
            uniform_rows(numbers, stream, e, 0)
        i = 0
        for which in range(2):
            raised = shapes[which] + k[1] if small or shapes[which] < k[1] else shapes[which]
            shift = raised - k[3]
            slope = k[1] / np.sqrt(k[7] * shift)
            while True:
                if kept[which]:
                    z, kept[which] = spare[which], False
                else:
                    square = k[2]
                    while square > k[1] or square == k[0]:
                        for j in range(2):
                            cell[j] = numbers[i, c] if i < rows else uniform_at(place, e, i, wide)
                            cell[j] = k[2] * min(cell[j], k[6]) - k[1]
                            i += 1
                        square = cell[0] * cell[0] + cell[1] * cell[1]
                    scale = np.sqrt(-k[2] * c_log(square) / square)
                    spare[which], kept[which] = cell[0] * scale, True
                    z = cell[1] * scale
                v = k[1] + slope * z
                if v <= k[0]:
                    continue
                v = v * v * v
                cell[2] = numbers[i, c] if i < rows else uniform_at(place, e, i, wide)
                u = min(cell[2], k[6])
                i += 1
                if u <= k[1] - k[4] * z * z * z * z:
                    break
                if c_log(u) <= k[5] * z * z + shift * (k[1] - v + c_log(v)):
                    break
            xy[which] = shift * v
            if shapes[which] < k[1] and not small:
                u = k[0]
                while u == k[0]:
                    cell[2] = numbers[i, c] if i < rows else uniform_at(place, e, i, wide)
                    u = min(cell[2], k[6])
                    i += 1
                xy[which] = u ** (k[1] / shapes[which]) * shift * v
        if small:
            for which in range(2):
                cell[2] = numbers[i, c] if i < rows else uniform_at(place, e, i, wide)
                xy[which] = c_log(xy[which]) + c_log(k[1] - min(cell[2], k[6])) / shapes[which]
                i += 1
            most = max(xy[0], xy[1])
            xy[0], xy[1] = c_exp(xy[0] - most), c_exp(xy[1] - most)
        out[e] = xy[0] / (xy[0] + xy[1])
