"""Transforms of `ndd.Batch`: each sample as it comes out of torchvision alone, ragged, in both layouts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torchvision_classes import APART, CASES, batch_of, names, of_pixels, outcome, samples_of, theirs

import ndd
from ndd.torchvision import v2

SIZES = [(37, 53), (40, 31), (24, 60), (33, 33), (61, 47)]
MADE = torch.Generator().manual_seed(2)
IMAGES = {
    "bytes": [torch.randint(0, 256, (3, h, w), dtype=torch.uint8, generator=MADE) for h, w in SIZES],
    "floats": [torch.rand(3, h, w, generator=MADE) for h, w in SIZES],
}
LABELS = ndd.batch(np.arange(len(SIZES)))
# What has no single images, does not take them, or (RandomResizedCrop) draws all samples at once, see below.
OTHERS = {
    *APART, "RandomResizedCrop", "RandomIoUCrop", "SanitizeBoundingBoxes", "SanitizeKeyPoints", "ToPILImage", "ToTensor",
    "UniformTemporalSubsample", "FiveCrop", "TenCrop",
}  # fmt: skip
CALLED = [(name, arguments) for name in names() if name not in OTHERS for arguments in CASES.get(name, [()])]
FIRST = ("ToImage", "PILToTensor")  # which make CHW
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize(("name", "arguments"), CALLED, ids=[f"{n}{a}" for n, a in CALLED])
@pytest.mark.drawn(3)
def test_as_one_after_the_other(name, arguments, layout):
    """After the same seed sample i is what torchvision makes of it, called for one sample after the other."""
    own, wanted = getattr(v2, name)(*arguments), getattr(theirs, name)(*arguments)
    for kind, images in IMAGES.items():
        expected = outcome(lambda some: [wanted(image) for image in some], images, 3)
        result = outcome(own, (batch_of(images, layout), LABELS), 3)
        if isinstance(expected, Exception):
            if kind == "bytes" or not isinstance(result, Exception):
                assert isinstance(result, Exception), (kind, expected)
            continue
        if isinstance(result, Exception):
            raise result
        batch, labels = result
        assert labels is LABELS
        assert batch.layout == ("CHW" if name in FIRST else layout)
        for i, (a, b) in enumerate(zip(samples_of(batch), expected, strict=True)):
            b = b.as_subclass(torch.Tensor)
            assert (a.shape, a.dtype) == (b.shape, b.dtype), (kind, i)
            assert not (text := of_pixels(name, a, b)), (kind, i, text)


RANDOM = [n for n in names() if n not in OTHERS and n.startswith("Random")]


@pytest.mark.parametrize("name", [*RANDOM, "ColorJitter", "GaussianBlur", "RandomResizedCrop", "TrivialAugmentWide"])
@pytest.mark.drawn(1)
def test_the_same_on_a_batch(name):
    """Equal samples come out equal with `same_on_batch=True`, and not all of them without."""
    arguments = {"RandomPerspective": (0.7, 0.5), "RandomErasing": (0.5,)}.get(name, CASES.get(name, [()])[0])
    image = torch.randint(20, 200, (3, 64, 64), dtype=torch.uint8, generator=MADE)  # autocontrast changes it
    batch = batch_of([image] * 16, "HWC")
    for same in (True, False):
        transform, different = getattr(v2, name)(*arguments, same_on_batch=same), False
        for seed in range(4):
            torch.manual_seed(seed)
            samples = samples_of(transform(batch))
            equal = all(s.shape == samples[0].shape and torch.equal(s, samples[0]) for s in samples)
            assert equal or not same, seed
            different |= not equal
        assert different is not same
    assert "same_on_batch=True" in repr(getattr(v2, name)(*arguments, same_on_batch=True))


def test_random_resized_crop_draws_torchvisions_windows():
    """The windows show in a picture of its own coordinates: mean and spread of their places and sizes are torchvision's."""
    h, w, times = 90, 200, 1000
    y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    image = torch.stack((y, x, y)).to(torch.uint8)
    torch.manual_seed(0)
    result = v2.RandomResizedCrop((8, 8), antialias=False)(batch_of([image] * times, "HWC")).torch().float()
    drawn = [theirs.RandomResizedCrop((8, 8), antialias=False)(image).float() for _ in range(times)]
    wanted = torch.stack(drawn).permute(0, 2, 3, 1)
    for channel in (0, 1):
        for corner in (0, 7):
            a, b = (v[:, corner, corner, channel] for v in (result, wanted))
            assert abs(a.mean() - b.mean()) < 4 * b.std() / times**0.5 * 1.5
            assert abs(a.std() / b.std() - 1) < 0.1
    a, b = (v[:, 7, 7, 1] - v[:, 0, 0, 1] for v in (result, wanted))
    assert abs(a.mean() - b.mean()) < 3


