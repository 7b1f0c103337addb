"""`Pipeline` and `pipeline_def`: code written for DALI's pipeline mode, run imperatively."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from ndd.pipeline.ahead import Ahead
from ndd.pipeline.body import BatchSizeChanged, PipelineBody
from ndd.pipeline.checkpoints import first_states, with_iterator, written
from ndd.pipeline.node import DataNode
from ndd.pipeline.outputs import TensorList
from ndd.types import PipelineAPIType

_USES = {
    PipelineAPIType.BASIC: "run()",
    PipelineAPIType.ITERATOR: "an iterator",
    PipelineAPIType.SCHEDULED: "schedule_run()",
}


def _without(name: str, way: str) -> Callable[..., Any]:
    def refused(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(
            f"Pipeline.{name}: a pipeline of ndd is a Python function that runs anew for every batch, there is no graph: {way}"
        )

    return refused


class Pipeline(PipelineBody):
    """A function that makes one batch, called once a run.

    The body is ordinary Python: it runs anew for every batch, can be stepped through, can print its values, and its
    errors point at its lines. Readers, generators and external sources are made in the first run and kept.

    Args:
        batch_size: samples in a batch (the largest, where sources give fewer).
        num_threads: threads of CPU operators; default `ndd.get_num_threads()`.
        device_id: the GPU; None is a pipeline on the CPU alone.
        seed: of readers and random operators that have none of their own: these give what they give in DALI's pipelines.
            A body that needs values (`if node:`) cannot be looked at before it runs: there the calls get their seeds in
            the order in which they are made. Default: another one each time.
        prefetch_queue_depth: how many runs a background thread prepares ahead; 1 runs on the caller's thread, when
            asked, as does any pipeline while a debugger traces the program (`sys.gettrace()`). A dict
            (`{"cpu_size": ..., "gpu_size": ...}`) counts with its larger number.
        exec_pipelined, exec_async: False runs nothing ahead.
        output_dtype, output_ndim, output_layout: what the outputs must be, one for each or one for all; checked.
        others: accepted and kept as attributes, with no effect: there is no graph to be executed in another way,
            Python sources run on the thread of the body, and outputs are memory of their own.

    >>> import ndd
    >>> @ndd.pipeline_def(batch_size=2)
    ... def numbers():
    ...     return ndd.fn.external_source(source=[[1, 2], [3, 4]]) * 10
    >>> pipe = numbers()
    >>> (out,) = pipe.run()
    >>> out.as_array().tolist()
    [10, 20]
    """

    def _prepare(self) -> None:
        super()._prepare()
        self._places: str | None = None  # after the run whose outputs were given last
        self._scheduled: deque[Any] = deque()
        self._ahead: Ahead | None = None
        self._ended = False
        self._use: PipelineAPIType | None = None
        self._checks_use = True

    # ---- running

    def _once(self) -> tuple[TensorList, ...]:
        """Runs the body for one batch."""
        self.build()
        self._run_batch_size, self._pending, self._size_taken = None, {}, False
        self.iter_setup()
        for source in self._sources:  # known from earlier runs: they say how many samples there are
            self.data_of(source)
        try:
            return self._run_body()
        except BatchSizeChanged:  # the first run, and operators before the source took the largest size for granted
            return self._run_body()

    def _runs_ahead(self) -> bool:
        asynchronous = self.exec_pipelined and self.exec_async and self._depth > 1 and sys.gettrace() is None
        return asynchronous and not any(s.fed_by_hand for s in self._sources)

    def run(self, cuda_stream: Any = None, /, **inputs: Any) -> tuple[TensorList, ...]:
        """The outputs of the next batch. StopIteration at the end of the data, until `reset`.

        Args:
            inputs: batches for external sources, by name.
        """
        if inputs:
            if self._depth > 1 and self.exec_pipelined:
                raise RuntimeError("run(name=batch) needs prefetch_queue_depth=1 or exec_pipelined=False")
            self._feed_all(inputs)
        self.use_as(PipelineAPIType.BASIC)
        return self._next()

    def run_on(self, inputs: dict[str, Any]) -> tuple[TensorList, ...]:
        """As `run(name=batch, ...)`, whatever the prefetch depth. After an error nothing of the inputs is left."""
        self.use_as(PipelineAPIType.BASIC)
        try:
            self._feed_all(inputs)
            return self._next()
        finally:
            for source in self._sources:
                source.queue.clear()

    def _feed_all(self, inputs: dict[str, Any]) -> None:
        for name, data in inputs.items():
            self.feed_input(name, data)

    def iterate(self) -> tuple[TensorList, ...]:
        """As `run`, for iterators: a pipeline that an iterator takes from is not run by hand as well."""
        self.use_as(PipelineAPIType.ITERATOR)
        return self._next()

    def _next(self) -> tuple[TensorList, ...]:
        self._schedule()
        return self._share()

    def use_as(self, use: PipelineAPIType) -> None:
        """Notes how the outputs are taken; RuntimeError if they are taken in another way already."""
        if self._use is None:
            self._use = use
        elif self._use != use and self._checks_use:
            raise RuntimeError(
                f"The pipeline is used by {_USES[self._use]} already: it cannot be used by {_USES[use]} as well"
            )

    def enable_api_check(self, enable: bool) -> None:
        """Whether `run()`, an iterator and `schedule_run()` exclude each other. They do, by default."""
        self._checks_use = bool(enable)

    def release_outputs(self) -> None:
        """Nothing to do: outputs keep their own memory."""
        self.use_as(PipelineAPIType.SCHEDULED)

    def feed_input(
        self, data_node: Any, data: Any, layout: str | None = None, cuda_stream: Any = None, use_copy_kernel: Any = None
    ) -> None:
        """Queues a batch for an external source, by its name or its node.

        Args:
            data: an array `[N, ...]`, a list of arrays or tensors, an `ndd.Batch`, or an output of a pipeline.
            layout: the layout of a sample.
            cuda_stream, use_copy_kernel: no effect.
        """
        unknown = self._find_sources()
        if not isinstance(data_node, str | DataNode):
            raise TypeError(
                f"Pipeline.feed_input: expected the name of an external_source or its node, got {data_node!r}"
            )
        if isinstance(data_node, DataNode) and data_node.source is not None:
            data_node.source.within(self.states)().feed(data, layout)
        elif unknown is not None and not self._started and isinstance(data_node, str):
            self._early.setdefault(data_node, []).append((data, layout))
        else:
            self._source_named(data_node).feed(data, layout)

    def input_feed_count(self, input_name: str) -> int:
        """How many batches must be fed to an external source before a run."""
        if self._find_sources() is None:
            self._source_named(input_name)
        return 1

    def _source_named(self, name: Any) -> Any:
        found = next((source for source in self._sources if source.name == name), None)
        if found is None:
            known = sorted(source.name for source in self._sources if source.name)
            raise KeyError(f"The pipeline has no external_source named {name!r}; it has {known}")
        return found

    def schedule_run(self) -> None:
        """Starts a run; `share_outputs` gives what came of it."""
        self.use_as(PipelineAPIType.SCHEDULED)
        self._schedule()

    def _schedule(self) -> None:
        self.build()
        if self._ended:
            self._scheduled.append(_end)
            return
        if not self._started and self._seed is not None:
            self._find_sources()  # the outputs decide which seed goes where
        self._scheduled.append(self._first_run if not self._started else self._run_of_now)
        self._started = True

    def _first_run(self) -> tuple[TensorList, ...]:
        """On the caller's thread: afterwards the sources are known, and whether runs can be prepared ahead."""
        found = self._once()
        if self._runs_ahead():
            self._ahead = Ahead(self, Pipeline._once, self._depth)
        return found

    def _run_of_now(self) -> tuple[TensorList, ...]:
        if self._ahead is None and self._runs_ahead():
            self._ahead = Ahead(self, Pipeline._once, self._depth)
        return self._ahead.next() if self._ahead is not None else self._once()

    def share_outputs(self, cuda_stream: Any = None) -> tuple[TensorList, ...]:
        """The outputs of the oldest scheduled run."""
        self.use_as(PipelineAPIType.SCHEDULED)
        if not self._scheduled:
            self._schedule()
        return self._share()

    def _share(self) -> tuple[TensorList, ...]:
        try:
            found = self._scheduled.popleft()()
        except StopIteration:
            self._ended = True
            raise
        self._places = getattr(found, "places", None)
        return found

    def checkpoint(self, filename: str | None = None, iterator: dict[str, Any] | None = None) -> bytes:
        """Where the readers, random generators and sources stand after the outputs given last, as text in bytes.

        `Pipeline(..., checkpoint=that)` goes on from there, if its body makes the same readers, generators and sources in
        the same order. Needs `enable_checkpointing=True`. (DALI's own checkpoints are of another format.)

        Args:
            filename: also written there; the file appears whole or not at all.
            iterator: the place of an iterator over the pipeline, as plain values: its `checkpoints()` give it.
        """
        if not self.enable_checkpointing:
            raise RuntimeError("Pipeline.checkpoint: make the pipeline with enable_checkpointing=True")
        places = self._places if self._places is not None else first_states(self._restored)
        return written(with_iterator(places, iterator), filename)

    def outputs(self, cuda_stream: Any = None) -> tuple[TensorList, ...]:
        """The outputs of the oldest scheduled run."""
        return self.share_outputs()

    def reset(self) -> None:
        """Begins again after the end of the data."""
        if self._ended:
            self._ended = False
            self._scheduled.clear()
            if self._ahead is not None:
                self._ahead.stop()
                self._ahead = None
            for source in self._sources:
                source.reset()

    def empty(self) -> bool:
        """Whether no run is scheduled."""
        return not self._scheduled

    # ---- readers

    def reader_meta(self, name: str | None = None) -> Any:
        """What the readers say of their data: a dict for reader `name`, or a dict of these by name."""
        self._find_readers()
        if name is None:
            return {k: r.get_metadata() for k, r in self._readers.items()}
        if name not in self._readers:
            raise RuntimeError(f"The pipeline has no reader named {name!r}; it has {sorted(self._readers)}")
        meta = dict(self._readers[name].get_metadata())
        return {k: int(v) for k, v in meta.items()}

    def epoch_size(self, name: str | None = None) -> Any:
        """The (padded) number of samples of an epoch, by reader name."""
        if name is not None:
            return self.reader_meta(name)["epoch_size_padded"]
        return {k: int(m["epoch_size_padded"]) for k, m in self.reader_meta().items()}

    def _find_readers(self) -> None:
        error = self._find_sources()
        if error is not None and not self._readers and not self._started:  # only a run can tell
            self._schedule()
            first = self._share()
            self._places = None  # nobody has these outputs yet
            self._scheduled.appendleft(lambda: first)

    # ---- what code for DALI may call, and which is not to be had

    serialize = staticmethod(
        _without("serialize", "keep the function that makes the pipeline, and its place: checkpoint()")
    )
    deserialize = staticmethod(_without("deserialize", "call the function that makes the pipeline, with checkpoint="))
    deserialize_and_build = staticmethod(_without("deserialize_and_build", "call the function that makes the pipeline"))
    save_graph_to_dot_file = staticmethod(
        _without("save_graph_to_dot_file", "print or step through the function instead")
    )

    @property
    def is_restored_from_checkpoint(self) -> bool:
        """Whether it was made with `checkpoint=`."""
        return self._restored is not None

    @property
    def output_names(self) -> list[str] | None:
        """The names of the outputs, if the body gives a dict."""
        return self._names


def _end() -> Any:
    raise StopIteration
