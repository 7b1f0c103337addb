"""`ReadAhead`: results that threads prepare before they are requested. Readers, pipelines and external sources use it."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ndd._execution.signal_safe import SignalSafeCondition, start
from ndd._execution.weak_registry import EndedAtExit

__all__ = ["ReadAhead"]

T = TypeVar("T")

_RETRY_SECONDS = 0.01  # after which a thread without memory tries again


class Pending(Generic[T]):
    """A result on its way.

    Attributes:
        value: the result.
        error: the error that is raised in its place.
        left: the number of parts that threads still work on.
    """

    __slots__ = ("error", "left", "value")

    def __init__(self) -> None:
        self.value: Any = None
        self.error: BaseException | None = None
        self.left = 0


class ReadAhead(Generic[T]):
    """Calls a function on a thread, and gives its results in order.

    * An error of the function is raised in the place of its result. After it (StopIteration included) the function is not
      called again before the next result is requested.
    * Ctrl-C at any step of `next` loses nothing and doubles nothing: the next call gives what the interrupted one would have
      given.
    * The thread ends after the call it works on when `stop` is called, when the owner is freed, and when the program ends.
    * A forked child goes on with a thread of its own; a call that was under way in the parent is made again.

    Only one thread at a time may ask for results.

    Args:
        work: the function. It must not hold the owner.
        depth: the number of results that are prepared before they are requested.
        name: the name of the user of this object in errors and names of threads: "reader", "pipeline", "source".
        owner: the object whose end ends the thread. Default: only `stop` and the end of the program do.
        exit_seconds: the time that the program's end waits for the running call.

    >>> import itertools
    >>> from ndd.read_ahead import ReadAhead
    >>> numbers = ReadAhead(itertools.count().__next__, depth=2, name="source")
    >>> [numbers.next() for _ in range(3)]
    [0, 1, 2]
    >>> numbers.stop()
    """

    def __init__(
        self, work: Callable[[], T], depth: int, name: str, *, owner: Any = None, exit_seconds: float = 2.0
    ) -> None:
        self._work = work
        self._depth = depth
        self._name = name
        self._exit_seconds = exit_seconds
        self._thread_count = 1
        self._coming: deque[Pending[T]] = deque()
        self._taken: Pending[T] | None = None  # on its way to the caller
        self._paused = True  # until the first request
        self._finalizer: weakref.finalize[..., Any] | None = None
        self._new_process()
        if owner is not None:
            self._finalizer = weakref.finalize(owner, self.stop)
            self._finalizer.atexit = False  # `_running` ends all of them, and waits

    def _new_process(self) -> None:
        """Sets up the state of a process. In a forked child the threads are gone, and locks may be held forever."""
        self._lock = threading.RLock()  # a finaliser, which the collector may run on any of the threads, calls `stop`
        self._task = threading.Condition(self._lock)  # for the threads: there is something to do
        self._ready = SignalSafeCondition(self._lock)  # for callers: a result is ready
        self._threads: list[threading.Thread] = []
        self._working = False
        self._stopped = _running.over
        _running.add(self)
        self._process = os.getpid()

    def next(self) -> T:
        """The next result; waits for it."""
        if os.getpid() != self._process:
            self._new_process()
        with self._lock:
            if self._taken is None:
                self._await_first()
                self._taken = self._coming[0]
                del self._coming[0]  # no call, as popleft() is one
            self._task.notify()
        taken = self._taken
        self._taken = None
        # Nothing is called from here on.
        if taken.error is None:
            return taken.value
        try:
            raise taken.error
        finally:
            del taken  # a frame that holds an exception that holds the frame

    def begin(self) -> None:
        """Prepares results before the first one is requested."""
        with self._lock:
            self._paused = False
            self._start_threads()
            self._task.notify()

    def stop(self) -> None:
        """Ends the threads; each finishes its current work. Does not wait for them."""
        if os.getpid() != self._process:  # a forked child has no threads here
            return
        with self._lock:
            self._stopped = True
            self._coming.clear()
            self._task.notify_all()
            self._ready.notify_all()
        if self._finalizer is not None:
            self._finalizer.detach()

    def join(self, seconds: float | None = None) -> None:
        """Waits until each thread has ended, at most for this time; default: as long as the program's end waits."""
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(self._exit_seconds if seconds is None else seconds)

    # The asking side. The lock is held.

    def _await_first(self) -> None:
        """Waits until the first of the coming results is ready, or its error is."""
        if len(self._threads) < self._thread_count:
            self._start_threads()
        if self._coming and not self._coming[0].left:
            return
        self._late()
        while not self._coming or self._coming[0].left:
            if not self._coming:
                self._paused = False
                self._task.notify()  # at each turn: Ctrl-C may have come before it
            self._wait()

    def _late(self) -> None:
        """Called where a result was not ready in time."""

    def _wait(self) -> None:
        if self._stopped:
            raise RuntimeError(
                f"a {self._name} was asked for data while the program ends, when its threads have ended: read before, or "
                "register the handler with atexit after ndd was imported, so that it runs earlier"
            )
        self._ready.wait()

    def _start_threads(self) -> None:
        while len(self._threads) < self._thread_count and not self._stopped:  # at the end some Pythons start none
            self._add_thread()

    def _add_thread(self) -> None:
        name = f"ndd-{self._name}-{len(self._threads)}"
        thread = threading.Thread(target=self._serve, name=name, daemon=True)
        start(thread)
        self._threads.append(thread)

    # The threads. A subclass may give them other tasks; None is the task of preparing the next result.

    def _serve(self) -> None:
        while not self._stopped:
            taken: list[Any] = []
            try:
                self._serve_once(taken)
            except (MemoryError, RuntimeError):  # not even a lock can be had: no reason to let others wait forever
                time.sleep(_RETRY_SECONDS)
                with self._lock:
                    for task in taken:
                        self._give_back(task)

    def _serve_once(self, taken: list[Any]) -> None:
        """Waits for a task, notes it in `taken` and does it."""
        with self._lock:
            while not (self._stopped or self._has_task()):
                self._task.wait(self._pause())
            if self._stopped:
                return
            self._take_task(taken)
        self._do(taken[0])

    def _has_task(self) -> bool:
        return self._may_prepare()

    def _pause(self) -> float | None:
        """Seconds after which there may be a task although nobody has notified the threads."""
        return None

    def _take_task(self, taken: list[Any]) -> None:
        taken.append(None)
        self._working = True

    def _give_back(self, task: Any) -> None:
        """Puts a task that failed for lack of memory back to be done."""
        self._working = False

    def _do(self, task: Any) -> None:
        self._prepare()

    def _may_prepare(self) -> bool:
        return not self._paused and not self._working and self._has_room()

    def _has_room(self) -> bool:
        return len(self._coming) < self._depth

    def _prepare(self) -> None:
        """Calls the function without the lock; one thread does so at a time."""
        pending: Pending[T] = Pending()
        try:
            pending.value = self._work()
        except BaseException as error:  # also SystemExit: this thread must continue
            pending.error = error
        self._prepared(pending)
        del pending  # the exception holds this frame

    def _prepared(self, *results: Pending[T]) -> None:
        with self._lock:
            self._working = False
            if self._stopped:
                return
            self._coming.extend(results)
            self._paused = results[-1].error is not None
            if not results[-1].left:
                self._ready.notify_all()


# No thread may work while the interpreter shuts down; objects that are made then start stopped.
_running: EndedAtExit[ReadAhead[Any]] = EndedAtExit(ReadAhead.stop, ReadAhead.join)
