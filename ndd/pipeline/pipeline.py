"""`Pipeline`: a function of operators as steps that are replayed for every batch, as in DALI's pipeline mode."""

from __future__ import annotations

import functools
import sys
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ndd.atomic_file import atomic_file
from ndd.pipeline import current
from ndd.pipeline.body import PipelineBody
from ndd.pipeline.checkpoints import first_states, with_iterator, written
from ndd.pipeline.graph import dot_text
from ndd.pipeline.node import DataNode
from ndd.pipeline.outputs import TensorList
from ndd.pipeline.serialized import definition_in, definition_text, outputs_of
from ndd.profiling import recorder
from ndd.read_ahead import ReadAhead
from ndd.types import PipelineAPIType

_USES = {
    PipelineAPIType.BASIC: "run()",
    PipelineAPIType.ITERATOR: "an iterator",
    PipelineAPIType.SCHEDULED: "schedule_run()",
}


class Pipeline(PipelineBody):
    """A function of operators, called once, and replayed for every batch.

    The function is called when the pipeline is made (`define_graph` of a subclass: when it is built). Its calls of `fn` are
    recorded with their arguments; each run computes these steps for a new batch. So the function sees no values: mistakes in
    calls are reported where the pipeline is made, and mistakes in data name the line of the step. Steps that no output
    depends on do not run, except Python functions (`fn.python_function`) and steps with `preserve=True`. With `debug=True`
    (of `pipeline_def`) the function runs for every batch instead, with values.

    Args:
        batch_size: samples in a batch (the largest, where sources give fewer).
        num_threads: threads of CPU operators; default `ndd.get_num_threads()`.
        device_id: the GPU; None makes a pipeline on the CPU alone.
        seed: for readers and random operators that have no seed of their own; they give the same as in DALI's pipelines.
            Default: a new one each time.
        prefetch_queue_depth: the number of runs that a background thread prepares ahead; 1 runs on the caller's thread, when
            asked, as does any pipeline while a debugger traces the program (`sys.gettrace()`). For a dict (`{"cpu_size":
            ..., "gpu_size": ...}`) the larger number counts.
        exec_pipelined, exec_async: False runs nothing ahead.
        output_dtype, output_ndim, output_layout: expected properties of the outputs, one for each or one for all; checked.
        enable_checkpointing: `checkpoint()` can be called; batches carry the state after them.
        checkpoint: a result of `checkpoint()`, from which the pipeline continues.
        enable_memory_stats: `executor_statistics()` has numbers.
        bytes_per_sample, set_affinity, max_streams, default_cuda_stream_priority, exec_dynamic,
            experimental_exec_dynamic, stream_policy, concurrency: accepted and stored as attributes without effect.
        py_num_workers, py_start_method, py_callback_pickler: likewise, since Python sources run on the thread that runs the
            pipeline.

    Raises ValueError for a batch size below 1 or none, TypeError for numbers that are not integers, KeyError for a
    dict `prefetch_queue_depth` without its two keys, and RuntimeError for a GPU that is not there: methods that
    build the pipeline do so when first called. Methods of different ways to run it (`run`, `schedule_run`, an
    iterator) exclude each other by RuntimeError.

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
        self._places: str | None = None  # after the last run whose outputs were returned
        self._scheduled = 0  # runs that were scheduled and not returned yet
        self._filled = False  # the first of an epoch was scheduled, and with it as many as are prefetched
        self._ahead: ReadAhead[Any] | None = None
        self._out: Any = None  # the outputs of a run until they are returned
        self._ended = False
        self._use: PipelineAPIType | None = None
        self._checks_use = True

    # ---- running

    def _once(self) -> tuple[TensorList, ...]:
        """The outputs of one batch."""
        self.build()
        self.iter_setup()
        outer = [*current.pipelines()]
        try:
            outputs = self._compute()
        except Exception:
            self._read = {}
            raise
        except BaseException:  # Ctrl-C, perhaps where a `with` block was about to be left
            self._leave_all(outer)
            raise
        self._read = {}
        return outputs

    def _runs_ahead(self) -> bool:
        asynchronous = self.exec_pipelined and self.exec_async and self._depth > 1 and sys.gettrace() is None
        return asynchronous and self._body is None and not any(s.fed_by_hand for s in self._sources)

    def run(self, cuda_stream: Any = None, /, **inputs: Any) -> tuple[TensorList, ...]:
        """The outputs of the next batch. StopIteration at the end of the data, until `reset`.

        Args:
            inputs: batches for external sources, by name.
            cuda_stream: no effect.

        Raises RuntimeError for batches by name where runs are made ahead, StopIteration at the end of an epoch.
        """
        if inputs:
            if self._depth > 1 and self.exec_pipelined:
                raise RuntimeError("run(name=batch) needs prefetch_queue_depth=1 or exec_pipelined=False")
            self._feed_all(inputs)
        self._use_as(PipelineAPIType.BASIC)
        return self._next()

    def _run_on(self, inputs: dict[str, Any]) -> tuple[TensorList, ...]:
        """As `run(name=batch, ...)`, whatever the prefetch depth. After an error the inputs are dropped.

        Args:
            inputs: batches for external sources, by name.
        """
        self._use_as(PipelineAPIType.BASIC)
        try:
            self._feed_all(inputs)
            return self._next()
        finally:
            for source in self._sources:
                source.queue.clear()

    def _feed_all(self, inputs: dict[str, Any]) -> None:
        for name, data in inputs.items():
            self.feed_input(name, data)

    def _iterate(self) -> tuple[TensorList, ...]:
        """As `run`, for iterators: a pipeline cannot be used by an iterator and run by hand as well."""
        self._use_as(PipelineAPIType.ITERATOR)
        return self._next()

    def _next(self) -> tuple[TensorList, ...]:
        self._schedule()
        return self._share()

    def _use_as(self, use: PipelineAPIType) -> None:
        """Records how the pipeline is used; RuntimeError if it is used in another way already.

        Args:
            use: how they are taken from now on.
        """
        if self._use is None:
            self._use = use
        elif self._use != use and self._checks_use:
            raise RuntimeError(
                f"Mixing pipeline API type: the pipeline is used by {_USES[self._use]} already, so not by {_USES[use]} as well"
            )

    def enable_api_check(self, enable: bool) -> None:
        """Whether `run()`, an iterator and `schedule_run()` exclude each other, as they do by default.

        Args:
            enable: False lets the three ways be mixed.
        """
        self._checks_use = bool(enable)

    def release_outputs(self) -> None:
        """Does nothing: outputs own their memory."""
        self._use_as(PipelineAPIType.SCHEDULED)

    def feed_input(
        self, data_node: Any, data: Any, layout: str | None = None, cuda_stream: Any = None, use_copy_kernel: Any = None
    ) -> None:
        """Queues a batch for an external source, by its name or its node.

        Args:
            data: an array `[N, ...]`, a list of arrays or tensors, an `ndd.Batch`, or an output of a pipeline.
            layout: the layout of a sample.
            cuda_stream, use_copy_kernel: no effect.
            data_node: the name of the source, or its node.

        Raises KeyError for an unknown source, TypeError for anything but a name or a node.
        """
        self.build()
        if not isinstance(data_node, str | DataNode):
            raise TypeError(
                f"Pipeline.feed_input: expected the name of an external_source or its node, got {data_node!r}"
            )
        step = None if isinstance(data_node, str) else data_node._step
        if (
            step is not None
            and step.call_state is not None
            and step.call_state.is_source
            and step.call_state in self._states
        ):
            self._states.of(step.call_state).feed(data, layout)
        elif self._body is not None and not self._started and isinstance(data_node, str):
            self._early.setdefault(data_node, []).append((data, layout))
        else:
            self._source_named(data_node if isinstance(data_node, str) else data_node.name).feed(data, layout)

    def input_feed_count(self, input_name: str) -> int:
        """The number of batches that an external source is fed before the first run: the prefetch depth, as in DALI.

        One is enough here: pipelines that are fed by hand run nothing ahead. The others wait for later runs.

        Args:
            input_name: the name of an external source.

        Raises KeyError for an unknown source.
        """
        self.build()
        if self._body is None:
            self._source_named(input_name)
        return self._depth

    def _source_named(self, name: Any) -> Any:
        match = next((source for source in self._sources if source.name == name), None)
        if match is None:
            known = sorted(source.name for source in self._sources if source.name)
            raise KeyError(f"The pipeline has no external_source named {name!r}; it has {known}")
        return match

    def schedule_run(self) -> None:
        """Starts a run; `share_outputs` returns its outputs. The first one starts as many as are prefetched."""
        self._use_as(PipelineAPIType.SCHEDULED)
        self._schedule()

    def _schedule(self) -> None:
        self.build()
        self._scheduled += 1 if self._filled or not self.exec_pipelined else self._depth
        self._started = self._filled = True

    def _run_now(self) -> Any:
        """Computes the first run on the caller's thread; later runs are prepared ahead."""
        if self._ahead is not None:
            self._out = self._ahead.next()
            return self._out
        self._out = self._once()
        if self._runs_ahead():
            work = functools.partial(_next_run, weakref.ref(self))
            self._ahead = ReadAhead(work, self._depth, "pipeline", owner=self, exit_seconds=10.0)
            self._ahead.begin()
        return self._out

    def share_outputs(self, cuda_stream: Any = None) -> tuple[TensorList, ...]:
        """The outputs of the oldest scheduled run.

        Args:
            cuda_stream: no effect.

        Raises StopIteration at the end of an epoch, and if no run is scheduled.
        """
        self._use_as(PipelineAPIType.SCHEDULED)
        if not self._scheduled:
            raise StopIteration
        return self._share()

    def _share(self) -> tuple[TensorList, ...]:
        """The outputs of the oldest scheduled run. If Ctrl-C keeps them from the caller, the next call returns them: nothing
        is called between the step that hands them over and the return."""
        self._scheduled -= 1
        try:
            if self._ended:
                raise StopIteration
            if self._out is None:
                if recorder.profiles:
                    recorder.deliver(self._run_now)
                else:
                    self._run_now()
        except StopIteration:
            self._ended, self._scheduled = True, 0
            raise
        outputs: Any = self._out
        places = getattr(outputs, "places", None)
        self._out, self._places = None, places
        return outputs

    def checkpoint(self, filename: str | None = None, iterator: dict[str, Any] | None = None) -> bytes:
        """The state of the readers, random generators and sources after the last outputs returned, as text in bytes.

        `Pipeline(..., checkpoint=that)` goes on from there, if its body makes the same readers, generators and sources in
        the same order. Needs `enable_checkpointing=True`. (DALI's own checkpoints are of another format.)

        Args:
            filename: also written there; the file appears whole or not at all.
            iterator: the position of an iterator over the pipeline as plain values, given by its `checkpoints()`.

        Raises RuntimeError without `enable_checkpointing=True`.
        """
        if not self.enable_checkpointing:
            raise RuntimeError("Pipeline.checkpoint: make the pipeline with enable_checkpointing=True")
        places = self._places if self._places is not None else first_states(self._restored)
        return written(with_iterator(places, iterator), filename)

    def outputs(self, cuda_stream: Any = None) -> tuple[TensorList, ...]:
        """The outputs of the oldest scheduled run.

        Args:
            cuda_stream: no effect.

        Raises StopIteration at the end of an epoch, and if no run is scheduled.
        """
        return self.share_outputs()

    def reset(self) -> None:
        """Begins again after the end of the data."""
        if self._ended:
            self._ended = self._filled = False
            if self._ahead is not None:
                self._ahead.stop()
                self._ahead.join()
                self._ahead = None
            for source in self._sources:
                source.reset()

    def empty(self) -> bool:
        """Whether no run is scheduled."""
        return not self._scheduled

    # ---- readers

    def reader_meta(self, name: str | None = None) -> Any:
        """The metadata of the readers: a dict for reader `name`, or a dict of such dicts by name.

        Args:
            name: of a reader; default: all of them.

        Raises RuntimeError for an unknown reader.
        """
        self.build()
        if name is None:
            return {k: r.get_metadata() for k, r in self._readers.items()}
        if name not in self._readers:
            raise RuntimeError(f"The pipeline has no reader named {name!r}; it has {sorted(self._readers)}")
        meta = dict(self._readers[name].get_metadata())
        return {k: int(v) for k, v in meta.items()}

    def epoch_size(self, name: str | None = None) -> Any:
        """The (padded) number of samples of an epoch, by reader name.

        Args:
            name: of a reader; default: a dict of all readers.
        """
        if name is not None:
            return self.reader_meta(name)["epoch_size_padded"]
        return {k: int(m["epoch_size_padded"]) for k, m in self.reader_meta().items()}

    # ---- the definition

    def serialize(self, define_graph: Callable[[], Any] | None = None, filename: Any = None) -> bytes:
        """The definition of the pipeline as JSON text: the calls that its outputs depend on, and the constructor's arguments.

        A pipeline that `deserialize` makes from it gives the same outputs from the first run on, if it has a `seed`. The
        text contains neither the position in the data (`checkpoint()` has that) nor sources: feed each `external_source` by
        its name. (DALI's own text is of another format.)

        Args:
            define_graph: the body, in place of the pipeline's own.
            filename: also written there; the file appears whole or not at all.

        RuntimeError for functions and objects of Python among the arguments, for nodes of `auto_aug` (DALI writes these), and with
        `debug=True`.

        Raises TypeError for a `define_graph` that is not a function.

        >>> import ndd
        >>> pipe = ndd.pipeline_def(lambda: ndd.fn.random.uniform(range=[0, 1]) * 100)(batch_size=2, seed=1)
        >>> again = ndd.Pipeline.deserialize(pipe.serialize())
        >>> pipe.run()[0].as_array().tolist() == again.run()[0].as_array().tolist()
        True
        """
        if define_graph is not None:
            if not callable(define_graph):
                hint = " Did you mean `serialize(filename=...)`?" if isinstance(define_graph, str) else ""
                raise TypeError(f"Pipeline.serialize: define_graph: expected a function, got {define_graph!r}.{hint}")
            self._trace_body(define_graph)
        data = definition_text(self, self._recorded_outputs("serialize")).encode()
        if filename is not None:
            with atomic_file(filename) as file:
                file.write(data)
        return data

    @classmethod
    def deserialize(
        cls, serialized_pipeline: bytes | str | None = None, filename: Any = None, **options: Any
    ) -> Pipeline:
        """Builds a pipeline from the text of `serialize`, or from a file with it.

        Args:
            serialized_pipeline: the text; or
            filename: the file.
            options: arguments of the constructor, in place of the stored ones.

        ValueError unless exactly one of the two is given; RuntimeError for another kind of text.
        """
        if (serialized_pipeline is None) == (filename is None):
            raise ValueError("Pipeline.deserialize: expected either serialized_pipeline or filename")
        definition = definition_in(Path(filename).read_bytes() if filename is not None else serialized_pipeline)
        pipeline = cls(**{**definition["options"], **options})
        pipeline._read_definition(definition)
        return pipeline

    def deserialize_and_build(self, serialized_pipeline: bytes | str) -> None:
        """Replaces this pipeline's definition by the one in a text of `serialize`. Its arguments stay; without a seed of its
        own it takes the stored one.

        Args:
            serialized_pipeline: a result of ndd's `serialize`. ValueError for anything else.

        Raises RuntimeError for what `serialize` did not give.
        """
        definition = definition_in(serialized_pipeline)
        if self._seed is None:
            self._seed = definition["options"].get("seed")
        self._max_batch_size = self._max_batch_size or definition["options"]["batch_size"]
        self._read_definition(definition)

    def _read_definition(self, definition: dict[str, Any]) -> None:
        self._trace_body(lambda: tuple(outputs_of(definition)))
        self.build()

    def save_graph_to_dot_file(
        self, filename: Any, *, show_tensors: bool = False, show_ids: Any = None, use_colors: bool = False
    ) -> None:
        """Writes the graph of the pipeline for Graphviz: every call by its name, and the paths of values.

        Args:
            filename: of the file.
            show_tensors: the values are boxes between the calls, and edges bear the places of outputs and inputs.
            show_ids: deprecated, no effect.
            use_colors: calls on the CPU are blue, those on a GPU green.

        RuntimeError for pipelines without a graph, see `serialize`; Python functions are allowed.
        """
        if show_ids is not None:
            warnings.warn(
                "save_graph_to_dot_file: show_ids is deprecated, it has no effect", DeprecationWarning, stacklevel=2
            )
        text = dot_text(self._recorded_outputs("save_graph_to_dot_file"), show_tensors, use_colors)
        with atomic_file(filename) as file:
            file.write(text.encode())

    def executor_statistics(self) -> dict[str, dict[str, list[int]]]:
        """The sizes of the results of each call, by its name after the device (`"CPU_images"`), if the pipeline has
        `enable_memory_stats=True`; else an empty dict. (In DALI it also needs `exec_dynamic=False`.)

        `real_memory_size` are bytes of a batch and `max_real_memory_size` of a sample, of each output, the largest of all runs
        so far. `reserved_memory_size` and `max_reserved_memory_size` are the same here: nothing is kept in reserve for a call.
        """
        self.build()
        return {
            name: {kind: list(sizes) for kind, sizes in row.items()} for name, row in self._statistics.sizes.items()
        }

    @property
    def is_restored_from_checkpoint(self) -> bool:
        """Whether it was made with `checkpoint=`."""
        return self._restored is not None

    @property
    def output_names(self) -> list[str] | None:
        """The names of the outputs, if the body gives a dict."""
        return self._names


def _next_run(reference: weakref.ref[Pipeline]) -> tuple[TensorList, ...]:
    """The outputs of the next run, if the pipeline still exists."""
    pipeline = reference()
    if pipeline is None:
        raise StopIteration
    return pipeline._once()
