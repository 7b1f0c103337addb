"""laplacian: against DALI for every type, layout and way to give arguments; OpenCV and SciPy; CPU and GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cases import each_of
from compare import arrays_of, check_same, outcome
from number_samples import random_array

import ndd

REGISTRY_CASES = {
    "laplacian": each_of(
        {}, {"window_size": 5, "scale": 0.5}, layouts=("HWC", "CHW", "DHWC"), dtypes=("uint8", "float32")
    ),
}

TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32")
SHAPES = {
    "HW": (7, 9), "HWC": (6, 7, 3), "CHW": (2, 6, 7), "FHW": (2, 5, 6), "FHWC": (2, 5, 6, 3), "FCHW": (2, 2, 5, 6),
    "CFHW": (2, 2, 5, 6), "DHW": (4, 5, 6), "DHWC": (4, 5, 6, 2), "CDHW": (2, 4, 5, 6), "FDHWC": (2, 3, 4, 5, 2),
    "FCDHW": (2, 2, 3, 4, 5), "W": (9,), "FWC": (2, 8, 3), "XYC": (5, 6, 4), None: (5, 6, 7),
}  # fmt: skip


def numbers(rng, shape, dtype):
    """Small enough that float32 holds sums of them."""
    if "int" in dtype:
        return (random_array(rng, shape, "uint8") // 2).astype(dtype)
    return random_array(rng, shape, dtype)


def whole_floats(rng, shape):
    """Sums of these are exact, also where they cancel out."""
    return numbers(rng, shape, "uint8").astype(np.float32)


def sharpen(arguments, layout=None, **args):
    """A call for `check_same`: NumPy arrays become handles of the module."""
    many = isinstance(arguments, list)

    def call(module):
        data = module.batch(arguments, layout=layout) if many else module.tensor(arguments, layout=layout)
        named = {k: v(module) if callable(v) else v for k, v in args.items()}
        if named.get("dtype") == "float32":
            named["dtype"] = module.float32
        return module.laplacian(data, **named)

    return call


def batch(values, layout=None):
    return lambda module: module.batch([np.asarray(v) for v in values], layout=layout)


@pytest.mark.drawn(3)
@pytest.mark.oracle
@pytest.mark.parametrize("layout", SHAPES)
def test_layouts(layout, dali):
    rng = np.random.default_rng(1)
    for dtype in ("uint8", "float32"):
        x = numbers(rng, SHAPES[layout], dtype)
        for args in ({}, {"window_size": 5, "smoothing_size": 3}, {"normalized_kernel": True}, {"smoothing_size": 1}):
            assert check_same(dali, sharpen(x, layout, **args), 1e-5, (dtype, args))


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", TYPES)
def test_element_types(dtype, dali):
    """Halves of integers are rounded away from zero, results saturate."""
    rng = np.random.default_rng(2)
    for layout in ("HWC", "DHW"):
        x = numbers(rng, SHAPES[layout], dtype)
        for scale in (1.0, 0.25, -0.5):
            assert check_same(dali, sharpen(x, layout, scale=scale), 0.0 if "int" in dtype else 1e-5, scale)
            assert check_same(dali, sharpen(x, layout, scale=scale, dtype="float32"), 1e-5, scale)


@pytest.mark.oracle
def test_half_floats_are_summed_as_floats(dali):
    x = random_array(np.random.default_rng(3), (8, 9, 3), "float16")
    exact = arrays_of(ndd.laplacian(ndd.tensor(x.astype(np.float32), layout="HWC")))[0]
    np.testing.assert_array_equal(arrays_of(ndd.laplacian(ndd.tensor(x, layout="HWC"), dtype=ndd.float32))[0], exact)
    theirs = arrays_of(outcome(dali, sharpen(x, "HWC")))[0].astype(np.float32)
    result = arrays_of(ndd.laplacian(ndd.tensor(x, layout="HWC")))[0]
    assert result.dtype == np.float16
    np.testing.assert_allclose(result, theirs, atol=3e-3 * np.abs(exact).max())


@pytest.mark.oracle
def test_windows_and_scales(dali):
    x = numbers(np.random.default_rng(4), (34, 35), "float32")
    for args in (
        {"window_size": 7}, {"window_size": 31}, {"window_size": [3, 5]}, {"window_size": [9, 3]}, {"window_size": [5]},
        {"smoothing_size": 31}, {"smoothing_size": [1, 7]}, {"window_size": [3, 5], "smoothing_size": [7, 1]},
        {"scale": [2.0, 3.0]}, {"scale": 0.3}, {"scale": [0.0, 1.0]}, {"scale": np.float32([1, 2])},
        {"window_size": [3, 5], "smoothing_size": [7, 1], "normalized_kernel": True}, {"window_size": 5.0},
        {"window_size": 11, "normalized_kernel": True}, {"scale": lambda m: m.tensor(np.float32([1, 2]))},
    ):  # fmt: skip
        assert check_same(dali, sharpen(x, "HW", **args), 1e-5, args)
    volume = numbers(np.random.default_rng(5), (6, 7, 8), "float32")
    for args in ({"window_size": [3, 5, 7]}, {"scale": [1.0, 2.0, 3.0]}, {"smoothing_size": [1, 3, 5]}):
        assert check_same(dali, sharpen(volume, "DHW", **args), 1e-5, args)
        assert check_same(dali, sharpen(volume[..., None], "DHWC", **args), 1e-5, args)


@pytest.mark.oracle
def test_arguments_of_samples(dali):
    rng = np.random.default_rng(6)
    images = [numbers(rng, (h, w, 3), "uint8") for h, w in ((10, 11), (5, 11), (10, 4))]
    for args in (
        {"window_size": batch([3, 5, 7])},
        {"scale": batch([1.0, 2.0, 0.5])},
        {"scale": batch([[1.0, 2.0]] * 3)},
        {"window_size": batch([[3, 5], [5, 3], [3, 3]])},
        {"smoothing_size": batch([1, 3, 5])},
        {"smoothing_size": batch([1, 3, 5]), "normalized_kernel": True},
        {"window_size": batch([3, 5, 7]), "smoothing_size": batch([[1, 3], [3, 5], [5, 1]]), "scale": 0.125},
    ):
        assert check_same(dali, sharpen(images, "HWC", dtype="float32", **args), 1e-5, list(args))
        assert check_same(dali, sharpen(images, "HWC", **args), 1e-5, list(args))


@pytest.mark.oracle
def test_video(dali):
    rng = np.random.default_rng(7)
    clips = [numbers(rng, (f, 6, 7, 2), "float32") for f in (3, 2)]
    for args in (
        {},
        {"window_size": batch([[3, 5, 7], [3, 3]], "F")},
        {"scale": batch([[[1.0, 2.0]] * 3, [[1.0, 0.5]] * 2], "FX")},
        {"scale": batch([1.0, 2.0])},
    ):
        assert check_same(dali, sharpen(clips, "FHWC", **args), 1e-5, list(args))


@pytest.mark.oracle
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (2, 2), (3, 2), (5, 4)])
def test_small_images(shape, dali):
    rng = np.random.default_rng(8)
    for window in (3, 9):
        assert check_same(dali, sharpen(numbers(rng, shape, "uint8"), "HW", window_size=window), 1e-5)
        assert check_same(dali, sharpen(whole_floats(rng, (*shape, 3)), "HWC", window_size=window), 1e-5)
        assert check_same(dali, sharpen(whole_floats(rng, (2, *shape)), "DHW", window_size=window), 1e-5)


def test_an_even_area_is_exactly_zero():
    for args in ({"scale": 0.3}, {"scale": [0.3, 0.7]}, {"window_size": 9, "scale": 0.1}):
        x = ndd.tensor(np.full((12, 13), 0.7, np.float32), layout="HW")
        assert np.abs(arrays_of(ndd.laplacian(x, **{**args, "window_size": 3}))[0]).max() == 0
        assert np.abs(arrays_of(ndd.laplacian(x, **args))[0]).max() < 1e-2


def test_no_elements():
    """DALI 2.4.0 dies of these."""
    for shape in ((0, 5, 3), (5, 0, 3), (5, 4, 0)):
        assert ndd.laplacian(ndd.tensor(np.ones(shape, np.uint8), layout="HWC")).shape == shape


@pytest.mark.oracle
@pytest.mark.parametrize(
    "args",
    [
        {"window_size": 0}, {"window_size": 1}, {"window_size": 4}, {"window_size": 33}, {"window_size": -3},
        {"smoothing_size": 0}, {"smoothing_size": 2}, {"smoothing_size": 33}, {"smoothing_size": -1},
        {"window_size": [3, 3, 3]}, {"smoothing_size": [3, 3, 3]}, {"scale": [1.0, 2.0, 3.0]}, {"scale": []},
        {"smoothing_size": []}, {"window_size": []}, {"window_size": [[3, 3]]},
        {"scale": 2.0, "normalized_kernel": True}, {"scale": 1.0, "normalized_kernel": True},
    ],
    ids=str,
)  # fmt: skip
def test_misuse(args, dali):
    assert not check_same(dali, sharpen(np.ones((6, 7), np.uint8), "HW", **args))


@pytest.mark.oracle
def test_wrong_types_layouts_and_samples(dali):
    for dtype in ("bool", "float64"):
        assert not check_same(dali, sharpen(np.ones((4, 5), dtype), "HW"))
    for layout in ("C", "HCW", "HWF", "XYZT", "FCFHW"):
        assert not check_same(dali, sharpen(np.ones((2, 3, 4, 5, 6)[: len(layout)], np.uint8), layout))
    assert not check_same(dali, lambda m: m.laplacian(m.tensor(np.ones((4, 5), np.uint8)), dtype=m.int16))
    images = [np.ones((4, 5), np.uint8)] * 3
    assert not check_same(dali, sharpen(images, "HW", window_size=batch([3, 4, 7])))
    assert not check_same(dali, sharpen(images, "HW", scale=batch([3.0, 4.0, 7.0]), normalized_kernel=True))
    with pytest.raises(RuntimeError, match=r"laplacian: sample 1: .*odd"):
        ndd.laplacian(ndd.batch(images, layout="HW"), window_size=ndd.batch([3, 4, 7])).evaluate()


@pytest.mark.oracle
def test_a_photograph(dali):
    x = np.asarray(ndd.imread(sorted((Path(ndd.__file__).parent / "demo/photos").rglob("*.jpg"))[0]))
    for args in ({}, {"window_size": 5, "normalized_kernel": True}):
        assert check_same(dali, sharpen(x, "HWC", **args), 0.0, args)
        assert check_same(dali, sharpen(x, "HWC", dtype="float32", **args), 1e-5, args)


def test_opencv_and_scipy_agree():
    cv2, ndimage = pytest.importorskip("cv2"), pytest.importorskip("scipy.ndimage")
    x = numbers(np.random.default_rng(9), (30, 31), "float32")
    for size in (3, 5, 7):
        ours = arrays_of(ndd.laplacian(ndd.tensor(x, layout="HW"), window_size=size))[0]
        np.testing.assert_allclose(ours, cv2.Laplacian(x, cv2.CV_32F, ksize=size), atol=1e-5 * np.abs(ours).max())
    ours = arrays_of(ndd.laplacian(ndd.tensor(x, layout="HW"), smoothing_size=1))[0]
    np.testing.assert_allclose(ours, cv2.Laplacian(x, cv2.CV_32F, ksize=1), atol=1e-5 * np.abs(ours).max())
    np.testing.assert_allclose(ours, ndimage.laplace(x, mode="mirror"), atol=1e-5 * np.abs(ours).max())
