"""`ndd.normalize`: shifts and scales values to mean 0 and standard deviation 1."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._cpu.ragged import count_rows
from ndd._cpu.reduction import accumulate, accumulator, further
from ndd._operator import Call, PerSample, Plan, Values, View, bad_sample, like, operator
from ndd._operator.partition import Rows, each_run, each_sample
from ndd._operator.unit_warnings import warn_of_unit_range
from ndd._tensor import DType, Store
from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import dtype as to_dtype, float32
from ndd._tensor.small_arrays import columns
from ndd._tensor.store import volumes
from ndd.ops.tensor.elementwise import index_type
from ndd.ops.tensor.normalize_kernels import FEW, normalize_many, normalize_rows, normalize_run, shift_and_scale
from ndd.reductions.launches import neighbours, reduce_on_gpu, steps
from ndd.reductions.over_axes import chosen_axes

_TYPES = ("u8", "u16", "u32", "i8", "i16", "i32", "f32")


@operator(types=_TYPES, dtypes=_TYPES)
def normalize(
    input,
    /,
    *,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    batch: bool = False,
    ddof: int = 0,
    dtype: DType | None = None,
    epsilon: float = 0.0,
    mean: PerSample[list[float]] = None,
    scale: float = 1.0,
    shift: float = 0.0,
    stddev: PerSample[list[float]] = None,
):
    """Subtracts the mean and divides by the standard deviation.

    The result is `(x - mean) / sqrt(variance + epsilon) * scale + shift`.

    Any rank and layout; integers of up to 32 bits and float32. The mean and the variance are those of each sample, over
    all axes or the chosen ones. Where the variance is 0, the result is `shift`.

    Args:
        axes: the axes over which to average. Default: all; with a `mean` or `stddev` array, those of extent 1 in it.
        axis_names: the same by letters of the layout.
        batch: average over all samples of the batch together; their other axes must then agree.
        ddof: the number to subtract from the number of elements, by which the variance is divided.
        dtype: the element type of the result. Default: float32. Values of an integer type are rounded half away from zero, and
            saturate.
        epsilon: added to the variance, or to the square of `stddev`.
        mean: the mean to subtract in place of the computed one; the variance is then relative to it. One number, or an
            array (for all samples, or a Batch) with extent 1 along the averaged axes. A plain number is accepted in
            every case, unlike in DALI 2.4.0.
        scale, shift: the factor and the offset of the result.
        stddev: the standard deviation to divide by, likewise; where it is 0, the result is `shift`.
        input: integers of up to 32 bits or float32, of any rank and layout.

    Errors: RuntimeError for other element types, for axes that do not exist or `axes=[]`, for a `mean` or `stddev`
    whose shape does not fit, and for arrays of these with `batch=True`.

    >>> import ndd
    >>> ndd.normalize(ndd.tensor([1.0, 3.0]), scale=10).torch()
    tensor([-10.,  10.])
    >>> ndd.normalize(ndd.demo.photo("cat"), axes=[0, 1]).shape
    (266, 400, 3)
    """
    _averaged(axes, axis_names, input)
    if not shift:
        warn_of_unit_range("normalize", input, mean, stddev, scale, mean="mean", std="stddev")
    return like(input, dtype=dtype or float32)


def _averaged(axes: Any, names: str | None, input: Any) -> list[int] | None:
    """The axes that the call names; None if it names none."""
    if axes is None and names is None:
        return None
    if axes is not None and (not len(axes) or min(axes) < 0):
        raise RuntimeError(f"`axes`: expected at least one axis, from 0 to {input.ndim - 1}, got {axes.tolist()}")
    try:
        return chosen_axes(axes, names, input)
    except (IndexError, ValueError) as error:
        raise RuntimeError(str(error)) from None


normalize.operator.independent_samples = lambda batch, **_: not batch


@normalize.plan
def _(input, *, axes, axis_names, batch, ddof, dtype, epsilon, mean, scale, shift, stddev):
    centre = _fitting(mean, input, np.asarray)
    factor = _fitting(stddev, input, lambda spread: _factor_of(spread, epsilon, scale))
    chosen = _checked(_averaged(axes, axis_names, input), input.shapes, centre, factor, batch)
    pool = None
    if batch:  # computed from all samples when the first is normalized on the CPU
        known = (None if g is None else g[0] for g in (centre, factor))
        pool = functools.cache(functools.partial(_moments, input.arrays, chosen, ddof, epsilon, scale, *known))
    numbers = {"axes": chosen, "ddof": ddof, "epsilon": epsilon, "scale": scale, "shift": shift, "batch": batch}
    own_numbers = {k: v for k, v in (("centre", centre), ("factor", factor)) if v is not None}
    return Plan(input.shapes, own_numbers, {"centre": None, "factor": None, "pool": pool, **numbers})


def _fitting(values: Values | None, input: Any, convert: Callable[[np.ndarray], np.ndarray]) -> np.ndarray | None:
    """`mean` or `stddev`, converted, as one float32 array for each sample: 0-d, or of the rank of the sample."""
    if values is None:
        return None
    distinct = values.distinct()
    rows = [convert(a.reshape(()) if a.size == 1 and a.ndim <= 1 else a) for a in distinct]
    rows = rows if values.varies else rows * input.n
    for i, (array, extents) in enumerate(zip(rows, input.shapes.tolist(), strict=True)):
        fits = len(extents) == array.ndim and all([p in (1, e) for p, e in zip(array.shape, extents, strict=True)])
        if array.ndim and not fits:
            text = f"`{values.name}` has shape {array.shape}: expected one number, or extents of 1 or of the input, {extents}"
            raise bad_sample(i, text)
    return np.fromiter(rows, object, len(rows))


def _checked(axes: list[int] | None, shapes: np.ndarray, centre: Any, factor: Any, batch: bool) -> tuple[int, ...]:
    """The axes to average: the named axes, else those with extent 1 in the `mean` and `stddev` of all samples, else all."""
    arrays = [g for g in (centre, factor) if g is not None and g[0].ndim]
    if arrays and batch:
        raise RuntimeError("`batch=True` averages over the whole batch: `mean` and `stddev` must be plain numbers")
    for i, pair in enumerate(zip(*arrays, strict=True)):
        if len(pair) == 2 and pair[0].shape != pair[1].shape:
            a, b = pair
            raise bad_sample(i, f"`mean` and `stddev`: their shapes must match, got {a.shape} and {b.shape}")
    if axes is None:
        return tuple([d for d in range(shapes.shape[1]) if not arrays or all([a.shape[d] == 1 for a in arrays[0]])])
    for i, array in enumerate(arrays[0] if arrays else ()):
        expected = tuple([1 if d in axes else e for d, e in enumerate(shapes[i].tolist())])
        if array.shape != expected:
            text = f"parameter shape {array.shape} does not match the reduced input sample shape, which is {expected}"
            raise bad_sample(i, text)
    for d in [d for d in range(shapes.shape[1]) if batch and d not in axes]:
        for i in np.flatnonzero(shapes[:, d] != shapes[0, d])[:1].tolist():
            raise bad_sample(
                i,
                "`batch=True` requires that axes which are not averaged have equal extents in all samples: "
                f"axis {d} has {shapes[i, d]} here and {shapes[0, d]} in sample 0",
            )
    return tuple(axes)


def _moments(
    arrays: list[np.ndarray], axes: tuple[int, ...], ddof: int, epsilon: float, scale: float, centre: Any, factor: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Centre and factor of all these arrays together, unless they are given."""
    count = sum([math.prod([a.shape[d] for d in axes]) for a in arrays])
    with np.errstate(all="ignore"):
        if centre is None:
            centre = (_total("sum", arrays, axes, None) / count).astype(np.float32)
        if factor is None:
            total = _total("deviation", arrays, axes, centre)
            variance = total / (count - ddof) if count > ddof else np.zeros_like(total)
            factor = _factor(variance, epsilon, scale)
    return centre, factor


