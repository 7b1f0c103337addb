"""Element types of random operators, and the conversion of real draws to them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._cpu.draws import store_rounded
from ndd._tensor import DType
from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import float32

INTEGERS = ("u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64")
REAL = ("f32", "f64")


def drawn_type(dtype: DType) -> Any:
    """The NumPy type of the draws: float64 if float32 cannot distinguish neighbouring results."""
    return np.float64 if dtype.bits >= 32 and dtype is not float32 else np.float32


def fill_as(out: np.ndarray, real: Any, fill: Callable[[np.ndarray], None]) -> None:
    """Calls `fill` for an array of real draws, which are rounded half away from zero and saturated if `out` holds integers."""
    if out.dtype == real:
        fill(out)
        return
    draws = np.empty(out.shape, real)
    fill(draws)
    if out.dtype.itemsize == 8 or out.dtype.kind == "f":
        convert_array(draws, "f64" if real == np.float64 else "f32", DType.from_fw_type(out.dtype).name, out)
        return
    store_rounded(draws.reshape(-1), out.reshape(-1), *_rounding(out.dtype, draws.dtype.type))


@functools.cache
def _rounding(dtype: np.dtype, real: Any) -> tuple[Any, Any, Any, Any]:
    """The number below one half, the limits, and the value of NaN, as in DALI on its processor."""
    low, high = real(np.iinfo(dtype).min), real(np.iinfo(dtype).max)
    return np.nextafter(real(0.5), real(0)), low, high, low if dtype == np.int32 else real(0)
