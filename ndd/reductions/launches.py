"""Reductions over axes on the GPU: one launch, or a few that each divide the rows among fewer threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ndd._cpu.reduction import accumulator, extreme
from ndd._tensor.store import volumes

_THREADS = 1 << 17  # enough to keep a GPU busy
_KEPT_TOGETHER = 64  # results of a sample that its last block may compute in the same launch
_SERIAL = 1 << 11  # accumulators that one thread may add up
_KERNELS = str(Path(__file__).with_name("reduce.cu"))
_ACC_TYPES = {"f": "double", "u": "unsigned long long", "i": "long long", "c": "Moments"}


def reduce_on_gpu(
    launch: Any, kind: str, finish: str, x: Any, axes: tuple[int, ...], target: Any, *, mean: Any = None,
    ddof: int = 0, pooled: bool = False, shared: dict[str, Any] | None = None, per_sample: dict[str, Any] | None = None,
) -> None:  # fmt: skip
    """Reduces all samples of `x` over `axes`: `kind` says what is accumulated, and `finish` how it becomes the result (see
    reduce.cu).

    It takes one launch if one group of adjacent axes is reduced to few results, otherwise at most three for each group.

    Args:
        target: output 0, or float32 memory.
        mean: for deviations: an operand or memory of float32 means, and their number in each sample (one for each kept element,
            or a single one).
        pooled: the result of each sample is that of all samples together.
        shared, per_sample: further fields of the kernels.
    """
    extremes, own = kind in ("min", "max"), target is launch.outputs[0]
    result = target.dtype.numpy if own else np.dtype(np.float32)
    acc = np.dtype(np.complex128) if kind == "moments" else accumulator(kind, x.dtype.numpy, result)
    stages = _stages(x.shapes, axes)
    outer, rows, inner, _ = stages[0]
    few = int((outer * inner).max()) <= _KEPT_TOGETHER
    together = few and not pooled and neighbours(axes) and len(stages) == 2
    count = volumes(x.shapes[:, list(axes)])
    total = np.full_like(count, count.sum()) if pooled else count
    fixed = {"result": target, "divisor": (total - ddof).astype(np.float64), **(per_sample or {})}
    if kind == "moments":
        fixed.update(total=total.astype(np.float64), span=rows * inner)
    shared = {**(shared or {}), **({"first": np.array(extreme(kind, acc), acc)} if extremes else {})}
    macros: dict[str, Any] = {
        "ACC": "IN0" if extremes else _ACC_TYPES[acc.kind], "RESULT": "OUT0" if own else "float",
        "KIND": f"KIND_{kind.upper()}", "FINISH": f"FINISH_{finish.upper()}", "POOL": False, "TOGETHER": together,
        "MEAN_STEPS": mean is not None and not neighbours(axes), "LAST": False, "FROM_INPUT": True,
    }  # fmt: skip
    fields = (
        {} if mean is None else {"mean": mean[0], "mean_size": mean[1], "mean_steps": steps(x.shapes, axes, mean[1])}
    )
    if together:
        fields["arrived"] = np.zeros(launch.n, np.int32)
        stages = stages[:1]
    for number, (outer, rows, inner, splits) in enumerate(stages):
        macros["LAST"] = not pooled and not together and number == len(stages) - 1
        sizes = outer * splits * inner
        fields.update(outer=outer, rows=rows, inner=inner, splits=splits)
        if not macros["LAST"]:
            fields["parts"] = launch.scratch(sizes, x.dtype if extremes else acc)
        launch("reduce", sizes, per_sample={**fixed, **fields}, shared=shared, macros=macros, file=_KERNELS)
        fields, macros["FROM_INPUT"] = {"source": fields.get("parts")}, False
    if pooled:
        macros["POOL"] = True
        launch("pool", sizes, per_sample={**fixed, **fields}, shared=shared, macros=macros, file=_KERNELS)


def neighbours(axes: tuple[int, ...]) -> bool:
    """Whether the axes, in their order, follow one another."""
    return not axes or axes[-1] - axes[0] == len(axes) - 1


def steps(shapes: np.ndarray, axes: tuple[int, ...], sizes: np.ndarray) -> np.ndarray:
    """For every axis `[N, ndim]` the step along it in an array of the kept elements, or of one number."""
    table = np.zeros((len(shapes), max(1, shapes.shape[1])), np.int64)
    step = np.where(sizes == 1, 0, 1)
    for d in range(shapes.shape[1] - 1, -1, -1):
        if d not in axes:
            table[:, d] = step
            step = step * shapes[:, d]
    return table


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


def _divided(wanted: int, rows: np.ndarray) -> list[np.ndarray]:
    """The number of threads that share the rows of each kept element in the launches for one group of axes."""
    one = np.ones_like(rows)
    if wanted <= 16:
        return [one]
    most = [wanted] if wanted <= _SERIAL else [wanted, wanted // 128]
    shares = [np.minimum(count, np.maximum(rows, 1)) for count in most]
    return [*[splits for splits in shares if int(splits.max(initial=1)) > 16], one]


def _runs(shapes: np.ndarray, axes: tuple[int, ...]) -> list[tuple[np.ndarray, bool]]:
    parts: list[tuple[np.ndarray, bool]] = []
    for d in range(shapes.shape[1]):
        reduced = d in axes
        if parts and parts[-1][1] == reduced:
            parts[-1] = (parts[-1][0] * shapes[:, d], reduced)
        else:
            parts.append((shapes[:, d], reduced))
    return parts
