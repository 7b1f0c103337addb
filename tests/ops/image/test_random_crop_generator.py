"""`ndd.random_crop_generator` and `ndd.roi_random_crop` beside DALI's, number for number."""

from __future__ import annotations

import numpy as np
import pytest
from cases import each_of

import ndd
from ndd.random import RNG

REGISTRY_INPUTS = {"image size": (lambda rng, i, dtype: np.array([40 + i, 30, 3], np.int64), None)}
REGISTRY_CASES = {
    "random_crop_generator": each_of({}, inputs=("image size",), dtypes=("int64",)),
    "roi_random_crop": each_of(
        {"crop_shape": [4, 5], "roi_start": [2, 3], "roi_shape": [8, 9]},
        {"crop_shape": [4, 5], "roi_start": 2, "roi_shape": 9},  # one number for all axes
        inputs=(),
    ),
}


def windows(library, shape, n=400, seed=5, **arguments):
    """Anchors and shapes, int `[n, 2]` each, of windows for images of one shape."""
    rng = library.random.RNG(seed)
    batch = library.batch([np.array(shape, np.int64)] * n)
    outputs = library.random_crop_generator(batch, rng=rng, **arguments)
    return [np.array([np.array(t) for t in out.evaluate().tensors]) for out in outputs]


def test_limits_hold():
    anchors, shapes = windows(ndd, (480, 640, 3), random_area=[0.2, 0.5], random_aspect_ratio=[0.5, 2.0])
    assert anchors.dtype == shapes.dtype == np.int32
    assert (anchors >= 0).all()
    assert (anchors + shapes <= [480, 640]).all()
    area = shapes.prod(axis=1) / (480 * 640)
    assert area.min() > 0.197
    assert area.max() < 0.503
    ratio = shapes[:, 1] / shapes[:, 0]
    assert ratio.min() >= 0.5
    assert ratio.max() <= 2.0


@pytest.mark.parametrize("seed", range(40))
def test_the_windows_are_dalis(dali, seed):
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, (20, 600, 3000)[seed % 3], 2)
    arguments = {}
    if seed % 2:
        arguments["random_area"] = np.sort(rng.uniform(0.01, 1, 2)).tolist()
    if seed % 5:
        arguments["random_aspect_ratio"] = np.sort(np.exp(rng.uniform(-1.5, 1.5, 2))).tolist()
    if seed % 7 == 0:
        arguments["num_attempts"] = int(rng.integers(0, 20))
    ours, theirs = (windows(library, shape, 20, seed, **arguments) for library in (ndd, dali))
    np.testing.assert_array_equal(ours, theirs)


LAST_RESORTS = [
    {"random_area": [0.9, 1.0], "random_aspect_ratio": [3.0, 4.0]},
    {"random_area": [0.9, 1.0], "random_aspect_ratio": [0.2, 0.25]},
    {"random_area": [0.3, 0.3], "random_aspect_ratio": [0.1, 0.12]},
    {"random_area": [0.5, 0.6], "num_attempts": 0},
    {"random_area": [1.5, 2.0]},
]


@pytest.mark.parametrize("arguments", LAST_RESORTS)
@pytest.mark.parametrize("shape", [(400, 600), (1, 1), (5, 3), (1000, 20), (2, 900)])
def test_last_resorts_equal_dali(dali, arguments, shape):
    """Where no window fits the shape follows from the limits alone."""
    ours, theirs = (np.unique(windows(d, shape, 20, **arguments)[1], axis=0) for d in (ndd, dali))
    np.testing.assert_array_equal(ours, theirs)


