"""Comparing what ndd gives with what the oracle, or the other device, gives.

`check_same` makes one call with both libraries. Floats count as equal within a share of the largest number
(`tolerance`), or as a test's own `close(found, expected)` says: `assert_same` goes by each element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import ndd


def outcome(module: Any, call: Callable[[Any], Any]) -> Any:
    """What `call(module)` gives, run to its end, or the exception it raises."""
    try:
        with module.EvalMode.sync_cpu:
            result = call(module)
            for value in result if isinstance(result, tuple | list) else [result]:
                value.evaluate()
            return result
    except Exception as error:
        return error


def arrays_of(value: Any) -> list[np.ndarray]:
    """The samples of a Tensor or Batch, ours or DALI's, as NumPy arrays; bfloat16 and enums as they come."""
    samples = list(value.tensors) if hasattr(value, "tensors") else [value]
    return [np.asarray(s.cpu()) for s in samples]


def describe(value: Any) -> tuple[Any, ...]:
    """What a value is, apart from its numbers."""
    return type(value).__name__, str(value.dtype), value.ndim, value.layout or None, value.shape


def check_same(
    dali: Any,
    call: Callable[[Any], Any],
    tolerance: float = 0.0,
    note: Any = "",
    close: Callable[..., None] | None = None,
) -> bool:
    """Asserts that `call(ndd)` is as `call(dali)`; whether DALI gave a value (not an error)."""
    expected = outcome(dali, call)
    different = differences(outcome(ndd, call), expected, tolerance, close)
    assert different is None, f"{note}: {different}"
    return not isinstance(expected, Exception)


def differences(
    actual: Any, expected: Any, tolerance: float = 0.0, close: Callable[..., None] | None = None
) -> str | None:
    """What differs, in words; None if nothing does."""
    if isinstance(actual, Exception) or isinstance(expected, Exception):
        if type(actual) is not type(expected):
            return f"ndd gives {_brief(actual)}, DALI {_brief(expected)}"
        return None
    if isinstance(expected, tuple | list):
        return next(
            filter(None, (differences(*pair, tolerance, close) for pair in zip(actual, expected, strict=True))), None
        )
    for name in ("layout", "dtype"):
        if str(getattr(actual, name)) != str(getattr(expected, name)):
            return f"{name}: ndd {getattr(actual, name)}, DALI {getattr(expected, name)}"
    for i, (a, b) in enumerate(zip(arrays_of(actual), arrays_of(expected), strict=True)):
        if a.shape != b.shape:
            return f"sample {i}: shape {a.shape}, DALI {b.shape}"
        if close is not None:
            close(a, b)
        elif not _close(a, b, tolerance):
            return f"sample {i}: ndd {a.reshape(-1)[:12]}, DALI {b.reshape(-1)[:12]}"
    return None


def _close(a: np.ndarray, b: np.ndarray, tolerance: float) -> bool:
    if a.dtype.kind == "f":
        a, b, narrow = a.astype(np.float64), b.astype(np.float64), a.dtype.itemsize == 2
        largest = np.abs(b[np.isfinite(b)]).max(initial=0)
        return np.allclose(a, b, rtol=max(tolerance, 1e-3 * narrow), atol=tolerance * largest, equal_nan=True)
    if not tolerance:
        return bool((a == b).all())
    a, b = a.astype(np.float64), b.astype(np.float64)  # large integers are sums of floats
    return bool((np.abs(a - b) <= max(1, tolerance * np.abs(b).max(initial=0))).all())


def _brief(value: Any) -> str:
    return f"{type(value).__name__} {str(value)[:200]!r}" if isinstance(value, Exception) else f"shape {value.shape}"


def assert_same_values(
    actual: list[np.ndarray], expected: list[np.ndarray], relative: float = 1e-5, off_by_one: float = 0.0
) -> None:
    """Equal shapes; floats within `relative` of the largest number; integers off by 1 in at most a share."""
    assert len(actual) == len(expected)
    for i, (a, b) in enumerate(zip(actual, expected, strict=True)):
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


def assert_same(actual: np.ndarray, wanted: np.ndarray, relative: float = 1e-5) -> None:
    """Equal integers, floats within `relative`; NaN equals NaN."""
    assert actual.dtype == wanted.dtype
    assert actual.shape == wanted.shape
    if wanted.dtype.kind == "f":
        with np.errstate(all="ignore"):
            wide_found, wide_wanted = actual.astype(np.float64), wanted.astype(np.float64)
            same = wide_found == wide_wanted
            same |= np.isnan(wide_found) & np.isnan(wide_wanted)
            same |= np.abs(wide_found - wide_wanted) <= relative * np.abs(wide_wanted)
    else:
        same = actual == wanted
    wrong = np.flatnonzero(~same)
    assert not len(wrong), f"{len(wrong)} differ, first {wrong[0]}: {actual.flat[wrong[0]]} != {wanted.flat[wrong[0]]}"


def assert_all_equal(values: Iterable[Any], expected: Iterable[Any]) -> None:
    """Equal numbers in all samples of several Tensors or Batches."""
    for value, wanted in zip(values, expected, strict=True):
        for a, b in zip(arrays_of(value), arrays_of(wanted), strict=True):
            np.testing.assert_array_equal(a, b)


def same_where(known: Any) -> Callable[[np.ndarray, np.ndarray], None]:
    """`assert_same` of some elements."""
    return lambda actual, wanted: assert_same(actual[known], wanted[known])


def value(module: Any, samples: list[np.ndarray], layout: str | None, batched: bool) -> Any:
    """A batch of the samples, or the first one as a tensor."""
    return module.batch(samples, layout=layout) if batched else module.tensor(samples[0], layout=layout)
