"""The number of a loop over a DataLoader. The worker processes agree on it through a log that they share with their parent.

A DataLoader may start new workers for each loop. Their reader stands where it stood before, and nobody tells them how many
loops there were. So each worker writes a line when it begins, unless another worker of the same loop has written it; the
number of a loop is the number of lines of other loops before its own. Lines are only appended, each in one write, so no lock
is needed, and a worker that is killed leaves nothing behind. The file has no name: it is an anonymous memory file where the
system has them, else a temporary file that is deleted at once. Children inherit its descriptor or get a copy of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from multiprocessing import reduction
from multiprocessing.context import get_spawning_popen
from typing import Any, NamedTuple

from ndd._execution.fork import around_fork

_wanted = False  # there has been an epoch, so that children may need the log
_file: int | None = None


class Loop(NamedTuple):
    """A loop over a DataLoader, as each of its workers identifies it.

    Attributes:
        reader: the reader, its process and its place.
        seed: the loader's seed for this loop, from which torch makes the workers' seeds.
        count: the number of epochs that the same worker has begun before.
    """

    reader: str
    seed: int
    count: int


def keep() -> None:
    """Makes sure that child processes find a log."""
    global _wanted
    _wanted = True


def number(loop: Loop, worker: int) -> tuple[str | None, int]:
    """The place from which loops are counted (None: the reader's own), and the number of loops between it and this one."""
    if _file is None:
        return None, loop.count
    if [*loop] not in [line[:3] for line in _lines(_file)]:
        _write(_file, [*loop, worker, None])
    origin, before, writers = None, dict[Any, None](), dict[Any, set[int]]()
    for reader, seed, count, writer, place in _lines(_file):
        if reader != loop.reader:
            continue
        other = Loop(reader, seed, count)
        if other == loop:
            break
        if place is None:
            if other not in writers:
                before[other] = None
        elif writer in writers.get(other, {writer}):  # the first line of it, or of this loop once more
            origin, writers[other] = place, {writer}
            before.clear()
        else:
            writers[other].add(writer)
    return origin, len(before)


def resumed(loop: Loop, worker: int, following: str) -> None:
    """A worker was given a saved state in this loop: from now on loops are counted from the place after its epoch."""
    if _file is not None:
        _write(_file, [*loop, worker, following])


def sent() -> Any:
    """The log for a process that is about to be started, where it does not inherit it."""
    starting: Any = get_spawning_popen()
    if starting is None or not hasattr(reduction, "DupFd"):
        return None
    _open()
    if _file is None:
        return None
    if not hasattr(starting, "ndd_log"):  # several readers of one process send it once: no descriptor may come twice
        starting.ndd_log = reduction.DupFd(_file)
    return starting.ndd_log


def received(log: Any) -> None:
    """Takes over the log that `sent` returned."""
    global _file
    if log is None:
        return
    file = log.detach()
    if _file is None:
        _file = file
    elif file != _file:
        os.close(file)


def _open() -> None:
    global _file
    if _file is not None or not hasattr(os, "pread"):
        return
    with contextlib.suppress(OSError):  # without descriptors or memory loops are not told apart, see `number`
        import fcntl  # Windows lacks it

        file = _nameless()
        fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_APPEND)
        _file = file


def _nameless() -> int:
    if hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError):
            return os.memfd_create("ndd-epochs")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _before_fork() -> None:
    if _wanted:
        _open()


def _write(file: int, line: list[Any]) -> None:
    os.write(file, (json.dumps(line) + "\n").encode())


def _lines(file: int) -> list[Any]:
    text = os.pread(file, os.fstat(file).st_size, 0).decode()
    return [json.loads(line) for line in text.splitlines()]


around_fork(before=_before_fork)
