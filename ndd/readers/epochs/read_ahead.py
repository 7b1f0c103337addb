"""Reading ahead: a few threads read the coming batches while the user works on the present one."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ndd._execution.signal_safe import SignalSafeCondition, start
from ndd._execution.weak_registry import EndedAtExit
from ndd.decoders import BadSample
from ndd.readers.sampling.sampler import NumberStream, Position
from ndd.readers.stores.records import MOST_THREADS, Jobs, Records, RecordStore

_WAITS_FOR_A_THREAD = 3
# Records that take less are mostly Python's work, which threads only take from each other: 256 records of 1 kB in a
# container take 1.5 to 2.5 us each, small files 8, photographs 17, a disk with latency 50 and more.
_WORTH_A_THREAD = 5e-6
_THREADS_TO_PEEK = 2  # so many for a GPU's lookahead that finds nothing yet: one reads 64 photographs in 2.5 ms
_BEYOND_PEEKING = 3  # batches read beyond what lookahead looks for: reading one may take as long as an iteration
# The least that a thread reads of a batch: 256 records of 1 kB take 0.2 ms by one thread, 1.5 ms of all in four parts.
_SECONDS_OF_A_PART = 2e-3
_A_WHILE = 0.01  # seconds
_SAMPLES_AT_ONCE = 16  # in sample mode, so that a hand-over between threads serves many samples
_BYTES_AT_ONCE = 1 << 26  # of batches that are read together or ahead because their store wants many records at once
# Times what such a store wants at once is read ahead: where one request in a hundred takes ten times as long as the
# others, with less the connections have nothing to do while its batch waits for it.
_TIMES_AHEAD = 8


class Step(NamedTuple):
    """One batch (or sample) as it was read: its records, where the stream goes on, and the
    records that were left out."""

    numbers: list[int]
    records: Records
    position: Position
    dropped: tuple[BadSample, ...] = ()


class _Group:
    """Batches that are planned and handed over together."""

    __slots__ = ("cuts", "done", "jobs", "left", "numbers", "peeked", "read")

    def __init__(self, cuts: list[tuple[list[int], Position]]):
        self.cuts = deque(cuts)
        self.numbers = [number for numbers, _ in cuts for number in numbers]
        self.read: dict[int, Records] = {}  # by their first place
        self.jobs: Jobs | None = None  # where the store says how several threads read them
        self.left = 0  # parts still being read
        self.done = 0  # records already handed over
        self.peeked: deque[Step] = deque()  # the next steps, as far as somebody looked

    def parts(self, count: int) -> list[tuple[_Group, int, int]]:
        """What several threads read: the group, the first record and the one after the last."""
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
        """What `step` will give after so many others: the same object."""
        while len(self.peeked) <= distance:
            (numbers, position), records = self.cuts[len(self.peeked)], self.records()
            if len(numbers) < len(records):
                start = self.done + sum(len(step.numbers) for step in self.peeked)
                records = Records.of(records[start : start + len(numbers)])
            self.peeked.append(Step(numbers, records, position))
        return self.peeked[distance]

    def step(self) -> Step:
        found = self.peek()
        self.peeked.popleft()
        self.cuts.popleft()
        self.done += len(found.numbers)
        return found


class ReadAhead:
    """Threads that read a stream's batches in order, at most `depth` groups before they are asked for (or as many as
    `peek` has looked for).

    The threads start with the first request and end with `stop()`. They hold this object and the store, never the
    reader, so a reader that nobody holds any more can die and stop them.

    Attributes:
        batch: the size of the batches; None for single samples.
    """

    def __init__(self, store: RecordStore, open_stream: Callable[[], NumberStream], batch: int | None, depth: int):
        self._store = store
        self._open_stream = open_stream
        self._stream: NumberStream | None = None
        self.batch = batch
        self._depth = depth
        # A reader's finaliser, run by the collector on one of these threads, calls stop().
        self._lock = threading.RLock()
        self._work = threading.Condition(self._lock)  # for the threads here: a part to read or a group to plan
        self._ready = SignalSafeCondition(self._lock)  # for whoever asks: a group is complete
        self._groups: deque[_Group] = deque()
        self._parts: deque[tuple[_Group, int, int]] = deque()
        self._streaming = False
        self._planning = False
        self._failure: BaseException | None = None  # the order itself failed (a user's sampler)
        self._stopped = _running.over
        self._process = os.getpid()
        self._threads: list[threading.Thread] = []
        self._waits = 0  # how often the user had to wait for a batch
        self._seconds = 1.0  # that a record took lately; at first unknown
        self._bytes = _BYTES_AT_ONCE  # of the largest record so far, about; at first unknown
        _running.add(self)

    def next(self) -> Step:
        """The next batch of the stream; waits for it. An error of the order is raised, and tried again next time."""
        with self._lock:
            self._start()
            if not self._streaming or self._failure:
                self._streaming, self._failure = True, None
                self._work.notify()
            if not self._groups or self._groups[0].left:
                self._waited(MOST_THREADS)
            while not self._groups or self._groups[0].left:
                if self._failure and not self._groups:
                    raise self._failure
                self._wait()
            group = self._groups[0]
            step = group.step()
            if not group.cuts:
                self._groups.popleft()
                self._work.notify()
            return step

    def peek(self, distance: int = 1) -> Step | None:
        """What `next` will give after so many calls, if all of that has been read; does not wait. Batches only.

        From then on some batches more than that are read ahead, for who looks so far will do so again.
        """
        with self._lock:
            if self._depth < distance + _BEYOND_PEEKING:
                self._depth = distance + _BEYOND_PEEKING
                self._work.notify()
            if self._failure or self._stopped:
                return None
            beyond = distance - 1
            for group in self._groups:
                if group.left:
                    break
                if beyond < len(group.cuts):
                    return group.peek(beyond)
                beyond -= len(group.cuts)
            self._waited(_THREADS_TO_PEEK)
            return None

    def read(self, numbers: Sequence[int]) -> Records:
        """Certain records, before anything that is read ahead."""
        group = _Group([(list(numbers), Position())])
        jobs = self._store.jobs(group.numbers)
        with self._lock:
            self._start()
            self._parts.extendleft(reversed(self._cut(group, jobs)))
            self._work.notify_all()
            while group.left:
                self._wait()
        return group.records()

    def stop(self) -> None:
        """End the threads; each finishes the part it is reading. Does not wait for them."""
        if os.getpid() != self._process:  # a forked child: no threads here, and the lock may be held for ever
            return
        with self._lock:
            self._stopped = True
            self._parts.clear()
            self._groups.clear()
            self._work.notify_all()
            self._ready.notify_all()

    def _wait(self) -> None:
        if self._stopped:
            raise RuntimeError(
                "a reader was asked for data while the program ends, when its threads have ended: read before, or "
                "register the handler with atexit after ndd was imported, so that it runs earlier"
            )
        self._ready.wait()

    def join(self, timeout: float) -> None:
        """Wait for each thread to end, `timeout` seconds at most."""
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(timeout)

    def _waited(self, threads: int) -> None:
        """A batch was not there in time; every third time another thread comes, up to so many, if that can help."""
        self._waits += 1
        wanted = self._waits % _WAITS_FOR_A_THREAD == 0 and self._seconds > _WORTH_A_THREAD
        if wanted and len(self._threads) < threads:
            self._add_thread()

    def _start(self) -> None:
        while len(self._threads) < self._store.threads:
            self._add_thread()

    def _add_thread(self) -> None:
        thread = threading.Thread(target=self._run, name=f"ndd-reader-{len(self._threads)}", daemon=True)
        start(thread)
        self._threads.append(thread)

    def _run(self) -> None:
        while not self._stopped:
            taken: list[tuple[_Group, int, int] | None] = []
            try:
                self._work_once(taken)
            except (MemoryError, RuntimeError):  # not even a lock can be had: no reason to let others wait for ever
                self._give_back(taken)

    def _work_once(self, taken: list[tuple[_Group, int, int] | None]) -> None:
        """Read a part or plan a group; what it took is put into `taken`. None is a plan."""
        with self._lock:
            while not (self._stopped or self._may_read() or self._may_plan()):
                self._work.wait()
            if self._stopped:
                return
            reads = self._may_read()
            taken.append(self._parts[0] if reads else None)
            if reads:
                self._parts.popleft()
            else:
                self._planning = True
        part = taken[0]
        if part is None:
            self._plan()
        else:
            self._read(*part)

    def _give_back(self, taken: list[tuple[_Group, int, int] | None]) -> None:
        """What was taken is done again, in a while."""
        time.sleep(_A_WHILE)
        with self._lock:
            for part in taken:
                if part is None:
                    self._planning = False
                elif part[1] not in part[0].read:
                    self._parts.appendleft(part)

    def _may_read(self) -> bool:
        if not self._parts or not self._store.in_turn:
            return bool(self._parts)
        begun = next((group for group in self._groups if group.left), None)
        return begun is None or self._parts[0][0] is begun or self._parts[0][0] not in self._groups

    def _may_plan(self) -> bool:
        if not self._streaming or self._planning or self._failure:
            return False
        return len(self._groups) < self._depth or self._is_idle()

    def _is_idle(self) -> bool:
        """Whether a store that wants many records at once has too few to do."""
        if self._store.at_once == 1:
            return False
        ahead = sum(len(group.numbers) - group.done for group in self._groups)
        most = min(_TIMES_AHEAD * self._store.at_once, len(self._store))
        return ahead < min(most, _BYTES_AT_ONCE // max(self._bytes, 1))

    def _plan(self) -> None:
        """Ask the stream for the next group. One thread at a time, without the lock: a shuffle may take a while."""
        cuts: list[tuple[list[int], Position]] = []
        failure = jobs = None
        try:
            if self._stream is None:
                self._stream = self._open_stream()
            for _ in range(self._cuts_per_group()):
                numbers = self._stream.take().tolist()
                cuts.append((numbers, self._stream.position))
            jobs = self._store.jobs([number for numbers, _ in cuts for number in numbers])
        except BaseException as error:  # also SystemExit from a user's sampler: this thread has to live on
            failure = error
        with self._lock:
            self._planning = False
            self._failure = failure
            if cuts and not self._stopped:
                group = _Group(cuts)
                parts = self._cut(group, jobs)
                self._groups.append(group)
                self._parts.extend(parts)
                self._work.notify(len(parts))
            if failure:
                self._ready.notify_all()

    def _cuts_per_group(self) -> int:
        """How many batches are read together, or samples: enough for the store, but not too many bytes."""
        wanted = -(-self._store.at_once // (self.batch or 1))
        room = _BYTES_AT_ONCE // ((self.batch or 1) * max(self._bytes, 1))
        return max(1 if self.batch else _SAMPLES_AT_ONCE, min(wanted, room))

    def _cut(self, group: _Group, jobs: Jobs | None = None) -> list[tuple[_Group, int, int]]:
        if jobs is not None:
            return group.parts_of_jobs(jobs)
        if self._store.at_once > 1:
            return group.parts(min(max(len(group.numbers) // self._store.at_once, 1), len(self._threads)))
        parts = min(max(int(len(group.numbers) * self._seconds / _SECONDS_OF_A_PART), 1), len(self._threads))
        # Halves and quarters, no thirds: buffers of few sizes, which the pool of host memory gives to each other's parts.
        return group.parts(1 << parts.bit_length() - 1)

    def _read(self, group: _Group, start: int, end: int) -> None:
        jobs = group.jobs
        numbers = group.numbers if jobs is not None else group.numbers[start:end]
        found, begun = None, time.perf_counter()
        try:
            if jobs is not None:
                jobs.run(start)
            else:
                found = Records.of(self._store.records(numbers))
        except BaseException as error:
            found = None if jobs is not None else Records.of([error] * len(numbers))
        shares = 1 if jobs is None else jobs.count
        seconds = (time.perf_counter() - begun) * shares / len(numbers)
        size = found.nbytes // len(numbers) if found is not None and self._store.at_once > 1 else 0
        with self._lock:
            self._bytes = size if self._bytes == _BYTES_AT_ONCE else max(size, self._bytes)
            self._seconds = min(seconds, (3 * self._seconds + seconds) / 4)  # one that was held up says little
            if found is not None:
                group.read[start] = found
            group.left -= 1
            if not group.left:
                self._ready.notify_all()
                if self._store.in_turn:
                    self._work.notify_all()


# No thread may read on while the interpreter goes down; what begins then is stopped from the beginning.
_running: EndedAtExit[ReadAhead] = EndedAtExit(ReadAhead.stop, lambda ahead: ahead.join(1.0))
