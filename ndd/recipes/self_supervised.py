"""Recipes for learning without labels: several views of each picture."""

from __future__ import annotations

from typing import Any

import ndd
from ndd.recipes.classification import MEAN, STD
from ndd.recipes.recipe import recipe


@recipe
def simclr(
    jpegs: Any, /, size: int = 224, *, views: int = 2, strength: float = 1.0, device: str = "cpu", rng: Any = None
) -> Any:
    """Encoded pictures to `views` batches of float32 CHW, `size` x `size`: different views of the same pictures.

    Equals the recipe of SimCLR ("A Simple Framework for Contrastive Learning of Visual Representations",
    https://arxiv.org/abs/2002.05709, appendix A): a random window, mirrored at random; colour jitter with probability 0.8, grey
    with 0.2, and a blur over a tenth of the side with 0.5. As there, values are 0 to 1, not normalized.

    Args:
        size: height and width of the results, in pixels.
        views: the number of views of each picture.
        strength: the strength of the colour jitter: 0.8, 0.8, 0.8 and 0.2 times this. The paper takes 1.0 for ImageNet, 0.5 for
            CIFAR.
        device: "cpu" or "gpu".
        rng: an `ndd.random.RNG`; without it the generator of the thread.

    >>> import ndd
    >>> print(ndd.recipes.simclr(96, strength=0.5).settings)
    {'size': 96, 'views': 2, 'strength': 0.5, 'device': 'cpu', 'rng': None}
    """
    pictures = ndd.decoders.image(jpegs, device=device, jpeg_fancy_upsampling=True)
    window = size // 10 // 2 * 2 + 1
    pair = []
    for _ in range(views):
        flipped, jittered, grey, blurred = (
            ndd.random.coin_flip(batch_size=jpegs.batch_size, probability=p, rng=rng) for p in (0.5, 0.8, 0.2, 0.5)
        )
        sigma = ndd.random.uniform(range=[0.1, 2.0], batch_size=jpegs.batch_size, rng=rng)
        images = ndd.random_resized_crop(pictures, size=[size, size], rng=rng)
        reach = jittered * (0.8 * strength)
        images = ndd.color_jitter(images, brightness=reach, contrast=reach, saturation=reach, hue=reach / 4, rng=rng)
        images = ndd.color_jitter(images, saturation=ndd.stack(1.0 - grey, 1.0 - grey), rng=rng)
        images = ndd.gaussian_blur(images, sigma=sigma, window_size=1 + (window - 1) * blurred)
        pair.append(ndd.crop_mirror_normalize(images, mirror=flipped, mean=[0.0], std=[255.0]))
    return tuple(pair)


@recipe
def dino_multicrop(
    jpegs: Any,
    /,
    size: int = 224,
    *,
    local_size: int = 96,
    local_crops: int = 8,
    global_scale: tuple[float, float] = (0.4, 1.0),
    local_scale: tuple[float, float] = (0.05, 0.4),
    device: str = "cpu",
    rng: Any = None,
) -> Any:
    """Encoded pictures to 2 batches of large windows and `local_crops` of small ones, float32 CHW.

    Equals `DataAugmentationDINO` of DINO ("Emerging Properties in Self-Supervised Vision Transformers",
    https://arxiv.org/abs/2104.14294): windows resized by cubic interpolation, mirrored at random; colour jitter with
    probability 0.8 and grey with 0.2; a blur for all first large windows, for the second with 0.1 and for small ones with 0.5;
    the second is solarized with 0.2.

    Args:
        size, local_size: height and width of the large and of the small windows, in pixels.
        local_crops: the number of small windows.
        global_scale, local_scale: their shares of the picture's area.
        device: "cpu" or "gpu".
        rng: an `ndd.random.RNG`; without it the generator of the thread.

    >>> import ndd
    >>> ndd.recipes.dino_multicrop(local_crops=6).settings["local_scale"]
    (0.05, 0.4)
    """
    pictures = ndd.decoders.image(jpegs, device=device, jpeg_fancy_upsampling=True)
    crops = []
    kinds = [(size, global_scale, 1.0, 0.0), (size, global_scale, 0.1, 0.2)]
    for side, scale, blur, solarize in kinds + [(local_size, local_scale, 0.5, 0.0)] * local_crops:
        flipped, jittered, grey, blurred, solarized = (
            ndd.random.coin_flip(batch_size=jpegs.batch_size, probability=p, rng=rng)
            for p in (0.5, 0.8, 0.2, blur, solarize)
        )
        sigma = ndd.random.uniform(range=[0.1, 2.0], batch_size=jpegs.batch_size, rng=rng)
        cubic = ndd.types.INTERP_CUBIC
        images = ndd.random_resized_crop(pictures, size=[side, side], random_area=scale, interp_type=cubic, rng=rng)
        reach = jittered * 0.4
        images = ndd.color_jitter(
            images, brightness=reach, contrast=reach, saturation=reach / 2, hue=reach / 4, rng=rng
        )
        images = ndd.color_jitter(images, saturation=ndd.stack(1.0 - grey, 1.0 - grey), rng=rng)
        images = ndd.gaussian_blur(images, sigma=sigma, window_size=1 + 8 * blurred)
        if solarize:
            flags = 255 * (solarized.gpu() if device == "gpu" else solarized)
            images = images ^ ndd.cast((images >= 128) * flags, dtype=ndd.uint8)
        crops.append(ndd.crop_mirror_normalize(images, mirror=flipped, mean=MEAN, std=STD))
    return tuple(crops)
