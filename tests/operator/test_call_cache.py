"""What is kept between calls serves equal calls only: same constants, same shapes, nothing that came from data."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

import ndd
from ndd._operator import on_gpu

asked: list[str] = []


@ndd.operator(register=False)
def peeked(array, /):
    """Every element becomes the first one of its sample, which the plan reads."""
    return ndd.like(array)


@peeked.plan
def _(array):
    asked.append("peeked")
    return ndd.Plan(array.shapes, {"first": [a.reshape(-1)[0] for a in array.arrays]})


@peeked.cpu
def _(array, out, first):
    out[...] = first


@ndd.operator(register=False)
def copied(array, /):
    """The samples by way of their addresses."""
    return ndd.like(array)


@copied.plan
def _(array):
    asked.append("copied")
    return ndd.Plan(array.shapes, {"address": array.pointers()})


@copied.cpu
def _(array, out, address):
    import ctypes

    ctypes.memmove(out.ctypes.data, int(address), out.nbytes)


@ndd.operator(register=False)
def reached(array, /):
    """As `peeked`, through what is private."""
    return ndd.like(array)


@reached.plan
def _(array):
    return ndd.Plan(array.shapes, {"first": [a.reshape(-1)[0] for a in array._store.arrays()]})


@reached.cpu
def _(array, out, first):
    out[...] = first


@ndd.operator(register=False)
def pure(array, /, *, shift: float = 0.0):
    """array + shift; the sign of a shift of 0 is kept."""
    return ndd.like(array)


@pure.plan
def _(array, *, shift):
    asked.append("pure")
    return ndd.Plan(array.shapes, shared={"shift": shift})


@pure.cpu
def _(array, out, shift):
    out[...] = np.copysign(array + shift, shift) if shift == 0 else array + shift


@pytest.fixture(autouse=True)
def _nobody_asked():
    asked.clear()


@pytest.mark.parametrize("operator", [peeked, copied, reached])
def test_a_plan_that_read_data_is_made_anew(operator):
    for value in (1, 2, 3):
        batch = ndd.batch([np.full(4, value, np.float32), np.full(4, 10 * value, np.float32)])
        result = [t.torch().tolist() for t in operator(batch)]
        assert result == [[value] * 4, [10 * value] * 4]


def test_a_plan_of_shapes_alone_is_kept():
    for value in (1, 2, 3):
        assert pure(ndd.batch([np.full(4, value, np.float32)] * 2)).torch()[0, 0] == value
    assert asked == ["pure"]


@ndd.operator(register=False)
def moved(array, /, *, by: list[float]):
    """The sum of all numbers of a matrix is added."""
    return ndd.like(array)


@moved.plan
def _(array, *, by):
    asked.append("moved")
    return ndd.Plan(array.shapes, shared={"shift": np.sum(by)})


@moved.cpu
def _(array, out, shift):
    out[...] = array + shift


def test_the_plan_of_a_matrix_is_kept_until_a_number_of_it_changes():
    asked.clear()
    matrix, result = [[1.0, 2.0], [0.0, 4.0]], []
    for value in (0.0, 0.0, 3.0, 3.0):
        matrix[1][0] = value
        result.append(float(moved(ndd.tensor([1.0]), by=matrix).torch()))
    assert result == [8, 8, 11, 11]
    assert len(asked) == 2


def test_the_plan_of_an_array_that_comes_again_is_kept_until_a_number_of_it_changes():
    x, matrix, result = ndd.tensor([1.0]), np.array([[1.0, 2.0], [0.0, 4.0]]), []
    for value in (0.0, 0.0, 0.0, 3.0, 3.0, 3.0, 0.0, -0.0):
        matrix[1, 0] = value
        result.append(float(moved(x, by=matrix).torch()))
    assert result == [8, 8, 8, 11, 11, 11, 8, 8]
    # Arrays that are drawn anew each time would fill the memory: kept is what comes again.
    assert len(asked) == 2 + 2 + 1
    as_it_was = matrix.copy()
    matrix += 1.0  # it is the user's: what is kept has numbers of its own
    assert float(moved(x, by=as_it_was).torch()) == 8
    assert float(moved(x, by=as_it_was.tolist()).torch()) == 8


@ndd.operator(register=False)
def fractions(array, /, *, by: ndd.PerSample[list[int]]):
    """array + the sum of whole numbers, into which arrays are rounded and lists are cut off."""
    return ndd.like(array)


@fractions.cpu
def _(array, out, by):
    out[...] = array + np.sum(by)


def test_an_array_and_a_list_of_its_numbers_are_two_constants():
    x, numbers = ndd.tensor([0.0]), np.array([1.75, 2.75])
    result = [float(fractions(x, by=by).torch()) for by in [numbers, numbers.tolist()] * 4]
    assert result == [5.0, 3.0] * 4
    kinds: list[type] = [np.float64, np.float32, np.int64]
    result = [float(fractions(x, by=np.zeros(1, kind)).torch()) for kind in kinds * 3]
    assert result == [0.0] * 9
    assert (
        float(fractions(x, by=np.zeros(8, bool)).torch()) == float(fractions(x, by=np.zeros(2, np.int32)).torch()) == 0
    )


def test_zero_and_minus_zero_are_two_constants():
    zero = ndd.tensor(np.zeros(1, np.float32))
    signs = [np.signbit(np.asarray(pure(zero, shift=s).cpu()))[0] for s in (0.0, -0.0, 0.0, -0.0, 0, False)]
    assert signs == [False, True, False, True, False, False]
    again = [str(ndd.full(np.float32(v)).item()) for v in (0.0, -0.0, 0.0)]
    assert again == ["0.0", "-0.0", "0.0"]


@ndd.operator(register=False)
def tabled(array, /):
    """array + a number made once for all calls."""
    return ndd.like(array)


@tabled.plan
def _(call, array):
    return ndd.Plan(
        array.shapes, shared={"number": call.once(lambda: 5) + call.once_for_shapes("", array.shapes, lambda: 2)}
    )


@tabled.cpu
def _(array, out, number):
    out[...] = array + number


def test_what_another_thread_throws_away_is_given_all_the_same():
    """All of it is, when there is too much; the thread that had just made a part of it met a KeyError."""

    class Forgetful(dict):
        def __setitem__(self, key, value):
            pass

    x = ndd.tensor([1.0, 2.0])
    tabled(x).evaluate()
    for cached_call in tabled.operator._cached_calls.values():
        cached_call.made_once = Forgetful()
        cached_call.plans.clear()
    assert np.asarray(tabled(x)).tolist() == [8.0, 9.0]


KERNEL = "PER_ITEM(probe) { s.out0[i] = s.in0[i] + shared.shift + (float)s.extra; }"


def _probe(touch):
    @ndd.operator(register=False)
    def probe(array, /, *, shift: float = 1.0):
        """array + shift + what the launch adds."""
        return ndd.like(array)

    @probe.plan
    def _(array, *, shift):
        return ndd.Plan(array.shapes, shared={"shift": shift})

    @probe.cuda(KERNEL)
    def _(launch, array, out):
        asked.append("probe")
        extra = [float(a.reshape(-1)[0]) if touch else 5.0 for a in (array.arrays if touch else range(array.n))]
        launch("probe", per_sample={"extra": np.array(extra)})

    return probe


@pytest.mark.parametrize("touch", [False, True])
@pytest.mark.drawn(1)
def test_launches_are_made_again_only_if_nothing_of_them_came_from_data(touch, emulated_gpu):
    probe = _probe(touch)
    for value in (1.0, 2.0, 3.0):
        batch = ndd.batch([np.full(4, value, np.float32)] * 2).gpu()
        result = probe(batch).cpu().torch()
        assert result.tolist() == [[2 * value + 1.0 if touch else value + 6.0] * 4] * 2
    assert asked == ["probe"] * (3 if touch else 1)
    assert emulated_gpu.launches.count("probe") == 3


def test_scratch_and_tables_are_there_again(emulated_gpu):
    @ndd.operator(register=False)
    def twice(array, /):
        """(array * 2) + a table's number, in two launches."""
        return ndd.like(array)

    @twice.cuda("""
PER_ITEM(first) { ((float*)s.room)[i] = s.in0[i] * 2; }
PER_ITEM(second) { s.out0[i] = ((float*)s.room)[i] + ((float*)s.table)[i]; }
""")
    def _(launch, array, out):
        asked.append("twice")
        memory = {
            "room": launch.scratch(array.sizes, np.float32),
            "table": launch.table(np.arange(3, dtype=np.float32)),
        }
        launch("first", per_sample=memory)
        launch("second", per_sample=memory)

    for value in (1.0, 2.0, 3.0):
        result = twice(ndd.batch([np.full(3, value, np.float32), np.full(3, -value, np.float32)]).gpu())
        expected = [[2 * value + k for k in range(3)], [-2 * value + k for k in range(3)]]
        assert result.cpu().torch().tolist() == expected
    assert asked == ["twice"]


def test_a_plan_that_is_being_completed_serves_another_thread(emulated_gpu, monkeypatch):
    """Outputs' memory is worked out once for a kept plan: nobody else may see it half done."""
    images = ndd.batch([np.full((4, 5, 3), k, np.uint8) for k in range(3)], layout="HWC").gpu()
    inside, go_on, real = threading.Event(), threading.Event(), on_gpu.Room

    def slow(*arguments):
        if threading.current_thread() is not first:
            return real(*arguments)
        inside.set()
        assert go_on.wait(60)
        return real(*arguments)

    def flipped():
        with ndd.EvalContext(), ndd.EvalMode.sync_full:
            result.append(ndd.flip(images, vertical=1).torch())

    result: list[torch.Tensor] = []
    first = threading.Thread(target=flipped)
    monkeypatch.setattr(on_gpu, "Room", slow)
    first.start()
    assert inside.wait(60)
    try:
        flipped()
    finally:
        go_on.set()
        first.join()
    assert len(result) == 2
    assert torch.equal(*result)
