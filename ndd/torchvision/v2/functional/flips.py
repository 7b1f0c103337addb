"""Mirrored pictures, boxes and points."""

from __future__ import annotations

from typing import Any

import torch

import ndd
from ndd.torchvision.v2.functional import boxes as box
from ndd.torchvision.v2.functional.kinds import functional, through


@functional
def horizontal_flip(inpt: Any) -> Any:
    """Mirrors left and right.

    Takes images `[..., C, H, W]`, `tv_tensors`, PIL images, ndd's batches and `ndd.Targets`, and returns the same kind.

    Args:
        inpt: images, masks, boxes, points or `ndd.Targets`.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.horizontal_flip(torch.tensor([[[1, 2, 3]]]))
    tensor([[[3, 2, 1]]])
    """
    return through(
        "horizontal_flip",
        inpt,
        lambda v: ndd.flip(v, horizontal=1),
        boxes=lambda b, kind, size, mode: box.mirrored(b, kind, size, 0),
        points=lambda p, size: _mirrored_points(p, size, 0),
        targets=lambda t: t.flip(horizontal=1),
    )


@functional
def vertical_flip(inpt: Any) -> Any:
    """Mirrors top and bottom; takes and returns the same kinds as `horizontal_flip`.

    Args:
        inpt: images, masks, boxes, points or `ndd.Targets`.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.vertical_flip(torch.tensor([[[1], [2], [3]]])).flatten()
    tensor([3, 2, 1])
    """
    return through(
        "vertical_flip",
        inpt,
        lambda v: ndd.flip(v, horizontal=0, vertical=1),
        boxes=lambda b, kind, size, mode: box.mirrored(b, kind, size, 1),
        points=lambda p, size: _mirrored_points(p, size, 1),
        targets=lambda t: t.flip(horizontal=0, vertical=1),
    )


hflip, vflip = horizontal_flip, vertical_flip


def _mirrored_points(points: torch.Tensor, size: tuple[int, int], axis: int) -> torch.Tensor:
    """Points are centres of pixels: the last pixel is at the extent minus 1."""
    moved = points.clone()
    moved[..., axis] = size[1 - axis] - 1 - points[..., axis]
    return moved
