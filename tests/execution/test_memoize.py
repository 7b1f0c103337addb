"""`Memoized`: made once for each key, per process, thread or owner; with a limit, threads that end, and forks."""

from __future__ import annotations

import gc
import os
import threading
import time

import pytest

from ndd._execution.memoize import Memoized


class Connection:
    """Something that is made and closed."""

    def __init__(self, *key):
        self.key = key
        self.closed = False
        self.maker = os.getpid()

    def close(self):
        self.closed = True
        assert self.maker == os.getpid(), "closed by a process that did not make it"


def test_made_once_by_many_threads():
    output = []

    def make(key):
        output.append(key)
        time.sleep(0.02)
        return Connection(key)

    kept = Memoized(make)
    result = []
    threads = [threading.Thread(target=lambda i=i: result.append(kept(i % 2))) for i in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(output) == [0, 1]
    assert len({id(f) for f in result}) == 2


def test_the_least_recently_used_one_goes_and_is_closed():
    kept = Memoized(Connection, limit=2)
    first, second = kept(1), kept(2)
    assert kept(1) is first
    third = kept(3)
    assert [c.closed for c in (first, second, third)] == [False, True, False]
    assert kept(2) is not second
    assert first.closed
    assert len(kept) == 2
    kept.clear()
    assert third.closed
    assert len(kept) == 0


def test_what_is_in_use_is_not_closed():
    kept = Memoized(Connection, limit=1)
    with kept.using(1) as first, kept.using(2) as second:
        third = kept(3)
        kept.clear()
        assert [c.closed for c in (first, second, third)] == [False, False, True]
    assert first.closed != second.closed
    assert len(kept) == 1


def test_a_maker_that_fails_is_asked_again():
    answers = [ValueError("no"), 5]

    def make():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    kept = Memoized(make)
    with pytest.raises(ValueError, match="no"):
        kept()
    assert kept() == 5


def test_threads_have_their_own_which_go_with_them():
    kept = Memoized(Connection, per="thread", limit=2)
    mine = kept("a")
    result = []
    thread = threading.Thread(target=lambda: result.extend([kept("a"), kept("a"), kept("b")]))
    thread.start()
    thread.join()
    assert result[0] is result[1]
    assert result[0] is not mine
    del thread
    gc.collect()
    assert [c.closed for c in result] == [True, True, True]
    assert kept("a") is mine
    assert len(kept) == 1


def test_owners_have_their_own_which_go_with_them():
    class Owner:
        pass

    kept = Memoized(lambda owner, key: [key], per="owner")
    item, other = Owner(), Owner()
    assert kept(item, "a") is kept(item, "a")
    assert kept(item, "a") is not kept(other, "a")
    assert len(kept) == 2
    del item
    gc.collect()
    assert len(kept) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("per", ["process", "thread"])
def test_a_forked_child_starts_with_nothing(per):
    """Neither used nor closed there, also what other threads had made; a lock that one of them held holds up nobody."""
    kept = Memoized(Connection, per=per, limit=3)
    mine = kept(1)
    ready, leave, making = threading.Event(), threading.Event(), threading.Event()

    def other():
        kept(2)
        ready.set()
        leave.wait()

    def slow(key):
        making.set()
        leave.wait()
        return key

    slowly = Memoized(slow)
    threads = [threading.Thread(target=other), threading.Thread(target=lambda: slowly(1))]
    for t in threads:
        t.start()
    ready.wait()
    making.wait()
    child = os.fork()
    if child == 0:
        try:
            leave.set()
            fine = len(kept) == 0 and kept(1) is not mine and kept(1).maker == os.getpid() and not mine.closed
            fine = fine and slowly(1) == 1
            kept.clear()
            gc.collect()
            os._exit(0 if fine else 1)
        finally:
            os._exit(2)
    leave.set()
    for t in threads:
        t.join()
    for _ in range(1200):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
        time.sleep(0.05)
    else:
        os.kill(child, 9)
        pytest.fail("the child hangs")
    assert status == 0
    assert kept(1) is mine
    assert not mine.closed
