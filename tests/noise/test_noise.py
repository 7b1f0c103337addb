"""`ndd.noise`: bit by bit what DALI adds for the same generator, on every element type; and on the GPU."""

from __future__ import annotations

import numpy as np
import pytest
from cases import each_of

import ndd
from ndd.random import RNG

REGISTRY_CASES = {
    "noise.gaussian": each_of({}, {"mean": 1.0, "stddev": 3.0}, layouts=("HWC",), dtypes=("uint8", "float32")),
    "noise.salt_and_pepper": each_of(
        {}, {"prob": 0.3, "per_channel": True}, layouts=("HWC",), dtypes=("uint8", "float32")
    ),
    "noise.shot": each_of({}, {"factor": 5.0}, layouts=("HWC",), dtypes=("uint8", "float32")),
}

TYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32"]
OFTEN = ("uint8", "int16", "int32", "uint64", "float32")
CALLS = [
    ("gaussian", {}),
    ("gaussian", {"mean": 3.0, "stddev": 25.0}),
    ("gaussian", {"stddev": 0.0}),
    ("salt_and_pepper", {}),
    ("salt_and_pepper", {"prob": 0.4, "salt_vs_pepper": 0.2}),
    ("salt_and_pepper", {"prob": 0.3, "per_channel": True}),
    ("salt_and_pepper", {"prob": 0.3, "salt_val": 17.6, "pepper_val": 3.0}),
    ("salt_and_pepper", {"prob": 1.0, "salt_vs_pepper": 1.0}),
    ("shot", {}),
    ("shot", {"factor": 5.0}),
    ("shot", {"factor": 0.7}),
    ("shot", {"factor": 100.0}),
]


def image(dtype, shape=(13, 47, 3)):
    return np.random.default_rng(3).integers(0, 120, shape).astype(dtype)


def run(library, name, array, layout="HWC", **arguments):
    options = {k: library.batch(v) if isinstance(v, list) else v for k, v in arguments.items()}
    arrays = array if isinstance(array, list) else [array]
    result = getattr(library.noise, name)(library.batch(arrays, layout=layout), rng=library.random.RNG(5), **options)
    return [np.array(t) for t in result.tensors]


# Kernels are compiled for each type: one of each kind and width comes first.
@pytest.mark.parametrize(("name", "arguments"), CALLS)
@pytest.mark.parametrize("dtype", [pytest.param(t, marks=[] if t in OFTEN else pytest.mark.long) for t in TYPES])
@pytest.mark.drawn(3)
def test_equals_dali(dali, name, arguments, dtype):
    for ours, theirs in zip(*(run(d, name, image(dtype), **arguments) for d in (ndd, dali)), strict=True):
        assert ours.dtype == theirs.dtype
        if dtype == "float32" and name == "gaussian":
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-5)
            assert (ours == theirs).mean() > 0.97
        else:
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", ["gaussian", "salt_and_pepper", "shot"])
def test_ragged_batches_and_arguments_of_samples_equal_dali(dali, name):
    arrays = [image("uint8"), image("uint8", (1, 1, 3)), image("uint8", (200, 101, 3))]
    arguments = {
        "gaussian": {"mean": [0.0, 50.0, -9.0], "stddev": [1.0, 0.0, 30.0]},
        "salt_and_pepper": {"prob": [0.0, 1.0, 0.5], "salt_vs_pepper": [0.5, 0.0, 0.9], "salt_val": [1.0, 2.0, 3.0]},
        "shot": {"factor": [1.0, 10.0, 30.0]},
    }[name]
    for ours, theirs in zip(*(run(d, name, arrays, **arguments) for d in (ndd, dali)), strict=True):
        np.testing.assert_array_equal(ours, theirs)


LAYOUTS = [
    ("CHW", (3, 9, 8)),
    ("FHWC", (2, 5, 8, 3)),
    (None, (9, 8, 3)),
    (None, (40,)),
    ("HWC", (5, 6, 1)),
    ("HW", (7, 8)),
]


@pytest.mark.parametrize(("layout", "shape"), LAYOUTS)
@pytest.mark.parametrize("per_channel", [False, True])
def test_pixels_of_layouts_equal_dali(dali, layout, shape, per_channel):
    arguments = {"prob": 0.3, "per_channel": per_channel}
    if layout == "HW" and not per_channel:
        with pytest.raises(RuntimeError, match="channels"):
            run(ndd, "salt_and_pepper", image("uint8", shape), layout, **arguments)
        return
    actual = [run(d, "salt_and_pepper", image("uint8", shape), layout, **arguments) for d in (ndd, dali)]
    np.testing.assert_array_equal(*actual)


def test_channels_in_the_middle():
    """DALI refuses them; here a pixel is a frame and a place."""
    array = np.full((3, 2, 20, 20), 100, np.uint8)
    (actual,) = run(ndd, "salt_and_pepper", array, "FCHW", prob=0.5)
    np.testing.assert_array_equal(actual[:, 0], actual[:, 1])
    assert not np.array_equal(actual[0], actual[1])


@pytest.mark.parametrize(("name", "arguments"), CALLS)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "float32"])
@pytest.mark.drawn(1)
def test_the_same_noise_on_the_gpu(name, arguments, dtype, emulated_gpu):
    arrays = [image(dtype), image(dtype, (1, 1, 3)), image(dtype, (0, 4, 3))]
    cpu = ndd.batch(arrays, layout="HWC")
    actual = [getattr(ndd.noise, name)(b, rng=RNG(8), **arguments) for b in (cpu, cpu.gpu())]
    assert actual[1].device == ndd.Device("gpu")
    for a, b in zip(*(f.tensors for f in actual), strict=True):
        if dtype == "float32":  # the last bit of a logarithm may differ on a real GPU
            np.testing.assert_allclose(np.array(a), np.array(b.cpu()), rtol=1e-6, atol=1e-5)
        else:
            np.testing.assert_array_equal(np.array(a), np.array(b.cpu()))


