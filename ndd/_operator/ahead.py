"""Lookahead over the body of a loop: what it did with the last batches of a reader is done with the coming ones.

An eager loop calls the same operators on each batch of a reader. The calls that begin with a batch, and what is called on
their results, are written down: a `Step` each, a `Trip` for each batch. What the last two trips have in common is what the
next one is expected to do, with random operators that draw from as much further on. On a GPU it is done for the coming
batches on threads and streams of its own; on the CPU, whose cores may be the user's, in captured loops alone, for one batch
after the other (`_look_ahead`). A call of the loop that is the expected one, with the very place of its generator, runs
nothing: its result is the one made ahead. Where the loop does something else it is done as in any other program, and what was
made ahead is dropped. Values never change.

A result that the loop has not asked for itself is made only if a result that it asked for needs it; so an operator may
swallow the one before it (`Call.joined`).
"""

from __future__ import annotations

import threading
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from ndd._execution.context import EvalContext
from ndd._execution.invocation import Invocation, serving
from ndd._execution.kept import Kept
from ndd._execution.lookahead import DEPTH, Following, enabled, threads
from ndd._execution.stream import Stream
from ndd._operator.captured import running
from ndd._tensor import Batch, Store, Tensor

if TYPE_CHECKING:
    from ndd._operator.call import Call, Settled

_MOST_STEPS = 32  # of a loop's body
_ROOT = -1  # the number of the batch that the reader gave
_HANDLES = (Tensor, Batch)


class _Same:
    """A value from outside that every iteration uses: equal to itself alone."""

    __slots__ = ("handle",)

    def __init__(self, handle: Any):
        self.handle = handle

    def __eq__(self, other: object) -> bool:
        return other.__class__ is _Same and other.handle is self.handle  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]


class Step:
    """A call of the loop: what was called, on results of which steps.

    Attributes:
        sources: for each input and argument that is a value: (number of a step, of its outputs), or `_Same`.
        words: how far its generator goes in an iteration; None where that is not known.
    """

    __slots__ = ("batched", "draws", "inputs", "n", "named", "op", "settled", "sources", "words")

    def __init__(self, call: Call, sources: tuple[Any, ...]):
        self.op = call.op
        settled = call.settled
        self.named: list[str] = []  # the arguments that are values
        if settled.handles:
            self.named = [name for name, value in settled.named.items() if value.__class__ in _HANDLES]
            settled = settled.given(tuple(settled.named.values()), keep=False)
        self.settled: Settled = settled
        self.inputs = len(call.handles)
        self.sources = sources
        self.n = call.n
        self.batched = call.batched
        self.draws = call.draws
        self.words: int | None = None

    def same(self, other: Step) -> bool:
        """Whether it is the same call, apart from the batch."""
        return self.settled.plans is other.settled.plans and self.sources == other.sources


class Made:
    """A step that is done ahead: the invocation that runs it, and what there is to know of its call. Not the call itself,
    which has the batch as an input."""

    __slots__ = ("_handles", "batched", "draws", "invocation", "n", "outs")

    def __init__(self, call: Call, invocation: Invocation):
        self.batched = call.batched
        self.draws = call.draws
        self.n = call.n
        self.outs = call.outs
        self.invocation = invocation
        self._handles: dict[int, Any] = {}

    def handle(self, index: int) -> Any:
        """The value that the next steps see of output `index`; one for all of them, which hold it alone."""
        found = self._handles.get(index)
        handle = found and found()
        if handle is None:
            kind = Batch if self.batched else Tensor
            handle = kind._of_pending(self.invocation, index, self.outs[index], self.n)
            self._handles[index] = weakref.ref(handle)
        return handle


class Course:
    """What a loop does with the batches of one output of a reader.

    Attributes:
        expected: the steps that the next batches are expected to take; None for one that cannot be foreseen.
        asked: numbers of the steps whose results the loop asked for itself.
        coming: how many of the next batches are being worked on.
    """

    __slots__ = ("asked", "coming", "expected", "last", "steps")

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.expected: list[Step] = []
        self.asked: set[int] = set()
        self.coming = 0
        self.last: Trip | None = None

    def turn(self, trip: Trip) -> None:
        """A new batch begins its trip: the last one's is over."""
        self.coming = 0 if trip.future is None else self.coming - 1
        last, self.last = self.last, trip
        if last is None:
            return
        last.made = ()
        before, self.steps = self.steps, last.steps
        common = 0
        for old, new in zip(before, self.steps, strict=False):
            if not new.same(old):
                break
            new.words = None if new.draws is None else new.draws.words_since(old.draws)
            common += 1
        if common < len(self.expected):
            self.asked.clear()
        self.expected = self.steps[:common] if before else self.steps


