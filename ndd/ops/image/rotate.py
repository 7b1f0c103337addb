"""`ndd.rotate`: rotates images about their centre."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ndd._operator import PerSample, Values, like, operator
from ndd._operator.deprecated import renamed
from ndd._operator.unit_warnings import warn_of_part_of_pixel
from ndd._tensor import DType
from ndd.ops.image.warping import (
    LINEAR,
    affine_plan,
    check_interpolation,
    launch_affine,
    output_extents,
    turned_point,
    warped_dtype,
)
from ndd.types import DALIInterpType

if TYPE_CHECKING:
    from ndd._operator.frames import FrameMap


@operator(layouts=("HWC", "FHWC", "DHWC", "FDHWC"), masks=True, frames=True)
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
    """Rotates images about their centre, and volumes about an axis.

    Args:
        input: layout HWC or DHWC, with a leading F for video; without a layout HWC, FHWC or FDHWC by rank. uint8,
            int16, int32 or float32. A mask, HW, counts as one channel and comes out as HW.
        angle: in degrees, counter-clockwise. Video may have one for each frame; the frames then share the largest canvas.
        axis: the axis for volumes, (x, y, z), of any length but 0; the rotation is right-handed.
        size: extents of the output, (H, W) or (D, H, W); fractions are dropped. Default: the smallest extents that contain the
            rotated image, even or odd as the input's, so that right angles are exact; or with `keep_size` those of the input.
        keep_size: without `size`: the output is as large as the input.
        interp_type: INTERP_LINEAR or INTERP_NN.
        fill_value: the value outside the image. Default: its border pixels are repeated.
        dtype: the type of the output: the input's (default) or float32; of float32 images any of the four.
        output_dtype: old name of `dtype`.

    With `c` and `s` the cosine and sine of the angle and (u, v) relative to the centre of the output, a pixel is read at `(c u
    - s v, s u + c v)` relative to the centre of the input; the centre is (W / 2, H / 2) from the corner. Integer results are
    rounded, halves away from zero. The direction is that of PIL, OpenCV and torchvision. Outside the image the border is
    repeated, where theirs is black. The canvas grows, as with their `expand=True` (PIL's may be a pixel larger or smaller):
    `keep_size=True, fill_value=0` is `cv2.warpAffine` with a matrix of `getRotationMatrix2D`.

    An image without pixels stays unchanged; DALI crashes.

    Raises ValueError for other layouts, RuntimeError for other types and interpolations, for a volume without an axis
    and for an axis of length 0.

    >>> import ndd
    >>> image = ndd.tensor([[[1], [2], [3]]], dtype=ndd.uint8, layout="HWC")
    >>> ndd.rotate(image, angle=90)[:, 0, 0].torch()
    tensor([3, 2, 1], dtype=torch.uint8)
    >>> ndd.rotate(ndd.demo.photo("cat"), angle=20, fill_value=0).shape
    (388, 468, 3)
    """
    check_interpolation(interp_type)
    warn_of_part_of_pixel("rotate", "the output has none along that axis", size=size)
    wanted = renamed("rotate", "output_dtype", output_dtype, "dtype", dtype)
    return like(input, dtype=warped_dtype(input.dtype, wanted))


@rotate.plan
def _(input, *, angle, axis, dtype, fill_value, interp_type, keep_size, output_dtype, size):
    degrees = angle.numbers
    if not np.isfinite(degrees).all():
        raise RuntimeError(f"`angle`: expected finite numbers, got {degrees}")
    extents = input.shapes[:, :-1]
    if extents.shape[1] == 2:
        turned = None
        c, s, targets = turned_extents(degrees, size, keep_size, extents, input.frames if angle.varies else None)
    else:
        c, s = _cosine_and_sine(degrees)
        turned = _rotations(axis, c, s)
        targets = (
            output_extents(size, extents) if size is not None
            else extents if keep_size
            else _canvas(*_needed(turned, extents[:, ::-1]), extents[:, ::-1], input.frames)[:, ::-1]
        )  # fmt: skip
    # From here on in float32 and in DALI's order, which decides for points between two pixels.
    if turned is None:
        maps = flat_maps(c.astype(np.float32), s.astype(np.float32), extents, targets)
    else:
        turned = turned.transpose(0, 2, 1)
        shift = turned_point(turned, targets[:, ::-1] / -2) + (extents[:, ::-1] / 2).astype(np.float32)
        maps = np.concatenate([turned, shift[..., None]], axis=2)
    return affine_plan(input, maps, targets, dtype or output_dtype, interp_type, fill_value)


def turned_extents(
    degrees, size: Values | None, keep_size: bool, extents: np.ndarray, frames: FrameMap | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cosines and sines of the angles, and the extents (H, W) of the rotated images."""
    c, s = _cosine_and_sine(degrees)
    if size is not None:
        return c, s, output_extents(size, extents)
    return c, s, extents if keep_size else _canvas(*_flat_needed(c, s, extents), extents, frames)


def _cosine_and_sine(degrees) -> tuple[np.ndarray, np.ndarray]:
    # DALI's radians are 32-bit, which matters if two axes of the output are equally long (45 degrees).
    radians = np.float32(np.asarray(degrees, np.float32) * np.float32(np.pi / 180)).astype(np.float64)
    return np.cos(radians), np.sin(radians)


def flat_maps(c, s, extents: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """float32 [N, 2, 3]: a rotation about the centres of input and output."""
    maps = np.empty((len(extents), 2, 3), np.float32)
    maps[:, 0, 0] = maps[:, 1, 1] = c
    maps[:, 1, 0], maps[:, 0, 1] = s, -s
    y, x = targets.T * np.float32(-0.5)
    maps[:, :, 2] = (extents[:, ::-1] * 0.5).astype(np.float32)
    maps[:, 0, 2] += c * x.astype(np.float32) - s * y.astype(np.float32)
    maps[:, 1, 2] += s * x.astype(np.float32) + c * y.astype(np.float32)
    return maps


def _flat_needed(c, s, extents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`_needed` of images, (H, W)."""
    a, b = np.abs(c), np.abs(s)
    if np.ndim(a):
        a, b = a[:, None], b[:, None]
    other = extents[:, ::-1]
    needed = np.ceil(extents * a + other * b - 0.01).astype(np.int64)
    return needed, np.where(a > b, extents, np.where(a < b, other, extents[:, 1:]))


def _needed(turned: np.ndarray, extents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The extents (x, y, z) that contain a rotated volume, and for each output axis the input axis that it mainly comes
    from."""
    size = np.abs(turned)
    needed = np.ceil((size @ extents[..., None])[..., 0] - 0.01).astype(np.int64)
    return needed, np.take_along_axis(extents, np.argmax(size, axis=-1), axis=-1)


def _canvas(needed: np.ndarray, main: np.ndarray, extents: np.ndarray, frames: FrameMap | None) -> np.ndarray:
    """The needed extents, odd or even as the input axis that an output axis mainly comes from, so that a rotation by a right
    angle is exact. The frames of a video share the largest extent, which is odd if it is odd for most of them."""
    odd = main & 1
    if frames is not None and len(needed):
        counts = frames.counts[frames.counts > 0]
        starts = np.cumsum(counts) - counts
        odd = np.repeat(2 * np.add.reduceat(odd, starts) > counts[:, None], counts, axis=0)
        needed = np.repeat(np.maximum.reduceat(needed, starts), counts, axis=0)
    needed += (needed ^ odd) & 1
    return needed if extents.all() else np.where((extents == 0).any(axis=1, keepdims=True), 0, needed)


def _rotations(axis: Values | None, c, s) -> np.ndarray:
    """The rotations of volumes, float32 [N, 3, 3]."""
    if axis is None:
        raise RuntimeError("Argument `axis` is required: a volume is turned about an axis")
    direction = axis.rows(3, meaning="(x, y, z)")
    x, y, z = direction.T
    length = np.sqrt(x * x + y * y + z * z)
    if not ((length > 0) & np.isfinite(length)).all():
        raise RuntimeError(f"`axis`: expected three numbers that are not all 0, got {direction.tolist()}")
    return _axis_rotations(direction.T / length, np.float32(c), np.float32(s))


def _axis_rotations(axis: np.ndarray, c, s) -> np.ndarray:
    """Right-handed rotations about unit vectors [3, n], with cosines and sines: float32 [n, 3, 3], in DALI's order."""
    x, y, z = axis
    xx, yy, zz, rest = x * x, y * y, z * z, 1 - c
    xy, xz, yz = x * y * rest, x * z * rest, y * z * rest
    matrices = np.empty((axis.shape[1], 3, 3), np.float32)
    matrices[:, 0, 0], matrices[:, 1, 1], matrices[:, 2, 2] = xx + c * (yy + zz), yy + c * (xx + zz), zz + c * (xx + yy)
    matrices[:, 0, 1], matrices[:, 1, 0] = xy - z * s, xy + z * s
    matrices[:, 0, 2], matrices[:, 2, 0] = xz + y * s, xz - y * s
    matrices[:, 1, 2], matrices[:, 2, 1] = yz - x * s, yz + x * s
    return matrices


rotate.cuda("affine.cu")(launch_affine)
