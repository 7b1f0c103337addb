"""`ndd.permute_batch`: the samples of a batch in another order."""

from __future__ import annotations

import numpy as np

from ndd._operator import PerSample, like, operator


@operator
def permute_batch(input, /, *, indices: PerSample[list[int]]):
    """Takes the samples of a batch in another order: `out[i] = input[indices[i]]`.

    Args:
        input: any batch, on the CPU or a GPU.
        indices: a batch of numbers, as `batch_permutation` gives them, or a list; as many as there are samples. One
            number alone goes for all. Each from 0 to the batch size - 1; repetitions and omissions are allowed.

    Nothing is copied: the samples share memory with the input's. Type and layout stay; `source_info` moves along.

    Raises RuntimeError for more or fewer indices than samples and for an index outside the batch; negative ones do not
    count from the end.

    >>> import ndd
    >>> ndd.permute_batch(ndd.batch([[1], [2], [3]]), indices=[2, 0, 1]).torch().flatten()
    tensor([3, 1, 2], dtype=torch.int32)
    """
    return like(input)


@permute_batch.old_views
def _(job, input, *, indices):
    chosen = np.asarray(indices, np.int64)
    if chosen.ndim > 1:  # a Tensor of all indices counts for every sample; a Batch holds one for each
        chosen = chosen[:, 0] if chosen.shape[1] == 1 else chosen[0]
    if chosen.ndim != 1:
        raise RuntimeError(f"argument 'indices': expected one number for each sample, got shape {chosen.shape}")
    if len(chosen) == 1:
        chosen = np.repeat(chosen, job.n)
    if len(chosen) != job.n:
        raise RuntimeError(f"argument 'indices': expected as many as samples, {job.n}, got {len(chosen)}")
    for i in np.flatnonzero((chosen < 0) | (chosen >= job.n))[:1]:
        raise RuntimeError(
            f"argument 'indices': expected numbers in [0, {job.n}), got {chosen[i]} at position {i}. "
            "Negative indices do not count from the end."
        )
    return input.select(chosen.tolist())
