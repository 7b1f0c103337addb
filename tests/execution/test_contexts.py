"""Contexts, thread pools, threads of the user, memory over many calls."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import sys
import threading
import time
import weakref
from collections import deque

import numpy as np
import pytest
from memory import least_growth
from waiting import wait_until

import ndd
from ndd._execution import context as room, cpus
from ndd._execution.threads import default_pool
from ndd._tensor.device import gpu_count

IMAGES = ndd.batch([np.full((200, 100 + i, 3), i, np.uint8) for i in range(8)], layout="HWC")


def where_it_runs():
    """An operator that notes context, pool size and thread."""
    seen = []

    @ndd.operator(register=False, elementwise=False)
    def looks(x, /):
        """Notes where it runs."""
        return ndd.like(x)

    @looks.cpu
    def _(x, out):
        seen.append(threading.current_thread())
        out[...] = x

    looks.seen = seen
    return looks


def test_current_and_default():
    default = ndd.EvalContext.current()
    assert default is ndd.EvalContext.default() is ndd.EvalContext.current()
    with ndd.EvalContext() as outer:
        assert ndd.EvalContext.current() is outer
        with ndd.EvalContext() as inner, outer:
            assert ndd.EvalContext.current() is outer
            assert inner is not outer
        assert ndd.EvalContext.current() is outer
    assert ndd.EvalContext.current() is default
    if not gpu_count():
        assert default.device_id is None
        assert default.cuda_stream is None


def test_arguments():
    pool = ndd.ThreadPool(3)
    assert ndd.EvalContext(thread_pool=pool).thread_pool is pool
    assert ndd.EvalContext(num_threads=2).num_threads == 2
    with pytest.raises(ValueError, match="cannot be specified together"):
        ndd.EvalContext(num_threads=2, thread_pool=pool)
    with pytest.raises(TypeError):
        ndd.EvalContext(thread_pool=3)
    with pytest.raises(TypeError):
        ndd.EvalContext(4)


def test_a_stream_of_ones_own(emulated_gpu):
    own = ndd.stream(device_id=0)
    with ndd.EvalContext(cuda_stream=own) as context:
        assert context.cuda_stream == own
        np.testing.assert_array_equal(np.asarray((ndd.tensor([1, 2]).gpu() + 1).cpu()), [2, 3])


def test_which_stream_a_context_has(emulated_gpu):
    """A default context follows what is set, any other one keeps what was set when it was made."""
    early, first, second = ndd.EvalContext(), ndd.stream(), ndd.stream()
    own = ndd.EvalContext.default().cuda_stream
    assert ndd.get_default_stream() is None
    assert own is ndd.get_current_stream() is ndd.EvalContext.current().cuda_stream
    assert early.cuda_stream is early.cuda_stream
    assert ndd.stream(stream=first) is first != second
    with pytest.raises(ValueError, match="GPU 0, device_id=1"):
        ndd.stream(stream=first, device_id=1)
    try:
        ndd.set_default_stream(first)
        assert ndd.get_default_stream() is ndd.get_current_stream() is ndd.EvalContext.default().cuda_stream is first
        assert early.cuda_stream != first
        result = ndd.EvalContext()
        ndd.set_current_stream(second)
        assert (ndd.get_default_stream() is first, ndd.get_current_stream() is second) == (True, True)
        late = ndd.EvalContext()
        assert (result.cuda_stream is first, late.cuda_stream is second) == (True, True)
        ndd.set_current_stream(None)
        assert ndd.get_current_stream() is first
        assert late.cuda_stream is second
        seen = []
        thread = threading.Thread(target=lambda: seen.append(ndd.get_current_stream()))
        thread.start()
        thread.join()
        assert seen[0] is first
    finally:
        ndd.set_current_stream(None)
        ndd.set_default_stream(None)
    assert ndd.get_current_stream() is own
    with ndd.EvalContext(cuda_stream=second) as context:
        assert ndd.EvalContext.current() is context
        assert context.cuda_stream is second
    assert ndd.EvalContext.current().cuda_stream is own


def test_a_context_serves_one_thread_at_a_time():
    context = ndd.EvalContext()
    errors = []

    def enter():
        try:
            with context:
                pass
        except RuntimeError as error:
            errors.append(str(error))

    with context, context:
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
    assert "EvalContext" in errors[0]
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert len(errors) == 1


def test_what_is_left_where_it_was_not_entered_harms_nothing():
    """As generators do that another thread drops, or that end in another order."""
    for entered in (ndd.EvalContext(), ndd.EvalMode.deferred):
        with pytest.raises(RuntimeError, match="not in force on this thread"):
            entered.__exit__(None, None, None)
    assert ndd.EvalMode.current() is ndd.EvalMode.eager

    def within(context, mode):
        with context, mode:
            yield
            yield

    first, second = ndd.EvalContext(), ndd.EvalContext()
    item, other = within(first, ndd.EvalMode.deferred), within(second, ndd.EvalMode.sync_cpu)
    next(item)
    next(other)
    item.close()
    assert ndd.EvalContext.current() is second
    assert ndd.EvalMode.current() is ndd.EvalMode.sync_cpu
    other.close()
    assert ndd.EvalContext.current() not in (first, second)
    assert ndd.EvalMode.current() is ndd.EvalMode.eager


def test_each_thread_has_its_own_context():
    result = []
    threads = [threading.Thread(target=lambda: result.append(ndd.EvalContext.current())) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len({id(c) for c in [*result, ndd.EvalContext.current()]}) == 4


def test_work_uses_the_context_of_the_call():
    looks = where_it_runs()
    pool = ndd.ThreadPool(4)
    with ndd.EvalMode.deferred:
        with ndd.EvalContext(thread_pool=pool):
            out = looks(ndd.batch([np.zeros(50_000)] * 16))
        out.evaluate()
    assert len(looks.seen) == 16
    assert len(pool._threads) == 3


def test_threads_follow_affinity_and_settings(monkeypatch):
    monkeypatch.setattr(cpus, "cpu_quota", lambda: 1)
    assert ndd.get_num_threads() == 1
    monkeypatch.setattr(cpus, "cpu_quota", lambda: None)
    assert ndd.get_num_threads() == len(os.sched_getaffinity(0))
    context = ndd.EvalContext()
    try:
        ndd.set_num_threads(3)
        assert ndd.get_num_threads() == context.num_threads == default_pool().num_threads == 3
        monkeypatch.setenv("DALI_NUM_THREADS", "5")
        assert ndd.get_num_threads() == 3
        ndd.set_num_threads(None)
        assert ndd.get_num_threads() == context.num_threads == 5
        monkeypatch.setenv("NDD_NUM_THREADS", "6")
        assert ndd.get_num_threads() == 6
        monkeypatch.setenv("NDD_NUM_THREADS", "many")
        with pytest.raises(ValueError, match="NDD_NUM_THREADS"):
            ndd.get_num_threads()
    finally:
        ndd.set_num_threads(None)
    for wrong, error in (("4", TypeError), (True, TypeError), (0, ValueError), (-1, ValueError), (10**6, ValueError)):
        with pytest.raises(error):
            ndd.set_num_threads(wrong)


@pytest.mark.parametrize("count", [1, 2, 5, 16])
def test_the_number_of_threads_never_changes_a_value(count):
    with ndd.EvalContext(num_threads=count):
        out = ndd.flip(IMAGES, vertical=1)
        noise = ndd.random.uniform(batch_size=9, shape=[1000], rng=ndd.random.RNG(3))
        again = ndd.random.uniform(batch_size=9, shape=[1000], rng=ndd.random.RNG(3)).torch()
    for a, b in zip(out, IMAGES, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b)[::-1, ::-1])
    assert bool((noise.torch() == again).all())


def test_a_pool_serves_many_threads_at_once():
    pool = ndd.ThreadPool(3)
    errors = []

    def work(seed):
        try:
            with ndd.EvalContext(thread_pool=pool):
                for _ in range(30):
                    x = ndd.batch([np.full((50_000,), seed, np.float32)] * 5)
                    assert float(((x * 2) + 1).select(3).torch().max()) == 2 * seed + 1
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


def test_errors_of_pool_threads_are_those_of_the_first_bad_sample():
    @ndd.operator(register=False, elementwise=False)
    def some_fail(x, /):
        """Fails for odd numbers."""
        return ndd.like(x)

    @some_fail.cpu
    def _(x, out):
        time.sleep(0.001 * (5 - x[0]))
        if x[0] % 2:
            raise ValueError(f"odd: {x[0]}")
        out[...] = x

    with ndd.EvalContext(num_threads=4):
        for _ in range(10):
            with pytest.raises(ValueError, match="sample 1: odd: 1"):
                some_fail(ndd.batch([[i] for i in range(6)])).evaluate()


def test_values_go_from_thread_to_thread():
    """What one thread has called, another asks for, in every mode."""
    for mode in ndd.EvalMode:
        result = []

        def consume(values, result=result):
            result.extend(float(np.asarray(v).sum()) for v in values)

        with mode:
            values = [ndd.cast(ndd.tensor([i, 1]), dtype=ndd.float32) * 2 for i in range(50)]
        threads = [threading.Thread(target=consume, args=(values,)) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert sorted(result) == sorted([2.0 * i + 2 for i in range(50)] * 4)


def test_contexts_that_need_each_other_do_not_block():
    """A deferred value of one context is asked for by another one that it also needs."""
    gate = threading.Event()

    @ndd.operator(register=False)
    def slow(x, /):
        """Waits a little."""
        return ndd.like(x)

    @slow.cpu
    def _(x, out):
        gate.wait(0.05)
        out[...] = x

    a, b = ndd.EvalContext(), ndd.EvalContext()
    x = ndd.tensor([1.0])
    for _ in range(10):
        with ndd.EvalMode.deferred, a:
            d = slow(x)
        with b:
            g = slow(d)
            f = slow(x)
        with a:
            e = slow(f) + 1
        results = []
        threads = [threading.Thread(target=lambda v=v, r=results: r.append(v.torch().item())) for v in (d, e, f, g)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert sorted(results) == [1, 1, 1, 2]


def test_threads_that_fork_at_once_give_back_what_each_held(monkeypatch):
    """A queue whose lock a thread that has ended still held: its next invocation waited for ever."""
    (ndd.tensor([1.0]) + 1).evaluate()  # has a queue
    lock = ndd.EvalContext.current()._queue.lock
    holding, leave = threading.Event(), threading.Event()

    def forks():
        room._before_fork()
        holding.set()
        leave.wait(60)
        room._go_on()

    other = threading.Thread(target=forks)
    other.start()
    holding.wait()
    assert not lock.acquire(blocking=False)
    monkeypatch.setattr(room, "_FORK_SECONDS", 0.1)
    room._before_fork()  # cannot have it, and forks all the same
    room._go_on()
    leave.set()
    other.join()
    assert lock.acquire(blocking=False)
    lock.release()


def test_evaluate_all_waits():
    looks = where_it_runs()
    context = ndd.EvalContext()
    with context:
        for _ in range(20):
            looks(ndd.tensor([1.0]))
        context.evaluate_all()
        assert len(looks.seen) == 20


def test_synchronous_calls_do_not_wait_for_what_runs_behind_them():
    released = threading.Event()

    @ndd.operator(register=False)
    def waits(x, /):
        """Waits until it is let go."""
        return ndd.like(x)

    @waits.cpu
    def _(x, out):
        released.wait(30)
        out[...] = x

    x = ndd.tensor([1.0])
    behind = waits(x)
    try:
        assert np.asarray(ndd.cast(ndd.as_tensor(np.ones(3)), dtype=ndd.uint8)).tolist() == [1, 1, 1]
        with ndd.EvalMode.sync_cpu:
            assert np.asarray(x + 1).tolist() == [2]
        assert not behind._pending.finished
    finally:
        released.set()
    behind.evaluate()


def test_a_thread_for_which_nothing_is_left_looks_less_and_less_often(monkeypatch):
    """A loop that asks for every result at once runs all itself, and each look takes the interpreter from it."""
    pauses, sleep = [], time.sleep

    def noted(seconds):
        if threading.current_thread().name == "ndd-eager":
            pauses.append(seconds)
        sleep(seconds)

    monkeypatch.setattr(room.time, "sleep", noted)
    first, longest = room._GRACE_SECONDS, room._LONGEST_GRACE_SECONDS
    expected = [first] + [min(first * 2**k, longest) for k in range(room._LOOKS)]
    with ndd.EvalContext() as context:

        def looked():  # once in a while the thread is the first to run it
            pauses.clear()
            ndd.flip(IMAGES).evaluate()
            wait_until(lambda: context._queue.asleep)
            return pauses == expected

        ndd.flip(IMAGES).evaluate()
        wait_until(lambda: context._queue.asleep)
        wait_until(looked)
        left = ndd.flip(IMAGES)
        wait_until(lambda: left._pending is None or left._pending.finished)  # without being asked for


@pytest.mark.parametrize("seconds", [0.002, 0.1])  # less than the thread looks before it waits, and more
def test_what_is_queued_while_another_thread_works_runs_by_itself(seconds):
    with ndd.EvalContext() as context:
        ndd.flip(IMAGES).evaluate()
        for _ in range(5):
            with context._queue.lock:  # as one that runs what it asks for
                left = ndd.flip(IMAGES)
                time.sleep(seconds)
                assert not left._pending.finished
            wait_until(lambda left=left: left._pending is None or left._pending.finished)


def test_background_threads_end_with_their_context(monkeypatch):
    """Idle or not: a program may make a context for each batch."""
    monkeypatch.setattr(room, "_IDLE_SECONDS", 600.0)
    before = set(threading.enumerate())
    contexts = [ndd.EvalContext(num_threads=2) for _ in range(5)]
    for context in contexts:
        with context:
            ndd.flip(IMAGES).evaluate()
    own = {t for t in threading.enumerate() if t.name.startswith(("ndd-eager", "ndd-worker"))} - before
    assert own
    gone = [weakref.ref(c) for c in contexts]
    del contexts, context
    gc.collect()
    assert all(g() is None for g in gone)
    wait_until(lambda: not any(t.is_alive() for t in own))


def test_results_and_errors_leave_nothing_behind():
    """Inputs die with the work, errors hold neither frames nor batches, all without the garbage collector."""
    gc.collect()
    gc.disable()
    try:
        for mode in ndd.EvalMode:
            with mode:
                x = ndd.batch([np.zeros(10, np.float32)] * 2)
                store = weakref.ref(x._value().arrays()[0])
                out = x + 1
                out.evaluate()
                del x
                ndd.EvalContext.current().evaluate_all()
                assert store() is None, f"{mode}: the input outlives its use"

                y = ndd.batch([np.zeros(10, np.float32)] * 2)
                store = weakref.ref(y._value().arrays()[0])
                try:
                    y.slice[20].evaluate()
                except RuntimeError:
                    pass
                else:
                    pytest.fail("index 20 was accepted")
                del y
                assert store() is None, f"{mode}: the error keeps the input alive"
    finally:
        gc.enable()


@pytest.mark.slow
def test_ten_thousand_iterations_in_flat_memory():
    def step(i):
        x = ndd.batch(np.full((4, 32, 32, 3), i % 251, np.uint8), layout="HWC")
        y = ndd.cast(ndd.flip(x), dtype=ndd.float32) * (1 + i % 7)
        if i % 5 == 0:
            try:
                y.slice[99].evaluate()
            except RuntimeError:
                pass
        return y.torch()

    for i in range(1500):
        step(i)
    gc.collect()
    threads, objects = threading.active_count(), len(gc.get_objects())
    assert least_growth(lambda: deque(map(step, range(2500)), 0)) < 2 << 20
    assert len(gc.get_objects()) - objects < 500
    assert threading.active_count() <= threads + 1


def test_many_small_contexts_share_the_default_pool():
    threads = threading.active_count()
    for _ in range(50):
        with ndd.EvalContext():
            ndd.flip(IMAGES).evaluate()
    # A background thread each, and the pool that they share.
    assert threading.active_count() <= threads + 51 + ndd.get_num_threads()


def test_pool_arguments():
    with pytest.raises(TypeError):
        ndd.ThreadPool("4")
    assert ndd.ThreadPool().num_threads == ndd.get_num_threads()
    assert sys.getrefcount(default_pool()) > 1


def test_a_context_has_a_checkpoint_of_its_own():
    context = ndd.EvalContext()
    assert context.checkpoint is context.checkpoint
    assert context.checkpoint is not ndd.checkpoint.current()
    with context:
        assert ndd.checkpoint.current() is context.checkpoint


def test_contexts_and_pools_are_not_copied():
    """A copy would share the queue, and lose its threads with the first of the two."""
    for item in (ndd.EvalContext(num_threads=1), ndd.ThreadPool(1)):
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(
                TypeError, match=rf"{type(item).__name__} cannot be pickled or copied: .* Make a new one"
            ):
                copied(item)
