"""Element types of what random operators give, and how real draws become them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._tensor import DType
from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64

REAL = (float32, float64)
NUMBERS = (uint8, int8, uint16, int16, uint32, int32, uint64, int64, *REAL)


def check_type(dtype: DType, allowed: tuple[DType, ...]) -> None:
    """RuntimeError if an operator cannot give elements of this type."""
    if dtype not in allowed:
        names = ", ".join(str(t) for t in allowed)
        raise RuntimeError(f"argument 'dtype': expected one of {names}, got {dtype}")


def drawn_type(dtype: DType) -> Any:
    """The NumPy type of the draws: float64 where float32 could not tell neighbouring results apart."""
    return np.float64 if dtype.bits >= 32 and dtype != float32 else np.float32


def fill_as(out: np.ndarray, dtype: DType, real: Any, fill: Callable[[np.ndarray], None]) -> None:
    """`fill` an array of real draws, rounded half away from zero and saturated if `out` holds integers."""
    if out.dtype == real:
        fill(out)
        return
    draws = np.empty(out.shape, real)
    fill(draws)
    convert_array(draws, "f64" if real is np.float64 else "f32", dtype.name, out)
