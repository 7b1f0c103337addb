"""One call of an operator: its work, its context and its outcome."""

from __future__ import annotations

import threading
import types
from collections.abc import Callable
from typing import Any

from ndd._execution import observation
from ndd._execution.errors import raise_later, raise_signalled
from ndd._execution.fork import around_fork
from ndd._tensor.secrets import redact

_WAITING, _RUNNING, _DONE, _FAILED = range(4)
# Guards the changes of state of every invocation. Reentrant, since a signal handler may need it too.
_state_lock = threading.RLock()
_process = 0  # counts forks: an invocation that a thread of the parent was running never ends in the child


class _Serving(threading.local):
    """The invocations that a thread works for, the innermost last: those that it runs, and on a thread of the pool the one
    whose samples it computes."""

    now: tuple[Invocation, ...] = ()


serving = _Serving()


class Invocation:
    """`work(invocation)` gives the list of result stores; it runs once, on the context's thread or on a thread that asks for
    the result."""

    __slots__ = (
        "call", "context", "deferred", "error", "inputs", "loop_position", "name", "process", "queued", "results", "state",
        "stream", "waiters", "work",
    )  # fmt: skip

    def __init__(self, name: str, work: Callable[[Any], list[Any]], context: Any, call: Any, deferred: bool):
        self.name = name
        self.work: Callable[[Any], list[Any]] | None = work
        self.context = context
        self.call: tuple[types.CodeType, int] | None = call
        self.deferred = deferred
        self.queued = False
        self.inputs: Any = ()  # deferred: the handles that must have values first
        # Where in a loop it was called: an `Iteration` and the number of the call, see `_lookahead/recording.py`.
        self.loop_position: Any = None
        self.state = _WAITING
        self.process = 0
        self.results: list[Any] | None = None
        self.error: BaseException | None = None
        self.waiters: list[threading.Lock] | None = None
        self.stream: Any = None

    @property
    def finished(self) -> bool:
        return self.state >= _DONE

    @property
    def begun(self) -> bool:
        return self.state != _WAITING

    def execute(self) -> None:
        """Runs the work, unless another thread has begun it. Never raises an operator's error."""
        outer = serving.now
        begun = False
        try:  # around everything: Python runs signal handlers between any two steps, and they may raise
            with _state_lock:
                if self.state == _RUNNING and self.process != _process:
                    self.state = _WAITING
                if self.state != _WAITING:
                    return
                self.state = _RUNNING
                self.process = _process
                begun = True
            serving.now = (*outer, self)
            self._run()
        except BaseException:
            # Ctrl-C, sys.exit() or an exception of a signal handler, while the thread that asks ran this itself: that thread
            # gets it, and the next one that asks runs the work again.
            if begun and self.state == _RUNNING:
                self.queued = False
                self.state = _WAITING
                self._wake()
            raise
        finally:
            serving.now = outer

    def _run(self) -> None:
        try:
            watching = observation.active
            results = self.results = self.work(self) if watching is None else watching.run(self)  # type: ignore[misc]
            if self.loop_position is not None:
                for store in results:
                    store.loop_position = store.loop_position or self.loop_position
        except Exception as error:
            raise_signalled(error)
            origin = getattr(error, "origin", None)
            if isinstance(origin, Invocation):  # an input has failed: its operator is reported, once
                self.name, self.call = origin.name, origin.call
                self.error = origin.error
            else:
                self.error = redact(self._without_frames(error))
            self._end(_FAILED)
        else:
            self._end(_DONE)

    def _without_frames(self, error: Exception) -> Exception:
        """The error without ndd's frames, whose variables would keep the inputs alive as long as the error."""
        if self.call is None:
            return error.with_traceback(_without_our_frames(error))
        if error.__cause__ is None:
            error.__context__ = None
        return error.with_traceback(None)

    def _end(self, state: int) -> None:
        with _state_lock:  # a signal comes before both steps or after both
            self.work, self.inputs = None, ()  # the inputs die with it
            self.state = state
            waiters, self.waiters = self.waiters, None
        for lock in waiters or ():
            lock.release()

    def _wake(self) -> None:
        with _state_lock:
            waiters, self.waiters = self.waiters, None
        for lock in waiters or ():
            lock.release()

    def wait(self, seconds: float) -> None:
        """Waits up to `seconds` until another thread has run this or has given up."""
        done = threading.Lock()
        done.acquire()
        with _state_lock:
            if self.state >= _DONE or (self.state == _RUNNING and self.process != _process):
                return
            if self.waiters is None:
                self.waiters = []
            self.waiters.append(done)
        done.acquire(timeout=seconds)

    def result(self, index: int) -> Any:
        """The store of output `index`; waits, and raises the operator's error."""
        if self.state < _DONE:
            self.context._finish(self)
        if self.state == _FAILED:
            how = "deferred evaluation" if self.deferred else "asynchronous execution"
            raise_later(self.error, self.name, self.call, how)  # type: ignore[arg-type]
        return self.results[index]  # type: ignore[index]

    def raise_now(self) -> None:
        """Raises the operator's error at the call, for synchronous modes."""
        if self.state == _FAILED:
            error = self.error
            try:
                raise error  # type: ignore[misc]
            finally:
                self.error = error = None  # the traceback holds this frame, which must not hold the error


def run_with_inputs(last: Invocation) -> None:
    """Runs an invocation that was never queued, inputs first. It does not recurse: a deferred chain may be thousands of
    calls long."""
    waiting = [last]
    while waiting:
        top = waiting[-1]
        before = [
            p for h in top.inputs if h is not None and (p := h._pending) is not None and not p.queued and not p.begun
        ]
        if before:
            waiting.extend(before)
        else:
            waiting.pop().execute()


def _in_child() -> None:
    """Frees the locks that threads of the parent held; their invocations may run again."""
    global _state_lock, _process
    _state_lock = threading.RLock()
    _process += 1


around_fork(in_child=_in_child)


def _without_our_frames(error: BaseException) -> types.TracebackType | None:
    """Drops the frame of this file, which means nothing to a user."""
    tb = error.__traceback__
    return tb.tb_next if tb is not None and tb.tb_next is not None else tb
