"""Lookahead over the body of a loop: what it did with the last batches of a reader is done with the coming ones.

An eager loop calls the same operators on each batch of a reader. The calls that begin with a batch, and what is called on
their results, are written down: a `Step` each, a `Trip` for each batch. What the last two trips have in common is what the
next one is expected to do, with random operators that draw from as much further on. On a GPU it is done for the coming
batches on threads and streams of its own, for several of them as one where that is cheap (`together.py`); on the CPU, whose
cores may be the user's, in captured loops alone, for one batch after the other (`_look_ahead`). A call of the loop that is
the expected one, with the very place of its generator, runs nothing: its result is the one made ahead. Where the loop does
something else it is done as in any other program, and what was made ahead is dropped. Values never change
(but for JPEGs that go to a GPU's engines: `hw_decoder_load`). Nor do they where the loop writes by torch into a result on a
GPU, before it goes on with that. Other writing is not seen, as of NumPy into a batch of the reader: work on a copy.

A coming batch is worked on if it is of the element type, number of axes and layout of those before (`_kind`). What is kept
of calls, launches that are written down above all, would take the bytes of another one for its own.

A result that the loop has not asked for itself is made only if a result that it asked for needs it; so an operator may
swallow the one before it (`Call._joined`).
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ndd._execution.context import EvalContext
from ndd._execution.invocation import Invocation, serving
from ndd._execution.lookahead import DEPTH, Following, enabled, threads
from ndd._execution.memoize import Memoized
from ndd._execution.stream import Stream
from ndd._operator.captured import running
from ndd._operator.frames import is_video
from ndd._operator.together import Together
from ndd._tensor import Batch, Spec, Store, Tensor

if TYPE_CHECKING:
    from ndd._operator.call import Call
    from ndd._operator.call_cache import CachedCall

_MOST_STEPS = 32  # of a loop's body
# What is worked on as one, at most: batches; samples (more bring no more); bytes of what is made of them; seconds, for a
# loop that ends has done so much in vain. Python's share of a batch is a few ms: with slower ones it does not matter.
_BATCHES = 8
_SAMPLES = 256
_BYTES = 1 << 29
_SECONDS = 0.1
_ROOT = -1  # the number of the batch that the reader gave
_HANDLES = (Tensor, Batch)


class _Same:
    """A value from outside that every iteration uses: equal to itself alone, as long as nobody writes to it."""

    __slots__ = ("handle", "writes")

    def __init__(self, handle: Any):
        self.handle = handle
        self.writes = 0 if handle._store is None else _writes(handle._store)

    def __eq__(self, other: object) -> bool:
        same = other.__class__ is _Same and other.handle is self.handle  # type: ignore[attr-defined]
        return same and other.writes == self.writes  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]


def _writes(store: Store) -> int:
    """How often somebody wrote to memory of a GPU by torch. Nobody counts that of the CPU, nor what is done by other
    libraries, or in torch's inference mode."""
    return 0 if store.on_cpu else sum([0 if one.is_inference() else one._version for one in store.owners()])


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
        self.settled: CachedCall = settled
        self.inputs = len(call.handles)
        self.sources = sources
        self.n = call.n
        self.batched = call.batched
        self.draws = call.draws
        self.words: int | None = None

    @property
    def apart(self) -> bool:
        """Whether each sample of its result follows from that sample of its inputs alone."""
        if not self.batched or self.settled.fewer:
            return False
        if any([source.__class__ is _Same and source.handle.__class__ is Batch for source in self.sources]):
            return False  # it has as many samples as one batch
        if self.op.frames and self.draws is not None and any(map(is_video, self.settled.specs)):
            return False  # a frame draws by its number among those of the batch
        apart = self.op.apart
        return apart(**self.settled.named) if callable(apart) else apart

    def same(self, other: Step) -> bool:
        """Whether it is the same call, apart from the batch."""
        return self.settled.plans is other.settled.plans and self.sources == other.sources


