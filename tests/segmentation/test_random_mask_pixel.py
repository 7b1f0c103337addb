"""segmentation.random_mask_pixel beside DALI; the GPU; misuse."""

# ruff: noqa: B023  (every closure runs before the loop goes on)
from __future__ import annotations

import numpy as np
import pytest
from cases import EachSample, each_of
from compare import check_same
from selection import drawn, repeated

import ndd

INTEGERS_AND_FLOATS = ("uint8", "int16", "uint32", "int32", "int64", "float32", "bool")


def mask(rng, i, dtype):
    """Labels 0 to 3, most of them 0."""
    labels = rng.integers(0, 4, (9 + i, 12)) * (rng.random((9 + i, 12)) < 0.3)
    return labels.astype(dtype if dtype != "float32" else np.int32)


REGISTRY_INPUTS = {"mask": (mask, None)}
REGISTRY_CASES = {
    "segmentation.random_mask_pixel": each_of(
        {"foreground": 1},
        {"foreground": EachSample([0, 1, 1]), "value": 2},
        inputs=("mask",),
        dtypes=INTEGERS_AND_FLOATS,
    ),
}


def random_masks(rng, i):
    shapes = [tuple(rng.integers(1, 12, i % 3 + 1)) for _ in range(3)]
    kinds = drawn((np.uint8, np.int32, np.int16, np.float32, np.int64), 1, "random_mask_pixel")
    kind = kinds[i % len(kinds)]
    masks = [((rng.integers(0, 4, s) - (kind != np.uint8)) * (rng.random(s) < 0.3)).astype(kind) for s in shapes]
    choices = ({}, {"value": 1}, {"value": 9}, {"threshold": 0.5}, {"threshold": -5.0}, {"threshold": 1.0})
    return masks, choices[rng.integers(len(choices))]


@pytest.mark.oracle
def test_the_same_pixels_as_dali(dali):
    rng = np.random.default_rng(8)
    for i in repeated(40, 13):
        masks, arguments = random_masks(rng, i)

        def call(m):
            own = {"foreground": m.batch([0, 1, 1]), "rng": m.random.RNG(seed=i)}
            return m.segmentation.random_mask_pixel(m.batch(masks), **own, **arguments)

        assert check_same(dali, call, note=(i, arguments))


def test_gpu_as_cpu(emulated_gpu):
    """Masks of many chunks, and one without a foreground."""
    masks = [np.zeros(s, np.uint8) for s in ((300, 111), (2, 2), (70, 70, 3))]
    masks[0][250:, 100:], masks[2][::7, ::3] = 1, 2
    for seed in range(4):
        result = [
            ndd.segmentation.random_mask_pixel(b, foreground=1, rng=ndd.random.RNG(seed))
            for b in (ndd.batch(masks[:2]), ndd.batch(masks[:2]).gpu())
        ]
        item = [
            ndd.segmentation.random_mask_pixel(t, foreground=1, rng=ndd.random.RNG(seed))
            for t in (ndd.tensor(masks[2]), ndd.tensor(masks[2]).gpu())
        ]
        assert item[0].torch().tolist() == item[1].cpu().torch().tolist()
        assert result[0].torch().tolist() == result[1].cpu().torch().tolist()
        assert masks[0][tuple(result[0].torch()[0])] == 1


def test_every_pixel_of_the_foreground_is_equally_likely():
    mask = np.zeros((4, 4), np.int32)
    mask[1, 1:3], mask[3, 3] = 5, 6
    result = ndd.segmentation.random_mask_pixel(mask, foreground=1, batch_size=3000, rng=ndd.random.RNG(1)).torch()
    counts = np.bincount((result[:, 0] * 4 + result[:, 1]).numpy(), minlength=16).reshape(4, 4)
    assert (counts[mask == 0] == 0).all()
    assert (abs(counts[mask > 0] - 1000) < 130).all()


def test_misuse():
    for options, arguments, said in (
        (np.zeros((0, 3), np.uint8), {}, "pixels"),
        (np.zeros((2, 3), np.float64), {}, "type"),
        (np.zeros((2, 3), np.uint8), {"value": 1, "threshold": 1.0}, "exclude"),
    ):
        with pytest.raises(RuntimeError, match=f"random_mask_pixel: .*{said}"):
            ndd.segmentation.random_mask_pixel(options, **arguments).evaluate()


LIMITS = (
    -np.inf,
    -3e38,
    -129.0,
    -1.5,
    -0.0,
    0.5,
    127.0,
    254.9,
    255.0,
    65535.0,
    2.0**31,
    2.0**63,
    2.0**64,
    3e38,
    np.inf,
)
VALUES = (-(2**63), -(2**31), -1, 0, 1, 127, 255, 256, 2**31, 2**63 - 1)


@pytest.mark.parametrize("kind", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4"])
def test_the_foreground_at_the_ends_of_each_type(kind):
    """What NumPy finds above a number or equal to one, and where that is nothing any pixel."""
    if kind == "f4":
        elements = [-np.inf, -3e38, -1.0, -0.0, 0.5, np.nan, 2.0**63, np.inf]
    else:
        least, most = np.iinfo(kind).min, np.iinfo(kind).max
        elements = [least, least + 1, 0, 1, 2, most // 2, most - 1, most]
    mask = np.array(elements, kind)
    for name, numbers in (("threshold", LIMITS), ("value", VALUES)):
        options = np.array(numbers, np.float32 if name == "threshold" else np.int64)
        result = ndd.segmentation.random_mask_pixel(
            ndd.batch([mask] * len(options)), foreground=1, rng=ndd.random.RNG(3), **{name: ndd.batch(list(options))}
        ).torch()
        for k, number in enumerate(options):
            chosen = mask == mask.dtype.type(number) if kind == "f4" and name == "value" else mask > number
            if kind != "f4" and name == "value":
                chosen = np.array([int(x) == int(number) for x in mask])
            assert chosen[result[k, 0]] or not chosen.any(), (name, number)
