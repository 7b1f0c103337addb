"""`EvalContext`: the thread, thread pool, device and stream that operators run with."""

# Users' arguments are checked, whatever the annotations say.
# pyright: reportUnnecessaryIsInstance=false, reportPrivateUsage=false

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from ndd._execution import observation
from ndd._execution.fork import around_fork
from ndd._execution.invocation import Invocation, run_with_inputs, serving
from ndd._execution.memoize import Memoized
from ndd._execution.mode import innermost
from ndd._execution.signal_safe import start
from ndd._execution.stream import Stream, chosen_stream, stream as to_stream
from ndd._execution.threads import ThreadPool, default_pool
from ndd._execution.weak_registry import WeakRegistry
from ndd._tensor.device import Device, current_gpu

_LOOK_AGAIN_SECONDS = (
    0.5  # the result wakes a waiter; it also looks from time to time, in case the working thread has died
)
_FORK_SECONDS = 5.0  # the time that a fork waits for an operator that is running
_FORK_PAUSE = 0.05  # the time that it waits for one queue at once
# The time that a background thread waits after it was woken, see `_serve`. If nothing is left for it, it looks again after
# twice that time, up to the second number; after this many looks it sleeps. Each look takes the interpreter from the working
# thread: with a look every 0.3 ms, each after a wake, half of the calls in a loop that asks for every result took 8 to 60 us
# longer.
_GRACE_SECONDS, _LONGEST_GRACE_SECONDS, _LOOKS = 0.0003, 0.0024, 12
_IDLE_SECONDS = 5.0  # a background thread without work ends; the next operator starts another (60 us)


class InvocationQueue:
    """The queue of a context. Invocations run in the order of their calls, one at a time, on the background thread or on a
    thread that waits for a result. The latter saves two thread switches (7 us) if nothing runs yet.

    A thread may take `lock` again: the handler of a signal, which interrupts a thread anywhere, may use operators too.
    """

    def __init__(self) -> None:
        self.waiting: deque[Invocation] = deque()
        self.lock = threading.RLock()
        self.current: Invocation | None = None
        self.wake = threading.Lock()
        self.wake.acquire()
        self.asleep = False
        self.thread: threading.Thread | None = None
        self.closed = False
        weakref.finalize(
            self, _wake, self.wake
        ).atexit = False  # otherwise an idle thread would run for `_IDLE_SECONDS` more

    def submit(self, invocation: Invocation) -> None:
        invocation.queued = True
        self.waiting.append(invocation)
        if self.asleep:
            self.asleep = False
            _wake(self.wake)
        elif self.thread is None:
            self._start()

    def _start(self) -> None:
        with _starting:
            if self.thread is None and not self.closed:
                _queues.add(self)
                thread = threading.Thread(target=_serve, args=(weakref.ref(self),), name="ndd-eager", daemon=True)
                start(thread)
                self.thread = thread

    def retired(self) -> bool:
        """Lets the idle background thread end, unless new work has come."""
        with _starting:
            ending = self.asleep and not self.waiting
            self.asleep = False
            if ending:
                self.thread = None
        if ending and self.waiting:  # new work has just come and has found the thread asleep
            self._start()
        return ending

    def step(self) -> bool:
        """Runs the next invocation, if there is one. The lock must be held."""
        try:
            invocation = self.waiting.popleft()
        except IndexError:
            return False
        outer, self.current = self.current, invocation
        try:
            invocation.execute()
        finally:
            self.current = outer
        return True

    def within(self) -> bool:
        """Whether this thread works for the current invocation, which must end before queued ones can run."""
        return self.current is not None and any([i is self.current for i in serving.now])

    def finish(self, invocation: Invocation) -> None:
        """Runs `invocation`, or waits for it if another thread runs it. A queued invocation waits for those before it,
        unless an operator asks for it, on any thread. RuntimeError if an operator asks for its own result."""
        if serving.now and not invocation.finished and any([i is invocation for i in serving.now]):
            raise RuntimeError(f"{invocation.name}: the operator asks for its own result while it computes it")
        while not invocation.finished:
            if not invocation.queued or self.within():
                run_with_inputs(invocation) if invocation.inputs else invocation.execute()
            elif _taken(lock := self.lock):
                try:
                    while not invocation.finished and self.step():
                        pass
                finally:
                    lock.release()  # not self.lock: in a child that the operator forked, that is another lock
                if not invocation.finished:
                    invocation.execute()  # a fork dropped its queue, or another thread took it from there
            if not invocation.finished:
                invocation.wait(_LOOK_AGAIN_SECONDS)


