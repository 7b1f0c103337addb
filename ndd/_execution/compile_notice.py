"""The line that says why a first call takes long. One process on the machine logs it, not each process of the same loop."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path

from ndd._execution.kernel_archives import refused
from ndd._execution.machine_locks import try_lock

_PATIENCE = 1.0  # seconds in a process, all kernels together, before anything is said
_EACH = 1.5  # seconds that a kernel takes, with the kernels that only it calls
_lock = threading.RLock()
_said = False
_spent = 0.0
_own = threading.local()
in_background = threading.Event()
"""Set while a thread compiles beside others, which should leave it the interpreter now and then."""


@contextlib.contextmanager
def compiling(folder: Path | None, count: Callable[[], int] = lambda: 1) -> Generator[None, None, None]:
    """Around the compilation of a kernel that is stored in `folder`; `count()` kernels are known to wait, including this one.

    If compiling takes more than a second in all, the logger "ndd" says so in one line, in one of the processes that compile for
    the same folder. A kernel may be compiled while another one is.
    """
    global _spent
    outermost = not hasattr(_own, "begun")
    if outermost:
        _own.begun = time.monotonic()
    say_if_long(folder, count, _own.begun)
    try:
        yield
    finally:
        say_if_long(folder, count, _own.begun)
        if outermost:
            with _lock:
                _spent += time.monotonic() - _own.begun
            del _own.begun


def be_silent() -> None:
    """Says nothing in this process."""
    global _said
    _said = True


def _why() -> str:
    """Why the packaged kernels cannot be used."""
    reasons = refused()
    return f" ({reasons[0].upper()}{reasons[1:]}.)" if reasons else ""


def say_if_long(folder: Path | None, count: Callable[[], int], begun: float) -> None:
    """Logs the line if compiling has taken long: since `begun` by the monotonic clock, and before that in this process."""
    global _said
    if _said or _spent + time.monotonic() - begun < _PATIENCE:
        return
    with _lock:
        if _said:
            return
        _said = True
    if not try_lock(folder, "notice"):  # another process on this machine has logged it
        return
    number = count()
    known = number > 1  # else each call finds out what it needs
    kernels = f"{number} kernels" if known else "kernels"
    long = f"about {round(_EACH * number)} s" if known else "a few seconds for each new operator"
    kept = "not kept: no folder can be written to" if folder is None else f"kept in {folder}"
    logging.getLogger("ndd").warning(
        f"ndd is compiling {kernels} for this machine, {long}, {kept}; "
        f"`python -m ndd compile --all` does so ahead of time.{_why()}"
    )
