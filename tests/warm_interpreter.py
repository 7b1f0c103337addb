"""Programs that run in a process of their own, as by `python -c`, but find torch imported.

Importing torch takes more than two seconds of one core, and what most tests of processes look at comes later: how a
program ends, forks, or is interrupted. So one process imports torch, and nothing of ndd, and forks for each program a
child that runs it to the interpreter's end. Tests of what comes before start `sys.executable`.

Importing ndd and numba takes one second more. With `has_ndd` the program finds them imported too: it must not ask for what an
import does, nor for settings that an import reads. As any child of a fork it compiles kernels at calls.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TextIO


class Program:
    """One that runs. The next one begins when this one has ended: wait for it by `ended`."""

    def __init__(
        self,
        code: str,
        *arguments: str,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        has_ndd: bool = False,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ndd-program-")
        self._code = code
        request = {
            "code": code,
            "argv": ["-c", *arguments],
            "env": dict(os.environ) if env is None else env,
            "cwd": str(cwd or Path.cwd()),
        }
        Path(self._folder.name, "request.json").write_text(json.dumps(request))
        _server().tell(json.dumps([self._folder.name, has_ndd]))
        self.pid = int(self._answer(120))  # torch may be imported first

    def said(self, where: str = "stdout") -> str:
        """What it has written so far."""
        path = Path(self._folder.name, where)
        return path.read_text() if path.exists() else ""

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def ended(self, timeout: float) -> subprocess.CompletedProcess[str]:
        """Waits for its end; one that takes longer is killed, and that is an error."""
        try:
            status = int(self._answer(timeout))
        except subprocess.TimeoutExpired:
            self.send_signal(signal.SIGKILL)
            self._answer(60)
            raise
        said = self.said("stdout"), self.said("stderr")
        self._folder.cleanup()
        return subprocess.CompletedProcess(self._code, os.waitstatus_to_exitcode(status), *said)

    def _answer(self, timeout: float) -> str:
        answer = _server().answer(timeout)
        if answer is None:
            raise subprocess.TimeoutExpired(self._code, timeout, self.said("stdout"), self.said("stderr"))
        return answer


def run(code: str, *arguments: str, timeout: float = 200, **more) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)`."""
    return Program(code, *arguments, **more).ended(timeout)


class _Server:
    """Lines to and from a process that forks programs: one of this process, or a child of the one that a run's workers share."""

    def __init__(self, read: int, write: int, held: object) -> None:
        self._read, self._write, self.held = read, write, held
        self._told = b""

    def tell(self, line: str) -> None:
        os.write(self._write, line.encode() + b"\n")

    def answer(self, timeout: float) -> str | None:
        """The next line; None if there is none for so many seconds."""
        end = time.monotonic() + timeout
        while b"\n" not in self._told:
            if not select.select([self._read], [], [], max(0.0, end - time.monotonic()))[0]:
                return None
            more = os.read(self._read, 4096)
            assert more, "the process that forks programs has ended"
            self._told += more
        line, _, self._told = self._told.partition(b"\n")
        return line.decode()


@functools.cache
def _server() -> _Server:
    if path := os.environ.get(_ADDRESS):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        atexit.register(connection.close)
        return _Server(connection.fileno(), connection.fileno(), connection)
    process = _started(stdout=subprocess.PIPE)
    return _Server(process.stdout.fileno(), process.stdin.fileno(), process)


def share() -> str | None:
    """Starts the process for the workers of this one, before they are started: torch is imported once. Returns where it starts
    workers too (`warm_workers.py`)."""
    folder = tempfile.mkdtemp(prefix="ndd-warm-")
    with socket.socket(socket.AF_UNIX) as programs, socket.socket(socket.AF_UNIX) as workers:
        try:
            for listener, name in ((programs, "socket"), (workers, "workers")):
                listener.bind(f"{folder}/{name}")
                listener.listen()
        except OSError:  # a name of more than 107 bytes: each worker starts its own
            return None
        numbers = [programs.fileno(), workers.fileno()]
        _started(*map(str, numbers), pass_fds=numbers)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ[_ADDRESS] = f"{folder}/socket"
    return f"{folder}/workers"


def _started(*arguments: str, **options) -> subprocess.Popen[bytes]:
    """The process; it ends with this one, which holds the other end of its stdin."""
    without_settings = {name: value for name, value in os.environ.items() if not name.startswith("NDD_")}
    env = without_settings | {"NDD_COMPILE_IN_BACKGROUND": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, __file__, *arguments], stdin=subprocess.PIPE, env=env, **options)
    atexit.register(_end, process)
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends it. Its times and those of its children then count as this process's."""
    for file in (process.stdin, process.stdout):
        if file is not None:
            file.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)


_ADDRESS = "NDD_TEST_WARM_INTERPRETER"


def _next_connection(listener: socket.socket) -> None:
    """Comes back in a new child only, with a connection as stdin and stdout; the process itself ends here."""
    while 0 not in select.select([listener, 0], [], [])[0]:
        connection, _ = listener.accept()
        with connection:
            if os.fork() == 0:
                listener.close()
                os.dup2(connection.fileno(), 0)
                os.dup2(connection.fileno(), 1)
                return
    with contextlib.suppress(ChildProcessError):
        while os.wait():
            pass
    sys.exit()


def _next_request() -> dict:
    """Comes back in a new child only, with what it is to run; the process itself ends here."""
    with_ndd = None  # where a process reads requests that has imported ndd as well
    for line in iter(sys.stdin.readline, ""):
        folder, has_ndd = json.loads(line)
        if has_ndd:
            with_ndd = with_ndd or _fork_with_ndd()
            if with_ndd is None:
                return _next_request()
            print(json.dumps([folder, False]), file=with_ndd, flush=True)
            continue
        child = os.fork()
        if child == 0:
            for number, name, flags in (
                (0, os.devnull, os.O_RDONLY),
                (1, f"{folder}/stdout", os.O_WRONLY | os.O_CREAT),
                (2, f"{folder}/stderr", os.O_WRONLY | os.O_CREAT),
            ):
                opened = os.open(name, flags, 0o600)
                os.dup2(opened, number)
                os.close(opened)
            return json.loads(Path(folder, "request.json").read_text())
        print(child, flush=True)
        print(os.waitpid(child, 0)[1], flush=True)
    sys.exit()


def _fork_with_ndd() -> TextIO | None:
    """Where a child that imports ndd reads requests; None in that child."""
    read, write = os.pipe()
    if os.fork():
        os.close(read)
        return os.fdopen(write, "w")
    os.dup2(read, 0)
    os.close(read)
    os.close(write)
    for name in ("numba.core.registry", "numba.extending", "ndd"):
        importlib.import_module(name)
    _leave_alone()
    return None


def _leave_alone() -> None:
    """Else each child looks through all of torch for garbage as it ends, which takes 0.3 s."""
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    import torch  # noqa: F401

    _leave_alone()
    if sys.argv[1:]:
        import warm_workers

        programs, workers = (socket.socket(fileno=int(number)) for number in sys.argv[1:])
        if os.fork() == 0:
            programs.close()
            warm_workers.run_next(workers)
        workers.close()
        _next_connection(programs)
    request = _next_request()
    sys.argv[:] = request["argv"]
    sys.path[0] = ""  # it was the folder of this file
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    exec(compile(request["code"], "<string>", "exec", dont_inherit=True))
