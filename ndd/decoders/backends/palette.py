"""The colours of a palette."""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel
from ndd._tensor.memory import host_empty


def colours_at(indices: np.ndarray, palette: np.ndarray) -> np.ndarray:
    """`palette[indices]`, HWC. The palette has a row for every number that an index can be."""
    out = host_empty((*indices.shape, palette.shape[1]), palette.dtype)
    _take(np.ascontiguousarray(indices), palette, out)
    return out


@kernel
def _take(indices, palette, out):
    height, width, channels = out.shape
    for y in range(height):
        row, target = indices[y], out[y]
        if channels == 3:  # a third of the time of the loop below
            for x in range(width):
                colour = palette[row[x]]
                target[x, 0], target[x, 1], target[x, 2] = colour[0], colour[1], colour[2]
        else:
            for x in range(width):
                for c in range(channels):
                    target[x, c] = palette[row[x], c]


@_take.fallback
def _(indices, palette, out):
    np.take(palette, indices, axis=0, out=out)