def test_the_last_resort_is_the_middle():
    images = batch_of([torch.zeros(3, 20, 400, dtype=torch.uint8)] * 8, "HWC")
    strip = torch.arange(400).repeat(3, 20, 1).clamp(max=255).to(torch.uint8)
    images = batch_of([strip] * 8, "HWC")
    torch.manual_seed(0)
    result = v2.RandomResizedCrop(4, scale=(0.99, 1.0), ratio=(1.0, 1.0))(images).torch()
    expected = theirs.functional.resize(theirs.functional.crop(strip, 0, 190, 20, 20), [4, 4]).permute(1, 2, 0)
    assert (result.int() - expected.int()).abs().max() <= 1


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("name", ["RandomHorizontalFlip", "RandomVerticalFlip", "RandomInvert", "RandomGrayscale"])
@pytest.mark.drawn(2)
def test_probability(name, p):
    image = torch.randint(0, 256, (3, 6, 6), dtype=torch.uint8, generator=MADE)
    torch.manual_seed(1)
    result = getattr(v2, name)(p)(batch_of([image] * 1500, "HWC")).torch()
    changed = (result != image.permute(1, 2, 0)).flatten(1).any(1).double().mean()
    assert abs(float(changed) - p) < 0.05
    assert float(changed) == p or 0 < p < 1


def test_what_is_left_alone():
    images, labels = batch_of(IMAGES["bytes"], "HWC"), ndd.batch(np.arange(5))
    boxes = ndd.batch([np.zeros((k, 4), np.float32) for k in range(5)])
    result = v2.Resize([8, 8])({"image": images, "labels": labels, "boxes": boxes, "id": "x", "number": 3})
    assert result["image"].shape == [(8, 8, 3)] * 5
    assert result["labels"] is labels
    assert result["boxes"] is boxes
    assert (result["id"], result["number"]) == ("x", 3)


def test_batches_without_a_layout_count_as_images_once():
    images = ndd.batch([np.zeros((9, 7, 3), np.uint8)] * 2)
    a, b = v2.CenterCrop(4)((images, images))
    assert a.shape == [(4, 4, 3)] * 2
    assert b is images


def test_masks_beside_images_move_with_them():
    """HW beside HWC: the same windows and flips, without mixing classes."""
    masks = [torch.randint(0, 21, size, dtype=torch.uint8, generator=MADE) for size in SIZES]
    images = [mask.repeat(3, 1, 1) for mask in masks]
    work = v2.Compose(
        [v2.RandomResize(30, 60), v2.RandomHorizontalFlip(), v2.RandomCrop(32, pad_if_needed=True, fill={"others": 0})]
    )
    torch.manual_seed(5)
    moved, ids = work((batch_of(images, "HWC"), ndd.as_batch(masks, layout="HW")))
    assert ids.layout == "HW"
    assert ids.shape == [(32, 32)] * 5
    assert set(ids.torch().unique().tolist()) <= set(range(21))
    assert moved.shape == [(32, 32, 3)] * 5


def test_targets_move_together():
    image = torch.zeros(3, 40, 60, dtype=torch.uint8)
    image[:, 10:20, 30:50] = 255
    boxes = ndd.batch([np.array([[0.5, 0.25, 50 / 60, 0.5]], np.float32)] * 6)
    targets = ndd.Targets(batch_of([image] * 6, "HWC"), boxes)
    torch.manual_seed(0)
    moved = v2.Compose([v2.RandomHorizontalFlip(), v2.RandomVerticalFlip(), v2.Resize((80, 90))])(targets)
    for picture, box in zip(samples_of(moved.images), moved.boxes, strict=True):
        rows, columns = (picture[0] > 200).nonzero(as_tuple=True)
        x0, y0, x1, y1 = (box.torch()[0] * torch.tensor([90, 80, 90, 80])).tolist()
        seen = (int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1)
        assert np.allclose(seen, (x0, y0, x1, y1), atol=1.1)


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize(
    "name", ["RandomHorizontalFlip", "ColorJitter", "RandomErasing", "TrivialAugmentWide", "RandAugment"]
)
def test_small_batches(name, count):
    batch = ndd.batch([np.zeros((8, 9, 3), np.uint8)] * 3, layout="HWC").select(list(range(count)))
    result = getattr(v2, name)(*CASES.get(name, [()])[0])(batch)
    assert result.shape == [(8, 9, 3)] * count


def test_one_sample_of_ndd():
    image = IMAGES["bytes"][0]
    sample = batch_of([image], "HWC").select(0)
    for name, arguments in (("Resize", (20,)), ("RandomRotation", (30,)), ("AugMix", ()), ("ColorJitter", (0.4, 0.4))):
        result = outcome(getattr(v2, name)(*arguments), sample, 0)
        assert isinstance(result, ndd.Tensor), name
        expected = outcome(getattr(theirs, name)(*arguments), image, 0)
        assert not of_pixels(name, result.torch().permute(2, 0, 1), expected), name


def test_jpeg():
    """The images of torchvision's wheel need its library: here a batch is what its samples are alone, and bad quality shows."""
    # Grey: of colours that change from pixel to pixel JPEG loses the most by halving them, at any quality.
    images = [image[:1].repeat(3, 1, 1) for image in IMAGES["bytes"]]
    torch.manual_seed(0)
    result = samples_of(v2.JPEG((5, 95))(batch_of(images, "HWC")))
    torch.manual_seed(0)
    assert all(torch.equal(a, v2.JPEG((5, 95))(b)) for a, b in zip(result, images, strict=True))
    bad, good = (samples_of(v2.JPEG(quality)(batch_of(images, "HWC")))[0].int() for quality in (5, 95))
    assert (bad - images[0].int()).abs().float().mean() > 2 * (good - images[0].int()).abs().float().mean()


def test_batches_of_different_size_in_one_input():
    images = batch_of(IMAGES["bytes"], "HWC")
    with pytest.raises(ValueError, match="different numbers of samples"):
        v2.CenterCrop(4)((images, batch_of(IMAGES["bytes"][:2], "HWC")))
