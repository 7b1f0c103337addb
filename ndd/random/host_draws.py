"""Numbers of torch's generator in a loop: the numbers of coming batches are predicted, so that work on them is done ahead.

`draw(step, n)` runs a step of a program: `step` is a function with its arguments, and draws a row for each of `n` samples from
torch's generator immediately. Consecutive steps, with no other number drawn between them, are a chain. If a step of a loop
recurs, the steps after it are expected to recur too, and a copy of the generator draws their numbers before the loop requests
them. If the loop then requests them from the same state, it gets these numbers, and the generator advances to the state after
them. So the prediction has no visible effect.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
import torch

from ndd._cpu.philox import sample_streams
from ndd._operator import operator, output
from ndd._tensor import DType

Step = tuple[Any, ...]
"""A function `(generator, n, *others)` that returns an array, and the other arguments, which compare by value."""

_KEPT = 256  # past steps, from which the coming ones are predicted


class _Drawn(NamedTuple):
    step: Step
    n: int
    rows: np.ndarray
    after: torch.Tensor  # the generator's state


def _drawn(step: Step, n: int, generator: torch.Generator) -> _Drawn:
    function, *others = step
    rows = function(generator, n, *others)
    return _Drawn(step, n, rows, generator.get_state())


class _Chain:
    """Steps by their number; those from `asked` on are predicted."""

    def __init__(self, state: torch.Tensor):
        self.state = state  # after the last requested step
        self.asked = 0
        self.steps: dict[int, _Drawn] = {}

    def ask(self, step: Step, n: int) -> int | None:
        """The number of the step that is requested now; None if another one was predicted."""
        number, generator = self.asked, torch.default_generator
        drawn = self.steps.get(number)
        if drawn is None:
            self.steps[number] = drawn = _drawn(step, n, generator)
        elif drawn.n == n and drawn.step == step:
            generator.set_state(drawn.after)
        else:
            return None
        self.state, self.asked = drawn.after, number + 1
        self.steps.pop(number - _KEPT, None)
        return number

    def foreseen(self, number: int, period: int) -> _Drawn | None:
        """Step `number`, if each step repeats the one `period` steps before it."""
        for k in range(self.asked, number + 1):
            if k not in self.steps:
                model = self.steps.get(k - period)
                if model is None:
                    return None
                generator = torch.Generator()
                generator.set_state(self.steps[k - 1].after)
                self.steps[k] = _drawn(model.step, model.n, generator)
        return self.steps.get(number)


class HostDraws:
    """The numbers of a step, in place of the `Draws` of a random operator."""

    __slots__ = ("_drawn", "_period", "key", "position")

    def __init__(self, chain: _Chain, number: int, period: int = 0):
        self.key, self.position, self._period = chain, number, period
        self._drawn = chain.foreseen(number, period)

    def words_since(self, earlier: HostDraws) -> int | None:
        """The number of steps since those of an earlier iteration; None if other numbers were drawn between."""
        if self.key is not earlier.key:
            return None
        self._period = self.position - earlier.position
        return self._period

    def moved(self, words: int) -> HostDraws:
        """The numbers that are drawn this many steps later."""
        return type(self)(self.key, self.position + words, self._period)

    def streams(self, n: int) -> np.ndarray:
        """The rows of the samples `[n, ...]`."""
        if self._drawn is None or self._drawn.n != n:
            raise ValueError(f"the numbers of {n} samples were not predicted")
        return self._drawn.rows

    def columns(self, first: int, count: int, dtype: DType) -> Any:
        """`count` numbers of each row, from `first` on, as a batch; a scalar for each sample if `count` is 0."""
        n = 0 if self._drawn is None else self._drawn.n
        return torch_numbers(first=first, count=count, dtype=dtype, batch_size=n, rng=self, device="cpu")


class SeededDraws(HostDraws):
    """The streams of a generator whose seed a step draws."""

    __slots__ = ()

    def streams(self, n: int) -> np.ndarray:
        """See `random.streams.Draws.streams`."""
        if self._drawn is None:
            raise ValueError("the seed was not predicted")
        keys = np.empty((n, 4), np.uint64)
        sample_streams(np.array((self._drawn.rows[0], 0, 0, 0), np.uint64), keys)
        return keys


class _OfThread(threading.local):
    chain: _Chain | None = None


_of_thread = _OfThread()


def draw(step: Step, n: int) -> HostDraws:
    """Rows for `n` samples."""
    return HostDraws(*_asked(step, n))


def seed() -> SeededDraws:
    """The numbers of a random operator, by a seed of torch's generator."""
    return SeededDraws(*_asked((_seed,), 1))


def _asked(step: Step, n: int) -> tuple[_Chain, int]:
    state, chain = torch.default_generator.get_state(), _of_thread.chain
    number = chain.ask(step, n) if chain is not None and _equal(state, chain.state) else None
    if chain is None or number is None:
        _of_thread.chain = chain = _Chain(state)
        number = chain.ask(step, n) or 0
    return chain, number


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """As `torch.equal`, but it keeps the interpreter, for which the threads of a lookahead wait."""
    return one.numpy().tobytes() == other.numpy().tobytes()


def _seed(generator: torch.Generator, n: int) -> np.ndarray:
    return torch.randint(-(2**63), 2**63 - 1, (1,), generator=generator).numpy().view(np.uint64)


@operator(random=True, register=False)
def torch_numbers(*, first: int, count: int, dtype: DType):
    """Columns of the numbers that a step has drawn."""
    return output(dtype, 1 if count else 0)


# A batch: the numbers are columns of a table for all samples.
@torch_numbers.batch
def _(call, *, first, count, dtype):
    rows = call.draws.streams(call.n)
    some = rows[:, first : first + count] if count else rows[:, first]
    return np.ascontiguousarray(some.astype(dtype.numpy))


__all__ = ["HostDraws", "SeededDraws", "draw", "seed"]
