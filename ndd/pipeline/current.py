"""A thread's position: its pipeline, its branch of an `if` on a node, and its line of the user's program."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any


class _Local(threading.local):
    branch: Any = None

    def __init__(self) -> None:
        self.pipelines: list[Any] = []


_local = _Local()


def pipelines() -> list[Any]:
    """The pipelines whose bodies this thread is in, the innermost last."""
    return _local.pipelines


def pipeline() -> Any:
    """The pipeline whose body runs on this thread, or None."""
    return _local.pipelines[-1] if _local.pipelines else None


def required(path: str) -> Any:
    """The current pipeline; RuntimeError outside of one."""
    running = pipeline()
    if running is None:
        raise RuntimeError(
            f"fn.{path} belongs inside a pipeline: decorate the function with @ndd.pipeline_def, or call the "
            "operator of ndd directly"
        )
    return running


class running:
    """Makes a pipeline the current one of this thread. (Not a generator, whose `finally` may run later, when another run has
    begun. `PipelineBody._leave_all` cleans up after Ctrl-C.)"""

    def __init__(self, pipeline: Any):
        self._pipeline = pipeline

    def __enter__(self) -> None:
        stack = _local.pipelines
        stack += [self._pipeline]

    def __exit__(self, *_: object) -> None:
        _local.pipelines.pop()


def branch() -> Any:
    """The branch of an `if` on a node whose statements run on this thread: a `conditions.Branch`, or None."""
    return _local.branch


class within:
    """Runs the statements of a branch on this thread."""

    def __init__(self, branch: Any):
        self._branch = branch

    def __enter__(self) -> None:
        self._before, _local.branch = _local.branch, self._branch

    def __exit__(self, *_: object) -> None:
        _local.branch = self._before


_HOME = str(Path(__file__).parent.parent)
_STEP = (lambda step, run, *call_state: step(run, *call_state)).__code__


def user_frame() -> types.FrameType:
    """The line at which the user's program called `ndd`."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HOME):
        frame = frame.f_back
    return frame


def called_here(step: Callable[..., Any]) -> Callable[..., Any]:
    """Calls a step as if it were at the user's line that recorded it. Errors name the innermost line outside this package,
    which would otherwise be the one of `run()`."""
    frame = user_frame()
    line = _STEP.replace(
        co_filename=frame.f_code.co_filename, co_name=frame.f_code.co_name, co_firstlineno=frame.f_lineno
    )
    call = types.FunctionType(line, {"__name__": "recorded"})
    return lambda run, *call_state: call(step, run, *call_state)
