"""All reductions against DALI: types, axes, layouts, empty and large inputs, errors; and the GPU against the CPU."""

# ruff: noqa: B023  (every closure runs before the loop goes on)
from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from cases import each_of
from compare import assert_same, check_same
from number_samples import NAMES, NUMPY, samples
from selection import drawn, drawn_types

import ndd
from ndd._compiled.background import background
from ndd._compiled.sample_loops import _by_fallback
from ndd._operator import partition
from ndd.reductions import over_axes
from ndd.reductions.launches import reduce_on_gpu

_CUBE = {"inputs": ("cube",), "dtypes": ("uint8", "int16", "int32", "int64", "float32")}


REGISTRY_CASES = {
    "reductions.std_dev": each_of({}, inputs=("cube", "mean of cube"), dtypes=("uint8", "int16", "float32")),
    "reductions.variance": each_of({}, inputs=("cube", "mean of cube"), dtypes=("uint8", "int16", "float32")),
    **{
        f"reductions.{name}": each_of({}, {"axes": [0]}, {"axes": [0, 2], "keep_dims": True}, **_CUBE)
        for name in ("sum", "mean", "mean_square", "rms", "min", "max")
    },
}

PLAIN = ("sum", "mean", "mean_square", "rms", "min", "max")
ABOUT = ("variance", "std_dev")
TYPES = ("u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32")


def values(name, shape, seed=0):
    x = samples(name, int(np.prod(shape)), seed).reshape(shape)
    if x.dtype.kind == "f":
        return np.abs(np.nan_to_num(np.clip(x, -1e4, 1e4))).round(3).astype(np.float32)
    # Small enough that the sums of squares fit what DALI accumulates in, and of one sign: sums that nearly cancel
    # depend on the order of the additions.
    return x if x.itemsize == 1 else x % x.dtype.type(1000)


def check_reduced(dali, name, x, mean, extra, layout=None):
    """float32 sums that nearly cancel depend on the order of the additions: `assert_same` allows for that."""

    def call(m):
        return getattr(m.reductions, name)(m.tensor(x, layout=layout), *map(m.tensor, mean), **extra)

    check_same(dali, call, close=assert_same, note=extra)


def right_mean(x, axes):
    """A mean for every element of the result (DALI reads beyond a single number unless the result is one too)."""
    kept = [e for d, e in enumerate(x.shape) if axes is not None and d not in [a % x.ndim for a in np.atleast_1d(axes)]]
    return values("f32", kept, 5)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("kind", NAMES)
def test_element_types(dali, name, kind):
    x = values(kind, (4, 5)) if kind in TYPES else samples(kind, 20).reshape(4, 5)
    wanted_types = [None] if name in ("min", "max") else [None, *drawn_types(NAMES, 3, name)]
    for target in wanted_types:

        def call(m):
            extra = {} if target is None else {"dtype": getattr(m, NUMPY[target])}
            return getattr(m.reductions, name)(m.tensor(x), axes=[0], **extra)

        close = close_roots if name == "rms" else assert_same
        if kind in ("i64", "u64") and target == kind and name != "sum":
            close = any_numbers  # beyond float32: compared below with small ones
        check_same(dali, call, close=close, note=target)


def any_numbers(result, wanted):
    """For where type, shape and layout are all that is equal."""


def close_roots(result, wanted):
    """The root of a sum that wrapped below zero is NaN, which has no integer."""
    known = ...
    if wanted.dtype.kind == "i":
        known = (wanted > np.iinfo(wanted.dtype).min) & (wanted != 0)
    assert_same(result[known], wanted[known])


@pytest.mark.parametrize("name", [*PLAIN, *ABOUT])
@pytest.mark.parametrize("keep_dims", [False, True])
@pytest.mark.drawn(1)
def test_axes(dali, name, keep_dims):
    x = values("f32", (3, 1, 4, 5))
    choices = [None, *itertools.chain.from_iterable(itertools.combinations(range(4), k) for k in range(1, 5))]
    for axes in [*choices, (-1,), (-2, 0), 2, (0, -1, 1)]:
        extra = {"keep_dims": keep_dims}
        if axes is not None:
            extra["axes"] = axes if isinstance(axes, int) else list(axes)
        mean = (right_mean(x, axes),) if name in ABOUT else ()
        check_reduced(dali, name, x, mean, extra, layout="FHWC")


