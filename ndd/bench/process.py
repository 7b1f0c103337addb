"""One library in its own process, which answers questions, so that the libraries cannot affect each other."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from ndd._execution.signal_safe import interrupting_no_children


def failure(done: subprocess.CompletedProcess[str]) -> str:
    """The end of what a failed process wrote to stderr; how it ended, if it wrote nothing, as when the system killed it."""
    code = done.returncode
    return (
        done.stderr.strip()[-2000:]
        or f"it ended with {f'signal {-code}' if code < 0 else f'code {code}'}, without a message"
    )


def say_left_out(side: str, done: subprocess.CompletedProcess[str]) -> None:
    """Prints that a side cannot be measured, and the last line of why."""
    print(f"{side} does not run here: {failure(done).splitlines()[-1][:160]}")


class Process:
    """`python -m module arguments...`: a process that writes a line of JSON for each line that it reads."""

    def __init__(self, module: str, *arguments: str):
        command = [sys.executable, "-m", module, *arguments]
        with interrupting_no_children():
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, question: str) -> dict[str, Any]:
        """The answer of the process. RuntimeError if it ended instead."""
        pipes = self._process.stdin, self._process.stdout
        if pipes[0] is None or pipes[1] is None:
            raise RuntimeError("the process has no pipes")
        try:
            print(question, file=pipes[0], flush=True)
            answer = pipes[1].readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise RuntimeError(f"the process that measures ended: {self._process.wait()}")
        return json.loads(answer)

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()
