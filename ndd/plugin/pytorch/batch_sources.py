"""The sources of an iterator's batches: pipelines, or any iterable of tuples or dicts of batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import ndd

_UNCALLED = "Expected a pipeline, got a function that makes one: call it, as in DALIGenericIterator(pipeline(), ...)"


class IterableSource:
    """An iterable of batches, or a function that makes one for each epoch, in place of a pipeline."""

    def __init__(self, batches: Any, names: Sequence[str]):
        self._make = batches if callable(batches) else lambda: batches
        self._names = list(names)
        self._current = None if callable(batches) else batches
        self._iterator: Any = None
        self._item: Any = None  # on its way to the caller
        self._ended = False

    def __len__(self) -> int:
        try:
            return len(self._current)  # type: ignore[arg-type]
        except TypeError:
            return 0

    def _iterate(self) -> tuple[Any, ...]:
        """The next batches, in the order of the names where they come as a dict."""
        if self._ended:
            raise StopIteration
        if self._iterator is None:
            self._current = self._make()
            if isinstance(self._current, ndd.Pipeline):
                raise TypeError(_UNCALLED)
            self._iterator = iter(self._current)  # type: ignore[call-overload]
        try:
            if self._item is None:
                self._item = self._iterator.__next__()  # next() would be one more call, after which Ctrl-C may come
        except StopIteration:
            self._ended, self._iterator = True, None
            raise
        batches = tuple([v if isinstance(v, ndd.Batch) else ndd.as_batch(v) for v in self._ordered(self._item)])
        self._item = None
        return batches

    def _ordered(self, item: Any) -> list[Any]:
        if isinstance(item, dict):
            known = set(self._names) == set(item)
            return [item[name] for name in self._names] if known else list(item.values())
        return list(item) if isinstance(item, tuple | list) else [item]

    def reset(self) -> None:
        """Starts a new iteration."""
        self._ended = False


def as_sources(pipelines: Any, names: Sequence[str]) -> list[Any]:
    """Pipelines that have not been used, built; or one `IterableSource`."""
    check(pipelines is not None, "Number of provided pipelines has to be at least 1")
    listed = list(pipelines) if isinstance(pipelines, list | tuple) else [pipelines]
    check(len(listed) > 0, "Number of provided pipelines has to be at least 1")
    if not all(isinstance(p, ndd.Pipeline) for p in listed):
        if isinstance(pipelines, list | tuple) and any(callable(p) for p in listed):
            raise TypeError(_UNCALLED)
        if isinstance(pipelines, Iterable) or callable(pipelines):
            return [IterableSource(pipelines, names)]
        raise TypeError(
            f"Expected a Pipeline, a list of them, or an iterable of batches, got {type(pipelines).__name__}"
        )
    for pipeline in listed:
        pipeline.build()
        pipeline._use_as(ndd.types.PipelineAPIType.ITERATOR)
    sizes = {p.max_batch_size for p in listed}
    check(len(sizes) == 1, f"All pipelines should have the same batch size, got {sorted(sizes)}")
    return listed


def check(condition: bool, text: str) -> None:
    """DALI reports wrong uses of its iterators as AssertionError, and so do we, so that callers can catch the same."""
    if not condition:
        raise AssertionError(text)
