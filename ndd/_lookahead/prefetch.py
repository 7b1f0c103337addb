"""Prefetching: the expected calls for coming batches, made and run on the threads of the lookahead."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any

from ndd._cuda import event
from ndd._cuda.scope import on_stream
from ndd._cuda.shared_pool import taking_from_pool
from ndd._execution.context import EvalContext
from ndd._execution.invocation import Invocation
from ndd._execution.memoize import Memoized
from ndd._execution.stream import Stream
from ndd._lookahead.merged_batches import MergedBatches, SingleBatch
from ndd._lookahead.recording import READER, Iteration, LoopConstant, LoopRecording, RecordedCall, kind_of
from ndd._lookahead.threads import DEPTH, at_pace, cpu_thread, gpu_threads
from ndd._operator.call import Call
from ndd._operator.fusion import announce
from ndd._tensor import Batch, Spec, Store, Tensor


class PrefetchedCall:
    """An expected call, for one coming batch or for merged ones: the invocation that runs it, and facts about it. It does not
    hold the call itself, whose input is the batch."""

    __slots__ = ("_handles", "batched", "invocation", "n", "outs", "source", "split")

    def __init__(self, call: Call, invocation: Invocation, source: SingleBatch | MergedBatches):
        self.batched = call.batched
        self.n = call.n
        self.outs = call.outs
        self.invocation: Invocation | None = invocation
        self.source = source
        self.split: list[Prefetched] = []  # for each of the batches its part
        self._handles: dict[int, Any] = {}

    def handle(self, index: int) -> Any:
        """The value that the next calls see of output `index`; one for all of them, which hold it alone."""
        known = self._handles.get(index)
        handle = known and known()
        if handle is None:
            kind = Batch if self.batched else Tensor
            handle = kind._of_pending(self.invocation, index, self.outs[index], self.n)
            self._handles[index] = weakref.ref(handle)
        return handle

    def results(self) -> list[Store] | None:
        """The results; None if it failed, or if only other calls were expected to look at them."""
        invocation = self.invocation
        return None if invocation is None or invocation.error is not None else invocation.results

    def finish(self) -> None:
        """Runs it, with the calls that it needs."""
        invocation = self.invocation
        if invocation is not None:
            invocation.context._finish(invocation)

    def release(self) -> None:
        """Releases the results that only other calls were expected to use, once these have run."""
        self.invocation = None

    def split_results(self, stream: Any) -> None:
        """Gives each of merged batches its part of the results."""
        source = self.source
        if isinstance(source, SingleBatch):
            return
        outputs = [source.split(store, stream) for store in self.results() or ()]
        for number, part in enumerate(self.split):
            if None not in outputs:
                part.stores = [stores[number] for stores in outputs if stores is not None]


class Prefetched:
    """The results that one call gives ahead of the loop in one iteration.

    Args:
        count: the number of samples of a batch that was merged with others; None for a single batch.

    Attributes:
        whole: the call, if it is for this batch alone.
        stores: its part of the results of a call for merged batches, once these are split.
    """

    __slots__ = ("batched", "draws", "n", "stores", "whole")

    def __init__(self, call: PrefetchedCall, draws: Any, count: int | None):
        self.batched = call.batched
        self.draws = draws
        self.whole, self.n = (call, call.n) if count is None else (None, count)
        self.stores: list[Store] | None = None

    def results(self) -> list[Store] | None:
        """The results; None if the call failed or, for merged batches, was not expected to be needed."""
        return self.stores if self.whole is None else self.whole.results()


def prefetch(loop: LoopRecording, batches: list[Store], distance: int, context: EvalContext, gpu: int | None) -> None:
    """Starts the work that is expected of these batches, the first of them `distance` iterations after the last whole one."""
    _position[0] = (_position[0] + 1) % (DEPTH + 1)
    own = _contexts(gpu, context._pool, _position[0])
    iterations = []
    for store in batches:
        store.iteration = iteration = Iteration(loop)
        iterations.append(iteration)
    calls = expected_calls(loop, batches, distance, own)
    requested = [call for k, call in enumerate(calls) if call is not None and _is_requested(loop, k)]
    for j, iteration in enumerate(iterations):
        iteration.prefetched = [call and call.split[j] for call in calls]
    if len(batches) == 1:
        for call in calls:
            if call is not None:
                # It has nothing to split, and its part refers to it: a cycle, whose results Python's collector would free too
                # late. Beside a ResNet-50 10 GiB of a GPU's memory waited for it.
                call.split = []
    workers = cpu_thread() if gpu is None else gpu_threads()
    references = [weakref.ref(store) for store in batches]
    stream = None if gpu is None else own._stream_on(gpu)
    future = workers.submit(_run, loop, references, calls, requested, stream)
    for iteration in iterations:
        iteration.future, iteration.process = future, os.getpid()


def _new_context(device_id: int | None, pool: Any, number: int) -> EvalContext:
    return EvalContext(cuda_stream=None if device_id is None else Stream(device_id=device_id), thread_pool=pool)


_position = [0]
# Batches that are worked on at once have streams of their own, so that none waits for another.
_contexts = Memoized(_new_context, limit=16)


def expected_calls(
    loop: LoopRecording, batches: list[Store], distance: int, context: EvalContext
) -> list[PrefetchedCall | None]:
    """The expected calls for coming batches; None for one that cannot run ahead. Does not run them."""
    source = MergedBatches(batches) if len(batches) > 1 else SingleBatch(batches[0])
    spec, usual = Spec.of(*kind_of(batches[0])), loop.expected[0].n
    calls: list[PrefetchedCall | None] = []
    for recorded in loop.expected:
        places = _places(recorded, distance, len(batches))
        handles = None if places is None else _handles(recorded, calls, source, spec)
        if places is None or handles is None:
            calls.append(None)
            continue
        inputs, cached = tuple(handles[: recorded.inputs]), recorded.cached
        if recorded.named:
            values = dict(zip(recorded.named, handles[recorded.inputs :], strict=True))
            cached = cached.with_values(tuple([values.get(name) for name in cached.named]))
        n = source.n if recorded.n == usual else recorded.n
        call = Call(recorded.op, cached, inputs, n, recorded.batched, source.draws(places))
        if recorded.op.fuses:
            announce(call, inputs[0]._pending)
        known = all([handle is None or handle._spec.ndim is not None for handle in inputs])
        work = call.run if known else _run_if_foreseen(call)
        invocation = Invocation(recorded.op.name, work, context, None, True)
        if call.device.device_id is None:
            # Made before the call runs, which on a GPU may make them itself (`fusion.joined`).
            invocation.inputs = inputs
        prefetched = PrefetchedCall(call, invocation, source)
        prefetched.split = [
            Prefetched(prefetched, place, None if len(batches) == 1 else store.n)
            for store, place in zip(batches, places, strict=True)
        ]
        calls.append(prefetched)
    return calls


def _places(recorded: RecordedCall, distance: int, count: int) -> list[Any] | None:
    """The position of a call's generator for each of `count` batches; None if it cannot be predicted."""
    if recorded.draws is None:
        return [None] * count
    words = recorded.words
    return None if words is None else [recorded.draws.moved(words * (distance + j)) for j in range(count)]


