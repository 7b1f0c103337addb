"""How boxes, points and masks follow the images of `ndd.Targets`: maps of fractions, and which rows are left."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._operator import Operand, PerSample, bad_sample, like, operator, output
from ndd._tensor import Store
from ndd._tensor.dtype import float32
from ndd.ops.image.resize_geometry import LAYOUTS, asked_geometry
from ndd.ops.image.rotate import turned_extents
from ndd.ops.image.slice import slice_ends
from ndd.ops.image.warping import output_extents
from ndd.ops.image.window import rounded

_NO_WINDOW = dict.fromkeys(("start", "end", "rel_end", "shape"))


@operator(layouts=LAYOUTS, masks=True, reads="anywhere", register=False)
def window_map(images, /, *, rel_start: PerSample[list[float]], rel_shape: PerSample[list[float]]):
    """The map of fractions, 2 x 3, that `slice` is for these images: its windows begin and end between two pixels."""
    return output(float32, 2)


# A batch: numbers of all samples are worked out at once, in NumPy.
@window_map.batch
def _(call, images, *, rel_start, rel_shape):
    extents = _extents(images)[:, ::-1]
    named = {**_NO_WINDOW, "rel_start": rel_start, "rel_shape": rel_shape}
    low, high = map(rounded, slice_ends(extents, None, None, True, True, named))
    for i in np.flatnonzero((low == high).any(axis=1))[:1]:
        size = tuple((high - low)[i].tolist())
        raise bad_sample(int(i), f"boxes and points cannot follow into a window without pixels, (w, h) = {size}")
    return _region_map(low, high, extents)


@operator(layouts=LAYOUTS, masks=True, reads="anywhere", register=False)
def resize_map(
    images,
    /,
    *,
    max_size: list[float] | None = None,
    mode: str | None = None,
    resize_longer: PerSample[float] = None,
    resize_shorter: PerSample[float] = None,
    resize_x: PerSample[float] = None,
    resize_y: PerSample[float] = None,
    roi_end: PerSample[list[float]] = None,
    roi_relative: bool = False,
    roi_start: PerSample[list[float]] = None,
    size: PerSample[list[float]] = None,
    subpixel_scale: bool = True,
):
    """The map of fractions, 2 x 3, that `resize` is for these images: of a region to the whole, or mirrored."""
    return output(float32, 2)


# A batch: numbers of all samples are worked out at once, in NumPy.
@resize_map.batch
def _(call, images, **arguments):
    extents = _extents(images)
    _, geometry = asked_geometry(images, resize_z=None, **arguments)
    return _region_map(geometry.start[:, ::-1], geometry.end[:, ::-1], extents[:, ::-1])


@operator(layouts=LAYOUTS, masks=True, reads="anywhere", register=False)
def turn_map(
    images,
    /,
    *,
    angle: PerSample[float] = None,
    inverse_map: bool = False,
    keep_size: bool = False,
    matrix: PerSample[list[float]] = None,
    size: PerSample[list[float]] = None,
):
    """The map of fractions, 2 x 3, that `rotate` (by `angle`) or `warp_affine` (by `matrix`) is for these images."""
    return output(float32, 2)


# A batch: numbers of all samples are worked out at once, in NumPy.
@turn_map.batch
def _(call, images, *, angle, inverse_map, keep_size, matrix, size):
    extents = _extents(images)
    if angle is None:
        canvas = output_extents(size, extents)
        forward = matrix.matrices(2, 3).astype(np.float64)
        linear, shift = forward[:, :, :2], forward[:, :, 2]
        if inverse_map:
            if not np.linalg.det(linear).all():
                raise RuntimeError(
                    "boxes and points cannot follow a `matrix` that has no inverse, as `inverse_map` asks for"
                )
            linear = np.linalg.inv(linear)
            shift = -np.einsum("nrc,nc->nr", linear, shift)
    else:
        c, s, canvas = turned_extents(angle.each(), size, keep_size, extents)
        linear = np.stack([c, s, -s, c], axis=-1).reshape(-1, 2, 2)
        shift = (canvas[:, ::-1] - np.einsum("nrc,nc->nr", linear, extents[:, ::-1])) / 2
    for i in np.flatnonzero((canvas == 0).any(axis=1))[:1]:
        raise bad_sample(
            int(i), f"boxes and points cannot follow to an image without pixels, (h, w) = {tuple(canvas[i].tolist())}"
        )
    before, after = extents[:, None, ::-1], canvas[:, ::-1, None]
    return np.concatenate([linear * before / after, shift[..., None] / after], axis=2).astype(np.float32)


def _extents(images: Operand) -> np.ndarray:
    """The heights and widths, [N, 2]."""
    extents = images.shapes[:, [(images.layout or "").index(c) for c in "HW"]]
    for i in np.flatnonzero((extents == 0).any(axis=1))[:1]:
        raise bad_sample(int(i), f"images: expected some with pixels, got shape {tuple(images.shapes[i].tolist())}")
    return extents


def _region_map(start: np.ndarray, end: np.ndarray, extents: np.ndarray) -> np.ndarray:
    """The maps of fractions, [N, 2, 3], that make regions of images, (x, y) in pixels, the whole."""
    size = end.astype(np.float64) - start
    found = np.zeros((len(size), 2, 3))
    found[:, [0, 1], [0, 1]], found[:, :, 2] = extents / size, -start / size
    return found.astype(np.float32)


@operator(reads={"kept": "cpu", "boxes": "anywhere"}, register=False)
def rows_left(values, kept, boxes, /, *, optional: bool = False):
    """The rows that are left of what has one for each box: `kept` are their numbers. Values of another length stay whole if
    `optional`."""
    return values


@rows_left.views
def _(call, values, kept, boxes, *, optional):
    counts, expected = values.shape_array[:, 0], boxes.shape_array[:, 0]
    for i in np.flatnonzero(counts != expected)[:1]:
        if optional:
            return values
        raise bad_sample(int(i), f"labels: expected {expected[i]}, one for each box, got {counts[i]}")
    parts = [_rows(v, k) for v, k in zip(values.arrays(), kept.arrays(), strict=True)]
    shapes = [tuple(p.shape) for p in parts]
    return Store(values.dtype, values.layout, values.device, shapes, parts=parts, source_info=values.source_info)


def _rows(array: Any, kept: np.ndarray) -> Any:
    if len(kept) == len(array):
        return array
    if isinstance(array, np.ndarray):
        return array[kept]
    import torch

    return array[torch.as_tensor(kept, dtype=torch.int64, device=array.device)]


@operator(reads="anywhere", register=False)
def masks_of(masks, images, /, *, axes: list[int], image_axes: list[int], layout: str):
    """The masks, under a layout, if they are as large as their images."""
    return like(masks, layout=layout)


@masks_of.views
def _(call, masks, images, *, axes, image_axes, layout):
    found, expected = masks.shape_array[:, axes], images.shape_array[:, image_axes]
    for i in np.flatnonzero((found != expected).any(axis=1))[:1]:
        sizes = " x ".join(map(str, expected[i])), " x ".join(map(str, found[i]))
        raise bad_sample(
            int(i),
            f"masks: expected those as large as their image, {sizes[0]}, got {sizes[1]} (shape {masks.shapes[i]}, taken as "
            f'{layout}). A layout says which axes of a mask are which: "HW", "HWC", or "NHW" for one of each object',
            ValueError,
        )
    return masks.relabelled(layout)


for _own in (window_map, resize_map, turn_map, rows_left, masks_of):
    _own.operator.name = "Targets"  # what errors say