SHOTS = [("uint8", 255, 20.0), ("uint8", 255, 0.5), ("float32", 14, 1.0), ("float32", 1e5, 1.0), ("int64", 40, 2.0)]


@pytest.mark.parametrize(("dtype", "most", "factor"), SHOTS)
@pytest.mark.drawn(1)
def test_every_count_on_the_gpu(dtype, most, factor, emulated_gpu):
    """The GPU counts in float with bounds of the error, and exactly where these leave it open: always as the CPU."""
    image = (np.random.default_rng(1).random((130, 150)) * most).astype(dtype)
    batch = ndd.batch([image, image[:1], image[:, :31]], layout="HW")
    actual = [ndd.noise.shot(b, factor=factor, rng=RNG(11)).tensors for b in (batch, batch.gpu())]
    for cpu, gpu in zip(*actual, strict=True):
        np.testing.assert_array_equal(np.array(cpu), np.array(gpu.cpu()))


def test_numbers_that_are_none_are_counted_as_nothing(emulated_gpu):
    image = np.array([[np.nan, -np.inf, -3.0, -0.0, 1e-40, np.inf, 3e9]], np.float32)
    batch = ndd.batch([image], layout="HW")
    for options in (batch, batch.gpu()):
        actual = np.array(ndd.noise.shot(options, factor=1.0, rng=RNG(5)).tensors[0].cpu())
        np.testing.assert_array_equal(actual, [[0, 0, 0, 0, 0, np.inf, 3e9]])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("arguments", [{"mean": np.nan}, {"mean": np.inf}, {"mean": -np.inf}, {"stddev": np.inf}])
@pytest.mark.drawn(1)
def test_noise_that_is_not_finite(dali, dtype, arguments, emulated_gpu):
    (expected,) = run(dali, "gaussian", image(dtype, (3, 4, 1)), **arguments)
    batch = ndd.batch([image(dtype, (3, 4, 1))], layout="HWC")
    for options in (batch, batch.gpu()):
        actual = np.array(ndd.noise.gaussian(options, rng=RNG(5), **arguments).tensors[0].cpu())
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("name", ["prob", "salt_vs_pepper"])
@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), [0.5, 2.0]])
def test_shares_are_between_0_and_1_as_in_dali(dali, name, share):
    for library in (ndd, dali):
        with pytest.raises(RuntimeError):
            run(library, "salt_and_pepper", [image("uint8"), image("uint8")], **{name: share})


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int32"])
@pytest.mark.drawn(1)
def test_values_beyond_an_integer_type_wrap_around_as_in_dali(dali, dtype):
    arguments = {"prob": 1.0, "salt_val": 299.8, "pepper_val": -7.0}
    (actual,), (expected,) = (run(package, "salt_and_pepper", image(dtype), **arguments) for package in (ndd, dali))
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.oracle
@pytest.mark.parametrize("factor", [5.3, 0.3, 1.7])
def test_shot_of_means_that_are_nearly_whole(dali, factor):
    """Which of two numbers a mean is rounded to, as 106 / 5.3, decides what is counted."""
    numbers = np.tile(np.arange(256, dtype=np.uint8), 8).reshape(8, 256, 1)
    (actual,), (expected,) = (run(package, "shot", numbers, factor=factor) for package in (ndd, dali))
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.oracle
def test_shot_of_factor_zero_gives_zeros(dali):
    for dtype in ("uint8", "float32"):
        (actual,), (expected,) = (run(package, "shot", image(dtype), factor=0.0) for package in (ndd, dali))
        np.testing.assert_array_equal(actual, expected)
        assert not actual.any()


def test_shot_of_negative_numbers_gives_zeros():
    (actual,) = run(ndd, "shot", np.full((5, 5, 1), -3, np.float32))
    assert (actual == 0).all()


@pytest.mark.parametrize("mean", [0.1, 0.3, 5.0, 11.9, 12.0, 40.0, 100.0, 1000.0, 5000.0])
@pytest.mark.drawn(3)
def test_counts_are_of_a_poisson_distribution(mean, stats):
    (actual,) = run(ndd, "shot", np.full((150, 200), mean, np.float32), "HW", factor=1.0)
    law = stats.poisson(mean)
    assert abs(actual.mean(dtype=np.float64) - mean) < 5 * np.sqrt(mean / actual.size)
    assert actual.var(dtype=np.float64) == pytest.approx(mean, rel=0.1 if mean < 1 else 0.05)
    edges = np.unique(law.ppf(np.linspace(0, 1, 20)[1:-1]))
    observed = np.histogram(actual, [-np.inf, *(edges + 0.5), np.inf])[0]
    expected = np.diff([0, *law.cdf(edges), 1]) * actual.size
    kept = expected > 5
    assert stats.chisquare(observed[kept], expected[kept] * observed[kept].sum() / expected[kept].sum()).pvalue > 1e-4


def test_noise_is_normal(stats):
    (actual,) = run(ndd, "gaussian", np.zeros((200, 100), np.float32), "HW", mean=1.0, stddev=2.0)
    assert stats.kstest(actual.ravel(), stats.norm(1, 2).cdf).pvalue > 1e-3


@pytest.mark.parametrize("name", ["gaussian", "salt_and_pepper", "shot"])
@pytest.mark.parametrize("dtype", ["float16", "float64", "bool"])
def test_other_types_are_refused_as_in_dali(dali, name, dtype):
    for library in (ndd, dali):
        with pytest.raises(RuntimeError):
            run(library, name, np.zeros((3, 3, 1), dtype))
