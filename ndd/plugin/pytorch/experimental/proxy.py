"""A pipeline as a transform in `Dataset.__getitem__`, run on whole batches in the main process.

In a worker the transform only notes its input; torch's collation turns the notes of a batch into one, which travels
to the main process inside the batch itself. There the pipeline runs on it. So data cannot get lost or mixed up: it goes the
same way, in the same order, as everything else that a DataLoader delivers, with any number of workers, however they are
started, and after a `break`. A thread takes batches from the workers and runs the pipeline ahead of the loop.
"""

from __future__ import annotations

import queue
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import torch.utils.data as torch_data

import ndd
from ndd.plugin.pytorch.experimental.pending_outputs import (
    BatchCall,
    Call,
    DALIOutputBatchRef,
    DALIOutputSampleRef,
    Proxy,
    replaced,
)

__all__ = ["DALIOutputBatchRef", "DALIOutputSampleRef", "DALIServer", "DataLoader", "Proxy"]

_AHEAD = 2  # batches that are ready before the loop asks


class DALIServer:
    """Runs a pipeline for the loaders of this process.

    Args:
        pipeline: an `ndd.Pipeline` with at least one external source that is fed (no `source=`).
        deterministic: accepted; results always come in the loader's order.

    A `with` statement is optional, since nothing needs to be started. Leaving the block ends the running loops.

    Raises TypeError for anything but a Pipeline, RuntimeError for a pipeline without an `external_source`.
    """

    def __init__(self, pipeline: Any, deterministic: bool = False):
        if not isinstance(pipeline, ndd.Pipeline):
            raise TypeError(f"Expected an ndd.Pipeline, got {type(pipeline).__name__}")
        self._pipeline = pipeline
        self.deterministic = deterministic
        names, outputs = pipeline._interface()
        if not names:
            raise RuntimeError("The pipeline has no external_source to feed, so a transform could not pass it anything")
        self._proxy = Proxy(names, outputs)
        self._lock = threading.Lock()
        self._passes: weakref.WeakValueDictionary[int, _Pass] = weakref.WeakValueDictionary()

    @property
    def proxy(self) -> Proxy:
        """The transform for `Dataset.__getitem__`; always the same object."""
        return self._proxy

    def __enter__(self) -> DALIServer:
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        self.stop_thread()

    def start_thread(self) -> None:
        """Does nothing: each loop has its own thread while it runs."""

    def stop_thread(self) -> None:
        """Ends the loops that are running."""
        for reference in self._passes.valuerefs():  # a list made in one step: another thread may begin one
            running = reference()
            if running is not None:
                running.close("The DALIServer was stopped while this loop was running")

    def produce_data(self, obj: Any) -> Any:
        """Replaces the notes in a batch by data: in lists and dicts (in place), tuples, named tuples and objects with
        attributes. A note that stands in several places is computed once.

        Args:
            obj: the batch.
        """
        self.compute(obj)
        return replaced(obj, _as_tensor)

    def compute(self, obj: Any) -> None:
        """Runs the pipeline for the notes in a batch; the notes stay in the batch and hold the outputs.

        Args:
            obj: the batch: notes in lists, tuples, dicts and objects with attributes.
        """
        batches: list[BatchCall] = []
        single: dict[int, Call] = {}

        def note(value: Any) -> Any:
            if isinstance(value, DALIOutputBatchRef):
                batches.append(value.batch)
            else:
                single[id(value.call)] = value.call
            return value

        replaced(obj, note)
        for batch in batches:
            if batch.outputs is None:
                batch.outputs, batch.calls = self._run(batch.calls), []
        self._compute_single([c for c in single.values() if c.outputs is None])

    def _compute_single(self, calls: list[Call]) -> None:
        """Runs calls together that a custom collation (or none) left apart."""
        limit = self._pipeline.max_batch_size
        for start in range(0, len(calls), limit):
            part = calls[start : start + limit]
            outputs = self._run(part)
            for i, call in enumerate(part):
                call.outputs, call.inputs = [o.batch.select(i) for o in outputs], {}

    def _run(self, calls: list[Call]) -> Any:
        limit = self._pipeline.max_batch_size
        if len(calls) > limit:
            raise RuntimeError(
                f"The loader gave a batch of {len(calls)} samples, the pipeline's batch_size is {limit}: "
                "make the loader's batch_size at most that"
            )
        inputs = {name: [_as_array(c.inputs[name]) for c in calls] for name in self._proxy.names}
        with self._lock:
            return self._pipeline._run_on(inputs)


def _as_tensor(note: Any) -> Any:
    if isinstance(note, DALIOutputBatchRef):
        output = note.batch.outputs[note.output_idx]
        if not output.is_dense_tensor():
            raise RuntimeError(
                f"Output {note.output_idx} of the pipeline has samples of different shapes, {output.shape()[:4]}..., which cannot "
                "be one tensor: resize or pad them in the pipeline (fn.pad), or pass a collate_fn that keeps the samples apart"
            )
        return output.torch()
    return note.call.outputs[note.output_idx].torch()


