"""`ndd.transforms.scale`: maps that stretch."""

from __future__ import annotations

import numpy as np

from ndd._operator import PerSample, operator
from ndd.transforms.matrices import about, dimensions, matrix_plan, matrix_spec, vectors


@operator(cpu_only=True)
def scale(
    input=None,
    /,
    *,
    center: PerSample[list[float]] = None,
    ndim: int | None = None,
    reverse_order: bool = False,
    scale: PerSample[list[float]],
):
    """Makes the matrix that multiplies the distances from `center`.

    Args:
        input: a map that this one is applied after: float32 matrices d x (d + 1), or one for each frame ("F**").
        scale: a factor for each axis, or one for all.
        center: the point that stays where it is. Default: the origin.
        ndim: the number of axes, where `scale` is a single number. Default: that of the input, or 1.
        reverse_order: apply this map before that of the input instead of after it.

    The result is a float32 matrix d x (d + 1) with layout "**": `[[m11, m12, t1], [m21, m22, t2]]` takes (x, y) to
    (m11 x + m12 y + t1, ...). Where arguments have frames, there is a matrix for each frame, layout "F**".

    Raises RuntimeError for arguments of unequal lengths and for an input of another dimension or type.

    >>> import ndd
    >>> ndd.transforms.scale(scale=(2, 3), center=(1, 1)).torch()
    tensor([[ 2.,  0., -1.],
            [ 0.,  3., -2.]])
    """
    return matrix_spec("scale", input, scale, center)


@scale.plan
def _(input, *, center, ndim, reverse_order, scale):
    axes = ndim or dimensions(input, scale)
    factors = vectors(scale, axes, "scale")
    return matrix_plan(input, about(factors[..., None] * np.eye(axes), center), reverse_order)


@scale.cpu
def _(input, out, values):
    out[...] = values
