"""Transforms of a batch on a GPU: everything stays there, and what comes out is what the CPU makes after the same seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from selection import drawn
from torchvision_classes import CASES, batch_of, names, outcome

import ndd
from ndd.torchvision import v2

MADE = torch.Generator().manual_seed(4)
IMAGES = [
    torch.randint(0, 256, (3, h, w), dtype=torch.uint8, generator=MADE) for h, w in [(17, 23), (20, 11), (14, 30)]
]
# Of other inputs: labels, boxes, points, clips, Python's lists. `JPEG` is the CPU's alone, as torchvision's.
OTHERS = {
    "CutMix", "MixUp", "Lambda", "LinearTransformation", "RandomIoUCrop", "SanitizeBoundingBoxes", "SanitizeKeyPoints",
    "ConvertBoundingBoxFormat", "ClampBoundingBoxes", "ClampKeyPoints", "SetClampingMode", "UniformTemporalSubsample",
    "ToPILImage", "ToTensor", "PILToTensor", "FiveCrop", "TenCrop", "Compose", "RandomApply", "RandomChoice", "RandomOrder",
    "Transform", "RandomShortestSize", "ScaleJitter",
}  # fmt: skip
SERVED = ["TrivialAugmentWide", *(n for n in names() if n not in OTHERS and n != "TrivialAugmentWide")]
# Between its two passes a GPU keeps float32, as torchvision's own bicubic filter does there; the CPU's rounds to bytes.
FAR = {"Resize": 2}
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", drawn(SERVED, 8, "transforms on a GPU"))
@pytest.mark.drawn(1)
def test_gpu_as_cpu(emulated_gpu, name):
    batch = batch_of(IMAGES, "HWC")
    for arguments in CASES.get(name, [()]):
        transform = getattr(v2, name)(*arguments)
        for seed in range(3):
            on_cpu = outcome(transform, batch, seed)
            on_gpu = outcome(transform, batch.gpu(), seed)
            if isinstance(on_gpu, Exception) or isinstance(on_cpu, Exception):
                assert type(on_gpu) is type(on_cpu), (arguments, on_gpu, on_cpu)
                continue
            assert on_gpu.device == ndd.Device("gpu:0"), (arguments, on_gpu.device)
            for a, b in zip(on_cpu, on_gpu.cpu(), strict=True):
                assert a.shape == b.shape
                assert (a.torch().double() - b.torch().double()).abs().max() <= FAR.get(name, 1), (arguments, seed)


# A number for each of the three samples.
EACH = {
    "adjust_brightness": [(0.5, 1.0, 2.0)], "adjust_contrast": [(0.5, 1.0, 2.0)], "adjust_saturation": [(0.5, 1.0, 2.0)],
    "adjust_hue": [(-0.2, 0.0, 0.4)], "adjust_sharpness": [(0.5, 1.0, 2.0)], "adjust_gamma": [(0.5, 1.0, 2.0), (0.9, 1.0, 1.1)],
    "posterize": [(2, 8, 0)], "solarize": [(10, 128, 255)], "rotate": [(10.0, 90.0, -30.0)], "jpeg": [(10, 50, 90)],
    "erase": [(0, 1, 2), (1, 2, 3), (4, 5, 6), (3, 2, 1), (1.0, 200.0, 0.0)],
}  # fmt: skip


@pytest.mark.parametrize("name", EACH)
@pytest.mark.drawn(1)
def test_numbers_for_each_sample(emulated_gpu, name):
    batch = batch_of(IMAGES, "HWC")
    arguments = [ndd.batch(np.array(numbers)) for numbers in EACH[name]]
    for images in (batch, ndd.cast(batch, dtype=ndd.float32) * (1 / 255)):
        if name in ("solarize", "jpeg", "erase") and images is not batch:
            continue
        on_cpu, on_gpu = (getattr(v2.functional, name)(x, *arguments) for x in (images, images.gpu()))
        assert on_gpu.device == ndd.Device("gpu:0")
        bound = 1 if images is batch else 1e-5
        for a, b in zip(on_cpu, on_gpu.cpu(), strict=True):
            assert (a.torch().double() - b.torch().double()).abs().max() <= bound
