"""Operators of a user's own that are wrong: a sentence about what is wrong, and nobody else is harmed."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest

import ndd


def images():
    return ndd.batch([np.full((4, 5, 3), i, np.uint8) for i in range(4)], layout="HWC")


def with_roles(**roles):
    """A new operator with these roles; its result is declared to be like its input."""

    @ndd.operator(register=False)
    def mine(image, /):
        return ndd.like(image)

    for role, function in roles.items():
        getattr(mine, role)(function)
    return mine


def check_harmless(result, kind, text):
    """The call fails with this error; what was called before and what is called after has its values."""
    x = images()
    before = ndd.flip(x)
    with pytest.raises(kind, match=text) as caught:
        result(x).evaluate()
    assert "mine" in str(caught.value)
    after = ndd.flip(x)
    for value in (before, after):
        np.testing.assert_array_equal(np.asarray(value.select(2)), np.full((4, 5, 3), 2))


def copy(image, out):
    out[...] = image


@pytest.mark.parametrize(
    ("plan", "kind", "text"),
    [
        (lambda image: None, TypeError, r"return an `ndd.Plan`, got None"),
        (lambda image: ndd.Plan([(4, 5, 3)] * 2), ValueError, "expected 4 shapes, one for each sample, got 2"),
        (
            lambda image: ndd.Plan([(4, 5, 3), (4, 5)] * 2),
            ValueError,
            r"sample 1: .*3 extents that are not negative, got \(4, 5\)",
        ),
        (lambda image: ndd.Plan([(4, -5, 3)] * 4), ValueError, r"sample 0: .*got \(4, -5, 3\)"),
        (lambda image: ndd.Plan("abcd"), TypeError, "expected a shape for each sample, got 'abcd'"),
        (lambda image: ndd.Plan([(2, 2, 3)] * 4), ValueError, "sample 0: could not broadcast"),
        (lambda image: 1 // 0, ZeroDivisionError, "by zero"),
    ],
)
def test_plans(plan, kind, text):
    check_harmless(with_roles(cpu=copy, plan=plan), kind, text)


def test_a_kernel_asks_for_what_nobody_gives():
    def kernel(image, out, radius):
        raise AssertionError

    plan = lambda image: ndd.Plan(image.shapes, {"sigma": np.ones(4)})  # noqa: E731
    text = r"asks for 'radius', .* not in the plan, which has sigma\."
    check_harmless(with_roles(cpu=kernel, plan=plan), TypeError, text)


@pytest.mark.parametrize("kernel", [lambda image: None, lambda image, factor: None, lambda image, factor, out: None])
def test_a_kernel_takes_the_output(kernel):
    """Without it nobody would write what comes out."""

    @ndd.operator(register=False)
    def mine(image, /, *, factor: ndd.PerSample[float] = 1.0):
        return ndd.like(image)

    with pytest.raises(
        TypeError, match=r"mine\.cpu: expected a function of \(image, out\), then of anything else .* got one of"
    ):
        mine.cpu(kernel)
    mine.cpu(lambda *samples: np.copyto(samples[1], samples[0]))
    np.testing.assert_array_equal(np.asarray(mine(images()).select(2)), np.full((4, 5, 3), 2))


class _Own(Exception):
    def __init__(self, code, reason):
        super().__init__(code, reason)


def _raise(error):
    raise error


def _deep(image, out):
    _deep(image, out)


@pytest.mark.parametrize(
    ("kernel", "kind", "text"),
    [
        (lambda image, out: 255 - image, TypeError, r"write the result into its output .* returned ndarray"),
        (lambda image, out: _raise(KeyError("weights")), KeyError, "sample 0: weights"),
        (lambda image, out: _raise(_Own(7, "no")), RuntimeError, r"sample 0: _Own: \(7, 'no'\)"),
        (_deep, RecursionError, "sample 0: maximum recursion"),
        (lambda image, out: _raise(MemoryError("all of it")), MemoryError, "sample 0: all of it"),
        (lambda image, out: next(iter(())), RuntimeError, "sample 0: StopIteration"),
    ],
)
def test_kernels(kernel, kind, text):
    check_harmless(with_roles(cpu=kernel), kind, text)


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        (None, TypeError, "expected a list of arrays, or one array for all samples, got None"),
        ([object()] * 4, TypeError, "expected a list of arrays"),
        ([np.zeros((4, 5, 3), np.uint8)] * 2, ValueError, "expected 4 samples, got 2"),
        (np.zeros((3, 4, 5, 3), np.uint8), ValueError, "expected 4 samples, got 3"),
        ([np.zeros((4, 5, 3), np.float32)] * 4, ValueError, r"expected u8 with 3 dimension\(s\), got f32"),
        ([np.zeros((4, 5, 3), np.uint8), np.zeros((4, 5), np.uint8)] * 2, ValueError, r"sample 1: .*shape \(4, 5\)"),
        (np.zeros((4, 4, 5), np.uint8), ValueError, r"got u8 of shape \(4, 5\)"),
    ],
)
def test_whole_batches(given, kind, text):
    check_harmless(with_roles(batch=lambda call, image: given), kind, text)


def test_several_outputs():
    @ndd.operator(register=False)
    def mine(image, /):
        return ndd.like(image), ndd.like(image)

    mine.batch(lambda call, image: [np.zeros((4, 5, 3), np.uint8)] * 3)
    with pytest.raises(TypeError, match="mine: expected a value for each of the 2 outputs"):
        mine(images())[0].evaluate()
    mine.batch(lambda call, image: (np.zeros((4, 4, 5, 3), np.uint8), np.zeros((4, 4, 5, 3), np.int8)))
    with pytest.raises(ValueError, match=r"mine: sample 0: `.batch`, output 1: expected u8"):
        mine(images())[0].evaluate()


@pytest.mark.parametrize("given", [None, "HWC", (), [3]])
def test_declarations(given):
    @ndd.operator(register=False)
    def mine(image, /):
        return given

    mine.cpu(copy)
    with pytest.raises(TypeError, match=r"mine: the declaring function says what comes out, such as .*like.image"):
        mine(images())
    with pytest.raises(TypeError, match="an operator needs a name"):
        ndd.operator(lambda image, /: ndd.like(image))


def test_code_of_no_module():
    """As a notebook's magic or a template may run it: its functions do not know where they were written."""
    scope = {"ndd": ndd, "np": np}
    exec("@ndd.operator\ndef doubled(x, /):\n    return ndd.like(x)\n", scope)
    scope["doubled"].cpu(lambda x, out: np.copyto(out, x * 2))
    assert scope["doubled"](ndd.tensor([1, 2])).torch().tolist() == [2, 4]


