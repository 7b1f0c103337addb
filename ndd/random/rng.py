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
# Guards the position of every generator, which takes 200 ns to move. A signal handler may acquire it again.
_moving = threading.RLock()


@final
class RNGState:
    """The state of a generator: a value that can be compared, pickled and written as text.

    `str(state)` is `Philox_<key>_<sequence>:<counter>_<phase>`; `RNG(state=...)` takes the object or the text.
    """

    __slots__ = ("_key", "_position")

    def __init__(self, key: int, position: int):
        self._key = key
        self._position = position

    @staticmethod
    def parse(text: str) -> RNGState:
        """Return the state of a text."""
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

    Use one to make a part of a program repeatable, whatever the rest of the program draws::

        rng = ndd.random.RNG(seed=1234)
        angles = ndd.random.uniform(range=(-10, 10), batch_size=64, rng=rng)

    A generator is a key (the seed) and a position. Calling it returns the next 32-bit word and advances it by one; an operator
    call advances it by seven words, whatever the batch size, the device and the evaluation mode.

    Args:
        seed: the key, truncated to 64 bits. Without it (and without `state`) the operating system chooses one.
        state: the initial state, from another generator's `state`, or its text. Excludes `seed`.

    Raises ValueError for both `seed` and `state` and for a text that is not a state, TypeError for other types.

    >>> rng = RNG(seed=1234)
    >>> rng(), rng()
    (546353992, 3665621163)
    >>> rng
    RNG(state='Philox_00000000000004D2_0000000000000000:0000000000000000_2')
    """

    def __init__(self, seed: SupportsIndex | None = None, state: RNGState | str | bytes | None = None):
        if seed is not None and state is not None:
            raise ValueError("Cannot specify both `seed` and `state`: a state contains its seed.")
        self._branches = 0  # the number of child processes since the last restart
        self._restarts = 0  # the number of times that its state was set, even to the same state
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
        """Advance by `n` words, as `n` calls would, at the cost of one addition.

        Args:
            n: the number of words, 0 or more.

        Raises ValueError for a negative number.
        """
        n = index(n)
        if n < 0:
            raise ValueError(f"Cannot advance by a negative number: got {n}. Set a state to go back.")
        with _moving:
            self._position = (self._position + n) % philox.POSITIONS

    def clone(self) -> RNG:
        """Return an independent generator in the same state."""
        return RNG(state=self.state)

    def get_state(self, *, cuda_stream: Any = None) -> RNGState:
        """Return the state of the generator. `cuda_stream` is accepted without effect.

        Args:
            cuda_stream: no effect.
        """
        with _moving:
            return RNGState(self._key, self._position)

    def set_state(self, value: RNGState | str | bytes) -> None:
        """Set the state from `get_state` of this or another generator, or from its text.

        Args:
            value: a result of `get_state`, or its text.

        Raises TypeError for other types, ValueError for a text that is not a state.
        """
        if isinstance(value, bytes):
            value = value.decode("ascii", "replace")
        if isinstance(value, str):
            value = RNGState.parse(value)
        if not isinstance(value, RNGState):
            raise TypeError(f"RNG: state: expected a state object or its text, got {type(value).__name__}.")
        self._restart(value._key, value._position)

    state = property(get_state, set_state, doc="The state of the generator; it can be assigned.")

    def state_dict(self) -> dict[str, str]:
        """`get_state` as a dict, for checkpointing tools that need one: `{"state": text}`.

        If several ranks train together, the text names the rank.
        """
        rank, world = rank_of_world()
        return {"state": str(self.get_state()) + (f"{_OF_RANK}{rank}" if world > 1 else "")}

    def load_state_dict(self, state: dict[str, str]) -> None:
        """`set_state` for a result of `state_dict`.

        The state of another rank moves the generator to that position, with its own key: tools that save the state of only one
        rank pass it to all, and synchronous ranks have drawn equally often, though perhaps with different seeds.

        Args:
            state: a result of `state_dict`.

        Raises TypeError for other objects, ValueError for a text that is not a state.
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
        """Return the `(key, position)` of the next `count` words, and skip them."""
        with _moving:
            position = self._position
            self._position = (position + count) % philox.POSITIONS
            return self._key, position


class _OfThread(threading.local):
    """The default generator of a thread."""

    rng: RNG | None = None


_thread = _OfThread()
_parent: tuple[int, int, int] | None = (
    None  # in a forked child: the state of its parent's generator, and the child's number
)
_outer_worker: Any = None  # in a process that a worker forked: torch's information about that worker
_seeded = 0  # the number of generators made from the seed of torch's worker


def get_default_rng() -> RNG:
    """Return the generator that random operators of this thread use by default.

    It is created on first use; every thread has its own. Its key comes from the first of these cases that applies:

    * in a worker of torch's `DataLoader`: the worker's seed, which differs between workers and epochs and is repeated after the
      same `torch.manual_seed` (or `DataLoader(generator=...)`);
    * in a process forked by a thread that had a default generator: a new branch of that, different for each child and repeated
      after the same `set_seed`;
    * otherwise a number from the operating system.

    >>> get_default_rng() is get_default_rng()
    True
    """
    rng = _thread.rng
    if rng is None:
        rng = _thread.rng = RNG(_first_key())
    return rng


def set_seed(seed: SupportsIndex) -> None:
    """Restart the default generator of this thread with a key.

    Afterwards every random operator of this thread without `rng=` repeats its values. Other processes have their own
    generators, see `get_default_rng`; a DataLoader's `worker_init_fn` may set their seeds.

    Args:
        seed: the key, truncated to 64 bits.

    Raises TypeError unless it is an integer.

    >>> set_seed(42)
    >>> get_default_rng()
    RNG(state='Philox_000000000000002A_0000000000000000:0000000000000000_0')
    """
    get_default_rng().seed = seed


def _first_key() -> int | None:
    """The key of a thread's default generator; None if the operating system chooses it."""
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
    """torch's information about this process as a worker of a DataLoader."""
    loading = sys.modules.get("torch.utils.data")
    return None if loading is None else loading.get_worker_info()


def _before_fork() -> None:
    """Counts the child, so that the next one draws different numbers. Those of the parent do not change."""
    rng = _thread.rng if _parent is None else get_default_rng()  # a child that has not drawn yet has a state too
    if rng is not None:
        rng._branches += 1


def _in_child() -> None:
    """The generator of the forking thread is the parent's; the other threads and their generators do not exist here."""
    global _moving, _outer_worker, _parent
    _moving = threading.RLock()
    _outer_worker = _worker()
    rng = _thread.rng
    if rng is not None:
        _parent = rng._key, rng._position, rng._branches
        _thread.rng = None


around_fork(before=_before_fork, in_child=_in_child)
