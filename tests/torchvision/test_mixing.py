"""`MixUp` and `CutMix`: batches of tensors as torchvision, batches of ndd as their tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torchvision_classes import difference, outcome, theirs, tv_tensors

import ndd
from ndd.torchvision import v2

IMAGES, LABELS = torch.rand(5, 3, 14, 17), torch.tensor([0, 3, 1, 2, 3])
KINDS = ["MixUp", "CutMix"]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("alpha", [0.2, 1.0])
@pytest.mark.drawn(1)
def test_as_torchvision(name, alpha):
    own, wanted = (getattr(module, name)(alpha=alpha, num_classes=4) for module in (v2, theirs))
    assert repr(own) == repr(wanted)
    values = [
        (IMAGES, LABELS),
        {"image": tv_tensors.Image(IMAGES), "target": {"Labels": LABELS}, "id": 4},
        (IMAGES, torch.nn.functional.one_hot(LABELS, 4).float()),
        (tv_tensors.Video(torch.rand(5, 2, 3, 14, 17)), LABELS),
    ]
    for value in values:
        for seed in range(4):
            a, b = (outcome(each, value, seed) for each in (own, wanted))
            if isinstance(b, Exception):
                assert type(a) is type(b)
                continue
            assert not difference(name, a, b), (seed, difference(name, a, b))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("layout", ["HWC", "CHW"])
def test_batches_of_ndd(name, layout):
    torch.manual_seed(1)
    images, labels = getattr(theirs, name)(num_classes=4)(IMAGES, LABELS)
    batch = ndd.as_batch(IMAGES.permute(0, 2, 3, 1).contiguous() if layout == "HWC" else IMAGES, layout=layout)
    torch.manual_seed(1)
    result, mixed = getattr(v2, name)(num_classes=4)(batch, ndd.as_batch(LABELS))
    assert isinstance(result, ndd.Batch)
    assert result.layout == layout
    assert torch.allclose(result.torch().permute(0, 3, 1, 2) if layout == "HWC" else result.torch(), images, atol=1e-6)
    assert isinstance(mixed, ndd.Batch)
    assert torch.allclose(mixed.torch(), labels)


@pytest.mark.parametrize("name", KINDS)
def test_labels_that_are_not_in_the_input(name):
    """A StopIteration would end the loop around the transform without a word."""
    work = getattr(v2, name)(num_classes=4, labels_getter=lambda pair: pair[1].clone())
    with pytest.raises(ValueError, match=f"{name}: labels_getter: expected one of the values of the input"):
        work(IMAGES, LABELS)


@pytest.mark.parametrize("name", KINDS)
def test_errors(name):
    calls = [
        (IMAGES, LABELS[:4]), (IMAGES[0], LABELS), (IMAGES, 3), (IMAGES, LABELS.reshape(5, 1, 1)),
        (IMAGES, torch.zeros(5, 3)), (tv_tensors.Mask(torch.zeros(5, 4, 4)), LABELS), {"image": IMAGES},
    ]  # fmt: skip
    for value in calls:
        a, b = (outcome(getattr(module, name)(num_classes=4), value, 0) for module in (v2, theirs))
        assert isinstance(b, Exception)
        assert (type(a), str(a)) == (type(b), str(b))
    a, b = (outcome(getattr(module, name)(), (IMAGES, LABELS), 0) for module in (v2, theirs))
    assert (type(a), str(a)) == (type(b), str(b))


def test_the_next_to_a_batch_is_the_one_before():
    images = ndd.as_batch(np.arange(4, dtype=np.float32).reshape(4, 1, 1, 1), layout="CHW")
    torch.manual_seed(0)
    result, labels = v2.MixUp(num_classes=4)(images, ndd.as_batch(np.arange(4)))
    share = float(labels.torch()[0, 0])
    assert torch.allclose(
        result.torch().flatten(), torch.tensor([3.0, 0, 1, 2]) * (1 - share) + torch.arange(4) * share
    )
