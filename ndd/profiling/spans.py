"""`Span`: an event with its begin and end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["operator", "wait", "reader", "pipeline", "reading", "stream"]


@dataclass(slots=True, eq=False)
class Span:
    """Work of an operator, a wait for its result, the wait for a batch of a reader or for a pipeline's run, the reading of records,
    or the wait of torch's stream on a GPU.

    Attributes:
        begun, ended: nanoseconds of `time.perf_counter_ns`.
        own: nanoseconds without those of nested spans.
        thread, thread_name: the thread that it ran on.
        samples, nbytes: the size of the results.
        ahead: it ran before the loop requested it: by lookahead, or on a thread that reads ahead.
        taken: the work was to take a result from lookahead.
        failed: it ended with an error.
        device: the GPU that it used; `timing` has the CUDA events around that work.
        notes: remarks, such as fusion.
        pictures: for decoders: the samples that each backend decoded.
        inputs: the spans of its inputs.
        depth: the length of the chain of inputs.
    """

    name: str
    kind: Kind
    begun: int
    thread: int
    thread_name: str
    ended: int = 0
    own: int = 0
    samples: int = 0
    nbytes: int = 0
    ahead: bool = False
    taken: bool = False
    failed: bool = False
    device: int | None = None
    timing: Any = None
    notes: list[str] = field(default_factory=list)
    pictures: dict[str, list[int]] = field(default_factory=dict)
    inputs: tuple[Span, ...] = ()
    depth: int = 0

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.ended - self.begun) / 1e9
