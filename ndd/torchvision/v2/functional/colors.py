"""Brightness, contrast, saturation, hue, gamma and grey."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import ndd
from ndd.ops.color.color_jitter import BRIGHTNESS, CONTRAST, HUE, SATURATION, color_step
from ndd.torchvision.v2.functional.arithmetic import (
    channel,
    channels_of,
    check_channels,
    factor_of,
    grey,
    is_float,
    joined,
    largest,
    on_device_of,
    with_channels,
)
from ndd.torchvision.v2.functional.conversions import scaled_to, wide
from ndd.torchvision.v2.functional.kinds import functional, through, unserved
from ndd.torchvision.values import count_of, kind_of, layout_of, rows_of, varies


def on_images(name: str, inpt: Any, images: Any) -> Any:
    """Applies a change of colours to images; of `ndd.Targets` only the images change."""
    return through(
        name, inpt, images, targets=lambda t: dataclasses.replace(t, images=images(t.images))
    )  # fmt: skip


def _step(step: str, inpt: Any, factor: Any) -> Any:
    """One step of `ndd.color_jitter`; ValueError for a negative factor, or a hue beyond its circle."""
    count = count_of(inpt)
    rows = rows_of(factor, count)
    if step == "hue" and not (abs(rows) <= 0.5).all():
        raise ValueError(f"hue_factor ({factor}) is not in [-0.5, 0.5].")
    if step != "hue" and not (rows >= 0).all():
        raise ValueError(f"{step}_factor ({factor}) is not non-negative.")

    def images(value: Any) -> Any:
        if check_channels(value) == 1 and step in ("saturation", "hue"):
            return value
        return _jittered(value, count, step, factor)

    return on_images(f"adjust_{step}", inpt, images)


@functional
def adjust_brightness(inpt: Any, brightness_factor: float) -> Any:
    """Multiplies by a factor, within the range of the type: 0 is black, 1 the image itself.

    Args:
        inpt: images `[..., C, H, W]`, video, a PIL image, an `ndd.Batch`, or `ndd.Targets`, whose images change.
        brightness_factor: 0 or more. ValueError for less.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.adjust_brightness(torch.tensor([[[100, 200]]], dtype=torch.uint8), 1.5)
    tensor([[[150, 255]]], dtype=torch.uint8)
    """
    return _step("brightness", inpt, brightness_factor)


@functional
def adjust_contrast(inpt: Any, contrast_factor: float) -> Any:
    """Moves pixels away from the mean luminance of the image: 0 is grey, 1 the image itself.

    Args:
        inpt: as for `adjust_brightness`.
        contrast_factor: 0 or more. ValueError for less.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.adjust_contrast(torch.tensor([[[100, 200]]], dtype=torch.uint8), 0.5)
    tensor([[[125, 175]]], dtype=torch.uint8)
    """
    return _step("contrast", inpt, contrast_factor)


@functional
def adjust_saturation(inpt: Any, saturation_factor: float) -> Any:
    """Moves colours away from grey: 0 is a grey image, 1 the image itself. A single channel does not change.

    Args:
        inpt: as for `adjust_brightness`.
        saturation_factor: 0 or more. ValueError for less.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.adjust_saturation(torch.tensor([[[100]], [[200]], [[0]]], dtype=torch.uint8), 0.0).flatten()
    tensor([147, 147, 147], dtype=torch.uint8)
    """
    return _step("saturation", inpt, saturation_factor)


@functional
def adjust_hue(inpt: Any, hue_factor: float) -> Any:
    """Turns the hue, in the space HSV, by a share of the full circle, -0.5 to 0.5. A single channel does not change.

    Args:
        inpt: as for `adjust_brightness`.
        hue_factor: -0.5 to 0.5 of the circle. ValueError for others.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.adjust_hue(torch.tensor([[[255]], [[0]], [[0]]], dtype=torch.uint8), 0.5).flatten()
    tensor([  0, 255, 255], dtype=torch.uint8)
    """
    return _step("hue", inpt, hue_factor)


_JITTERED = (ndd.uint8, ndd.float16, ndd.float32)
_STEPS = {"brightness": BRIGHTNESS, "contrast": CONTRAST, "saturation": SATURATION, "hue": HUE}


def _jittered(value: Any, count: int | None, name: str, factor: Any) -> Any:
    """One step of `ndd.color_jitter`, by a known factor; types that the operator does not take are converted to fractions of
    white."""
    rows = rows_of(factor, count).reshape(-1, 1)
    both = np.concatenate((rows, 1.0 - rows), axis=1).astype(np.float32)
    how = {"step": _STEPS[name], "factors": ndd.batch(both) if varies(factor, count) else both[0].tolist()}
    if value.dtype in _JITTERED:
        return color_step(value, **how)
    share = color_step(ndd.cast(value, dtype=ndd.float32) * (1.0 / largest(value.dtype)), **how)
    if is_float(value):
        return ndd.cast(share, dtype=value.dtype)
    return ndd.cast(ndd.math.floor(share * largest(value.dtype)), dtype=value.dtype)


@functional
def adjust_gamma(inpt: Any, gamma: float, gain: float = 1) -> Any:
    """`gain * image ** gamma`, for values from 0 to 1; whole numbers are scaled to that range and back.

    Args:
        inpt: as for `adjust_brightness`.
        gamma: the power, 0 or more; above 1 makes shadows darker.
        gain: the factor.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.adjust_gamma(torch.tensor([[[0.25, 0.5]]]), 2)
    tensor([[[0.0625, 0.2500]]])
    """
    count = count_of(inpt)
    power = factor_of(gamma, count, lambda rows: rows >= 0, "Gamma should be a non-negative real number")
    gain = factor_of(gain, count, lambda rows: rows == rows, "gain is not a number")

    def images(value: Any) -> Any:
        real = wide(value) if is_float(value) else scaled_to(value, ndd.float32)
        bright = ndd.math.fpow(real, on_device_of(power, value))
        if isinstance(gain, ndd.Batch) or gain != 1.0:
            bright = ndd.math.clamp(bright * on_device_of(gain, value), 0.0, 1.0)
        return scaled_to(bright, value.dtype)

    return on_images("adjust_gamma", inpt, images)


@functional
def rgb_to_grayscale(inpt: Any, num_output_channels: int = 1) -> Any:
    """Luminance, `0.2989 R + 0.587 G + 0.114 B`, in one channel or in three equal ones.

    Args:
        inpt: as for `adjust_brightness`.
        num_output_channels: 1 or 3.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.rgb_to_grayscale(torch.tensor([[[100]], [[200]], [[50]]], dtype=torch.uint8))
    tensor([[[152]]], dtype=torch.uint8)
    """
    if num_output_channels not in (1, 3):
        raise ValueError(f"num_output_channels must be 1 or 3, got {num_output_channels}.")
    _no_video("rgb_to_grayscale", inpt)
    return on_images("rgb_to_grayscale", inpt, lambda v: _grey_of(v, num_output_channels))


to_grayscale = rgb_to_grayscale


def _no_video(name: str, inpt: Any) -> None:
    """TypeError for `tv_tensors.Video`, as torchvision raises it."""
    if kind_of(inpt) == "video":
        raise unserved(name, inpt, "images, ndd.Targets")


def _grey_of(value: Any, channels: int) -> Any:
    if check_channels(value) == 3:
        if value.dtype == ndd.uint8:  # the same numbers, in one pass
            toned = _jittered(value, None, "saturation", 0.0)
            return toned if channels == 3 else channel(toned, 0)
        tones = grey(value)
        if not is_float(value):
            tones = ndd.math.floor(tones)
        value = ndd.cast(tones, dtype=value.dtype)
    return joined([with_channels(value)] * 3) if channels == 3 else value


@functional
def grayscale_to_rgb(inpt: Any) -> Any:
    """Repeats a single channel three times; images of three or more channels do not change.

    Args:
        inpt: as for `adjust_brightness`.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.grayscale_to_rgb(torch.tensor([[[7]]])).flatten()
    tensor([7, 7, 7])
    """
    _no_video("grayscale_to_rgb", inpt)
    return on_images(
        "grayscale_to_rgb", inpt, lambda v: v if min(channels_of(v) or {3}) >= 3 else _grey_of(v, 3)
    )  # fmt: skip


@functional
def permute_channels(inpt: Any, permutation: list[int]) -> Any:
    """Channels in another order: channel `permutation[i]` of the image becomes channel i.

    Args:
        inpt: as for `adjust_brightness`.
        permutation: a number for each channel; ValueError for another length.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.permute_channels(torch.tensor([[[1]], [[2]], [[3]]]), [2, 0, 1]).flatten()
    tensor([3, 1, 2])
    """

    def images(value: Any) -> Any:
        for count in channels_of(value) - {len(permutation)}:
            raise ValueError(f"Length of permutation does not match number of channels: {len(permutation)} != {count}")
        if layout_of(value) != "HWC":
            return joined([channel(value, int(i)) for i in permutation])
        planes = ndd.transpose(value, perm=[2, 0, 1], output_layout="CHW")  # whole planes are copied
        moved = joined([channel(planes, int(i)) for i in permutation])
        return ndd.transpose(moved, perm=[1, 2, 0], output_layout=value.layout)

    return on_images("permute_channels", inpt, images)
