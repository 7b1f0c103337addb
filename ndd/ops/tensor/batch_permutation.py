"""`ndd.batch_permutation`: a random order of the samples of a batch."""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd._cpu.draws import below
from ndd._cpu.philox import seek
from ndd._operator import Samples, operator, output
from ndd._tensor.dtype import int32


@operator(random=True)
def batch_permutation(*, allow_repetitions: bool = False, no_fixed_points: bool = False):
    """Draws an order of the samples of a batch, for `permute_batch`: a batch of numbers from 0 to batch_size - 1.

    Args:
        batch_size: the number of samples; required.
        allow_repetitions: draw each number independently, so that some occur twice and others not at all.
        no_fixed_points: no number stays at its own place: `out[i] != i`. Without repetitions the order is then one
            cycle. Ignored for a batch of one.
        rng: an `RNG`; without it the thread's default one. A call advances it by seven words.

    Every such order is equally likely. Each sample of the result is one number, of shape `()`, int32 and on the CPU;
    the numbers are DALI's. (`numpy.random.permutation` and `torch.randperm` give one array.)

    Raises ValueError without a `batch_size`, for a negative one, and for an `rng` that is not an `RNG`.

    >>> import ndd
    >>> ndd.batch_permutation(batch_size=5, rng=ndd.random.RNG(5)).torch()
    tensor([3, 0, 1, 2, 4], dtype=torch.int32)
    """
    return Samples(output(int32, 0), batch_only=True)


# A batch: the result is one order of all samples.
@batch_permutation.batch
def _(call, *, allow_repetitions, no_fixed_points):
    order = np.arange(call.n, dtype=np.int32)
    if call.n > 1:
        _permute(order, call.draws.streams(1)[0], allow_repetitions, no_fixed_points)
    return order


@kernel(inline="always")
def _swap(order, i, j):
    order[i], order[j] = order[j], order[i]


@kernel
def _permute(order, stream, repeat, derange):
    cursor = empty(8, np.uint64)
    seek(cursor, stream, 0)
    n = order.size
    if repeat:
        for i in range(n):
            place = np.int64(below(cursor, np.uint64(n - 1 if derange else n)))
            order[i] = place + 1 if derange and place >= i else place
    elif derange:
        for i in range(n - 1):
            _swap(order, i, i + 1 + np.int64(below(cursor, np.uint64(n - 1 - i))))
    elif n >= 1 << 16:
        for i in range(1, n):
            _swap(order, i, np.int64(below(cursor, np.uint64(i + 1))))
    else:
        # Two places from one word, as DALI's C++ library does for so few.
        i = 1
        if n % 2 == 0:
            _swap(order, 1, np.int64(below(cursor, np.uint64(2))))
            i = 2
        while i < n:
            both = np.int64(below(cursor, np.uint64((i + 1) * (i + 2))))
            _swap(order, i, both // (i + 2))
            _swap(order, i + 1, both % (i + 2))
            i += 2


_permute.fallback()
batch_permutation.operator.independent_samples = False
