"""`ndd.color_jitter` beside torchvision's functions, and what it draws."""

from __future__ import annotations

import numpy as np
import pytest
from cases import Case, EachSample
from torchvision_rule import functional

import ndd

NAMES = ("brightness", "contrast", "saturation", "hue")
_RANGES = {"brightness": 0.4, "contrast": [0.5, 1.5], "saturation": 0.3, "hue": 0.1}
REGISTRY_CASES = {
    "color_jitter": [
        Case(_RANGES, dtypes=("uint8", "float16", "float32"), oracle=False),
        Case({"hue": EachSample([0.1, 0.0, 0.5]), "order": [3, 1, 0, 2]}, dtypes=("uint8",), oracle=False),
    ]
}


def random_factors(rng):
    """Four factors that float32 holds, and an order."""
    factors = [*rng.uniform(0, 2, 3), rng.uniform(-0.5, 0.5)]
    return [float(np.float32(v)) for v in factors], rng.permutation(4).tolist()


def pixels(rng, channels, kind):
    """CHW, with pixels that are grey, black and white among them."""
    image = rng.integers(0, 256, (channels, *rng.integers(1, 70, 2)))
    image[:, ::3] = image[:1, ::3]
    image[:, :, ::7] = rng.choice([0, 255])
    return image.astype(np.uint8) if kind == "uint8" else (image / 255).astype(kind)


def by_torchvision(image, factors, order):
    import torch

    f = functional()
    value = torch.from_numpy(image)
    steps = f.adjust_brightness, f.adjust_contrast, f.adjust_saturation, f.adjust_hue
    for k in order:
        value = steps[k](value, factors[k])
    return value.numpy()


def fixed(factors, order):
    return {name: [v, v] for name, v in zip(NAMES, factors, strict=True)} | {"order": order}


@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("kind", ["uint8", "float32"])
@pytest.mark.drawn(1)
def test_equal_to_torchvision(kind, channels, layout):
    rng = np.random.default_rng(channels)
    for _ in range(15):
        image = pixels(rng, channels, kind)
        factors, order = random_factors(rng)
        arguments = np.ascontiguousarray(image if layout == "CHW" else image.transpose(1, 2, 0))
        result = ndd.color_jitter(ndd.tensor(arguments, layout=layout), **fixed(factors, order)).numpy()
        result = result if layout == "CHW" else result.transpose(2, 0, 1)
        expected = by_torchvision(image, factors, order)
        if kind == "uint8":  # a float32 that another order of sums rounds otherwise may cross a whole number
            assert np.abs(result.astype(int) - expected).max() <= 1
            assert (result != expected).mean() < 0.002
        else:
            assert np.abs(result - expected).max() < 1e-5


def test_frames_share_factors_and_have_means_of_their_own():
    rng = np.random.default_rng(0)
    video = rng.integers(0, 256, (3, 20, 30, 3), np.uint8) // np.array([1, 2, 5], np.uint8)[:, None, None, None]
    factors, order = random_factors(rng)
    for layout, axes in (("FHWC", (0, 1, 2, 3)), ("FCHW", (0, 3, 1, 2))):
        arguments = ndd.tensor(np.ascontiguousarray(video.transpose(axes)), layout=layout)
        result = ndd.color_jitter(arguments, **fixed(factors, order)).numpy().transpose(np.argsort(axes))
        drawn = ndd.color_jitter(arguments, brightness=0.5, hue=0.2, rng=ndd.random.RNG(3)).numpy()
        for k in range(3):
            frame = ndd.tensor(video[k], layout="HWC")
            np.testing.assert_array_equal(result[k], ndd.color_jitter(frame, **fixed(factors, order)).numpy())
            alone = ndd.color_jitter(frame, brightness=0.5, hue=0.2, rng=ndd.random.RNG(3)).numpy()
            np.testing.assert_array_equal(drawn.transpose(np.argsort(axes))[k], alone)


