"""`Living`: the objects of a kind that are alive, for a fork or the interpreter's end to go through."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Living(Generic[T]):
    """Holds objects weakly. Any thread may add to it while another goes through it.

    A `weakref.WeakSet` ends such a walk by "Set changed size during iteration", for it looks at its objects one by one
    in Python code, where the interpreter lets other threads run. Here the walk begins with a copy made in one step.

    >>> class Queue: pass
    >>> queue, queues = Queue(), Living()
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
