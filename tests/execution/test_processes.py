"""What happens to work under way when the process ends, forks, or is interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
import warm_interpreter
from waiting import wait_until

SLOW = """
import logging, os, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores Ctrl-C, and its children
import numpy as np
import torch  # here, so that Ctrl-C does not come in the middle of its import
import ndd
logging.getLogger("ndd").setLevel(logging.ERROR)  # on a busy machine a line says what is compiled, which takes a second

@ndd.operator(register=False)
def slow(x, /, *, seconds: float = 0.2):
    "Sleeps."
    return ndd.like(x)

@slow.plan
def _(x, *, seconds):
    return ndd.Plan(x.shapes, shared={"seconds": seconds})

@slow.cpu
def _(x, out, seconds):
    time.sleep(seconds)
    out[...] = x

x = ndd.tensor([1.0, 2.0])
images = ndd.batch([np.full((300, 200, 3), i, np.uint8) for i in range(8)], layout="HWC")
"""


def run(code, timeout=100, expected=0):
    done = warm_interpreter.run(SLOW + textwrap.dedent(code), timeout=timeout, has_ndd=True)
    assert done.returncode == expected, (done.returncode, done.stdout[-500:], done.stderr[-3000:])
    return done.stdout, done.stderr


@pytest.mark.parametrize("mode", ["deferred", "eager", "sync_cpu"])
def test_exit_with_work_queued(mode):
    # Two hundred seconds of work are queued, and none of it may be waited for: `run` gives up after a hundred.
    out, err = run(f"""
        with ndd.EvalMode.{mode}:
            values = [slow(x, seconds=0.05) for _ in range(5)]
            for _ in range(200 if ndd.EvalMode.current() is not ndd.EvalMode.sync_cpu else 0):
                values.append(slow(x, seconds=1.0))
            ndd.flip(images)
        print("end")
    """)  # fmt: skip
    assert out == "end\n"
    assert err == ""


def test_exit_in_the_middle_of_an_exception():
    _, err = run("""
        values = [slow(x) for _ in range(50)]
        raise SystemExit(3)
    """, expected=3)  # fmt: skip
    assert err == ""


def test_threads_of_samples_end_before_the_interpreter():
    """One that returned from C++ code to an interpreter that is gone would abort the process. The handler runs after ndd's."""
    program = """
import atexit, threading
atexit.register(lambda: print([t.name for t in threading.enumerate() if t.name.startswith("ndd-worker")]))
import ndd
barrier, pool = threading.Barrier(3), ndd.ThreadPool(3)
pool.run(lambda i: barrier.wait(), 3)
print(sorted([t.name for t in threading.enumerate() if t.name.startswith("ndd-worker")]))
"""
    ran = warm_interpreter.run(program)
    assert ran.stdout.splitlines() == ["['ndd-worker-0', 'ndd-worker-1']", "[]"]


def test_exit_while_threads_wait():
    out, err = run("""
        values = [slow(x, seconds=0.05) for _ in range(100)]
        for v in values[::10]:
            threading.Thread(target=v.evaluate, daemon=True).start()
        print("end")
    """)
    assert out == "end\n"
    assert "Fatal" not in err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork_after_use():
    """While nothing runs, with work queued, with work that nobody asked for yet, and while the pool is at work."""
    out, _ = run("""
        for when in ("idle", "queued", "deferred", "pool"):
            pending = None
            if when == "idle":
                ndd.flip(images).evaluate()
            elif when == "queued":
                pending = [slow(x, seconds=0.1) for _ in range(4)]
                time.sleep(0.05)
            elif when == "deferred":
                with ndd.EvalMode.deferred:
                    pending = [slow(x)]
            else:
                pending = [ndd.flip(images)]
            child = os.fork()
            if child == 0:
                signal.alarm(90)
                ok = np.asarray(ndd.flip(images).select(2)).max() == 2
                ok = ok and np.asarray(slow(x) + 1).tolist() == [2, 3]
                for p in pending or []:
                    ok = ok and np.asarray(p.select(0) if isinstance(p, ndd.Batch) else p).size > 0
                os._exit(0 if ok else 1)
            _, status = os.waitpid(child, 0)
            assert status == 0, (when, status)
            assert np.asarray(slow(x)).tolist() == [1, 2]
            for p in pending or []:
                p.evaluate()
        print("end")
    """)
    assert out == "end\n"


