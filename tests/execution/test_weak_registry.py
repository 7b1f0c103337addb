"""Objects held weakly, which threads add to while another goes through them."""

import sys
import threading

import pytest

from ndd._execution.weak_registry import WeakRegistry


class Queue:
    pass


@pytest.fixture
def often_interrupted():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def test_it_holds_what_lives():
    registry, first, second = WeakRegistry(), Queue(), Queue()
    registry.add(first)
    registry.add(second)
    registry.add(first)
    assert set(registry) == {first, second}
    del second
    assert list(registry) == [first]
    registry.clear()
    assert not list(registry)


def test_threads_add_while_another_goes_through_it(often_interrupted):
    """With `weakref.WeakSet` in its place: RuntimeError, "Set changed size during iteration"."""
    registry, ended = WeakRegistry(), threading.Event()
    kept = [Queue() for _ in range(100)]
    for queue in kept:
        registry.add(queue)

    def add():
        while not ended.is_set():
            more = [Queue() for _ in range(100)]
            for queue in more:
                registry.add(queue)
            del more, queue

    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(300):
            assert set(kept) <= set(registry)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert len(list(registry)) == 100
