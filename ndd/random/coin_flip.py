"""`ndd.random.coin_flip`: zeros and ones."""

from __future__ import annotations

import numpy as np

from ndd._cpu.draws import fill_coin, fill_coins
from ndd._operator import PerSample, Plan, operator, output
from ndd._operator.partition import each_run
from ndd._tensor import DType
from ndd._tensor.dtype import int32
from ndd.random.result_shape import element_shapes, rank


@operator(random=True, dtypes=("bool", "u8", "i32"))
def coin_flip(
    shape_like=None,
    /,
    *,
    dtype: DType | None = None,
    probability: PerSample[float] = 0.5,
    shape: PerSample[list[int]] = None,
):
    """Draws ones with a probability, else zeros, for example to decide whether a sample is mirrored.

    Args:
        shape_like: a value whose shape the result takes; its elements do not matter. Excludes `shape`.
        dtype: bool, uint8 or int32 (default).
        probability: the probability of a one. From 1 upwards always, from 0 downwards never.
        shape: the shape of each sample. Default: a single number.
        rng: an `RNG`; without it the thread's default one. A call advances it by seven words.

    An element is `word < probability * 2**32`. Sample `i` and element `e` determine the word: a longer batch begins
    with the samples of a shorter one, and CPU and GPU give the same numbers. They equal DALI's on the CPU, except for negative
    probabilities, whose bits DALI misinterprets. The result has no layout.

    Raises RuntimeError for other types (including float32), for negative extents, and for `shape` beside `shape_like`;
    ValueError for an `rng` that is not an `RNG`.

    >>> import ndd
    >>> ndd.random.coin_flip(probability=0.3, batch_size=8, rng=ndd.random.RNG(5)).torch()
    tensor([1, 1, 1, 0, 0, 0, 0, 1], dtype=torch.int32)
    """
    return output(int32 if dtype is None else dtype, rank(shape_like, shape))


@coin_flip.plan
def _(call, shape_like, *, dtype, probability, shape):
    chance = np.minimum(np.fmax(probability.each(), 0), 1)  # fmax: NaN means never
    threshold = np.ceil(chance * np.float32(2**32)).astype(np.uint64)  # the number of words, of 2**32, that give a one
    return Plan(element_shapes(call, shape_like, shape), {"stream": call.draws.streams(call.n), "threshold": threshold})


# A batch: the numbers of small samples are drawn in one compiled call.
@coin_flip.batch
def _(call, plan, shape_like, out):
    streams, threshold = plan.per_sample["stream"], plan.per_sample["threshold"]

    def draw(samples: slice, coins: np.ndarray) -> None:
        coins = coins.view(np.uint8) if coins.dtype == bool else coins
        if coins.size == len(coins):
            fill_coins(coins.reshape(-1), streams[samples], threshold[samples])
        else:
            fill_coin(coins.reshape(len(coins), -1), streams[samples], threshold[samples])

    each_run(call, [out], draw)


coin_flip.cuda("coin_flip.cu")
