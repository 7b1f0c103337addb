"""Boxes of torchvision's formats: conversion, clamping, and geometry.

`format` is a string: XYXY, XYWH, CXCYWH; or XYWHR, CXCYWHR, XYXYXYXY for rotated boxes, see `rotated`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ndd.torchvision.v2.functional import rotated

Size = tuple[int, int]
FORMATS = ("XYXY", "XYWH", "CXCYWH")


def format_name(format: Any) -> str:
    """The format of a member of torchvision's enum, or of a string in upper or lower case; KeyError for others."""
    name = str(getattr(format, "value", format)).upper()
    if name not in (*FORMATS, *rotated.FORMATS):
        raise KeyError(name)
    return name


def is_rotated(format: Any) -> bool:
    """Whether boxes of a format are rotated ones."""
    return format_name(format) in rotated.FORMATS


def converted(boxes: torch.Tensor, old: Any, new: Any) -> torch.Tensor:
    """Boxes in another format. Halves of whole numbers are rounded down, as in torchvision; from a centre they are
    truncated."""
    old, new = format_name(old), format_name(new)
    if old == new:
        return boxes
    if is_rotated(old) != is_rotated(new):
        raise ValueError("Cannot convert between rotated and unrotated bounding boxes.")
    if is_rotated(old):
        return rotated.converted(boxes, old, new)
    first, second = boxes[..., :2], boxes[..., 2:]
    half = (lambda v: v / 2) if boxes.is_floating_point() else (lambda v: v.div(2, rounding_mode="floor"))
    if old == "XYWH" and new == "CXCYWH":
        return torch.cat([first + half(second), second], dim=-1)
    if old == "XYWH":
        return torch.cat([first, first + second], dim=-1)
    if old == "CXCYWH":
        corner = first - second / 2
        ends = torch.cat([corner, corner + second], dim=-1).to(boxes.dtype)
        if new == "XYXY":
            return ends
        if boxes.is_floating_point():
            return torch.cat([corner, second], dim=-1)
        return torch.cat([ends[..., :2], ends[..., 2:] - ends[..., :2]], dim=-1)
    if new == "XYWH":
        return torch.cat([first, second - first], dim=-1)
    extent = second - first
    return torch.cat([half(first * 2 + extent), extent], dim=-1)


def clamped(boxes: torch.Tensor, format: Any, size: Size, mode: str | None) -> torch.Tensor:
    """Boxes cut off at the border of images of `size` (H, W); unchanged if `mode` is None."""
    name = format_name(format)
    if is_rotated(name):
        return rotated.clamped(boxes, name, size, mode)
    if mode is None:
        return boxes.clone()
    corners = converted(boxes if boxes.is_floating_point() else boxes.float(), name, "XYXY")
    x, y = (corners[..., k::2].clamp(0, size[1 - k]) for k in (0, 1))
    return converted(torch.stack([x, y], dim=-1).flatten(-2), "XYXY", name).to(boxes.dtype)


def shifted(boxes: torch.Tensor, format: Any, x: int, y: int) -> torch.Tensor:
    """Boxes moved by x and y."""
    name = format_name(format)
    if is_rotated(name):
        return rotated.shifted(boxes, name, x, y)
    by = [x, y, x, y] if name == "XYXY" else [x, y, 0, 0]
    return boxes + boxes.new_tensor(by)


def scaled(boxes: torch.Tensor, format: Any, old: Size, new: Size, mode: str | None) -> torch.Tensor:
    """Boxes of images that were resized."""
    if is_rotated(format):
        return rotated.scaled(boxes, format_name(format), old, new, mode)
    ratios = torch.tensor([new[1] / old[1], new[0] / old[0]] * 2, device=boxes.device)
    return boxes.mul(ratios).to(boxes.dtype)


def mirrored(boxes: torch.Tensor, format: Any, size: Size, axis: int) -> torch.Tensor:
    """Boxes of images of `size` (H, W), mirrored along x (axis 0) or y (axis 1)."""
    name, extent, moved = format_name(format), size[1 - axis], boxes.clone()
    if is_rotated(name):
        return rotated.mirrored(boxes, name, size, axis)
    if name == "XYXY":
        moved[..., axis], moved[..., axis + 2] = extent - boxes[..., axis + 2], extent - boxes[..., axis]
    elif name == "XYWH":
        moved[..., axis] = extent - (boxes[..., axis] + boxes[..., axis + 2])
    else:
        moved[..., axis] = extent - boxes[..., axis]
    return moved


def enclosing(
    boxes: torch.Tensor,
    format: Any,
    size: Size,
    mode: str | None,
    move: Callable[[torch.Tensor], torch.Tensor],
    *,
    corner: tuple[float, float] = (0.0, 0.0),
    cut_before: bool = False,
    cut_behind: bool = False,
) -> torch.Tensor:
    """The smallest upright boxes around the corners after `move`, which takes points `[N, 2]`, cut off at the border; for
    rotated boxes, rectangles from the moved corners.

    `corner` (x, y) is the corner of the picture after `move`. Boxes of whole numbers are moved as fractions; `cut_before` and
    `cut_behind` tell whether their corners are rounded to whole numbers before and after that, which differs between
    torchvision's functions.
    """
    name = format_name(format)
    between = "XYXYXYXY" if is_rotated(name) else "XYXY"
    whole = boxes if boxes.is_floating_point() or cut_before else boxes.float()
    corners = converted(whole, name, between)
    if between == "XYXY":
        x0, y0, x1, y1 = corners.reshape(-1, 4).unbind(-1)
        corners = torch.stack([x0, y0, x1, y0, x1, y1, x0, y1], dim=-1)
    corners = corners.reshape(-1, 2)
    moved = move(corners if corners.is_floating_point() else corners.float()).reshape(-1, 4, 2)
    ends = (
        rotated.rectangles(moved.flatten(1)) if is_rotated(name) else torch.cat([moved.amin(1), moved.amax(1)], dim=1)
    )
    ends = ends - ends.new_tensor(corner * (ends.shape[1] // 2))
    ends = ends.to(boxes.dtype) if cut_behind else ends
    result = converted(clamped(ends, between, size, mode), between, name)
    return result.reshape(boxes.shape).to(boxes.dtype)
