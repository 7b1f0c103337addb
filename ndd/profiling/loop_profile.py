"""`ndd.profile`: where the time of a loop goes."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from time import perf_counter_ns
from typing import Any, NamedTuple

from ndd.profiling import report, trace
from ndd.profiling.device_times import has_gpu
from ndd.profiling.explanation import explain
from ndd.profiling.recorder import recorder
from ndd.profiling.spans import Span

_MOST_SPANS = 200_000  # stored for the trace: an hour of a loop, 60 MB


class OperatorTimes(NamedTuple):
    """The totals of an operator or a reader.

    Attributes:
        name: the operator or reader.
        calls: the number of calls by the loop; for a reader, of batches.
        ahead: how many of these results were ready before the loop requested them.
        host: seconds of work on any CPU thread, without those of other operators within it.
        device: seconds between the beginning and the end of its work on a GPU's stream; None without a GPU.
        waited: seconds that the loop's thread worked on it or waited for it.
        nbytes: bytes of the results.
    """

    name: str
    calls: int
    ahead: int
    host: float
    device: float | None
    waited: float
    nbytes: int


class Profile:
    """The events within `with ndd.profile() as p`. It may be printed at any time.

    Attributes:
        nvtx: whether operators are ranges in Nsight Systems.
        keeps_spans: whether the pieces are kept, for `save`.
        spans: the first 200,000 pieces of work and waits.
        dropped: the number of later ones.

    >>> import ndd
    >>> with ndd.profile() as p:
    ...     _ = ndd.flip(ndd.demo.photo("cat")).torch()
    >>> [(times.name, times.calls) for times in p.operators if times.name == "flip"]
    [('flip', 1)]
    """

    def __init__(self, nvtx: bool = False, keeps_spans: bool = True):
        self.nvtx = nvtx and has_gpu()
        self.spans: list[Span] = []
        self.dropped = 0
        self.began = self._ended = 0
        self._keeps_spans = keeps_spans
        self._lock = threading.Lock()
        self._thread = 0
        self._own: dict[tuple[str, int], int] = {}  # nanoseconds by name and thread
        self._sums: dict[str, list[int]] = {}  # by name: calls, taken, nanoseconds of work, bytes
        self._samples: dict[Any, int] = {}  # by reader or by place of a call
        self._takers: dict[
            tuple[bool, int], int
        ] = {}  # by "of a pipeline" and thread: the number of batches that it took
        self._timed: list[Span] = []
        self._device: dict[str, float] = {}

    def __enter__(self) -> Profile:
        if self.began:
            raise RuntimeError("ndd.profile: this profile has been used: make another one for another loop")
        self._thread = threading.get_native_id()
        self.began = perf_counter_ns()
        recorder.add(self)
        return self

    def __exit__(self, *error: object) -> None:
        recorder.remove(self)
        self._ended = self._ended or perf_counter_ns()

    # Called by the recorder.

    def called(self, name: str, samples: int, place: Any) -> None:
        """The loop called an operator.

        Args:
            name: of the operator.
            samples: the number of samples in the batch.
            place: the place of the call in the program.
        """
        with self._lock:
            self._sums_of(name)[0] += 1
            key = name, place
            self._samples[key] = self._samples.get(key, 0) + samples

    def add(self, span: Span) -> None:
        """Adds an event.

        Args:
            span: the piece of work, or the wait.
        """
        with self._lock:
            if self._ended:  # work that a thread does ahead: the numbers stay as they are
                return
            if self._keeps_spans and len(self.spans) < _MOST_SPANS:
                self.spans.append(span)
            else:
                self.dropped += self._keeps_spans
            if span.kind == "stream":
                self._keep_timing(span)
                return
            key = span.name, span.thread
            self._own[key] = self._own.get(key, 0) + span.own
            sums = self._sums_of(span.name)
            if span.kind in ("reader", "pipeline") and not span.failed and span.samples:
                sums[0] += 1
                self._samples[span.name] = self._samples.get(span.name, 0) + span.samples
                taker = span.kind == "pipeline", span.thread
                self._takers[taker] = self._takers.get(taker, 0) + 1
            sums[1] += span.taken
            if span.kind != "wait":
                sums[2] += 0 if span.kind in ("reader", "pipeline") or span.taken else span.own
                sums[3] += 0 if span.taken else span.nbytes
            if span.timing is not None:
                self._keep_timing(span)

    def _keep_timing(self, span: Span) -> None:
        """Stores the events of a span, unless only NDD_NVTX=1 records them, which would store them forever."""
        if self._keeps_spans:
            self._timed.append(span)

    def _sums_of(self, name: str) -> list[int]:
        return self._sums.setdefault(name, [0, 0, 0, 0])

    # Results.

    @property
    def seconds(self) -> float:
        """How long it was active, or has been active until now."""
        return ((self._ended or perf_counter_ns()) - self.began) / 1e9 if self.began else 0.0

    @property
    def loop_thread(self) -> int:
        """The thread of the loop, by the system's number: the thread that took most batches of pipelines, else of readers, or
        without these the one that entered the profile."""
        takers = self._takers
        return max(takers, key=lambda taker: (taker[0], takers[taker]))[1] if takers else self._thread

    @property
    def waited(self) -> float:
        """Seconds that the loop's thread waited for data, or worked on them itself."""
        thread = self.loop_thread
        with self._lock:
            return sum([own for (_, of), own in self._own.items() if of == thread]) / 1e9

    @property
    def waiting(self) -> float:
        """The share of the time that the loop waited for data, 0 to 1; the rest is the loop's own work."""
        seconds = self.seconds
        return min(self.waited / seconds, 1.0) if seconds else 0.0

    @property
    def stream_waited(self) -> float | None:
        """Seconds that torch's streams waited on GPUs for work of ndd; None without a GPU. Waits for the GPU."""
        return self._device_times().get("")

    @property
    def images(self) -> int:
        """The number of samples of the loop: those that pipelines delivered, else those of the reader with the most samples, or
        without readers of the call with the most."""
        with self._lock:
            if delivered := self._samples.get("pipeline"):
                return delivered
            readers = [count for key, count in self._samples.items() if isinstance(key, str)]
            return max(readers or self._samples.values(), default=0)

    @property
    def images_per_second(self) -> float:
        """`images` by `seconds`."""
        seconds = self.seconds
        return self.images / seconds if seconds else 0.0

    @property
    def operators(self) -> list[OperatorTimes]:
        """The readers and operators, in descending order of the loop's waiting time. Waits for the GPU."""
        device, thread = self._device_times(), self.loop_thread
        with self._lock:
            rows = [
                OperatorTimes(
                    name, calls, min(taken, calls), host / 1e9, device.get(name),
                    self._own.get((name, thread), 0) / 1e9, nbytes,
                )
                for name, (calls, taken, host, nbytes) in self._sums.items()
            ]  # fmt: skip
        return sorted(rows, key=lambda row: (-row.waited, -row.host))

    def _device_times(self) -> dict[str, float]:
        """Seconds by the name of the operator; "" for torch's own streams."""
        with self._lock:
            timed, self._timed = self._timed, []
        for span in timed:
            name = "" if span.kind == "stream" else span.name
            self._device[name] = self._device.get(name, 0.0) + span.timing.measured()[1]
        return self._device

    # Output.

    def __str__(self) -> str:
        return report.text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return report.html(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace to a file, in the format of Chrome's traces: https://ui.perfetto.dev opens it. Waits for the GPU.

        Args:
            path: the file, which is overwritten.

        Raises TypeError for other objects than paths, IsADirectoryError for a folder, OSError for a file that cannot be written.
        """
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"Profile.save: path: expected a path as a str or a Path, got {type(path).__name__}")
        if (file := Path(path)).is_dir():
            raise IsADirectoryError(f"Profile.save: path: expected the name of a file, got the folder {str(path)!r}")
        trace.write(self, file)

    def explain(self, value: Any) -> str:
        """The same as `ndd.explain(value)`.

        Args:
            value: a Tensor or a Batch.

        Raises TypeError unless it is a Tensor or Batch, RuntimeError for a value that was computed without an active profile.
        """
        return explain(value)


def mark_ranges() -> None:
    """Marks ranges in Nsight Systems for the life of the process."""
    Profile(nvtx=True, keeps_spans=False).__enter__()


def profile(*, nvtx: bool | None = None) -> Profile:
    """Measures where the time of a loop goes: put `with ndd.profile() as p:` around it, then `print(p)`.

    Args:
        nvtx: mark operators as ranges in Nsight Systems, if there is a GPU. NDD_NVTX=1 in the environment does so without a
            profile as well.

    The table has a line for each operator and reader: the number of calls by the loop; the number of results that were ready
    ahead; milliseconds of work on the CPU, on any thread, and on the GPU; milliseconds that the loop's thread waited for it, or
    worked on it itself; bytes of the results. The line "reading" is what the readers' threads read ahead. The lines above the
    table give the share of the time that the loop waited for data, and the images (samples) per second. The rest is the loop's
    own work, such as the network. The loop's thread is the one that takes the batches; around a
    pipeline or an iterator over it the line "pipeline" is the loop's wait for its outputs. On a GPU "waited" is the waiting
    time of the thread; that of torch's stream is given beside it.

    `p.operators`, `p.waiting`, `p.seconds`, `p.images_per_second` are the numbers, `p.save("trace.json")` writes a trace for
    https://ui.perfetto.dev, and `p.explain(value)` tells how a value was computed. In torch.profiler each call, wait and piece
    of work of the profiled thread is a range named after its operator ("ndd.resize"); ndd's own threads are included with
    `profile_all_threads`. Profiles may be nested; each records events while it is active. After an error in the loop it is
    still usable. It does not include other loaders and the work of worker processes: `ndd.progress` measures the wait for a
    DataLoader, and a worker may open a profile of its own. A profile costs about 20 us
    for each call and each wait; without one nothing is measured.

    >>> import ndd
    >>> with ndd.profile() as p:
    ...     for jpegs, labels in ndd.readers.File(file_root=ndd.demo.photos()).next_epoch(batch_size=8):
    ...         images = ndd.resize(ndd.decoders.image(jpegs), size=[64, 64]).torch()
    >>> sorted(row.name for row in p.operators if row.calls)
    ['decoders.image', 'readers.File', 'resize']
    """
    return Profile(True if nvtx is None else nvtx)