def test_no_kernel():
    check_harmless(with_roles(), RuntimeError, "no CPU variant: write one with `@mine.cpu`")


# ---- waiting


@pytest.mark.parametrize("threads", [1, 4])
def test_waiting_for_its_own_result_is_an_error(threads):
    asked, returned = {}, threading.Event()

    def kernel(image, out):
        returned.wait(30)
        time.sleep(0.01)  # so that the pool's threads take part
        asked["result"].evaluate()

    with ndd.EvalContext(num_threads=threads):
        x = images()
        asked["result"] = with_roles(cpu=kernel)(x)
        returned.set()
        with pytest.raises(
            RuntimeError, match="mine: sample 0: the operator asks for its own result while it computes it"
        ):
            asked["result"].evaluate()
        assert ndd.flip(x).shape == [(4, 5, 3)] * 4


@pytest.mark.parametrize("threads", [1, 4])
def test_waiting_for_what_is_queued_behind_runs_that_first(threads):
    asked, queued = {}, threading.Event()

    def kernel(image, out):
        queued.wait(30)
        out[...] = np.asarray(asked["later"].select(0))

    with ndd.EvalContext(num_threads=threads):
        x = images()
        first = with_roles(cpu=kernel)(x)
        asked["later"] = ndd.flip(x + 1)
        queued.set()
        np.testing.assert_array_equal(np.asarray(first.select(3)), np.full((4, 5, 3), 1))
        with pytest.raises(RuntimeError, match="evaluate_all: an operator called it"):
            with_roles(cpu=lambda image, out: ndd.EvalContext.current().evaluate_all())(x).evaluate()


def test_operators_inside_operators():
    def kernel(image, out):
        out[...] = np.asarray(ndd.flip(ndd.tensor(image, layout="HWC")))

    with ndd.EvalContext(num_threads=3):
        x = images()
        np.testing.assert_array_equal(np.asarray(with_roles(cpu=kernel)(x).select(3)), np.asarray(x.select(3)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forking_in_an_operator():
    """The child can compute; nobody waits for the operator that forks."""

    def kernel(image, out):
        child = os.fork()
        if not child:
            good = ndd.flip(ndd.tensor(image, layout="HWC")).shape == (4, 5, 3)
            os._exit(0 if good else 1)
        out[...] = os.waitpid(child, 0)[1]

    with ndd.EvalContext(num_threads=2):
        result = with_roles(cpu=kernel)(images())
        assert not np.asarray(result.torch()).any()


@pytest.mark.parametrize("mode", ["eager", "deferred", "sync_cpu"])
def test_one_that_calls_itself_without_end(mode):
    """One sentence, not one for each of some hundred calls."""

    @ndd.operator(register=False)
    def mine(image, /):
        return ndd.like(image)

    @mine.cpu
    def _(image, out):
        out[...] = mine(ndd.tensor(image))

    with pytest.raises(RecursionError, match="maximum recursion depth") as caught, getattr(ndd.EvalMode, mode):
        mine(ndd.tensor([1.0])).evaluate()
    assert str(caught.value).count("mine") <= 2
    assert caught.value.__cause__ is None or caught.value.__cause__.__cause__ is None
    assert np.asarray(ndd.flip(images()).select(2)).max() == 2
