"""Recording a loop: which operators it calls on each batch of a reader, in which order, and on whose results."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ndd._lookahead.pace import Pace
from ndd._operator.frames import is_video
from ndd._tensor import Batch, Store, Tensor

if TYPE_CHECKING:
    from ndd._operator.call import Call
    from ndd._operator.call_cache import CachedCall

MAX_CALLS = 32  # of an iteration; later calls are not recorded
READER = -1  # in place of the number of a call: the batch that the reader gave
_HANDLES = (Tensor, Batch)


def times_written(store: Store) -> int:
    """The number of times that torch wrote to memory of a GPU. Writes to CPU memory are not counted, nor those of other
    libraries, or of torch in its inference mode."""
    return 0 if store.on_cpu else sum([0 if t.is_inference() else t._version for t in store.owners()])


def kind_of(store: Store) -> Any:
    """The key of a cached call's inputs: its plans and recorded launches would misread values of another kind."""
    return store.dtype, store.ndim, store.layout, store.device


class LoopConstant:
    """A value from outside the loop that each iteration uses. It equals only itself, as long as it is not written to."""

    __slots__ = ("handle", "writes")

    def __init__(self, handle: Any):
        self.handle = handle
        self.writes = 0 if handle._store is None else times_written(handle._store)

    def __eq__(self, other: object) -> bool:
        same = other.__class__ is LoopConstant and other.handle is self.handle  # type: ignore[attr-defined]
        return same and other.writes == self.writes  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]


class RecordedCall:
    """A call of the loop: its operator, its constants, and the calls whose results it uses.

    Attributes:
        cached: its constants and everything derived from them, without values that belong to one iteration.
        named: the arguments that are values.
        sources: for each input, then each argument that is a value: None, a `LoopConstant`, or (number of a call, of its
            outputs).
        words: the numbers that its generator draws in an iteration; None if unknown.
    """

    __slots__ = ("batched", "cached", "draws", "inputs", "n", "named", "op", "sources", "words")

    def __init__(self, call: Call, sources: tuple[Any, ...]):
        cached, self.named = call.cached_call, []
        if cached.handles:
            self.named = [name for name, value in cached.named.items() if value.__class__ in _HANDLES]
            cached = cached.with_values(tuple(cached.named.values()), keep=False)
        self.op = call.op
        self.cached: CachedCall = cached
        self.inputs = len(call.handles)
        self.sources = sources
        self.n = call.n
        self.batched = call.batched
        self.draws = call.draws
        self.words: int | None = None

    @property
    def mergeable(self) -> bool:
        """Whether each sample of its result follows from that sample of its inputs alone."""
        if not self.batched or self.cached.fewer:
            return False
        if any([source.__class__ is LoopConstant and source.handle.__class__ is Batch for source in self.sources]):
            return False  # it has as many samples as one batch
        if self.op.frames and self.draws is not None and any(map(is_video, self.cached.specs)):
            return False  # a frame draws by its number in the batch
        independent = self.op.independent_samples
        return independent(**self.cached.named) if callable(independent) else independent

    def repeats(self, other: RecordedCall) -> bool:
        """Whether it is the same call, apart from the batch."""
        return self.cached.plans is other.cached.plans and self.sources == other.sources


class LoopRecording:
    """The calls that a loop makes with the batches of one output of a reader.

    Attributes:
        expected: the calls that the next iterations are expected to make.
        requested: numbers of the calls whose results the loop itself asked for.
        under_way: the number of next batches that are being worked on.
        kind: the kind of the batches for which `expected` was recorded, see `kind_of`.
        nbytes, seconds: the recent memory and time of the work on a batch; 0 before the first one.
        kept: of these bytes those that are held until the loop takes the batch.
        gpu: the GPU of its calls.
        pace: whether the loop takes batches more slowly than they are made.
    """

    __slots__ = (
        "calls",
        "expected",
        "gpu",
        "kept",
        "kind",
        "last",
        "nbytes",
        "pace",
        "requested",
        "seconds",
        "under_way",
    )

    def __init__(self) -> None:
        self.calls: list[RecordedCall] = []  # of the last iteration that has ended
        self.expected: list[RecordedCall] = []
        self.requested: set[int] = set()
        self.under_way = 0
        self.kind: Any = None
        self.nbytes = self.kept = 0
        self.seconds = 0.0
        self.pace = Pace()
        self.gpu: int | None = None
        self.last: Iteration | None = None

    def begin(self, iteration: Iteration) -> None:
        """Begins an iteration and ends the last one. The calls that the last two have in common are expected in the next
        ones."""
        self.under_way = 0 if iteration.future is None else self.under_way - 1
        last, self.last = self.last, iteration
        if last is None:
            return
        if iteration.future is not None and self.gpu is not None:
            ahead = self.pace.begin(self.gpu, last.ready)
            self.pace.took(iteration.finished, perf_counter(), ahead)
        last.prefetched = ()
        self.kind = last.kind
        before, self.calls = self.calls, last.calls
        common = 0
        for old, new in zip(before, self.calls, strict=False):
            if not new.repeats(old):
                break
            new.words = None if new.draws is None else new.draws.words_since(old.draws)
            common += 1
        if common < len(self.expected):
            self.requested.clear()
        self.expected = self.calls[:common] if before else self.calls


