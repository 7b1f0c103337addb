"""Programs that end while a thread compiles kernels for them."""

import os
import signal
import threading
import time

import pytest
import warm_interpreter
from waiting import wait_until

from ndd._compiled import background as room


def test_the_end_of_a_program_waits_for_what_is_nearly_done(monkeypatch):
    """No longer than that has taken, and not for long."""
    background, now = room.background, [100.0]
    monkeypatch.setattr(room.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(background, "_thread", threading.current_thread())

    def seconds_left(taken):
        monkeypatch.setattr(background, "_begun", now[0] - taken)
        monkeypatch.setattr(background, "_end", now[0])
        ended = now[0]
        while True:
            try:
                background.step()
            except room._BrokenOff:
                return now[0] - ended
            now[0] += 0.1

    assert seconds_left(0.0) == 0.0
    assert seconds_left(0.55) == pytest.approx(0.6)
    assert seconds_left(30.0) == pytest.approx(room._LAST_HERE, abs=0.11)


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
while not begun or time.monotonic() - begun[0] < float(sys.argv[1]):
    time.sleep(0.02)
ended.append(time.monotonic())
print("ends", flush=True)
"""


def _program_that_ends(before="", after=room._LAST_HERE + 0.2):
    """It ends so many seconds after the thread has begun."""
    program = warm_interpreter.Program(before + _ENDS, str(after), env={**os.environ, "NDD_COMPILE_IN_BACKGROUND": "1"})
    while "ends" not in program.said():
        time.sleep(0.02)
    return program


def test_an_end_is_not_held_up_for_long():
    done = _program_that_ends().ended(60)
    assert done.returncode == 0, done.stderr
    assert room._LAST_HERE <= float(done.stdout.split()[1]) < room._LAST_HERE + 30.0  # on a busy machine


def test_control_c_ends_it():
    """At once, and without a word of Python's threads."""
    longer = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for programs in the background
from ndd._compiled import background as room
room._LAST, seen = 1000.0, []
def is_nearly_done(begun, longest):
    ends = room.background._end > 0
    seen.append(ends)
    if seen.count(True) == 5:  # the main thread has come to its end, and waits
        print("waits", flush=True)
    return ends
room.background._is_nearly_done = is_nearly_done
"""
    program = _program_that_ends(longer, after=0.1)
    wait_until(lambda: "waits" in program.said())
    os.kill(program.pid, signal.SIGINT)
    done = program.ended(60)
    assert (done.returncode, done.stderr) == (0, "")


_ORDER = """
from ndd._compiled.background import Background, Job, background
from ndd._execution import context

class Queue:
    waiting, thread = [], None

    def __setattr__(self, name, value):
        print("queues end", background._end is not None)

queue = Queue()
context._queues.add(queue)
background.do(Job(lambda: None))
background.finish()
"""


def test_calls_wait_for_no_kernel_while_the_program_ends():
    """Ctrl-C in a first batch: its queue, which ended first, waited two seconds for a call that waited for a kernel."""
    environment = {**os.environ, "NDD_COMPILE_IN_BACKGROUND": "1"}
    done = warm_interpreter.run(_ORDER, env=environment, has_ndd=True)
    assert done.stdout.splitlines() == ["queues end True"], done.stderr


def test_a_program_that_ends_early(tmp_path):
    """It does not stay for what is not begun."""
    code = (
        "import numpy as np, ndd; x = ndd.tensor(np.zeros((8, 8, 1), np.uint8), layout='HWC');"
        "print(ndd.transpose(x, perm=[1, 0, 2]).shape, ndd.random.coin_flip(rng=ndd.random.RNG(1)).shape)"
    )
    environment = {**os.environ, "NDD_COMPILE_IN_BACKGROUND": "1", "NDD_CACHE_DIR": str(tmp_path)}
    done = warm_interpreter.run(code, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "(8, 8, 1) ()"
    assert not list(tmp_path.rglob("ndd.*swapped*"))
