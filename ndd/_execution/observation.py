"""The running profile that watches calls, if there is one (`ndd.profiling`).

Code that calls, runs, waits or reads looks at `active` first. While it is None, nothing is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ndd._execution.fork import around_fork

if TYPE_CHECKING:
    from ndd._execution.invocation import Invocation

Result = TypeVar("Result")


class Observer(Protocol):
    """The interface of a profile."""

    def called(self, invocation: Invocation, operator_call: Any) -> None:
        """An operator was called, and its work is about to be handed over."""
        ...

    def run(self, invocation: Invocation) -> list[Any]:
        """Does the work of an invocation and returns its results."""
        ...

    def wait(self, invocation: Invocation, function: Callable[[Invocation], None]) -> None:
        """Calls a function that waits for the result of an operator."""
        ...

    def take(self, name: str, function: Callable[..., Result], *arguments: Any) -> Result:
        """Calls a function that waits for the next batch of the reader `name` and returns the value, or an object with
        `value`."""
        ...

    def was_read(self, count: int, begun: float) -> None:
        """A thread has read `count` records since `begun` (`time.perf_counter`)."""
        ...

    def note(self, text: str) -> None:
        """Adds a note to the work that this thread does."""
        ...

    def pictures(self, samples: Sequence[int], decoder: str) -> None:
        """Notes which decoder made these samples of the work that this thread does."""
        ...


active: Observer | None = None


def _in_child() -> None:
    global active
    active = None  # the parent cannot see the work of a forked child


around_fork(in_child=_in_child)
