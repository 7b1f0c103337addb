"""Windows of pictures: crops, and borders around them."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import ndd
from ndd.torchvision.v2.functional import boxes as box, rotated
from ndd.torchvision.v2.functional.followers import followed
from ndd.torchvision.v2.functional.kinds import functional, through
from ndd.torchvision.values import Fills, count_of, per_sample, rows_of, sizes_of, varies


def pairs(first: Any, second: Any, count: int | None) -> Any:
    """Two parameters as one: two whole numbers, or an `ndd.Batch` of pairs if either is per sample."""
    if not (varies(first, count) or varies(second, count)):
        return [int(per_sample(first, count)), int(per_sample(second, count))]
    columns = np.broadcast_arrays(rows_of(first, count).reshape(-1), rows_of(second, count).reshape(-1))
    return ndd.batch(np.stack(columns, axis=1).astype(np.int32))


@functional
def crop(inpt: Any, top: int, left: int, height: int, width: int) -> Any:
    """Takes the window `height` x `width` whose corner is at row `top` and column `left`; pixels outside of the image are 0.

    Args:
        inpt: images, masks, boxes, points or `ndd.Targets`.
        top, left: row and column of the corner in pixels; below 0 is outside of the image. (For a window completely before the
            first row or column, torchvision returns an image of another size; here all its pixels are 0.)
        height, width: of the window, in pixels.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.crop(torch.arange(9).reshape(1, 3, 3), 1, -1, 2, 3)
    tensor([[[0, 3, 4],
             [0, 6, 7]]])
    """
    count = count_of(inpt)

    def cut(value: Any) -> Any:
        return ndd.slice(
            value,
            start=pairs(top, left, count),
            shape=pairs(height, width, count),
            axis_names="HW",
            out_of_bounds_policy="pad",
        )

    def moved(sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _shift(-rows_of(left, count), -rows_of(top, count)), _columns(height, width, count)

    return through(
        "crop",
        inpt,
        cut,
        boxes=lambda b, kind, size, mode: _cropped_boxes(b, kind, mode, top, left, height, width),
        points=lambda p, size: (p - p.new_tensor([left, top]), (height, width)),
        targets=lambda t: followed(t, cut, moved),
    )


def _shift(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Maps `[N, 2, 3]` that move pixels by x and y."""
    x, y = np.broadcast_arrays(x.reshape(-1), y.reshape(-1))
    result = np.tile(np.eye(2, 3), (len(x), 1, 1))
    result[:, 0, 2], result[:, 1, 2] = x, y
    return result


def _columns(height: Any, width: Any, count: int | None) -> np.ndarray:
    return np.stack(np.broadcast_arrays(*(rows_of(v, count).reshape(-1) for v in (height, width))), axis=1)


def _cropped_boxes(
    boxes: torch.Tensor, format: str, mode: str | None, top: int, left: int, height: int, width: int
) -> tuple[torch.Tensor, tuple[int, int]]:
    moved = box.shifted(boxes, format, -left, -top)
    moved = rotated.rectangles(moved) if box.format_name(format) == "XYXYXYXY" else moved
    return box.clamped(moved, format, (height, width), mode), (height, width)


def two_sides(size: Any, name: str) -> tuple[Any, Any]:
    """Height and width from one number or two."""
    if isinstance(size, numbers.Number):
        return int(size), int(size)  # type: ignore[call-overload]
    if isinstance(size, ndd.Batch | np.ndarray | torch.Tensor):
        return size, size
    size = list(size)
    if len(size) == 1:
        return size[0], size[0]
    if len(size) != 2:
        raise ValueError(name)
    return size[0], size[1]


