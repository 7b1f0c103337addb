"""gaussian_blur: against DALI for every type, layout and way to give arguments; OpenCV and SciPy; CPU and GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cases import each_of
from compare import arrays_of, check_same, outcome
from number_samples import random_array
from selection import drawn

import ndd

REGISTRY_CASES = {
    "gaussian_blur": each_of(
        {"sigma": 1.2},
        {"window_size": 5},
        {"sigma": [0.5, 3.5]},
        layouts=("HWC", "CHW", "FHWC"),
        dtypes=("uint8", "int16", "float32"),
    ),
}

TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64")
SHAPES = {
    "HW": (7, 9), "HWC": (6, 7, 3), "CHW": (2, 6, 7), "FHW": (2, 5, 6), "FHWC": (2, 5, 6, 3), "FCHW": (2, 2, 5, 6),
    "CFHW": (2, 2, 5, 6), "CFHWC": (2, 2, 5, 6, 2), "DHW": (4, 5, 6), "DHWC": (4, 5, 6, 2), "CDHW": (2, 4, 5, 6),
    "FDHWC": (2, 3, 4, 5, 2), "FCDHW": (2, 2, 3, 4, 5), "CFDHW": (2, 2, 3, 4, 5), "W": (9,), "FW": (3, 8),
    "FWC": (2, 8, 3), "XY": (5, 6), "XYC": (5, 6, 4), "XYZ": (3, 5, 6), None: (5, 6, 7),
}  # fmt: skip


def numbers(rng, shape, dtype):
    """Small enough that float32 holds sums of them."""
    if "int" in dtype:
        return random_array(rng, shape, "uint8" if dtype.startswith("u") else "int8").astype(dtype)
    return random_array(rng, shape, dtype)


def blur(arguments, layout=None, **args):
    """A call for `check_same`: NumPy arrays become handles of the module."""
    many = isinstance(arguments, list)

    def call(module):
        data = module.batch(arguments, layout=layout) if many else module.tensor(arguments, layout=layout)
        named = {k: v(module) if callable(v) else v for k, v in args.items()}
        if named.get("dtype") == "float32":
            named["dtype"] = module.float32
        return module.gaussian_blur(data, **named)

    return call


def batch(values, layout=None):
    return lambda module: module.batch([np.asarray(v) for v in values], layout=layout)


@pytest.mark.drawn(2)
@pytest.mark.oracle
@pytest.mark.parametrize("layout", SHAPES)
def test_layouts(layout, dali):
    rng = np.random.default_rng(1)
    for dtype in drawn(("uint8", "float32"), 1, "gaussian_blur"):
        x = numbers(rng, SHAPES[layout], dtype)
        for args in ({"window_size": 5}, {"sigma": 1.3}, {"sigma": 3.0}):
            assert check_same(dali, blur(x, layout, **args), 1e-5, (dtype, args))


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", TYPES)
def test_element_types(dtype, dali):
    rng = np.random.default_rng(2)
    for layout in ("HWC", "DHW"):
        x = numbers(rng, SHAPES[layout], dtype)
        assert check_same(dali, blur(x, layout, sigma=1.2), 1e-5)
        assert check_same(dali, blur(x, layout, sigma=1.2, dtype="float32"), 1e-5)


@pytest.mark.oracle
def test_half_floats_are_summed_as_floats(dali):
    """DALI rounds to float16 between the axes: its own error is larger than ours."""
    x = random_array(np.random.default_rng(3), (8, 9, 3), "float16")
    exact = arrays_of(ndd.gaussian_blur(ndd.tensor(x.astype(np.float32), layout="HWC"), sigma=1.2))[0]
    own = arrays_of(ndd.gaussian_blur(ndd.tensor(x, layout="HWC"), sigma=1.2, dtype=ndd.float32))[0]
    np.testing.assert_array_equal(own, exact)
    theirs = arrays_of(outcome(dali, blur(x, "HWC", sigma=1.2)))[0]
    rounded = arrays_of(ndd.gaussian_blur(ndd.tensor(x, layout="HWC"), sigma=1.2))[0]
    assert rounded.dtype == np.float16
    np.testing.assert_allclose(rounded, theirs.astype(np.float32), atol=2e-3 * np.abs(exact).max())


@pytest.mark.oracle
def test_large_numbers(dali):
    """Where float32 has not all integers: as near as float32 gets; the highest numbers saturate."""
    for dtype in ("int32", "uint32", "int64", "uint64"):
        x = random_array(np.random.default_rng(4), (9, 11), dtype)
        ours, theirs = (arrays_of(outcome(m, blur(x, "HW", sigma=1.0)))[0].astype(np.float64) for m in (ndd, dali))
        np.testing.assert_allclose(ours, theirs, atol=1e-6 * np.abs(x.astype(np.float64)).max())
    full = np.full((3, 4), np.iinfo(np.uint8).max, np.uint8)
    assert check_same(dali, blur(full, "HW", sigma=1.0))


@pytest.mark.oracle
def test_windows_and_sigmas(dali):
    rng = np.random.default_rng(5)
    x = numbers(rng, (23, 25), "float32")
    for sigma in (0.001, 0.1, 1 / 3, 0.33333334, 0.5, 2 / 3, 1, 4 / 3, 2.0, 5.0, 12.0, [0.5, 2.0], (2.0, 0.5), [1.0]):
        assert check_same(dali, blur(x, "HW", sigma=sigma), 1e-5, sigma)
    for window in (1, 3, 7, 15, 17, 31, 61, [3, 7], [1, 5]):
        assert check_same(dali, blur(x, "HW", window_size=window), 1e-5, window)
    both = [(3, 2.0), (0, 1.0), (5, 0.0), ([0, 3], [1.0, 0.0]), ([3, 5], 1.5), (9, [0.4, 5.0])]
    for window, sigma in both:
        assert check_same(dali, blur(x, "HW", window_size=window, sigma=sigma), 1e-5, (window, sigma))
    assert check_same(dali, blur(x, "HW", sigma=np.array([1.0, 2.0], np.float32)), 1e-5)
    assert check_same(dali, blur(x, "HW", sigma=lambda m: m.tensor(np.float32([1.0, 2.0]))), 1e-5)


@pytest.mark.oracle
def test_arguments_of_samples(dali):
    rng = np.random.default_rng(6)
    images = [numbers(rng, (h, w, 3), "uint8") for h, w in ((10, 11), (5, 11), (10, 4))]
    arguments = [
        {"sigma": batch([1.0, 2.0, 3.0])},
        {"sigma": batch([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0]])},
        {"sigma": batch([np.float32([1]), np.float32([2, 1]), np.float32([1, 1])])},
        {"window_size": batch([3, 5, 7])},
        {"window_size": batch([3, 5, 7]), "sigma": batch([1.0, 2.0, 3.0])},
        {"window_size": batch([3, 0, 7]), "sigma": batch([0.0, 2.0, 3.0])},
        {"sigma": batch([1, 2, 3])},
        {"sigma": batch([1.0, 2.0, 3.0]), "dtype": "float32"},
        {"sigma": batch([1.0, 2.0, 3.0]), "window_size": 5},
    ]
    for args in arguments:
        assert check_same(dali, blur(images, "HWC", **args), 1e-5, list(args))


@pytest.mark.oracle
def test_video(dali):
    rng = np.random.default_rng(7)
    clips = [numbers(rng, (f, 6, 7, 2), "float32") for f in (3, 2)]
    for args in (
        {"sigma": batch([[1.0, 2.0, 3.0], [1.0, 0.5]], "F")},
        {"sigma": batch([[[1.0, 2.0]] * 3, [[1.0, 0.5]] * 2], "FX")},
        {"sigma": batch([[1.0], [2.0]], "F")},
        {"sigma": batch([1.0, 2.0])},
        {"sigma": 1.5},
        {"window_size": batch([[3, 5, 7], [3, 3]], "F")},
    ):
        assert check_same(dali, blur(clips, "FHWC", **args), 1e-5, list(args))
    assert not check_same(dali, blur(clips, "FHWC", sigma=batch([[1.0, 2.0], [1.0, 2.0]], "F")))


@pytest.mark.oracle
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (2, 2), (3, 2), (5, 4)])
def test_small_images(shape, dali):
    """Windows larger than the image: reflected more than once."""
    rng = np.random.default_rng(8)
    for window in (3, 7, 21):
        assert check_same(dali, blur(numbers(rng, shape, "uint8"), "HW", window_size=window), 1e-5)
        assert check_same(dali, blur(numbers(rng, (*shape, 3), "float32"), "HWC", window_size=window), 1e-5)
        assert check_same(dali, blur(numbers(rng, (2, *shape), "float32"), "DHW", window_size=window), 1e-5)


def test_no_elements():
    """DALI 2.4.0 dies of these."""
    for shape in ((0, 5, 3), (5, 0, 3), (5, 4, 0)):
        assert ndd.gaussian_blur(ndd.tensor(np.ones(shape, np.uint8), layout="HWC"), sigma=1.0).shape == shape


@pytest.mark.oracle
@pytest.mark.parametrize(
    "args",
    [
        {}, {"sigma": 0.0}, {"sigma": -1.0}, {"window_size": 4}, {"window_size": -3}, {"sigma": [1.0, 0.0]},
        {"sigma": [1.0, 2.0, 3.0]}, {"sigma": []}, {"sigma": np.float32([[1, 2]])}, {"sigma": float("nan")},
        {"sigma": float("inf")}, {"window_size": 3, "sigma": -1.0}, {"window_size": 2.6},
        {"sigma": 1.0, "dtype": "other"},
    ],
    ids=str,
)  # fmt: skip
def test_misuse(args, dali):
    x = np.ones((6, 7), np.uint8)

    def call(module):
        named = {k: getattr(module, "int16") if v == "other" else v for k, v in args.items()}
        return module.gaussian_blur(module.tensor(x, layout="HW"), **named)

    assert not check_same(dali, call)


@pytest.mark.oracle
@pytest.mark.parametrize("layout", ["C", "HCW", "FHCW", "HWF", "XYZT", "HWDTC", "FCFHW", "ABCD", "FHWCC"])
def test_wrong_layouts(layout, dali):
    assert not check_same(dali, blur(np.ones((2, 3, 4, 5, 6)[: len(layout)], np.uint8), layout, sigma=1.0))


@pytest.mark.oracle
def test_wrong_types_and_samples(dali):
    assert not check_same(dali, blur(np.ones((4, 5), bool), "HW", sigma=1.0))
    assert not check_same(dali, blur(np.ones((2, 2, 2, 2), np.uint8), None, sigma=1.0))
    images = [np.ones((4, 5), np.uint8)] * 3
    assert not check_same(dali, blur(images, "HW", window_size=batch([3, 4, 7])))
    with pytest.raises(RuntimeError, match=r"gaussian_blur: sample 1: .*odd"):
        ndd.gaussian_blur(ndd.batch(images, layout="HW"), window_size=ndd.batch([3, 4, 7])).evaluate()
    with pytest.raises(ValueError, match="too large"):
        ndd.gaussian_blur(ndd.tensor(images[0], layout="HW"), sigma=1e9).evaluate()


def photograph():
    return np.asarray(ndd.imread(sorted((Path(ndd.__file__).parent / "demo/photos").rglob("*.jpg"))[0]))


@pytest.mark.oracle
def test_a_photograph(dali):
    x = photograph()
    for args in ({"sigma": 1.5}, {"window_size": 9}):
        ours, theirs = (arrays_of(outcome(m, blur(x, "HWC", **args)))[0].astype(int) for m in (ndd, dali))
        assert np.abs(ours - theirs).max() <= 1
        assert (ours != theirs).mean() < 1e-4


def test_opencv_and_scipy_agree():
    cv2, ndimage = pytest.importorskip("cv2"), pytest.importorskip("scipy.ndimage")
    x = photograph()
    ours = arrays_of(ndd.gaussian_blur(ndd.tensor(x, layout="HWC"), window_size=[5, 9]))[0].astype(int)
    theirs = cv2.GaussianBlur(x, (9, 5), 0)
    assert np.abs(ours - theirs).max() <= 2  # its weights have 8 bits
    plane = x[..., 0].astype(np.float32)
    ours = arrays_of(ndd.gaussian_blur(ndd.tensor(plane, layout="HW"), sigma=2.0))[0]
    np.testing.assert_allclose(ours, cv2.GaussianBlur(plane, (13, 13), 2.0), atol=1e-3)
    np.testing.assert_allclose(ours, ndimage.gaussian_filter(plane, 2.0, mode="mirror", truncate=3.0), atol=1e-3)


def test_a_point_spreads_over_its_window():
    x = np.zeros((9, 9, 2), np.float32)
    x[4, 4, 1] = 1
    result = arrays_of(ndd.gaussian_blur(ndd.tensor(x, layout="HWC"), window_size=[3, 5]))[0]
    assert result[..., 0].max() == 0
    assert np.count_nonzero(result[..., 1]) == 15
    assert result.sum() == pytest.approx(1)
