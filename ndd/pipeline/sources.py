"""`external_source`: batches from a callable, an iterable, or fed by hand."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import ndd
from ndd.types import BatchInfo, SampleInfo


class UnusableData(RuntimeError, TypeError, ValueError):
    """Data that cannot make a batch: a RuntimeError as in DALI's pipelines, and also the error that `ndd.batch` raises for
    it."""


class NoData(IndexError, RuntimeError):
    """A run without a batch for a source: DALI raises one of the two, by the options of the pipeline."""


class ExternalSource:
    """One `fn.external_source` of a pipeline; it keeps its position in the data between runs."""

    def __init__(self, name: str | None, max_batch_size: int, source: Any, options: dict[str, Any]):
        self.name = name
        self.max_batch_size = max_batch_size
        self.options = options
        self.outputs: int | None = options.get("num_outputs")
        self.batched: bool = options.get("batch", True) is not False
        self.cycle = options.get("cycle")
        self.queue: deque[Any] = deque()
        self.last: Any = None
        self.iteration = 0
        self.epoch = 0
        self.ended = False
        self.source = source
        self._iterator: Iterator[Any] | None = None
        self._factory: Callable[[], Iterator[Any]] | None = None
        self._call: Callable[..., Any] | None = None
        self._bind(source)

    def _bind(self, source: Any) -> None:
        if source is None:
            return
        if inspect.isgeneratorfunction(source):
            self._factory = lambda: iter(source())
        elif callable(source):
            self._call = source
            self._takes_argument = _parameters(source) > 0
        else:
            self._factory = lambda: iter(source)

    @property
    def fed_by_hand(self) -> bool:
        """Whether data comes from `feed_input` or `run(name=...)`."""
        return self.source is None

    def feed(self, data: Any, layout: str | None = None) -> None:
        """Queues a batch."""
        if not self.fed_by_hand:
            raise RuntimeError(f"external_source {self.name!r} has a `source`: it cannot be fed as well")
        if isinstance(data, tuple) and self.outputs is not None:
            self.queue.append([self._as_batch(d, i, layout) for i, d in enumerate(data)])
        else:
            self.queue.append([self._as_batch(data, 0, layout)])

    def reset(self) -> None:
        """Begins again after the end, if the source can."""
        if self.ended and self.cycle == "raise":
            self._iterator, self.ended = None, False
        elif self.ended and self._call is not None:
            self.ended = False
        self.iteration = 0
        self.epoch += 1

    def state_dict(self) -> dict[str, int]:
        """The epoch and the number of batches given in it. The data itself is not part of the state."""
        return {"iteration": self.iteration, "epoch": self.epoch}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Skips so many batches: a function gets the later numbers, an iterable is consumed up to there."""
        skipped = 0 if self._call is not None and self._takes_argument else state["iteration"]
        for _ in range(0 if self.fed_by_hand else skipped):
            self._from_call() if self._call is not None else self._from_iterator()
        self.iteration, self.epoch = state["iteration"], state["epoch"]

    def next(self) -> list[Any]:
        """The next batch of every output; StopIteration at the end."""
        if self.fed_by_hand:
            return self._next_fed()
        if self.ended:
            raise StopIteration
        try:
            data = self._from_call() if self._call is not None else self._from_iterator()
        except StopIteration:
            self.ended = True
            raise
        self.iteration += 1
        outputs = tuple(data) if self.outputs is not None else (data,)
        if self.outputs is not None and len(outputs) != self.outputs:
            raise RuntimeError(f"external_source: expected {self.outputs} outputs, the source gave {len(outputs)}")
        return [self._as_batch(d, i) for i, d in enumerate(outputs)]

    def _next_fed(self) -> list[Any]:
        if self.queue:
            self.last = self.queue.popleft()
        elif self.last is None or not self.options.get("repeat_last"):
            raise NoData(
                f"external_source {self.name!r} has no data: call feed_input({self.name!r}, batch) or "
                f"run({self.name}=batch) before each run"
            )
        return self.last

    def _from_iterator(self) -> Any:
        if self._iterator is None:
            self._iterator = self._factory()  # type: ignore[misc]
        return self._collect(self._next_item)

    def _next_item(self, index: int) -> Any:
        try:
            return next(self._iterator)  # type: ignore[arg-type]
        except StopIteration:
            if self.cycle not in (True, "quiet"):
                raise
        self._iterator = self._factory()  # type: ignore[misc]
        self.iteration, self.epoch = 0, self.epoch + 1
        return next(self._iterator)

    def _from_call(self) -> Any:
        def ask(i: int) -> Any:
            if not self._takes_argument:
                return self._call()  # type: ignore[misc]
            if not self.batched:
                index = self.iteration * self.max_batch_size + i
                return self._call(SampleInfo(index, i, self.iteration, self.epoch))  # type: ignore[misc]
            info = BatchInfo(self.iteration, self.epoch) if self.options.get("batch_info") else self.iteration
            return self._call(info)  # type: ignore[misc]

        return self._collect(ask)

    def _collect(self, ask: Callable[[int], Any]) -> Any:
        """A whole batch, or one made from samples. An end in the middle of a batch drops the incomplete batch."""
        if self.batched:
            return ask(0)
        samples = [ask(i) for i in range(self.max_batch_size)]
        if self.outputs is None:
            return samples
        return tuple(list(column) for column in zip(*samples, strict=True))

    def _as_batch(self, data: Any, output: int, layout: str | None = None) -> Any:
        layout = layout or self.options.get("layout")
        if isinstance(layout, list | tuple):
            layout = layout[output] if output < len(layout) else None
        if hasattr(data, "as_cpu") and hasattr(data, "batch"):
            data = data.batch
        try:
            batch = data if isinstance(data, ndd.Batch) else ndd.batch(_samples(data), layout=layout or None)
        except (TypeError, ValueError) as error:
            name = f" {self.name!r}" if self.name else ""
            raise UnusableData(f"external_source{name}: output {output}: {error}") from error
        if batch.batch_size > self.max_batch_size:
            raise RuntimeError(
                f"external_source: got a batch of {batch.batch_size} samples, the pipeline's batch_size is "
                f"{self.max_batch_size}"
            )
        wanted = self.options.get("dtype")
        wanted = wanted[output] if isinstance(wanted, list | tuple) else wanted
        if wanted is not None and batch.dtype != ndd.dtype(wanted):
            raise RuntimeError(f"external_source: expected data of type {ndd.dtype(wanted)}, got {batch.dtype}")
        ndim = self.options.get("ndim")
        ndim = ndim[output] if isinstance(ndim, list | tuple) else ndim
        if ndim is not None and batch.ndim != ndim:
            raise RuntimeError(f"external_source: expected samples with {ndim} dimensions, got {batch.ndim}")
        return batch.gpu() if self.options.get("device") in ("gpu", "mixed") else batch


