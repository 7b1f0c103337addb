"""Reductions of one sample on the CPU. See `_cpu/reduction.py` for the numbers.

If the reduced axes are adjacent, the sample is viewed as `[outer, rows, inner]`, and its rows are reduced. Otherwise it is
flat, and `extents` has the extents of its groups of axes: kept, reduced, kept, and so on, the last one kept. The last reduced
group is reduced first, into separate memory for the sample.
"""

from __future__ import annotations

import functools
from functools import partial

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import from_template, kernel
from ndd._cpu.reduction import FINISHES, accumulator, deviations, further, is_short, largest, smallest, squares, sums


@kernel
def _sums(x, out, wide, narrow, finish, ddof):
    outer, rows, inner = x.shape
    sums(x.reshape(x.size), out.reshape(out.size), outer, rows, inner, wide, narrow, finish, rows - ddof)


@kernel
def _squares(x, out, wide, narrow, finish, ddof):
    outer, rows, inner = x.shape
    squares(x.reshape(x.size), out.reshape(out.size), outer, rows, inner, wide, narrow, finish, rows - ddof)


@kernel
def _deviations(x, mean, out, finish, ddof):
    outer, rows, inner = x.shape
    deviations(x.reshape(x.size), out.reshape(out.size), outer, rows, inner, mean, finish, rows - ddof)


@kernel
def _smallest(x, out, first):
    outer, rows, inner = x.shape
    smallest(x.reshape(x.size), out.reshape(out.size), outer, rows, inner, first)


@kernel
def _largest(x, out, first):
    outer, rows, inner = x.shape
    largest(x.reshape(x.size), out.reshape(out.size), outer, rows, inner, first)


@kernel
def _split(extents, last):
    """The sample as outer, rows and inner, where group `last` is to be reduced and those after it have been."""
    outer, inner = np.int64(1), np.int64(1)
    for run in range(last):
        outer *= extents[run]
    for run in range(last + 1, len(extents), 2):
        inner *= extents[run]
    return outer, extents[last], inner


@kernel
def _add_runs(part, out, extents, finish, ddof):
    """Adds up the reduced groups before the last one, whose result is `part`."""
    divisor = np.int64(1)
    for run in range(1, len(extents), 2):
        divisor *= extents[run]
    last = len(extents) - 4
    while last > 1:
        outer, rows, inner = _split(extents, last)
        less = empty(outer * inner, part.dtype)
        sums(part, less, outer, rows, inner, part, part, 0, 1)
        part, last = less, last - 2
    outer, rows, inner = _split(extents, last)
    sums(part, out, outer, rows, inner, part, part, finish, divisor - ddof)


def _of_runs(x, out, extents, wide, narrow, finish, ddof):
    outer, rows, inner = _split(extents, len(extents) - 2)
    part = empty(outer * inner, wide.dtype)
    accumulate(x, part, outer, rows, inner, wide, narrow, 0, 1)  # type: ignore[name-defined]  # noqa: F821
    _add_runs(part, out, extents, finish, ddof)


@kernel
def _deviations_of_runs(x, mean, out, extents, finish, ddof):
    outer, rows, inner = _split(extents, len(extents) - 2)
    part = empty(outer * inner, np.float64)
    for o in range(outer):
        place, step, rest = np.int64(0), inner, np.int64(o)  # of the mean's elements for these rows
        for run in range(len(extents) - 3, -1, -1):
            if run % 2 == 0:
                place += rest % extents[run] * step
                step *= extents[run]
            rest //= extents[run]
        own = mean[place : place + inner] if mean.size > 1 else mean
        rows_here = x[o * rows * inner : (o + 1) * rows * inner]
        deviations(rows_here, part[o * inner : (o + 1) * inner], 1, rows, inner, own, 0, 1)
    _add_runs(part, out, extents, finish, ddof)


def _extreme_of_runs(x, out, extents, first):
    part, last = x, len(extents) - 2
    while last > 1:
        outer, rows, inner = _split(extents, last)
        less = empty(outer * inner, x.dtype)
        accumulate(part, less, outer, rows, inner, first)  # type: ignore[name-defined]  # noqa: F821
        part, last = less, last - 2
    outer, rows, inner = _split(extents, last)
    accumulate(part, out, outer, rows, inner, first)  # type: ignore[name-defined]  # noqa: F821


_OF_SAMPLES = {"sum": _sums, "square": _squares, "deviation": _deviations, "min": _smallest, "max": _largest}
_OF_RUNS = {
    "sum": from_template(_of_runs, _sums.function, "_of_runs", {}, accumulate=sums),
    "square": from_template(_of_runs, _squares.function, "_of_runs", {}, accumulate=squares),
    "deviation": _deviations_of_runs,
    "min": from_template(_extreme_of_runs, _smallest.function, "_of_runs", {}, accumulate=smallest),
    "max": from_template(_extreme_of_runs, _largest.function, "_of_runs", {}, accumulate=largest),
}

for _function in _OF_SAMPLES.values():
    _function.fallback_if(lambda x, *_: is_short(*x.shape))
for _function in _OF_RUNS.values():
    _function.fallback_if(lambda x, *_: is_short(x.size, 1, 1))


@functools.cache
def reducing(kind: str, finish: str, source: np.dtype, result: np.dtype, runs: int) -> partial[None]:
    """The kernel `f(x, out, ddof)` for this many groups of adjacent reduced axes; with `extents` after `out` for several of
    them, and a mean after `x` for deviations. `kind` says what is accumulated, and `finish` how it becomes the result, for
    elements of these types."""
    chosen = (_OF_SAMPLES if runs == 1 else _OF_RUNS)[kind]
    numbers = further(kind, source, accumulator(kind, source, result))
    if kind in ("min", "max"):
        return partial(chosen, first=numbers[0])
    if kind == "deviation":
        return partial(chosen, finish=FINISHES.index(finish))
    return partial(chosen, wide=numbers[0], narrow=numbers[1], finish=FINISHES.index(finish))
