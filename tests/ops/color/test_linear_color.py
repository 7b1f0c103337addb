"""`hsv`, `hue`, `saturation`, `color_twist`, `brightness`, `contrast`, `brightness_contrast` beside DALI."""

from __future__ import annotations

import random

import numpy as np
import pytest
from cases import each_of
from compare import arrays_of, check_same, outcome, value
from encoded import photograph
from number_samples import NUMPY, borders, random_array
from selection import drawn_types, repeated

import ndd


def _color(*args):
    return each_of(*args, layouts=("HWC", "FHWC"), dtypes=("uint8", "int16", "int32", "float32"))


REGISTRY_CASES = {
    "hsv": _color({}, {"hue": 30.0, "saturation": 0.7, "value": 1.2}),
    "hue": _color({}, {"hue": 40.0}),
    "saturation": _color({}, {"saturation": 0.4}),
    "brightness": _color({}, {"brightness": 1.3, "brightness_shift": 0.1}),
    "contrast": _color({}, {"contrast": 0.6}),
    "brightness_contrast": _color({}, {"brightness": 1.2, "contrast": 0.7, "brightness_shift": -0.05}),
    "color_twist": _color({}, {"hue": 30.0, "saturation": 0.7, "brightness": 1.1, "contrast": 0.9}),
}

ARGUMENTS = {
    "hsv": {"hue": 31.0, "saturation": 0.7, "value": 1.2},
    "hue": {"hue": -75.5},
    "saturation": {"saturation": 1.6},
    "color_twist": {"brightness": 1.1, "contrast": 0.6, "hue": 200.0, "saturation": 0.4},
    "brightness": {"brightness": 1.3, "brightness_shift": 0.1},
    "contrast": {"contrast": 0.3, "contrast_center": 77.5},
    "brightness_contrast": {"brightness": 0.8, "contrast": -1.3, "brightness_shift": -0.2, "contrast_center": 3.5},
}
MATRICES = ("hsv", "hue", "saturation", "color_twist")
SCALINGS = ("brightness", "contrast", "brightness_contrast")
TYPES = ("u8", "i16", "i32", "f16", "f32")
PER_FRAME = {"hue": 90.0, "saturation": 1.5, "value": 1.5, "brightness": 1.5, "contrast": 1.5, "brightness_shift": 0.3}


def call_of(op, x, **arguments):
    """A function of the module that runs `op` on the array `x`; arrays among the arguments become batches."""
    return lambda m: getattr(m, op)(m.tensor(x, layout="HWC"), **arguments)


def types_of(op):
    return TYPES if op in MATRICES else ("u8", "i16", "i32", "f32")


# ---- values


