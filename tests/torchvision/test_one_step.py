"""A step of the automatic augmentations in one call: to the byte what each operation makes of its samples alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torchvision_classes import batch_of, samples_of, theirs

import ndd
from ndd.torchvision import v2
from ndd.torchvision.v2 import one_step

MADE = torch.Generator().manual_seed(6)
SIZES = [(37, 53), (40, 31), (2, 60), (1, 1), (3, 3), (64, 65)]
IMAGES = [torch.randint(20, 230, (3, h, w), dtype=torch.uint8, generator=MADE) for h, w in SIZES]
IMAGES.append(torch.full((3, 9, 8), 77, dtype=torch.uint8))  # of a single value
GREY = [image[:1] for image in IMAGES]
MAGNITUDES = {
    "Identity": [0.0], "ShearX": [0.99, -0.3, 0.01], "ShearY": [-0.99, 0.31, 0.0], "TranslateX": [31.9, -7.0, 100.0],
    "TranslateY": [-32.0, 5.5, 0.0], "Rotate": [135.0, -4.5, 90.0, -400.0], "Brightness": [-0.99, 0.4, 0.033],
    "Color": [-0.9, 0.5, 0.0], "Contrast": [-0.99, 0.9, 0.03], "Sharpness": [-0.9, 0.8, 0.1], "Posterize": [0, 2, 8],
    "Solarize": [1.0, 0.0, 0.37], "AutoContrast": [0.0], "Equalize": [0.0], "Invert": [0.0],
}  # fmt: skip
ROWS = [(name, m) for name, magnitudes in MAGNITUDES.items() for m in magnitudes]


def test_every_operation_is_a_kind():
    spaces = [v2.AutoAugment._AUGMENTATION_SPACE, v2.RandAugment._AUGMENTATION_SPACE, v2.AugMix._AUGMENTATION_SPACE]
    assert set().union(*spaces, {"Identity"}) == MAGNITUDES.keys() == one_step._KINDS.keys()


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize(("mode", "fill"), [("nearest", None), ("nearest", 99), ("nearest", [7.0]), ("bilinear", None)])
@pytest.mark.parametrize("images", [IMAGES, GREY], ids=["RGB", "grey"])
@pytest.mark.drawn(1)
def test_as_each_alone(images, mode, fill, device, emulated_gpu):
    """All operations in one call: the bytes are torchvision's own, whatever else is in the batch."""
    some = [images[k % len(images)] for k in range(len(ROWS) * len(images))]
    rows = [row for row in ROWS for _ in images]
    batch = batch_of(some, "HWC").to_device(device)
    assert one_step.is_served(batch, mode, fill)
    numbers = one_step.numbers_of([[row] for row in rows], 1)
    kind, numbers = ndd.as_batch(numbers[:, 0].astype(np.int32)), ndd.as_batch(numbers[:, 1:].astype(np.float32))
    made = one_step.changed(batch, kind, numbers, mode, fill)
    assert made.device.device_type == device
    how = theirs.InterpolationMode(mode)
    alone = theirs.AugMix(interpolation=how, fill=fill)
    most = 0 if mode == "nearest" else 1
    for result, image, (name, magnitude) in zip(samples_of(made.cpu()), some, rows, strict=True):
        wanted = alone._apply_image_or_video_transform(image, name, magnitude, interpolation=how, fill=alone._fill)
        assert (result.int() - wanted.int()).abs().max() <= most, (name, magnitude, tuple(image.shape))


def test_what_is_not_served():
    batch = batch_of(IMAGES[:2], "HWC")
    assert not one_step.is_served(ndd.cast(batch, dtype=ndd.float32), "nearest", None)
    assert not one_step.is_served(batch_of(IMAGES[:2], "CHW"), "nearest", None)
    assert not one_step.is_served(batch, "nearest", [1, 2, 3])
    assert not one_step.is_served(batch, "bilinear", 3)
    assert not one_step.is_served(IMAGES[0], "nearest", None)


@pytest.mark.parametrize("name", ["TrivialAugmentWide", "RandAugment"])
def test_a_step_is_one_call(name, monkeypatch):
    """However many operations are drawn."""
    calls, real = [], one_step.kinds.augment
    monkeypatch.setattr(one_step.kinds, "augment", lambda *args, **named: calls.append(0) or real(*args, **named))
    images = ndd.batch([np.zeros((8, 9, 3), np.uint8)] * 40, layout="HWC")
    assert getattr(v2, name)()(images).shape == [(8, 9, 3)] * 40
    assert len(calls) == {"TrivialAugmentWide": 1, "RandAugment": 2}[name]
