"""What a fork waits for, and what a forked child forgets. The one place where hooks of `os.fork` are registered.

A child has one thread. What another thread of its parent held or had half done when it was born stays so for ever: a
lock, a library half imported, a kernel half compiled. So before a fork

1. the steps of the rooms run from the highest room to the lowest (queues come to rest, see `context.py`),
2. `whole` is taken: no import and no compilation of ours is under way, and none begins (one in the background is broken
   off, see `whole.wanted`),

and after it `whole` is given back and the steps run from the lowest room to the highest, in the parent and in the child.

Where a GPU is in use, a child leaves its parent's garbage alone: a tensor that several streams have used asks the driver for an
event when it dies, which is no use in a child, and the error there ends the process.

Python runs the hooks that were registered last first. The libraries whose hooks take locks that a thread of ours may
need to come to its end are therefore imported here, before ours is registered: else `logging`'s lock would be taken
while we wait for a thread that imports numba, which asks for that lock.
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

_WHOLE_SECONDS = 60.0  # a fork waits so long for an import or a compilation; the longest kernel takes 4 s


class _Step(NamedTuple):
    before: Callable[[], None] | None
    in_parent: Callable[[], None] | None
    in_child: Callable[[], None] | None


class _Whole:
    """A lock that is held by what a fork must not cut in two: `with whole:` around an import or a compilation.

    One thread at a time holds it, and may take it again. Several may fork at once: the samples of an operator that forks.

    Attributes:
        forking: the threads on whose way a fork is.
    """

    def __init__(self) -> None:
        self.forking: set[int] = set()
        self._waiting: set[int] = set()  # threads
        self._lock = threading.RLock()
        self._taken: int | None = None  # by this thread, which forks

    @property
    def wanted(self) -> bool:
        """Whether a fork or another thread waits for it, or soon will: what can be done later is to be broken off."""
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
        """Waits for who holds it."""
        if self._lock.acquire(timeout=_WHOLE_SECONDS):
            self._taken = threading.get_ident()

    def in_parent(self) -> None:
        """Gives it back."""
        me = threading.get_ident()
        self.forking.discard(me)
        if self._taken == me:
            self._taken = None
            self._lock.release()

    def in_child(self) -> None:
        """Gives it back; who holds it after all does not exist here."""
        if self._taken != threading.get_ident():
            self._lock, self._taken = threading.RLock(), None
        self._waiting.clear()
        self.forking.clear()
        self.in_parent()


class _Garbage:
    """What a child does not collect."""

    def __init__(self) -> None:
        self._on_gpu = False  # whether some of it may be

    def before(self) -> None:
        """Asks in the parent: in a child torch says that no GPU is in use."""
        asked = getattr(sys.modules.get("torch.cuda"), "is_initialized", None)  # another thread may be importing it
        self._on_gpu = self._on_gpu or (asked is not None and asked())

    def in_child(self) -> None:
        """Leaves what there is alone, for good."""
        if self._on_gpu:
            gc.freeze()


whole, _garbage = _Whole(), _Garbage()
_steps = [_Step(_garbage.before, None, _garbage.in_child), _Step(whole.before, whole.in_parent, whole.in_child)]


def around_fork(
    *,
    before: Callable[[], None] | None = None,
    in_parent: Callable[[], None] | None = None,
    in_child: Callable[[], None] | None = None,
) -> None:
    """Adds a step: `before` runs in the thread that forks, then one of the others in the same thread of each process.

    Rooms add theirs when they are imported, the lower ones first.
    """
    _steps.append(_Step(before, in_parent, in_child))


def _before() -> None:
    whole.forking.add(threading.get_ident())
    with contextlib.ExitStack() as each:  # a step that fails (Ctrl-C) does not keep the others from running
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