def _wake(lock: Any) -> None:
    try:
        lock.release()
    except RuntimeError:  # another thread is waking it
        pass


def _taken(lock: Any) -> bool:
    """`lock.acquire(blocking=False)`, safe against exceptions of signal handlers. Such an exception can come after the lock is
    taken and before anybody knows; no other thread could then ever work for the queue again."""
    held = lock._is_owned()
    try:
        return lock.acquire(blocking=False)
    except BaseException:
        if not held and lock._is_owned():
            lock.release()
        raise


_starting = threading.RLock()
_queues: WeakRegistry[InvocationQueue] = WeakRegistry()


def _serve(reference: weakref.ref[InvocationQueue]) -> None:
    """The background thread: runs queued invocations, sleeps, and ends when idle or when its context is freed.

    It waits a moment after it is woken. A loop that calls a few operators and then asks for the result runs them on its own
    thread; two threads would only take the interpreter from each other.
    """
    queue = reference()
    grace, looks = _GRACE_SECONDS, 0
    while queue is not None:
        ran = False
        while queue.waiting and not queue.closed:
            # The thread that holds the lock works for the queue, too, and needs a result. Waiting for the lock would take
            # the interpreter from it: a call that moves its input between devices took 0.29 ms instead of 0.18.
            lock = queue.lock
            if not lock.acquire(blocking=looks >= _LOOKS):
                break
            try:
                ran = queue.step() or ran
            except BaseException:  # sys.exit() in an operator: whoever asks for the result sees it
                ran = True
            finally:
                lock.release()
        if queue.closed:
            return
        if ran:
            grace, looks = _GRACE_SECONDS, 0
        elif looks < _LOOKS:
            looks += 1
            del queue
            time.sleep(grace)
            queue = reference()
            grace = min(2 * grace, _LONGEST_GRACE_SECONDS)
            continue
        queue.asleep = True
        with _starting:  # without a GIL only a lock orders the write of `asleep` before the look at the queue
            more = bool(queue.waiting)
        if more and not queue.closed:  # work has just come, perhaps before `asleep` was seen
            queue.asleep = False
            continue
        wake = queue.wake
        if queue.closed:
            return
        del queue
        woken = wake.acquire(timeout=_IDLE_SECONDS)
        queue = reference()
        if queue is None:
            return
        if not woken and queue.retired():
            return
        if woken:
            del queue
            time.sleep(_GRACE_SECONDS)
            queue = reference()
            grace, looks = _GRACE_SECONDS, 0


def _close_all() -> None:
    """At the interpreter's exit: drops queued invocations, finishes the running ones."""
    for queue in _queues:
        queue.closed = True
        queue.waiting.clear()
        thread = queue.thread
        if thread is not None:
            _wake(queue.wake)
            thread.join(timeout=2.0)


class _PausedQueues(threading.local):
    """The locks of paused queues. Each thread that forks has a list of its own: an operator may fork for several samples at
    once."""

    def __init__(self) -> None:
        self.locks: list[Any] = []


_held = _PausedQueues()


def _before_fork() -> None:
    """Waits up to `_FORK_SECONDS` until running invocations have ended, and lets no other begin.

    All queues pause or none: an invocation of one queue may wait for a result of another.
    """
    until = time.monotonic() + _FORK_SECONDS
    queues = [queue for queue in _queues if not queue.within()]  # an operator that forks does not wait for itself
    while not all([_held_still(queue, until) for queue in queues]) and time.monotonic() < until:
        _go_on()
        time.sleep(_FORK_PAUSE)