@pytest.mark.parametrize("name", [*PLAIN, *ABOUT])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((0, 3), [0]), ((0, 3), [1]), ((0, 3), None), ((2, 3), []), ((), None), ((1,), None), ((1, 1), [0]),
        ((2, 0, 3), [0, 2]),
    ],
)  # fmt: skip
@pytest.mark.drawn(3)
def test_empty_and_tiny(dali, name, shape, axes):
    for kind in drawn(("f32", "u8", "i32"), 1, "reductions"):
        x = values(kind, shape)
        extra = {} if axes is None else {"axes": axes}
        mean = (np.float32(2),) if name in ABOUT else ()
        check_same(
            dali, lambda m: getattr(m.reductions, name)(m.tensor(x), *mean, **extra), close=assert_same, note=kind
        )


# A loop is compiled for each: sums of every type, and every reduction of one narrow, one wide and one real type come first.
LOOPS = [
    pytest.param(kind, name, marks=[] if name == "sum" or kind in ("u8", "i32", "f32") else pytest.mark.long)
    for kind in TYPES
    for name in (*PLAIN, *ABOUT)
]


@pytest.mark.parametrize(("kind", "name"), LOOPS)
@pytest.mark.drawn(2)
def test_large_inputs_take_the_compiled_loops(dali, name, kind):
    x = values(kind, (37, 41, 3, 7))
    for axes in (None, [0], [3], [0, 1], [0, 2], [1, 3], [2, 3], [0, 3]):
        extra = {} if axes is None else {"axes": axes}
        check_reduced(dali, name, x, (right_mean(x, axes),) if name in ABOUT else (), extra)


def test_long_sums_do_not_overflow_their_narrow_parts():
    limits = (np.uint8, 255), (np.int16, -32768), (np.int8, -128), (np.uint16, 65535)
    for kind, value in drawn(limits, 1, "narrow parts"):
        x = np.full((40000, 600), value, kind)
        assert np.asarray(ndd.reductions.sum(ndd.tensor(x))) == value * x.size
        if x.itemsize == 1:
            assert np.asarray(ndd.reductions.mean_square(ndd.tensor(x))) == value * value


@pytest.mark.parametrize("name", ABOUT)
def test_means_of_every_shape(dali, name):
    x = values("f32", (3, 4, 5))
    for axes, mean in (
        ([0], values("f32", (4, 5), 1)), ([0], values("f32", (1, 4, 5), 1)), ([1], values("f32", (3, 5), 1)),
        ([2], values("f32", (3, 4), 1)), ([1, 2], values("f32", (3,), 1)), ([1, 2], values("f32", (3, 1, 1), 1)),
        (None, values("f32", (1,), 1)), ([0, 2], values("f32", (4,), 1)), ([0, 2], values("f32", (1, 4, 1), 1)),
    ):  # fmt: skip
        for ddof in (0, 1, 3):
            extra = {"ddof": ddof} if axes is None else {"axes": axes, "ddof": ddof}
            check_reduced(dali, name, x, (mean,), extra)
    large = values("f32", (30, 4, 100))
    small = values("f32", (4,), 1)
    result = np.asarray(ndd.reductions.variance(ndd.tensor(large), ndd.tensor(small), axes=[0, 2]))
    np.testing.assert_allclose(result, ((large - small[:, None].astype(float)) ** 2).mean((0, 2)), rtol=1e-5)
    apart, own = values("f32", (3, 4, 5, 2)), values("f32", (3, 5), 1)  # kept axes before, between and behind
    result = np.asarray(ndd.reductions.variance(ndd.tensor(apart), ndd.tensor(own), axes=[1, 3]))
    np.testing.assert_allclose(result, ((apart - own[:, None, :, None].astype(float)) ** 2).mean((1, 3)), rtol=1e-5)


def test_nan_never_counts_in_extremes(dali):
    x = np.array([np.nan, 1, 2, np.nan, 0, np.inf, -np.inf], np.float32)
    for part in (x, x[:1], x[:4], x[5:6], x[6:]):
        for name in ("min", "max"):
            with dali.EvalMode.sync_cpu:
                wanted = np.asarray(getattr(dali.reductions, name)(dali.tensor(part)).evaluate())
            assert_same(np.asarray(getattr(ndd.reductions, name)(ndd.tensor(part))), wanted)
            repeated = np.repeat(part, 10000)
            assert_same(np.asarray(getattr(ndd.reductions, name)(ndd.tensor(repeated))), wanted)


