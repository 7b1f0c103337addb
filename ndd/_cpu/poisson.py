"""Poisson variates for kernels. `draws.cuh` has the same for GPU kernels."""

from __future__ import annotations

import math

import numpy as np

from ndd._cpu.draws import word_of
from ndd._cpu.jit import kernel
from ndd._cpu.philox import element_words

SMALL = 12.0
"""Below this mean the product of uniform numbers is followed until it falls below exp(-mean)."""

CONSTANTS = 13
"""Numbers that depend on the mean alone: a row of `constants` for each mean that comes up again and again."""

LOG_FACTORIALS = np.array([math.lgamma(k + 1.0) for k in range(1024)])

_U = np.uint64
_DRAWS = 8
_MOST = 2147483646.0


@kernel
def prepare(c, mean):
    """The numbers that depend on the mean alone, into a row; c[0] becomes 1."""
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
    c[10], c[11], c[12] = math.log(mean), math.lgamma(m + 1.0), math.sqrt(width / 2.0)


@kernel
def poisson_row(out, mean, stream, first, slots, constants, log_factorials):
    """Poisson counts as float32 for elements from `first` on (at most CHUNK); two words a uniform number.

    All elements take eight uniform numbers in one go, then those that are not done the next eight, and so on.
    `slots` tells the row of `constants` for each element's mean; the last row is for means that have none (-1).
    """
    n = mean.size
    words = np.empty((2 * _DRAWS, n), np.uint32)
    product, limit, open_ = np.empty(n, np.float64), np.empty(n, np.float64), np.empty(n, np.int64)
    left = 0
    element_words(words, stream, first)
    place = (stream[0], stream[1], stream[2], stream[3])
    for e in range(n):
        if slots[e] < 0 or constants[slots[e], 0] == 0.0:
            prepare(constants[slots[e]], mean[e])
        if not mean[e] >= SMALL:
            out[e], product[e], limit[e], open_[left] = 0.0, 1.0, constants[slots[e], 1], e
            left += 1
        elif mean[e] < _MOST:
            out[e] = _large(words, e, place, first + e, constants, slots[e], log_factorials)
        else:
            out[e] = mean[e]
    skip = 0
    while left > 0:
        if skip:
            element_words(words, stream, first, skip)
        kept = 0
        for k in range(left):
            e = open_[k]
            running, bound, count, done = product[e], limit[e], np.float32(0), False
            for j in range(_DRAWS):
                running *= np.float64((_U(words[2 * j + 1, e]) << _U(32)) | _U(words[2 * j, e])) * 2.0**-64
                if not running > bound:
                    done = True
                    break
                count += np.float32(1)
            out[e] += count
            if not done:
                product[e] = running
                open_[kept] = e
                kept += 1
        left = kept
        skip += 2 * _DRAWS


@kernel(inline="always")
def _uniform(table, column, i, place, element):
    """A uniform number in [0, 1) from words i and i + 1."""
    low = word_of(table, column, i, place, element)
    high = word_of(table, column, i + 1, place, element)
    return min(np.float64((high << _U(32)) | low) * 2.0**-64, 1.0 - 2.0**-53)


@kernel(inline="always")
def _normal_pair(table, column, i, place, element):
    """Two standard normals by the polar method, and the number of the next word."""
    while True:
        x = 2.0 * _uniform(table, column, i, place, element) - 1.0
        y = 2.0 * _uniform(table, column, i + 2, place, element) - 1.0
        i += 4
        square = x * x + y * y
        if square <= 1.0 and square != 0.0:
            scale = math.sqrt(-2.0 * math.log(square) / square)
            return y * scale, x * scale, i


@kernel(inline="always")
def _log_factorial(k, table):
    return table[np.int64(k)] if k < table.size else math.lgamma(k + 1.0)


@kernel(inline="always")
def _large(table, column, place, element, constants, row, log_factorials):
    """A count for a mean of at least 12: Devroye's rejection from normal, constant and exponential pieces (1986)."""
    m, d, width, root, slope = (
        constants[row, 1],
        constants[row, 2],
        constants[row, 3],
        constants[row, 4],
        constants[row, 5],
    )
    left, right, one, total = constants[row, 6], constants[row, 7], constants[row, 8], constants[row, 9]
    log_mean, log_of_m, spread = constants[row, 10], constants[row, 11], constants[row, 12]
    i, kept, spare = 0, False, 0.0
    while True:
        u = total * _uniform(table, column, i, place, element)
        e = -math.log(1.0 - _uniform(table, column, i + 2, place, element))
        i += 4
        weight = 0.0
        if u <= right:
            if kept:
                z, kept = spare, False
            else:
                z, spare, i = _normal_pair(table, column, i, place, element)
                kept = True
            if u <= left:
                x = np.floor(-abs(z) * root - 1.0)
                weight = -z * z / 2.0
                if x < -m:
                    continue
            else:
                y = 1.0 + abs(z) * spread
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
            y = d - math.log(1.0 - _uniform(table, column, i, place, element)) * 2.0 * width / d
            i += 2
            x = np.ceil(y)
            weight = -d * slope * (1.0 + y / 2.0)
        if weight - e - x * log_mean <= log_of_m - _log_factorial(x + m, log_factorials):
            return x + m
