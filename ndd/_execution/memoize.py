"""`Memoized`: objects that are made once and cached, for the process, for a thread or for an owner such as a context."""

# This package may use attributes that are private to users, such as `Handle._value`.
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
    """A function whose results are cached: `Memoized(make)(*key)` is `make(*key)`, made at the first call with this key.

    Args:
        make: makes an object; called once for each key, by one thread at a time in a process (or thread, or owner).
        per: "process" shares the objects between all threads. "thread" gives each thread objects of its own, dropped when it
            ends. "owner" keeps them as long as the first argument exists, which must allow weak references; the object must
            not hold it.
        limit: the number that each of these keeps; beyond that the least recently used is dropped. None: no limit.

    A dropped object is closed, if it has `close()`. `with memoized.using(*key) as value:` keeps one open: an object in use
    is not closed. A forked child starts with nothing: objects of its parent, which may have threads or connections that do
    not exist in the child, are neither used nor closed nor destroyed there.

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
        self._shared = _Cache()
        self._own = threading.local()
        self._caches: WeakRegistry[_Cache] = WeakRegistry()  # the caches of all owners and threads
        self._caches.add(self._shared)
        self._of_owners: weakref.WeakKeyDictionary[Any, _Cache] = weakref.WeakKeyDictionary()

    def __call__(self, *key: Any) -> T:
        """The object of this key, made if there is none."""
        cache, key_there = self._place(key)
        return cache.get(key_there, key, self._make, self._limit, False)

    @contextlib.contextmanager
    def using(self, *key: Any) -> Generator[T, None, None]:
        """The object of this key, which is not closed while the block runs."""
        cache, key_there = self._place(key)
        value = cache.get(key_there, key, self._make, self._limit, True)
        try:
            yield value
        finally:
            cache.leave(key_there, self._limit)

    def clear(self) -> None:
        """Closes and forgets everything that is not in use."""
        for cache in self._caches:
            cache.trim(0)

    def __len__(self) -> int:
        """The number of cached objects, for all threads and owners together."""
        return sum(len(cache.objects) for cache in self._caches)

    def _place(self, key: tuple[Any, ...]) -> tuple[_Cache, tuple[Any, ...]]:
        """The cache for objects of this key, and the part of the key that is looked up there."""
        if self._per == "process":
            return self._shared, key
        if self._per == "thread":
            try:
                return self._own.cache, key
            except AttributeError:
                return self._cache_of_thread(), key
        cache = self._of_owners.get(key[0])
        if cache is not None:
            return cache, key[1:]
        with self._lock:
            cache = self._of_owners.get(key[0])
            if cache is None:
                cache = self._of_owners[key[0]] = _Cache()
                self._caches.add(cache)
        return cache, key[1:]

    def _cache_of_thread(self) -> _Cache:
        """A new cache for this thread at its first call."""
        cache = self._own.cache = _Cache()
        self._caches.add(cache)
        self._own.end = _ThreadEnd(cache)
        return cache

    def _forget(self) -> None:
        """Starts empty in a forked child. Threads that do not exist here may hold locks, so none is taken."""
        for cache in self._caches:
            for value in cache.objects.values():
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))  # it exists until the process ends
        self._start()


class _Cache:
    """The objects of one process, thread or owner; the least recently used one is the first."""

    __slots__ = ("__weakref__", "lock", "objects", "users")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.objects: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self.users: dict[tuple[Any, ...], int] = {}

    def get(self, place: Any, key: tuple[Any, ...], make: Callable[..., Any], limit: int | None, using: bool) -> Any:
        if not using and (limit is None or len(self.objects) == 1):  # the order of use does not matter
            value = self.objects.get(place)
            if value is not None:
                return value
        with self.lock:
            try:
                value = self.objects[place]
            except KeyError:
                value = self.objects[place] = make(*key)
            else:
                self.objects.move_to_end(place)
            if using:
                self.users[place] = self.users.get(place, 0) + 1
        if limit is not None and len(self.objects) > limit:
            self.trim(limit, place)
        return value

    def leave(self, place: Any, limit: int | None) -> None:
        with self.lock:
            self.users[place] -= 1
            if not self.users[place]:
                del self.users[place]
        if limit is not None and len(self.objects) > limit:
            self.trim(limit)

    def trim(self, limit: int, spared: Any = None) -> None:
        """Drops the least recently used objects without other references, until `limit` are left."""
        with self.lock:
            idle = [place for place in self.objects if place not in self.users and place != spared]
            gone = [self.objects.pop(place) for place in idle[: max(len(self.objects) - limit, 0)]]
        for value in gone:
            close = getattr(value, "close", None)
            if close is not None:
                close()


class _ThreadEnd:
    """Freed with the thread whose storage holds it; drops the thread's objects."""

    def __init__(self, cache: _Cache):
        self._cache = cache
        self._process = os.getpid()

    def __del__(self) -> None:
        if os.getpid() == self._process:  # a forked child drops its parent's threads
            self._cache.trim(0)


_every: WeakRegistry[Memoized[Any]] = WeakRegistry()


def _forget_all() -> None:
    for kept in _every:
        kept._forget()


around_fork(in_child=_forget_all)
