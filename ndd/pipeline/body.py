"""The body of a pipeline: how it is defined, what its calls need, and what one run of it gives."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import ndd
from ndd.pipeline.call_states import CallStates
from ndd.pipeline.checkpoints import taken_states, with_places
from ndd.pipeline.conditions import branch, parted, recorded_branches
from ndd.pipeline.node import DataNode, as_constant, contains_node, is_recorded, nodes_in
from ndd.pipeline.options import PipelineOptions
from ndd.pipeline.outputs import TensorList
from ndd.pipeline.sources import ExternalSource
from ndd.pipeline.statistics import MemoryStatistics
from ndd.types import Constant

_local = threading.local()


class PipelineBody(PipelineOptions):
    """What a `Pipeline` knows of its body; `pipeline.py` runs it."""

    def _prepare(self) -> None:
        self._body: Callable[[], Any] | None = None
        self._states: CallStates | None = None
        self._readers: dict[str, Any] = {}
        self._sources: list[ExternalSource] = []
        self._pending: dict[int, list[Any]] = {}
        self._read: dict[int, Any] = {}
        self._recorded: list[Any] | None = None
        self._recording = False
        self._built = False
        self._run_batch_size: int | None = None
        self._size_taken = False
        self._context: Any = None
        self._names: list[str] | None = None
        self._memo: dict[int, Any] = {}  # what recorded steps gave in this run
        self._early: dict[str, list[Any]] = {}
        self._searched = False
        self._started = False
        self._output_count: int | None = None
        self.statistics = MemoryStatistics()

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
        """The outputs of a pipeline defined in a `with pipe:` block, or of nodes made outside of any pipeline."""
        self._recorded = list(outputs)
        self._body = lambda: tuple(self._recorded or ())
        self.states.give_seeds(outputs)

    def set_body(self, function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        """The function that makes the outputs, and its arguments. Nodes among these were made outside of any pipeline."""

        def now(value: Any) -> Any:
            pipeline: Any = PipelineBody.current()
            outside = isinstance(value, DataNode) and value.recorded and not pipeline._recording
            return DataNode(value.evaluated(pipeline._memo)) if outside else value

        self._body = lambda: function(*[now(v) for v in arguments], **{k: now(v) for k, v in named.items()})

    def build(self) -> None:
        """Checks the definition. Optional, and may be repeated: `run` does it."""
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
            self._body = self.define_graph
        if self._recorded is not None:
            for i, value in enumerate(_as_tuple(tuple(self._recorded))):
                check_output(i, value)
            with _running(self):
                self.states.make_all()
        self._built = True
        if type(self).iter_setup is not PipelineBody.iter_setup:
            self._find_sources()  # whose nodes it names

    def __enter__(self) -> Any:
        _stack().append(self)
        self._recording = True
        self.states.begin()
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _stack().pop()
        self._recording = False

    @staticmethod
    def current() -> Any:
        """The pipeline whose body runs on this thread."""
        stack = _stack()
        return stack[-1] if stack else None

    @staticmethod
    def push_current(pipeline: Any) -> None:
        """Makes a pipeline the current one of this thread; `with pipeline:` is the way that ends by itself."""
        pipeline.__enter__()

    @staticmethod
    def pop_current() -> None:
        """Ends what `push_current` began."""
        if _stack():
            _stack()[-1].__exit__(None, None, None)

    @staticmethod
    def required(path: str) -> Any:
        """The current pipeline; RuntimeError outside of one."""
        found = PipelineBody.current()
        if found is None:
            raise RuntimeError(
                f"fn.{path} belongs inside a pipeline: decorate the function with @ndd.pipeline_def, or call the "
                "operator of ndd directly"
            )
        return found

    # ---- what the functions of `fn` need

    @property
    def states(self) -> CallStates:
        """The states of the calls of the body."""
        if self._states is None:
            self._states = CallStates(self._seed, self._restored)
        return self._states

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
                raise BatchSizeChanged
        elif size != self._run_batch_size:
            raise RuntimeError(
                f"external_source {source.name or ''}: a batch of {size} samples beside one of {self._run_batch_size}: "
                "all sources of a run must agree"
            )
        return found

    def batch_of(self, reader: Any) -> Any:
        """This run's batch of a reader. If Ctrl-C ends the run, the next run has it."""
        key = id(reader)
        if key not in self._read:
            self._read[key] = reader.__call__(batch_size=self.max_batch_size)  # reader() would be one call more
        return self._read[key]

    def result(
        self,
        run: Callable[[dict[int, Any]], Any],
        outputs: int | Sequence[str] | None = None,
        inputs: tuple[Any, ...] = (),
        state: Any = None,
    ) -> Any:
        """The node (or nodes; a dict of them where `outputs` are names) of a call: computed now, or at every run while
        recording. `inputs` are its inputs, then its arguments by their names."""
        if self._recording or is_recorded(inputs):
            found = recorded(run, outputs, inputs, state)
            return found if nodes_in(inputs) else parted(found, None)  # without inputs a call is for all samples
        found = run({})
        if isinstance(found, dict):
            return {k: DataNode(v) for k, v in found.items()}
        if isinstance(found, tuple | list):
            return [DataNode(v) for v in found]
        return None if found is None else DataNode(found)

    # ---- one run

    def _run_body(self) -> tuple[TensorList, ...]:
        self.states.begin()
        self._memo = {}
        with _running(self), self._in_context():
            lists = self._lists(self._body())  # type: ignore[misc]
            self.states.pass_by(self)
            if self.enable_memory_stats:
                self.statistics.measure(self._memo)
        self._check(lists)
        return with_places(lists, taken_states(self.states.objects)) if self.enable_checkpointing else lists

    def entered(self) -> int:
        """How many bodies run on this thread, one within the other."""
        return len(_stack())

    def leave_all(self, outer: int) -> None:
        """Leaves what a run has entered and was interrupted before it left; `outer` bodies were entered before."""
        del _stack()[outer:]
        context, self._context = self._context, None
        while context is not None and ndd.EvalContext.current() is context:
            context.__exit__(None, None, None)

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
        for i, value in enumerate(values):
            check_output(i, value)
            batch = value.evaluated(self._memo) if isinstance(value, DataNode) else value
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

    def _find_sources(self) -> Exception | None:
        """Before the first run the sources are not known: the body is called once with every step only recorded.

        Returns what a body that needs values raised then: its first run will tell.
        """
        self.build()
        if self._searched or self._started or self._recorded is not None:
            return None
        self.states.begin()
        self._recording = True
        try:
            with _running(self), recorded_branches():
                outputs = _as_tuple(self._body())  # type: ignore[misc]
                self._output_count = len(outputs)
                self.states.give_seeds(outputs)
                self.states.make_all()
            self._searched = True
        except Exception as error:
            return error
        finally:
            self._recording = False
        return None

    def recorded_outputs(self, asking: str) -> tuple[Any, ...]:
        """The outputs as recorded nodes, which know the calls behind them. RuntimeError for a body that needs values.

        Args:
            asking: the name of the method that asks, for the error.
        """
        self.build()
        if self._recorded is not None:
            return tuple(self._recorded)
        shadow = copy.copy(self)  # the pipeline itself may be running
        shadow._prepare()
        shadow._recording = True
        try:
            with _running(shadow):
                outputs = _as_tuple(self._body())  # type: ignore[misc]
        except Exception as error:
            raise RuntimeError(
                f"Pipeline.{asking}: the pipeline's body needs values (as `if node:` does), so it runs anew for every batch and "
                f"has no graph: keep the function that makes the pipeline, and its place: checkpoint(). It raised: {error}"
            ) from error
        with _running(shadow):
            return tuple(v if isinstance(v, DataNode) else ndd.fn.copy(v) for v in outputs)

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


