"""Kernels that other processes compile."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from multiprocessing.connection import Pipe

import numpy as np
import pytest
from pretended_processes import Processes

from ndd._compiled import background, compile_processes, compile_worker, kernel_cache
from ndd._compiled.background import Background, Job
from ndd._compiled.compile_processes import ASIDE, ELSEWHERE, ENDED, STOPPED, Workers
from ndd._execution import compile_notice

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def test_a_process_compiles_and_the_program_loads(monkeypatch):
    processes, done = Processes(monkeypatch), []
    processes.run(processes.job("a", done), processes.job("b", done, urgency=1.0))
    assert processes.asked == [b"b", b"a"]
    assert done == ["b", "a"]


def test_several_processes_compile_at_once(monkeypatch):
    processes, done = Processes(monkeypatch, count=2), []
    processes.answers[b"a"] = STOPPED  # it goes on until it is stopped
    first, other = processes.job("a", done), processes.job("b", done)
    other.compile = lambda: done.append("b") or [worker.stop() for worker in processes.background._running]
    processes.run(first, other)
    assert done == ["b", "a"]


def test_what_costs_the_program_little_leaves_it_the_processors(monkeypatch):
    processes, done = Processes(monkeypatch), []
    costly, cheap = processes.job("costly", done), processes.job("cheap", done)
    costly.spent, cheap.spent = 0.5, 0.1
    processes.run(cheap, processes.job("urgent", done, urgency=1.0), costly)
    assert processes.asked == [b"urgent", b"costly", b"cheap"]
    assert processes.aside == [b"cheap"]


@pytest.mark.skipif(sys.platform != "linux", reason="priorities of threads are Linux's")
def test_the_priority_of_a_kernel_is_its_threads(monkeypatch):
    """An unprivileged process cannot raise a priority again. That of the session is set back."""
    ours, theirs = Pipe()
    before = os.getpriority(os.PRIO_PROCESS, 0)
    seen, sessions = [], []
    monkeypatch.setattr(compile_worker, "background", Background())
    monkeypatch.setattr(compile_worker, "_set_session", sessions.append)
    monkeypatch.setattr(compile_worker, "_compile", lambda kernel: seen.append((kernel, _own_priority())))
    for message in (ASIDE + b"cheap", b"costly"):
        assert compile_worker._answer(theirs, message) == ENDED
    ours.close()
    theirs.close()
    assert seen == [(b"cheap", max(before, compile_worker._NICE)), (b"costly", before)]
    assert sessions == [compile_worker._NICE, 0]
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


def _own_priority():
    return os.getpriority(os.PRIO_PROCESS, 0)


def test_what_the_program_waits_for_much_longer_stops_a_kernel(monkeypatch):
    """With the urgency of a loop from its start on: resampling is not asked for first, and takes longest by NumPy."""
    processes, done = Processes(monkeypatch), []
    processes.answers[b"first"] = STOPPED
    processes.background.do(processes.job("first", done))
    while not processes.asked:
        pass
    processes.background.do(processes.job("brief", done, urgency=0.9))
    processes.background.do(processes.job("slow", done, urgency=2.0))
    processes.background.finish()
    assert processes.stopped.is_set()
    assert processes.asked == [b"first", b"slow", b"brief", b"first"]
    assert done == ["slow", "brief", "first"]


def test_what_cannot_be_sent_is_compiled_here(monkeypatch):
    processes, done = Processes(monkeypatch), []
    processes.run(Job(lambda: done.append("here")), processes.job("there", done))
    assert sorted(done) == ["here", "there"]
    assert processes.asked == [b"there"]


def test_what_another_program_compiles_is_asked_for_again(monkeypatch):
    processes, done = Processes(monkeypatch), []
    processes.answers[b"a"] = ELSEWHERE
    processes.run(processes.job("a", done, urgency=9.0), processes.job("b", done))
    assert processes.asked == [b"a", b"b", b"a"]
    assert done == ["b", "a"]


def test_what_another_program_compiles_stops_nothing(monkeypatch):
    """It would be asked for in vain every tenth of a second, and what it has stopped would never end."""
    processes, done = Processes(monkeypatch), []
    processes.answers[b"a"] = STOPPED
    processes.begin(processes.job("a", done))
    urgent = processes.job("elsewhere", done, urgency=9.0)
    urgent.later = time.monotonic()
    processes.background.do(urgent)
    assert not processes.stopped.wait(0.3)
    next(iter(processes.background._running)).stop()
    processes.background.finish()
    assert done == ["elsewhere", "a"]


def test_calls_wait_for_what_another_program_compiles():
    """From the first call on, if the fallback is known to take long; but not for ever."""
    job = Job(lambda: None, urgency=3.0)
    Background().await_if_slow(job)  # nobody compiles it
    job.later = time.monotonic()
    waiting = threading.Thread(target=Background().await_if_slow, args=(job,))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    job.later -= 60
    waiting.join(60)
    assert not waiting.is_alive()


def test_what_ends_a_process_is_compiled_here(monkeypatch):
    processes, done = Processes(monkeypatch), []
    processes.answers[b"a"] = None
    processes.run(processes.job("a", done), processes.job("b", done))
    assert sorted(done) == ["a", "b"]
    assert not processes.workers.alive()


def test_a_notice_is_said_while_processes_compile(monkeypatch, logged, tmp_path):
    monkeypatch.setattr(compile_notice, "_said", False)
    monkeypatch.setattr(compile_notice, "_PATIENCE", 0.0)
    processes, done = Processes(monkeypatch, 2), []
    processes.background._jobs += [processes.job(name, done) for name in "abc"]
    processes.background.do(processes.job("d", done), tmp_path)
    processes.background.finish()
    assert sorted(done) == ["a", "b", "c", "d"]
    ((_, text),) = logged
    assert f"kept in {tmp_path}" in text


def test_a_call_that_waits_takes_a_free_process(monkeypatch):
    processes = Processes(monkeypatch)
    processes.workers._workers[0].connection.poll(60)
    processes.background.compile_elsewhere(lambda: b"now")
    assert processes.asked == [b"now"]
    processes.workers._workers[0].free = False
    processes.background.compile_elsewhere(lambda: b"none is free")
    processes.workers._workers[0].free = True
    processes.background.compile_elsewhere(lambda: None)
    assert processes.asked == [b"now"]
    assert processes.workers.free() is not None


def test_calls_wait_for_a_process_too_once_a_fallback_has_taken_long(monkeypatch):
    processes, done = Processes(monkeypatch), []
    processes.answers[b"a"] = STOPPED
    job = processes.job("a", done)
    job.spent = 9.0
    job.compile = lambda: done.append("a")
    processes.begin(job)
    waiting = threading.Thread(target=processes.background.await_if_slow, args=(job,))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    next(iter(processes.background._running)).stop()
    waiting.join(60)
    assert not waiting.is_alive()
    processes.background.finish()
    assert done == ["a"]


def _waits(background, job, **more):
    waiting = threading.Thread(target=background.await_if_slow, args=(job,), kwargs=more, daemon=True)
    waiting.start()
    waiting.join(0.1)
    return waiting.is_alive()


def test_calls_wait_earlier_while_all_cpus_compile(monkeypatch):
    """Each second of a fallback, and of what it leaves to other code, is then a second of the compiler."""
    processes = Processes(monkeypatch, count=2)
    processes.answers |= {b"a": STOPPED, b"b": STOPPED}
    background, job = processes.background, processes.job("a", [], urgency=1.1)
    processes.begin(job)
    background.do(processes.job("b", []))
    while len(background._running) < 2:
        pass
    processes.workers.cpus = 2
    job.left = 0.1
    assert not _waits(background, job)  # few pictures, as in a notebook
    job.left = 0.3
    assert _waits(background, job)
    assert not _waits(background, job, inside=True)  # the first batch ends
    job.urgency = 0.1
    assert not _waits(background, job)
    job.spent = 1.0
    assert _waits(background, job)
    processes.workers.cpus = 3
    assert not _waits(background, job)
    background.do(processes.job("c", []))  # it is begun at once when another one ends
    assert _waits(background, job)
    job.ended = 0.0
    for worker in list(background._running):
        worker.stop()
    background.finish()


def test_machine_code_is_emitted_at_the_second_level(monkeypatch):
    class Codegen:
        def _customize_tm_options(self, options):
            options["cpu"] = "host"

    options = {"opt": 3}
    monkeypatch.setattr("numba.core.codegen.JITCPUCodegen", Codegen)
    compile_worker.emit_sooner()
    Codegen()._customize_tm_options(options)
    assert options == {"cpu": "host", "opt": 2}


def test_the_end_of_a_program_ends_its_processes(monkeypatch):
    """It waits for what is nearly done: `test_ends_of_programs.py`."""
    processes, done = Processes(monkeypatch), []
    processes.background._has_kept = True
    processes.answers[b"a"] = STOPPED
    job = processes.job("a", done)
    processes.begin(job)
    job.begun += 1000.0  # else a busy machine is so slow that it is nearly done
    monkeypatch.setattr(background, "_LAST", 100.0)
    begun = time.monotonic()
    processes.background.end()
    processes.background.finish()
    assert time.monotonic() - begun < 50.0
    assert not processes.workers.alive()
    assert not done


def test_processes_begin_with_the_import_only_if_no_kernel_is_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("NDD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kernel_cache, "targets", list)
    assert kernel_cache.folder_if_all_empty() == tmp_path / "kernels"
    monkeypatch.setattr(kernel_cache, "targets", lambda: ["x86-64-v3"])  # a wheel with kernels
    assert kernel_cache.folder_if_all_empty() is None
    monkeypatch.setattr(kernel_cache, "targets", list)
    (tmp_path / "kernels" / "inner.a.kernel").touch()  # of a program that ended early
    assert kernel_cache.folder_if_all_empty() == tmp_path / "kernels"
    (tmp_path / "kernels" / "a.kernel").touch()
    assert kernel_cache.folder_if_all_empty() is None
    begun = []
    monkeypatch.setattr(Workers, "start", lambda self, folder: begun.append(folder))
    background = Background()
    background.allowed = False
    background.start_early(lambda: tmp_path)
    assert not begun
    background.allowed = True
    background.start_early(lambda: tmp_path)
    assert begun == [tmp_path]


def test_one_program_of_a_machine_has_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    begun = []
    monkeypatch.setattr(compile_processes, "_start", lambda numbers: begun.append(numbers))
    for held, expected in ((False, 0), (True, 1)):
        monkeypatch.setattr(compile_processes, "try_lock", lambda *_, held=held: held)
        workers = Workers()
        workers.start(tmp_path)
        assert workers.alive() == held
        assert len(begun) == expected
    workers = Workers()
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    workers.start(tmp_path)  # the program needs the only CPU
    workers.start(None)
    assert len(begun) == 1


_PROGRAM = """
import os
os.sched_getaffinity = lambda _: {0, 1}
import numpy as np
import ndd
from ndd._compiled.background import background
from ndd._compiled.kernel_cache import KernelCache

