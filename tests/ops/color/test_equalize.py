"""`ndd.equalize` beside DALI and OpenCV, and on the emulated GPU."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from cases import each_of
from compare import arrays_of, check_same, value
from encoded import photograph

import ndd
from ndd._compiled.background import background
from ndd._compiled.sample_loops import _by_fallback
from ndd._operator import partition

REGISTRY_CASES = {
    "equalize": each_of({}, layouts=("HWC", "CHW", "HW", "FHWC", "FCHW"), dtypes=("uint8",), off_by_one=0.0),
}

SHAPES = {
    "HW": [(7, 9), (1, 1), (23, 4)],
    "HWC": [(7, 9, 3), (1, 1, 3), (5, 8, 1), (6, 6, 4), (3, 5, 17), (1, 9, 2)],
    "CHW": [(3, 7, 9), (1, 4, 4), (5, 6, 3)],
    "FHW": [(3, 7, 9), (1, 4, 4)],
    "FHWC": [(2, 7, 9, 3), (3, 4, 5, 1)],
    "FCHW": [(2, 3, 7, 9), (1, 2, 4, 5)],
}


def images(layout, levels=256, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(256 - levels, 256, s).astype(np.uint8) for s in SHAPES[layout]]


@pytest.mark.parametrize("layout", SHAPES)
@pytest.mark.parametrize("levels", [1, 2, 9, 256])
def test_as_dali(dali, layout, levels):
    samples = images(layout, levels)
    for batched in (True, False):
        assert check_same(dali, lambda m, b=batched: m.equalize(value(m, samples, layout, b)), note=layout)


@pytest.mark.parametrize("layout", SHAPES)
def test_batches_of_one_shape(dali, layout):
    rng = np.random.default_rng(6)
    sizes = {"H": 60, "W": 70, "F": 2}
    for channels in (1, 2, 3):
        shape = [sizes.get(c, channels) for c in layout]
        samples = [rng.integers(i, 256, shape).astype(np.uint8) for i in range(7)]
        assert check_same(dali, lambda m, s=samples: m.equalize(m.batch(s, layout=layout)), note=(layout, channels))


@pytest.mark.parametrize("ndim", range(6))
def test_without_layout(dali, ndim):
    x = np.random.default_rng(ndim).integers(0, 256, (2, 3, 4, 5, 2)[:ndim]).astype(np.uint8)
    assert check_same(dali, lambda m: m.equalize(m.tensor(x))) == (2 <= ndim <= 4)


@pytest.mark.parametrize("kind", ["int8", "uint16", "int16", "int32", "float16", "float32", "float64", "bool"])
def test_other_element_types_refused(dali, kind):
    check_same(dali, lambda m: m.equalize(m.tensor(np.ones((2, 3, 3), kind), layout="HWC")))
    with pytest.raises(RuntimeError, match="Unsupported input type"):
        ndd.equalize(ndd.tensor(np.ones((2, 3, 3), kind), layout="HWC"))


@pytest.mark.parametrize("layout", ["DHWC", "WHC", "HCW", "FDHWC", "XY"])
def test_other_layouts_refused(dali, layout):
    x = np.ones((2, 3, 4, 5, 2)[: len(layout)], np.uint8)
    assert not check_same(dali, lambda m: m.equalize(m.tensor(x, layout=layout)))


def test_what_dali_refuses():
    for shape in ((0, 5, 3), (4, 0, 3), (4, 5, 0)):
        assert ndd.equalize(ndd.tensor(np.ones(shape, np.uint8), layout="HWC")).shape == shape
    x = np.random.default_rng(1).integers(0, 256, (4, 5, 150)).astype(np.uint8)
    result = np.asarray(ndd.equalize(ndd.tensor(x, layout="HWC")))
    alone = np.asarray(ndd.equalize(ndd.tensor(np.ascontiguousarray(x[..., 140]), layout="HW")))
    np.testing.assert_array_equal(result[..., 140], alone)


def test_photograph_as_opencv(dali):
    cv2 = pytest.importorskip("cv2")
    image = photograph()
    assert check_same(dali, lambda m: m.equalize(m.tensor(image, layout="HWC")))
    result = np.asarray(ndd.equalize(ndd.tensor(image, layout="HWC")))
    for c in range(3):
        np.testing.assert_array_equal(result[..., c], cv2.equalizeHist(np.ascontiguousarray(image[..., c])))


def test_a_half_rounds_to_even(dali):
    # 255 / 2 and 3 * 255 / 2 ... of counts that end in one half.
    x = np.repeat(np.arange(7, dtype=np.uint8), 85)[None]
    assert check_same(dali, lambda m: m.equalize(m.tensor(x, layout="HW")))


@pytest.mark.parametrize("layout", SHAPES)
@pytest.mark.drawn(1)
def test_gpu_as_cpu(emulated_gpu, layout):
    for levels in (1, 256):
        samples = images(layout, levels)
        empty = np.ones([0 if c == "H" else n for c, n in zip(layout, samples[0].shape, strict=True)], np.uint8)
        batch = ndd.batch([*samples, empty], layout=layout)
        for a, b in zip(arrays_of(ndd.equalize(batch.gpu())), arrays_of(ndd.equalize(batch)), strict=True):
            np.testing.assert_array_equal(a, b)


def test_gpu_of_more_pixels_than_threads(emulated_gpu):
    big = np.random.default_rng(3).normal(128, 30, (150, 170, 3)).clip(0, 255).astype(np.uint8)
    batch = ndd.batch([big, big[:5, :6]], layout="HWC")
    emulated_gpu.launches.clear()
    result = arrays_of(ndd.equalize(batch.gpu()))
    assert emulated_gpu.launches == ["count", "equalize"]
    for a, b in zip(result, arrays_of(ndd.equalize(batch)), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("waits", [True, False])
def test_samples_that_lie_apart_or_are_strided(waits, monkeypatch):
    monkeypatch.setattr(background, "allowed", False)
    if not waits:
        monkeypatch.setattr(partition, "loop_over_samples", lambda item: functools.partial(_by_fallback, item))
    rng = np.random.default_rng(8)
    arrays = [rng.integers(k, 200, (300, 90 + 7 * k, 3), np.uint8) for k in range(6)]
    arrays += [np.zeros((0, 5, 3), np.uint8), arrays[0][:, ::-2], arrays[1].transpose(1, 0, 2)]
    with ndd.EvalContext(num_threads=3):
        result = ndd.equalize(ndd.as_batch([ndd.as_tensor(a, layout="HWC") for a in arrays]))
        for item, array in zip(result.tensors, arrays, strict=True):
            for c in range(3):
                alone = ndd.equalize(ndd.tensor(array[..., c], layout="HW"))
                np.testing.assert_array_equal(np.asarray(item)[..., c], np.asarray(alone))
