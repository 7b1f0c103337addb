"""`ndd.transforms.shear`: maps that slant."""

from __future__ import annotations

import numpy as np

from ndd._operator import PerSample, operator
from ndd.transforms.matrices import about, matrix_plan, matrix_spec, vectors


@operator(cpu_only=True)
def shear(
    input=None,
    /,
    *,
    angles: PerSample[list[float]] = None,
    center: PerSample[list[float]] = None,
    reverse_order: bool = False,
    shear: PerSample[list[float]] = None,
):
    """Makes the matrix that shifts points along one axis in proportion to another.

    Args:
        input: a map that this one is applied after: float32 matrices d x (d + 1), or one for each frame ("F**").
        shear: factors: (x, y) in the plane, for `[[1, x], [y, 1]]`; (xy, xz, yx, yz, zx, zy) in space.
        angles: in place of `shear` the angles, in degrees, whose tangents the factors are.
        center: the point that stays where it is. Default: the origin.
        reverse_order: apply this map before that of the input instead of after it.

    The result is a float32 matrix d x (d + 1) with layout "**": `[[m11, m12, t1], [m21, m22, t2]]` takes (x, y) to
    (m11 x + m12 y + t1, ...). Where arguments have frames, there is a matrix for each frame, layout "F**".

    Raises RuntimeError unless one of `shear` and `angles` is given, with 2 or 6 numbers, and for an input of another
    dimension or type.

    >>> import ndd
    >>> ndd.transforms.shear(shear=(0.5, 2)).torch()
    tensor([[1.0000, 0.5000, 0.0000],
            [2.0000, 1.0000, 0.0000]])
    """
    return matrix_spec("shear", input, shear, angles, center)


@shear.plan
def _(input, *, angles, center, reverse_order, shear):
    if (angles is None) == (shear is None):
        raise RuntimeError("One and only one of the following arguments is expected: `shear` or `angles`")
    given = shear if angles is None else angles
    count = np.shape(given)[-1]
    if count not in (2, 6):
        raise RuntimeError(f"expected D * (D - 1) factors where D is the number of dimensions (2 or 3), got {count}")
    factors = vectors(given, count, "shear")
    if angles is not None:
        factors = np.tan(np.deg2rad(factors))
    axes = 2 if count == 2 else 3
    linear = np.ones((*factors.shape[:-1], axes, axes))
    linear[..., ~np.eye(axes, dtype=bool)] = factors
    return matrix_plan(input, about(linear, center), reverse_order)


@shear.cpu
def _(input, out, values):
    out[...] = values
