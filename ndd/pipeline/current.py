"""Where a thread is: in the body of which pipeline, and in which branch of an `if` on a node."""

from __future__ import annotations

import threading
from typing import Any


class _Local(threading.local):
    branch: Any = None

    def __init__(self) -> None:
        self.pipelines: list[Any] = []


_local = _Local()


def pipelines() -> list[Any]:
    """The pipelines whose bodies are entered on this thread, the innermost last."""
    return _local.pipelines


def pipeline() -> Any:
    """The pipeline whose body runs on this thread, or None."""
    return _local.pipelines[-1] if _local.pipelines else None


def required(path: str) -> Any:
    """The current pipeline; RuntimeError outside of one."""
    found = pipeline()
    if found is None:
        raise RuntimeError(
            f"fn.{path} belongs inside a pipeline: decorate the function with @ndd.pipeline_def, or call the "
            "operator of ndd directly"
        )
    return found


class running:
    """A pipeline is the current one of this thread. (No generator, whose `finally` may run later, when another run has
    begun: what Ctrl-C leaves is taken away by `PipelineBody.leave_all`.)"""

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
    """The statements of a branch run on this thread."""

    def __init__(self, branch: Any):
        self._branch = branch

    def __enter__(self) -> None:
        self._before, _local.branch = _local.branch, self._branch

    def __exit__(self, *_: object) -> None:
        _local.branch = self._before
