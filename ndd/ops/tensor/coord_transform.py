"""`ndd.coord_transform`: points through a linear map."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._cpu.jit import kernel
from ndd._operator import PerSample, Plan, like, operator
from ndd._operator.run import current_invocation
from ndd._tensor import DType, Handle
from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import float32

_BLOCK = 128
_MANY = 1 << 16
_TYPES = ("u8", "u16", "i16", "i32", "f32")


@operator(frames=True)
def coord_transform(
    input,
    /,
    *,
    M: PerSample[list[float]] = None,
    MT: PerSample[list[float]] = None,
    T: PerSample[list[float]] = None,
    dtype: DType = float32,
):
    """Multiplies points by a matrix and shifts them.

    Args:
        input: points, (..., n): the last axis holds the coordinates of one point. uint8, uint16, int16, int32 or
            float32. With a leading F in the layout (video) the arguments may differ between frames.
        M: (m, n) numbers, the same row by row in one list, or one number, which multiplies every coordinate.
            Default: points stay.
        T: m numbers, or one for all coordinates. Default: no shift.
        MT: [M T] as one matrix of (m, n + 1) numbers or one list; one number counts as `M`. Not beside `M` or `T`.
        dtype: float32 or the type of the input; integers are rounded, halves away from zero, and kept in range.

    `out = M @ in + T` for each point, computed in float32; the result is (..., m) with the layout of the input.
    OpenCV's `transform` takes the same [M T] matrix. Points may have any number of coordinates (DALI: up to 6).

    Raises RuntimeError for other types, inputs of one axis and matrices or shifts that do not fit the points.

    >>> import ndd
    >>> ndd.coord_transform(ndd.tensor([[1.0, 2.0], [3.0, 4.0]]), M=[0, 1, 1, 0], T=[0, 0.5]).torch()
    tensor([[2.0000, 1.5000],
            [4.0000, 3.5000]])
    """
    if input.dtype.name not in _TYPES:
        raise RuntimeError(f"coord_transform: Unsupported input type: expected {', '.join(_TYPES)}, got {input.dtype}")
    if dtype is not float32 and dtype != input.dtype:
        raise RuntimeError(
            f"coord_transform: the output type must be float32 or that of the input, {input.dtype}, got {dtype}"
        )
    if input.ndim - ((input.layout or "")[:1] == "F") < 2:
        raise RuntimeError(
            f"coord_transform: expected points as (..., n), at least 2 axes beside that of the frames, got {input.ndim}"
        )
    if MT is not None and (M is not None or T is not None):
        raise RuntimeError("coord_transform: `MT` is `M` and `T` in one: it cannot be used together with them")
    return like(input, dtype=dtype)


@coord_transform.old_plan
def _(input, *, M, MT, T, dtype):
    shapes = input.shapes
    columns = int(shapes[0, -1])
    wrong = np.flatnonzero(shapes[:, -1] != columns)
    if len(wrong):
        raise RuntimeError(
            f"the points of all samples must have the same number of coordinates, got {columns} in sample 0 and "
            f"{shapes[wrong[0], -1]} in sample {wrong[0]}"
        )
    if MT is None:
        matrix = _matrix("M", M, columns, columns)
        offset = _shift(T, matrix.shape[-2])
    else:
        both = _matrix("MT", MT, columns, columns + 1)
        matrix, offset = both[..., :columns], both[..., columns]
    rows = matrix.shape[-2]
    per_sample = {
        "matrix": np.ascontiguousarray(np.broadcast_to(matrix, (input.n, rows, columns))),
        "offset": np.ascontiguousarray(np.broadcast_to(offset, (input.n, rows))),
    }
    return Plan(np.concatenate([shapes[:, :-1], np.full((input.n, 1), rows)], axis=1), per_sample)


def _matrix(name: str, value: Any, columns: int, width: int) -> np.ndarray:
    """The matrix, float32 (rows, width), or that of each sample (n, rows, width); a number means a square one."""
    if value is None:
        value = np.ones(1, np.float32)
    if isinstance(value, list):
        raise RuntimeError(f"`{name}` must have the same shape for every sample")
    value, each = _of_samples(name, value)
    if value.ndim == 1 + each and value.shape[-1] == 1:
        return value.reshape(-1, 1, 1) * np.eye(columns, width, dtype=np.float32)
    if value.ndim == 1 and value.size and value.size % width == 0:
        return value.reshape(-1, width)
    if value.ndim != 2 + each or value.shape[-1] != width:
        raise RuntimeError(
            f"`{name}`: expected a matrix of {width} columns for points of {columns} coordinates, got shape "
            f"{value.shape[each:]}"
        )
    return value


def _of_samples(name: str, value: np.ndarray) -> tuple[np.ndarray, bool]:
    """An argument, and whether its first axis counts samples; numbers count as vectors of one."""
    each = isinstance(current_invocation().prepared.named[name], Handle)
    return (value[:, None] if each and value.ndim == 1 else value), each


def _shift(value: Any, rows: int) -> np.ndarray:
    """The shift, float32 (rows,) or (n, rows)."""
    if value is None:
        return np.zeros(rows, np.float32)
    if isinstance(value, list):
        raise RuntimeError("`T` must have the same length for every sample")
    value, each = _of_samples("T", value)
    if value.ndim != 1 + each or value.shape[-1] not in (1, rows):
        raise RuntimeError(f"`T`: expected one number or {rows}, got shape {value.shape[each:]}")
    return value


@kernel
def _transform_two(points, out, matrix, offset):
    """Points of two coordinates, the frequent case: here the compiler knows how far apart they lie."""
    a, b, c, d = matrix[0, 0], matrix[0, 1], matrix[1, 0], matrix[1, 1]
    e, f = offset[0], offset[1]
    for p in range(out.size // 2):
        x, y = np.float32(points[2 * p]), np.float32(points[2 * p + 1])
        out[2 * p] = a * x + b * y + e
        out[2 * p + 1] = c * x + d * y + f


@kernel(nogil=False)
def transform_few(points, out, matrix, offset):
    """out = matrix @ point + offset for flat arrays of points, in float32; keeps the GIL.

    Blocks of points are sorted by coordinate, so that the sums run over neighbours in memory.
    """
    rows, columns = matrix.shape
    count = out.size // rows
    if rows == 2 and columns == 2:
        _transform_two(points, out, matrix, offset)
        return
    sorted_ = np.empty((columns, _BLOCK), np.float32)
    total = np.empty(_BLOCK, np.float32)
    for start in range(0, count, _BLOCK):
        size = min(_BLOCK, count - start)
        for c in range(columns):
            for p in range(size):
                sorted_[c, p] = points[(start + p) * columns + c]
        for r in range(rows):
            total[:] = 0
            for c in range(columns):
                factor = matrix[r, c]
                for p in range(_BLOCK):
                    total[p] += factor * sorted_[c, p]
            for p in range(size):
                out[(start + p) * rows + r] = total[p] + offset[r]


@kernel
def transform_many(points, out, matrix, offset):
    """As `transform_few`, beside other threads."""
    transform_few(points, out, matrix, offset)


@kernel
def _transform_batch(points, out, matrix, offset):
    for n in range(len(points)):
        transform_few(points[n], out[n], matrix[n], offset[n])


@coord_transform.cpu
def _(points, out, matrix, offset):
    # To give up the GIL and get it back costs more than a few thousand points.
    transform = transform_few if points.size < _MANY else transform_many
    _transformed(transform, points.reshape(-1), out.reshape(-1), matrix, offset)


@coord_transform.cpu_batch
def _(input, out, matrix, offset):
    n = len(input)
    _transformed(_transform_batch, input.reshape(n, -1), out.reshape(n, -1), matrix, offset)


def _transformed(transform, points, out, matrix, offset) -> None:
    if not out.size:
        return
    if out.dtype == np.float32:
        transform(points, out, matrix, offset)
        return
    exact = np.empty(out.shape, np.float32)
    transform(points, exact, matrix, offset)
    convert_array(exact, "f32", _SHORT[out.dtype.name], out)


_SHORT = {"uint8": "u8", "uint16": "u16", "int16": "i16", "int32": "i32"}

coord_transform.cuda("coord_transform.cu")
