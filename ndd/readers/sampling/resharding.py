"""Resharding: N processes begin an epoch and M others finish it. The remaining samples are divided again, exactly.

The saved states hold the places of the N processes. These and the order of their shards determine which samples are left. If the
processes are in step, as DDP keeps them, the place of one process determines the places of all. A state that is saved during such
an epoch also holds these places ("before"), and earlier ones if the epoch was divided before.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ndd.readers.sampling.numbers import Listing, joined
from ndd.readers.sampling.sampler import Order, Shards, epoch_batches, taken_inside

_DEEPEST = 100  # the number of times that one epoch may be divided again
_FURTHEST = 1_000_000  # the largest epoch in a state of another rank: its place is found by going through all epochs


class Resharded(Order):
    """The current order, except that visits which earlier processes left unfinished hold this process's share of the rest. If the
    rest has fewer samples than there are processes, it is added to the next visit.

    Args:
        order: the current order.
        before: the orders of the earlier processes.
        places: (visit, offset) of each of them.
    """

    def __init__(self, order: Order, before: list[Order], places: list[list[int]]):
        super().__init__(order.shards)
        self.rotates = order.rotates
        self._order = order
        self._before = before
        self._places = places
        self._rests: dict[int, Listing] = {}
        self.first, self.last = min(v for v, _ in places), max(v for v, _ in places)

    @cached_property
    def unpadded(self) -> Order:
        """The same order with nothing repeated."""
        other = copy.copy(self)
        other._order = self._order.unpadded
        other.shards = other._order.shards
        return other

    @cached_property
    def _start(self) -> int:
        """The first visit in which each process has samples; the rest of earlier visits is added to it."""
        left = 0
        for visit in range(self.first, self.last + 1):
            left += len(self._unseen(visit))
            if left >= self.shards.count:
                return visit
        return self.last + 1 if left else self.first

    def rest(self, visit: int) -> Listing:
        """The samples of a visit that no process has delivered, and the samples of earlier visits that are added to it."""
        if visit < self._start:
            return np.empty(0, np.int64)
        return self._unseen(visit) if visit > self._start else self._at_start

    @cached_property
    def _at_start(self) -> Listing:
        return joined([self._unseen(visit) for visit in range(self.first, self._start + 1)])

    def _unseen(self, visit: int) -> Listing:
        unseen = self._rests.get(visit)
        if unseen is None:
            unseen = self._interleaved_rest(visit) if self.shards.interleaved else self._one_after_the_other(visit)
            self._rests[visit] = unseen
        return unseen

    def _one_after_the_other(self, visit: int) -> Listing:
        parts: list[Listing] = []
        for order, (place, offset) in zip(self._before, self._places, strict=True):
            if place <= visit:
                parts.append(order.visit(visit, None)[0][offset if place == visit else 0 :])
        return joined(parts)

    def _interleaved_rest(self, visit: int) -> Listing:
        """First the rounds that only some processes have delivered, then those that none has, in the order of the whole visit."""
        whole, count = self._before[0].whole(visit), len(self._places)
        rounds = -(-len(whole) // count)
        taken = [
            0 if place < visit else min(offset, rounds) if place == visit else rounds for place, offset in self._places
        ]
        most = min(max(taken) * count, len(whole))
        between = [np.arange(rank + done * count, most, count) for rank, done in enumerate(taken)]
        return joined([whole[np.sort(np.concatenate(between))], whole[most:]])

    def whole(self, visit: int) -> Listing:
        """The samples that the processes divide among themselves: the rest of a visit, or all of it."""
        return self.rest(visit) if self.is_rest(visit) else self._order.whole(visit)

    def is_rest(self, visit: int) -> bool:
        """Whether a visit is the rest of one that other processes have begun."""
        return self.first <= visit <= max(self.last, self._start)

    def _part(self, visit: int) -> Order:
        return Order(replace(self.shards, size=len(self.rest(visit)), stick=True))

    def total(self, visit: int) -> int:
        """The number of samples of all processes together."""
        return len(self.rest(visit)) if self.is_rest(visit) else self._order.total(visit)

    def length(self, visit: int) -> int:
        """The number of samples of a visit."""
        return self._part(visit).length(0) if self.is_rest(visit) else self._order.length(visit)

    def draw_at(self, visit: int) -> int | None:
        """The state of the shuffle buffer's generator at the start of a visit."""
        return None if self.is_rest(visit) else self._order.draw_at(visit)

    def visit(self, number: int, draw: int | None) -> tuple[Listing, int | None]:
        """The samples of this process, and the state of the generator after them."""
        if not self.is_rest(number):
            return self._order.visit(number, draw)
        part = self._part(number).part(0)
        return self.rest(number)[part.start : part.stop : part.step], None


def resumed_order(make: Callable[[Shards], Order], shards: Shards, before: dict[str, Any] | None) -> Order:
    """The order of `shards` that continues after the places in `before`, if there are any."""
    order = make(shards)
    if before is None:
        return order
    count = len(before["places"])
    others = [replace(shards, count=count, index=i) for i in range(count)]
    return Resharded(order, [resumed_order(make, own, before.get("before")) for own in others], before["places"])


