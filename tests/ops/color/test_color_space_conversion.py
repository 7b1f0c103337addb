"""`ndd.color_space_conversion` beside DALI, OpenCV and Pillow, and on the emulated GPU."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from cases import each_of
from compare import arrays_of, check_same, outcome, value
from encoded import photograph
from PIL import Image

import ndd

_COLOR = ("HWC", "FHWC")

REGISTRY_CASES = {
    "color_space_conversion": each_of(
        {"image_type": 0, "output_type": 3},
        {"image_type": 0, "output_type": 2},
        {"image_type": 3, "output_type": 0},
        layouts=_COLOR,
        dtypes=("uint8",),
    ),
}

KINDS = ("RGB", "BGR", "GRAY", "YCbCr")
PAIRS = list(itertools.permutations(KINDS, 2))
SHAPES = {
    "HWC": [(7, 9), (1, 1), (1, 23), (5, 1)],
    "FHWC": [(2, 7, 9), (1, 3, 5), (3, 1, 1)],
    "DHWC": [(3, 4, 5), (1, 1, 7)],
    "FDHWC": [(2, 3, 4, 5), (1, 2, 1, 3)],
}


def channels_of(kind):
    return 1 if kind == "GRAY" else 3


def images(layout, kind, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 256, (*s, channels_of(kind))).astype(np.uint8) for s in SHAPES[layout]]


def converted(module, x, source, target):
    return module.color_space_conversion(
        x, image_type=getattr(module.types, source), output_type=getattr(module.types, target)
    )


def call(samples, layout, source, target, batched=True):
    """A function of the module that converts; DALI keeps its image types in a module of its own."""
    import nvidia.dali.types as dali_types

    def run(module):
        types = ndd.types if module is ndd else dali_types
        return module.color_space_conversion(
            value(module, samples, layout, batched),
            image_type=getattr(types, source), output_type=getattr(types, target),
        )  # fmt: skip

    return run


def all_colours(kind):
    """Every number of every channel beside 18 numbers of the others; all numbers of grey."""
    if kind == "GRAY":
        return np.arange(256, dtype=np.uint8).reshape(16, 16, 1)
    few, every = np.arange(0, 256, 15), np.arange(256)
    axes = [[every if i == k else few for i in range(3)] for k in range(3)]
    pixels = [np.stack(np.meshgrid(*a, indexing="ij"), -1).reshape(-1, 3) for a in axes]
    return np.concatenate(pixels).astype(np.uint8)[None]


def same_but_for_halves(result, expected):
    """Where the true value is within rounding of a half it may be rounded either way: 1 in 10,000 elements."""
    off = np.abs(result.astype(int) - expected)
    assert off.max(initial=0) <= 1
    assert (off != 0).mean() <= 1e-4


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_all_colours_as_dali(dali, source, target):
    x = all_colours(source)
    result, expected = (arrays_of(outcome(m, call([x], "HWC", source, target, False)))[0] for m in (ndd, dali))
    assert result.shape == expected.shape == (*x.shape[:2], channels_of(target))
    same_but_for_halves(result, expected)


@pytest.mark.parametrize(("source", "target"), PAIRS)
@pytest.mark.parametrize("layout", SHAPES)
@pytest.mark.drawn(3)
def test_layouts_and_sizes_as_dali(dali, source, target, layout):
    for batched in (True, False):
        assert check_same(dali, call(images(layout, source), layout, source, target, batched), 1e-6, layout)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_batches_of_one_shape(dali, source, target):
    rng = np.random.default_rng(4)
    for shape in ((3, 5), (70, 90)):
        samples = [rng.integers(0, 256, (*shape, channels_of(source))).astype(np.uint8) for _ in range(9)]
        assert check_same(dali, call(samples, "HWC", source, target), 1e-6, shape)


@pytest.mark.parametrize(("source", "target"), [("RGB", "GRAY"), ("GRAY", "BGR"), ("YCbCr", "RGB")])
def test_other_layouts_and_ranks_as_dali(dali, source, target):
    for layout in ("CHW", "HW", "FCHW", "WHC", "XYC", "DC"):
        x = np.full([channels_of(source) if c == "C" else 2 for c in layout], 77, np.uint8)
        assert not check_same(dali, call([x], layout, source, target, False), note=layout)
    for ndim in range(1, 6):
        x = np.full((*(2, 3, 1, 2)[: ndim - 1], channels_of(source)), 77, np.uint8)
        assert check_same(dali, call([x], None, source, target, False), note=ndim) == (ndim > 2)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_images_without_pixels(dali, source, target):
    """DALI refuses them where it leaves the work to OpenCV."""
    samples = [np.zeros((*s, channels_of(source)), np.uint8) for s in ((0, 4), (3, 0), (2, 2))]
    if "YCbCr" in (source, target):
        assert check_same(dali, call(samples, "HWC", source, target), 1e-6)
    result = arrays_of(converted(ndd, ndd.batch(samples, layout="HWC"), source, target))
    assert [a.shape for a in result] == [(*s.shape[:2], channels_of(target)) for s in samples]


def test_wrong_numbers_of_channels(dali):
    for source, target in PAIRS:
        for channels in {0, 1, 2, 3, 4} - {channels_of(source)}:
            good, bad = np.ones((2, 2, channels_of(source)), np.uint8), np.ones((2, 5, channels), np.uint8)
            assert not check_same(dali, call([good, bad], "HWC", source, target), note=(source, target, channels))
            with pytest.raises(
                RuntimeError, match=f"sample 1: expected {channels_of(source)} channel.* got {channels}"
            ):
                converted(ndd, ndd.batch([good, bad], layout="HWC"), source, target).evaluate()


@pytest.mark.parametrize("kind", ["int8", "uint16", "int16", "int32", "int64", "float16", "float32", "float64", "bool"])
def test_other_element_types_refused(dali, kind):
    assert not check_same(dali, call([np.ones((2, 2, 3), kind)], "HWC", "RGB", "GRAY", False))
    with pytest.raises(RuntimeError, match="Unsupported input type"):
        converted(ndd, ndd.tensor(np.ones((2, 2, 3), kind), layout="HWC"), "RGB", "GRAY")


def test_image_types_refused(dali):
    import nvidia.dali.types as dali_types

    x = np.ones((2, 2, 3), np.uint8)
    for kind in KINDS:
        x = np.ones((2, 2, channels_of(kind)), np.uint8)
        check_same(dali, call([x], "HWC", kind, kind, False), note=kind)
    for source, target in (("ANY_DATA", "RGB"), ("RGB", "ANY_DATA")):
        assert not check_same(dali, call([x], "HWC", source, target, False))
    for options in ({"image_type": "RGB"}, {"output_type": "GRAY"}, {"image_type": None}, {"dtype": 1}):

        def run(module, options=options):
            types = ndd.types if module is ndd else dali_types
            arguments = {"image_type": types.RGB, "output_type": types.GRAY} | options
            return module.color_space_conversion(module.tensor(x, layout="HWC"), **arguments)

        check_same(dali, run, note=options)
    check_same(dali, lambda m: m.color_space_conversion(m.tensor(x, layout="HWC")))


def test_numbers_of_image_types_are_taken():
    x = ndd.tensor(photograph()[:3, :4], layout="HWC")
    options = ndd.color_space_conversion(x, image_type=int(ndd.types.RGB), output_type=int(ndd.types.GRAY))
    np.testing.assert_array_equal(np.asarray(options), np.asarray(converted(ndd, x, "RGB", "GRAY")))


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_photograph_as_dali(dali, source, target):
    x = photograph() if source != "GRAY" else photograph()[..., 1:2].copy()
    result, expected = (arrays_of(outcome(m, call([x], "HWC", source, target, False)))[0] for m in (ndd, dali))
    same_but_for_halves(result, expected)


def test_grey_and_turned_channels_as_opencv():
    cv2 = pytest.importorskip("cv2")
    for image in (photograph(), all_colours("RGB")):
        x = ndd.tensor(np.ascontiguousarray(image), layout="HWC")
        grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
        np.testing.assert_array_equal(np.asarray(converted(ndd, x, "RGB", "GRAY"))[..., 0], grey)
        grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
        np.testing.assert_array_equal(np.asarray(converted(ndd, x, "BGR", "GRAY"))[..., 0], grey)
        np.testing.assert_array_equal(np.asarray(converted(ndd, x, "RGB", "BGR")), image[..., ::-1])


def test_grey_of_a_photograph_is_nearly_that_of_pillow():
    result = np.asarray(converted(ndd, ndd.tensor(photograph(), layout="HWC"), "RGB", "GRAY"))[..., 0]
    assert np.abs(result.astype(int) - np.asarray(Image.fromarray(photograph()).convert("L"))).max() <= 1


def test_ycbcr_is_pillow_s_in_studio_swing():
    """Pillow's YCbCr has the full swing: scaled, it is ours."""
    full = np.asarray(Image.fromarray(photograph()).convert("YCbCr")).astype(float)
    expected = full * np.array([219, 224, 224]) / 255 + np.array([16, 128 - 128 * 224 / 255, 128 - 128 * 224 / 255])
    result = np.asarray(converted(ndd, ndd.tensor(photograph(), layout="HWC"), "RGB", "YCbCr"))
    assert np.abs(result - expected).max() <= 1.5
    assert result.min() >= 16
    assert result[..., 0].max() <= 235


