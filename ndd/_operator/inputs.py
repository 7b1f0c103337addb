"""The values of a call's inputs. Other calls may have to compute them first."""

from __future__ import annotations

from typing import Any

from ndd._execution.invocation import Invocation
from ndd._tensor import Store


class InputFailed(Exception):
    """An input of this invocation could not be computed: its error is this invocation's error too."""

    def __init__(self, origin: Invocation):
        self.origin = origin


def stored(handle: Any) -> Store:
    """The value of an input; its error is raised unchanged."""
    pending = handle._pending
    if pending is not None:  # another thread may put the store there at any time, and then forgets `_pending`
        if not pending.finished:
            pending.context._finish(pending)
        if pending.error is not None:
            raise InputFailed(pending)
    return handle._value()
