"""The common part of operators that move pixels: types, sizes, matrices, plans."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch

from ndd._cpu.rgb_sampling import LEAST
from ndd._cpu.sampling import BORDERS, store_limits
from ndd._operator import Operand, Plan, Values
from ndd._tensor import DType
from ndd._tensor.convert import convert_array
from ndd._tensor.store import volumes
from ndd.ops.image.warp_kernels import APPLIED, CENTRED, LARGE, NO_MATRIX, NO_WAVE, warp_image, warp_volume
from ndd.types import DALIInterpType

NEAREST, LINEAR = DALIInterpType.INTERP_NN, DALIInterpType.INTERP_LINEAR
_WARPED = ("u8", "i16", "i32", "f32")


def warped_dtype(source: DType, wanted: DType | None) -> DType:
    """The output type of `rotate` and `warp_affine`."""
    target = wanted or source
    if source.name not in _WARPED or target.name not in _WARPED or (target != source and "f32" not in (
        source.name, target.name)):  # fmt: skip
        raise RuntimeError(
            f"Unsupported input/output types for the operator: {source} -> {target}. Expected uint8, int16, int32 or "
            "float32, and as output the same or float32 (from float32 any of them)."
        )
    return target


def check_interpolation(interp_type: Any) -> None:
    """RuntimeError for interpolations other than nearest and linear."""
    if interp_type not in (NEAREST, LINEAR):
        raise RuntimeError(f"Only nearest and linear interpolation is supported, got {interp_type!r}")


def check_matrix(argument: Any, data: Any) -> None:
    """RuntimeError unless the matrix is either an argument or an input."""
    if argument is not None and data is not None:
        raise RuntimeError("`matrix` was given both as an argument and as an input")
    if data is None and (argument is None or (isinstance(argument, np.ndarray) and not argument.size)):
        raise RuntimeError("`matrix` argument must be provided when transforms are not passed as a regular input.")


def output_extents(size: Values | None, extents: np.ndarray, whole: Any = np.trunc, repeat: bool = False) -> np.ndarray:
    """The spatial extents that `size` requests, int64 [N, axes]. `whole` rounds fractions; `repeat` allows one number for all
    axes."""
    if size is None:
        return extents
    rows = size.rows(extents.shape[1], repeat=repeat, meaning="one for each spatial axis")
    sizes = whole(rows.astype(np.float64)).astype(np.int64)
    if (sizes < 0).any():
        raise RuntimeError(f"`size` must not be negative, got {sizes.min()}")
    return sizes


def matrices(argument: Values | None, data: Operand | None, rows: int, columns: int) -> np.ndarray:
    """The matrix of each sample, float64 [N, rows, columns]; from the argument or from a data input."""
    if data is not None:
        argument = Values("matrix", data.arrays, data.n, np.dtype(np.float64), vector=True, varies=True)
    return argument.matrices(rows, columns).astype(np.float64)  # type: ignore[union-attr]


_NO_INVERSE = "`matrix`: Cannot calculate the inverse of a singular matrix: with `inverse_map=False` it needs one"


def inverted(square: np.ndarray) -> np.ndarray:
    """The inverse of each matrix."""
    try:
        return np.linalg.inv(square)
    except np.linalg.LinAlgError:
        raise ValueError(_NO_INVERSE) from None


def affine_inverse(maps: np.ndarray) -> np.ndarray:
    """The inverse of each affine map [d, d + 1], in float32 and in DALI's order, which decides between two pixels."""
    square, shift = maps[:, :, :-1].astype(np.float32), maps[:, :, -1].astype(np.float32)
    if square.shape[1] == 2:
        (a, b), (c, d) = square[:, 0].T, square[:, 1].T
        determinant, adjugate = a * d - b * c, np.stack([d, -b, -c, a], axis=1).reshape(-1, 2, 2)
    else:
        x, y, z = (square[:, :, i] for i in range(3))
        adjugate = np.stack([np.cross(y, z), np.cross(z, x), np.cross(x, y)], axis=1)
        determinant = (adjugate[:, 0] * x).sum(axis=1)
    if not determinant.all():
        raise ValueError(_NO_INVERSE)
    inverse = adjugate / determinant[:, None, None]
    return np.concatenate([inverse, -turned_point(inverse, shift)[..., None]], axis=2)


