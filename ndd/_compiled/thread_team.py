"""Threads that wait in compiled code, and join in a loop over samples without Python.

A thread of Python's asks for the interpreter when it begins and when it ends, and unpacks the loop's arguments while it has
it: the next thread begins when that is over. With 16 threads that took longer than what most operators do (64 photographs
were copied in 1.3 ms, of which memory had 0.2). Here the caller unpacks the arguments once, and wakes threads that need
nothing but their address (0.45 ms).

Such a loop is `f(turns, most, *what)`: threads share `turns` (`sample_loops.py`). `joined(f)` is the kernel that works on it with
others: `joined(f)(board, helpers, turns, most, what)`. It comes back when all is done, so the arguments lie on its stack.

The board is int64 memory that a team shares: a bell that waiting threads listen to, and places for a few loops at a time.
Waiting is Linux's `futex`; elsewhere nobody joins in.
"""

from __future__ import annotations

import functools
import platform
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._compiled.atomics import added, called, job, passed_on, put, seen, swapped
from ndd._compiled.jit import External, Kernel, kernel
from ndd._execution.fork import around_fork
from ndd._execution.signal_safe import start
from ndd._execution.threads import ThreadPool
from ndd._execution.weak_registry import WeakRegistry

_FUTEX = {"x86_64": 202, "aarch64": 98}.get(platform.machine(), 0) if sys.platform == "linux" else 0
_WAIT, _WAKE = 128, 129  # of memory that no other process has
_PLACES = 16  # loops at a time: one more is worked on by its own thread alone
_BELL, _ASLEEP, _OVER, _HEAD = 0, 8, 16, 24  # a line of the cache each
_WANTED = 1 << 32  # one thread more to join in; below it is how many have
_WORD, _TAKEN, _ENTRY, _ADDRESS, _SIZE = 0, 1, 2, 3, 8  # of a place
_FAN = 4  # threads that are woken by one, which wake others
_PATIENCE = 200  # looks at the end of a loop before it is waited for: 40 ns each
ALONE = np.zeros(1, np.int64)
"""In place of a board, where nobody is to join in."""
MEANWHILE = "by a stand-in"
"""See `joined`."""
_ENDED = np.ones(_HEAD, np.int64)  # a board whose threads are over

_syscall: Any = External("syscall", "int64(int64, uintp, int64, int64, uintp, uintp, int64)")
if not _FUTEX:

    @kernel
    def _syscall(number, place, what, value, timeout, other, bits):
        """Nobody waits, nor is woken."""
        return 0


@kernel
def _post(board, helpers, entry, address):
    """Asks for helpers. Gives the place, or -1."""
    for k in range(_PLACES):
        place = _HEAD + k * _SIZE
        if swapped(board, place + _TAKEN, 0, 1):
            board[place + _ENTRY] = entry
            board[place + _ADDRESS] = address
            put(board, place + _WORD, helpers * _WANTED)
            added(board, _BELL, 1)
            _call_some(board, helpers)
            return place
    return -1


@kernel
def _call_some(board, wanted):
    if seen(board, _ASLEEP) > 0:
        _syscall(_FUTEX, np.uintp(board.ctypes.data + 8 * _BELL), _WAKE, min(wanted, _FAN), 0, 0, 0)


@kernel
def _take_back(board, place):
    """Nobody joins in any more; waits for those who have."""
    while True:
        word = seen(board, place + _WORD)
        if swapped(board, place + _WORD, word, word % _WANTED):
            break
    looks = 0
    while True:
        word = seen(board, place + _WORD)
        if word == 0:
            break
        looks += 1
        if looks > _PATIENCE:
            _syscall(_FUTEX, np.uintp(board.ctypes.data + 8 * (place + _WORD)), _WAIT, word, 0, 0, 0)
    put(board, place + _TAKEN, 0)


