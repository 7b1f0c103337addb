"""`Memoized`: objects that are made once and kept, for the process, for a thread or for an owner such as a context."""

# What is private to users, such as `Handle._value`, is this package's own.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Generator
from typing import Any, Generic, Literal, TypeVar

from ndd._execution.fork import around_fork
from ndd._execution.weak_registry import WeakRegistry

T = TypeVar("T")


class Memoized(Generic[T]):
    """A function whose results are kept: `Memoized(make)(*key)` is `make(*key)`, made at the first call with this key.

    Args:
        make: makes an object; one at a time for a process (or thread, or owner), and once for each key.
        per: "process" shares the objects between all threads; "thread" gives each thread its own, which go when it
            ends; "owner" keeps them as long as the first argument lives, which must allow weak references and must
            not be held by the object made.
        limit: how many are kept in each of these; beyond it the least recently used goes. None: no limit.

    What goes is closed, if it has `close()`: ask for such objects by `with kept.using(*key) as found:`, for what is
    in use is not closed. A forked child starts with nothing: what its parent made, possibly with threads or
    connections that do not exist there, is neither used nor closed nor destroyed in the child.

    >>> squares = Memoized(lambda n: [n * n], limit=2)
    >>> squares(3) is squares(3), len(squares)
    (True, 1)
    """

    def __init__(
        self,
        make: Callable[..., T],
        *,
        per: Literal["process", "thread", "owner"] = "process",
        limit: int | None = None,
    ):
        if limit is not None and limit < 1:
            raise ValueError(f"limit: expected a positive number of objects, got {limit}")
        self._make = make
        self._limit = limit
        self._per = per
        self._start()
        _every.add(self)

    def _start(self) -> None:
        self._lock = threading.RLock()  # guards the table of owners
        self._shared = _Shelf()
        self._own = threading.local()
        self._shelves: WeakRegistry[_Shelf] = WeakRegistry()  # all of them
        self._shelves.add(self._shared)
        self._of_owners: weakref.WeakKeyDictionary[Any, _Shelf] = weakref.WeakKeyDictionary()

    def __call__(self, *key: Any) -> T:
        """The object of this key; made if there is none."""
        shelf, key_there = self._place(key)
        return shelf.get(key_there, key, self._make, self._limit, False)

    @contextlib.contextmanager
    def using(self, *key: Any) -> Generator[T, None, None]:
        """The object of this key, which is not closed while the block runs."""
        shelf, key_there = self._place(key)
        found = shelf.get(key_there, key, self._make, self._limit, True)
        try:
            yield found
        finally:
            shelf.leave(key_there, self._limit)

    def clear(self) -> None:
        """Closes and forgets everything that is not in use."""
        for shelf in self._shelves:
            shelf.trim(0)

    def __len__(self) -> int:
        """How many objects are kept, all threads and owners together."""
        return sum(len(shelf.objects) for shelf in self._shelves)

    def _place(self, key: tuple[Any, ...]) -> tuple[_Shelf, tuple[Any, ...]]:
        """Where objects of this key are kept, and under which part of the key."""
        if self._per == "process":
            return self._shared, key
        if self._per == "thread":
            try:
                return self._own.shelf, key
            except AttributeError:
                return self._begun(), key
        shelf = self._of_owners.get(key[0])
        if shelf is not None:
            return shelf, key[1:]
        with self._lock:
            shelf = self._of_owners.get(key[0])
            if shelf is None:
                shelf = self._of_owners[key[0]] = _Shelf()
                self._shelves.add(shelf)
        return shelf, key[1:]

    def _begun(self) -> _Shelf:
        """The shelf of a thread that asks for the first time."""
        shelf = self._own.shelf = _Shelf()
        self._shelves.add(shelf)
        self._own.end = _ThreadEnd(shelf)
        return shelf

    def _forget(self) -> None:
        """In a forked child. Locks may be held by threads that do not exist here, so none is asked for."""
        for shelf in self._shelves:
            for found in shelf.objects.values():
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(found))  # it lives until the process ends
        self._start()


class _Shelf:
    """The objects of one process, thread or owner; the least recently used one is the first."""

    __slots__ = ("__weakref__", "lock", "objects", "users")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.objects: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self.users: dict[tuple[Any, ...], int] = {}

    def get(self, place: Any, key: tuple[Any, ...], make: Callable[..., Any], limit: int | None, using: bool) -> Any:
        if limit is None and not using:  # nothing goes, so that nothing is to be noted
            found = self.objects.get(place)
            if found is not None:
                return found
        with self.lock:
            try:
                found = self.objects[place]
            except KeyError:
                found = self.objects[place] = make(*key)
            else:
                self.objects.move_to_end(place)
            if using:
                self.users[place] = self.users.get(place, 0) + 1
        if limit is not None and len(self.objects) > limit:
            self.trim(limit, place)
        return found

    def leave(self, place: Any, limit: int | None) -> None:
        with self.lock:
            self.users[place] -= 1
            if not self.users[place]:
                del self.users[place]
        if limit is not None and len(self.objects) > limit:
            self.trim(limit)

    def trim(self, limit: int, spared: Any = None) -> None:
        """Lets the oldest go that nobody uses, until `limit` are left."""
        with self.lock:
            idle = [place for place in self.objects if place not in self.users and place != spared]
            gone = [self.objects.pop(place) for place in idle[: max(len(self.objects) - limit, 0)]]
        for found in gone:
            close = getattr(found, "close", None)
            if close is not None:
                close()


class _ThreadEnd:
    """Dies with the thread whose storage holds it, and takes the thread's objects along."""

    def __init__(self, shelf: _Shelf):
        self._shelf = shelf
        self._process = os.getpid()

    def __del__(self) -> None:
        if os.getpid() == self._process:  # a forked child drops its parent's threads
            self._shelf.trim(0)


_every: WeakRegistry[Memoized[Any]] = WeakRegistry()


def _forget_all() -> None:
    for kept in _every:
        kept._forget()


around_fork(in_child=_forget_all)
