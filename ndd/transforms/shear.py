"""`ndd.transforms.shear`: shears."""

from __future__ import annotations

import numpy as np

from ndd._operator import PerSample, operator
from ndd.transforms.matrices import makes_maps, matrix_spec, radians


@operator
def shear(
    input=None,
    /,
    *,
    angles: PerSample[list[float]] = None,
    center: PerSample[list[float]] = None,
    reverse_order: bool = False,
    shear: PerSample[list[float]] = None,
):
    """Returns the matrix that shifts points along one axis in proportion to another.

    Args:
        input: a map to apply before this one: float32 matrices d x (d + 1), or one for each frame ("F**").
        shear: factors: (x, y) in the plane, for `[[1, x], [y, 1]]`; (xy, xz, yx, yz, zx, zy) in space.
        angles: in place of `shear`, angles in degrees from -90 to 90 whose tangents are the factors.
        center: the fixed point. Default: the origin.
        reverse_order: apply this map before that of the input instead of after it.

    The result is a float32 matrix d x (d + 1) with layout "**": `[[m11, m12, t1], [m21, m22, t2]]` takes (x, y) to
    (m11 x + m12 y + t1, ...). Where arguments have frames, there is a matrix for each frame, layout "F**".

    `out = S (in - center) + center`, where S has ones on the diagonal and the factors beside it, row by row.

    Raises RuntimeError unless one of `shear` and `angles` is given, with 2 or 6 numbers, and for an input of another
    dimension or type.

    >>> import ndd
    >>> ndd.transforms.shear(shear=(0.5, 2)).torch()
    tensor([[1.0000, 0.5000, 0.0000],
            [2.0000, 1.0000, 0.0000]])
    """
    if (angles is None) == (shear is None):
        raise RuntimeError("One and only one of the following arguments is expected: `shear` or `angles`")
    return matrix_spec("shear", input, shear, angles, center)


@makes_maps(shear)
def _(rows, *, angles, center, shear):
    name = "shear" if angles is None else "angles"
    factors = rows.values(name, None)
    factors = factors.reshape(len(factors), -1)
    if factors.shape[1] not in (2, 6):
        raise RuntimeError(
            f"expected D * (D - 1) factors where D is the number of dimensions (2 or 3), got {factors.shape[1]}"
        )
    if angles is not None:
        wrong = ~((factors >= -90) & (factors <= 90))
        if wrong.any():
            raise RuntimeError(f"Angle is expected to be in the range [-90, 90]. Got: {factors[wrong][0]:g}")
        factors = np.tan(radians(factors))
    axes = 2 if factors.shape[1] == 2 else 3
    linear = np.ones((len(factors), axes, axes), np.float32)
    linear[:, ~np.eye(axes, dtype=bool)] = factors
    return rows.about(linear)
