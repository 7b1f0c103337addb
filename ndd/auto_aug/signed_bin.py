"""`signed_bin`: magnitude bins with signs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import ndd
from ndd.auto_aug.nodes import in_pipeline, is_node, sliced


class SignedMagnitudeBin:
    """A magnitude bin for each sample, and whether the magnitude is negated. `signed_bin` creates it.

    `signed[i]` is that of step i, if samples have several steps.
    """

    def __init__(self, bin: Any, random_sign: Any):
        self.bin = bin
        self.random_sign = random_sign

    @property
    def signed_magnitude_idx(self) -> Any:
        """`2 * bin + random_sign`."""
        return 2 * self.bin + self.random_sign

    def __getitem__(self, index: int) -> SignedMagnitudeBin:
        return self.map_samples(lambda v: sliced(v, index))

    def map_samples(self, function: Callable[[Any], Any]) -> SignedMagnitudeBin:
        """The same with `function` applied to the values of each sample."""
        bin = self.bin if isinstance(self.bin, int) else function(self.bin)
        return SignedMagnitudeBin(bin, function(self.random_sign))


def signed_bin(
    magnitude_bin: Any,
    random_sign: Any = None,
    seed: int | None = None,
    shape: tuple[int, ...] | None = None,
    *,
    batch_size: int | None = None,
    rng: Any = None,
) -> SignedMagnitudeBin:
    """A magnitude bin together with a sign for each sample, for augmentations with `randomly_negate`.

    Args:
        magnitude_bin: an integer from 0 to `num_magnitude_bins - 1`, or a batch of them (in pipeline mode a DataNode).
        random_sign: a batch of 0 (unchanged) and 1 (negated). Default: drawn with equal probabilities.
        seed: the seed of these draws; in a loop the same seed gives the same signs.
        shape: the shape of the signs of a sample, for several steps: `signed[i]` is that of step i.
        batch_size: the number of signs to draw, if `magnitude_bin` is an integer (in a loop; a pipeline knows it).
        rng: an `ndd.random.RNG` to draw from, in a loop.

    Raises TypeError for other bins, ValueError for a sign beside `seed`, `shape`, `rng`, or if the batch size is unknown.

    >>> import ndd
    >>> signed = ndd.auto_aug.signed_bin(ndd.batch([3, 4]), random_sign=ndd.batch([0, 1]))
    >>> signed.signed_magnitude_idx.torch()
    tensor([6, 9], dtype=torch.int32)
    """
    if not (isinstance(magnitude_bin, int | np.integer | ndd.Batch | ndd.Tensor) or is_node(magnitude_bin)):
        raise TypeError(
            f"signed_bin: `magnitude_bin` is to be an integer or a batch of integers, got {magnitude_bin!r}"
        )
    if isinstance(magnitude_bin, np.integer):
        magnitude_bin = int(magnitude_bin)
    if random_sign is not None:
        if seed is not None or shape is not None or rng is not None:
            raise ValueError("signed_bin: `random_sign` is given: `seed`, `shape` and `rng` are for drawing one")
        return SignedMagnitudeBin(magnitude_bin, random_sign)
    if in_pipeline() is not None:
        draw = ndd.fn.random.uniform
        return SignedMagnitudeBin(magnitude_bin, draw(values=[0, 1], dtype=ndd.int32, seed=seed, shape=shape))
    if isinstance(magnitude_bin, ndd.Batch):
        batch_size = magnitude_bin.batch_size
    elif batch_size is None and not isinstance(magnitude_bin, ndd.Tensor):
        raise ValueError("signed_bin: for one bin for all samples say how many there are: `batch_size=`")
    rng = ndd.random.RNG(seed) if seed is not None else rng
    sign = ndd.random.uniform(values=[0, 1], dtype=ndd.int32, shape=shape, batch_size=batch_size, rng=rng)
    return SignedMagnitudeBin(magnitude_bin, sign)


__all__ = ["SignedMagnitudeBin", "signed_bin"]
