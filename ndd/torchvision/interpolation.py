"""torchvision's enums. Members are compared by value, so torchvision's own are accepted as well."""

from __future__ import annotations

import enum
from typing import Any


class InterpolationMode(enum.Enum):
    """How values between pixels are computed; the members have torchvision's values.

    >>> from ndd.torchvision.v2 import InterpolationMode
    >>> InterpolationMode("bilinear")
    <InterpolationMode.BILINEAR: 'bilinear'>
    """

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


# Pillow's constants, which torchvision takes too.
_OF_PILLOW = {0: "nearest", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming", 1: "lanczos"}


def interpolation_mode(interpolation: Any) -> InterpolationMode:
    """The mode of a member of either enum, of a word, or of a constant of Pillow; ValueError for others."""
    value = interpolation
    if isinstance(value, int) and not isinstance(value, enum.Enum):
        value = _OF_PILLOW.get(value, value)
    elif isinstance(value, enum.Enum):
        value = _OF_PILLOW.get(value.value, value.value) if isinstance(value, int) else value.value
    if value in [mode.value for mode in InterpolationMode]:
        return InterpolationMode(value)
    if isinstance(interpolation, str):
        raise ValueError(
            f"Invalid interpolation mode: {interpolation!r}. "
            f"Supported string values are: {[mode.value for mode in InterpolationMode]}."
        )
    raise ValueError(
        "Argument interpolation should be an `InterpolationMode` or a corresponding Pillow integer constant, "
        f"but got {interpolation}."
    )
