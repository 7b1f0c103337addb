"""`ndd.transforms.scale`: scalings."""

from __future__ import annotations

import numpy as np

from ndd._operator import PerSample, operator
from ndd.transforms.matrices import affine, makes_maps, matrix_spec, scaling


@operator
def scale(
    input=None,
    /,
    *,
    center: PerSample[list[float]] = None,
    ndim: int | None = None,
    reverse_order: bool = False,
    scale: PerSample[list[float]],
):
    """Returns the matrix that multiplies the distances from `center`.

    Args:
        input: a map to apply before this one: float32 matrices d x (d + 1), or one for each frame ("F**").
        scale: a factor for each axis, or one for all.
        center: the fixed point; one number applies to all axes. Default: the origin.
        ndim: the number of axes, if `scale` is a single number and there is no input. Default: 1.
        reverse_order: apply this map before that of the input instead of after it.

    The result is a float32 matrix d x (d + 1) with layout "**": `[[m11, m12, t1], [m21, m22, t2]]` takes (x, y) to
    (m11 x + m12 y + t1, ...). Where arguments have frames, there is a matrix for each frame, layout "F**".

    `out = scale * (in - center) + center` for each axis.

    Raises RuntimeError for arguments of unequal lengths and for an input of another dimension or type.

    >>> import ndd
    >>> ndd.transforms.scale(scale=(2, 3), center=(1, 1)).torch()
    tensor([[ 2.,  0., -1.],
            [ 0.,  3., -2.]])
    """
    return matrix_spec("scale", input, scale, center)


@makes_maps(scale)
def _(rows, *, center, ndim, scale):
    axes = rows.values("scale").shape[1]
    if axes == 1:
        axes = ndim or 1 if rows.input is None else int(rows.input.shapes[0, -2])
    factors = rows.vectors("scale", axes)
    offset = np.zeros((1, axes), np.float32) if center is None else rows.vectors("center", axes) * (1 - factors)
    return affine(scaling(factors), offset)
