"""Which source pixels an output pixel is made of, and with what weights: the filters of resampling.

Established against DALI 2.4.0: filters other than the triangle are looked up, with linear interpolation, in a table
(65, 129 and 193 entries for GAUSSIAN, CUBIC and LANCZOS3), all in float32.
"""

from __future__ import annotations

import math

import numpy as np

from ndd._cpu.jit import kernel

F32 = np.float32
NN, CUBIC, LANCZOS3, TRIANGULAR, GAUSSIAN = 0, 2, 3, 4, 5
# The nearest pixel as CV-CUDA finds it: another one than NN where two are equally near.
NN_FUSED = 6


def _gaussian_table() -> np.ndarray:
    t = (np.arange(65) - 32) / 32
    return np.exp(-4 * t * t).astype(F32)


def _cubic_table() -> np.ndarray:
    t = np.abs(np.arange(129) - 64) / 32
    near, far = (1.5 * t - 2.5) * t * t + 1, ((-0.5 * t + 2.5) * t - 4) * t + 2
    return np.where(t < 1, near, np.where(t < 2, far, 0)).astype(F32)


def _lanczos_table() -> np.ndarray:
    t = (np.arange(193) - 96) / 32
    return (np.sinc(t) * np.sinc(t / 3)).astype(F32)


_TRIANGLE_TABLE = np.array([0, 1, 0], F32)
_GAUSSIAN_TABLE = _gaussian_table()
_CUBIC_TABLE = _cubic_table()
_LANCZOS_TABLE = _lanczos_table()


@kernel
def filter_table(kind):
    """The samples of a filter over its whole support."""
    if kind == CUBIC:
        return _CUBIC_TABLE
    if kind == LANCZOS3:
        return _LANCZOS_TABLE
    if kind == GAUSSIAN:
        return _GAUSSIAN_TABLE
    return _TRIANGLE_TABLE


@kernel
def filter_support(kind, radius):
    """Width of a filter in source pixels. That of the Gaussian is rounded as in DALI: it decides which taps count."""
    if kind == GAUSSIAN:
        sigma = np.float32(np.float64(radius) * 0.5 / math.sqrt(2.0))
        return sigma * np.float32(4 * math.sqrt(2.0))
    return np.float32(2) * radius


@kernel
def nearest_taps(n_out, n_in, start, scale, accumulate):
    """One tap for each output pixel. `accumulate` steps from pixel to pixel, as DALI does along the rows."""
    first = np.empty(n_out, np.int64)
    position = start + np.float32(0.5) * scale
    for i in range(n_out):
        if not accumulate:
            position = (np.float32(i) + np.float32(0.5)) * scale + start
        first[i] = min(max(np.int64(math.floor(position)), 0), n_in - 1)
        position += scale
    return first, np.ones((n_out, 1), np.float32)


@kernel
def fused_nearest_taps(n_out, n_in, start, scale):
    """One tap for each output pixel, at a multiple of `scale` that is added without being rounded before."""
    first = np.empty(n_out, np.int64)
    origin = np.float64(start + np.float32(0.5) * scale)
    for i in range(n_out):
        position = np.float32(i * np.float64(scale) + origin)
        first[i] = min(max(np.int64(math.floor(position)), 0), n_in - 1)
    return first, np.ones((n_out, 1), np.float32)


@kernel
def axis_taps(n_out, n_in, start, end, kind, radius, accumulate):
    """First source index `[n_out]` and weights `[n_out, taps]` of each output pixel, all inside the image.

    Weights that would fall outside are added to those of the edge pixel, so the passes need no clamping.
    """
    scale = (end - start) / np.float32(n_out)
    if kind == NN:
        return nearest_taps(n_out, n_in, start, scale, accumulate)
    if kind == NN_FUSED:
        return fused_nearest_taps(n_out, n_in, start, scale)
    table = filter_table(kind)
    last = len(table) - 1
    step = np.float32(last) / filter_support(kind, radius)
    origin = start + (np.float32(0.5) * scale - np.float32(0.5) - np.float32(last // 2) / step)
    wanted = math.ceil(np.float32(last) / step)
    taps = min(wanted, n_in)
    first = np.empty(n_out, np.int64)
    weights = np.zeros((n_out, taps), np.float32)
    for i in range(n_out):
        left = np.float32(i) * scale + origin
        index = np.int64(math.ceil(left))
        x = (np.float32(index) - left) * step
        anchor = min(max(index, 0), n_in - taps)
        first[i] = anchor
        total = np.float32(0)
        for k in range(wanted):
            j = int(x)
            if j < last:
                weight = table[j] + (x - np.float32(j)) * (table[j + 1] - table[j])
            elif j == last:
                weight = table[last] * (np.float32(last + 1) - x)
            else:
                weight = np.float32(0)
            total += weight
            weights[i, min(max(index + k, 0), n_in - 1) - anchor] += weight
            x += step
        norm = np.float32(1) / total
        for k in range(taps):
            weights[i, k] *= norm
    return first, weights
