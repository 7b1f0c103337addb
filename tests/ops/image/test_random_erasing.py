"""`ndd.random_erasing` beside torchvision's `v2.RandomErasing`: which rectangles, how often, and what is in them."""

from __future__ import annotations

import numpy as np
import pytest
from cases import Case, EachSample
from torchvision_rule import torchvision

import ndd
from ndd.random import RNG

REGISTRY_CASES = {
    "random_erasing": [
        Case({"p": 0.9}, oracle=False),
        Case({"p": EachSample([1.0, 0.0, 0.7]), "value": [1.0, 2.0, 3.0]}, layouts=("HWC", "CHW"), oracle=False),
        Case({"p": 1, "value": "random"}, oracle=False),
    ]
}


def rectangle(plane):
    """Begin and size of what is not 1, all of which is one rectangle; None without any."""
    y, x = np.nonzero(plane != 1)
    if not len(y):
        return None
    box = y.min(), x.min(), y.max() + 1 - y.min(), x.max() + 1 - x.min()
    assert len(y) == box[2] * box[3]
    return box


def rectangles(result):
    return [rectangle(plane) for plane in result]


@pytest.mark.parametrize("how", [{}, {"scale": (0.1, 0.2), "ratio": (0.5, 1.0)}, {"scale": (0.5, 1.0)}])
@pytest.mark.drawn(1)
def test_rectangles_are_those_of_torchvision(how, stats):
    import torch

    images = ndd.batch(np.ones((3000, 37, 61), np.uint8), layout="HW")
    ours = rectangles(ndd.random_erasing(images, **how, rng=RNG(1)).numpy())
    transform = torchvision().transforms.v2.RandomErasing(p=1.0, **how)
    torch.manual_seed(0)
    drawn = [transform.make_params([torch.ones(1, 37, 61)]) for _ in range(1500)]
    theirs = [(d["i"], d["j"], d["h"], d["w"]) for d in drawn if d["v"] is not None]
    share = sum(r is not None for r in ours) / 3000
    assert abs(share - 0.5 * len(theirs) / 1500) < 0.04
    for k in range(4):
        assert stats.ks_2samp([r[k] for r in ours if r], [t[k] for t in theirs]).pvalue > 1e-3, "y x h w"[2 * k]


@pytest.mark.parametrize("layout", ["HWC", "CHW", "HW", "FHWC", "FCHW"])
@pytest.mark.drawn(2)
def test_a_value_for_each_channel_and_the_same_rectangle_in_all_frames(layout):
    extents = {"F": 3, "H": 30, "W": 40, "C": 3}
    image = np.ones([extents[c] for c in layout], np.float32)
    values = [5.0, -6.0, 7.5] if "C" in layout else [5.0]
    result = ndd.random_erasing(ndd.tensor(image, layout=layout), p=1, value=values, rng=RNG(3)).numpy()
    planes = np.moveaxis(result, layout.index("C"), 0) if "C" in layout else result[None]
    plane = rectangle(planes[0] if "F" not in layout else planes[0][0])
    for value, own in zip(values, planes, strict=True):
        for frame in own if "F" in layout else [own]:
            assert rectangle(frame) == plane
            assert set(np.unique(frame)) == {1.0, value}


def test_noise_is_normal_and_the_same_in_all_frames(stats):
    video = ndd.tensor(np.ones((2, 90, 100, 3), np.float32), layout="FHWC")
    result = ndd.random_erasing(video, p=1, scale=[0.4, 0.5], value="random", rng=RNG(3)).numpy()
    np.testing.assert_array_equal(result[0], result[1])
    y, x, h, w = rectangle(result[0, ..., 0])
    noise = result[0, y : y + h, x : x + w]
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-3
    assert abs(np.corrcoef(noise[..., 0].ravel(), noise[..., 1].ravel())[0, 1]) < 0.05
    other = ndd.random_erasing(video, p=1, scale=[0.4, 0.5], value="random", rng=RNG(4)).numpy()
    assert not np.isin(noise, other).mean() > 0.2


@pytest.mark.parametrize("value", [[3.0], [300.0, 1.5, 7.0], "random"])
@pytest.mark.parametrize("kind", ["uint8", "int16", "float16", "float32", "float64", "bool", "uint64"])
@pytest.mark.drawn(1)
def test_cpu_and_gpu_agree(kind, value, emulated_gpu):
    for layout in ("HWC", "FCHW"):
        shapes = [(9, 14, 3), (20, 5, 3), (1, 1, 3), (0, 4, 3)] if layout == "HWC" else [(2, 3, 9, 14), (1, 3, 8, 8)]
        batch = ndd.batch([np.ones(s, kind) for s in shapes], layout=layout)
        on_cpu, on_gpu = (ndd.random_erasing(b, p=1, value=value, rng=RNG(5)) for b in (batch, batch.gpu()))
        for a, b in zip(on_cpu.tensors, on_gpu.tensors, strict=True):
            if kind.startswith("float"):
                np.testing.assert_allclose(np.asarray(a), np.asarray(b.cpu()), rtol=1e-3 if kind == "float16" else 1e-6)
            else:
                np.testing.assert_array_equal(np.asarray(a), np.asarray(b.cpu()))
        if kind == "float32":
            assert (np.asarray(on_cpu.tensors[0]) != 1).any()


def test_ratios_of_no_rectangle_change_nothing():
    image = ndd.tensor(np.ones((40, 60, 3), np.uint8), layout="HWC")
    for ratio in ([3e38, 3e38], [1e-37, 1e-37]):
        assert (np.asarray(ndd.random_erasing(image, p=1, ratio=ratio)) == 1).all()


def test_each_sample_has_numbers_of_its_own():
    images = ndd.batch(np.ones((4, 50, 50), np.uint8), layout="HW")
    sizes = ndd.batch(np.float32([[0.04, 0.04], [0.16, 0.16], [0.04, 0.04], [0.04, 0.04]]))
    ratios = ndd.batch(np.float32([[1, 1], [1, 1], [4, 4], [1, 1]]))
    values = ndd.batch(np.float32([[2], [3], [4], [5]]))
    output = ndd.random_erasing(
        images, p=ndd.batch([1.0, 1.0, 1.0, 0.0]), scale=sizes, ratio=ratios, value=values
    ).numpy()
    result = rectangles(output)
    assert [None if r is None else r[2:] for r in result] == [(10, 10), (20, 20), (20, 5), None]
    assert [v.max() for v in output] == [2, 3, 4, 1]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"p": 1.5}, "argument 'p': expected a probability from 0 to 1, got 1.5"),
        ({"p": float("nan")}, "argument 'p'"),
        ({"scale": [0.3, 0.1]}, "argument 'scale': expected the least and the largest"),
        ({"scale": [0.5, 1.5]}, "argument 'scale': expected parts of the area from 0 to 1"),
        ({"ratio": [0, 1]}, "argument 'ratio': expected ratios above 0"),
        ({"ratio": [1]}, "argument 'ratio': expected 2 numbers"),
        ({"value": [1, 2]}, "the fill has 2 elements"),
    ],
)
def test_wrong_arguments(given, text):
    with pytest.raises(RuntimeError, match=text):
        ndd.random_erasing(np.zeros((3, 3, 3), np.uint8), **given).numpy()


def test_a_wrong_word():
    with pytest.raises(ValueError, match="argument 'value': expected one of 'random', got 'noise'"):
        ndd.random_erasing(np.zeros((3, 3, 3), np.uint8), value="noise")
