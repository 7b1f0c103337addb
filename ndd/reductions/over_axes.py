"""What all reductions share: which axes, what comes out, and how a sample is reduced on the CPU and on the GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ndd._cpu.reduction import accumulate, accumulator, extreme
from ndd._operator import Plan, bad_sample
from ndd._tensor import DType, Spec
from ndd._tensor.dtype import float32, int64, uint64
from ndd._tensor.store import volumes

# What is accumulated, and what is made of it.
ACCUMULATED = {
    "sum": "sum", "mean": "sum", "mean_square": "square", "rms": "square", "variance": "deviation",
    "std_dev": "deviation", "min": "min", "max": "max",
}  # fmt: skip


def chosen_axes(axes: Any, names: str | None, spec: Spec) -> list[int]:
    """The axes to reduce, sorted; all if none are given.

    IndexError for one that does not exist, ValueError for one given twice, RuntimeError for an unknown letter.
    """
    if names is not None:
        if axes is not None:
            raise RuntimeError("Arguments `axes` and `axis_names` are mutually exclusive")
        layout = spec.layout or ""
        for letter in names:
            if letter not in layout:
                raise RuntimeError(f"Axis {letter!r} is not present in the input layout {layout!r}")
        axes = [layout.index(letter) for letter in names]
    ndim = spec.ndim or 0
    if axes is None:
        return list(range(ndim))
    found: list[int] = []
    for axis in np.asarray(axes).tolist():
        if not -ndim <= axis < ndim:
            raise IndexError(f"Axis index out of range: {axis} not in range [{-ndim},{ndim - 1}]")
        axis %= ndim
        if axis in found:
            raise ValueError(f"Duplicate axis index {axis}")
        found.append(axis)
    return sorted(found)


def outcome(name: str, input: Spec, axes: Any, names: str | None, keep_dims: bool, dtype: DType | None) -> Spec:
    """Element type, rank and layout of a reduction of `input`."""
    result = result_dtype(name, input.dtype, dtype)
    chosen = chosen_axes(axes, names, input)
    if keep_dims or input.ndim is None:
        return Spec(result, input.ndim, input.layout, input.device)
    layout = "".join(letter for d, letter in enumerate(input.layout or "") if d not in chosen)
    return Spec(result, input.ndim - len(chosen), layout or None, input.device)


def result_dtype(name: str, source: DType, wanted: DType | None) -> DType:
    """The element type of the result; RuntimeError for combinations that DALI refuses."""
    if source.kind not in (DType.Kind.signed, DType.Kind.unsigned) and source is not float32:
        raise RuntimeError(f"Unsupported input type: {source}. Expected an integer type or float32: cast first.")
    kind = ACCUMULATED[name]
    if kind in ("min", "max"):
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


def plan(name: str, input: Any, axes: Any, names: str | None, keep_dims: bool, **shared: Any) -> Plan:
    """Shapes of the results, and the axes for the kernels."""
    chosen = chosen_axes(axes, names, Spec(input.dtype, input.ndim, input.layout, input.spec.device))
    shapes = input.shapes.copy()
    shapes[:, chosen] = 1
    kept = [d for d in range(shapes.shape[1]) if d not in chosen]
    result = shapes if keep_dims else shapes[:, kept]
    return Plan(result, shared={"chosen": tuple(chosen), "name": name, **shared})


def check_mean_type(mean: Spec) -> None:
    """RuntimeError unless the mean is float32, as DALI wants it."""
    if mean.dtype is not float32:
        raise RuntimeError(
            f"`mean`: expected float32, got {mean.dtype}. Cast it with ndd.cast(mean, dtype=ndd.float32)."
        )


def check_mean_shapes(mean: Any, results: np.ndarray) -> None:
    """RuntimeError for a sample whose mean has neither one element nor one for each element of the result."""
    have, want = mean.shapes.prod(axis=1), results.prod(axis=1)
    wrong = np.flatnonzero((have != 1) & (have != want))
    if len(wrong):
        i = int(wrong[0])
        raise bad_sample(
            i, f"`mean` has {have[i]} elements: expected 1, or {want[i]}, one for each element of the result"
        )


def stretched(mean: np.ndarray, data: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The mean with extent 1 along the reduced axes."""
    if mean.size == 1:
        return mean.reshape(())
    return mean.reshape([1 if d in axes else extent for d, extent in enumerate(data.shape)])