FORKS = """
import ndd, torch  # in this order: hooks of what torch imports are registered after ours
import os, random, signal, sys, time
import numpy as np

images = ndd.batch([np.full((30, 20, 3), i, np.uint8) for i in range(4)], layout="HWC")
chance = random.Random(int(sys.argv[1]))
children, begun = [], time.monotonic()
pending = [ndd.random.coin_flip(batch_size=4), ndd.hsv(images, hue=3.0)]
for i in range(int(sys.argv[2])):
    time.sleep(chance.uniform(0, 0.3))
    pending.append(ndd.brightness(images, brightness=1.0 + i))
    child = os.fork()
    if child == 0:
        signal.alarm(100)
        code = 1
        try:
            ok = np.asarray(ndd.flip(images).select(2)).max() == 2
            ok = ok and np.asarray(ndd.brightness(images, brightness=1.0).select(3)).max() == 3
            ok = ok and all([np.asarray(p.select(0)).size for p in pending])
            code = 0 if ok else 3
        except BaseException:
            import traceback
            traceback.print_exc()
        os._exit(code)
    children.append(child)
    if len(children) == 2:  # no more at a time
        assert os.waitpid(children.pop(0), 0)[1] == 0
for child in children:
    assert os.waitpid(child, 0)[1] == 0
for p in pending:
    p.evaluate()
print("end")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("seed", range(1))
def test_forks_at_random_moments(tmp_path, seed):
    """While another thread imports the compiler, compiles with an empty cache, or runs."""
    done = subprocess.run(
        [sys.executable, "-c", FORKS, str(seed), "5"],
        env={**os.environ, "NDD_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.stdout == "end\n", (done.returncode, done.stderr[-3000:])
    assert "Exception ignored" not in done.stderr


def test_steps_around_a_fork_run_in_order():
    out, _ = run("""
        from ndd._execution.fork import around_fork
        said = []
        for room in ("lower", "higher"):
            around_fork(
                before=lambda room=room: said.append(f"before {room}"),
                in_parent=lambda room=room: said.append(f"parent {room}"),
                in_child=lambda room=room: said.append(f"child {room}"),
            )
        child = os.fork()
        if child == 0:
            os._exit(said != ["before higher", "before lower", "child lower", "child higher"])
        assert os.waitpid(child, 0)[1] == 0
        print(said)
    """)
    assert out == "['before higher', 'before lower', 'parent lower', 'parent higher']\n"


@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.drawn(1)
def test_a_child_leaves_garbage_of_a_gpu_alone(on_gpu):
    """As it was before the fork, whether or not it was asked for again."""
    out, _ = run(f"""
        import gc
        torch.cuda.is_initialized = lambda: {on_gpu}

        class Garbage:
            def __init__(self):
                self.itself = self
            def __del__(self):
                died.append(os.getpid())

        gc.disable()
        died, _ = [], Garbage()
        del _
        child = os.fork()
        if child == 0:
            torch.cuda.is_initialized = lambda: False  # so torch says in a child
            gc.collect()
            seen = list(died)
            own = Garbage()
            del own
            gc.collect()
            os._exit((bool(seen) == {on_gpu}) + 2 * (len(died) == len(seen)))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), died)
        gc.collect()
        print(died == [os.getpid()])
    """)
    assert out == "0 []\nTrue\n"


@pytest.mark.gpu
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_survives_its_parents_garbage_on_a_gpu(cuda):
    """Tensors that several streams have used ask the driver for events when they die."""
    out, _ = run("""
        import gc
        gc.disable()
        there = ndd.flip(images.gpu()).torch()
        ring = [there, torch.zeros(1 << 20, device="cuda")]
        ring[1].record_stream(torch.cuda.Stream())
        ring.append(ring)
        del ring, there
        child = os.fork()
        if child == 0:
            gc.collect()
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    assert out == "0\n"


