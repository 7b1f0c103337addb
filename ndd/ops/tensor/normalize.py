"""`ndd.normalize`: values moved and scaled to mean 0 and standard deviation 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._cpu.normalization import normalize_run, shift_and_scale
from ndd._cpu.reduction import accumulate
from ndd._operator import PerSample, Plan, bad_sample, like, operator
from ndd._operator.run import current_invocation
from ndd._tensor import DType, Handle, Spec
from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import float32
from ndd.ops.tensor.normalize_launches import Launches

_TYPES = ("u8", "u16", "u32", "i8", "i16", "i32", "f32")


@operator
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
        ddof: what to take from the number of elements before dividing by it for the variance.
        dtype: the element type of the result. Default: float32. To an integer type values round half away from zero
            and saturate.
        epsilon: added to the variance, or to the square of `stddev`.
        mean: the mean to subtract in place of the computed one; the variance is then about it. One number, or an
            array (for all samples, or a Batch) with extent 1 along the averaged axes. A plain number is accepted in
            every case, unlike in DALI 2.4.0.
        scale, shift: what the result is multiplied with and moved by.
        stddev: the standard deviation to divide by, likewise; where it is 0, the result is `shift`.

    Errors: RuntimeError for other element types, for axes that do not exist or `axes=[]`, for a `mean` or `stddev`
    whose shape does not fit, and for arrays of these with `batch=True`.

    >>> import ndd
    >>> ndd.normalize(ndd.tensor([1.0, 3.0]), scale=10).torch()
    tensor([-10.,  10.])
    """
    result = dtype or float32
    for role, kind in (("input", input.dtype), ("output", result)):
        if kind.name not in _TYPES:
            raise RuntimeError(f"normalize: Unsupported {role} type: {kind}. Expected one of {', '.join(_TYPES)}.")
    _averaged(axes, axis_names, input)
    return like(input, dtype=result)


def _averaged(axes: Any, names: str | None, spec: Spec) -> list[int] | None:
    """The axes that the call names; None if it names none."""
    if names is not None:
        if axes is not None:
            raise RuntimeError("normalize: Arguments `axes` and `axis_names` are mutually exclusive")
        for letter in names:
            if letter not in (spec.layout or ""):
                raise RuntimeError(
                    f"normalize: Axis {letter!r} is not present in the input layout {spec.layout or ''!r}"
                )
        return sorted(spec.layout.index(letter) for letter in names)  # type: ignore[union-attr]
    if axes is None:
        return None
    found = sorted(np.asarray(axes).tolist())
    if not found:
        raise RuntimeError("normalize: `axes` must name at least one axis")
    for axis in found:
        if not 0 <= axis < (spec.ndim or 0):
            raise RuntimeError(f"normalize: axis index {axis} is out of valid range 0..{(spec.ndim or 0) - 1}")
    if len(set(found)) != len(found):
        raise RuntimeError(f"normalize: an axis occurs more than once in {found}")
    return found


@normalize.old_plan
def _(input, *, axes, axis_names, batch, ddof, dtype, epsilon, mean, scale, shift, stddev):
    spec = Spec(input.dtype, input.ndim, input.layout, input.spec.device)
    given = {"mean": _parameter("mean", mean, input), "stddev": _parameter("stddev", stddev, input)}
    arrays = [g for g in given.values() if g is not None and g[0].ndim]
    if arrays and batch:
        raise RuntimeError("`batch=True` averages over the whole batch: `mean` and `stddev` must be plain numbers")
    if len(arrays) == 2:
        for i, (a, b) in enumerate(zip(*arrays, strict=True)):
            if a.shape != b.shape:
                raise bad_sample(i, f"`mean` and `stddev`: their shapes must match, got {a.shape} and {b.shape}")
    chosen = _averaged(axes, axis_names, spec)
    if chosen is None:
        # An array says by its extents of 1 which axes are averaged; so that all samples agree, in any sample.
        chosen = [d for d in range(input.ndim) if not arrays or all(a.shape[d] == 1 for a in arrays[0])]
    elif arrays:
        _check_reduced(arrays[0], input.shapes, chosen)
    if batch and len(input.shapes):
        _check_kept(input.shapes, chosen)
    shared = {
        "axes": tuple(chosen), "ddof": ddof, "epsilon": epsilon, "scale": scale, "shift": shift, "batch": batch,
        "known_mean": given["mean"] is not None, "known_stddev": given["stddev"] is not None,
    }  # fmt: skip
    per_sample: dict[str, Any] = {
        "centre": given["mean"] or [None] * input.n, "spread": given["stddev"] or [None] * input.n,
    }  # fmt: skip
    if spec.device.device_id is not None:
        return Plan(input.shapes, {}, {**shared, **{name: _Rows(rows) for name, rows in per_sample.items()}})
    per_sample["extents"] = _extents(input.shapes, chosen)
    if batch and input.n:
        pooled = _pooled(input.arrays, shared, per_sample)
        per_sample.update(centre=[pooled[0]] * input.n, spread=[pooled[1]] * input.n)
        shared["known_factor"] = True
    else:
        shared["known_factor"] = False
    return Plan(input.shapes, per_sample, shared)


