"""Recipes beside the presets of torchvision's references, written out here, for pictures of generated sizes."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from torchvision_rule import torchvision

import ndd
from ndd.recipes.classification import MEAN, STD
from ndd.recipes.video import MEAN as KINETICS_MEAN, STD as KINETICS_STD

Image = pytest.importorskip("PIL.Image")
STEP = 1.01 / (255 * 0.224)  # one of 255, normalized
SIZES = [
    (1, 1),
    (1, 90),
    (37, 1),
    (31, 64),
    (64, 31),
    (33, 33),
    (200, 51),
    (52, 209),
    (90, 91),
    (91, 90),
    (128, 96),
    (77, 300),
]


def shares(values):
    return [value / 255 for value in values]


def pictures(seed=0):
    rng = np.random.default_rng(seed)
    sizes = SIZES + [tuple(rng.integers(2, 240, 2)) for _ in range(12)]
    coarse = [rng.integers(0, 256, (h // 9 + 2, w // 9 + 2, 3), np.uint8) for h, w in sizes]
    return [
        Image.fromarray(c).resize((int(w), int(h)), Image.Resampling.BICUBIC)
        for c, (h, w) in zip(coarse, sizes, strict=True)
    ]


def encoded(images):
    files = []
    for image in images:
        file = io.BytesIO()
        image.save(file, "PNG")
        files.append(np.frombuffer(file.getvalue(), np.uint8))
    return ndd.batch(files)


@pytest.mark.parametrize(
    ("size", "resize"), [(32, 40), (40, 40), (57, 40), (90, 33), (33, 90), (1, 1), (7, 2), (224, 256)]
)
@pytest.mark.drawn(1)
def test_classification_eval(size, resize):
    """Around a picture that is smaller than the window, it is black before it is normalized."""
    v2, images = torchvision().transforms.v2, pictures()
    theirs = v2.Compose(
        [
            v2.Resize(resize, interpolation=v2.InterpolationMode.BILINEAR, antialias=True), v2.CenterCrop(size),
            v2.PILToTensor(), v2.ToDtype(torch.float, scale=True), v2.Normalize(shares(MEAN), shares(STD)),
        ]
    )  # fmt: skip
    made = ndd.recipes.imagenet_eval(size, resize=resize)(encoded(images))
    assert made.shape == [(3, size, size)] * len(images)
    for k, (result, image) in enumerate(zip(made.tensors, images, strict=True)):
        assert (result.torch() - theirs(image)).abs().max() <= STEP, (k, image.size)


@pytest.mark.parametrize("base", [40, 97])
@pytest.mark.drawn(1)
def test_segmentation_eval(base):
    v2, images, tv = torchvision().transforms.v2, pictures(1), torchvision().tv_tensors
    rng = np.random.default_rng(3)
    labels = [rng.integers(0, 21, image.size[::-1], dtype=np.uint8) for image in images]
    theirs = v2.Compose(
        [
            v2.RandomResize(base, base + 1), v2.PILToTensor(),
            v2.ToDtype({tv.Image: torch.float, tv.Mask: torch.int64, "others": None}, scale=True),
            v2.Normalize(shares(MEAN), shares(STD)),
        ]
    )  # fmt: skip
    made, masks = ndd.recipes.segmentation(base=base, train=False)(encoded(images), ndd.batch(labels, layout="HW"))
    assert masks.dtype is ndd.int64
    for k, (image, label) in enumerate(zip(images, labels, strict=True)):
        wanted, mask = theirs(
            tv.Image(torch.from_numpy(np.array(image)).permute(2, 0, 1)), tv.Mask(torch.from_numpy(label))
        )
        assert torch.equal(masks.tensors[k].torch(), mask.as_subclass(torch.Tensor)), (k, image.size)
        assert (made.tensors[k].torch() - wanted).abs().max() <= STEP, (k, image.size)


@pytest.mark.parametrize(("resize", "size"), [((20, 27), 16), ((33, 40), 33)])
@pytest.mark.drawn(1)
def test_video_classification(resize, size):
    v2, rng = torchvision().transforms.v2, np.random.default_rng(5)
    clips = [rng.integers(0, 256, (3, *rng.integers(8, 70, 2), 3), np.uint8) for _ in range(10)]
    mean_and_std = v2.Normalize(shares(KINETICS_MEAN), shares(KINETICS_STD))
    first = v2.Compose([v2.ToDtype(torch.float, scale=True), v2.Resize(resize, antialias=False), mean_and_std])
    whole = [first(torch.from_numpy(clip).permute(0, 3, 1, 2)) for clip in clips]
    tested = ndd.recipes.video_clips(size, resize=resize, train=False)(ndd.batch(clips, layout="FHWC"))
    for result, wanted in zip(tested.tensors, whole, strict=True):
        expected = v2.functional.center_crop(wanted, [size, size]).movedim(1, 0)
        torch.testing.assert_close(result.torch(), expected, rtol=0, atol=1e-4)
    trained = ndd.recipes.video_clips(size, resize=resize, rng=ndd.random.RNG(3))(ndd.batch(clips, layout="FHWC"))
    for result, wanted in zip(trained.tensors, whole, strict=True):
        windows = wanted.unfold(2, size, 1).unfold(3, size, 1).movedim((2, 3), (0, 1)).flatten(0, 1)  # every place
        both = torch.cat((windows, windows.flip(-1)))
        assert (both.movedim(2, 1) - result.torch()).abs().amax((1, 2, 3, 4)).min() <= 1e-4
