"""Levels of pictures: inverted, posterized, solarized, stretched, equalized."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import ndd
from ndd.torchvision.v2.functional.arithmetic import (
    check_channels,
    factor_of,
    in_type_of,
    is_float,
    largest,
    on_device_of,
    typed,
    value_bits,
)
from ndd.torchvision.v2.functional.colors import on_images
from ndd.torchvision.v2.functional.conversions import scaled_to, wide
from ndd.torchvision.v2.functional.kinds import functional
from ndd.torchvision.values import count_of, layout_of, rows_of, varies


def _check_type(inpt: Any) -> None:
    """TypeError for tensors of truth values, which go through ndd as bytes."""
    if isinstance(inpt, torch.Tensor) and inpt.dtype is torch.bool:
        value_bits(ndd.bool)


def _inverted(value: Any) -> Any:
    if is_float(value):
        return in_type_of(1.0 - wide(value), value)
    return in_type_of(value ^ typed(largest(value.dtype), value), value)


@functional
def invert(inpt: Any) -> Any:
    """White minus the image.

    Args:
        inpt: as for `adjust_brightness`.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.invert(torch.tensor([[[0, 100, 255]]], dtype=torch.uint8))
    tensor([[[255, 155,   0]]], dtype=torch.uint8)
    """
    _check_type(inpt)
    return on_images("invert", inpt, _inverted)


@functional
def posterize(inpt: Any, bits: int) -> Any:
    """Keeps the highest `bits`, 0 to 8, of each number.

    Args:
        inpt: as for `adjust_brightness`.
        bits: the number of bits, 0 to 8.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.posterize(torch.tensor([[[0, 100, 255]]], dtype=torch.uint8), 2)
    tensor([[[  0,  64, 192]]], dtype=torch.uint8)
    """
    count = count_of(inpt)
    rows = rows_of(bits, count)
    if (rows != np.floor(rows)).any() or (rows < 0).any() or (rows > 8).any() or isinstance(bits, float):
        raise TypeError(f"bits must be a positive integer in the range [0, 8], got {bits} instead.")
    whole = rows.astype(np.int64).reshape(-1)

    def operand(numbers: np.ndarray, dtype: Any, value: Any) -> Any:
        numbers = numbers.astype(dtype.numpy)
        return on_device_of(ndd.batch(numbers), value) if varies(bits, count) else numbers.reshape(-1)[0].item()

    def images(value: Any) -> Any:
        if is_float(value):
            levels = 2.0**whole
            factor, most, step = (operand(row, ndd.float32, value) for row in (levels, levels - 1, 1 / levels))
            steps = ndd.math.max(ndd.math.min(ndd.math.floor(wide(value) * factor), most), 0.0)
            return in_type_of(steps * step, value)
        depth = value_bits(value.dtype)
        kept = np.minimum(whole, depth)
        # With all bits, the sign is kept as well.
        masks = np.where(whole >= depth, -1, ((1 << kept) - 1) << (depth - kept))
        mask = operand(masks, value.dtype, value)
        return in_type_of(value & (mask if isinstance(mask, ndd.Batch) else typed(mask, value)), value)

    _check_type(inpt)
    return on_images("posterize", inpt, images)


@functional
def solarize(inpt: Any, threshold: float) -> Any:
    """Inverts values at or above `threshold`.

    Args:
        inpt: as for `adjust_brightness`.
        threshold: in the units of the pixels: 0 to 255 for uint8, 0 to 1 for floats.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.solarize(torch.tensor([[[0, 100, 200]]], dtype=torch.uint8), 128)
    tensor([[[  0, 100,  55]]], dtype=torch.uint8)
    """
    count = count_of(inpt)
    limits = rows_of(threshold, count)

    def images(value: Any) -> Any:
        if (limits > largest(value.dtype)).any():
            raise TypeError(f"Threshold should be less or equal the maximum value of the dtype, but got {threshold}")
        limit = factor_of(threshold, count, lambda rows: rows == rows, "threshold is not a number")
        limit = on_device_of(limit, value)
        above = wide(value) >= limit
        if is_float(value):
            share = ndd.cast(above, dtype=ndd.float32)
            return in_type_of(wide(value) * (1.0 - share) + (1.0 - wide(value)) * share, value)
        return in_type_of(value ^ (ndd.cast(above, dtype=value.dtype) * typed(largest(value.dtype), value)), value)

    _check_type(inpt)
    return on_images("solarize", inpt, images)


@functional
def autocontrast(inpt: Any) -> Any:
    """Stretches each channel so that its darkest value becomes black and its brightest white.

    Args:
        inpt: as for `adjust_brightness`.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.autocontrast(torch.tensor([[[50, 100, 150]]], dtype=torch.uint8))
    tensor([[[  0, 127, 254]]], dtype=torch.uint8)
    """

    def images(value: Any) -> Any:
        check_channels(value)
        bound, layout = largest(value.dtype), layout_of(value)
        axes = [layout.index("H"), layout.index("W")]
        real = ndd.cast(value, dtype=ndd.float32)
        low, high = (f(real, axes=axes, keep_dims=True) for f in (ndd.reductions.min, ndd.reductions.max))
        flat = ndd.cast(low == high, dtype=real.dtype)
        scale = (high - low) * (1.0 / bound) * (1.0 - flat) + flat
        result = ndd.math.clamp((real - low * (1.0 - flat)) / scale, 0.0, bound)
        return in_type_of(result if is_float(value) else ndd.math.floor(result), value)

    return on_images("autocontrast", inpt, images)


@functional
def equalize(inpt: Any) -> Any:
    """Spreads the values of each channel over the whole range, as Pillow does; types other than uint8 are converted to it and
    back.

    Args:
        inpt: as for `adjust_brightness`.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.equalize((torch.arange(1024) % 64).reshape(1, 32, 32).to(torch.uint8)).amax()
    tensor(255, dtype=torch.uint8)
    """

    def images(value: Any) -> Any:
        return scaled_to(ndd.equalize(scaled_to(value, ndd.uint8), rule="pillow"), value.dtype)

    _check_type(inpt)
    return on_images("equalize", inpt, images)
