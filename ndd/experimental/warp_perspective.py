"""`ndd.experimental.warp_perspective`: transforms images by a perspective map."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ndd._cpu.opencv import single_threaded
from ndd._cpu.rgb_sampling import LEAST
from ndd._cpu.sampling import BORDERS, store_limits
from ndd._operator import Operand, PerSample, Plan, like, operator
from ndd._operator.unit_warnings import warn_of_part_of_pixel
from ndd._tensor.store import volumes
from ndd.experimental.perspective import (
    beyond_opencv,
    keeps_sign,
    multiplies_and_adds,
    warp_perspective as warp_by_pixels,
    warp_rgb,
)
from ndd.ops.image.resize_geometry import RULES, check_choice
from ndd.ops.image.warping import (
    affine_plan,
    centred_maps,
    check_matrix,
    inverted,
    is_centred,
    launch_warp,
    matrices,
    output_extents,
    threads_of,
)
from ndd.types import DALIInterpType

_SHIFTS = {"corner": 0.5, "center": 0.0}
_NEAREST, LINEAR, _CUBIC = DALIInterpType.INTERP_NN, DALIInterpType.INTERP_LINEAR, DALIInterpType.INTERP_CUBIC
_OPENCV_BORDERS = (0, 1, 2, 4, 3)  # by the numbers of `BORDERS`
_INVERSE_MAP = 16
_CHANNELS = 4  # the most that OpenCV warps at once
_LARGE = 1 << 30  # from this many elements on places need more than 32 bits


@operator(
    layouts=("HW", "HWC", "FHWC", "CHW", "FCHW"),
    types=("u8", "u16", "i16", "f32"),
    frames=True,
    reads={"matrix_input": "cpu"},
)
def warp_perspective(
    input,
    matrix_input=None,
    /,
    *,
    border_mode: str = "constant",
    fill_value: Sequence[float] = (),
    interp_type: DALIInterpType = LINEAR,
    inverse_map: bool = True,
    matrix: PerSample[list[float]] = None,
    pixel_origin: str = "corner",
    rule: str = "dali",
    size: PerSample[list[float]] = None,
):
    """Moves the pixels of images by a perspective map.

    Args:
        input: layout HW, HWC or CHW, with a leading F for video. uint8, uint16, int16 or float32.
        matrix_input: the matrix as an input, in place of `matrix`. With a leading F (`ndd.per_frame`) it has several matrices
            for each image: the results are videos with a frame for each matrix.
        matrix: 3x3 numbers, or nine in one list. Video may have one for each frame.
        inverse_map: the matrix maps places of the output to places of the input; if False, the reverse.
        size: (H, W) of the output, or one number for both, rounded, and at least 1. Default: that of the input.
        interp_type: INTERP_LINEAR, INTERP_NN or INTERP_CUBIC (a = -3/4).
        border_mode: the values outside the image: "constant" (`fill_value`), "replicate", "reflect", "reflect_101" or
            "wrap".
        fill_value: one number, or one for each channel. Default: 0.
        pixel_origin: the place of (0, 0): the "corner" of the first pixel, or its "center" as in OpenCV.
        rule: "dali", or "torchvision" for images HWC, one fill and both defaults of border and origin: points are rounded as in
            `torchvision.transforms.v2.functional.perspective` of tensors, so that the nearest pixel is the same, and pixels
            as by `ndd.warp_affine`.

    `(X, Y, Z) = M @ (x, y, 1)`, and the pixel is read at (X / Z, Y / Z). Layout and type stay; halves are rounded to even.
    On the CPU this is `cv2.warpPerspective` with `WARP_INVERSE_MAP`, and with OpenCV's limits: INTERP_LINEAR of int16 or of
    two channels reads at the nearest multiple of 1/32 pixel, INTERP_CUBIC no farther than the size of the image (at least
    16) before and after it. OpenCV's pixel_origin is "center". torchvision's `perspective` takes corners of the image in place
    of a matrix, and fills only with zeros.

    Differences from DALI: images without pixels, and of more than four channels, are accepted; points far outside a mirrored
    image and a matrix that is not finite cost no more than others, while DALI takes hours or crashes.

    Raises RuntimeError for other types, names and interpolations and for a matrix or a size of another shape, ValueError
    for a matrix without an inverse where one is needed.

    >>> import ndd
    >>> image = ndd.tensor([[1.0, 2.0, 3.0]], layout="HW")
    >>> ndd.experimental.warp_perspective(image, matrix=[1, 0, 1, 0, 1, 0, 0, 0, 1]).torch()
    tensor([[2., 3., 0.]])
    >>> ndd.experimental.warp_perspective(ndd.demo.photo("cat"), matrix=[1, 0.2, 0, 0, 1, 0, 0, 0.001, 1], fill_value=0).shape
    (266, 400, 3)
    """
    if interp_type not in (_NEAREST, LINEAR, _CUBIC):
        raise RuntimeError(f"Unsupported interpolation: {interp_type!r}. Only nearest, linear and cubic are supported")
    if border_mode not in BORDERS:
        raise RuntimeError(f"Invalid border_mode argument: {border_mode}. Use one of {[*BORDERS]}")
    if pixel_origin not in _SHIFTS:
        raise RuntimeError(f"Invalid pixel_origin argument: {pixel_origin}. Use one of {[*_SHIFTS]}")
    check_matrix(matrix, matrix_input)
    check_choice("rule", rule, RULES)
    warn_of_part_of_pixel("warp_perspective", "the output has one along that axis", size=size)
    return like(input)


@warp_perspective.plan
def _(input, matrix_input, *, border_mode, fill_value, interp_type, inverse_map, matrix, pixel_origin, rule, size):
    shapes, (axes, channels) = input.shapes, _axes_of(input)
    fill = np.ravel(fill_value) if np.size(fill_value) else np.zeros(1, np.float32)  # [[1, 2, 3]] is [1, 2, 3]
    if len(fill) > 1 and (channels != len(fill)).any():
        raise RuntimeError(
            f"Number of values provided as a fill_value should match the number of channels. Number of channels: "
            f"{channels.max()}. Number of values provided: {len(fill)}."
        )
    if rule == "torchvision":
        return _as_torchvision(input, matrices(matrix, matrix_input, 3, 3), size, interp_type, fill, inverse_map)
    shift = np.float32(_SHIFTS[pixel_origin])
    before, after = _moved(-shift), _moved(shift)
    with np.errstate(invalid="ignore"):  # infinite numbers
        maps = before @ (matrices(matrix, matrix_input, 3, 3).astype(np.float32) @ after)
    targets = output_extents(size, shapes[:, axes], _at_least_one, repeat=True)
    outputs = shapes.copy()
    outputs[:, axes] = targets
    maps = maps.astype(np.float64)
    inverse = maps if inverse_map else inverted(maps)
    border = BORDERS[border_mode]
    far = beyond_opencv(inverse, shapes[:, axes], targets, interp_type == _CUBIC, border)
    per_sample = {"opencv_matrix": maps, "matrix": np.ascontiguousarray(inverse), "far": far}
    shared = {
        "interp": int(interp_type), "border": border, "fill": fill, "inverse_map": inverse_map,
        "planar": input.layout == "CHW",
    }  # fmt: skip
    kernels = _kernels(input, outputs, maps, far, shared)
    return Plan(outputs, per_sample, shared, kernel=kernels, inputs=(0,))


def _as_torchvision(input: Operand, maps: np.ndarray, size, interp_type, fill: np.ndarray, inverse_map: bool) -> Plan:
    """The plan of the rule "torchvision"."""
    if input.layout != "HWC" or len(fill) > 1 or interp_type == _CUBIC:
        raise RuntimeError(
            '`rule="torchvision"` knows images HWC, INTERP_NN and INTERP_LINEAR, and one number for `fill_value`; got the layout '
            f"{input.layout}, {interp_type!r} and {len(fill)} numbers"
        )
    extents = input.shapes[:, :2]
    targets = output_extents(size, extents, _at_least_one, repeat=True)
    maps = centred_maps(maps if inverse_map else inverted(maps), extents, targets, interp_type == _NEAREST)
    return affine_plan(input, maps, targets, None, interp_type, float(fill[0]))


def _axes_of(input: Operand) -> tuple[list[int], np.ndarray]:
    """The axes H and W, and the number of channels of the images, [N]."""
    layout = input.layout or ""
    channels = input.shapes[:, layout.index("C")] if "C" in layout else np.ones(input.n, np.int64)
    return [layout.index("H"), layout.index("W")], channels


def _at_least_one(size: np.ndarray) -> np.ndarray:
    return np.maximum(np.floor(size + 0.5), 1)


def _moved(by: np.float32) -> np.ndarray:
    return np.array([[1, 0, by], [0, 1, by], [0, 0, 1]], np.float32)


def _by_opencv(image, out, opencv_matrix, matrix, far, planar, interp, border, fill, inverse_map):
    if not out.size:
        return
    fills = fill.tolist()
    if far or not image.size:
        whole, target = (np.atleast_3d(a.transpose(1, 2, 0) if planar else a) for a in (image, out))
        values = np.resize(fills, target.shape[2])
        rounds, low, high = store_limits(np.dtype(np.float32), out.dtype, False)
        if image.size:
            warp_by_pixels(whole, target, matrix, interp, border, values, rounds, low, high)
        else:
            target[...] = np.clip(np.rint(values), low, high) if rounds else values
        return
    flags = interp | (_INVERSE_MAP if inverse_map else 0)
    warp = single_threaded().warpPerspective
    for part, target, some in _parts(image, out, planar, fills):
        # A single pixel of several channels counts as contiguous, but not for OpenCV.
        direct = target if target.flags.c_contiguous and target.shape[:2] != (1, 1) else None
        warped = warp(
            part, opencv_matrix, (target.shape[1], target.shape[0]), direct, flags, _OPENCV_BORDERS[border], some
        )
        if direct is None:
            target[...] = warped.reshape(target.shape)


def _kernels(input: Operand, outputs: np.ndarray, maps: np.ndarray, far: np.ndarray, shared: dict[str, Any]) -> Any:
    """The function for images of these shapes: ours for RGB bytes interpolated between four pixels, else OpenCV's."""
    linear = shared["interp"] == LINEAR and shared["border"] == 0 and shared["inverse_map"] and not shared["planar"]
    if not linear or input.dtype.name != "u8" or input.ndim != 3 or not multiplies_and_adds():
        return _by_opencv
    sizes, results = volumes(input.shapes), volumes(outputs)
    ours = (input.shapes[:, 2] == 3) & ~far & (sizes >= LEAST) & (sizes < _LARGE) & (results >= LEAST)
    ours &= keeps_sign(maps, outputs[:, :2])
    fill = np.clip(np.rint(shared["fill"]), 0, 255).astype(np.uint8)
    return {functools.partial(warp_rgb, fill=fill): ours, _by_opencv: ~ours}