class Made:
    """A step that is done ahead: the invocation that runs it, and what there is to know of its call. Not the call itself,
    which has the batch as an input.

    Attributes:
        together: several batches, if it is done for them as one; then `portions` has the part of each.
    """

    __slots__ = ("_handles", "batched", "draws", "invocation", "n", "outs", "portions", "together")

    def __init__(self, call: Call, invocation: Invocation, together: Together | None = None):
        self.batched = call.batched
        self.draws = call.draws
        self.n = call.n
        self.outs = call.outs
        self.invocation = invocation
        self.together = together
        self.portions: list[Portion] = []
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

    def results(self) -> list[Store] | None:
        """What came of it, made now if nobody has asked before; None if it failed."""
        made = self.invocation
        if not made.finished:  # nothing that the loop was expected to ask for needed it
            made.context.finish(made)
        return made.results if made.error is None else None

    def cut(self, stream: Any) -> None:
        """Gives each portion its results."""
        if self.together is None or self.invocation.error is not None:
            return
        found = [self.together.cut(store, stream) for store in self.invocation.results or ()]
        for number, portion in enumerate(self.portions):
            if None not in found:
                portion.cut = [parts[number] for parts in found if parts is not None]


class Portion:
    """What `Made` is for one of several batches that are worked on as one."""

    __slots__ = ("batched", "cut", "draws", "n")

    def __init__(self, made: Made, n: int, draws: Any):
        self.batched = made.batched
        self.draws = draws
        self.n = n
        self.cut: list[Store] | None = None
        made.portions.append(self)

    def results(self) -> list[Store] | None:
        """What came of it; None if it failed or was not expected to be asked for."""
        return self.cut


