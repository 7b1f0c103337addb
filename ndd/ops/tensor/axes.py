"""Axes by number or by letter, and arguments that list one number for each axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._operator import Values


def axes_of(axes: Values | np.ndarray | None, names: str | None, layout: str | None, ndim: int) -> np.ndarray:
    """The chosen axes as int64 `[1, k]`, or `[N, k]` if they differ between samples; all axes if none are given.

    RuntimeError for axes that do not exist, or are repeated.
    """
    if names is not None and axes is not None:
        raise RuntimeError("`axes` and `axis_names` exclude each other: give one")
    if names:
        named = [_axis_named(letter, layout) for letter in names]
        if len(set(named)) != len(named):
            raise RuntimeError(f"`axis_names`: an axis occurs more than once in {names!r}")
        return np.array([named], np.int64)
    numbers = axes if not isinstance(axes, Values) else axes.rows() if axes.varies else axes.constant
    if numbers is None or numbers.shape[-1] == 0:
        return np.arange(ndim, dtype=np.int64)[None]
    chosen = np.atleast_2d(numbers)
    if chosen.min() < -ndim or chosen.max() >= ndim:
        wrong = chosen[(chosen < -ndim) | (chosen >= ndim)][0]
        raise RuntimeError(f"`axes`: {wrong} is out of range for {ndim} axes: expected {-ndim} to {ndim - 1}")
    chosen = np.where(chosen < 0, chosen + ndim, chosen)
    for row in chosen.tolist():
        if len(set(row)) != len(row):
            raise RuntimeError(f"`axes`: an axis occurs more than once in {row}")
    return chosen


def check_axes(axes: Any, names: str | None, layout: str | None, ndim: int | None) -> None:
    """Raises the errors of `axes_of` that are known at the call: for letters, and for axes that are equal for all samples."""
    if names or isinstance(axes, np.ndarray):
        axes_of(axes, names, layout, ndim or 0)


def unless_empty(value: Any) -> Any:
    """A vector argument, or None for an empty list, which DALI treats as missing. Works at the call and in a plan."""
    if isinstance(value, Values):
        rows = value.distinct()
        return value if any([row.size for row in rows]) else None
    return None if isinstance(value, np.ndarray) and not value.size else value


def _axis_named(letter: str, layout: str | None) -> int:
    place = (layout or "").find(letter)
    if place < 0:
        raise RuntimeError(f"`axis_names`: there is no axis {letter!r} in the layout {layout or ''!r}")
    return place
