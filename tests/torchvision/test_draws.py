"""Random numbers of torch's generator, and what of a batch is one pass."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torchvision_classes import batch_of

import ndd
from ndd.torchvision import v2
from ndd.torchvision.v2 import draws
from ndd.torchvision.v2.one_pass import steps_for_batches


@pytest.mark.parametrize("expected", [2, 7, 16, 500])
def test_numbers_are_those_of_single_calls(expected):
    """However many are looked at together; the generator goes on after those that were taken."""
    kinds = np.random.default_rng(expected).integers(0, 4, 120).tolist()
    generator = torch.Generator().manual_seed(3)
    wanted = []
    for kind in kinds:
        wanted.append(
            (
                lambda: draws.integer(2, 9, generator),
                lambda: draws.happens(0.3, generator),
                lambda: draws.uniform(0.02, 0.33, generator=generator),
                lambda: torch.rand((), generator=generator).item(),
            )[kind]()
        )
    own = torch.Generator().manual_seed(3)
    with draws.Numbers(own, expected) as numbers:
        taken = (
            lambda: numbers.integer(2, 9),
            lambda: numbers.happens(0.3),
            lambda: numbers.uniform(0.02, 0.33),
            numbers.share,
        )
        assert [taken[kind]() for kind in kinds] == wanted
    assert torch.equal(own.get_state(), generator.get_state())


def test_nothing_is_taken_where_nothing_is_asked_for():
    state = torch.get_rng_state()
    with draws.Numbers():
        pass
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("last", [[], [v2.Normalize([0.5], [0.25])]])
@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
@pytest.mark.drawn(2)
def test_a_flip_and_floats_are_one_pass(last, p):
    """Of images, and of `ndd.Targets`, whose boxes and masks are mirrored too."""
    images = batch_of([torch.randint(0, 256, (3, 5 + i, 7), dtype=torch.uint8) for i in range(6)], "HWC")
    boxes = ndd.batch([np.array([[0.1, 0.2, 0.4, 0.9]], np.float32)] * 6)
    masks = ndd.batch([np.arange((5 + i) * 7, dtype=np.uint8).reshape(1, 5 + i, 7) for i in range(6)], layout="NHW")
    steps = [v2.RandomHorizontalFlip(p), v2.ToImage(), v2.ToDtype(torch.float32, scale=True), *last]
    assert len(steps_for_batches(steps)) == 1
    for value in (images, ndd.Targets(images, boxes, masks=masks)):
        torch.manual_seed(5)
        made = v2.Compose(steps)(value)
        torch.manual_seed(5)
        wanted = value
        for step in steps:
            wanted = step(wanted)
        parts = [(made, wanted)]
        if value is not images:
            parts = [(getattr(made, name), getattr(wanted, name)) for name in ("images", "boxes", "masks")]
        for ours, theirs in parts:
            assert ours.layout == theirs.layout
            for a, b in zip(ours, theirs, strict=True):
                assert torch.allclose(a.torch().float(), b.torch().float(), atol=1e-6, rtol=1e-6)
        if not last:
            image = made if value is images else made.images
            exact = wanted if value is images else wanted.images
            assert all(torch.equal(a.torch(), b.torch()) for a, b in zip(image, exact, strict=True))


def test_boxes_without_which_no_window_ends():
    image = ndd.zeros(shape=[8, 8, 3], dtype=ndd.uint8, layout="HWC")
    targets = ndd.Targets(image, boxes=np.zeros((0, 4), np.float32))
    with pytest.raises(ValueError, match="no boxes"):  # where torchvision does not come to an end
        v2.RandomIoUCrop(sampler_options=[0.5])(targets)
    assert v2.RandomIoUCrop()(targets).boxes.shape == (0, 4)


def test_select_boxes():
    images = batch_of([torch.zeros(3, 4, 4, dtype=torch.uint8)] * 2, "HWC")
    boxes = ndd.batch([np.eye(4, dtype=np.float32), np.ones((1, 4), np.float32)])
    targets = ndd.Targets(images, boxes, labels=ndd.batch([np.arange(4), np.array([9])]), area=ndd.batch([1.5, 2.5]))
    left = targets.select_boxes(ndd.batch([np.array([3, 0], np.int32), np.array([], np.int32)]))
    assert [x.torch().tolist() for x in left.labels] == [[3, 0], []]
    assert [tuple(x.shape) for x in left.boxes] == [(2, 4), (0, 4)]
    assert [x.torch().item() for x in left.area] == [1.5, 2.5]
    with pytest.raises(TypeError, match="expected `boxes`"):
        ndd.Targets(images).select_boxes([0])
