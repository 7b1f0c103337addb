"""The state that calls of a pipeline keep between runs (readers, random generators, sources), and their seeds.

A pipeline's `seed` gives each reader and random operator that has no `seed` of its own one of the words that
`std::seed_seq{seed}` makes, in the order in which DALI meets them (`Trace.call_states`). So the orders of readers and the numbers
drawn are the same as in DALI's pipelines.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from ndd.pipeline import current
from ndd.pipeline.checkpoints import give_state
from ndd.readers.sampling.permutation import seed_sequence

_WORDS = 1024  # the length of the sequence decides its words


class OperatorState:
    """The state of one call. Each pipeline that the call belongs to makes its own object, with `make(pipeline, seed)`.

    Args:
        kind: the kind of the call, for checkpoints.
        name: given by the user.
        seeded: whether `make` is given a seed: the call's own, or where that is None or negative a word of the pipeline's.
        seed: the call's own.
        like: the state of another input set of the same call. Each takes a word of the seed, and all use the first, as in
            DALI.
        is_source: whether it gives batches from outside, and may be fed.
    """

    def __init__(
        self,
        kind: str,
        make: Callable[[Any, int | None], Any],
        *,
        name: str | None = None,
        seeded: bool = False,
        seed: int | None = None,
        like: OperatorState | None = None,
        is_source: bool = False,
    ):
        self.kind, self.make, self.name, self.is_source = kind, make, name, is_source
        self.seed = None if seed is None or seed < 0 else int(seed)
        self.takes_word = seeded and self.seed is None
        self.like: OperatorState = like.like if like is not None else self
        self.node: Any = None  # the first of the call's nodes, which have its name

    @property
    def called(self) -> str | None:
        """The name of the call: the one given by the user, or DALI's for its nodes, if they have one yet."""
        label = getattr(self.node, "name", None)
        return label.partition("[")[0] if self.name is None and label is not None else self.name

    def __call__(self) -> Any:
        """The object of the running pipeline."""
        return current.pipeline()._states.of(self)


class OperatorStates:
    """The objects that the calls of one pipeline keep."""

    def __init__(self, seed: int | None, restored: dict[str, Any] | None):
        self.objects: dict[str, Any] = {}  # by kind and number, as in checkpoints
        self._states: dict[OperatorState, Any] = {}
        self._words: dict[OperatorState, int] = {}
        self._seeds = None if seed is None else itertools.cycle(seed_sequence(seed, _WORDS))
        self._restored = restored
        self._known: dict[Any, OperatorState] = {}  # in bodies that run for every batch
        self.begin()

    def begin(self) -> None:
        """A body begins."""
        self._counts: dict[Any, int] = {}
        self.numbers = itertools.count()  # for the names of nodes

    def of(self, call_state: OperatorState) -> Any:
        """The object, made at the first call."""
        if call_state not in self._states:
            if call_state.takes_word and call_state.like not in self._words:
                self.give_seeds([call_state])
            state = call_state.make(
                current.pipeline(), call_state.seed if call_state.seed is not None else self._words.get(call_state.like)
            )
            label = f"{call_state.kind} {call_state.name or sum(other.kind == call_state.kind for other in self._states) + 1}"
            if self._restored is not None:
                give_state(state, label, self._restored)
            self._states[call_state], self.objects[label] = state, state
        return self._states[call_state]

    def __contains__(self, call_state: OperatorState) -> bool:
        return call_state in self._states

    def give_seeds(self, calls: Iterable[OperatorState]) -> None:
        """A word of the pipeline's seed for each state that takes one."""
        if self._seeds is None:
            return
        words: dict[OperatorState, int] = {}
        for call_state in calls:
            if call_state.takes_word and call_state not in self._words:
                words.setdefault(call_state.like, word := next(self._seeds))
                words.setdefault(call_state, word)
        self._words = {**words, **self._words}

    def known_here(self, call_state: OperatorState) -> OperatorState:
        """The state of the same call in an earlier run, if the body runs for every batch. A call is known by its name, else
        by its place in the program, so that calls that are skipped in some runs do not shift the others."""
        frame = current.user_frame()
        site = (
            (call_state.kind, call_state.name)
            if call_state.name is not None
            else (call_state.kind, frame.f_code, frame.f_lasti)
        )
        number = self._counts[site] = self._counts.get(site, 0) + 1
        if call_state.name is not None and number > 1:
            check_names([call_state, self._known[(*site, 1)]])
        return self._known.setdefault((*site, number), call_state)


def check_names(calls: Iterable[OperatorState]) -> None:
    """Raises RuntimeError for two calls of one name."""
    names: dict[str, OperatorState] = {}
    for call_state in calls:
        if call_state.name is not None and names.setdefault(call_state.name, call_state).like is not call_state.like:
            raise RuntimeError(f"The pipeline has two calls named {call_state.name!r}: names must differ")