class Course:
    """What a loop does with the batches of one output of a reader.

    Attributes:
        expected: the steps that the next batches are expected to take; None for one that cannot be foreseen.
        asked: numbers of the steps whose results the loop asked for itself.
        coming: how many of the next batches are being worked on.
        kind: what the batches are that `expected` was done with, see `_kind`.
        nbytes, seconds: what the work on a batch took lately; 0 as long as none was worked on.
    """

    __slots__ = ("asked", "coming", "expected", "kind", "last", "nbytes", "seconds", "steps")

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.expected: list[Step] = []
        self.asked: set[int] = set()
        self.coming = 0
        self.kind: Any = None
        self.nbytes = 0
        self.seconds = 0.0
        self.last: Trip | None = None

    def turn(self, trip: Trip) -> None:
        """A new batch begins its trip: the last one's is over."""
        self.coming = 0 if trip.future is None else self.coming - 1
        last, self.last = self.last, trip
        if last is None:
            return
        last.made = ()
        self.kind = last.kind
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
        given: by the number of a step, the `_writes` of its results when the loop was given them, which goes on with
            what was made ahead.
        kind: what the batch is, see `_kind`.
    """

    __slots__ = ("__weakref__", "begun", "course", "expected", "future", "given", "kind", "made", "process", "steps")

    def __init__(self, course: Course):
        self.course = course
        self.steps: list[Step] = []
        self.begun = False
        self.given: dict[int, list[int]] = {}
        self.made: Any = ()
        self.expected = course.expected
        self.kind: Any = None
        self.future: Future[None] | None = None
        self.process = 0  # in which it is done ahead


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
    invocation.work = _Taken(call, one, trip, number)
    return True


def _agree(made: Made | Portion, call: Call, expected: Step, step: Step) -> bool:
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
        given = None if store is None else theirs.given.get(number)
        if given is not None and given[handle._index] != _writes(store):  # type: ignore[arg-type]
            found.append(_Same(handle))  # it is no longer what was made: it differs in every iteration
        else:
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
    trip.begun, trip.kind = True, _kind(root)
    _local.trip = weakref.ref(trip)
    course = trip.course
    course.turn(trip)
    gpus = {d.device_id for s in course.expected if (d := s.settled.device).device_id is not None}
    if len(gpus) > 1:  # an event behind the work of one says nothing of the other's
        return
    gpu = gpus.pop() if gpus else None
    if not course.expected or (gpu is None and running() is None) or not enabled():
        return
    # What a reader gives on a GPU has a stream of its own to be waited for.
    following, most = root.following, 1 if gpu is None or not root.on_cpu else _at_once(course)
    while course.coming + most <= DEPTH * most:
        stores = _coming_stores(following, course, most)
        known = bool(stores) and stores[0].ahead is not None
        if not stores or (len(stores) < most and course.coming > 1 and not known):
            break  # more will be there when the loop comes again
        # All or one, and one only where there is nothing else to do: decoders are made for a size of batches, and those of two
        # sizes would share the cores.
        if len(stores) < most:
            stores = stores[:1]
        course.coming += len(stores)
        if not known:
            _begin(course, stores, course.coming - len(stores) + 2, context, gpu)


def _at_once(course: Course) -> int:
    """How many batches are worked on as one: one until it is known how large their results are."""
    usual = course.expected[0].n
    if not course.nbytes or 2 * usual > _SAMPLES:
        return 1
    if not all([step.apart and step.n == usual for step in course.expected]):
        return 1
    return max(1, min(_BATCHES, _SAMPLES // usual, _BYTES // course.nbytes, int(_SECONDS / course.seconds)))


def _coming_stores(following: Following, course: Course, most: int) -> list[Store]:
    """The next batches, as far as they are there and are what the ones before were, that nobody works on yet; or one that
    somebody does."""
    stores: list[Store] = []
    while len(stores) < most:
        store = following.store(course.coming + len(stores) + 1)
        if store is None or (stores and store.ahead is not None):
            break
        if store.ahead is not None:
            return [store]
        if _kind(store) != course.kind:
            break
        stores.append(store)
    return stores


def _kind(store: Store) -> Any:
    """What a call is kept for: plans, and launches written down, must never see a value of another kind."""
    return store.dtype, store.ndim, store.layout, store.device


def _begin(course: Course, stores: list[Store], distance: int, context: EvalContext, gpu: int | None) -> None:
    """Sets going what is expected of these batches, the first of them `distance` trips after the last whole one."""
    _rounds[0] = (_rounds[0] + 1) % (DEPTH + 1)
    own = _contexts(gpu, context._pool, _rounds[0])
    trips = []
    for store in stores:
        store.ahead = trip = Trip(course)
        trips.append(trip)
    made = _made(course, stores, distance, own)
    wanted = [one for k, one in enumerate(made) if one is not None and _is_wanted(course, k)]
    for j, trip in enumerate(trips):
        trip.made = made if len(trips) == 1 else [one and one.portions[j] for one in made]
    workers = _one_thread() if gpu is None else threads()
    references = [weakref.ref(store) for store in stores]
    future = workers.submit(_run, course, references, made, wanted, None if gpu is None else own.stream_on(gpu))
    for trip in trips:
        trip.future, trip.process = future, os.getpid()


def _new_context(device_id: int | None, pool: Any, number: int) -> EvalContext:
    return EvalContext(cuda_stream=None if device_id is None else Stream(device_id=device_id), thread_pool=pool)


_rounds = [0]
# Batches that are worked on at once have streams of their own, so that none waits for another.
_contexts = Memoized(_new_context, limit=16)
# On the CPU all cores work for one batch: the one that the loop comes to first.
_one_thread = Memoized(lambda: ThreadPoolExecutor(1, thread_name_prefix="ndd-lookahead"))


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


def _made(course: Course, stores: list[Store], distance: int, context: EvalContext) -> list[Made | None]:
    """The invocations of the expected steps for coming batches, the first of them `distance` trips after the last whole
    one. Nothing runs."""
    from ndd._operator.call import Call

    found: list[Made | None] = []
    usual = course.expected[0].n
    together = Together(stores) if len(stores) > 1 else None
    root, count = (_Root(stores[0]), stores[0].n) if together is None else (together, together.n)
    kind = Spec.of(*_kind(stores[0]))
    for step in course.expected:
        handles: list[Any] = []
        places: list[Any] = [None] * len(stores)
        if step.draws is not None:
            if step.words is None:
                found.append(None)
                continue
            places = [step.draws.moved(step.words * (distance + j)) for j in range(len(stores))]
        for source in step.sources:
            if source is None or source.__class__ is _Same:
                handles.append(source and source.handle)
            elif source[0] == _ROOT:
                handles.append(Batch._of_pending(root, 0, kind, count))
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
        draws = places[0] if together is None or places[0] is None else together.draws(places)
        call = Call(step.op, settled, inputs, count if step.n == usual else step.n, step.batched, draws)
        if step.op.looks_at is not None:
            call.announce()
        known = all([handle is None or handle._spec.ndim is not None for handle in inputs])
        invocation = Invocation(step.op.name, call.run if known else _if_foreseen(call), context, None, True)
        if call.device.device_id is None:
            # Made before the call runs, which on a GPU may make them itself (`Call._joined`).
            invocation.inputs = inputs
        made = Made(call, invocation, together)
        if together is not None:
            for store, place in zip(stores, places, strict=True):
                Portion(made, store.n, place)
        found.append(made)
    return found


def _if_foreseen(call: Call) -> Callable[[Invocation], list[Store]]:
    """The work of a call with an input whose element type and number of axes come out of a file: done if they are those that
    the call was kept for."""

    def run(invocation: Invocation) -> list[Store]:
        for handle, spec in zip(call.handles, call.settled.specs, strict=False):
            store = handle and handle._value()
            if store is not None and (store.dtype is not spec.dtype or store.ndim != spec.ndim):
                raise RuntimeError(f"expected {spec.dtype} of {spec.ndim} axes, got {store.dtype} of {store.ndim}")
        return call.run(invocation)

    return run


def _is_wanted(course: Course, number: int) -> bool:
    """Whether the loop asks for the result of a step itself: it did, or there is nothing else to ask for it."""
    return number in course.asked or not any([(number, 0) in s.sources for s in course.expected])


def _run(course: Course, references: list[Any], made: list[Made | None], wanted: list[Made], stream: Any) -> None:
    """On a thread of the lookahead: the results that the loop will ask for, and an event behind them."""
    batches = [store for reference in references if (store := reference()) is not None]  # which hold their trips
    if not batches:
        return
    begun = perf_counter()
    for one in wanted:
        one.invocation.context.finish(one.invocation)
    if stream is None:
        return
    from ndd._cuda.event import recorded
    from ndd._cuda.scope import on_stream

    stores = [store for one in made if one is not None for store in one.invocation.results or ()]
    if stores:
        course.seconds = (perf_counter() - begun) / len(references)
        course.nbytes = sum([store.nbytes() for store in stores]) // len(references) + 1
    if len(references) > 1:
        with on_stream(stream, stream.device_id):
            for one in wanted:
                one.cut(stream)
        stores = [store for one in wanted for portion in one.portions for store in portion.cut or ()]
    event = recorded(stream)  # the stream itself goes on with other batches
    for store in stores:
        if store.stream is not None:
            store.stream, store.ready = None, event


class _Taken:
    """The work of a call whose result was made ahead: to take it. If it failed, nobody has begun, or only what another call
    looks at was made, the call runs."""

    __slots__ = ("call", "course", "future", "made", "number", "process")

    def __init__(self, call: Call, made: Made | Portion, trip: Trip, number: int):
        self.call = call
        self.made = made
        self.future: Any = trip.future
        self.process = trip.process
        self.course = trip.course
        self.number = number

    def __call__(self, invocation: Invocation) -> list[Store]:
        results = self._made_ahead() or self.call.run(invocation)
        invocation.link[0].given[self.number] = [_writes(store) for store in results]
        return results

    def _made_ahead(self) -> list[Store] | None:
        if len(serving.now) < 2 or serving.now[-2].link is None:  # not for a step, which may do without it next time
            self.course.asked.add(self.number)
        # What is done for several batches is not given up for the first of them; but in a forked child nobody does it.
        alone = self.made.__class__ is Made or self.process != os.getpid()
        if not (alone and self.future.cancel()) and self.future.exception() is None:
            results = self.made.results()
            if results is not None and not any([store.partial for store in results]):
                return results
        return None