class _Rows:
    """A list that a GPU launch leaves alone: the CUDA function below uploads it."""

    def __init__(self, rows: list[Any]):
        self.rows = rows


def _parameter(name: str, value: Any, input: Any) -> list[np.ndarray] | None:
    """`mean` or `stddev` as one float32 array for each sample: 0-d, or of the rank of the sample."""
    if value is None:
        return None
    if isinstance(current_invocation().prepared.named[name], Handle):
        found = [np.asarray(v, np.float32) for v in value]
    else:
        found = [np.asarray(value, np.float32)] * input.n
    for i, array in enumerate(found):
        if array.size == 1 and array.ndim <= 1:
            found[i] = array.reshape(())
            continue
        extents = input.shapes[i].tolist()
        if array.ndim != len(extents) or any(p not in (1, e) for p, e in zip(array.shape, extents, strict=True)):
            raise bad_sample(
                i,
                f"`{name}` has shape {array.shape}: expected one number, or extents of 1 or of the input, {extents}",
            )
    return found


def _check_reduced(arrays: list[np.ndarray], shapes: np.ndarray, axes: list[int]) -> None:
    for i, array in enumerate(arrays):
        expected = tuple(1 if d in axes else e for d, e in enumerate(shapes[i].tolist()))
        if array.shape != expected:
            raise bad_sample(
                i, f"parameter shape {array.shape} does not match the reduced input sample shape, which is {expected}"
            )


def _check_kept(shapes: np.ndarray, axes: list[int]) -> None:
    for d in range(shapes.shape[1]):
        wrong = np.flatnonzero(shapes[:, d] != shapes[0, d])
        if d not in axes and len(wrong):
            raise bad_sample(
                int(wrong[0]),
                "`batch=True` requires that axes which are not averaged have equal extents in all samples: "
                f"axis {d} has {shapes[wrong[0], d]} here and {shapes[0, d]} in sample 0",
            )


def _statistic(kind: str, x: np.ndarray, axes: tuple[int, ...], mean: np.ndarray | None = None) -> np.ndarray:
    kept = [1 if d in axes else e for d, e in enumerate(x.shape)]
    with np.errstate(all="ignore"):
        return accumulate(kind, x, axes, np.dtype(np.float32), mean).reshape(kept).astype(np.float64)


