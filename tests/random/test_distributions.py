"""The random operators against DALI: the same state, the same numbers; and what the numbers are like."""

from __future__ import annotations

import numpy as np
import pytest
from cases import I32, each_of

import ndd
from ndd import random
from ndd.random import RNG

REGISTRY_CASES = {
    "random.uniform": each_of(
        {}, {"range": [2.0, 5.0], "shape": [4, 3]}, {"range": [0.0, 9.0], "dtype": I32}, inputs=()
    ),
    "random.normal": each_of({}, {"mean": 2.0, "stddev": 3.0, "shape": [4, 3]}, inputs=()),
    "random.coin_flip": each_of({}, {"probability": 0.2, "shape": [20]}, inputs=()),
    "random.beta": each_of({}, {"alpha": 0.5, "beta": 2.0, "shape": [9]}, inputs=()),
    "random.choice": each_of({}, {"shape": [7]}, inputs=("vector",)),
}

NUMBERS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"]


def arrays(value):
    """The samples of a result of either library."""
    parts = getattr(value, "tensors", None)
    return [np.array(value)] if parts is None else [np.array(p) for p in parts]


def both(dali, name, *args, seed=5, **kwargs):
    """The samples that ndd and DALI give for one call; `dtype` by its long name, `...` arguments as functions of the
    library."""
    actual = []
    for library in (ndd, dali):
        options = {k: v(library) if callable(v) else v for k, v in kwargs.items()}
        if options.get("dtype") is not None:
            options["dtype"] = getattr(library, options["dtype"])
        inputs = [a(library) if callable(a) else a for a in args]
        rng = library.random.RNG(seed)
        actual.append(arrays(getattr(library.random, name)(*inputs, rng=rng, **options)))
        actual.append(str(rng.state))
    ours, state, theirs, their_state = actual
    assert state == their_state
    assert [a.shape for a in ours] == [a.shape for a in theirs]
    assert [a.dtype for a in ours] == [a.dtype for a in theirs]
    return ours, theirs


def same(pair):
    for a, b in zip(*pair, strict=True):
        np.testing.assert_array_equal(a, b)


def close(pair, **tolerance):
    for a, b in zip(*pair, strict=True):
        np.testing.assert_allclose(a, b, **tolerance)


SHAPES = [
    {},
    {"shape": [7]},
    {"batch_size": 3},
    {"batch_size": 2, "shape": [3, 1, 5]},
    {"shape": [2053]},
    {"shape": [0]},
]


@pytest.mark.parametrize("dtype", [None, *NUMBERS])
@pytest.mark.parametrize("where", SHAPES)
def test_uniform_equals_dali(dali, dtype, where):
    for ends in [(0.3, 7.7), (1.5, 100.25)]:
        same(both(dali, "uniform", range=ends, dtype=dtype, **where))


