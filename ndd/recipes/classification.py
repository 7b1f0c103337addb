"""Recipes for classification."""

from __future__ import annotations

from typing import Any, Literal

import ndd
from ndd.recipes.recipe import recipe

MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]


@recipe
def imagenet_train(
    jpegs: Any,
    /,
    size: int = 224,
    *,
    augment: Literal["trivial", "rand", "auto"] | None = None,
    random_erase: float = 0.0,
    device: str = "cpu",
    rng: Any = None,
) -> Any:
    """Encoded pictures to float32 CHW of `size` x `size`, for training on ImageNet.

    Equals torchvision's references/classification, `ClassificationPresetTrain`: with its defaults the recipe of ResNet ("Deep
    Residual Learning", https://arxiv.org/abs/1512.03385), with `size=176, augment="trivial", random_erase=0.1` the new one of
    its weights V2. Pixels are torchvision's for the same window, within 1 of 255; the policies are those of `ndd.auto_aug`.

    Args:
        size: height and width of the results, in pixels.
        augment: "trivial" is TrivialAugmentWide, "rand" RandAugment (2 steps of magnitude 9), "auto" AutoAugment of ImageNet.
        random_erase: the probability that a rectangle becomes 0.
        device: "cpu" or "gpu".
        rng: an `ndd.random.RNG`; without it the generator of the thread.

    >>> import ndd
    >>> ndd.recipes.imagenet_train(176, augment="trivial", random_erase=0.1)
    imagenet_train(size=176, augment='trivial', random_erase=0.1, device='cpu', rng=None)
    """
    images = ndd.decoders.image_random_crop(jpegs, device=device, jpeg_fancy_upsampling=True, rng=rng)
    images = ndd.resize(images, size=[size, size], rule="torchvision")
    mirror = ndd.random.coin_flip(batch_size=jpegs.batch_size, rng=rng)
    if augment is not None:
        images, mirror = ndd.flip(images, horizontal=mirror), 0
    if augment == "trivial":
        images = ndd.auto_aug.trivial_augment.trivial_augment_wide(images, fill_value=0, rng=rng)
    elif augment == "rand":
        images = ndd.auto_aug.rand_augment.rand_augment(images, n=2, m=9, fill_value=0, rng=rng)
    elif augment == "auto":
        images = ndd.auto_aug.auto_augment.auto_augment(images, "image_net", fill_value=0, rng=rng)
    images = ndd.crop_mirror_normalize(images, mirror=mirror, mean=MEAN, std=STD)
    return ndd.random_erasing(images, p=random_erase, rng=rng) if random_erase else images


@recipe
def imagenet_eval(jpegs: Any, /, size: int = 224, *, resize: int = 256, device: str = "cpu") -> Any:
    """Encoded pictures to float32 CHW of `size` x `size`: resizes the shorter side, and crops the centre.

    Equals torchvision's references/classification, `ClassificationPresetEval`: `Resize(256)`, `CenterCrop(224)`, `Normalize`, in
    size, place and pixels. Around pictures that are smaller than the window, it is black.

    Args:
        size: height and width of the results, in pixels.
        resize: the shorter side of the picture before the window is cut, in pixels.
        device: "cpu" or "gpu".

    >>> import ndd
    >>> ndd.recipes.imagenet_eval(224, resize=232)
    imagenet_eval(size=224, resize=232, device='cpu')
    """
    images = ndd.decoders.image(jpegs, device=device, jpeg_fancy_upsampling=True)
    how: dict[str, Any] = {"resize_shorter": resize, "rule": "torchvision"}
    window: dict[str, Any] = {"crop": [size, size], "rounding": "even"}
    if size <= resize:  # no more of the picture is resized than the window
        images = ndd.resize_crop_mirror(images, **how, **window)
    else:
        images = ndd.crop(ndd.resize(images, **how), **window, out_of_bounds_policy="pad")
    return ndd.crop_mirror_normalize(images, mean=MEAN, std=STD)
