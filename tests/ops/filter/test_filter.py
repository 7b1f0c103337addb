"""filter: against DALI where it has a CPU variant, OpenCV and SciPy where not; CPU and GPU."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
from cases import each_of
from compare import arrays_of, check_same, outcome
from number_samples import random_array
from selection import drawn, drawn_types

import ndd
from ndd._compiled.background import background
from ndd._cpu.sampling import BORDERS as KINDS
from ndd.ops.filter.window_filter import filter_image

REGISTRY_INPUTS = {"filter": (lambda rng, i, dtype: rng.random((3, 3)).astype(np.float32), None)}
REGISTRY_CASES = {
    "filter": each_of(
        {},
        {"border": "constant", "anchor": [0, 2]},
        {"mode": "valid"},
        inputs=("plane", "filter"),
        dtypes=("uint8", "float32"),
    ),
}

SHAPES = {
    "HW": (7, 9), "HWC": (6, 7, 3), "CHW": (2, 6, 7), "FHW": (2, 5, 6), "FHWC": (2, 5, 6, 3), "FCHW": (2, 2, 5, 6),
    "XY": (5, 6), "CXY": (3, 5, 6), None: (8, 9),
}  # fmt: skip
BORDERS = ("reflect_101", "reflect_1001", "reflect", "wrap", "clamp", "edge", "constant", "fill", "REFLECT_101")


def numbers(rng, shape, dtype):
    return random_array(rng, shape, dtype) if dtype == "float32" else random_array(rng, shape, "uint8").astype(dtype)


def weights(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def run(arguments, kernel, fill=None, layout=None, **args):
    """A call for `check_same`: NumPy arrays become handles of the module."""
    many = isinstance(arguments, list)

    def call(module):
        data = module.batch(arguments, layout=layout) if many else module.tensor(arguments, layout=layout)
        named = {k: v(module) if callable(v) else v for k, v in args.items()}
        if "dtype" in named:
            named["dtype"] = getattr(module, named["dtype"])
        inputs = [v(module) if callable(v) else v for v in (kernel, fill)]
        return module.filter(data, *inputs, **named)

    return call


def batch(values, layout=None):
    return lambda module: module.batch(values, layout=layout)


@pytest.mark.oracle
@pytest.mark.parametrize("layout", SHAPES)
@pytest.mark.drawn(1)
def test_layouts(layout, dali):
    rng = np.random.default_rng(1)
    kernel = weights(rng, 3, 5)
    for dtype in drawn(("float32", "uint8"), 1, "filter"):  # most of the other tests have bytes
        x = numbers(rng, SHAPES[layout], dtype)
        for mode in ("same", "valid"):
            assert check_same(dali, run(x, kernel, layout=layout, mode=mode), 1e-5, (dtype, mode))


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
def test_element_types(dtype, dali):
    """Halves of integers are rounded to even, results saturate."""
    rng = np.random.default_rng(2)
    x = numbers(rng, (13, 15, 3), dtype) - (100 if dtype == "int16" else 0)
    for kernel in (weights(rng, 3, 3), np.full((1, 1), 0.5, np.float32), np.full((4, 4), -0.25, np.float32)):
        assert check_same(dali, run(x, kernel, layout="HWC"), 1e-5)
        assert check_same(dali, run(x, kernel, layout="HWC", dtype="float32"), 1e-5)
    assert check_same(dali, run(x, np.full((1, 1), 0.5, np.float32), layout="HWC"), 1e-7)
    assert check_same(dali, run(x, np.full((2, 2), 300.0, np.float32), layout="HWC"), 1e-5)


@pytest.mark.oracle
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.drawn(1)
def test_borders(border, dali):
    rng = np.random.default_rng(3)
    for shape in ((7, 9), (1, 4), (3, 1), (2, 3)):
        x = numbers(rng, shape, "float32")
        for size in ((3, 3), (1, 5), (4, 2), (5, 5), (7, 9), (15, 11)):
            assert check_same(dali, run(x, weights(rng, *size), layout="HW", border=border), 1e-5, (shape, size))
            product = weights(rng, size[0], 1) * weights(rng, 1, size[1])
            assert check_same(dali, run(x, product, layout="HW", border=border), 1e-5, (shape, size))


@pytest.mark.oracle
def test_anchors(dali):
    rng = np.random.default_rng(4)
    for height, width in ((2, 3), (6, 5)):
        x, kernel = numbers(rng, (8, 9, 2), "float32"), weights(rng, height, width)
        for anchor in (-1, 0, 1, [0, 0], [1, 2], [0, -1], [-1, 1], [height - 1, width - 1], [1.0, 2.0]):
            for border in ("reflect_101", "wrap", "constant"):
                assert check_same(dali, run(x, kernel, layout="HWC", anchor=anchor, border=border), 1e-5, anchor)
        product = weights(rng, height, 1) * weights(rng, 1, width)
        assert check_same(dali, run(x, product, layout="HWC", anchor=[1, 2]), 1e-5)


@pytest.mark.oracle
def test_fill_values(dali):
    rng = np.random.default_rng(5)
    for dtype, value in drawn((("uint8", 9), ("float32", 2.5)), 1, "fill values"):
        x, fill = numbers(rng, (6, 7, 2), dtype), np.array(value, dtype)
        for kernel in (weights(rng, 3, 4), np.ones((9, 9), np.float32) / 81):
            for border in ("constant", "reflect_101"):
                assert check_same(dali, run(x, kernel, fill, "HWC", border=border), 1e-5)
            assert check_same(dali, run(x, weights(rng, 2, 2), fill, "HWC", mode="valid"), 1e-5)


@pytest.mark.oracle
def test_arguments_of_samples(dali):
    rng = np.random.default_rng(6)
    images = [numbers(rng, (h, w, 3), "uint8") for h, w in ((10, 11), (5, 11), (10, 4))]
    kernels = [weights(rng, *s) for s in ((3, 3), (1, 2), (5, 3))]
    fills = batch([np.uint8(v) for v in (1, 5, 9)])
    for mode in ("same", "valid"):
        assert check_same(dali, run(images, batch(kernels), layout="HWC", mode=mode), 1e-5)
    assert check_same(dali, run(images, batch(kernels), fills, "HWC", border="constant"), 1e-5)
    assert check_same(dali, run(images, kernels[0], fills, "HWC", border="constant"), 1e-5)
    assert check_same(dali, run(images, kernels[0].tolist(), layout="HWC"), 1e-5)
    assert check_same(dali, run(images, lambda m: m.tensor(kernels[2]), layout="HWC"), 1e-5)
    assert check_same(dali, run(images[0], batch(kernels), layout="HWC"), 1e-5)
    anchors = batch([[0, 0], [0, 1], [4, -1]])
    assert check_same(dali, run(images, batch(kernels), layout="HWC", anchor=anchors), 1e-5)
    square = batch([weights(rng, 3, 3), weights(rng, 2, 2), weights(rng, 4, 4)])
    assert check_same(dali, run(images, square, layout="HWC", anchor=batch([0, 1, 2])), 1e-5)


@pytest.mark.oracle
def test_video(dali):
    rng = np.random.default_rng(7)
    clips = [numbers(rng, (f, 6, 7, 2), "uint8") for f in (3, 2)]
    each = [weights(rng, 2, 2), weights(rng, 3, 3)]
    frames = [weights(rng, 3, 2, 2), weights(rng, 2, 3, 3)]
    anchors = [np.array([[0, 0], [1, 1], [0, 1]], np.int32), np.array([[0, 0], [1, 1]], np.int32)]
    fills = [np.array([1, 2, 3], np.uint8), np.array([1, 2], np.uint8)]
    for call in (
        run(clips, batch(frames, "FHW"), layout="FHWC"),
        run(clips, batch(frames, "FHW"), layout="FHWC", mode="valid"),
        run(clips, batch(frames, "F**"), layout="FHWC"),
        run(clips, batch(each), layout="FHWC"),
        run(clips, each[0], layout="FHWC"),
        run(clips, batch(each), layout="FHWC", anchor=batch(anchors, "FX")),
        run(clips, batch(each), batch(fills, "F"), "FHWC", border="constant"),
        run(clips, batch(each), batch([np.uint8(1), np.uint8(2)]), "FHWC", border="constant"),
        run([c.transpose(0, 3, 1, 2).copy() for c in clips], batch(frames, "FHW"), layout="FCHW"),
    ):
        assert check_same(dali, call, 1e-5)
    same = [clips[0], clips[0][::-1].copy()]
    result = ndd.filter(ndd.batch(same, layout="FHWC"), ndd.tensor(frames[0], layout="FHW"))
    alone = ndd.filter(ndd.tensor(same[1], layout="FHWC"), ndd.tensor(frames[0], layout="FHW"))
    np.testing.assert_array_equal(arrays_of(result)[1], arrays_of(alone)[0])


@pytest.mark.oracle
def test_a_wrong_number_of_frames(dali):
    rng = np.random.default_rng(8)
    clips = [numbers(rng, (f, 6, 7, 2), "float32") for f in (3, 2)]
    for counts in ((2, 3), (1, 1), (2, 2)):  # the first has as many in all as there are frames
        kernels = batch([weights(rng, c, 2, 2) for c in counts], "FHW")
        assert not check_same(dali, run(clips, kernels, layout="FHWC"))
    fills = batch([np.ones(1, np.float32), np.ones(2, np.float32)], "F")
    assert not check_same(dali, run(clips, weights(rng, 2, 2), fills, "FHWC", border="constant"))
    kernels = ndd.batch([weights(rng, 3, 2, 2)] * 2, layout="FHW")
    with pytest.raises(RuntimeError, match=r"filter: sample 1: .* 2 frames.* 3"):
        ndd.filter(ndd.batch(clips, layout="FHWC"), kernels).evaluate()


@pytest.mark.oracle
def test_misuse(dali):
    rng = np.random.default_rng(9)
    x, kernel = numbers(rng, (4, 5), "uint8"), weights(rng, 2, 3)
    item = np.array([1], np.uint8)
    for call in (
        run(x, kernel, layout="HW", border="replicate"),
        run(x, kernel, layout="HW", border=""),
        run(x, kernel, layout="HW", mode="full"),
        run(x, kernel, layout="HW", dtype="int16"),
        run(x, kernel.astype(np.float64), layout="HW"),
        run(x, kernel.astype(np.int32), layout="HW"),
        run(x, kernel[0], layout="HW"),
        run(x, kernel[None], layout="HW"),
        run(x, np.float32(1), layout="HW"),
        run(x, np.ones((0, 3), np.float32), layout="HW"),
        run(x, kernel, np.float32(1), "HW", border="constant"),
        run(x, kernel, np.float32(1), "HW"),
        run(x, kernel, item, "HW"),
        run(x, weights(rng, 5, 3), layout="HW", mode="valid"),
        run([x, x[:3].copy()], weights(rng, 4, 3), layout="HW", mode="valid"),
        run([x, x], batch([kernel] * 3), layout="HW"),
        run(x, kernel, layout="HW", anchor=[1, 3]),
        run(x, kernel, layout="HW", anchor=[2, 0]),
        run(x, kernel, layout="HW", anchor=[-2, 0]),
        run(x, kernel, layout="HW", anchor=[5, 5], mode="valid"),
        run(x, kernel, layout="HW", anchor=[0, 1, 2]),
        run(x, kernel, layout="HW", anchor=[]),
        run(x.astype(np.int32), kernel, layout="HW"),
        run(x.astype(np.float64), kernel, layout="HW"),
        run(x > 3, kernel, layout="HW"),
        run(x[0], kernel[0], layout="W"),
        run(x[0], kernel[0]),
        run(x.reshape(1, 2, 2, 5), kernel, layout="CFHW"),
        run(x.reshape(2, 2, 5), kernel, layout="HCW"),
        run(x.reshape(2, 2, 5), kernel, layout="HWF"),
        run(x.reshape(1, 2, 2, 5), kernel),
        run(x.reshape(2, 2, 5), kernel),
    ):
        assert not check_same(dali, call)
    with pytest.raises(RuntimeError, match=r"filter: sample 1: .*bigger"):
        run([x, x[:3].copy()], weights(rng, 4, 3), layout="HW", mode="valid")(ndd).evaluate()


def test_no_elements():
    kernel = np.ones((3, 3), np.float32)
    for shape in ((0, 5, 3), (5, 0, 3), (5, 4, 0)):
        assert ndd.filter(ndd.tensor(np.ones(shape, np.uint8), layout="HWC"), kernel).shape == shape


def test_sums_beyond_32_bits_saturate():
    """DALI 2.4.0 gives 0 on the CPU."""
    x = ndd.tensor(np.array([[255, 0]], np.uint8), layout="HW")
    for size in (1, 25):
        kernel = np.zeros((size, size), np.float32)
        kernel[size // 2, size // 2] = 1e9
        np.testing.assert_array_equal(arrays_of(ndd.filter(x, kernel))[0], [[255, 0]])
        np.testing.assert_array_equal(arrays_of(ndd.filter(x, -kernel))[0], [[0, 0]])


@pytest.mark.parametrize("dtype", ["int8", "float16"])
def test_types_that_dali_has_on_the_gpu(dtype):
    x = random_array(np.random.default_rng(10), (9, 8, 3), "int8").astype(dtype)
    kernel = weights(np.random.default_rng(11), 3, 3)
    exact = arrays_of(ndd.filter(ndd.tensor(x.astype(np.float32), layout="HWC"), kernel))[0]
    result = arrays_of(ndd.filter(ndd.tensor(x, layout="HWC"), kernel))[0]
    assert result.dtype == dtype
    expected = np.clip(np.rint(exact), -128, 127) if dtype == "int8" else exact
    np.testing.assert_allclose(result.astype(np.float32), expected, rtol=1e-3, atol=0.1 if dtype == "float16" else 0)
    wide = arrays_of(ndd.filter(ndd.tensor(x, layout="HWC"), kernel, dtype=ndd.float32))[0]
    np.testing.assert_array_equal(wide, exact)


SCIPY = {"reflect_101": "mirror", "reflect_1001": "reflect", "wrap": "wrap", "clamp": "nearest", "constant": "constant"}


@pytest.mark.parametrize("border", SCIPY)
@pytest.mark.drawn(2)
def test_volumes(border):
    ndimage = pytest.importorskip("scipy.ndimage")
    rng = np.random.default_rng(12)
    x = numbers(rng, (5, 6, 7), "float32")
    for size in ((3, 3, 3), (1, 2, 3), (4, 3, 1), (7, 1, 1)):
        kernel, fill = weights(rng, *size), np.float32(3)
        expected = ndimage.correlate(x, kernel, mode=SCIPY[border], cval=3.0)
        tolerance = 1e-5 * np.abs(expected).max()
        result = arrays_of(ndd.filter(ndd.tensor(x, layout="DHW"), kernel, fill, border=border))[0]
        np.testing.assert_allclose(result, expected, atol=tolerance)
        pixels = np.stack([x, x * 2], axis=-1)
        result = arrays_of(ndd.filter(ndd.tensor(pixels, layout="DHWC"), kernel, fill, border=border))[0]
        np.testing.assert_allclose(result[..., 0], expected, atol=tolerance)
        planes = arrays_of(ndd.filter(ndd.tensor(np.stack([x, x]), layout="CDHW"), kernel, fill, border=border))[0]
        np.testing.assert_array_equal(planes[1], result[..., 0])


def test_valid_volumes_and_anchors():
    rng = np.random.default_rng(13)
    x, kernel = numbers(rng, (5, 6, 7), "float32"), weights(rng, 2, 3, 4)
    whole = arrays_of(ndd.filter(ndd.tensor(x), kernel, anchor=[0, 0, 0]))[0]
    valid = arrays_of(ndd.filter(ndd.tensor(x), kernel, mode="valid"))[0]
    assert valid.shape == (4, 4, 4)
    np.testing.assert_array_equal(valid, whole[:4, :4, :4])
    with pytest.raises(RuntimeError, match="bigger"):
        ndd.filter(ndd.tensor(x), weights(rng, 6, 1, 1), mode="valid").evaluate()


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_large_filters(dtype, dali, monkeypatch):
    """By OpenCV's Fourier transform, as a column and a row, or by plain sums where OpenCV would not be exact."""
    rng = np.random.default_rng(14)
    x = numbers(rng, (40, 50, 3), dtype)
    own = importlib.import_module("ndd.ops.filter.filter")
    for size in ((21, 23), (45, 31), (1, 140), (12, 12)):
        lines = np.outer(*(rng.random(s).astype(np.float32) for s in size)).astype(np.float32)
        kernel = weights(rng, *size) / 100
        for args in ({}, {"border": "wrap"}, {"border": "constant"}, {"anchor": [0, 3]}, {"lines": True}):
            arguments = lines / lines.sum() if args.pop("lines", False) else kernel
            assert check_same(dali, run(x, arguments, layout="HWC", **args), 2e-5, (size, args))
            with_opencv = arrays_of(ndd.filter(ndd.tensor(x, layout="HWC"), arguments, **args))[0]
            with monkeypatch.context() as patch:
                patch.setattr(own, "filter_planes", lambda *_: False)
                alone = arrays_of(ndd.filter(ndd.tensor(x, layout="HWC"), arguments, **args))[0]
            allowed = 2e-5 * np.abs(alone.astype(float)).max() if dtype == "float32" else 1
            np.testing.assert_allclose(with_opencv.astype(float), alone, atol=allowed)
            assert (with_opencv != alone).mean() < 0.01 or dtype == "float32"
        flat = np.ones(size, np.float32) / np.prod(size, dtype=np.float32)
        assert check_same(dali, run(x, flat, layout="HWC"), 2e-5, size)
    x = x.astype(np.float32)
    x[3, 4] = np.inf  # stays where it is
    result = arrays_of(ndd.filter(ndd.tensor(x, layout="HWC"), np.abs(kernel), border="constant"))[0]
    assert np.isfinite(result[-10:, -10:]).all()


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_borders_wider_than_the_image_and_many_channels(dtype, dali):
    rng = np.random.default_rng(17)
    for shape in ((3, 2, 3), (1, 1, 1), (1, 9, 5), (7, 1, 2), (4, 5, 130)):
        x = numbers(rng, shape, dtype)
        for size in ((3, 3), (2, 7), (9, 4), (13, 14)):
            kernel = weights(rng, *size) / 4
            for border in ("reflect_101", "reflect", "clamp", "constant", "wrap"):
                call = run(x, kernel, layout="HWC", border=border)
                if shape[2] > 4:  # as channels one by one
                    result = arrays_of(call(ndd))[0]
                    for c in (0, shape[2] - 1):
                        alone = arrays_of(
                            run(np.ascontiguousarray(x[..., c]), kernel, layout="HW", border=border)(ndd)
                        )[0]
                        np.testing.assert_allclose(
                            result[..., c].astype(float), alone, atol=1 if dtype == "uint8" else 0.01
                        )
                else:
                    assert check_same(dali, call, 2e-5, (shape, size, border))