def test_ragged_batches_and_layouts():
    b = ndd.batch([values("u8", (h, 5, 3)) for h in (1, 4, 30)], layout="HWC")
    result = ndd.reductions.mean(b, axis_names="HW")
    assert (result.layout, result.shape) == ("C", [(3,)] * 3)
    kept = ndd.reductions.max(b, axis_names="C", keep_dims=True)
    assert (kept.layout, kept.shape) == ("HWC", [(h, 5, 1) for h in (1, 4, 30)])
    spread = ndd.reductions.std_dev(b, result, axis_names="HW")
    for i in range(3):
        np.testing.assert_allclose(np.asarray(spread.select(i)), np.asarray(b.select(i)).std((0, 1)), rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"axes": [0, 0]}, ValueError, "Duplicate axis index 0"),
        ({"axes": [0, -2]}, ValueError, "Duplicate axis index 0"),
        ({"axes": [2]}, IndexError, "Axis index out of range: 2"),
        ({"axes": [-3]}, IndexError, "Axis index out of range: -3"),
        ({"axis_names": "C"}, RuntimeError, "'C' is not present"),
        ({"axes": [0], "axis_names": "H"}, RuntimeError, "mutually exclusive"),
    ],
)
def test_wrong_axes(arguments, error, text):
    with pytest.raises(error, match=text):
        ndd.reductions.sum(ndd.tensor(np.ones((2, 3), np.float32), layout="HW"), **arguments).evaluate()


@pytest.mark.parametrize("name", [*PLAIN, *ABOUT])
def test_refused_at_the_call_by_name(name):
    function, mean = getattr(ndd.reductions, name), (0.0,) if name in ABOUT else ()
    for dtype in ("bool", "float16", "float64"):
        with pytest.raises(RuntimeError, match=rf"^{name}: Unsupported input"):
            function(ndd.tensor(np.zeros(2, dtype)), *mean)
    with pytest.raises(IndexError, match=rf"^{name}: Axis index"):
        function(ndd.tensor([1]), *mean, axes=[1])


def test_wrong_means():
    x = ndd.tensor(np.ones((2, 3), np.float32))
    with pytest.raises(RuntimeError, match="float32"):
        ndd.reductions.variance(x, 2)
    with pytest.raises(RuntimeError, match="`mean` has 2 elements"):
        ndd.reductions.variance(x, [1.0, 2.0], axes=[0]).evaluate()


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", [*PLAIN, *ABOUT])
@pytest.mark.parametrize("kind", ["u8", "i64", "f32"])
def test_gpu_equals_cpu(emulated_gpu, name, kind):
    b = ndd.batch([values(kind, (h, 7, 3, 5), h) for h in (1, 40, 6)], layout="FHWC")
    choices = (None, [0], [3], [0, 1], [1, 2], [0, 2], [1, 3], [])
    for axes in drawn(choices, 3, kind, name):  # a kernel is built for each
        extra = {} if axes is None else {"axes": axes}
        mean = (ndd.tensor(np.float32(3)),) if name in ABOUT else ()
        wanted = getattr(ndd.reductions, name)(b, *mean, **extra)
        emulated_gpu.launches.clear()
        result = getattr(ndd.reductions, name)(b.gpu(), *(m.gpu() for m in mean), **extra)
        for i in range(3):
            assert_same(np.asarray(result.select(i).cpu()), np.asarray(wanted.select(i)), 1e-5)
        assert len(emulated_gpu.launches) <= 6


@pytest.mark.long
def test_gpu_long_rows_and_integer_results(emulated_gpu):
    x = ndd.batch([values("u8", (20000, 3)), values("u8", (9000, 3))])
    for name, dtype in (("sum", ndd.uint8), ("mean", ndd.uint8), ("rms", ndd.uint8), ("mean_square", ndd.uint64)):
        for axes in drawn(([0], None, [1]), 1, name):
            extra = {} if axes is None else {"axes": axes}
            wanted = getattr(ndd.reductions, name)(x, dtype=dtype, **extra)
            result = getattr(ndd.reductions, name)(x.gpu(), dtype=dtype, **extra)
            for i in range(2):
                assert_same(np.asarray(result.select(i).cpu()), np.asarray(wanted.select(i)))


def test_gpu_means_of_every_shape(emulated_gpu):
    x = values("f32", (3, 4, 5))
    for axes, shape in (([0], (4, 5)), ([1], (3, 1, 5)), ([0, 2], (4,)), ([0, 2], (1,)), (None, ())):
        mean = values("f32", shape, 1)
        extra = {} if axes is None else {"axes": axes}
        wanted = ndd.reductions.std_dev(ndd.tensor(x), ndd.tensor(mean), **extra)
        result = ndd.reductions.std_dev(ndd.tensor(x).gpu(), ndd.tensor(mean).gpu(), **extra)
        assert_same(np.asarray(result.cpu()), np.asarray(wanted))


