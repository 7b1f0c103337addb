"""`Recorder`: the observer that creates spans while a profile is active."""

# Names that are private for users, such as `Handle._store`, belong to this library.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from ndd._execution import observation
from ndd._execution.fork import around_fork
from ndd._execution.invocation import Invocation, serving
from ndd._operator.registry import public_path
from ndd._tensor import stream_waits
from ndd._tensor.handle import Handle
from ndd.profiling.device_times import Timing, has_gpu
from ndd.profiling.spans import Kind, Span

if TYPE_CHECKING:
    from ndd.profiling.loop_profile import Profile

Result = TypeVar("Result")
_DEEPEST = 64  # longest chain of inputs to remember: that of a running mean would never end
_AHEAD = "ndd-lookahead"  # the beginning of the names of such threads


class _Local(threading.local):
    def __init__(self) -> None:
        self.inner: list[int] = []  # for each open span of this thread: nanoseconds of the spans within it


class Recorder:
    """Creates a `Span` for every event, for all active profiles.

    Attributes:
        made_by: the span that computed a store.
    """

    def __init__(self) -> None:
        self.made_by: weakref.WeakKeyDictionary[Any, Span] = weakref.WeakKeyDictionary()
        self._start()
        around_fork(in_child=self._in_child)

    def _start(self) -> None:
        self.profiles: tuple[Profile, ...] = ()
        self._lock = threading.RLock()
        self._local = _Local()
        self._working: dict[int, Span] = {}  # by the running invocation
        self._paths: dict[str, str] = {}  # the public paths of operators by their short names

    def _in_child(self) -> None:
        """A forked child begins without the profiles of its parent, whose locks another thread may hold."""
        self._start()
        stream_waits.begins = None

    def add(self, profile: Profile) -> None:
        """Activates a profile."""
        with self._lock:
            self.profiles += (profile,)
            observation.active = self
            stream_waits.begins = self.stream_waits

    def remove(self, profile: Profile) -> None:
        """Deactivates a profile."""
        with self._lock:
            self.profiles = tuple([other for other in self.profiles if other is not profile])
            if not self.profiles:
                observation.active = stream_waits.begins = None

    # The methods of `Observer`, and `deliver`.

    def called(self, invocation: Invocation, operator_call: Any) -> None:
        """Counts a call of the loop."""
        if serving.now or threading.current_thread().name.startswith(_AHEAD):
            return  # calls from operators, and expected calls
        samples = 0 if operator_call is None else operator_call.n
        name = self._name_of(invocation)
        for profile in self.profiles:
            profile.called(name, samples, invocation.call)
        with _range(f"ndd.{name} (call)", self.profiles):
            pass

    def run(self, invocation: Invocation) -> list[Any]:
        """Records the work of an operator."""
        work, call, key = invocation.work, _call_of(invocation), id(invocation)
        with self._span(self._name_of(invocation), "operator") as span:
            self._working[key] = span
            timing = _timing(invocation, call)
            try:
                results = work(invocation)  # type: ignore[misc]
                span.taken = _was_made_ahead(work, results)
            finally:
                self._working.pop(key, None)  # gone in a child that the work has forked
                if timing is not None and invocation.stream is not None:
                    span.device, span.timing = invocation.stream.device_id, timing
                    timing.end(invocation.stream._torch)
            self._register(span, getattr(work if call is None else call, "handles", ()), results)
        return results

    def wait(self, invocation: Invocation, function: Callable[[Invocation], None]) -> None:
        """Records a wait for an operator."""
        with self._span(self._name_of(invocation), "wait"):
            function(invocation)

    def take(self, name: str, function: Callable[..., Result], *arguments: Any) -> Result:
        """Records a wait for a reader."""
        with self._span(name, "reader") as span:
            result = function(*arguments)
            stores = [handle._store for handle in _handles(getattr(result, "value", result))]
            for store in stores:
                if store is not None:
                    self.made_by[store] = span
                    span.nbytes += store.nbytes()
                    span.samples = max(span.samples, store.n)
        return result

    def deliver(self, function: Callable[[], Sequence[Any]]) -> Sequence[Any]:
        """Records a wait for the outputs of a pipeline's run, which the function returns."""
        with self._span("pipeline", "pipeline") as span:
            outputs = function()
            span.samples = len(outputs[0]) if outputs else 0
        return outputs

    def was_read(self, count: int, begun: float) -> None:
        """Records the reading of a thread."""
        thread = threading.current_thread()
        span = Span("reading", "reading", int(begun * 1e9), threading.get_native_id(), thread.name, ahead=True)
        span.ended, span.samples = perf_counter_ns(), count
        span.own = span.ended - span.begun
        for profile in self.profiles:
            profile.add(span)

    def stream_waits(self, stream: Any) -> Timing:
        """Begins to record that torch's stream waits for data; the caller ends the result."""
        thread, now = threading.current_thread(), perf_counter_ns()
        span = Span(
            "data", "stream", now, threading.get_native_id(), thread.name, ended=now, device=stream.device_index
        )
        timing = span.timing = Timing(stream)
        for profile in self.profiles:
            profile.add(span)
        return timing

    def note(self, text: str) -> None:
        """Adds a note to the span of this thread's current work."""
        span = self._current()
        if span is not None:
            span.notes.append(text)

    def pictures(self, samples: Sequence[int], decoder: str) -> None:
        """Adds the decoded samples to the span of this thread's current work."""
        span = self._current()
        if span is not None:
            with self._lock:
                span.pictures.setdefault(decoder, []).extend(samples)

    def maker_of(self, store: Any) -> Span | None:
        """The span that made a store, or the last one that made what it is a part of: a sample of a batch is a view."""
        maker = self.made_by.get(store)
        if maker is None and (blocks := _blocks(store)):
            others = [span for other, span in list(self.made_by.items()) if blocks & _blocks(other)]
            maker = max(others, key=lambda span: span.begun, default=None)
        return maker

    # Spans.

    def _name_of(self, invocation: Invocation) -> str:
        """The public path of the operator, if it is known: an invocation that has ended knows only its short name."""
        call = _call_of(invocation)
        if call is None:
            return self._paths.get(invocation.name, invocation.name)
        path = self._paths[invocation.name] = public_path(call.op)
        return path

    def _current(self) -> Span | None:
        """The span of this thread's current work."""
        return next((span for i in reversed(serving.now) if (span := self._working.get(id(i)))), None)

    @contextlib.contextmanager
    def _span(self, name: str, kind: Kind) -> Iterator[Span]:
        thread, inner = threading.current_thread(), self._local.inner
        span = Span(name, kind, 0, threading.get_native_id(), thread.name, ahead=thread.name.startswith(_AHEAD))
        inner.append(0)
        profiles = self.profiles
        title = f"ndd.{name}" if kind == "operator" else f"ndd: wait for {name}"
        try:
            with _range(title, profiles):
                span.begun = perf_counter_ns()
                try:
                    yield span
                finally:
                    span.ended = perf_counter_ns()
        except BaseException as error:
            span.failed = not isinstance(error, StopIteration)
            raise
        finally:
            seconds = span.ended - span.begun
            span.own = seconds - inner.pop()
            if inner:
                inner[-1] += seconds
            for profile in profiles:
                profile.add(span)

    def _register(self, span: Span, inputs: Sequence[Any], results: list[Any]) -> None:
        for store in results:
            span.nbytes += store.nbytes()
            span.samples = max(span.samples, store.n)
            maker = self.made_by.setdefault(store, span)
            if span.taken:
                maker.ahead = True
        if inputs and not span.taken:
            stores = [handle._store for handle in inputs if handle is not None]
            makers = [maker for store in stores if store is not None and (maker := self.made_by.get(store))]
            span.depth = 1 + max([maker.depth for maker in makers], default=0)
            span.inputs = tuple(makers) if span.depth < _DEEPEST else ()


