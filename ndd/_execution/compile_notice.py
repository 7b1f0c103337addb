"""The line that says why a first call takes long."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Generator
from pathlib import Path

from ndd._execution.kernel_archives import refused

_PATIENCE = 1.0  # seconds in a process, all kernels together, before anything is said
_lock = threading.RLock()
_said = False
_spent = 0.0
_own = threading.local()
in_background = threading.Event()
"""Set while a thread compiles beside others, who should leave it the interpreter now and then."""


@contextlib.contextmanager
def compiling(kernel: str, folder: Path | None) -> Generator[None, None, None]:
    """Around the compilation of one kernel, `what`, which is kept in `folder`.

    If compiling takes more than a second in all, the logger "ndd" says so in one line, once a process. A kernel may be
    compiled while another one is.
    """
    global _spent
    outermost = not hasattr(_own, "begun")
    if outermost:
        _own.begun = time.monotonic()
    _say_if_long(kernel, folder)
    try:
        yield
    finally:
        _say_if_long(kernel, folder)
        if outermost:
            with _lock:
                _spent += time.monotonic() - _own.begun
            del _own.begun


def _why() -> str:
    """Why the kernels that came with the package do not serve."""
    reasons = refused()
    return f" ({reasons[0].upper()}{reasons[1:]}.)" if reasons else ""


def _say_if_long(kernel: str, folder: Path | None) -> None:
    global _said
    if _said or _spent + time.monotonic() - _own.begun < _PATIENCE:
        return
    with _lock:
        if _said:
            return
        _said = True
    kept = "cannot keep them" if folder is None else f"keeps them in {folder}"
    logging.getLogger("ndd").warning(
        f"ndd compiles kernels when they are first used on a machine (now {kernel}) and {kept}; `python -m ndd compile` "
        f"does so ahead of time.{_why()}"
    )
