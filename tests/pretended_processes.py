"""Threads in place of the processes that compile."""

from __future__ import annotations

import contextlib
import threading
from multiprocessing.connection import Pipe

from ndd._compiled.background import Background, Job
from ndd._compiled.compile_processes import ASIDE, ENDED, READY, STOP, STOPPED, Worker, Workers


class Processes:
    """`asked` are the messages that they have received, `aside` those of kernels that leave the CPUs to the program; `answers`
    says what one answers."""

    def __init__(self, monkeypatch, count=1):
        self.asked, self.aside, self.answers, self.stopped = [], [], {}, threading.Event()
        self.background = Background()
        self.background.allowed = True
        self.workers = self.background.workers
        monkeypatch.setattr(Workers, "start", lambda *_: None)
        for _ in range(count):
            ours, theirs = Pipe()
            self.workers._workers.append(Worker(ours))
            threading.Thread(target=self._serve, args=(theirs,), daemon=True).start()

    def _serve(self, connection):
        connection.send_bytes(READY)
        while True:
            try:
                message = connection.recv_bytes()
            except (EOFError, OSError):
                return
            if message == STOP:
                continue
            if message.startswith(ASIDE):
                message = message.removeprefix(ASIDE)
                self.aside.append(message)
            self.asked.append(message)
            answer = self.answers.pop(message, ENDED)
            if answer is None:  # it ends
                connection.close()
                return
            if answer == STOPPED:  # it compiles until it is stopped
                with contextlib.suppress(EOFError):
                    assert connection.recv_bytes() == STOP
                    self.stopped.set()
            with contextlib.suppress(OSError):
                connection.send_bytes(answer)

    def job(self, name, done, **more):
        return Job(lambda: done.append(name), message=lambda: name.encode(), **more)

    def begin(self, job):
        """Requests a kernel, and waits until a process has been given it."""
        self.background.do(job)
        while not self.background._running:
            pass

    def run(self, *jobs):
        *before, last = jobs
        self.background._jobs += before
        self.background.do(last)
        self.background.finish()