def _call_of(invocation: Invocation) -> Any:
    """The operator call of an invocation; None for other work, and after the work."""
    work: Any = invocation.work
    call = getattr(work, "__self__", None) or getattr(
        work, "call", None
    )  # `Call.run`, or taking a result from lookahead
    return call if hasattr(call, "cached_call") else None


def _was_made_ahead(work: Any, results: list[Any]) -> bool:
    """Whether the work was to take results from lookahead, and did."""
    ahead = getattr(work, "result", None)  # see `_lookahead/matching.py`
    whole = getattr(ahead, "whole", None)
    return ahead is not None and (results is ahead.stores or (whole is not None and results is whole.results()))


def _handles(value: Any) -> list[Handle]:
    values = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else (value,)
    return [item for item in values if isinstance(item, Handle)]


def _blocks(store: Any) -> set[int]:
    """The blocks of memory behind a store, as numbers."""
    if not store.on_cpu:
        return {tensor.untyped_storage().data_ptr() for tensor in store.owners()}
    whole = [array for array in (store.whole, store.flat) if array is not None]
    return {id(_owner(array)) for array in whole or store.parts or ()}


def _owner(array: Any) -> Any:
    while getattr(array, "base", None) is not None:
        array = array.base
    return array


def _timing(invocation: Invocation, call: Any) -> Timing | None:
    """Begins to measure the work of a call on a GPU; None on the CPU."""
    if call is None or call.device.device_id is None:
        return None
    if not has_gpu():
        return None
    return Timing(invocation.context._stream_on(call.device.device_id)._torch)


@contextlib.contextmanager
def _range(name: str, profiles: tuple[Profile, ...]) -> Iterator[None]:
    """A range in torch.profiler (for this thread, unless it profiles all threads) and, if requested, in NVTX."""
    marks = any([profile.nvtx for profile in profiles])
    if marks:
        torch.cuda.nvtx.range_push(name)
    try:
        with torch.profiler.record_function(name):
            yield
    finally:
        if marks:
            torch.cuda.nvtx.range_pop()


recorder = Recorder()