assert background.workers.alive()
kept, keep = [], KernelCache._keep
KernelCache._keep = lambda self, *more: kept.append(self._name) or keep(self, *more)
images = ndd.batch([np.arange(24, dtype=np.uint8).reshape(2, 4, 3)], layout="HWC")
print(np.asarray(ndd.flip(images).tensors[0]).ravel().tolist())
background.finish()
print(np.asarray(ndd.flip(images).tensors[0]).ravel().tolist())
print(kept)
if not os.fork():
    assert not background.workers.alive()
    os._exit(0)
assert not os.wait()[1]
try:
    print(os.wait())
except ChildProcessError:  # the processes that compile are no children
    pass
"""


def test_a_program_with_an_empty_cache(tmp_path):
    """It compiles nothing itself, and leaves no process behind that keeps its output open."""
    environment = {**os.environ, "NDD_COMPILE_IN_BACKGROUND": "1", "NDD_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-X", "dev", "-c", textwrap.dedent(_PROGRAM)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=200)
    assert not done.returncode, done.stderr
    flipped = np.arange(24).reshape(2, 4, 3)[:, ::-1].ravel().tolist()
    assert done.stdout.splitlines() == [str(flipped), str(flipped), "[]"]
    assert "ResourceWarning" not in done.stderr
    assert [path for path in (tmp_path / "kernels").iterdir() if path.name.startswith("ndd.ops.image.flip")]


def test_the_end_of_a_program_waits_for_its_first_kernel(monkeypatch):
    """Else one that ends before its processes are ready would compile the same kernels in every run, and keep none."""
    processes, done = Processes(monkeypatch), []
    free, looked = processes.workers.free, []

    def ready():
        looked.append(processes.background._end)
        return None if len(looked) < 3 or looked[-3] is None else free()

    monkeypatch.setattr(processes.workers, "free", ready)
    monkeypatch.setattr(background, "_LAST", 100.0)
    for name in "abc":
        processes.background.do(processes.job(name, done))
    while not looked:
        pass
    begun = time.monotonic()
    processes.background.end()
    assert time.monotonic() - begun < 50.0
    assert len(processes.asked) == 1
