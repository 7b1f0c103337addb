"""What a random operator draws from: the place that its generator had at the call, and a stream for each sample."""

from __future__ import annotations

import numpy as np

from ndd._operator import bind_random
from ndd.random.philox import MASK_64, substream, unpack
from ndd.random.rng import RNG, get_default_rng

SAMPLE_STRIDE = 65537
"""How many sequences lie between the streams of two neighbouring samples."""


class Draws:
    """The words that one operator call takes, as the place where they stand: they are made when the call runs."""

    __slots__ = ("key", "position")

    def __init__(self, key: int, position: int):
        self.key = key
        self.position = position

    def streams(self, n: int) -> np.ndarray:
        """The streams of `n` samples: uint64 `[n, 4]`, key, counter, sequence, phase. Sample i has the same stream
        whatever `n` is."""
        key, position = substream(self.key, self.position)
        sequence, counter, phase = unpack(position)
        found = np.empty((n, 4), np.uint64)
        found[:, 0], found[:, 1], found[:, 3] = key, counter, phase
        found[:, 2] = np.arange(n, dtype=np.uint64) * np.uint64(SAMPLE_STRIDE) + np.uint64(sequence & MASK_64)
        return found


def _take(rng: RNG | None) -> Draws:
    if rng is None:
        rng = get_default_rng()
    elif not isinstance(rng, RNG):
        raise TypeError(f"argument 'rng': expected an ndd.random.RNG, got {type(rng).__name__}")
    return Draws(*rng._take())


bind_random(_take)
