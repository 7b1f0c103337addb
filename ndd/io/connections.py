"""`Connections`: threads on which requests wait for their answers."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ndd._execution.signal_safe import start
from ndd._execution.weak_registry import EndedAtExit

_LAST_SECONDS = 2.0  # the end of the interpreter waits so long for requests under way


class _Asked:
    """Some requests that somebody waits for."""

    def __init__(self, do: Callable[..., Any], count: int):
        self.do = do
        self.results: list[Any] = [None] * count
        self.left = count
        self.lock = threading.Lock()
        self.done = threading.Event()


class Connections:
    """At most `count` requests at once; whoever asks for several waits for them together.

    The threads are started as they are needed, and end when this object is closed.
    """

    def __init__(self, count: int):
        self._count = count
        self._work: queue.SimpleQueue[tuple[_Asked, int, tuple[Any, ...]] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._closed = False
        _running.add(self)

    def each(self, do: Callable[..., Any], asked: Sequence[tuple[Any, ...]]) -> list[Any]:
        """`do(*a)` for each of these, in their order; an exception in place of what failed."""
        if not asked:
            return []
        together = _Asked(do, len(asked))
        with self._lock:
            for _ in range(min(self._count - len(self._threads), len(asked))):
                thread = threading.Thread(target=_serve, args=(self._work,), name="ndd-connection", daemon=True)
                start(thread)
                self._threads.append(thread)
            for place, arguments in enumerate(asked):
                self._work.put((together, place, arguments))
        together.done.wait()
        return together.results

    def close(self) -> None:
        """Let the threads go when their requests are done."""
        with self._lock:
            threads, self._threads = self._threads, []
        for _ in threads:
            self._work.put(None)

    def end(self) -> None:
        """Forget what has not begun, and wait a little for what has."""
        threads = self._threads
        while not self._work.empty():
            try:
                self._work.get_nowait()
            except queue.Empty:
                break
        self.close()
        for thread in threads:
            thread.join(_LAST_SECONDS)


def _serve(work: queue.SimpleQueue[tuple[_Asked, int, tuple[Any, ...]] | None]) -> None:
    while True:
        item = work.get()
        if item is None:
            return
        together, place, arguments = item
        try:
            result: Any = together.do(*arguments)
        except BaseException as error:
            result = error
        together.results[place] = result
        with together.lock:
            together.left -= 1
            last = not together.left
        if last:
            together.done.set()
        del item, together, arguments, result  # an idle thread keeps nothing alive


_running: EndedAtExit[Connections] = EndedAtExit(Connections.end)
