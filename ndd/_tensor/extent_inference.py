"""Batches without samples, which `on_error="skip"` may leave, keep the known extents of their samples' shape.

The (empty) memory of such a store is one array, such as `[0, 3, 8, 8]`; extents that depend on the samples are 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ndd._tensor.store import Shape, common_extents

# Two guesses at the unknown extents along each axis: results that differ between them depend on the unknown.
_LARGE = ((4001, 5003, 6007, 7001, 8009, 9001), (4507, 5501, 6521, 7507, 8501, 9511))
_SMALL = ((7, 11, 13, 5, 4, 6), (17, 19, 23, 8, 9, 10))
_CHANNELS = ((1, 3), (3, 3))  # for operators that take RGB only and refuse the first pair


def infer_extents(
    shapes_of: Callable[[list[Shape]], Sequence[Sequence[int]]],
    known: Sequence[tuple[Shape, str | None]],
    *,
    large: bool = True,
) -> list[Shape] | None:
    """The extents of results that follow from the known extents of the inputs: those that come out equal for two inputs that
    differ in every unknown extent.

    Args:
        shapes_of: the shapes of the results for samples of these shapes.
        known: extents and layout of each input.
        large: whether the samples may be large, because no memory is allocated for them.

    None if `shapes_of` refuses every such input.
    """
    for channels in _CHANNELS:
        try:
            results = [
                shapes_of([_filled(*entry, extents, channels[k]) for entry in known])
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
