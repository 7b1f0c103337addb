"""`ndd.clahe` beside DALI and OpenCV, and on the emulated GPU."""

from __future__ import annotations

import numpy as np
import pytest
from cases import each_of
from compare import arrays_of, check_same, value
from encoded import photograph

import ndd
from ndd._compiled.background import background
from ndd._operator.call import Call
from ndd.ops.color.clahe import _equalize
from ndd.ops.color.lab import lab_tables, lab_to_rgb, rgb_to_lab

REGISTRY_CASES = {
    "clahe": each_of(
        {"tiles_x": 4, "tiles_y": 4, "clip_limit": 2.0},
        {"tiles_x": 3, "tiles_y": 5, "clip_limit": 1.5, "luma_only": False},
        layouts=("HWC",),
        dtypes=("uint8",),
        off_by_one=0.0,
    ),
}

SIZES = [(23, 31), (64, 48), (1, 1), (1, 7), (9, 1), (40, 17)]
CALLS = [
    {"tiles_x": 8, "tiles_y": 8, "clip_limit": 2.0},
    {"tiles_x": 3, "tiles_y": 5, "clip_limit": 4.0},
    {"tiles_x": 1, "tiles_y": 1, "clip_limit": 1.0},
    {"tiles_x": 16, "tiles_y": 2, "clip_limit": 0.3},
    {"tiles_x": 50, "tiles_y": 70, "clip_limit": 2.0},
    {"tiles_x": 2, "tiles_y": 2, "clip_limit": 0.0},
    {"tiles_x": 2, "tiles_y": 3, "clip_limit": -1.0},
    {"tiles_x": 2, "tiles_y": 3, "clip_limit": float("nan")},
    {"tiles_x": 4, "tiles_y": 4, "clip_limit": 40.0, "bins": 128},
]


def images(channels, seed=0):
    rng = np.random.default_rng(seed)
    result = [rng.integers(0, 256, (*s, channels)).astype(np.uint8) for s in SIZES]
    smooth = np.mgrid[0:60, 0:45].sum(0)[..., None] + 5 * np.arange(channels)
    return [*result, smooth.astype(np.uint8), np.full((12, 12, channels), 77, np.uint8)]


@pytest.mark.parametrize("arguments", CALLS, ids=str)
@pytest.mark.parametrize(("channels", "luma"), [(1, True), (1, False), (3, True), (3, False)])
def test_as_dali(dali, arguments, channels, luma):
    options = {**arguments, "luma_only": luma}
    for batched in (True, False):
        assert check_same(dali, lambda m, b=batched: m.clahe(value(m, images(channels), "HWC", b), **options))


def test_channels_may_differ_between_samples(dali):
    samples = [images(1)[0], images(3)[1]]
    assert check_same(dali, lambda m: m.clahe(m.batch(samples, layout="HWC"), **CALLS[0]))


def test_photograph_as_opencv(dali):
    cv2 = pytest.importorskip("cv2")
    image = photograph()
    for luma in (True, False):
        assert check_same(dali, lambda m, k=luma: m.clahe(m.tensor(image), luma_only=k, **CALLS[0]))
    reference = cv2.createCLAHE(2.0, (8, 8))
    lab = cv2.cvtColor(image, cv2.COLOR_RGB2Lab)
    lab[..., 0] = reference.apply(np.ascontiguousarray(lab[..., 0]))
    result = np.asarray(ndd.clahe(ndd.tensor(image, layout="HWC"), **CALLS[0]))
    np.testing.assert_array_equal(result, cv2.cvtColor(lab, cv2.COLOR_Lab2RGB))


@pytest.mark.parametrize("background_too", [True, False])
@pytest.mark.parametrize("luma", [True, False])
def test_threads_take_samples_in_turn(luma, background_too, monkeypatch):
    """Ragged, empty, strided and read-only ones, of 1 and 3 channels: none of them is a task of its own."""
    cv2 = pytest.importorskip("cv2")
    monkeypatch.setattr(background, "allowed", background_too)
    monkeypatch.setattr(Call, "spread", None)
    samples = [*images(3), np.ones((0, 4, 3), np.uint8), *images(1), photograph()[:150, :170]]
    samples[0] = samples[0].repeat(2, 1)[:, ::2]
    samples[1].flags.writeable = False
    apart = ndd.as_batch([ndd.as_tensor(a, layout="HWC") for a in samples])
    whole = ndd.batch([samples[1]] * 5, layout="HWC")
    reference = cv2.createCLAHE(2.0, (8, 8))
    with ndd.EvalContext(num_threads=3):
        result = [
            *ndd.clahe(apart, luma_only=luma, **CALLS[0]).tensors,
            *ndd.clahe(whole, luma_only=luma, **CALLS[0]).tensors,
        ]
    for sample, item in zip([*samples, *[samples[1]] * 5], result, strict=True):
        if sample.size:
            expected = np.ascontiguousarray(sample)
            if luma and sample.shape[2] == 3:
                lab = cv2.cvtColor(expected, cv2.COLOR_RGB2Lab)
                lab[..., 0] = reference.apply(np.ascontiguousarray(lab[..., 0]))
                expected = cv2.cvtColor(lab, cv2.COLOR_Lab2RGB)
            else:
                planes = [reference.apply(np.ascontiguousarray(plane)) for plane in expected.transpose(2, 0, 1)]
                expected = np.stack(planes, axis=-1)
            np.testing.assert_array_equal(np.asarray(item), expected, str(sample.shape))
    background.finish()


