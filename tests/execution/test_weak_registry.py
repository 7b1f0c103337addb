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
    living, first, second = WeakRegistry(), Queue(), Queue()
    living.add(first)
    living.add(second)
    living.add(first)
    assert set(living) == {first, second}
    del second
    assert list(living) == [first]
    living.clear()
    assert not list(living)


def test_threads_add_while_another_goes_through_it(often_interrupted):
    """With `weakref.WeakSet` in its place: RuntimeError, "Set changed size during iteration"."""
    living, ended = WeakRegistry(), threading.Event()
    kept = [Queue() for _ in range(100)]
    for queue in kept:
        living.add(queue)

    def add():
        while not ended.is_set():
            more = [Queue() for _ in range(100)]
            for queue in more:
                living.add(queue)
            del more, queue

    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(300):
            assert set(kept) <= set(living)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert len(list(living)) == 100
