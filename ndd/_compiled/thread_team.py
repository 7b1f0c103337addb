"""A team of native threads that wait in compiled code and join a loop over samples without the interpreter.

A Python thread needs the GIL when it starts and ends a call, and unpacks the loop's arguments while it holds it; the next thread
waits. With 16 threads this took longer than most operators (copying 64 photographs took 1.3 ms, of which 0.2 was memory). Here
the caller unpacks the arguments once and wakes threads that need only their address (0.45 ms).

Such a loop is `f(counter, limit, *arguments)`: threads share `counter` (`sample_loops.py`). `joined(f)` is the kernel
`f(board, helpers, counter, limit, arguments)`, which helpers join. It returns when all is done, so the arguments can lie on its
stack.

The board is int64 memory that a team shares: a counter that idle threads wait on, and slots for a few loops at a time. Threads
wait by Linux's `futex`; on other systems there is no team.
"""

from __future__ import annotations

import functools
import platform
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._compiled.atomics import (
    address_of,
    atomic_load,
    atomic_store,
    call_address,
    call_kept,
    compare_exchange,
    fetch_add,
    reraise,
    thread_entry,
)
from ndd._compiled.intrinsics import array_at
from ndd._compiled.jit import External, Kernel, from_template, kernel
from ndd._compiled.sample_loops import SampleLoop, samples_entry
from ndd._execution.fork import around_fork
from ndd._execution.signal_safe import start
from ndd._execution.threads import ThreadPool
from ndd._execution.weak_registry import WeakRegistry

_FUTEX = {"x86_64": 202, "aarch64": 98}.get(platform.machine(), 0) if sys.platform == "linux" else 0
_WAIT, _WAKE = 128, 129  # of memory that no other process has
_PLACES = 16  # loops at a time; a further loop runs on its own thread only
_SIGNAL, _ASLEEP, _STOPPED, _HEAD = 0, 8, 16, 24  # a line of the cache each
_SHARE = _STOPPED + 1  # the address of `_shared`
_WANTED = 1 << 32  # added for each thread that may join; the lower half counts those that have joined
_WORD, _TAKEN, _ENTRY, _ADDRESS, _SIZE = 0, 1, 2, 3, 8  # of a place
_WOKEN_AT_ONCE = 4  # threads that one thread wakes; these wake others
_SPINS = 200  # polls before a thread sleeps: 40 ns each
ALONE = np.zeros(1, np.int64)
"""A placeholder for a board that no thread may join."""
BY_FALLBACK = "by a fallback"
"""See `joined`."""
_ENDED = np.ones(_HEAD, np.int64)  # a board whose threads have ended

_syscall: Any = External("syscall", "int64(int64, uintp, int64, int64, uintp, uintp, int64)")
if not _FUTEX:

    @kernel
    def _syscall(number, place, operation, value, timeout, other, bits):
        """There are no helpers to wake."""
        return 0


@kernel
def _post(board, helpers, entry, address):
    """Asks for helpers. Returns the slot, or -1 if none is free."""
    for k in range(_PLACES):
        place = _HEAD + k * _SIZE
        if compare_exchange(board, place + _TAKEN, 0, 1):
            board[place + _ENTRY] = entry
            board[place + _ADDRESS] = address
            atomic_store(board, place + _WORD, helpers * _WANTED)
            fetch_add(board, _SIGNAL, 1)
            _wake_some(board, helpers)
            return place
    return -1


@kernel
def _wake_some(board, helpers):
    if atomic_load(board, _ASLEEP) > 0:
        _syscall(_FUTEX, np.uintp(board.ctypes.data + 8 * _SIGNAL), _WAKE, min(helpers, _WOKEN_AT_ONCE), 0, 0, 0)


@kernel
def _withdraw(board, place):
    """Lets no more threads join, and waits for those that have joined."""
    while True:
        word = atomic_load(board, place + _WORD)
        if compare_exchange(board, place + _WORD, word, word % _WANTED):
            break
    looks = 0
    while True:
        word = atomic_load(board, place + _WORD)
        if word == 0:
            break
        looks += 1
        if looks > _SPINS:
            _syscall(_FUTEX, np.uintp(board.ctypes.data + 8 * (place + _WORD)), _WAIT, word, 0, 0, 0)
    atomic_store(board, place + _TAKEN, 0)


@kernel
def _shared(place, helpers, entry, address):
    """Works on a loop together with threads of the team whose board has this address. Every joined loop calls this function by
    its address: compiling it into each of them took a quarter of their time."""
    board = array_at(place, _HEAD + _SIZE * _PLACES, ALONE)
    slot = _post(board, helpers, entry, address)
    call_address(entry, address)
    if slot >= 0:
        _withdraw(board, slot)