class Trip:
    """One batch's way through the body of the loop, as far as it has come.

    Attributes:
        made: what is done ahead, by the number of the step: a `Made`, or None; empty once the loop did something else.
        expected: the steps that they are.
    """

    __slots__ = ("__weakref__", "begun", "course", "expected", "future", "made", "steps")

    def __init__(self, course: Course):
        self.course = course
        self.steps: list[Step] = []
        self.begun = False
        self.made: Any = ()
        self.expected = course.expected
        self.future: Future[None] | None = None


class _Local(threading.local):
    trip: Any = None  # a weak reference to the trip that the loop of this thread is on


_local = _Local()


def follow(call: Call, invocation: Invocation) -> bool:
    """Writes a call down, if it belongs to a trip. Whether its result was made ahead: then there is nothing to run."""
    if not call.op.ours or not call.op.may_run_ahead:  # what a user's operator does may be seen
        return False
    found = _sources(call)
    if found is None:
        return False
    trip, sources, root = found
    number = len(trip.steps)
    if number >= _MOST_STEPS:
        trip.made = ()
        return False
    step = Step(call, sources)
    trip.steps.append(step)
    invocation.link = (trip, number)
    if root is not None:
        _look_ahead(trip, root, call, invocation.context)
    made = trip.made
    if not made:
        return False
    one = made[number] if number < len(made) else None
    if one is None or not _agree(one, call, trip.expected[number], step):
        trip.made = ()
        return False
    made[number] = None  # from here on it lives as long as its handle
    invocation.work = _Taken(call, one.invocation, trip, number)
    return True


def _agree(made: Made, call: Call, expected: Step, step: Step) -> bool:
    """Whether a call is the one that was made."""
    if not (step.same(expected) and call.n == made.n and call.batched == made.batched):
        return False
    draws, there = call.draws, made.draws  # of one operator: it draws in both or in none
    return draws is None or (draws.key == there.key and draws.position == there.position)


def _sources(call: Call) -> tuple[Trip, tuple[Any, ...], Store | None] | None:
    """The trip that a call belongs to, where its inputs come from, and the store of the batch if it is the trip's first."""
    trip: Any = None
    root: Store | None = None
    found: list[Any] = []
    handles = call.settled.handles
    for handle in (*call.handles, *handles) if handles else call.handles:
        if handle is None:
            found.append(None)
            continue
        store = handle._store
        if store is None:
            pending = handle._pending
            link = None if pending is None else pending.link
        else:
            link = store.following
        if link is None:
            if store is None or handle._external:
                return None
            found.append(_Same(handle))
            continue
        if link.__class__ is Following:
            theirs, number = store.ahead, _ROOT  # type: ignore[union-attr]
            if theirs is None:
                theirs = store.ahead = Trip(link.memory.setdefault("course", Course()))  # type: ignore[union-attr]
            if not theirs.begun:
                root = store
        else:
            theirs, number = link
        if trip is not None and theirs is not trip:
            return None
        trip = theirs
        found.append((number, handle._index))
    if trip is None:
        if not call.op.random or any([source is not None for source in found]):
            return None
        trip = _local.trip and _local.trip()  # numbers drawn for the batch that the loop is at
        if trip is None:
            return None
    return trip, tuple(found), root


def _look_ahead(trip: Trip, root: Store, call: Call, context: EvalContext) -> None:
    """A trip begins: what is expected of the next ones is set going."""
    trip.begun = True
    _local.trip = weakref.ref(trip)
    course = trip.course
    course.turn(trip)
    gpu = next((d.device_id for s in course.expected if (d := s.settled.device).device_id is not None), None)
    if not course.expected or (gpu is None and running() is None) or not enabled():
        return
    following = root.following
    for distance in range(course.coming + 1, DEPTH + 1):
        store = following.store(distance)
        if store is None:
            break
        course.coming = distance
        if store.ahead is None:
            _rounds[0] = (_rounds[0] + 1) % (DEPTH + 1)
            own = _contexts(gpu, context._pool, _rounds[0])
            coming = store.ahead = Trip(course)
            made = coming.made = _made(course, store, distance + 1, own)
            wanted = [m.invocation for k, m in enumerate(made) if m is not None and _is_wanted(course, k)]
            workers = _one_thread() if gpu is None else threads()
            coming.future = workers.submit(
                _run, weakref.ref(store), wanted, None if gpu is None else own.stream_on(gpu)
            )