@pytest.mark.parametrize("kind", ["uint8", "float16", "float32"])
@pytest.mark.drawn(1)
def test_cpu_and_gpu_agree(kind, emulated_gpu):
    rng = np.random.default_rng(4)
    images = [np.ascontiguousarray(pixels(rng, 3, kind).transpose(1, 2, 0)) for _ in range(3)] + [
        np.zeros((0, 4, 3), kind)
    ]
    for layout, axes in (("HWC", (0, 1, 2)), ("CHW", (2, 0, 1))):
        batch = ndd.batch([np.ascontiguousarray(v.transpose(axes)) for v in images], layout=layout)
        for arguments in (_RANGES, {"contrast": 0.9}, {"hue": 0.5, "saturation": [0, 2]}):
            on_cpu, on_gpu = (ndd.color_jitter(b, **arguments, rng=ndd.random.RNG(7)) for b in (batch, batch.gpu()))
            for a, b in zip(on_cpu.tensors, on_gpu.tensors, strict=True):
                assert np.abs(np.asarray(a, np.float64) - np.asarray(b.cpu(), np.float64)).max(initial=0) <= (
                    1 if kind == "uint8" else 2e-3 if kind == "float16" else 1e-6
                )


def test_factors_are_uniform_and_independent():
    flat = ndd.batch(np.full((4000, 1, 1, 3), 100 / 255, np.float32), layout="HWC")
    drawn = ndd.color_jitter(flat, brightness=0.5, rng=ndd.random.RNG(1)).numpy()[:, 0, 0, 0] * 255 / 100
    assert 0.5 <= drawn.min() < 0.51
    assert 1.49 < drawn.max() <= 1.5
    assert np.abs(np.histogram(drawn, 10, (0.5, 1.5))[0] - 400).max() < 90
    clipped = ndd.color_jitter(flat, brightness=3.0, rng=ndd.random.RNG(1)).numpy() * 255 / 100
    assert clipped.min() < 0.01  # from max(0, 1 - 3) on


def test_orders_are_equally_likely():
    """Brightness to nothing before contrast gives 0; after it, the half of grey first, nothing either: tell by both."""
    image = np.zeros((6000, 1, 2, 3), np.float32)
    image[:, 0, 1] = 0.8
    result = ndd.color_jitter(
        ndd.batch(image, layout="HWC"), brightness=[2, 2], contrast=[0.5, 0.5], rng=ndd.random.RNG(2)
    )
    dark = result.numpy()[:, 0, 0, 0]  # contrast first: 0.4 * 0.5 * 2 = 0.4; brightness first: 1 cut, 0.5 * 0.5 = 0.25
    first = np.isclose(dark, 0.4, atol=1e-3)
    assert (first | np.isclose(dark, 0.25, atol=1e-3)).all()
    assert abs(first.mean() - 0.5) < 0.03


def test_each_sample_has_numbers_of_its_own():
    image = np.full((2, 2, 3), 100, np.uint8)
    result = ndd.color_jitter(
        ndd.batch([image] * 3, layout="HWC"), brightness=ndd.batch([[0.5, 0.5], [1.0, 1.0], [2.0, 2.0]])
    )
    assert [int(v.max()) for v in result.numpy()] == [50, 100, 200]
    off = ndd.color_jitter(ndd.batch([image] * 3, layout="HWC"), brightness=ndd.batch([0.0, 0.9, 0.0]))
    assert [bool((v == 100).all()) for v in off.numpy()] == [True, False, True]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"brightness": -0.1}, "argument 'brightness': expected one number from 0"),
        ({"contrast": [1.5, 0.5]}, r"argument 'contrast': .*got \[1.5, 0.5\]"),
        ({"saturation": [-1, 1]}, "argument 'saturation': expected"),
        ({"hue": 0.6}, "argument 'hue': .*within -0.5 to 0.5"),
        ({"hue": [0.1, 0.2, 0.3]}, "argument 'hue': expected one number or a range"),
        ({"order": [0, 1, 1, 2]}, "argument 'order': expected a permutation of 0 to 3"),
        ({"brightness": float("nan")}, "argument 'brightness'"),
    ],
)
def test_wrong_arguments(given, text):
    with pytest.raises(RuntimeError, match=text):
        ndd.color_jitter(np.zeros((3, 3, 3), np.uint8), **given).numpy()


def test_wrong_channels():
    with pytest.raises(RuntimeError, match="expected 1 or 3 channels, got 4"):
        ndd.color_jitter(np.zeros((3, 3, 4), np.uint8), hue=0.1).numpy()
