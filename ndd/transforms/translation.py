"""`ndd.transforms.translation`: translations."""

from __future__ import annotations

import numpy as np

from ndd._operator import PerSample, operator
from ndd.transforms.matrices import affine, makes_maps, matrix_spec


@operator
def translation(
    input=None,
    /,
    *,
    offset: PerSample[list[float]],
    reverse_order: bool = False,
):
    """Returns the matrix that adds `offset` to points.

    Args:
        input: a map to apply before this one: float32 matrices d x (d + 1), or one for each frame ("F**").
        offset: a number for each axis.
        reverse_order: apply this map before that of the input instead of after it.

    The result is a float32 matrix d x (d + 1) with layout "**": `[[m11, m12, t1], [m21, m22, t2]]` takes (x, y) to
    (m11 x + m12 y + t1, ...). Where arguments have frames, there is a matrix for each frame, layout "F**".

    `out = in + offset`.

    Raises RuntimeError for an input of another dimension or type.

    >>> import ndd
    >>> ndd.transforms.translation(offset=(2, 3)).torch()
    tensor([[1., 0., 2.],
            [0., 1., 3.]])
    """
    return matrix_spec("translation", input, offset)


@makes_maps(translation)
def _(rows, *, offset):
    shift = rows.values("offset")
    if not shift.shape[1]:
        raise RuntimeError("Unsupported number of dimensions 0: expected a number for each axis")
    return affine(np.eye(shift.shape[1], dtype=np.float32)[None], shift)
