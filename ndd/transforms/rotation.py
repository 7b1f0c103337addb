"""`ndd.transforms.rotation`: rotations."""

from __future__ import annotations

import numpy as np

from ndd._operator import PerSample, operator
from ndd.transforms.matrices import makes_maps, matrix_spec


@operator
def rotation(
    input=None,
    /,
    *,
    angle: PerSample[list[float]],
    axis: PerSample[list[float]] = None,
    center: PerSample[list[float]] = None,
    reverse_order: bool = False,
):
    """Returns the matrix that rotates points by an angle, in the plane or, with `axis`, in space.

    Args:
        input: a map to apply before this one: float32 matrices d x (d + 1), or one for each frame ("F**").
        angle: in degrees. With y down, as in images, a positive angle rotates clockwise.
        axis: the axis of a rotation in space, (x, y, z), of any length but 0; the rotation is right-handed.
        center: the fixed point. Default: the origin.
        reverse_order: apply this map before that of the input instead of after it.

    The result is a float32 matrix d x (d + 1) with layout "**": `[[m11, m12, t1], [m21, m22, t2]]` takes (x, y) to
    (m11 x + m12 y + t1, ...). Where arguments have frames, there is a matrix for each frame, layout "F**".

    In the plane: `[[cos, -sin], [sin, cos]]`, which is `cv2.getRotationMatrix2D(center, -angle, 1)`. In space, for an
    axis u of length 1: `cos I + sin [u]x + (1 - cos) u u^T`. As `matrix` of `warp_affine`, which maps output to input, it
    rotates images counter-clockwise.

    Raises RuntimeError for an axis of length 0, for a `center` of another length and for an input of another dimension
    or type.

    >>> import ndd
    >>> ndd.transforms.rotation(angle=30).torch()
    tensor([[ 0.8660, -0.5000,  0.0000],
            [ 0.5000,  0.8660,  0.0000]])
    """
    if isinstance(angle, np.ndarray) and angle.size != 1:
        raise TypeError(f"rotation: `angle`: expected one number, got {angle.size}")
    return matrix_spec("rotation", input, angle, axis, center)


@makes_maps(rotation)
def _(rows, *, angle, axis, center):
    turn = rows.angles("angle")
    c, s = np.cos(turn).astype(np.float32), np.sin(turn).astype(np.float32)
    if axis is None:
        linear = np.empty((len(c), 2, 2), np.float32)  # filled place by place: `np.stack` takes 9 us
        linear[:, 0, 0] = linear[:, 1, 1] = c
        linear[:, 1, 0] = s
        linear[:, 0, 1] = -s
        return rows.about(linear)
    direction = rows.vectors("axis", 3)
    length = np.sqrt((direction * direction).sum(axis=1, keepdims=True))
    if not (length > 0).all():
        raise RuntimeError("`axis` must not have length 0")
    return rows.about(_in_space(direction / length, c, s))


def _in_space(axis: np.ndarray, c: np.ndarray, s: np.ndarray) -> np.ndarray:
    x, y, z = axis.T
    cross = np.stack([0 * x, -z, y, z, 0 * x, -x, -y, x, 0 * x], axis=-1).reshape(-1, 3, 3)
    outer = axis[:, :, None] * axis[:, None, :]
    c, s = c[:, None, None], s[:, None, None]
    return c * np.eye(3, dtype=np.float32) + s * cross + (1 - c) * outer
