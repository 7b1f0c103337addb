"""`ndd.random.coin_flip`: zeros and ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ndd._cpu.draws import fill_coin
from ndd._operator import PerSample, Plan, operator, output
from ndd._operator.run import current_invocation
from ndd._tensor import DType
from ndd._tensor.dtype import bool_, int32, uint8
from ndd.random.elements import check_type, column
from ndd.random.extents import element_shapes, rank


@operator(random=True)
def coin_flip(
    shape_like=None,
    /,
    *,
    dtype: DType | None = None,
    probability: PerSample[float] = 0.5,
    shape: PerSample[list[int]] = None,
):
    """Draws ones with a probability, else zeros: what decides whether a sample is mirrored, for example.

    Args:
        shape_like: a value whose shape the result takes; its elements do not matter. Excludes `shape`.
        dtype: bool, uint8 or int32 (default).
        probability: of a one. From 1 upwards always, from 0 downwards never.
        shape: of each sample; a single number each without it.
        rng: an `RNG`; without it the thread's default one. A call moves it on by seven words.

    An element is `word < probability * 2**32`. Sample `i` and element `e` determine the word: a longer batch begins
    with the samples of a shorter one, and CPU and GPU give the same numbers. Equal to DALI's on the CPU, but for
    negative probabilities, of which DALI takes the bits. The result has no layout.

    Raises RuntimeError for other types (float32, for one), for negative extents, and for `shape` beside `shape_like`;
    ValueError for an `rng` that is no `RNG`.

    >>> import ndd
    >>> ndd.random.coin_flip(probability=0.3, batch_size=8, rng=ndd.random.RNG(5)).torch()
    tensor([1, 1, 1, 0, 0, 0, 0, 1], dtype=torch.int32)
    """
    return output(int32 if dtype is None else dtype, rank(shape_like, shape))


@coin_flip.old_plan
def _(shape_like, *, dtype, probability, shape, words):
    n = current_invocation().n
    if dtype is not None:
        check_type(dtype, (bool_, uint8, int32))
    if isinstance(probability, np.ndarray):
        threshold: Any = np.array([_threshold(p) for p in probability.tolist()], np.uint64)
    else:
        threshold = _threshold(probability)
    per_sample: dict[str, Any] = {"stream": words.streams(n), "threshold": column(threshold, n, np.uint64)}
    return Plan(element_shapes(shape_like, shape, n), per_sample)


def _threshold(probability: float) -> int:
    """The number of words, of 2**32, that are a one."""
    return math.ceil(min(probability, 1.0) * 2.0**32) if probability > 0 else 0


@coin_flip.cpu
def _(shape_like, out, stream, threshold):
    _fill(out[None], stream[None], threshold)


@coin_flip.cpu_batch
def _(out, stream, threshold):
    _fill(out, stream, threshold)


def _fill(out, streams, threshold) -> None:
    out = out.reshape(len(streams), -1)
    fill_coin(out.view(np.uint8) if out.dtype == bool else out, streams, threshold.reshape(-1))


coin_flip.cuda("coin_flip.cu")