def _count(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    return int(np.prod([shape[a] for a in axes], dtype=np.int64))


def _factor(variance: np.ndarray, epsilon: float, scale: float) -> np.ndarray:
    """scale / sqrt(variance + epsilon); 0 where that is the root of nothing."""
    with np.errstate(all="ignore"):
        total = variance + np.float32(epsilon)
        return np.where(total > 0, scale / np.sqrt(total), 0).astype(np.float32)


def _known_factor(spread: np.ndarray, epsilon: float, scale: float) -> np.ndarray:
    """scale / stddev; 0 where that is 0, unless there is an epsilon."""
    wide = spread.astype(np.float64)
    if epsilon:
        return _factor(wide**2, epsilon, scale)
    with np.errstate(all="ignore"):
        return np.where(wide == 0, 0, scale / wide).astype(np.float32)


def _variance(total: np.ndarray, count: int, ddof: int) -> np.ndarray:
    return total / (count - ddof) if count > ddof else np.zeros_like(total)


def _pooled(arrays: list[np.ndarray], shared: dict[str, Any], given: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Centre and factor of a whole batch."""
    axes = shared["axes"]
    count = sum(_count(a.shape, axes) for a in arrays)
    centre = given["centre"][0]
    if centre is None:
        with np.errstate(all="ignore"):
            centre = (np.sum([_statistic("sum", a, axes) for a in arrays], axis=0) / count).astype(np.float32)
    spread = given["spread"][0]
    if spread is not None:
        return centre, _known_factor(spread, shared["epsilon"], shared["scale"])
    total = np.sum([_statistic("deviation", a, axes, centre) for a in arrays], axis=0)
    return centre, _factor(_variance(total, count, shared["ddof"]), shared["epsilon"], shared["scale"])


def _extents(shapes: np.ndarray, axes: list[int]) -> list[tuple[int, int, int] | None]:
    """Each sample seen as (outer, rows, inner) with the rows to be averaged; None if the axes are no neighbours."""
    if axes != list(range(axes[0], axes[-1] + 1)) if axes else True:
        return [None] * len(shapes)
    first, last = axes[0], axes[-1] + 1
    parts = [shapes[:, :first].prod(axis=1), shapes[:, first:last].prod(axis=1), shapes[:, last:].prod(axis=1)]
    return list(zip(*[p.tolist() for p in parts], strict=True))


_UNKNOWN = np.empty(0, np.float32)


@normalize.cpu
def _(x, out, axes, ddof, epsilon, scale, shift, known_factor, centre, spread, extents):
    if not x.size:
        return
    exact = out if out.dtype == np.float32 else np.empty(x.shape, np.float32)
    if extents is not None:
        factor = _UNKNOWN
        if spread is not None:
            factor = (spread if known_factor else _known_factor(spread, epsilon, scale)).reshape(-1)
        mean = _UNKNOWN if centre is None else centre.reshape(-1)
        normalize_run(x, exact, extents, mean, factor, ddof, epsilon, scale, shift)
    else:
        _normalize_runs(x, exact, axes, ddof, epsilon, scale, shift, known_factor, centre, spread)
    if exact is not out:
        convert_array(exact, "f32", _SHORT[out.dtype.name], out)


@normalize.cpu_batch
def _(input, out, axes, ddof, epsilon, scale, shift, known_factor, centre, spread, extents):
    if not input.size:
        return
    if extents[0] is None:
        for row in zip(input, out, centre, spread, strict=True):
            x, result, mean, stddev = row
            normalize.operator.cpu(
                x, result, axes, ddof, epsilon, scale, shift, known_factor, mean, stddev, None
            )  # fmt: skip
        return
    outer, rows, inner = extents[0]
    exact = out if out.dtype == np.float32 else np.empty(out.shape, np.float32)
    factor = _UNKNOWN
    if spread[0] is not None:
        factor = _of_all(spread, outer * inner)
        factor = factor if known_factor else _known_factor(factor, epsilon, scale)
    mean = _UNKNOWN if centre[0] is None else _of_all(centre, outer * inner)
    normalize_run(input, exact, (len(input) * outer, rows, inner), mean, factor, ddof, epsilon, scale, shift)
    if exact is not out:
        convert_array(exact, "f32", _SHORT[out.dtype.name], out)


def _of_all(values: list[np.ndarray], kept: int) -> np.ndarray:
    """One number, or one for each kept element of all samples."""
    if values[0].size == 1 and all([v is values[0] for v in values]):
        return values[0].reshape(-1)
    return np.concatenate([np.broadcast_to(v.reshape(-1), kept) for v in values])


def _normalize_runs(x, out, axes, ddof, epsilon, scale, shift, known_factor, centre, spread) -> None:
    """Over axes that are no neighbours."""
    factor = spread
    if not known_factor:
        if centre is None:
            centre = (_statistic("sum", x, axes) / _count(x.shape, axes)).astype(np.float32)
        if spread is None:
            count = _count(x.shape, axes)
            total = _statistic("deviation", x, axes, centre)
            factor = _factor(_variance(total, count, ddof), epsilon, scale)
        else:
            factor = _known_factor(spread, epsilon, scale)
    if centre.shape != factor.shape:
        shape = np.broadcast_shapes(centre.shape, factor.shape)
        centre, factor = (np.ascontiguousarray(np.broadcast_to(v, shape)) for v in (centre, factor))
    with np.errstate(all="ignore"):
        shift_and_scale(x, out, centre, factor, shift)


_SHORT = {"uint8": "u8", "uint16": "u16", "uint32": "u32", "int8": "i8", "int16": "i16", "int32": "i32"}


@normalize.cuda("normalize.cu")
def _(launch, x, out, *, axes, ddof, epsilon, scale, shift, batch, centre, spread):
    factors = None if spread.rows[0] is None else [_known_factor(v, epsilon, scale) for v in spread.rows]
    if launch.n:
        Launches(launch, x, axes, ddof, epsilon, scale, shift, batch).run(centre.rows, factors)