def _held_still(queue: InvocationQueue, until: float) -> bool:
    seconds = min(until - time.monotonic(), _FORK_PAUSE)
    taken = queue.lock.acquire(timeout=max(seconds, 0))
    if taken:
        _held.locks.append(queue.lock)
    return taken


def _go_on() -> None:
    while _held.locks:
        _held.locks.pop().release()


def _in_child() -> None:
    """The parent's threads do not exist here: every queue starts empty, contexts stay usable."""
    global _starting
    _starting = threading.RLock()
    for queue in _queues:
        queue.__init__()  # type: ignore[misc]
    _queues.clear()
    _held.locks.clear()


atexit.register(_close_all)
around_fork(before=_before_fork, in_parent=_go_on, in_child=_in_child)


class _Local(threading.local):
    def __init__(self) -> None:
        self.stack: list[EvalContext] = []
        self.defaults: dict[int | None, EvalContext] = {}


_local = _Local()


_make_checkpoint: list[Callable[[], Any]] = []


def bind_checkpoint(make: Callable[[], Any]) -> None:
    """Sets the function that makes checkpoints of contexts; `ndd.checkpoint` calls this on import."""
    _make_checkpoint[:] = [make]


def _new_checkpoint(context: EvalContext) -> Any:
    return _make_checkpoint[0]()


def _new_stream(context: EvalContext, device_id: int) -> Stream:
    return Stream(device_id=device_id)


_checkpoints = Memoized(_new_checkpoint, per="owner")
_own_streams = Memoized(_new_stream, per="owner")


