"""Masks of COCO annotations: outlines of objects, run lengths, and both painted into an image."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ndd.installation import install_command

_LARGEST = 1 << 31  # pixels of a mask; run lengths hold 32 bits
_LONGEST = 1 << 22  # pixels of a polygon's outline: pycocotools keeps all of them at once


class Run(NamedTuple):
    """A mask as run lengths of alternating 0 and 1, down the columns.

    Attributes:
        place: which box of the image it belongs to.
        height, width: of the image, in pixels.
        counts: the lengths, int64.
    """

    place: int
    height: int
    width: int
    counts: np.ndarray


class Outline(NamedTuple):
    """The outlines of the objects in one image.

    Attributes:
        rows: i32 [P, 3], for each polygon: which box it belongs to, its first vertex and the one after its last.
        vertices: f32 [V, 2], x and y in pixels.
        runs: masks of objects that are given as run lengths.
    """

    rows: np.ndarray
    vertices: np.ndarray
    runs: list[Run]


def painted(outline: Outline, labels: np.ndarray, height: int, width: int) -> np.ndarray:
    """The labels of the pixels, i32 [height, width, 1], 0 where there is no object.

    Higher labels cover lower ones. A label is painted where one of its polygons is, or, if it has none, where one of
    its run lengths is (DALI takes the last of them only). ValueError for impossible sizes, outlines or runs.
    """
    if not (height > 0 and width > 0 and height * width < _LARGEST):
        raise ValueError(f"expected the height and width of the image, got height {height} and width {width}")
    places = np.array([*outline.rows[:, 0].tolist(), *(run.place for run in outline.runs)], np.int64)
    for place in places[(places < 0) | (places >= len(labels))][:1].tolist():
        raise ValueError(f"expected outlines of the image's {len(labels)} objects, got one of object {place}")
    try:
        flat, turned = np.zeros(height * width, np.int32), np.empty((height, width), np.int32)
    except MemoryError:
        raise ValueError(f"expected a mask that fits into memory, got height {height} and width {width}") from None
    shapes = labels[outline.rows[:, 0]].tolist()
    parts = list(zip(shapes, rasterised(outline, height, width), strict=True))
    outlined = set(shapes)
    for run in outline.runs:
        label = int(labels[run.place])
        if label not in outlined:
            parts.append((label, _checked(run, height, width)))
    for label, counts in sorted(parts, key=lambda part: part[0]):
        ends = np.cumsum(counts).tolist()
        for start, end in zip(ends[0::2], ends[1::2], strict=False):
            flat[start:end] = label
    turned[:] = flat.reshape(width, height).T
    return turned[..., None]


def rasterised(outline: Outline, height: int, width: int) -> list[np.ndarray]:
    """The pixels of each polygon by the rule of the COCO tools, as run lengths."""
    polygons = []
    for place, start, end in outline.rows.tolist():
        points = outline.vertices[start:end].astype(np.float64)
        length = np.abs(np.diff(points, axis=0, append=points[:1])).sum()
        if not (length < _LONGEST and np.abs(points).max(initial=0) < _LONGEST):
            raise ValueError(f"polygon of object {place}: expected coordinates in pixels, got an outline of {length:g}")
        if len(points) < 3:  # the tools take two corners for a box, and read beyond the end if there are none
            points = np.concatenate([points, np.repeat(points[-1:] if len(points) else np.zeros((1, 2)), 3, 0)])
        polygons.append(points.ravel())
    if not polygons:
        return []
    return [counts_of_text(run["counts"].decode()) for run in _tools().frPyObjects(polygons, height, width)]


def counts_of_text(text: str) -> np.ndarray:
    """The lengths in a compressed text of the COCO tools: numbers of 5 bits a character, the sixth says that more
    follow; from the fourth on each is the difference to the one before the last."""
    codes = np.frombuffer(text.encode(), np.uint8).astype(np.int64) - 48
    if not len(codes):
        return codes
    more = codes & 0x20 != 0
    if codes.min() < 0 or codes.max() > 0x3F or more[-1]:
        raise ValueError("expected run lengths as the COCO tools compress them, got another text")
    lasts = np.flatnonzero(~more)
    firsts = np.concatenate([[0], lasts[:-1] + 1])
    sizes = lasts - firsts + 1
    if sizes.max() > 8:
        raise ValueError("expected run lengths below 2**40, got a larger one")
    digits = np.arange(len(codes)) - np.repeat(firsts, sizes)
    values = np.add.reduceat((codes & 0x1F) << 5 * digits, firsts)
    values -= (codes[lasts] & 0x10 != 0) * (np.int64(1) << 5 * sizes)
    values[1::2] = np.cumsum(values[1::2])
    values[2::2] = np.cumsum(values[2::2])
    return values


def _checked(run: Run, height: int, width: int) -> np.ndarray:
    counts = run.counts
    if (run.height, run.width) != (height, width):
        raise ValueError(
            f"run lengths of object {run.place}: expected a mask of the image's size, {height} x {width}, got "
            f"{run.height} x {run.width}"
        )
    if counts.min(initial=0) < 0 or counts.max(initial=0) > height * width or counts.sum() != height * width:
        raise ValueError(
            f"run lengths of object {run.place}: expected {height * width} pixels in all, got {sum(counts.tolist())}"
        )
    return counts


@cache
def _tools() -> Any:
    try:
        import pycocotools.mask
    except ImportError as error:
        raise ImportError(f"readers.COCO with pixelwise_masks needs pycocotools: {install_command('coco')}") from error
    return pycocotools.mask
