"""Compiles kernels while the program goes on and fallbacks compute the same numbers more slowly.

If a kernel is neither compiled nor on disk, its fallback answers the call. Other processes compile (`compile_processes.py`),
or, where there are none, a thread, as soon as no call has waited for another kernel for a moment. Of several kernels the one
whose fallback has taken longest comes first. (Resampling takes twenty times as long. What a loop leaves to another library,
such as a JPEG, is no time of its fallback, but `Kernel.urgency`.) A kernel whose fallback has taken little is compiled with the
CPU time that the program leaves. The fallback of a loop calls the kernels inside the loop, one sample after the other: these
are not compiled by themselves, and the time of their fallbacks counts for the loop. Once a fallback has taken some seconds,
calls wait for the kernel while it is being compiled, because fallbacks take the processor and the interpreter from the
compiler; from the second batch on, while all CPUs compile. While another program of the machine compiles a kernel, others are
compiled here.

If no kernel is on disk, all processes but one begin with a few kernels that nearly every program needs (`early_kernels.py`). What
the program asks for comes first, interrupts them if it has waited for a second, and takes the place of the same early kernel. The
end of the program does not wait for them.

A kernel whose fallback takes much longer interrupts another one at the compiler's next step (after at most 0.6 s on a quiet
machine). So do a fork and a call that needs another kernel, if the thread compiles. The interrupted kernel is started again
later; inner kernels that are already compiled are stored. The end of the program waits as long as the kernel has taken so far,
at most 2 s, so that nearly finished work is not lost, or until a first kernel of this program is kept; Ctrl-C ends the wait.
(The thread stops after 1.4 s, at the compiler's next step: LLVM must not run while the process ends.) Forked processes compile
at the call, because they start late and end without notice. With NDD_COMPILE_IN_BACKGROUND=0 all processes do.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ndd._compiled.compile_processes import ELSEWHERE, READY, STOPPED, Worker, Workers
from ndd._execution import observation
from ndd._execution.compile_notice import in_background, say_if_long
from ndd._execution.fork import around_fork, fork_lock
from ndd._execution.signal_safe import start

_VARIABLE = "NDD_COMPILE_IN_BACKGROUND"
_QUIET = 0.3  # seconds after a call last compiled something
_LAST, _LAST_HERE = 2.0, 1.4  # seconds that the end of the program waits, for a process and for the thread
_SOON = 2.0  # seconds of compiling that may be lost for a kernel with a longer wait
_LATER = 0.1  # seconds between checks of whether another process has compiled something
_ELSEWHERE = 5.0  # seconds that another program is taken to compile a kernel, after it was found to do so
_PATIENCE = 2.0  # seconds of fallbacks, of all threads together, before calls wait for the compiler
_PATIENCE_IF_FULL = (
    1.2  # the same with the urgency, while all CPUs compile: a fallback delays them by the time that it takes
)
_FIRST = 0.2  # seconds of a fallback before that
_OVER = 5.0  # seconds in which calls that have begun before a loop was compiled end
_LITTLE = 0.2  # seconds of a fallback, below which its kernel leaves the CPUs to the program


class _BrokenOff(BaseException):  # numba wraps any `Exception` in an error of its own
    """Interrupts the compiler for a waiting call."""


class _Elsewhere(BaseException):
    """Interrupts the compiler if another process compiles the same kernel."""


class Job:
    """A kernel to be compiled.

    Attributes:
        compile: compiles it, or loads it if it is on disk.
        message: what a process that compiles receives; it gives None for a kernel that cannot be sent.
        inside: the kernels that it calls, directly or not.
        urgency: seconds by which it comes before others.
        spent: seconds that the fallback has taken.
        left: seconds that other code took for what the fallback left to it.
        begun: when a process began to compile it.
        stopping: whether the process has been asked to stop.
        later: the earliest time to start it.
        early: says whether the kernel is this one, if the program has not asked for it yet; else None.
        ended: when it was compiled, or failed.
    """

    def __init__(
        self,
        compile_now: Callable[[], None],
        inside: Collection[Any] = (),
        urgency: float = 0.0,
        message: Callable[[], bytes | None] = lambda: None,
        early: Callable[[Any, tuple[Any, ...]], bool] | None = None,
    ):
        self.compile = compile_now
        self.message = message
        self.inside = inside
        self.begun = 0.0
        self.stopping = False
        self.urgency = urgency
        self.spent = self.left = 0.0
        self.later = 0.0
        self.early = early
        self.ended: float | None = None
        self._answering: dict[object, float] = {}

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Measures a call of the fallback."""
        call, begun = object(), time.monotonic()
        self._answering[call] = begun
        try:
            yield
        finally:
            del self._answering[call]
            self.spent += time.monotonic() - begun

    def waited(self) -> float:
        """Seconds that the fallback has taken, with calls that still run, and the job's urgency."""
        now = time.monotonic()
        return self.urgency + self.spent + sum([now - begun for begun in list(self._answering.values())])


