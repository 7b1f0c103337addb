"""`ndd.random.uniform`: equally likely numbers of a range, or of a list of values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._cpu.draws import fill_uniform, fill_uniform_wide
from ndd._operator import PerSample, Plan, bad_sample, operator, output
from ndd._operator.run import current_invocation
from ndd._tensor import DType
from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import float32
from ndd.random.elements import NUMBERS, REAL, check_type, drawn_type, fill_as
from ndd.random.extents import element_shapes, rank
from ndd.random.picks import Table, padded


@operator(random=True)
def uniform(
    shape_like=None,
    /,
    *,
    dtype: DType | None = None,
    range: PerSample[list[float]] = (-1.0, 1.0),
    shape: PerSample[list[int]] = None,
    values: PerSample[list[float]] = None,
):
    """Draws numbers that are equally likely: reals of `range`, or elements of `values`.

    Args:
        shape_like: a value whose shape the result takes; its elements do not matter. Excludes `shape`.
        dtype: type of the elements, an integer type or float32 (default) or float64.
        range: `[low, high)`, with low < high. As integers, the ends are the numbers that they truncate to, and a
            real draw between them is rounded: low and high come up half as often as what lies between.
        shape: of each sample; a single number each without it.
        values: numbers to choose from; wins over `range`.
        rng: an `RNG`; without it the thread's default one. A call moves it on by seven words.

    An element is `low + (high' - low) * word / 2**32` with `high'` the float before `high`, a 64-bit word in float64
    (and for 32- and 64-bit integers), rounded once. Sample `i` and element `e` determine the word: a longer batch
    begins with the samples of a shorter one, and CPU and GPU give the same numbers. Equal to DALI's on the CPU.
    The result has no layout.

    >>> import ndd
    >>> ndd.random.uniform(range=(0, 1), shape=[3], rng=ndd.random.RNG(5)).torch()
    tensor([0.0090, 0.4377, 0.2447])
    >>> ndd.random.uniform(values=[2, 3, 5], dtype=ndd.uint8, batch_size=4, rng=ndd.random.RNG(5)).torch()
    tensor([2, 2, 2, 3], dtype=torch.uint8)
    """
    return output(float32 if dtype is None else dtype, rank(shape_like, shape))


@uniform.plan
def _(shape_like, *, dtype, range, shape, values, words):
    n = current_invocation().n
    dtype = float32 if dtype is None else dtype
    check_type(dtype, NUMBERS)
    shapes = element_shapes(shape_like, shape, n)
    per_sample: dict[str, Any] = {"stream": words.streams(n)}
    if values is not None:
        table = _table(values, dtype)
        per_sample["place"] = table.places(n)
        return Plan(shapes, per_sample, {"dtype": dtype, "table": table, "start": None, "scale": None, "last": None})
    for name, column in zip(("start", "scale", "last"), _affine(range, n, dtype), strict=True):
        per_sample[name] = column[:, None]
    return Plan(shapes, per_sample, {"dtype": dtype, "table": None, "place": None})


@uniform.cpu
def _(shape_like, out, stream, start, scale, last, place, dtype, table):
    _fill(out[None], stream[None], start, scale, last, None if place is None else place[None], dtype, table)


@uniform.cpu_batch
def _(out, stream, start, scale, last, place, dtype, table):
    _fill(out, stream, start, scale, last, place, dtype, table)


def _fill(out, streams, start, scale, last, places, dtype, table) -> None:
    out = out.reshape(len(streams), -1)
    if table is not None:
        table.fill(out, streams, places)
        return
    fill = fill_uniform_wide if start.dtype == np.float64 else fill_uniform
    parameters = start.reshape(-1), scale.reshape(-1), last.reshape(-1)
    fill_as(out, dtype, start.dtype, lambda draws: fill(draws, streams, *parameters))


@uniform.cuda("uniform.cu")
def _(launch, shape_like, out, *, stream, place=None, table=None):
    if table is None:
        launch("uniform")
    else:
        table.launch(launch, stream, place, out.shape_array.prod(axis=1))


def _table(values: Any, dtype: DType) -> Table:
    """The values as elements of the result, a row for each sample or one for all."""
    rows = values if isinstance(values, list) else np.atleast_2d(values)
    for i, r in enumerate(rows):
        if not len(r):
            raise bad_sample(i, "argument 'values': expected at least one value, got none")
    if isinstance(rows, list):
        items, counts = padded(rows)
    else:
        items, counts = np.ascontiguousarray(rows), np.full(len(rows), rows.shape[1])
    return Table(items if dtype == float32 else convert_array(items, "f32", dtype.name), counts)


def _affine(range: Any, n: int, dtype: DType) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What makes a word an element of each sample's range: start, scale and the greatest number allowed."""
    ends = np.asarray(range, np.float32) if not isinstance(range, list) else None
    if ends is None or ends.shape[-1] != 2:
        raise RuntimeError(f"argument 'range': expected two numbers, low and high, got {_described(range)}")
    ends = np.broadcast_to(ends, (n, 2))
    for i in np.flatnonzero(~(ends[:, 0] < ends[:, 1]))[:1]:
        raise bad_sample(int(i), f"argument 'range': expected low < high, got [{ends[i, 0]:g}, {ends[i, 1]:g})")
    real = drawn_type(dtype)
    ends = ends.astype(real)
    if dtype not in REAL:
        limits = np.iinfo(dtype.numpy)
        ends = np.clip(np.trunc(ends), real(limits.min), real(limits.max))
    start, end = ends[:, 0].copy(), ends[:, 1]
    last = np.nextafter(end, start)
    with np.errstate(over="ignore"):
        scale = (last - start) * real(2.0**-64 if real is np.float64 else 2.0**-32)
    return start, scale, last


def _described(range: Any) -> str:
    return f"lengths {[len(r) for r in range]}" if isinstance(range, list) else str(np.asarray(range).tolist())
