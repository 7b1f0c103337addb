"""AutoAugment (arXiv:1805.09501): each sample gets a sequence of augmentations from a learned policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ndd.auto_aug import augmentations as a
from ndd.auto_aug.declare import forbid_unused
from ndd.auto_aug.policy import Policy
from ndd.auto_aug.selection import checked_images, decide, divided, picked, signed

_ABS, _REL = 250, 1.0
_BINS = 11
_STEPS = {
    "shear_x": a.shear_x.augmentation((0, 0.3), True),
    "shear_y": a.shear_y.augmentation((0, 0.3), True),
    "rotate": a.rotate.augmentation((0, 30), True),
    "brightness": a.brightness.augmentation((0.1, 1.9), False, None),
    "contrast": a.contrast.augmentation((0.1, 1.9), False, None),
    "color": a.color.augmentation((0.1, 1.9), False, None),
    "sharpness": a.sharpness.augmentation((0.1, 1.9), False, a.sharpness_kernel_shifted),
    "posterize": a.posterize.augmentation((0, 4), False, a.poster_mask_uint8),
    "solarize": a.solarize.augmentation((0, 256), False),
    "solarize_add": a.solarize_add.augmentation((0, 110), False),
    "invert": a.invert,
    "equalize": a.equalize,
    "auto_contrast": a.auto_contrast,
}

# One sequence per line: augmentation, probability, magnitude bin (-: none).
_IMAGE_NET = """
equalize 0.8 -, shear_y 0.8 4
color 0.4 9, equalize 0.6 -
color 0.4 1, rotate 0.6 8
solarize 0.8 3, equalize 0.4 -
solarize 0.4 2, solarize 0.6 2
color 0.2 0, equalize 0.8 -
equalize 0.4 -, solarize_add 0.8 3
shear_x 0.2 9, rotate 0.6 8
color 0.6 1, equalize 1 -
invert 0.4 -, rotate 0.6 0
equalize 1 -, shear_y 0.6 3
color 0.4 7, equalize 0.6 -
posterize 0.4 6, auto_contrast 0.4 -
solarize 0.6 8, color 0.6 9
solarize 0.2 4, rotate 0.8 9
rotate 1 7, translate_y 0.8 9
solarize 0.8 4
shear_y 0.8 0, color 0.6 4
color 1 0, rotate 0.6 2
equalize 0.8 -
equalize 1 -, auto_contrast 0.6 -
shear_y 0.4 7, solarize_add 0.6 7
posterize 0.8 2, solarize 0.6 10
solarize 0.6 8, equalize 0.6 -
color 0.8 6, rotate 0.4 5
"""
_REDUCED_IMAGE_NET = """
posterize 0.4 8, rotate 0.6 9
solarize 0.6 5, auto_contrast 0.6 -
equalize 0.8 -, equalize 0.6 -
posterize 0.6 7, posterize 0.6 6
equalize 0.4 -, solarize 0.2 4
equalize 0.4 -, rotate 0.8 8
solarize 0.6 3, equalize 0.6 -
posterize 0.8 5, equalize 1 -
rotate 0.2 3, solarize 0.6 8
equalize 0.6 -, posterize 0.4 6
rotate 0.8 8, color 0.4 0
rotate 0.4 9, equalize 0.6 -
equalize 0.8 -
invert 0.6 -, equalize 1 -
color 0.6 4, contrast 1 8
rotate 0.8 8, color 1 2
color 0.8 8, solarize 0.8 7
sharpness 0.4 7, invert 0.6 -
shear_x 0.6 5, equalize 1 -
color 0.4 0, equalize 0.6 -
equalize 0.4 -, solarize 0.2 4
solarize 0.6 5, auto_contrast 0.6 -
invert 0.6 -, equalize 1 -
color 0.6 4, contrast 1 8
equalize 0.8 -, equalize 0.6 -
"""
_REDUCED_CIFAR10 = """
invert 0.1 -, contrast 0.2 6
rotate 0.7 2, translate_x 0.3 9
sharpness 0.8 1, sharpness 0.9 3
shear_y 0.5 8, translate_y 0.7 9
auto_contrast 0.5 -, equalize 0.9 -
shear_y 0.2 7, posterize 0.3 7
color 0.4 3, brightness 0.6 7
sharpness 0.3 9, brightness 0.7 9
equalize 0.6 -, equalize 0.5 -
contrast 0.6 7, sharpness 0.6 5
color 0.7 7, translate_x 0.5 8
equalize 0.3 -, auto_contrast 0.4 -
translate_y 0.4 3, sharpness 0.2 6
brightness 0.9 6, color 0.2 8
solarize 0.5 2
equalize 0.2 -, auto_contrast 0.6 -
equalize 0.2 -, equalize 0.6 -
color 0.9 9, equalize 0.6 -
auto_contrast 0.8 -, solarize 0.2 8
brightness 0.1 3, color 0.7 0
solarize 0.4 5, auto_contrast 0.9 -
translate_y 0.9 9, translate_y 0.7 9
auto_contrast 0.9 -, solarize 0.8 3
equalize 0.8 -, invert 0.1 -
translate_y 0.7 9, auto_contrast 0.9 -
"""
_SVHN = """
shear_x 0.9 4, invert 0.2 -
shear_y 0.9 8, invert 0.7 -
equalize 0.6 -, solarize 0.6 6
invert 0.9 -, equalize 0.6 -
equalize 0.6 -, rotate 0.9 3
shear_x 0.9 4, auto_contrast 0.8 -
shear_y 0.9 8, invert 0.4 -
shear_y 0.9 5, solarize 0.2 6
invert 0.9 -, auto_contrast 0.8 -
equalize 0.6 -, rotate 0.9 3
shear_x 0.9 4, solarize 0.3 3
shear_y 0.8 8, invert 0.7 -
equalize 0.9 -, translate_y 0.6 6
invert 0.9 -, equalize 0.6 -
contrast 0.3 3, rotate 0.8 4
invert 0.8 -
shear_y 0.7 6, solarize 0.4 8
invert 0.6 -, rotate 0.8 4
shear_y 0.3 7, translate_x 0.9 3
shear_x 0.1 6, invert 0.6 -
solarize 0.7 2, translate_y 0.6 7
shear_y 0.8 4, invert 0.8 -
shear_x 0.7 9, translate_y 0.8 3
shear_y 0.8 5, auto_contrast 0.7 -
shear_x 0.7 2, invert 0.1 -
"""


def auto_augment(
    data: Any,
    policy_name: str = "image_net",
    shape: Any = None,
    fill_value: int | None = 128,
    interp_type: Any = None,
    max_translate_abs: Any = None,
    max_translate_rel: Any = None,
    seed: int | None = None,
    *,
    rng: Any = None,
) -> Any:
    """AutoAugment: draws for each sample one of the 25 sequences of a policy, and whether to apply each of its one or two
    steps.

    Args:
        data: a batch of uint8 RGB images HWC or videos FHWC (a video gets one decision), or one; without a layout HWC or
            FHWC by rank. In pipeline mode a DataNode.
        policy_name: the data set of the policy: "image_net", "reduced_image_net", "svhn" or "reduced_cifar10".
        shape: (H, W) of all images, or a batch of the shapes (H, W, ...): translations are then a fraction of the image.
        fill_value: the value outside when an image is sheared, shifted or rotated. None repeats the border.
        interp_type: INTERP_LINEAR (default) or INTERP_NN, for these.
        max_translate_abs: without `shape`: the largest shift in pixels, or (vertical, horizontal).
            Default: 250.
        max_translate_rel: with `shape`: the largest shift as a fraction of the image. Default: 1.
        seed: the seed of the draws. In a loop every call with the same seed draws the same; a pipeline continues from run to
            run.
        rng: an `ndd.random.RNG` to draw from, in a loop; default: the thread's. A call advances it by seven words.

    "reduced_image_net" has no translations: `shape` and `max_translate_...` are errors there.

    Raises RuntimeError for other types and layouts, ValueError and TypeError for other arguments.

    >>> import ndd
    >>> from ndd.auto_aug import auto_augment
    >>> images = ndd.batch([[[[10, 20, 30]]], [[[40, 50, 60]]]], dtype=ndd.uint8, layout="HWC")
    >>> auto_augment.auto_augment(images, "svhn", rng=ndd.random.RNG(4)).shape
    [(1, 1, 3), (1, 1, 3)]
    """
    if not isinstance(policy_name, str) or policy_name not in _POLICIES:
        known = ", ".join(f"`{n}`" for n in _POLICIES)
        raise ValueError(f"auto_augment: `policy_name` is to be one of {known}, got {policy_name!r}")
    data = checked_images("auto_augment", data)
    named = {"fill_value": fill_value, "interp_type": interp_type}
    if policy_name == "reduced_image_net":
        limits = {"shape": shape, "max_translate_abs": max_translate_abs, "max_translate_rel": max_translate_rel}
        for name in [k for k, v in limits.items() if v is not None]:
            raise ValueError(f"auto_augment: policy `{policy_name}` has no translations: `{name}` says nothing")
        policy = get_reduced_image_net_policy()
    else:
        named |= {} if shape is None else {"shape": shape}
        policy = _POLICIES[policy_name](shape is not None, max_translate_abs, max_translate_rel)
    return apply_auto_augment(policy, data, seed, rng=rng, **named)


def auto_augment_image_net(
    data: Any,
    shape: Any = None,
    fill_value: int | None = 128,
    interp_type: Any = None,
    max_translate_abs: Any = None,
    max_translate_rel: Any = None,
    seed: int | None = None,
    *,
    rng: Any = None,
) -> Any:
    """`auto_augment` with the policy "image_net".

    Args:
        data, shape, fill_value, interp_type, max_translate_abs, max_translate_rel, seed, rng: as for `auto_augment`.

    Raises ValueError or RuntimeError as `auto_augment`.

    >>> import ndd
    >>> from ndd.auto_aug import auto_augment
    >>> image = ndd.tensor([[[10, 20, 30]]], dtype=ndd.uint8, layout="HWC")
    >>> auto_augment.auto_augment_image_net(image, rng=ndd.random.RNG(4)).shape
    (1, 1, 3)
    """
    limits = (max_translate_abs, max_translate_rel)
    return auto_augment(data, "image_net", shape, fill_value, interp_type, *limits, seed, rng=rng)


def apply_auto_augment(policy: Policy, data: Any, seed: int | None = None, *, rng: Any = None, **kwargs: Any) -> Any:
    """AutoAugment with a policy of your own.

    Args:
        policy: one of its sub-policies is drawn for each sample, with equal probabilities; each step is applied with its own
            probability.
        data, seed, rng: as for `auto_augment`.
        kwargs: passed by name to the augmentations that take them; batches among them are divided like the samples.

    Raises ValueError for a policy without sub-policies, TypeError for an argument that no augmentation takes.

    >>> import ndd
    >>> from ndd.auto_aug import augmentations, auto_augment
    >>> policy = ndd.auto_aug.Policy("negative", 1, [[(augmentations.invert, 1.0, None)]])
    >>> images = ndd.batch([[[[10, 20, 30]]]], dtype=ndd.uint8, layout="HWC")
    >>> auto_augment.apply_auto_augment(policy, images).torch().flatten().tolist()
    [245, 235, 225]
    """
    which = "apply_auto_augment"
    if not policy.sub_policies:
        raise ValueError(f"{which}: the policy `{policy.name}` has no sub-policies")
    augmentations = [a.identity, *policy.augmentations.values()]
    forbid_unused(augmentations, kwargs, which)
    count = max(map(len, policy.sub_policies))
    index = np.zeros((len(policy.sub_policies), count), np.int32)  # the augmentation of each sub-policy and step
    bins = np.zeros(index.shape, np.int32)
    probability = np.zeros(index.shape)
    for i, sub_policy in enumerate(policy.sub_policies):
        for step, (augmentation, p, bin) in enumerate(sub_policy):
            index[i, step], probability[i, step], bins[i, step] = augmentations.index(augmentation), p, bin or 0

    def steps(data: Any, draw: Any, **named: Any) -> Any:
        draws = draw(1 + 2 * count)
        chosen = picked(draws[:, 0], len(index))
        applied = draws[:, 1 : 1 + count] < probability[chosen]
        negative = draws[:, 1 + count :] < 0.5
        for step in range(count):
            magnitudes = signed(bins[chosen, step], negative[:, step])
            settings = {"magnitude_bin": magnitudes, "num_magnitude_bins": policy.num_magnitude_bins}
            which = np.where(applied[:, step], index[chosen, step], 0)
            data = divided(augmentations, which, data, settings | named, "get_image_net_policy")
        return data

    return decide(which, data, seed, rng, steps, kwargs)


def get_image_net_policy(
    use_shape: bool = False, max_translate_abs: Any = None, max_translate_rel: Any = None
) -> Policy:
    """The policy learned on ImageNet.

    Args:
        use_shape: translations are a fraction of the image, whose `shape` the augmentations then need.
        max_translate_abs, max_translate_rel: as for `auto_augment`.

    >>> from ndd.auto_aug import auto_augment
    >>> [(x.name, p, bin) for x, p, bin in auto_augment.get_image_net_policy().sub_policies[0]]
    [('equalize', 0.8, None), ('shear_y', 0.8, 4)]
    """
    return _policy("ImageNetPolicy", _IMAGE_NET, use_shape, max_translate_abs, max_translate_rel)


def get_reduced_cifar10_policy(
    use_shape: bool = False, max_translate_abs: Any = None, max_translate_rel: Any = None
) -> Policy:
    """The policy learned on a part of CIFAR-10.

    Args:
        use_shape, max_translate_abs, max_translate_rel: as for `get_image_net_policy`.

    >>> from ndd.auto_aug import auto_augment
    >>> len(auto_augment.get_reduced_cifar10_policy().sub_policies)
    25
    """
    return _policy("ReducedCifar10Policy", _REDUCED_CIFAR10, use_shape, max_translate_abs, max_translate_rel)


def get_svhn_policy(use_shape: bool = False, max_translate_abs: Any = None, max_translate_rel: Any = None) -> Policy:
    """The policy learned on SVHN, pictures of house numbers.

    Args:
        use_shape, max_translate_abs, max_translate_rel: as for `get_image_net_policy`.

    >>> from ndd.auto_aug import auto_augment
    >>> len(auto_augment.get_svhn_policy().sub_policies)
    25
    """
    return _policy("SvhnPolicy", _SVHN, use_shape, max_translate_abs, max_translate_rel)


def get_reduced_image_net_policy() -> Policy:
    """The policy learned on a part of ImageNet; it has no translations.

    >>> from ndd.auto_aug import auto_augment
    >>> len(auto_augment.get_reduced_image_net_policy().sub_policies)
    25
    """
    return _policy("ReducedImageNetPolicy", _REDUCED_IMAGE_NET, False, None, None)


_POLICIES: dict[str, Callable[..., Policy]] = {
    "image_net": get_image_net_policy,
    "reduced_image_net": get_reduced_image_net_policy,
    "svhn": get_svhn_policy,
    "reduced_cifar10": get_reduced_cifar10_policy,
}


def _policy(name: str, sequences: str, use_shape: bool, max_abs: Any, max_rel: Any) -> Policy:
    translate_x, translate_y = a.translations(use_shape, _ABS, _REL, max_abs, max_rel)
    known = {**_STEPS, "translate_x": translate_x, "translate_y": translate_y}
    sub_policies = []
    for line in sequences.strip().splitlines():
        steps = [step.split() for step in line.split(", ")]
        sub_policies.append([(known[n], float(p), None if bin == "-" else int(bin)) for n, p, bin in steps])
    return Policy(name, _BINS, sub_policies)


__all__ = [
    "apply_auto_augment", "auto_augment", "auto_augment_image_net", "get_image_net_policy", "get_reduced_cifar10_policy",
    "get_reduced_image_net_policy", "get_svhn_policy",
]  # fmt: skip
