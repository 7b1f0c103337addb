"""The line of the user's program that a call or an error belongs to."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

_HOME = str(Path(__file__).parent.parent)
_STEP = (lambda step, run, *kept: step(run, *kept)).__code__


def user_frame() -> types.FrameType:
    """Where the user's program called into `ndd`."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HOME):
        frame = frame.f_back
    return frame


def called_here(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step, to be called as if from the user's line that recorded it: errors name the innermost line outside this
    package, which would be that of `run()`."""
    frame = user_frame()
    line = _STEP.replace(
        co_filename=frame.f_code.co_filename, co_name=frame.f_code.co_name, co_firstlineno=frame.f_lineno
    )
    call = types.FunctionType(line, {"__name__": "recorded"})
    return lambda run, *kept: call(step, run, *kept)