def _total(kind: str, arrays: list[np.ndarray], axes: tuple[int, ...], mean: np.ndarray | None) -> np.ndarray:
    kept = [1 if d in axes else e for d, e in enumerate(arrays[0].shape)]
    totals = [accumulate(kind, a, axes, np.dtype(np.float32), mean).reshape(kept).astype(np.float64) for a in arrays]
    return np.sum(totals, axis=0)


def _factor(variance: np.ndarray, epsilon: float, scale: float) -> np.ndarray:
    """scale / sqrt(variance + epsilon); 0 if variance + epsilon is 0."""
    with np.errstate(all="ignore"):
        total = variance + np.float32(epsilon)
        return np.where(total > 0, scale / np.sqrt(total), 0).astype(np.float32)


def _factor_of(spread: np.ndarray, epsilon: float, scale: float) -> np.ndarray:
    """scale / stddev; 0 if stddev is 0, unless there is an epsilon."""
    wide = spread.astype(np.float64)
    if epsilon:
        return _factor(wide**2, epsilon, scale)
    with np.errstate(all="ignore"):
        return np.where(wide == 0, 0, scale / wide).astype(np.float32)


_UNKNOWN = np.empty(0, np.float32)
_FLAT = View("flat")
# The most adjacent numbers (such as those along the time of spectrograms) that a warp averages and normalizes in one launch.
_ROW = 1 << 12


