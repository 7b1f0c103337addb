"""When operators run: the four modes, errors that show late, what never runs, nesting."""

from __future__ import annotations

import threading
import time
import traceback

import numpy as np
import pytest

import ndd


@ndd.operator(register=False)
def probe(x, /, *, wait: float = 0.0, held: bool = False, fail: str = "", log: str = ""):
    """Copies, perhaps slowly, perhaps when it is let go, perhaps failing."""
    return ndd.like(x)


RAN: list[str] = []
LET_GO = threading.Event()


@probe.plan
def _(x, *, wait, held, fail, log):
    if fail == "plan":
        raise ValueError("as asked")
    return ndd.Plan(x.shapes, shared={"wait": wait, "held": held, "fail": fail, "log": log})


@probe.cpu
def _(x, out, wait, held, fail, log):
    if log:
        RAN.append(log)
    time.sleep(wait)
    if held:
        LET_GO.wait(30)
    out[...] = x
    if fail:
        raise {"index": IndexError, "key": KeyError, "own": Own, "type": TypeError, "odd": Odd}[fail](3)


class Own(Exception):
    """An exception of a user's own."""


class Odd(Exception):
    """One whose constructor takes no message."""

    def __init__(self, number):
        super().__init__(f"number {number + 0}")


@pytest.fixture(autouse=True)
def _no_log():
    RAN.clear()


X = ndd.tensor([1.0, 2.0])


def test_modes_are_in_order():
    assert [m.name for m in ndd.EvalMode] == ["deferred", "eager", "sync_cpu", "sync_full"]
    assert [m.value for m in ndd.EvalMode] == [1, 2, 3, 4]
    assert ndd.EvalMode.default is ndd.EvalMode.eager is ndd.EvalMode.current()


def test_modes_nest_and_belong_to_a_thread():
    seen = []
    with ndd.EvalMode.deferred:
        with ndd.EvalMode.sync_full, ndd.EvalMode.eager:
            assert ndd.EvalMode.current() is ndd.EvalMode.eager
        assert ndd.EvalMode.current() is ndd.EvalMode.deferred
        thread = threading.Thread(target=lambda: seen.append(ndd.EvalMode.current()))
        thread.start()
        thread.join()
        with pytest.raises(RuntimeError, match="x"), ndd.EvalMode.sync_cpu:
            raise RuntimeError("x")
        assert ndd.EvalMode.current() is ndd.EvalMode.deferred
    assert ndd.EvalMode.current() is ndd.EvalMode.eager
    assert seen == [ndd.EvalMode.eager]


def test_deferred_runs_nothing_that_nobody_asks_for():
    with ndd.EvalMode.deferred:
        a = probe(X, log="a")
        b = probe(a, log="b")
        probe(b, log="never")
        assert RAN == []
        assert b.dtype is ndd.float32
        assert RAN == []
        np.asarray(b)
        assert RAN == ["a", "b"]
        np.asarray(b)
        assert RAN == ["a", "b"]


def test_eager_returns_at_once_and_runs_by_itself():
    LET_GO.clear()
    try:
        out = probe(X, held=True, log="held")
        assert not out._pending.finished
    finally:
        LET_GO.set()
    deadline = time.perf_counter() + 30
    while not out._pending.finished and time.perf_counter() < deadline:
        time.sleep(0.01)
    assert RAN == ["held"]


def test_eager_runs_in_the_order_of_the_calls():
    outs = [probe(X, wait=0.01 * (5 - i), log=str(i)) for i in range(5)]
    outs[-1].evaluate()
    assert list("01234") == RAN


@pytest.mark.parametrize("mode", [ndd.EvalMode.sync_cpu, ndd.EvalMode.sync_full])
def test_synchronous_modes_run_at_the_call(mode):
    with mode:
        out = probe(X, log="now")
        assert RAN == ["now"]
        assert out._pending is None or out._pending.finished