def _new_context(device_id: int | None, pool: Any, number: int) -> EvalContext:
    return EvalContext(cuda_stream=None if device_id is None else Stream(device_id=device_id), thread_pool=pool)


_rounds = [0]
# Batches that are worked on at once have streams of their own, so that none waits for another.
_contexts = Kept(_new_context, limit=16)
# On the CPU all cores work for one batch: the one that the loop comes to first.
_one_thread = Kept(lambda: ThreadPoolExecutor(1, thread_name_prefix="ndd-lookahead"))


class _Root:
    """In place of the invocation that a coming batch came from. It does not hold the batch, which holds what is made of it."""

    finished, error, queued, begun, link, work = True, None, True, True, None, None

    def __init__(self, store: Store):
        self._store = weakref.ref(store)

    def result(self, index: int) -> Store:
        """The batch's store."""
        found = self._store()
        if found is None:
            raise RuntimeError("the reader has dropped this batch")
        return found


def _made(course: Course, store: Store, distance: int, context: EvalContext) -> list[Made | None]:
    """The invocations of the expected steps for a coming batch, `distance` trips after the last whole one. Nothing runs."""
    from ndd._operator.call import Call

    found: list[Made | None] = []
    usual = course.expected[0].n
    for step in course.expected:
        draws, handles = step.draws, []
        if draws is not None:
            draws = None if step.words is None else draws.moved(step.words * distance)
        if draws is None and step.draws is not None:
            found.append(None)
            continue
        for source in step.sources:
            if source is None or source.__class__ is _Same:
                handles.append(source and source.handle)
            elif source[0] == _ROOT:
                handles.append(Batch._of_pending(_Root(store), 0, step.settled.specs[len(handles)], store.n))
            else:
                before = found[source[0]]
                if before is None:
                    break
                handles.append(before.handle(source[1]))
        if len(handles) < len(step.sources):
            found.append(None)
            continue
        inputs, settled = tuple(handles[: step.inputs]), step.settled
        if step.named:
            given = dict(zip(step.named, handles[step.inputs :], strict=True))
            settled = settled.given(tuple([given.get(name) for name in settled.named]))
        n = store.n if step.n == usual else step.n
        call = Call(step.op, settled, inputs, n, step.batched, draws)
        if step.op.looks_at is not None:
            call.announce()
        invocation = Invocation(step.op.name, call.run, context, None, True)
        if call.device.device_id is None:
            # Made before the call runs, which on a GPU may make them itself (`Call._joined`).
            invocation.inputs = inputs
        found.append(Made(call, invocation))
    return found


def _is_wanted(course: Course, number: int) -> bool:
    """Whether the loop asks for the result of a step itself: it did, or there is nothing else to ask for it."""
    return number in course.asked or not any([(number, 0) in s.sources for s in course.expected])


def _run(reference: Any, wanted: list[Invocation], stream: Any) -> None:
    """On a thread of the lookahead: the results that the loop will ask for, and an event behind them."""
    store = reference()
    if store is None:
        return
    for invocation in wanted:
        invocation.context.finish(invocation)
    if stream is None:
        return
    from ndd._cuda.event import recorded

    event = recorded(stream)  # the stream itself goes on with other batches
    for invocation in wanted:
        for result in invocation.results or ():
            if result.stream is not None:
                result.stream, result.ready = None, event


class _Taken:
    """The work of a call whose result was made ahead: to take it. If it failed, nobody has begun, or only what another call
    looks at was made, the call runs."""

    __slots__ = ("call", "course", "future", "made", "number")

    def __init__(self, call: Call, made: Invocation, trip: Trip, number: int):
        self.call = call
        self.made = made
        self.future: Any = trip.future
        self.course = trip.course
        self.number = number

    def __call__(self, invocation: Invocation) -> list[Store]:
        if len(serving.now) < 2 or serving.now[-2].link is None:  # not for a step, which may do without it next time
            self.course.asked.add(self.number)
        if not self.future.cancel() and self.future.exception() is None:
            made = self.made
            if not made.finished:  # nothing that the loop was expected to ask for needed it
                made.context.finish(made)
            if made.error is None and not any([store.partial for store in made.results or ()]):
                return made.results  # type: ignore[return-value]
        return self.call.run(invocation)
