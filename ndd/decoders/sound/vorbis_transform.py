"""The inverse modified discrete cosine transform of Vorbis, and its windows.

The steps are those of libvorbis, with float32 products and sums in the same order, so that the samples are the same to the last
bit. Real and imaginary parts are in separate lines, so that the compiler generates vector code.
"""

from __future__ import annotations

import functools

import numpy as np

from ndd._compiled.jit import kernel

_C1, _C2, _C3 = np.cos(np.pi / 8 * np.arange(1, 4)).astype(np.float32)
_LEAF = 16  # complex numbers that the last four stages combine


@functools.cache
def transform_factors(half: int) -> np.ndarray:
    """float32 `[5 * half]` for blocks of `2 * half` samples: the window (`half`); then real and imaginary parts, `half / 2`
    each, for the beginning, for the stages in order, for the last stage (half as many), and for the end."""
    n, quarter = 2 * half, half // 2
    window = np.sin(np.pi / 2 * np.sin((np.arange(half) + 0.5) / n * np.pi) ** 2)
    turns = np.pi / n * 4 * np.arange(quarter)
    re, im = np.cos(turns), -np.sin(turns)
    stages, pairs, step = [], half // 4, 2
    while pairs >= _LEAF:
        stages.append((pairs - 1 - np.arange(pairs)) * step)
        pairs, step = pairs // 2, 2 * step
    taken = np.zeros(quarter, np.int64)
    taken[: sum(map(len, stages))] = np.concatenate([*stages, np.zeros(0, np.int64)])
    last = np.pi / n * (4 * np.arange(quarter // 2) + 2)
    end = np.pi / (2 * n) * (2 * np.arange(quarter) + 1)
    parts = [  # libvorbis stores the window with 10 digits
        np.round(window, 10), re[::-1], im[::-1], re[taken], im[taken], 0.5 * np.cos(last), -0.5 * np.sin(last), np.cos(end),
        np.sin(end), np.zeros(half // 2),
    ]  # fmt: skip
    return np.concatenate(parts).astype(np.float32)


@functools.cache
def transform_order(half: int) -> np.ndarray:
    """int32 `[half / 4]`: the places of the last stage's numbers in the lines of the leaves. The other half of the numbers is
    at `half / 2 - 1` minus these places."""
    quarter = half // 2
    bits, order = quarter.bit_length() - 1, np.zeros(quarter // 2, np.int64)
    for k in range(bits):
        order |= (np.arange(quarter // 2) >> k & 1) << (bits - 1 - k)
    return (order % _LEAF * (quarter // _LEAF) + order // _LEAF).astype(np.int32)


@kernel
def _stage(re, im, first, pairs, wr, wi, w):
    """For pairs `(first + p, first + pairs + p)`: writes the sum to the upper place and the rotated difference to the lower
    place."""
    lr, li, hr, hi = re[first : first + pairs], im[first : first + pairs], re[first + pairs :], im[first + pairs :]
    ur, ui = wr[w : w + pairs], wi[w : w + pairs]
    for p in range(pairs):
        a, b = hr[p] - lr[p], hi[p] - li[p]
        hr[p] += lr[p]
        hi[p] += li[p]
        lr[p] = b * ui[p] + a * ur[p]
        li[p] = b * ur[p] - a * ui[p]


@kernel
def _leaves(re, im, n):
    """The last four stages of `n` leaves, `re[q * n + b]` of leaf `b`."""
    for b in range(n):
        r0, r1, r2, r3, r4, r5, r6, r7 = (
            re[b], re[n + b], re[2 * n + b], re[3 * n + b], re[4 * n + b], re[5 * n + b], re[6 * n + b], re[7 * n + b]
        )  # fmt: skip
        i0, i1, i2, i3, i4, i5, i6, i7 = (
            im[b], im[n + b], im[2 * n + b], im[3 * n + b], im[4 * n + b], im[5 * n + b], im[6 * n + b], im[7 * n + b]
        )  # fmt: skip
        h = 8 * n + b
        R0, R1, R2, R3, R4, R5, R6, R7 = (
            re[h], re[n + h], re[2 * n + h], re[3 * n + h], re[4 * n + h], re[5 * n + h], re[6 * n + h], re[7 * n + h]
        )  # fmt: skip
        I0, I1, I2, I3, I4, I5, I6, I7 = (
            im[h], im[n + h], im[2 * n + h], im[3 * n + h], im[4 * n + h], im[5 * n + h], im[6 * n + h], im[7 * n + h]
        )  # fmt: skip
        # 16 numbers: sums to the upper places, rotated differences to the lower places
        R7, r7, I7, i7 = R7 + r7, R7 - r7, I7 + i7, I7 - i7
        x, y, R6, I6 = R6 - r6, I6 - i6, R6 + r6, I6 + i6
        r6, i6 = x * _C1 - y * _C3, x * _C3 + y * _C1
        x, y, R5, I5 = R5 - r5, I5 - i5, R5 + r5, I5 + i5
        r5, i5 = (x - y) * _C2, (x + y) * _C2
        x, y, R4, I4 = R4 - r4, I4 - i4, R4 + r4, I4 + i4
        r4, i4 = x * _C3 - y * _C1, y * _C3 + x * _C1
        x, y, R3, I3 = R3 - r3, i3 - I3, R3 + r3, I3 + i3
        r3, i3 = y, x
        x, y, R2, I2 = r2 - R2, i2 - I2, R2 + r2, I2 + i2
        r2, i2 = y * _C1 + x * _C3, y * _C3 - x * _C1
        x, y, R1, I1 = r1 - R1, i1 - I1, R1 + r1, I1 + i1
        r1, i1 = (y + x) * _C2, (y - x) * _C2
        x, y, R0, I0 = r0 - R0, i0 - I0, R0 + r0, I0 + i0
        r0, i0 = y * _C3 + x * _C1, y * _C1 - x * _C3
        (
            re[b], im[b], re[n + b], im[n + b], re[2 * n + b], im[2 * n + b], re[3 * n + b], im[3 * n + b],
            re[4 * n + b], im[4 * n + b], re[5 * n + b], im[5 * n + b], re[6 * n + b], im[6 * n + b], re[7 * n + b], im[7 * n + b],
        ) = _eight(
            r0, i0, r1, i1, r2, i2, r3, i3, r4, i4, r5, i5, r6, i6, r7, i7
        )  # fmt: skip
        (
            re[h], im[h], re[n + h], im[n + h], re[2 * n + h], im[2 * n + h], re[3 * n + h], im[3 * n + h],
            re[4 * n + h], im[4 * n + h], re[5 * n + h], im[5 * n + h], re[6 * n + h], im[6 * n + h], re[7 * n + h], im[7 * n + h],
        ) = _eight(
            R0, I0, R1, I1, R2, I2, R3, I3, R4, I4, R5, I5, R6, I6, R7, I7
        )  # fmt: skip


@kernel
def _eight(r0, i0, r1, i1, r2, i2, r3, i3, r4, i4, r5, i5, r6, i6, r7, i7):
    x, y, r4, i4 = i0 - i4, r0 - r4, r4 + r0, i4 + i0
    r0, i0 = (x + y) * _C2, (x - y) * _C2
    x, y, r5, i5 = i1 - i5, r5 - r1, r5 + r1, i5 + i1
    r1, i1 = x, y
    x, y, r6, i6 = r6 - r2, i6 - i2, r6 + r2, i6 + i2
    r2, i2 = (x - y) * _C2, (x + y) * _C2
    x, y, r7, i7 = r7 - r3, i7 - i3, r7 + r3, i7 + i3
    r3, i3 = x, y
    r0, i0, r1, i1, r2, i2, r3, i3 = _four(r0, i0, r1, i1, r2, i2, r3, i3)
    r4, i4, r5, i5, r6, i6, r7, i7 = _four(r4, i4, r5, i5, r6, i6, r7, i7)
    return r0, i0, r1, i1, r2, i2, r3, i3, r4, i4, r5, i5, r6, i6, r7, i7


@kernel
def _four(r0, i0, r1, i1, r2, i2, r3, i3):
    a, b, c, d = r3 + r1, r3 - r1, r2 + r0, r2 - r0
    e, f, g, h = i2 - i0, i3 - i1, i2 + i0, i3 + i1
    return b + e, f - d, b - e, f + d, a - c, h - g, a + c, h + g


@kernel
def inverse(line, half, factors, order, re, im, turned_re, turned_im, first, second):
    """Computes the samples of a block, before the window, from `half` numbers of its `line`: the `first` and the `second` half.

    Args:
        factors, order: see above.
        re, im, turned_re, turned_im: float32, at least `[half / 2]`, scratch memory.
    """
    quarter = half // 2
    eighth = quarter // 2
    wr, wi = factors[half : half + quarter], factors[half + quarter : 2 * half]
    for c in range(eighth):
        a, b = line[4 * c + 3], line[4 * c + 1]
        re[c] = -a * wi[c] - b * wr[c]
        im[c] = b * wi[c] - a * wr[c]
    upper_re, upper_im, wr, wi = re[eighth:quarter], im[eighth:quarter], wr[eighth:], wi[eighth:]
    for c in range(eighth):
        k, a, b = eighth - 1 - c, line[4 * c], line[4 * c + 2]
        upper_re[k] = a * wi[k] + b * wr[k]
        upper_im[k] = a * wr[k] - b * wi[k]
    wr, wi = factors[2 * half : 2 * half + quarter], factors[2 * half + quarter : 3 * half]
    pairs, w = eighth, np.int64(0)
    while pairs >= _LEAF:
        for begin in range(np.int64(0), quarter, 2 * pairs):
            _stage(re, im, begin, pairs, wr, wi, w)
        w += pairs
        pairs //= 2
    leaves = quarter // _LEAF
    for b in range(leaves):
        for q in range(_LEAF):
            turned_re[q * leaves + b] = re[b * _LEAF + q]
            turned_im[q * leaves + b] = im[b * _LEAF + q]
    _leaves(turned_re, turned_im, leaves)
    wr, wi = factors[3 * half : 3 * half + eighth], factors[3 * half + eighth : 3 * half + quarter]
    for i in range(eighth):
        k = order[i]
        m = quarter - 1 - k
        a, b = turned_im[m] - turned_im[k], turned_re[m] + turned_re[k]
        c, d = b * wr[i] + a * wi[i], b * wi[i] - a * wr[i]
        a, b = np.float32(0.5) * (turned_im[m] + turned_im[k]), np.float32(0.5) * (turned_re[m] - turned_re[k])
        re[i], im[i] = a + c, b + d
        re[quarter - 1 - i], im[quarter - 1 - i] = a - c, d - b
    wr, wi = factors[3 * half + quarter : 4 * half], factors[4 * half : 4 * half + quarter]
    end_of_first, end_of_second = first[quarter:half], second[quarter:half]
    for k in range(quarter):
        end_of_first[k] = -(re[k] * wi[k] - im[k] * wr[k])
        end_of_second[k] = -(re[k] * wr[k] + im[k] * wi[k])
    for k in range(quarter):
        first[quarter - 1 - k] = -end_of_first[k]
        second[quarter - 1 - k] = end_of_second[k]
