"""Hooks of `os.fork`: waiting before a fork, and resetting in a forked child. Only this module registers such hooks.

A child has one thread. Whatever another thread of the parent held or had half finished at the fork stays in that state forever:
a lock, a half-imported library, a half-compiled kernel. So before a fork

1. the steps of the packages run, from the highest package to the lowest (queues pause, see `context.py`),
2. `fork_lock` is taken: no import and no compilation of ours is under way, and none begins (a compilation in the background
   is broken off, see `fork_lock.wanted`).

After the fork `fork_lock` is released and the steps run from the lowest package to the highest, in the parent and in the child.

Where a GPU is in use, a child does not collect its parent's garbage. A tensor that several streams have used asks the driver
for an event when it is freed; in a child that is an error, which ends the process.

Python runs hooks in the reverse order of their registration. Some libraries have hooks that take locks which a thread of
ours may need to finish. These libraries are imported here, before our hook is registered. Otherwise `logging`'s lock would
be taken while we wait for a thread that imports numba and asks for that lock.
"""

from __future__ import annotations

# pyright: reportUnusedImport=false
import concurrent.futures.thread  # noqa: F401  (takes a lock before a fork)
import contextlib
import gc
import logging  # noqa: F401  (takes a lock before a fork)
import os
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple

_LOCK_SECONDS = 60.0  # the time that a fork waits for an import or a compilation; the slowest kernel takes 4 s


class _Step(NamedTuple):
    before: Callable[[], None] | None
    in_parent: Callable[[], None] | None
    in_child: Callable[[], None] | None


class _ForkLock:
    """The lock of work that a fork must not interrupt: `with fork_lock:` around an import or a compilation.

    One thread at a time holds it, and may take it again. Several threads may fork at once: an operator that forks for each
    sample.

    Attributes:
        forking: the threads that are about to fork.
    """

    def __init__(self) -> None:
        self.forking: set[int] = set()
        self._waiting: set[int] = set()  # threads
        self._lock = threading.RLock()
        self._taken: int | None = None  # by this thread, for its fork

    @property
    def wanted(self) -> bool:
        """Whether a fork or another thread waits for the lock, or soon will. Work that can wait should then stop."""
        return bool(self.forking or self._waiting)

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            me = threading.get_ident()
            self._waiting.add(me)
            try:
                self._lock.acquire()
            finally:
                self._waiting.discard(me)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lock.release()

    def before(self) -> None:
        """Waits for the thread that holds it."""
        if self._lock.acquire(timeout=_LOCK_SECONDS):
            self._taken = threading.get_ident()

    def in_parent(self) -> None:
        """Releases it."""
        me = threading.get_ident()
        self.forking.discard(me)
        if self._taken == me:
            self._taken = None
            self._lock.release()

    def in_child(self) -> None:
        """Releases it; another thread that held it does not exist here."""
        if self._taken != threading.get_ident():
            self._lock, self._taken = threading.RLock(), None
        self._waiting.clear()
        self.forking.clear()
        self.in_parent()


class _Garbage:
    """Keeps a child from collecting its parent's garbage."""

    def __init__(self) -> None:
        self._on_gpu = False  # whether garbage may hold GPU memory

    def before(self) -> None:
        """Asks torch in the parent: in a child it says that no GPU is in use."""
        asked = getattr(sys.modules.get("torch.cuda"), "is_initialized", None)  # another thread may be importing it
        self._on_gpu = self._on_gpu or (asked is not None and asked())

    def in_child(self) -> None:
        """Excludes all present objects from collection forever."""
        if self._on_gpu:
            gc.freeze()


fork_lock, _garbage = _ForkLock(), _Garbage()
_steps = [
    _Step(_garbage.before, None, _garbage.in_child),
    _Step(fork_lock.before, fork_lock.in_parent, fork_lock.in_child),
]


def around_fork(
    *,
    before: Callable[[], None] | None = None,
    in_parent: Callable[[], None] | None = None,
    in_child: Callable[[], None] | None = None,
) -> None:
    """Adds a step: `before` runs in the thread that forks, then `in_parent` or `in_child` in the same thread of each process.

    Packages add their steps when they are imported, the lower ones first.
    """
    _steps.append(_Step(before, in_parent, in_child))


def _before() -> None:
    fork_lock.forking.add(threading.get_ident())
    with contextlib.ExitStack() as each:  # the other steps run even if one fails (Ctrl-C)
        for step in _steps:
            if step.before is not None:
                each.callback(step.before)


def _in_parent() -> None:
    for step in _steps:
        if step.in_parent is not None:
            step.in_parent()


def _in_child() -> None:
    for step in _steps:
        if step.in_child is not None:
            step.in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