class EvalContext:
    """The resources that operators run with: a background thread, a thread pool, a device and a CUDA stream.

    Each thread has a default context; within `with EvalContext(...)` another one is in force. An operator uses the context
    that is in force at its call. A context can be used by one thread at a time; a second one gets a RuntimeError.

    Args:
        num_threads: size of a thread pool of its own.
        thread_pool: a pool to share instead; not together with `num_threads`.
        device_id: the GPU; default the current one, None where there is no GPU.
        cuda_stream: the stream to use (a `Stream`, a torch stream, a handle); default: the one that `set_current_stream` or
            `set_default_stream` has set by now, otherwise its own stream (in DALI the stream of the thread's default context).

    Raises TypeError for a `thread_pool` or `num_threads` of another type; ValueError for both of them, for a number of
    threads below 1, and for a stream of another GPU.

    >>> import ndd
    >>> with ndd.EvalContext(num_threads=1) as context:
    ...     context.num_threads
    1
    """

    def __init__(
        self,
        *,
        num_threads: int | None = None,
        device_id: int | None = None,
        cuda_stream: Any = None,
        thread_pool: ThreadPool | None = None,
    ):
        if thread_pool is not None and num_threads is not None:
            raise ValueError("`thread_pool` and `num_threads` cannot be specified together.")
        if thread_pool is not None and not isinstance(thread_pool, ThreadPool):
            raise TypeError(f"thread_pool must be a ThreadPool, got {type(thread_pool).__name__}")
        wrapped = to_stream(stream=cuda_stream) if cuda_stream is not None else None
        if device_id is None:
            device_id = wrapped.device_id if wrapped is not None else Device.current().device_id
        if wrapped is not None and wrapped.device_id != device_id:
            raise ValueError(f"The stream is on GPU {wrapped.device_id}, device_id={device_id} is given")
        self._device = Device.CPU if device_id is None else Device("gpu", device_id)
        self._stream = chosen_stream(device_id) if wrapped is None and device_id is not None else wrapped
        self._follows = False
        self._pool = ThreadPool(num_threads) if num_threads is not None else thread_pool
        self._queue = InvocationQueue()
        self._thread: int | None = None
        self._depth = 0

    def __reduce__(self) -> Any:
        raise TypeError("EvalContext cannot be pickled or copied: it has a thread and a queue. Make a new one")

    @staticmethod
    def current() -> EvalContext:
        """The context in force on this thread."""
        stack = _local.stack
        return stack[-1] if stack else EvalContext.default()

    @staticmethod
    def default() -> EvalContext:
        """This thread's default context for the current device.

        Raises TypeError or ValueError where the number of threads or the stream of the context is changed to what it
        cannot be.
        """
        number = current_gpu()
        context = _local.defaults.get(number)
        if context is None:
            context = _local.defaults[number] = EvalContext(device_id=number)
            context._stream, context._follows = None, True
        return context

    @property
    def device_id(self) -> int | None:
        """The GPU of this context, None on the CPU."""
        return self._device.device_id

    @property
    def num_threads(self) -> int:
        """The number of threads of its pool."""
        return self.thread_pool.num_threads

    @property
    def thread_pool(self) -> ThreadPool:
        """The pool that CPU operators use."""
        return self._pool or default_pool()

    @property
    def cuda_stream(self) -> Stream | None:
        """The stream that GPU operators use; None without a GPU."""
        if self._device.device_id is None:
            return None
        return self._stream_on(self._device.device_id)

    def _stream_on(self, device_id: int) -> Stream:
        """The stream for work on a GPU, which need not be the context's own (`device="gpu:1"`).

        Args:
            device_id: the number of the GPU.
        """
        if self._stream is not None and self._stream.device_id == device_id:
            return self._stream
        chosen = chosen_stream(device_id) if self._follows or device_id != self._device.device_id else None
        if chosen is not None:
            return chosen
        return _own_streams(self, device_id)

    @property
    def checkpoint(self) -> Any:
        """This context's `Checkpoint`, empty at first. `clear()` it before another loop uses the same context."""
        return _checkpoints(self)

    def cached_results(self, invocation: Any) -> None:
        """Always None: a result exists as long as its handles (as in DALI 2.4.0).

        Args:
            invocation: an invocation; ignored.
        """
        return

    def cache_results(self, invocation: Any, results: Any) -> None:
        """Does nothing; see `cached_results`.

        Args:
            invocation, results: ignored.
        """

    def evaluate_all(self) -> None:
        """Waits until every operator called so far has run.

        Raises RuntimeError if an operator calls it: it would wait for itself. Errors of operators come with it.
        """
        queue = self._queue
        if queue.within():
            raise RuntimeError(
                "EvalContext.evaluate_all: an operator called it, and it would have to wait for that operator"
            )
        with queue.lock:
            while queue.step():
                pass

    def _submit(self, invocation: Invocation) -> None:
        """Queues an invocation for the background thread.

        Args:
            invocation: one that has not been submitted yet.
        """
        self._queue.submit(invocation)

    def _finish(self, invocation: Invocation) -> None:
        """Runs or waits for an invocation.

        Args:
            invocation: the invocation, submitted before or not.
        """
        watching = observation.active
        if watching is None:
            self._queue.finish(invocation)
        else:
            watching.wait(invocation, self._queue.finish)

    def __enter__(self) -> EvalContext:
        me = threading.get_ident()
        if self._thread is not None and self._thread != me:
            raise RuntimeError("This EvalContext is in force on another thread: a context serves one thread at a time")
        stack, devices = _local.stack, Device._local.stack
        scope = self._device._torch_scope()
        self._thread = me  # no call from here on: an exception of a signal handler comes before or after all of it
        self._depth += 1
        devices += [(self._device, scope)]
        stack += [self]
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        stack, devices = _local.stack, Device._local.stack
        place = innermost(stack, self, 0)
        del stack[place]  # no call from here on, as above
        _, scope = devices[-1]
        del devices[-1]
        self._depth -= 1
        if not self._depth:
            self._thread = None
        if scope is not None:
            scope.__exit__(exc_type, exc_value, traceback)


def get_current_stream(device_id: int | None = None) -> Stream | None:
    """The stream of this thread's default context: the one that `set_current_stream` has set, else the default stream, else a
    stream of the context's own. None without a GPU.

    Args:
        device_id: the number of the GPU; default: torch's current one.
    """
    context = EvalContext.default()
    number = context.device_id if device_id is None else device_id
    return None if number is None else context._stream_on(number)
