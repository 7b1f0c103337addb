"""A pipeline as a transform in `Dataset.__getitem__`, run on whole batches in the main process.

In a worker the transform only notes its input; torch's collation turns the notes of a batch into one, which travels
to the main process inside the batch itself. There the pipeline runs on it. So data cannot get lost or mixed up: it
takes the same way, in the same order, as everything else a DataLoader delivers, with any number of workers, however
they are started, and after a `break`. A thread takes batches from the workers and runs the pipeline ahead of the loop.
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import torch
import torch.utils.data as torch_data
from torch.utils.data._utils.collate import default_collate_fn_map

import ndd

_DONE = object()


class _Call:
    """The inputs of one call of the transform: those of one sample."""

    __slots__ = ("inputs",)

    def __init__(self, inputs: dict[str, Any]):
        self.inputs = inputs


class _BatchCall:
    """The calls of a batch; all outputs of a batch share one, so that the pipeline runs once."""

    def __init__(self, calls: list[_Call]):
        self.calls = calls
        self.outputs: Any = None


class DALIOutputSampleRef:
    """What the transform returns for a sample: a note of output `output_idx` of a call that has not run yet."""

    __slots__ = ("call", "output_idx")

    def __init__(self, call: _Call, output_idx: int):
        self.call = call
        self.output_idx = output_idx


class DALIOutputBatchRef:
    """A batch of notes: replaced by the tensor of output `output_idx` in the main process."""

    __slots__ = ("batch", "output_idx")

    def __init__(self, batch: _BatchCall, output_idx: int):
        self.batch = batch
        self.output_idx = output_idx


_last_batch = threading.local()


def _collate_notes(notes: list[DALIOutputSampleRef], *, collate_fn_map: Any = None) -> DALIOutputBatchRef:
    """Torch's collation of notes: one note for the batch. Outputs of the same calls share their `_BatchCall`."""
    calls = [n.call for n in notes]
    last = getattr(_last_batch, "call", None)
    same = (
        last is not None
        and len(last.calls) == len(calls)
        and all(a is b for a, b in zip(last.calls, calls, strict=True))
    )
    if not same:
        last = _last_batch.call = _BatchCall(calls)
    return DALIOutputBatchRef(last, notes[0].output_idx)


default_collate_fn_map[DALIOutputSampleRef] = _collate_notes  # type: ignore[index]


