"""Who compiles what first, and who waits for whom: jobs, threads and processes, and the end of a program."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import warm_interpreter
from compiled.test_kernels import MODULE, files, loaded, places

from ndd._compiled import background as room, kernel_cache


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the module `small`, where its kernels are kept too."""
    (tmp_path / "small.py").write_text(MODULE)
    places(monkeypatch, NUMBA_CACHE_DIR=tmp_path / "cache")
    yield tmp_path
    for kept in (kernel_cache._folders, kernel_cache.writable_folder, kernel_cache.source_digest):
        kept.cache_clear()


@pytest.fixture
def allowed(monkeypatch):
    """A thread may compile, at once."""
    monkeypatch.setattr(room, "_QUIET", 0.0)
    monkeypatch.setattr(room.background, "allowed", True)
    yield
    room.background.finish()


def test_what_is_waited_for_now_counts_too(allowed):
    slow, quick = room.Job(lambda: None), room.Job(lambda: None)
    with quick.answering():
        pass
    quick.spent += 0.01
    with slow.answering():
        time.sleep(0.05)
        assert slow.spent == 0.0
        assert max([quick, slow], key=room.Job.waited) is slow
    assert slow.spent >= 0.05


def test_what_another_process_compiles_waits_while_others_are_compiled(allowed):
    done, busy = [], [True]

    def elsewhere():
        if busy[0]:
            done.append("tried")
            busy[0] = len(done) < 3
            room.background.elsewhere(inner=False)
        done.append("found")

    first, other = room.Job(elsewhere), room.Job(lambda: done.append("other"))
    first.spent = 9.0
    with room.whole:  # both are there when the thread begins
        room.background.do(first)
        room.background.do(other)
    room.background.finish()
    assert done[:2] in (["tried", "other"], ["other", "tried"])
    assert done[-1] == "found"
    assert done.count("tried") == 2


def test_what_is_waited_for_much_longer_goes_first(allowed):
    """Of a loop's kernels the first one that is asked for is often the one that can wait."""
    begun, done, asked = threading.Event(), [], []

    def endless():
        begun.set()
        while not done:
            room.background.step()
            time.sleep(0.01)
        asked.append("again")

    slow = room.Job(lambda: done.append("slow"))
    room.background.do(room.Job(endless))
    assert begun.wait(60)
    slow.spent = 9.0
    room.background._jobs.append(slow)
    room.background.finish()
    assert done == ["slow"]
    assert asked == ["again"]


def test_the_end_of_a_program_waits_for_what_is_nearly_done(monkeypatch):
    """No longer than that has taken, and not for long."""
    background, now = room.background, [100.0]
    monkeypatch.setattr(room.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(room, "_goes_on", lambda: False)
    monkeypatch.setattr(background, "_thread", threading.current_thread())

    def seconds_left(taken):
        monkeypatch.setattr(background, "_begun", now[0] - taken)
        monkeypatch.setattr(background, "_ending", 0.0)
        ended = now[0]
        while True:
            try:
                background.step()
            except room._BrokenOff:
                return now[0] - ended
            now[0] += 0.1

    assert seconds_left(0.0) == 0.0
    assert seconds_left(0.55) == pytest.approx(0.6)
    assert seconds_left(30.0) == pytest.approx(room._LAST, abs=0.11)


_ENDS = """
import sys, time
from ndd._compiled.background import Job, background, _BrokenOff

def compile_now():
    begun.append(time.monotonic())
    try:
        while True:
            background.step()
            time.sleep(0.02)
    except _BrokenOff:
        print(f"{time.monotonic() - ended[0]:.3f}", flush=True)
        raise

begun, ended = [], []
background.do(Job(compile_now))
while not begun or time.monotonic() - begun[0] < 3.0:
    time.sleep(0.02)
ended.append(time.monotonic())
print("ends", flush=True)
"""


def _program_that_ends(before=""):
    program = warm_interpreter.Program(before + _ENDS, env={**os.environ, "NDD_COMPILE_IN_BACKGROUND": "1"})
    while "ends" not in program.said():
        time.sleep(0.02)
    return program


def test_an_end_is_not_held_up_for_long():
    done = _program_that_ends().ended(60)
    assert done.returncode == 0, done.stderr
    assert room._LAST <= float(done.stdout.split()[1]) < room._LAST + 3.0  # on a busy machine


def test_control_c_ends_it():
    endless = "from ndd._compiled.background import background; background._is_nearly_done = lambda: True\n"
    program = _program_that_ends(endless)
    time.sleep(0.5)  # the main thread comes to its end
    os.kill(program.pid, signal.SIGINT)
    program.ended(60)


def test_many_threads_ask_first(folder):
    """One of them compiles for each type; the others wait, and find it."""
    kinds, wrong = [np.float64, np.float32, np.int64, np.int16], []
    doubled, ready = loaded(folder).doubled, threading.Barrier(16)

    def work(i):
        out = np.empty(3, kinds[i % 4])
        ready.wait()
        try:
            doubled(np.arange(3, dtype=out.dtype), out)
            if out.tolist() != [0, 2, 4]:
                wrong.append(out)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(before)
    assert not wrong
    assert sum(doubled.compiled().stats.cache_misses.values()) == 4


def test_many_processes_ask_first(folder):
    """With different types, so that they write at the same time; all of it can be read afterwards. One of them compiles for a
    type, the others wait and find it."""
    kinds = ["float64", "int16"]
    code = """
    import numpy as np
    from ndd._compiled.kernel_cache import KernelCache
    from small import doubled
    kept, keep = [], KernelCache._keep
    KernelCache._keep = lambda self, *given: kept.append(self) or keep(self, *given)
    out = np.empty(3, {0!r})
    doubled(np.arange(3, dtype={0!r}), out)
    print(out.tolist() == [0, 2, 4], len(kept))
    """
    own = {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path]), "NUMBA_CACHE_DIR": str(folder / "cache")}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code.format(kind))],
            env={**os.environ, **own},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for kind in kinds
        for _ in range(2)
    ]
    compiled = 0
    for process in processes:
        out, err = process.communicate(timeout=200)
        assert out.startswith("True"), err[-2000:]
        compiled += int(out.split()[1])
    assert len(files(folder)) == compiled == 2 * len(kinds)
    assert not list(folder.rglob("*.tmp"))
    for path in files(folder):
        content = path.read_bytes()
        assert hashlib.sha256(content[32:]).digest() == content[:32]
