"""The states of a pipeline's calls: what they keep between runs (readers, random generators, sources), and their seeds.

A pipeline's `seed` gives each reader and random operator that has no `seed` of its own one of the words that
`std::seed_seq{seed}` makes, in the order in which DALI meets them: output after output, inputs before arguments, and
arguments by their names. So the orders of readers and the numbers drawn are those of DALI's pipelines.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from ndd.pipeline.checkpoints import give_state
from ndd.pipeline.conditions import begin_body, branch
from ndd.pipeline.node import DataNode, nodes_in, user_frame
from ndd.readers.permutation import seed_sequence

_WORDS = 1024  # the length of the sequence decides its words


class CallState:
    """The state of one call: made by `make(seed)` when it is first asked for, since the seed is known with the whole body."""

    def __init__(self, room: CallStates, kind: str, name: str | None, make: Callable[[int | None], Any], seeded: bool):
        self.room = room
        self.kind = kind
        self.name = name
        self.seeded = seeded
        self.seed: int | None = None
        self.missed: Callable[[Any, Any], None] | None = None
        self._make: Callable[[int | None], Any] | None = make
        self._value: Any = None

    def within(self, states: CallStates) -> CallState:
        """The state in a pipeline: this one. `StateForEach` has one for each pipeline."""
        return self

    def __call__(self) -> Any:
        """The reader, generator or source."""
        if self._make is not None:
            if self.seeded and self.seed is None:
                self.room.give_seed(self)
            made = self._make(self.seed)
            self.room.note(self, made)
            self._value, self._make = made, None  # what makes it holds the pipeline, which holds this
        return self._value


class CallStates:
    """The states of all calls of one pipeline."""

    def __init__(self, seed: int | None, restored: dict[str, Any] | None):
        self.objects: dict[str, Any] = {}  # by kind and number, as a checkpoint knows them
        self._seeds = None if seed is None else itertools.cycle(seed_sequence(seed, _WORDS))
        self._restored = restored
        self._calls: dict[Any, CallState] = {}
        self.begin()

    def begin(self) -> None:
        """A run of the body begins."""
        begin_body()
        self._counts: dict[Any, int] = {}
        self._reached: set[Any] = set()
        self.numbers = itertools.count()  # for the names of nodes

    def of_call(
        self,
        kind: str,
        make: Callable[[int | None], Any],
        *,
        name: str | None = None,
        seeded: bool = False,
        seed: int | None = None,
        key: Any = None,
        missed: Callable[[Any, Any], None] | None = None,
    ) -> CallState:
        """The state of the call that is running. It is known by its name, else by the place in the program and the
        branches around it, so that calls that a condition leaves out in some runs do not shift the others; or by `key`.

        `seeded`: `make` is given `seed`, the call's own, or where that is None or negative a word of the pipeline's.
        `missed`: what to do with what was made, and the pipeline, in a run in which no sample takes the branch of the call.
        RuntimeError for two calls of one name in one run of the body.
        """
        if key is None and name is not None:
            key = (kind, name)
            self._counts[key] = self._counts.get(key, 0) + 1
            if self._counts[key] > 1:
                raise RuntimeError(
                    f"fn.{kind.removeprefix('reader ')}: the pipeline has two of the name {name!r}: names must differ"
                )
        elif key is None:
            site = (kind, *_call_site())
            number = self._counts[site] = self._counts.get(site, 0) + 1
            key = (*site, number)
        found = self._calls.get(key)
        if found is None:
            found = self._calls[key] = CallState(self, kind, name, make, seeded)
            found.seed = None if seed is None or seed < 0 else int(seed)
            found.missed = missed if branch() is not None else None
        self._reached.add(key)
        return found

    def pass_by(self, pipeline: Any) -> None:
        """After a run: moves on what is in branches that no sample took. In DALI it reads and draws, for nobody."""
        for key, state in list(self._calls.items()):
            if state.missed is not None and key not in self._reached:
                state.missed(state(), pipeline)

    def note(self, state: CallState, made: Any) -> None:
        """Labels what a call has made, and moves it to where its predecessor stood."""
        places = [call for call in self._calls.values() if call.kind == state.kind]
        label = f"{state.kind} {state.name or places.index(state) + 1}"
        if self._restored is not None:
            give_state(made, label, self._restored)
        self.objects[label] = made

    def give_seed(self, state: CallState) -> None:
        """The next word of the pipeline's seed."""
        if self._seeds is not None:
            state.seed = next(self._seeds)

    def give_seeds(self, outputs: Iterable[Any]) -> None:
        """States and seeds for all calls that outputs depend on, in DALI's order."""
        seen: set[int] = set()

        def meet(node: DataNode) -> None:
            if id(node) in seen:
                return
            seen.add(id(node))
            for before in nodes_in(node.inputs):
                meet(before)
            state = node.state.within(self) if node.state is not None else None
            if state is not None and state.seeded and state.seed is None:
                self.give_seed(state)

        for node in nodes_in(tuple(outputs)):
            meet(node)

    def make_all(self) -> None:
        """Makes what is not made yet."""
        for state in list(self._calls.values()):
            state()


def _call_site() -> tuple[Any, ...]:
    frame, around = user_frame(), branch()
    return frame.f_code, frame.f_lasti, around and around.path