def _parts(image: np.ndarray, out: np.ndarray, planar: bool, fills: Sequence[float]) -> list[tuple[Any, Any, Any]]:
    """The parts for one call of OpenCV each: (pixels, output, fill values) for planes or up to four channels."""
    repeated = [*fills] * _CHANNELS if len(fills) == 1 else [*fills, 0.0, 0.0, 0.0]
    if planar:
        return [
            (a, b, repeated[c if len(fills) > 1 else 0 :][:4]) for c, (a, b) in enumerate(zip(image, out, strict=True))
        ]
    if out.ndim == 2 or out.shape[2] <= _CHANNELS:
        return [(image, out, repeated[:4])]
    # Never two at once: for two channels OpenCV reads only at multiples of 1/32 pixel.
    ends = [*range(0, out.shape[2], _CHANNELS), out.shape[2]]
    if ends[-1] - ends[-2] == 2:
        ends[-2] -= 1
    parts = [slice(start, end) for start, end in pairwise(ends)]
    return [
        (
            np.ascontiguousarray(image[..., some]),
            out[..., some],
            (repeated if len(fills) == 1 else repeated[some.start :])[:4],
        )
        for some in parts
    ]


@warp_perspective.cuda("warp_perspective.cu")
def _(launch, image, matrix_input, out):
    if is_centred(launch.plan):
        launch_warp(launch, "warp_perspective", CENTRED=1, PERSPECTIVE=1)
        return
    interp, fill = launch.plan.shared["interp"], launch.plan.shared["fill"]
    axes, channels = _axes_of(image)
    view = np.concatenate([image.shapes[:, axes], channels[:, None], out.shapes[:, axes]], axis=1).astype(np.int32)
    if image.dtype.name != "f32":
        limits = np.iinfo(image.dtype.numpy)
        fill = np.clip(np.rint(fill), limits.min, limits.max).astype(np.float32)
    nearest, cubic = interp == _NEAREST, interp == _CUBIC
    numbers = {
        "fill": fill, "fills": len(fill), "nearest": nearest, "cubic": cubic,
        "steps": 32 if interp == LINEAR and image.dtype.name == "i16" else 0,
    }  # fmt: skip
    work = threads_of(launch, view[:, 3:], in_runs=not (nearest or cubic))
    launch("warp_perspective", work, per_sample={"view": view}, shared=numbers)