@pytest.mark.oracle
def test_a_photograph(dali):
    x = np.asarray(ndd.imread(sorted((Path(ndd.__file__).parent / "demo/photos").rglob("*.jpg"))[0]))
    rng = np.random.default_rng(15)
    for kernel in (weights(rng, 3, 3), np.full((5, 5), 0.04, np.float32), np.full((8, 8), 1 / 64, np.float32)):
        ours, theirs = (arrays_of(outcome(m, run(x, kernel, layout="HWC")))[0].astype(int) for m in (ndd, dali))
        assert np.abs(ours - theirs).max() <= 1
        assert (ours != theirs).mean() < 1e-3
        assert check_same(dali, run(x, kernel, layout="HWC", dtype="float32"), 1e-5)


KINDS_OF_VALUES = ["uint8 uint8", pytest.param("uint8 float32", marks=pytest.mark.long), "float32 float32"]


@pytest.mark.parametrize("background_too", [True, False])
@pytest.mark.parametrize("kinds", KINDS_OF_VALUES)
def test_threads_take_samples_in_turn(kinds, background_too, monkeypatch):
    """Ragged, empty, strided and read-only ones, with small filters or such that are a column and a row: OpenCV is not asked."""
    cv2 = pytest.importorskip("cv2")
    monkeypatch.setattr(background, "allowed", background_too)
    rng, (arguments, wanted) = np.random.default_rng(19), kinds.split()
    sizes = [(30, 70, 3), (0, 5, 3), (1, 1, 3), (2, 90, 3), (60, 3, 3), (20, 90, 3)]
    images = [numbers(rng, s, arguments) for s in sizes]
    images[4] = images[4].repeat(2, 1)[:, ::2]
    images[0].flags.writeable = False
    apart = ndd.as_batch([ndd.as_tensor(a, layout="HWC") for a in images])
    small = [weights(rng, *s) for s in ((3, 3), (1, 1), (2, 5), (1, 8), (11, 11), (4, 3))]
    lines = [weights(rng, s, 1) * weights(rng, 1, s + 1) for s in (3, 5, 10, 9, 8, 4)]
    own = importlib.import_module("ndd.ops.filter.filter")
    with ndd.EvalContext(num_threads=3), monkeypatch.context() as patch:
        for name in ("filter_planes", "correlate"):
            patch.setattr(own, name, None)
        for kernels in (small, lines, [np.float32([[0.5, 0, 1]])] * 6):
            fill = ndd.batch([np.array(i, arguments) for i in range(6)])
            dtype = getattr(ndd, wanted)
            result = ndd.filter(apart, ndd.batch(kernels), fill, dtype=dtype, border="constant").tensors
            for i, (image, kernel, item) in enumerate(zip(images, kernels, result, strict=True)):
                if image.size:
                    top, left = kernel.shape[0] // 2, kernel.shape[1] // 2
                    edges = ((top, kernel.shape[0] - 1 - top), (left, kernel.shape[1] - 1 - left), (0, 0))
                    padded = np.pad(image.astype(np.float64), edges, constant_values=i)
                    expected = cv2.filter2D(padded, -1, kernel.astype(np.float64), anchor=(0, 0), borderType=1)
                    expected = expected.reshape(padded.shape)[: image.shape[0], : image.shape[1]]
                    allowed = 1e-5 * np.abs(expected).max()
                    if wanted == "uint8":
                        expected, allowed = np.clip(np.rint(expected), 0, 255), 1
                    np.testing.assert_allclose(np.asarray(item).astype(float), expected, rtol=0, atol=allowed)
    background.finish()


