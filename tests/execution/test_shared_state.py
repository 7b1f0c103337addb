"""What threads share (caches, counters, handles, queues) under an interpreter that changes threads at every step."""

from __future__ import annotations

import gc
import io
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ndd
from ndd._execution.memoize import Memoized
from ndd._execution.weak_registry import WeakRegistry
from ndd._tensor.handle import Spec

THREADS = 8


@pytest.fixture(autouse=True)
def _every_step():
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def together(work: Callable[[int], Any], threads: int = THREADS) -> list[Any]:
    """`work(k)` on each of so many threads, which begin at once; what they gave. The first error is raised."""
    results: list[Any] = [None] * threads
    errors: list[BaseException] = []
    barrier = threading.Barrier(threads)

    def run(k: int) -> None:
        try:
            barrier.wait(60)
            results[k] = work(k)
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=run, args=(k,)) for k in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(120)
    assert not any(thread.is_alive() for thread in running)
    for error in errors:
        raise error
    return results


def read_later(value: int) -> ndd.Batch:
    """Arrays of which nothing is known before they are read."""
    buffer = io.BytesIO()
    np.save(buffer, np.full((2, 3), value, np.int16))
    return ndd.decoders.numpy(ndd.batch([np.frombuffer(buffer.getvalue(), np.uint8)] * 2))


def test_all_threads_see_what_a_value_is():
    for i in range(20):
        with ndd.EvalMode.deferred if i % 2 else ndd.EvalMode.eager:
            value = read_later(i)
        asked = together(lambda k, v=value: (v.ndim, v.dtype, v.batch_size, v.torch().sum().item())[k % 3 :])
        known = (2, ndd.int16, 2, 12 * i)
        assert asked == [known[k % 3 :] for k in range(THREADS)]


class _InOrder(ndd.Batch):
    """Notes in which order its slots are written, and read."""

    __slots__ = ("order",)

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "order":
            self.order.append(name)
        super().__setattr__(name, value)


def test_a_value_is_known_before_it_is_seen():
    """Threads look without a lock: whoever sees the store has to see its type, and one of work and store."""
    pending = read_later(1)._pending
    handle = _InOrder.__new__(_InOrder)
    handle.order = []
    handle._spec, handle._store, handle._pending, handle._index, handle._n = (
        Spec.of(None, None, None, ndd.Device.CPU),
        None,
        pending,
        0,
        None,
    )
    handle.order.clear()
    handle.evaluate()
    assert handle.order == ["_spec", "_n", "_store", "_pending"]


def test_a_copy_of_a_handle_that_is_being_evaluated():
    for _ in range(100):
        with ndd.EvalMode.deferred:
            value = ndd.batch([np.zeros(3, np.int16)]) + 1
        shapes = together(lambda k, v=value: (ndd.Batch(v) if k else v.evaluate()).shape, 3)
        assert shapes == [[(3,)]] * 3


def test_equal_specs_are_one_object():
    for i in range(50):
        layout = f"layout {i}"
        assert len({id(s) for s in together(lambda k, n=layout: Spec.of(ndd.uint8, 3, n, ndd.Device("cpu")))}) == 1


def test_each_sample_is_worked_on_once():
    pool = ndd.ThreadPool(THREADS)
    for _ in range(100):
        done: list[int] = []
        assert pool.run(done.append, 100) == {}
        assert sorted(done) == list(range(100))


def test_objects_are_made_once():
    output: Counter[int] = Counter()

    def make(key: int) -> list[int]:
        output[key] += 1
        return [key]

    memoized = Memoized(make)
    result = together(lambda k: [memoized(i) for i in range(200)])
    assert set(output.values()) == {1}
    assert all(a is b for each in result for a, b in zip(each, result[0], strict=True))


def test_what_is_in_use_is_not_closed():
    class Connection:
        def __init__(self, key: int) -> None:
            self.open = True

        def close(self) -> None:
            self.open = False

    memoized = Memoized(Connection, limit=2)

    def work(k: int) -> bool:
        still_open = True
        for i in range(200):
            with memoized.using((i + k) % 5) as connection:
                still_open = still_open and connection.open
        return still_open

    assert together(work) == [True] * THREADS


def test_a_registry_is_walked_while_others_add():
    class Member:
        pass

    registry: WeakRegistry[Member] = WeakRegistry()
    kept = [Member() for _ in range(50)]
    for member in kept:
        registry.add(member)

    def work(k: int) -> int:
        least = len(kept)
        for _ in range(100):
            registry.add(Member())
            least = min(least, len({id(m) for m in registry}))
        return least

    assert together(work) == [50] * THREADS
    gc.collect()
    assert len(list(registry)) == 50


def test_kept_calls_serve_all_threads():
    """More constants and shapes than are kept, so that caches are emptied while others read them."""

    def work(k: int) -> list[int]:
        wrong = []
        for i in range(150):
            number = (i * (k + 1)) % 300
            size = 2 + i % 70
            batch = ndd.batch([np.zeros((size, 2), np.int32)] * 2)
            values = (batch + number).torch()
            filled = ndd.full(number, shape=[size], batch_size=2).torch()
            if values.tolist() != [[[number] * 2] * size] * 2 or filled.tolist() != [[number] * size] * 2:
                wrong.append(i)
        return wrong

    assert together(work, 4) == [[]] * 4


def test_invocations_of_many_threads_run_once():
    context = ndd.EvalContext(num_threads=2)
    ran: Counter[int] = Counter()

    @ndd.operator(register=False)
    def counted(array, /, *, number: int):
        """Its input; `number` is counted."""
        return ndd.like(array)

    @counted.batch
    def _(call, array, number):
        ran[number] += 1
        return array.arrays

    batch = ndd.batch([[1.0]])
    with context:
        values = [counted(batch, number=i) for i in range(200)]
        together(lambda k: [v.evaluate() for v in values[k:] + values[:k]])
    assert ran == Counter(range(200))


def test_a_queue_that_falls_asleep_is_woken():
    """What is queued while the background thread lies down is run without anybody asking for it."""
    ran = threading.Event()

    @ndd.operator(register=False)
    def noted(array, /):
        """Its input."""
        return ndd.like(array)

    @noted.batch
    def _(call, array):
        ran.set()
        return array.arrays

    batch = ndd.batch([[1.0]])
    for i in range(30):
        ran.clear()
        value = noted(batch)
        assert ran.wait(3), i
        value.evaluate()
        threading.Event().wait(0.001 * (i % 7))
