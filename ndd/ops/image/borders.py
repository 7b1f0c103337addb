"""Windows that reach outside the array and show its own elements there, repeated or mirrored."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._operator import Operand, Plan, bad_sample
from ndd._tensor import DType
from ndd.ops.image.window import bounded, cut_on_gpu, window_plan

BORDERS = ("edge", "reflect", "symmetric")
_SLOTS = 5  # axes that the kernel takes


def mirrored_plan(input: Operand, starts: np.ndarray, shapes: np.ndarray, policy: str, dtype: DType) -> Plan:
    """The plan of windows that reach outside, with `policy` one of `BORDERS`; the usual plan if none does."""
    starts, shapes, outside = bounded(starts, shapes, input.shapes, "pad")
    if not outside:
        return window_plan(input, starts, shapes, np.zeros((1, 1)), dtype)
    if dtype != input.dtype:
        raise RuntimeError(
            f'`dtype`: a border "{policy}" keeps the type {input.dtype}, got {dtype}: cast before or after'
        )
    empty = ((input.shapes == 0) & (shapes > 0)).any(axis=1)
    if empty.any():
        raise bad_sample(int(empty.argmax()), f'a border "{policy}" needs an input with elements')
    border = BORDERS.index(policy)
    nothing = np.zeros((input.n, 1), input.dtype.numpy)
    return Plan(shapes, {"start": starts, "fill": nothing}, {"channel": -1, "border": border}, kernel=_cut, inputs=(0,))


def _cut(image: np.ndarray, out: np.ndarray, start: Any, fill: Any, channel: int, border: int) -> None:
    for axis, (low, size, extent) in enumerate(zip(start.tolist(), out.shape, image.shape, strict=True)):
        if low or size != extent:
            image = image.take(_places(np.arange(low, low + size), extent, border), axis)
    out[...] = image


def _places(at: np.ndarray, extent: int, border: int) -> np.ndarray:
    """The elements of an axis of `extent` that are shown at places inside and outside."""
    if border == 0 or extent == 1:
        return np.clip(at, 0, extent - 1)
    at = at % (2 * (extent - 1) if border == 1 else 2 * extent)
    return np.where(at < extent, at, (2 * (extent - 1) if border == 1 else 2 * extent - 1) - at)


def cut_with_border(launch: Any, *operands: Operand, start: Any, fill: Any, channel: int, border: int = -1) -> None:
    """The launch of `window.cu` for input 0."""
    if border < 0:
        cut_on_gpu(launch, *operands, start=start, fill=fill, channel=channel)
        return
    input, out = operands[0], operands[-1]
    if out.shapes.shape[1] > _SLOTS:
        raise RuntimeError(f"a GPU takes at most {_SLOTS} axes, got {out.shapes.shape[1]}")
    ahead = ((0, 0), (_SLOTS - out.shapes.shape[1], 0))
    fields = {
        "extent": np.pad(input.shapes, ahead, constant_values=1),
        "start": np.pad(start, ahead),
        "size": np.pad(out.shapes, ahead, constant_values=1),
    }
    macros = {"BORDER": border, "SLOTS": _SLOTS}
    launch("window_border", out.shapes.prod(axis=1), per_sample=fields, macros=macros)