# A batch: `batch=True` averages over all samples, and few numbers of one shape are one compiled call.
@normalize.batch
def _(call, plan, data, out):
    of = plan.shared
    centre, factor = of["pool"]() if of["pool"] else (plan.field("centre")[0], plan.field("factor")[0])
    if not _in_loop(call, data, out, centre, factor, of):
        each_run(call, [data, out], lambda samples, x, y: _normalized(samples, x, y, centre, factor, of))


def _in_loop(call: Call, data: Store, out: Store, centre: Any, factor: Any, of: dict[str, Any]) -> bool:
    """Normalizes sample by sample in one compiled loop: float32 over adjacent axes, unless there are few numbers."""
    axes, few = of["axes"], data.volumes.total <= FEW and data.uniform()
    if few or not axes or not neighbours(axes) or out.dtype is not float32:
        return False
    shapes = data.shape_array if data.n == out.n else np.broadcast_to(data.shape_array, (out.n, data.ndim))
    first, last = axes[0], axes[-1] + 1
    outer, rows, inner = (volumes(shapes[:, a:b]) for a, b in ((0, first), (first, last), (last, None)))
    x, y = _FLAT.of(data), _FLAT.of(out)
    numbers = (of["ddof"], np.float32(of["epsilon"]), of["scale"], np.float32(of["shift"]))
    if data.dtype is float32 and last == data.ndim and centre is factor is None:
        each_sample(call, normalize_rows, x, y, Rows(rows), *numbers)
        return True
    mean, gain = (_of_each(v, outer * inner) for v in (centre, factor))
    if mean is None or gain is None:
        return False
    source = data.dtype.numpy
    types = further("sum", source, accumulator("sum", source, out.dtype.numpy))
    each_sample(call, normalize_many, x, y, *map(Rows, (outer, rows, inner)), mean, gain, *numbers, *types)
    return True


def _of_each(numbers: Any, kept: np.ndarray) -> Rows | None:
    """The numbers of each sample for its kept elements, or one, or none. `numbers` has those of each sample, or those for all.
    None if their counts differ."""
    n = len(kept)
    if numbers is None:
        return Rows(np.empty((n, 0), np.float32))
    if numbers.dtype == np.float32:
        return Rows(np.broadcast_to(numbers.reshape(-1), (n, numbers.size)))
    size = numbers[0].size
    if not all([v.size == size for v in numbers]) or (size != 1 and not (kept == size).all()):
        return None
    return Rows(np.stack([v.reshape(-1) for v in numbers]))