@kernel
def _serve(board, end):
    """What a thread of the team does until it is over; with `end` it becomes so, for all of them."""
    if end:
        put(board, _OVER, 1)
        added(board, _BELL, 1)
        _syscall(_FUTEX, np.uintp(board.ctypes.data + 8 * _BELL), _WAKE, 1 << 30, 0, 0, 0)
    while True:
        bell = seen(board, _BELL)
        if seen(board, _OVER):
            return
        busy = False
        for k in range(_PLACES):
            place = _HEAD + k * _SIZE
            word = seen(board, place + _WORD)
            if word >= _WANTED and swapped(board, place + _WORD, word, word - _WANTED + 1):
                busy = True
                if word >= 2 * _WANTED:
                    _call_some(board, word // _WANTED - 1)
                called(board[place + _ENTRY], board[place + _ADDRESS])
                if added(board, place + _WORD, -1) == 1:
                    _syscall(_FUTEX, np.uintp(board.ctypes.data + 8 * (place + _WORD)), _WAKE, 1, 0, 0, 0)
        if not busy:
            added(board, _ASLEEP, 1)
            # The bell is one word of 32 bits to Linux: it comes back at once if it has rung.
            _syscall(_FUTEX, np.uintp(board.ctypes.data + 8 * _BELL), _WAIT, bell % _WANTED, 0, 0, 0)
            added(board, _ASLEEP, -1)


@_serve.meanwhile
def _(board, end):
    return MEANWHILE  # nobody waits: to compile it takes 0.7 s


def _join(board, helpers, turns, most, what):
    given = (turns, most) + what
    entry, address = job(loop, given)  # type: ignore[name-defined]  # noqa: F821
    place = np.int64(-1)
    if helpers > 0:
        place = _post(board, helpers, entry, address)
    called(entry, address)
    if place >= 0:
        _take_back(board, place)
    passed_on(given, address)
    return True


def joined(loop: Kernel | Callable[..., Any]) -> Kernel | Callable[..., Any]:
    """The kernel `f(board, helpers, turns, most, what)`: `loop(turns, most, *what)` by the caller and by up to `helpers` threads
    of a team, which has this `board`. True when all of them are through.

    `MEANWHILE` where a stand-in of the loop's answers, or the loop itself, which is compiled sooner: it works for the caller
    alone, and if there are to be helpers not at all. So does a loop of Python's.
    """
    if not isinstance(loop, Kernel):
        return functools.partial(_alone, lambda: loop)
    found = _joined.get(loop)
    if found is None:
        scope, name = {**_join.__globals__, "loop": loop}, f"{loop.function.__name__}_joined"
        function = types.FunctionType(_join.__code__, scope, name)
        function.__module__, function.__qualname__ = loop.function.__module__, f"{loop.function.__qualname__}_joined"
        found = _joined[loop] = Kernel(function, {})
        found.meanwhile(functools.partial(_alone, lambda: loop.stand_in))
        found.interpreted_as(functools.partial(_alone, loop.in_python))
    return found


_joined: weakref.WeakKeyDictionary[Kernel, Kernel] = weakref.WeakKeyDictionary()


def _alone(answers: Any, board: np.ndarray, helpers: int, turns: np.ndarray, most: int, what: tuple[Any, ...]) -> Any:
    return MEANWHILE if helpers or answers()(turns, most, *what) else False


class ThreadTeam:
    """Threads that join in.

    Attributes:
        board: what they look at.
    """

    def __init__(self) -> None:
        self._begin()
        _teams.add(self)

    def _begin(self) -> None:
        room = np.zeros(_HEAD + _SIZE * _PLACES + _SIZE, np.int64)
        first = -(room.ctypes.data // 8) % _SIZE  # no place lies in two lines of the cache
        self.board = room[first : first + _HEAD + _SIZE * _PLACES]
        self._threads: list[threading.Thread] = []
        self._lock = threading.RLock()  # a signal's handler may take it again
        weakref.finalize(self, _end, self.board, self._threads).atexit = False

    def ensure(self, wanted: int) -> bool:
        """There are this many threads, or as many as can be: whether there are any. There are none before it is compiled what
        they do."""
        if len(self._threads) >= wanted:
            return True
        if not self._threads and _serve(_ENDED, False) is MEANWHILE:
            return False
        with self._lock:
            while len(self._threads) < wanted:
                name = f"ndd-team-{len(self._threads)}"
                thread = threading.Thread(target=_serve, args=(self.board, False), name=name, daemon=True)
                try:
                    start(thread)
                except RuntimeError:  # no memory, or a limit: fewer threads do the work
                    break
                self._threads.append(thread)
        return bool(self._threads)


def _end(board: np.ndarray, begun: list[threading.Thread]) -> None:
    if begun:
        _serve(board, True)


_teams: WeakRegistry[ThreadTeam] = WeakRegistry()
_of_pools: weakref.WeakKeyDictionary[ThreadPool, ThreadTeam] = weakref.WeakKeyDictionary()


def team_of(pool: ThreadPool) -> ThreadTeam | None:
    """The team of a pool's, with as many threads; None where there is none."""
    found = _of_pools.get(pool)
    if found is None:
        if not _FUTEX:
            return None
        found = _of_pools.setdefault(pool, ThreadTeam())
    return found


def _in_child() -> None:
    """A forked child has the objects but not the threads."""
    for team in _teams:
        team._begin()


around_fork(in_child=_in_child)
