"""The shape of a random operator's result: from a `shape` argument, from another value, or one number."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._operator import Operand, bad_sample
from ndd._tensor import Handle, Spec


def rank(shape_like: Spec | None, shape: Any) -> int | None:
    """The number of axes of the result; None if it depends on the value of a pending argument."""
    if shape_like is not None:
        if shape is not None:
            raise RuntimeError('Providing argument "shape" is incompatible with providing a shape-like input.')
        return shape_like.ndim
    if shape is None:
        return 0
    if isinstance(shape, Handle):
        store = shape._store
        if store is None or not store.shapes:
            return None
        return store.shapes[0][0] if store.shapes[0] else 1
    return len(shape)


def element_shapes(call: Any, shape_like: Operand | None, shape: Any) -> np.ndarray:
    """The shapes of all samples: int64 `[n, rank]`."""
    if shape_like is not None:
        return shape_like.shapes
    if shape is None:
        return np.empty((call.n, 0), np.int64)
    shapes = shape.rows()
    if (shapes < 0).any():
        i = int((shapes < 0).any(axis=1).argmax())
        raise bad_sample(i, f"argument 'shape': expected extents of at least 0, got {shapes[i].tolist()}")
    return shapes
