"""`ndd.random.uniform`: equally likely numbers from a range, or from a list of values."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ndd._cpu.draws import fill_uniform, fill_uniform_wide
from ndd._operator import PerSample, Plan, Values, bad_sample, operator, output
from ndd._operator.partition import each_run
from ndd._tensor import DType
from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import float32
from ndd.random.element_types import INTEGERS, REAL, drawn_type, fill_as
from ndd.random.result_shape import element_shapes, rank
from ndd.random.table_choice import Table, padded


@operator(random=True, dtypes=(*INTEGERS, *REAL))
def uniform(
    shape_like=None,
    /,
    *,
    dtype: DType | None = None,
    range: PerSample[list[float]] = (-1.0, 1.0),
    shape: PerSample[list[int]] = None,
    values: PerSample[list[float]] = None,
):
    """Draws equally likely numbers: reals from `range`, or elements of `values`.

    Args:
        shape_like: a value whose shape the result takes; its elements do not matter. Excludes `shape`.
        dtype: type of the elements, an integer type or float32 (default) or float64.
        range: `[low, high)`, with low < high. For integer types the ends are truncated, and a real draw between them is
            rounded: low and high occur half as often as the numbers between.
        shape: the shape of each sample. Default: a single number.
        values: numbers to choose from; wins over `range`.
        rng: an `RNG`; without it the thread's default one. A call advances it by seven words.

    An element is `low + (high' - low) * word / 2**32` with `high'` the float before `high`, a 64-bit word in float64
    (and for 32- and 64-bit integers), rounded once. Sample `i` and element `e` determine the word: a longer batch
    begins with the samples of a shorter one, and CPU and GPU give the same numbers. They equal DALI's on the CPU, except for
    integer ends outside the type, which saturate (in DALI they wrap). The result has no layout.

    Raises RuntimeError for other types (bool and float16), for a `range` that is not two numbers with low < high, for
    empty or nested `values`, for negative extents, and for `shape` beside `shape_like`; ValueError for an `rng` that
    is no `RNG`.

    >>> import ndd
    >>> ndd.random.uniform(range=(0, 1), shape=[3], rng=ndd.random.RNG(5)).torch()
    tensor([0.0090, 0.4377, 0.2447])
    >>> ndd.random.uniform(values=[2, 3, 5], dtype=ndd.uint8, batch_size=4, rng=ndd.random.RNG(5)).torch()
    tensor([2, 2, 2, 3], dtype=torch.uint8)
    """
    return output(float32 if dtype is None else dtype, rank(shape_like, shape))


@uniform.plan
def _(call, shape_like, *, dtype, range, shape, values):
    dtype = dtype or float32
    shapes = element_shapes(call, shape_like, shape)
    per_sample: dict[str, Any] = {"stream": call.draws.streams(call.n)}
    if values is not None:
        table = _table(values, dtype)
        per_sample["place"] = table.places(call.n)
        return Plan(shapes, per_sample, {"table": table, "affine": None})
    per_sample["affine"] = _affine(range, dtype)
    return Plan(shapes, per_sample, {"table": None, "place": None})


# A batch: the numbers of small samples are drawn in one compiled call.
@uniform.batch
def _(call, plan, shape_like, out):
    streams, table = plan.per_sample["stream"], plan.shared["table"]

    def draw(samples: slice, numbers: np.ndarray) -> None:
        rows = numbers.reshape(len(numbers), -1)
        if table is not None:
            table.fill(rows, streams[samples], plan.per_sample["place"][samples])
            return
        affine = plan.per_sample["affine"][samples]
        fill = fill_uniform_wide if affine.dtype == np.float64 else fill_uniform
        fill_as(rows, affine.dtype, lambda draws: fill(draws, streams[samples], affine))

    each_run(call, [out], draw)


@uniform.cuda("uniform.cu")
def _(launch, shape_like, out, *, stream, place=None, table=None):
    if table is None:
        launch("uniform")
    else:
        table.launch(launch, stream, place, out.sizes, np.ones(len(stream)))


def _table(values: Values, dtype: DType) -> Table:
    """The values as elements of the result, a row for each sample or one for all."""
    rows = values.distinct()
    for i, row in enumerate(rows):
        if row.ndim != 1:
            raise bad_sample(
                i, f"argument 'values': expected one list of numbers, got an array of shape {tuple(row.shape)}"
            )
        if not len(row):
            raise bad_sample(i, "argument 'values': expected at least one value, got none")
    items, counts = padded(rows)
    return Table(items if dtype == float32 else convert_array(items, "f32", dtype.name), counts)


def _affine(range: Values, dtype: DType) -> np.ndarray:
    """The numbers that map a word to each sample's range: start, scale and the greatest number allowed, `[n, 3]`."""
    ends = range.rows(2, meaning="(low, high)")
    affine = np.empty((len(ends), 3), drawn_type(dtype))
    if not range.varies:
        affine[:] = _affine_of(*ends[0].tolist(), dtype)
        return affine
    for i, (low, high) in enumerate(ends.tolist()):
        try:
            affine[i] = _affine_of(low, high, dtype)
        except RuntimeError as error:
            raise bad_sample(i, str(error)) from None
    return affine


@functools.lru_cache(maxsize=4096)
def _affine_of(low: float, high: float, dtype: DType) -> np.ndarray:
    if not low < high:
        raise RuntimeError(f"argument 'range': expected low < high, got [{low:g}, {high:g})")
    real = drawn_type(dtype)
    start, end = real(low), real(high)
    if dtype.name not in REAL:
        limits = np.iinfo(dtype.numpy)
        start, end = np.clip(np.trunc([start, end]), real(limits.min), real(limits.max)).astype(real)
    last = np.nextafter(end, start)
    with np.errstate(over="ignore"):
        return np.array([start, (last - start) * real(2.0**-64 if real is np.float64 else 2.0**-32), last], real)
