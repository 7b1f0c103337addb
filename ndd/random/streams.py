"""The random numbers of an operator: the position of its generator at the call, and a stream for each sample."""

from __future__ import annotations

import secrets

import numpy as np

from ndd._cpu.philox import SAMPLE_STRIDE, sample_streams
from ndd._lookahead.captured_loop import current_loop
from ndd._operator import bind_random
from ndd._tensor.invariant import watched
from ndd.random.host_draws import HostDraws
from ndd.random.philox import MASK_64, POSITIONS, format_state, pack, parse_state, unpack
from ndd.random.rng import RNG, get_default_rng


class Draws:
    """The words of one operator call, as their position: they are generated when the call runs."""

    __slots__ = ("key", "position")

    def __init__(self, key: int, position: int):
        self.key = key
        self.position = position

    def words_since(self, earlier: Draws) -> int | None:
        """The number of words taken since; None if the generators differ."""
        return self.position - earlier.position if self.key == earlier.key else None

    def moved(self, words: int) -> Draws:
        """The numbers that are drawn after this many more words."""
        return type(self)(self.key, (self.position + words) % POSITIONS)

    def streams(self, n: int) -> np.ndarray:
        """The streams of `n` samples: uint64 `[n, 4]`, key, counter, sequence, phase; see `sample_streams`.

        The stream of sample i does not depend on `n`.
        """
        sequence, counter, phase = unpack(self.position)
        keys = np.empty((n, 4), np.uint64)
        sample_streams(np.array((self.key, counter, sequence, phase), np.uint64), keys)
        return keys


class PipelineDraws(Draws):
    """The words of an operator in a pipeline: the position is that of the first sample itself."""

    __slots__ = ()

    def streams(self, n: int) -> np.ndarray:
        """See `Draws.streams`."""
        sequence, counter, phase = unpack(self.position)
        keys = np.empty((n, 4), np.uint64)
        keys[:] = self.key, counter, 0, phase
        keys[:, 2] = np.uint64(sequence) + np.uint64(SAMPLE_STRIDE) * np.arange(n, dtype=np.uint64)
        return keys


class PipelineRNG:
    """The generator of an operator in a pipeline, as in DALI: its key is a seed, and a run begins as many sequences later as
    there were samples before it.

    Args:
        seed: any integer; without it the operating system chooses one.
    """

    def __init__(self, seed: int | None = None):
        self._key = secrets.randbits(64) if seed is None else seed & MASK_64
        self._samples = 0

    def take(self) -> PipelineDraws:
        """The numbers of the next call."""
        return PipelineDraws(self._key, pack(self._samples, 0, 0))

    def advance(self, samples: int) -> None:
        """Notes that a call has drawn for this many samples."""
        self._samples = (self._samples + samples) & MASK_64

    def state_dict(self) -> dict[str, str]:
        """The state, as `RNG.state_dict`."""
        return {"state": format_state(self._key, pack(self._samples, 0, 0))}

    def load_state_dict(self, state: dict[str, str]) -> None:
        """Restores a state."""
        text = state.get("state") if isinstance(state, dict) else None
        if not isinstance(text, str):
            raise TypeError(f"expected the state of a random operator, {{'state': text}}, got {str(state)[:60]!r}")
        self._key, position = parse_state(text)
        self._samples = unpack(position)[0]


def _take(operator: str, rng: RNG | PipelineRNG | HostDraws | None) -> Draws | HostDraws:
    if isinstance(rng, PipelineRNG):
        return rng.take()
    if isinstance(rng, HostDraws):
        return rng
    if rng is None:
        rng = get_default_rng()
    elif not isinstance(rng, RNG):
        raise ValueError(f"{operator}: argument 'rng': expected an ndd.random.RNG, got {type(rng).__name__}")
    if watched and (loop := current_loop()) is not None:
        state = rng.get_state()
        loop.draws_from(operator, rng, (state._key, rng._restarts), state._position)
    return Draws(*rng._take())


bind_random(_take)