class BatchSizeChanged(BaseException):
    """A source gave fewer samples than operators before it had taken for granted."""


def _as_tuple(outputs: Any) -> tuple[Any, ...]:
    """What a body returned, as a tuple of outputs. NotImplementedError, DALI's, if these are none."""
    if isinstance(outputs, dict):
        outputs = tuple(outputs.values())
    elif isinstance(outputs, list) and any(isinstance(o, DataNode) for o in outputs):
        outputs = tuple(outputs)
    if outputs is None or (isinstance(outputs, tuple) and not outputs):
        raise NotImplementedError(
            "The pipeline has no outputs: return them from its function or `define_graph`, or give them to `set_outputs`"
        )
    return outputs if isinstance(outputs, tuple) else (outputs,)


def recorded(run: Callable[[dict[int, Any]], Any], outputs: Any, inputs: tuple[Any, ...], state: Any) -> Any:
    """The node, the list of nodes or the dict of them of a call that runs later."""
    node = DataNode(step=run, inputs=inputs, state=state)
    if outputs is None or outputs == 1:
        return node
    if not isinstance(outputs, int):
        return {k: DataNode(step=lambda memo, k=k: node.evaluated(memo)[k], inputs=(node,)) for k in outputs}
    return [DataNode(step=lambda memo, i=i: node.evaluated(memo)[i], inputs=(node,)) for i in range(outputs)]


def check_output(i: int, value: Any) -> None:
    """TypeError for what is no output of a pipeline."""
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


class _running:
    """The pipeline is the current one of this thread. (No generator, whose `finally` may run later, when another run has begun:
    what Ctrl-C leaves is taken away by `leave_all`.)"""

    def __init__(self, pipeline: PipelineBody):
        self._pipeline = pipeline

    def __enter__(self) -> None:
        stack = _stack()
        stack += [self._pipeline]

    def __exit__(self, *_: object) -> None:
        _stack().pop()


def _stack() -> list[Any]:
    stack: list[Any] | None = getattr(_local, "stack", None)
    if stack is None:
        stack = _local.stack = []
    return stack