def of_all_ranks(
    reader: str, saved: list[dict[str, Any]], shards: Shards, make: Callable[[Shards, int], Order], anew: bool = False
) -> dict[str, Any]:
    """The state with which rank `shards.index` of `shards.count` continues after the ranks with these saved states. `anew` divides
    the rest again even if the number of ranks is the same."""
    if not saved:
        raise ValueError(f"{reader}.set_state: expected the states of all ranks, got an empty list")
    count = len(saved)
    parts = [state.get("shards") for state in saved]
    if sorted(map(str, parts)) != sorted(str([i, count]) for i in range(count)):
        raise ValueError(
            f"{reader}.set_state: expected the states of shards 0 to {count - 1} of {count}, each once, got those of {parts}"
        )
    states = sorted(saved, key=lambda state: state["shards"][0])
    if count == shards.count and not anew:
        return states[shards.index]
    first = next((state for state in states if state.get("size") is not None), states[0])
    for state in states:
        for key in ("size", "names", "order", "fill", "stick", "pad", "seed", "before"):
            never_opened = key in ("size", "names") and state.get("size") is None
            if state.get(key) != first.get(key) and not never_opened:
                raise ValueError(
                    f"{reader}.set_state: the states of ranks {first['shards'][0]} and {state['shards'][0]} differ in {key!r}: "
                    f"{first.get(key)} and {state.get(key)}"
                )
    places = [[state["visit"], state["offset"]] for state in states]
    former = first.get("before")
    if former is not None and min(v for v, _ in places) > max(v for v, _ in former["places"]) + 1:
        former = (
            None  # all ranks have finished that epoch, and the next one, to which its last samples may have been added
        )
    before: dict[str, Any] = {"places": places, **({"before": former} if former else {})}
    order: Any = resumed_order(lambda own: make(own, first["seed"]), shards, before)
    visit = order.first
    while not order.total(visit):
        visit += 1
    skipped = {tuple(bad): None for state in states for bad in state.get("skipped", [])}
    return {
        **first,
        "shards": [shards.index, shards.count],
        "epoch": visit,
        "left": 0,
        "left_batch": 1,
        "visit": visit,
        "began": visit,
        "offset": 0,
        "draw": None,
        "skipped": [list(bad) for bad in skipped],
        "before": before,
    }


def of_one_rank(
    reader: str, states: list[dict[str, Any]], shards: Shards, make: Callable[[Shards, int], Order], anew: bool = False
) -> dict[str, Any]:
    """The state with which rank `shards.index` of `shards.count` continues after ranks that were in step, from the state of
    one of them; `anew` as in `of_all_ranks`."""
    (saved,) = states
    place = saved["shards"]
    if place == shards.place and not anew:
        return saved
    if not (_is_place(place) and place[0] < place[1] <= shards.size):
        raise ValueError(f"{reader}.set_state: expected [shard, number of shards] for 'shards', got {place!r}")
    if saved["visit"] > _FURTHEST:
        raise ValueError(
            f"{reader}.set_state: expected a state of at most {_FURTHEST} epochs, got one of {saved['visit']}"
        )
    count = place[1]
    every = anew or count != shards.count
    orders = [
        resumed_order(lambda own: make(own, saved["seed"]), replace(shards, index=i, count=count), saved.get("before"))
        for i in (range(count) if every else (shards.index, place[0]))
    ]
    theirs = orders[place[0]] if every else orders.pop()
    each = [{**saved, "shards": order.shards.place, **_in_step(reader, saved, theirs, order)} for order in orders]
    return of_all_ranks(reader, each, shards, make, anew) if every else each[0]


def _in_step(reader: str, saved: dict[str, Any], theirs: Order, ours: Order) -> dict[str, Any]:
    """The state of another rank that has taken as many batches as the rank with the state `saved`."""
    visit, offset, left, last = saved["visit"], saved["offset"], saved["left"], saved.get("last", "fill")
    if last == "fill":
        if ours.shards.pad:  # all have the same length
            return {"draw": None}
        began = saved.get("began", 0)
        taken = sum(theirs.length(v) for v in range(began, visit)) + offset
        visit = began
        while taken >= ours.length(visit):
            taken -= ours.length(visit)
            visit += 1
        return {"visit": visit, "offset": taken, "draw": None}
    if not left:
        return {"draw": None}
    batch = saved["left_batch"]
    steps = epoch_batches(theirs, visit, batch, last) - left
    if steps < 0 or taken_inside(theirs.unpadded, visit, batch, steps, last) != offset:
        raise ValueError(
            f"{reader}.set_state: not all batches before the state have {batch} sample(s), so it does not tell where the other "
            "ranks are: pass the list of the states of all ranks"
        )
    left = epoch_batches(ours, visit, batch, last) - steps
    if left > 0:
        return {"offset": taken_inside(ours.unpadded, visit, batch, steps, last), "left": left, "draw": None}
    return {"visit": visit + 1, "began": visit + 1, "offset": 0, "left": 0, "epoch": visit + 1, "draw": None}


def check_before(reader: str, before: Any) -> None:
    """Raises ValueError for a value that cannot be the places of other ranks."""
    depth = 0
    while before is not None:
        depth += 1
        places = before.get("places") if isinstance(before, dict) else None
        if not (isinstance(places, list) and places and all(map(_is_place, places))) or depth > _DEEPEST:
            raise ValueError(
                f"{reader}.set_state: expected the places of other ranks in 'before', got {str(before)[:60]!r}"
            )
        before = before.get("before")


def _is_place(place: Any) -> bool:
    return isinstance(place, list | tuple) and len(place) == 2 and all(type(n) is int and 0 <= n < 2**63 for n in place)
