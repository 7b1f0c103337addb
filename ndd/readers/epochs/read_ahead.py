"""`RecordReadAhead`: a few threads read the coming batches while the user works on the present one."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ndd._execution import observation
from ndd.decoders import BadSample
from ndd.read_ahead import Pending, ReadAhead
from ndd.readers.sampling.sampler import NumberStream, Position
from ndd.readers.stores.records import MOST_THREADS, Jobs, Records, RecordStore

_WAITS_FOR_A_THREAD = 3
# Seconds. Faster records are mostly work of the interpreter, which threads cannot share: 256 records of 1 kB in a
# container take 1.5 to 2.5 us each, small files 8, photographs 17, a disk with latency 50 and more.
_WORTH_A_THREAD = 5e-6
_THREADS_TO_PEEK = 2  # for a GPU's lookahead that comes too early: one thread reads 64 photographs in 2.5 ms
_BEYOND_PEEKING = 3  # batches read beyond what lookahead looks for: reading one may take as long as an iteration
# The least that a thread reads of a batch: 256 records of 1 kB take 0.2 ms on one thread, but 1.5 ms in four parts.
_SECONDS_OF_A_PART = 2e-3
_SAMPLES_AT_ONCE = 16  # in sample mode: one hand-over between threads for many samples
_BYTES_AT_ONCE = 1 << 27  # of batches that are read together or ahead because their store wants many records at once
# This many times `at_once` records are read ahead. One request in a hundred takes ten times as long as the others; with less
# read ahead the connections would be idle while its batch waits for it.
_TIMES_AHEAD = 8
_LONGEST_PAUSE = 0.1  # seconds


class Step(NamedTuple):
    """One batch (or sample) as it was read: its records, where the stream goes on, and the
    records that were left out."""

    numbers: list[int]
    records: Records
    position: Position
    dropped: tuple[BadSample, ...] = ()


class _Group(Pending[Any]):
    """Batches that are planned and read together. They are handed over one by one: `step` is the next."""

    __slots__ = ("cuts", "done", "jobs", "numbers", "peeked", "read")

    def __init__(self, cuts: list[tuple[list[int], Position]]):
        super().__init__()
        self.cuts = deque(cuts)
        self.numbers = [number for numbers, _ in cuts for number in numbers]
        self.read: dict[int, Records] = {}  # by their first place
        self.jobs: Jobs | None = None  # where the store says how several threads read them
        self.done = 0  # records already handed over
        self.peeked: deque[Step] = deque()  # the next steps, as far as somebody looked

    def parts(self, count: int) -> list[tuple[_Group, int, int]]:
        """The parts for several threads: the group, the first record and the one after the last."""
        size = max(1, -(-len(self.numbers) // count))
        parts: list[tuple[_Group, int, int]] = [
            (self, start, start + size) for start in range(0, len(self.numbers), size)
        ]
        self.left = len(parts)
        return parts

    def parts_of_jobs(self, jobs: Jobs) -> list[tuple[_Group, int, int]]:
        """As `parts`; the numbers are those of jobs."""
        self.jobs, self.left = jobs, jobs.count
        return [(self, job, job + 1) for job in range(jobs.count)]

    def records(self) -> Records:
        """All of them, once they have been read."""
        if self.jobs is not None:
            self.read, self.jobs = {0: Records.of(self.jobs.records())}, None
        if len(self.read) > 1:
            self.read = {0: Records.joined([self.read[start] for start in sorted(self.read)])}
        return self.read[0]

    def peek(self, distance: int = 0) -> Step:
        """The object that `step` will return after `distance` others."""
        while len(self.peeked) <= distance:
            (numbers, position), records = self.cuts[len(self.peeked)], self.records()
            if len(numbers) < len(records):
                start = self.done + sum(len(step.numbers) for step in self.peeked)
                records = records.picked(np.arange(start, start + len(numbers)))
            self.peeked.append(Step(numbers, records, position))
        return self.peeked[distance]

    def step(self) -> Step:
        step = self.peek()
        self.peeked.popleft()
        self.cuts.popleft()
        self.done += len(step.numbers)
        return step


class RecordReadAhead(ReadAhead[Any]):
    """Threads that read a stream's batches in order, at most `depth` groups before they are asked for (or as many as
    `peek` has looked for). Several of them read parts of one group.

    The threads start with the first request. They hold this object and the store, never the reader, so a reader that nobody
    holds any more can die and stop them.

    Args:
        store: the store to read from.
        open_stream: returns the stream of sample numbers; called on a thread.
        batch: the size of the batches; None for single samples.
        depth: the number of groups that are read ahead.
        owner: the object whose death ends the threads.
    """

    def __init__(
        self,
        store: RecordStore,
        open_stream: Callable[[], NumberStream],
        batch: int | None,
        depth: int,
        owner: Any = None,
    ):
        self._store = store
        self._stream: NumberStream | None = None
        self.batch = batch
        self._parts: deque[tuple[_Group, int, int]] = deque()
        self._waits = 0  # the number of times that the user had to wait for a batch
        self._taken_at = self._middle = 0.0  # when the last batch was taken; half of the time until the next one
        self._seconds = 1.0  # that a record took lately; at first unknown
        # Of the largest record so far, about; unknown at first, unless an index says it.
        self._bytes = min(store.record_bytes, _BYTES_AT_ONCE - 1) or _BYTES_AT_ONCE
        super().__init__(open_stream, depth, "reader", owner=owner, exit_seconds=1.0)
        self._coming: deque[_Group]
        self._thread_count = store.threads

    def next(self) -> Step:
        """The next batch of the stream; waits for it. An error of the order is raised, and tried again next time."""
        with self._lock:
            self._await_first()
            if self._coming[0].error is not None:
                return super().next()  # raises it
            group = self._coming[0]
            step = group.step()
            if not group.cuts:
                self._coming.popleft()
                now = time.perf_counter()
                self._middle = now + min((now - self._taken_at) / 2, _LONGEST_PAUSE)
                self._taken_at = now
                self._task.notify()
            return step

    def peek(self, distance: int = 1) -> Step | None:
        """The step that `next` will return at its call number `distance` from now, if it has been read; does not wait. Batches
        only.

        From then on a few more batches than `distance` are read ahead, since the caller will look that far again.
        """
        with self._lock:
            if self._depth < distance + _BEYOND_PEEKING:
                self._depth = distance + _BEYOND_PEEKING
                self._task.notify()
            if self._stopped:
                return None
            beyond = distance - 1
            for group in self._coming:
                if group.left or group.error is not None:
                    break
                if beyond < len(group.cuts):
                    return group.peek(beyond)
                beyond -= len(group.cuts)
            self._ask_for_thread(_THREADS_TO_PEEK)
            return None

    def read(self, numbers: Sequence[int]) -> Records:
        """Certain records, before anything that is read ahead."""
        group = _Group([(list(numbers), Position())])
        jobs = self._store.jobs(group.numbers)
        with self._lock:
            self._start_threads()
            self._parts.extendleft(reversed(self._cut(group, jobs)))
            self._task.notify_all()
            while group.left:
                self._wait()
        return group.records()

    def _late(self) -> None:
        self._ask_for_thread(MOST_THREADS)

    def _ask_for_thread(self, most: int) -> None:
        """Called when a batch is late: every third time it starts another thread, up to `most`, if that can help."""
        self._waits += 1
        wanted = self._waits % _WAITS_FOR_A_THREAD == 0 and self._seconds > _WORTH_A_THREAD
        if wanted and len(self._threads) < most:
            self._add_thread()

    # The tasks of the threads: parts of groups, and the plan of the next group.

    def _has_task(self) -> bool:
        return self._may_read() or (self._may_prepare() and self._pause() is None)

    def _pause(self) -> float | None:
        """The time until the middle of the user's iteration if only the last of many batches is missing: lookahead looks for
        it much later, and until then threads leave the interpreter to the user's loop."""
        if self._depth <= _BEYOND_PEEKING or len(self._coming) != self._depth - 1:
            return None
        left = self._middle - time.perf_counter()
        return left if left > 0 else None

    def _take_task(self, taken: list[Any]) -> None:
        if not self._may_read():
            super()._take_task(taken)
            return
        taken.append(self._parts[0])
        self._parts.popleft()

    def _give_back(self, task: Any) -> None:
        if task is None:
            super()._give_back(task)
        elif task[1] not in task[0].read:
            self._parts.appendleft(task)

    def _do(self, task: Any) -> None:
        if task is None:
            self._prepare()
        else:
            self._read(*task)

    def _may_read(self) -> bool:
        if not self._parts or not self._store.in_turn:
            return bool(self._parts)
        begun = next((group for group in self._coming if group.left), None)
        return begun is None or self._parts[0][0] is begun or self._parts[0][0] not in self._coming

    def _has_room(self) -> bool:
        return len(self._coming) < self._depth or self._is_idle()

    def _is_idle(self) -> bool:
        """Whether a store that wants many records at once has too few to do."""
        if self._store.at_once == 1:
            return False
        ahead = sum(len(group.numbers) - group.done for group in self._coming)
        most = _BYTES_AT_ONCE if self._store.bytes_together else _TIMES_AHEAD * self._store.at_once
        most = min(most, len(self._store))
        return ahead < min(most, _BYTES_AT_ONCE // max(self._bytes, 1))

    def _prepare(self) -> None:
        """Asks the stream for the next group. A shuffle may take a while."""
        cuts: list[tuple[list[int], Position]] = []
        failure = jobs = None
        try:
            if self._stream is None:
                self._stream = self._work()
            for _ in range(self._cuts_per_group()):
                numbers = self._stream.take().tolist()
                cuts.append((numbers, self._stream.position))
            jobs = self._store.jobs([number for numbers, _ in cuts for number in numbers])
        except BaseException as error:  # also SystemExit from a user's sampler: this thread has to live on
            failure = error
        with self._lock:
            groups: list[_Group] = []
            if cuts and not self._stopped:
                group = _Group(cuts)
                parts = self._cut(group, jobs)
                self._parts.extend(parts)
                self._task.notify(len(parts))
                groups.append(group)
            if failure is not None:
                groups.append(_Group([]))
                groups[-1].error = failure
            self._prepared(*groups)
        del failure, groups  # the exception holds this frame

    def _is_measured(self) -> bool:
        """Whether the size of a record is known."""
        return self._bytes != _BYTES_AT_ONCE

    def _cuts_per_group(self) -> int:
        """The number of batches or samples that are read together: enough for the store, but not too many bytes."""
        together = max(self._store.at_once, self._store.bytes_together // max(self._bytes, 1))
        wanted = -(-together // (self.batch or 1))
        room = _BYTES_AT_ONCE // ((self.batch or 1) * max(self._bytes, 1))
        return max(1 if self.batch else _SAMPLES_AT_ONCE, min(wanted, room))

    def _cut(self, group: _Group, jobs: Jobs | None = None) -> list[tuple[_Group, int, int]]:
        if jobs is not None:
            return group.parts_of_jobs(jobs)
        if self._store.at_once > 1:
            wanted = len(group.numbers) // self._store.at_once
            if (
                self._store.bytes_together
            ):  # neighbours come in one request: a part is not less than is requested together
                wanted = len(group.numbers) * self._bytes // self._store.bytes_together if self._is_measured() else 1
            return group.parts(max(min(wanted, len(self._threads)), 1))
        parts = max(min(int(len(group.numbers) * self._seconds / _SECONDS_OF_A_PART), len(self._threads)), 1)
        # Halves and quarters, no thirds: buffers of few sizes, which the pool of host memory can reuse for all parts.
        return group.parts(1 << parts.bit_length() - 1)

    def _read(self, group: _Group, start: int, end: int) -> None:
        jobs = group.jobs
        numbers = group.numbers if jobs is not None else group.numbers[start:end]
        records, begun = None, time.perf_counter()
        try:
            if jobs is not None:
                jobs.run(start)
            else:
                records = Records.of(self._store.records(numbers))
        except BaseException as error:
            records = None if jobs is not None else Records.of([error] * len(numbers))
        shares = 1 if jobs is None else jobs.count
        if observation.active is not None:
            observation.active.was_read(len(numbers) // shares, begun)
        seconds = (time.perf_counter() - begun) * shares / len(numbers)
        with self._lock:
            self._seconds = min(seconds, (3 * self._seconds + seconds) / 4)  # a delayed one tells little
            if records is not None:
                group.read[start] = records
            group.left -= 1
            if self._store.at_once > 1 and (records is not None or not group.left):
                whole = group.records() if records is None else records
                size = whole.nbytes // len(whole)
                self._bytes = max(size, self._bytes) if self._is_measured() else size
            if not group.left:
                self._ready.notify_all()
                if self._store.in_turn:
                    self._task.notify_all()
