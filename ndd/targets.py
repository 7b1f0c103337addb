"""`ndd.Targets`: images with their masks, boxes, labels and points, through the same geometry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ndd import random
from ndd._tensor import Batch, Tensor, as_tensor
from ndd._tensor.dtype import uint8
from ndd.ops.boxes.bb_flip import bb_flip
from ndd.ops.boxes.bbox_transform import bbox_transform
from ndd.ops.boxes.following import masks_of, resize_map, rows_left, turn_map, window_map
from ndd.ops.boxes.random_bbox_crop import random_bbox_crop
from ndd.ops.image.flip import flip
from ndd.ops.image.resize import resize
from ndd.ops.image.rotate import rotate
from ndd.ops.image.slice import slice as window
from ndd.ops.image.warp_affine import warp_affine
from ndd.ops.tensor.coord_flip import coord_flip
from ndd.ops.tensor.coord_transform import coord_transform
from ndd.ops.tensor.reshape import reinterpret, reshape
from ndd.ops.tensor.transpose import transpose
from ndd.picture import picture
from ndd.types import DALIInterpType

__all__ = ["Targets"]

Value = Tensor | Batch
_NEAREST = DALIInterpType.INTERP_NN
_IMAGES = {2: "HW", 3: "HWC", 4: "FHWC"}  # by rank, where nothing is said
# What an operator is told of the values of pixels: those of masks stay what they are.
_OF_PIXELS = ("antialias", "dtype", "fill_value", "interp_type", "mag_filter", "min_filter", "output_dtype")
_OF_LAYOUTS = ("bbox_layout", "crop_shape", "ltrb", "output_bbox_indices")


@dataclass(frozen=True)
class Targets:
    """Images with their masks, boxes, labels and points. Each method applies one geometry to all of them and returns new `Targets`.

    Random values are drawn by you and passed, or drawn once by the method. A missing part stays None.

    Args:
        images: HWC, CHW or HW; without a layout HWC. Video, FHWC or FCHW, moves as one image.
        boxes: float32 (N, 4): left, top, right, bottom, as fractions of the image's width and height, as
            `readers.COCO(ltrb=True, ratio=True)` gives them.
        labels: (N,) integers, which go with their boxes.
        masks: labels of pixels, HW or HWC, or [N, H, W], one mask of each object, as torchvision has them. Of any element
            type: they are moved without mixing neighbours, and what comes in is 0. Without a layout three axes are HWC if
            the last one is 1, else NHW. NHW masks that are as many as the boxes are dropped with their boxes; masks of
            layout "CHW" belong to the image.
        points: float32 (P, 2): x, y as fractions. Points that leave the image stay in the list, beyond 0..1.

    In a notebook it shows its images with all the rest drawn over them (`ndd.picture`).

    Raises ValueError for other layouts, and for masks that are not as large as their image: at once if both are there, else
    when the masks are asked for.

    >>> import ndd, numpy as np
    >>> image = ndd.tensor(np.zeros((40, 60, 3), np.uint8), layout="HWC")
    >>> boxes, points = ndd.tensor([[0.0, 0.5, 0.25, 1.0]]), ndd.tensor([[0.125, 0.75]])
    >>> turned = ndd.Targets(image, boxes, points=points).flip(horizontal=1).rotate(angle=90)
    >>> turned.images.shape, turned.boxes.torch().round(decimals=3).tolist(), turned.points.torch().tolist()
    ((60, 40, 3), [[0.5, 0.0, 1.0, 0.25]], [[0.75, 0.125]])
    """

    images: Value
    boxes: Value | None = None
    labels: Value | None = None
    masks: Value | None = None
    points: Value | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not isinstance(value, Value):
                object.__setattr__(self, field.name, as_tensor(value))
        layout = self.images.layout or _IMAGES.get(self.images.ndim, "")
        if layout.removeprefix("F") not in ("HWC", "CHW", "HW"):
            raise ValueError(
                f"Targets: images: expected pixels, HWC, CHW or HW, with a leading F for video, got {self.images.dtype} "
                f"of {self.images.ndim} axes, layout {self.images.layout!r}"
            )
        if self.masks is not None:
            object.__setattr__(self, "masks", _checked(self.masks, self.images, layout))

    def _repr_html_(self) -> str:
        return picture(self)._repr_html_()

    def flip(self, *, horizontal: Any = 1, vertical: Any = 0) -> Targets:
        """Mirrored, as `ndd.flip`: `horizontal=ndd.random.coin_flip(batch_size=n)` for some of them."""
        how = {"horizontal": horizontal, "vertical": vertical}
        return replace(
            self,
            images=flip(self.images, **how),
            masks=_moved_ids(self.masks, lambda v: flip(v, **how)),
            boxes=None if self.boxes is None else bb_flip(self.boxes, ltrb=True, **how),
            points=None if self.points is None else coord_flip(self.points, flip_x=horizontal, flip_y=vertical),
        )

    def crop(self, *, start: Any, shape: Any, remove_threshold: float = 0.1) -> Targets:
        """A window, given as fractions: `start` (x, y) and `shape` (w, h); as in `ndd.slice` it begins and ends at whole
        pixels. Boxes of which less than `remove_threshold` is inside are dropped with their labels."""
        where = {"rel_start": start, "rel_shape": shape}

        def cut(value: Any) -> Any:
            return window(value, axis_names="WH", **where)

        return self._mapped(lambda: window_map(self.images, **where), cut, cut, remove_threshold)

    def random_crop(self, *, rng: random.RNG | None = None, **how: Any) -> Targets:
        """A random window that keeps boxes: `how` are the arguments of `ndd.random_bbox_crop` but those of layouts and
        `crop_shape`."""
        if self.boxes is None:
            raise TypeError("Targets.random_crop: it chooses windows by `boxes`, which these have not: use `crop`")
        _refuse(
            "random_crop", how, _OF_LAYOUTS, "boxes are left, top, right, bottom, in fractions, and so is the window"
        )
        start, shape, _, kept = random_bbox_crop(self.boxes, rng=rng, output_bbox_indices=True, **how)
        boxes = rows_left(self.boxes, kept, self.boxes)
        labels, masks = self._left(kept)
        return replace(self, boxes=boxes, labels=labels, masks=masks).crop(
            start=start, shape=shape, remove_threshold=0.0
        )

    def resize(self, *, remove_threshold: float = 0.1, **how: Any) -> Targets:
        """Resized, as `ndd.resize`. Fractions stay as they are, unless there is a region, `roi_start` to `roi_end`, or a
        negative size, which mirrors. Boxes of which less than `remove_threshold` is in the region are dropped with their
        labels."""
        _refuse("resize", how, ("save_attrs",), "it gives images and what belongs to them: read their shapes before")
        where = {k: v for k, v in how.items() if k in _RESIZES}
        return self._mapped(
            lambda: resize_map(self.images, **where),
            lambda v: resize(v, **how),
            lambda v: resize(v, **_of_masks(how)),
            0.0 if how.get("roi_start") is None else remove_threshold,
        )

    def rotate(
        self, *, angle: Any, keep_size: bool = False, size: Any = None, remove_threshold: float = 0.1, **how: Any
    ) -> Targets:
        """Turned, as `ndd.rotate`; boxes become the least upright ones that hold the turned ones, are cut off at the
        border, and dropped with their labels if less than `remove_threshold` is left."""
        where: dict[str, Any] = {"angle": angle, "keep_size": keep_size, "size": size}
        return self._turned(rotate, where, how, remove_threshold)

    def warp_affine(
        self,
        *,
        matrix: Any,
        size: Any = None,
        inverse_map: bool = False,
        remove_threshold: float = 0.1,
        **how: Any,
    ) -> Targets:
        """Moved by `matrix`, 2 x 3, from pixels (x, y) of the input to pixels of the output (from those of the output to
        those of the input with `inverse_map`, which is what `ndd.warp_affine` does by itself); boxes as in `rotate`."""
        where: dict[str, Any] = {"matrix": matrix, "size": size, "inverse_map": inverse_map}
        return self._turned(warp_affine, where, how, remove_threshold)

    def _turned(self, move: Any, where: dict[str, Any], how: dict[str, Any], remove_threshold: float) -> Targets:
        """Through `rotate` or `warp_affine`, which take images HWC."""
        layout = self.images.layout or ""
        last = [i for i, c in enumerate(layout) if c != "C"] + [i for i, c in enumerate(layout) if c == "C"]

        def images(value: Any) -> Any:
            if last == sorted(last):
                return move(value, **where, **how)
            return transpose(move(transpose(value, perm=last), **where, **how), perm=np.argsort(last).tolist())

        of_masks = {"fill_value": 0, **where, **_of_masks(how)}
        return self._mapped(
            lambda: turn_map(self.images, **where), images, lambda v: move(v, **of_masks), remove_threshold
        )

    def _mapped(
        self,
        map_of: Callable[[], Any],
        images: Callable[[Any], Any],
        masks: Callable[[Any], Any],
        remove_threshold: float,
    ) -> Targets:
        """Images and masks through functions, boxes and points through the map of fractions."""
        boxes, labels, own, points = self.boxes, self.labels, self.masks, self.points
        matrix = None if boxes is None and points is None else map_of()
        if boxes is not None:
            how = {"MT": matrix, "remove_threshold": remove_threshold}
            boxes, kept = bbox_transform(boxes, output_bbox_indices=True, **how)
            labels, own = self._left(kept)
        if points is not None:
            points = coord_transform(points, MT=matrix)
        return Targets(images(self.images), boxes, labels, _moved_ids(own, masks), points)

    def _left(self, kept: Any) -> tuple[Any, Any]:
        """Labels and masks of the boxes that are kept; masks that are not of boxes as they are."""
        labels, masks = self.labels, self.masks
        if labels is not None:
            labels = rows_left(labels, kept, self.boxes)
        if masks is not None and masks.layout == "NHW":
            masks = rows_left(masks, kept, self.boxes, optional=True)
        return labels, masks


_RESIZES = tuple(a.name for a in resize_map.operator.arguments)


def _refuse(method: str, how: dict[str, Any], names: tuple[str, ...], why: str) -> None:
    for name in how:
        if name in (*names, "batch_size"):
            raise TypeError(f"Targets.{method}: does not take `{name}`: {why}")


def _checked(masks: Value, images: Value, image_layout: str) -> Value:
    """The masks under a layout, looked at now if they are there, else when they are."""
    layout = masks.layout
    if not layout:
        shapes = (masks.shape if isinstance(masks, Batch) else [masks.shape]) if masks.ndim == 3 else []
        layout = {2: "HW", 3: "HWC" if all(s[-1] == 1 for s in shapes) else "NHW"}.get(masks.ndim, "")
    if layout not in ("HW", "HWC") and not (len(layout) == 3 and layout.endswith("HW")):
        raise ValueError(
            f"Targets: masks: expected HW, HWC or NHW, got {masks.dtype} of {masks.ndim} axes, layout {masks.layout!r}"
        )
    axes, image_axes = ([w.index(c) for c in "HW"] for w in (layout, image_layout))
    checked = masks_of(masks, images, axes=axes, image_axes=image_axes, layout=layout)
    return checked.evaluate() if masks._store is not None and images._store is not None else checked


def _of_masks(how: dict[str, Any]) -> dict[str, Any]:
    """The arguments that masks are moved by."""
    return {**{k: v for k, v in how.items() if k not in _OF_PIXELS}, "interp_type": _NEAREST}


def _moved_ids(masks: Any, move: Callable[[Any], Any]) -> Any:
    """Masks through `move` as bytes, channels of HWC, which every operator on images takes: ids of any type stay exact."""
    if masks is None:
        return None
    kind, layout = masks.dtype, masks.layout
    if layout == "HW":
        moved = move(reinterpret(masks, dtype=uint8, src_dims=[0, 1, -1], layout="HWC"))
        return reshape(reinterpret(moved, dtype=kind), src_dims=[0, 1], layout="HW")
    if layout == "HWC":
        return reinterpret(move(reinterpret(masks, dtype=uint8)), dtype=kind)
    planes = reinterpret(transpose(masks, perm=[1, 2, 0]), dtype=uint8, layout="HWC")
    return transpose(reinterpret(move(planes), dtype=kind), perm=[2, 0, 1], output_layout=layout)
