"""Comparing what ndd gives with what the oracle (or the other device) gives."""

from __future__ import annotations

from typing import Any

import numpy as np


def arrays_of(value: Any) -> list[np.ndarray]:
    """The samples of a Tensor or Batch, ours or DALI's, as NumPy arrays; bfloat16 and enums as they come."""
    value = value.cpu() if value.device.device_type != "cpu" else value
    samples = list(value) if hasattr(value, "batch_size") else [value]
    return [np.asarray(s) for s in samples]


def describe(value: Any) -> tuple[Any, ...]:
    """What a value is, apart from its numbers."""
    return type(value).__name__, str(value.dtype), value.ndim, value.layout or None, value.shape


def assert_same_values(
    found: list[np.ndarray], expected: list[np.ndarray], relative: float = 1e-5, off_by_one: float = 0.0
) -> None:
    """Equal shapes; floats within `relative` of the largest number; integers off by 1 in at most a share."""
    assert len(found) == len(expected)
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        assert a.shape == b.shape, f"sample {i}: shape {a.shape}, expected {b.shape}"
        assert a.dtype == b.dtype, f"sample {i}: {a.dtype}, expected {b.dtype}"
        if not a.size:
            continue
        if a.dtype.kind == "f":
            _assert_close(a, b, relative, i)
        else:
            _assert_nearly_equal(a, b, off_by_one, i)


def _assert_close(a: np.ndarray, b: np.ndarray, relative: float, i: int) -> None:
    np.testing.assert_array_equal(np.isnan(a), np.isnan(b), err_msg=f"sample {i}: NaN")
    finite = np.isfinite(b)
    np.testing.assert_array_equal(a[~finite], b[~finite], err_msg=f"sample {i}")
    scale = float(np.abs(b[finite]).max(initial=1e-30))
    allowed = max(relative, float(np.finfo(a.dtype).eps)) * scale
    off = np.abs(a[finite].astype(np.float64) - b[finite])
    assert off.max(initial=0) <= allowed, f"sample {i}: off by {off.max()} where {allowed} is allowed"


def _assert_nearly_equal(a: np.ndarray, b: np.ndarray, off_by_one: float, i: int) -> None:
    if a.dtype.kind == "b":
        np.testing.assert_array_equal(a, b, err_msg=f"sample {i}")
        return
    high, low = np.maximum(a, b), np.minimum(a, b)
    different = high - low
    assert int(different.max()) <= (1 if off_by_one else 0), f"sample {i}: off by {different.max()}"
    share = np.count_nonzero(different) / a.size
    assert share <= off_by_one, f"sample {i}: {share:.1%} of the elements are off by one"
