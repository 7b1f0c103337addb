"""Fourier transforms of real rows, and their power.

MKL is used if torch contains it, as its builds for x86 do: compiled loops call its exported functions, row by row (0.15 us for
512 numbers). Otherwise pocketfft is called on the calling thread: SciPy's build if it is installed (0.5 us), else NumPy's,
which takes twice as long. OpenCV takes 0.25 us with Intel's library, 1.2 us without. torch's own function uses torch's threads:
called from a pool of threads, a small transform then takes a hundred times as long.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ndd._compiled.jit import External, kernel

_ALIGNED = 64  # bytes; the last bits of a result depend on the alignment of the row
# From mkl_dfti.h.
_REAL, _COMPLEX_PAIRS, _STORAGE, _THREADS = 33, 39, 10, 27

forward = External("DftiComputeForward", "int64(uintp, uintp)")
"""`forward(handle, address)` transforms a row of `empty_row` in place, where further arguments have no effect."""


class Transform:
    """MKL's plan for real rows of `n` numbers; threads may share it. Its `handle` is for `forward`."""

    def __init__(self, library: Any, n: int):
        self._forward = library.DftiComputeForward
        plan = ctypes.c_void_p()
        status = library.DftiCreateDescriptor_s_1d(ctypes.byref(plan), _REAL, ctypes.c_long(n))
        for name, value in ((_STORAGE, _COMPLEX_PAIRS), (_THREADS, 1)):
            status = status or library.DftiSetValue(plan, name, ctypes.c_long(value))
        status = status or library.DftiCommitDescriptor(plan)
        if status:
            raise RuntimeError(f"MKL makes no transform of {n} numbers: its status is {status}")
        self.handle: int = plan.value or 0
        # Not at the end of the interpreter, when a thread may still use it.
        weakref.finalize(self, library.DftiFreeDescriptor, ctypes.byref(plan)).atexit = False

    def __call__(self, row: np.ndarray) -> None:
        """As `forward`."""
        self._forward(ctypes.c_void_p(self.handle), ctypes.c_void_p(row.ctypes.data))


@functools.lru_cache(maxsize=64)
def transform(n: int) -> Transform | None:
    """The transform for rows of `n` numbers; None without MKL."""
    library = _mkl()
    return None if library is None else Transform(library, n)


@functools.cache
def _mkl() -> Any:
    try:
        library = ctypes.CDLL(torch._C.__file__)  # with all libraries that it is linked with
        forward.connect(library.DftiComputeForward)
    except (AttributeError, OSError):
        return None
    return library


def empty_row(n: int) -> np.ndarray:
    """Memory for a row of `n` numbers and, in its place, its transform: pairs of a real and an imaginary part."""
    room = np.empty(n // 2 * 2 + 2 + _ALIGNED // 4, np.float32)
    shift = -room.ctypes.data % _ALIGNED // 4
    return room[shift : shift + n // 2 * 2 + 2]


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


def rfft_of_rows(rows: np.ndarray) -> np.ndarray:
    """The transform of each row, complex64 `[k, n // 2 + 1]`, bit for bit as `forward` computes it if MKL is available."""
    n = rows.shape[1]
    fft = transform(n)
    if fft is None:
        return rfft(rows)
    row, spectra = empty_row(n), np.empty((len(rows), n // 2 + 1), np.complex64)
    for own, target in zip(rows, spectra, strict=True):
        row[:n] = own
        fft(row)
        target[:] = row.view(np.complex64)
    return spectra


def powers(rows: np.ndarray, power: int, out: np.ndarray) -> None:
    """`out`, float32 `[k, n // 2 + 1]`, = |transform of each row| ** power; `rows` are float32 `[k, n]`, both C-contiguous."""
    fft = transform(rows.shape[1])
    if fft is None:
        power_of(rfft(rows), power, out)
    else:
        _powers(rows, fft.handle, power == 1, empty_row(rows.shape[1]), out)


@kernel
def _powers(rows, handle, root, row, out):
    n = rows.shape[1]
    for t in range(len(rows)):
        for k in range(n):
            row[k] = rows[t, k]
        forward(handle, row.ctypes.data)
        power_of_row(row, root, out[t])


@_powers.fallback
def _(rows, handle, root, row, out):
    power_of(rfft_of_rows(rows), 1 if root else 2, out)


def power_of(spectrum: np.ndarray, power: int, out: np.ndarray | None = None) -> np.ndarray:
    """|spectrum| ** power, float32; `power` is 1 or 2. `out` is C-contiguous."""
    if out is None:
        out = np.empty(spectrum.shape, np.float32)
    power_of_row(np.ascontiguousarray(spectrum).reshape(-1).view(np.float32), power == 1, out.reshape(-1))
    return out


@kernel
def power_of_row(parts, root, out):
    """Writes to `out[k]` the sum of the squares of `parts[2 * k]` and the number after it, or the `root` of the sum."""
    for k in range(out.size):
        out[k] = parts[2 * k] * parts[2 * k] + parts[2 * k + 1] * parts[2 * k + 1]
    if root:
        for k in range(out.size):
            out[k] = np.sqrt(out[k])
