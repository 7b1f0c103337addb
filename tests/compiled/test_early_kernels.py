"""Kernels that processes compile before the program asks for them."""

import itertools
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from pretended_processes import Processes

from ndd._compiled import background, kernel_messages
from ndd._compiled.background import Background
from ndd._compiled.compile_processes import STOPPED
from ndd._compiled.early_kernels import EARLY, EarlyKernel
from ndd._compiled.thread_team import joined
from ndd.bench.loop_sides import operators
from ndd.compile.programs import _photographs
from ndd.decoders.jpeg import baseline


def test_they_are_those_of_the_loop_of_the_readme():
    """With these types of arguments, and no others."""
    import ndd

    work = operators(ndd, "random_resized_crop", "cpu", {})
    for jpegs, _ in itertools.islice(_photographs().next_epoch(batch_size=4), 1):
        work(jpegs)
    for early in EARLY:
        kernel, kinds = kernel_messages.unpacked(early.message())
        assert kinds in kernel.compiled().overloads
        assert early.is_this(kernel, kinds)
        assert not early.is_this(kernel, kinds[1:])
        assert not early.is_this(joined(kernel), kinds)
    assert not EarlyKernel("ndd.no_such_module", "f").is_this(kernel, kinds)


def test_what_the_kernel_of_jpegs_leaves_to_other_libraries_counts(monkeypatch):
    """Its fallback does nothing, so its time says nothing."""
    jobs, order, pictures = [], np.array([0, 2]), np.zeros((3, baseline.NUMBERS), np.int64)
    pictures[:, 1] = 50_000_000  # bytes of each file
    arguments = (None, 0, None, 2, (order, pictures, None, None, None))
    monkeypatch.setattr(background.background, "allowed", True)
    monkeypatch.setattr(Background, "do", lambda self, job, *_: jobs.append(job))
    dispatcher = SimpleNamespace(typeof_pyval=type, targetctx=None, overloads={})
    cache = SimpleNamespace(has_file=lambda *_: False, folder=None)
    fallback = joined(baseline.decode_loop)._with_what_it_calls()
    guarded = background.with_fallback(dispatcher, cache, fallback, lambda _: None, pytest.fail)
    for calls in (1, 2):
        assert not guarded(*arguments)(*arguments)
        assert [job.left for job in jobs] == [pytest.approx(1.8 * calls)]
    assert jobs[0].spent < 1.0


class Early:
    """An early kernel of this name, in place of `EarlyKernel`."""

    def __init__(self, name):
        self.name = name

    def message(self):
        return f"early {self.name}".encode()

    def is_this(self, kernel, kinds):
        return (kernel, kinds) == (self.name, ())


@pytest.fixture
def started(monkeypatch):
    """Two processes, of which one has begun with the first of two early kernels, which it compiles until it is stopped."""
    processes = Processes(monkeypatch, count=2)
    processes.answers |= {b"early a": STOPPED, b"early b": STOPPED}
    processes.background.start_early(lambda: None, [Early("a"), Early("b")])
    while not processes.asked:
        pass
    assert processes.asked == [b"early a"]
    assert processes.background._thread is None
    return processes


def test_one_process_is_left_for_what_the_program_asks_for(started):
    done = []
    started.run(started.job("c", done), started.job("d", done))
    assert started.asked == [b"early a", b"c", b"d"]
    assert done == ["c", "d"]
    assert [worker.free for worker in started.workers._workers] == [True, False]


def test_what_is_asked_for_takes_the_place_of_an_early_kernel(started):
    done = []
    asked, other = started.job("a", done), started.job("b", done)
    started.background.do(asked, None, "a", ())
    started.background.do(other, None, "b", ())
    assert asked in started.background._running.values()
    while not done:
        pass
    next(iter(started.background._running)).stop()  # then it is asked for again, by its own message
    started.background.finish()
    assert started.asked == [b"early a", b"b", b"a"]
    assert done == ["b", "a"]


def test_an_early_kernel_makes_room_for_a_long_wait(started):
    done = []
    started.answers[b"c"] = STOPPED
    started.begin(started.job("c", done))
    while b"c" not in started.asked:
        pass
    for job in started.background._running.values():
        job.begun -= 60.0  # long ago
    started.background.do(started.job("d", done, urgency=2.0))
    while not done:
        pass
    assert started.asked[:3] == [b"early a", b"c", b"d"]
    for worker in list(started.background._running):
        worker.stop()
    started.background.finish()


def test_a_kernel_that_costs_nothing_yet_makes_room_before_an_early_one(started):
    """The program will ask for the early one, which has been compiled for seconds then."""
    done = []
    started.answers[b"c"] = STOPPED
    started.begin(started.job("c", done))
    while b"c" not in started.asked:
        pass
    started.background.do(started.job("d", done, urgency=1.4))
    while not done:
        pass
    assert started.asked[:3] == [b"early a", b"c", b"d"]
    assert [job.message() for job in list(started.background._running.values()) if job.early] == [b"early a"]
    started.background.finish()


def test_the_end_of_a_program_waits_for_no_early_kernel(started):
    ended = threading.Thread(target=started.background.end)
    job = next(iter(started.background._running.values()))
    job.begun -= 60.0
    assert started.background._goes_on()
    started.background._end = job.begun + 60.0
    assert not started.background._goes_on()
    job.early = None
    assert started.background._goes_on()
    ended.start()
    ended.join(60)
    assert not ended.is_alive()


def test_without_processes_there_are_none(monkeypatch):
    processes = Processes(monkeypatch, count=0)
    processes.background.start_early(lambda: None, [Early("a")])
    assert not processes.background._jobs
    background = Background()
    background.allowed = False
    background.start_early(lambda: pytest.fail("no folder is looked at"), [Early("a")])


_IMPORT = """
import os, sys

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "torch":
            from ndd._compiled.background import background
            print(background.workers.alive(), len(background._running), "ndd._compiled" in sys.modules)
            sys.stdout.flush()
            os._exit(0)

sys.meta_path.insert(0, Finder)
os.sched_getaffinity = lambda _: {0, 1}
import ndd
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_they_begin_before_torch_is_imported(tmp_path):
    environment = {**os.environ, "NDD_COMPILE_IN_BACKGROUND": "1", "NDD_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", _IMPORT], env=environment, capture_output=True, text=True, timeout=100)
    assert (done.stdout.split(), done.stderr) == (["True", "1", "False"], "")


def test_modules_that_are_imported_first_have_their_place():
    """As attributes of their packages."""
    for place in ("ndd._compiled.background", "ndd._execution.fork", "ndd._tensor.secrets"):
        package, _, name = place.rpartition(".")
        assert getattr(sys.modules[package], name) is sys.modules[place]
