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
    """TrivialAugment Wide: for each sample one of 14 augmentations and one magnitude bin, all equally likely.

    Args:
        data: a batch of uint8 RGB images HWC or videos FHWC (a video gets one decision), or one; without a layout HWC or
            FHWC by rank. In pipeline mode a DataNode.
        num_magnitude_bins: into how many bins magnitudes are divided.
        shape: (H, W) of all images, or a batch of the shapes (H, W, ...): translations are then a part of the image.
        fill_value: what comes in from outside when an image is sheared, moved or turned. None repeats the border.
        interp_type: INTERP_LINEAR (default) or INTERP_NN, of these.
        max_translate_abs: without `shape`: the most that images are moved, in pixels, or (vertically, horizontally).
            Default: 32.
        max_translate_rel: with `shape`: the same as a part of the image. Default: 1.
        seed: of the draws. In a loop every call with the same seed decides the same; a pipeline goes on from run to run.
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
    """TrivialAugment with augmentations of your own: one of them and one magnitude bin for each sample.

    Args:
        augmentations: what to draw from; all equally likely.
        data, num_magnitude_bins, seed, rng: as of `trivial_augment_wide`.
        kwargs: given to the augmentations that take them by name; batches among them are divided as the samples are.

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
        use_shape: translations are a part of the image, whose `shape` the augmentations then need.
        max_translate_abs, max_translate_rel: as of `trivial_augment_wide`.

    >>> from ndd.auto_aug import trivial_augment
    >>> trivial_augment.get_trivial_augment_wide_suite()[4].mag_range
    (0, 135)
    """
    return a.translations(use_shape, _ABS, _REL, max_translate_abs, max_translate_rel) + _WIDE


__all__ = ["apply_trivial_augment", "get_trivial_augment_wide_suite", "trivial_augment_wide"]
