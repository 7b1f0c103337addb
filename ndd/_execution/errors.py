"""Errors that show later than their call: same type, the operator and the user's line in the message and traceback."""

from __future__ import annotations

import sys
import types
from typing import NoReturn

_MARK = (lambda: (yield)).__code__


def user_frame() -> tuple[types.CodeType, int]:
    """The code and line of the innermost frame outside this package: where the user called the operator."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "ndd":
        frame = frame.f_back
    return frame.f_code, frame.f_lineno


def traceback_at(code: types.CodeType, line: int) -> types.TracebackType:
    """A traceback with the one entry: `line` of `code`.

    A real frame cannot be kept for it: that would keep the user's local values (and batches) alive until the operator
    has run. The frame of a generator that never starts has no variables and no caller.
    """
    marked = _MARK.replace(co_filename=code.co_filename, co_name=code.co_name, co_firstlineno=line)
    return types.TracebackType(None, types.FunctionType(marked, {})().gi_frame, 0, line)


def as_interrupt(error: BaseException) -> None:
    """Raises KeyboardInterrupt if that is what `error` comes from.

    Ctrl-C while a function written in C runs Python code inside (numba's do, to find out the types of arguments) can
    end as `SystemError: ... returned a result with an exception set`, with the KeyboardInterrupt as its cause.
    """
    found: BaseException | None = error
    while isinstance(found, SystemError):
        found = found.__cause__ or found.__context__
    if isinstance(found, KeyboardInterrupt):
        raise KeyboardInterrupt from None


def raise_later(error: BaseException, operator: str, call: tuple[types.CodeType, int] | None, how: str) -> NoReturn:
    """Raises an error of the same type whose cause is `error`, with the user's call as its traceback."""
    if isinstance(error, RecursionError) and f" of {operator}()" in str(error):  # it called itself: once is enough
        raise RecursionError(str(error)) from None
    where = f", called at {call[0].co_filename}:{call[1]}" if call else ""
    text = f"An error happened during {how} of {operator}(){where}: {error}"
    try:
        outer = type(error)(text)
        if str(outer) != text and not isinstance(error, KeyError):
            raise TypeError
    except Exception:  # a type whose constructor takes something else than a message
        outer = RuntimeError(text)
    cause = error.with_traceback(traceback_at(*call)) if call else error
    try:
        raise outer from cause
    finally:
        del outer, cause, error  # else this frame, which the traceback holds, would hold the errors
