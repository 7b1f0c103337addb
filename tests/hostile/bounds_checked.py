"""Reads mutated files in a process of its own, with bounds checks in every kernel or as every day, and tells what became of each.

A module of generators has `PARSERS`, a dict of `Parser` by name. `check(module, names, seed, count)` reads `count` mutated
files with each in a child process under `NUMBA_BOUNDSCHECK=1`. The key of the kernel cache contains that setting, so no
kernel without checks is loaded. The child has little more memory than it needs, and little time for each file. A child
that dies or hangs is replaced by one that goes on with the next file. What is returned are the failures: any exception
but those that the parser allows.

Checks of numba see indices of arrays (`array_at` included), no `memcpy` and no pointer: what is read or written by these is
put between `fenced` pages, where one byte too far ends the child.
"""

from __future__ import annotations

import ctypes
import faulthandler
import importlib
import json
import mmap
import os
import random
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import warm_interpreter

_TESTS = Path(__file__).parents[1]
_RUN = "import runpy; runpy.run_module('hostile.bounds_checked', run_name='__main__', alter_sys=True)"
_SECONDS = 30  # of a processor that one file may take: kernels for types seen first are compiled meanwhile
_WAITING = 10  # times as many may pass: others use the processor too
_MORE_MEMORY = 1 << 30  # bytes that the files may take beside what the process has
_MOST_DEATHS = 5  # of the child, with one parser; after these it is clear enough


class Parser(NamedTuple):
    """What reads a format, and what makes files for it.

    Attributes:
        make: a mutated file, from a source of random numbers; a few of them should be as they ought to be.
        read: reads that; gives a value, or raises one of `allowed`.
        allowed: what a damaged file may raise.
    """

    make: Callable[[random.Random], Any]
    read: Callable[[Any], Any]
    allowed: tuple[type[BaseException], ...] = (ValueError, RuntimeError)


class Counts(NamedTuple):
    """What became of the files of a parser."""

    read: int
    refused: int
    failures: list[str]


def check(
    module: str, names: Sequence[str], seed: int, count: int, seconds: int = _SECONDS, bounds: bool = True
) -> dict[str, Counts]:
    """What became of `count` mutated files of each parser of `module`, such as "hostile.containers"; `seconds`: of a processor
    for each file. Without `bounds` it takes kernels of every day, which need not be compiled for it."""
    result = {name: Counts(0, 0, []) for name in names}
    at, total = 0, len(names) * count  # files of one parser after those of another
    while at < total:
        told, death = _child(module, names, at, seed, count, seconds, bounds)
        for name, state, text in told:
            counts = result[name]
            result[name] = counts._replace(**{state: getattr(counts, state) + ([text] if state == "failures" else 1)})
        at += len(told)
        if at < total:
            failures = result[names[at // count]].failures
            failures.append(f"{names[at // count]} file {at % count}: the process {death}")
            at = at + 1 if len(failures) < _MOST_DEATHS else (at // count + 1) * count
    return result


def _child(
    module: str, names: Sequence[str], first: int, seed: int, count: int, seconds: int, bounds: bool
) -> tuple[list[list[str]], str]:
    """What a process tells of the files from `first` on, and how it ended."""
    # Not "0", with which numba compiles the same code, but which is another key of the kernel cache than no setting.
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_BOUNDSCHECK"}
    environment |= {"NUMBA_BOUNDSCHECK": "1"} if bounds else {}
    arguments = [module, json.dumps([*names]), *map(str, (first, seed, count, seconds))]
    longest = _WAITING * seconds * count * len(names)
    done = warm_interpreter.run(_RUN, *arguments, env=environment, cwd=_TESTS, timeout=longest, has_ndd=not bounds)
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    how = "took too long" if -done.returncode in (signal.SIGALRM, signal.SIGPROF) else f"ended with {done.returncode}"
    return told, f"{how}\n{done.stderr[-3000:]}"


def mutation(name: str, parser: Parser, seed: int, number: int) -> Any:
    """File `number` of a parser: the same each time."""
    return parser.make(random.Random(f"{name} {seed} {number}"))


def _limit_memory() -> None:
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * mmap.PAGESIZE
    resource.setrlimit(resource.RLIMIT_AS, (now + _MORE_MEMORY,) * 2)


def _run(module: str, names: Sequence[str], first: int, seed: int, count: int, seconds: int) -> None:
    import numba

    from ndd._compiled.background import background

    assert str(numba.config.BOUNDSCHECK) == os.environ.get("NUMBA_BOUNDSCHECK", "None"), "the setting is not in force"
    faulthandler.enable()
    background.forbid()  # kernels are tested, and not what stands in for them
    parsers: dict[str, Parser] = importlib.import_module(module).PARSERS
    if sys.platform == "linux":
        _limit_memory()
    for at in range(first, len(names) * count):
        name, number = names[at // count], at % count
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.alarm(_WAITING * seconds)
        state, text = _read(name, parsers[name], seed, number)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        print(json.dumps([name, state, text]), flush=True)


def _read(name: str, parser: Parser, seed: int, number: int) -> tuple[str, str]:
    try:
        content = mutation(name, parser, seed, number)
    except Exception:
        return "failures", f"{name} file {number} could not be made: {traceback.format_exc()[-1500:]}"
    try:
        parser.read(content)
        return "read", ""
    except parser.allowed as error:
        if isinstance(error, AssertionError) or not str(error).strip():
            return "failures", f"{name} file {number}: {traceback.format_exc()[-1500:]}"
        return "refused", f"{type(error).__name__}: {error}"
    except BaseException:
        return "failures", f"{name} file {number}: {traceback.format_exc()[-1500:]}"


def fenced(size: int, at_end: bool = True) -> np.ndarray:
    """u8 `[size]` of zeros, between two pages that nobody may touch: it ends where the second begins, or without `at_end`
    begins where the first ends."""
    page = mmap.PAGESIZE
    inner = max(-(-size // page), 1) * page
    memory = mmap.mmap(-1, inner + 2 * page)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    for place in (base, base + page + inner):
        if libc.mprotect(ctypes.c_void_p(place), ctypes.c_size_t(page), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    first = page + (inner - size if at_end else 0)
    return np.frombuffer(memory, np.uint8)[first : first + size]


def fenced_copy(content: bytes, at_end: bool = True) -> np.ndarray:
    """The same with a content."""
    result = fenced(len(content), at_end)
    result[:] = np.frombuffer(content, np.uint8)
    return result


def scratch_folder() -> Path:
    """A folder for the files of this process, removed at its end."""
    if not _folder:
        _folder.append(tempfile.TemporaryDirectory())
    return Path(_folder[0].name)


_folder: list[tempfile.TemporaryDirectory[str]] = []


if __name__ == "__main__":
    _run(sys.argv[1], json.loads(sys.argv[2]), *map(int, sys.argv[3:7]))
