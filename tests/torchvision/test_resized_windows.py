"""A resize, flips and a crop in a `Compose` are one operator for batches: with the pixels and random numbers of three."""

from __future__ import annotations

import pytest
import torch
from torchvision_classes import batch_of, theirs, tv_tensors

import ndd
from ndd.torchvision import v2

SIZES = [(37, 53), (60, 31), (24, 60), (33, 33), (61, 47)]
MADE = torch.Generator().manual_seed(3)
IMAGES = [torch.randint(0, 256, (3, *size), dtype=torch.uint8, generator=MADE) for size in SIZES]
MASKS = [torch.randint(0, 21, size, dtype=torch.uint8, generator=MADE) for size in SIZES]
RESIZED = {
    "random": lambda m: m.RandomResize(20, 90), "fixed": lambda m: m.Resize((40, 50), interpolation="bicubic"),
    "shorter": lambda m: m.Resize(30), "limited": lambda m: m.Resize(30, max_size=41),
    "shortest": lambda m: m.RandomShortestSize([20, 30], max_size=45), "jitter": lambda m: m.ScaleJitter((50, 60)),
    "nearest": lambda m: m.RandomResize(20, 90, interpolation="nearest"),
}  # fmt: skip
CROPPED = {
    "centre": lambda m: m.CenterCrop((30, 25)),
    "padded": lambda m: m.RandomCrop((40, 32), pad_if_needed=True, fill={tv_tensors.Mask: 255, "others": 7}),
    "bordered": lambda m: m.RandomCrop(24, padding=[3, 9, 1, 20], pad_if_needed=True, fill=5),
}
FLIPPED = [[], ["RandomHorizontalFlip"], ["RandomVerticalFlip", "RandomHorizontalFlip"]]


def steps(module, resized, flips, cropped):
    return module.Compose([RESIZED[resized](module), *(getattr(module, f)() for f in flips), CROPPED[cropped](module)])


def images_and_masks():
    return batch_of(IMAGES, "HWC"), ndd.as_batch(MASKS, layout="HW")


def one_by_one(work, inputs):
    for step in work.transforms:
        inputs = step(*inputs)
    return inputs


@pytest.mark.parametrize("cropped", CROPPED)
@pytest.mark.parametrize("resized", RESIZED)
@pytest.mark.drawn(1)
def test_as_three_operators(resized, cropped):
    for flips in FLIPPED:
        work, results = steps(v2, resized, flips, cropped), []
        for way in (one_by_one, lambda work, inputs: work(*inputs)):
            torch.manual_seed(1)
            results.append([*way(work, images_and_masks()), torch.rand(1)])
        for a, b in zip(results[0][:2], results[1][:2], strict=True):
            assert (a.dtype, a.layout) == (b.dtype, b.layout)
            assert all(torch.equal(x.torch(), y.torch()) for x, y in zip(a.tensors, b.tensors, strict=True)), flips
        assert results[0][2] == results[1][2]


def test_in_a_nested_structure():
    images, masks = images_and_masks()
    labels = ndd.batch([1, 2, 3, 4, 5])
    work = steps(v2, "random", FLIPPED[1], "padded")
    torch.manual_seed(2)
    wanted = work(images, masks)
    torch.manual_seed(2)
    made = work({"a": [images, {"mask": (masks, "x")}], "labels": labels, "n": None})
    assert (made["labels"], made["n"], made["a"][1]["mask"][1]) == (labels, None, "x")
    for a, b in zip((made["a"][0], made["a"][1]["mask"][0]), wanted, strict=True):
        assert torch.equal(a.torch(), b.torch())


def test_one_size_and_place_for_all_samples():
    """Steps that draw once for a batch go one after the other."""
    resized, cropped = v2.RandomResize(20, 90, same_on_batch=True), v2.RandomCrop(8, same_on_batch=True)
    images = batch_of([IMAGES[0]] * 4, "HWC")
    torch.manual_seed(2)
    made = v2.Compose([resized, cropped])(images).torch()
    torch.manual_seed(2)
    assert torch.equal(made, cropped(resized(images)).torch())
    assert all(torch.equal(sample, made[0]) for sample in made)


@pytest.mark.parametrize("cropped", CROPPED)
@pytest.mark.drawn(1)
def test_as_torchvision(cropped):
    """The references' segmentation: the windows, and the fills of images and of masks."""
    own, wanted = (steps(module, "nearest", [], cropped) for module in (v2, theirs))
    for i in range(len(SIZES)):
        images, masks = (value.select([i]) for value in images_and_masks())
        torch.manual_seed(i)
        image, mask = (value.select(0).torch() for value in own(images, masks))
        torch.manual_seed(i)
        expected, expected_mask = wanted(tv_tensors.Image(IMAGES[i]), tv_tensors.Mask(MASKS[i]))
        assert torch.equal(image.permute(2, 0, 1), expected.as_subclass(torch.Tensor))
        assert torch.equal(mask, expected_mask.as_subclass(torch.Tensor))


@pytest.mark.parametrize("name", ["Pad", "RandomZoomOut", "RandomRotation", "RandomAffine", "RandomPerspective"])
@pytest.mark.drawn(2)
def test_masks_have_their_own_fill(name):
    fill = {tv_tensors.Mask: 255, "others": 9}
    arguments = {"Pad": (4,), "RandomZoomOut": (), "RandomRotation": ((30, 40),), "RandomAffine": ((30, 40),),
                 "RandomPerspective": ()}[name]  # fmt: skip
    how = {"p": 1.0} if name in ("RandomZoomOut", "RandomPerspective") else {}
    own, wanted = (getattr(module, name)(*arguments, fill=fill, **how) for module in (v2, theirs))
    for i in (0, 1):
        torch.manual_seed(i)
        mask = own(*(value.select([i]) for value in images_and_masks()))[1].select(0).torch()
        torch.manual_seed(i)
        expected = wanted(tv_tensors.Image(IMAGES[i]), tv_tensors.Mask(MASKS[i]))[1].as_subclass(torch.Tensor)
        assert 255 in mask
        assert torch.equal(mask, expected)


def test_fewer_pixels_are_resampled(monkeypatch):
    """One call for images, and none of `resize`."""
    calls = []
    for name in ("resize", "resize_crop_mirror"):
        operator = getattr(ndd, name)
        monkeypatch.setattr(
            ndd, name, lambda *args, name=name, operator=operator, **how: calls.append(name) or operator(*args, **how)
        )
    images = batch_of(IMAGES, "HWC")
    assert v2.Compose([v2.Resize(30), v2.CenterCrop(28)])(images).shape == [(28, 28, 3)] * 5
    assert calls == ["resize_crop_mirror"]
