"""`ndd.coord_flip`: mirrors coordinates."""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel
from ndd._operator import PerSample, Plan, like, operator


@operator(types=("f32",))
def coord_flip(
    input,
    /,
    *,
    center_x: PerSample[float] = 0.5,
    center_y: PerSample[float] = 0.5,
    center_z: PerSample[float] = 0.5,
    flip_x: PerSample[int] = 1,
    flip_y: PerSample[int] = 0,
    flip_z: PerSample[int] = 0,
    layout: str = "",
):
    """Mirrors points about a centre.

    Args:
        input: float32 points (N, d) with d up to 3.
        flip_x, flip_y, flip_z: mirror this coordinate unless 0.
        center_x, center_y, center_z: the centre, which does not move.
        layout: the coordinate in each column, such as "yx"; it must contain x, y for d > 1 and z for d > 2. Letters beyond d
            are ignored. Default: "xyz".

    A mirrored coordinate becomes `2 center - in`. Shape and type stay.

    Raises RuntimeError for other types and shapes and for a layout that does not fit.

    >>> import ndd
    >>> ndd.coord_flip(ndd.tensor([[0.25, 0.5]])).torch()
    tensor([[0.7500, 0.5000]])
    """
    if input.ndim != 2:
        raise RuntimeError(f"coord_flip: expected points of shape (N, d), got {input.ndim} axes")
    names = layout or "xyz"
    if not set(names) & set("xyz"):
        raise RuntimeError(f"`layout`: expected letters of xyz, got {layout!r}")
    return like(input)


@coord_flip.plan
def _(input, *, center_x, center_y, center_z, flip_x, flip_y, flip_z, layout):
    shapes = input.shapes
    columns = int(shapes[:, 1].max())
    names = layout or "xyz"
    if columns > 3 or (shapes[:, 1] != columns).any():
        raise RuntimeError(f"Unexpected number of coordinates {columns}: expected the same in every sample, up to 3")
    missing = [x for x in "xyz"[:columns] if x not in names]
    if missing:
        raise RuntimeError(f'`layout`: dimension "{missing[0]}" not found in {names!r}')
    centers, flips = {"x": center_x, "y": center_y, "z": center_z}, {"x": flip_x, "y": flip_y, "z": flip_z}
    factor, offset = np.ones((input.n, 3), np.float32), np.full((input.n, 3), -0.0, np.float32)
    for i, name in enumerate(names[:columns]):
        if name in "xyz"[:columns]:
            mirrored = flips[name].each() != 0
            factor[:, i] = np.where(mirrored, -1, 1)
            offset[:, i] = np.where(mirrored, 2 * centers[name].each(), -0.0)  # x + -0.0 is x, always
    return Plan(shapes, {"factor": factor, "offset": offset}, {"columns": columns}, view="flat")


@coord_flip.cpu
@kernel
def _flip_points(points, out, columns, factor, offset):
    """Mirrors points of this many columns. The compiler knows the number, and works on several points at a time."""
    a, b, c = factor[0], factor[1], factor[2]
    d, e, f = offset[0], offset[1], offset[2]
    if columns == 2:
        for p in range(points.size // 2):
            out[2 * p] = a * points[2 * p] + d
            out[2 * p + 1] = b * points[2 * p + 1] + e
    elif columns == 3:
        for p in range(points.size // 3):
            out[3 * p] = a * points[3 * p] + d
            out[3 * p + 1] = b * points[3 * p + 1] + e
            out[3 * p + 2] = c * points[3 * p + 2] + f
    else:
        for p in range(points.size):
            out[p] = a * points[p] + d


@_flip_points.fallback
def _(points, out, columns, factor, offset):
    out.reshape(-1, columns)[...] = factor[:columns] * points.reshape(-1, columns) + offset[:columns]


coord_flip.cuda("coord_flip.cu")
