"""Transforms of boxes and key points: formats, clamping, and removing useless ones.

They work on torchvision's `tv_tensors` and on `ndd.Targets`, which drop the labels and masks of removed boxes too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from ndd.torchvision.v2 import functional as F
from ndd.torchvision.v2.arguments import getter_of_labels
from ndd.torchvision.v2.inputs import get_bounding_boxes, get_keypoints
from ndd.torchvision.v2.transform import Transform
from ndd.torchvision.values import kind_of, plain, wrapped


class _OfBoxes(Transform):
    _kinds = ("boxes",)


class ConvertBoundingBoxFormat(_OfBoxes):
    """Boxes in another format.

    Args:
        format: a member of `tv_tensors.BoundingBoxFormat` or its name: "XYXY", "XYWH", "CXCYWH", and those of rotated boxes.

    >>> import ndd
    >>> from ndd.torchvision import v2
    >>> image = ndd.zeros(shape=[8, 8, 3], dtype=ndd.uint8)
    >>> targets = ndd.Targets(image, boxes=[[0.0, 0.0, 0.5, 0.5], [0.5, 0.5, 0.5, 1.0]])
    >>> v2.ConvertBoundingBoxFormat("XYWH")(targets).format
    'xywh'
    """

    _kinds = ("boxes", "targets")

    def __init__(self, format: Any) -> None:
        super().__init__()
        self.format = format

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """The boxes in the format."""
        if kind_of(inpt) == "targets":
            return inpt.convert(format=str(getattr(self.format, "value", self.format)).lower())
        return F.convert_bounding_box_format(inpt, new_format=self.format)


class ClampBoundingBoxes(_OfBoxes):
    """Boxes cut off at the border of their image.

    Args:
        clamping_mode: "soft", "hard", None for no clamping, or "auto" for the mode that the boxes carry. For upright boxes,
            such as those of `ndd.Targets`, "soft", "hard" and "auto" are the same.
    """

    _kinds = ("boxes", "targets")

    def __init__(self, clamping_mode: Any = "auto") -> None:
        super().__init__()
        self.clamping_mode = clamping_mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """The boxes inside of their image."""
        if kind_of(inpt) == "targets":
            return inpt if self.clamping_mode is None else inpt.clamp(points=False)
        return F.clamp_bounding_boxes(inpt, clamping_mode=self.clamping_mode)


class SetClampingMode(_OfBoxes):
    """Sets the mode with which boxes are clamped from now on.

    Args:
        clamping_mode: "soft", "hard" or None.

    >>> from ndd.torchvision import v2
    >>> v2.SetClampingMode("hard").clamping_mode
    'hard'
    """

    def __init__(self, clamping_mode: Any) -> None:
        super().__init__()
        self.clamping_mode = clamping_mode
        if clamping_mode not in (None, "soft", "hard"):
            raise ValueError(f"clamping_mode must be soft, hard or None, got {clamping_mode}")

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Boxes with this mode."""
        boxes = inpt.clone()
        boxes.clamping_mode = self.clamping_mode
        return boxes


class ClampKeyPoints(Transform):
    """Key points moved to the nearest pixel of their image."""

    _kinds = ("points", "targets")

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """The points inside of their image."""
        if kind_of(inpt) == "targets":
            return inpt.clamp(boxes=False)
        return F.clamp_keypoints(inpt)


class _Sanitize(Transform):
    """The base of transforms that remove rows of one value, and the same rows of labels."""

    def forward(self, *inputs: Any) -> Any:
        """The structure without the removed rows."""
        structure = inputs[0] if len(inputs) == 1 else inputs
        flat, spec = tree_flatten(structure)
        if any(kind_of(x) == "targets" for x in flat):
            return tree_unflatten([self._without(x) if kind_of(x) == "targets" else x for x in flat], spec)
        find = getter_of_labels(self.labels_getter)
        labels = _checked_labels(None if find is None else find(structure))
        rows, valid = self._kept(flat)
        for label in labels or ():
            if rows.shape[0] != label.shape[0]:
                raise ValueError(self._mismatch(rows.shape, label.shape))
        params = {"valid": valid, "labels": labels}
        return tree_unflatten([self.transform(x, params) for x in flat], spec)

    labels_getter: str | Callable[[Any], Any] | None

    def _kept(self, flat: list[Any]) -> tuple[Any, torch.Tensor]:
        """The value whose rows are removed, and which of them stay."""
        raise NotImplementedError

    def _mismatch(self, rows: Any, labels: Any) -> str:
        raise NotImplementedError

    def _without(self, targets: Any) -> Any:
        """`ndd.Targets` without the removed boxes."""
        return targets.sanitize()


