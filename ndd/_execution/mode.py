"""`EvalMode`: when an operator runs, and when its errors show."""

from __future__ import annotations

import threading
from enum import Enum
from typing import Any


class EvalMode(Enum):
    """How far a call of an operator goes before it returns. Members are context managers; they nest, per thread.

    * `deferred`: an operator runs when its value is needed, and never if it is not.
    * `eager` (the default): the call returns at once, a background thread runs the operator.
    * `sync_cpu`: the operator has run on the CPU (and is queued on the GPU) when the call returns.
    * `sync_full`: the GPU has finished too. Errors are raised at the call: the mode for debugging.

    The mode never changes a value.

    >>> import ndd
    >>> with ndd.EvalMode.sync_full:
    ...     ndd.EvalMode.current()
    <EvalMode.sync_full: 4>
    """

    deferred = 1
    eager = 2
    sync_cpu = 3
    sync_full = 4
    default = eager

    def __enter__(self) -> EvalMode:
        local.stack += [self]  # not append(): after a call the handler of a signal may raise
        local.level = self.value
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        del local.stack[innermost(local.stack, self, 1)]
        local.level = local.stack[-1].value

    @staticmethod
    def current() -> EvalMode:
        """The mode in force on this thread."""
        return local.stack[-1]


def innermost(stack: list[Any], left: Any, base: int) -> int:
    """The place of the innermost entry `left` in a stack of `with` blocks, above the `base` entries that always stay. `left`
    need not be the last entry: generators end when they are dropped, in any order and on any thread. RuntimeError if it is
    missing."""
    for place in range(len(stack) - 1, base - 1, -1):
        if stack[place] is left:
            return place
    raise RuntimeError(
        f"{type(left).__name__}.__exit__: it is not in force on this thread; leave it on the thread that entered it"
    )


class _ModeStack(threading.local):
    def __init__(self) -> None:
        self.stack = [EvalMode.eager]
        self.level = EvalMode.eager.value  # the number alone takes 20 ns, an Enum's `.value` 100


local = _ModeStack()
