"""Threads that join in compiled loops: each turn is taken once, errors come through, nobody is left waiting."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading

import numpy as np
import pytest
import warm_interpreter

import ndd
from ndd._compiled import thread_team as room
from ndd._compiled.jit import kernel
from ndd._compiled.sample_loops import loop_over_samples, next_index
from ndd._compiled.thread_team import ALONE, BY_FALLBACK, ThreadTeam, joined, team_of
from ndd._execution.threads import ThreadPool
from ndd._operator.partition import CostEstimate, parallel_for

pytestmark = pytest.mark.skipif(not room._FUTEX, reason="needs Linux")


@kernel
def count_up(counter, limit, counts, rounds, seats, who):
    seat = next_index(seats)
    for _ in range(limit):
        turn = next_index(counter)
        if turn >= len(counts):
            break
        for k in range(rounds):
            counts[turn] += k % 2
        counts[turn] += 1
        who[turn] = seat
    return True


@kernel
def fail_at(counter, limit, place, counts):
    for _ in range(limit):
        turn = next_index(counter)
        if turn >= len(counts):
            break
        if turn == place:
            raise ValueError("this one cannot be done")
        counts[turn] += 1
    return True


def numbers(count=200):
    return np.zeros(count, np.int64), np.full(count, -1, np.int64)


@pytest.mark.parametrize("helpers", [0, 1, 3, 40])
def test_each_turn_is_taken_once(helpers):
    team = ThreadTeam()
    team.ensure(3)
    for rounds in (0, 1000):
        for _ in range(100):
            counts, who = numbers()
            assert (
                joined(count_up)(team.board, helpers, np.array([0]), 1000, (counts, rounds, np.array([0]), who)) is True
            )
            np.testing.assert_array_equal(counts, 1 + rounds // 2)
            assert (who >= 0).all()


def test_helpers_do_join_in():
    team, seen = ThreadTeam(), set()
    team.ensure(2)
    for _ in range(1000):
        counts, who = numbers(60)
        joined(count_up)(team.board, 2, np.array([0]), 1000, (counts, 20_000, np.array([0]), who))
        seen |= set(who.tolist())
        if len(seen) > 1:
            break
    assert len(seen) > 1


@pytest.mark.parametrize("helpers", [0, 3])
def test_errors_come_through(helpers):
    team = ThreadTeam()
    team.ensure(3)
    for place in (0, 7, 99) * 20:
        counts = np.zeros(100, np.int64)
        with pytest.raises(ValueError, match="this one cannot be done"):
            joined(fail_at)(team.board, helpers, np.array([0]), 1000, (place, counts))
        assert counts[place] == 0
        assert counts.max(initial=0) <= 1
    counts = np.zeros(100, np.int64)
    assert joined(fail_at)(team.board, helpers, np.array([0]), 1000, (-1, counts))
    np.testing.assert_array_equal(counts, 1)


def test_many_loops_at_a_time():
    """More than there are places, by threads of Python's that share a team."""
    team, wrong = ThreadTeam(), []
    team.ensure(4)

    def loop():
        for k in range(60):
            counts, who = numbers(50 + k)
            joined(count_up)(team.board, 4, np.array([0]), 1000, (counts, 500, np.array([0]), who))
            if (counts != 251).any():
                wrong.append(counts)

    threads = [threading.Thread(target=loop) for _ in range(room._PLACES + 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    words = team.board[room._HEAD :].reshape(room._PLACES, room._SIZE)
    assert not words[:, [room._WORD, room._TAKEN]].any()


@kernel
def add_up(row, out, *numbers):
    if numbers[0] < 0:
        raise ValueError("this one cannot be added")
    out[0] = row.sum() + numbers[0] + numbers[1]


@pytest.mark.parametrize("helpers", [0, 3])
def test_a_loop_over_samples_is_compiled_with_what_joins_it(helpers):
    """Of a kernel with any number of arguments, in any order of samples; its errors come through."""
    team, loop = ThreadTeam(), loop_over_samples(add_up)
    team.ensure(3)
    rows, out, firsts = np.arange(12.0).reshape(4, 3), np.zeros((4, 1)), np.arange(4)
    joined(loop)(team.board, helpers, np.array([0]), 10, (np.array([3, 0, 2]), (rows, out, firsts, (100,))))
    assert out.ravel().tolist() == [103, 0, 123, 133]
    assert loop._compiled is None
    assert loop._inner is None
    with pytest.raises(ValueError, match="this one cannot be added"):
        joined(loop)(team.board, helpers, np.array([0]), 10, (np.arange(4), (rows, out, firsts - 1, (100,))))


def team_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("ndd-team")]


def test_threads_end_with_their_pool():
    before, pool = set(team_threads()), ThreadPool(5)
    team_of(pool).ensure(4)
    assert team_of(pool) is team_of(pool)
    begun = set(team_threads()) - before
    assert len(begun) == 4
    del pool
    gc.collect()
    for thread in begun:
        thread.join(30)
    assert not begun & set(team_threads())


def test_what_a_loop_of_pythons_gives():
    taken = []
    shared = joined(lambda counter, limit, case: taken.append(case) or True)
    assert shared(ALONE, 0, np.array([0]), 1, ("a",)) is BY_FALLBACK
    assert shared(ALONE, 3, np.array([0]), 1, ("b",)) is BY_FALLBACK
    assert taken == ["a"]
    assert joined(lambda *arguments: False)(ALONE, 0, np.array([0]), 1, ()) is False


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_forked_child_has_a_crew_of_its_own(tasks):
    def flipped():
        with ndd.EvalContext(num_threads=3) if not pools else ndd.EvalContext(thread_pool=pools[0]):
            return np.asarray(ndd.flip(batch, horizontal=1).evaluate().torch())

    images = np.arange(40 * 50 * 50 * 3, dtype=np.uint8).reshape(40, 50, 50, 3)
    batch, pools = ndd.as_batch(images, layout="HWC"), [ThreadPool(3)]
    np.testing.assert_array_equal(flipped(), images[:, :, ::-1])
    child = os.fork()
    if not child:
        done = False
        try:
            signal.alarm(60)
            done = not team_threads() and bool((flipped() == images[:, :, ::-1]).all()) and len(team_threads()) == 2
        finally:
            os._exit(0 if done else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(flipped(), images[:, :, ::-1])
    assert set(tasks) == {3}


def test_where_nobody_can_wait_python_has_the_threads():
    """Another system, or a processor whose number of the call is not known."""
    program = """if True:
        import platform
        platform.machine = lambda: "mips"
        import numpy as np, ndd
        from ndd._compiled.background import background
        from ndd._execution.threads import ThreadPool
        background.forbid()
        shared, run = [], ThreadPool.run
        ThreadPool.run = lambda pool, work, count: shared.append(count) or run(pool, work, count)
        ndd._operator.partition._WAKE_SECONDS = 1e-15
        images = np.arange(40 * 50 * 50 * 3, dtype=np.uint8).reshape(40, 50, 50, 3)
        with ndd.EvalContext(num_threads=3):
            found = ndd.flip(ndd.as_batch(images, layout="HWC"), horizontal=1).evaluate()
        assert (np.asarray(found.torch()) == images[:, :, ::-1]).all()
        assert shared == [3], shared
    """
    done = warm_interpreter.run(program)
    assert done.returncode == 0, done.stderr


def test_nobody_waits_for_what_a_crew_does(monkeypatch):
    """While it is compiled threads of Python's take the turns."""
    monkeypatch.setattr(room, "_serve", lambda board, end: BY_FALLBACK)
    context = ndd.EvalContext(num_threads=3)
    team = team_of(context.thread_pool)
    assert not team.ensure(2)
    counts, who = numbers()
    assert parallel_for(
        context, count_up, (counts, 10, np.array([0]), who), len(counts), 1 << 30, None, CostEstimate(1e-6)
    )
    np.testing.assert_array_equal(counts, 6)
    monkeypatch.undo()
    assert team.ensure(2)
    assert len(team._threads) == 2