def test_an_operator_that_forks():
    """The child goes on in the middle of the operator, and can use others."""
    out, _ = run("""
        @ndd.operator(register=False)
        def forks(x, /):
            "Forks."
            return ndd.like(x)
        @forks.cpu
        def _(x, out):
            child = os.fork()
            if child == 0:
                ok = np.asarray(ndd.flip(images).select(2)).max() == 2
                os._exit(0 if ok else 1)
            out[...] = os.waitpid(child, 0)[1]
        print(np.asarray(forks(x)).tolist(), np.asarray(x + 1).tolist())
    """)
    assert out == "[0.0, 0.0] [2.0, 3.0]\n"


def test_worker_processes():
    """multiprocessing by fork, values sent back as pickles."""
    out, _ = run("""
        import multiprocessing
        ndd.flip(images).evaluate()
        def work(i):
            return ndd.flip(images).select(i) + 1
        with multiprocessing.get_context("fork").Pool(2) as pool:
            found = pool.map_async(work, range(4)).get(timeout=90)
        print([int(np.asarray(f).max()) for f in found])
    """)
    assert out == "[1, 2, 3, 4]\n"


def test_work_on_the_cpu_leaves_cuda_alone():
    """Also where there is a GPU: contexts, threads and operators on the CPU do not start CUDA."""
    out, _ = run("""
        with ndd.EvalContext(), ndd.EvalMode.sync_full:
            np.asarray(ndd.flip(images).select(0))
        thread = threading.Thread(target=lambda: (slow(x) + 1).evaluate())
        thread.start()
        thread.join()
        print(torch.cuda.is_initialized())
    """)
    assert out == "False\n"


INTERRUPT = """
last = slow(x, seconds=0) + 1
last.evaluate()
def interrupt_soon():
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
"""


@pytest.mark.parametrize("mode", ["deferred", "sync_full"])
def test_control_c_in_the_loop(mode):
    """KeyboardInterrupt arrives, at once, and everything works afterwards."""
    out, err = run(
        INTERRUPT
        + f"""
with ndd.EvalMode.{mode}:
    try:
        interrupt_soon()
        while True:
            last = slow(x, seconds=0.02) + 1
            last.evaluate()
    except KeyboardInterrupt:
        print("interrupted")
    print(np.asarray(slow(x, seconds=0.01) + 1).tolist())
    print(np.asarray(last).tolist())
    print(np.asarray(ndd.flip(images).select(3)).max())
"""
    )
    assert out.splitlines() == ["interrupted", "[2.0, 3.0]", "[2.0, 3.0]", "3"]
    assert err == ""


def test_control_c_while_waiting_for_the_background():
    out, err = run(
        INTERRUPT
        + """
begun, released = threading.Event(), threading.Event()

@ndd.operator(register=False)
def held(x, /):
    "Waits until it is let go."
    return ndd.like(x)

@held.cpu
def _(x, out):
    begun.set()
    released.wait()
    out[...] = x

value = held(x)
begun.wait()  # the background thread has it
try:
    interrupt_soon()
    value.evaluate()
except KeyboardInterrupt:
    print("interrupted")
released.set()
print(np.asarray(value).tolist())
"""
    )
    assert out.splitlines() == ["interrupted", "[1.0, 2.0]"]
    assert err == ""


@pytest.mark.parametrize("mode", ["eager", "sync_cpu"])
def test_what_the_handler_of_a_signal_raises_reaches_the_user(mode):
    """A time limit by `setitimer` is no error of an operator or a sample, wherever it comes; nothing is kept of it."""
    out, _ = run(f"""
        import random
        class TimeIsUp(OSError):
            pass
        armed = False
        def handler(*given):
            if armed:
                raise TimeIsUp("time is up")
        signal.signal(signal.SIGALRM, handler)
        calls = [
            lambda: ndd.brightness(images, brightness=2.0), lambda: ndd.flip(images), lambda: images + 1,
            lambda: ndd.resize(images, size=[20, 30]), lambda: slow(x, seconds=0.0001),
        ]
        expected = [np.asarray(call().cpu().evaluate().torch()) for call in calls]
        chance, found, wrong = random.Random(0), set(), []
        for i in range(300):
            value, k = None, i % len(calls)
            try:
                try:
                    armed = True
                    signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-6, 5e-4))
                    with ndd.EvalMode.{mode}:
                        while True:
                            value = None
                            value = calls[k]()
                            value.evaluate()
                            if not signal.getitimer(signal.ITIMER_REAL)[0]:
                                break  # Python loses what is raised in a finaliser
                finally:
                    armed = False
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except Exception as error:
                found.add((type(error).__name__, str(error)))
            if value is not None and not np.array_equal(value.torch(), expected[k]):
                wrong.append(k)
        lock = ndd.EvalContext.current()._queue.lock
        free = []
        other = threading.Thread(target=lambda: free.append(lock.acquire(timeout=60)))
        other.start()
        other.join()
        print(found, wrong, free)
    """)  # fmt: skip
    assert out == "{('TimeIsUp', 'time is up')} [] [True]\n"