def turned_point(square: np.ndarray, point: np.ndarray) -> np.ndarray:
    """square @ point for each sample, added from the left in float32, as in DALI."""
    terms = square.astype(np.float32) * point.astype(np.float32)[:, None, :]
    total = terms[..., 0]
    for i in range(1, terms.shape[-1]):
        total = total + terms[..., i]
    return total


def fills(values: Any, source: DType, target: DType) -> tuple[np.ndarray, np.ndarray]:
    """The fill outside the image: float32 numbers for interpolation with pixels, and the same as elements of the output.

    As in DALI a value is converted to the type of the output first, and then, for interpolation, to that of the input.
    """
    stored = convert_array(np.atleast_1d(np.asarray(values, np.float32)), "f32", target.name)
    return convert_array(stored, target.name, source.name).astype(np.float32), stored


def sampling(source: DType, target: DType, interp_type: Any, border: int, fill: float) -> dict[str, Any]:
    """The part of a plan that describes reading pixels."""
    return _sampling(source, target, interp_type == NEAREST, border, float(fill))


@functools.lru_cache(maxsize=256)
def _sampling(source: DType, target: DType, nearest: bool, border: int, fill: float) -> dict[str, Any]:
    mixed, stored = fills(fill, source, target)
    return {"fill": mixed, "stored": stored, "border": border, "nearest": nearest}


def reading(source: np.dtype, target: np.dtype, nearest: bool, border: int, fill: Any, stored: Any) -> tuple[Any, ...]:
    """The same for the CPU's kernels, see `sample_rows`, by the types of both images."""
    return nearest or None, border, fill, stored, *store_limits(source, target, nearest)


def affine_plan(
    input: Operand,
    maps: np.ndarray,
    targets: np.ndarray,
    dtype: DType | None,
    interp_type: Any,
    fill_value: float | None,
) -> Plan:
    """The plan of an affine warp: `maps` is [N, d, d + 1] from output to input, in the order x, y(, z)."""
    border = BORDERS["replicate" if fill_value is None else "constant"]
    shared = sampling(input.dtype, dtype or input.dtype, interp_type, border, fill_value or 0.0)
    shapes = input.shapes
    outputs = np.empty_like(shapes)
    outputs[:, :-1], outputs[:, -1] = targets, shapes[:, -1]
    plan = Plan(outputs, {"matrix": np.ascontiguousarray(maps, np.float32)}, shared, inputs=(0,))
    plan.kernel = warp_kernels(input, plan, dtype or input.dtype)
    return plan


def centred_maps(maps: np.ndarray, extents: np.ndarray, targets: np.ndarray, nearest: bool) -> np.ndarray:
    """Maps in the form of the kernels, see `centred_points`: affine ones [N, 2, 3] in pixels relative to the centres of both
    images, or perspectives [N, 3, 3] in pixels relative to the corners."""
    rows = maps.shape[1]
    centred = np.zeros((len(extents), CENTRED + rows - 2, 3), np.float32)
    half = (extents[:, ::-1] * 0.5).astype(np.float32)
    centred[:, :2] = maps[:, :2].astype(np.float32) / np.where(half, half, 1)[:, :, None]
    centred[:, 2, :2] = (1 - targets[:, ::-1]) * 0.5 if rows == 2 else 0.5
    centred[:, 2, 2] = nearest
    centred[:, 3, :2], centred[:, 3, 2] = half, torch_rounds_products()
    centred[:, CENTRED:] = maps[:, 2:]
    return centred


@functools.cache
def torch_rounds_products() -> bool:
    """Whether torch's matrix product, by which torchvision finds points, rounds products before it adds them. MKL does so on
    AMD's processors; on Intel's it multiplies and adds at once. Between two pixels this decides which is the nearest."""
    points = torch.linspace(-40, 50, 999).reshape(1, -1, 3)
    rows = torch.linspace(-0.7, 0.9, 6).reshape(1, 3, 2)
    x, y, z = (points[0, :, k : k + 1] * rows[0, k] for k in range(3))
    return torch.equal(points.bmm(rows)[0], (x + y) + z)


