"""Programs that run in a process of their own, as by `python -c`, but find torch imported.

Importing torch takes more than two seconds of one core, and what most tests of processes look at comes later: how a
program ends, forks, or is interrupted. So one process imports torch, and nothing of ndd, and forks for each program a
child that runs it to the interpreter's end. Tests of what comes before start `sys.executable`.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path


class Program:
    """One that runs. The next one begins when this one has ended: wait for it by `ended`."""

    def __init__(self, code: str, *arguments: str, env: dict[str, str] | None = None, cwd: Path | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ndd-program-")
        self._code = code
        request = {
            "code": code,
            "argv": ["-c", *arguments],
            "env": dict(os.environ) if env is None else env,
            "cwd": str(cwd or Path.cwd()),
        }
        Path(self._folder.name, "request.json").write_text(json.dumps(request))
        _server().stdin.write(f"{self._folder.name}\n")
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


def run(code: str, *arguments: str, env: dict[str, str] | None = None, cwd: Path | None = None, timeout: float = 200):
    """As `subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)`."""
    return Program(code, *arguments, env=env, cwd=cwd).ended(timeout)


@functools.cache
def _server() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=1,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def _next_request() -> dict:
    """Comes back in a new child only, with what it is to run; the process itself ends here."""
    for line in iter(sys.stdin.readline, ""):
        child = os.fork()
        if child == 0:
            for number, name, flags in (
                (0, os.devnull, os.O_RDONLY),
                (1, f"{line.strip()}/stdout", os.O_WRONLY | os.O_CREAT),
                (2, f"{line.strip()}/stderr", os.O_WRONLY | os.O_CREAT),
            ):
                opened = os.open(name, flags, 0o600)
                os.dup2(opened, number)
                os.close(opened)
            return json.loads(Path(line.strip(), "request.json").read_text())
        print(child, flush=True)
        print(os.waitpid(child, 0)[1], flush=True)
    sys.exit()


if __name__ == "__main__":
    import torch  # noqa: F401

    gc.collect()
    gc.freeze()  # else each child looks through all of torch for garbage as it ends, which takes 0.3 s
    request = _next_request()
    sys.argv[:] = request["argv"]
    sys.path[0] = ""  # it was the folder of this file
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    exec(compile(request["code"], "<string>", "exec", dont_inherit=True))
