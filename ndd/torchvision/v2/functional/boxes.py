"""Boxes of torchvision's formats: conversion, clamping, and what geometry does to them."""

from __future__ import annotations

import torch


def mirrored(boxes: torch.Tensor, format: str, size: tuple[int, int], axis: int) -> torch.Tensor:
    """Boxes of pictures of `size` (H, W), mirrored along x (axis 0) or y (axis 1)."""
    moved, extent = boxes.clone(), size[1 - axis]
    if format == "XYXY":
        moved[..., axis], moved[..., axis + 2] = extent - boxes[..., axis + 2], extent - boxes[..., axis]
    elif format == "XYWH":
        moved[..., axis] = extent - (boxes[..., axis] + boxes[..., axis + 2])
    else:
        moved[..., axis] = extent - boxes[..., axis]
    return moved
