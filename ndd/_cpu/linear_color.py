"""Linear colour arithmetic on the CPU: matrices over the channels of a pixel, a factor and an offset for each element.

The arrays belong to one sample, with interleaved channels. A row of a matrix computes one channel of the result: it has a
factor for each source channel, then an offset. `limits` are those of `conversion.element`; `small` is True for bytes whose
exact values fit 32-bit integers, else None.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd._cpu.conversion import element
from ndd._tensor.convert import convert_array

_LIMITS: dict[np.dtype, Any] = {
    np.dtype(kind): (np.float32(np.iinfo(kind).min), np.float32(np.iinfo(kind).max)) for kind in (np.uint8, np.int16)
}
_RUN = 512
_SHORT_NAMES = {np.dtype(np.float16): "f16", np.dtype(np.int32): "i32"}
_FLOAT, _BYTE = np.dtype(np.float32), np.dtype(np.uint8)


@kernel
def _stored(value, limits, small):
    """A number as an element of the output: rounded, halves away from zero, and clamped."""
    if small is not None:
        # Clamping integers is faster than clamping floats. Negative numbers become zero, however they are rounded.
        return np.uint8(min(max(np.int32(value + np.float32(0.49999997)), np.int32(0)), np.int32(255)))
    return element(value, limits, None)


def _all_made(values, limits, small):
    """`_made` of an array."""
    if small is not None:
        return (values + np.float32(0.49999997)).astype(np.int32).clip(0, 255)
    if limits is not None:
        values = values.clip(*limits)
        return np.trunc(values + np.copysign(np.float32(0.49999997), values))
    return values


@kernel
def mix_channels(x, out, matrix, limits, small):
    """Computes three channels from three."""
    source, target = x.reshape(x.size), out.reshape(out.size)
    rr, rg, rb, r_offset = matrix[0, 0], matrix[0, 1], matrix[0, 2], matrix[0, 3]
    gr, gg, gb, g_offset = matrix[1, 0], matrix[1, 1], matrix[1, 2], matrix[1, 3]
    br, bg, bb, b_offset = matrix[2, 0], matrix[2, 1], matrix[2, 2], matrix[2, 3]
    for i in range(source.size // 3):
        r, g, b = np.float32(source[3 * i]), np.float32(source[3 * i + 1]), np.float32(source[3 * i + 2])
        target[3 * i] = _stored(rr * r + rg * g + rb * b + r_offset, limits, small)
        target[3 * i + 1] = _stored(gr * r + gg * g + gb * b + g_offset, limits, small)
        target[3 * i + 2] = _stored(br * r + bg * g + bb * b + b_offset, limits, small)


@mix_channels.fallback
def _(x, out, matrix, limits, small):
    with np.errstate(all="ignore"):
        r, g, b = x.reshape(-1, 3).T.astype(np.float32)
        for channel, (of_r, of_g, of_b, offset) in enumerate(matrix):
            out.reshape(-1)[channel::3] = _all_made(of_r * r + of_g * g + of_b * b + offset, limits, small)


@kernel
def merge_channels(x, out, matrix, limits, small):
    """Computes one channel from three."""
    source, target = x.reshape(x.size), out.reshape(out.size)
    first, second, third, offset = matrix[0, 0], matrix[0, 1], matrix[0, 2], matrix[0, 3]
    for i in range(target.size):
        a, b, c = np.float32(source[3 * i]), np.float32(source[3 * i + 1]), np.float32(source[3 * i + 2])
        target[i] = _stored(first * a + second * b + third * c + offset, limits, small)


@kernel
def grey(x, out, reverse):
    """`(9798 * R + 19235 * G + 3735 * B) / 2**15`, rounded: OpenCV's weights; `reverse` if B comes first.

    16-bit arithmetic is enough, and fastest: the weights are split into their upper 8 bits and their lower 7, and the sum of the
    products with either part fits.
    """
    channels = empty((3, _RUN), np.uint16)
    first, g, last = channels[0], channels[1], channels[2]
    r, b = (last, first) if reverse else (first, last)
    rgb, greys = x.reshape(x.size), out.reshape(out.size)
    for start in range(0, greys.size, _RUN):
        count = min(_RUN, greys.size - start)
        source, target = rgb[3 * start : 3 * (start + count)], greys[start : start + count]
        for i in range(count):
            first[i], g[i], last[i] = source[3 * i], source[3 * i + 1], source[3 * i + 2]
        for i in range(count):
            low = np.uint16(np.uint16(70) * r[i] + np.uint16(35) * g[i] + np.uint16(23) * b[i] + np.uint16(1 << 14))
            high = np.uint16(np.uint16(76) * r[i] + np.uint16(150) * g[i] + np.uint16(29) * b[i])
            target[i] = np.uint8(np.uint16(high + (low >> np.uint16(7))) >> np.uint16(8))


@kernel
def spread_channel(x, out, matrix, limits, small):
    """Computes three channels from one."""
    source, target = x.reshape(x.size), out.reshape(out.size)
    first, second, third = matrix[0, 0], matrix[1, 0], matrix[2, 0]
    a, b, c = matrix[0, 1], matrix[1, 1], matrix[2, 1]
    for i in range(source.size):
        value = np.float32(source[i])
        target[3 * i] = _stored(first * value + a, limits, small)
        target[3 * i + 1] = _stored(second * value + b, limits, small)
        target[3 * i + 2] = _stored(third * value + c, limits, small)


@kernel
def repeat_channel(x, out):
    """Repeats one channel as three."""
    source, target = x.reshape(x.size), out.reshape(out.size)
    for i in range(source.size):
        target[3 * i] = source[i]
        target[3 * i + 1] = source[i]
        target[3 * i + 2] = source[i]


@kernel
def swap_channels(x, out):
    """Exchanges the first and the third of three channels."""
    source, target = x.reshape(x.size), out.reshape(out.size)
    for i in range(source.size // 3):
        first, second, third = source[3 * i], source[3 * i + 1], source[3 * i + 2]
        target[3 * i], target[3 * i + 1], target[3 * i + 2] = third, second, first


@kernel
def scale_elements(x, out, matrix, limits, small):
    """Multiplies each element by a factor and adds an offset: `[[factor, offset]]`."""
    factor, offset = matrix[0, 0], matrix[0, 1]
    for i in range(x.size):
        out[i] = _stored(np.float32(x[i]) * factor + offset, limits, small)


@scale_elements.fallback
def _(x, out, matrix, limits, small):
    with np.errstate(all="ignore"):
        out[:] = _all_made(x.astype(np.float32) * matrix[0, 0] + matrix[0, 1], limits, small)


def by(kernel: Any, kind: np.dtype, target: np.dtype, moderate: bool) -> partial[None]:
    """One of the kernels as `f(x, out, matrix)`, for elements of these types: uint8, int16, int32, float16 or float32.

    `moderate`: results of a uint8 input stay within 32-bit integers. float16, and int32 results, are converted through a
    float32 array, because a loop for each pair of types is not worth the time to compile it.
    """
    if kind == np.float16 or (target != _FLOAT and target not in _LIMITS):
        return partial(compute, kernel=kernel, moderate=moderate)
    return partial(kernel, limits=_LIMITS.get(target), small=_is_small(kind, target, moderate))


def _is_small(kind: np.dtype, target: np.dtype, moderate: bool) -> bool | None:
    return True if moderate and kind == target == _BYTE else None


def compute(x: np.ndarray, out: np.ndarray, matrix: np.ndarray, kernel: Any, moderate: bool) -> None:
    """Runs one of the kernels on arrays, see `by`."""
    if not out.size:
        return
    if x.dtype == np.float16:
        x = convert_array(x, "f16", "f32")
    wide = out if out.dtype in _LIMITS or out.dtype == _FLOAT else np.empty(out.shape, np.float32)
    small = _is_small(x.dtype, wide.dtype, moderate)
    kernel(x.reshape(-1), wide.reshape(-1), matrix, _LIMITS.get(wide.dtype), small)
    if wide is not out:
        convert_array(wide, "f32", _SHORT_NAMES[out.dtype], out)
