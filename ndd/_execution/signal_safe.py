"""Waits on a condition and starts threads safely, although a signal handler may raise at any step. Starts processes that ignore
Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Generator

from ndd._execution.errors import raise_signalled


def start(thread: threading.Thread) -> None:
    """Starts a thread. A Ctrl-C during the start is raised as KeyboardInterrupt; Python's own `start`, which waits for the thread,
    sometimes raises "release unlocked lock" instead. The thread may or may not run then, so register it after this call, and
    make sure that a second thread does no harm."""
    try:
        thread.start()
    except RuntimeError as error:
        raise_signalled(error)
        raise


@contextlib.contextmanager
def interrupting_no_children() -> Generator[None]:
    """Processes that are started meanwhile ignore Ctrl-C, also while Python starts: each would print a traceback. Their parent ends
    them. (Not on Windows.)"""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class SignalSafeCondition(threading.Condition):
    """A condition for a thread that Ctrl-C may interrupt.

    Python runs handlers between any two steps of `wait`, even while the lock is free. Code that catches the exception, or
    leaves the `with` block by it, must hold the lock all the same. Otherwise "cannot release un-acquired lock" replaces the
    KeyboardInterrupt, about once in 200 interrupts of a loop that waits often.

    Enter the lock, `with lock:`, not the condition. The condition's `__enter__` is written in Python; an exception after it
    has taken the lock would leave the lock taken forever.
    """

    def __init__(self, lock: threading.RLock):  # type: ignore[valid-type]
        super().__init__(lock)  # type: ignore[arg-type]
        self._rlock = lock

    def wait(self, timeout: float | None = None) -> bool:
        """As `threading.Condition.wait`, but the lock is held afterwards, whatever is raised."""
        try:
            return super().wait(timeout)
        except BaseException:
            if not self._rlock._is_owned():  # type: ignore[attr-defined]
                self._rlock.acquire()  # type: ignore[attr-defined]
            raise