KINDS = {"plan": ValueError, "index": IndexError, "key": KeyError, "own": Own, "type": TypeError}


@pytest.mark.parametrize("fail", KINDS)
@pytest.mark.parametrize("mode", list(ndd.EvalMode))
def test_an_error_keeps_its_type_and_names_the_line(fail, mode):
    def called_here():
        return probe(X, fail=fail)  # the line

    with mode, pytest.raises(KINDS[fail]) as caught:
        called_here().evaluate()
    error = caught.value
    assert type(error) is KINDS[fail]
    assert "probe" in str(error)
    if mode in (ndd.EvalMode.deferred, ndd.EvalMode.eager):
        cause = error.__cause__
        assert type(cause) is KINDS[fail]
        assert "An error happened during" in str(error)
        assert "An error happened" not in str(cause)
        last = traceback.extract_tb(cause.__traceback__)[-1]
        assert last.name == "called_here"
        assert "# the line" in (last.line or "")
        assert f"{__file__}:{last.lineno}" in str(error)
    else:
        frames = traceback.extract_tb(error.__traceback__)
        assert any(f.name == "called_here" for f in frames)


@pytest.mark.oracle
@pytest.mark.parametrize("mode", list(ndd.EvalMode))
@pytest.mark.parametrize("name", ["ndd", "dali"])
def test_the_cause_of_an_error_is_the_same_wherever_it_is_found(dali, name, mode):
    """DALI finds a wrong element type when it runs the operator; here it is found at the call."""
    m = ndd if name == "ndd" else dali

    def resized():
        images = m.zeros(shape=(4, 4, 3), dtype=m.bool)
        return m.resize(images, size=(2, 2))  # the line

    with m.EvalMode.sync_cpu, pytest.raises(RuntimeError) as now:
        resized()
    assert now.value.__cause__ is None
    with m.EvalMode[mode.name], pytest.raises(RuntimeError) as caught:
        resized().evaluate()
    cause = caught.value.__cause__
    if mode.value >= m.EvalMode.sync_cpu.value:
        assert cause is None
        return
    assert (type(cause), str(cause)) == (RuntimeError, str(now.value))
    last = traceback.extract_tb(cause.__traceback__)[-1]
    assert (last.name, (last.line or "")[-8:]) == ("resized", "the line")
    with m.EvalMode[mode.name], pytest.raises(RuntimeError) as at_once:
        m.resize(np.zeros((4, 4, 3), bool), size=(2, 2))  # memory of the user's: nothing is put off
    assert at_once.value.__cause__ is None


def test_an_error_whose_type_cannot_be_made_anew_is_a_runtime_error():
    with pytest.raises(RuntimeError, match="number 3") as caught:
        probe(X, fail="odd").evaluate()
    assert isinstance(caught.value.__cause__, RuntimeError | Odd)


def test_the_synchronous_and_the_late_text_agree():
    with ndd.EvalMode.sync_full, pytest.raises(ValueError) as now:
        probe(X, fail="plan")
    with pytest.raises(ValueError) as late:
        probe(X, fail="plan").evaluate()
    assert str(late.value.__cause__) == str(now.value)


def test_an_error_shows_again_and_again():
    out = probe(X, fail="index")
    texts = set()
    for _ in range(3):
        with pytest.raises(IndexError) as caught:
            out.evaluate()
        texts.add(str(caught.value))
    assert len(texts) == 1


@pytest.mark.parametrize("mode", [ndd.EvalMode.deferred, ndd.EvalMode.eager])
def test_a_failed_input_is_reported_as_itself(mode):
    with mode:
        bad = probe(X, fail="index")
        later = [probe(probe(bad, log="never"), log="never"), bad + 1, bad[0], ndd.cast(bad, dtype=ndd.uint8)]
        for value in later:
            with pytest.raises(IndexError) as caught:
                value.evaluate()
            assert "of probe()" in str(caught.value)
            assert str(caught.value).count("An error happened") == 1
    assert RAN == []