def _checked_labels(labels: Any) -> tuple[torch.Tensor, ...] | None:
    if labels is None or isinstance(labels, torch.Tensor):
        return None if labels is None else (labels,)
    several = labels if isinstance(labels, tuple | list) else [labels]
    for entry in several:
        if not isinstance(entry, torch.Tensor):
            raise ValueError(
                f"The labels in the input to forward() must be a tensor or None, got {type(entry)} instead."
            )
    return tuple(several)


def _is_label(value: Any, params: dict[str, Any]) -> bool:
    return any(value is label for label in params["labels"] or ())


class SanitizeBoundingBoxes(_Sanitize):
    """Removes boxes that are too small or reach out of their image, with their labels and masks.

    Args:
        min_size: the least width and height, from 1.
        min_area: the least area, from 1.
        labels_getter: "default" finds labels by their name in a dict (or in the dict that is second in a tuple); a function of
            the input that returns one or more tensors; None if there are none.

    Masks [N, H, W], if there are as many as boxes, lose the same rows. The boxes of `ndd.Targets` are cut off at the border
    first.

    >>> import ndd
    >>> from ndd.torchvision import v2
    >>> image = ndd.zeros(shape=[8, 8, 3], dtype=ndd.uint8)
    >>> targets = ndd.Targets(image, boxes=[[0.0, 0.0, 0.5, 0.5], [0.5, 0.5, 0.5, 1.0]])
    >>> v2.SanitizeBoundingBoxes(labels_getter=None)(targets).boxes.shape
    (1, 4)
    """

    def __init__(self, min_size: float = 1.0, min_area: float = 1.0, labels_getter: Any = "default") -> None:
        super().__init__()
        if min_size < 1:
            raise ValueError(f"min_size must be >= 1, got {min_size}.")
        self.min_size = min_size
        if min_area < 1:
            raise ValueError(f"min_area must be >= 1, got {min_area}.")
        self.min_area = min_area
        getter_of_labels(labels_getter)
        self.labels_getter = labels_getter

    def _kept(self, flat: list[Any]) -> tuple[Any, torch.Tensor]:
        boxes = get_bounding_boxes(flat)
        _, valid = F.sanitize_bounding_boxes(
            plain(boxes), boxes.format, tuple(boxes.canvas_size), self.min_size, self.min_area
        )
        return boxes, valid

    def _mismatch(self, rows: Any, labels: Any) -> str:
        return f"Number of boxes (shape={rows}) and must match the number of labels.Found labels with shape={labels})."

    def _without(self, targets: Any) -> Any:
        return targets.sanitize(min_size=self.min_size, min_area=self.min_area)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Boxes, masks or labels without the rows that are removed."""
        if _is_label(inpt, params):
            return inpt[params["valid"]]
        if kind_of(inpt) not in ("boxes", "mask"):
            return inpt
        if kind_of(inpt) == "mask" and (inpt.ndim < 1 or inpt.shape[0] != params["valid"].shape[0]):
            return inpt
        return wrapped(inpt[params["valid"]], inpt)


class SanitizeKeyPoints(_Sanitize):
    """Removes key points outside of their image, or groups with such a point, with their labels.

    Args:
        labels_getter: as for `SanitizeBoundingBoxes`; default: no labels.
    """

    def __init__(self, labels_getter: Any = None) -> None:
        super().__init__()
        getter_of_labels(labels_getter)
        self.labels_getter = labels_getter

    def _kept(self, flat: list[Any]) -> tuple[Any, torch.Tensor]:
        points = get_keypoints(flat)
        _, valid = F.sanitize_keypoints(plain(points), tuple(points.canvas_size))
        return points, valid

    def _mismatch(self, rows: Any, labels: Any) -> str:
        return f"Number of kepyoints (shape={rows}) must match the number of labels.Found labels with shape={labels})."

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Points or labels without the rows that are removed."""
        if _is_label(inpt, params):
            return inpt[params["valid"]]
        return wrapped(inpt[params["valid"]], inpt) if kind_of(inpt) == "points" else inpt
