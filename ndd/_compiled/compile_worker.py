"""The program of the processes that compile (`compile_processes.py`)."""

# numba's properties have no types.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ndd._compiled import kernel_file
from ndd._compiled.background import background
from ndd._compiled.compile_processes import ASIDE, ENDED, READY, STOP
from ndd._compiled.kernel_messages import unpacked
from ndd._execution import compile_notice

_IDLE = 60.0  # seconds until an idle process ends
_NICE = 10  # a tenth of the weight of a program's thread


def run(numbers: Sequence[int]) -> None:
    """Imports numba, forks a process for each of these open files, and ends after them."""
    from numba.core.registry import cpu_target

    emit_sooner()
    gc.disable()  # a fifth of the time to compile
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    for number in numbers:
        if not os.fork():
            for other in numbers:
                if other != number:
                    os.close(other)
            os.setsid()
            try:
                _serve(Connection(number))
            finally:
                os._exit(0)
    for number in numbers:
        os.close(number)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def emit_sooner() -> None:
    """Sets the level at which LLVM turns optimised code into machine code from 3 to 2, before anything is compiled: it takes a
    third less time, and the code of the kernels that resize and that decode JPEGs is as fast."""
    from numba.core.codegen import JITCPUCodegen

    choose = JITCPUCodegen._customize_tm_options

    def chosen(self: Any, options: dict[str, Any]) -> None:
        choose(self, options)
        options["opt"] = 2

    JITCPUCodegen._customize_tm_options = chosen


def _serve(connection: Connection) -> None:
    compile_notice.be_silent()  # the program says it
    connection.send_bytes(READY)
    while connection.poll(_IDLE):
        message = connection.recv_bytes()
        if message != STOP:  # it came too late
            connection.send_bytes(_answer(connection, message))


def _answer(connection: Connection, message: bytes) -> bytes:
    """Compiles in a thread, of which Linux may lower the priority, but not raise it again."""
    said, aside = [ENDED], message.startswith(ASIDE)

    def run() -> None:
        with _priority(_NICE if aside else 0):
            kernel = message.removeprefix(ASIDE)
            said[0] = background.interrupted_by(lambda: _wants_stop(connection), lambda: _compile(kernel)) or ENDED

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if kernel_file.unstored:
        unstored = [(name, content.hex(), why) for name, (content, why) in kernel_file.unstored.items()]
        said[0] += json.dumps(unstored).encode() if said[0] == ENDED else b""
        kernel_file.unstored.clear()
    return said[0]


@contextlib.contextmanager
def _priority(nice: int) -> Iterator[None]:
    """That of this thread; and, where Linux divides the CPUs among sessions first, that of this process's session."""
    if not nice or sys.platform != "linux":
        yield
        return
    os.setpriority(os.PRIO_PROCESS, 0, max(nice, os.getpriority(os.PRIO_PROCESS, 0)))  # a program may be nicer
    _set_session(nice)
    try:
        yield
    finally:
        _set_session(0)


def _set_session(nice: int) -> None:
    while True:
        try:
            Path("/proc/self/autogroup").write_text(str(nice))
        except BlockingIOError:  # Linux allows ten changes in a second
            time.sleep(0.02)
        except OSError:
            return
        else:
            return


def _compile(message: bytes) -> None:
    with contextlib.suppress(Exception):  # the program compiles it again, and raises the error
        kernel, kinds = unpacked(message)
        kernel.compiled().compile(kinds)


def _wants_stop(connection: Connection) -> bool:
    """Whether the program interrupts the kernel. If the program has ended, so does this process."""
    if not connection.poll():
        return False
    try:
        connection.recv_bytes()
    except (EOFError, OSError):
        os._exit(0)
    return True
