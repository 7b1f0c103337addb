"""`ndd.rotate`: images turned about their middle."""

from __future__ import annotations

import numpy as np

from ndd._operator import PerSample, like, operator
from ndd._operator.deprecated import renamed
from ndd._tensor import DType
from ndd.ops.image.warping import (
    LINEAR,
    affine_plan,
    check_interpolation,
    launch_affine,
    output_extents,
    paint_affine,
    rounded_canvas,
    turned_point,
    warped_dtype,
)
from ndd.types import DALIInterpType


@operator(layouts=("HWC", "FHWC", "DHWC", "FDHWC"), frames=True)
def rotate(
    input,
    /,
    *,
    angle: PerSample[float],
    axis: PerSample[list[float]] = None,
    dtype: DType | None = None,
    fill_value: float | None = None,
    interp_type: DALIInterpType = LINEAR,
    keep_size: bool = False,
    output_dtype: DType | None = None,
    size: PerSample[list[float]] = None,
):
    """Turns images about their middle, and volumes about an axis.

    Args:
        input: layout HWC or DHWC, with a leading F for video; without a layout HWC, FHWC or FDHWC by rank. uint8, int16,
            int32 or float32.
        angle: in degrees, counter-clockwise. Video may have one for each frame.
        axis: of volumes: (x, y, z), of any length but 0; the rotation is right-handed.
        size: extents of the output, (H, W) or (D, H, W); fractions are dropped. Default: the least that hold the turned
            image (at least; even or odd as the input's, so that right angles are exact), or with `keep_size` those of
            the input.
        keep_size: see `size`.
        interp_type: INTERP_LINEAR or INTERP_NN.
        fill_value: what lies outside the image. Default: its border pixels, repeated.
        dtype: the type of the output: the input's (default) or float32; of float32 images any of the four.
        output_dtype: old name of `dtype`.

    With `c` and `s` the cosine and sine of the angle and (u, v) from the middle of the output, a pixel is read at
    (c u - s v, s u + c v) from the middle of the input. As `PIL.Image.rotate` with `expand=True`, but what lies outside
    repeats the border. An image without pixels stays so.

    Raises RuntimeError for other types and interpolations, for a volume without an axis and for an axis of length 0.

    >>> import ndd
    >>> image = ndd.tensor([[[1], [2], [3]]], dtype=ndd.uint8, layout="HWC")
    >>> ndd.rotate(image, angle=90)[:, 0, 0].torch()
    tensor([3, 2, 1], dtype=torch.uint8)
    """
    check_interpolation("rotate", interp_type)
    wanted = renamed("rotate", "output_dtype", output_dtype, "dtype", dtype)
    return like(input, dtype=warped_dtype("rotate", input.dtype, wanted))


@rotate.plan
def _(input, *, angle, axis, dtype, fill_value, interp_type, keep_size, output_dtype, size):
    extents = input.shapes[:, :-1]
    turned = _rotations(angle, axis, input.n, extents.shape[1])
    if size is not None:
        targets = output_extents(size, extents)
    elif keep_size:
        targets = extents
    else:
        targets = rounded_canvas(turned, extents[:, ::-1])[:, ::-1]
    if extents.shape[1] == 3:
        turned = turned.transpose(0, 2, 1)
    # From here on in float32 and in DALI's order: it shows where a point lies between two pixels.
    shift = turned_point(turned, targets[:, ::-1] / -2) + (extents[:, ::-1] / 2).astype(np.float32)
    maps = np.concatenate([turned.astype(np.float32), shift[..., None]], axis=2)
    return affine_plan(input, maps, targets, dtype or output_dtype, interp_type, fill_value)


def _rotations(angle, axis, n: int, axes: int) -> np.ndarray:
    """float64 [n, axes, axes]."""
    # DALI's radians are 32-bit; it shows where two axes of the output are equally long (45 degrees).
    if not np.isfinite(angle).all():
        raise RuntimeError(f"`angle`: expected finite numbers, got {angle}")
    radians = np.float32(np.asarray(angle, np.float32) * np.float32(np.pi / 180)).astype(np.float64)
    c, s = (np.broadcast_to(f(radians), (n,)) for f in (np.cos, np.sin))
    if axes == 2:
        return np.stack([c, -s, s, c], axis=1).reshape(n, 2, 2)
    if axis is None:
        raise RuntimeError("Argument `axis` is required: a volume is turned about an axis")
    direction = np.broadcast_to(np.asarray(axis, np.float64), (n, np.shape(axis)[-1]))
    length = np.linalg.norm(direction, axis=1, keepdims=True)
    if direction.shape[1] != 3 or not (length > 0).all():
        raise RuntimeError(f"`axis`: expected three numbers that are not all 0, got {direction.tolist()}")
    return axis_rotations(direction / length, c, s)


def axis_rotations(axis: np.ndarray, c: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Right-handed rotations about unit vectors [n, 3], with cosines and sines [n]: float64 [n, 3, 3]."""
    x, y, z = axis.T
    cross = np.stack([0 * x, -z, y, z, 0 * x, -x, -y, x, 0 * x], axis=1).reshape(-1, 3, 3)
    outer = axis[:, :, None] * axis[:, None, :]
    c, s = c[:, None, None], s[:, None, None]
    return c * np.eye(3) + s * cross + (1 - c) * outer


@rotate.cpu
def _(image, out, matrix, how):
    paint_affine(image, out, matrix, how)


@rotate.cuda("affine.cu")
def _(launch, image, out):
    launch_affine(launch, image)