def test_there_and_back():
    x = ndd.tensor(photograph(), layout="HWC")
    for way in ("BGR", "YCbCr"):
        back = np.asarray(converted(ndd, converted(ndd, x, "RGB", way), way, "RGB")).astype(int)
        assert np.abs(back - photograph()).max() <= (3 if way == "YCbCr" else 0)


@pytest.mark.parametrize(("source", "target"), PAIRS)
@pytest.mark.drawn(1)
def test_gpu_equals_cpu(emulated_gpu, source, target):
    rng = np.random.default_rng(2)
    sizes = [(1, 1), (1, 3), (3, 5), (1, 15), (1, 16), (1, 17), (0, 4), (7, 31)]
    samples = [rng.integers(0, 256, (*s, channels_of(source))).astype(np.uint8) for s in sizes]
    expected = arrays_of(converted(ndd, ndd.batch(samples, layout="HWC"), source, target))
    before = len(emulated_gpu.launches)
    result = converted(ndd, ndd.batch(samples, layout="HWC").gpu(), source, target).evaluate()
    assert len(emulated_gpu.launches) == before + 1
    for a, b in zip(arrays_of(result), expected, strict=True):
        assert a.shape == b.shape
        assert np.abs(a.astype(int) - b).max(initial=0) <= emulated_gpu.real


def test_gpu_video(emulated_gpu):
    for layout in ("FHWC", "FDHWC"):
        samples = images(layout, "RGB")
        result = converted(ndd, ndd.batch(samples, layout=layout).gpu(), "RGB", "GRAY")
        assert result.layout == layout
        for a, b in zip(
            arrays_of(result), arrays_of(converted(ndd, ndd.batch(samples, layout=layout), "RGB", "GRAY")), strict=True
        ):
            np.testing.assert_array_equal(a, b)
