"""Computes (x - centre) * factor + shift, with a centre and a factor for every kept element, and computes both if necessary."""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import each, empty
from ndd._compiled.jit import kernel
from ndd._cpu.reduction import accumulator, deviations, further, repeat, sums

_LINE = 256
FEW = 1 << 12  # up to this many elements one loop serves all types
_MANY = 1 << 11  # up to this many rows the interpreter takes less time than compiling


@kernel
def _shifted(line, out, centre, factor, shift):
    for j in range(line.size):
        out[j] = (np.float32(line[j]) - centre[j]) * factor[j] + shift


@_shifted.fallback
def _(line, out, centre, factor, shift):
    out[:] = (line.astype(np.float32) - centre[: line.size]) * factor[: line.size] + shift


@kernel
def _in_lines(x, out, outer, rows, inner, centre, factor, shift, centres, factors):
    wide, size = centres.size, rows * inner
    if size <= 64:
        for o in range(outer):
            for r in range(rows):
                for i in range(inner):
                    at = o * size + r * inner + i
                    out[at] = (np.float32(x[at]) - centre[o * inner + i]) * factor[o * inner + i] + shift
        return
    for o in range(outer):
        repeat(centre[o * inner : (o + 1) * inner], centres)
        repeat(factor[o * inner : (o + 1) * inner], factors)
        source, target = x[o * size : (o + 1) * size], out[o * size : (o + 1) * size]
        for start in range(0, size, wide):
            _shifted(source[start : start + wide], target[start : start + wide], centres, factors, shift)


def shift_and_scale(x: np.ndarray, out: np.ndarray, centre: np.ndarray, factor: np.ndarray, shift: float) -> None:
    """Computes `out`, float32, from `x`. `centre` and `factor` are float32 and broadcast to `x`."""
    centre, factor = (v.reshape((1,) * (x.ndim - v.ndim) + v.shape) for v in (centre, factor))
    stretched = [d for d in range(x.ndim) if centre.shape[d] == factor.shape[d] == 1]
    run = not stretched or stretched == list(range(stretched[0], stretched[-1] + 1))
    if x.size < 1 << 12 or not run or centre.shape != factor.shape:
        np.multiply(np.subtract(x, centre, dtype=np.float32), factor, out=out)
        if shift:
            out += np.float32(shift)
        return
    first, last = (stretched[0], stretched[-1] + 1) if stretched else (x.ndim, x.ndim)
    outer, rows, inner = (int(np.prod(x.shape[a:b])) for a, b in ((0, first), (first, last), (last, x.ndim)))
    wide = inner * max(1, min(rows, _LINE // max(1, inner)))
    _in_lines(
        x.reshape(-1), out.reshape(-1), outer, rows, inner, centre.reshape(-1), factor.reshape(-1), np.float32(shift),
        np.empty(wide, np.float32), np.empty(wide, np.float32),
    )  # fmt: skip


def normalize_run(
    x: np.ndarray, out: np.ndarray, extents: tuple[int, int, int], centre: np.ndarray, factor: np.ndarray,
    ddof: int, epsilon: float, scale: float, shift: float,
) -> None:  # fmt: skip
    """Computes `out`, float32, from `x` viewed as `extents` = outer, rows, inner, normalised over the rows.

    `centre` and `factor`, float32, have a number for every kept element, or one number; empty ones are computed.
    """
    outer, rows, inner = extents
    numbers = (ddof, np.float32(epsilon), scale, np.float32(shift))
    if inner == 1 and x.dtype == np.float32 and not centre.size and not factor.size:
        normalize_rows(x.reshape(-1), out.reshape(-1), rows, *numbers)
        return
    if x.size <= FEW:
        _normalize_few(x.astype(np.float64).reshape(-1), out.reshape(-1), outer, rows, inner, centre, factor, *numbers)
        return
    types = further("sum", x.dtype, accumulator("sum", x.dtype, out.dtype))
    normalize_many(x.reshape(-1), out.reshape(-1), outer, rows, inner, centre, factor, *numbers, *types)


@kernel(fastmath={"reassoc", "contract"})
def normalize_rows(x, out, rows, ddof, epsilon, scale, shift):
    """Normalises each row of `rows` adjacent float32 numbers, which stay in the cache."""
    for first in range(0, x.size, max(1, rows)):
        row, target = x[first : first + rows], out[first : first + rows]
        total = 0.0
        for i in range(rows):
            total += row[i]
        mean = np.float32(total / rows)
        total, centre = 0.0, np.float64(mean)
        for i in range(rows):
            difference = row[i] - centre
            total += difference * difference
        gain = _chosen_factor(total, rows, ddof, epsilon, scale)
        for i in range(rows):
            target[i] = (row[i] - mean) * gain + shift


@kernel
def _chosen_factor(total, rows, ddof, epsilon, scale):
    """scale / sqrt(variance + epsilon); 0 if variance + epsilon is 0."""
    variance = total / (rows - ddof) if rows > ddof else 0.0
    variance += epsilon
    return np.float32(scale / np.sqrt(variance)) if variance > 0 else np.float32(0)


@_chosen_factor.fallback
def _(total, rows, ddof, epsilon, scale):
    variance = (total / (rows - ddof) if rows > ddof else np.zeros_like(total)) + epsilon
    return np.where(variance > 0, scale / np.sqrt(variance), 0).astype(np.float32)


@kernel
def _normalize_few(x, out, outer, rows, inner, centre, factor, ddof, epsilon, scale, shift):
    """Normalises few numbers, in float64."""
    for o in range(outer):
        for i in range(inner):
            first, last = o * rows * inner + i, (o + 1) * rows * inner
            kept = o * inner + i
            if centre.size:
                mean = centre[kept if centre.size > 1 else 0]
            else:
                total = 0.0
                for at in range(first, last, inner):
                    total += np.float64(x[at])
                mean = np.float32(total / rows)
            if factor.size:
                gain = factor[kept if factor.size > 1 else 0]
            else:
                total = 0.0
                for at in range(first, last, inner):
                    total += (np.float64(x[at]) - mean) * (np.float64(x[at]) - mean)
                gain = _chosen_factor(total, rows, ddof, epsilon, scale)
            for at in range(first, last, inner):
                out[at] = (np.float32(x[at]) - mean) * gain + shift


@kernel
def normalize_many(x, out, outer, rows, inner, centre, factor, ddof, epsilon, scale, shift, wide, narrow):
    """Normalises one sample, 1-D, to `out`, 1-D. `wide` and `narrow` are those of `sums`; for the others see
    `normalize_run`."""
    kept = outer * inner
    mean, gain = empty(kept, np.float32), empty(kept, np.float32)
    if centre.size:
        for k in each(kept):
            mean[k] = centre[k if centre.size > 1 else 0]
    else:
        sums(x, mean, outer, rows, inner, wide, narrow, 1, rows)
    if factor.size:
        for k in each(kept):
            gain[k] = factor[k if factor.size > 1 else 0]
    else:
        squares = empty(kept, np.float64)
        deviations(x, squares, outer, rows, inner, mean, 0, 1)
        for k in each(kept):
            gain[k] = _chosen_factor(squares[k], rows, ddof, epsilon, scale)
    line = inner * max(1, min(rows, _LINE // max(1, inner)))
    _in_lines(x, out, outer, rows, inner, mean, gain, shift, empty(line, np.float32), empty(line, np.float32))


@normalize_many.fallback
def _(x, out, outer, *numbers):
    (normalize_many.interpreted if outer <= _MANY else normalize_many.waited_for)(x, out, outer, *numbers)
