"""`Pipeline` and `pipeline_def`: code written for DALI's pipeline mode, run imperatively."""

from __future__ import annotations

import functools
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import ndd
from ndd.pipeline.node import DataNode, unwrapped
from ndd.pipeline.outputs import TensorList
from ndd.pipeline.sources import ExternalSource

_local = threading.local()


class Pipeline:
    """A function that makes one batch, called once a run.

    The body is ordinary Python: it runs anew for every batch, can be stepped through, can print its values, and its
    errors point at its lines. Readers, generators and external sources are made in the first run and kept.

    Args:
        batch_size: samples in a batch (the largest, where sources give fewer).
        num_threads: threads of CPU operators; default `ndd.get_num_threads()`.
        device_id: the GPU; None is a pipeline on the CPU alone.
        seed: of the random operators; default: another one each time.
        prefetch_queue_depth: how many runs a background thread prepares ahead; 1 runs when asked. A dict
            (`{"cpu_size": ..., "gpu_size": ...}`) counts with its larger number.
        exec_pipelined, exec_async: False runs nothing ahead.
        others: accepted, with no effect: there is no graph to be executed in another way.

    >>> import ndd
    >>> @ndd.pipeline_def(batch_size=2)
    ... def numbers():
    ...     return ndd.fn.external_source(source=[[1, 2], [3, 4]]) * 10
    >>> pipe = numbers()
    >>> (out,) = pipe.run()
    >>> out.as_array().tolist()
    [10, 20]
    """

    def __init__(
        self,
        batch_size: int | None = None,
        num_threads: int | None = None,
        device_id: int | None = None,
        seed: int | None = None,
        exec_pipelined: bool = True,
        prefetch_queue_depth: int | dict[str, int] = 2,
        exec_async: bool = True,
        bytes_per_sample: int = 0,
        set_affinity: bool = False,
        max_streams: int | None = None,
        default_cuda_stream_priority: int | None = None,
        *,
        enable_memory_stats: bool = False,
        enable_checkpointing: bool = False,
        checkpoint: Any = None,
        py_num_workers: int = 1,
        py_start_method: str = "fork",
        py_callback_pickler: Any = None,
        output_dtype: Any = None,
        output_ndim: Any = None,
        output_layout: Any = None,
        exec_dynamic: bool | None = None,
        experimental_exec_dynamic: bool | None = None,
        stream_policy: Any = None,
        concurrency: Any = None,
    ):
        self._max_batch_size = batch_size
        self._num_threads = num_threads
        self._device_id = None if device_id in (None, -99999) else device_id
        self._seed = None if seed is None or seed < 0 else int(seed)
        depth = max(prefetch_queue_depth.values()) if isinstance(prefetch_queue_depth, dict) else prefetch_queue_depth
        self._depth = max(1, int(depth)) if exec_pipelined and exec_async else 1
        self.exec_pipelined, self.exec_async = exec_pipelined, exec_async
        self.exec_dynamic = True if exec_dynamic is None else exec_dynamic
        self._output_checks = (output_dtype, output_ndim, output_layout)
        self._body: Callable[[], Any] | None = None
        self._states: dict[Any, Any] = {}
        self._counts: dict[str, int] = {}
        self._readers: dict[str, Any] = {}
        self._sources: list[ExternalSource] = []
        self._pending: dict[int, list[Any]] = {}
        self._recorded: list[Any] | None = None
        self._recording = False
        self._built = False
        self._run_batch_size: int | None = None
        self._context: Any = None
        self._names: list[str] | None = None
        self._scheduled: deque[Any] = deque()
        self._ahead: _Ahead | None = None
        self._ended = False
        self._started = False
        self._taken = False
        self._output_count = 1

    # ---- what it is

    @property
    def max_batch_size(self) -> int:
        """The batch size given at construction."""
        if not self._max_batch_size:
            raise ValueError("A pipeline needs a batch_size: pass it to the constructor or to @pipeline_def")
        return self._max_batch_size

    batch_size = max_batch_size

    @property
    def num_threads(self) -> int:
        """Threads of CPU operators."""
        return self._num_threads or ndd.get_num_threads()

    @property
    def device_id(self) -> int | None:
        """The GPU, None on the CPU."""
        return self._device_id

    @property
    def seed(self) -> int | None:
        """The seed of the random operators."""
        return self._seed

    @property
    def prefetch_queue_depth(self) -> int:
        """How many runs are prepared ahead."""
        return self._depth

    @property
    def current_batch_size(self) -> int:
        """Inside a body: how many samples this run has."""
        return self._run_batch_size or self.max_batch_size

    # ---- how it is defined

    def define_graph(self) -> Any:
        """The body, for subclasses: returns the outputs."""
        raise NotImplementedError(
            "Derive from Pipeline and define `define_graph`, or use `set_outputs` or @pipeline_def"
        )

    def set_outputs(self, *outputs: Any) -> None:
        """The outputs of a pipeline defined in a `with pipe:` block."""
        self._recorded = list(outputs)
        self._body = self._replay

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
            ndd.Device("gpu", self._device_id)
        if self._body is None:
            self._body = self.define_graph
        self._built = True

    def __enter__(self) -> Pipeline:
        _stack().append(self)
        self._recording = True
        self._counts = {}
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

    def state(self, kind: str, make: Callable[[], Any], name: str | None = None) -> Any:
        """What the call keeps between runs: known by its name, else by its place among calls of its kind."""
        place = self._counts.get(kind, 0)
        self._counts[kind] = place + 1
        key = (kind, name) if name is not None else (kind, place)
        found = self._states.get(key)
        if found is None:
            found = self._states[key] = make()
        return found

    def generator(self, path: str, seed: int | None) -> Any:
        """The random generator of one call of a random operator."""

        def make() -> Any:
            if seed is not None and seed >= 0:
                return ndd.random.RNG(seed=int(seed))
            number = len(self._states)
            return ndd.random.RNG(seed=(self._seed + 1000003 * number) if self._seed is not None else None)

        return self.state(f"random {path}", make)

    def new_reader(self, kind: Any, positional: tuple[Any, ...], arguments: dict[str, Any], name: str | None) -> Any:
        """A reader of this pipeline."""
        if self._seed is not None and arguments.get("seed", -1) in (-1, None):
            arguments = {**arguments, "seed": self._seed + len(self._readers)}
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

    def data_of(self, source: ExternalSource) -> list[Any]:
        """This run's batches of a source, asked for once."""
        found = self._pending.pop(id(source), None)
        if found is None:
            found = source.next()
        size = found[0].batch_size
        if self._run_batch_size is not None and size != self._run_batch_size:
            raise RuntimeError(
                f"external_source {source.name or ''}: a batch of {size} samples beside one of {self._run_batch_size}: "
                "all sources of a run must agree"
            )
        self._run_batch_size = size
        return found

    def result(self, run: Callable[[dict[int, Any]], Any], recorded: bool, outputs: int | None) -> Any:
        """The node (or nodes) of a call: computed now, or at every run while recording."""
        if self._recording or recorded:
            node = DataNode(step=run)
            if outputs is None or outputs == 1:
                return node
            return tuple(DataNode(step=lambda memo, i=i: node.evaluated(memo)[i]) for i in range(outputs))
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
        self._counts, self._run_batch_size, self._pending = {}, None, {}
        for source in self._sources:  # known from earlier runs: they say how many samples there are
            batches = source.next()
            self._pending[id(source)] = batches
            self._run_batch_size = batches[0].batch_size
        _stack().append(self)
        try:
            with self._in_context():
                outputs = self._body()  # type: ignore[misc]
                lists = self._lists(outputs)
        finally:
            _stack().pop()
        self._check(lists)
        return lists

    def _in_context(self) -> Any:
        if self._context is None:
            threads = self._num_threads
            self._context = ndd.EvalContext(num_threads=threads, device_id=self._device_id)
        return self._context

    def _lists(self, outputs: Any) -> tuple[TensorList, ...]:
        self._names = list(outputs) if isinstance(outputs, dict) else None
        given = (
            outputs.values()
            if isinstance(outputs, dict)
            else outputs
            if isinstance(outputs, tuple | list)
            else (outputs,)
        )
        found = []
        for value in given:
            batch = unwrapped(value, {}) if isinstance(value, DataNode) else value
            if not isinstance(batch, ndd.Batch):
                batch = ndd.Batch.broadcast(batch, self.current_batch_size)
            found.append(TensorList(batch.evaluate()))
        return tuple(found)

    def _check(self, lists: tuple[TensorList, ...]) -> None:
        for what, expected, read in zip(
            ("type", "number of dimensions", "layout"),
            self._output_checks,
            (lambda t: t.dtype, lambda t: t.ndim, lambda t: t.layout()),
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
                if want is not None and want != read(found):
                    raise RuntimeError(f"Output {i}: expected {what} {want}, got {read(found)}")

    def _runs_ahead(self) -> bool:
        return self._depth > 1 and not any(s.fed_by_hand for s in self._sources)

    def run(self, cuda_stream: Any = None, /, **inputs: Any) -> tuple[TensorList, ...]:
        """The outputs of the next batch. StopIteration at the end of the data, until `reset`.

        Args:
            inputs: batches for external sources, by name.
        """
        if inputs:
            if self._depth > 1:
                raise RuntimeError("run(name=batch) needs prefetch_queue_depth=1 or exec_pipelined=False")
            self._feed(inputs)
        self.schedule_run()
        return self.share_outputs()

    def _feed(self, inputs: dict[str, Any]) -> None:
        self._find_sources()
        for name, data in inputs.items():
            self.feed_input(name, data)

    def feed_input(self, data_node: Any, data: Any, layout: str | None = None, **_: Any) -> None:
        """Queues a batch for an external source, by its name."""
        self._find_sources()
        source = next((s for s in self._sources if s.name == data_node), None)
        if source is None:
            raise KeyError(f"The pipeline has no external_source named {data_node!r}")
        if layout:
            data = ndd.batch(data, layout=layout)
        source.feed(data)

    def _find_sources(self) -> None:
        """Before the first run the sources are not known: the body is called once with every step only recorded."""
        self.build()
        if self._started or self._sources or self._recorded is not None:
            return
        self._counts = {}
        _stack().append(self)
        self._recording = True
        try:
            outputs = self._body()  # type: ignore[misc]
            self._output_count = len(outputs) if isinstance(outputs, tuple | list | dict) else 1
        except Exception:
            pass  # a body that needs values, or is wrong: the first run will tell
        finally:
            self._recording = False
            _stack().pop()

    def interface(self) -> tuple[list[str], int]:
        """The names of the external sources that are fed by hand, and the number of outputs."""
        self._find_sources()
        names = [s.name or f"input_{i}" for i, s in enumerate(self._sources) if s.fed_by_hand]
        for source, name in zip([s for s in self._sources if s.fed_by_hand], names, strict=True):
            source.name = name
        count = len(self._recorded) if self._recorded is not None else self._output_count
        return names, count

    def schedule_run(self) -> None:
        """Starts a run; `share_outputs` gives what came of it."""
        self.build()
        if self._ended:
            self._scheduled.append(StopIteration())
            return
        if not self._started and self._depth > 1 and self._recorded is None and not self._sources:
            self._find_sources()
        self._started = True
        if self._runs_ahead():
            if self._ahead is None:
                self._ahead = _Ahead(self, self._depth)
            self._scheduled.append(self._ahead.next)
        else:
            self._scheduled.append(self._once)

    def share_outputs(self) -> tuple[TensorList, ...]:
        """The outputs of the oldest scheduled run."""
        if not self._scheduled:
            self.schedule_run()
        step = self._scheduled.popleft()
        if isinstance(step, StopIteration):
            raise StopIteration
        self._taken = True
        try:
            return step()
        except StopIteration:
            self._ended = True
            raise

    def release_outputs(self) -> None:
        """Nothing to do: outputs keep their own memory."""

    def outputs(self) -> tuple[TensorList, ...]:
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

    @property
    def was_run(self) -> bool:
        """Whether outputs have been taken from this pipeline."""
        return self._taken

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
        self.build()
        if not self._readers and not self._started:
            self.schedule_run()
            first = self.share_outputs()
            self._scheduled.appendleft(lambda: first)
            self._taken = False

    @property
    def output_names(self) -> list[str] | None:
        """The names of the outputs, if the body gives a dict."""
        return self._names


class _Ahead:
    """Runs a pipeline's body on a background thread, up to `depth` batches before they are asked for."""

    def __init__(self, pipeline: Pipeline, depth: int):
        self._ready: deque[Any] = deque()
        self._changed = threading.Condition()
        self._depth = depth
        self._stopped = False
        weakref.finalize(pipeline, _Ahead._abandon, weakref.ref(self))
        self._thread = threading.Thread(
            target=_Ahead._work, args=(weakref.ref(self), weakref.ref(pipeline)), name="ndd-pipeline", daemon=True
        )
        self._thread.start()

    @staticmethod
    def _abandon(reference: Any) -> None:
        ahead = reference()
        if ahead is not None:
            ahead._stopped = True

    @staticmethod
    def _work(reference: Any, pipeline_reference: Any) -> None:
        while True:
            ahead = reference()
            if ahead is None or ahead._stopped:
                return
            with ahead._changed:
                if len(ahead._ready) >= ahead._depth:
                    ahead._changed.wait(timeout=0.1)
                    full = len(ahead._ready) >= ahead._depth
                else:
                    full = False
            if full:
                del ahead
                continue
            pipeline = pipeline_reference()
            if pipeline is None:
                return
            try:
                outcome: Any = pipeline._once()
            except BaseException as error:
                outcome = error
            del pipeline
            with ahead._changed:
                ahead._ready.append(outcome)
                ahead._changed.notify_all()
            if isinstance(outcome, StopIteration):
                return
            del ahead, outcome

    def next(self) -> tuple[TensorList, ...]:
        """The next batch, waiting for it; an error of its run is raised here."""
        with self._changed:
            while not self._ready:
                if not self._thread.is_alive() and not self._ready:
                    raise StopIteration
                self._changed.wait(timeout=0.5)
            outcome = self._ready[0] if isinstance(self._ready[0], StopIteration) else self._ready.popleft()
            self._changed.notify_all()
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def stop(self) -> None:
        """Ends the thread after the batch it works on."""
        self._stopped = True
        with self._changed:
            self._changed.notify_all()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=10.0)


def _stack() -> list[Pipeline]:
    stack = getattr(_local, "stack", None)
    if stack is None:
        stack = _local.stack = []
    return stack


def pipeline_def(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Makes a function that builds pipelines of a body: `@pipeline_def` or `@pipeline_def(batch_size=..., ...)`.

    Arguments of `Pipeline` may stand here or in the call, which overrides; all others go to the body.
    `enable_conditionals` is accepted; conditions of plain Python work in any case.
    """
    options.pop("enable_conditionals", None)
    if function is None:
        return lambda f: pipeline_def(f, **options)

    @functools.wraps(function)
    def make(*arguments: Any, **named: Any) -> Pipeline:
        own = {**options, **{k: named.pop(k) for k in list(named) if k in _OPTIONS}}
        pipeline = Pipeline(**own)
        pipeline._body = functools.partial(function, *arguments, **named)
        return pipeline

    return make


_OPTIONS = frozenset(Pipeline.__init__.__code__.co_varnames[1 : 1 + 24])
