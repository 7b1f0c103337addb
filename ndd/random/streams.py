"""What a random operator draws from: the place that its generator had at the call, and a stream for each sample."""

from __future__ import annotations

import numpy as np

from ndd._cpu.philox import sample_streams
from ndd._operator import bind_random
from ndd._operator.captured import running
from ndd._tensor.invariant import watched
from ndd.random.philox import POSITIONS, unpack
from ndd.random.rng import RNG, get_default_rng


class Draws:
    """The words that one operator call takes, as the place where they stand: they are made when the call runs."""

    __slots__ = ("key", "position")

    def __init__(self, key: int, position: int):
        self.key = key
        self.position = position

    def words_since(self, earlier: Draws) -> int | None:
        """How many words were taken since; None from another generator."""
        return self.position - earlier.position if self.key == earlier.key else None

    def moved(self, words: int) -> Draws:
        """What is drawn after so many words more."""
        return Draws(self.key, (self.position + words) % POSITIONS)

    def streams(self, n: int) -> np.ndarray:
        """The streams of `n` samples: uint64 `[n, 4]`, key, counter, sequence, phase; see `sample_streams`.

        Sample i has the same stream whatever `n` is.
        """
        sequence, counter, phase = unpack(self.position)
        found = np.empty((n, 4), np.uint64)
        sample_streams(np.array((self.key, counter, sequence, phase), np.uint64), found)
        return found


def _take(operator: str, rng: RNG | None) -> Draws:
    if rng is None:
        rng = get_default_rng()
    elif not isinstance(rng, RNG):
        raise ValueError(f"argument 'rng': expected an ndd.random.RNG, got {type(rng).__name__}")
    if watched and (loop := running()) is not None:
        state = rng.get_state()
        loop.draws_from(operator, rng, state._key, state._position)
    return Draws(*rng._take())


bind_random(_take)
