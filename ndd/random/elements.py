"""Element types of what random operators give, and how real draws become them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._cpu.draws import store_rounded
from ndd._tensor import DType
from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64

REAL = (float32, float64)
NUMBERS = (uint8, int8, uint16, int16, uint32, int32, uint64, int64, *REAL)


def check_type(dtype: DType, allowed: tuple[DType, ...]) -> None:
    """RuntimeError if an operator cannot give elements of this type."""
    for t in allowed:
        if t is dtype:
            return
    names = ", ".join(str(t) for t in allowed)
    raise RuntimeError(f"argument 'dtype': expected one of {names}, got {dtype}")


def drawn_type(dtype: DType) -> Any:
    """The NumPy type of the draws: float64 where float32 could not tell neighbouring results apart."""
    return np.float64 if dtype.bits >= 32 and dtype is not float32 else np.float32


def column(value: Any, n: int, kind: Any) -> np.ndarray:
    """A scalar argument as `[n, 1]`: a number for each sample."""
    if isinstance(value, np.ndarray):
        return np.broadcast_to(value.astype(kind, copy=False), (n,))[:, None]
    found = np.empty((n, 1), kind)
    found.fill(value)
    return found


def fill_as(out: np.ndarray, dtype: DType, real: Any, fill: Callable[[np.ndarray], None]) -> None:
    """`fill` an array of real draws, rounded half away from zero and saturated if `out` holds integers."""
    if out.dtype == real:
        fill(out)
        return
    draws = np.empty(out.shape, real)
    fill(draws)
    if out.dtype.itemsize == 8 or out.dtype.kind == "f":
        convert_array(draws, "f64" if real == np.float64 else "f32", dtype.name, out)
        return
    store_rounded(draws.reshape(-1), out.reshape(-1), *_rounding(out.dtype, draws.dtype.type))


@functools.cache
def _rounding(dtype: np.dtype, real: Any) -> tuple[Any, Any, Any, Any]:
    """The number below one half, the limits, and what NaN becomes, as DALI's processor has it."""
    low, high = real(np.iinfo(dtype).min), real(np.iinfo(dtype).max)
    return np.nextafter(real(0.5), real(0)), low, high, low if dtype == np.int32 else real(0)
