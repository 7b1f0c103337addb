"""The generator that a user holds: `RNG`, the thread's default one, and `set_seed`."""

from __future__ import annotations

import secrets
import sys
import threading
from operator import index
from typing import Any, SupportsIndex, final

from ndd._execution.fork import around_fork
from ndd._execution.rank import rank_of_world
from ndd.random import philox

_OF_RANK = " of rank "  # in the text of a `state_dict`
# Guards the position of every generator: to move one takes 200 ns. The handler of a signal may take it again.
_moving = threading.RLock()


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

    Args:
        seed: the key, truncated to 64 bits. Without it (and without `state`) the operating system chooses one.
        state: where to start, as another generator's `state` tells it, or its text. Excludes `seed`.

    Raises ValueError for both `seed` and `state` and for a text that is no state, TypeError for other types.

    >>> rng = RNG(seed=1234)
    >>> rng(), rng()
    (546353992, 3665621163)
    >>> rng
    RNG(state='Philox_00000000000004D2_0000000000000000:0000000000000000_2')
    """

    def __init__(self, seed: SupportsIndex | None = None, state: RNGState | str | bytes | None = None):
        if seed is not None and state is not None:
            raise ValueError("Cannot specify both `seed` and `state`: a state contains its seed.")
        self._branches = 0  # how many child processes have branched off since the last restart
        self._restarts = 0  # how often it was sent to a place, if only to where it stood
        self._cached_index = -1
        self._cached_words: tuple[int, ...] = ()
        if state is not None:
            self.set_state(state)
        else:
            self.seed = secrets.randbits(64) if seed is None else seed

    def __call__(self) -> int:
        """Return the next word, an int in [0, 2**32)."""
        with _moving:
            position = self._position
            self._position = (position + 1) % philox.POSITIONS
            if position >> 2 != self._cached_index:
                words = philox.block(self._key, position >> 2)
                self._cached_index, self._cached_words = position >> 2, words
            return self._cached_words[position & 3]

    def _set_seed(self, seed: SupportsIndex) -> None:
        try:
            number = index(seed)
        except TypeError:
            raise TypeError(f"seed: expected an integer, got {seed!r}") from None
        self._restart(number & philox.MASK_64, 0)

    def _get_seed(self) -> int:
        raise AttributeError("seed is write-only: read `state`, which begins with the key.")

    seed = property(
        _get_seed,
        _set_seed,
        doc="Write-only: assigning a number restarts the generator with that key.\n\nRaises AttributeError when it is read.",
    )

    def advance(self, n: SupportsIndex) -> None:
        """Move on by `n` words, as `n` calls would, at the cost of one addition.

        Args:
            n: how many words, 0 or more.

        Raises ValueError for a negative number.
        """
        n = index(n)
        if n < 0:
            raise ValueError(f"Cannot advance by a negative number: got {n}. Set a state to go back.")
        with _moving:
            self._position = (self._position + n) % philox.POSITIONS

    def clone(self) -> RNG:
        """Return an independent generator that stands at the same place."""
        return RNG(state=self.state)

    def get_state(self, *, cuda_stream: Any = None) -> RNGState:
        """Return where the generator stands; `cuda_stream` is accepted and not needed.

        Args:
            cuda_stream: no effect.
        """
        with _moving:
            return RNGState(self._key, self._position)

    def set_state(self, value: RNGState | str | bytes) -> None:
        """Go to a place that `get_state` told, of this or another generator; its text will do.

        Args:
            value: what `get_state` gave, or its text.

        Raises TypeError for other types, ValueError for a text that is no state.
        """
        if isinstance(value, bytes):
            value = value.decode("ascii", "replace")
        if isinstance(value, str):
            value = RNGState.parse(value)
        if not isinstance(value, RNGState):
            raise TypeError(f"RNG: state: expected a state object or its text, got {type(value).__name__}.")
        self._restart(value._key, value._position)

    state = property(get_state, set_state, doc="Where the generator stands; assign to go elsewhere.")

    def state_dict(self) -> dict[str, str]:
        """`get_state` as a dict, for checkpointing tools that want one: `{"state": text}`.

        Where several ranks are trained together, the text says of which one it is.
        """
        rank, world = rank_of_world()
        return {"state": str(self.get_state()) + (f"{_OF_RANK}{rank}" if world > 1 else "")}

    def load_state_dict(self, state: dict[str, str]) -> None:
        """`set_state` for what `state_dict` returned.

        The state of another rank moves the generator to its position under its own key: tools that keep the state of one
        rank only give it to all, and ranks that are in step have drawn equally often, though perhaps with other seeds.

        Args:
            state: what `state_dict` gave.

        Raises TypeError for what `state_dict` did not give, ValueError for a text that is no state.
        """
        text = state.get("state") if isinstance(state, dict) else None
        if not isinstance(text, str):
            raise TypeError(
                f"RNG.load_state_dict: expected what state_dict() gave, {{'state': text}}, got {str(state)[:60]!r}"
            )
        text, of_rank, rank = text.partition(_OF_RANK)
        parsed = RNGState.parse(text)
        if of_rank and rank != str(rank_of_world()[0]):
            parsed = RNGState(self._key, parsed._position)
        self.set_state(parsed)

    def __repr__(self) -> str:
        return f"RNG(state={str(self.state)!r})"

    def __copy__(self) -> RNG:
        return self.clone()

    def __deepcopy__(self, memo: dict) -> RNG:
        return self.clone()

    def __reduce__(self):
        return RNG, (None, str(self.state))

    def _restart(self, key: int, position: int) -> None:
        with _moving:
            self._key = key
            self._position = position
            self._cached_index = -1
            self._branches = 0
            self._restarts += 1

    def _take(self, count: int = philox.STATE_WORDS) -> tuple[int, int]:
        """Return the `(key, position)` of the next `count` words and move past them without making them."""
        with _moving:
            position = self._position
            self._position = (position + count) % philox.POSITIONS
            return self._key, position


class _OfThread(threading.local):
    """The default generator of a thread."""

    rng: RNG | None = None


_thread = _OfThread()
_parent: tuple[int, int, int] | None = None  # a forked child: where its parent's generator stood, and which child it is
_outer_worker: Any = None  # a process that a worker forked: what torch knows of that worker
_seeded = 0  # how many generators were made from the seed of torch's worker


def get_default_rng() -> RNG:
    """Return the generator that random operators of this thread use when they are given none.

    It is made on first use; every thread has its own. Its key is, in the first of these cases that applies:

    * in a worker of torch's `DataLoader`: the worker's seed, which differs between workers and epochs and is the same
      again after the same `torch.manual_seed` (or `DataLoader(generator=...)`);
    * in a process forked by a thread that had a default generator: a fresh branch of that, different for each child
      and the same again after the same `set_seed`;
    * else a number from the operating system.

    >>> get_default_rng() is get_default_rng()
    True
    """
    rng = _thread.rng
    if rng is None:
        rng = _thread.rng = RNG(_first_key())
    return rng


def set_seed(seed: SupportsIndex) -> None:
    """Restart the default generator of this thread with a key.

    Afterwards every random operator of this thread that is given no `rng=` repeats its values. Other processes have
    generators of their own, see `get_default_rng`; a DataLoader's `worker_init_fn` may set their seeds.

    Args:
        seed: the key, truncated to 64 bits.

    Raises TypeError for what is no integer.

    >>> set_seed(42)
    >>> get_default_rng()
    RNG(state='Philox_000000000000002A_0000000000000000:0000000000000000_0')
    """
    get_default_rng().seed = seed


def _first_key() -> int | None:
    """The key of a thread's default generator; None where the operating system is to choose."""
    global _parent, _seeded
    worker = _worker()
    if worker is not None and worker is not _outer_worker:
        with _moving:
            number, _seeded = _seeded, _seeded + 1
        return philox.branch(worker.seed, 0, number)
    with _moving:
        parent, _parent = _parent, None
    return None if parent is None else philox.branch(*parent)


def _worker() -> Any:
    """Torch's information about this process as a worker of a DataLoader."""
    loading = sys.modules.get("torch.utils.data")
    return None if loading is None else loading.get_worker_info()


def _before_fork() -> None:
    """Counts the child, so that the next one draws other numbers. The parent's own stay as they are."""
    rng = _thread.rng if _parent is None else get_default_rng()  # a child that has not drawn yet has a place as well
    if rng is not None:
        rng._branches += 1


def _in_child() -> None:
    """The generator of the thread that forked is the parent's; those of its other threads have gone with them."""
    global _moving, _outer_worker, _parent
    _moving = threading.RLock()
    _outer_worker = _worker()
    rng = _thread.rng
    if rng is not None:
        _parent = rng._key, rng._position, rng._branches
        _thread.rng = None


around_fork(before=_before_fork, in_child=_in_child)
