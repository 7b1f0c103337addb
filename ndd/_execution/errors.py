"""Errors that show later than their call. Their type stays; message and traceback name the operator and the user's line."""

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
from ndd._execution.notebook import place_of, shortened
from ndd._tensor.secrets import error_text
from ndd._tensor.user_line import user_frame

_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def _frame() -> Generator[None, None, None]:
    yield


_MARK = _frame.__code__


def traceback_at(code: types.CodeType, line: int) -> types.TracebackType:
    """A traceback with a single entry: `line` of `code`.

    The real frame would keep the user's local values (and batches) alive until the operator has run. The frame of a
    generator that never starts has no variables and no caller.
    """
    marked = _MARK.replace(co_filename=code.co_filename, co_name=code.co_name, co_firstlineno=line)
    return types.TracebackType(None, types.FunctionType(marked, {})().gi_frame, 0, line)


def raise_signalled(error: BaseException) -> None:
    """Raises the exception of a signal handler that interrupted the caller, if `error` is that exception or was caused by
    it. Call it before you keep an error or go on after one.

    Ctrl-C, and a time limit by `signal.alarm`, come between any two steps of Python on the main thread. Their exceptions have
    to reach the user; no sample, file or operator is to blame. Libraries sometimes turn them into other errors: numba's C code,
    which runs Python code to infer types, raises a SystemError; a decoder reports a broken file.

    A handler is recognised by its parameters: the number of the signal, and the interrupted frame, which is also its caller.
    The handler of Ctrl-C is written in C and has no frame, but KeyboardInterrupt has no other use.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    here = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    link: BaseException | None = error
    first: BaseException | None = None
    seen: list[BaseException] = []
    try:
        while link is not None and not any([link is e for e in seen]):
            if _came_by_signal(link, here):
                first = link
            seen.append(link)
            link = link.__cause__ or link.__context__
        if first is not None:
            raise first
    finally:
        del error, link, first, seen, here  # the traceback holds this frame, which must not hold the error


def is_shortage(error: BaseException) -> bool:
    """Whether the process has run out of memory or file descriptors. No file and no sample is to blame, so none may be left
    out."""
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _SHORTAGES)


def is_no_fault_of_data(error: BaseException) -> bool:
    """Whether an error says nothing about the data: a shortage, or a store that does not answer."""
    return is_shortage(error) or isinstance(error, ConnectionError | TimeoutError)


def _came_by_signal(error: BaseException, here: types.FrameType) -> bool:
    """Whether a signal handler raised it below frame `here`, and not earlier: when the user calls operators in an `except`
    clause, an earlier exception is the context of any error."""
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
        frame = frame.f_back  # None if the generator has ended
    return frame is here


def _handles_signal(frame: types.FrameType) -> bool:
    code = frame.f_code
    several = bool(code.co_flags & inspect.CO_VARARGS)
    if frame.f_back is None or (code.co_argcount < 2 and not several):
        return False
    if frame.f_globals.get("__name__", "").partition(".")[0] == "ndd":
        return False
    values = frame.f_locals
    arguments = [values.get(name) for name in code.co_varnames[: code.co_argcount]]
    if several:
        arguments += values.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount], ())
    return any([isinstance(number, int) and at is frame.f_back for number, at in pairwise(arguments)])


def raise_as_later(error: RuntimeError) -> NoReturn:
    """Raises an error of an operator's call. DALI finds these errors only when it runs the operator in the modes `deferred`
    and `eager`, so code written for DALI looks for the text and the user's line in the cause. They are there as well."""
    if (
        type(error) is not RuntimeError
        or error.__cause__ is not None
        or EvalMode.current().value >= EvalMode.sync_cpu.value
    ):
        raise shortened(error)
    frame = user_frame()
    cause = RuntimeError(*error.args).with_traceback(traceback_at(frame.f_code, frame.f_lineno))
    try:
        raise shortened(error) from cause
    finally:
        del frame, cause, error  # the traceback holds this frame, which must not hold the errors


def raise_later(error: BaseException, operator: str, call: tuple[types.CodeType, int] | None, how: str) -> NoReturn:
    """Raises an error of the same type whose cause is `error`, with the user's call as its traceback."""
    if isinstance(error, RecursionError) and f" of {operator}()" in str(
        error
    ):  # the operator called itself: one message is enough
        raise RecursionError(str(error)) from None
    where = f", called at {place_of(call[0].co_filename, call[1])}" if call else ""
    text = f"An error happened during {how} of {operator}(){where}: {error_text(error)}"
    try:
        outer = type(error)(text)
        if str(outer) != text and not isinstance(error, KeyError):
            raise TypeError
    except Exception:  # the type's constructor does not take just a message
        outer = RuntimeError(text)
    cause = error.with_traceback(traceback_at(*call)) if call else error
    try:
        raise shortened(outer) from cause
    finally:
        del outer, cause, error  # the traceback holds this frame, which must not hold the errors
