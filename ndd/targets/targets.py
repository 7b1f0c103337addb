"""`ndd.Targets`: applies the same geometry to images and their masks, boxes, labels and points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ndd import random
from ndd._tensor import Batch, Tensor
from ndd.ops.boxes.random_bbox_crop import random_bbox_crop
from ndd.ops.boxes.target_geometry import (
    boxes_moved,
    flip_motion,
    points_moved,
    resize_motion,
    rows_left,
    turn_motion,
    window_motion,
)
from ndd.ops.image.flip import flip
from ndd.ops.image.resize import resize
from ndd.ops.image.rotate import rotate
from ndd.ops.image.slice import slice as window
from ndd.ops.image.warp_affine import warp_affine
from ndd.ops.tensor.transpose import transpose
from ndd.picture import picture
from ndd.targets import coco, tv_tensors
from ndd.targets.checks import FORMATS, checked_masks, checked_objects, image_layout
from ndd.targets.mask_ids import moved_ids
from ndd.targets.tv_tensors import received
from ndd.types import DALIInterpType

__all__ = ["Targets"]

Value = Tensor | Batch
_NEAREST = DALIInterpType.INTERP_NN
# Arguments about pixel values, which do not apply to masks.
_OF_PIXELS = ("antialias", "dtype", "fill_value", "interp_type", "mag_filter", "min_filter", "output_dtype")
_OF_LAYOUTS = ("bbox_layout", "crop_shape", "ltrb", "output_bbox_indices")


@dataclass(frozen=True, init=False, eq=False)
class Targets:
    """Images with their masks, boxes, labels and points. Each method applies one geometry to all of them and returns new `Targets`.

    Random values are drawn by you and passed, or drawn once by the method. A missing part stays None.

    Args:
        images: HWC, CHW or HW; without a layout HWC. Video, FHWC or FCHW, moves as one image.
        boxes: (N, 4) in `format` and `normalized`; of any type, float32 after the first method.
        labels: (N,) numbers, one for each box.
        masks: labels of pixels, HW or HWC, or [N, H, W], one mask for each object, as in torchvision. Of any element type: they
            are moved without interpolation, and filled with 0. Without a layout three axes are HWC if the last one is 1, else
            NHW. If there are as many NHW masks as boxes, they are dropped with their boxes; masks of layout "CHW" belong to the
            image.
        points: (P, 2): x, y, of the image; or (N, K, 2), K for each box, which are dropped with their boxes.
        semantic: labels of pixels, HW or HWC, beside `masks` of objects.
        point_labels: (P,) or (N, K) numbers. Points (P, 2) with labels are dropped, with their labels, if they leave the image;
            without labels their order identifies them, so they stay even outside the image.
        format: the format of boxes: "xyxy" (left, top, right, bottom; default), "xywh" (left, top, width, height) or "cxcywh"
            (centre, width, height).
        normalized: boxes and points are fractions of the image's width and height (default), as from `readers.COCO(ltrb=True,
            ratio=True)`; False: pixels.
        extra: more values by name, or as keyword arguments: `Targets(..., area=areas, iscrowd=crowds)`. They have a row for
            each box and are dropped with it; a scalar belongs to the image. `targets.area` returns it.
        **named: values of `extra`, each by its name.

    Values of `torchvision.tv_tensors` keep their meaning: images CHW, boxes in their format in pixels; lists of them become a
    batch. (Coordinates are between pixels: a flip of W columns maps x to W - x, while torchvision moves key points to W - 1 -
    x.) `from_tv_tensors` and `from_coco` accept the samples of data sets, `to_tv_tensors` and `to_coco` convert back. A
    notebook shows the images with the other parts drawn over them (`ndd.picture`).

    Raises ValueError for other layouts and formats, and for masks that are not as large as their image; RuntimeError for
    another number of labels, rows or points than of boxes: immediately if both exist, otherwise when the values are requested;
    TypeError for an entry of `extra` that has the name of a part or a method.

    >>> import ndd, numpy as np
    >>> image = ndd.tensor(np.zeros((40, 60, 3), np.uint8), layout="HWC")
    >>> boxes, points = ndd.tensor([[0.0, 0.5, 0.25, 1.0]]), ndd.tensor([[0.125, 0.75]])
    >>> turned = ndd.Targets(image, boxes, points=points).flip(horizontal=1).rotate(angle=90)
    >>> turned.images.shape, turned.boxes.torch().round(decimals=3).tolist(), turned.points.torch().round(decimals=3).tolist()
    ((60, 40, 3), [[0.5, 0.0, 1.0, 0.25]], [[0.75, 0.125]])
    >>> pixels = ndd.Targets(image, [[0, 20, 15, 20], [50, 0, 10, 10]], format="xywh", normalized=False, area=[300, 100])
    >>> left = pixels.crop(start=[0, 0], shape=[0.5, 1])
    >>> left.boxes.torch().tolist(), left.area.torch().tolist()
    ([[0.0, 20.0, 15.0, 20.0]], [300])
    """

    images: Value
    boxes: Value | None
    labels: Value | None
    masks: Value | None
    points: Value | None
    semantic: Value | None
    point_labels: Value | None
    format: str
    normalized: bool
    extra: Mapping[str, Value]

    def __init__(
        self,
        images: Any,
        boxes: Any = None,
        labels: Any = None,
        masks: Any = None,
        points: Any = None,
        *,
        semantic: Any = None,
        point_labels: Any = None,
        format: str | None = None,
        normalized: bool | None = None,
        extra: Mapping[str, Any] | None = None,
        **named: Any,
    ):
        more = {**(extra or {}), **named}
        for name in more.keys() & _RESERVED:
            raise TypeError(f"Targets: extra: {name!r} is the name of a part or a method: take another one")
        box_format, normalized = tv_tensors.agreed(boxes, points, format, normalized)
        if box_format not in FORMATS:
            raise ValueError(f"Targets: format: expected one of {', '.join(map(repr, FORMATS))}, got {box_format!r}")
        pixels = received(images)
        layout = image_layout(pixels)
        objects = {"boxes": boxes, "labels": labels, "points": points, "point_labels": point_labels}
        values = {name: None if value is None else received(value) for name, value in objects.items()}
        rest = {name: received(value) for name, value in more.items()}
        self._set(format=box_format, normalized=normalized, images=pixels)
        self._set(**checked_objects(values, rest))
        for name, value in (("masks", masks), ("semantic", semantic)):
            self._set(**{name: None if value is None else checked_masks(name, received(value), pixels, layout)})

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _with(self, **changes: Any) -> Targets:
        """The same targets with other parts, which have been checked."""
        targets = object.__new__(Targets)
        targets._set(**{field.name: getattr(self, field.name) for field in fields(self)} | changes)
        return targets

    def __getattr__(self, name: str) -> Any:
        extra = self.__dict__.get("extra", {})
        if name in extra:
            return extra[name]
        raise AttributeError(f"Targets has no {name!r}, and no extra value of this name")

    def _repr_html_(self) -> str:
        return picture(self)._repr_html_()

    @classmethod
    def from_tv_tensors(cls, samples: Any, targets: Any = None) -> Targets:
        """Creates targets from samples of a torchvision data set: `(image, target)`, a list of these, or separate images and
        targets.

        A target is a dict of `tv_tensors` and tensors, as from `torchvision.datasets.wrap_dataset_for_transforms_v2`, or a
        `Mask`, the labels of pixels. Boxes and points are in pixels. Further entries become extra values if they are one number
        or have a row for each box; other entries are dropped.

        Raises TypeError for other samples, ValueError for samples with different entries.

        Args:
            samples: `(image, target)`, a list of these, or only images.
            targets: the target of the image, or a list with those of all images, if `samples` has only images.
        """
        return cls(**tv_tensors.parts_of(samples, targets))

    def to_tv_tensors(self) -> Any:
        """A pair (Image, dict) of `torchvision.tv_tensors` for each sample: a list for a batch. The dict has "boxes" in the
        targets' format and in pixels, "masks", "semantic", "points", and the other values as tensors by name. Needs
        torchvision.

        Raises ValueError for an unknown format, ImportError without torchvision.
        """
        return tv_tensors.samples_of(self.convert(normalized=False))

    @classmethod
    def from_coco(
        cls, images: Any, annotations: Any, *, image_ids: Sequence[int] | None = None, masks: bool = True
    ) -> Targets:
        """Creates targets from annotations in the form of COCO's files.

        Args:
            images: a batch, or one image.
            annotations: for each image (for a single image: without an outer list) a list of dictionaries with "bbox" (x, y,
                width, height) and "category_id", or a dictionary {"annotations": list}; or the dictionary of a whole file, with
                `image_ids`.
            image_ids: for a whole file: the id of each image.
            masks: create masks [N, H, W] from "segmentation"; polygons and compressed runs need pycocotools.

        Boxes stay in pixels, "xywh"; labels are the category ids (int64). "keypoints" become `points` (N, K, 2) with
        `point_labels` (N, K), 0 to 2 as in COCO. Further numbers that all dictionaries have become extra values.

        >>> import ndd, numpy as np
        >>> image = ndd.tensor(np.zeros((40, 60, 3), np.uint8), layout="HWC")
        >>> cat = {"id": 7, "bbox": [10, 10, 20, 10], "category_id": 17, "iscrowd": 0}
        >>> whole = ndd.Targets.from_coco(image, [cat]).flip()
        >>> whole.to_coco()[0]["bbox"], whole.labels.torch(), whole.id.torch()
        ([30.0, 10.0, 20.0, 10.0], tensor([17]), tensor([7]))
        """
        return cls(**coco.parts_of(received(images), annotations, image_ids, masks))

    def to_coco(self) -> Any:
        """A list of COCO's dictionaries for each sample: a list of lists for a batch. "area" is that of the mask, or of the
        box; masks are uncompressed run lengths {"size", "counts"}, down the columns.

        Raises TypeError without boxes, ValueError for boxes of an unknown format.
        """
        return coco.annotations_of(self.convert(format="xywh", normalized=False))

    def convert(self, *, format: str | None = None, normalized: bool | None = None) -> Targets:
        """Converts boxes to another format, and boxes and points to fractions or pixels. None: no change.

        Args:
            format: "xyxy", "xywh" or "cxcywh".
            normalized: True for fractions of width and height, False for pixels.

        Raises ValueError for an unknown format.
        """
        if format is not None and format not in FORMATS:
            raise ValueError(
                f"Targets.convert: format: expected one of {', '.join(map(repr, FORMATS))}, got {format!r}"
            )
        target = self.format if format is None else format, self.normalized if normalized is None else normalized
        if target == (self.format, self.normalized) or (self.boxes is None and self.points is None):
            return self._with(format=target[0], normalized=target[1])
        return self._following(flip_motion(self.images), None, box_format=target)

    def sanitize(self, *, min_size: float = 1.0, min_area: float = 1.0) -> Targets:
        """Cuts boxes off at the border of the image, and drops boxes, with their other values, if a side is below `min_size` or
        the area below `min_area`, in pixels. Labelled points outside the image are dropped. Equivalent to torchvision's
        `SanitizeBoundingBoxes` and `SanitizeKeyPoints`.

        Args:
            min_size: the smallest width and height, in pixels.
            min_area: the smallest area, in square pixels.
        """
        return self._following(flip_motion(self.images), 0.0, min_size=float(min_size), min_area=float(min_area))

    def clamp(self, *, boxes: bool = True, points: bool = True) -> Targets:
        """Cuts boxes off at the border of the image, and moves points to the nearest pixel inside. None is dropped. Equivalent
        to torchvision's `ClampBoundingBoxes` and `ClampKeyPoints`.

        Args:
            boxes: whether to clamp boxes.
            points: whether to clamp points.
        """
        motion, changes = flip_motion(self.images), {}
        how = {"normalized": self.normalized, "made_normalized": self.normalized, "clamp": True}
        if boxes and self.boxes is not None:
            formats = {"format": self.format, "made_format": self.format}
            changes["boxes"] = boxes_moved(self.boxes, motion, **formats, **how)[0]
        if points and self.points is not None:
            changes["points"] = points_moved(self.points, motion, **how)[0]
        return self._with(**changes)

    def flip(self, *, horizontal: Any = 1, vertical: Any = 0, images: Callable[[Any], Any] | None = None) -> Targets:
        """Mirrors as `ndd.flip`: `horizontal=ndd.random.coin_flip(batch_size=n)` for some of them. Labels of points do not
        change, even those of a left and a right side.

        Args:
            horizontal: mirror left and right: 0 or 1, or a batch with a number for each sample.
            vertical: mirror top and bottom, likewise.
            images: a function that mirrors the images, and may do more; default: `ndd.flip`.
        """
        how = {"horizontal": horizontal, "vertical": vertical}

        def move(value: Any) -> Any:
            return flip(value, **how)

        return self._moved(lambda: flip_motion(self.images, **how), images or move, move, None)

    def crop(self, *, start: Any, shape: Any, normalized: bool = True, remove_threshold: float = 0.1) -> Targets:
        """Crops to a window, given as fractions (with `normalized=False` in pixels): `start` (x, y) and `shape` (w, h). As in
        `ndd.slice` it begins and ends at whole pixels. Boxes with less than `remove_threshold` of their area inside are dropped
        with their labels.

        Args:
            start: (x, y) of the corner.
            shape: (width, height) of the window.
            normalized: `start` and `shape` are fractions of the image; False: pixels.
            remove_threshold: 0 to 1, the smallest share of a box's area that keeps it.
        """
        names = ("rel_start", "rel_shape") if normalized else ("start", "shape")
        where = dict(zip(names, (start, shape), strict=True))

        def cut(value: Any) -> Any:
            return window(value, axis_names="WH", **where)

        return self._moved(lambda: window_motion(self.images, **where), cut, cut, remove_threshold)

    def random_crop(self, *, rng: random.RNG | None = None, **how: Any) -> Targets:
        """Crops to a random window that keeps boxes: `how` are the arguments of `ndd.random_bbox_crop` except those of layouts
        and `crop_shape`. Boxes are first cut off at the border of the image.

        Args:
            rng: an `ndd.random.RNG`; without it the thread's default one.
            **how: arguments of `ndd.random_bbox_crop`, such as `thresholds`, `scaling` and `aspect_ratio`.

        Raises TypeError without boxes.
        """
        if self.boxes is None:
            raise TypeError("Targets.random_crop: expected `boxes`, by which windows are chosen, got none: use `crop`")
        _refuse(
            "random_crop", how, _OF_LAYOUTS, "boxes are left, top, right, bottom, in fractions, and so is the window"
        )
        inside = self._following(flip_motion(self.images), 0.0)
        boxes = inside.convert(format="xyxy", normalized=True).boxes
        start, shape, _, kept = random_bbox_crop(boxes, rng=rng, output_bbox_indices=True, **how)
        return inside.select_boxes(kept).crop(start=start, shape=shape, remove_threshold=0.0)

    def select_boxes(self, numbers: Any) -> Targets:
        """Selects boxes, with their other values.

        Args:
            numbers: integers (M,), numbers of boxes, from 0, in the order of the result; or (N,) bools, True for a box that
                stays; or a batch with those of each sample.

        Raises TypeError without boxes and for numbers of another type, RuntimeError for a box that does not exist.

        >>> import ndd
        >>> image = ndd.zeros(shape=[4, 4, 3], dtype=ndd.uint8, layout="HWC")
        >>> targets = ndd.Targets(image, [[0.0, 0.0, 0.5, 0.5], [0.5, 0.5, 1.0, 1.0]], labels=[7, 8])
        >>> targets.select_boxes([1]).labels.torch()
        tensor([8], dtype=torch.int32)
        """
        if self.boxes is None:
            raise TypeError("Targets.select_boxes: expected `boxes`, got none")
        kept = numbers if isinstance(numbers, Tensor | Batch) else received(_whole(numbers))
        return self._with(**self._left(kept, rows_left(self.boxes, kept, self.boxes)))

    def resize(self, *, remove_threshold: float = 0.1, **how: Any) -> Targets:
        """Resizes as `ndd.resize`. Fractions do not change, unless there is a region, `roi_start` to `roi_end`, or a negative
        size, which mirrors. Boxes with less than `remove_threshold` of their area in the region are dropped with their labels.

        Args:
            remove_threshold: 0 to 1, the smallest share of a box's area that keeps it.
            **how: arguments of `ndd.resize`, such as `size` or `resize_shorter`.

        Raises TypeError for arguments of `ndd.resize` that boxes and masks cannot follow.
        """
        _refuse("resize", how, ("save_attrs",), "it gives images and what belongs to them: read their shapes before")
        where = {k: v for k, v in how.items() if k in _RESIZES}
        return self._moved(
            lambda: resize_motion(self.images, **where),
            lambda v: resize(v, **how),
            lambda v: resize(v, **_of_masks(how)),
            0.0 if how.get("roi_start") is None else remove_threshold,
        )

    def rotate(
        self, *, angle: Any, keep_size: bool = False, size: Any = None, remove_threshold: float = 0.1, **how: Any
    ) -> Targets:
        """Rotates as `ndd.rotate`. Boxes become the smallest upright boxes that contain the rotated ones; they are cut off at
        the border, and dropped with their labels if less than `remove_threshold` is left.

        Args:
            angle: in degrees, counterclockwise; or a batch with a number for each sample.
            keep_size: the result is as large as the image; otherwise it contains the whole rotated image.
            size: (H, W) of the result in pixels.
            remove_threshold: 0 to 1, the smallest share of a box's area that keeps it.
            **how: further arguments of `ndd.rotate`, such as `fill_value` and `interp_type`.
        """
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
        """Transforms by `matrix`, 2 x 3, from pixels (x, y) of the input to pixels of the output (with `inverse_map` from
        output to input, the default of `ndd.warp_affine`); boxes as in `rotate`.

        Args:
            matrix: 2 x 3 numbers, in pixels; or a batch with a matrix for each sample.
            size: (H, W) of the result in pixels; default: that of the image.
            inverse_map: the matrix maps the output to the input.
            remove_threshold: 0 to 1, the smallest share of a box's area that keeps it.
            **how: further arguments of `ndd.warp_affine`, such as `fill_value` and `interp_type`.
        """
        where: dict[str, Any] = {"matrix": matrix, "size": size, "inverse_map": inverse_map}
        return self._turned(warp_affine, where, how, remove_threshold)

    def _turned(self, move: Any, where: dict[str, Any], how: dict[str, Any], remove_threshold: float) -> Targets:
        """Applies `rotate` or `warp_affine`, which take images HWC."""
        layout = self.images.layout or ""
        last = [i for i, c in enumerate(layout) if c != "C"] + [i for i, c in enumerate(layout) if c == "C"]

        def images(value: Any) -> Any:
            if last == sorted(last):
                return move(value, **where, **how)
            return transpose(move(transpose(value, perm=last), **where, **how), perm=np.argsort(last).tolist())

        of_masks = {"fill_value": 0, **where, **_of_masks(how)}
        return self._moved(
            lambda: turn_motion(self.images, **where), images, lambda v: move(v, **of_masks), remove_threshold
        )

    def _moved(
        self,
        motion_of: Callable[[], Any],
        images: Callable[[Any], Any],
        masks: Callable[[Any], Any],
        remove_threshold: float | None,
    ) -> Targets:
        """Passes images and masks through functions, and boxes and points through the motion. Nothing is dropped without a
        threshold."""
        left = self
        if self.boxes is not None or self.points is not None:
            left = self._following(motion_of(), remove_threshold)
        moved = {name: moved_ids(getattr(left, name), masks) for name in ("masks", "semantic")}
        return left._with(images=images(self.images), **moved)

    def _following(
        self, motion: Any, remove_threshold: float | None, box_format: tuple[str, bool] | None = None, **least: float
    ) -> Targets:
        """Boxes and points after a motion, without those that have left, and the values of those that stay."""
        format, normalized = box_format or (self.format, self.normalized)
        left, how = self, {"normalized": self.normalized, "made_normalized": normalized}
        if self.boxes is not None:
            formats = {"format": self.format, "made_format": format, "remove_threshold": remove_threshold}
            boxes, kept = boxes_moved(self.boxes, motion, **how, **formats, **least)
            left = self._with(**({"boxes": boxes} if remove_threshold is None else self._left(kept, boxes)))
        if left.points is not None:
            drop = remove_threshold is not None and left.point_labels is not None and left.points.ndim == 2
            points, kept = points_moved(left.points, motion, **how, drop=drop)
            labels = rows_left(left.point_labels, kept, left.points) if drop else left.point_labels
            left = left._with(points=points, point_labels=labels)
        return left._with(format=format, normalized=normalized)

    def _left(self, kept: Any, boxes: Any) -> dict[str, Any]:
        """The boxes that are left, and their values; values of the image do not change."""

        def rows(value: Any) -> Any:
            return None if value is None else rows_left(value, kept, self.boxes)

        changes = {"boxes": boxes, "labels": rows(self.labels)}
        changes["extra"] = {name: rows(value) if value.ndim else value for name, value in self.extra.items()}
        if self.masks is not None and self.masks.layout == "NHW":
            changes["masks"] = rows(self.masks)
        if self.points is not None and self.points.ndim > 2:
            changes |= {"points": rows(self.points), "point_labels": rows(self.point_labels)}
        return changes


_RESIZES = tuple(a.name for a in resize_motion.operator.arguments)
_RESERVED = {name for name in dir(Targets) if not name.startswith("__")} | {field.name for field in fields(Targets)}


def _refuse(method: str, how: dict[str, Any], names: tuple[str, ...], why: str) -> None:
    for name in how:
        if name in (*names, "batch_size"):
            raise TypeError(f"Targets.{method}: does not take `{name}`: {why}")


def _whole(numbers: Any) -> np.ndarray:
    """Numbers of boxes, or bools, as an array; TypeError for others."""
    array = np.asarray(numbers)
    if array.size and array.dtype.kind not in "biu":
        raise TypeError(f"Targets.select_boxes: numbers: expected integers or bools, got {array.dtype}")
    return array if array.size and array.dtype == bool else array.astype(np.int32)


def _of_masks(how: dict[str, Any]) -> dict[str, Any]:
    """The arguments for masks."""
    kept = {k: v for k, v in how.items() if k not in _OF_PIXELS}
    return kept | {"interp_type": _NEAREST} | ({"antialias": False} if "rule" in how else {})  # torchvision's "nearest"
