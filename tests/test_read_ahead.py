"""`ndd.read_ahead`: what readers, pipelines and external sources rely on, each guarantee once."""

import gc
import itertools
import os
import signal
import threading
import weakref

import pytest
import warm_interpreter
from interrupts import interrupted
from waiting import wait_until

from ndd.read_ahead import ReadAhead

pytestmark = pytest.mark.fast


class Counter:
    """Counts its calls; those whose numbers are `broken` raise."""

    def __init__(self, broken=()):
        self.calls, self.broken = 0, broken

    def __call__(self):
        number, self.calls = self.calls, self.calls + 1
        if number in self.broken:
            raise StopIteration if number % 2 else KeyError(number)
        return number


def test_as_many_results_as_the_depth_are_ready():
    work = Counter()
    ahead = ReadAhead(work, 3, "source")
    assert work.calls == 0
    assert ahead.next() == 0
    wait_until(lambda: work.calls == 4)
    assert not ahead._may_prepare()
    assert [ahead.next() for _ in range(2)] == [1, 2]
    wait_until(lambda: work.calls == 6)
    ahead.stop()


def test_work_begins_before_the_first_request_if_that_is_wanted():
    work = Counter()
    ahead = ReadAhead(work, 2, "source")
    ahead.begin()
    wait_until(lambda: work.calls == 2)
    assert [ahead.next() for _ in range(3)] == [0, 1, 2]
    ahead.stop()


def test_errors_come_in_order_and_nothing_is_done_after_one_until_somebody_asks():
    work = Counter(broken={2, 3})
    ahead = ReadAhead(work, 5, "source")
    assert ahead.next() == 0
    wait_until(lambda: work.calls == 3)
    assert ahead.next() == 1
    with pytest.raises(KeyError):
        ahead.next()
    assert (work.calls, ahead._may_prepare()) == (3, False)
    with pytest.raises(StopIteration):
        ahead.next()
    assert (work.calls, ahead._may_prepare()) == (4, False)
    assert [ahead.next() for _ in range(3)] == [4, 5, 6]
    ahead.stop()


def test_an_error_keeps_no_frame_alive():
    class Broken(Exception):
        pass

    def work():
        raise Broken

    ahead = ReadAhead(work, 1, "source")
    gc.disable()
    try:
        try:
            ahead.next()
        except Broken as error:
            gone = weakref.ref(error)
        wait_until(lambda: gone() is None)
    finally:
        gc.enable()
    ahead.stop()


@pytest.mark.parametrize("begun", [False, True])
def test_ctrl_c_at_any_step_loses_and_doubles_nothing(begun):
    gc.disable()  # the collector runs finalisers at places of its own
    try:
        number, stroke = 1, None
        while stroke is None or stroke.place is not None:
            ahead, stroke = ReadAhead(itertools.count().__next__, 2, "source"), interrupted(number)
            seen = [ahead.next()] if begun else []
            with stroke:
                seen.append(ahead.next())
            seen += [ahead.next() for _ in range(3)]
            assert seen == list(range(len(seen))), stroke.place
            ahead.stop()
            number += 1
        assert number > 3  # Python 3.12 looks for signals at fewer places than 3.11
    finally:
        gc.enable()


def test_a_condition_that_is_interrupted_holds_its_lock(monkeypatch):
    go_on = threading.Event()
    ahead = ReadAhead(lambda: go_on.wait(60), 1, "source")
    release = ahead._ready._release_save

    def interrupted_there():
        release()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ahead._ready, "_release_save", interrupted_there)
        with pytest.raises(KeyboardInterrupt):
            ahead.next()
    go_on.set()
    assert ahead.next() is True
    ahead.stop()


def test_the_thread_ends_with_stop_and_with_its_owner():
    class Owner:
        pass

    owner, work = Owner(), Counter()
    ahead, other = ReadAhead(work, 1, "source", owner=owner), ReadAhead(Counter(), 1, "source")
    assert (ahead.next(), other.next()) == (0, 0)
    (thread,), (others,) = ahead._threads, other._threads
    del owner
    other.stop()
    other.join()
    wait_until(lambda: not thread.is_alive())
    assert not others.is_alive()
    released = weakref.ref(ahead)
    del ahead
    wait_until(lambda: released() is None)


def test_a_finaliser_on_a_thread_that_holds_the_lock_does_not_wait():
    ahead, done = ReadAhead(Counter(), 1, "source"), threading.Event()
    ahead.next()

    def stop_while_holding_the_lock():
        with ahead._lock:
            ahead.stop()
        done.set()

    threading.Thread(target=stop_while_holding_the_lock, daemon=True).start()
    assert done.wait(60)


@pytest.mark.parametrize("place", ["_may_prepare", "_prepare"])
def test_a_thread_without_memory_goes_on(monkeypatch, place):
    usual, left = getattr(ReadAhead, place), iter(range(2))

    def short_of_memory(self):
        if threading.current_thread().name.startswith("ndd-source") and next(left, None) is not None:
            raise MemoryError
        return usual(self)

    monkeypatch.setattr(ReadAhead, place, short_of_memory)
    ahead = ReadAhead(Counter(), 2, "source")
    assert [ahead.next() for _ in range(6)] == list(range(6))
    assert next(left, None) is None
    ahead.stop()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_goes_on_with_a_thread_of_its_own():
    """Results that were ready are given in both; the call that was under way is made anew in the child."""
    entered, go_on, numbers = threading.Event(), threading.Event(), itertools.count()

    def work():
        number = next(numbers)
        if number == 2:
            entered.set()
            go_on.wait(60)
        return number

    ahead = ReadAhead(work, 2, "source")
    assert ahead.next() == 0
    entered.wait(60)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit([ahead.next(), ahead.next()] != [1, 3])
    go_on.set()
    assert os.waitpid(child, 0)[1] == 0
    assert [ahead.next(), ahead.next()] == [1, 2]
    ahead.stop()


def test_the_program_ends_while_a_call_is_under_way_and_nothing_begins_afterwards():
    code = """
import atexit, threading
def late():
    for ahead in (before, ReadAhead(lambda: 1, 1, "source")):
        try:
            print(ahead.next())
        except RuntimeError as error:
            print(str(error)[:47])
atexit.register(late)
from ndd.read_ahead import ReadAhead
before = ReadAhead(threading.Event().wait, 1, "pipeline", exit_seconds=0.1)
before.begin()
"""
    done = warm_interpreter.run(code)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "".join(
        f"a {name} was asked for data while the program ends"[:47] + "\n" for name in ("pipeline", "source")
    )