class Proxy:
    """The transform: `proxy(x)` for a pipeline with one external source, else `proxy(name=x, ...)`.

    Returns a note for the pipeline's output, or a tuple of notes, one for each output. Picklable: it knows the names
    of the inputs and the number of outputs, not the pipeline.
    """

    def __init__(self, names: list[str], outputs: int):
        self._names = names
        self._outputs = outputs

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Notes the inputs of one sample."""
        given = dict(named)
        if inputs and len(self._names) == 1 and len(inputs) == 1 and not named:
            given = {self._names[0]: inputs[0]}
        elif inputs or set(given) != set(self._names):
            raise ValueError(
                f"Expected signature is ({', '.join(self._names)}), got {len(inputs)} positional inputs "
                f"and {sorted(named)}"
            )
        call = _Call(given)
        notes = tuple(DALIOutputSampleRef(call, i) for i in range(self._outputs))
        return notes[0] if self._outputs == 1 else notes


class DALIServer:
    """Runs a pipeline for the loaders of this process.

    Args:
        pipeline: an `ndd.Pipeline` with at least one external source that is fed (no `source=`).
        deterministic: accepted; results always come in the loader's order.

    Use it in a `with` statement, or not at all: nothing needs to be started. Leaving the block ends the loops that run.
    """

    def __init__(self, pipeline: Any, deterministic: bool = False):
        if not isinstance(pipeline, ndd.Pipeline):
            raise TypeError(f"Expected an ndd.Pipeline, got {type(pipeline).__name__}")
        self._pipeline = pipeline
        self.deterministic = deterministic
        names, outputs = pipeline.interface()
        if not names:
            raise RuntimeError("The pipeline has no external_source to feed, so a transform could not pass it anything")
        self._proxy = Proxy(names, outputs)
        self._lock = threading.Lock()
        self._loops: weakref.WeakSet[_Loop] = weakref.WeakSet()

    @property
    def proxy(self) -> Proxy:
        """The transform for `Dataset.__getitem__`; always the same object."""
        return self._proxy

    def __enter__(self) -> DALIServer:
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        self.stop_thread()

    def start_thread(self) -> None:
        """Nothing to do: each loop has its own thread, for as long as it runs."""

    def stop_thread(self) -> None:
        """Ends the loops that are running."""
        for loop in list(self._loops):
            loop.close()

    def produce_data(self, obj: Any) -> Any:
        """Replaces the notes in a batch by data: in lists and dicts (in place), tuples, named tuples and objects with
        attributes. A note that stands in several places is computed once."""
        loose: list[DALIOutputSampleRef] = []
        _walk(obj, lambda n: loose.append(n) or n, DALIOutputSampleRef)
        samples = self._loose_samples(loose)
        memo: dict[int, Any] = {}

        def batch(note: DALIOutputBatchRef) -> Any:
            if note.batch.outputs is None:
                note.batch.outputs = self._run(note.batch.calls)
            return note.batch.outputs[note.output_idx]

        found = _walk(obj, batch, DALIOutputBatchRef, memo)
        return _walk(found, lambda n: samples[id(n)], DALIOutputSampleRef) if loose else found

    def _loose_samples(self, notes: list[DALIOutputSampleRef]) -> dict[int, Any]:
        """Notes that a custom collation (or none) left as they were: run together, a tensor for each."""
        calls = list({id(n.call): n.call for n in notes}.values())
        if not calls:
            return {}
        limit = self._pipeline.max_batch_size
        found: dict[int, list[Any]] = {}
        for start in range(0, len(calls), limit):
            part = calls[start : start + limit]
            outputs = self._run_lists(part)
            for i, call in enumerate(part):
                found[id(call)] = [o.batch.select(i).torch() for o in outputs]
        return {id(n): found[id(n.call)][n.output_idx] for n in notes}

    def _run(self, calls: list[_Call]) -> list[Any]:
        return [output.torch() for output in self._run_lists(calls)]

    def _run_lists(self, calls: list[_Call]) -> Any:
        limit = self._pipeline.max_batch_size
        if len(calls) > limit:
            raise RuntimeError(
                f"The loader gave a batch of {len(calls)} samples, the pipeline's batch_size is {limit}: "
                "make the loader's batch_size at most that"
            )
        with self._lock:
            for name in self._proxy._names:
                self._pipeline.feed_input(name, [_as_array(c.inputs[name]) for c in calls])
            return self._pipeline.run()


def _as_array(value: Any) -> Any:
    if isinstance(value, str | bytes):
        raise TypeError(
            f"The transform takes arrays, tensors and numbers, got {type(value).__name__}: encode text as u8"
        )
    return value


def _walk(obj: Any, replace: Any, kind: type, memo: dict[int, Any] | None = None) -> Any:
    """`obj` with every `kind` in it replaced; containers in place where they can be changed."""
    if isinstance(obj, kind):
        return replace(obj)
    if isinstance(obj, torch.Tensor | str | bytes | int | float) or obj is None:
        return obj
    if isinstance(obj, list):
        obj[:] = [_walk(v, replace, kind, memo) for v in obj]
        return obj
    if isinstance(obj, dict):
        for key in list(obj):
            obj[key] = _walk(obj[key], replace, kind, memo)
        return obj
    if isinstance(obj, tuple):
        values = [_walk(v, replace, kind, memo) for v in obj]
        return type(obj)(*values) if hasattr(obj, "_fields") else tuple(values)
    if isinstance(obj, DALIOutputSampleRef | DALIOutputBatchRef):
        return obj
    if hasattr(obj, "__dict__") and not callable(obj):
        for name, value in list(vars(obj).items()):
            setattr(obj, name, _walk(value, replace, kind, memo))
    return obj


class DataLoader(torch_data.DataLoader):
    """torch's DataLoader for data sets whose transform is a server's `proxy`.

    Args:
        dali_server: the `DALIServer`.
        args, kwargs: torch's own; `batch_size` may be at most the pipeline's.

    >>> import ndd, torch, ndd.plugin.pytorch.experimental.proxy as dali_proxy
    >>> @ndd.pipeline_def(batch_size=2, prefetch_queue_depth=1)
    ... def twice():
    ...     return ndd.fn.external_source(name="x") * 2
    >>> class Numbers(torch.utils.data.Dataset):
    ...     def __init__(self, transform):
    ...         self.transform = transform
    ...     def __len__(self):
    ...         return 4
    ...     def __getitem__(self, i):
    ...         return self.transform(torch.tensor(i)), i
    >>> with dali_proxy.DALIServer(twice()) as server:
    ...     for data, index in dali_proxy.DataLoader(server, Numbers(server.proxy), batch_size=2):
    ...         print(data.tolist(), index.tolist())
    [0, 2] [0, 1]
    [4, 6] [2, 3]
    """

    def __init__(self, dali_server: DALIServer, *args: Any, **kwargs: Any):
        if not isinstance(dali_server, DALIServer):
            raise TypeError(f"The first argument must be a DALIServer, got {type(dali_server).__name__}")
        super().__init__(*args, **kwargs)
        object.__setattr__(self, "_ndd_server", dali_server)
        object.__setattr__(self, "_ndd_loop", lambda: None)

    def __iter__(self) -> Any:
        previous = self._ndd_loop()
        if previous is not None:
            previous.close()
        loop = _Loop(self._ndd_server, super().__iter__(), ahead=2)
        object.__setattr__(self, "_ndd_loop", weakref.ref(loop))
        return loop


class _Loop:
    """One pass over a loader: a thread takes batches and runs the pipeline on them, `ahead` batches before the loop."""

    def __init__(self, server: DALIServer, batches: Iterator[Any], ahead: int):
        self._ready: queue.Queue[Any] = queue.Queue(maxsize=ahead)
        self._stop = threading.Event()
        self._ended = False
        server._loops.add(self)
        self._thread = threading.Thread(
            target=_work, args=(server, batches, self._ready, self._stop), name="ndd-proxy", daemon=True
        )
        self._finalizer = weakref.finalize(self, self._stop.set)
        self._thread.start()

    def __iter__(self) -> _Loop:
        return self

    def __next__(self) -> Any:
        if self._ended:
            raise StopIteration
        while True:
            try:
                kind, value = self._ready.get(timeout=0.5)
                break
            except queue.Empty:
                if not self._thread.is_alive() and self._ready.empty():
                    self._ended = True
                    raise StopIteration from None
        if kind == "batch":
            return value
        if value is _DONE:
            self._ended = True
            raise StopIteration
        raise value

    def close(self) -> None:
        """Ends the pass; what was prepared is dropped."""
        self._ended = True
        self._stop.set()
        while True:
            try:
                self._ready.get_nowait()
            except queue.Empty:
                if not self._thread.is_alive() or self._thread is threading.current_thread():
                    return
                self._thread.join(timeout=0.05)


def _work(server: DALIServer, batches: Iterator[Any], ready: queue.Queue[Any], stop: threading.Event) -> None:
    def put(item: Any) -> None:
        while not stop.is_set():
            try:
                ready.put(item, timeout=0.1)
                return
            except queue.Full:
                continue

    while not stop.is_set():
        try:
            batch = next(batches)
        except StopIteration:
            put(("end", _DONE))
            return
        except BaseException as error:
            put(("error", error))
            if _is_fatal(error):
                put(("end", _DONE))
                return
            continue
        try:
            put(("batch", server.produce_data(batch)))
        except BaseException as error:
            put(("error", error))


def _is_fatal(error: BaseException) -> bool:
    """After the death of a worker torch's iterator cannot go on; after an error in a worker it can."""
    return not isinstance(error, Exception) or "exited unexpectedly" in str(error) or "timed out" in str(error)
