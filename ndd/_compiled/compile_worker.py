"""The program of the processes that compile (`compile_processes.py`)."""

# numba's properties have no types.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Sequence
from multiprocessing.connection import Connection

from ndd._compiled.background import background
from ndd._compiled.compile_processes import ENDED, READY, STOP
from ndd._compiled.kernel_messages import unpacked
from ndd._execution import compile_notice

_IDLE = 60.0  # seconds until an idle process ends


def run(numbers: Sequence[int]) -> None:
    """Imports numba, forks a process for each of these open files, and ends after them."""
    from numba.core.registry import cpu_target

    gc.disable()  # a fifth of the time to compile
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    for number in numbers:
        if not os.fork():
            for other in numbers:
                if other != number:
                    os.close(other)
            try:
                _serve(Connection(number))
            finally:
                os._exit(0)
    for number in numbers:
        os.close(number)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def _serve(connection: Connection) -> None:
    compile_notice.be_silent()  # the program says it
    connection.send_bytes(READY)
    while connection.poll(_IDLE):
        message = connection.recv_bytes()
        if message != STOP:  # it came too late
            connection.send_bytes(_answer(connection, message))


def _answer(connection: Connection, message: bytes) -> bytes:
    return background.interrupted_by(lambda: _wants_stop(connection), lambda: _compile(message)) or ENDED


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
