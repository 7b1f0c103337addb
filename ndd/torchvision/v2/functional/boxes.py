"""Boxes of torchvision's formats: conversion, clamping, and what geometry does to them.

`format` is a word: XYXY, XYWH, CXCYWH. Rotated boxes (XYWHR, CXCYWHR, XYXYXYXY) are not served.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Size = tuple[int, int]
FORMATS = ("XYXY", "XYWH", "CXCYWH")
ROTATED = ("XYWHR", "CXCYWHR", "XYXYXYXY")


def format_name(format: Any) -> str:
    """The word for a member of torchvision's enum, or for the word in any case; NotImplementedError for rotated boxes."""
    name = str(getattr(format, "value", format)).upper()
    if name in ROTATED:
        raise NotImplementedError(f"boxes {name}: ndd has no rotated boxes yet; expected one of {', '.join(FORMATS)}")
    if name not in FORMATS:
        raise KeyError(name)
    return name


def converted(boxes: torch.Tensor, old: Any, new: Any) -> torch.Tensor:
    """Boxes in another format. Whole numbers are halved downwards, as in torchvision, but from a centre they are cut off."""
    old, new = format_name(old), format_name(new)
    if old == new:
        return boxes
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
    """Boxes cut off at the border of images of `size` (H, W); `mode` None leaves them."""
    name = format_name(format)
    if mode is None:
        return boxes.clone()
    corners = converted(boxes if boxes.is_floating_point() else boxes.float(), name, "XYXY")
    x, y = (corners[..., k::2].clamp(0, size[1 - k]) for k in (0, 1))
    return converted(torch.stack([x, y], dim=-1).flatten(-2), "XYXY", name).to(boxes.dtype)


def shifted(boxes: torch.Tensor, format: Any, x: int, y: int) -> torch.Tensor:
    """Boxes moved by x and y."""
    by = [x, y, x, y] if format_name(format) == "XYXY" else [x, y, 0, 0]
    return boxes + boxes.new_tensor(by)


def scaled(boxes: torch.Tensor, format: Any, old: Size, new: Size, mode: str | None) -> torch.Tensor:
    """Boxes of images that were resized."""
    format_name(format)
    ratios = torch.tensor([new[1] / old[1], new[0] / old[0]] * 2, device=boxes.device)
    return boxes.mul(ratios).to(boxes.dtype)


def mirrored(boxes: torch.Tensor, format: Any, size: Size, axis: int) -> torch.Tensor:
    """Boxes of images of `size` (H, W), mirrored along x (axis 0) or y (axis 1)."""
    name, extent, moved = format_name(format), size[1 - axis], boxes.clone()
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
    cut_before: bool = False,
    cut_behind: bool = False,
) -> torch.Tensor:
    """The least upright boxes that hold the corners after `move`, which takes points `[N, 2]`, cut off at the border.

    Boxes of whole numbers are moved as fractions; `cut_before` and `cut_behind` say whether their corners are whole numbers
    before that and behind it: torchvision does not do the same everywhere.
    """
    name = format_name(format)
    whole = boxes if boxes.is_floating_point() or cut_before else boxes.float()
    x0, y0, x1, y1 = converted(whole, name, "XYXY").reshape(-1, 4).unbind(-1)
    corners = torch.stack([x0, y0, x1, y0, x1, y1, x0, y1], dim=-1).reshape(-1, 2)
    corners = move(corners if corners.is_floating_point() else corners.float()).reshape(-1, 4, 2)
    ends = torch.cat([corners.amin(1), corners.amax(1)], dim=1)
    ends = ends.to(boxes.dtype) if cut_behind else ends
    made = converted(clamped(ends, "XYXY", size, mode), "XYXY", name)
    return made.reshape(boxes.shape).to(boxes.dtype)
