"""Rotated boxes of torchvision's formats: conversion, clamping, and geometry.

XYWHR is the corner, width and height of a box before it is turned about that corner by R degrees counter-clockwise. CXCYWHR has
the centre instead. XYXYXYXY are the corners, from the upper left one clockwise. Boxes are floating-point numbers. The steps of
clamping are torchvision's, down to the order of the resulting corners.
"""

from __future__ import annotations

import math

import torch

Size = tuple[int, int]
FORMATS = ("XYWHR", "CXCYWHR", "XYXYXYXY")


def _turn(angle: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosine and sine of degrees."""
    radians = angle.mul(math.pi).div(180.0)
    return radians.cos(), radians.sin()


def converted(boxes: torch.Tensor, old: str, new: str) -> torch.Tensor:
    """Boxes in another of the formats."""
    if old == new:
        return boxes
    if old == "CXCYWHR":
        boxes = _moved_by_half(boxes, -1)
    elif old == "XYXYXYXY":
        boxes = _of_corners(boxes)
    if new == "CXCYWHR":
        return _moved_by_half(boxes, 1)
    return _corners(boxes) if new == "XYXYXYXY" else boxes


def _moved_by_half(boxes: torch.Tensor, sign: int) -> torch.Tensor:
    """`[..., 5]` with the corner replaced by the centre, or with `sign` -1 the centre by the corner."""
    x, y, width, height, angle = boxes.unbind(-1)
    cos, sin = _turn(angle)
    half_width, half_height = (sign * side.div(2).abs() for side in (width, height))
    x = x + half_width * cos + half_height * sin
    y = y - half_width * sin + half_height * cos
    return torch.stack([x, y, width, height, angle], dim=-1)


def _corners(boxes: torch.Tensor) -> torch.Tensor:
    """XYWHR as XYXYXYXY."""
    x, y, width, height, angle = boxes.unbind(-1)
    cos, sin = _turn(angle)
    right, down = (width * cos, width * sin), (height * sin, height * cos)
    columns = [x, y, x + right[0], y - right[1], x + (right[0] + down[0]), y - (right[1] - down[1])]
    return torch.stack([*columns, x + down[0], y + down[1]], dim=-1)


def _of_corners(boxes: torch.Tensor) -> torch.Tensor:
    """XYXYXYXY as XYWHR, in float32 at least."""
    wide = boxes if boxes.dtype in (torch.float32, torch.float64) else boxes.float()
    x1, y1, x2, y2, x3, y3, _, _ = wide.unbind(-1)
    angle = torch.atan2(y1 - y2, x2 - x1) / math.pi * 180.0
    width = ((x2 - x1).pow(2) + (y2 - y1).pow(2)).sqrt()
    height = ((x3 - x2).pow(2) + (y3 - y2).pow(2)).sqrt()
    return torch.stack([x1, y1, width, height, angle], dim=-1).to(boxes.dtype)


def rectangles(corners: torch.Tensor) -> torch.Tensor:
    """Parallelograms XYXYXYXY as rectangles with the same longer diagonal."""
    wide = corners if corners.dtype in (torch.float32, torch.float64) else corners.float()
    x1, y1, x2, y2, x3, y3, x4, y4 = wide.unbind(-1)
    centre_x, centre_y = (x1 + x3) / 2, (y1 + y3) / 2
    top, side = (((x - x1).pow(2) + (y - y1).pow(2)).sqrt() for x, y in ((x2, y2), (x4, y4)))
    of_top, of_side = torch.atan2(y1 - y2, x2 - x1), torch.atan2(y1 - y4, x4 - x1)
    between = of_top - of_side
    cos, sin = between.cos(), between.sin()
    cos = cos * torch.where(between > math.pi / 2, -1, 1)
    width = torch.where(top < side, top * sin, top + side * cos)
    height = torch.where(top > side, side * sin, side + top * cos)
    angle = torch.where(side > top, of_side + math.pi / 2, of_top)
    cos, sin = angle.cos(), angle.sin()
    right, down = (width / 2 * cos, width / 2 * sin), (height / 2 * sin, height / 2 * cos)
    columns = []
    for across, along in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
        columns += [centre_x + across * right[0] + along * down[0], centre_y + along * down[1] - across * right[1]]
    return torch.stack(columns, dim=-1).to(corners.dtype)


def shifted(boxes: torch.Tensor, format: str, x: int, y: int) -> torch.Tensor:
    """Boxes moved by x and y."""
    by = [x, y] * 4 if format == "XYXYXYXY" else [x, y, 0, 0, 0]
    return boxes + boxes.new_tensor(by)


def scaled(boxes: torch.Tensor, format: str, old: Size, new: Size, mode: str | None) -> torch.Tensor:
    """Boxes of images that were resized, as rectangles."""
    ratios = torch.tensor([new[1] / old[1], new[0] / old[0]] * 4, device=boxes.device)
    corners = rectangles(converted(boxes, format, "XYXYXYXY") * ratios)
    return converted(clamped(corners, "XYXYXYXY", new, mode), "XYXYXYXY", format).to(boxes.dtype)


def mirrored(boxes: torch.Tensor, format: str, size: Size, axis: int) -> torch.Tensor:
    """Boxes of images of `size` (H, W), mirrored along x (axis 0) or y (axis 1)."""
    extent = size[1 - axis]
    if format == "XYXYXYXY":
        corners = boxes.unflatten(-1, (4, 2)).clone()
        corners[..., axis] = extent - corners[..., axis]
        return corners[..., [1, 0, 3, 2], :].flatten(-2)  # the upper right corner becomes the upper left one
    x, y, width, height, angle = boxes.unbind(-1)
    if format == "XYWHR":
        cos, sin = _turn(angle)
        x, y = x + width * cos, y - width * sin
    x, y, angle = (extent - x, y, -angle) if axis == 0 else (x, extent - y, 180 - angle)
    return torch.stack([x, y, width, height, angle], dim=-1)


def sides(corners: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Widths and heights of boxes XYXYXYXY. As in torchvision, the height is computed from two different sides."""
    x1, y1, x2, y2, _, y3, x4, _ = corners.unbind(-1)
    x3 = corners[..., 4]
    return ((x1 - x2).pow(2) + (y1 - y2).pow(2)).sqrt(), ((y2 - y3).pow(2) + (x3 - x4).pow(2)).sqrt()


# ---- clamping


def clamped(boxes: torch.Tensor, format: str, size: Size, mode: str | None) -> torch.Tensor:
    """Boxes cut off at the border of images of `size` (H, W), without changing their angle.

    `mode` "hard": the largest box inside of both; "soft": the smallest one around their intersection; None: no clamping.
    """
    if mode is None:
        return boxes.clone()
    corners = converted(boxes, format, "XYXYXYXY").reshape(-1, 8)
    x, y = corners[:, 0::2], corners[:, 1::2]
    whole_x, whole_y = x, y
    height, width = size
    for _ in range(4):  # at the left border, after each quarter of a turn
        first = _leftmost(x, y)
        x, y, whole_x, whole_y = (_from_corner(v, first) for v in (x, y, whole_x, whole_y))
        x, y = _clamped_left(x, y, (whole_x, whole_y), (height, width), mode)
        x, y, whole_x, whole_y = (_from_corner(v, first) for v in (x, y, whole_x, whole_y))
        x, y, whole_x, whole_y = y, width - x, whole_y, width - whole_x
        height, width = width, height
    result = torch.stack([x, y], dim=-1).flatten(-2)
    return converted(result, "XYXYXYXY", format).reshape(boxes.shape)


def _leftmost(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The index of the leftmost corner, the upper one of several: `[N]`."""
    furthest_x, furthest_y = (v.abs().amax(1, keepdim=True) for v in (x, y))
    return (y / furthest_y + (x / furthest_x) * 100).min(dim=1)[1]


def _from_corner(values: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
    """Values of corners `[N, 4]`, beginning with corner `first`."""
    return values.gather(1, (first[:, None] + torch.arange(4, device=first.device)) % 4)


def _lines(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Slopes of the sides that follow the corners, and their intersections with the y axis."""
    slopes = (y.roll(-1, 1) - y) / (x.roll(-1, 1) - x)
    return slopes, y - slopes * x


def _clamped_left(
    x: torch.Tensor, y: torch.Tensor, whole: tuple[torch.Tensor, torch.Tensor], size: Size, mode: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Boxes, the leftmost corner first, cut off at x = 0; `whole` are the corners before any clamping."""
    slopes, meets = _lines(x, y)
    meets = _clamped_meets(slopes, meets, _lines(*whole)[1], size, mode)
    cut_x = -(meets - meets.roll(1, 1)) / (slopes - slopes.roll(1, 1))
    cut_y = slopes * cut_x + meets
    x1, x2, _, _ = x.unbind(1)
    y1, y2, y3, y4 = y.unbind(1)
    outside = (x1 < 0) & ~(cut_x.isnan() | cut_y.isnan()).any(1)
    upright = y1.isclose(y2) | y3.isclose(y4)
    gone = (x <= 0).all(1) | y1.isclose(y4) | y2.isclose(y3) | (upright & x1.isclose(x2))
    upright_x = x.clone()
    upright_x[:, 0::3] = x[:, 0::3].clamp(0)

    def chosen(cut: torch.Tensor, of_upright: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
        result = torch.where(outside[:, None], cut, before)
        result = torch.where(upright[:, None], of_upright, result)
        return torch.where(gone[:, None], torch.zeros_like(before), result)

    return chosen(cut_x, upright_x, x), chosen(cut_y, y, y)


def _clamped_meets(
    slopes: torch.Tensor, meets: torch.Tensor, limits: torch.Tensor, size: Size, mode: str
) -> torch.Tensor:  # fmt: skip
    """The intersections of the clamped box's sides with the y axis, `[N, 4]`."""
    height, width = size
    a1, a2, a3, a4 = slopes.unbind(1)
    b1, b2, b3, b4 = meets.unbind(1)
    low1, low2, high3, high4 = limits.unbind(1)
    first = b2.clamp(b1, b3).clamp(0, height)
    last = b3.clamp(b2, b4).clamp(0, height)
    if mode == "hard":
        middle = (first + last) / 2
        upper = [middle * a2 / a1, b3 * a2 / a3, (a1 - a2) * width + middle, (a3 - a2) * width + b3]
        b2 = torch.stack(upper, dim=1).amax(1).clamp(max=b2)
        at_bottom = [height * (1 - a3 / a4) + middle * a3 / a4, height * (1 - a3 / a2) + b2 * a3 / a2]
        at_right = [(a2 - a3) * width + b2, (a4 - a3) * width + middle]
        b3 = torch.stack([*at_bottom, *at_right], dim=1).amin(1).clamp(min=b3)
        first = last = middle.clamp(low1, high3).clamp(low2, high4)
    else:
        first, last = first.clamp(low1, high3), last.clamp(low2, high4)
    return torch.stack([first, b2.clamp(low2, high4), b3.clamp(low1, high3), last], dim=1)