def _normalized(
    samples: slice, data: np.ndarray, out: np.ndarray, centre: Any, factor: Any, of: dict[str, Any]
) -> None:
    """Normalizes samples `[N, ...]` of one shape. `centre`, `factor`: those of each sample, as objects, or for all, or None."""
    if not data.size:
        return
    n, axes, shift = len(out), of["axes"], of["shift"]
    centre, factor = (_of_run(numbers, samples, n) for numbers in (centre, factor))
    exact = out if out.dtype == np.float32 else np.empty(out.shape, np.float32)
    if axes and neighbours(axes):
        first, last = axes[0] + 1, axes[-1] + 2
        outer, rows, inner = (math.prod(data.shape[a:b]) for a, b in ((0, first), (first, last), (last, None)))
        mean, gain = (_UNKNOWN if v is None else _of_all(v, outer * inner // n) for v in (centre, factor))
        normalize_run(data, exact, (outer, rows, inner), mean, gain, of["ddof"], of["epsilon"], of["scale"], shift)
    else:
        for i in range(n):
            x, own_numbers = data[i, ...], [None if v is None else v[i] for v in (centre, factor)]
            mean, gain = _moments([x], axes, of["ddof"], of["epsilon"], of["scale"], *own_numbers)
            if mean.shape != gain.shape:
                mean, gain = (np.ascontiguousarray(v) for v in np.broadcast_arrays(mean, gain))
            with np.errstate(all="ignore"):
                shift_and_scale(x, exact[i, ...], mean, gain, shift)
    if exact is not out:
        convert_array(exact, "f32", to_dtype(out.dtype).name, out)


def _of_run(numbers: Any, samples: slice, n: int) -> Any:
    if numbers is None:
        return None
    return numbers[samples] if numbers.dtype == object else [numbers] * n


def _of_all(values: Any, kept: int) -> np.ndarray:
    """One number, or one for each kept element of all samples."""
    if values[0].size == 1 and all([v is values[0] for v in values]):
        return values[0].reshape(-1)
    return np.concatenate([np.broadcast_to(v.reshape(-1), kept) for v in values])


@normalize.cuda("normalize.cu")
def _(launch, x, out, axes, ddof, epsilon, scale, shift, batch, centre, factor):
    computed = centre is None and factor is None and not batch and neighbours(axes)
    if computed and axes and axes[-1] == x.ndim - 1:
        rows, threads = np.empty(x.n, np.int64), np.empty(x.n, np.int64)
        if count_rows(x.shapes, sum([1 << axis for axis in axes]), 32, threads, rows) <= _ROW:
            launch("normalize_rows", threads, per_sample={"rows": rows}, macros={"ROWS": True})
            return
    kept = volumes(columns(x.shapes, [d for d in range(x.ndim) if d not in axes]))
    mean, gain = (
        (launch.scratch(kept, np.float32), kept) if v is None else _table(launch, v) for v in (centre, factor)
    )
    shared = {"add": np.float32(epsilon), "times": np.float32(scale)}
    if computed:  # by reading the values once
        both = {"factor": gain[0]}
        reduce_on_gpu(launch, "moments", "moments", x, axes, mean[0], ddof=ddof, shared=shared, per_sample=both)
    else:
        if centre is None:
            reduce_on_gpu(launch, "sum", "mean", x, axes, mean[0], pooled=batch)
        if factor is None:
            reduce_on_gpu(
                launch, "deviation", "factor", x, axes, gain[0], mean=mean, ddof=ddof, pooled=batch, shared=shared
            )
    walk = {"mean_steps": steps(x.shapes, axes, mean[1]), "gain_steps": steps(x.shapes, axes, gain[1])}
    launch(
        "normalize",
        per_sample={"mean": mean[0], "gain": gain[0], **walk},
        shared={"move": np.float32(shift)},
        macros={"INDEX": index_type(out.volumes.largest), "ROWS": False},
    )


def _table(launch: Any, rows: np.ndarray) -> tuple[Any, np.ndarray]:
    """Arrays of samples on the GPU, and the number of elements of each; only one if all have the same array."""
    sizes = np.array([row.size for row in rows])
    if all([row is rows[0] for row in rows]):
        return launch.table(rows[0]), sizes
    padded = [np.resize(row.reshape(-1), sizes.max()) for row in rows]  # the padding is never read
    return launch.table(np.stack(padded), each=True), sizes
