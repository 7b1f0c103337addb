"""What the linear colour operators have in common: element types, matrices, plans and launches."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ndd._operator import Plan, bad_sample, like
from ndd._tensor import DType, Spec

_TYPES = ("u8", "i16", "i32", "f16", "f32")
_RANGES = {"u8": 255.0, "i16": 32767.0, "i32": 2147483647.0}  # what a `brightness_shift` of 1 adds; floats: 1

_MODERATE = 1e6  # factors up to this one keep sums of bytes within 32-bit integers

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


def result(operator: str, source: Spec, dtype: DType | None) -> Spec:
    """What comes out: `source` with elements of `dtype`. RuntimeError for types that the operators do not take."""
    chosen = dtype or source.dtype
    for what, kind in (("input", source.dtype), ("output", chosen)):
        if kind.name not in _TYPES:
            raise RuntimeError(
                f"{operator}: Unsupported {what} type: {kind}. Expected uint8, int16, int32, float16 or float32"
            )
    return like(source, dtype=chosen)


def half_range(dtype: DType, whole: bool = False) -> float:
    """Grey: half the range of a type, `(max + 1) / 2`, 0.5 for floats. `whole`: the range, `max`, 1.0 for floats."""
    span = _RANGES.get(dtype.name)
    if whole:
        return span or 1.0
    return (span + 1) / 2 if span else 0.5


def plan_scaling(input: Any, out: DType, brightness: Any, shift: Any, contrast: Any, center: Any) -> Plan:
    """The plan of `brightness * (center + contrast * (in - center)) + shift * range(out)` for each element."""
    center = half_range(input.dtype) if center is None else center
    numbers = (brightness, shift, contrast, center, half_range(out, whole=True))
    return planned(input, _kept_scaling(*numbers) if _are_constant(numbers) else _scaling(*numbers))


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
    """float32 [..., 3, 4]: the matrix of a colour and what is added."""
    brightness, contrast, middle = (np.asarray(v, np.float32) for v in (brightness, contrast, grey))
    with np.errstate(all="ignore"):
        gain, offset = brightness * contrast, brightness * (middle - middle * contrast)
    matrix = color_matrix(hue, saturation, value, gain)
    full = np.empty((*np.broadcast_shapes(matrix.shape[:-2], np.shape(offset)), 3, 4), np.float32)
    full[..., :3] = matrix
    full[..., 3] = _column(offset)
    return full


# What does not change from call to call is not worked out again. (Nobody writes to these arrays. They stay writable: to
# the compiler read-only arrays are a type of their own.)
_kept_scaling = functools.lru_cache(64)(_scaling)
_kept_mixing = functools.lru_cache(64)(_mixing)


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


def plan_mixing(
    input: Any, hue: Any, saturation: Any, value: Any = 1.0, brightness: Any = 1.0, contrast: Any = 1.0, grey: float = 0.0
) -> Plan:  # fmt: skip
    """The plan of `brightness * (contrast * (matrix @ pixel - grey) + grey)` for pixels of three channels."""
    channels = input.shapes[:, -1]
    if (channels != 3).any():
        sample = int((channels != 3).argmax())
        raise bad_sample(sample, f"expected 3 channels (RGB), got {channels[sample]}: shape {_shape(input, sample)}")
    numbers = (hue, saturation, value, brightness, contrast, grey)
    return planned(input, _kept_mixing(*numbers) if _are_constant(numbers) else _mixing(*numbers))


def _shape(input: Any, sample: int) -> tuple[int, ...]:
    return tuple(input.shapes[sample].tolist())


def planned(input: Any, matrix: np.ndarray, shapes: np.ndarray | None = None) -> Plan:
    """The plan for a matrix [rows, 1 + columns], or one for each sample."""
    shapes = input.shapes if shapes is None else shapes
    if input.spec.device.device_id is None:
        shared = {"moderate": bool(np.abs(matrix).max(initial=0.0) < _MODERATE)}
        if matrix.ndim == 3:
            return Plan(shapes, {"matrix": matrix}, shared)
        return Plan(shapes, shared={"matrix": matrix, **shared})
    rows, columns = matrix.shape[-2:]
    pixels = input.shapes.prod(axis=1) // (columns - 1)
    return Plan(shapes, {"matrix": np.broadcast_to(matrix, (input.n, rows, columns)), "pixels": pixels})


def launch_linear_color(launch: Any, matrix: np.ndarray, pixels: np.ndarray) -> None:
    """Runs linear_color.cu over all pixels: as many a thread as make wide loads and stores."""

    def sizes() -> tuple[int, int]:
        wider = max(launch.inputs[0].dtype.bytes, launch.outputs[0].dtype.bytes)
        count = min(16 // wider, 16 if matrix.shape[-1] == 2 else 8)
        return count, -(-int(pixels.max(initial=0)) // count)

    count, work = launch.remember("sizes", sizes)
    macros = {"COUNT": str(count), "ROWS": str(matrix.shape[-2]), "COLUMNS": str(matrix.shape[-1] - 1)}
    launch("linear_color", work, macros=macros, file="linear_color.cu", kept="all")
