"""`ndd.random.beta`: numbers from a beta distribution."""

from __future__ import annotations

import numpy as np

from ndd._cpu.draws import beta_constants, fill_beta
from ndd._operator import PerSample, Plan, bad_sample, operator, output
from ndd._operator.partition import each_run
from ndd._tensor import DType
from ndd._tensor.dtype import float32
from ndd.random.element_types import REAL
from ndd.random.result_shape import element_shapes, rank


@operator(random=True, dtypes=REAL)
def beta(
    shape_like=None,
    /,
    *,
    alpha: PerSample[float] = 1.0,
    beta: PerSample[float] = 1.0,
    dtype: DType | None = None,
    shape: PerSample[list[int]] = None,
):
    """Draws numbers in [0, 1] from a beta distribution, such as the weights of mixup or cutmix.

    Args:
        shape_like: a value whose shape the result takes; its elements do not matter. Excludes `shape`.
        alpha, beta: the shapes of the distribution, positive and finite; its density is proportional to
            `x**(alpha - 1) * (1 - x)**(beta - 1)`.
        dtype: float32 (default) or float64.
        shape: the shape of each sample. Default: a single number.
        rng: an `RNG`; without it the thread's default one. A call advances it by seven words.

    An element is `x / (x + y)` of two gamma variates (Marsaglia and Tsang), whose normals come in pairs (polar
    method): the elements of a sample are drawn in order, on a GPU by one thread for each sample. A longer batch begins with the
    samples of a shorter one, and CPU and GPU give the same numbers. They equal DALI's, which has this operator on the CPU only,
    except for the last bits if both shapes are below 1. The result has no layout.

    Raises RuntimeError for other types, for an `alpha` or `beta` that is not positive and finite, for negative
    extents, and for `shape` beside `shape_like`; ValueError for an `rng` that is not an `RNG`.

    >>> import ndd
    >>> ndd.random.beta(alpha=0.2, beta=0.2, batch_size=3, rng=ndd.random.RNG(5)).torch()
    tensor([0.9959, 0.9974, 0.0774])
    """
    return output(float32 if dtype is None else dtype, rank(shape_like, shape))


@beta.plan
def _(call, shape_like, *, alpha, beta, dtype, shape):
    per_sample = {"stream": call.draws.streams(call.n), "alpha": alpha.each(), "beta": beta.each()}
    for name in ("alpha", "beta"):
        values = per_sample[name]
        if not (values.min() > 0 and values.max() < np.inf):
            i = int((~((values > 0) & (values < np.inf))).argmax())
            raise bad_sample(i, f"argument {name!r}: expected a positive finite number, got {values[i]:g}")
    return Plan(element_shapes(call, shape_like, shape), per_sample)


# A batch: the numbers of small samples are drawn in one compiled call.
@beta.batch
def _(call, plan, shape_like, out):
    kind = out.dtype.numpy.type
    streams = plan.per_sample["stream"]
    alpha, beta = (plan.per_sample[name].astype(kind) for name in ("alpha", "beta"))

    def draw(samples: slice, numbers: np.ndarray) -> None:
        rows = numbers.reshape(len(numbers), -1)
        fill_beta(rows, streams[samples], alpha[samples], beta[samples], beta_constants(kind))

    each_run(call, [out], draw)


@beta.cuda("beta.cu")
def _(launch, shape_like, out):
    launch("beta", 1, per_sample={"size": out.sizes})
