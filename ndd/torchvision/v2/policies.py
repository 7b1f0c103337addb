"""The operations of the automatic augmentations: the strength of each step, and the policies of AutoAugment."""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch

SHARE_OF_TRANSLATION = 150.0 / 331.0  # of the side of an image: 150 pixels of the 331 of the paper


class Strengths(NamedTuple):
    """The magnitudes of an operation, from the least to the greatest bin.

    `of` names the extent that they are shares of. With "bits" they are integers `high - bin * span / (bins - 1)`; None: no
    magnitude.
    """

    low: float = 0.0
    high: float = 0.0
    signed: bool = False
    of: str | None = ""

    def at(self, bins: int, number: int | None, height: int, width: int) -> float | None:
        """The magnitude of bin `number` of `bins`."""
        if self.of is None or number is None:
            return None
        extent = {"width": width, "height": height}.get(self.of, 1)
        return _table(self.low, self.high, self.of == "bits", extent, bins)[number]


@functools.lru_cache(1024)
def _table(low: float, high: float, bits: bool, extent: int, bins: int) -> tuple[float, ...]:
    if bits:
        return tuple((low - torch.arange(bins) / ((bins - 1) / high)).round().int().tolist())
    return tuple(torch.linspace(low, high * extent, bins).tolist())


NOTHING = Strengths(of=None)


def space(
    *, shear: float, translate: float, rotate: float, color: float, of_side: bool, bits: tuple[int, int]
) -> dict[str, Strengths]:
    """The operations with their greatest magnitudes; `translate` in pixels, or as a share of the side with `of_side`. `bits`:
    for posterising, the most bits, and how many fewer the strongest bin has."""
    across, down = ("width", "height") if of_side else ("", "")
    return {
        "ShearX": Strengths(0.0, shear, True),
        "ShearY": Strengths(0.0, shear, True),
        "TranslateX": Strengths(0.0, translate, True, across),
        "TranslateY": Strengths(0.0, translate, True, down),
        "Rotate": Strengths(0.0, rotate, True),
        **{name: Strengths(0.0, color, True) for name in ("Brightness", "Color", "Contrast", "Sharpness")},
        "Posterize": Strengths(*bits, False, "bits"),
        "Solarize": Strengths(1.0, 0.0),
        "AutoContrast": NOTHING,
        "Equalize": NOTHING,
    }


# The policies of the paper. Each sub-policy is two steps of operation, probability and one of ten bins.
_IMAGENET = """
Posterize 0.4 8 Rotate 0.6 9 / Solarize 0.6 5 AutoContrast 0.6 - / Equalize 0.8 - Equalize 0.6 - / Posterize 0.6 7 Posterize 0.6 6
Equalize 0.4 - Solarize 0.2 4 / Equalize 0.4 - Rotate 0.8 8 / Solarize 0.6 3 Equalize 0.6 - / Posterize 0.8 5 Equalize 1.0 -
Rotate 0.2 3 Solarize 0.6 8 / Equalize 0.6 - Posterize 0.4 6 / Rotate 0.8 8 Color 0.4 0 / Rotate 0.4 9 Equalize 0.6 -
Equalize 0.0 - Equalize 0.8 - / Invert 0.6 - Equalize 1.0 - / Color 0.6 4 Contrast 1.0 8 / Rotate 0.8 8 Color 1.0 2
Color 0.8 8 Solarize 0.8 7 / Sharpness 0.4 7 Invert 0.6 - / ShearX 0.6 5 Equalize 1.0 - / Color 0.4 0 Equalize 0.6 -
Equalize 0.4 - Solarize 0.2 4 / Solarize 0.6 5 AutoContrast 0.6 - / Invert 0.6 - Equalize 1.0 - / Color 0.6 4 Contrast 1.0 8
Equalize 0.8 - Equalize 0.6 -
"""
_CIFAR10 = """
Invert 0.1 - Contrast 0.2 6 / Rotate 0.7 2 TranslateX 0.3 9 / Sharpness 0.8 1 Sharpness 0.9 3 / ShearY 0.5 8 TranslateY 0.7 9
AutoContrast 0.5 - Equalize 0.9 - / ShearY 0.2 7 Posterize 0.3 7 / Color 0.4 3 Brightness 0.6 7 / Sharpness 0.3 9 Brightness 0.7 9
Equalize 0.6 - Equalize 0.5 - / Contrast 0.6 7 Sharpness 0.6 5 / Color 0.7 7 TranslateX 0.5 8 / Equalize 0.3 - AutoContrast 0.4 -
TranslateY 0.4 3 Sharpness 0.2 6 / Brightness 0.9 6 Color 0.2 8 / Solarize 0.5 2 Invert 0.0 - / Equalize 0.2 - AutoContrast 0.6 -
Equalize 0.2 - Equalize 0.6 - / Color 0.9 9 Equalize 0.6 - / AutoContrast 0.8 - Solarize 0.2 8 / Brightness 0.1 3 Color 0.7 0
Solarize 0.4 5 AutoContrast 0.9 - / TranslateY 0.9 9 TranslateY 0.7 9 / AutoContrast 0.9 - Solarize 0.8 3
Equalize 0.8 - Invert 0.1 - / TranslateY 0.7 9 AutoContrast 0.9 -
"""
_SVHN = """
ShearX 0.9 4 Invert 0.2 - / ShearY 0.9 8 Invert 0.7 - / Equalize 0.6 - Solarize 0.6 6 / Invert 0.9 - Equalize 0.6 -
Equalize 0.6 - Rotate 0.9 3 / ShearX 0.9 4 AutoContrast 0.8 - / ShearY 0.9 8 Invert 0.4 - / ShearY 0.9 5 Solarize 0.2 6
Invert 0.9 - AutoContrast 0.8 - / Equalize 0.6 - Rotate 0.9 3 / ShearX 0.9 4 Solarize 0.3 3 / ShearY 0.8 8 Invert 0.7 -
Equalize 0.9 - TranslateY 0.6 6 / Invert 0.9 - Equalize 0.6 - / Contrast 0.3 3 Rotate 0.8 4 / Invert 0.8 - TranslateY 0.0 2
ShearY 0.7 6 Solarize 0.4 8 / Invert 0.6 - Rotate 0.8 4 / ShearY 0.3 7 TranslateX 0.9 3 / ShearX 0.1 6 Invert 0.6 -
Solarize 0.7 2 TranslateY 0.6 7 / ShearY 0.8 4 Invert 0.8 - / ShearX 0.7 9 TranslateY 0.8 3 / ShearY 0.8 5 AutoContrast 0.7 -
ShearX 0.7 2 Invert 0.1 -
"""
_TEXTS = {"imagenet": _IMAGENET, "cifar10": _CIFAR10, "svhn": _SVHN}
Step = tuple[str, float, int | None]


@functools.lru_cache
def policy(name: str) -> tuple[tuple[Step, ...], ...]:
    """The sub-policies of a policy: steps of operation, probability and bin (None without a magnitude)."""
    policies = []
    for text in _TEXTS[name].strip().replace("\n", " / ").split(" / "):
        words = text.split()
        steps = [words[k : k + 3] for k in range(0, len(words), 3)]
        policies.append(tuple((op, float(p), None if number == "-" else int(number)) for op, p, number in steps))
    return tuple(policies)
