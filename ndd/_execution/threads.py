"""`ThreadPool`: the threads that work on the samples of a batch, and their number."""

# Users' arguments are checked, whatever the annotations say.
# pyright: reportUnnecessaryIsInstance=false, reportPrivateUsage=false

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from ndd._execution.compile_notice import in_background
from ndd._execution.cpus import cpu_count
from ndd._execution.errors import raise_signalled
from ndd._execution.fork import around_fork
from ndd._execution.invocation import serving
from ndd._execution.memoize import Memoized
from ndd._execution.signal_safe import start
from ndd._execution.weak_registry import WeakRegistry

_chosen: int | None = None


def _default_count() -> int:
    for variable in ("NDD_NUM_THREADS", "DALI_NUM_THREADS"):
        text = os.environ.get(variable)
        if text:
            try:
                count = int(text)
            except ValueError:
                count = 0
            if count <= 0:
                raise ValueError(f"{variable}={text!r}: expected a positive number of threads")
            return count
    return cpu_count()


def get_num_threads() -> int:
    """The number of threads that CPU operators use by default: the last `set_num_threads`; otherwise the environment variable
    `NDD_NUM_THREADS` or `DALI_NUM_THREADS`; otherwise the number of CPUs this process may
    run on, at most the quota of its container (`docker run --cpus`, a pod's limit).

    Raises ValueError if `NDD_NUM_THREADS` or `DALI_NUM_THREADS` is not a positive number.

    >>> import ndd
    >>> ndd.get_num_threads() >= 1
    True
    """
    return _chosen or _default_count()


def set_num_threads(n: int | None) -> None:
    """Sets the number of threads that CPU operators use; None restores the default. It takes effect at once in contexts without
    their own pool.

    Raises TypeError unless `n` is an integer or None, ValueError if it is below 1 or above 100 per CPU.

    Args:
        n: the number of threads; None for the default.

    >>> import ndd
    >>> ndd.set_num_threads(2)
    >>> ndd.get_num_threads()
    2
    >>> ndd.set_num_threads(None)
    """
    global _chosen
    if n is None:
        _chosen = None
        return
    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError("The number of threads must be an integer")
    if n <= 0:
        raise ValueError(f"The number of threads must be positive; got {n}.")
    cores = os.cpu_count() or 1
    if n > 100 * cores:
        raise ValueError(f"The number of threads per CPU core must not exceed 100. Got {n} threads for {cores} cores.")
    _chosen = n


# The number of threads that run Python while another one compiles. With 16 of them the compiler got the interpreter so rarely
# that a loop over JPEGs reached its full speed after 47 s on two cores; with 5 after 37 s, with 3 after 31 s, with 2 after 29
# s. One core is left to the compiler.
_BESIDE_COMPILER = 3
_LAST = 1.0  # seconds that the end of the program waits for threads that still work


def _beside_compiler() -> int:
    return max(1, min(_BESIDE_COMPILER, _default_count() - 1))


