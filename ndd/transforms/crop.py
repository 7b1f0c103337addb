"""`ndd.transforms.crop`: maps from one box to another."""

from __future__ import annotations

import numpy as np

from ndd._operator import PerSample, operator
from ndd.transforms.matrices import affine, makes_maps, matrix_spec, scaling


@operator
def crop(
    input=None,
    /,
    *,
    absolute: bool = False,
    from_end: PerSample[list[float]] = (1.0,),
    from_start: PerSample[list[float]] = (0.0,),
    reverse_order: bool = False,
    to_end: PerSample[list[float]] = (1.0,),
    to_start: PerSample[list[float]] = (0.0,),
):
    """Returns the matrix that maps one box to another, as coordinates change when an image is cropped.

    Args:
        input: a map to apply before this one: float32 matrices d x (d + 1), or one for each frame ("F**").
        from_start, from_end: corners of the box in the original coordinates.
        to_start, to_end: the new coordinates of these corners. For each of the four, one number applies to all axes.
        absolute: swap start and end where start > end.
        reverse_order: apply this map before that of the input instead of after it.

    The result is a float32 matrix d x (d + 1) with layout "**": `[[m11, m12, t1], [m21, m22, t2]]` takes (x, y) to
    (m11 x + m12 y + t1, ...). Where arguments have frames, there is a matrix for each frame, layout "F**".

    `out = (in - from_start) * (to_end - to_start) / (from_end - from_start) + to_start`, for each axis.

    Raises RuntimeError for arguments of unequal lengths and for an input of another dimension or type.

    >>> import ndd
    >>> ndd.transforms.crop(from_start=(10, 20), from_end=(30, 40)).torch()
    tensor([[ 0.0500,  0.0000, -0.5000],
            [ 0.0000,  0.0500, -1.0000]])
    """
    return matrix_spec("crop", input, from_start, from_end, to_start, to_end)


@makes_maps(crop)
def _(rows, *, absolute, from_end, from_start, to_end, to_start):
    names = ("from_start", "from_end", "to_start", "to_end")
    axes = max(rows.values(name).shape[1] for name in names)
    a, b, c, d = (rows.vectors(name, axes) for name in names)
    if absolute:
        a, b, c, d = np.minimum(a, b), np.maximum(a, b), np.minimum(c, d), np.maximum(c, d)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = (d - c) / (b - a)
        return affine(scaling(factor), c - factor * a)
