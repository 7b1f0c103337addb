"""Sums, squares, deviations and extremes over axes of one array.

A large array is viewed as `[outer, rows, inner]`, with the rows to be reduced. It is read in lines of `wide` elements, a
multiple of `inner`, with an accumulator for each position of a line, so that the loops are long and independent. Integers
accumulate in 64 bits (they wrap), floats in float64.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel

COMPILED_FROM = 1 << 13
_LINE = 512  # elements
_LINES = 1 << 14  # lines whose 16-bit numbers, or squares of 8-bit numbers, a 32-bit sum can hold
_SHORT = 32  # elements that are summed one by one
_STEPS = 1 << 14  # steps that the interpreter takes in 30 ms, less than compiling


@kernel
def add(acc, line):
    """acc += line."""
    for j in range(line.size):
        acc[j] += line[j]


@add.fallback
def _(acc, line):
    acc[: line.size] += line


@kernel
def add_squares(acc, line):
    """acc += line**2, in the type of acc."""
    zero = acc[0] - acc[0]
    for j in range(line.size):
        value = zero + line[j]
        acc[j] += value * value


@add_squares.fallback
def _(acc, line):
    acc[: line.size] += np.square(line, dtype=acc.dtype)


@kernel
def add_deviations(acc, line, centre):
    """acc += (line - centre)**2."""
    for j in range(line.size):
        value = line[j] - centre[j]
        acc[j] += value * value


@add_deviations.fallback
def _(acc, line, centre):
    acc[: line.size] += np.square(line - centre[: line.size])


@kernel
def lower(acc, line):
    """acc = line if that is less."""
    for j in range(line.size):
        acc[j] = line[j] if line[j] < acc[j] else acc[j]


@lower.fallback
def _(acc, line):
    np.copyto(acc[: line.size], line, where=line < acc[: line.size])


@kernel
def raise_to(acc, line):
    """acc = line if that is greater."""
    for j in range(line.size):
        acc[j] = line[j] if line[j] > acc[j] else acc[j]


@raise_to.fallback
def _(acc, line):
    np.copyto(acc[: line.size], line, where=line > acc[: line.size])


@kernel
def fold(out, acc, inner):
    """out[i] = sum of acc at i, i + inner, ..."""
    for i in range(inner):
        total = acc[i]
        for j in range(i + inner, acc.size, inner):
            total += acc[j]
        out[i] = total


@fold.fallback
def _(out, acc, inner):
    total = acc[:inner].copy()
    for j in range(inner, acc.size, inner):
        total += acc[j : j + inner]
    out[:inner] = total


@kernel
def repeat(values, out):
    """out[j] = values[j % values.size]."""
    for j in range(out.size):
        out[j] = values[j % values.size]


@repeat.fallback
def _(values, out):
    out[:] = np.resize(values, out.size)


@kernel
def line_size(rows, inner):
    """The number of accumulators of a line."""
    return max(1, inner * max(1, min(rows, _LINE // max(1, inner))))


@kernel
def _averaged(total, finish, divisor):
    """See `FINISHES`."""
    mean = total / divisor
    return np.sqrt(mean) if finish == 2 else mean


@kernel
def sums(x, out, outer, rows, inner, wide, narrow, finish, divisor):
    """out[o, i] = `finish` of the sum over r of x[o, r, i], accumulated in the type of `wide`, and for a few lines in that of
    `narrow`."""
    size, line = rows * inner, line_size(rows, inner)
    acc, part, totals = empty(line, wide.dtype), empty(line, narrow.dtype), empty(inner, wide.dtype)
    for o in range(outer):
        if size <= _SHORT:
            acc[0] = 0
            zero = acc[0]
            for i in range(inner):
                total = zero
                for r in range(rows):
                    total += x[o * size + r * inner + i]
                totals[i] = total
        else:
            own = x[o * size : (o + 1) * size]
            acc[:] = 0
            for block in range(0, size, line * _LINES):
                part[:] = 0
                for start in range(block, min(block + line * _LINES, size), line):
                    add(part, own[start : start + line])
                add(acc, part)
            fold(totals, acc, inner)
        for i in range(inner):
            if finish:
                out[o * inner + i] = _averaged(totals[i], finish, divisor)
            else:
                out[o * inner + i] = totals[i]


@kernel
def squares(x, out, outer, rows, inner, wide, narrow, finish, divisor):
    """Does the same as `sums` for x[o, r, i]**2."""
    size, line = rows * inner, line_size(rows, inner)
    acc, part, totals = empty(line, wide.dtype), empty(line, narrow.dtype), empty(inner, wide.dtype)
    for o in range(outer):
        if size <= _SHORT:
            acc[0] = 0
            zero = acc[0]
            for i in range(inner):
                total = zero
                for r in range(rows):
                    value = zero + x[o * size + r * inner + i]
                    total += value * value
                totals[i] = total
        else:
            own = x[o * size : (o + 1) * size]
            acc[:] = 0
            for block in range(0, size, line * _LINES):
                part[:] = 0
                for start in range(block, min(block + line * _LINES, size), line):
                    add_squares(part, own[start : start + line])
                add(acc, part)
            fold(totals, acc, inner)
        for i in range(inner):
            if finish:
                out[o * inner + i] = _averaged(totals[i], finish, divisor)
            else:
                out[o * inner + i] = totals[i]


@kernel
def deviations(x, out, outer, rows, inner, mean, finish, divisor):
    """Does the same as `sums` for (x[o, r, i] - mean[o, i])**2, in float64. `mean` may be one number."""
    size, line = rows * inner, line_size(rows, inner)
    acc, centres = empty(line, np.float64), empty(line, np.float64)
    totals, centre = empty(inner, np.float64), empty(inner, np.float64)
    for o in range(outer):
        for i in range(inner):
            centre[i] = mean[o * inner + i if mean.size > 1 else 0]
        if size <= _SHORT:
            for i in range(inner):
                total = 0.0
                for r in range(rows):
                    value = x[o * size + r * inner + i] - centre[i]
                    total += value * value
                totals[i] = total
        else:
            acc[:] = 0
            repeat(centre, centres)
            own = x[o * size : (o + 1) * size]
            for start in range(0, size, line):
                add_deviations(acc, own[start : start + line], centres)
            fold(totals, acc, inner)
        for i in range(inner):
            if finish:
                out[o * inner + i] = _averaged(totals[i], finish, divisor)
            else:
                out[o * inner + i] = totals[i]


@kernel
def smallest(x, out, outer, rows, inner, first):
    """out[o, i] = the smallest of x[o, r, i] and `first`, ignoring NaN."""
    size, line = rows * inner, line_size(rows, inner)
    acc = empty(line, x.dtype)
    for o in range(outer):
        if size <= _SHORT:
            for i in range(inner):
                best = first
                for r in range(rows):
                    value = x[o * size + r * inner + i]
                    best = value if value < best else best
                out[o * inner + i] = best
            continue
        own = x[o * size : (o + 1) * size]
        acc[:] = first
        for start in range(0, size, line):
            lower(acc, own[start : start + line])
        for i in range(inner):
            best = acc[i]
            for j in range(i + inner, line, inner):
                best = acc[j] if acc[j] < best else best
            out[o * inner + i] = best


@kernel
def largest(x, out, outer, rows, inner, first):
    """out[o, i] = the largest of x[o, r, i] and `first`, ignoring NaN."""
    size, line = rows * inner, line_size(rows, inner)
    acc = empty(line, x.dtype)
    for o in range(outer):
        if size <= _SHORT:
            for i in range(inner):
                best = first
                for r in range(rows):
                    value = x[o * size + r * inner + i]
                    best = value if value > best else best
                out[o * inner + i] = best
            continue
        own = x[o * size : (o + 1) * size]
        acc[:] = first
        for start in range(0, size, line):
            raise_to(acc, own[start : start + line])
        for i in range(inner):
            best = acc[i]
            for j in range(i + inner, line, inner):
                best = acc[j] if acc[j] > best else best
            out[o * inner + i] = best


KERNELS: dict[str, Any] = {
    "sum": sums, "square": squares, "deviation": deviations, "min": smallest, "max": largest,
}  # fmt: skip

FINISHES = ("plain", "mean", "root")
"""The last step of a sum, in float64: none, division by a number, or division and square root."""


def is_short(outer: int, rows: int, inner: int) -> bool:
    """Whether the interpreter reduces an array in less time than compiling takes."""
    size, wide = rows * inner, line_size.function(rows, inner)
    return outer * (size if size <= _SHORT else size // wide + wide) <= _STEPS


for _function in KERNELS.values():
    _function.fallback_if(lambda x, out, *extents: is_short(*extents[:3]))


def runs(shape: Sequence[Any], axes: Sequence[int]) -> list[tuple[Any, bool]]:
    """Joins adjacent axes that are all kept or all reduced: (extent, reduced). An extent is a number, or an array with one for
    each sample."""
    axis_runs: list[tuple[Any, bool]] = []
    for d, extent in enumerate(shape):
        reduced = d in axes
        if axis_runs and axis_runs[-1][1] == reduced:
            axis_runs[-1] = (axis_runs[-1][0] * extent, reduced)
        else:
            axis_runs.append((extent, reduced))
    return axis_runs


@functools.cache
def extreme(kind: str, dtype: np.dtype) -> Any:
    """The initial value of a minimum or maximum: the largest or smallest finite number."""
    info: Any = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    return info.max if kind == "min" else info.min


def accumulator(kind: str, source: np.dtype, result: np.dtype) -> np.dtype:
    """The type in which `kind` accumulates elements of `source` for a result of type `result`."""
    if kind in ("min", "max"):
        return source
    if source.kind == "f" or kind == "deviation":
        return np.dtype(np.float64)
    exact = 4 if kind == "sum" else 2  # up to this many bytes a 64-bit integer holds the exact value
    if result.kind == "f" and source.itemsize > exact:
        return np.dtype(np.float64)
    return np.dtype(np.uint64 if source.kind == "u" else np.int64)


def narrower(kind: str, source: np.dtype, total: np.dtype) -> np.dtype:
    """The type in which a few lines are accumulated before they are added to `total`."""
    narrow = total.kind != "f" and source.itemsize <= (2 if kind == "sum" else 1)
    return np.dtype(f"{total.kind}4") if narrow else total


def further(kind: str, source: np.dtype, total: np.dtype) -> tuple[Any, ...]:
    """The arguments of the kernel of `kind` for elements of `source` before `finish` and `divisor`: types, as empty arrays, or
    the initial value of an extreme. (For deviations it is the mean: one number, or one for each kept element.)"""
    if kind in ("min", "max"):
        return (total.type(extreme(kind, total)),)
    return np.empty(0, total), np.empty(0, narrower(kind, source, total))


def accumulate(
    kind: str, x: np.ndarray, axes: Sequence[int], result: np.dtype, mean: np.ndarray | None = None
) -> np.ndarray:
    """`kind` ("sum", "square", "deviation", "min", "max") of `x` over `axes`, flat, in the accumulator's type.

    `mean`, for deviations, broadcasts to `x`.
    """
    total = accumulator(kind, x.dtype, result)
    if x.size < COMPILED_FROM:  # (the caller has turned off NumPy's warnings of overflow)
        return _by_numpy(kind, x, axes, total, mean)
    groups = runs(x.shape, axes)
    several = sum(reduced for _, reduced in groups) > 1
    if several and kind == "deviation":
        x, kind = np.square(x - np.asarray(mean, np.float64)), "sum"
    while True:
        last = max((g for g in range(len(groups)) if groups[g][1]), default=-1)
        outer = inner = rows = 1
        for g, (extent, _) in enumerate(groups):
            if g < last:
                outer *= extent
            elif g > last:
                inner *= extent
            else:
                rows = extent
        x = _one_run(kind, x.reshape(-1), outer, rows, inner, total, mean)
        groups = groups[:last] + groups[last + 1 :] if last >= 0 else []
        if not any(reduced for _, reduced in groups):
            return x
        kind = kind if kind in ("min", "max") else "sum"


def _one_run(
    kind: str, x: np.ndarray, outer: int, rows: int, inner: int, total: np.dtype, mean: np.ndarray | None
) -> np.ndarray:
    out = np.empty(outer * inner, total)
    if kind == "deviation":
        centres = np.broadcast_to(np.asarray(mean, np.float32).reshape(-1), (outer * inner,))
        KERNELS[kind](x, out, outer, rows, inner, np.ascontiguousarray(centres), 0, 1)
    else:
        KERNELS[kind](
            x, out, outer, rows, inner, *further(kind, x.dtype, total), *([] if kind in ("min", "max") else [0, 1])
        )
    return out


def _by_numpy(kind: str, x: np.ndarray, axes: Sequence[int], total: np.dtype, mean: np.ndarray | None) -> np.ndarray:
    over = tuple(axes)
    if kind in ("min", "max"):
        pick = np.fmin if kind == "min" else np.fmax
        return np.asarray(pick.reduce(x, axis=over, initial=extreme(kind, x.dtype))).reshape(-1)
    if kind == "square":
        x = np.square(x, dtype=total, casting="unsafe")
    elif kind == "deviation":
        x = np.square(x - np.asarray(mean, np.float64))
    return np.asarray(np.add.reduce(x, axis=over, dtype=total)).reshape(-1)
