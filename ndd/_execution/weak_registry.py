"""`WeakRegistry`: the live objects of a kind, visited at a fork or when the interpreter ends."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from ndd._execution.fork import around_fork

T = TypeVar("T")


class WeakRegistry(Generic[T]):
    """Holds objects weakly. Any thread may add to it while another iterates.

    Iteration over a `weakref.WeakSet` would fail with "Set changed size during iteration": it visits its objects one by one
    in Python code, and other threads run in between. Here iteration begins with a copy, which is made in one step.

    >>> class Queue: pass
    >>> queue, queues = Queue(), WeakRegistry()
    >>> queues.add(queue)
    >>> list(queues) == [queue]
    True
    >>> del queue
    >>> list(queues)
    []
    """

    def __init__(self) -> None:
        self._references: set[weakref.ref[T]] = set()

    def add(self, member: T) -> None:
        """Registers an object until it is freed."""
        self._references.add(weakref.ref(member, self._references.discard))

    def clear(self) -> None:
        """Forgets them all."""
        self._references.clear()

    def __iter__(self) -> Iterator[T]:
        for reference in list(self._references):
            member = reference()
            if member is not None:
                yield member


class EndedAtExit(WeakRegistry[T]):
    """Objects whose threads have to end before the interpreter does: compiled code must not return to an interpreter that is
    gone. A forked child has the objects but not the threads, and forgets them.

    Args:
        end: tells an object to end its thread.
        wait: waits up to a time until it has ended; default: does not wait.

    Attributes:
        over: whether the program is ending; threads that start now have to end at once.
    """

    def __init__(self, end: Callable[[T], None], wait: Callable[[T], None] | None = None):
        super().__init__()
        self._end, self._wait = end, wait
        self.over = False
        atexit.register(self._end_all)
        around_fork(in_child=self.clear)

    def _end_all(self) -> None:
        self.over = True
        for member in self:
            self._end(member)
        if self._wait is not None:
            for member in self:
                self._wait(member)
