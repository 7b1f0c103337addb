"""Steps on their way from read-ahead to the loop: none is lost when a signal handler raises."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ndd.readers.epochs.progress import Progress
from ndd.readers.sampling.sampler import EveryNth, NumberStream, Position

if TYPE_CHECKING:
    from ndd.readers.epochs.epoch import Pass
    from ndd.readers.epochs.read_ahead import Step


class StepInFlight:
    """A step that was taken from the read-ahead and has not reached the loop yet.

    The handler of a signal (Ctrl-C) may raise on the way, on the main thread: after a call, or where a function or an iteration
    of a loop begins. Therefore the reader's place moves in the last lines before the value is returned, and these lines call
    nothing. If something is raised before them, the step stays here, and the next call of the thread takes it.

    Attributes:
        number: the number of the step, counted for each reader.
        step: the step; once it is `whole`, without the records to be skipped. None once the loop has it.
        thread, run: the thread that takes it to the loop, and the pass that counts it (None: no pass does).
        delivered: whether the loop has it.
        value: the value for the loop.
    """

    __slots__ = ("delivered", "number", "run", "step", "thread", "value", "whole")

    def __init__(self, number: int, step: Step, thread: Any, run: Pass | None):
        self.number = number
        self.step: Any = step
        self.thread = thread
        self.run = run
        self.whole = False
        self.delivered = False
        self.value: Any = None


class StepsInFlight:
    """The steps of a reader that were taken and not handed over yet, at most one for each thread. Callers hold the reader's
    lock.

    Args:
        progress: the reader's, which moves as steps are handed over.
    """

    def __init__(self, progress: Progress):
        self._progress = progress
        self._held: list[StepInFlight] = []

    def again(self, run: Pass | None) -> StepInFlight | None:
        """The step that this thread took before and did not hand over, if there is one."""
        for held in self._held:  # mostly one, and delivered
            if not held.delivered and (held.thread is threading.current_thread() or not held.thread.is_alive()):
                held.thread, held.run = threading.current_thread(), run
                return held
        return None

    def outstanding(self, run: Pass) -> int:
        """The number of steps of a pass that other threads are about to hand over."""
        count = 0
        for held in self._held:
            if held.run is run:  # not delivered
                count += held.thread is not threading.current_thread() and held.thread.is_alive()
        return count

    def pending(self, run: Pass | None) -> int:
        """The number of steps of a pass that were taken and not handed over."""
        return sum(held.run is run and not held.delivered for held in self._held)

    def took(self, step: Step, run: Pass | None) -> StepInFlight:
        """Registers a step that was taken. If this is interrupted, the step is not registered."""
        progress = self._progress
        held = StepInFlight(progress.taken + 1, step, threading.current_thread(), run)
        others = [other for other in self._held if not other.delivered]
        self._held, progress.taken = [*others, held], held.number  # nothing is called after it
        return held

    def cut(self, run: Pass | None) -> Callable[[NumberStream], Any]:
        """A function that reduces the stream to the batches of this process, in a worker of a DataLoader."""
        share, pending = self._progress.share, self.pending(run)
        skip = share.count - 1 if pending else self._progress.skip
        own = None if run is None or run.left is None else run.left - pending
        return lambda stream: stream if share.count == 1 else EveryNth(stream, skip, share.count, own)

    def place(self) -> Position:
        """The place of the stream after the step that was taken last."""
        number, place = self._progress.number, self._progress.position
        for held in self._held:
            if held.number > number and not held.delivered:
                number, place = held.number, held.step.position
        return place