def test_means_from_the_cpu_for_data_on_the_gpu(emulated_gpu):
    """A number, one for each sample, and a mean for every channel; beside the same on the GPU."""
    rng = np.random.default_rng(3)
    images = [rng.integers(0, 255, s, dtype=np.uint8) for s in ((5, 4, 3), (2, 7, 3))]
    data, on_gpu = ndd.batch(images), ndd.batch(images, device="gpu")
    means = [i.mean((0, 1), dtype=np.float32) for i in images]
    for mean, axes in (
        (120.0, None), (np.float32(3.5), [0, 1]), (ndd.batch([np.float32(100), np.float32(-7)]), None),
        (ndd.batch(means), [0, 1]), (ndd.tensor(means[0]), [0, 1]),
    ):  # fmt: skip
        wanted = ndd.reductions.std_dev(data, mean, axes=axes)
        for place in (mean, mean.gpu() if hasattr(mean, "gpu") else mean):
            for _ in range(2):  # the second time with what the first has worked out
                result = ndd.reductions.std_dev(on_gpu, place, axes=axes)
                assert result.device.device_type == "gpu"
                for a, b in zip(wanted, result.cpu(), strict=True):
                    np.testing.assert_allclose(np.asarray(b), np.asarray(a), rtol=1e-6)
    other = ndd.reductions.variance(on_gpu, 0.0)
    wanted = [np.float32((i.astype(np.float64) ** 2).mean()) for i in images]
    assert np.allclose([np.asarray(t) for t in other.cpu()], wanted, rtol=1e-6)


def test_a_reduction_says_what_it_accumulates(monkeypatch):
    def peak(input, /, *, axes: list[int] | None = None, axis_names: str | None = None, keep_dims: bool = False):
        """Not one of ndd's."""

    for known in ({}, {"peak": ("most", "plain")}):
        monkeypatch.setattr(over_axes, "_COMPUTED", known)
        with pytest.raises(TypeError, match=r"reduction 'peak': `_COMPUTED` of .* one of sum, .* max"):
            over_axes.reduction(peak)


@pytest.mark.parametrize("change", [("peak", "plain"), ("max", "rounded")])
@pytest.mark.drawn(1)
def test_a_kernel_knows_what_it_is_to_accumulate(emulated_gpu, monkeypatch, change):
    """To the preprocessor every name that nobody has defined is 0: it was a sum."""

    @ndd.operator(register=False)
    def peak(input, /):
        return ndd.output(input.dtype, 0)

    peak.plan(lambda input: ndd.Plan(np.zeros((input.n, 0), np.int64)))
    peak.cuda("reduce.cu")(lambda launch, input, out: reduce_on_gpu(launch, *change, input, (0,), out))
    with pytest.raises(RuntimeError, match="KIND and FINISH are names of those above"):
        peak(ndd.tensor([1, 2, 3]).gpu()).evaluate()


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("layout", ["apart", "strided", "behind"])
@pytest.mark.drawn(1)
def test_threads_take_samples_in_turn(layout, compiled, tasks, monkeypatch):
    """Ragged ones, among them empty ones and single numbers; axes that are neighbours, and others."""
    monkeypatch.setattr(background, "allowed", False)
    if not compiled:
        monkeypatch.setattr(partition, "loop_over_samples", lambda item: functools.partial(_by_fallback, item))
    shapes = [(0, 3, 3), (1, 1, 3), (50, 40, 3), (7, 0, 3), *((40 + k, 30, 3) for k in range(8))]
    arrays = [values("u8", s, k) for k, s in enumerate(shapes)]
    means = [values("f32", 3, k) for k in range(len(shapes))]
    options = [np.repeat(a, 2, 1)[:, ::2] if layout == "strided" else a for a in arrays]
    batch = ndd.as_batch([ndd.as_tensor(a) for a in options])
    batch = (ndd.copy(batch) if layout == "behind" else batch).evaluate()
    with ndd.EvalContext(num_threads=3):
        for name, axes, passes in (
            ("mean", [0, 1], 1), ("rms", [1, 2], 1), ("max", [1], 1), ("std_dev", [0, 1], 1), ("mean", [0, 2], None),
        ):  # fmt: skip
            about = (ndd.batch(means).evaluate(),) if name in ABOUT else ()
            reduced = functools.partial(getattr(ndd.reductions, name), axes=axes)
            tasks.clear()
            result = reduced(batch, *about).evaluate()
            if passes is not None:  # of axes that are no neighbours Python asks for each sample
                assert len(tasks) <= passes
                assert max(tasks) <= 3
            for k, item in enumerate(result.tensors):
                alone = reduced(ndd.tensor(arrays[k]), *map(ndd.tensor, means[k : k + 1] if about else ()))
                np.testing.assert_allclose(np.asarray(item), np.asarray(alone), rtol=1e-7)
