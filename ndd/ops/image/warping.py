"""What operators that move pixels share: types, sizes, matrices, plans."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ndd._cpu.sampling import BORDERS, store_limits
from ndd._operator import Plan
from ndd._operator.plan import Operand
from ndd._tensor import DType
from ndd._tensor.convert import convert_array
from ndd.types import DALIInterpType

_STREAMS = 16  # rows of an image that a processor reads ahead at once
_NEAR = 1 << 20  # bytes that fit into the cache of one core
NEAREST, LINEAR = DALIInterpType.INTERP_NN, DALIInterpType.INTERP_LINEAR
_WARPED = ("u8", "i16", "i32", "f32")


def warped_dtype(name: str, source: DType, wanted: DType | None) -> DType:
    """The output type of `rotate` and `warp_affine`."""
    target = wanted or source
    if source.name not in _WARPED or target.name not in _WARPED or (target != source and "f32" not in (
        source.name, target.name)):  # fmt: skip
        raise RuntimeError(
            f"{name}: Unsupported input/output types for the operator: {source} -> {target}. Expected uint8, int16, "
            "int32 or float32, and as output the same or float32 (from float32 any of them)."
        )
    return target


def check_interpolation(name: str, interp_type: Any) -> None:
    """Only nearest and linear are known here."""
    if interp_type not in (NEAREST, LINEAR):
        raise RuntimeError(f"{name}: Only nearest and linear interpolation is supported, got {interp_type!r}")


def check_displaced(name: str, dtype: DType, interp_type: Any) -> None:
    """What `water` and `sphere` take."""
    check_interpolation(name, interp_type)
    if dtype.name not in ("u8", "f32"):
        raise RuntimeError(f"{name}: Unexpected input type {dtype}: expected uint8 or float32")


def output_extents(size: Any, extents: np.ndarray, whole: Any = np.trunc) -> np.ndarray:
    """The spatial extents that `size` asks for, int64 [N, axes]; `whole` says what becomes of fractions."""
    if size is None:
        return extents
    wanted = np.asarray(size, np.float64)
    if wanted.shape[-1:] != extents.shape[1:]:
        raise RuntimeError(
            f"output_size must specify same number of dimensions as the input (excluding channels): "
            f"`size` has {wanted.shape[-1:]} values for {extents.shape[1]} axes"
        )
    found = whole(wanted).astype(np.int64)
    if (found < 0).any():
        raise RuntimeError(f"`size` must not be negative, got {wanted.min()}")
    return np.broadcast_to(found, extents.shape).copy()


def matrices(value: Any, data: Operand | None, n: int, shape: tuple[int, int]) -> np.ndarray:
    """The matrix of each sample, float64 [n, rows, columns]; from the argument or from a data input."""
    if data is not None:
        if value is not None:
            raise RuntimeError("`matrix` was given both as an argument and as an input")
        value = np.stack([np.asarray(a, np.float64) for a in data.arrays])
    if value is None or np.size(value) == 0:
        raise RuntimeError("`matrix` argument must be provided when transforms are not passed as a regular input.")
    found = np.asarray(value, np.float64)
    flat = (shape[0] * shape[1],)
    if found.shape in (shape, flat):
        return np.broadcast_to(found.reshape(shape), (n, *shape))
    if found.shape in ((n, *shape), (n, *flat), (1, *shape)):
        return np.broadcast_to(found.reshape(-1, *shape), (n, *shape))
    got = found.shape if found.shape[:1] != (n,) else found.shape[1:]
    raise RuntimeError(f"`matrix`: expected {shape[0]} x {shape[1]} numbers for each sample, got shape {got}")


_NO_INVERSE = "`matrix`: Cannot calculate the inverse of a singular matrix: with `inverse_map=False` it needs one"


def inverted(square: np.ndarray) -> np.ndarray:
    """The inverse of each matrix."""
    try:
        return np.linalg.inv(square)
    except np.linalg.LinAlgError:
        raise ValueError(_NO_INVERSE) from None


def affine_inverse(maps: np.ndarray) -> np.ndarray:
    """The inverse of each affine map [d, d + 1], in float32 and in DALI's order: it shows between two pixels."""
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
    """square @ point for each sample, added up from the left in float32, as DALI does it."""
    terms = square.astype(np.float32) * point.astype(np.float32)[:, None, :]
    found = terms[..., 0]
    for i in range(1, terms.shape[-1]):
        found = found + terms[..., i]
    return found


