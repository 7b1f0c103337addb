"""Batches of no samples, as `on_error="skip"` may leave: what is known of the shape that samples would have stays.

The (empty) memory of such a store is one array, `[0, 3, 8, 8]`, whose extents are 0 where they depend on the samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ndd._tensor.store import Shape, common_extents

# What stands in for the extents that are not known, along each axis: twice, so that it shows what depends on them.
_LARGE = ((4001, 5003, 6007, 7001, 8009, 9001), (4507, 5501, 6521, 7507, 8501, 9511))
_SMALL = ((7, 11, 13, 5, 4, 6), (17, 19, 23, 8, 9, 10))
_CHANNELS = ((1, 3), (3, 3))  # an operator that takes RGB only does not take the first pair


def infer_extents(
    shapes_of: Callable[[list[Shape]], Sequence[Sequence[int]]],
    known: Sequence[tuple[Shape, str | None]],
    *,
    large: bool = True,
) -> list[Shape] | None:
    """The extents of results that follow from the known extents of the inputs: those that are the same for two inputs which
    differ in everything unknown.

    Args:
        shapes_of: the shapes of the results for samples of these shapes.
        known: extents and layout of each input.
        large: whether the samples may be large, because no memory is allocated for them.

    None if `shapes_of` refuses every such input.
    """
    for channels in _CHANNELS:
        try:
            results = [
                shapes_of([_filled(*one, extents, channels[k]) for one in known])
                for k, extents in enumerate(_LARGE if large else _SMALL)
            ]
            return [common_extents(pair) for pair in zip(*results, strict=True)]
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
            continue
    return None


def _filled(extents: Shape, layout: str | None, unknown: Shape, channels: int) -> Shape:
    letters: Any = layout if layout and len(layout) == len(extents) else " " * len(extents)
    return tuple(
        extent or (channels if letter == "C" else unknown[axis % len(unknown)])
        for axis, (extent, letter) in enumerate(zip(extents, letters, strict=True))
    )
