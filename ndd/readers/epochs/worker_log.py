"""Which loop over a DataLoader its worker processes are in: they agree on it through a log that they and their parent share.

Workers that are started anew for each loop come from a reader that stands where it stood before: nobody tells them how many
loops there were. So each of them writes a line when it begins, unless another one of the same loop has done so, and the number
of a loop is that of the lines of other loops before its own. Lines are only added, each in one write to the end of the file;
so no lock is needed, and a worker that is killed leaves nothing behind. The file has no name: it is memory where the system
has such files, else a temporary file that is deleted at once. Children inherit its descriptor, or are given a copy of it.
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

_wanted = False  # whether there has been an epoch, so that children may need the log
_file: int | None = None


class Loop(NamedTuple):
    """A loop over a DataLoader, as each of its workers names it.

    Attributes:
        reader: which reader, of which process, from which place on.
        seed: the loader's for this loop, from which torch makes the workers' seeds.
        count: how many epochs the same worker has begun before, in this loop or those before.
    """

    reader: str
    seed: int
    count: int


def keep() -> None:
    """From now on a child process finds a log."""
    global _wanted
    _wanted = True


def number(loop: Loop, worker: int) -> tuple[str | None, int]:
    """The place that loops are counted from, None for the reader's own; and how many came between it and this one."""
    if _file is None:
        return None, loop.count
    if [*loop] not in [line[:3] for line in _lines(_file)]:
        _write(_file, [*loop, worker, None])
    origin, before, told = None, dict[Any, None](), dict[Any, set[int]]()
    for reader, seed, count, writer, place in _lines(_file):
        if reader != loop.reader:
            continue
        other = Loop(reader, seed, count)
        if other == loop:
            break
        if place is None:
            if other not in told:
                before[other] = None
        elif writer in told.get(other, {writer}):  # the first to tell of it, or of this loop once more
            origin, told[other] = place, {writer}
            before.clear()
        else:
            told[other].add(writer)
    return origin, len(before)


def resumed(loop: Loop, worker: int, following: str) -> None:
    """A worker was given a saved state in this loop: from now on loops are counted from the place after its epoch."""
    if _file is not None:
        _write(_file, [*loop, worker, following])


def sent() -> Any:
    """The log for a process that is about to be started, where it does not inherit it."""
    if get_spawning_popen() is None or not hasattr(reduction, "DupFd"):
        return None
    _open()
    return None if _file is None else reduction.DupFd(_file)


def received(log: Any) -> None:
    """Takes over what `sent` gave."""
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
        import fcntl

        file = _nameless()
        fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_APPEND)
        _file = file


def _nameless() -> int:
    if hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError):
            return os.memfd_create("ndd-epochs")
    with tempfile.TemporaryFile() as made:
        return os.dup(made.fileno())


def _before_fork() -> None:
    if _wanted:
        _open()


def _write(file: int, line: list[Any]) -> None:
    os.write(file, (json.dumps(line) + "\n").encode())


def _lines(file: int) -> list[Any]:
    text = os.pread(file, os.fstat(file).st_size, 0).decode()
    return [json.loads(line) for line in text.splitlines()]


around_fork(before=_before_fork)
