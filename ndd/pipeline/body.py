"""The function of a pipeline: traces it and computes its runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import ndd
from ndd.pipeline import current
from ndd.pipeline.checkpoints import taken_states, with_places
from ndd.pipeline.function_call import nodes_in
from ndd.pipeline.node import DataNode, as_constant, contains_node
from ndd.pipeline.operator_states import OperatorState, OperatorStates, check_names
from ndd.pipeline.options import PipelineOptions
from ndd.pipeline.outputs import TensorList
from ndd.pipeline.replay import Run
from ndd.pipeline.sources import ExternalSource
from ndd.pipeline.statistics import MemoryStatistics
from ndd.pipeline.trace import Step, Trace
from ndd.types import Constant

_UNDEFINED = object()


class PipelineBody(PipelineOptions):
    """The function of a `Pipeline` and its trace; `pipeline.py` runs it."""

    def _prepare(self) -> None:
        self._returned: Any = _UNDEFINED  # the result of the traced function
        self._body: Callable[[], Any] | None = None  # with `debug=True`: the function, for every batch
        self._tracing = False
        self._always: list[Step] = []  # steps that run although no output needs them
        self._trace: Trace | None = None
        self._live: Any = None  # the `Run` that is being computed
        self._states_cache: OperatorStates | None = None
        self._readers: dict[str, Any] = {}
        self._sources: list[ExternalSource] = []
        self._early: dict[str, list[Any]] = {}  # fed to sources before the first run
        self._read: dict[int, Any] = {}
        self._built = False
        self._context: Any = None
        self._names: list[str] | None = None
        self._started = False
        self._output_count: int | None = None
        self._statistics = MemoryStatistics()

    # ---- results

    @property
    def num_outputs(self) -> int:
        """The number of outputs that the function returns."""
        return self._interface()[1]

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
        expected = self._output_checks[which]
        return list(expected) if isinstance(expected, list | tuple) else [expected] * self.num_outputs

    # ---- how it is defined

    def define_graph(self) -> Any:
        """The function of a subclass: returns the outputs. It is called once, by `build`."""
        raise NotImplementedError(
            "Derive from Pipeline and define `define_graph`, or use `set_outputs` or @pipeline_def"
        )

    def iter_setup(self) -> None:
        """Called before every run, for subclasses: feeds external sources. `StopIteration` ends the data."""

    def set_outputs(self, *outputs: Any) -> None:
        """The outputs of a pipeline defined in a `with pipe:` block, or of nodes made outside of any pipeline.

        Args:
            *outputs: nodes, or numbers and arrays, which are the same in every run.
        """
        self._returned, self._built = outputs, False

    def add_sink(self, edge: Any) -> None:
        """Makes the step of a node run although no output needs it.

        Args:
            edge: a node that `fn` made.
        """
        self._always += [node._step for node in nodes_in(edge) if node._step is not None]

    def _trace_body(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> None:
        """Calls the function that makes the outputs once: the calls in it become the steps of every run.

        Args:
            function: gives the outputs, as nodes.
            *arguments, **named: arguments of the function.
        """
        self._always = []
        with self:
            self._returned, self._built = function(*arguments, **named), False

    def _run_body(self, function: Callable[[], Any]) -> None:
        """Makes the function that makes the outputs run for every batch.

        Args:
            function: takes nothing and gives the outputs, as values.
        """
        self._body = function

    def build(self) -> None:
        """Checks the definition, and makes readers and sources. Optional, since `run` does it; may be repeated."""
        if self._built:
            return
        if self.max_batch_size < 1:
            raise ValueError(f"Pipeline: expected a batch_size of at least 1, got {self.max_batch_size}")
        if self._device_id is not None:
            try:
                ndd.Device("gpu", self._device_id)
            except ValueError as error:  # DALI's type for it, here
                raise RuntimeError(f"Pipeline: device_id={self._device_id}: {error}") from None
        if self._body is None:
            self._make_states(self._traced())
        self._built = True

    def _traced(self) -> Trace:
        """The steps that the outputs depend on."""
        if self._returned is _UNDEFINED:
            self._trace_body(self.define_graph)
        trace = Trace([value for value in self._output_values() if isinstance(value, DataNode)], self._always)
        check_names(trace.call_states)
        return trace

    def _make_states(self, trace: Trace) -> None:
        with current.running(self):
            self._states.give_seeds(trace.call_states)
            for step, _ in trace.steps:
                if step.call_state is not None:
                    self._states.of(step.call_state)
        for reader in self._readers.values():
            reader.get_metadata()  # the reader checks its files now and raises errors about them
        self._trace = trace

    def _output_values(self) -> tuple[Any, ...]:
        """The outputs as they were returned: nodes, numbers and arrays. NotImplementedError if there are none, TypeError for
        other values."""
        outputs = _as_tuple(self._returned)
        for i, value in enumerate(outputs):
            check_output(i, value)
        self._names = list(self._returned) if isinstance(self._returned, dict) else None
        self._output_count = len(outputs)
        return outputs

    def __enter__(self) -> Any:
        current.pipelines().append(self)
        self._tracing = True
        self._states.begin()
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        current.pipelines().pop()
        self._tracing = False

    @staticmethod
    def current() -> Any:
        """The pipeline whose function runs on this thread."""
        return current.pipeline()

    @staticmethod
    def push_current(pipeline: Any) -> None:
        """Makes a pipeline the current one of this thread; `with pipeline:` also ends it.

        Args:
            pipeline: the pipeline; `pop_current` takes it off.
        """
        pipeline.__enter__()

    @staticmethod
    def pop_current() -> None:
        """Ends what `push_current` began."""
        if current.pipelines():
            current.pipelines()[-1].__exit__(None, None, None)

    # ---- for the functions of `fn`

    @property
    def _states(self) -> OperatorStates:
        """The state that calls keep between runs."""
        if self._states_cache is None:
            self._states_cache = OperatorStates(self._seed, self._restored)
        return self._states_cache

    def _new_reader(self, kind: Any, positional: tuple[Any, ...], arguments: dict[str, Any], name: str | None) -> Any:
        """A reader of this pipeline.

        Args:
            kind: the class of the reader.
            positional, arguments: the arguments of the call.
            name: the name under which `reader_meta` lists it; None: it gets one.
        """
        if self.enable_checkpointing:  # `shuffle_after_epoch` depends on it
            arguments = {**arguments, "enable_checkpointing": True}
        reader = kind(*positional, **arguments)
        self._readers[name or f"__{kind.__name__}_{len(self._readers)}"] = reader
        return reader

    def _new_source(self, source: ExternalSource) -> ExternalSource:
        """A source of this pipeline: `feed_input` knows it, and the batch size of runs.

        Args:
            source: the source.
        """
        self._sources.append(source)
        for data, layout in self._early.pop(source.name or "", ()):
            source.feed(data, layout)
        return source

    def _generator(self, name: str, seed: int | None) -> Callable[[], ndd.random.RNG]:
        """The function that gives each run the generator of a call of that name, which draws without a generator of its
        own.

        Args:
            name: of the operator that draws.
            seed: the seed of this call; None: derived from the pipeline's seed.
        """
        call_state = OperatorState(f"random {name}", lambda _, seed: ndd.random.RNG(seed), seeded=True, seed=seed)
        return call_state if self._tracing else self._states.known_here(call_state)

    def _batch_of(self, reader: Any) -> Any:
        """This run's batch of a reader. If Ctrl-C ends the run, the next run gets it.

        Args:
            reader: a reader of this pipeline.
        """
        key = id(reader)
        if key not in self._read:
            self._read[key] = reader.__call__(batch_size=self.max_batch_size)  # reader() would be one more call
        return self._read[key]

    # ---- one run

    def _compute(self) -> tuple[TensorList, ...]:
        run = self._live = Run(self)
        try:
            with current.running(self), self._in_context():
                if self._trace is not None:
                    run.ask(self._sources)
                    run.replay(self._trace, self.enable_memory_stats)
                else:
                    self._states.begin()
                    self._returned = self._body()  # type: ignore[misc]
                lists = self._lists(run)
                if self.enable_memory_stats:
                    self._statistics.measure(run)
        finally:
            self._live = None
        self._check(lists)
        return with_places(lists, taken_states(self._states.objects)) if self.enable_checkpointing else lists

    def _leave_all(self, outer: list[Any]) -> None:
        """Leaves everything that an interrupted run has entered; the bodies `outer` were entered before.

        Args:
            outer: the pipelines that were entered before this run.
        """
        current.pipelines()[:] = outer
        context, self._context = self._context, None
        while context is not None and ndd.EvalContext.current() is context:
            context.__exit__(None, None, None)

    def _in_context(self) -> Any:
        if self._context is None:
            threads = self._num_threads
            self._context = ndd.EvalContext(num_threads=threads, device_id=self._device_id)
        return self._context

    def _lists(self, run: Run) -> tuple[TensorList, ...]:
        lists = []
        for value in self._output_values():
            batch = run.of(value) if isinstance(value, DataNode) else value
            lists.append(batch if isinstance(batch, ndd.Batch) else as_constant(batch, run.batch_size))
        return tuple([TensorList(batch.evaluate()) for batch in lists])

    def _check(self, lists: tuple[TensorList, ...]) -> None:
        for label, expected, read in zip(
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
                    f"The pipeline has {len(lists)} outputs, {len(wanted)} are described by output {label}"
                )
            for i, (want, output) in enumerate(zip(wanted, lists, strict=True)):
                if label == "type" and want is not None:
                    want = ndd.dtype(want).type_id
                if want is not None and want != read(output):
                    raise RuntimeError(f"Output {i}: expected {label} {want}, got {read(output)}")

    def _recorded_outputs(self, asking: str) -> tuple[Any, ...]:
        """The outputs as recorded nodes, which know the calls that made them. RuntimeError with `debug=True`.

        Args:
            asking: the name of the method that asks, for the error.
        """
        self._refuse_debug(asking)
        self._traced()
        with current.running(self):
            self._tracing = True
            try:
                return tuple([v if isinstance(v, DataNode) else ndd.fn.copy(v) for v in self._output_values()])
            finally:
                self._tracing = False

    def _refuse_debug(self, asking: str) -> None:
        if self._body is not None:
            raise RuntimeError(
                f"Pipeline.{asking}: with debug=True the function is called for every batch, so the calls that it will make are "
                "unknown: make the pipeline without it"
            )

    def _interface(self) -> tuple[list[str], int]:
        """The names of the external sources that are fed by hand, and the number of outputs."""
        self.build()
        if self._output_count is None:
            self._refuse_debug("interface")
        by_hand = [s for s in self._sources if s.fed_by_hand]
        for i, source in enumerate(by_hand):
            source.name = source.name or f"input_{i}"
        return [s.name for s in by_hand if s.name], self._output_count or 0


def _as_tuple(outputs: Any) -> tuple[Any, ...]:
    """The outputs that a body returned, as a tuple. NotImplementedError, as DALI raises it, if it returned none."""
    if isinstance(outputs, dict):
        outputs = tuple(outputs.values())
    elif isinstance(outputs, list) and any(isinstance(o, DataNode) for o in outputs):
        outputs = tuple(outputs)
    if outputs is None or (isinstance(outputs, tuple) and not outputs):
        raise NotImplementedError(
            "The pipeline has no outputs: return them from its function or `define_graph`, or give them to `set_outputs`"
        )
    return outputs if isinstance(outputs, tuple) else (outputs,)


def check_output(i: int, value: Any) -> None:
    """Raises TypeError for a value that cannot be an output of a pipeline."""
    if isinstance(value, DataNode | Constant | ndd.Batch | ndd.Tensor):
        return
    if isinstance(value, list | tuple) and contains_node(value):
        raise TypeError(
            f"Illegal pipeline output type. The output {i} contains a nested `DataNode`, in a {type(value).__name__}: return the "
            "nodes themselves (`*nodes`)"
        )
    if value is None or isinstance(value, str | bytes | dict | set) or np.asarray(value).dtype.kind not in "biuf":
        raise TypeError(
            f"Illegal output type. The output {i} is a `{type(value)}`: expected a node, a number, a list of numbers or an array"
        )
