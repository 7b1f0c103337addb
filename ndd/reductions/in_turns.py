"""Reductions over axes on the CPU: samples of any shapes, which threads take in turn inside compiled loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._cpu.reduction import COMPILED_FROM, FINISHES, KERNELS, accumulator, further, runs
from ndd._operator import Call, Rows, Seen, each_sample
from ndd._tensor import Store
from ndd._tensor.dtype import dtype as to_dtype
from ndd._tensor.memory import host_empty
from ndd._tensor.store import volumes


def reduce_in_turns(
    call: Call, kind: str, finish: str, data: Store, axes: tuple[int, ...], out: Store, *, mean: Store | None = None,
    ddof: int = 0,
) -> np.ndarray | None:  # fmt: skip
    """All samples of `data` over `axes`: `kind` is accumulated and made into results as `finish` says. Each run of neighbouring
    axes is a pass over the samples, the last run comes first.

    Gives what `.cpu_turns` does: None for what NumPy computes, which are few numbers, results that are integers and more than
    a sum, and deviations over axes that are no neighbours.
    """
    few = data.volumes.total < COMPILED_FROM and data.uniform()
    if not axes or few or (finish != "plain" and out.dtype.numpy.kind != "f"):
        return None
    shapes = data.shape_array if data.n == out.n else np.broadcast_to(data.shape_array, (out.n, data.ndim))
    groups = runs(list(shapes.T), axes)
    if kind == "deviation" and sum([reduced for _, reduced in groups]) > 1:
        return None
    divisor = volumes(shapes[:, list(axes)]) - ddof
    total = accumulator(kind, data.dtype.numpy, out.dtype.numpy)
    while True:
        last = max([g for g, (_, reduced) in enumerate(groups) if reduced])
        outer, rows, inner = (
            _product(out.n, part) for part in (groups[:last], groups[last : last + 1], groups[last + 1 :])
        )
        groups = groups[:last] + groups[last + 1 :]
        final = not any([reduced for _, reduced in groups])
        kept = (outer * inner)[:, None]
        target = out if final else Store(
            to_dtype(total), None, out.device, kept, flat=host_empty(int(kept.sum()), total)
        )  # fmt: skip
        extra: tuple[Any, ...] = further(kind, data.dtype.numpy, total) if mean is None else (_flat(mean),)
        if kind not in ("min", "max"):
            extra += (FINISHES.index(finish if final else "plain"), Rows(divisor))
        found = each_sample(
            call, KERNELS[kind], _flat(data), Seen(target, kept), *map(Rows, (outer, rows, inner)), *extra
        )
        if final:
            return found
        data, kind = target, kind if kind in ("min", "max") else "sum"


def _product(n: int, groups: list[tuple[Any, bool]]) -> np.ndarray:
    found = np.ones(n, np.int64)
    for extents, _ in groups:
        found = found * extents
    return found


def _flat(store: Store) -> Seen:
    return Seen(store, store.sizes[:, None])
