"""Matching: a call of the loop that is the expected one takes the result that was made ahead, instead of running."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ndd._execution.invocation import Invocation, serving
from ndd._execution.schedule import ask_before_running
from ndd._lookahead.decision import look_ahead
from ndd._lookahead.prefetch import Prefetched
from ndd._lookahead.recording import (
    MAX_CALLS,
    Iteration,
    LoopRecording,
    ReaderOutput,
    RecordedCall,
    sources_of,
    times_written,
)
from ndd._operator.call import Call
from ndd._tensor import Store


def follow_reader(store: Store, peek: Callable[[int], Store | None], loop: LoopRecording) -> None:
    """Makes the calls on a batch of a reader part of a loop; `peek` and `loop`: see `ReaderOutput`."""
    store.loop_position = ReaderOutput(peek, loop)
    ask_before_running(match)  # a program without readers does not need it


def match(call: Call, invocation: Invocation) -> bool:
    """Records a call that belongs to a loop. Returns whether its result is made ahead, so that nothing needs to run."""
    if not call.op.ours or not call.op.may_run_ahead:  # the effects of a user's operator may be visible
        return False
    origin = sources_of(call)
    if origin is None:
        return False
    iteration, sources, batch = origin
    number = len(iteration.calls)
    if number >= MAX_CALLS:
        iteration.prefetched = ()
        return False
    recorded = RecordedCall(call, sources)
    iteration.calls.append(recorded)
    invocation.loop_position = (iteration, number)
    if batch is not None:
        iteration.begin(batch)
        look_ahead(iteration.loop, batch, invocation.context)
    prefetched = iteration.prefetched
    if not prefetched:
        return False
    result = prefetched[number] if number < len(prefetched) else None
    if result is None or not _agree(result, call, iteration.expected[number], recorded):
        iteration.prefetched = ()
        return False
    prefetched[number] = None  # from here on it lives as long as its handle
    invocation.work = _TakePrefetched(call, result, iteration, number)
    return True


def _agree(result: Prefetched, call: Call, expected: RecordedCall, recorded: RecordedCall) -> bool:
    """Whether a call is the one that is made ahead."""
    if not (recorded.repeats(expected) and call.n == result.n and call.batched == result.batched):
        return False
    draws, foreseen = call.draws, result.draws  # of one operator: it draws in both or in none
    return draws is None or (draws.key == foreseen.key and draws.position == foreseen.position)


class _TakePrefetched:
    """The work of a call whose result is made ahead: it takes that result. The call runs if the work ahead failed, if no thread
    has begun it, or if only the part that another call reads was made."""

    __slots__ = ("call", "future", "loop", "number", "process", "result")

    def __init__(self, call: Call, result: Prefetched, iteration: Iteration, number: int):
        self.call = call
        self.result = result
        self.future: Any = iteration.future
        self.process = iteration.process
        self.loop = iteration.loop
        self.number = number

    def __call__(self, invocation: Invocation) -> list[Store]:
        results = self._prefetched() or self.call.run(invocation)
        invocation.loop_position[0].writes[self.number] = [times_written(store) for store in results]
        return results

    def _prefetched(self) -> list[Store] | None:
        # Not for a call of the loop, which may do without it next time.
        if len(serving.now) < 2 or serving.now[-2].loop_position is None:
            self.loop.requested.add(self.number)
        if self.process != os.getpid() and not self.future.done():
            return None  # the threads of the parent do not exist in a forked child
        # Work for merged batches goes on even if the first of them is not taken.
        if self.result.whole is not None and self.future.cancel():  # also if another call has cancelled it
            return None
        if not self.future.done():
            self.loop.pace.hurry()
        if self.future.exception() is None:
            results = self.result.results()
            self.loop.pace.arrived()
            if results is not None and not any([store.partial for store in results]):
                return results
        return None
