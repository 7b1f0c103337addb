"""One call of an operator: what will run, where, and what came of it."""

from __future__ import annotations

import threading
import types
from collections.abc import Callable
from typing import Any

from ndd._execution.errors import raise_later

_WAITING, _RUNNING, _DONE, _FAILED = range(4)


class Invocation:
    """`work(invocation)` gives the list of result stores; it runs once, on the context's thread or the asker's."""

    __slots__ = ("call", "context", "deferred", "error", "name", "results", "state", "stream", "waiters", "work")

    def __init__(self, name: str, work: Callable[[Any], list[Any]], context: Any, call: Any, deferred: bool):
        self.name = name
        self.work: Callable[[Any], list[Any]] | None = work
        self.context = context
        self.call: tuple[types.CodeType, int] | None = call
        self.deferred = deferred
        self.state = _WAITING
        self.results: list[Any] | None = None
        self.error: BaseException | None = None
        self.waiters: list[threading.Lock] | None = None
        self.stream: Any = None

    @property
    def finished(self) -> bool:
        return self.state >= _DONE

    def execute(self) -> None:
        """Runs the work; called by whoever holds the context's turn. Never raises an operator's error."""
        if self.state != _WAITING:
            return
        self.state = _RUNNING
        try:
            self.results = self.work(self)  # type: ignore[misc]
            state = _DONE
        except BaseException as error:
            origin = getattr(error, "origin", None)
            if isinstance(origin, Invocation):  # an input had failed: report that operator, once
                error, self.name, self.call = origin.error, origin.name, origin.call  # type: ignore[assignment]
            self.error = error.with_traceback(_without_our_frames(error))
            state = _FAILED
            if not isinstance(error, Exception):
                self._finish(state)
                raise  # Ctrl-C while the asking thread ran this itself: it is that thread's to see
        self._finish(state)

    def _finish(self, state: int) -> None:
        self.work = None  # inputs die with it
        self.state = state
        waiters, self.waiters = self.waiters, None
        for lock in waiters or ():
            lock.release()

    def result(self, index: int) -> Any:
        """The store of output `index`; waits, and raises what the operator raised."""
        if self.state < _DONE:
            self.context.finish(self)
        if self.state == _FAILED:
            how = "deferred evaluation" if self.deferred else "asynchronous execution"
            raise_later(self.error, self.name, self.call, how)  # type: ignore[arg-type]
        return self.results[index]  # type: ignore[index]

    def raise_now(self) -> None:
        """For synchronous modes: the operator's own error, at the call."""
        if self.state == _FAILED:
            raise self.error  # type: ignore[misc]


def _without_our_frames(error: BaseException | None) -> types.TracebackType | None:
    """Drops the frames of this file: they say nothing to a user."""
    tb = error.__traceback__ if error is not None else None
    return tb.tb_next if tb is not None and tb.tb_next is not None else tb
