"""Fourier transforms of real rows, and their power.

By pocketfft, which takes any length and runs on the calling thread: SciPy's build where it is installed (1 us for 512
numbers), else NumPy's, which takes twice as long. torch's own transform is faster alone, but asks its own threads to
help: from the threads of a pool a small one then takes a hundred times as long.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._cpu.jit import kernel


def rfft(rows: np.ndarray, n: int | None = None, axis: int = -1) -> np.ndarray:
    """The transform along `axis`, complex64, of float32; `n` cuts the rows or fills them up with zeros."""
    return _library()(rows, n=n, axis=axis)


@functools.cache
def _library() -> Callable[..., Any]:
    try:
        from scipy.fft import rfft
    except ImportError:
        return lambda rows, n, axis: np.fft.rfft(rows, n=n, axis=axis).astype(np.complex64, copy=False)
    return rfft


def power_of(spectrum: np.ndarray, power: int, out: np.ndarray | None = None) -> np.ndarray:
    """|spectrum| ** power, float32; `power` is 1 or 2. `out` is C-contiguous."""
    if out is None:
        out = np.empty(spectrum.shape, np.float32)
    _power_of(np.ascontiguousarray(spectrum).reshape(-1).view(np.float32), out.reshape(-1), power == 1)
    return out


@kernel
def _power_of(parts, out, root):
    for k in range(out.size):
        out[k] = parts[2 * k] * parts[2 * k] + parts[2 * k + 1] * parts[2 * k + 1]
    if root:
        for k in range(out.size):
            out[k] = np.sqrt(out[k])