def _samples(data: Any) -> Any:
    """A list of samples as ndd takes it. TypeError for samples of several types, none of which is converted, as in DALI."""
    if not isinstance(data, list | tuple):
        return data
    kinds = {getattr(a, "dtype", type(a)) for a in data if hasattr(a, "dtype") or isinstance(a, int | float)}
    if len(kinds) > 1 and len(types := {str(ndd.dtype(kind)) for kind in kinds}) > 1:
        raise TypeError(f"the samples of a batch must have one type, got {sorted(types)}")
    return list(data)


def check_source(source: Any, options: dict[str, Any]) -> None:
    """ValueError or TypeError for a source that cannot be cycled through or called as asked."""
    cycle, outputs = options.get("cycle"), options.get("num_outputs")
    if cycle not in ("no", "quiet", "raise") and not isinstance(cycle, bool | None):  # not 1 and 0, as in DALI
        raise ValueError(f"external_source: cycle must be one of None, 'no', 'quiet', 'raise', got {cycle!r}")
    if outputs is not None and (not isinstance(outputs, int) or outputs < 1):
        kind = ValueError if isinstance(outputs, int) else TypeError
        raise kind(f"external_source: num_outputs: expected an integer of at least 1, or None, got {outputs!r}")
    if options.get("bytes_per_sample_hint") is not None and not options.get("parallel"):
        raise ValueError("external_source: bytes_per_sample_hint goes with parallel=True")
    if source is None and cycle is not None:
        raise ValueError("external_source: `cycle` goes with iterable sources: there is no `source`")
    if source is None or inspect.isgeneratorfunction(source):
        return
    if callable(source):
        if cycle is not None:
            raise ValueError("external_source: `cycle` goes with iterable sources, not with a callable")
        _parameters(source)
    elif cycle in (True, "quiet", "raise") and inspect.isgenerator(source):
        raise TypeError(
            "external_source: a generator cannot begin again: `cycle` needs the generator function, or an iterable"
        )


def _parameters(function: Callable[..., Any]) -> int:
    """The number of positional arguments of a source: none or one, as in DALI, which counts those with a default too."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 0
    taken = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    if len(taken) > 1 or any(p.kind is p.VAR_POSITIONAL for p in taken):
        raise TypeError(
            "external_source: the source takes either no argument or one, the number of the batch or of the sample: "
            f"got {', '.join(map(str, taken))}. Other values go by functools.partial(source, name=value)"
        )
    return len(taken)