@pytest.mark.parametrize("luma", [True, False])
@pytest.mark.drawn(1)
def test_what_stands_in_is_the_same_to_the_bit(luma):
    for sample in (*images(3), *images(1)):
        for tiles in ([8, 8, 3, 4, 2], [1, 1, 64, 64, 0], [5, 3, 13, 21, 7]):
            tiles[2:4] = -(-sample.shape[0] // tiles[0]), -(-sample.shape[1] // tiles[1])
            result = [np.zeros_like(sample) for _ in range(2)]
            for out, by in zip(result, (_equalize.compiled(), _equalize.run_fallback), strict=True):
                by(sample, out, np.array(tiles, np.int32), luma, lab_tables())
            np.testing.assert_array_equal(*result)


def test_lab_is_that_of_opencv():
    """Every 8th colour of each axis and the ends of it, both ways."""
    cv2 = pytest.importorskip("cv2")
    steps = np.concatenate([np.arange(0, 256, 8), np.arange(248, 256)]).astype(np.uint8)
    colours = np.ascontiguousarray(np.stack(np.meshgrid(steps, steps, steps), -1).reshape(-1, 3))
    planes = np.empty((3, len(colours)), np.uint8)
    rgb_to_lab(colours, planes, lab_tables())
    np.testing.assert_array_equal(planes.T, cv2.cvtColor(colours[None], cv2.COLOR_RGB2Lab)[0])
    back = np.empty_like(colours)
    lab_to_rgb(np.ascontiguousarray(colours.T), back, lab_tables())
    np.testing.assert_array_equal(back, cv2.cvtColor(colours[None], cv2.COLOR_Lab2RGB)[0])


@pytest.mark.parametrize("layout", ["HW", "CHW", "FHWC", "DHWC", "WHC"])
def test_other_layouts_refused(dali, layout):
    x = np.ones((4, 5, 3, 3)[: len(layout)], np.uint8)
    assert not check_same(dali, lambda m: m.clahe(m.tensor(x, layout=layout), **CALLS[0]))


@pytest.mark.parametrize("ndim", [1, 2, 3, 4])
def test_without_layout(dali, ndim):
    x = np.ones((4, 5, 3, 3)[:ndim], np.uint8)
    assert check_same(dali, lambda m: m.clahe(m.tensor(x), **CALLS[0])) == (ndim == 3)


@pytest.mark.parametrize("kind", ["int8", "uint16", "int32", "float16", "float32", "bool"])
def test_other_element_types_refused(dali, kind):
    assert not check_same(dali, lambda m: m.clahe(m.tensor(np.ones((4, 5, 3), kind), layout="HWC"), **CALLS[0]))


@pytest.mark.parametrize("channels", [0, 2, 4])
def test_other_numbers_of_channels_refused(dali, channels):
    good, bad = np.ones((4, 5, 3), np.uint8), np.ones((4, 5, channels), np.uint8)
    assert not check_same(dali, lambda m: m.clahe(m.batch([good, bad], layout="HWC"), **CALLS[0]))
    with ndd.EvalMode.sync_cpu, pytest.raises(ValueError, match=f"sample 1.*1 or 3 channels, got {channels}"):
        ndd.clahe(ndd.batch([good, bad], layout="HWC"), **CALLS[0])


def test_missing_arguments(dali):
    assert not check_same(dali, lambda m: m.clahe(m.tensor(np.ones((4, 5, 3), np.uint8)), tiles_x=2))


@pytest.mark.parametrize("wrong", [{"tiles_x": 0}, {"tiles_y": 0}, {"tiles_x": -2}])
def test_tiles_must_be_positive(wrong):
    with pytest.raises(RuntimeError, match="must be positive"):
        ndd.clahe(ndd.tensor(np.ones((4, 5, 3), np.uint8)), **{**CALLS[0], **wrong})


def test_what_dali_refuses_or_wraps():
    for shape in ((0, 5, 3), (4, 0, 1)):
        assert ndd.clahe(ndd.tensor(np.ones(shape, np.uint8), layout="HWC"), **CALLS[0]).shape == shape
    image = images(1)[1]
    unlimited = ndd.clahe(ndd.tensor(image, layout="HWC"), tiles_x=2, tiles_y=2, clip_limit=0)
    for limit in (1e30, float("inf")):
        result = ndd.clahe(ndd.tensor(image, layout="HWC"), tiles_x=2, tiles_y=2, clip_limit=limit)
        np.testing.assert_array_equal(np.asarray(result), np.asarray(unlimited))


@pytest.mark.parametrize(("number", "luma"), [(1, True), (1, False), (2, True), (5, False)])
@pytest.mark.drawn(1)
def test_gpu_as_cpu(emulated_gpu, number, luma):
    arguments = CALLS[number]
    samples = [*images(3)[:3], *images(1)[:3], np.ones((0, 4, 3), np.uint8), images(3)[-1]]
    batch = ndd.batch(samples, layout="HWC")
    options = {**arguments, "luma_only": luma}
    emulated_gpu.launches.clear()
    result = arrays_of(ndd.clahe(batch.gpu(), **options))
    assert emulated_gpu.launches == ["tables", "clahe"]
    for a, b in zip(result, arrays_of(ndd.clahe(batch, **options)), strict=True):
        np.testing.assert_array_equal(a, b)
