"""An operator that swallows the one before it gives what the two give one after the other, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from calling import load_every_module, public

import ndd

EVERY = load_every_module()
PAIRS = [
    (first, then)
    for then, op in EVERY.items()
    if op.fuses
    for first, other in EVERY.items()
    if other.cuda_source in op.fuses
]
NN, LANCZOS = ndd.types.INTERP_NN, ndd.types.INTERP_LANCZOS3

# How one that may be swallowed is called, so that each kernel of its file comes last once.
BEFORE = {
    "resize": [
        {"size": [9, 14]},
        {"size": [9, 14], "interp_type": NN},
        {"size": [9, 14], "interp_type": LANCZOS},
        {"size": [2, 3], "roi_start": [0, 0], "roi_end": [400, 500]},  # many taps: line by line
    ],
    "random_resized_crop": [{"size": [9, 14]}],
    "resize_crop_mirror": [{"size": [16, 18], "crop": (9, 14), "mirror": 1}],
}
THEN = {
    "crop_mirror_normalize": [
        {"mean": [10.0, 20.0, 30.0], "std": [3.0, 5.0, 7.0]},
        {"crop": (2, 3), "crop_pos_x": 0.9, "std": [7.0], "scale": 0.5, "shift": -1.0, "output_layout": "HWC"},
    ]
}


def images(channels=3, layout="HWC", dtype=np.uint8):
    rng = np.random.default_rng(0)
    shapes = [(40 + 3 * i, 31 - 2 * i, channels) for i in range(3)]
    if layout == "CHW":
        shapes = [(c, h, w) for h, w, c in shapes]
    return ndd.batch([rng.integers(0, 255, s).astype(dtype) for s in shapes], layout=layout).gpu().evaluate()


def result(gpu, first, then, before, after, held, source):
    """What comes out, and how many kernels it took; `held`: somebody keeps what lies between."""
    more = {"rng": ndd.random.RNG(seed=5)} if EVERY[first].random else {}
    start = len(gpu.launches)
    with ndd.EvalMode.deferred:
        between = public(ndd, first)(source, **before, **more)
        out = public(ndd, then)(between, mirror=ndd.batch([1, 0, 1]), **after)
        if not held:
            del between
        actual = out.torch().clone()
    return actual, len(gpu.launches) - start, out


@pytest.mark.parametrize(("first", "then"), PAIRS)
@pytest.mark.drawn(1)
def test_two_in_one_are_equal_to_one_after_the_other(first, then, emulated_gpu):
    assert first in BEFORE, f"{first} may be swallowed by {then}: say here how it is called"
    for k, before in enumerate(BEFORE[first]):
        for after in THEN[then][: 2 if k == 0 else 1]:
            source = images()
            plain, two, _ = result(emulated_gpu, first, then, before, after, True, source)
            joined, one, out = result(emulated_gpu, first, then, before, after, False, source)
            assert one == two - 1, (before, after)
            assert torch.equal(joined, plain), (before, after)
            assert out.layout == after.get("output_layout", "CHW")


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ({"layout": "CHW"}, {}),
        ({"dtype": np.float32}, {}),  # not rounded between: the sums could be rounded in another way
        ({}, {"pad_output": True}),
        ({}, {"crop": (20, 20), "out_of_bounds_policy": "pad"}),
    ],
)
@pytest.mark.drawn(1)
def test_what_cannot_be_done_at_once_is_done_step_by_step(source, after, emulated_gpu):
    arguments = images(**source)
    actual = [
        result(emulated_gpu, "resize", "crop_mirror_normalize", {"size": [9, 14]}, after, held, arguments)
        for held in (True, False)
    ]
    assert actual[0][1] == actual[1][1]
    assert torch.equal(actual[0][0], actual[1][0])


def test_gray_and_five_channels(emulated_gpu):
    for channels in (1, 5):
        source = images(channels)
        actual = [
            result(emulated_gpu, "resize", "crop_mirror_normalize", {"size": [9, 14]}, {}, held, source)
            for held in (True, False)
        ]
        assert torch.equal(actual[0][0], actual[1][0])


def test_an_error_names_the_operator_whose_it_is(emulated_gpu):
    with ndd.EvalMode.deferred:
        out = ndd.crop_mirror_normalize(ndd.resize(images(), size=[9, 14]), mean=[1.0, 2.0])
        with pytest.raises(RuntimeError, match=r"crop_mirror_normalize: .*`mean`"):
            out.torch()
        out = ndd.crop_mirror_normalize(ndd.resize(images(), size=[np.nan, 14]))
        with pytest.raises(RuntimeError, match=r"resize: .*finite"):
            out.torch()


def test_a_value_that_two_use_is_made_once(emulated_gpu):
    source = images()
    start = len(emulated_gpu.launches)
    with ndd.EvalMode.deferred:
        between = ndd.resize(source, size=[9, 14])
        outs = [ndd.crop_mirror_normalize(between, std=[s]) for s in (1.0, 2.0)]
        del between
        assert torch.equal(outs[0].torch(), outs[1].torch() * 2)
    assert emulated_gpu.launches[start:] == ["resample_plane", "crop_mirror_normalize", "crop_mirror_normalize"]


def test_what_lies_between_is_made_for_who_asks_later(emulated_gpu):
    source = images()
    with ndd.EvalMode.deferred:
        between = ndd.resize(source, size=[9, 14])
        out = ndd.crop_mirror_normalize(between)
        assert torch.equal(between.torch().permute(0, 3, 1, 2).float(), out.torch())