def test_the_next_call_works():
    for _ in range(50):
        bad = probe(X, fail="type")
        assert np.asarray(probe(X)).tolist() == [1, 2]
        with pytest.raises(TypeError):
            bad.evaluate()


def test_an_error_nobody_asks_for_is_silent(capfd):
    probe(X, fail="index")
    probe(X).evaluate()
    ndd.EvalContext.current().evaluate_all()
    assert capfd.readouterr() == ("", "")


def test_a_bad_sample_is_named_with_its_source():
    @ndd.operator(register=False)
    def picky(x, /):
        """Refuses negative numbers."""
        return ndd.like(x)

    @picky.cpu
    def _(x, out):
        if x[0] < 0:
            raise ValueError(f"expected no negative numbers, got {x[0]}")
        out[...] = x

    b = ndd.batch([[1], [2], [-3], [-4]])
    b._value().source_info = ["a.jpg", "b.jpg", "c.jpg", "d.jpg"]
    with pytest.raises(ValueError, match=r"picky: sample 2 \(c\.jpg\): expected no negative numbers, got -3"):
        picky(b).evaluate()


def test_operators_may_use_operators():
    @ndd.operator(register=False)
    def outer(x, /):
        """Twice what `probe` gives."""
        return ndd.like(x)

    @outer.cpu
    def _(x, out):
        out[...] = np.asarray(probe(ndd.as_tensor(x)) * 2)

    for mode in ndd.EvalMode:
        with mode:
            assert np.asarray(outer(X)).tolist() == [2, 4]
            many = outer(ndd.batch([np.full(50_000, i, np.float32) for i in range(8)]))
            assert [float(np.asarray(t)[0]) for t in many] == [2.0 * i for i in range(8)]


def test_a_mode_inside_an_operator_is_its_own():
    """What the user's thread is in does not reach into operators that run on another thread."""
    seen = []

    @ndd.operator(register=False)
    def looks(x, /):
        """Notes the mode it runs in."""
        return ndd.like(x)

    @looks.cpu
    def _(x, out):
        seen.append(ndd.EvalMode.current())
        out[...] = x

    looks(X).evaluate()
    assert seen[0] in (ndd.EvalMode.eager, ndd.EvalMode.sync_cpu)


def test_results_of_several_outputs_fail_together():
    @ndd.operator(register=False)
    def halves(x, /):
        """Two outputs."""
        return ndd.like(x), ndd.like(x, dtype=ndd.int32)

    @halves.plan
    def _(x):
        return ndd.Plan([x.shapes, x.shapes])

    @halves.cpu
    def _(x, a, b):
        if x.size > 1:
            raise ValueError("too long")
        a[...], b[...] = x / 2, x

    first, second = halves(ndd.batch([[4.0], [6.0]]))
    assert (first.torch().tolist(), second.torch().tolist()) == ([[2], [3]], [[4], [6]])
    for out in halves(X):
        with pytest.raises(ValueError, match="halves: sample 0: too long"):
            out.evaluate()


def test_long_chains_need_no_recursion():
    for mode in (ndd.EvalMode.deferred, ndd.EvalMode.eager):
        with mode:
            x = ndd.tensor([0])
            for _ in range(2000):
                x = ndd.cast(x, dtype=ndd.int32)[...]
                x = probe(x)
            assert x.item() == 0
            bad = probe(X, fail="index")
            for _ in range(500):
                bad = probe(bad)
            with pytest.raises(IndexError):
                bad.evaluate()
            del x, bad


def test_one_handle_is_asked_for_by_many_threads_at_once():
    for _ in range(30):
        with ndd.EvalMode.deferred:
            value = probe(probe(X, wait=0.001))
        gate = threading.Barrier(6)
        result = []

        def ask(value=value, gate=gate, result=result):
            gate.wait()
            result.append(np.asarray(value).tolist())

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert result == [[1.0, 2.0]] * 6
