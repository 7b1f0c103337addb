"""`ndd.warp_affine`: transforms images by an affine map."""

from __future__ import annotations

from ndd._operator import PerSample, like, operator
from ndd._operator.deprecated import renamed
from ndd._operator.unit_warnings import warn_of_part_of_pixel
from ndd._tensor import DType
from ndd.ops.image.resize_geometry import RULES, check_choice
from ndd.ops.image.warping import (
    LINEAR,
    NEAREST,
    affine_inverse,
    affine_plan,
    centred_maps,
    check_interpolation,
    check_matrix,
    launch_affine,
    matrices,
    output_extents,
    warped_dtype,
)
from ndd.types import DALIInterpType


@operator(layouts=("HWC", "FHWC", "DHWC", "FDHWC"), masks=True, frames=True, reads={"mtx": "cpu"})
def warp_affine(
    data,
    mtx=None,
    /,
    *,
    dtype: DType | None = None,
    fill_value: float | None = None,
    interp_type: DALIInterpType = LINEAR,
    inverse_map: bool = True,
    matrix: PerSample[list[float]] = None,
    output_dtype: DType | None = None,
    rule: str = "dali",
    size: PerSample[list[float]] = None,
):
    """Moves the pixels of images and volumes by an affine map.

    Args:
        data: layout HWC or DHWC, with a leading F for video; without a layout HWC, FHWC or FDHWC by rank. uint8, int16,
            int32 or float32. A mask, HW, counts as one channel and comes out as HW.
        mtx: the matrix as an input, in place of `matrix`. With a leading F (`ndd.per_frame`) it has several matrices for each
            image: the results are videos with a frame for each matrix.
        matrix: 2x3 numbers (3x4 for volumes) in the order x, y(, z), or the same in one list. Video may have one for
            each frame.
        inverse_map: the matrix maps places of the output to places of the input; if False, the reverse.
        size: extents of the output, (H, W) or (D, H, W); fractions are dropped. Default: those of the input.
        interp_type: INTERP_LINEAR or INTERP_NN.
        fill_value: the value outside the image. Default: its border pixels are repeated.
        dtype: the type of the output: the input's (default) or float32; of float32 images any of the four.
        output_dtype: old name of `dtype`.
        rule: "dali", or for images "torchvision": the matrix is in pixels relative to the centres of the image and of the
            result, and points are rounded as in `torchvision.transforms.v2.functional.affine` of tensors, so that the nearest
            pixel is the same.

    `out[y, x] = in(M @ (x + 0.5, y + 0.5, 1))`: coordinates start at the corner of the image, as in PIL, whose
    `Image.transform(size, AFFINE, M)` is equivalent except for the border. In OpenCV (0, 0) is the centre of the first pixel:
    its matrix, with `WARP_INVERSE_MAP`, is `[A, t + (A - 1) @ (0.5, 0.5)]` for M = `[A, t]`. torchvision's `affine` takes an
    angle, a scale and shears in place of a matrix. Integer results are rounded, halves away from zero.

    Raises RuntimeError for other types and interpolations and for a matrix or a size of another shape, ValueError for
    other layouts and for a matrix that has no inverse where one is needed.

    >>> import ndd
    >>> image = ndd.tensor([[[1.0], [2.0], [3.0]]], layout="HWC")
    >>> ndd.warp_affine(image, matrix=[1, 0, 0.5, 0, 1, 0], fill_value=0)[0, :, 0].torch()
    tensor([1.5000, 2.5000, 1.5000])
    >>> ndd.warp_affine(ndd.demo.photo("cat"), matrix=[1, 0.3, -40, 0, 1, 0], fill_value=0).shape
    (266, 400, 3)
    """
    check_interpolation(interp_type)
    warn_of_part_of_pixel("warp_affine", "the output has none along that axis", size=size)
    check_matrix(matrix, mtx)
    check_choice("rule", rule, RULES)
    wanted = renamed("warp_affine", "output_dtype", output_dtype, "dtype", dtype)
    return like(data, dtype=warped_dtype(data.dtype, wanted))


@warp_affine.plan
def _(data, mtx, *, dtype, fill_value, interp_type, inverse_map, matrix, output_dtype, rule, size):
    extents = data.shapes[:, :-1]
    axes = extents.shape[1]
    maps = matrices(matrix, mtx, axes, axes + 1)
    if not inverse_map:
        maps = affine_inverse(maps)
    targets = output_extents(size, extents)
    if rule == "torchvision":
        if axes != 2:
            raise RuntimeError('`rule="torchvision"` is one for images, got volumes')
        maps = centred_maps(maps, extents, targets, interp_type == NEAREST)
    return affine_plan(data, maps, targets, dtype or output_dtype, interp_type, fill_value)


warp_affine.cuda("affine.cu")(launch_affine)