def _as_array(value: Any) -> Any:
    if isinstance(value, str | bytes):
        raise TypeError(
            f"The transform takes arrays, tensors and numbers, got {type(value).__name__}: encode text as u8"
        )
    return value


class DataLoader(torch_data.DataLoader):
    """torch's DataLoader for data sets whose transform is a server's `proxy`.

    Args:
        dali_server: the `DALIServer`.
        args, kwargs: arguments of torch's loader; `batch_size` may be at most the pipeline's.

    Raises TypeError for a first argument that is no DALIServer.

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
        self._server = dali_server
        self._pass: _Pass | None = None

    def __iter__(self) -> Any:
        if self.num_workers == 0:
            return map(self._server.produce_data, super().__iter__())
        if self._pass is not None:  # after a `break`; with persistent workers both would take from one iterator
            self._pass.close("A new loop was started over the same DataLoader")
        self._pass = _Pass(self._server, super().__iter__())
        return _Loop(self._pass, self._server)


class _WorkerLost(RuntimeError):
    """A worker died while it was handing over a batch."""


class _Loop:
    """The iterator that a loop holds; its pass ends when it is no longer referenced."""

    def __init__(self, running: _Pass, server: DALIServer):
        self._pass = running
        self._server = server
        weakref.finalize(self, running.stop).atexit = False

    def __iter__(self) -> _Loop:
        return self

    def __next__(self) -> Any:
        batch, error = self._pass.next()
        if error is not None:
            if isinstance(error, _WorkerLost):
                time.sleep(1.0)  # torch's own error, with the exit code, comes by a signal: wait for it
            try:
                raise error
            finally:
                del error
        return self._server.produce_data(batch)  # on this thread, so that its CUDA stream waits for the data


class _Pass:
    """One pass over a loader: a thread takes batches and runs the pipeline on them, `_AHEAD` ahead of the loop."""

    def __init__(self, server: DALIServer, batches: Iterator[Any]):
        self._ready: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(maxsize=_AHEAD)
        self._stopped = False
        self._closed = ""
        self._over = False
        server._passes[id(self)] = self
        self._thread = threading.Thread(target=self._work, args=(server, batches), name="ndd-proxy", daemon=True)
        self._thread.start()

    def next(self) -> tuple[Any, BaseException | None]:
        """The next batch, or an error in its place."""
        while True:
            if self._closed:
                return None, RuntimeError(self._closed)
            if self._over:
                return None, StopIteration()
            try:
                batch, error = self._ready.get(timeout=0.5)
            except queue.Empty:
                if not self._thread.is_alive() and self._ready.empty():
                    return None, RuntimeError("The thread of this loop has ended")
                continue
            self._over = isinstance(error, StopIteration) or _is_fatal(error)
            return batch, error

    def stop(self) -> None:
        """Lets the thread end. Takes no lock: a finaliser calls it on any thread at any time."""
        self._stopped = True

    def close(self, reason: str) -> None:
        """Ends the pass and waits for its thread; prepared batches are dropped."""
        if not self._over:
            self._closed = reason
        self.stop()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=30.0)

    def _work(self, server: DALIServer, batches: Iterator[Any]) -> None:
        end = False
        while not self._stopped and not end:
            batch, error = _taken(server, batches)
            end = isinstance(error, StopIteration) or _is_fatal(error)
            self._put((batch, error))
            del batch, error
        while self._stopped and not self._ready.empty():
            self._ready.get_nowait()

    def _put(self, item: tuple[Any, BaseException | None]) -> None:
        while not self._stopped:
            try:
                self._ready.put(item, timeout=0.1)
                return
            except queue.Full:
                continue


def _taken(server: DALIServer, batches: Iterator[Any]) -> tuple[Any, BaseException | None]:
    """The next batch with its outputs computed, or the error."""
    try:
        batch = next(batches)
    except StopIteration:
        return None, StopIteration()  # without the frames that the first one holds
    except (ConnectionError, EOFError, FileNotFoundError) as error:
        if "DataLoader worker process" in str(error):  # the data set raised it in a worker
            return None, error
        lost = _WorkerLost("A DataLoader worker exited unexpectedly: its batch could not be received")
        lost.__cause__ = error
        return None, lost
    except BaseException as error:
        return None, error
    try:
        server.compute(batch)
    except StopIteration:
        return None, RuntimeError("A source of the server's pipeline has no more data")
    except BaseException as error:
        return None, error
    return batch, None


def _is_fatal(error: BaseException | None) -> bool:
    """After the death of a worker torch's iterator cannot go on; after an error in a worker it can."""
    if error is None:
        return False
    if isinstance(error, _WorkerLost):
        return True
    return not isinstance(error, Exception) or "exited unexpectedly" in str(error) or "timed out" in str(error)