def reduce_sample(
    name: str, x: np.ndarray, out: np.ndarray, axes: tuple[int, ...], mean: np.ndarray | None = None, ddof: int = 0
) -> None:
    """One sample on the CPU."""
    if mean is not None and not axes and x.ndim:
        out[...] = 0  # DALI's answer, whatever the mean
        return
    if name in ("min", "max"):
        np.copyto(out, accumulate(name, x, axes, out.dtype).reshape(out.shape))
        return
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    with np.errstate(all="ignore"):
        total = accumulate(ACCUMULATED[name], x, axes, out.dtype, mean).reshape(out.shape)
        if name == "sum":
            np.copyto(out, total, casting="unsafe")
        elif out.dtype.kind == "f":
            average = np.true_divide(total, count - ddof)
            np.copyto(out, np.sqrt(average) if name in ("rms", "std_dev") else average, casting="unsafe")
        else:
            # DALI accumulates in the type of the result, which wraps, and divides in float32.
            mean32 = total.astype(out.dtype).astype(np.float32) * (np.float32(1) / np.float32(count))
            np.copyto(out, np.sqrt(mean32) if name == "rms" else mean32, casting="unsafe")


def reduce_batch(
    name: str, x: np.ndarray, out: np.ndarray, axes: tuple[int, ...], mean: np.ndarray | None = None, ddof: int = 0
) -> None:
    """Samples of one shape `[N, ...]`, as `reduce_sample` reduces each."""
    if x.ndim == 1:  # numbers: each its own sum
        x, axes = x[:, None], (0,)
    elif not axes and mean is not None:
        out[...] = 0
        return
    own = tuple([axis + 1 for axis in axes])
    if mean is not None:
        single = mean.size == len(mean)
        mean = mean.reshape([e if not d or not (single or d in own) else 1 for d, e in enumerate(x.shape)])
    reduce_sample(name, x, out, own, mean, ddof)


def _centre(launch: Any, mean: Any) -> tuple[tuple[np.ndarray, Any], Any]:
    """Addresses and sizes of the means, and what must live until the launch. One number on the CPU goes with the
    launch: its bits stand for the address, and there is no size."""
    sizes = launch.remember("sizes", lambda: mean.shapes.prod(axis=1))
    if not mean._store.on_cpu:
        return (mean.pointers(), sizes), None
    values = np.concatenate([array.reshape(-1) for array in mean._store.arrays()])
    if (sizes == 1).all():
        return (np.broadcast_to(values.view(np.uint32).astype(np.int64), launch.n), None), None
    memory = launch.upload(values)
    places = (np.cumsum(sizes) - sizes) if mean._store.n == launch.n else np.zeros(launch.n, np.int64)
    return (memory.data_ptr() + 4 * places, sizes), memory


_THREADS = 1 << 17  # that keep a GPU busy
_KEPT_TOGETHER = 64  # results of a sample that its last block may make in the same launch
_SERIAL = 1 << 11  # accumulators that one thread may add up
_FINISH = {"sum": 0, "min": 0, "max": 0, "mean": 1, "mean_square": 1, "variance": 1, "rms": 2, "std_dev": 2}
_KERNEL = str(Path(__file__).with_name("reduce.cu"))


def launch(launch: Any, name: str, operand: Any, axes: tuple[int, ...], mean: Any = None, ddof: int = 0) -> None:
    """All samples on the GPU: one launch where one run of neighbouring axes is reduced to few results, else for every run
    at most three launches that each divide the rows among fewer threads: their number depends on the rank alone."""
    if mean is not None and not axes and operand.ndim:  # DALI's answer, whatever the mean
        launch("zeros", file="zeros.cu")
        return
    centre = kept = None
    if mean is not None:
        centre, kept = _centre(launch, mean)
    result = launch.outputs[0].dtype
    integer = result is not float32 and ACCUMULATED[name] not in ("min", "max")
    accumulate_on_gpu(
        launch, ACCUMULATED[name], operand, axes, result.numpy, centre,
        per_sample=launch.remember(
            "divisor", lambda: {"divisor": (counts(operand.shapes, axes) - ddof).astype(np.float64)}
        ),
        macros={"FINISH": str(_FINISH[name]), "INTEGER_RESULT": str(int(integer))},
    )  # fmt: skip
    del kept


