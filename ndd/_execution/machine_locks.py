"""One process of a machine at a time does something, such as compiling a kernel; others wait for it, or go on without.

Who does it holds a lock on a byte of a file in the folder where the result will be kept. The system lets go of it when the process
ends, however it does, and a forked child does not have it. Where files cannot be locked, everybody does it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_FILE = ".busy"
_PATIENCE = 120.0  # seconds: a process that holds a lock for longer is stopped, or hangs
_LOOK = 0.02


def try_lock(folder: Path | None, name: str) -> bool:
    """Takes the lock of this name; False if another process has it. One process may take it again."""
    file = None if folder is None or fcntl is None else _opened(folder)
    if file is None:
        return True
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(name))
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        pass
    return True


def unlock(folder: Path | None, name: str) -> None:
    """Lets go of it."""
    file = None if folder is None or fcntl is None else _opened(folder)
    if file is not None:
        with contextlib.suppress(OSError):
            fcntl.lockf(file, fcntl.LOCK_UN, 1, _place(name))


@contextlib.contextmanager
def alone(folder: Path | None, name: str, meanwhile: Callable[[], None] = lambda: None) -> Iterator[bool]:
    """Around what one process is to do: whether another one has done it, or has tried to, while this one waited.

    `meanwhile` is called again and again while it waits, and may raise.
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
    """For as long as the process lives: if it closed the file, its locks would be gone."""
    try:
        return os.open(folder / _FILE, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError:
        return None
