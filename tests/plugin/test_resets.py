"""Iterators: reset, iter and StopIteration."""

from __future__ import annotations

import numpy as np
import pytest
from numbers_pipeline import construct, fed


@pytest.mark.parametrize("auto_reset", [False, None, "no"])
def test_the_end_stays_the_end_until_a_reset(our, one, auto_reset):
    iterator = construct(our, one(pad=True), reader_name="Reader", auto_reset=auto_reset)
    for _ in range(4):
        next(iterator)
    for _ in range(3):
        with pytest.raises(StopIteration):
            next(iterator)
    iterator.reset()
    assert next(iterator)[0]["label"].flatten().tolist() == [1, 2]


@pytest.mark.parametrize("auto_reset", [True, "yes"])
def test_auto_reset_raises_once(our, one, auto_reset):
    iterator = construct(our, one(pad=True), reader_name="Reader", auto_reset=auto_reset)
    for _ in range(2):
        assert len([next(iterator) for _ in range(4)]) == 4
        with pytest.raises(StopIteration):
            next(iterator)
    assert next(iterator)[0]["label"].flatten().tolist() == [1, 2]


@pytest.mark.parametrize("auto_reset", [True, False])
def test_loops_follow_each_other(our, one, auto_reset):
    iterator = construct(our, one(pad=True), reader_name="Reader", auto_reset=auto_reset)
    assert [len(list(iterator)) for _ in range(3)] == [4, 4, 4]


def said(logged):
    """The levels of what iterators have said; the line about the first compilation may come at any time."""
    return [level for level, text in logged if "compiles kernels" not in text]


def test_a_reset_too_early_is_ignored_and_logged(our, one, logged):
    iterator = construct(our, one(), reader_name="Reader")
    iter(iterator)
    assert not said(logged)
    iterator.reset()
    next(iterator)
    iterator.reset()
    iterator.reset()
    assert said(logged) == ["WARNING"] * 3
    assert next(iterator)[0]["label"].flatten().tolist() == [3, 4]


def test_a_loop_after_a_break_goes_on(our, one, logged):
    iterator = construct(our, one(), reader_name="Reader")
    for _ in iterator:
        break
    assert [s[0]["label"].flatten().tolist() for s in iterator] == [[3, 4], [5, 6], [7, 1]]
    assert len(said(logged)) == 1


def test_no_needless_warning_between_epochs(our, one, logged):
    iterator = construct(our, one(), reader_name="Reader", auto_reset=True)
    assert [len(list(iterator)) for _ in range(3)] == [4, 3, 4]
    assert not said(logged)


def test_nothing_runs_before_it_is_asked_for(our):
    def fed_by_a_list(asked):
        return fed(lambda i: asked.append(i) or np.zeros((2, 1)))

    late, early = [], []  # each its own: threads prepare the runs to come
    iterator = construct(our, fed_by_a_list(late), prepare_first_batch=False)
    assert late == []
    next(iterator)
    assert late[0] == 0
    construct(our, fed_by_a_list(early))
    assert early[0] == 0


def test_errors_of_the_pipeline(our):
    def bad(i):
        if i == 2:
            raise ZeroDivisionError("the third batch")
        return np.full((2, 1), i)

    with pytest.raises(ZeroDivisionError):
        construct(our, fed(lambda: 1 // 0))
    iterator = construct(our, fed(bad))
    assert [int(next(iterator)[0]["label"][0]) for _ in range(2)] == [0, 1]
    with pytest.raises(ZeroDivisionError, match="third"):
        next(iterator)
