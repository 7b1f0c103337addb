"""Batches of no samples, as `on_error="skip"` may leave: what is known of the shape that samples would have stays.

Such a store has its (empty) memory in one piece, `[0, 3, 8, 8]`, whose extents are 0 where they depend on the samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ndd._tensor.device import Device
from ndd._tensor.dtype import DType, torch_dtype
from ndd._tensor.store import Store

Shape = tuple[int, ...]
# What stands in for the extents that are not known, along each axis: twice, so that it shows what depends on them.
_LARGE = ((4001, 5003, 6007, 7001, 8009, 9001), (4507, 5501, 6521, 7507, 8501, 9511))
_SMALL = ((7, 11, 13, 5, 4, 6), (17, 19, 23, 8, 9, 10))
_CHANNELS = ((1, 3), (3, 3))  # an operator that takes RGB only does not take the first pair


def no_samples(dtype: DType, layout: str | None, device: Device, extents: Sequence[int]) -> Store:
    """A batch of none; `extents` of a sample, 0 where they are not known."""
    shape = (0, *extents)
    if device.device_id is None:
        return Store(dtype, layout, device, [], whole=np.empty(shape, dtype.numpy))
    import torch

    from ndd._tensor.memory import torch_device

    return Store(
        dtype, layout, device, [], whole=torch.empty(shape, dtype=torch_dtype(dtype), device=torch_device(device))
    )


def common_extents(shapes: Iterable[Sequence[int]]) -> Shape:
    """The extents in which all of these shapes agree, else 0."""
    rows = [tuple(int(extent) for extent in shape) for shape in shapes]
    return tuple(column[0] if len(set(column)) == 1 else 0 for column in zip(*rows, strict=True))


def extents_of(store: Store, ndim: int | None = None) -> Shape:
    """What is known of any sample of a batch, also of one that has none."""
    if store.n:
        return common_extents(store.shapes)
    return (0,) * (ndim or 0) if store.whole is None else tuple(store.whole.shape[1:])


def inferred(
    shapes_of: Callable[[list[Shape]], Sequence[Sequence[int]]],
    known: Sequence[tuple[Shape, str | None]],
    *,
    large: bool = True,
) -> list[Shape] | None:
    """The extents of results that follow from what is known of inputs: those that come out alike for two inputs that differ
    in all that is not known.

    Args:
        shapes_of: the shapes of the results for samples of these shapes.
        known: extents and layout of each input.
        large: whether the samples may be large, where no memory is made for them.

    None if `shapes_of` refuses every such input.
    """
    for channels in _CHANNELS:
        try:
            found = [
                shapes_of([_filled(*one, extents, channels[k]) for one in known])
                for k, extents in enumerate(_LARGE if large else _SMALL)
            ]
            return [common_extents(pair) for pair in zip(*found, strict=True)]
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
            continue
    return None


def _filled(extents: Shape, layout: str | None, unknown: Shape, channels: int) -> Shape:
    letters: Any = layout if layout and len(layout) == len(extents) else " " * len(extents)
    return tuple(
        extent or (channels if letter == "C" else unknown[axis % len(unknown)])
        for axis, (extent, letter) in enumerate(zip(extents, letters, strict=True))
    )
