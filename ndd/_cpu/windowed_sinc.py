"""Resampling of signals with a windowed sinc, by DALI's rule: its table, its positions, its borders.

The kernel `h` is a table of `sinc(t) * (1 + cos(pi t / (lobes + 1/64))) / 2` with 32 entries a sample, read with linear
interpolation. The samples of an output are one sample apart, so they all fall between the same two of the 32 phases. With a row
of taps for each phase an output is the dot product of two contiguous arrays, `x` and `taps[q] + r * slopes[q]`.

An output's position is accumulated in float32 inside blocks of 256, as in DALI: with exact positions the values differ by 1e-3.
DALI also rounds the place in the table, `32 * t + 32 * lobes + 1` of a float32 `t`, to a float32, which is coarser in its upper
half (without this the values differ by 2e-6 with 16 lobes, 1e-5 with 64).
"""

from __future__ import annotations

import functools
import math

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel

BLOCK = 256  # outputs from one exact position to the next
PHASES = 32  # table entries between two samples


def lobes_of(quality: float) -> int:
    """Lobes of the sinc on either side: 3 for quality 0, 16 for 50, 64 for 100."""
    return round(0.007 * quality * quality - 0.09 * quality + 3)


@functools.lru_cache(maxsize=16)
def taps_of(lobes: int) -> np.ndarray:
    """float32 `[2, PHASES, 2 * lobes]`: for each phase the taps, and their differences from those of the next phase."""
    t = np.arange(1 - lobes, lobes + 1) - np.arange(PHASES + 1)[:, None] / PHASES
    table = (np.sinc(t) * (1 + np.cos(np.pi * t / (lobes + 1 / 64))) / 2).astype(np.float32)
    return np.stack([table[:-1], np.diff(table, axis=0)])


@functools.lru_cache(maxsize=16)
def taps_across(lobes: int) -> np.ndarray:
    """The same as `[2 * lobes, PHASES, 2]`, so that GPU threads of different phases read adjacent memory."""
    return np.ascontiguousarray(taps_of(lobes).transpose(2, 1, 0))


@functools.lru_cache(maxsize=16)
def rounded_places(lobes: int) -> tuple[int, np.float32]:
    """The first tap whose place in the table is rounded to multiples of a number, and this number. Places of earlier taps are
    rounded to multiples of half of it."""
    middle = PHASES * lobes + 1
    upper = 2 ** math.floor(math.log2(2 * middle - PHASES))
    return math.ceil((upper - middle) / PHASES) + lobes, np.float32(upper * 2.0**-23)


@functools.lru_cache(maxsize=16)
def tables_of(lobes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.float32]:
    """Taps, the slopes of the taps below and above the split (zeros for the others), and the rounding unit of places."""
    taps, slopes = taps_of(lobes)
    split, coarse = rounded_places(lobes)
    low, high = slopes.copy(), slopes.copy()
    low[:, split:] = high[:, :split] = 0
    return taps, low, high, coarse


def resample(signal: np.ndarray, out: np.ndarray, step: float, quality: float) -> None:
    """`out[o]` = the signal at `o * step`; float32, 1-D or `[n, channels]`. The signal is 0 beyond its ends."""
    if out.shape[0] == signal.shape[0] and step == 1.0:
        out[...] = signal
        return
    tables = tables_of(lobes_of(quality))
    if signal.ndim == 1:
        resampled(signal, out, step, *tables)
        return
    for channel in range(signal.shape[1]):
        line = np.empty(out.shape[0], np.float32)
        resampled(np.ascontiguousarray(signal[:, channel]), line, step, *tables)
        out[:, channel] = line


@kernel(fastmath={"reassoc", "contract", "nsz"})
def resampled(x, out, step, taps, low_slopes, high_slopes, coarse):
    """Does the same as `resample` for one channel; the arguments after `step` are the result of `tables_of`."""
    n, count = x.size, taps.shape[1]
    half, tap, below, above = coarse / np.float32(2), taps.reshape(-1), low_slopes.reshape(-1), high_slopes.reshape(-1)
    weights = empty(5 * BLOCK, np.float32)
    for block in range(0, out.size, BLOCK):
        size, position = min(BLOCK, out.size - block), block * step
        base = np.int64(np.floor(position)) - (count // 2 - 1)
        _placed(np.float32(position - np.floor(position)), step, coarse, weights)
        for o in range(size):
            first, q = base + np.int64(weights[BLOCK + o]), np.int64(weights[2 * BLOCK + o])
            p, r = weights[3 * BLOCK + o], weights[4 * BLOCK + o]
            total = np.float32(0)
            low, high = max(0, -first), min(count, n - first)
            if low:  # the first tap, to which all others are relative, is nearer there, and is rounded less
                there = weights[o]
                t = np.abs(np.float32(low + 1 - count // 2) - there / np.float32(PHASES))
                if t > 0:
                    finer = np.float32(2.0 ** (np.floor(np.log2(t)) - 18))
                    there = np.rint(there / finer) * finer
                p = np.rint(there * (np.float32(1) / half)) * half - np.float32(q)
                r = np.rint(there * (np.float32(1) / coarse)) * coarse - np.float32(q)
            i, j = np.uint64(first + low), np.uint64(q * count + low)
            # One loop for all outputs, because each loop takes a quarter of a second to compile.
            for k in range(np.uint64(max(0, high - low))):
                total += x[i + k] * (tap[j + k] + p * below[j + k] + r * above[j + k])
            out[block + o] = total


@kernel(fastmath=False)  # otherwise numba inherits the caller's option, and sums in another order
def _placed(fraction, step, coarse, weights):
    """Fills the rows of `weights` `[5 * BLOCK]` for each output of a block whose first output is at `fraction`: its distance
    after a sample, in phases; that sample; the phase; and the distance after that phase as rounded in the table's lower and
    upper half. The second loop compiles to vectors: inside the loop of sums it took as long as 32 taps.
    """
    narrow_step, half = np.float32(step), coarse / np.float32(2)
    per_coarse, per_half = np.float32(1) / coarse, np.float32(1) / half
    for o in range(BLOCK):
        weights[o] = fraction
        fraction += narrow_step
    for o in range(BLOCK):
        whole = np.floor(weights[o])
        there = (weights[o] - whole) * np.float32(PHASES)
        q = np.floor(there)
        rounded = np.rint(there * per_half) * half  # `t` of the first tap, to which all others are relative
        weights[o], weights[BLOCK + o], weights[2 * BLOCK + o] = there, whole, q
        weights[3 * BLOCK + o] = np.rint(rounded * per_half) * half - q
        weights[4 * BLOCK + o] = np.rint(rounded * per_coarse) * coarse - q
