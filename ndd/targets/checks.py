"""The checks of the parts of `ndd.Targets`: immediately if their values exist, otherwise when they do."""

from __future__ import annotations

from typing import Any

from ndd._tensor import Batch, Tensor
from ndd.ops.boxes.target_geometry import masks_of, one_for_each

FORMATS = ("xyxy", "xywh", "cxcywh")
_IMAGES = {2: "HW", 3: "HWC", 4: "FHWC"}  # by rank, if there is no layout

Value = Tensor | Batch


def image_layout(images: Value) -> str:
    """The layout of images; ValueError if they are not images."""
    layout = images.layout or _IMAGES.get(images.ndim, "")
    if layout.removeprefix("F") not in ("HWC", "CHW", "HW"):
        raise ValueError(
            f"Targets: images: expected pixels, HWC, CHW or HW, with a leading F for video, got {images.dtype} "
            f"of {images.ndim} axes, layout {images.layout!r}"
        )
    return layout


def checked_masks(name: str, masks: Value, images: Value, image_layout: str) -> Value:
    """The masks with a layout, as large as their images."""
    layout = masks.layout
    objects = name == "masks"
    if not layout:
        shapes = (masks.shape if isinstance(masks, Batch) else [masks.shape]) if masks.ndim == 3 and objects else []
        layout = {2: "HW", 3: "HWC" if all(s[-1] == 1 for s in shapes) else "NHW"}.get(masks.ndim, "")
    if layout not in ("HW", "HWC") and not (objects and len(layout) == 3 and layout.endswith("HW")):
        expected = "HW, HWC or NHW" if objects else "HW or HWC"
        raise ValueError(
            f"Targets: {name}: expected {expected}, got {masks.dtype} of {masks.ndim} axes, layout {masks.layout!r}"
        )
    axes, image_axes = ([w.index(c) for c in "HW"] for w in (layout, image_layout))
    return _now(masks_of(masks, images, axes=axes, image_axes=image_axes, layout=layout, name=name), masks, images)


def checked_objects(values: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """Boxes, points, and values with a row for each of them."""
    boxes: Any = values["boxes"]
    points: Any = values["points"]
    labels: Any = values["point_labels"]
    if boxes is not None and boxes.ndim not in (1, 2):
        raise ValueError(f"Targets: boxes: expected shape (N, 4), got {boxes.ndim} axes")
    if points is not None and points.ndim not in (2, 3):
        raise ValueError(f"Targets: points: expected shape (P, 2), or (N, K, 2) of N boxes, got {points.ndim} axes")
    if labels is not None and points is None:
        raise ValueError("Targets: point_labels: expected points beside them, got none")
    if labels is not None and labels.ndim != points.ndim - 1:
        raise ValueError(
            f"Targets: point_labels: expected {points.ndim - 1} axes, those of the points but the last, got {labels.ndim}"
        )
    if boxes is not None:
        if values["labels"] is not None:
            values["labels"] = _one_for_each("labels", values["labels"], boxes, "box")
        extra = {k: _one_for_each(k, v, boxes, "box") if v.ndim else v for k, v in extra.items()}
        if points is not None and points.ndim == 3:
            values["points"] = points = _one_for_each("points", points, boxes, "box")
    if labels is not None:
        values["point_labels"] = _one_for_each("point_labels", labels, values["points"], "point")
    return {**values, "extra": extra}


def _one_for_each(name: str, value: Value, owners: Value, owner: str) -> Value:
    if not value.ndim:
        raise ValueError(f"Targets: {name}: expected one for each {owner}, got one number")
    return _now(one_for_each(value, owners, name=name, owner=owner), value, owners)


def _now(checked: Any, value: Value, other: Value) -> Any:
    """Checks now, if both values exist."""
    return checked.evaluate() if value._store is not None and other._store is not None else checked
