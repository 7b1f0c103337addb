"""`ndd.resize_crop_mirror` beside DALI, beside its parts, and on the emulated GPU."""

import numpy as np
import pytest
from cases import Case
from compare import arrays_of, assert_same_values, check_same, outcome
from resize_calls import Draw, EachSample, given
from selection import repeated

import ndd

REGISTRY_CASES = {
    "resize_crop_mirror": [
        Case({"resize_shorter": 30, "crop": [12, 12]}, layouts=("HWC", "CHW", "FHWC"), dtypes=("uint8", "float32")),
        # In other layouts DALI mirrors another axis, or none.
        Case({"size": [30, 32], "crop": [12, 12], "mirror": 1}, layouts=("HWC",), dtypes=("uint8", "float32")),
    ],
}


def random_arguments(draw):
    pick = draw.pick
    number = lambda: round(pick.uniform(1, draw.largest), pick.randrange(3))  # noqa: E731
    arguments = {"size": draw.vector(number)} if pick.random() < 0.5 else {"resize_shorter": draw.scalar(number)}
    if pick.random() < 0.7:
        arguments["crop"] = draw.vector(number)
    elif pick.random() < 0.5:
        arguments |= {"crop_w": number(), "crop_h": number()}
    for axis in "xyz":
        if pick.random() < 0.5:
            arguments[f"crop_pos_{axis}"] = draw.scalar(lambda: round(pick.random(), 2))
    if draw.layout in ("HWC", "DHWC"):  # in other layouts DALI mirrors other axes, or none
        arguments["mirror"] = EachSample([np.array(pick.randrange(8), np.int32) for _ in range(draw.n)])
    if pick.random() < 0.3:
        arguments["rounding"] = "truncate"
    if pick.random() < 0.3:
        arguments["subpixel_scale"] = False
    if pick.random() < 0.5:
        arguments["interp_type"] = pick.choice([1, 2, 3, 4])
    return {**arguments, "max_size": 120.0}


def called(module, samples, layout, arguments):
    return outcome(module, lambda m: m.resize_crop_mirror(m.batch(samples, layout=layout), **given(m, arguments)))


@pytest.mark.parametrize("layout", ["HWC", "CHW", "FHWC", "DHWC", "CDHW"])
def test_random_arguments_as_dali(dali, layout):
    for seed in repeated(30, 10):
        draw = Draw(seed, layout, ("uint8", "float32")[seed % 2], 1 + seed % 3)
        arguments = random_arguments(draw)
        ours, theirs = (called(m, draw.samples, layout, arguments) for m in (ndd, dali))
        assert not isinstance(theirs, Exception), (arguments, theirs)
        assert not isinstance(ours, Exception), (arguments, ours)
        for x, y in zip(arrays_of(ours), arrays_of(theirs), strict=True):
            # The region of a window starts at a rounded place: up to 1e-4 of the range of random pixels.
            assert_same_values([x], [y], relative=1e-4, off_by_one=0.05 + 24 / max(x.size, 1))


def test_the_region_of_a_window_is_that_of_dali_to_the_last_bit(dali):
    for seed in repeated(40, 13):
        draw = Draw(seed, "HWC", "float32", 2)
        arguments = random_arguments(draw) | {"interp_type": 1, "antialias": False}
        ours, theirs = (arrays_of(called(m, draw.samples, "HWC", arguments)) for m in (ndd, dali))
        assert all(np.array_equal(x, y) for x, y in zip(ours, theirs, strict=True)), arguments


def test_it_is_the_three_operators_in_one():
    image = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    at_once = ndd.resize_crop_mirror(
        image,
        resize_shorter=30,
        crop=(20, 24),
        crop_pos_x=0.3,
        crop_pos_y=0.9,
        mirror=3,
        interp_type=ndd.types.INTERP_CUBIC,
    )
    resized = ndd.resize(image, resize_shorter=30, interp_type=ndd.types.INTERP_CUBIC)
    window = ndd.crop(resized, crop=(20, 24), crop_pos_x=0.3, crop_pos_y=0.9)
    assert_same_values(arrays_of(at_once), arrays_of(ndd.flip(window, horizontal=1, vertical=1)), off_by_one=0.01)


@pytest.mark.parametrize("layout", ["HWC", "CHW", "FHWC", "FCHW", "CFHW", "DHWC", "CDHW", "FDHWC"])
def test_mirrors_the_axes_it_says(layout):
    shape = [{"D": 3, "H": 4, "W": 6, "C": 2, "F": 2}[c] for c in layout]
    image = np.arange(np.prod(shape)).reshape(shape).astype(np.float32)
    size = [shape[layout.index(c)] for c in "DHW" if c in layout]
    for mirror in range(8):
        flipped = [layout.index(c) for c, bit in (("W", 1), ("H", 2), ("D", 4)) if mirror & bit and c in layout]
        result = ndd.resize_crop_mirror(ndd.tensor(image, layout=layout), size=size, mirror=mirror)
        np.testing.assert_array_equal(np.asarray(result), np.flip(image, flipped))


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"crop": [3, 4]},
        {"size": [5, 6], "crop": [3]},
        {"size": [5, 6], "crop": [3, 4], "crop_w": 3},
        {"size": [5, 6], "crop_w": 3},
        {"size": [5, 6], "crop_h": 3},
        {"size": [5, 6], "crop": [3, 4], "crop_pos_x": 1.2},
        {"size": [5, 6], "crop": [3, 4], "rounding": "floor"},
    ],
)
def test_errors_as_dali(dali, arguments):
    image = np.zeros((10, 12, 3), np.uint8)
    ours, theirs = (
        outcome(m, lambda m: m.resize_crop_mirror(m.tensor(image, layout="HWC"), **arguments)) for m in (ndd, dali)
    )
    assert isinstance(theirs, Exception)
    assert type(ours) is type(theirs)


@pytest.mark.parametrize("crop", [{}, {"crop": [3, 0]}, {"crop_w": 0.5, "crop_h": 4}])
def test_the_place_of_a_whole_extent_may_be_any_number(dali, crop):
    image = np.arange(360, dtype=np.uint8).reshape(10, 12, 3)
    assert check_same(
        dali,
        lambda m: m.resize_crop_mirror(m.tensor(image, layout="HWC"), size=[5, 6], crop_pos_x=-2.0, mirror=1, **crop),
    )


@pytest.mark.parametrize(
    ("crop", "expected"),
    [((0, 5), (8, 5)), ((-3, 5), (8, 5)), ((30, 5), (30, 5)), ((2, 4.9), (2, 4)), ((9, 3, 4), (3, 4)), (None, (8, 9))],
)
def test_windows(crop, expected):
    result = ndd.resize_crop_mirror(np.zeros((10, 12, 3), np.uint8), size=(8, 9), crop=crop)
    assert result.shape == (*expected, 3)


def test_gpu_as_cpu(emulated_gpu):
    rng = np.random.default_rng(1)
    batch = ndd.batch([rng.integers(0, 256, (h, 25, 3), dtype=np.uint8) for h in (20, 31)], layout="HWC")
    arguments = {
        "resize_shorter": 18,
        "crop": (12, 13),
        "crop_pos_x": ndd.batch([0.1, 0.8]),
        "mirror": ndd.batch([1, 2]),
    }
    on_cpu, on_gpu = (ndd.resize_crop_mirror(b, **arguments) for b in (batch, batch.gpu()))
    assert_same_values(arrays_of(on_gpu), arrays_of(on_cpu), off_by_one=0.01)
    assert emulated_gpu.launches == ["resample_plane"]
