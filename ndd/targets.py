"""`ndd.Targets`: images and what belongs to them - masks, boxes, labels, points - through the same geometry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ndd import random, transforms
from ndd._operator import PerSample, bad_sample, operator, output
from ndd._tensor import Batch, Tensor
from ndd._tensor.dtype import float32
from ndd.ops.boxes.bb_flip import bb_flip
from ndd.ops.boxes.bbox_transform import bbox_transform
from ndd.ops.boxes.random_bbox_crop import random_bbox_crop
from ndd.ops.image.flip import flip
from ndd.ops.image.resize import resize
from ndd.ops.image.rotate import rotate, turned_extents
from ndd.ops.image.slice import slice as window
from ndd.ops.image.warp_affine import warp_affine
from ndd.ops.image.warping import output_extents
from ndd.ops.tensor.cast import cast
from ndd.ops.tensor.coord_flip import coord_flip
from ndd.ops.tensor.coord_transform import coord_transform
from ndd.picture import picture
from ndd.types import DALIInterpType

__all__ = ["Targets"]

Value = Tensor | Batch
_NEAREST = DALIInterpType.INTERP_NN
_OF_MASKS = {"interp_type": _NEAREST, "fill_value": 0}


@dataclass(frozen=True)
class Targets:
    """Images and what belongs to them. Each method moves all of them alike and gives new `Targets`.

    Whatever is random is drawn by you and passed, or drawn once by the method. What is not there stays None.

    Args:
        images: HWC or CHW.
        boxes: float32 (N, 4): left, top, right, bottom, as fractions of the image's width and height, as
            `readers.COCO(ltrb=True, ratio=True)` gives them.
        labels: int32 (N,), which go with their boxes.
        masks: labels of pixels, HW or HWC. They are moved without mixing neighbours.
        points: float32 (P, 2): x, y as fractions. Points that leave the image stay in the list, beyond 0..1.

    In a notebook it shows its images with all the rest drawn over them (`ndd.picture`).

    >>> import ndd, numpy as np
    >>> image = ndd.tensor(np.zeros((40, 60, 3), np.uint8), layout="HWC")
    >>> boxes, points = ndd.tensor([[0.0, 0.5, 0.25, 1.0]]), ndd.tensor([[0.125, 0.75]])
    >>> found = ndd.Targets(image, boxes, points=points).flip(horizontal=1).rotate(angle=90)
    >>> found.images.shape, found.boxes.torch().round(decimals=3).tolist(), found.points.torch().tolist()
    ((60, 40, 3), [[0.5, 0.0, 1.0, 0.25]], [[0.75, 0.125]])
    """

    images: Value
    boxes: Value | None = None
    labels: Value | None = None
    masks: Value | None = None
    points: Value | None = None

    def _repr_html_(self) -> str:
        return picture(self)._repr_html_()

    def flip(self, *, horizontal: Any = 1, vertical: Any = 0) -> Targets:
        """Mirrored, as `ndd.flip`: `horizontal=ndd.random.coin_flip(batch_size=n)` for some of them."""
        how = {"horizontal": horizontal, "vertical": vertical}
        return replace(
            self,
            images=flip(self.images, **how),
            masks=None if self.masks is None else flip(self.masks, **how),
            boxes=None if self.boxes is None else bb_flip(self.boxes, ltrb=True, **how),
            points=None if self.points is None else coord_flip(self.points, flip_x=horizontal, flip_y=vertical),
        )

    def crop(self, *, start: Any, shape: Any, remove_threshold: float = 0.1) -> Targets:
        """A window, given as fractions: `start` (x, y) and `shape` (w, h). Boxes of which less than `remove_threshold` is
        inside are dropped with their labels."""
        matrix = transforms.crop(from_start=start, from_end=_sum(start, shape))
        return self._mapped(matrix, lambda v, _: _window(v, start, shape), remove_threshold)

    def random_crop(self, *, rng: random.RNG | None = None, **how: Any) -> Targets:
        """A random window that keeps boxes: `how` are the arguments of `ndd.random_bbox_crop` but those of layouts and
        `crop_shape`."""
        if self.boxes is None:
            raise TypeError("Targets.random_crop: it chooses windows by `boxes`, which these have not: use `crop`")
        start, shape, boxes, *labels = random_bbox_crop(self.boxes, self.labels, rng=rng, **how)
        matrix = transforms.crop(from_start=start, from_end=_sum(start, shape))
        return Targets(
            _window(self.images, start, shape),
            boxes,
            labels[0] if labels else None,
            None if self.masks is None else _window(self.masks, start, shape),
            None if self.points is None else coord_transform(self.points, MT=matrix),
        )

    def resize(self, *, size: Any, **how: Any) -> Targets:
        """Resized, as `ndd.resize`; fractions stay as they are."""
        own = {**how, "interp_type": _NEAREST}
        masks = None if self.masks is None else _unmixed(lambda mask: resize(mask, size=size, **own), self.masks)
        return replace(self, images=resize(self.images, size=size, **how), masks=masks)

    def rotate(
        self, *, angle: Any, keep_size: bool = False, size: Any = None, remove_threshold: float = 0.1, **how: Any
    ) -> Targets:
        """Turned, as `ndd.rotate`; boxes become the least upright ones that hold the turned ones, are cut off at the
        border, and dropped with their labels if less than `remove_threshold` is left."""
        where: dict[str, Any] = {"angle": angle, "keep_size": keep_size, "size": size}
        return self._mapped(
            _fractions(self.images, **where), lambda v, more: rotate(v, **where, **{**how, **more}), remove_threshold
        )

    def warp_affine(self, *, matrix: Any, size: Any = None, remove_threshold: float = 0.1, **how: Any) -> Targets:
        """Moved by `matrix`, 2 x 3, from pixels (x, y) of the input to pixels of the output, which is `ndd.warp_affine` with
        `inverse_map=False`; boxes as in `rotate`."""
        where: dict[str, Any] = {"matrix": matrix, "size": size}
        return self._mapped(
            _fractions(self.images, **where),
            lambda v, more: warp_affine(v, inverse_map=False, **where, **{**how, **more}),
            remove_threshold,
        )

    def _mapped(self, matrix: Any, move: Callable[[Any, dict[str, Any]], Any], remove_threshold: float) -> Targets:
        """Images and masks through `move`, boxes and points through the matrix of fractions."""
        boxes, labels = self.boxes, self.labels
        if boxes is not None:
            how = {"MT": matrix, "remove_threshold": remove_threshold}
            boxes, labels = (
                (bbox_transform(boxes, **how), None) if labels is None else bbox_transform(boxes, labels, **how)
            )
        return Targets(
            move(self.images, {}),
            boxes,
            labels,
            None if self.masks is None else _unmixed(lambda mask: move(mask, _OF_MASKS), self.masks),
            None if self.points is None else coord_transform(self.points, MT=matrix),
        )


def _unmixed(move: Callable[[Any], Any], mask: Any) -> Any:
    """A mask through `move`, in a type that all operators on images take: labels up to 2**24 stay exact."""
    kind = mask.dtype
    return move(mask) if kind.name in ("u8", "i16", "f32") else cast(move(cast(mask, dtype=float32)), dtype=kind)


def _sum(start: Any, shape: Any) -> Any:
    if isinstance(start, Value) or isinstance(shape, Value):
        return start + shape
    return np.add(start, shape).tolist()


def _window(value: Any, start: Any, shape: Any) -> Any:
    if isinstance(start, Sequence):
        return window(value, rel_start=start, rel_shape=shape, axis_names="WH")
    return window(value, start, shape, axis_names="WH", normalized_anchor=True, normalized_shape=True)


@operator(reads="anywhere", register=False)
def _fractions(
    images,
    /,
    *,
    angle: PerSample[float] = None,
    keep_size: bool = False,
    matrix: PerSample[list[float]] = None,
    size: PerSample[list[float]] = None,
):
    """The map of fractions, 2 x 3, that `rotate` (by `angle`) or `warp_affine` (by `matrix`) is for these images. It waits
    for their shapes only."""
    return output(float32, 2)


@_fractions.batch
def _(call, images, *, angle, keep_size, matrix, size):
    layout = images.layout or "HWC"
    axes = [layout.index(c) for c in "HW"]
    extents = images.shapes[:, axes]
    for i in np.flatnonzero((extents == 0).any(axis=1))[:1]:
        raise bad_sample(int(i), f"expected an image with pixels, got shape {tuple(images.shapes[i].tolist())}")
    if angle is None:
        canvas = output_extents(size, extents)
        forward = matrix.matrices(2, 3).astype(np.float64)
        linear, shift = forward[:, :, :2], forward[:, :, 2]
    else:
        c, s, canvas = turned_extents(angle.each(), size, keep_size, extents)
        linear = np.stack([c, s, -s, c], axis=-1).reshape(-1, 2, 2)
        shift = (canvas[:, ::-1] - np.einsum("nrc,nc->nr", linear, extents[:, ::-1])) / 2
    before, after = extents[:, None, ::-1], canvas[:, ::-1, None]
    return np.concatenate([linear * before / after, shift[..., None] / after], axis=2).astype(np.float32)
