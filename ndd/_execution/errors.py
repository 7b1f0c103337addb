"""Errors that show later than their call: same type, the operator and the user's line in the message and traceback."""

from __future__ import annotations

import errno
import inspect
import sys
import threading
import types
from collections.abc import Generator
from itertools import pairwise
from typing import NoReturn

from ndd._execution.mode import EvalMode
from ndd._tensor.secrets import error_text
from ndd._tensor.user_line import user_frame

_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def _frame() -> Generator[None, None, None]:
    yield


_MARK = _frame.__code__


def traceback_at(code: types.CodeType, line: int) -> types.TracebackType:
    """A traceback with the one entry: `line` of `code`.

    A real frame cannot be kept for it: that would keep the user's local values (and batches) alive until the operator
    has run. The frame of a generator that never starts has no variables and no caller.
    """
    marked = _MARK.replace(co_filename=code.co_filename, co_name=code.co_name, co_firstlineno=line)
    return types.TracebackType(None, types.FunctionType(marked, {})().gi_frame, 0, line)


def raise_signalled(error: BaseException) -> None:
    """Raises what the handler of a signal raised while the caller was at work, if `error` is that or came of it. For who
    would keep the error, or go on after it.

    Ctrl-C, and a time limit by `signal.alarm`, come between any two steps of Python on the main thread. What they raise
    is nobody's fault: it is to reach the user, and no sample, file or operator is to blame. Others make something else of
    it at times: numba's C code, which runs Python code to find out types, a SystemError; a decoder "a broken file".

    A handler is told by its parameters: the number of the signal, and the frame that it has interrupted, which is the one
    that called it. That of Ctrl-C is written in C and has no frame, but KeyboardInterrupt has no other use.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    here = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    found: BaseException | None = error
    first: BaseException | None = None
    seen: list[BaseException] = []
    try:
        while found is not None and not any([found is e for e in seen]):
            if _came_by_signal(found, here):
                first = found
            seen.append(found)
            found = found.__cause__ or found.__context__
        if first is not None:
            raise first
    finally:
        del error, found, first, seen, here  # else this frame, which the traceback holds, would hold the error


def is_shortage(error: BaseException) -> bool:
    """Whether the process has no memory, or no file descriptors left: no file and no sample is to blame for that, and none
    may be left out for it."""
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _SHORTAGES)


def is_no_fault_of_data(error: BaseException) -> bool:
    """Whether an error says nothing about what was to be read: a shortage, or a store that does not answer."""
    return is_shortage(error) or isinstance(error, ConnectionError | TimeoutError)


def _came_by_signal(error: BaseException, here: types.FrameType) -> bool:
    """Whether the handler of a signal raised it in what frame `here` called, and not before: what was raised before can
    be the context of any error, when the user calls operators in an `except` clause."""
    by_key = isinstance(error, KeyboardInterrupt)
    trace = error.__traceback__
    if trace is None:
        return by_key
    below = False
    while trace is not None:
        below = below or _is_within(trace.tb_frame, here)
        if by_key or _handles_signal(trace.tb_frame):
            return below
        trace = trace.tb_next
    return False


def _is_within(frame: types.FrameType | None, here: types.FrameType) -> bool:
    while frame is not None and frame is not here:
        frame = frame.f_back  # None for a generator that has ended
    return frame is here


def _handles_signal(frame: types.FrameType) -> bool:
    code = frame.f_code
    several = bool(code.co_flags & inspect.CO_VARARGS)
    if frame.f_back is None or (code.co_argcount < 2 and not several):
        return False
    if frame.f_globals.get("__name__", "").partition(".")[0] == "ndd":
        return False
    values = frame.f_locals
    given = [values.get(name) for name in code.co_varnames[: code.co_argcount]]
    if several:
        given += values.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount], ())
    return any([isinstance(number, int) and at is frame.f_back for number, at in pairwise(given)])


def raise_as_later(error: RuntimeError) -> NoReturn:
    """Raises what an operator found wrong at its call. In the modes `deferred` and `eager` DALI finds these when it runs the
    operator, so code for it looks for the text, and for the user's line, in the cause: it is there as well."""
    if (
        type(error) is not RuntimeError
        or error.__cause__ is not None
        or EvalMode.current().value >= EvalMode.sync_cpu.value
    ):
        raise error
    frame = user_frame()
    cause = RuntimeError(*error.args).with_traceback(traceback_at(frame.f_code, frame.f_lineno))
    try:
        raise error from cause
    finally:
        del frame, cause, error  # else this frame, which the traceback holds, would hold the errors


def raise_later(error: BaseException, operator: str, call: tuple[types.CodeType, int] | None, how: str) -> NoReturn:
    """Raises an error of the same type whose cause is `error`, with the user's call as its traceback."""
    if isinstance(error, RecursionError) and f" of {operator}()" in str(error):  # it called itself: once is enough
        raise RecursionError(str(error)) from None
    where = f", called at {call[0].co_filename}:{call[1]}" if call else ""
    text = f"An error happened during {how} of {operator}(){where}: {error_text(error)}"
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
