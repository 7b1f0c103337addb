"""Warns at the user's line of constants that DALI takes but that are hardly meant, in most cases numbers in another unit,
and says what is likely meant. Values of samples are not checked: a small one may have been drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._tensor import Handle
from ndd._tensor.type_guards import is_list
from ndd._tensor.warn_once import warn_once

_BYTE = 255
_FACTOR = 50  # a factor from which on hardly any byte stays between 0 and 255
_NOISE = 0.25  # noise on whole numbers that rounding removes for all but one number in twenty
_SHARE = 0.5  # the largest hue of torchvision, half the circle
_CHANNELS = 4  # images with more channels are rare enough to warn


def warn_of_unit_range(operator: str, input: Any, centre: Any, spread: Any, scale: float = 1.0, **names: str) -> None:
    """Warns of a mean and a deviation for pixels of 0 to 1, as torchvision has them, together with bytes. `names`: of the
    arguments."""
    if input.dtype.name != "u8":
        return
    mean, std = _numbers(centre), _numbers(spread)
    small_mean = mean is not None and bool(mean.min() >= 0 and 0 < mean.max() < 1)
    small_std = std is not None and bool(std.min() > 0 and std.max() < 1)
    if small_mean and (std is None or std.max() <= 1):
        wrong, values = names["mean"], mean
    elif small_std and scale == 1:
        wrong, values = names["std"], std
    else:
        return
    small: list[tuple[str, Any]] = [("mean", mean)] * small_mean + [("std", std)] * (small_std and scale == 1)
    meant = [f"{names[k]}={_shown(np.multiply(v, _BYTE))}" for k, v in small]
    _warn(
        operator,
        wrong,
        values,
        f"is taken in units of the input, whose pixels are 0 to 255 (uint8). For numbers of pixels from 0 to 1, as torchvision "
        f"has them, {', '.join(meant)} is meant",
    )


def warn_of_hue(operator: str, hue: Any) -> None:
    """Warns of a fraction of the circle where degrees are expected."""
    values = _numbers(hue)
    if values is not None and 0 < np.abs(values).max() <= _SHARE:
        _warn(
            operator,
            "hue",
            values,
            f"is an angle in degrees, hardly a change. For a share of the circle, as torchvision has it, {_shown(values * 360)} "
            "is meant",
        )


def warn_of_factors(operator: str, input: Any, **factors: Any) -> None:
    """Warns of numbers from 0 to 255 where a factor of bytes is expected."""
    for name, value in factors.items():
        values = _numbers(value)
        if input.dtype.name == "u8" and values is not None and np.abs(values).max() >= _FACTOR:
            _warn(
                operator, name, values, "is a factor, of which 1 changes nothing: pixels of 0 to 255 (uint8) saturate"
            )


def warn_of_range(operator: str, input: Any, *, shift: Any = None, center: Any = None) -> None:
    """Warns of a `brightness_shift` in units of the pixels, and a `contrast_center` as a share of their range."""
    values = _numbers(shift)
    if values is not None and np.abs(values).max() > 1 and input.dtype.name in ("u8", "i16", "i32"):
        text = f"is a share of the range of {input.dtype}: all pixels saturate"
        meant = f". For steps of 255, {_shown(values / _BYTE)} is meant" if input.dtype.name == "u8" else ""
        _warn(operator, "brightness_shift", values, text + meant)
    values = _numbers(center)
    if values is not None and values.min() > 0 and values.max() < 1 and input.dtype.name == "u8":
        text = f"is in units of the pixels, 0 to 255 (uint8). For a share of that, {_shown(values * _BYTE)} is meant"
        _warn(operator, "contrast_center", values, text)


def warn_of_noise(operator: str, input: Any, mean: Any, stddev: Any) -> None:
    """Warns of noise that rounding removes."""
    values, moved = _numbers(stddev), _numbers(mean)
    if values is None or moved is None or input.dtype.name == "f32":
        return
    if 0 < values.max() < _NOISE and np.abs(moved).max() < _NOISE:
        meant = f". For a share of 255, {_shown(values * _BYTE)} is meant" if input.dtype.name == "u8" else ""
        _warn(
            operator, "stddev", values, f"is in units of the input, {input.dtype}: rounding takes the noise away{meant}"
        )


def warn_of_part_of_pixel(operator: str, instead: str, **sizes: Any) -> None:
    """Warns of a size below one pixel. `instead`: the result, and the argument that takes fractions."""
    for name, value in sizes.items():
        values = _numbers(value)
        if values is not None and ((np.abs(values) > 0) & (np.abs(values) < 1)).any():
            _warn(operator, name, values, f"is a size in pixels, less than one: {instead}")


def warn_of_whole_extent(operator: str, **sizes: Any) -> None:
    """Warns of a window size that keeps the whole extent: a fraction, a negative number, or only zeros."""
    for name, value in sizes.items():
        values = None if is_list(value) and any(isinstance(v, Handle) for v in value) else _numbers(value)
        if values is None:
            continue
        share = ((values > 0) & (values < 1)).any()
        if share or (values < 0).any() or not values.any():
            advice = " `ndd.slice(..., rel_start=..., rel_shape=...)` takes fractions." if share else ""
            _warn(
                operator, name, values, f"is a size in pixels: below 1 it keeps the whole extent of the image.{advice}"
            )


def _numbers(value: Any) -> np.ndarray | None:
    """The numbers of a constant; None where nothing is given, and for values of samples."""
    if value is None or isinstance(value, Handle):
        return None
    numbers = np.asarray(value)
    return numbers if numbers.size and numbers.dtype.kind in "biuf" else None


def _shown(values: Any) -> str:
    listed = [f"{v:g}" for v in np.ravel(values)[:4].astype(np.float64).round(4)]
    if np.ndim(values) == 0:
        return listed[0]
    return f"[{', '.join(listed)}{', ...' if np.size(values) > 4 else ''}]"


def _warn(operator: str, name: str, values: Any, text: str) -> None:
    warn_once(f"{operator}: {name} unlikely", f"{operator}: `{name}` {_shown(values)} {text}")


def warn_of_planes(operator: str, shapes: list[tuple[int, ...]], call: Any) -> None:
    """Warns of an image without a layout that looks like CHW: it is taken as HWC, as in DALI."""
    if shapes and shapes[0][-1] > _CHANNELS and shapes[0][0] in (1, 3, 4):
        warn_once(
            f"{operator}: planes",
            f"{operator}: an array of shape {shapes[0]} without a layout is taken as HWC, an image of {shapes[0][-1]} "
            'channels. If it is CHW, say so when you make the value: ndd.as_tensor(..., layout="CHW")',
            call,
        )
