"""Maps of pictures: affine, rotation, perspective, elastic.

Source coordinates are computed in float32 as in torch, so that the nearest pixel is the same one. `ndd.warp_affine` and
`ndd.experimental.warp_perspective` do that themselves. For an elastic map they are computed here, and passed to
`ndd.experimental.remap` with a picture that has a border of one pixel of the fill value.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import ndd
from ndd.torchvision.interpolation import InterpolationMode, interpolation_mode
from ndd.torchvision.v2.functional import boxes as box
from ndd.torchvision.v2.functional.followers import followed
from ndd.torchvision.v2.functional.kinds import functional, through
from ndd.torchvision.v2.functional.warped_pixels import NEAREST, Size, mixed_of_sixteen, turned, warped
from ndd.torchvision.values import Fills, count_of, kind_of, layout_of, pixels_of, rows_of, sizes_of

# ---- affine maps


def affine_matrix(
    center: list[float], angle: float, translate: list[float], scale: float, shear: list[float], inverted: bool = True
) -> list[float]:
    """The map of pixels that rotates about `center`, scales, shears (degrees, along x and y) and moves, as six numbers.

    `inverted`: from the result to the source.
    """
    turn, (x_shear, y_shear) = math.radians(angle), (math.radians(s) for s in shear)
    a = math.cos(turn - y_shear) / math.cos(y_shear)
    c = math.sin(turn - y_shear) / math.cos(y_shear)
    b = -(a * math.tan(x_shear) + math.sin(turn))
    d = math.cos(turn) - c * math.tan(x_shear)
    cx, cy = center
    moved_x, moved_y = cx + translate[0], cy + translate[1]
    if inverted:
        a, b, c, d = d / scale, -b / scale, -c / scale, a / scale
        return [a, b, cx - a * moved_x - b * moved_y, c, d, cy - c * moved_x - d * moved_y]
    a, b, c, d = a * scale, b * scale, c * scale, d * scale
    return [a, b, moved_x - a * cx - b * cy, c, d, moved_y - c * cx - d * cy]


def _expanded(matrix: list[float], size: Size) -> Size:
    """The smallest size that contains the whole picture; less than 1e-4 of a pixel does not count."""
    height, width = size
    half = torch.tensor([0.5 * width, 0.5 * height])
    signs = torch.tensor([[-1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [1.0, -1.0]])
    corners = torch.cat([signs * half, torch.ones(4, 1)], dim=1) @ torch.tensor(matrix).view(2, 3).T
    ends = [((v + half) * (1.0 / 1e-4)).trunc_() * 1e-4 for v in corners.aminmax(dim=0)]
    extent = ends[1].ceil() - ends[0].floor()
    return int(extent[1]), int(extent[0])


@functional
def affine(
    inpt: Any,
    angle: float,
    translate: list[float],
    scale: float,
    shear: list[float],
    interpolation: Any = InterpolationMode.NEAREST,
    fill: Any = None,
    center: list[float] | None = None,
) -> Any:
    """Rotates clockwise by `angle` (degrees) about `center`, scales, shears and moves, without changing the size.

    Args:
        inpt: images, masks, boxes, points or `ndd.Targets`.
        angle: in degrees, clockwise.
        scale: the factor, above 0.
        translate: shift in pixels, (x, y).
        shear: angle in degrees along x, or (x, y).
        interpolation: "nearest" or "bilinear"; masks always take the nearest pixel.
        fill: value outside of the picture: one number, or one for each channel; default 0.
        center: (x, y) in pixels from the upper left corner; default: the middle.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.affine(torch.tensor([[[1, 2, 3]]]), angle=0, translate=[1, 0], scale=1.0, shear=[0.0, 0.0])
    tensor([[[0, 1, 2]]])
    """
    count = count_of(inpt)
    check_affine(angle, translate, scale, shear, center)
    rows = ((angle, 1, 0), (translate, 2, 1), (scale, 1, 0), (shear, 2, 0))
    numbers_of = [_rows(value, count, length, axes) for value, length, axes in rows]
    if (numbers_of[2] <= 0).any():
        raise ValueError("Argument scale should be positive")

    def row(i: int) -> tuple[float, list[float], float, list[float]]:
        turn, move, size, slant = (rows[i if len(rows) > 1 else 0].tolist() for rows in numbers_of)
        return turn[0], move, size[0], slant

    alike = all(len(rows) == 1 for rows in numbers_of)
    return _moved("affine", inpt, row, alike, interpolation, fill, center, False)


def check_affine(angle: Any, translate: Any, scale: Any, shear: Any, center: Any) -> None:
    """TypeError or ValueError for arguments that `affine` does not take, as torchvision raises them."""
    arrays = ndd.Batch | np.ndarray | torch.Tensor
    if not isinstance(angle, int | float | arrays):
        raise TypeError("Argument angle should be int or float")
    if not isinstance(translate, list | tuple | arrays):
        raise TypeError("Argument translate should be a sequence")
    if isinstance(translate, list | tuple) and len(translate) != 2:
        raise ValueError("Argument translate should be a sequence of length 2")
    if not isinstance(shear, numbers.Number | list | tuple | arrays):
        raise TypeError("Shear should be either a single value or a sequence of two values")
    if isinstance(shear, list | tuple) and len(shear) not in (1, 2):
        raise ValueError(f"Shear should be a sequence containing two values. Got {shear}")
    if center is not None and not isinstance(center, list | tuple):
        raise TypeError("Argument center should be a sequence")


def _rows(value: Any, count: int | None, length: int, axes: int = 0) -> np.ndarray:
    """Numbers, float64 `[N or 1, length]`; a single number for a shear is along x."""
    if length == 2 and isinstance(value, int | float):
        value = [value, 0.0]
    rows = rows_of(value, count, axes)
    rows = rows.reshape(len(rows), -1)
    return np.repeat(rows, length, axis=1) if rows.shape[1] < length else rows


@functional
def rotate(
    inpt: Any,
    angle: float,
    interpolation: Any = InterpolationMode.NEAREST,
    expand: bool = False,
    center: list[float] | None = None,
    fill: Any = None,
) -> Any:
    """Rotates counter-clockwise by `angle` (degrees).

    Args:
        inpt, interpolation, center, fill: as in `affine`.
        angle: in degrees.
        expand: make the result large enough for the whole rotated picture; for rotations about the middle.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.rotate(torch.tensor([[[1, 2], [3, 4]]]), 90)
    tensor([[[2, 4],
             [1, 3]]])
    """
    rows = _rows(angle, count_of(inpt), 1)
    if len(rows) == 1 and center is None:
        quarters = _quarters(inpt, float(rows[0, 0]) % 360, expand)
        if quarters is not None:
            interpolation_mode(interpolation)
            return _turned_by_quarters(inpt, quarters)

    def row(i: int) -> tuple[float, list[float], float, list[float]]:
        turn = float(rows[i if len(rows) > 1 else 0, 0])
        return -(turn % 360), [0.0, 0.0], 1.0, [0.0, 0.0]

    return _moved("rotate", inpt, row, len(rows) == 1, interpolation, fill, center, expand)


def _quarters(inpt: Any, angle: float, expand: bool) -> int | None:
    """How many quarters of a turn pictures are turned by, where no pixel is lost; else None."""
    if kind_of(inpt) not in ("ndd", "tensor", "image", "video", "mask") or angle not in (0, 90, 180, 270):
        return None
    if angle in (0, 180) or expand:
        return int(angle) // 90
    value, _ = pixels_of(inpt)
    return int(angle) // 90 if all(h == w for h, w in sizes_of(value).tolist()) else None


def _turned_by_quarters(inpt: Any, quarters: int) -> Any:
    """Pictures turned counter-clockwise, by copying pixels."""

    def images(value: Any) -> Any:
        flips = {0: (0, 0), 1: (0, 1), 2: (1, 1), 3: (1, 0)}[quarters]
        if quarters % 2:
            layout = layout_of(value)
            perm = [layout.index({"H": "W", "W": "H"}.get(letter, letter)) for letter in layout]
            value = ndd.transpose(value, perm=perm, output_layout=layout)
        return ndd.flip(value, horizontal=flips[0], vertical=flips[1])

    return through("rotate", inpt, images, masks=images)


def _moved(
    name: str, inpt: Any, row: Callable[[int], Any], alike: bool, interpolation: Any, fill: Any, center: Any, expand: bool
) -> Any:  # fmt: skip
    """`affine` and `rotate`; `row` returns angle, translation, scale and shear of sample i."""

    def inverse(i: int, size: Size) -> list[float]:
        middle = [0.0, 0.0] if center is None else [center[0] - size[1] * 0.5, center[1] - size[0] * 0.5]
        return affine_matrix(middle, *row(i))

    def maps(value: Any) -> tuple[Any, Any]:
        """The matrices for `turned`, and the sizes. If no size is needed, it does not wait for the pictures."""
        several = isinstance(value, ndd.Batch)
        of_size = expand or center is not None
        sizes = sizes_of(value).tolist() if of_size else [(0, 0)] * (value.batch_size if several else 1)
        if not several or (alike and not of_size):
            sizes = sizes[:1]
        matrices = [inverse(i, (h, w)) for i, (h, w) in enumerate(sizes)]
        result = [_expanded(m, (h, w)) for m, (h, w) in zip(matrices, sizes, strict=True)] if expand else None
        if len(sizes) < 2:
            return (matrices or [[1.0, 0.0, 0.0, 0.0, 1.0, 0.0]])[0], result and result[0]
        rows = ndd.batch(np.array(matrices, np.float32).reshape(-1, 2, 3))
        return rows, None if result is None else ndd.batch(np.array(result, np.float32))

    def direct(i: int, size: Size, dtype: torch.dtype = torch.float32) -> tuple[list[float], tuple[float, float], Size]:
        """The map of points, the corner of the result (x, y), and its size."""
        middle = [size[1] * 0.5, size[0] * 0.5] if center is None else [float(c) for c in center]
        matrix = affine_matrix(middle, *row(i), inverted=False)
        if not expand:
            return matrix, (0.0, 0.0), size
        # As in torchvision, everything is moved to the corner, even with another centre.
        corners = torch.tensor([[0.0, 0, 1], [0, size[0], 1], [size[1], size[0], 1], [size[1], 0, 1]], dtype=dtype)
        x, y = (corners @ torch.tensor(matrix, dtype=dtype).reshape(2, 3).T).amin(0).tolist()
        return matrix, (x, y), _expanded(affine_matrix(middle, *row(i)), size)

    def moved_points(points: torch.Tensor, matrix: list[float]) -> torch.Tensor:
        theta = torch.tensor(matrix, dtype=points.dtype, device=points.device).reshape(2, 3)
        return torch.cat([points, torch.ones_like(points[:, :1])], dim=-1) @ theta.T

    def boxes(b: torch.Tensor, kind: str, size: Size, mode: str | None) -> Any:
        if not b.numel():
            return b, size
        matrix, corner, result = direct(0, size, b.dtype if b.is_floating_point() else torch.float32)
        return box.enclosing(b, kind, result, mode, lambda p: moved_points(p, matrix), corner=corner), result

    def points(p: torch.Tensor, size: Size) -> Any:
        if not p.numel():
            return p, size
        whole = p if p.is_floating_point() else p.float()
        matrix, corner, result = direct(0, size, whole.dtype)
        moved = moved_points(whole.reshape(-1, 2), matrix) - whole.new_tensor(corner)
        return moved.reshape(p.shape).to(p.dtype), result

    def of_targets(sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        moves = [direct(i, (int(h), int(w))) for i, (h, w) in enumerate(sizes)]
        matrices = np.array([m for m, _, _ in moves]).reshape(-1, 2, 3)
        matrices[:, :, 2] -= np.array([corner for _, corner, _ in moves]).reshape(-1, 2)
        return matrices, np.array([result for _, _, result in moves])

    fill, of_masks = Fills.of(fill)

    def images(value: Any) -> Any:
        return turned(value, ndd.warp_affine, *maps(value), interpolation, fill)

    def masks(value: Any, fill: Any = fill) -> Any:
        return turned(value, ndd.warp_affine, *maps(value), NEAREST, fill)

    return through(
        name,
        inpt,
        images,
        masks=masks,
        boxes=boxes,
        points=points,
        targets=lambda t: followed(t, images, of_targets, lambda v: masks(v, of_masks)),
    )


# ---- perspective


def perspective_coefficients(startpoints: Any, endpoints: Any, coefficients: Any) -> list[float]:
    """The eight numbers of a perspective, from the result to the source: passed directly, or from four corners and their new
    places."""
    if coefficients is not None:
        if startpoints is not None and endpoints is not None:
            raise ValueError("The startpoints/endpoints and the coefficients shouldn't be defined concurrently.")
        if len(coefficients) != 8:
            raise ValueError("Argument coefficients should have 8 float values")
        return list(coefficients)
    if startpoints is None or endpoints is None:
        raise ValueError("Either the startpoints/endpoints or the coefficients must have non `None` values.")
    if len(startpoints) != 4 or len(endpoints) != 4:
        raise ValueError(
            f"Please provide exactly four corners, got {len(startpoints)} startpoints and {len(endpoints)} endpoints."
        )
    rows = []
    for (x, y), (u, v) in zip(endpoints, startpoints, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    matrix = torch.tensor(rows, dtype=torch.float64)
    known = torch.tensor(startpoints, dtype=torch.float64).view(8)
    # Rounded to float32, as in torchvision, which solves it in this way.
    return torch.linalg.lstsq(matrix, known, driver="gels").solution.to(torch.float32).tolist()


@functional
def perspective(
    inpt: Any,
    startpoints: list[list[int]] | None,
    endpoints: list[list[int]] | None,
    interpolation: Any = InterpolationMode.BILINEAR,
    fill: Any = None,
    coefficients: list[float] | None = None,
) -> Any:
    """Changes the perspective: four points (x, y) of the picture move to four others.

    Args:
        inpt: images, masks, boxes or points; `ndd.Targets` without boxes and points.
        startpoints, endpoints: four points each: the corners, from the upper left one clockwise.
        interpolation, fill: as in `affine`.
        coefficients: (a, ..., h) instead of the points: the pixel (x, y) of the result comes from
            ((ax + by + c) / (gx + hy + 1), (dx + ey + f) / (gx + hy + 1)). For a batch, one row for each sample.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.perspective(torch.tensor([[[1.0, 2.0, 3.0]]]), None, None, coefficients=[1, 0, 1, 0, 1, 0, 0, 0])
    tensor([[[2., 3., 0.]]])
    """
    count = count_of(inpt)
    several = _per_sample_coefficients(startpoints, endpoints, coefficients, count)

    def of(i: int) -> list[float]:
        return several[i if len(several) > 1 else 0]

    def move(value: Any, interpolation: Any, fill: Any) -> Any:
        rows = np.append(np.array(several, np.float32), np.ones((len(several), 1), np.float32), axis=1)
        matrix = ndd.batch(rows.reshape(-1, 3, 3)) if len(rows) > 1 else rows[0].tolist()
        return turned(value, ndd.experimental.warp_perspective, matrix, None, interpolation, fill)

    def moved(points: torch.Tensor) -> torch.Tensor:
        a, b, c, d, e, f, g, h = of(0)
        if a * e - b * d == 0:
            raise RuntimeError(
                f"Provided perspective_coeffs {of(0)} can not be inverted to transform points. Denominator is zero"
            )
        inverse = [
            [e - f * h, c * h - b, b * f - c * e],
            [f * g - d, a - c * g, c * d - a * f],
            [d * h - e * g, b * g - a * h],
        ]
        over = a * e - b * d
        rows = [[v / over for v in row] for row in inverse]
        theta = points.new_tensor([rows[0], rows[1], [*rows[2], 1.0]])
        x, y, scale = (torch.cat([points, torch.ones_like(points[:, :1])], dim=-1) @ theta.T).unbind(-1)
        return torch.stack([x / scale, y / scale], dim=-1)

    def boxes(b: torch.Tensor, kind: str, size: Size, mode: str | None) -> Any:
        return box.enclosing(b, kind, size, mode, moved, cut_before=True) if b.numel() else b

    def points(p: torch.Tensor, size: Size) -> Any:
        if not p.numel():
            return p
        whole = p if p.is_floating_point() else p.float()
        return moved(whole.reshape(-1, 2)).reshape(p.shape).to(p.dtype)

    return _bent("perspective", inpt, move, interpolation, fill, boxes, points)


def _per_sample_coefficients(start: Any, end: Any, coefficients: Any, count: int | None) -> list[list[float]]:
    arrays = ndd.Batch | np.ndarray | torch.Tensor
    if isinstance(coefficients, arrays):
        return [perspective_coefficients(start, end, row.tolist()) for row in rows_of(coefficients, count, axes=1)]
    if isinstance(start, arrays) or isinstance(end, arrays):
        both = [rows_of(v, count) for v in (start, end)]
        both = [rows if rows.ndim == 3 else rows[None] for rows in both]
        rows = np.broadcast_arrays(*both)
        return [perspective_coefficients(a.tolist(), b.tolist(), None) for a, b in zip(*rows, strict=True)]
    return [perspective_coefficients(start, end, coefficients)]


def _bent(
    name: str, inpt: Any, move: Callable[[Any, Any, Any], Any], interpolation: Any, fill: Any, boxes: Any, points: Any
) -> Any:  # fmt: skip
    """`perspective` and `elastic`, which are not linear maps."""
    fill, of_masks = Fills.of(fill)

    def images(value: Any) -> Any:
        return move(value, interpolation, fill)

    def masks(value: Any, fill: Any = fill) -> Any:
        return move(value, NEAREST, fill)

    def targets(t: ndd.Targets) -> ndd.Targets:
        if t.boxes is not None or t.points is not None:
            raise TypeError(
                f"{name}: boxes and points of `ndd.Targets` follow linear maps alone; give `tv_tensors`, or leave them out"
            )
        return followed(t, images, lambda sizes: (np.eye(2, 3)[None], sizes), lambda v: masks(v, of_masks))

    return through(name, inpt, images, masks=masks, boxes=boxes, points=points, targets=targets)


# ---- elastic


@functional
def elastic(
    inpt: Any, displacement: torch.Tensor, interpolation: Any = InterpolationMode.BILINEAR, fill: Any = None
) -> Any:
    """Moves every pixel by its own displacement.

    Args:
        inpt: images, masks, boxes or points; `ndd.Targets` without boxes and points.
        displacement: `[1, H, W, 2]`, x and y in halves of the width and the height, added to the source place of a pixel. For a
            batch of N samples of one size also `[N, H, W, 2]`.
        interpolation, fill: as in `affine`; bicubic too, by torch.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> way = torch.tensor([1.0, 0.0]).expand(1, 1, 2, 2)  # half of a width of two pixels
    >>> F.elastic(torch.tensor([[[1.0, 2.0]]]), way)
    tensor([[[2., 0.]]])
    """
    if not isinstance(displacement, torch.Tensor):
        raise TypeError("Argument displacement should be a Tensor")

    def ways(size: Size) -> torch.Tensor:
        expected = (1, *size, 2)
        if (1, *displacement.shape[1:]) != expected or len(displacement) not in (1, count_of(inpt) or 1):
            raise ValueError(f"Argument displacement shape should be {expected}, but given {tuple(displacement.shape)}")
        return displacement.to(torch.float32)

    def maps(size: Size, device: torch.device) -> torch.Tensor:
        return _identity_grid(size, device) + ways(size).to(device)

    def moved(points: torch.Tensor, size: Size) -> torch.Tensor:
        """The new places of points, by the inverted displacement of the pixel that contains each: torchvision's
        approximation."""
        back = _identity_grid(size, points.device) - ways(size)[0].to(points.device)
        x, y = (points[:, k].long().clamp(0, size[1 - k] - 1) for k in (0, 1))
        return (back[y, x] + 1) * (0.5 * points.new_tensor(size[::-1])) - 0.5

    def boxes(b: torch.Tensor, kind: str, size: Size, mode: str | None) -> Any:
        ways(size)
        if not b.numel():
            return b
        if not box.is_rotated(kind):
            return box.enclosing(b, kind, size, mode, lambda p: moved(p.ceil(), size), cut_before=True, cut_behind=True)
        centred = box.converted(b, kind, "CXCYWHR").reshape(-1, 5)  # as in torchvision, only the centre is moved
        centred = torch.cat([moved(centred[:, :2].ceil(), size), centred[:, 2:]], dim=1).to(b.dtype)
        return box.converted(box.clamped(centred, "CXCYWHR", size, mode), "CXCYWHR", kind).reshape(b.shape)

    def points(p: torch.Tensor, size: Size) -> Any:
        ways(size)
        if not p.numel():
            return p
        return moved(p.reshape(-1, 2).float(), size).reshape(p.shape).to(p.dtype)

    def move(value: Any, interpolation: Any, fill: Any) -> Any:
        if interpolation_mode(interpolation) is InterpolationMode.BICUBIC:
            return mixed_of_sixteen(value, maps, fill)
        return warped(value, maps, interpolation, fill)

    return _bent("elastic", inpt, move, interpolation, fill, boxes, points)


elastic_transform = elastic


def _identity_grid(size: Size, device: torch.device) -> torch.Tensor:
    rows, columns = size
    grid = torch.empty(rows, columns, 2, device=device)
    grid[..., 0] = torch.linspace((-columns + 1) / columns, (columns - 1) / columns, columns, device=device)
    grid[..., 1] = torch.linspace((-rows + 1) / rows, (rows - 1) / rows, rows, device=device)[:, None]
    return grid