def threads_of(launch: Any, targets: np.ndarray, in_runs: bool = True) -> int:
    """The number of threads that warp.cuh needs for the largest of these images [N, (H, W, ...)]: one for four pixels of RGB
    bytes (with `in_runs`), or one for each pixel."""
    image, out = launch.inputs[0], launch.outputs[0]
    if in_runs and image.dtype.name == out.dtype.name == "u8" and image.n and 3 in image.shapes[0, 2:]:
        return 256 * int((-(-targets[:, 0] // 32) * ((targets[:, 1] + 3) // 32 + 1)).max(initial=0))
    return 256 * int((-(-targets[:, 0] // 8) * -(-targets[:, 1] // 32)).max(initial=0))


def launch_warp(launch: Any, kernel: str, **macros: int) -> None:
    """Starts a kernel made of warp.cuh for a plan with `sampling`."""
    plan = launch.plan.shared
    value = plan["stored"].astype(np.float32) if plan["nearest"] else plan["fill"]
    shared = {"fill": value, "fills": 1, "planar": 0}
    launch(kernel, threads_of(launch, launch.plan.shapes), shared=shared, macros=macros)


def is_centred(plan: Plan) -> bool:
    """Whether the matrices of a plan are those of `centred_maps`."""
    return plan.per_sample["matrix"].shape[1] >= CENTRED


def launch_affine(launch, image, *_) -> None:
    """Starts the kernel of an affine plan."""
    if image.ndim == 3:
        centred = is_centred(launch.plan)
        launch_warp(launch, "affine", **({"CENTRED": 1} if centred else {}))
    else:
        launch("affine_volume", launch.plan.shapes[:, :3].prod(axis=1), macros={"VOLUME": 1})


def warp_kernels(input: Operand, plan: Plan, target: DType) -> dict[Any, np.ndarray]:
    """The function for the images of a plan with `sampling`: compiled code, except for empty and for the largest images."""
    if input.ndim != 3:
        return {_paint_volume: np.ones(input.n, bool)}
    sizes, result_sizes = (
        np.broadcast_to(volumes(shapes), (input.n,)) for shapes in (input.shapes, np.asarray(plan.shapes))
    )
    rgb = input.dtype.name == target.name == "u8" and bool((input.shapes[:, 2] == 3).all())
    least = LEAST if rgb else 1
    fits = (sizes >= least) & (sizes < LARGE) & (result_sizes >= least)
    of = plan.shared
    how = reading(input.dtype.numpy, target.numpy, of["nearest"], of["border"], of["fill"], of["stored"])
    numbers = dict(zip(_READING, how, strict=True))
    missing = {name: value for name, value in _NOT_GIVEN.items() if name not in plan.per_sample and name not in of}
    ours = functools.partial(warp_image, rgb=rgb or None, large=None, **missing, **numbers)
    others = functools.partial(paint_warped, **missing)
    return {ours: fits, others: ~fits}


_READING = ("nearest", "border", "fill", "stored_fill", "rounds", "low", "high")
_NOT_GIVEN = {"applied": APPLIED, "matrix": NO_MATRIX, "wave": NO_WAVE}


def paint_warped(image, out, applied, matrix, wave, nearest, border, fill, stored) -> None:
    """Warps one image that is too small or too large for the usual code, see `warp_image`."""
    if not out.size:
        return
    if not image.size:
        out[...] = stored[0]
        return
    rgb = image.dtype == out.dtype == np.uint8 and image.shape[2] == 3 and min(image.size, out.size) >= LEAST
    large = image.size >= LARGE
    how = reading(image.dtype, out.dtype, nearest, border, fill, stored)
    warp_image(image, out, np.int32(applied), matrix, wave, (rgb and not large) or None, large or None, *how)


def _paint_volume(image, out, matrix, nearest, border, fill, stored) -> None:
    """An affine warp of one volume."""
    if out.size and not image.size:
        out[...] = stored[0]
    elif out.size:
        warp_volume(image, out, matrix, *reading(image.dtype, out.dtype, nearest, border, fill, stored))