def fills(values: Any, source: DType, target: DType) -> tuple[np.ndarray, np.ndarray]:
    """What lies outside the image: float32 numbers to be mixed with pixels, and the same as elements of the output.

    As in DALI a value is brought to the type of the output first, and then, to be mixed, to that of the input.
    """
    stored = convert_array(np.atleast_1d(np.asarray(values, np.float32)), "f32", target.name)
    return convert_array(stored, target.name, source.name).astype(np.float32), stored


def sampling(input: Operand, dtype: DType, interp_type: Any, border: int, fill: Any) -> dict[str, Any]:
    """The part of a plan that is about reading pixels, for CPU (`how`) and GPU."""
    on_cpu = input.spec.device.device_id is None
    return _sampling(input.dtype, dtype, interp_type == NEAREST, border, float(fill), on_cpu)


@functools.lru_cache(maxsize=256)
def _sampling(source: DType, dtype: DType, nearest: bool, border: int, fill: float, on_cpu: bool) -> dict[str, Any]:
    mixed, stored = fills(fill, source, dtype)
    if on_cpu:
        return {"how": (nearest or None, border, mixed, stored, *store_limits(source.numpy, dtype.numpy, nearest))}
    value = stored.astype(np.float32) if nearest else mixed
    return {"fill": value, "fills": 1, "border": border, "nearest": int(nearest), "planar": 0}


def affine_plan(
    input: Operand, maps: np.ndarray, targets: np.ndarray, dtype: DType | None, interp_type: Any, fill_value: Any
) -> Plan:
    """The plan of an affine warp: `maps` is [N, d, d + 1] from output to input, in the order x, y(, z)."""
    border = BORDERS["replicate" if fill_value is None else "constant"]
    shared = sampling(input, dtype or input.dtype, interp_type, border, fill_value or 0.0)
    shapes = input.shapes
    outputs = np.empty_like(shapes)
    outputs[:, :-1], outputs[:, -1] = targets, shapes[:, -1]
    return Plan(outputs, {"matrix": np.ascontiguousarray(maps, np.float32)}, shared)


def threads_of(launch: Any, targets: np.ndarray, in_runs: bool = True) -> int:
    """How many threads warp.cuh wants for the largest of these images [N, (H, W, ...)]: one for four pixels of RGB bytes
    (unless not `in_runs`), or one for each pixel."""
    image, out = launch.inputs[0], launch.outputs[0]
    if in_runs and image.dtype.name == out.dtype.name == "u8" and image.n and 3 in image.shapes[0, 2:]:
        return 256 * int((-(-targets[:, 0] // 32) * ((targets[:, 1] + 3) // 32 + 1)).max(initial=0))
    return 256 * int((-(-targets[:, 0] // 8) * -(-targets[:, 1] // 32)).max(initial=0))


def launch_affine(launch: Any, image: Any) -> None:
    """Starts the kernel of an affine plan."""
    targets = launch.plan.shapes
    if image.ndim == 3:
        launch("affine", threads_of(launch, targets), file="affine.cu")
    else:
        work = int(targets[:, :3].prod(axis=1).max(initial=0))
        launch("affine_volume", work, macros={"VOLUME": "1"}, kept="volume", file="affine.cu")


def paint_affine(image: np.ndarray, out: np.ndarray, matrix: np.ndarray, how: tuple[Any, ...]) -> None:
    """An affine warp on the CPU."""
    from ndd._cpu.warp import affine_points, bring_near, warp_volume, warped

    if not out.size:
        return
    if not image.size:
        out[...] = how[3][0]
    elif image.ndim == 3:
        if abs(matrix[1, 0]) * out.shape[1] > _STREAMS and image.nbytes < _NEAR:
            bring_near(image.reshape(-1).view(np.uint8))
        warped(affine_points, image, out, how, matrix)
    else:
        warp_volume(image, out, matrix, *how)