@pytest.mark.parametrize("kinds", KINDS_OF_VALUES)
def test_what_stands_in_is_the_same_to_the_bit(kinds):
    rng, (arguments, wanted) = np.random.default_rng(20), kinds.split()
    store = (np.float32(0), np.float32(255), True) if wanted == "uint8" else None
    small = [weights(rng, *s) for s in ((3, 3), (2, 5), (11, 11))]
    holes = np.float32([[0, 2, 0], [0, 0, 1]])
    lines = [weights(rng, s, 1) * weights(rng, 1, t) for s, t in ((4, 4), (13, 13), (8, 7), (41, 41))]
    for shape in ((2, 20, 30, 3), (1, 5, 7, 1), (1, 1, 1, 130)):
        image = numbers(rng, shape, arguments)
        for kernel in (*small, *lines, holes, np.zeros((2, 2), np.float32), weights(rng, 12, 12)):
            for border in KINDS.values():
                for by in ("same", "valid"):
                    origin = np.array([0, *np.array(kernel.shape) // 2 * (by == "same")])
                    taken = np.array(kernel.shape) - 1 if by == "valid" else np.zeros(2, int)
                    results = shape[1] - taken[0], shape[2] - taken[1]
                    if min(results) < 1:
                        continue
                    result = []
                    for run_by in (filter_image.compiled(), filter_image.run_fallback):
                        out = np.zeros((shape[0], *results, shape[3]), wanted)
                        run_by(image, kernel, np.full(1, 7, np.float32), out, origin, border, store)
                        result.append(out)
                    np.testing.assert_array_equal(*result)


def test_opencv_agrees():
    cv2 = pytest.importorskip("cv2")
    rng = np.random.default_rng(16)
    x, kernel = numbers(rng, (30, 31, 3), "uint8"), weights(rng, 4, 5)
    ours = arrays_of(ndd.filter(ndd.tensor(x, layout="HWC"), kernel))[0]
    assert (ours != cv2.filter2D(x, -1, kernel)).mean() < 1e-3


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("layout", "shape", "size", "args"),
    [
        ("HWC", (21, 30, 3), (3, 3), {}),
        ("HWC", (21, 30, 3), (5, 2), {"mode": "valid"}),
        ("HW", (20, 33), (11, 13), {"border": "wrap"}),
        ("CHW", (3, 9, 8), (4, 3), {"border": "constant", "anchor": [0, 2]}),
        ("FHWC", (2, 9, 8, 3), (3, 3), {"border": "clamp"}),
        ("DHWC", (4, 5, 6, 2), (3, 2, 3), {"border": "reflect_1001"}),
        ("DHW", (4, 5, 6), (2, 2, 2), {"mode": "valid"}),
        ("HW", (1, 1), (9, 9), {}),
    ],
    ids=str,
)
def test_gpu(layout, shape, size, args, emulated_gpu):
    rng = np.random.default_rng(17)
    kernel = weights(rng, *size)
    for dtype in drawn_types(("uint8", "int8", "float32"), 2, "filter"):
        smaller = tuple(e if c in "CF" else max(1, e - 1) for c, e in zip(layout, shape, strict=True))
        samples = [numbers(rng, s, dtype) for s in (shape, smaller)]
        fill = ndd.batch([np.array(v, dtype) for v in (3, 7)])
        for kernels in (kernel, ndd.batch([kernel, kernel[:-1] if size[0] > 3 else kernel * 2])):
            expected = arrays_of(ndd.filter(ndd.batch(samples, layout=layout), kernels, fill, **args))
            before = len(emulated_gpu.launches)
            gpu_kernels = kernels.gpu() if isinstance(kernels, ndd.Batch) else kernels
            data = ndd.batch(samples, layout=layout).gpu()
            result = ndd.filter(data, gpu_kernels, fill.gpu(), **args).evaluate()
            assert len(emulated_gpu.launches) == before + 1
            for a, b in zip(arrays_of(result), expected, strict=True):
                allowed = 1 if dtype != "float32" else 1e-5 * np.abs(b).max()
                np.testing.assert_allclose(a.astype(float), b, atol=allowed)


def test_gpu_without_a_fill_value_and_with_one_for_each_frame(emulated_gpu):
    rng = np.random.default_rng(18)
    clips = [numbers(rng, (f, 6, 7, 2), "float32") for f in (3, 2)]
    kernels = ndd.batch([weights(rng, 3, 2, 2), weights(rng, 2, 3, 3)], layout="FHW")
    fills = ndd.batch([np.array([1, 2, 3], np.float32), np.array([4, 5], np.float32)], layout="F")
    for extra in ((), (fills,)):
        expected = ndd.filter(ndd.batch(clips, layout="FHWC"), kernels, *extra, border="constant")
        result = ndd.filter(
            ndd.batch(clips, layout="FHWC").gpu(), kernels.gpu(), *[e.gpu() for e in extra], border="constant"
        )
        for a, b in zip(arrays_of(result), arrays_of(expected), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5 * np.abs(b).max())
