"""`ndd.random.choice`: random elements of a list, or of 0, 1, 2, ..., with probabilities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ndd._operator import Operand, PerSample, Plan, Values, bad_sample, operator, output
from ndd._operator.partition import each_run
from ndd._tensor import DType
from ndd.random.result_shape import element_shapes, rank
from ndd.random.table_choice import Table, padded

_SUM_TOLERANCE = 1e-4


@operator(random=True, reads="cpu")
def choice(a, shape_like=None, /, *, p: PerSample[list[float]] = None, shape: PerSample[list[int]] = None):
    """Draws elements of a list, each time from all of them, equally likely or with given probabilities.

    Args:
        a: the elements to choose from: those along the first axis of an array, or, for an integer `k`, 0 to k - 1.
        shape_like: a value whose shape the draws take; its elements do not matter. Excludes `shape`.
        p: the probability of each element. They add up to 1 (within 1e-4).
        shape: the shape of the draws of each sample. Default: a single draw.
        rng: an `RNG`; without it the thread's default one. A call advances it by seven words.

    The element type is that of `a`; the shape is that of the draws followed by that of one item. The layout of `a`
    stays for draws along one axis, loses its first letter for a single draw, and is dropped for more axes.
    Without `p` the item is `word * k >> 32`, drawn again to avoid bias (Lemire); with `p` it is the first whose cumulative
    probability reaches a 64-bit word / 2**64. Sample `i` and draw `e` determine the words (the draws of items that are arrays
    themselves take words one after the other): a longer batch begins with the samples of a shorter one, and CPU and GPU give
    the same numbers. They equal DALI's, which has this operator on the CPU only.

    Raises RuntimeError for an empty list, for a single float, for a `p` that is not one number in
    [0, 1] for each element or does not add up to 1, for negative extents, and for `shape` beside `shape_like`;
    ValueError for an `rng` that is not an `RNG`. (`numpy.random.choice` raises ValueError for a wrong `p`.)

    >>> import ndd
    >>> ndd.random.choice(6, shape=[5], rng=ndd.random.RNG(5)).torch()
    tensor([0, 2, 1, 5, 4], dtype=torch.int32)
    >>> ndd.random.choice([10, 20, 30], p=[0.1, 0.1, 0.8], shape=[5], rng=ndd.random.RNG(5)).torch()
    tensor([30, 30, 10, 30, 30], dtype=torch.int32)
    """
    axes = rank(shape_like, shape)
    layout = a.layout if axes == 1 else a.layout[1:] or None if axes == 0 and a.layout else None
    items = max(a.ndim - 1, 0)
    return output(a.dtype, None if axes is None else axes + items, layout if a.ndim else None)


@choice.plan
def _(call, a, shape_like, *, p, shape):
    draws = element_shapes(call, shape_like, shape)
    table = _table(a)
    if p is not None:
        table.cumulative = _cumulative(p, np.broadcast_to(table.counts, (call.n,)))
    shapes = np.concatenate([draws, a.shapes[:, 1:]], axis=1) if a.spec.ndim else draws
    per_sample: dict[str, Any] = {"stream": call.draws.streams(call.n), "place": table.places(call.n)}
    return Plan(shapes, per_sample, {"table": table, "axes": draws.shape[1]})


# A batch: the numbers of small samples are drawn in one compiled call.
@choice.batch
def _(call, plan, a, shape_like, out):
    streams, places, axes = plan.per_sample["stream"], plan.per_sample["place"], plan.shared["axes"]

    def draw(samples: slice, chosen: np.ndarray) -> None:
        draws = math.prod(chosen.shape[1 : 1 + axes])
        rows = chosen.reshape(len(chosen), draws, *chosen.shape[1 + axes :])
        plan.shared["table"].fill(rows, streams[samples], places[samples])

    each_run(call, [out], draw)


@choice.cuda("pick.cu")
def _(launch, a, shape_like, out, *, stream, place, table, axes):
    draws, sizes = (out.shapes[:, part].prod(axis=1) for part in (slice(axes), slice(axes, None)))
    table.launch(launch, stream, place, draws, sizes)


def _table(a: Operand) -> Table:
    """The items, a row for each sample or one for all; for a number only their count."""
    rows = a.arrays if a.varies else a.arrays[:1]
    if a.spec.ndim:
        items, counts = padded(rows)
    else:
        if a.dtype.kind not in (DType.Kind.signed, DType.Kind.unsigned):
            raise RuntimeError(f"input 'a': expected an integer or an array to choose from, got one {a.dtype} number")
        items, counts = None, np.array([r.astype(np.int64).item() for r in rows], np.int64)
    for i in np.flatnonzero(counts <= 0)[:1]:
        raise bad_sample(int(i), f"input 'a': expected a positive number of elements, got {counts[i]}")
    return Table(items, counts)


def _cumulative(p: Values, counts: np.ndarray) -> np.ndarray:
    """Checked probabilities as `[1 or n, most]` cumulative ones in float64; the last one of a row is 1."""
    rows = p.distinct()
    cumulative = np.ones((len(rows), int(counts.max(initial=1))), np.float64)
    for i, row in enumerate(rows):
        wanted = counts[i] if len(rows) > 1 else counts.max(initial=1)
        if row.shape != (wanted,) or (len(rows) == 1 and (counts != wanted).any()):
            raise bad_sample(i, f"argument 'p': expected {wanted} probabilities, one for each element, got {row.size}")
        for k in np.flatnonzero(~((row >= 0) & (row <= 1)))[:1]:
            raise bad_sample(i, f"argument 'p': expected probabilities in [0, 1], got {row[k]:g} at index {k}")
        weights = row.astype(np.float64)
        total = weights.sum()
        if abs(total - 1.0) >= _SUM_TOLERANCE:
            raise bad_sample(i, f"argument 'p': expected probabilities that add up to 1, got a sum of {total:g}")
        cumulative[i, : len(row) - 1] = np.cumsum(weights / total)[:-1]
    return cumulative
