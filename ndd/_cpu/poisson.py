"""Poisson variates for kernels. `draws.cuh` has the same for GPU kernels."""

from __future__ import annotations

import math

import numpy as np

from ndd._cpu.draws import uniform_at, uniform_rows
from ndd._cpu.jit import kernel

SMALL = 12.0
"""Below this mean the product of uniform numbers is followed until it falls below exp(-mean)."""

CONSTANTS = 13
"""Numbers that depend on the mean alone: a row of `constants` for each mean that comes up again and again."""

LOG_FACTORIALS = np.array([math.lgamma(k + 1.0) for k in range(1024)])

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
    numbers = np.empty((_DRAWS, n), np.float64)
    product, limit, open_ = np.empty(n, np.float64), np.empty(n, np.float64), np.empty(n, np.int64)
    left = 0
    uniform_rows(numbers, stream, first, 0)
    place = (stream[0], stream[1], stream[2], stream[3])
    for e in range(n):
        if slots[e] < 0 or constants[slots[e], 0] == 0.0:
            prepare(constants[slots[e]], mean[e])
        if not mean[e] >= SMALL:
            out[e], product[e], limit[e], open_[left] = 0.0, 1.0, constants[slots[e], 1], e
            left += 1
        elif not mean[e] < _MOST:
            out[e] = mean[e]
        elif slots[e] < 0:
            _large(out, e, e + 1, mean, numbers, place, first, slots, constants, log_factorials)
    if slots[0] >= 0:
        _large(out, 0, n, mean, numbers, place, first, slots, constants, log_factorials)
    skip = 0
    while left > 0:
        if skip:
            uniform_rows(numbers, stream, first, skip)
        kept = 0
        for k in range(left):
            e = open_[k]
            running, bound, count, done = product[e], limit[e], np.float32(0), False
            for j in range(_DRAWS):
                running *= numbers[j, e]
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


@kernel
def _large(out, start, stop, means, numbers, place, first, slots, constants, log_factorials):
    """Counts for the means of at least 12: Devroye's rejection from normal, constant and exponential pieces (1986).

    What makes a uniform number stands here three times: as a function it would count references of the arrays for
    each number.
    """
    draws, last = numbers.shape[0], 1.0 - 2.0**-53
    pair = np.empty(2, np.float64)
    for column in range(start, stop):
        if not means[column] >= SMALL or not means[column] < _MOST:
            continue
        row, element = slots[column], first + column
        m, d, width, root = constants[row, 1], constants[row, 2], constants[row, 3], constants[row, 4]
        slope, left, right, one = constants[row, 5], constants[row, 6], constants[row, 7], constants[row, 8]
        i, kept, spare = 0, False, 0.0
        while True:
            for j in range(2):
                pair[j] = min(numbers[i, column] if i < draws else uniform_at(place, element, i, True), last)
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
                                numbers[i, column] if i < draws else uniform_at(place, element, i, True), last
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
                number = min(numbers[i, column] if i < draws else uniform_at(place, element, i, True), last)
                i += 1
                y = d - math.log(1.0 - number) * 2.0 * width / d
                x = np.ceil(y)
                weight = -d * slope * (1.0 + y / 2.0)
            k = np.int64(x + m)
            factorial = log_factorials[k] if k < log_factorials.size else math.lgamma(x + m + 1.0)
            if weight - e - x * constants[row, 10] <= constants[row, 11] - factorial:
                out[column] = x + m
                break
