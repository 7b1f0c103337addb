"""`ndd.random.normal`: numbers from a normal distribution."""

from __future__ import annotations

import numpy as np

from ndd._cpu.draws import PIECE, fill_normal, fill_normal_loop, fill_normal_wide
from ndd._operator import PerSample, Plan, operator, output
from ndd._operator.partition import each_run
from ndd._tensor import DType
from ndd._tensor.dtype import float32
from ndd.random.element_types import INTEGERS, REAL, drawn_type, fill_as
from ndd.random.result_shape import element_shapes, rank


@operator(random=True, dtypes=(*INTEGERS, *REAL))
def normal(
    shape_like=None,
    /,
    *,
    dtype: DType | None = None,
    mean: PerSample[float] = 0.0,
    shape: PerSample[list[int]] = None,
    stddev: PerSample[float] = 1.0,
):
    """Draws numbers from a normal (Gaussian) distribution.

    Args:
        shape_like: a value whose shape the result takes; its elements do not matter. Excludes `shape`.
        dtype: type of the elements, an integer type (a real draw is rounded and saturated) or float32 (default) or
            float64.
        mean: the centre of the distribution.
        shape: the shape of each sample. Default: a single number.
        stddev: the standard deviation. A negative one mirrors the draws at the mean.
        rng: an `RNG`; without it the thread's default one. A call advances it by seven words.

    An element is `mean + stddev * sqrt(-2 ln u) * cos(2 pi v)` (Box and Muller) with u and v from two 32-bit words;
    in float64, and for 32- and 64-bit integers, from two 64-bit words. Sample `i` and element `e` determine the words:
    a longer batch begins with the samples of a shorter one, and CPU and GPU give the same numbers. They equal DALI's on the
    CPU, except for the last bit of one float32 in 70. The result has no layout.

    Raises RuntimeError for other types (bool and float16), for negative extents, and for `shape` beside `shape_like`;
    ValueError for an `rng` that is not an `RNG`. (NumPy refuses a negative `scale`, its stddev.)

    >>> import ndd
    >>> ndd.random.normal(mean=10, stddev=2, shape=[3], rng=ndd.random.RNG(5)).torch()
    tensor([10.7046,  8.4831, 13.3490])
    """
    return output(float32 if dtype is None else dtype, rank(shape_like, shape))


@normal.plan
def _(call, shape_like, *, dtype, mean, shape, stddev):
    real = drawn_type(dtype or float32)
    per_sample = {
        "stream": call.draws.streams(call.n),
        "mean": mean.each().astype(real, copy=False),
        "stddev": stddev.each().astype(real, copy=False),
    }
    return Plan(element_shapes(call, shape_like, shape), per_sample)


# A batch: the numbers of small samples are drawn in one compiled call, those of large ones in pieces that threads share.
@normal.batch
def _(call, plan, shape_like, out):
    streams, means, deviations = (plan.per_sample[name] for name in ("stream", "mean", "stddev"))
    if out.dtype is float32 and out.element_count() >= PIECE:
        sizes = out.sizes
        pieces = np.add.accumulate((sizes + (PIECE - 1)) // PIECE)
        flat = out.whole.reshape(-1) if out.flat is None else out.flat
        numbers = (flat, out.volumes.offsets, sizes, pieces, streams, means, deviations)
        # A number takes about as long as moving 16 bytes.
        if call.parallel_for(fill_normal_loop, numbers, int(pieces[-1]), 16 * out.element_count(), out):
            return
    fill = fill_normal_wide if means.dtype == np.float64 else fill_normal

    def draw(samples: slice, numbers: np.ndarray) -> None:
        rows = numbers.reshape(len(numbers), -1)
        fill_as(rows, means.dtype, lambda draws: fill(draws, streams[samples], means[samples], deviations[samples]))

    each_run(call, [out], draw)


normal.cuda("normal.cu")
