"""Programs that run in a process of their own, as by `python -c`, but find torch imported.

Importing torch takes more than two seconds of one core, and what most tests of processes look at comes later: how a
program ends, forks, or is interrupted. So one process imports torch, and nothing of ndd, and forks for each program a
child that runs it to the interpreter's end. Tests of what comes before start `sys.executable`.

Importing ndd and numba takes one second more. With `has_ndd` the program finds them imported too: it must not ask for what an
import does, nor for settings that an import reads. As any child of a fork it compiles kernels at calls.
"""

from __future__ import annotations

import functools
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
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
        _server().stdin.write(json.dumps([self._folder.name, has_ndd]) + "\n")
        self.pid = int(self._answer(60))

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
        stream = _server().stdout
        if not select.select([stream], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(self._code, timeout, self.said("stdout"), self.said("stderr"))
        return stream.readline()


def run(code: str, *arguments: str, timeout: float = 200, **more) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)`."""
    return Program(code, *arguments, **more).ended(timeout)


@functools.cache
def _server() -> subprocess.Popen[str]:
    without_settings = {name: value for name, value in os.environ.items() if not name.startswith("NDD_")}
    return subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=1,
        text=True,
        env=without_settings | {"NDD_COMPILE_IN_BACKGROUND": "0", "PYTHONPATH": os.pathsep.join(sys.path)},
    )


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
    request = _next_request()
    sys.argv[:] = request["argv"]
    sys.path[0] = ""  # it was the folder of this file
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    exec(compile(request["code"], "<string>", "exec", dont_inherit=True))
