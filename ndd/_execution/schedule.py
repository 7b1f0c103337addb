"""The scheduler: makes an invocation of every operator call and of every method that stands for one."""

# Parts of the package's own classes, which users do not see.
# pyright: reportPrivateUsage=false
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ndd._execution import observation
from ndd._execution.context import EvalContext
from ndd._execution.invocation import Invocation, serving
from ndd._execution.mode import local as mode
from ndd._tensor.user_line import user_frame

# Asked before a call is handed over: whether its result is being computed already, so that nothing needs to run.
_is_made: Callable[[Any, Invocation], bool] | None = None
DEFERRED, EAGER, SYNC_CPU, SYNC_FULL = 1, 2, 3, 4


def schedule(
    name: str,
    work: Callable[[Any], list[Any]],
    inputs: tuple[Any, ...],
    *,
    shares_memory: bool = False,
    at_once: bool = False,
    operator_call: Any = None,
) -> Invocation:
    """Runs `work(invocation)` as the mode in force requires: now, on the background thread, or when the result is requested.

    Args:
        inputs: the handles whose values the work needs; None is skipped.
        shares_memory: an input shares memory with an object of the user that may change after the call. Such an input is
            read before the call returns, in every mode.
        at_once: the work is so short that handing it over would cost more. It runs now, unless the mode is deferred. Calls
            within an operator do so too.
        operator_call: the `Call` whose `run` is the work, for code that asks before it runs.
    """
    level = mode.level
    context = EvalContext.current()
    call = None
    if level < SYNC_CPU:
        frame = user_frame()
        call = frame.f_code, frame.f_lineno  # the frame itself would keep the user's values alive
        del frame
    invocation = Invocation(name, work, context, call, level == DEFERRED)
    watching = observation.active
    if watching is not None:
        watching.called(invocation, operator_call)
    if level == DEFERRED:
        invocation.inputs = inputs
    if level >= SYNC_CPU:
        context._finish(invocation)
        invocation.raise_now()
        if level == SYNC_FULL and invocation.stream is not None:
            invocation.stream.synchronize()
    elif shares_memory:
        context._finish(invocation)
        if invocation.stream is not None:
            order_after(invocation)
    elif level == EAGER:
        if at_once or serving.now:  # an operator waits for the result, and the queue may be waiting for the operator
            invocation.execute()
        elif operator_call is None or _is_made is None or not _is_made(operator_call, invocation):
            context._submit(invocation)
    return invocation


def ask_before_running(is_made: Callable[[Any, Invocation], bool]) -> None:
    """From now on asks `is_made(call, invocation)` before a call of an operator is handed over."""
    global _is_made
    _is_made = is_made


def order_after(invocation: Invocation) -> None:
    """Makes torch's next work on its stream wait until the memory that it shares with us has been read."""
    torch.cuda.current_stream(invocation.stream.device_id).wait_stream(invocation.stream._torch)
