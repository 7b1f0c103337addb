"""The one scheduler: every call of an operator, and every method that stands for one, becomes an invocation here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ndd._execution.context import EvalContext
from ndd._execution.invocation import Invocation, serving
from ndd._execution.mode import local as mode
from ndd._tensor.user_line import user_frame

# Asked before a call is handed over: whether its result is being made already, so that nothing is to run.
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
    """Runs `work(invocation)` when the mode in force says so: now, on the background thread, or when asked for.

    Args:
        inputs: the handles whose values it needs; None among them does not count.
        shares_memory: an input shares memory with something of the user's, which may change after the call: it is
            read before the call returns, in every mode.
        at_once: so quick that handing it over would cost more; unless the mode is deferred, it runs now. So does what
            an operator calls.
        operator_call: the `Call` whose `run` the work is, for what asks before it runs.
    """
    level = mode.level
    context = EvalContext.current()
    call = None
    if level < SYNC_CPU:
        frame = user_frame()
        call = frame.f_code, frame.f_lineno  # of the frame itself, the user's values would live on
        del frame
    invocation = Invocation(name, work, context, call, level == DEFERRED)
    if level == DEFERRED:
        invocation.inputs = inputs
    if level >= SYNC_CPU:
        context.finish(invocation)
        invocation.raise_now()
        if level == SYNC_FULL and invocation.stream is not None:
            invocation.stream.synchronize()
    elif shares_memory:
        context.finish(invocation)
        if invocation.stream is not None:
            order_after(invocation)
    elif level == EAGER:
        if at_once or serving.now:  # within an operator: it waits for the result, and a queue could wait for it
            invocation.execute()
        elif operator_call is None or _is_made is None or not _is_made(operator_call, invocation):
            context.submit(invocation)
    return invocation


def ask_before_running(is_made: Callable[[Any, Invocation], bool]) -> None:
    """Asks `is_made(call, invocation)` before a call of an operator is handed over, from now on."""
    global _is_made
    _is_made = is_made


def order_after(invocation: Invocation) -> None:
    """Memory that torch shares with us: what torch does next on its stream waits for our reading of it."""
    import torch

    torch.cuda.current_stream(invocation.stream.device_id).wait_stream(invocation.stream._torch)
