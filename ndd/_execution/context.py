"""`EvalContext`: the thread, thread pool, device and stream that operators run with."""

# Arguments of users are checked, whatever their annotations say.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from ndd._execution.fork import around_fork
from ndd._execution.invocation import Invocation, run_with_inputs, serving
from ndd._execution.memoize import Memoized
from ndd._execution.mode import take_off
from ndd._execution.signal_safe import start
from ndd._execution.stream import Stream, chosen_stream, stream as to_stream
from ndd._execution.threads import ThreadPool, default_pool
from ndd._execution.weak_registry import WeakRegistry
from ndd._tensor.device import Device, current_gpu

_LOOK_AGAIN_SECONDS = 0.5  # a waiter is woken by the result; it looks up in case the thread behind it has died
_FORK_SECONDS = 5.0  # a fork waits so long for an operator that is at work
_FORK_PAUSE = 0.05  # and so long at a time for one queue
# A background thread that was woken begins so much later, see `_serve`. Where nothing was left for it, it looks again in twice
# the time, up to the second; after so many looks it sleeps. Each of them takes the interpreter from the thread that works: with
# one every 0.3 ms, and a wake before each, half of the calls in a loop that asks for every result took 8 to 60 us longer.
_GRACE_SECONDS, _LONGEST_GRACE_SECONDS, _LOOKS = 0.0003, 0.0024, 12
_IDLE_SECONDS = 5.0  # a background thread without work ends; the next operator starts another (60 us)


class Turn:
    """The queue of a context: invocations run in the order of their calls, one at a time, on the background thread
    or on a thread that waits for a result. The latter saves two thread switches (7 us) where nothing runs yet.

    A thread may take `lock` again: a signal's handler, which interrupts the thread anywhere, may use operators too.
    """

    def __init__(self) -> None:
        self.queue: deque[Invocation] = deque()
        self.lock = threading.RLock()
        self.current: Invocation | None = None
        self.wake = threading.Lock()
        self.wake.acquire()
        self.asleep = False
        self.thread: threading.Thread | None = None
        self.closed = False
        weakref.finalize(self, _wake, self.wake).atexit = False  # else an idle thread lives on for `_IDLE_SECONDS`

    def submit(self, invocation: Invocation) -> None:
        invocation.queued = True
        self.queue.append(invocation)
        if self.asleep:
            self.asleep = False
            _wake(self.wake)
        elif self.thread is None:
            self._start()

    def _start(self) -> None:
        with _starting:
            if self.thread is None and not self.closed:
                _turns.add(self)
                thread = threading.Thread(target=_serve, args=(weakref.ref(self),), name="ndd-eager", daemon=True)
                start(thread)
                self.thread = thread

    def retired(self) -> bool:
        """Lets the idle background thread end, if nothing came meanwhile."""
        with _starting:
            ending = self.asleep and not self.queue
            self.asleep = False
            if ending:
                self.thread = None
        if ending and self.queue:  # came in just now, and saw a thread that sleeps
            self._start()
        return ending

    def step(self) -> bool:
        """Runs the next invocation, if there is one. The lock must be held."""
        try:
            invocation = self.queue.popleft()
        except IndexError:
            return False
        outer, self.current = self.current, invocation
        try:
            invocation.execute()
        finally:
            self.current = outer
        return True

    def within(self) -> bool:
        """Whether this thread works for the invocation that has its turn: what is queued cannot run before."""
        return self.current is not None and any([i is self.current for i in serving.now])

    def finish(self, invocation: Invocation) -> None:
        """Runs `invocation`, or waits for it if another thread runs it. A queued one waits for its turn; one that was
        never queued has none to wait for, nor has one that is asked for from within an operator, on whatever thread.
        RuntimeError if an operator asks for its own result."""
        if serving.now and not invocation.finished and any([i is invocation for i in serving.now]):
            raise RuntimeError(f"{invocation.name}: asks for its own result while it computes it")
        while not invocation.finished:
            if not invocation.queued or self.within():
                run_with_inputs(invocation) if invocation.inputs else invocation.execute()
            elif _taken(lock := self.lock):
                try:
                    while not invocation.finished and self.step():
                        pass
                finally:
                    lock.release()  # not self.lock: in a child that the operator forked that is another one
                if not invocation.finished:
                    invocation.execute()  # its queue was dropped by a fork, or another thread took it from there
            if not invocation.finished:
                invocation.wait(_LOOK_AGAIN_SECONDS)


