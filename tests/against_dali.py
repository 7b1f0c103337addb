"""Comparison with DALI's dynamic mode: the same call on both, values, metadata and errors side by side."""

from __future__ import annotations

from collections.abc import Callable
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


def arrays(value: Any) -> list[np.ndarray]:
    """The samples as NumPy arrays."""
    samples = list(value.tensors) if hasattr(value, "tensors") else [value]
    return [np.asarray(s.cpu()) for s in samples]


def differences(found: Any, expected: Any, tolerance: float = 0.0) -> str | None:
    """What differs, in words; None if nothing does."""
    if isinstance(found, Exception) or isinstance(expected, Exception):
        if type(found) is not type(expected):
            return f"ndd gives {_brief(found)}, DALI {_brief(expected)}"
        return None
    if isinstance(expected, tuple | list):
        return next(filter(None, (differences(f, e, tolerance) for f, e in zip(found, expected, strict=True))), None)
    for name in ("layout", "dtype"):
        if str(getattr(found, name)) != str(getattr(expected, name)):
            return f"{name}: ndd {getattr(found, name)}, DALI {getattr(expected, name)}"
    for i, (a, b) in enumerate(zip(arrays(found), arrays(expected), strict=True)):
        if a.shape != b.shape:
            return f"sample {i}: shape {a.shape}, DALI {b.shape}"
        if not _close(a, b, tolerance):
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


def check_same(dali: Any, call: Callable[[Any], Any], tolerance: float = 0.0, note: Any = "") -> bool:
    """Asserts that `call(ndd)` is as `call(dali)`; whether DALI gave a value (not an error)."""
    expected = outcome(dali, call)
    different = differences(outcome(ndd, call), expected, tolerance)
    assert different is None, f"{note}: {different}"
    return not isinstance(expected, Exception)


def value(module: Any, samples: list[np.ndarray], layout: str | None, batched: bool) -> Any:
    """A batch of the samples, or the first one as a tensor."""
    return module.batch(samples, layout=layout) if batched else module.tensor(samples[0], layout=layout)


def random_array(rng: np.random.Generator, shape: Any, dtype: Any) -> np.ndarray:
    """Any numbers of a type."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return (rng.standard_normal(shape) * 200).astype(kind)
    if kind.kind == "b":
        return rng.random(shape) < 0.5
    limits = np.iinfo(kind)
    return rng.integers(limits.min, limits.max, shape, dtype=kind, endpoint=True)