class Iteration:
    """One pass through the body of the loop, with one batch, as far as it has come.

    Attributes:
        prefetched: what is made ahead, by the number of the call: a `Prefetched`, or None; empty once the loop did something
            else.
        expected: the calls that were made ahead.
        writes: by the number of a call, `times_written` of its results when the loop got them, which were made ahead.
        finished: when the work done ahead was over, of `perf_counter`; None before.
        kind: the kind of the batch, see `kind_of`.
        ready: the event after that work on a GPU; None before.
        process: in which the work is done ahead.
    """

    __slots__ = (
        "__weakref__", "begun", "calls", "expected", "finished", "future", "kind", "loop", "prefetched", "process", "ready",
        "writes",
    )  # fmt: skip

    def __init__(self, loop: LoopRecording):
        self.loop = loop
        self.calls: list[RecordedCall] = []
        self.begun = False
        self.writes: dict[int, list[int]] = {}
        self.prefetched: Any = ()
        self.expected = loop.expected
        self.kind: Any = None
        self.future: Future[None] | None = None
        self.finished: float | None = None
        self.ready: Any = None
        self.process = 0

    def begin(self, batch: Store) -> None:
        """The first call on its batch."""
        self.begun, self.kind = True, kind_of(batch)
        _local.iteration = weakref.ref(self)
        self.loop.begin(self)


class _Local(threading.local):
    iteration: Any = None  # a weak reference to the iteration of this thread's loop


_local = _Local()


class ReaderOutput:
    """Gives the next batches of a reader, from a batch of it.

    Args:
        peek: `peek(k)` gives the store of the same output k batches later, or None if that has not been read; never
            waits.
        loop: shared by all batches of this output.
    """

    __slots__ = ("loop", "peek")

    def __init__(self, peek: Callable[[int], Store | None], loop: LoopRecording):
        self.peek = peek
        self.loop = loop


def sources_of(call: Call) -> tuple[Iteration, tuple[Any, ...], Store | None] | None:
    """The iteration that a call belongs to, the sources of its inputs (see `RecordedCall`), and the batch of the reader if
    this is the first call on it. None for a call that belongs to no iteration, or to two."""
    iteration: Any = None
    batch: Store | None = None
    sources: list[Any] = []
    arguments = call.cached_call.handles
    for handle in (*call.handles, *arguments) if arguments else call.handles:
        if handle is None:
            sources.append(None)
            continue
        store = handle._store
        if store is None:
            pending = handle._pending
            position = None if pending is None else pending.loop_position
        else:
            position = store.loop_position
        if position is None:
            if store is None or handle._external:
                return None
            sources.append(LoopConstant(handle))
            continue
        if position.__class__ is ReaderOutput:
            own, number = store.iteration, READER  # type: ignore[union-attr]
            if own is None:
                own = store.iteration = Iteration(position.loop)  # type: ignore[union-attr]
            if not own.begun:
                batch = store
        else:
            own, number = position
        if iteration is not None and own is not iteration:
            return None
        iteration = own
        writes = None if store is None else own.writes.get(number)
        if writes is not None and writes[handle._index] != times_written(store):  # type: ignore[arg-type]
            sources.append(LoopConstant(handle))  # written to since it was made: perhaps in each iteration
        else:
            sources.append((number, handle._index))
    if iteration is None:
        if not call.op.random or any([source is not None for source in sources]):
            return None
        iteration = _local.iteration and _local.iteration()  # numbers drawn for the batch that the loop is at
        if iteration is None:
            return None
    return iteration, tuple(sources), batch