def test_control_c_when_a_result_is_there():
    """Between the end of the work and the note that it has ended: whoever asks again gets a value, and does not wait."""
    out, err = run("""
        from ndd._execution.invocation import Invocation
        end, hit = Invocation._end, []
        def interrupted(invocation, state):
            if threading.current_thread() is threading.main_thread() and not hit:
                hit.append(state)
                signal.raise_signal(signal.SIGINT)
            end(invocation, state)
        signal.alarm(90)
        with ndd.EvalMode.deferred:
            value = slow(x, seconds=0) + 1
        Invocation._end = interrupted
        try:
            value.evaluate()
        except KeyboardInterrupt:
            print(np.asarray(value).tolist())
    """)
    assert out == "[2.0, 3.0]\n"
    assert err == ""


def test_an_error_after_the_handler_of_a_signal_is_the_operators():
    """What a handler raised before, and the user's code is dealing with, is not raised again."""
    out, err = run("""
        def handler(signum, frame):
            raise TimeoutError("time is up")
        signal.signal(signal.SIGUSR1, handler)
        try:
            signal.raise_signal(signal.SIGUSR1)
        except TimeoutError:
            with ndd.EvalMode.sync_cpu:
                try:
                    ndd.crop(images, crop=[1000, 1])
                except Exception as error:
                    print(type(error).__name__, str(error)[:16])
    """)
    assert out == "RuntimeError crop: sample 0: \n"
    assert err == ""


def test_the_handler_of_a_signal_uses_operators():
    """It interrupts its thread anywhere: also where that holds what the handler's own operators need."""
    out, err = run("""
        from ndd._execution.context import InvocationQueue
        step, depth = InvocationQueue.step, []
        def interrupted(turn):  # what a signal does to the thread that has just taken the queue's lock
            if threading.current_thread() is threading.main_thread() and not depth:
                depth.append(1)
                signal.raise_signal(signal.SIGUSR1)
            return step(turn)
        InvocationQueue.step = interrupted
        seen = []
        def handler(*_):
            seen.append(int(np.asarray(ndd.flip(images).select(2)).max()))
        signal.signal(signal.SIGUSR1, handler)
        signal.alarm(90)
        with ndd.EvalMode.deferred:
            later = ndd.flip(images)
        values = []
        while not seen:
            values.append(slow(x, seconds=0) + 1)
            values[-1].evaluate()
        print(seen, all([np.asarray(v).tolist() == [2, 3] for v in values]), np.asarray(later.select(3)).max())
    """)
    assert out == "[2] True 3\n"
    assert err == ""


def test_control_c_ends_a_script():
    script = SLOW + "\nprint('go', flush=True)\nwhile True:\n    (slow(x, seconds=0.05) + 1).evaluate()\n"
    program = warm_interpreter.Program(script, has_ndd=True)
    wait_until(lambda: program.said() == "go\n")
    time.sleep(0.3)
    program.send_signal(signal.SIGINT)
    done = program.ended(90)
    assert "KeyboardInterrupt" in done.stderr
    assert "Fatal" not in done.stderr
    assert done.returncode == -signal.SIGINT


def test_sys_exit_inside_an_operator_reaches_the_asker():
    out, err = run("""
        @ndd.operator(register=False)
        def leaves(x, /):
            "Leaves."
            return ndd.like(x)
        @leaves.cpu
        def _(x, out):
            sys.exit(5)
        try:
            leaves(x).evaluate()
        except SystemExit as error:
            print("left", error.code)
        print(np.asarray(x + 1).tolist())
    """)
    assert out.splitlines() == ["left 5", "[2.0, 3.0]"]
    assert err == ""