@pytest.mark.parametrize("op", ARGUMENTS)
@pytest.mark.parametrize("source", TYPES)
@pytest.mark.drawn(1)
def test_every_type_rounds_and_saturates_as_dali(dali, op, source):
    """Extremes, halves, infinities and NaN of every type to every type; but to int16 finite numbers only: what DALI makes of
    the others there depends on the CPU (another value with AVX-512)."""
    if source not in types_of(op):
        pytest.skip("DALI refuses it")
    x = borders(source)
    x = x[: len(x) // 3 * 3].reshape(1, -1, 3)
    with np.errstate(invalid="ignore"):
        finite = x[:, (np.abs(x.astype(np.float64)) < 1e20).all(axis=(0, 2))]
    for target in drawn_types(types_of(op), 2, op):
        taken = finite if target == "i16" else x
        for more in ({}, {"brightness": 1e9} if "brightness" in ARGUMENTS[op] else {}):
            options = {**ARGUMENTS[op], **more}
            call = lambda m, x=taken, t=target, g=options: call_of(op, x, dtype=m.dtype(t), **g)(m)  # noqa: E731
            assert check_same(dali, call, 2e-7, (op, source, target))


@pytest.mark.parametrize("op", ARGUMENTS)
def test_bytes_are_exactly_dali_s(dali, op):
    rng = np.random.default_rng(3)
    x = rng.integers(0, 256, (90, 110, 3)).astype(np.uint8)
    for _ in range(12):
        options = {name: float(rng.uniform(-2, 3)) * (60 if name == "hue" else 1) for name in ARGUMENTS[op]}
        expected, result = (arrays_of(outcome(m, call_of(op, x, **options)))[0] for m in (dali, ndd))
        # The cosine of DALI's C library may differ in the last bit of a float.
        different = result.astype(int) - expected
        assert abs(different).max() <= (1 if "hue" in options else 0), options
        assert (different != 0).mean() < 1e-4, options


@pytest.mark.parametrize("op", ARGUMENTS)
@pytest.mark.drawn(2)
def test_defaults_change_nothing(dali, op):
    x = np.random.default_rng(0).integers(0, 256, (9, 11, 3)).astype(np.uint8)
    assert check_same(dali, call_of(op, x))
    np.testing.assert_array_equal(np.asarray(getattr(ndd, op)(ndd.tensor(x, layout="HWC"))), x)
    for source in types_of(op):
        expected = ndd.uint8 if op == "hsv" else ndd.dtype(source)
        assert getattr(ndd, op)(ndd.tensor(x.astype(NUMPY[source]), layout="HWC")).dtype is expected


@pytest.mark.parametrize("source", ["u8", "i16", "i32", "f32"])
def test_range_and_centre_follow_the_types(dali, source):
    """The centre of contrast is that of the input, the shift of brightness that of the output."""
    x = np.arange(24).reshape(2, 4, 3).astype(NUMPY[source])
    for target in drawn_types(("u8", "i16", "i32", "f32"), 2, "linear_color"):
        for op, options in (
            ("brightness_contrast", {"contrast": 0.25, "brightness_shift": 0.125}),
            ("brightness", {"brightness": 0.5, "brightness_shift": 0.4}),
            ("contrast", {"contrast": 0.0}),
            ("color_twist", {"contrast": 0.25, "brightness": 0.5}),
        ):
            assert check_same(dali, lambda m, o=op, g=options, t=target: call_of(o, x, dtype=m.dtype(t), **g)(m))


def random_call(pick, rng, op):
    layout, n = pick.choice(["HWC", "HWC", "FHWC", "DHWC"]), pick.choice([None, 1, 3, 4])
    channels = 3 if op in MATRICES else pick.choice([1, 2, 3, 4])
    types = drawn_types(types_of(op), 1, op)  # the other tests have more
    kind = NUMPY[pick.choice(types)]
    samples = []
    for _ in range(n or 1):
        extents = {"F": pick.randint(1, 3), "D": pick.randint(1, 3), "H": pick.randint(1, 9), "W": pick.randint(1, 40)}
        samples.append(random_array(rng, [extents.get(c, channels) for c in layout], kind))
    constants, each, frames, lone = {}, {}, {}, {}
    for name in ARGUMENTS[op]:
        scale = 360 if name == "hue" else 1
        way = pick.random()
        if n and way < 0.4:
            each[name] = (rng.uniform(-1, 2, n) * scale).astype(np.float32)
        elif n and layout[0] == "F" and way < 0.7 and name in PER_FRAME:
            frames[name] = [(rng.uniform(-1, 2, len(s)) * scale).astype(np.float32) for s in samples]
        elif way < 0.8:
            constants[name] = pick.uniform(-1, 2) * scale
        else:
            lone[name] = np.float32(pick.uniform(-1, 2) * scale)
    target = pick.choice([None, *types])

    def call(m):
        options = dict(constants)
        options |= {k: m.batch(list(v)) for k, v in each.items()}
        options |= {k: m.batch(v, layout="F") for k, v in frames.items()}
        options |= {k: m.tensor(v) for k, v in lone.items()}
        if target:
            options["dtype"] = m.dtype(target)
        return getattr(m, op)(value(m, samples, layout, n is not None), **options)

    note = (op, layout, [s.shape for s in samples], kind, target, constants, each, frames, lone)
    return call, note


@pytest.mark.parametrize("op", ARGUMENTS)
@pytest.mark.drawn(1)
def test_arguments_layouts_and_batches_as_dali(dali, op):
    pick, rng = random.Random(op), np.random.default_rng(5)
    good = 0
    trials = repeated(60, 20)
    for _ in trials:
        call, note = random_call(pick, rng, op)
        good += check_same(dali, call, 1e-6, note)
    assert good * 60 > 50 * len(trials)


@pytest.mark.parametrize("op", ARGUMENTS)
@pytest.mark.parametrize("shape", [(5, 7, 3), (60, 50, 3)])
@pytest.mark.drawn(1)
def test_batches_of_one_shape(dali, op, shape):
    """Samples of one shape are computed together: with values for each, for all, and of all types."""
    rng = np.random.default_rng(11)
    for kind in drawn_types(types_of(op), 1, op):
        samples = [random_array(rng, shape, NUMPY[kind]) for _ in range(9)]
        values = {k: (rng.uniform(-1, 2, 9) * (360 if k == "hue" else 1)).astype(np.float32) for k in ARGUMENTS[op]}
        for target in {kind, "u8", "f32"}:
            for own in (values, dict(list(values.items())[:1]), {}):

                def call(m, own=own, target=target, samples=samples):
                    options = {k: m.batch(list(v)) for k, v in own.items()}
                    options |= {k: v for k, v in ARGUMENTS[op].items() if k not in own}
                    return getattr(m, op)(m.batch(samples, layout="HWC"), dtype=m.dtype(target), **options)

                assert check_same(dali, call, 1e-6, (kind, target, list(own)))


def test_an_argument_for_each_frame(dali):
    video = np.random.default_rng(0).integers(0, 256, (4, 5, 7, 3)).astype(np.uint8)
    factors = np.array([0.0, 0.5, 1.0, 2.0], np.float32)

    def call(m):
        return m.brightness(m.batch([video, video[:2]], layout="FHWC"),
                            brightness=m.batch([factors, factors[:2]], layout="F"))  # fmt: skip

    assert check_same(dali, call)
    first = np.asarray(call(ndd).select(0))
    assert not first[0].any()
    np.testing.assert_array_equal(first[2], video[2])
    with pytest.raises(RuntimeError, match="3 values for 4 frames"):
        ndd.hue(ndd.batch([video], layout="FHWC"), hue=ndd.batch([factors[:3]], layout="F")).evaluate()


def test_other_ways_to_give_values_of_samples(dali):
    import torch

    x = np.random.default_rng(1).integers(0, 256, (3, 6, 5, 3)).astype(np.uint8)
    hues = [10.0, 120.0, 300.0]
    expected = arrays_of(dali.hue(dali.batch(list(x), layout="HWC"), hue=dali.batch(hues)).evaluate())
    for options in (ndd.batch(hues), ndd.batch(np.array(hues, np.float64)), ndd.batch(torch.tensor(hues))):
        result = arrays_of(ndd.hue(ndd.batch(list(x), layout="HWC"), hue=options))
        for a, b in zip(result, expected, strict=True):
            np.testing.assert_array_equal(a, b)


# ---- shapes and misuse


@pytest.mark.parametrize("op", ARGUMENTS)
@pytest.mark.parametrize("shape", [(0, 4, 3), (4, 0, 3), (1, 1, 3), (1, 17, 3), (17, 1, 3)])
def test_tiny_and_empty(dali, op, shape):
    x = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    for dtype in ("u8", "f32"):
        assert check_same(dali, lambda m, d=dtype: call_of(op, x, dtype=m.dtype(d), **ARGUMENTS[op])(m), 1e-6)


@pytest.mark.parametrize("op", ARGUMENTS)
def test_layouts_as_dali(dali, op):
    for layout in ("HWC", "FHWC", "DHWC", "CHW", "FCHW", "FDHWC", "WHC"):  # HW: DALI refuses masks
        shape = [3 if c == "C" else 2 for c in layout]
        x = np.full(shape, 90, np.uint8)
        check_same(dali, lambda m, x=x, v=layout: getattr(m, op)(m.tensor(x, layout=v)), note=layout)
    for ndim in (1, 3, 4, 5):
        x = np.full((2,) * (ndim - 1) + (3,), 90, np.uint8)
        check_same(dali, lambda m, x=x: getattr(m, op)(m.tensor(x)), note=ndim)


@pytest.mark.parametrize("op", ARGUMENTS)
def test_element_types_refused_as_dali(dali, op):
    for kind in ("i8", "u16", "u32", "u64", "i64", "f64", "bool"):
        x = np.ones((2, 2, 3), NUMPY[kind])
        check_same(dali, call_of(op, x), note=kind)
        with pytest.raises(RuntimeError, match=f"{op}: Unsupported input type: {kind}"):
            getattr(ndd, op)(ndd.tensor(x, layout="HWC"))
        with pytest.raises(RuntimeError, match=f"{op}: Unsupported output type: {kind}"):
            getattr(ndd, op)(ndd.tensor(x.astype(np.uint8), layout="HWC"), dtype=ndd.dtype(kind))


@pytest.mark.parametrize("op", MATRICES)
@pytest.mark.parametrize("channels", [0, 1, 2, 4])
def test_colours_have_three_channels(op, channels):
    """DALI reads and writes past the end of such images."""
    good, bad = np.ones((2, 2, 3), np.uint8), np.ones((2, 5, channels), np.uint8)
    with pytest.raises(RuntimeError, match=rf"{op}: sample 1: expected 3 channels \(RGB\), got {channels}"):
        getattr(ndd, op)(ndd.batch([good, bad], layout="HWC")).evaluate()


@pytest.mark.parametrize("op", SCALINGS)
def test_any_number_of_channels_can_be_scaled(dali, op):
    for channels in (0, 1, 2, 5):
        x = np.random.default_rng(0).integers(0, 256, (3, 7, channels)).astype(np.uint8)
        assert check_same(dali, call_of(op, x, **ARGUMENTS[op]))


@pytest.mark.parametrize("op", SCALINGS)
def test_float16_where_dali_refuses_it(op):
    x = np.random.default_rng(0).random((5, 6, 3)).astype(np.float16)
    options = {k: v for k, v in ARGUMENTS[op].items() if k != "contrast_center"}
    wide = np.asarray(getattr(ndd, op)(ndd.tensor(x.astype(np.float32), layout="HWC"), **options))
    result = getattr(ndd, op)(ndd.tensor(x, layout="HWC"), **options)
    assert result.dtype is ndd.float16
    np.testing.assert_array_equal(np.asarray(result), wide.astype(np.float16))


@pytest.mark.parametrize("op", ["hue", "saturation", "color_twist"])
def test_image_type_has_no_effect(op):
    x = ndd.tensor(np.full((2, 2, 3), 9, np.uint8), layout="HWC")
    with pytest.warns(DeprecationWarning, match="image_type"):
        result = getattr(ndd, op)(x, image_type=ndd.types.GRAY, **ARGUMENTS[op])
    np.testing.assert_array_equal(np.asarray(result), np.asarray(getattr(ndd, op)(x, **ARGUMENTS[op])))


@pytest.mark.parametrize(
    "given", ["much", "1.5", [1.5], (2,), [[2.0]], ["3"], [1.0, 2.0], [], ["a"], {}, True, None, 1j]
)
def test_what_counts_as_a_number(dali, given):
    x = np.full((1, 2, 3), 9, np.uint8)
    check_same(dali, call_of("brightness", x, brightness=given))
    check_same(dali, call_of("hue", x, hue=given))


@pytest.mark.parametrize("given", [float("nan"), float("inf")])
def test_no_number_and_infinity(dali, given):
    x = np.full((1, 2, 3), 10, np.uint8)
    for op, name in (("hue", "hue"), ("brightness", "brightness"), ("saturation", "saturation")):
        assert check_same(dali, call_of(op, x, **{name: given}), note=op)


# ---- real images, other libraries


@pytest.mark.parametrize("op", ARGUMENTS)
def test_photograph_as_dali(dali, op):
    image = photograph()
    assert check_same(dali, call_of(op, image, **ARGUMENTS[op]), 1e-6)


def test_brightness_of_a_photograph_as_pillow():
    enhance = pytest.importorskip("PIL.ImageEnhance")
    from PIL import Image

    image = photograph()
    expected = np.asarray(enhance.Brightness(Image.fromarray(image)).enhance(1.4)).astype(int)
    result = np.asarray(ndd.brightness(ndd.tensor(image, layout="HWC"), brightness=1.4)).astype(int)
    assert set(np.unique(result - expected)) <= {0, 1}  # Pillow drops the fraction


def test_saturation_of_a_photograph_is_nearly_that_of_pillow():
    enhance = pytest.importorskip("PIL.ImageEnhance")
    from PIL import Image

    image = photograph()
    expected = np.asarray(enhance.Color(Image.fromarray(image)).enhance(0.5)).astype(int)
    result = np.asarray(ndd.saturation(ndd.tensor(image, layout="HWC"), saturation=0.5)).astype(int)
    assert abs(result - expected).max() <= 2


def test_hue_turns_a_photograph_around(dali):
    """There and back again, in floats, and the matrix of half a turn by hand."""
    x = photograph().astype(np.float32) / 255
    there = ndd.hue(ndd.tensor(x, layout="HWC"), hue=100.0)
    np.testing.assert_allclose(np.asarray(ndd.hue(there, hue=-100.0)), x, atol=1e-5)
    to_yiq = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
    matrix = np.linalg.inv(to_yiq) @ np.diag([1, -1, -1]) @ to_yiq
    np.testing.assert_allclose(np.asarray(ndd.hue(ndd.tensor(x, layout="HWC"), hue=180.0)), x @ matrix.T, atol=1e-5)


# ---- GPU


@pytest.mark.parametrize("op", ARGUMENTS)
@pytest.mark.drawn(1)
def test_gpu_equals_cpu(emulated_gpu, op):
    """Sizes around a thread's share, samples at any address, every pair of types; one launch."""
    rng = np.random.default_rng(2)
    sizes = [(1, 1), (1, 3), (1, 7), (3, 5), (1, 8), (1, 9), (5, 13), (0, 4), (7, 31)]
    for source in drawn_types(TYPES, 2, op):
        samples = [rng.random((h, w, 3)) * (1 if source[0] == "f" else 255) for h, w in sizes]
        samples = [s.astype(NUMPY[source]) for s in samples]
        each = {k: rng.uniform(0, 2, len(samples)).astype(np.float32) for k in ARGUMENTS[op]}
        for target in drawn_types(TYPES, 2, op):
            options = {"dtype": ndd.dtype(target), **{k: ndd.batch(list(v)) for k, v in each.items()}}
            expected = arrays_of(getattr(ndd, op)(ndd.batch(samples, layout="HWC"), **options))
            before = len(emulated_gpu.launches)
            result = getattr(ndd, op)(ndd.batch(samples, layout="HWC").gpu(), **options).evaluate()
            assert len(emulated_gpu.launches) == before + 1
            for a, b in zip(arrays_of(result), expected, strict=True):
                if emulated_gpu.real:  # one rounding less: multiplication and addition are one instruction there
                    np.testing.assert_allclose(a.astype(np.float64), b, rtol=1e-3, atol=1)
                else:
                    np.testing.assert_array_equal(a, b)


def test_gpu_video_with_arguments_for_each_frame(emulated_gpu):
    videos = [np.random.default_rng(i).integers(0, 256, (2 + i, 5, 7, 3)).astype(np.uint8) for i in range(3)]
    hues = [np.arange(len(v), dtype=np.float32) * 50 for v in videos]
    expected = arrays_of(ndd.hsv(ndd.batch(videos, layout="FHWC"), hue=ndd.batch(hues, layout="F")))
    result = ndd.hsv(ndd.batch(videos, layout="FHWC").gpu(), hue=ndd.batch(hues, layout="F"))
    assert result.layout == "FHWC"
    for a, b in zip(arrays_of(result), expected, strict=True):
        assert abs(a.astype(int) - b).max() <= emulated_gpu.real