def centre_of(extent: int, window: int) -> int:
    """The start of the window in the middle of an extent, by torchvision's rule."""
    free = extent - window
    return round(free / 2.0) if free >= 0 else -((-free) // 2)


@functional
def center_crop(inpt: Any, output_size: list[int]) -> Any:
    """Takes the window of `output_size` (H, W), or one number for both, in the middle; pixels outside of the image are 0.

    If the free space is odd, the corner is rounded to even: a window of 2 pixels begins at 2 in an extent of 5, and at 2 in one
    of 7.

    Args:
        inpt: images, masks, boxes, points or `ndd.Targets`.
        output_size: (H, W) of the window in pixels, or one number for both.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.center_crop(torch.arange(5).reshape(1, 1, 5), [1, 2])
    tensor([[[2, 3]]])
    """
    height, width = two_sides(output_size, f"center_crop: expected one number or two, got {output_size!r}")

    def cut(value: Any) -> Any:
        return ndd.crop(value, crop_h=height, crop_w=width, rounding="even", out_of_bounds_policy="pad")

    def moved(sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        corners = np.array([[centre_of(h, height), centre_of(w, width)] for h, w in sizes], np.float64).reshape(-1, 2)
        return _shift(-corners[:, 1], -corners[:, 0]), np.array([[height, width]])

    def boxes(b: torch.Tensor, kind: str, size: tuple[int, int], mode: str | None) -> Any:
        # As in torchvision, which ignores the border here: a window larger than the image is half outside.
        return _cropped_boxes(b, kind, mode, *_corner(size), height, width)

    def _corner(size: tuple[int, int]) -> tuple[int, int]:
        return round((size[0] - height) / 2.0), round((size[1] - width) / 2.0)

    def points(p: torch.Tensor, size: tuple[int, int]) -> Any:
        top, left = _corner(size)
        return p - p.new_tensor([left, top]), (height, width)

    return through(
        "center_crop", inpt, cut, boxes=boxes, points=points, targets=lambda t: followed(t, cut, moved)
    )  # fmt: skip


@functional
def five_crop(inpt: Any, size: list[int]) -> tuple[Any, Any, Any, Any, Any]:
    """The windows of `size` in the four corners and in the middle: top left, top right, bottom left, bottom right, centre.

    Args:
        inpt: what `adjust_brightness` takes.
        size: (H, W) of each window in pixels, or one number for both. ValueError if it is larger than the image.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> [window.flatten().tolist() for window in F.five_crop(torch.arange(9).reshape(1, 3, 3), [1, 1])]
    [[0], [2], [6], [8], [4]]
    """
    height, width = two_sides(size, "Please provide only two dimensions (h, w) for size.")

    def corner(y: float, x: float) -> Callable[[Any], Any]:
        def cut(value: Any) -> Any:
            _fits(value, height, width, size)
            return ndd.crop(value, crop_h=height, crop_w=width, crop_pos_y=y, crop_pos_x=x, rounding="even")

        return cut

    places = [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (0.5, 0.5)]
    return tuple(through("five_crop", inpt, corner(*place)) for place in places)  # type: ignore[return-value]


def _fits(value: Any, height: int, width: int, size: Any) -> None:
    for h, w in sizes_of(value):
        if width > w or height > h:
            raise ValueError(f"Requested crop size {size} is bigger than input size {(int(h), int(w))}")


@functional
def ten_crop(inpt: Any, size: list[int], vertical_flip: bool = False) -> tuple[Any, ...]:
    """The windows of `five_crop`, and those of the mirrored picture: left and right, or with `vertical_flip` top and bottom.

    Args:
        inpt: what `adjust_brightness` takes.
        size: (H, W) of each window in pixels, or one number for both. ValueError if it is larger than the image.
        vertical_flip: mirror top and bottom instead of left and right.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> [window.item() for window in F.ten_crop(torch.arange(3).reshape(1, 1, 3), [1, 1])]
    [0, 2, 0, 2, 1, 2, 0, 2, 0, 1]
    """
    how: dict[str, Any] = {"horizontal": int(not vertical_flip), "vertical": int(bool(vertical_flip))}
    mirrored = through("ten_crop", inpt, lambda v: ndd.flip(v, **how))
    return five_crop(inpt, size) + five_crop(mirrored, size)


_MODES = ("constant", "edge", "reflect", "symmetric")


@functional
def pad(inpt: Any, padding: list[int], fill: Any = None, padding_mode: str = "constant") -> Any:
    """Adds a border.

    Args:
        inpt: images, masks, boxes, points or `ndd.Targets`.
        padding: its width in pixels: one number; [left and right, top and bottom]; or [left, top, right, bottom].
            Negative ones crop.
        fill: value of a constant border: one number, or one for each channel; default 0.
        padding_mode: "constant", "edge" (the last pixel repeated), "reflect" (mirrored at the last pixel) or
            "symmetric" (mirrored with the last pixel repeated).

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.pad(torch.tensor([[[1, 2, 3]]]), [2, 0], padding_mode="reflect")
    tensor([[[3, 2, 1, 2, 3, 2, 1]]])
    """
    count, (fill, of_masks) = count_of(inpt), Fills.of(fill)
    check_padding_mode(padding_mode)
    sides = sides_of_padding(padding, count)  # [N or 1, (left, top, right, bottom)]
    fills: list[float] = [0] if fill is None else list(fill) if isinstance(fill, list | tuple) else [fill]
    if len(fills) > 1 and padding_mode != "constant":
        raise ValueError(f"Padding mode '{padding_mode}' is not supported if fill is not scalar")

    if not sides.any():  # as in torchvision a fill that has no effect is not looked at
        fills = [0]

    def cut(value: Any, fills: list[float] = fills) -> Any:
        _check_fills(fills, value)
        sizes = sizes_of(value)
        start, shape = -sides[:, 1::-1], sizes + sides[:, 1::-1] + sides[:, :1:-1]
        policy = "pad" if padding_mode == "constant" else padding_mode
        if padding_mode == "reflect":
            _reflects(sides, sizes)
        return ndd.slice(
            value,
            start=_rows(start, value),
            shape=_rows(shape, value),
            axis_names="HW",
            fill_values=fills,
            out_of_bounds_policy=policy,
        )

    def moved(sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        _only_constant("ndd.Targets")
        return _shift(sides[:, 0], sides[:, 1]), sizes + sides[:, 1::-1] + sides[:, :1:-1]

    def _only_constant(kind: str) -> None:
        if padding_mode != "constant":
            raise ValueError(f"Padding mode '{padding_mode}' is not supported with {kind}")

    def grown(size: tuple[int, int]) -> tuple[int, int]:
        left, top, right, bottom = (int(v) for v in sides[0])
        return size[0] + top + bottom, size[1] + left + right

    def boxes(b: torch.Tensor, kind: str, size: tuple[int, int], mode: str | None) -> Any:
        _only_constant("bounding boxes")
        return box.clamped(box.shifted(b, kind, *(int(v) for v in sides[0, :2])), kind, grown(size), mode), grown(size)

    def points(p: torch.Tensor, size: tuple[int, int]) -> Any:
        _only_constant("KeyPoints")
        return p + p.new_tensor(sides[0, :2].tolist()), grown(size)

    def masks(value: Any) -> Any:
        if isinstance(fill, list | tuple):
            raise ValueError("Non-scalar fill value is not supported")
        return cut(value)

    return through(
        "pad",
        inpt,
        cut,
        masks=masks,
        boxes=boxes,
        points=points,
        targets=lambda t: followed(t, cut, moved, lambda v: cut(v, [of_masks or 0])),
    )


def _check_fills(fills: list[float], value: Any) -> None:
    """RuntimeError for an empty list, and for a value outside of the range of the element type."""
    if not fills:
        raise RuntimeError("fill: expected one number, or one for each channel, got an empty list")
    kind = value.dtype.numpy
    if np.dtype(kind).kind in "iu" and len(fills) == 1:
        limits = np.iinfo(kind)
        if not limits.min <= fills[0] <= limits.max:
            raise RuntimeError(f"fill: value {fills[0]} cannot be converted to type {np.dtype(kind)} without overflow")


def filled_window(value: Any, corners: Any, size: Any, fill: Any) -> Any:
    """The windows of `size` (H, W) at `corners` (y, x), a batch, of images, with `fill` outside, as for `pad`."""
    fills: list[float] = [0] if fill is None else list(fill) if isinstance(fill, list | tuple) else [fill]
    _check_fills(fills, value)
    how = {"axis_names": "HW", "fill_values": fills, "out_of_bounds_policy": "pad"}
    return ndd.slice(value, start=corners, shape=[int(side) for side in size], **how)


def check_padding_mode(mode: Any) -> None:
    """Checks for one of torchvision's four modes; ValueError for others."""
    if mode not in _MODES:
        raise ValueError(
            f"`padding_mode` should be either `'constant'`, `'edge'`, `'reflect'` or `'symmetric'`, but got `'{mode}'`."
        )


def sides_of_padding(padding: Any, count: int | None) -> np.ndarray:
    """Left, top, right and bottom, int64 `[N or 1, 4]`."""
    if not isinstance(padding, int | list | tuple | ndd.Batch | np.ndarray | torch.Tensor):
        raise TypeError(f"`padding` should be an integer or tuple or list of integers, but got {padding}")
    rows = rows_of(padding, count).astype(np.int64)
    rows = rows.reshape(len(rows), -1)
    if rows.shape[1] not in (1, 2, 4):
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 element tuple or list. Found {rows.shape[1]}")
    return np.tile(rows, (1, 4 // rows.shape[1]))


def _reflects(sides: np.ndarray, sizes: np.ndarray) -> None:
    widest = np.maximum(sides[:, 1::-1], sides[:, :1:-1])
    if (widest >= sizes).any():
        raise RuntimeError(
            f"Padding size should be less than the corresponding input dimension, got {widest.max(axis=0).tolist()} "
            f"(height, width) of {sizes.min(axis=0).tolist()}"
        )


def _rows(values: np.ndarray, like: Any) -> Any:
    """Numbers `[N or 1, 2]` as a parameter of an operator on `like`."""
    if len(values) == 1 or not isinstance(like, ndd.Batch):
        return values[0].tolist()
    return ndd.batch(np.ascontiguousarray(values).astype(np.int32))