@kernel
def _serve(board, end):
    """The loop of a thread of the team. At its end it returns the address of `_shared`. With `end` it stops all threads."""
    if end:
        atomic_store(board, _STOPPED, 1)
        fetch_add(board, _SIGNAL, 1)
        _syscall(_FUTEX, np.uintp(board.ctypes.data + 8 * _SIGNAL), _WAKE, 1 << 30, 0, 0, 0)
    while True:
        signal = atomic_load(board, _SIGNAL)
        if atomic_load(board, _STOPPED):
            return address_of(_shared)
        busy = False
        for k in range(_PLACES):
            place = _HEAD + k * _SIZE
            word = atomic_load(board, place + _WORD)
            if word >= _WANTED and compare_exchange(board, place + _WORD, word, word - _WANTED + 1):
                busy = True
                if word >= 2 * _WANTED:
                    _wake_some(board, word // _WANTED - 1)
                call_address(board[place + _ENTRY], board[place + _ADDRESS])
                if fetch_add(board, place + _WORD, -1) == 1:
                    _syscall(_FUTEX, np.uintp(board.ctypes.data + 8 * (place + _WORD)), _WAKE, 1, 0, 0, 0)
        if not busy:
            fetch_add(board, _ASLEEP, 1)
            # For Linux the counter is a 32-bit word. The call returns at once if it has changed.
            _syscall(_FUTEX, np.uintp(board.ctypes.data + 8 * _SIGNAL), _WAIT, signal % _WANTED, 0, 0, 0)
            fetch_add(board, _ASLEEP, -1)


@_serve.fallback
def _(board, end):
    return BY_FALLBACK  # it takes 0.7 s to compile, and no call waits for it


_serve.urgency = 1.0  # until then each loop has one thread


def _join(board, helpers, counter, limit, arguments):
    passed = (counter, limit) + arguments
    entry, address = begin(called, passed)  # type: ignore[name-defined]  # noqa: F821
    if helpers > 0 and board[_SHARE]:
        call_kept(board, _SHARE, helpers, entry, address)
    else:
        call_address(entry, address)
    reraise(passed, address)
    return True


def joined(loop: Kernel | Callable[..., Any]) -> Kernel | Callable[..., Any]:
    """The kernel `f(board, helpers, counter, limit, arguments)`: the caller and up to `helpers` threads of the team with this
    `board` run `loop(counter, limit, *arguments)`. Returns True when all are done.

    It returns `BY_FALLBACK` while it is not compiled and `helpers` is not 0. Without helpers the loop's fallback, or the loop
    itself, answers for the caller alone. The same holds for a loop in Python.
    """
    if not isinstance(loop, Kernel):
        return functools.partial(_alone, lambda: loop)
    entry = _joined.get(loop)
    if entry is None:
        called, begin = (loop.kernel, samples_entry) if isinstance(loop, SampleLoop) else (loop, thread_entry)
        names = {"loop": loop, "called": called, "begin": begin}
        entry = _joined[loop] = from_template(_join, loop.function, "_joined", {"light": True}, **names)
        if loop.has_fallback() or not isinstance(loop, SampleLoop):  # a loop over samples is never compiled alone
            entry.fallback(functools.partial(_alone, lambda: loop.run_fallback))
        entry.interpreted_as(functools.partial(_alone, loop.in_python))
        entry.urgency = loop.urgency
        leaves = loop.leaves
        if leaves is not None:
            entry.leaves = lambda board, helpers, counter, limit, arguments: leaves(counter, limit, *arguments)
    return entry


_joined: weakref.WeakKeyDictionary[Kernel, Kernel] = weakref.WeakKeyDictionary()


def _alone(
    answers: Any, board: np.ndarray, helpers: int, counter: np.ndarray, limit: int, arguments: tuple[Any, ...]
) -> Any:
    return BY_FALLBACK if helpers or answers()(counter, limit, *arguments) else False


def address_of_shared() -> Any:
    """The address of `_shared`, or `BY_FALLBACK` while the loop of a team's threads is not compiled."""
    return _serve(_ENDED, False)


class ThreadTeam:
    """The threads of a team.

    Attributes:
        board: the memory that they share.
    """

    def __init__(self) -> None:
        self._begin()
        _teams.add(self)

    def _begin(self) -> None:
        room = np.zeros(_HEAD + _SIZE * _PLACES + _SIZE, np.int64)
        first = -(room.ctypes.data // 8) % _SIZE  # no slot crosses a cache line
        self.board = room[first : first + _HEAD + _SIZE * _PLACES]
        self._threads: list[threading.Thread] = []
        self._lock = threading.RLock()  # a signal handler may take it again
        weakref.finalize(self, _end, self.board, self._threads).atexit = False

    def ensure(self, wanted: int) -> bool:
        """Starts threads until there are `wanted`, or as many as the system allows. Returns whether there are any, which is
        False until their loop is compiled."""
        if len(self._threads) >= wanted:
            return True
        if not self._threads:
            shared = address_of_shared()
            if shared is BY_FALLBACK:
                return False
            self.board[_SHARE] = shared
        with self._lock:
            while len(self._threads) < wanted:
                name = f"ndd-team-{len(self._threads)}"
                thread = threading.Thread(target=_serve, args=(self.board, False), name=name, daemon=True)
                try:
                    start(thread)
                except RuntimeError:  # memory is short, or a limit is reached: fewer threads do the work
                    break
                self._threads.append(thread)
        return bool(self._threads)


def _end(board: np.ndarray, begun: list[threading.Thread]) -> None:
    if begun:
        _serve(board, True)


_teams: WeakRegistry[ThreadTeam] = WeakRegistry()
_of_pools: weakref.WeakKeyDictionary[ThreadPool, ThreadTeam] = weakref.WeakKeyDictionary()


def team_of(pool: ThreadPool) -> ThreadTeam | None:
    """The team of a pool, with as many threads; None on systems without one."""
    team = _of_pools.get(pool)
    if team is None:
        if not _FUTEX:
            return None
        team = _of_pools.setdefault(pool, ThreadTeam())
    return team


def _in_child() -> None:
    """A forked child has the objects, but not the threads."""
    for team in _teams:
        team._begin()


around_fork(in_child=_in_child)