def _wake(lock: Any) -> None:
    try:
        lock.release()
    except RuntimeError:  # two found it asleep: it is being woken
        pass


def _taken(lock: Any) -> bool:
    """`lock.acquire(blocking=False)`, but for what a signal's handler raises: that can come when the lock is taken and
    nobody knows it yet, and no other thread could ever work for the queue again."""
    held = lock._is_owned()
    try:
        return lock.acquire(blocking=False)
    except BaseException:
        if not held and lock._is_owned():
            lock.release()
        raise


_starting = threading.RLock()
_turns: WeakRegistry[Turn] = WeakRegistry()


def _serve(reference: weakref.ref[Turn]) -> None:
    """The background thread: runs what is queued, sleeps, ends when idle or when its context is gone.

    Once woken it waits a moment: a loop that calls a few operators and then asks for the result runs them on its own
    thread, and the two need not take the interpreter from each other all the time.
    """
    turn = reference()
    grace, looks = _GRACE_SECONDS, 0
    while turn is not None:
        found = False
        while turn.queue and not turn.closed:
            # Who has it works for the queue too. To be woken at his end would take the interpreter from him, who asks for a
            # result: a call of an operator that moves its input between devices, 0.29 ms, took 0.18 without that.
            lock = turn.lock
            if not lock.acquire(blocking=looks >= _LOOKS):
                break
            try:
                found = turn.step() or found
            except BaseException:  # sys.exit() of an operator: its asker's to see
                found = True
            finally:
                lock.release()
        if turn.closed:
            return
        if found:
            grace, looks = _GRACE_SECONDS, 0
        elif looks < _LOOKS:
            looks += 1
            del turn
            time.sleep(grace)
            turn = reference()
            grace = min(2 * grace, _LONGEST_GRACE_SECONDS)
            continue
        turn.asleep = True
        with _starting:  # without a GIL only a lock keeps `asleep` from being seen after the look at the queue
            waiting = bool(turn.queue)
        if waiting and not turn.closed:  # came in just now, perhaps before `asleep` was seen
            turn.asleep = False
            continue
        wake = turn.wake
        if turn.closed:
            return
        del turn
        woken = wake.acquire(timeout=_IDLE_SECONDS)
        turn = reference()
        if turn is None:
            return
        if not woken and turn.retired():
            return
        if woken:
            del turn
            time.sleep(_GRACE_SECONDS)
            turn = reference()
            grace, looks = _GRACE_SECONDS, 0


def _close_all() -> None:
    """At interpreter exit: what is queued is dropped, what runs is finished."""
    for turn in _turns:
        turn.closed = True
        turn.queue.clear()
        thread = turn.thread
        if thread is not None:
            _wake(turn.wake)
            thread.join(timeout=2.0)


class _Held(threading.local):
    """The locks of queues at rest. Each thread that forks has its own: the samples of an operator may fork at once."""

    def __init__(self) -> None:
        self.locks: list[Any] = []


_held = _Held()


def _before_fork() -> None:
    """Lets what runs come to its end, and nothing more begin, as long as that takes no more than `_FORK_SECONDS`.

    All queues or none: what runs in one may wait for a result of another.
    """
    until = time.monotonic() + _FORK_SECONDS
    turns = [turn for turn in _turns if not turn.within()]  # an operator that forks does not wait for itself
    while not all([_held_still(turn, until) for turn in turns]) and time.monotonic() < until:
        _go_on()
        time.sleep(_FORK_PAUSE)


def _held_still(turn: Turn, until: float) -> bool:
    seconds = min(until - time.monotonic(), _FORK_PAUSE)
    taken = turn.lock.acquire(timeout=max(seconds, 0))
    if taken:
        _held.locks.append(turn.lock)
    return taken


def _go_on() -> None:
    while _held.locks:
        _held.locks.pop().release()


def _in_child() -> None:
    """None of the parent's threads is here: every queue starts anew, contexts stay usable."""
    global _starting
    _starting = threading.RLock()
    for turn in _turns:
        turn.__init__()  # type: ignore[misc]
    _turns.clear()
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
    """Tells the contexts what makes their checkpoints; `ndd.checkpoint` calls this on import."""
    _make_checkpoint[:] = [make]


