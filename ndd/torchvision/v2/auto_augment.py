"""AutoAugment, RandAugment, TrivialAugment and AugMix."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

import ndd
from ndd.random import host_draws
from ndd.torchvision.v2 import functional as F, one_step
from ndd.torchvision.v2.arguments import fill_for, fills_by_type
from ndd.torchvision.v2.draws import Numbers
from ndd.torchvision.v2.inputs import copy_size, per_group, query_size, samples_at, sizes_of, unchanged
from ndd.torchvision.v2.one_step import Operation
from ndd.torchvision.v2.policies import NOTHING, SHARE_OF_TRANSLATION, Strengths, policy as policy_of, space
from ndd.torchvision.v2.transform import Transform
from ndd.torchvision.values import count_of, kind_of, wrapped

_STAYS: Operation = ("Identity", 0.0)
_NUMBERS = 4  # that an operation draws, about

_dirichlet: Any = getattr(torch, "_sample_dirichlet")


class AutoAugmentPolicy(enum.Enum):
    """The data set for which an AutoAugment policy was found.

    >>> from ndd.torchvision import v2
    >>> v2.AutoAugmentPolicy.IMAGENET.value
    'imagenet'
    """

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


class _AutoAugment(Transform):
    """The base of transforms that change an image by random operations."""

    def __init__(self, *, interpolation: Any = "nearest", fill: Any = None, same_on_batch: bool = False) -> None:
        super().__init__()
        self.interpolation = interpolation
        self.fill = fill
        self._fill = fills_by_type(fill)
        self._same_on_batch = same_on_batch

    def forward(self, *inputs: Any) -> Any:
        """The structure with its image changed."""
        flat, spec = tree_flatten(inputs[0] if len(inputs) == 1 else inputs)
        number = self._number_of_image(flat)
        flat[number] = self._changed(flat[number])
        return tree_unflatten(flat, spec)

    def _number_of_image(self, flat: list[Any]) -> int:
        images = []
        for i, (x, needed) in enumerate(zip(flat, self._needs_transform_list(flat), strict=True)):
            kind = kind_of(x)
            if kind in ("boxes", "mask", "points") or (kind == "targets" and _has_places(x)):
                raise TypeError(f"Inputs of type {type(x).__name__} are not supported by {type(self).__name__}()")
            if needed and kind:
                images.append(i)
        if not images:
            raise TypeError("Found no image in the sample.")
        if len(images) > 1:
            raise TypeError(
                "Auto augment transformations are only properly defined for a single image or video, "
                f"but found {len(images)}."
            )
        return images[0]

    def _changed(self, image: Any) -> Any:
        n = count_of(image)
        if n is None or self._same_on_batch:
            for name, magnitude in self._drawn(self._size([image])):
                image = self._apply(image, name, magnitude)
            return image
        sizes = self._sizes(image)
        fill = fill_for(self._fill, image)
        if not n or not one_step.is_served(image, self.interpolation, fill):
            return self._in_steps(image, [self._drawn(size) for size in sizes])
        # The draws depend only on these, so they can be foreseen if the sizes can.
        drawn = host_draws.draw((self._rows, self._settings(), tuple(sizes)), n)
        for first in range(0, self._most_steps() * one_step.WIDTH, one_step.WIDTH):
            kind = drawn.columns(first, 0, ndd.int32)
            numbers = drawn.columns(first + 1, one_step.WIDTH - 1, ndd.float32)
            image = copy_size(image, one_step.changed(image, kind, numbers, self.interpolation, fill))
        return image

    def _rows(
        self, generator: torch.Generator, n: int, settings: tuple[Any, ...], sizes: tuple[Any, ...]
    ) -> np.ndarray:
        with Numbers(generator, n * _NUMBERS * self._most_steps()) as numbers:
            operations = [self._draw(size, numbers) for size in sizes]
        return one_step.numbers_of(operations, self._most_steps())

    def _settings(self) -> tuple[Any, ...]:
        """The attributes that the draws depend on and that may change between two calls."""
        return ()

    def _most_steps(self) -> int:
        """The largest number of operations that a sample gets."""
        return 1

    def _size(self, flat: list[Any]) -> tuple[int, int]:
        return query_size(flat)

    def _sizes(self, images: Any) -> list[tuple[int, int]]:
        return list(map(tuple, sizes_of(images).tolist()))

    def _drawn(self, size: tuple[int, int]) -> list[Operation]:
        with Numbers() as numbers:
            return self._draw(size, numbers)

    def _draw(self, size: tuple[int, int], numbers: Numbers) -> list[Operation]:
        """The operations for an image of this size."""
        raise NotImplementedError

    def _in_steps(self, images: Any, drawn: list[list[Operation]]) -> Any:
        """A batch through the operations of each sample. A step is one call for HWC bytes; for other images, one call for each
        operation that some sample gets."""
        fill = fill_for(self._fill, images)
        for step in range(max(map(len, drawn), default=0)):
            row = [ops[step] if step < len(ops) else _STAYS for ops in drawn]
            if one_step.is_served(images, self.interpolation, fill):
                rows = one_step.numbers_of([[operation] for operation in row], 1)
                kind, numbers = ndd.batch(rows[:, 0].astype(np.int32)), ndd.batch(rows[:, 1:].astype(np.float32))
                images = copy_size(images, one_step.changed(images, kind, numbers, self.interpolation, fill))
                continue
            magnitudes = np.array([magnitude for _, magnitude in row])
            names = sorted({name for name, _ in row})
            group = np.array([names.index(name) for name, _ in row])
            works = [unchanged if name == "Identity" else self._work(name, magnitudes) for name in names]
            images = copy_size(images, per_group(group, works, [images])[0])
        return images

    def _work(self, name: str, magnitudes: np.ndarray) -> Callable[[list[Any], np.ndarray], list[Any]]:
        return lambda some, places: [self._apply(some[0], name, magnitudes[places])]

    def _apply(self, image: Any, name: str, magnitude: Any) -> Any:
        """An image, or a batch with a magnitude for each sample, through an operation."""
        if name == "Identity":
            return image
        how = {"interpolation": self.interpolation, "fill": fill_for(self._fill, image)}
        if name in ("ShearX", "ShearY"):
            angle = _each(lambda m: math.degrees(math.atan(m)), magnitude)
            shear = _pair(angle, 0.0, name == "ShearX")
            return F.affine(image, angle=0.0, translate=[0, 0], scale=1.0, shear=shear, center=[0, 0], **how)
        if name in ("TranslateX", "TranslateY"):
            moved = _pair(_each(int, magnitude), 0, name == "TranslateX")
            return F.affine(image, angle=0.0, translate=moved, scale=1.0, shear=[0.0, 0.0], **how)
        if name == "Rotate":
            return F.rotate(image, angle=magnitude, **how)
        if name == "Posterize":
            return F.posterize(image, bits=_each(int, magnitude))
        if name == "Solarize":
            return F.solarize(image, threshold=_brightest(image) * magnitude)
        if name in _BY_FACTOR:
            return getattr(F, _BY_FACTOR[name])(image, 1.0 + magnitude)
        if name in _WITHOUT:
            return getattr(F, _WITHOUT[name])(image)
        raise ValueError(f"No transform available for {name}")


_BY_FACTOR = {
    "Brightness": "adjust_brightness",
    "Color": "adjust_saturation",
    "Contrast": "adjust_contrast",
    "Sharpness": "adjust_sharpness",
}
_WITHOUT = {"AutoContrast": "autocontrast", "Equalize": "equalize", "Invert": "invert"}


def _each(change: Callable[[float], Any], magnitude: Any) -> Any:
    """A number, or each number of an array, changed."""
    if isinstance(magnitude, np.ndarray):
        return np.array([change(m) for m in magnitude.tolist()])
    return change(magnitude)


def _pair(value: Any, other: Any, first: bool) -> Any:
    """[value, other] or [other, value]; `[N, 2]` for an array."""
    if isinstance(value, np.ndarray):
        others = np.full_like(value, other)
        return np.stack((value, others) if first else (others, value), 1)
    return [value, other] if first else [other, value]


def _brightest(image: Any) -> float:
    """The value of white."""
    kind = kind_of(image)
    if kind == "pil":
        return 255.0
    if kind in ("ndd", "targets"):
        name = (image.images if kind == "targets" else image).dtype.name
        return 1.0 if name[0] == "f" or name.startswith("bf") else float(2 ** (int(name[1:]) - (name[0] == "i")) - 1)
    return 1.0 if image.dtype.is_floating_point else float(torch.iinfo(image.dtype).max)


def _has_places(targets: Any) -> bool:
    return any(getattr(targets, name, None) is not None for name in ("boxes", "masks", "points"))


def _draw_from(
    operations: dict[str, Strengths], bins: int, number: int | None, most: int, size: tuple[int, int], numbers: Numbers
) -> Operation:
    """One of the operations; its bin is `number`, or drawn below `most`; half of the signed magnitudes are negative."""
    names = tuple(operations)
    name = names[numbers.integer(0, len(names))]
    strengths = operations[name]
    if strengths.of is None:
        return name, 0.0
    bin = numbers.integer(0, most) if number is None else number
    return name, _with_sign(strengths, strengths.at(bins, bin, *size), numbers)


def _with_sign(strengths: Strengths, magnitude: float | None, numbers: Numbers) -> float:
    if magnitude is None:
        return 0.0
    negative = strengths.signed and numbers.share() <= 0.5
    return -float(magnitude) if negative else float(magnitude)


class AutoAugment(_AutoAugment):
    """AutoAugment (https://arxiv.org/abs/1805.09501): one of 25 pairs of operations, with their probabilities.

    Args:
        policy: an `AutoAugmentPolicy`: "imagenet", "cifar10" or "svhn".
        interpolation: of operations that move pixels: an `InterpolationMode`, its word, or a constant of Pillow.
        fill: the pixels from outside of the image, as for `Pad`.
        same_on_batch: the same operations for all samples of a batch, which then have one size.

    Takes one uint8 image or video, RGB or grey; TypeError for none, several, and for masks, boxes and key points.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.AutoAugment()(torch.zeros(3, 8, 8, dtype=torch.uint8)).shape
    torch.Size([3, 8, 8])
    """

    _AUGMENTATION_SPACE: ClassVar[dict[str, Strengths]] = {
        **space(shear=0.3, translate=SHARE_OF_TRANSLATION, rotate=30.0, color=0.9, of_side=True, bits=(8, 4)),
        "Invert": NOTHING,
    }

    def __init__(
        self,
        policy: AutoAugmentPolicy = AutoAugmentPolicy.IMAGENET,
        interpolation: Any = "nearest",
        fill: Any = None,
        *,
        same_on_batch: bool = False,
    ) -> None:
        super().__init__(interpolation=interpolation, fill=fill, same_on_batch=same_on_batch)
        self.policy = policy
        value = getattr(policy, "value", policy)
        if value not in ("imagenet", "cifar10", "svhn"):
            raise ValueError(f"The provided policy {policy} is not recognized.")
        self._policies = policy_of(value)

    @staticmethod
    def get_params(transform_num: int) -> tuple[int, torch.Tensor, torch.Tensor]:
        """The number of a pair, and the draws that decide on its operations and their signs.

        Args:
            transform_num: the number of pairs of operations.
        """
        number = int(torch.randint(transform_num, (1,)).item())
        return number, torch.rand((2,)), torch.randint(2, (2,))

    def _draw(self, size: tuple[int, int], numbers: Numbers) -> list[Operation]:
        drawn = []
        for name, probability, number in self._policies[numbers.integer(0, len(self._policies))]:
            if numbers.share() <= float(np.float32(probability)):
                strengths = self._AUGMENTATION_SPACE[name]
                drawn.append((name, _with_sign(strengths, strengths.at(10, number, *size), numbers)))
        return drawn

    def _most_steps(self) -> int:
        return max(map(len, self._policies))


class RandAugment(_AutoAugment):
    """RandAugment (https://arxiv.org/abs/1909.13719): some operations, all with the same strength.

    Args:
        num_ops: the number of operations.
        magnitude: the bin of the strength.
        num_magnitude_bins: the number of bins.
        interpolation, fill, same_on_batch: as for `AutoAugment`, and so are the inputs.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RandAugment(2, 9)(torch.zeros(3, 8, 8, dtype=torch.uint8)).shape
    torch.Size([3, 8, 8])
    """

    _AUGMENTATION_SPACE: ClassVar[dict[str, Strengths]] = {
        "Identity": NOTHING,
        **space(shear=0.3, translate=SHARE_OF_TRANSLATION, rotate=30.0, color=0.9, of_side=True, bits=(8, 4)),
    }

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: Any = "nearest",
        fill: Any = None,
        *,
        same_on_batch: bool = False,
    ) -> None:
        super().__init__(interpolation=interpolation, fill=fill, same_on_batch=same_on_batch)
        if not isinstance(num_ops, int) or num_ops < 0:
            raise ValueError(f"num_ops should be a non-negative integer, but got {num_ops} instead.")
        self.num_ops = num_ops
        self.magnitude = magnitude
        self.num_magnitude_bins = num_magnitude_bins

    def _draw(self, size: tuple[int, int], numbers: Numbers) -> list[Operation]:
        bins = self.num_magnitude_bins
        space = self._AUGMENTATION_SPACE
        return [_draw_from(space, bins, self.magnitude, bins, size, numbers) for _ in range(self.num_ops)]

    def _settings(self) -> tuple[Any, ...]:
        return self.num_ops, self.magnitude, self.num_magnitude_bins

    def _most_steps(self) -> int:
        return self.num_ops


class TrivialAugmentWide(_AutoAugment):
    """TrivialAugment, wide (https://arxiv.org/abs/2103.10158): one operation of a random strength.

    Args:
        num_magnitude_bins: the number of strengths.
        interpolation, fill, same_on_batch: as for `AutoAugment`, and so are the inputs.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.TrivialAugmentWide()(torch.zeros(3, 8, 8, dtype=torch.uint8)).shape
    torch.Size([3, 8, 8])
    """

    _AUGMENTATION_SPACE: ClassVar[dict[str, Strengths]] = {
        "Identity": NOTHING,
        **space(shear=0.99, translate=32.0, rotate=135.0, color=0.99, of_side=False, bits=(8, 6)),
    }

    def __init__(
        self,
        num_magnitude_bins: int = 31,
        interpolation: Any = "nearest",
        fill: Any = None,
        *,
        same_on_batch: bool = False,
    ):
        super().__init__(interpolation=interpolation, fill=fill, same_on_batch=same_on_batch)
        self.num_magnitude_bins = num_magnitude_bins

    def _size(self, flat: list[Any]) -> tuple[int, int]:
        return (0, 0)  # no magnitude depends on it, so there is no need to wait for it

    def _sizes(self, images: Any) -> list[tuple[int, int]]:
        return [(0, 0)] * (count_of(images) or 0)

    def _draw(self, size: tuple[int, int], numbers: Numbers) -> list[Operation]:
        bins = self.num_magnitude_bins
        return [_draw_from(self._AUGMENTATION_SPACE, bins, None, bins, size, numbers)]

    def _settings(self) -> tuple[Any, ...]:
        return (self.num_magnitude_bins,)


class AugMix(_AutoAugment):
    """AugMix (https://arxiv.org/abs/1912.02781): the image mixed with its results from several chains of operations.

    Args:
        severity: the number of strengths, 1 to 10, from the least.
        mixture_width: the number of chains.
        chain_depth: the number of operations in a chain; drawn from 1 to 3 if it is below 1.
        alpha: parameter of the distributions from which the shares are drawn.
        all_ops: also change brightness, contrast, colour and sharpness.
        interpolation, fill, same_on_batch: as for `AutoAugment`, and so are the inputs.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.AugMix()(torch.zeros(3, 8, 8, dtype=torch.uint8)).shape
    torch.Size([3, 8, 8])
    """

    _PARTIAL_AUGMENTATION_SPACE: ClassVar[dict[str, Strengths]] = {
        name: strengths
        for name, strengths in space(
            shear=0.3, translate=1 / 3, rotate=30.0, color=0.9, of_side=True, bits=(4, 4)
        ).items()
        if name not in _BY_FACTOR
    }
    _AUGMENTATION_SPACE: ClassVar[dict[str, Strengths]] = {
        **_PARTIAL_AUGMENTATION_SPACE,
        **{name: Strengths(0.0, 0.9, True) for name in ("Brightness", "Color", "Contrast", "Sharpness")},
    }

    def __init__(
        self,
        severity: int = 3,
        mixture_width: int = 3,
        chain_depth: int = -1,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: Any = "bilinear",
        fill: Any = None,
        *,
        same_on_batch: bool = False,
    ) -> None:
        super().__init__(interpolation=interpolation, fill=fill, same_on_batch=same_on_batch)
        self._PARAMETER_MAX = 10
        if not 1 <= severity <= self._PARAMETER_MAX:
            raise ValueError(f"The severity must be between [1, {self._PARAMETER_MAX}]. Got {severity} instead.")
        self.severity = severity
        self.mixture_width = mixture_width
        self.chain_depth = chain_depth
        self.alpha = alpha
        self.all_ops = all_ops

    def _shares(self, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The share of the image, `[rows, 1]`, and those of the chains, `[rows, mixture_width]`."""
        own = _dirichlet(torch.tensor([self.alpha] * 2).expand(rows, -1))
        chains = _dirichlet(torch.tensor([self.alpha] * self.mixture_width).expand(rows, -1))
        return own[:, :1], chains * own[:, 1:]

    def _draw(self, size: tuple[int, int], numbers: Numbers) -> list[Operation]:
        """One chain."""
        operations = self._AUGMENTATION_SPACE if self.all_ops else self._PARTIAL_AUGMENTATION_SPACE
        depth = self.chain_depth if self.chain_depth > 0 else numbers.integer(1, 4)
        most = self.severity
        return [_draw_from(operations, self._PARAMETER_MAX, None, most, size, numbers) for _ in range(depth)]

    def _changed(self, image: Any) -> Any:
        if kind_of(image) == "targets":
            if image.semantic is not None:  # labels of pixels cannot be mixed
                raise TypeError("AugMix() does not support Targets with `semantic`")
            return dataclasses.replace(image, images=self._changed(image.images))
        if count_of(image) is not None:
            return self._mixed_batch(image)
        if kind_of(image) == "ndd":
            return self._mixed_batch(ndd.batch([image], layout=image.layout)).select(0)
        pixels = F.pil_to_tensor(image) if kind_of(image) == "pil" else image
        size, shape = query_size([image]), pixels.shape
        axes = 5 if kind_of(image) == "video" else 4
        batch = pixels.reshape([1] * max(axes - pixels.ndim, 0) + list(shape))
        each = [batch.size(0)] + [1] * (batch.ndim - 1)
        own, shares = self._shares(batch.size(0))
        mixed = own.to(batch.device).reshape(each) * batch
        for i in range(self.mixture_width):
            changed = batch
            for name, magnitude in self._drawn(size):
                changed = self._apply(changed, name, magnitude)
            mixed.add_(shares[:, i].to(batch.device).reshape(each) * changed)
        mixed = mixed.reshape(shape).to(pixels.dtype)
        return F.to_pil_image(mixed) if kind_of(image) == "pil" else wrapped(mixed, image)

    def _mixed_batch(self, images: ndd.Batch) -> ndd.Batch:
        n = images.batch_size
        drawn = [self._drawn_for(each) for each in samples_at([images], 1 if self._same_on_batch else n)]
        drawn = drawn * n if self._same_on_batch else drawn
        if not drawn:
            return images
        mixed = _scaled(images, [own for own, _, _ in drawn])
        for i in range(self.mixture_width):
            changed = self._in_steps(images, [chains[i] for _, _, chains in drawn])
            mixed = mixed + _scaled(changed, [shares[i] for _, shares, _ in drawn])
        whole: Any = mixed if images.dtype.name[0] == "f" else ndd.math.floor(mixed)
        return ndd.cast(whole, dtype=images.dtype)

    def _drawn_for(self, sample: list[Any]) -> tuple[float, list[float], list[list[Operation]]]:
        own, shares = self._shares(1)
        chains = [self._drawn(query_size(sample)) for _ in range(self.mixture_width)]
        return own.item(), shares[0].tolist(), chains


def _scaled(images: ndd.Batch, shares: list[float]) -> ndd.Batch:
    """Each sample times its share, float32."""
    own: ndd.Batch = ndd.batch(np.array(shares, np.float32)).to_device(images.device)
    return images * own
