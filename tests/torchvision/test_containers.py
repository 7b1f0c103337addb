"""`Compose`, `RandomApply`, `RandomChoice`, `RandomOrder`: in torchvision's order, and for each sample of a batch."""

from __future__ import annotations

import copy
import inspect
from pathlib import Path

import numpy as np
import pytest
import torch
from encoded import FOLDER, needs_files
from torchvision_classes import MEAN, STD, batch_of, difference, inputs, outcome, samples_of, theirs

import ndd
from ndd.torchvision import v2

INPUTS = inputs()


def composed(module):
    return module.Compose([
        module.RandomHorizontalFlip(),
        module.RandomApply([module.Pad(1), module.RandomInvert()], p=0.5),
        module.RandomChoice([module.RandomPosterize(2, p=1.0), module.Identity(), module.RandomSolarize(99, p=1.0)], p=[1, 2, 3]),
        module.RandomOrder([module.CenterCrop(30), module.RandomVerticalFlip(), module.Pad(2)]),
        module.RandomCrop(20),
    ])  # fmt: skip


@pytest.mark.parametrize("kind", ["bytes", "PIL", "detection", "segmentation", "video", "with a label"])
@pytest.mark.drawn(1)
def test_as_torchvision(kind):
    own, wanted = composed(v2), composed(theirs)
    assert repr(own) == repr(wanted)
    for seed in range(6):
        a, b = (outcome(each, copy.deepcopy(INPUTS[kind]), seed) for each in (own, wanted))
        if isinstance(a, Exception):
            raise a
        assert not difference("Compose", a, b), seed


def test_a_dict_of_fills_stays_as_it_was():
    fills = {torch.Tensor: (1, 2, 3), "others": None}
    v2.Pad(2, fill=fills)
    assert fills == {torch.Tensor: (1, 2, 3), "others": None}


def test_several_arguments():
    image = INPUTS["bytes"]
    for name in ("RandomApply", "RandomChoice", "RandomOrder", "Compose"):
        a, b = getattr(v2, name)([v2.Identity()])(image, 5)
        assert (a is image, b) == (True, 5)


def test_module_lists():
    torch.manual_seed(0)
    work = v2.RandomApply(torch.nn.ModuleList([v2.RandomInvert(p=1.0)]), p=1.0)
    assert torch.equal(work(INPUTS["bytes"]), 255 - INPUTS["bytes"])


IMAGE = torch.arange(16 * 16 * 3).reshape(3, 16, 16).remainder(251).to(torch.uint8)


def numbered(n):
    return batch_of([IMAGE] * n, "HWC"), ndd.batch(np.arange(n))


def kinds_of(samples, choices):
    """Which of the choices each sample is."""
    return [next(k for k, choice in enumerate(choices) if torch.equal(sample, choice)) for sample in samples]


def test_random_apply_of_a_batch():
    torch.manual_seed(0)
    images, labels = v2.RandomApply([v2.RandomInvert(p=1.0)], p=0.3)(numbered(600))
    changed = kinds_of(samples_of(images), [IMAGE, 255 - IMAGE])
    assert 0.24 < np.mean(changed) < 0.36
    assert labels.torch().tolist() == list(range(600))
    once = v2.RandomApply([v2.RandomInvert(p=1.0)], p=0.5, same_on_batch=True)
    seen = {tuple(set(kinds_of(samples_of(once(numbered(8))[0]), [IMAGE, 255 - IMAGE]))) for _ in range(20)}
    assert seen == {(0,), (1,)}


def test_random_choice_of_a_batch():
    torch.manual_seed(0)
    work = v2.RandomChoice([v2.RandomInvert(p=1.0), v2.RandomHorizontalFlip(p=1.0), v2.Identity()], p=[1, 2, 1])
    images, labels = work(numbered(800))
    counts = np.bincount(kinds_of(samples_of(images), [255 - IMAGE, IMAGE.flip(2), IMAGE]))
    assert np.allclose(counts / 800, [0.25, 0.5, 0.25], atol=0.06)
    assert labels.torch().tolist() == list(range(800))


def test_random_order_of_a_batch():
    """Solarising and inverting differ by their order."""
    first = theirs.functional.invert(theirs.functional.solarize(IMAGE, 100))
    last = theirs.functional.solarize(theirs.functional.invert(IMAGE), 100)
    torch.manual_seed(0)
    work = v2.RandomOrder([v2.RandomSolarize(100, p=1.0), v2.RandomInvert(p=1.0)])
    assert 0.4 < np.mean(kinds_of(samples_of(work(numbered(500))[0]), [first, last])) < 0.6


def test_samples_that_cannot_lie_together():
    work = v2.RandomApply([v2.ToDtype(torch.float32)], p=0.5)
    torch.manual_seed(0)
    with pytest.raises(ValueError, match="one type, rank, layout"):
        work(numbered(20))


