"""`ndd.transforms.rotation`: maps that turn."""

from __future__ import annotations

import numpy as np

from ndd._operator import PerSample, operator
from ndd.transforms.matrices import about, matrix_plan, matrix_spec, vectors


@operator(cpu_only=True)
def rotation(
    input=None,
    /,
    *,
    angle: PerSample[list[float]],
    axis: PerSample[list[float]] = None,
    center: PerSample[list[float]] = None,
    reverse_order: bool = False,
):
    """Makes the matrix that turns points by an angle, in the plane or, with `axis`, in space.

    Args:
        input: a map that this one is applied after: float32 matrices d x (d + 1), or one for each frame ("F**").
        angle: in degrees. With y down, as in images, a positive one turns clockwise.
        axis: of a rotation in space: (x, y, z), of any length but 0; the rotation is right-handed.
        center: the point that stays where it is. Default: the origin.
        reverse_order: apply this map before that of the input instead of after it.

    The result is a float32 matrix d x (d + 1) with layout "**": `[[m11, m12, t1], [m21, m22, t2]]` takes (x, y) to
    (m11 x + m12 y + t1, ...). Where arguments have frames, there is a matrix for each frame, layout "F**".

    In the plane: `[[cos, -sin], [sin, cos]]`. As `matrix` of `warp_affine`, which goes from output to input, it turns
    images counter-clockwise.

    Raises RuntimeError for an axis of length 0, for a `center` of another length and for an input of another dimension
    or type.

    >>> import ndd
    >>> ndd.transforms.rotation(angle=30).torch()
    tensor([[ 0.8660, -0.5000,  0.0000],
            [ 0.5000,  0.8660,  0.0000]])
    """
    return matrix_spec("rotation", input, angle, axis, center)


@rotation.plan
def _(input, *, angle, axis, center, reverse_order):
    turn = np.asarray(angle)
    radians = np.deg2rad(vectors(turn[..., None] if turn.ndim == 2 else turn, 1, "angle"))[..., 0]
    c, s = np.cos(radians), np.sin(radians)
    if axis is None or not np.size(axis):
        linear = np.stack([c, -s, s, c], axis=-1).reshape(*c.shape, 2, 2)
        return matrix_plan(input, about(linear, center), reverse_order)
    direction = vectors(axis, 3, "axis")
    length = np.linalg.norm(direction, axis=-1, keepdims=True)
    if not (length > 0).all():
        raise RuntimeError("`axis` must not have length 0")
    return matrix_plan(input, about(_in_space(direction / length, c, s), center), reverse_order)


def _in_space(axis: np.ndarray, c: np.ndarray, s: np.ndarray) -> np.ndarray:
    x, y, z = np.moveaxis(axis, -1, 0)
    cross = np.stack([0 * x, -z, y, z, 0 * x, -x, -y, x, 0 * x], axis=-1).reshape(*axis.shape[:-1], 3, 3)
    outer = axis[..., :, None] * axis[..., None, :]
    c, s = c[..., None, None], s[..., None, None]
    return c * np.eye(3) + s * cross + (1 - c) * outer


@rotation.cpu
def _(input, out, values):
    out[...] = values
