"""How a kernel for one sample sees memory: the views of a plan, what may be cut, and kernels that a plan chooses."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from calling import load_every_module

import ndd
from ndd._compiled.background import background
from ndd._compiled.jit import kernel
from ndd._operator import Plan, View, partition
from ndd._operator.partition import Rows, each_sample

SHAPES = {"ragged": [(2, 3, 4), (1, 5, 4), (0, 3, 4), (3, 1, 4)], "alike": [(2, 3, 4)] * 4}


def samples(shapes, kind=np.float32):
    return [np.arange(np.prod(s)).reshape(s).astype(kind) + 10 * k for k, s in enumerate(shapes)]


def batch_of(arrays, lying):
    if lying == "strided":
        return ndd.as_batch([ndd.as_tensor(a.repeat(2, -1)[..., ::2]) for a in arrays])
    if lying == "whole":
        return ndd.as_batch(np.stack(arrays))
    return ndd.batch(arrays)


def operator_with(plan, cut="whole", cpu=None):
    @ndd.operator(register=False, cut=cut)
    def mine(x, /):
        return ndd.like(x)

    mine.plan(plan)
    if cpu is not None:
        mine.cpu(cpu)
    return mine


@kernel
def note(x, out):
    """The extents and the first number of what is seen, in each place of the result."""
    for i in range(out.size):
        out[i] = x.shape[i % x.ndim]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("lying", ["ragged", "alike", "strided", "whole"])
@pytest.mark.parametrize(
    ("view", "seen"),
    [
        (None, lambda s: s),
        ("flat", lambda s: (np.prod(s),)),
        ("rows", lambda s: (s[0] * s[1], s[2])),
        ("bytes", lambda s: (4 * np.prod(s),)),
        (View("flat", np.uint16), lambda s: (2 * np.prod(s),)),
        ("own", lambda s: (s[2], s[0] * s[1])),
    ],
)
@pytest.mark.drawn(3)
def test_extents(view, seen, lying, compiled, monkeypatch):
    monkeypatch.setattr(background, "allowed", False)
    shapes = SHAPES["ragged" if lying == "ragged" else "alike"]

    def plan(x):
        own = np.stack([x.shapes[:, 2], x.shapes[:, 0] * x.shapes[:, 1]], axis=1) if view == "own" else view
        chosen = note if compiled else lambda x, out: note.function(x, out)
        return Plan(x.shapes, kernel=chosen, view={"x": own, "out": "flat"})

    result = operator_with(plan)(batch_of(samples(shapes), lying))
    for k, shape in enumerate(shapes):
        wanted = np.resize(np.array(seen(shape)), np.prod(shape)).reshape(shape)
        np.testing.assert_array_equal(np.asarray(result.select(k)), wanted)


@kernel
def moved(x, out):
    for i in range(x.size):
        out[i] = x[x.size - 1 - i]


@pytest.mark.parametrize("kind", [np.uint8, np.float16, np.float64, np.bool_])
@pytest.mark.drawn(1)
def test_bits_serve_all_types(kind, monkeypatch):
    monkeypatch.setattr(background, "allowed", False)
    arrays = [np.random.default_rng(n).integers(0, 2, n).astype(kind) for n in (5, 0, 3)]
    result = operator_with(lambda x: Plan(x.shapes, kernel=moved, view="bits"))(ndd.batch(arrays))
    for k, array in enumerate(arrays):
        np.testing.assert_array_equal(np.asarray(result.select(k)), array[::-1])


def test_each_sample_has_the_kernel_that_the_plan_chose():
    @kernel
    def twice(x, out):
        for i in range(x.size):
            out[i] = 2 * x[i]

    def by_python(x, out):
        if x[0] == 7:
            raise ValueError("seven")
        out[...] = -x

    chosen = operator_with(lambda x: Plan(x.shapes, kernel={twice: x.sizes > 2, by_python: x.sizes <= 2}))
    result = chosen(ndd.batch([[1.0], [1.0, 2.0, 3.0], [4.0, 5.0]]))
    assert [np.asarray(item).tolist() for item in result] == [[-1], [2, 4, 6], [-4, -5]]
    assert np.asarray(chosen(ndd.batch([[1.0, 2.0, 3.0]])).select(0)).tolist() == [2, 4, 6]
    with pytest.raises(ValueError, match="mine: sample 2: seven"):
        chosen(ndd.batch([[1.0], [1.0, 2.0, 3.0], [7.0]])).evaluate()


@kernel
def scaled(x, out, factor, shift):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * factor + shift


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("lying", ["ragged", "alike", "strided", "whole"])
@pytest.mark.parametrize("each", [True, False])
def test_rows_are_cut_and_have_the_numbers_of_their_samples(lying, each, compiled, monkeypatch):
    monkeypatch.setattr(background, "allowed", False)
    for name, value in (("_ELEMENTS", 8), ("_MOST", 12)):
        monkeypatch.setattr(partition, name, value)
    shapes, chosen = SHAPES["ragged" if lying == "ragged" else "alike"], scaled if compiled else scaled.function

    def plan(x):
        factors = np.arange(x.n, dtype=np.float32) + 1
        bound = functools.partial(chosen, shift=np.float32(0.5), factor=Rows(factors) if each else np.float32(3))
        return Plan(x.shapes, kernel=bound, view="rows", cut="rows")

    arrays = samples(shapes)
    with ndd.EvalContext(num_threads=3):
        result = operator_with(plan)(batch_of(arrays, lying))
        for k, array in enumerate(arrays):
            np.testing.assert_array_equal(np.asarray(result.select(k)), array * (k + 1 if each else 3) + 0.5)


def test_alike_samples_are_one_call_of_python():
    seen = []

    def twice(x, out):
        seen.append(x.shape)
        out[...] = 2 * x

    result = operator_with(lambda x: Plan(x.shapes, view="rows"), "rows", twice)
    np.testing.assert_array_equal(
        np.asarray(result(ndd.batch(samples([(2, 3, 4)] * 4))).torch())[1], 2 * samples([(2, 3, 4)] * 2)[1]
    )
    result(ndd.batch(samples([(2, 3, 4), (2, 3, 5)]))).evaluate()
    assert seen[0] == (24, 4)
    assert sorted(seen[1:]) == [(6, 4), (6, 5)]


def test_what_is_cut_is_equally_long():
    @ndd.operator(register=False, cut="rows")
    def mine(x, y, /):
        return ndd.like(x)

    @mine.cpu
    @kernel
    def _(x, y, out):
        out[0] = 0

    with pytest.raises(ValueError, match="not equally long"):
        mine(ndd.batch([[1.0, 2.0]] * 2), ndd.batch([[1.0]] * 2)).evaluate()


def test_inputs_that_the_kernel_does_not_take():
    @ndd.operator(register=False)
    def mine(x, like, third=None, /):
        return ndd.like(x)

    mine.plan(lambda x, like, third: Plan(x.shapes, kernel=moved, inputs=(0,), view="flat"))
    assert np.asarray(mine(ndd.batch([[1.0, 2.0]] * 2), ndd.tensor(1.0)).select(1)).tolist() == [2.0, 1.0]


def test_a_batch_at_once_fills_what_the_plan_has_shapes_for():
    @ndd.operator(register=False, outputs=2)
    def mine(x, other=None, /):
        return ndd.like(x), ndd.like(x)

    mine.plan(lambda x, other: Plan([x.shapes, x.shapes + 1], shared={"number": 2}))

    @mine.batch
    def _(call, plan, x, other, first, second):
        assert other is None
        each_sample(call, moved, x, first)
        for array in second.arrays():
            array[...] = plan.shared["number"]

    first, second = mine(ndd.batch([[1.0, 2.0], [3.0]]))
    assert [np.asarray(item).tolist() for item in first] == [[2, 1], [3]]
    assert [np.asarray(item).tolist() for item in second] == [[2, 2, 2], [2, 2]]


def test_no_kernel_for_a_sample_sees_the_batch():
    """Neither the call nor stores: the framework divides the batch."""
    operators = load_every_module()
    assert not {p for p, op in operators.items() if {"call", "plan", "stores", "results"} & set(op.cpu_names)}
    assert not {p for p, op in operators.items() if op.cpu is not None and op.batch_takes_plan}
