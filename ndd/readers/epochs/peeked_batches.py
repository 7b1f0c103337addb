"""`PeekedBatches`: the batches that lookahead requested before the loop, so that both get the same values."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from ndd._execution.errors import raise_signalled
from ndd.readers.epochs.read_ahead import Step


class PeekedBatches:
    """The values of steps that the loop has not taken yet, in order. Used by the loop's thread and by others."""

    def __init__(self) -> None:
        self._values: deque[tuple[Step, tuple[Any, ...]]] = deque()
        self._lock = threading.Lock()

    def of(self, peek: Callable[[], Step | None], make: Callable[[Step], tuple[Any, ...]]) -> tuple[Any, ...] | None:
        """The values of the step that `peek` returns, made now or earlier; None if there is no step or it cannot be read."""
        with self._lock:
            step = peek()
            if step is None or step.records.faults:
                return None
            for known, values in self._values:
                if known is step:
                    return values
            try:
                values = make(step)
            except Exception as error:  # the loop raises it, or skips the record, when it comes there
                raise_signalled(error)
                return None
            self._values.append((step, values))
            return values

    def taken(self, step: Step) -> tuple[Any, ...] | None:
        """The values of a step that the loop takes, if they were made. Forgets all earlier steps."""
        with self._lock:
            while self._values:
                known, values = self._values.popleft()
                if known is step:
                    return values
        return None
