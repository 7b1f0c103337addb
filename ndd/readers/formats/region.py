"""`Region`: the part of an array that the arguments `roi_*` and `rel_roi_*` ask for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

Bounds = list[tuple[int, int]]  # (first, one after the last) for each axis

_STARTS = ("roi_start", "rel_roi_start")
_ENDS = ("roi_end", "rel_roi_end", "roi_shape", "rel_roi_shape")


@dataclass(frozen=True)
class Region:
    """A region of interest, for arrays of any shape.

    Attributes:
        start: (argument, numbers) of the argument for the start; None for 0.
        end: the same for the end or the extent; None for the array's end.
        axes: the axes that the numbers are for; None for all.
        policy: "error", "pad" or "trim_to_shape": the behaviour beyond the array.
    """

    start: tuple[str, tuple[float, ...]] | None
    end: tuple[str, tuple[float, ...]] | None
    axes: tuple[int, ...] | None
    policy: str

    def of(self, shape: tuple[int, ...]) -> Bounds:
        """The region in an array of this shape; it reaches beyond it only if the policy is "pad". An array without axes
        has no region. ValueError for numbers that do not fit the shape."""
        if not shape:
            return []
        axes = self._axes(len(shape))
        bounds = [(0, extent) for extent in shape]
        starts, ends = (_one_each(bound, len(axes)) for bound in (self.start, self.end))
        for place, axis in enumerate(axes):
            extent = shape[axis]
            low = self._low(starts, place, extent)
            high = self._high(starts, ends, place, low, extent)
            if high < low:
                raise ValueError(f"the region ends at {high}, before its start {low} (axis {axis} of shape {shape})")
            bounds[axis] = self._within(_rounded(low), _rounded(high), extent, axis, shape)
        return bounds

    def _within(self, first: int, after: int, extent: int, axis: int, shape: tuple[int, ...]) -> tuple[int, int]:
        if self.policy == "pad" or (first >= 0 and after <= extent):
            return first, after
        if self.policy == "error":
            raise ValueError(
                f"the region {first}:{after} lies out of bounds (axis {axis} of shape {shape}): "
                'out_of_bounds_policy="pad" or "trim_to_shape" would allow it'
            )
        return min(max(first, 0), extent), min(max(after, 0), extent)

    def _low(self, starts: tuple[float, ...] | None, place: int, extent: int) -> float:
        """Where the region begins, before rounding."""
        if starts is None or self.start is None:
            return 0
        return _share(starts[place], extent) if self.start[0] == "rel_roi_start" else int(starts[place])

    def _high(
        self, starts: tuple[float, ...] | None, ends: tuple[float, ...] | None, place: int, low: float, extent: int
    ) -> float:
        """Where it ends, before rounding."""
        if ends is None or self.end is None:
            return extent
        name, value = self.end[0], ends[place]
        if name == "roi_end":
            return int(value)
        if name == "rel_roi_end":
            return _share(value, extent)
        if value < 0:
            raise ValueError(f"{name}: expected an extent from 0, got {value}")
        if name == "roi_shape":
            return low + int(value)
        if starts is not None and self.start is not None and self.start[0] == "rel_roi_start":
            # Not in 32 bits: 0.35 of 5, and 0.35 of 5 more, end at 3.4999999, so at 3.
            return (starts[place] + value) * extent
        return low + _share(value, extent)

    def _axes(self, ndim: int) -> list[int]:
        if self.axes is None:
            return list(range(ndim))
        for axis in self.axes:
            if not -ndim <= axis < ndim:
                raise ValueError(f"roi_axes: expected axes from {-ndim} to {ndim - 1}, got {axis}")
        axes = [axis % ndim for axis in self.axes]
        if len(set(axes)) < len(axes):
            raise ValueError(f"roi_axes: an axis occurs more than once in {list(self.axes)}")
        return axes


def chosen_region(reader: str, arguments: dict[str, Any]) -> Region | None:
    """The region in a reader's arguments; None for whole arrays."""
    axes = arguments["roi_axes"] if isinstance(arguments["roi_axes"], list | tuple) else [arguments["roi_axes"]]
    start, end = _chosen(reader, arguments, _STARTS), _chosen(reader, arguments, _ENDS)
    if start is None and end is None:
        return None
    return Region(start, end, tuple(int(axis) for axis in axes) or None, arguments["out_of_bounds_policy"])


def _chosen(reader: str, arguments: dict[str, Any], names: tuple[str, ...]) -> tuple[str, tuple[float, ...]] | None:
    """The one of several arguments that the user gave, as numbers. RuntimeError if there are two."""
    chosen = [
        (name, tuple([_number(reader, name, v) for v in (value if isinstance(value, list | tuple) else [value])]))
        for name, value in ((name, arguments[name]) for name in names)
        if value is not None and value != [] and value != ()
    ]
    if len(chosen) > 1:
        raise RuntimeError(f"{reader}: {' and '.join(name for name, _ in chosen)} are mutually exclusive")
    return chosen[0] if chosen else None


def _number(reader: str, name: str, value: Any) -> float:
    """Relative numbers have 32 bits, as in DALI."""
    try:
        return float(np.float32(value)) if name.startswith("rel_") else float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{reader}: {name}: expected numbers, got {value!r}") from None


def _one_each(bound: tuple[str, tuple[float, ...]] | None, count: int) -> tuple[float, ...] | None:
    """A number for each axis; a single one serves all."""
    if bound is None:
        return None
    name, numbers = bound
    if len(numbers) == 1:
        return numbers * count
    if len(numbers) != count:
        raise ValueError(f"{name}: expected 1 number or {count}, got {len(numbers)}")
    return numbers


def _share(value: float, extent: int) -> float:
    """A share of the extent, in 32 bits as DALI has it: 0.35 of 10 is 3.5, which rounds to 4; in 64 bits it is 3.4999999."""
    return float(np.float32(value) * np.float32(extent))


def _rounded(value: float) -> int:
    """To the nearest integer, half away from zero."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))
