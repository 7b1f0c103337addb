"""TrivialAugment (arXiv:2103.10158): each sample gets one augmentation of a random strength."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ndd.auto_aug import augmentations as a
from ndd.auto_aug.declare import Augmentation, forbid_unused
from ndd.auto_aug.policy import positive_bins
from ndd.auto_aug.selection import checked_images, decide, divided, picked, signed, taken_by, without

_ABS, _REL = 32, 1.0
_WIDE = [
    a.shear_x.augmentation((0, 0.99), True),
    a.shear_y.augmentation((0, 0.99), True),
    a.rotate.augmentation((0, 135), True),
    a.brightness.augmentation((0.01, 0.99), True, a.shift_enhance_range),
    a.contrast.augmentation((0.01, 0.99), True, a.shift_enhance_range),
    a.color.augmentation((0.01, 0.99), True, a.shift_enhance_range),
    a.sharpness.augmentation((0.01, 0.99), True, a.sharpness_kernel),
    a.posterize.augmentation((8, 2), False, a.poster_mask_uint8),
    a.solarize.augmentation((256, 0)),
    a.equalize,
    a.auto_contrast,
    a.identity,
]


def trivial_augment_wide(
    data: Any,
    num_magnitude_bins: int = 31,
    shape: Any = None,
    fill_value: int | None = 128,
    interp_type: Any = None,
    max_translate_abs: Any = None,
    max_translate_rel: Any = None,
    seed: int | None = None,
    excluded: Sequence[str] | None = None,
    *,
    rng: Any = None,
) -> Any:
    """TrivialAugment Wide: draws for each sample one of 14 augmentations and one magnitude bin, with equal probabilities.

    Args:
        data: a batch of uint8 RGB images HWC or videos FHWC (a video gets one decision), or one; without a layout HWC or
            FHWC by rank. In pipeline mode a DataNode.
        num_magnitude_bins: the number of magnitude bins.
        shape: (H, W) of all images, or a batch of the shapes (H, W, ...): translations are then a fraction of the image.
        fill_value: the value outside when an image is sheared, shifted or rotated. None repeats the border.
        interp_type: INTERP_LINEAR (default) or INTERP_NN, for these.
        max_translate_abs: without `shape`: the largest shift in pixels, or (vertical, horizontal).
            Default: 32.
        max_translate_rel: with `shape`: the largest shift as a fraction of the image. Default: 1.
        seed: the seed of the draws. In a loop every call with the same seed draws the same; a pipeline continues from run to
            run.
        excluded: names of augmentations to leave out.
        rng: an `ndd.random.RNG` to draw from, in a loop; default: the thread's. A call advances it by seven words.

    Raises RuntimeError for other types and layouts, ValueError and TypeError for other arguments.

    >>> import ndd
    >>> from ndd.auto_aug import trivial_augment
    >>> images = ndd.batch([[[[10, 20, 30]]], [[[40, 50, 60]]]], dtype=ndd.uint8, layout="HWC")
    >>> trivial_augment.trivial_augment_wide(images, rng=ndd.random.RNG(4)).shape
    [(1, 1, 3), (1, 1, 3)]
    """
    data = checked_images("trivial_augment_wide", data)
    augmentations = get_trivial_augment_wide_suite(shape is not None, max_translate_abs, max_translate_rel)
    chosen = without(excluded, augmentations, "trivial_augment_wide")
    named = taken_by(chosen, shape, fill_value, interp_type)
    return apply_trivial_augment(chosen, data, num_magnitude_bins, seed, rng=rng, **named)


def apply_trivial_augment(
    augmentations: Sequence[Augmentation],
    data: Any,
    num_magnitude_bins: int = 31,
    seed: int | None = None,
    *,
    rng: Any = None,
    **kwargs: Any,
) -> Any:
    """TrivialAugment with your own augmentations: draws one of them and one magnitude bin for each sample.

    Args:
        augmentations: the augmentations to draw from, with equal probabilities.
        data, num_magnitude_bins, seed, rng: as for `trivial_augment_wide`.
        kwargs: passed by name to the augmentations that take them; batches among them are divided like the samples.

    Raises ValueError for other numbers and without augmentations, TypeError for an argument that no augmentation takes.

    >>> import ndd
    >>> from ndd.auto_aug import augmentations, trivial_augment
    >>> images = ndd.batch([[[[10, 20, 30]]]], dtype=ndd.uint8, layout="HWC")
    >>> trivial_augment.apply_trivial_augment([augmentations.invert], images).torch().flatten().tolist()
    [245, 235, 225]
    """
    which = "apply_trivial_augment"
    positive_bins(which, num_magnitude_bins)
    if not augmentations:
        raise ValueError(f"{which}: `augmentations` is empty")
    forbid_unused(augmentations, kwargs, which)

    def steps(data: Any, draw: Any, **named: Any) -> Any:
        draws = draw(3)
        bins = signed(picked(draws[:, 1], num_magnitude_bins), draws[:, 2] < 0.5)
        settings = {"magnitude_bin": bins, "num_magnitude_bins": num_magnitude_bins}
        index = picked(draws[:, 0], len(augmentations))
        return divided(augmentations, index, data, settings | named, "get_trivial_augment_wide_suite")

    return decide(which, data, seed, rng, steps, kwargs)


def get_trivial_augment_wide_suite(
    use_shape: bool = False, max_translate_abs: Any = None, max_translate_rel: Any = None
) -> list[Augmentation]:
    """The 14 augmentations of `trivial_augment_wide`.

    Args:
        use_shape: translations are a fraction of the image, whose `shape` the augmentations then need.
        max_translate_abs, max_translate_rel: as for `trivial_augment_wide`.

    >>> from ndd.auto_aug import trivial_augment
    >>> trivial_augment.get_trivial_augment_wide_suite()[4].mag_range
    (0, 135)
    """
    return a.translations(use_shape, _ABS, _REL, max_translate_abs, max_translate_rel) + _WIDE


__all__ = ["apply_trivial_augment", "get_trivial_augment_wide_suite", "trivial_augment_wide"]
