"""Locks between the processes of a machine: one compiles a kernel, for example, while others wait or go on without it.

The working process holds a lock on a byte of a file in the folder where the result will be stored. The system releases the
lock when the process ends in any way, and a forked child does not have it. Where files cannot be locked, every process does
the work.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import time
from collections.abc import Callable, Generator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_FILE = ".busy"
_PATIENCE = 120.0  # seconds: a process that holds a lock for longer has been stopped or hangs
_LOOK = 0.02


def try_lock(folder: Path | None, name: str) -> bool:
    """Takes the lock of this name; False if another process holds it. A process may take its own lock again."""
    file = None if folder is None else _opened(folder)
    if file is None or fcntl is None:
        return True
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(name))
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        pass
    return True


def unlock(folder: Path | None, name: str) -> None:
    """Releases the lock."""
    file = None if folder is None else _opened(folder)
    if file is not None and fcntl is not None:
        with contextlib.suppress(OSError):
            fcntl.lockf(file, fcntl.LOCK_UN, 1, _place(name))


@contextlib.contextmanager
def alone(folder: Path | None, name: str, meanwhile: Callable[[], None] = lambda: None) -> Generator[bool, None, None]:
    """Holds the lock around work that one process should do. Yields whether this process had to wait: then another one has
    done the work, or has tried to.

    `meanwhile` is called repeatedly while it waits, and may raise.
    """
    begun, waited = time.monotonic(), False
    while not (held := try_lock(folder, name)) and time.monotonic() - begun < _PATIENCE:
        waited = True
        meanwhile()
        time.sleep(_LOOK)
    try:
        yield waited
    finally:
        if held:
            unlock(folder, name)


def _place(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "little")


@functools.cache
def _opened(folder: Path) -> int | None:
    """The file of the locks, open until the process ends: closing it would release them."""
    try:
        return os.open(folder / _FILE, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError:
        return None