def _new_checkpoint(context: EvalContext) -> Any:
    return _make_checkpoint[0]()


def _new_stream(context: EvalContext, device_id: int) -> Stream:
    return Stream(device_id=device_id)


_checkpoints = Memoized(_new_checkpoint, per="owner")
_own_streams = Memoized(_new_stream, per="owner")


class EvalContext:
    """What operators run with: a background thread, a thread pool, a device and a CUDA stream.

    Each thread has a default context; `with EvalContext(...)` puts another in force. An operator uses the context
    that is in force at its call. One context serves one thread at a time: RuntimeError otherwise.

    Args:
        num_threads: size of a thread pool of its own.
        thread_pool: a pool to share instead; not together with `num_threads`.
        device_id: the GPU; default the current one, None where there is no GPU.
        cuda_stream: the stream to use (a `Stream`, a torch stream, a handle); default: what `set_current_stream` or
            `set_default_stream` has chosen by now, else one of its own (DALI: that of the thread's default context).

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
        self._turn = Turn()
        self._thread: int | None = None
        self._depth = 0

    def __reduce__(self) -> Any:
        raise TypeError("EvalContext cannot be pickled or copied: it has a thread and a queue. Make another one")

    @staticmethod
    def current() -> EvalContext:
        """The context in force on this thread."""
        stack = _local.stack
        return stack[-1] if stack else EvalContext.default()

    @staticmethod
    def default() -> EvalContext:
        """This thread's default context for the current device."""
        number = current_gpu()
        found = _local.defaults.get(number)
        if found is None:
            found = _local.defaults[number] = EvalContext(device_id=number)
            found._stream, found._follows = None, True
        return found

    @property
    def device_id(self) -> int | None:
        """The GPU of this context, None on the CPU."""
        return self._device.device_id

    @property
    def num_threads(self) -> int:
        """How many threads its pool has."""
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
        return self.stream_on(self._device.device_id)

    def stream_on(self, device_id: int) -> Stream:
        """The stream for work on a GPU, which need not be the context's own (`device="gpu:1"`)."""
        if self._stream is not None and self._stream.device_id == device_id:
            return self._stream
        found = chosen_stream(device_id) if self._follows or device_id != self._device.device_id else None
        if found is not None:
            return found
        return _own_streams(self, device_id)

    @property
    def checkpoint(self) -> Any:
        """This context's `Checkpoint`, empty at first. `clear()` it before another loop uses the same context."""
        return _checkpoints(self)

    def cached_results(self, invocation: Any) -> None:
        """Always None: every result lives as long as its handles, no longer (as in DALI 2.4.0)."""
        return

    def cache_results(self, invocation: Any, results: Any) -> None:
        """Does nothing; see `cached_results`."""

    def evaluate_all(self) -> None:
        """Waits until every operator called so far has run."""
        turn = self._turn
        if turn.within():
            raise RuntimeError("EvalContext.evaluate_all: called by an operator, which it would have to wait for")
        with turn.lock:
            while turn.step():
                pass

    def submit(self, invocation: Invocation) -> None:
        """Queues an invocation for the background thread."""
        self._turn.submit(invocation)

    def finish(self, invocation: Invocation) -> None:
        """Runs or waits for an invocation."""
        self._turn.finish(invocation)

    def __enter__(self) -> EvalContext:
        me = threading.get_ident()
        if self._thread is not None and self._thread != me:
            raise RuntimeError("This EvalContext is in force on another thread: a context serves one thread at a time")
        stack = _local.stack
        self._device.__enter__()
        self._thread = me  # no call from here on: what the handler of a signal raises comes before or after it
        self._depth += 1
        stack += [self]
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        take_off(_local.stack, self, 0)
        self._depth -= 1
        if not self._depth:
            self._thread = None
        self._device.__exit__(exc_type, exc_value, traceback)


def get_current_stream(device_id: int | None = None) -> Stream | None:
    """The stream of this thread's default context: what `set_current_stream` has set, else the default stream, else one of
    the context's own. None without a GPU."""
    context = EvalContext.default()
    number = context.device_id if device_id is None else device_id
    return None if number is None else context.stream_on(number)
