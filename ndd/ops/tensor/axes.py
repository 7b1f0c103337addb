"""Axes by number or by letter, and arguments that list one number for each axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._operator import bad_sample


def axes_of(axes: Any, names: str | None, layout: str | None, ndim: int) -> np.ndarray:
    """The chosen axes as int64 `[1, k]`, or `[N, k]` if they differ between samples; all axes if none are given.

    RuntimeError for axes that are not there, or there twice.
    """
    if names is not None and axes is not None:
        raise RuntimeError("`axes` and `axis_names` exclude each other: give one")
    if names:
        found = [_axis_named(letter, layout) for letter in names]
        if len(set(found)) != len(found):
            raise RuntimeError(f"`axis_names`: an axis occurs more than once in {names!r}")
        return np.array([found], np.int64)
    if axes is None or (isinstance(axes, np.ndarray) and axes.shape[-1] == 0):
        return np.arange(ndim, dtype=np.int64)[None]
    if isinstance(axes, list):
        raise RuntimeError("`axes` must have the same number of elements for every sample")
    found = np.asarray(axes, np.int64)
    found = found[None] if found.ndim == 1 else found
    if found.size and (found.min() < -ndim or found.max() >= ndim):
        wrong = found[(found < -ndim) | (found >= ndim)][0]
        raise RuntimeError(f"`axes`: {wrong} is out of range for {ndim} axes: expected {-ndim} to {ndim - 1}")
    found = np.where(found < 0, found + ndim, found)
    for row in found.tolist():
        if len(set(row)) != len(row):
            raise RuntimeError(f"`axes`: an axis occurs more than once in {row}")
    return found


def unless_empty(value: Any) -> Any:
    """A vector argument, or None for an empty list: DALI counts that as not given."""
    return None if isinstance(value, np.ndarray) and not value.size else value


def _axis_named(letter: str, layout: str | None) -> int:
    place = (layout or "").find(letter)
    if place < 0:
        raise RuntimeError(f"`axis_names`: there is no axis {letter!r} in the layout {layout or ''!r}")
    return place


def per_axis(name: str, values: Any, like: np.ndarray) -> np.ndarray:
    """A vector argument as an array that broadcasts to `like` `[N, axes]`; a single number goes for all axes."""
    count = like.shape[1]
    if isinstance(values, list):
        sizes = sorted({len(v) for v in values})
        raise RuntimeError(f"`{name}` must have the same number of elements for every sample, got {sizes}")
    found = np.asarray(values)
    if found.shape[-1] != count and found.shape[-1] != 1:
        text = f"`{name}` needs {count} elements, one for each axis, got {found.shape[-1]}"
        raise RuntimeError(text) if found.ndim == 1 else bad_sample(0, text)
    return found
