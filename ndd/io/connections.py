"""`Connections`: threads on which requests wait for their responses."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ndd._execution.signal_safe import start
from ndd._execution.weak_registry import EndedAtExit

_EXIT_SECONDS = 2.0  # the exit of the interpreter waits at most this long for running requests


class _Requests:
    """Requests that one caller waits for."""

    def __init__(self, function: Callable[..., Any], count: int):
        self.function = function
        self.results: list[Any] = [None] * count
        self.left = count
        self.lock = threading.Lock()
        self.done = threading.Event()


class Connections:
    """Runs at most `count` requests at once. A caller waits for all of its requests together.

    Threads start when they are needed, and end when this object is closed.
    """

    def __init__(self, count: int):
        self._count = count
        self._work: queue.SimpleQueue[tuple[_Requests, int, tuple[Any, ...]] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._closed = False
        _running.add(self)

    def each(self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Calls `function(*arguments)` for the arguments of each call. Returns the results in order, with exceptions in place
        of failed ones."""
        if not calls:
            return []
        requests = _Requests(function, len(calls))
        with self._lock:
            for _ in range(min(self._count - len(self._threads), len(calls))):
                thread = threading.Thread(target=_serve, args=(self._work,), name="ndd-connection", daemon=True)
                start(thread)
                self._threads.append(thread)
            for place, arguments in enumerate(calls):
                self._work.put((requests, place, arguments))
        requests.done.wait()
        return requests.results

    def close(self) -> None:
        """Ends the threads after their requests."""
        with self._lock:
            threads, self._threads = self._threads, []
        for _ in threads:
            self._work.put(None)

    def end(self) -> None:
        """Drops the requests that have not started, and waits briefly for the others."""
        threads = self._threads
        while not self._work.empty():
            try:
                self._work.get_nowait()
            except queue.Empty:
                break
        self.close()
        for thread in threads:
            thread.join(_EXIT_SECONDS)


def _serve(work: queue.SimpleQueue[tuple[_Requests, int, tuple[Any, ...]] | None]) -> None:
    while True:
        item = work.get()
        if item is None:
            return
        requests, place, arguments = item
        try:
            result: Any = requests.function(*arguments)
        except BaseException as error:
            result = error
        requests.results[place] = result
        with requests.lock:
            requests.left -= 1
            last = not requests.left
        if last:
            requests.done.set()
        del item, requests, arguments, result  # an idle thread keeps nothing alive


_running: EndedAtExit[Connections] = EndedAtExit(Connections.end)
