"""Runs that a background thread prepares before they are asked for."""

from __future__ import annotations

import atexit
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any


class Ahead:
    """Calls `work(owner)` on a thread, up to `depth` results before they are taken.

    The thread holds its owner only while it works, so an owner that nobody else holds is freed, and the thread ends.
    After a StopIteration it ends; any other exception is a result like the others, raised when its turn comes.
    """

    def __init__(self, owner: Any, work: Callable[[Any], Any], depth: int):
        self._ready: deque[tuple[Any, BaseException | None]] = deque()
        self._taken: tuple[Any, BaseException | None] | None = None  # on its way to the caller
        # Entered itself: what Ctrl-C raises in a condition's `__enter__` leaves it taken.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._depth = depth
        self._stopped = False
        self._ended = False
        self._owner, self._work = weakref.ref(owner), work
        self._begun = False
        self._thread: threading.Thread | None = None
        weakref.finalize(owner, self.abandon).atexit = False
        _running[id(self)] = self

    def begin(self) -> None:
        """Starts the thread. Not done as this is made: a Ctrl-C then would leave a thread whose runs nobody could take."""
        if not self._begun:
            thread = threading.Thread(target=self._serve, name="ndd-pipeline", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # "release unlocked lock", which Python makes of a Ctrl-C here at times
                if isinstance(error.__context__, KeyboardInterrupt):
                    raise error.__context__ from None
                raise
            self._thread = thread

    def _serve(self) -> None:
        with self._lock:
            if self._begun:  # a Ctrl-C came when the first thread was being started, so this is the second
                return
            self._begun = True
        reference, work = self._owner, self._work
        while True:
            with self._lock:
                while len(self._ready) >= self._depth and not self._stopped:
                    self._changed.wait()
                if self._stopped:
                    return
            owner = reference()
            if owner is None:
                return
            try:
                outcome: tuple[Any, BaseException | None] = (work(owner), None)
            except BaseException as error:
                outcome = (None, error)
            del owner
            with self._lock:
                self._ready.append(outcome)
                self._ended = isinstance(outcome[1], StopIteration)
                self._changed.notify_all()
            if self._ended:
                return
            del outcome

    def next(self) -> Any:
        """The next result, waiting for it. What Ctrl-C leaves on its way is the next one again: nothing is called between
        the steps after which that is over."""
        self.begin()
        with self._lock:
            if self._taken is None:
                while not self._ready:
                    if self._ended or self._stopped:
                        raise StopIteration
                    self._wait()
                self._taken = self._ready[0]
                del self._ready[0]  # no call, as popleft() is one
            self._changed.notify_all()
        value, error = self._taken
        self._taken = None
        if error is not None:
            try:
                raise error
            finally:
                del error  # a frame that holds an exception that holds the frame
        return value

    def _wait(self) -> None:
        try:
            self._changed.wait()
        except BaseException:  # Ctrl-C, which can come when the lock is free
            if not self._lock._is_owned():  # type: ignore[attr-defined]
                self._lock.acquire()
            raise

    def abandon(self) -> None:
        """Ends the thread after the run it works on, without waiting. Safe in a finaliser on any thread."""
        self._stopped = True
        if self._changed.acquire(blocking=False):
            try:
                self._changed.notify_all()
            finally:
                self._changed.release()
        else:  # whoever holds the lock (perhaps this very thread) looks at `_stopped` before it sleeps, or was woken
            threading.Thread(target=self.stop, daemon=True).start()

    def stop(self) -> None:
        """Ends the thread and waits for the run it works on."""
        with self._lock:
            self._stopped = True
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=10.0)


_running: weakref.WeakValueDictionary[int, Ahead] = weakref.WeakValueDictionary()


@atexit.register
def _stop_all() -> None:
    for reference in _running.valuerefs():  # a list made in one step: another thread may start one
        ahead = reference()
        if ahead is not None:
            ahead.stop()
