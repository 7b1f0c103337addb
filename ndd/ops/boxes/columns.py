"""What the numbers of a box are: the columns of an array of boxes."""

from __future__ import annotations

import numpy as np

from ndd._operator import Operand, bad_sample


def check_columns(boxes: Operand) -> None:
    """RuntimeError unless the last axis has the 4 numbers of a box."""
    shapes = boxes.shapes
    if boxes.ndim == 0:
        raise RuntimeError("expected boxes, (N, 4) or (4,), got one number")
    for i in np.flatnonzero(shapes[:, -1] != 4)[:1]:
        raise bad_sample(int(i), f"expected boxes of 4 numbers, (N, 4) or (4,), got shape {tuple(shapes[i].tolist())}")
