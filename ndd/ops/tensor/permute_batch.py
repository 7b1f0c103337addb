"""`ndd.permute_batch`: reorders the samples of a batch."""

from __future__ import annotations

import numpy as np

from ndd._operator import PerSample, like, operator


@operator
def permute_batch(input, /, *, indices: PerSample[list[int]]):
    """Reorders the samples of a batch: `out[i] = input[indices[i]]`.

    Args:
        input: any batch, on the CPU or a GPU.
        indices: a batch of numbers, as `batch_permutation` gives them, or a list; as many as there are samples. A single number
            applies to all. Each is from 0 to the batch size - 1; repetitions and omissions are allowed.

    Nothing is copied: the samples share memory with the input's. Type and layout stay; `source_info` moves along.

    Raises RuntimeError for more or fewer indices than samples and for an index outside the batch; negative ones do not
    count from the end.

    >>> import ndd
    >>> ndd.permute_batch(ndd.batch([[1], [2], [3]]), indices=[2, 0, 1]).torch().flatten()
    tensor([3, 1, 2], dtype=torch.int32)
    """
    return like(input)


@permute_batch.views
def _(call, input, *, indices):
    n = call.n
    rows = indices.rows() if indices.varies else np.atleast_2d(indices.constant)
    chosen = rows[:, 0] if rows.shape[1] == 1 else rows[0]  # a Batch has one number for each sample, a list all numbers
    if len(chosen) == 1:
        chosen = np.repeat(chosen, n)
    if len(chosen) != n:
        raise RuntimeError(f"argument 'indices': expected as many as samples, {n}, got {len(chosen)}")
    for i in np.flatnonzero((chosen < 0) | (chosen >= n))[:1]:
        raise RuntimeError(
            f"argument 'indices': expected numbers in [0, {n}), got {chosen[i]} at position {i}. "
            "Negative indices do not count from the end."
        )
    return input.select(chosen.tolist())


permute_batch.operator.independent_samples = False
