"""RandAugment (arXiv:1909.13719): each sample gets n augmentations drawn from a suite, all of one strength."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ndd._tensor.user_line import warn_user
from ndd.auto_aug import augmentations as a
from ndd.auto_aug.declare import Augmentation, forbid_unused
from ndd.auto_aug.policy import positive_bins
from ndd.auto_aug.selection import checked_images, decide, divided, picked, signed, taken_by, without

_ABS, _REL = 100, 100 / 224
_GEOMETRY = [
    a.shear_x.augmentation((0, 0.3), True),
    a.shear_y.augmentation((0, 0.3), True),
    a.rotate.augmentation((0, 30), True),
]
_REST = [a.equalize, a.auto_contrast, a.identity]
_MONOTONIC = [
    *_GEOMETRY,
    a.brightness.augmentation((0, 0.9), True, a.shift_enhance_range),
    a.contrast.augmentation((0, 0.9), True, a.shift_enhance_range),
    a.color.augmentation((0, 0.9), True, a.shift_enhance_range),
    a.sharpness.augmentation((0, 0.9), True, a.sharpness_kernel),
    a.posterize.augmentation((8, 4), False, a.poster_mask_uint8),
    a.solarize.augmentation((256, 0)),
    *_REST,
]
_NON_MONOTONIC = [
    *_GEOMETRY,
    a.brightness.augmentation((0.1, 1.9), False, None),
    a.contrast.augmentation((0.1, 1.9), False, None),
    a.color.augmentation((0.1, 1.9), False, None),
    a.sharpness.augmentation((0.1, 1.9), False, a.sharpness_kernel_shifted),
    a.posterize.augmentation((0, 4), False, a.poster_mask_uint8),
    a.solarize.augmentation((0, 256), False, None),
    *_REST,
]


def rand_augment(
    data: Any,
    n: int,
    m: int,
    num_magnitude_bins: int = 31,
    shape: Any = None,
    fill_value: int | None = 128,
    interp_type: Any = None,
    max_translate_abs: Any = None,
    max_translate_rel: Any = None,
    seed: int | None = None,
    monotonic_mag: bool = True,
    excluded: Sequence[str] | None = None,
    *,
    rng: Any = None,
) -> Any:
    """RandAugment: applies `n` augmentations to each sample, one after the other, each drawn from 14 of them.

    Args:
        data: a batch of uint8 RGB images HWC or videos FHWC (a video gets one decision), or one; without a layout HWC or
            FHWC by rank. In pipeline mode a DataNode.
        n: the number of augmentations of each sample.
        m: their magnitude bin, from 0 to `num_magnitude_bins - 1`.
        num_magnitude_bins: the number of magnitude bins.
        shape: (H, W) of all images, or a batch of the shapes (H, W, ...): translations are then a fraction of the image.
        fill_value: the value outside when an image is sheared, shifted or rotated. None repeats the border.
        interp_type: INTERP_LINEAR (default) or INTERP_NN, for these.
        max_translate_abs: without `shape`: the largest shift in pixels, or (vertical, horizontal).
            Default: 100.
        max_translate_rel: with `shape`: the largest shift as a fraction of the image. Default: 100 / 224.
        seed: the seed of the draws. In a loop every call with the same seed draws the same; a pipeline continues from run to
            run.
        monotonic_mag: the strength grows with the bin. False: the magnitudes of AutoAugment, see
            `get_rand_augment_non_monotonic_suite`.
        excluded: names of augmentations to leave out.
        rng: an `ndd.random.RNG` to draw from, in a loop; default: the thread's. A call advances it by seven words.

    Every sample has its own augmentations and signs, drawn independently (in DALI both come from one seed, and are correlated).
    The result has the form of `data`, in the order of the samples.

    Raises RuntimeError for other types and layouts, ValueError and TypeError for other arguments. `n=0` warns.

    >>> import ndd
    >>> from ndd.auto_aug import rand_augment
    >>> images = ndd.batch([[[[10, 20, 30]]], [[[40, 50, 60]]]], dtype=ndd.uint8, layout="HWC")
    >>> rand_augment.rand_augment(images, n=2, m=17, rng=ndd.random.RNG(4)).shape
    [(1, 1, 3), (1, 1, 3)]
    """
    data = checked_images("rand_augment", data)
    suite = get_rand_augment_suite if monotonic_mag else get_rand_augment_non_monotonic_suite
    augmentations = suite(shape is not None, max_translate_abs, max_translate_rel)
    chosen = without(excluded, augmentations, "rand_augment")
    named = taken_by(chosen, shape, fill_value, interp_type)
    return apply_rand_augment(chosen, data, n, m, num_magnitude_bins, seed, rng=rng, **named)


def apply_rand_augment(
    augmentations: Sequence[Augmentation],
    data: Any,
    n: int,
    m: int,
    num_magnitude_bins: int = 31,
    seed: int | None = None,
    *,
    rng: Any = None,
    **kwargs: Any,
) -> Any:
    """RandAugment with your own augmentations: draws `n` of them for each sample, all with magnitude bin `m`.

    Args:
        augmentations: the augmentations to draw from, with equal probabilities.
        data, n, m, num_magnitude_bins, seed, rng: as for `rand_augment`.
        kwargs: passed by name to the augmentations that take them; batches among them are divided like the samples.

    Raises ValueError for other numbers and without augmentations, TypeError for an argument that no augmentation takes.

    >>> import ndd
    >>> from ndd.auto_aug import augmentations, rand_augment
    >>> images = ndd.batch([[[[10, 20, 30]]]], dtype=ndd.uint8, layout="HWC")
    >>> rand_augment.apply_rand_augment([augmentations.invert], images, n=1, m=0).torch().flatten().tolist()
    [245, 235, 225]
    """
    which = "apply_rand_augment"
    if not isinstance(n, int) or n < 0:
        raise ValueError(f"{which}: the number of augmentations `n` is to be an integer from 0, got {n!r}")
    positive_bins(which, num_magnitude_bins)
    if not isinstance(m, int) or not 0 <= m < num_magnitude_bins:
        raise ValueError(
            f"{which}: the magnitude bin `m` is to be an integer from 0 to {num_magnitude_bins - 1}, got {m!r}"
        )
    if n == 0:
        warn_user(f"{which}: n=0: no augmentation is applied")
        return data
    if not augmentations:
        raise ValueError(f"{which}: `augmentations` is empty")
    forbid_unused(augmentations, kwargs, which)

    def steps(data: Any, draw: Any, **named: Any) -> Any:
        draws = draw(2 * n)
        index = picked(draws[:, :n], len(augmentations))
        negative = draws[:, n:] < 0.5
        for step in range(n):
            settings = {"magnitude_bin": signed(m, negative[:, step]), "num_magnitude_bins": num_magnitude_bins}
            data = divided(augmentations, index[:, step], data, settings | named, "get_rand_augment_suite")
        return data

    return decide(which, data, seed, rng, steps, kwargs)


def get_rand_augment_suite(
    use_shape: bool = False, max_translate_abs: Any = None, max_translate_rel: Any = None
) -> list[Augmentation]:
    """The 14 augmentations of `rand_augment`, whose strength grows with the bin.

    Args:
        use_shape: translations are a fraction of the image, whose `shape` the augmentations then need.
        max_translate_abs, max_translate_rel: as for `rand_augment`.

    >>> from ndd.auto_aug import rand_augment
    >>> [x.name for x in rand_augment.get_rand_augment_suite()][:4]
    ['translate_x', 'translate_y', 'shear_x', 'shear_y']
    """
    return a.translations(use_shape, _ABS, _REL, max_translate_abs, max_translate_rel) + _MONOTONIC


def get_rand_augment_non_monotonic_suite(
    use_shape: bool = False, max_translate_abs: Any = None, max_translate_rel: Any = None
) -> list[Augmentation]:
    """The same with the magnitudes of AutoAugment for brightness, contrast, color and sharpness (0.1 to 1.9, weakest in
    the middle), posterize and solarize (weakest in the last bin).

    Args:
        use_shape, max_translate_abs, max_translate_rel: as for `get_rand_augment_suite`.

    >>> from ndd.auto_aug import rand_augment
    >>> len(rand_augment.get_rand_augment_non_monotonic_suite())
    14
    """
    return a.translations(use_shape, _ABS, _REL, max_translate_abs, max_translate_rel) + _NON_MONOTONIC


__all__ = ["apply_rand_augment", "get_rand_augment_non_monotonic_suite", "get_rand_augment_suite", "rand_augment"]
