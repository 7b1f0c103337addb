"""`WeakRegistry`: the objects of a kind that are alive, for a fork or the interpreter's end to go through."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from ndd._execution.fork import around_fork

T = TypeVar("T")


class WeakRegistry(Generic[T]):
    """Holds objects weakly. Any thread may add to it while another goes through it.

    A `weakref.WeakSet` ends such a walk by "Set changed size during iteration", for it looks at its objects one by one
    in Python code, where the interpreter lets other threads run. Here the walk begins with a copy made in one step.

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

    def add(self, found: T) -> None:
        """Holds it until it dies."""
        self._references.add(weakref.ref(found, self._references.discard))

    def clear(self) -> None:
        """Forgets them all."""
        self._references.clear()

    def __iter__(self) -> Iterator[T]:
        for reference in list(self._references):
            found = reference()
            if found is not None:
                yield found


class EndedAtExit(WeakRegistry[T]):
    """Objects with threads, which end before the interpreter does: what they run must not come back to one that is gone. A
    forked child, which has the objects but not the threads, forgets them.

    Args:
        end: tells an object to end its thread.
        wait: waits until it has, for a time; default: nobody waits.

    Attributes:
        over: the program ends: what begins now is to end at once.
    """

    def __init__(self, end: Callable[[T], None], wait: Callable[[T], None] | None = None):
        super().__init__()
        self._end, self._wait = end, wait
        self.over = False
        atexit.register(self._end_all)
        around_fork(in_child=self.clear)

    def _end_all(self) -> None:
        self.over = True
        for found in self:
            self._end(found)
        if self._wait is not None:
            for found in self:
                self._wait(found)
