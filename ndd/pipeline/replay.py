"""One run of a pipeline: the steps of its trace, computed for a batch."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

import numpy as np

import ndd
from ndd.pipeline.node import DataNode, as_constant, contains_node
from ndd.pipeline.trace import Step, Trace
from ndd.types import Constant


class Run:
    """The values of one batch.

    Attributes:
        sample_count: the size of the sources' batches, None until one has given a batch.
        values: of the steps so far.
    """

    def __init__(self, pipeline: Any):
        self.pipeline = pipeline
        self.sample_count: int | None = None
        self.values: dict[Step, Any] = {}
        self._data: dict[int, list[Any]] = {}
        self._flags: dict[int, tuple[Any, np.ndarray]] = {}

    @property
    def batch_size(self) -> int:
        """The number of samples of the run: as many as its sources return, otherwise as many as a batch may have."""
        return self.pipeline.max_batch_size if self.sample_count is None else self.sample_count

    def replay(self, trace: Trace, keeps: bool) -> None:
        """Computes the steps of a trace; unless `keeps`, each value is dropped after the last step that takes it."""
        for step, done in trace.steps:
            self.values[step] = self.compute(step)
            for past in done if not keeps else ():
                self.values.pop(past, None)

    def ask(self, sources: list[Any]) -> None:
        """Gets the batches of all sources. When one ends the others are asked as well, as in DALI: they end the epoch
        together."""
        ended = None
        for source in sources:
            try:
                self.data_of(source)
            except StopIteration as end:
                ended = end
        if ended is not None:
            raise ended

    def compute(self, step: Step) -> Any:
        """The results of a step. Without samples in an input, as in a branch that is not taken, the results have none either."""
        if not step.joins and self.batch_size:
            for batch in map(self.of, step.nodes):
                if isinstance(batch, ndd.Batch) and not batch.batch_size:
                    return defaultdict(itertools.repeat(batch).__next__) if step.several else batch
        return step.compute(self) if step.call_state is None else step.compute(self, step.call_state())

    def of(self, node: DataNode) -> Any:
        """The batch of a node."""
        step = node._step
        if step is None:
            return node.value
        if step not in self.values:  # a node made outside of a body that runs for every batch
            self.values[step] = self.compute(step)
        value = self.values[step]
        return value if node.index is None else value[node.index]

    def unwrapped(self, value: Any) -> Any:
        """The value with batches in place of nodes."""
        if isinstance(value, DataNode):
            return self.of(value)
        if isinstance(value, Constant):
            return as_constant(value, 1).select(0)
        if isinstance(value, slice) and contains_node(value):
            return slice(*(self.unwrapped(v) for v in (value.start, value.stop, value.step)))
        if isinstance(value, list | tuple) and contains_node(value):
            return type(value)(self.unwrapped(v) for v in value)
        return value

    def batches(self, values: tuple[Any, ...]) -> list[Any]:
        """The values as batches of one size: the size of a node among them, otherwise the size of the run."""
        own_batches = [self.of(v) if isinstance(v, DataNode) else v for v in values]
        size = next((v.batch_size for v in own_batches if isinstance(v, ndd.Batch)), self.batch_size)
        return [v if isinstance(v, ndd.Batch) else as_constant(v, size) for v in own_batches]

    def flags(self, node: Any) -> np.ndarray:
        """The truth value of each sample of a condition: bool `[N]`. ValueError on a GPU, RuntimeError for several values in
        a sample."""
        if id(node) not in self._flags:
            batch = self.of(node)
            if batch.device.device_type != "cpu":
                raise ValueError(
                    "The condition of an `if` must be on the CPU: write `if node.cpu():` or compute it there"
                )
            if batch.ndim != 0:
                raise RuntimeError(
                    "The condition of an `if` must have one value for each sample, got "
                    f"{batch.ndim} dimensions: use a reduction"
                )
            self._flags[id(node)] = node, np.array([bool(np.asarray(sample)) for sample in batch], bool)
        return self._flags[id(node)][1]

    def data_of(self, source: Any) -> list[Any]:
        """This run's batches of a source, requested once."""
        if id(source) not in self._data:
            batches = source.next()
            size = batches[0].batch_size
            if self.sample_count not in (None, size):
                raise RuntimeError(
                    f"external_source {source.name or ''}: a batch of {size} samples beside one of {self.sample_count}: "
                    "all sources of a run must agree"
                )
            self._data[id(source)], self.sample_count = batches, size
        return self._data[id(source)]