def _handles(
    recorded: RecordedCall, calls: list[PrefetchedCall | None], source: SingleBatch | MergedBatches, spec: Spec
) -> list[Any] | None:
    """The values that an expected call takes; None if one of them cannot be made ahead."""
    handles: list[Any] = []
    for origin in recorded.sources:
        if origin is None or origin.__class__ is LoopConstant:
            handles.append(origin and origin.handle)
        elif origin[0] == READER:
            handles.append(Batch._of_pending(source, 0, spec, source.n))
        else:
            before = calls[origin[0]]
            if before is None:
                return None
            handles.append(before.handle(origin[1]))
    return handles


def _run_if_foreseen(call: Call) -> Callable[[Invocation], list[Store]]:
    """The work of a call with an input whose element type and number of axes come from a file: it runs only if they are those
    for which the call is cached."""

    def run(invocation: Invocation) -> list[Store]:
        for handle, spec in zip(call.handles, call.cached_call.specs, strict=False):
            store = handle and handle._value()
            if store is not None and (store.dtype is not spec.dtype or store.ndim != spec.ndim):
                raise RuntimeError(f"expected {spec.dtype} of {spec.ndim} axes, got {store.dtype} of {store.ndim}")
        return call.run(invocation)

    return run


def _is_requested(loop: LoopRecording, number: int) -> bool:
    """Whether the loop itself asks for the result of a call: it has done so before, or no other call uses the result."""
    return number in loop.requested or not any([(number, 0) in call.sources for call in loop.expected])


def _run(
    loop: LoopRecording,
    references: list[Any],
    calls: list[PrefetchedCall | None],
    requested: list[PrefetchedCall],
    stream: Any,
) -> None:
    """On a thread of the lookahead: the results that the loop will ask for, and an event after them."""
    loop.pace.wait_for_middle()
    batches = [store for reference in references if (store := reference()) is not None]  # which hold their iterations
    if not batches:
        return
    start = perf_counter()
    with at_pace(loop.pace.relaxed), _allocation(stream):
        for call in requested:
            call.finish()
    at_work = _held_bytes(calls)
    for call in calls:
        if call is not None and call not in requested:
            call.release()
    loop.seconds = (perf_counter() - start) / len(references)
    kept, ready = _held_bytes(requested), None
    if stream is not None:
        stores = [store for call in requested for store in call.results() or ()]
        if len(references) > 1:
            stores = _split(requested, stream)
            at_work = max(at_work, 2 * kept)
        ready = _recorded(stores, stream)
    if at_work:
        loop.nbytes, loop.kept = at_work // len(references) + 1, kept // len(references)
    now = perf_counter()
    for batch in batches:
        batch.iteration.finished, batch.iteration.ready = now, ready


def _allocation(stream: Any) -> contextlib.AbstractContextManager[None]:
    """Where work on a stream takes its memory from; None for work on the CPU."""
    return contextlib.nullcontext() if stream is None else taking_from_pool(stream)


def _held_bytes(calls: Iterable[PrefetchedCall | None]) -> int:
    """The bytes of the memory behind the results of these calls; on a GPU blocks as they were allocated, each once."""
    on_gpu: dict[int, int] = {}
    nbytes = 0
    for store in [store for call in calls if call is not None for store in call.results() or ()]:
        if store.on_cpu:
            nbytes += store.nbytes()
        for tensor in () if store.on_cpu else store.owners():
            storage = tensor.untyped_storage()
            on_gpu[storage.data_ptr()] = storage.nbytes()
    return nbytes + sum(on_gpu.values())


def _split(requested: list[PrefetchedCall], stream: Any) -> list[Store]:
    """The results of merged batches for each of them."""
    with on_stream(stream, stream.device_id), _allocation(stream):
        for call in requested:
            call.split_results(stream)
    return [store for call in requested for part in call.split for store in part.stores or ()]


def _recorded(stores: list[Store], stream: Any) -> Any:
    """An event after the work on a stream, which these results wait for: the stream itself goes on with other batches."""
    done = event.recorded(stream)
    for store in stores:
        if store.stream is not None:
            store.stream, store.ready = None, done
    return done
