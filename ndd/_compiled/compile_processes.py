"""Processes that compile kernels while the program goes on, one for each CPU, four at most.

A thread that compiles shares the interpreter with the program, and one thread uses one CPU. These processes are started when
the first kernel must be compiled; or by `import ndd` if no kernel is on disk yet, before it imports torch (`_before_torch.py`):
they import numba and begin to compile meanwhile. One process imports numba and is forked; it has no threads, and neither torch
nor the program's modules. A process receives a kernel (`kernel_messages.py`), compiles it, stores its file, and answers (with
the content, if the file cannot be written). The program then loads it.

On one machine one program at a time has such processes for a cache folder. They end with the program, or when nothing has been
compiled for a minute. Where they cannot be started (one CPU, no folder to write to, no `fork`), a thread compiles.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path

from ndd._compiled import kernel_file
from ndd._execution.cpus import cpu_count
from ndd._execution.machine_locks import try_lock, unlock

READY, ENDED, ELSEWHERE, STOPPED = b"ready", b"ended", b"elsewhere", b"stopped"
"""Answers of a process. `ENDED`: the kernel is stored, or follows, or cannot be compiled."""
STOP = b""
ASIDE = b"aside"
"""Begins the message of a kernel that leaves the CPUs to the program."""
_MOST = 4
_LOCK = "compile processes"
PROGRAM = """
import os
if os.fork():
    os._exit(0)
import sys, types
sys.path[:] = {path!r}
sys.modules["torch"] = types.ModuleType("torch")
sys.modules["scipy"] = sys.modules["cffi"] = None
sys.modules["ndd"] = types.ModuleType("ndd")
sys.modules["ndd"].__path__ = {package!r}
from ndd import _bare_packages
_bare_packages.add("ndd._tensor")
_bare_packages.add("ndd._execution")
from ndd._compiled.compile_worker import run
run({numbers!r})
"""
"""Of the first process. Kernels need no torch, and single modules of these packages: importing all of them takes longer than most
kernels. What is missing is only needed to run the text of a kernel. numba imports SciPy and cffi if it can, which takes a third
of its time; a kernel that multiplies matrices by SciPy's BLAS is compiled by the program."""


class Worker:
    """The program's end of the connection to one process.

    Attributes:
        connection: to the process.
        ready: whether it has imported numba.
        free: whether it waits for a kernel.
    """

    def __init__(self, connection: Connection):
        self.connection = connection
        self.ready = self.free = self._given = False

    def answer(self) -> bytes:
        """Waits for what it says. EOFError if the process has ended."""
        try:
            said = self.connection.recv_bytes()
        except OSError as error:
            raise EOFError from error
        self.free = self.ready or not self._given
        self.ready = True
        if said.startswith(ENDED) and said != ENDED:
            for name, content, why in json.loads(said.removeprefix(ENDED)):
                kernel_file.unstored[name] = bytes.fromhex(content), why
            return ENDED
        return said

    def begin(self, message: bytes, aside: bool = False) -> None:
        """Sends a kernel, for which the process need not be ready. If it has ended, `answer` says so. `aside`: compiles it when
        the program leaves time on a CPU."""
        self.free, self._given = False, True
        with contextlib.suppress(OSError):
            self.connection.send_bytes(ASIDE * aside + message)

    def stop(self) -> None:
        """Asks it to interrupt its kernel; it answers `STOPPED`, unless it has already answered."""
        with contextlib.suppress(OSError):
            self.connection.send_bytes(STOP)


class Workers:
    """The processes of this program.

    Attributes:
        cpus: the number of CPUs when they were started.
    """

    cpus = 1 << 30

    def __init__(self) -> None:
        self._workers: list[Worker] = []
        self._folder: Path | None = None
        self._possible = hasattr(os, "fork")

    def start(self, folder: Path | None) -> None:
        """Starts the processes, unless they run or cannot be had."""
        if self._workers and folder not in (None, self._folder):  # NDD_CACHE_DIR was set after the import
            self.close()
            self._possible = True
        if self._workers or not self._possible or folder is None:
            return
        self.cpus = cpu_count()
        count = min(_MOST, self.cpus)
        if count < 2 or getattr(sys, "frozen", False) or not try_lock(folder, _LOCK):
            self._possible = False
            return
        pairs = [Pipe() for _ in range(count)]
        try:
            _start([theirs.fileno() for _, theirs in pairs])
        except (OSError, ValueError, subprocess.SubprocessError):
            self._possible = False
            unlock(folder, _LOCK)
        else:
            self._folder = folder
            self._workers = [Worker(ours) for ours, _ in pairs]
        for _, theirs in pairs:
            theirs.close()

    def alive(self) -> bool:
        """Whether there are processes, even if they are not ready yet."""
        return bool(self._workers)

    def all_but_one(self) -> list[Worker]:
        """The processes but the first one."""
        return self._workers[1:]

    def free(self) -> Worker | None:
        """A process that waits for a kernel."""
        for worker in list(self._workers):
            if not worker.ready and worker.connection.poll():
                try:
                    worker.answer()
                except EOFError:
                    self.lost(worker)
        return next((worker for worker in self._workers if worker.free), None)

    def answered(self, seconds: float, busy: Sequence[Worker]) -> list[Worker]:
        """Waits until one of these has answered, or ended, or another one is ready; returns those that have answered."""
        awaited = {*busy, *[worker for worker in self._workers if not worker.ready]}
        said = wait([worker.connection for worker in awaited], seconds)
        return [worker for worker in busy if worker.connection in said]

    def lost(self, worker: Worker) -> None:
        """Forgets a process that has ended. If the last one was idle, new ones can be started later."""
        worker.connection.close()
        self._workers = [other for other in self._workers if other is not worker]
        if not self._workers:
            self._possible = worker.ready
            unlock(self._folder, _LOCK)

    def close(self) -> None:
        """Ends the processes; what they compile is lost."""
        for worker in self._workers:
            worker.connection.close()
        if self._workers:
            unlock(self._folder, _LOCK)
        self._workers, self._possible = [], False

    def forget(self) -> None:
        """In a forked child: the processes are the parent's."""
        for worker in self._workers:
            worker.connection.close()
        self._workers, self._possible = [], False


def _start(numbers: Sequence[int]) -> None:
    """Starts the first process, with these files. It is no child of the program, which may wait for all of its own."""
    package = list(sys.modules["ndd"].__path__)
    program = PROGRAM.format(path=sys.path, package=package, numbers=list(numbers))
    options = ["-I", "-S", *(["-B"] if sys.dont_write_bytecode else [])]
    subprocess.run(
        [sys.executable, *options, "-c", program],
        pass_fds=numbers,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "NDD_COMPILE_IN_BACKGROUND": "0", "OPENBLAS_NUM_THREADS": "1"},
        start_new_session=True,  # a Ctrl-C is the program's, and the priority of a session its own (`compile_worker.py`)
        check=True,
    )  # fmt: skip
