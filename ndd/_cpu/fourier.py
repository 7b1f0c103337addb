"""Fourier transforms of real rows, and their power.

By OpenCV where the length has no prime factors but 2, 3 and 5 (0.4 us for 512 numbers), else by pocketfft, which takes
any length and runs on the calling thread: SciPy's build where it is installed (0.8 us), else NumPy's, which takes twice
as long. torch's own transform asks its own threads to help: from the threads of a pool a small one then takes a hundred
times as long.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._cpu.jit import kernel
from ndd._cpu.opencv import single_threaded


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


def powers(rows: np.ndarray, power: int, out: np.ndarray, scratch: np.ndarray | None = None) -> None:
    """`out`, float32 `[k, n // 2 + 1]`, = |transform of each row| ** power; `rows` are float32 `[k, n]`, both C-contiguous.
    `scratch` is memory of the size of `rows`, perhaps `rows` itself."""
    if not _is_quick(rows.shape[1]):
        power_of(rfft(rows), power, out)
        return
    opencv = single_threaded()
    _power_of_packed(opencv.dft(rows, scratch, flags=opencv.DFT_ROWS), out, power == 1)


@functools.lru_cache(maxsize=64)
def _is_quick(n: int) -> bool:
    for prime in (2, 3, 5):
        while n % prime == 0 and n > prime:
            n //= prime
    return n in (2, 3, 5)


@kernel
def _power_of_packed(rows, out, root):
    """Of transforms as OpenCV packs them: the real parts of the first and, of even rows, the last, pairs between them."""
    pairs, last = (rows.shape[1] - 1) // 2, out.shape[1] - 1
    for t in range(len(rows)):
        row, target = rows[t], out[t]
        target[0] = row[0] * row[0]
        for k in range(pairs):
            target[k + 1] = row[2 * k + 1] * row[2 * k + 1] + row[2 * k + 2] * row[2 * k + 2]
        if last > pairs:
            target[last] = row[row.size - 1] * row[row.size - 1]
        if root:
            for k in range(last + 1):
                target[k] = np.sqrt(target[k])


@_power_of_packed.meanwhile
def _(rows, out, root):
    pairs, last = (rows.shape[1] - 1) // 2, out.shape[1] - 1
    squares = rows * rows
    out[:, 0] = squares[:, 0]
    np.add(squares[:, 1 : 2 * pairs : 2], squares[:, 2 : 2 * pairs + 1 : 2], out=out[:, 1 : pairs + 1])
    if last > pairs:
        out[:, last] = squares[:, -1]
    if root:
        np.sqrt(out, out=out)


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