def test_it_is_the_window_of_random_resized_crop():
    images = [np.random.default_rng(i).integers(0, 256, (60 + i, 80, 3), np.uint8) for i in range(4)]
    batch = ndd.batch(images, layout="HWC")
    direct = ndd.random_resized_crop(batch, size=[16, 16], rng=RNG(9))
    anchor, shape = ndd.random_crop_generator(ndd.batch([np.array(i.shape) for i in images]), rng=RNG(9))
    by_hand = ndd.resize(batch, size=[16, 16], roi_start=anchor, roi_end=anchor + shape)
    for a, b in zip(direct.tensors, by_hand.tensors, strict=True):
        np.testing.assert_array_equal(np.array(a), np.array(b))


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "uint16"])
def test_shapes_of_integer_types(dtype):
    anchor, shape = ndd.random_crop_generator(np.array([100, 50], dtype), rng=RNG(4))
    expected = ndd.random_crop_generator(np.array([100, 50, 3], np.int64), rng=RNG(4))
    assert np.array(anchor).tolist() == np.array(expected[0]).tolist()
    assert np.array(shape).tolist() == np.array(expected[1]).tolist()


@pytest.mark.parametrize(
    ("value", "arguments"),
    [
        ([100], {}),
        ([100, 50, 3, 4], {}),
        (np.ones((2, 2), np.int64), {}),
        (np.array([100.0, 50.0]), {}),
        ([100, 50], {"random_area": [1.0, 0.5]}),
    ],
)
def test_refused_as_in_dali(dali, value, arguments):
    for library in (ndd, dali):
        with pytest.raises(RuntimeError):
            library.random_crop_generator(library.tensor(value), **arguments)[0].evaluate()


def starts(library, **arguments):
    options = {k: library.batch(v.tolist()) if isinstance(v, np.ndarray) else v for k, v in arguments.items()}
    result = library.roi_random_crop(rng=library.random.RNG(5), **options).evaluate()
    assert str(result.dtype) == "i64"
    return [np.array(t).tolist() for t in (result.tensors if hasattr(result, "tensors") else [result])]


@pytest.mark.parametrize("seed", range(40))
def test_starts_equal_dali(dali, seed):
    rng = np.random.default_rng(seed)
    axes = int(rng.integers(1, 4))
    crop, start, extent = (rng.integers(low, 30, axes).tolist() for low in (1, 0, 1))
    if seed % 5 == 0:
        extent[0] = crop[0]
    arguments = {"crop_shape": crop, "roi_start": start, "batch_size": 3}
    if seed % 3:
        arguments["roi_shape"] = extent
    else:
        arguments["roi_end"] = [s + e for s, e in zip(start, extent, strict=True)]
    if seed % 2:
        ends = [max(c, s + e) for c, s, e in zip(crop, start, extent, strict=True)]
        arguments["in_shape"] = [int(e + rng.integers(0, 10)) for e in ends]
    assert starts(ndd, **arguments) == starts(dali, **arguments)


def test_starts_of_samples_and_inputs_equal_dali(dali):
    each = {"crop_shape": np.array([[2, 2], [3, 9]]), "roi_start": [0, 0], "roi_end": np.array([[7, 9], [4, 30]])}
    assert starts(ndd, **each) == starts(dali, **each)
    assert starts(ndd, crop_shape=2, roi_start=0, roi_end=7) == starts(dali, crop_shape=2, roi_start=0, roi_end=7)
    actual = []
    for library in (ndd, dali):
        image = library.tensor(np.zeros((10, 12, 3), np.uint8), layout="HWC")
        where = {"crop_shape": [2, 5], "roi_start": [0, 3], "roi_end": [5, 5]}
        actual.append(np.array(library.roi_random_crop(image, rng=library.random.RNG(5), **where).evaluate()).tolist())
    assert actual[0] == actual[1]


@pytest.mark.parametrize(
    "arguments",
    [
        {"roi_end": [5, 5], "roi_shape": [5, 5]},
        {},
        {"roi_end": [5, 5, 5]},
        {"roi_end": [5, 5], "crop_shape": [20, 2], "in_shape": [10, 10]},
        {"roi_end": [50, 5], "in_shape": [10, 10]},
        {"roi_start": [-1, 0], "roi_end": [5, 5], "in_shape": [10, 10]},
    ],
)
def test_regions_refused_as_in_dali(dali, arguments):
    for library in (ndd, dali):
        with pytest.raises(RuntimeError):
            starts(library, **{"crop_shape": [2, 2], "roi_start": [0, 0], **arguments})
