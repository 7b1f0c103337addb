"""The common part of all reductions: the axes, the output, and how samples are reduced.

A new reduction is a file such as `max.py` and a line in `_COMPUTED`. If no existing sum or extreme serves, it also needs a new
kind: in `KERNELS` and the functions below it in `_cpu/reduction.py`, and a KIND in `reduce.cu`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._cpu.reduction import KERNELS, accumulate
from ndd._operator import Plan, bad_sample, operator
from ndd._tensor import DType, Spec
from ndd._tensor.dtype import float32, int64, uint64
from ndd._tensor.store import grouped, volumes
from ndd.reductions.kernels import reducing
from ndd.reductions.launches import reduce_on_gpu

_TYPES = ("u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32")
# The accumulated value, and its conversion into the result.
_COMPUTED = {
    "sum": ("sum", "plain"), "mean": ("sum", "mean"), "mean_square": ("square", "mean"), "rms": ("square", "root"),
    "variance": ("deviation", "mean"), "std_dev": ("deviation", "root"), "min": ("min", "plain"), "max": ("max", "plain"),
}  # fmt: skip


def reduction(declared: Callable[..., Any]) -> Any:
    """Declares a reduction: `declared` has the name, signature and documentation of one of those above."""
    name = declared.__name__
    kind, finish = _COMPUTED.get(name, ("", ""))
    if kind not in KERNELS:
        raise TypeError(
            f"reduction {name!r}: `_COMPUTED` of {__name__} says what it accumulates: one of {', '.join(KERNELS)}"
        )

    @functools.wraps(declared)
    def outcome(data, mean=None, /, *, axes, axis_names, keep_dims, dtype=None, ddof=0):
        if mean is not None and mean.dtype is not float32:
            text = f"`mean`: expected float32, got {mean.dtype}. Cast it with ndd.cast(mean, dtype=ndd.float32)."
            raise RuntimeError(text)
        chosen = chosen_axes(axes, axis_names, data)
        result = _result_dtype(name, data.dtype, dtype)
        if keep_dims:
            return Spec(result, data.ndim, data.layout, data.device)
        layout = "".join(letter for d, letter in enumerate(data.layout or "") if d not in chosen)
        return Spec(result, data.ndim - len(chosen), layout or None, data.device)

    about = "mean" in inspect.signature(declared).parameters
    op = operator(outcome, types=_TYPES, reads={"mean": "anywhere"} if about else "device")

    @op.plan
    def _(data, mean=None, *, axes, axis_names, keep_dims, dtype=None, ddof=0):
        chosen = chosen_axes(axes, axis_names, data)
        kept = [d for d in range(data.ndim) if d not in chosen]
        shapes = data.shapes.copy()
        shapes[:, chosen] = 1
        if mean is not None:
            _check_means(mean.sizes, volumes(data.shapes[:, kept]))
        shared = {"kind": kind, "finish": finish, "chosen": tuple(chosen), "ddof": ddof}
        compiled, result = {}, _result_dtype(name, data.dtype, dtype).numpy
        extents = grouped(data.shapes, *_ends_of_runs(chosen))
        runs = extents.shape[1] // 2
        if runs and (finish == "plain" or result.kind == "f"):
            compiled = {"kernel": reducing(kind, finish, data.dtype.numpy, result, runs), "view": "flat"}
            if runs == 1:
                compiled["view"] = {"x": extents, "mean": "flat", "out": extents[:, ::2]}
                compiled["cut"] = "whole" if about else "rows"
        per_sample = {"extents": extents} if runs > 1 else {}
        return Plan(shapes if keep_dims else shapes[:, kept], per_sample, shared, **compiled)

    op.cpu(_reduce_about if about else _reduce)
    op.cuda("reduce.cu")(_launch)
    return op


def chosen_axes(axes: Any, names: str | None, data: Any) -> list[int]:
    """The axes to reduce, sorted; all if none are given.

    IndexError for one that does not exist, ValueError for a repeated one, RuntimeError for an unknown letter.
    """
    ndim, layout = data.ndim, data.layout or ""
    if names is not None:
        if axes is not None:
            raise RuntimeError("Arguments `axes` and `axis_names` are mutually exclusive")
        for letter in names:
            if letter not in layout:
                raise RuntimeError(f"`axis_names`: axis {letter!r} is not present in the input layout {layout!r}")
        axes = [layout.index(letter) for letter in names]
    if axes is None:
        return list(range(ndim))
    chosen: list[int] = []
    for axis in map(int, axes):
        if not -ndim <= axis < ndim:
            raise IndexError(f"Axis index out of range: {axis} not in range [{-ndim},{ndim - 1}]")
        axis %= ndim
        if axis in chosen:
            raise ValueError(f"Duplicate axis index {axis}")
        chosen.append(axis)
    return sorted(chosen)


def _ends_of_runs(axes: list[int]) -> list[int]:
    """The begin and end of each group of adjacent axes."""
    ends: list[int] = []
    for axis in axes:
        if ends and ends[-1] == axis:
            ends[-1] += 1
        else:
            ends += [axis, axis + 1]
    return ends


def _result_dtype(name: str, source: DType, wanted: DType | None) -> DType:
    """The element type of the result; RuntimeError for combinations that DALI refuses."""
    if name in ("min", "max"):
        return source
    wide = uint64 if source.kind is DType.Kind.unsigned else int64
    if source is float32:
        allowed: tuple[DType, ...] = (float32,)
    elif name == "sum":
        allowed = (source,) if source.bits == 64 else (source, wide, float32)
    else:
        allowed = (wide if name == "mean_square" else source, float32)
    if wanted is None:
        return wide if name == "sum" and source is not float32 else float32
    if wanted not in allowed:
        expected = " or ".join(map(str, allowed))
        raise RuntimeError(f"Unsupported types: {source} input with dtype={wanted}. Expected {expected}.")
    return wanted


def _check_means(have: np.ndarray, want: np.ndarray) -> None:
    """RuntimeError for a sample whose mean has neither one element nor one for each element of the result."""
    for i in np.flatnonzero((have != 1) & (have != want))[:1].tolist():
        raise bad_sample(
            i, f"`mean` has {have[i]} elements: expected 1, or {want[i]}, one for each element of the result"
        )


def _reduce(input, out, kind, finish, chosen):
    _reduce_about(input, None, out, kind, finish, chosen, 0)


def _reduce_about(data, mean, out, kind, finish, chosen, ddof):
    """Reduces one sample with NumPy, in passes over one group of axes each."""
    if not chosen and mean is not None and data.ndim:
        out[...] = 0  # DALI's answer, whatever the mean
        return
    x, axes = (data, chosen) if data.ndim else (data[None], (0,))  # the sum of a number is the number
    if mean is not None:
        mean = mean.reshape([1 if mean.size == 1 or d in axes else e for d, e in enumerate(x.shape)])
    if kind in ("min", "max"):
        np.copyto(out, accumulate(kind, x, axes, out.dtype).reshape(out.shape))
        return
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    with np.errstate(all="ignore"):
        total = accumulate(kind, x, axes, out.dtype, mean).reshape(out.shape)
        if finish == "plain":
            result: Any = total
        elif out.dtype.kind == "f":
            result = np.true_divide(total, count - ddof)
        else:
            # DALI accumulates in the type of the result, which wraps, and divides in float32.
            result = total.astype(out.dtype).astype(np.float32) * (np.float32(1) / np.float32(count))
        np.copyto(out, np.sqrt(result) if finish == "root" else result, casting="unsafe")


def _launch(launch, data, *others, kind, finish, chosen, ddof):
    *mean, out = others
    if mean and not chosen and data.ndim:  # DALI's answer, whatever the mean
        launch("zeros", file="zeros.cu")
    else:
        about = (mean[0], mean[0].sizes) if mean else None
        reduce_on_gpu(launch, kind, finish, data, chosen, out, mean=about, ddof=ddof)
