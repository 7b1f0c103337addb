"""`ndd.coord_transform`: maps points by matrices."""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd._operator import PerSample, Plan, Values, like, operator
from ndd._tensor import DType
from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import float32

_BLOCK = 128
_MANY = 1 << 16


@operator(types=("u8", "u16", "i16", "i32", "f32"), frames=True)
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
        M: (m, n) numbers, the same row by row in one list, or one number, which multiplies every coordinate. Default: no
            change.
        T: m numbers, or one for all coordinates. Default: no shift.
        MT: [M T] as one matrix of (m, n + 1) numbers or one list; one number counts as `M`. Not beside `M` or `T`.
            (For a number DALI's points get one more coordinate, and wrong values from the second sample on.)
        dtype: float32 or the type of the input; integers are rounded, halves away from zero, and saturate.

    `out = M @ in + T` for each point, computed in float32; the result is (..., m) with the layout of the input.
    OpenCV's `transform` takes the same [M T] matrix. Points may have any number of coordinates (DALI: up to 6).

    Raises RuntimeError for other types, inputs of one axis and matrices or shifts that do not fit the points.

    >>> import ndd
    >>> ndd.coord_transform(ndd.tensor([[1.0, 2.0], [3.0, 4.0]]), M=[0, 1, 1, 0], T=[0, 0.5]).torch()
    tensor([[2.0000, 1.5000],
            [4.0000, 3.5000]])
    """
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


@coord_transform.plan
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
        offset = _shift(T, matrix.shape[1])
    else:
        both = _matrix("MT", MT, columns, columns + 1)
        matrix, offset = both[..., :columns], both[..., columns]
    rows = matrix.shape[1]
    per_sample = {
        "matrix": np.ascontiguousarray(np.broadcast_to(matrix, (input.n, rows, columns))),
        "offset": np.ascontiguousarray(np.broadcast_to(offset, (input.n, rows))),
    }
    results = np.concatenate([shapes[:, :-1], np.full((input.n, 1), rows)], axis=1)
    kernel = _transform if (dtype or float32) is float32 else _transform_rounded
    return Plan(results, per_sample, kernel=kernel, view="flat")


def _matrix(name: str, values: Values | None, columns: int, width: int) -> np.ndarray:
    """The matrices, float32 (n, rows, width), or (1, rows, width) if all are the same; a number means a square one."""
    if values is None:
        return np.eye(columns, width, dtype=np.float32)[None]
    matrices = _stacked(values)
    if matrices.shape[1:] == (1,):
        return matrices[..., None] * np.eye(columns, width, dtype=np.float32)
    if matrices.ndim == 2 and not values.varies and matrices.size and matrices.size % width == 0:
        return matrices.reshape(1, -1, width)
    if matrices.ndim != 3 or matrices.shape[2] != width:
        raise RuntimeError(
            f"`{name}`: expected a matrix of {width} columns for points of {columns} coordinates, got shape "
            f"{matrices.shape[1:]}"
        )
    return matrices


def _shift(values: Values | None, rows: int) -> np.ndarray:
    """The shifts, float32 (n, rows), (1, rows) or (n, 1)."""
    if values is None:
        return np.zeros((1, rows), np.float32)
    shifts = _stacked(values)
    if shifts.ndim != 2 or shifts.shape[1] not in (1, rows):
        raise RuntimeError(f"`T`: expected one number or {rows}, got shape {shifts.shape[1:]}")
    return shifts


def _stacked(values: Values) -> np.ndarray:
    """The values of all samples as one array; values for all samples as an array of one."""
    if not values.varies:
        return values.constant[None]
    arrays = values.arrays()
    if any([a.shape != arrays[0].shape for a in arrays]):
        raise RuntimeError(f"`{values.name}` must have the same shape for every sample")
    return np.stack(arrays)


@kernel
def _transform_two(points, out, matrix, offset):
    """Points of two coordinates, the common case, for which the compiler knows the distance between points."""
    a, b, c, d = matrix[0, 0], matrix[0, 1], matrix[1, 0], matrix[1, 1]
    e, f = offset[0], offset[1]
    for p in range(out.size // 2):
        x, y = np.float32(points[2 * p]), np.float32(points[2 * p + 1])
        out[2 * p] = a * x + b * y + e
        out[2 * p + 1] = c * x + d * y + f


@kernel
def _transform(points, out, matrix, offset):
    """out = matrix @ point + offset for flat arrays of points, in float32.

    Blocks of points are sorted by coordinate, so that the sums run over neighbours in memory.
    """
    rows, columns = matrix.shape
    count = out.size // rows
    if rows == 2 and columns == 2:
        _transform_two(points, out, matrix, offset)
        return
    sorted_ = empty((columns, _BLOCK), np.float32)
    total = empty(_BLOCK, np.float32)
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


def _transform_rounded(points, out, matrix, offset) -> None:
    """The same with integer results."""
    exact = np.empty(out.shape, np.float32)
    _transform(points, exact, matrix, offset)
    convert_array(exact, "f32", _SHORT[out.dtype.name], out)


_SHORT = {"uint8": "u8", "uint16": "u16", "int16": "i16", "int32": "i32"}

coord_transform.cuda("coord_transform.cu")
