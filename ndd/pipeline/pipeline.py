"""`Pipeline` and `pipeline_def`: code written for DALI's pipeline mode, run imperatively."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import ndd
from ndd.pipeline.ahead import Ahead
from ndd.pipeline.checkpoints import first_states, taken_states, with_iterator, with_places, written
from ndd.pipeline.conditions import branch
from ndd.pipeline.kept import AllKept, Kept
from ndd.pipeline.node import DataNode, as_constant, is_recorded, unwrapped
from ndd.pipeline.options import PipelineOptions
from ndd.pipeline.outputs import TensorList
from ndd.pipeline.sources import ExternalSource

_local = threading.local()


def _without(name: str, way: str) -> Callable[..., Any]:
    def refused(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(
            f"Pipeline.{name}: a pipeline of ndd is a Python function that runs anew for every batch, there is no graph: {way}"
        )

    return refused


class Pipeline(PipelineOptions):
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
        self._body: Callable[[], Any] | None = None
        self._kept: AllKept | None = None
        self._places: str | None = None  # after the run whose outputs were given last
        self._readers: dict[str, Any] = {}
        self._sources: list[ExternalSource] = []
        self._pending: dict[int, list[Any]] = {}
        self._recorded: list[Any] | None = None
        self._recording = False
        self._built = False
        self._run_batch_size: int | None = None
        self._size_taken = False
        self._context: Any = None
        self._names: list[str] | None = None
        self._scheduled: deque[Any] = deque()
        self._ahead: Ahead | None = None
        self._early: dict[str, list[Any]] = {}
        self._searched = False
        self._ended = False
        self._started = False
        self._use: str | None = None
        self._output_count: int | None = None

    # ---- what it gives

    @property
    def num_outputs(self) -> int:
        """How many outputs the body returns."""
        return self.interface()[1]

    def output_dtype(self) -> list[Any]:
        """The `output_dtype` given, for each output."""
        return self._for_each_output(0)

    def output_ndim(self) -> list[Any]:
        """The `output_ndim` given, for each output."""
        return self._for_each_output(1)

    def output_layout(self) -> list[Any]:
        """The `output_layout` given, for each output."""
        return self._for_each_output(2)

    def _for_each_output(self, which: int) -> list[Any]:
        given = self._output_checks[which]
        return list(given) if isinstance(given, list | tuple) else [given] * self.num_outputs

    @property
    def current_batch_size(self) -> int:
        """Inside a body: how many samples this run has; in a branch of an `if` on a node: how many take it."""
        if (inside := branch()) is not None:
            return len(inside.places)
        self._size_taken = self._size_taken or self._run_batch_size is None
        return self._run_batch_size or self.max_batch_size

    # ---- how it is defined

    def define_graph(self) -> Any:
        """The body, for subclasses: returns the outputs."""
        raise NotImplementedError(
            "Derive from Pipeline and define `define_graph`, or use `set_outputs` or @pipeline_def"
        )

    def iter_setup(self) -> None:
        """Called before every run, for subclasses: feeds external sources. `StopIteration` ends the data."""

    def set_outputs(self, *outputs: Any) -> None:
        """The outputs of a pipeline defined in a `with pipe:` block."""
        self._recorded = list(outputs)
        self._body = self._replay
        self.kept.give_seeds(outputs)

    def _replay(self) -> Any:
        memo: dict[int, Any] = {}
        return tuple(DataNode(unwrapped(o, memo)) if isinstance(o, DataNode) else o for o in self._recorded or ())

    def build(self) -> None:
        """Checks the definition. Optional, and may be repeated: `run` does it."""
        if self._built:
            return
        if not self._max_batch_size:
            raise ValueError("A pipeline needs a batch_size: pass it to the constructor or to @pipeline_def")
        if self._device_id is not None:
            try:
                ndd.Device("gpu", self._device_id)
            except ValueError as error:  # DALI's type for it, here
                raise RuntimeError(f"Pipeline: device_id={self._device_id}: {error}") from None
        if self._body is None:
            self._body = self.define_graph
        if self._recorded is not None:
            self.kept.make_all()
        self._built = True
        if type(self).iter_setup is not Pipeline.iter_setup:
            self._find_sources()  # whose nodes it names

    def __enter__(self) -> Pipeline:
        _stack().append(self)
        self._recording = True
        self.kept.begin()
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _stack().pop()
        self._recording = False

    @staticmethod
    def current() -> Pipeline | None:
        """The pipeline whose body runs on this thread."""
        stack = _stack()
        return stack[-1] if stack else None

    @staticmethod
    def push_current(pipeline: Pipeline) -> None:
        """Makes a pipeline the current one of this thread; `with pipeline:` is the way that ends by itself."""
        pipeline.__enter__()

    @staticmethod
    def pop_current() -> None:
        """Ends what `push_current` began."""
        if _stack():
            _stack()[-1].__exit__(None, None, None)

    @staticmethod
    def required(path: str) -> Pipeline:
        """The current pipeline; RuntimeError outside of one."""
        found = Pipeline.current()
        if found is None:
            raise RuntimeError(
                f"fn.{path} belongs inside a pipeline: decorate the function with @ndd.pipeline_def, or call the "
                f"operator of ndd directly"
            )
        return found

    # ---- what the functions of `fn` need

    @property
    def kept(self) -> AllKept:
        """What the calls of the body keep between runs."""
        if self._kept is None:
            self._kept = AllKept(self._seed, self._restored)
        return self._kept

    def new_reader(self, kind: Any, positional: tuple[Any, ...], arguments: dict[str, Any], name: str | None) -> Any:
        """A reader of this pipeline."""
        if self.enable_checkpointing:  # it is part of what `shuffle_after_epoch` draws
            arguments = {**arguments, "enable_checkpointing": True}
        reader = kind(*positional, **arguments)
        self._readers[name or f"__{kind.__name__}_{len(self._readers)}"] = reader
        return reader

    def require_gpu(self, path: str) -> None:
        """RuntimeError if this is a pipeline on the CPU alone."""
        if self._device_id is None:
            raise RuntimeError(
                f"fn.{path} with a GPU device: the pipeline has device_id=None, so it runs on the CPU alone"
            )

    def note_source(self, source: ExternalSource) -> None:
        """Makes a source known to `feed_input` and to the batch size of later runs."""
        if source not in self._sources:
            self._sources.append(source)
            for data, layout in self._early.pop(source.name or "", ()):
                source.feed(data, layout)

    def data_of(self, source: ExternalSource) -> list[Any]:
        """This run's batches of a source, asked for once."""
        found = self._pending.get(id(source))
        if found is None:
            found = self._pending[id(source)] = source.next()
        size = found[0].batch_size
        if self._run_batch_size is None:
            self._run_batch_size = size
            if self._size_taken and size != self._max_batch_size:
                raise _BatchSizeChanged
        elif size != self._run_batch_size:
            raise RuntimeError(
                f"external_source {source.name or ''}: a batch of {size} samples beside one of {self._run_batch_size}: "
                "all sources of a run must agree"
            )
        return found

    def result(
        self,
        run: Callable[[dict[int, Any]], Any],
        outputs: int | Sequence[str] | None = None,
        inputs: tuple[Any, ...] = (),
        kept: Kept | None = None,
    ) -> Any:
        """The node (or nodes; a dict of them where `outputs` are names) of a call: computed now, or at every run while
        recording. `inputs` are its inputs, then its arguments by their names."""
        if self._recording or is_recorded(inputs):
            node = DataNode(step=run, inputs=inputs, kept=kept)
            if outputs is None or outputs == 1:
                return node
            if not isinstance(outputs, int):
                return {k: DataNode(step=lambda memo, k=k: node.evaluated(memo)[k], inputs=(node,)) for k in outputs}
            return tuple(
                DataNode(step=lambda memo, i=i: node.evaluated(memo)[i], inputs=(node,)) for i in range(outputs)
            )
        found = run({})
        if isinstance(found, dict):
            return {k: DataNode(v) for k, v in found.items()}
        if isinstance(found, tuple | list):
            return tuple(DataNode(v) for v in found)
        return None if found is None else DataNode(found)

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
        except _BatchSizeChanged:  # the first run, and operators before the source took the largest size for granted
            return self._run_body()

    def _run_body(self) -> tuple[TensorList, ...]:
        self.kept.begin()
        _stack().append(self)
        try:
            with self._in_context():
                lists = self._lists(self._body())  # type: ignore[misc]
        finally:
            _stack().pop()
        self._check(lists)
        return with_places(lists, taken_states(self.kept.objects)) if self.enable_checkpointing else lists

    def _in_context(self) -> Any:
        if self._context is None:
            threads = self._num_threads
            self._context = ndd.EvalContext(num_threads=threads, device_id=self._device_id)
        return self._context

    def _lists(self, outputs: Any) -> tuple[TensorList, ...]:
        self._names = list(outputs) if isinstance(outputs, dict) else None
        values = _as_tuple(outputs)
        self._output_count = len(values)
        found = []
        for value in values:
            batch = unwrapped(value, {}) if isinstance(value, DataNode) else value
            if not isinstance(batch, ndd.Batch):
                batch = as_constant(batch, self.current_batch_size)
            found.append(batch)
        return tuple([TensorList(batch.evaluate()) for batch in found])

    def _check(self, lists: tuple[TensorList, ...]) -> None:
        for what, expected, read in zip(
            ("type", "number of dimensions", "layout"),
            self._output_checks,
            (lambda t: t.dtype, lambda t: t.ndim(), lambda t: t.layout()),
            strict=True,
        ):
            if expected is None:
                continue
            wanted = expected if isinstance(expected, list | tuple) else [expected] * len(lists)
            if len(wanted) != len(lists):
                raise RuntimeError(
                    f"The pipeline has {len(lists)} outputs, {len(wanted)} are described by output {what}"
                )
            for i, (want, found) in enumerate(zip(wanted, lists, strict=True)):
                if what == "type" and want is not None:
                    want = ndd.dtype(want).type_id
                if want is not None and want != read(found):
                    raise RuntimeError(f"Output {i}: expected {what} {want}, got {read(found)}")

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
        self.use_as("run()")
        return self._next()

    def run_on(self, inputs: dict[str, Any]) -> tuple[TensorList, ...]:
        """As `run(name=batch, ...)`, whatever the prefetch depth. After an error nothing of the inputs is left."""
        self.use_as("run()")
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
        self.use_as("an iterator")
        return self._next()

    def _next(self) -> tuple[TensorList, ...]:
        self._schedule()
        return self._share()

    def use_as(self, use: str) -> None:
        """Notes who takes the outputs; RuntimeError if somebody else does already."""
        if self._use is None:
            self._use = use
        elif self._use != use:
            raise RuntimeError(f"The pipeline is used by {self._use} already: it cannot be used by {use} as well")

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
        name = getattr(data_node, "source_name", data_node)
        source = next((s for s in self._sources if s.name == name), None)
        if source is not None:
            source.feed(data, layout)
        elif unknown is not None and not self._started:
            self._early.setdefault(name, []).append((data, layout))
        else:
            known = sorted(s.name for s in self._sources if s.name)
            raise KeyError(f"The pipeline has no external_source named {name!r}; it has {known}")

    def input_feed_count(self, input_name: str) -> int:
        """How many batches must be fed to an external source before a run."""
        return 1

    def _find_sources(self) -> Exception | None:
        """Before the first run the sources are not known: the body is called once with every step only recorded.

        Returns what a body that needs values raised then: its first run will tell.
        """
        self.build()
        if self._searched or self._started or self._recorded is not None:
            return None
        self.kept.begin()
        _stack().append(self)
        self._recording = True
        try:
            outputs = _as_tuple(self._body())  # type: ignore[misc]
            self._output_count = len(outputs)
            self.kept.give_seeds(outputs)
            self.kept.make_all()
            self._searched = True
        except Exception as error:
            return error
        finally:
            self._recording = False
            _stack().pop()
        return None

    def interface(self) -> tuple[list[str], int]:
        """The names of the external sources that are fed by hand, and the number of outputs."""
        error = self._find_sources()
        by_hand = [s for s in self._sources if s.fed_by_hand]
        for i, source in enumerate(by_hand):
            source.name = source.name or f"input_{i}"
        count = len(self._recorded) if self._recorded is not None else self._output_count
        if count is None:
            raise RuntimeError(
                f"The pipeline's body needs values, so its inputs and outputs are not known before it runs: {error}"
            ) from error
        return [s.name for s in by_hand if s.name], count

    def schedule_run(self) -> None:
        """Starts a run; `share_outputs` gives what came of it."""
        self.use_as("schedule_run()")
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
        self.use_as("schedule_run()")
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


class _BatchSizeChanged(BaseException):
    """A source gave fewer samples than operators before it had taken for granted."""


def _end() -> Any:
    raise StopIteration


def _as_tuple(outputs: Any) -> tuple[Any, ...]:
    """What a body returned, as a tuple of outputs."""
    if isinstance(outputs, dict):
        return tuple(outputs.values())
    if isinstance(outputs, tuple):
        return outputs
    if isinstance(outputs, list) and any(isinstance(o, DataNode) for o in outputs):
        return tuple(outputs)
    return () if outputs is None else (outputs,)


def _stack() -> list[Pipeline]:
    stack = getattr(_local, "stack", None)
    if stack is None:
        stack = _local.stack = []
    return stack