class ThreadPool:
    """Threads that share the samples of a batch. Several contexts may share one pool.

    Args:
        num_threads: the number that work at once, including the thread that waits for them; default `get_num_threads()`.
        device_id: the GPU that DALI would bind the threads to. It has no effect here, but can be read.

    Raises TypeError for anything but a number, ValueError for a number below 1.

    >>> import ndd
    >>> squares = [0] * 4
    >>> pool = ndd.ThreadPool(2)
    >>> pool.run(lambda i: squares.__setitem__(i, i * i), 4), squares
    ({}, [0, 1, 4, 9])
    """

    def __init__(self, num_threads: int | None = None, *, device_id: int | None = -1):
        if num_threads is not None and (not isinstance(num_threads, int) or num_threads < 0):
            error = ValueError if isinstance(num_threads, int) else TypeError
            raise error(f"num_threads must be a number of threads, got {num_threads!r}")
        self._num_threads = num_threads or get_num_threads()
        self._device_id = None if device_id == -1 else device_id
        self._start()
        _pools.add(self)

    def _start(self) -> None:
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.RLock()  # reentrant, since a signal handler may need it
        weakref.finalize(self, _dismiss, self._tasks, self._num_threads).atexit = False  # `_end_all` waits for them

    def __reduce__(self) -> Any:
        raise TypeError("ThreadPool cannot be pickled or copied: it has threads. Make a new one")

    @property
    def num_threads(self) -> int:
        """The number of threads that work at once."""
        return self._num_threads

    @property
    def device_id(self) -> int | None:
        """The GPU given at construction."""
        return self._device_id

    def _ensure_threads(self, wanted: int) -> None:
        with self._lock:
            while len(self._threads) < wanted:
                name = f"ndd-worker-{len(self._threads)}"
                thread = threading.Thread(target=_serve, args=(self._tasks,), name=name, daemon=True)
                try:
                    start(thread)
                except RuntimeError:  # memory is short or a limit is reached: fewer threads do the work
                    return
                self._threads.append(thread)

    def run(self, function: Callable[[int], None], count: int) -> dict[int, BaseException]:
        """Calls `function(i)` for every i below `count`, on the threads and the caller's thread.

        Returns the exceptions by index: a bad sample does not keep the others from being computed.

        Args:
            function: takes an index; it runs on several threads at once.
            count: the number of indices.
        """
        errors: dict[int, BaseException] = {}
        helpers = min(self._num_threads, count, _beside_compiler() if in_background.is_set() else count) - 1
        if helpers <= 0:
            for i in range(count):
                _guarded(function, i, errors)
            return errors
        if len(self._threads) < helpers:
            self._ensure_threads(helpers)
            helpers = min(helpers, len(self._threads))
        take = deque(range(count)).popleft  # each number goes to one thread, even without a GIL
        done = threading.Lock()
        done.acquire()
        guard = threading.Lock()
        working, over = 0, False
        now = serving.now

        def share() -> None:
            nonlocal working
            with guard:
                if over:
                    return
                working += 1
            serving.now = now
            try:
                _take_all(take, function, errors)
            finally:
                serving.now = ()
                with guard:
                    working -= 1
                    last = over and not working
                if last:
                    done.release()

        for _ in range(helpers):
            self._tasks.put(share)
        _take_all(take, function, errors)
        with guard:
            # Do not wait for helpers that have not started: their threads may work for an operator that waits for this one.
            over = True
            wait = working > 0
        if wait:
            done.acquire()
        for error in errors.values():
            if not isinstance(error, Exception):
                raise error
        return errors


def _take_all(take: Callable[[], int], function: Callable[[int], None], errors: dict[int, BaseException]) -> None:
    """Runs `function` for the numbers that `take` gives, until none is left."""
    while True:
        try:
            i = take()
        except IndexError:
            return
        _guarded(function, i, errors)


def _guarded(function: Callable[[int], None], i: int, errors: dict[int, BaseException]) -> None:
    try:
        function(i)
    except KeyboardInterrupt:
        raise  # only the main thread gets a signal, and it has to stop
    except BaseException as error:
        raise_signalled(error)
        errors[i] = error


def _serve(tasks: SimpleQueue[Callable[[], None] | None]) -> None:
    while True:
        task = tasks.get()
        if task is None:
            return
        with contextlib.suppress(Exception):  # `share` stores the samples' errors; nothing else can fail
            task()
        del task


def _dismiss(tasks: SimpleQueue[Any], count: int) -> None:
    for _ in range(count):
        tasks.put(None)


_pools: WeakRegistry[ThreadPool] = WeakRegistry()
_default_pools = Memoized(ThreadPool, limit=1)


def default_pool() -> ThreadPool:
    """The pool of every context without one of its own; a new pool after `set_num_threads`."""
    return _default_pools(get_num_threads() if _chosen is None else _chosen)


def _in_child() -> None:
    """A forked child has the objects but not the threads."""
    for pool in _pools:
        pool._start()


def _end_all() -> None:
    """Ends the threads before the interpreter ends: one that then returned from C++ code would abort the process."""
    until = time.monotonic() + _LAST
    for pool in _pools:
        _dismiss(pool._tasks, len(pool._threads))
    for pool in _pools:
        for thread in pool._threads:
            thread.join(max(0.0, until - time.monotonic()))


atexit.register(_end_all)
around_fork(in_child=_in_child)