def counts(shapes: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """How many elements each result of a sample is made from: int64 `[N]`."""
    return volumes(shapes[:, list(axes)])


def accumulate_on_gpu(
    launch: Any, kind: str, operand: Any, axes: tuple[int, ...], result: np.dtype,
    centre: tuple[np.ndarray, np.ndarray] | None = None, per_sample: dict[str, Any] | None = None,
    macros: dict[str, str] | None = None, shared: dict[str, Any] | None = None, into: Any = None,
) -> tuple[Any, np.ndarray, np.dtype]:  # fmt: skip
    """Accumulates `kind` over `axes`.

    If `macros` says how to finish, the results go into output 0, or to the addresses `into`; else the accumulators
    go into memory that is returned with the address of each sample's part and their type.

    `centre`, for deviations: for each sample the address of float32 means, and how many there are (one for each kept
    element, or a single one).
    """
    extremes = kind in ("min", "max")
    total = accumulator(kind, operand.dtype.numpy, result)
    sizes = None if centre is None else centre[1]
    given = launch.remember(
        ("stages", kind),
        lambda: _stage_fields(operand, kind, axes, total, sizes, per_sample or {}, macros, shared or {}),
    )
    if centre is not None and sizes is None:
        given[0]["macros"]["MEAN_NUMBER"] = "1"
    source = np.zeros(launch.n, np.int64)
    scratch: Any = None
    if len(given) == 1 and given[0]["macros"]["TOGETHER"] == "1":
        memory, parts = scratch_for(launch, given[0]["work"], operand.dtype if extremes else total)
        addresses = {"parts": parts, "target": source if into is None else into}
        if centre is not None:
            addresses["mean_address"] = centre[0]
        launch("reduce", **given[0], file=_KERNEL, kept=(kind, "together"), addresses=addresses)
        del memory
        return None, source, total
    for number, fields in enumerate(given):
        last = macros is not None and number == len(given) - 1
        previous = scratch  # kept until this stage is queued
        scratch, target = None, into if last and into is not None else np.zeros(launch.n, np.int64)
        if not last:
            scratch, target = scratch_for(launch, fields["work"], operand.dtype if extremes else total)
        addresses = {"source": source, "target": target}
        if number == 0 and centre is not None:
            addresses["mean_address"] = centre[0]
        launch("reduce", **fields, file=_KERNEL, kept=(kind, number), addresses=addresses)
        del previous
        source = target
    return scratch, source, total


def _stage_fields(
    operand: Any, kind: str, axes: tuple[int, ...], total: np.dtype, sizes: Any, per_sample: dict[str, Any],
    macros: dict[str, str] | None, shared: dict[str, Any],
) -> list[dict[str, Any]]:  # fmt: skip
    """Work, fields and macros of every launch."""
    from ndd._cuda.source import ELEMENT_TYPES

    extremes = kind in ("min", "max")
    stages = _stages(operand.shapes, axes)
    several = sum(reduced for _, reduced in _runs(operand.shapes, axes)) > 1
    outer, _, inner, _ = stages[0]
    together = macros is not None and not several and len(stages) == 2 and (outer * inner).max() <= _KEPT_TOGETHER
    if together:
        stages = stages[:1]
    centre = {} if sizes is None else {"mean_size": sizes, "mean_steps": mean_steps(operand.shapes, axes, sizes)}
    found = []
    for number, (outer, rows, inner, splits) in enumerate(stages):
        last = macros is not None and number == len(stages) - 1 and not together
        arrived = {"arrived": np.zeros(len(outer), np.int32)} if together else {}
        found.append({
            "work": outer * splits * inner,
            "per_sample": {
                "outer": outer, "rows": rows, "inner": inner, "splits": splits, **per_sample, **arrived,
                **(centre if number == 0 else {}),
            },
            "shared": {"first": np.array(extreme(kind, total) if extremes else 0, total), **shared},
            "macros": {
                "FINISH": "0", "INTEGER_RESULT": "0", **(macros or {}),
                "ACC": ELEMENT_TYPES[operand.dtype.name] if extremes else ACC_TYPES[total.kind],
                "KIND": f"KIND_{(kind if extremes or not number else 'sum').upper()}",
                "FROM_INPUT": str(int(number == 0)), "MEAN_STEPS": str(int(several)), "LAST": str(int(last)),
                "TOGETHER": str(int(together)),
            },
        })  # fmt: skip
    return found


ACC_TYPES = {"f": "double", "u": "unsigned long long", "i": "long long"}


def scratch_for(launch: Any, sizes: np.ndarray, dtype: Any) -> tuple[Any, np.ndarray]:
    """GPU memory with `sizes[i]` elements for sample i, and the address of each sample's part."""
    memory = launch.empty(max(1, int(sizes.sum())), dtype)
    return memory, memory.data_ptr() + (np.cumsum(sizes) - sizes) * memory.element_size()


def _stages(shapes: np.ndarray, axes: tuple[int, ...]) -> list[tuple[np.ndarray, ...]]:
    """(outer, rows, inner, splits) of every launch, each an array over the samples."""
    groups = _runs(shapes, axes)
    stages: list[tuple[np.ndarray, ...]] = []
    ones = np.ones(len(shapes), np.int64)
    while True:
        last = max((g for g in range(len(groups)) if groups[g][1]), default=-1)
        outer, inner = ones, ones
        for g, (extent, _) in enumerate(groups):
            if g < last:
                outer = outer * extent
            elif g > last:
                inner = inner * extent
        rows = groups[last][0] if last >= 0 else ones
        if last < 0:
            outer, inner = inner, ones
        kept = int((outer * inner).min(initial=1 << 62)) or 1
        wanted = max(1, _THREADS // max(1, len(shapes)) // kept)
        for splits in _divided(wanted, rows):
            stages.append((outer, rows, inner, splits))
            rows = splits
        groups = groups[:last] + groups[last + 1 :] if last >= 0 else []
        if not any(reduced for _, reduced in groups):
            return stages


def stages_of(shapes: np.ndarray, axes: tuple[int, ...]) -> list[tuple[np.ndarray, ...]]:
    """The launches for one run of neighbouring axes; for several runs, too many to be of use."""
    several = sum(reduced for _, reduced in _runs(shapes, axes)) > 1
    stages = _stages(shapes, axes)
    return stages * 3 if several else stages


def _divided(wanted: int, rows: np.ndarray) -> list[np.ndarray]:
    """How many threads share the rows of each kept element in the launches for one run of axes."""
    one = np.ones_like(rows)
    if wanted <= 16:
        return [one]
    most = [wanted] if wanted <= _SERIAL else [wanted, wanted // 128]
    found = [np.minimum(count, np.maximum(rows, 1)) for count in most]
    return [*[splits for splits in found if int(splits.max(initial=1)) > 16], one]


def mean_steps(shapes: np.ndarray, axes: tuple[int, ...], sizes: np.ndarray) -> np.ndarray:
    """For every axis `[N, ndim]` how far a step along it moves in the mean, whose axes are the kept ones."""
    steps = np.zeros((len(shapes), max(1, shapes.shape[1])), np.int64)
    step = np.where(sizes == 1, 0, 1)
    for d in range(shapes.shape[1] - 1, -1, -1):
        if d not in axes:
            steps[:, d] = step
            step = step * shapes[:, d]
    return steps


def _runs(shapes: np.ndarray, axes: tuple[int, ...]) -> list[tuple[np.ndarray, bool]]:
    found: list[tuple[np.ndarray, bool]] = []
    for d in range(shapes.shape[1]):
        reduced = d in axes
        if found and found[-1][1] == reduced:
            found[-1] = (found[-1][0] * shapes[:, d], reduced)
        else:
            found.append((shapes[:, d], reduced))
    return found
