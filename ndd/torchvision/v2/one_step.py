"""Operations of the automatic augmentations as kinds of one operator: a step of a batch is one call, whichever operations are
drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import ndd
from ndd.auto_aug import augment as kinds
from ndd.torchvision.interpolation import interpolation_mode
from ndd.torchvision.v2.functional.warped_pixels import BILINEAR, NEAREST
from ndd.torchvision.v2.functional.warps import affine_matrix

Operation = tuple[str, float]  # its name and its magnitude
WIDTH = 1 + kinds.NUMBERS
"""The numbers of an operation: its kind, and the kind's parameters."""


def _sheared(magnitude: float, across: bool) -> tuple[float, ...]:
    angle = math.degrees(math.atan(magnitude))
    matrix = affine_matrix([0.0, 0.0], 0.0, [0, 0], 1.0, [angle, 0.0] if across else [0.0, angle])
    slope = matrix[1 if across else 3]
    return slope, slope - float(np.float32(slope))


def _factor(magnitude: float) -> tuple[float, float]:
    factor = 1.0 + magnitude
    return factor, 1.0 - factor


def _moved(x: float, y: float) -> list[float]:
    return affine_matrix([0.0, 0.0], 0.0, [int(x), int(y)], 1.0, [0.0, 0.0])


# For each operation: its kind, and its numbers for a magnitude.
_KINDS: dict[str, tuple[int, Callable[[float], Any]]] = {
    "Identity": (kinds.SAME, lambda m: ()),
    "ShearX": (kinds.SHEARED_X, lambda m: _sheared(m, True)),
    "ShearY": (kinds.SHEARED_Y, lambda m: _sheared(m, False)),
    "TranslateX": (kinds.CENTRED, lambda m: _moved(m, 0)),
    "TranslateY": (kinds.CENTRED, lambda m: _moved(0, m)),
    "Rotate": (kinds.CENTRED, lambda m: affine_matrix([0.0, 0.0], -(m % 360), [0, 0], 1.0, [0.0, 0.0])),
    "Brightness": (kinds.BRIGHTENED, _factor),
    "Color": (kinds.SATURATED, _factor),
    "Contrast": (kinds.LEVELLED, _factor),
    "Sharpness": (kinds.SHARPENED, _factor),
    "Posterize": (kinds.TONES, lambda m: (0, 0, 0, 256 - (1 << 8 - int(m)))),
    "Solarize": (kinds.TONES, lambda m: (math.ceil(255.0 * m), 0, 255, 255)),
    "Invert": (kinds.TONES, lambda m: (0, 0, 255, 255)),
    "AutoContrast": (kinds.SPREAD, lambda m: ()),
    "Equalize": (kinds.FLATTENED, lambda m: ()),
}


def is_served(images: Any, interpolation: Any, fill: Any) -> bool:
    """Whether the operator takes these images with this fill value."""
    if not isinstance(images, ndd.Batch) or images.dtype is not ndd.uint8 or images.layout not in ("HWC", "FHWC"):
        return False
    mode = interpolation_mode(interpolation)
    plain = fill is None or (mode is NEAREST and (isinstance(fill, int | float) or len(fill) == 1))
    return plain and mode in (NEAREST, BILINEAR)


def numbers_of(operations: list[list[Operation]], steps: int) -> np.ndarray:
    """The kinds of the operations of each sample, up to `steps`, and their numbers: float64 `[N, steps * WIDTH]`."""
    rows = np.zeros((len(operations), steps, WIDTH))  # SAME is 0
    for row, drawn in zip(rows, operations, strict=True):
        for numbers, (name, magnitude) in zip(row, drawn, strict=False):
            numbers[0], own = _KINDS[name][0], _KINDS[name][1](magnitude)
            numbers[1 : 1 + len(own)] = own
    return rows.reshape(len(operations), steps * WIDTH)


def changed(images: ndd.Batch, kind: Any, numbers: Any, interpolation: Any, fill: Any) -> ndd.Batch:
    """Each image changed by its operation, whose kinds, int32, and numbers, float32, have a value for each sample."""
    near = interpolation_mode(interpolation) is NEAREST
    return kinds.augment(
        images,
        kind=kind,
        numbers=numbers,
        fill_value=0.0 if fill is None else float(np.ravel(fill)[0]),
        interp_type=ndd.types.INTERP_NN if near else ndd.types.INTERP_LINEAR,
    )
