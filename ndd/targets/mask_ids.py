"""Passes masks through operators on images, with exact ids of any type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ndd._tensor.dtype import uint8
from ndd.ops.tensor.reshape import reinterpret, reshape
from ndd.ops.tensor.transpose import transpose


def moved_ids(masks: Any, move: Callable[[Any], Any]) -> Any:
    """Passes masks through `move` as bytes in channels of HWC, which every operator on images takes."""
    if masks is None:
        return None
    kind, layout = masks.dtype, masks.layout
    if layout == "HW":
        moved = move(reinterpret(masks, dtype=uint8, src_dims=[0, 1, -1], layout="HWC"))
        return reshape(reinterpret(moved, dtype=kind), src_dims=[0, 1], layout="HW")
    if layout == "HWC":
        return reinterpret(move(reinterpret(masks, dtype=uint8)), dtype=kind)
    planes = reinterpret(transpose(masks, perm=[1, 2, 0]), dtype=uint8, layout="HWC")
    return transpose(reinterpret(move(planes), dtype=kind), perm=[2, 0, 1], output_layout=layout)
