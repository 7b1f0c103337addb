"""The common part of the linear colour operators: everything except their signatures."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._cpu.linear_color import by, mix_channels, scale_elements
from ndd._operator import Operand, Plan, bad_sample, operator
from ndd._tensor import DType

_TYPES = ("u8", "i16", "i32", "f16", "f32")
_RANGES = {"u8": 255.0, "i16": 32767.0, "i32": 2147483647.0}  # the effect of a `brightness_shift` of 1; floats: 1

MODERATE = 1e6  # factors up to this one keep sums of bytes within 32-bit integers

# YIQ as DALI rounds it, and the inverse as its 32-bit arithmetic gives it.
_TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]], np.float32)
_FROM_YIQ = np.array(
    [
        [0.9996643662452698, 0.9565411806106567, 0.6208617091178894],
        [0.9996248483657837, -0.2722744643688202, -0.6474512815475464],
        [1.0028122663497925, -1.1068480014801025, 1.705405592918396],
    ],
    np.float32,
)


def scales_elements(declared: Callable[..., Any]) -> Any:
    """Declares an operator `brightness * (center + contrast * (in - center)) + shift * range(out)` for each element."""
    return _linear(declared, _plan_scaling, {"layouts": ("FHWC", "DHWC", "HWC"), "cut": "elements", "masks": True})


def mixes_channels(declared: Callable[..., Any]) -> Any:
    """Declares an operator `brightness * (contrast * (matrix @ pixel - grey) + grey)` for pixels of three channels."""
    return _linear(declared, _plan_mixing, {"layouts": ("HWC", "FHWC", "DHWC"), "cut": "rows"})


def _linear(declared: Callable[..., Any], plan: Callable[..., Plan], options: dict[str, Any]) -> Any:
    op = operator(declared, types=_TYPES, dtypes=_TYPES, frames=True, **options)
    op.plan(plan)
    op.cuda("linear_color.cu")(launch_linear_color)
    return op


def half_range(dtype: DType, whole: bool = False) -> float:
    """Grey: half the range of a type, `(max + 1) / 2`, 0.5 for floats. `whole`: the range, `max`, 1.0 for floats."""
    span = _RANGES.get(dtype.name)
    if whole:
        return span or 1.0
    return (span + 1) / 2 if span else 0.5


def _plan_scaling(input, *, dtype, brightness=None, brightness_shift=None, contrast=None, contrast_center=None) -> Plan:
    center = half_range(input.dtype) if contrast_center is None else contrast_center.numbers
    numbers = (
        _numbers(brightness), _numbers(brightness_shift, 0.0), _numbers(contrast), center,
        half_range(dtype or input.dtype, whole=True),
    )  # fmt: skip
    matrix = _cached_scaling(*numbers) if _are_constant(numbers) else _scaling(*numbers)
    return _plan(input, dtype, matrix, scale_elements)


def _numbers(values: Any, default: float = 1.0) -> Any:
    return default if values is None else values.numbers


def _are_constant(numbers: Any) -> bool:
    return all([isinstance(v, float) for v in numbers])


def _scaling(brightness: Any, shift: Any, contrast: Any, center: Any, span: float) -> np.ndarray:
    """float32 [..., 1, 2]: factor and offset."""
    brightness, shift, contrast, center = (np.asarray(v, np.float32) for v in (brightness, shift, contrast, center))
    with np.errstate(all="ignore"):
        factor = brightness * contrast
        offset = brightness * (center - center * contrast) + shift * np.float32(span)
    matrix = np.empty((*np.broadcast_shapes(factor.shape, offset.shape), 1, 2), np.float32)
    matrix[..., 0, 0], matrix[..., 0, 1] = factor, offset
    return matrix


def _mixing(hue: Any, saturation: Any, value: Any, brightness: Any, contrast: Any, grey: float) -> np.ndarray:
    """float32 [..., 3, 4]: the matrix for a colour, and the offset."""
    brightness, contrast, middle = (np.asarray(v, np.float32) for v in (brightness, contrast, grey))
    with np.errstate(all="ignore"):
        gain, offset = brightness * contrast, brightness * (middle - middle * contrast)
    matrix = color_matrix(hue, saturation, value, gain)
    full = np.empty((*np.broadcast_shapes(matrix.shape[:-2], np.shape(offset)), 3, 4), np.float32)
    full[..., :3] = matrix
    full[..., 3] = _column(offset)
    return full


# Values that do not change from call to call are cached. (Nothing writes to these arrays. They stay writable, because the
# compiler treats read-only arrays as a separate type.)
_cached_scaling = functools.lru_cache(64)(_scaling)
_cached_mixing = functools.lru_cache(64)(_mixing)


def _column(values: Any) -> np.ndarray:
    return np.asarray(values, np.float32)[..., None]


def color_matrix(hue: Any, saturation: Any, value: Any, gain: Any) -> np.ndarray:
    """`gain * from_yiq @ rotation(hue) @ diag(1, saturation, saturation) * value @ to_yiq`: float32 [..., 3, 3].

    The arguments are numbers, or arrays [N]. Each product is rounded where DALI rounds it.
    """
    angle = np.asarray(np.asarray(hue, np.float64) * (np.pi / 180), np.float32).astype(np.float64)
    with np.errstate(all="ignore"):
        cosine, sine, saturation, value = (_column(v) for v in (np.cos(angle), np.sin(angle), saturation, value))
        base = np.asarray(gain, np.float32)[..., None, None] * _FROM_YIQ
        second, third = base[..., 1], base[..., 2]
        parts = (
            base[..., 0] * value,
            (second * cosine - third * sine) * saturation * value,
            (second * sine + third * cosine) * saturation * value,
        )
        first, second, third = (p[..., None] * row for p, row in zip(parts, _TO_YIQ, strict=True))
        return first + second + third


def _plan_mixing(input, *, dtype, hue=None, saturation=None, value=None, brightness=None, contrast=None, **_) -> Plan:
    channels = input.shapes[:, -1]
    if (channels != 3).any():
        i = int((channels != 3).argmax())
        shape = tuple(input.shapes[i].tolist())
        raise bad_sample(i, f"expected 3 channels (RGB), got {channels[i]}: shape {shape}")
    grey = 0.5 if input.dtype.name in ("f16", "f32") else 128.0
    numbers: Any = (_numbers(hue, 0.0), *map(_numbers, (saturation, value, brightness, contrast)), grey)
    return _plan(input, dtype, _cached_mixing(*numbers) if _are_constant(numbers) else _mixing(*numbers), mix_channels)


def _plan(input: Operand, dtype: DType | None, matrix: np.ndarray, kernel: Any) -> Plan:
    """The plan for a matrix [rows, columns + 1] of all samples, or [N, ...] of each."""
    moderate = bool(np.abs(matrix).max(initial=0.0) < MODERATE)
    shared, per_sample = ({"matrix": matrix}, {}) if matrix.ndim == 2 else ({}, {"matrix": matrix})
    chosen = by(kernel, input.dtype.numpy, (dtype or input.dtype).numpy, moderate)
    return Plan(input.shapes, per_sample, shared, kernel=chosen, view="rows")


def launch_linear_color(launch, image, out, matrix) -> None:
    """Runs linear_color.cu over all pixels, with enough pixels for each thread to make its loads and stores wide."""
    rows, columns = matrix.shape[-2], matrix.shape[-1] - 1
    launch(
        "linear_color",
        image.sizes // columns,
        pack=min(16 // max(image.dtype.bytes, out.dtype.bytes), 16 if columns == 1 else 8),
        per_sample={"matrix": np.broadcast_to(matrix, (launch.n, rows, columns + 1))},
        macros={"ROWS": rows, "COLUMNS": columns},
    )
