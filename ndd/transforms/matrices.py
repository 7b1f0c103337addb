"""Affine maps as matrices [d, d + 1]: how the operators of this room make, combine and return them.

While they are worked on, maps are [n, F, d, d + 1] and vectors [n, F, d], with F = 1 if there are no frames.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._operator import Plan
from ndd._operator.plan import Operand
from ndd._operator.run import current_invocation
from ndd._tensor import Handle, Spec
from ndd._tensor.dtype import float32


def matrix_spec(name: str, input: Spec | None, *values: Any) -> Spec:
    """What comes out: float32 matrices of layout "**", or one for each frame ("F**") if anything given has frames."""
    layouts = [v.layout for v in values if isinstance(v, Handle)] + ([] if input is None else [input.layout])
    frames = any((x or "")[:1] == "F" for x in layouts)
    if input is not None and input.dtype != float32:
        raise RuntimeError(f"{name}: expected transform matrices of float32, got {input.dtype}")
    return Spec.of(float32, 3 if frames else 2, "F**" if frames else "**", None)  # type: ignore[arg-type]


def vectors(value: Any, size: int, name: str) -> np.ndarray:
    """An argument as float64 [n, F, size]; one number goes for all axes."""
    n = current_invocation().n
    found = np.asarray(value, np.float64)
    if found.shape[-1] not in (1, size):
        raise RuntimeError(
            f'Argument "{name}" expected shape {size} but got {found.shape[-1]} values, which can\'t be interpreted '
            "as the expected shape."
        )
    found = found[:, None] if found.ndim == 2 else found
    return np.broadcast_to(found, (n, found.shape[1] if found.ndim == 3 else 1, size))


def affine(linear: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """[..., d, d] and [..., d] as [..., d, d + 1]."""
    frames = max(linear.shape[1], offset.shape[1])
    n, d = offset.shape[0], offset.shape[-1]
    rows = np.broadcast_to(linear, (n, frames, d, d)), np.broadcast_to(offset[..., None], (n, frames, d, 1))
    return np.concatenate(rows, axis=-1)


def about(linear: np.ndarray, center: Any) -> np.ndarray:
    """A linear map that leaves `center` where it is (default: the origin)."""
    d = linear.shape[-1]
    if center is None or np.shape(center)[-1] == 0:
        return affine(linear, np.zeros(linear.shape[:-1]))
    if np.shape(center)[-1] != d:
        raise RuntimeError(
            f'Argument "center" expected shape {d} but got {np.shape(center)[-1]} values, which can\'t be interpreted '
            "as the expected shape."
        )
    middle = vectors(center, d, "center")
    return affine(linear, middle - (linear @ middle[..., None])[..., 0])


def composed(second: np.ndarray, first: np.ndarray) -> np.ndarray:
    """The map that applies `first`, then `second`."""
    linear = second[..., :-1] @ first[..., :-1]
    return affine(linear, (second[..., :-1] @ first[..., -1:])[..., 0] + second[..., -1])


def stacked(input: Operand) -> np.ndarray:
    """The matrices of an input as [n, F, d, d + 1]."""
    shapes = input.shapes
    if shapes.shape[1] not in (2, 3) or (shapes[:, -1] != shapes[:, -2] + 1).any() or (shapes != shapes[0]).any():
        raise RuntimeError(f"expected transform matrices of shape d x (d + 1), got shape {tuple(shapes[0].tolist())}")
    found = np.stack([np.asarray(a, np.float64) for a in input.arrays])
    return found if found.ndim == 4 else found[:, None]


def dimensions(input: Operand | None, *values: Any) -> int:
    """How many axes the map has: as the longest of the arguments, or as the input if they are single numbers."""
    longest = max([np.shape(v)[-1] for v in values if v is not None and np.ndim(v)] or [1])
    return int(input.shapes[0, -2]) if longest <= 1 and input is not None else max(longest, 1)


def matrix_plan(input: Operand | None, own: np.ndarray, reverse_order: bool) -> Plan:
    """The plan of an operator that makes the maps `own`, applied after those of the input if there is one."""
    if input is not None:
        given = stacked(input)
        if given.shape[-2] != own.shape[-2]:
            raise RuntimeError(
                f"The input describes a {given.shape[-2]}D transform but other arguments suggest a "
                f"{own.shape[-2]}D transform"
            )
        own = composed(given, own) if reverse_order else composed(own, given)
    return values_plan(own)


def values_plan(maps: np.ndarray) -> Plan:
    """A plan whose outputs are these maps."""
    job = current_invocation()
    values = np.ascontiguousarray(maps if job.outs[0].ndim == 3 else maps[:, 0], np.float32)
    return Plan(np.tile(values.shape[1:], (len(values), 1)), per_sample={"values": values})