@pytest.mark.parametrize("first", ["ToImage", "PILToTensor", None])
@pytest.mark.parametrize("layout", ["HWC", "CHW"])
def test_normalising_is_one_pass(first, layout):
    """The numbers of one transform after the other, and of torchvision."""
    images = [torch.randint(0, 256, (3, h, 20), dtype=torch.uint8) for h in (9, 13)]
    steps = lambda module: [  # noqa: E731
        *([getattr(module, first)()] if first else []), module.RandomHorizontalFlip(),
        module.ToDtype(torch.float32, scale=True), module.Normalize(MEAN, STD),
    ]  # fmt: skip
    torch.manual_seed(2)
    result = v2.Compose(steps(v2))(batch_of(images, layout))
    assert result.layout == ("CHW" if first else layout)
    torch.manual_seed(2)
    singly = batch_of(images, layout)
    for step in steps(v2):
        singly = step(singly)
    torch.manual_seed(2)
    wanted = [theirs.Compose(steps(theirs)[bool(first) :])(image) for image in images]
    for a, b, c in zip(samples_of(result), samples_of(singly), wanted, strict=True):
        assert torch.allclose(a, c, atol=1e-5)
        assert torch.allclose(b, c, atol=1e-5)


@pytest.mark.parametrize("flipped", [False, True])
def test_normalising_beside_masks(flipped, monkeypatch):
    """One pass, unless a flip has to move the masks as well; the masks come out as they are."""
    images = [torch.randint(0, 256, (3, h, 20), dtype=torch.uint8) for h in (9, 13)]
    masks = ndd.batch([image[0] for image in images], layout="HW")
    flip = [v2.RandomHorizontalFlip(1.0)] if flipped else []
    steps = [*flip, v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    passes, call = [], ndd.crop_mirror_normalize
    monkeypatch.setattr(ndd, "crop_mirror_normalize", lambda *a, **k: passes.append(1) or call(*a, **k))
    result, labels = v2.Compose(steps)((batch_of(images, "HWC"), masks))
    assert len(passes) == (not flipped)
    for image, a, b in zip(images, samples_of(result), labels, strict=True):
        image = image.flip(2) if flipped else image
        assert torch.equal(b.torch(), image[0])
        wanted = theirs.Compose([theirs.ToDtype(torch.float32, scale=True), theirs.Normalize(MEAN, STD)])(image)
        assert torch.allclose(a, wanted, atol=1e-5)


def test_what_looks_at_the_layout_sees_it():
    seen = []
    work = v2.Compose([v2.ToImage(), v2.CenterCrop(8), v2.Lambda(lambda b: seen.append(b.layout) or b, ndd.Batch)])
    assert work(numbered(2)[0]).layout == "CHW"
    assert seen == ["CHW"]
    assert v2.Compose([v2.ToImage(), v2.CenterCrop(8)])(numbered(2)[0]).layout == "CHW"


@pytest.mark.filterwarnings("ignore")
def test_to_tensor():
    result = v2.Compose([v2.ToTensor(), v2.Normalize(MEAN, STD)])(numbered(2)[0])
    wanted = theirs.Compose([theirs.ToDtype(torch.float32, scale=True), theirs.Normalize(MEAN, STD)])(IMAGE)
    assert torch.allclose(samples_of(result)[1], wanted, atol=1e-5)
    assert v2.ToTensor()(numbered(2)[0]).torch().max() <= 1


@needs_files
def test_the_validation_recipe_on_files():
    """Equal in size and place for every picture; at most 1 of 255 apart."""
    from PIL import Image

    steps = lambda module: [module.Resize(256), module.CenterCrop(224), module.PILToTensor()]  # noqa: E731
    files = sorted((FOLDER / "imagenet").rglob("*.[jJ][pP]*"))[:32]
    pictures = [np.array(Image.open(file).convert("RGB")) for file in files]
    result = v2.Compose(steps(v2))(ndd.as_batch(pictures, layout="HWC")).torch()
    for i, picture in enumerate(pictures):
        wanted = theirs.Compose(steps(theirs))(Image.fromarray(picture))
        assert (result[i].int() - wanted.int()).abs().max() <= 1, files[i]


def test_errors_name_the_line_that_called_the_transforms():
    """And not the line of torch's that calls `forward`."""
    images = ndd.batch([torch.zeros(9, 9, 3, dtype=torch.uint8)], layout="HWC")
    work = v2.Compose([v2.Resize(8), v2.RandomHorizontalFlip(), v2.RandomCrop(20)])
    line = inspect.currentframe().f_lineno + 2
    with pytest.raises(ValueError, match=f"called at .*{Path(__file__).name}:{line}: .*larger than input image size"):
        work(images).evaluate()
