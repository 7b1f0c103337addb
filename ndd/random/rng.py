"""The generator that a user holds: `RNG`, the thread's default one, and `set_seed`."""

from __future__ import annotations

import secrets
import threading
from operator import index
from typing import SupportsIndex, final

from ndd.random import philox


@final
class RNGState:
    """Where a generator stands: a value that compares, pickles and reads as text.

    `str(state)` is `Philox_<key>_<sequence>:<counter>_<phase>`; `RNG(state=...)` takes the object or the text.
    """

    __slots__ = ("_key", "_position")

    def __init__(self, key: int, position: int):
        self._key = key
        self._position = position

    @staticmethod
    def parse(text: str) -> RNGState:
        """Return the state that a text names."""
        return RNGState(*philox.parse_state(text))

    def __str__(self) -> str:
        return philox.format_state(self._key, self._position)

    def __repr__(self) -> str:
        return f"Philox4x32_10.State({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RNGState):
            return NotImplemented
        return self._key == other._key and self._position == other._position

    def __hash__(self) -> int:
        return hash((self._key, self._position))

    def __reduce__(self):
        return RNGState, (self._key, self._position)


@final
class RNG:
    """A random number generator for the random operators (Philox 4x32-10).

    Use one to make a part of a program repeatable, whatever else draws numbers::

        rng = ndd.random.RNG(seed=1234)
        angles = ndd.random.uniform(range=(-10, 10), batch_size=64, rng=rng)

    A generator is a key (the seed) and a position. Calling it gives the next 32-bit word and moves it on by one;
    an operator call moves it on by seven words, whatever the batch size, the device and the evaluation mode.

    Parameters
    ----------
    seed : int, optional
        The key, truncated to 64 bits. Without it (and without `state`) the operating system chooses one.
    state : state object or str, optional
        Where to start, as another generator's `state` tells it. Excludes `seed`.

    Examples
    --------
    >>> rng = RNG(seed=1234)
    >>> rng(), rng()
    (546353992, 3665621163)
    >>> rng
    RNG(state='Philox_00000000000004D2_0000000000000000:0000000000000000_2')
    """

    def __init__(self, seed: SupportsIndex | None = None, state: RNGState | str | bytes | None = None):
        if seed is not None and state is not None:
            raise ValueError("Cannot specify both `seed` and `state`: a state contains its seed.")
        self._lock = threading.Lock()
        self._cached_index = -1
        self._cached_words: tuple[int, ...] = ()
        if state is not None:
            self.set_state(state)
        else:
            self.seed = secrets.randbits(64) if seed is None else seed

    def __call__(self) -> int:
        """Return the next word, an int in [0, 2**32)."""
        with self._lock:
            position = self._position
            self._position = (position + 1) % philox.POSITIONS
            if position >> 2 != self._cached_index:
                self._cached_index = position >> 2
                self._cached_words = philox.block(self._key, self._cached_index)
            return self._cached_words[position & 3]

    def _set_seed(self, seed: SupportsIndex) -> None:
        self._restart(index(seed) & philox.MASK_64, 0)

    def _get_seed(self) -> int:
        raise AttributeError("seed is write-only: read `state`, which begins with the key.")

    seed = property(_get_seed, _set_seed, doc="Write-only: assigning a number restarts the generator with that key.")

    def advance(self, n: SupportsIndex) -> None:
        """Move on by `n` words, as `n` calls would, at the cost of one addition."""
        n = index(n)
        if n < 0:
            raise ValueError(f"Cannot advance by a negative number: got {n}. Set a state to go back.")
        with self._lock:
            self._position = (self._position + n) % philox.POSITIONS

    def clone(self) -> RNG:
        """Return an independent generator that stands at the same place."""
        return RNG(state=self.state)

    def get_state(self, *, cuda_stream=None) -> RNGState:
        """Return where the generator stands; `cuda_stream` is accepted and not needed."""
        with self._lock:
            return RNGState(self._key, self._position)

    def set_state(self, value: RNGState | str | bytes) -> None:
        """Go to a place that `get_state` told, of this or another generator; its text will do."""
        if isinstance(value, bytes):
            value = value.decode("ascii", "replace")
        if isinstance(value, str):
            value = RNGState.parse(value)
        if not isinstance(value, RNGState):
            raise TypeError(f"RNG: state: expected a state object or its text, got {type(value).__name__}.")
        self._restart(value._key, value._position)

    state = property(get_state, set_state, doc="Where the generator stands; assign to go elsewhere.")

    def __repr__(self) -> str:
        return f"RNG(state={str(self.state)!r})"

    def __copy__(self) -> RNG:
        return self.clone()

    def __deepcopy__(self, memo: dict) -> RNG:
        return self.clone()

    def __reduce__(self):
        return RNG, (None, str(self.state))

    def _restart(self, key: int, position: int) -> None:
        with self._lock:
            self._key = key
            self._position = position
            self._cached_index = -1

    def _take(self, count: int = philox.STATE_WORDS) -> tuple[int, int]:
        """Return the `(key, position)` of the next `count` words and move past them without making them."""
        with self._lock:
            position = self._position
            self._position = (position + count) % philox.POSITIONS
            return self._key, position


_thread = threading.local()


def get_default_rng() -> RNG:
    """Return the generator that random operators of this thread use when they are given none.

    It is made on first use, with a key from the operating system; every thread has its own.

    >>> get_default_rng() is get_default_rng()
    True
    """
    try:
        return _thread.rng
    except AttributeError:
        _thread.rng = RNG()
        return _thread.rng


def set_seed(seed: SupportsIndex) -> None:
    """Restart the default generator of this thread with a key.

    Afterwards every random operator of this thread that is given no `rng=` repeats its values.

    >>> set_seed(42)
    >>> get_default_rng()
    RNG(state='Philox_000000000000002A_0000000000000000:0000000000000000_0')
    """
    get_default_rng().seed = seed
