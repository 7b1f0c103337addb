"""Reductions of one sample on the CPU, seen as `[outer, rows, inner]`: over the rows. See `_cpu/reduction.py` for the numbers."""

from __future__ import annotations

from functools import partial

import numpy as np

from ndd._compiled.jit import kernel
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


_OF_SAMPLES = {"sum": _sums, "square": _squares, "deviation": _deviations, "min": _smallest, "max": _largest}


for _function in _OF_SAMPLES.values():
    _function.fallback_if(lambda x, *_: is_short(*x.shape))


def reducing(kind: str, finish: str, source: np.dtype, result: np.dtype) -> partial[None]:
    """The kernel `f(x, out, ddof)`, with a mean behind `x` for deviations: `kind` is accumulated and made into results as `finish`
    says, for elements of these types."""
    found = _OF_SAMPLES[kind]
    numbers = further(kind, source, accumulator(kind, source, result))
    if kind in ("min", "max"):
        return partial(found, first=numbers[0])
    if kind == "deviation":
        return partial(found, finish=FINISHES.index(finish))
    return partial(found, wide=numbers[0], narrow=numbers[1], finish=FINISHES.index(finish))
