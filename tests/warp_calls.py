"""Random images, maps and arguments for the operators that move pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

EXTENTS = {"F": (1, 3), "D": (1, 6), "H": (1, 40), "W": (1, 60), "C": (1, 4)}
# Two kernels are compiled for each pair of types, in about two seconds, and in volumes once more. Two come before the long run.
PAIRS = [
    ("uint8", None),
    ("float32", None),
    ("uint8", "float32"),
    ("int16", None),
    ("float32", "uint8"),
    ("int32", None),
    ("float32", "float32"),
    *((k, "float32") for k in ("int16", "int32")),
    *(("float32", k) for k in ("int16", "int32")),
]
_BY_DEFAULT = PAIRS[:2]


def layouts_and_pairs(*layouts: str | None) -> list[Any]:
    """Parameters of a test: layouts, with pairs of types of the input and of `dtype`."""
    return [
        pytest.param(layout, pair, marks=[] if pair in _BY_DEFAULT else pytest.mark.long)
        for layout in layouts
        for pair in PAIRS
    ]


def numbers(rng: np.random.Generator, shape: Any, dtype: str) -> np.ndarray:
    """Any numbers of a type; of int32 as many as float32 tells apart."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return (rng.random(shape) * 300 - 20).astype(kind)
    limits = np.iinfo(kind)
    return rng.integers(max(limits.min, -(1 << 24)), min(limits.max, 1 << 24) + 1, shape).astype(kind)


def picture(rng: np.random.Generator, layout: str, dtype: str) -> np.ndarray:
    """A sample of any extents."""
    return numbers(rng, [int(rng.integers(low, high + 1)) for low, high in (EXTENTS[x] for x in layout)], dtype)


def affine(rng: np.random.Generator, axes: int, steps: int = 0) -> np.ndarray:
    """A map near the identity; of multiples of 1 / `steps`: points then lie between two pixels."""
    result = np.eye(axes, axes + 1) + rng.standard_normal((axes, axes + 1)) * ([0.3] * axes + [5.0])
    return (np.round(result * steps) / steps if steps else result).astype(np.float32)


def perspective(rng: np.random.Generator, steps: int = 0) -> np.ndarray:
    """As `affine`, with a vanishing line."""
    result = np.concatenate([affine(rng, 2, steps), [[0.0, 0.0, 1.0]]])
    result[2, :2] = rng.standard_normal(2) * (0.0 if steps else 0.002)
    return result.astype(np.float32)
