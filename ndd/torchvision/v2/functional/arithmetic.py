"""Arithmetic on pictures of any layout and type, with torchvision's rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import ndd
from ndd.torchvision.values import layout_of, per_sample, rows_of

_VALUE_BITS = {"u8": 8, "i8": 7, "i16": 15, "u16": 16, "i32": 31, "i64": 63}


def is_float(value: Any) -> bool:
    """Whether the elements are floating-point numbers."""
    return value.dtype.name in ("f16", "bfloat16", "f32", "f64")


def in_type_of(result: Any, value: Any) -> Any:
    """A result in the element type of its source picture."""
    return result if result.dtype == value.dtype else ndd.cast(result, dtype=value.dtype)


def typed(number: float, value: Any) -> Any:
    """A whole number as an operand of the type of a picture, so that the result has that type without another pass."""
    most = np.iinfo(value.dtype.numpy).max  # of int64, which floats cannot represent
    return ndd.tensor(np.array(min(int(number), most), value.dtype.numpy)).to_device(value.device)


def on_device_of(operand: Any, value: Any) -> Any:
    """An operand of arithmetic, moved to the device of a picture: devices cannot be mixed."""
    return operand.to_device(value.device) if isinstance(operand, ndd.Batch | ndd.Tensor) else operand


def value_bits(dtype: Any) -> int:
    """The number of value bits of an integer type; TypeError for other types."""
    if dtype.name not in _VALUE_BITS:
        raise TypeError(f"Number of value bits is only defined for integer dtypes, but got {dtype}.")
    return _VALUE_BITS[dtype.name]


def largest(dtype: Any) -> float:
    """White: 1 for floating-point numbers, else the largest number."""
    return float(2 ** _VALUE_BITS[dtype.name] - 1) if dtype.name in _VALUE_BITS else 1.0


def channels_of(value: Any) -> set[int]:
    """The numbers of channels of the pictures."""
    layout = layout_of(value)
    if "C" not in layout:
        return {1}
    axis = layout.index("C")
    return {s[axis] for s in (value.shape if isinstance(value, ndd.Batch) else [value.shape])}


def check_channels(value: Any) -> int:
    """1 or 3; TypeError for other numbers of channels."""
    counts = channels_of(value) or {3}
    for count in counts - {1, 3}:
        raise TypeError(f"Input image tensor permitted channel values are 1 or 3, but found {count}")
    if len(counts) > 1:
        raise TypeError("expected pictures of one number of channels, got some of 1 and some of 3")
    return counts.pop()


def channel(value: Any, i: int) -> Any:
    """One channel, with its axis."""
    return ndd.slice(value, start=[i], shape=[1], axis_names="C")


def with_channels(value: Any) -> Any:
    """A picture with an axis of channels: HW becomes HWC with one."""
    return value if "C" in layout_of(value) else ndd.reshape(value, src_dims=[0, 1, -1], layout="HWC")


def joined(channels: list[Any]) -> Any:
    """Concatenates channels, along their axis in the layout."""
    return ndd.cat(*channels, axis_name="C")


def factor_of(factor: Any, count: int | None, check: Callable[[np.ndarray], Any], text: str) -> Any:
    """A number, or one for each sample, as an operand; ValueError with `text` if `check` is False, TypeError if it is not a
    number."""
    if factor is None or isinstance(factor, str | bytes):
        raise TypeError(f"expected a number, got {factor!r}")
    rows = rows_of(factor, count)
    if not np.all(check(rows)):
        raise ValueError(text)
    value = per_sample(factor, count)
    return ndd.cast(value, dtype=ndd.float32) if isinstance(value, ndd.Batch) else float(value)


def grey(value: Any) -> Any:
    """Luminance as float32, one channel: torch's sum, which does not round products before adding them."""
    wide = ndd.cast(value, dtype=ndd.float64)
    red, green, blue = (channel(wide, i) for i in range(3))
    result = ndd.cast(red * float(np.float32(0.2989)), dtype=ndd.float32)
    for part, weight in ((green, 0.587), (blue, 0.114)):
        result = ndd.cast(ndd.cast(result, dtype=ndd.float64) + part * float(np.float32(weight)), dtype=ndd.float32)
    return result
