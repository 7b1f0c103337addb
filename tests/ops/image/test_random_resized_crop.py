"""`ndd.random_resized_crop`: beside DALI's with the same seed, and its pixels beside `resize`."""

import numpy as np
import pytest
from cases import each_of
from compare import arrays_of, assert_same_values, outcome

import ndd
from ndd.random.crop_window import crop_window
from ndd.random.streams import Draws

REGISTRY_CASES = {
    "random_resized_crop": each_of(
        {"size": [12, 15]},
        layouts=("HWC", "FHWC"),
        dtypes=("uint8", "float32"),
        off_by_one=0.15,  # halves (many where a window is half as wide as the result), of which the GPU rounds all to even
    ),
}

CASES = [
    ((400, 600), (0.08, 1.0), (0.75, 1.333)),
    ((30, 40), (0.3, 0.9), (0.5, 1.0)),
    ((400, 600), (0.9, 1.0), (3.0, 4.0)),
    ((400, 600), (0.9, 1.0), (0.1, 0.2)),
    ((7, 5), (0.01, 0.05), (0.9, 1.1)),
    ((300, 100), (0.5, 0.6), (1.0, 1.0)),
    ((1, 50), (0.08, 1.0), (0.75, 1.33)),
]


def windows(shape, area, aspect, count=4000, seed=1, attempts=10):
    return crop_window(np.tile([shape], (count, 1)), Draws(seed, 0).streams(count), area, aspect, attempts)


@pytest.mark.parametrize(("shape", "area", "aspect"), CASES)
def test_windows_lie_inside(shape, area, aspect):
    anchor, window = windows(shape, area, aspect)
    assert (anchor >= 0).all()
    assert (window >= 1).all()
    assert (anchor + window <= shape).all()


def test_a_window_depends_on_its_sample_alone():
    shapes = np.array([[40, 60], [10, 10], [300, 20]])
    streams = Draws(5, 0).streams(3)
    together = crop_window(shapes, streams, (0.1, 1), (0.5, 2), 10)
    for i in range(3):
        alone = crop_window(shapes[i : i + 1], streams[i : i + 1], (0.1, 1), (0.5, 2), 10)
        np.testing.assert_array_equal(np.stack(together)[:, i], np.stack(alone)[:, 0])


@pytest.mark.parametrize("attempts", [-1, 0])
def test_without_attempts_the_largest_window(attempts):
    _, window = windows((40, 60), (0.1, 1.0), (0.5, 1.0), count=3, attempts=attempts)
    assert (window == [40, 40]).all()


@pytest.mark.parametrize("layout", ["HWC", "CHW", "FHWC", "FCHW", "CFHW"])
def test_it_is_resize_of_the_window(layout):
    extents = {"H": 40, "W": 60, "C": 3, "F": 2}
    rng = np.random.default_rng(0)
    samples = [rng.integers(0, 256, [extents[c] for c in layout], dtype=np.uint8) for _ in range(3)]
    batch = ndd.batch(samples, layout=layout)
    result = ndd.random_resized_crop(batch, size=(9, 7), rng=ndd.random.RNG(seed=3))
    anchor, window = crop_window(
        np.tile([[40, 60]], (3, 1)), Draws(*ndd.random.RNG(seed=3)._take()).streams(3), (0.08, 1), (0.75, 1.333333), 10
    )
    start, end = (ndd.batch(list(v.astype(np.float32))) for v in (anchor, anchor + window))
    expected = ndd.resize(batch, size=(9, 7), roi_start=start, roi_end=end)
    assert result.layout == layout
    for a, b in zip(arrays_of(result), arrays_of(expected), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"size": [1, 2, 3]},
        {"size": [-5, 6]},
        {"size": 5, "random_area": [0.5, 0.2]},
        {"size": 5, "random_area": [0.1, 0.2, 0.3]},
        {"size": 5, "random_aspect_ratio": [2, 1]},
    ],
)
@pytest.mark.drawn(2)
def test_errors_as_dali(dali, arguments):
    image = np.zeros((10, 12, 3), np.uint8)
    ours, theirs = (
        outcome(m, lambda m: m.random_resized_crop(m.tensor(image, layout="HWC"), **arguments)) for m in (ndd, dali)
    )
    assert isinstance(theirs, Exception)
    assert type(ours) is type(theirs)


def test_same_windows_on_the_gpu(emulated_gpu):
    rng = np.random.default_rng(4)
    batch = ndd.batch([rng.integers(0, 256, (h, 33, 3), dtype=np.uint8) for h in (20, 31, 50)], layout="HWC")
    on_cpu, on_gpu = (
        ndd.random_resized_crop(b, size=(12, 13), rng=ndd.random.RNG(seed=9)) for b in (batch, batch.gpu())
    )
    assert_same_values(arrays_of(on_gpu), arrays_of(on_cpu), off_by_one=0.05)
    assert emulated_gpu.launches == ["resample_plane"]


@pytest.mark.parametrize("size", [7, [7], np.int64(7)])
def test_one_number_is_height_and_width(dali, size):
    image = np.arange(10 * 12 * 3, dtype=np.uint8).reshape(10, 12, 3)
    for module in (ndd, dali):
        batch = module.batch([image, image[:4]], layout="HWC")
        assert module.random_resized_crop(batch, size=size).shape == [(7, 7, 3), (7, 7, 3)]
    both, item = (ndd.random_resized_crop(image, size=s, rng=ndd.random.RNG(seed=2)) for s in ([7, 7], size))
    np.testing.assert_array_equal(np.asarray(item), np.asarray(both))
