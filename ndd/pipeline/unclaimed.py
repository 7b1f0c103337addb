"""Calls of `fn` outside of any pipeline: their nodes become a part of each pipeline that they are given to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ndd.pipeline.body import PipelineBody, recorded
from ndd.pipeline.call_states import CallState, CallStates


class NoPipeline:
    """Stands for the pipeline in a call outside of any: the one that runs when the node is evaluated."""

    def __init__(self, path: str):
        self._path = path

    def __getattr__(self, name: str) -> Any:
        return getattr(PipelineBody.required(self._path), name)

    @property
    def states(self) -> NoPipeline:
        """What makes the states: itself."""
        return self

    def of_call(self, kind: str, make: Callable[[int | None], Any], **options: Any) -> StateForEach:
        """See `CallStates.of_call`."""
        return StateForEach(self._path, kind, make, options)

    def require_gpu(self, path: str) -> None:
        """Nothing: the pipeline is not known."""

    def result(
        self,
        run: Callable[[dict[int, Any]], Any],
        outputs: Any = None,
        inputs: tuple[Any, ...] = (),
        state: Any = None,
    ) -> Any:
        """See `PipelineBody.result`."""
        return recorded(run, outputs, inputs, state)


class StateForEach:
    """The states of one call, one in each pipeline that its node is given to; see `CallState`."""

    def __init__(self, path: str, kind: str, make: Callable[[int | None], Any], options: dict[str, Any]):
        self._path, self._kind, self._make, self._options = path, kind, make, options

    def within(self, states: CallStates) -> CallState:
        """The state in a pipeline."""
        return states.of_call(self._kind, self._make, **self._options, key=self)

    def __call__(self) -> Any:
        """The reader, generator or source of the pipeline that runs."""
        return self.within(PipelineBody.required(self._path).states)()


def pipeline_of(path: str) -> Any:
    """The pipeline that a call belongs to, or what stands for the one that will have it."""
    return PipelineBody.current() or NoPipeline(path)