class Background:
    """The thread that compiles, or that gives work to processes. It runs while there is work.

    Attributes:
        allowed: whether fallbacks are used at all.
    """

    def __init__(self) -> None:
        self._ends_early = False
        self._has_kept = False  # a kernel of this program, in another process
        self.allowed = os.environ.get(_VARIABLE) != "0"
        self.workers = Workers()
        self._begin()
        # Workers are often forked one after the other, so no kernel is started between two forks.
        around_fork(in_parent=self.busy, in_child=self._in_child)

    def _begin(self) -> None:
        self._jobs: list[Job] = []
        self._job: Job | None = None
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._busy_at = self._begun = 0.0
        self._folder: Path | None = None
        self._end: float | None = None  # of the program
        self._running: dict[Worker, Job] = {}  # in other processes
        self._check: Callable[[], bool] | None = None

    def _in_child(self) -> None:
        self.allowed = False
        in_background.clear()
        self.workers.forget()
        self._begin()

    def start_early(self, empty_folder: Callable[[], Path | None], kernels: Sequence[Any] = ()) -> None:
        """Starts the processes that compile if there is such a folder: then a program that imports this package needs them. All
        but one begin with these kernels (`early_kernels.py`)."""
        if not self.allowed or os.environ.get("NDD_COMPILE") == "0":
            return
        self.workers.start(empty_folder())
        if self.workers.alive():
            self._jobs += [Job(lambda: None, message=each.message, early=each.is_this) for each in kernels]
            for worker, job, each in zip(self.workers.all_but_one(), list(self._jobs), kernels, strict=False):
                self._give(worker, job, each.message())

    def forbid(self) -> None:
        """Compiles kernels at calls from now on, in this process and in those that it starts."""
        self.allowed = False
        os.environ[_VARIABLE] = "0"
        self.workers.close()

    def busy(self) -> None:
        """Notes that something was compiled at a call."""
        self._busy_at = time.monotonic()

    def do(self, job: Job, folder: Path | None = None, kernel: Any = None, kinds: tuple[Any, ...] = ()) -> None:
        """Compiles the job: a kernel for types of arguments, which is stored in the folder. Without other processes it is begun
        when no call compiles."""
        self.busy()
        with self._lock:
            self._folder = folder
            self.workers.start(folder)
            self._running = {worker: each for worker, each in self._running.items() if not worker.connection.closed}
            self._jobs = [each for each in self._jobs if not (each.early and each.early(kernel, kinds))]
            for worker, other in self._running.items():
                if other.early and other.early(kernel, kinds):
                    job.begun, job.stopping = other.begun, other.stopping
                    self._running[worker] = job
                    break
            else:
                self._jobs.append(job)
            if not self._ends_early:
                self._ends_early = True
                atexit.register(self.begin_end)
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="ndd-compile", daemon=True)
                start(thread)
                self._thread = thread

    def job_with(self, kernel: Any) -> Job | None:
        """The kernel to be compiled that has this one inside: then this one need not be called any more."""
        with self._lock:
            return next((job for job in [*self._compiling(), *self._jobs] if kernel in job.inside), None)

    def _compiling(self) -> list[Job]:
        return [*([] if self._job is None else [self._job]), *self._running.values()]

    def await_if_slow(self, job: Job, inside: bool = False) -> None:
        """Waits while the job is being compiled, if its fallback has taken long; or is expected to, if another program compiles
        it: programs that start together would all compute by fallbacks what one of them compiles. `inside`: the call is for a
        part of a batch, of which the fallback of the job has already made others."""
        while job.ended is None and self._end is None:
            elsewhere = job not in self._compiling()
            if elsewhere and time.monotonic() > job.later + _ELSEWHERE:
                break
            patient = (job.waited() if elsewhere else job.spent) <= _PATIENCE
            if patient and (elsewhere or inside or not self._delays_compilers(job)):
                break
            time.sleep(_LATER / 10)

    def _delays_compilers(self, job: Job) -> bool:
        """Whether processes compile on all CPUs, or will at once, while an urgent kernel's fallback takes long."""
        if not job.urgency or job.spent + job.left <= _FIRST or job.waited() + job.left <= _PATIENCE_IF_FULL:
            return False
        return self.workers.cpus <= len(self._running) + len([other for other in list(self._jobs) if not other.early])

    def count(self) -> int:
        """The number of kernels that wait or are being compiled."""
        return len(self._jobs) + max(1, len(self._compiling()))

    def _run(self) -> None:
        begun = time.monotonic()
        while True:
            if self.workers.alive():
                say_if_long(self._folder, self.count, begun)
            self._hand_out()
            while not self.workers.alive() and self._is_busy() and self._end is None:
                time.sleep(0.05)
            with self._lock:
                asked = [job for job in [*self._jobs, *self._running.values()] if not job.early]
                goes_on = self._running or (self.workers.alive() and self._goes_on())
                if not asked or (self._end is not None and not goes_on):
                    self._thread = None
                    return
                job = None if self.workers.alive() else self._next()
                if job is not None:
                    self._jobs.remove(job)
                    self._job = job
            if job is not None:
                self._compile_here(job)
            elif not self.workers.alive():
                time.sleep(_LATER / 2)

    def _hand_out(self) -> None:
        """Gives jobs to other processes, and waits a moment for what they answer."""
        if not self.workers.alive():
            return
        if not self._goes_on():
            self._running.clear()
            self.workers.close()
            return
        while (job := self._next()) is not None and (self._end is None or not (self._has_kept or job.early)):
            worker = self._free_worker()
            if worker is None:
                if not job.later:  # else another process may compile it
                    self._make_room_for(job)
                break
            message = job.message()
            if message is None:
                worker.free = True
                if self._end is not None:
                    break
                with self._lock:
                    self._jobs.remove(job)
                self._compile_here(job)
            else:
                self._give(worker, job, message)
        for worker in self.workers.answered(_LATER / 2, list(self._running)):
            self._take(worker)

    def _give(self, worker: Worker, job: Job, message: bytes) -> None:
        with self._lock:
            if job not in self._jobs:  # the program has asked for an early one meanwhile
                worker.free = True
                return
            self._jobs.remove(job)
            job.begun, job.stopping = time.monotonic(), False
            self._running[worker] = job
        worker.begin(message, aside=not job.early and job.waited() < _LITTLE)

    def _free_worker(self) -> Worker | None:
        """A process that waits for a kernel, and is taken by this call."""
        with self._lock:
            worker = self.workers.free()
            if worker is not None:
                worker.free = False
            return worker

    def _take(self, worker: Worker) -> None:
        """The answer of a process."""
        said = b""
        with contextlib.suppress(EOFError):
            said = worker.answer()
        if said == READY:  # for the kernel that it has been given before
            return
        with self._lock:
            job = self._running.pop(worker)
            if said in (ELSEWHERE, STOPPED, b""):
                self._jobs.append(job)
            else:
                self._has_kept = True
                if self._end is None:
                    self._job = job
        if said == b"":
            self.workers.lost(worker)
            job.message = lambda: None  # what ends a process is not tried again in another one
        if said == ELSEWHERE:
            job.later = time.monotonic() + _LATER
        if self._job is job:
            self._compile_here(job)

    def _make_room_for(self, job: Job) -> None:
        """Stops the kernel that can wait best, if the program waits much longer for this one."""
        others = {worker: other for worker, other in self._running.items() if not other.stopping}
        if len(others) == len(self._running) > 0:  # one is enough
            less = [each for each, other in others.items() if self._outranks(job, other, other.begun)]
            worker = min(
                less, key=lambda each: others[each].waited() + (1.0 if others[each].early else 0.0), default=None
            )
            if worker is not None:
                others[worker].stopping = True
                worker.stop()

    def _goes_on(self) -> bool:
        """Whether other processes compile: until the program ends, and then for what is nearly done. If no kernel of this program
        has been kept, as long as its end may take: else one that always ends before they are ready would never keep any."""
        if self._end is None:
            return True
        running = [job for job in list(self._running.values()) if not job.early]
        if not self._has_kept and any([not job.early for job in [*running, *self._jobs]]):
            return time.monotonic() - self._end < _LAST
        return any([self._is_nearly_done(job.begun, _LAST) for job in running])

    def compile_elsewhere(self, message: Callable[[], bytes | None]) -> None:
        """Lets another process compile a kernel for a call that waits, if one is free."""
        worker = self._free_worker() if self.allowed else None
        if worker is None:
            return
        content = message()
        if content is None:
            worker.free = True
            return
        try:
            worker.begin(content)
            worker.answer()
        except EOFError:
            self.workers.lost(worker)
        except BaseException:  # Ctrl-C: its answer would be taken for the next one
            self.workers.lost(worker)
            raise

    def _next(self) -> Job | None:
        """The job to begin now: the one whose fallback has taken longest. One process is left for what the program asks for."""
        now, spare = time.monotonic(), len(self._running) < len(self.workers.all_but_one())
        jobs = [job for job in self._jobs if job.later <= now and (spare or not job.early)]
        return max(jobs, key=lambda job: (not job.early, job.waited()), default=None)

    def _compile_here(self, job: Job) -> None:
        with fork_lock:
            in_background.set()
            self._job, self._begun = job, time.monotonic()
            try:
                job.compile()
                job.ended = time.monotonic()
            except _BrokenOff:
                self._jobs.append(job)
            except _Elsewhere:
                job.later = self._begun + _LATER
                self._jobs.append(job)
            finally:
                self._job = None
                in_background.clear()

    def _is_busy(self) -> bool:
        return fork_lock.wanted or time.monotonic() - self._busy_at < _QUIET

    def step(self) -> None:
        """Called before each step of the compiler: interrupts it if it runs in the background and a call waits."""
        if threading.current_thread() is not self._thread:
            return
        if self._check is not None:
            if self._check():
                raise _BrokenOff
            return
        ended = self._end is not None and not self._is_nearly_done(self._begun, _LAST_HERE)
        if ended or fork_lock.wanted or self._is_outranked():
            raise _BrokenOff

    def _is_outranked(self) -> bool:
        """Whether, soon after the start of this kernel, the program waits much longer for a later one."""
        job, other = self._job, self._next()
        return job is not None and other is not None and self._outranks(other, job, self._begun)

    def _outranks(self, job: Job, other: Job, begun: float) -> bool:
        return (other.early or time.monotonic() - begun <= _SOON) and job.waited() > 2 * other.waited() + 1.0

    def _is_nearly_done(self, begun: float, longest: float) -> bool:
        """Whether the end of the program still waits for a kernel begun then."""
        end = self._end or 0.0
        return time.monotonic() - end < min(longest, end - begun)

    def interrupted_by(self, check: Callable[[], bool], compile_now: Callable[[], None]) -> bytes:
        """Compiles in this thread, as in the background. Returns why it was interrupted: `STOPPED`, if `check` said so, or
        `ELSEWHERE`; else b""."""
        self._thread, self._check = threading.current_thread(), check
        try:
            compile_now()
        except _BrokenOff:
            return STOPPED
        except _Elsewhere:
            return ELSEWHERE
        return b""

    def elsewhere(self, inner: bool) -> None:
        """Called if another process compiles the same kernel. In the background another kernel comes first, unless this is an
        inner kernel of the current one."""
        self.step()
        if not inner and threading.current_thread() is self._thread:
            raise _Elsewhere

    def finish(self) -> None:
        """Waits until all is compiled."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def begin_end(self) -> None:
        """At the end of the program, before its other threads end: a call that waits for a kernel there would hold them up."""
        if self._end is None:
            self._end = time.monotonic()

    def end(self) -> None:
        """At the end of the program: waits for what is nearly done, or until Ctrl-C."""
        self.begin_end()
        thread, end = self._thread, self._end or 0.0
        if thread is None:
            return
        with contextlib.suppress(KeyboardInterrupt):
            thread.join(max(0.0, end + _LAST - time.monotonic()))
        self._end = float("-inf")  # nothing is nearly done any more
        while self._job is not None and thread.is_alive():
            with contextlib.suppress(KeyboardInterrupt):
                thread.join()


background = Background()
atexit.register(background.end)


class Fallback(NamedTuple):
    """The function that is called while a kernel is compiled.

    Attributes:
        computes: does the same as the kernel.
        kernel: the kernel.
        inside: gives the kernels that it calls, directly or not.
        urgency: seconds by which it comes before others.
        leaves: see `Kernel.leaves`.
    """

    computes: Callable[..., Any]
    kernel: Any
    inside: Callable[[], Collection[Any]]
    urgency: float
    leaves: Callable[..., float] | None = None


def with_fallback(
    dispatcher: Any,
    cache: Any,
    fallback: Fallback,
    message: Callable[[tuple[Any, ...]], bytes | None],
    compile_for: Callable[..., Any],
) -> Callable[..., Any]:
    """The function of a numba dispatcher for types that it has not compiled: the fallback answers if `cache` has no file for
    these types. Otherwise `compile_for` loads or compiles at the call.
    """
    waiting: dict[tuple[Any, ...], Job] = {}
    failed: set[tuple[Any, ...]] = set()
    asking = threading.RLock()

    def guarded(*args: Any) -> Any:
        kinds = tuple([dispatcher.typeof_pyval(value) for value in args])
        job = waiting.get(kinds)
        if job is not None and job.ended is None:
            background.await_if_slow(job, fallback.kernel in job.inside)
        if job is None or (job.ended is not None and time.monotonic() - job.ended > _OVER):
            if kinds in failed or not background.allowed or cache.has_file(kinds, dispatcher.targetctx):
                return compile_for(*args)
            with asking:  # two threads that call it at the same time ask once
                asked = waiting.get(kinds)
                if asked is None or asked is job:
                    asked = waiting[kinds] = background.job_with(fallback.kernel) or begun(kinds)
                job = asked
        elif kinds in dispatcher.overloads:
            return dispatcher.overloads[kinds].entry_point
        elif not background.allowed:  # the process has been forked
            return compile_for(*args)

        def silent(*args: Any) -> Any:
            if observation.active is not None:
                observation.active.note("slower than usual: its kernel was not compiled yet")
            if fallback.leaves is not None:
                job.left += fallback.leaves(*args)
            with job.answering(), np.errstate(all="ignore"):  # compiled kernels do not warn of infinities either
                return fallback.computes(*args)

        return silent  # numba calls this result

    def begun(kinds: tuple[Any, ...]) -> Job:
        job = Job(lambda: compile_now(kinds), fallback.inside(), fallback.urgency, functools.partial(message, kinds))
        background.do(job, cache.folder, fallback.kernel, kinds)
        return job

    def compile_now(kinds: tuple[Any, ...]) -> None:
        try:
            dispatcher.compile(kinds)
        except Exception:  # the next call raises it again, on the caller's thread
            failed.add(kinds)
        waiting.pop(kinds, None)  # not if it was interrupted

    return guarded