@pytest.mark.parametrize("ends", [(-1.0, 1.0), (5, 6), (-1000.0, 0.001), (3e38, 3.1e38), (-3e38, 3e38), (0, 1e-30)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform_ranges_equal_dali(dali, ends, dtype):
    same(both(dali, "uniform", range=ends, dtype=dtype, shape=[500]))
    values = both(dali, "uniform", range=ends, dtype=dtype, shape=[500])[0][0]
    assert (values >= np.float32(ends[0])).all()
    assert (values < np.float32(ends[1])).all()


@pytest.mark.parametrize("dtype", [None, *NUMBERS])
def test_uniform_values_equal_dali(dali, dtype):
    same(both(dali, "uniform", values=[1.5, 2.5, 3.25, -4.5, 300.0], dtype=dtype, shape=[999]))
    same(both(dali, "uniform", values=list(range(70000)), dtype=dtype, shape=[5000], batch_size=2))
    same(both(dali, "uniform", values=[1, 2], range=[5, 6], dtype=dtype, batch_size=9))
    same(both(dali, "uniform", values=3.0, dtype=dtype))


def test_uniform_arguments_of_samples_equal_dali(dali):
    same(both(dali, "uniform", range=lambda d: d.batch([[0.0, 1.0], [5.0, 6.0]])))
    same(both(dali, "uniform", range=lambda d: d.batch([[0, 1], [5, 9]]), shape=[4]))
    same(both(dali, "uniform", range=lambda d: d.tensor([3.0, 4.0]), batch_size=3))
    same(both(dali, "uniform", values=lambda d: d.batch([[0.0, 1.0], [5.0, 6.0, 7.0]]), shape=[11]))
    same(both(dali, "uniform", shape=lambda d: d.batch([[2, 3], [1, 2]])))
    same(both(dali, "uniform", shape=lambda d: d.batch([2, 3])))
    same(both(dali, "uniform", shape=lambda d: d.tensor([2, 3])))
    same(both(dali, "uniform", shape=np.array([2, 3])))
    same(both(dali, "uniform", shape=4))
    same(both(dali, "uniform", shape=[]))


@pytest.mark.parametrize("name", ["uniform", "normal", "coin_flip"])
def test_shape_like_equals_dali(dali, name):
    images = [np.zeros((2, 3), np.uint8), np.zeros((1, 3), np.uint8)]
    pair = both(dali, name, lambda d: d.batch(images, layout="HW"))
    close(pair, rtol=1e-6)
    close(both(dali, name, np.zeros((2, 3))), rtol=1e-6)
    close(both(dali, name, [1, 2, 3]), rtol=1e-6)
    result = getattr(random, name)(ndd.tensor(images[0], layout="HW"))
    assert result.layout is None
    assert result.shape == (2, 3)


@pytest.mark.parametrize("dtype", [None, *NUMBERS])
@pytest.mark.parametrize("where", SHAPES)
def test_normal_equals_dali(dali, dtype, where):
    ours, theirs = both(dali, "normal", mean=30, stddev=20, dtype=dtype, **where)
    for a, b in zip(ours, theirs, strict=True):
        if a.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-5 if a.dtype == np.float32 else 1e-12)
        else:
            assert (a != b).mean() <= 0.001 if a.size else True


def test_normal_is_one_bit_from_dali(dali):
    (ours,), (theirs,) = both(dali, "normal", shape=[20000])
    assert (ours == theirs).mean() > 0.97
    assert np.abs(ours - theirs).max() < 1e-6


def test_normal_arguments_of_samples_equal_dali(dali):
    close(both(dali, "normal", mean=lambda d: d.batch([1.0, 100.0]), stddev=lambda d: d.batch([0.0, 1.0])), rtol=1e-6)
    close(both(dali, "normal", mean=lambda d: d.batch([1, 100]), shape=[5]), rtol=1e-6)
    close(both(dali, "normal", stddev=-2.0, shape=[5]), rtol=1e-6)
    close(both(dali, "normal", mean=lambda d: d.tensor(3.0), batch_size=2), rtol=1e-6)


@pytest.mark.parametrize("probability", [0.0, 0.1, 0.3, 0.5, 0.9, 1.0, 1.5, float("nan")])
@pytest.mark.parametrize("dtype", [None, "bool", "uint8", "int32"])
def test_coin_flip_equals_dali(dali, probability, dtype):
    for where in SHAPES:
        same(both(dali, "coin_flip", probability=probability, dtype=dtype, **where))
    same(both(dali, "coin_flip", probability=lambda d: d.batch([0.0, 1.0, 0.5]), shape=[40], dtype=dtype))


SHAPE_PAIRS = [(1.0, 1.0), (0.5, 0.7), (2.0, 3.0), (0.05, 0.05), (0.5, 4.0), (4.0, 0.2), (20.0, 30.0)]


@pytest.mark.parametrize(("alpha", "beta"), SHAPE_PAIRS)
@pytest.mark.parametrize("where", SHAPES)
@pytest.mark.drawn(3)
def test_beta_equals_dali(dali, alpha, beta, where):
    close(both(dali, "beta", alpha=alpha, beta=beta, **where), rtol=0, atol=3e-6)
    close(both(dali, "beta", alpha=alpha, beta=beta, dtype="float64", **where), rtol=0, atol=1e-12)


def test_beta_arguments_of_samples_equal_dali(dali):
    arguments = {"alpha": lambda d: d.batch([0.1, 2.0]), "beta": lambda d: d.batch([0.5, 3.0])}
    close(both(dali, "beta", shape=[9], **arguments), rtol=0, atol=3e-6)


@pytest.mark.parametrize("count", [1, 2, 7, 1000, 3 * 10**8, 2**31 - 1])
@pytest.mark.parametrize("where", SHAPES)
def test_choice_equals_dali(dali, count, where):
    same(both(dali, "choice", count, **where))


@pytest.mark.parametrize("count", [np.uint8(7), np.int64(2**31 + 5), np.int64(2**40), np.uint32(2**32 - 1)])
def test_choice_counts_of_other_types_equal_dali(dali, count):
    same(both(dali, "choice", lambda d: d.tensor(count), shape=[3000]))


@pytest.mark.parametrize(
    "items",
    [
        [1, 2, 3],
        [1.5, 2, 3],
        np.arange(6).reshape(3, 2),
        np.arange(12, dtype=np.uint8).reshape(3, 2, 2),
        np.array([True, False]),
        np.arange(3).astype(np.float16),
        np.arange(3.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("where", [{}, {"shape": [4]}, {"shape": [4, 5]}, {"batch_size": 2, "shape": [3]}])
def test_choice_from_arrays_equals_dali(dali, items, where):
    same(both(dali, "choice", items, **where))
    weights = np.array([1 / len(items)] * len(items), np.float32)
    same(both(dali, "choice", items, p=weights, **where))


def test_choice_from_arrays_of_several_shapes_equals_dali(dali):
    shapes = [(4, 2, 3), (3, 5, 1), (2, 0, 4)]
    arrays = [np.arange(np.prod(shape), dtype=np.int16).reshape(shape) for shape in shapes]
    for where in ({}, {"shape": [6]}, {"shape": [2, 2]}):
        same(both(dali, "choice", lambda d: d.batch(arrays), **where))
    same(both(dali, "choice", lambda d: d.batch(arrays[:2]), p=lambda d: d.batch([[0, 0, 0.5, 0.5], [0.0, 1, 0]])))


@pytest.mark.parametrize("p", [[0.1, 0.2, 0.3, 0.4], [0.0, 1.0, 0.0, 0.0], [0.3, 0.3, 0.3, 0.09999]])
def test_weighted_choice_equals_dali(dali, p):
    same(both(dali, "choice", 4, p=p, shape=[5000]))
    same(both(dali, "choice", 2, p=lambda d: d.batch([[0.0, 1.0], [1.0, 0.0]]), shape=[5]))
    same(both(dali, "choice", lambda d: d.batch([3, 1000, 2]), shape=[50]))
    same(both(dali, "choice", lambda d: d.batch([[1, 2], [3, 4, 5]]), shape=[50]))
    same(both(dali, "choice", 5, np.zeros((2, 2))))


@pytest.mark.parametrize("layout", ["W", "HW", "HWC"])
@pytest.mark.parametrize("shape", [None, [], [4], [4, 5]])
def test_choice_layout_equals_dali(dali, layout, shape):
    items = np.arange(12).reshape((*(3, 2, 2)[: len(layout) - 1], -1))
    where = {} if shape is None else {"shape": shape}
    actual = [d.random.choice(d.tensor(items, layout=layout), **where).evaluate() for d in (ndd, dali)]
    assert actual[0].layout == actual[1].layout
    assert actual[0].shape == actual[1].shape


def test_choice_keeps_enumerations():
    items = [ndd.types.INTERP_NN, ndd.types.INTERP_LINEAR]
    assert random.choice(items).dtype == ndd.InterpType


CALLS = {
    "uniform": {},
    "normal": {},
    "coin_flip": {},
    "beta": {"alpha": 2.0, "beta": 0.5},
    "choice": {},
}


def call(name, **kwargs):
    inputs = (1000,) if name == "choice" else ()
    return getattr(random, name)(*inputs, **CALLS[name], **kwargs)


@pytest.mark.parametrize("name", CALLS)
def test_a_longer_batch_begins_with_the_shorter_one(name):
    five = arrays(call(name, batch_size=5, shape=[3], rng=RNG(8)))
    three = arrays(call(name, batch_size=3, shape=[3], rng=RNG(8)))
    item = arrays(call(name, shape=[3], rng=RNG(8)))
    first = arrays(call(name, rng=RNG(8)))
    np.testing.assert_array_equal(five[:3], three)
    np.testing.assert_array_equal(five[0], item[0])
    assert five[0][0] == first[0]
    assert not np.array_equal(five[0], five[1])


@pytest.mark.parametrize("name", CALLS)
def test_a_call_takes_seven_words(name):
    for where in ({}, {"batch_size": 9}, {"shape": [100, 3]}):
        rng, other = RNG(3), RNG(3)
        call(name, rng=rng, **where)
        other.advance(7)
        assert rng.state == other.state


@pytest.mark.parametrize("name", CALLS)
def test_modes_threads_and_repetition_change_nothing(name):
    expected = arrays(call(name, batch_size=6, shape=[5000], rng=RNG(21)))
    for mode in ndd.EvalMode:
        with mode:
            np.testing.assert_array_equal(arrays(call(name, batch_size=6, shape=[5000], rng=RNG(21))), expected)
    for threads in (1, 3):
        with ndd.EvalContext(num_threads=threads):
            np.testing.assert_array_equal(arrays(call(name, batch_size=6, shape=[5000], rng=RNG(21))), expected)
    ragged = ndd.batch([[5000], [7], [5000]])
    parts = arrays(call(name, shape=ragged, rng=RNG(21)))
    np.testing.assert_array_equal(parts[0], expected[0])
    np.testing.assert_array_equal(parts[1], expected[1][:7])
    np.testing.assert_array_equal(parts[2], expected[2])


def test_set_seed_is_the_default_generator():
    random.set_seed(99)
    a = arrays(random.uniform(shape=[4]))
    b = arrays(random.uniform(shape=[4]))
    random.set_seed(99)
    np.testing.assert_array_equal(arrays(random.uniform(shape=[4])), a)
    np.testing.assert_array_equal(arrays(random.uniform(shape=[4])), b)
    np.testing.assert_array_equal(arrays(random.uniform(shape=[4], rng=RNG(99))), a)


def test_words_are_taken_in_the_order_of_calls():
    """Deferred calls have their numbers from where the generator stood, whichever is asked for first."""
    with ndd.EvalMode.deferred:
        rng = RNG(4)
        first, second = random.uniform(rng=rng), random.uniform(rng=rng)
        later, sooner = second.item(), first.item()
    rng = RNG(4)
    assert sooner == random.uniform(rng=rng).item()
    assert later == random.uniform(rng=rng).item()


def test_results_know_themselves_without_running():
    with ndd.EvalMode.deferred:
        result = random.uniform(batch_size=3, shape=[2, 2], dtype=ndd.float64)
        assert (result.dtype, result.ndim, result.layout, result.batch_size) == (ndd.float64, 2, None, 3)
        assert random.coin_flip().dtype == ndd.int32
        assert random.choice(ndd.tensor([[1, 2]], layout="HW"), shape=[3]).ndim == 2


DISTRIBUTIONS = [
    ("uniform", {"range": (2.0, 5.0)}, ("uniform", (2, 3))),
    ("uniform", {"range": (2.0, 5.0), "dtype": ndd.float64}, ("uniform", (2, 3))),
    ("normal", {"mean": 3.0, "stddev": 2.0}, ("norm", (3, 2))),
    ("normal", {"mean": 3.0, "stddev": 2.0, "dtype": ndd.float64}, ("norm", (3, 2))),
    ("beta", {"alpha": 0.2, "beta": 0.4}, ("beta", (0.2, 0.4))),
    ("beta", {"alpha": 2.0, "beta": 0.5}, ("beta", (2.0, 0.5))),
    ("beta", {"alpha": 3.0, "beta": 5.0, "dtype": ndd.float64}, ("beta", (3.0, 5.0))),
]


@pytest.mark.parametrize(("name", "arguments", "law"), DISTRIBUTIONS)
@pytest.mark.parametrize("where", [{"shape": [20000]}, {"batch_size": 4000}])
@pytest.mark.drawn(1)
def test_distribution(name, arguments, law, where, stats):
    values = np.concatenate([a.ravel() for a in arrays(getattr(random, name)(rng=RNG(31), **arguments, **where))])
    distribution, parameters = law
    assert stats.kstest(values.astype(np.float64), getattr(stats, distribution)(*parameters).cdf).pvalue > 1e-3


def test_rounded_ends_come_up_half_as_often(stats):
    values = arrays(random.uniform(range=(0, 4), dtype=ndd.int32, shape=[40000], rng=RNG(6)))[0]
    counts = np.bincount(values, minlength=5)
    assert stats.chisquare(counts, 40000 * np.array([1, 2, 2, 2, 1]) / 8).pvalue > 1e-3


def test_choices_come_up_as_often_as_they_should(stats):
    counts = np.bincount(arrays(random.choice(10, shape=[50000], rng=RNG(6)))[0], minlength=10)
    assert stats.chisquare(counts).pvalue > 1e-3
    p = np.array([0.1, 0.2, 0.3, 0.4])
    counts = np.bincount(arrays(random.choice(4, p=list(p), shape=[50000], rng=RNG(6)))[0], minlength=4)
    assert stats.chisquare(counts, 50000 * p).pvalue > 1e-3
    flips = arrays(random.coin_flip(probability=0.3, shape=[50000], rng=RNG(6)))[0]
    assert stats.binomtest(int(flips.sum()), 50000, 0.3).pvalue > 1e-3


def test_integer_ends_saturate_where_dali_wraps():
    values = arrays(random.uniform(dtype=ndd.uint8, range=(-3, 300), shape=[2000], rng=RNG(1)))[0]
    assert (values.min(), values.max()) == (0, 255)


REFUSED = [
    (lambda: random.uniform(range=[2.0, 1]), "low < high"),
    (lambda: random.uniform(range=[2.0, 2.0]), "low < high"),
    (lambda: random.uniform(range=[float("nan"), 1]), "low < high"),
    (lambda: random.uniform(range=ndd.batch([[0.0, 1.0], [1.0, 0.0]])), "sample 1"),
    (lambda: random.uniform(range=[1.0]), "2 numbers"),
    (lambda: random.uniform(range=[1.0, 2, 3]), "2 numbers"),
    (lambda: random.uniform(range=ndd.batch([[0.0, 1.0], [5.0, 6.0, 7.0]])), "2 numbers"),
    (lambda: random.uniform(values=[]), "at least one value"),
    (lambda: random.uniform(values=np.ones((2, 3))), r"shape \(2, 3\)"),
    (lambda: random.uniform(range=np.array([[0, 1], [2, 3]])), "2 numbers"),
    (lambda: random.choice(np.uint64(2**63)), "positive number"),
    (lambda: random.uniform(shape=[-1]), "at least 0"),
    (lambda: random.uniform([1, 2], shape=[2]), "incompatible"),
    (lambda: random.uniform(shape=ndd.batch([[2, 3], [1]])), "as many numbers"),
    (lambda: random.uniform(dtype=ndd.bool), "float64"),
    (lambda: random.uniform(dtype=ndd.float16), "float64"),
    (lambda: random.normal(dtype=ndd.bool), "f64"),
    (lambda: random.coin_flip(dtype=ndd.float32), "i32"),
    (lambda: random.beta(dtype=ndd.uint8), "f64"),
    (lambda: random.beta(alpha=0.0), "alpha"),
    (lambda: random.beta(beta=-1.0), "beta"),
    (lambda: random.beta(alpha=float("inf")), "alpha"),
    (lambda: random.beta(alpha=ndd.batch([1.0, float("nan")])), "sample 1"),
    (lambda: random.choice(0), "positive number"),
    (lambda: random.choice(-3), "positive number"),
    (lambda: random.choice([]), "positive number"),
    (lambda: random.choice(2.5), "integer"),
    (lambda: random.choice(True), "integer"),
    (lambda: random.choice(3, p=[0.5, 0.5]), "3 probabilities"),
    (lambda: random.choice(3, p=[]), "3 probabilities"),
    (lambda: random.choice(3, p=[-0.5, 0.5, 1.0]), "at index 0"),
    (lambda: random.choice(3, p=[0.5, 0.5, 0.5]), "sum of 1.5"),
    (lambda: random.choice(2, p=[float("nan"), 1.0]), "at index 0"),
    (lambda: random.choice(5, np.zeros((2, 2)), shape=[2]), "incompatible"),
]


@pytest.mark.parametrize(("make", "words"), REFUSED)
def test_refused_when_evaluated(make, words):
    with pytest.raises(RuntimeError, match=words.replace("float64", "f64")), ndd.EvalMode.sync_cpu:
        make()


def test_refused_at_the_call():
    for bad in (5, "x", np.random.default_rng(0)):
        with pytest.raises(ValueError, match="rng"):
            random.uniform(rng=bad)
    with pytest.raises(TypeError, match="seed"):
        random.uniform(seed=5)
    with pytest.raises(TypeError, match="dtype"):
        random.choice(5, dtype=ndd.int64)
    with pytest.raises(TypeError):
        random.choice()
    with pytest.raises(ValueError, match="batch size"):
        random.normal(mean=ndd.batch([1.0, 2.0]), stddev=ndd.batch([1.0, 2.0, 3.0]))
    with pytest.raises(RuntimeError, match="batch_size=2"):
        random.normal(mean=ndd.batch([1.0, 2.0, 3.0]), batch_size=2)
    with pytest.raises(RuntimeError, match="batch_size=3"):
        random.normal(ndd.batch([[1.0], [2.0]]), batch_size=3)
    with pytest.raises(TypeError, match="batch_size"):
        random.normal(batch_size=2.5)
    with pytest.raises(TypeError, match="input 0"):
        random.choice(None)
