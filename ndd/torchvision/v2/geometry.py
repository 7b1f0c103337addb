"""Transforms that move pixels, masks, boxes and points: always the same way, or with probability p."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Literal

import ndd
from ndd.torchvision.v2 import draws, functional as F
from ndd.torchvision.v2.arguments import check_padding, check_padding_mode, crop_size, fill_for, fills_by_type
from ndd.torchvision.v2.inputs import copy_size, has_kind, remember_size
from ndd.torchvision.v2.transform import GEOMETRY, RandomApplyTransform, Transform
from ndd.torchvision.values import kind_of


class _RandomFlip(RandomApplyTransform):
    _kinds = GEOMETRY
    _keeps_size = True
    _axis = "horizontal"

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.horizontal_flip(inpt) if self._axis == "horizontal" else F.vertical_flip(inpt)

    def _apart(self, chosen: list[Any], n: int) -> list[Any]:
        """A flip takes a number for each sample, so the batch need not be divided."""
        how = {"horizontal": 0, self._axis: draws.happenings(n, self.p)}
        moved = [x.flip(**how) if kind_of(x) == "targets" else ndd.flip(x, **how) for x in chosen]
        return list(map(copy_size, chosen, moved))


class RandomHorizontalFlip(_RandomFlip):
    """Mirrors left and right with probability `p`.

    Args:
        p: the probability.
        same_on_batch: decide once for a batch instead of for each sample.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RandomHorizontalFlip(p=1.0)(torch.tensor([[[1, 2, 3]]]))
    tensor([[[3, 2, 1]]])
    """


class RandomVerticalFlip(_RandomFlip):
    """Mirrors top and bottom with probability `p`.

    Args:
        p: the probability.
        same_on_batch: decide once for a batch instead of for each sample.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RandomVerticalFlip(p=1.0)(torch.tensor([[[1], [2], [3]]])).flatten()
    tensor([3, 2, 1])
    """

    _axis = "vertical"


class Resize(Transform):
    """Resizes to a size.

    Args:
        size: (height, width); or a number, or a list of one, for the shorter side, where the ratio is kept; or None, with
            `max_size` for the longer side.
        interpolation: an `InterpolationMode`, its word, or a constant of Pillow.
        max_size: the greatest length of the longer side, if `size` is one number.
        antialias: widen the filter where an image shrinks. PIL images always are.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.Resize(8)(torch.zeros(3, 16, 20)).shape
    torch.Size([3, 8, 10])
    """

    _kinds = GEOMETRY

    def __init__(
        self,
        size: int | Sequence[int] | None,
        interpolation: Any = "bilinear",
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        if isinstance(size, int):
            size = [size]
        elif isinstance(size, Sequence) and len(size) in (1, 2):
            size = list(size)
        elif size is not None:
            raise ValueError(
                f"size can be an integer, a sequence of one or two integers, or None, but got {size} instead."
            )
        elif not isinstance(max_size, int):
            raise ValueError(f"max_size must be an integer when size is None, but got {max_size} instead.")
        self.size = size
        self.interpolation = interpolation
        self.max_size = max_size
        self.antialias = antialias

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One value, resized."""
        result = F.resize(inpt, self.size, self.interpolation, self.max_size, self.antialias)
        return remember_size(result, self.size) if self.size is not None and len(self.size) == 2 else result


class CenterCrop(Transform):
    """Crops the middle of an image, with zeros around it if the image is smaller.

    Args:
        size: (height, width), or one number for both.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.CenterCrop(2)(torch.arange(16).reshape(1, 4, 4)).flatten()
    tensor([ 5,  6,  9, 10])
    """

    _kinds = GEOMETRY

    def __init__(self, size: int | Sequence[int]):
        super().__init__()
        self.size = crop_size(size)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One value, cropped."""
        return remember_size(F.center_crop(inpt, output_size=list(self.size)), self.size)


class _Crops(Transform):
    _kinds = GEOMETRY

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        targets = [x for x in flat_inputs if kind_of(x) == "targets"]
        if has_kind(flat_inputs, "boxes", "mask") or any(_has_more_than_images(x) for x in targets):
            raise TypeError(f"BoundingBoxes'es and Mask's are not supported by {type(self).__name__}()")

    def _passes(self, inpt: Any) -> bool:
        if kind_of(inpt) not in ("boxes", "points", "mask"):
            return False
        warnings.warn(
            f"{type(self).__name__}() is currently passing through inputs of type tv_tensors.{type(inpt).__name__}. "
            "This will likely change in the future.",
            stacklevel=2,
        )
        return True


def _has_more_than_images(targets: ndd.Targets) -> bool:
    parts = {field.name: getattr(targets, field.name) for field in fields(targets)}
    return any(isinstance(part, ndd.Batch | ndd.Tensor) for name, part in parts.items() if name != "images")


class FiveCrop(_Crops):
    """Five crops: top left, top right, bottom left, bottom right, middle, as a tuple.

    Args:
        size: (height, width), or one number for both.

    TypeError for masks and boxes; ValueError for an image that is smaller.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> [crop.item() for crop in v2.FiveCrop(1)(torch.arange(9).reshape(1, 3, 3))]
    [0, 2, 6, 8, 4]
    """

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = crop_size(size)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """The five crops of one value."""
        return inpt if self._passes(inpt) else F.five_crop(inpt, list(self.size))


class TenCrop(_Crops):
    """The crops of `FiveCrop`, and those of the mirrored image: a tuple of ten.

    Args:
        size: (height, width), or one number for both.
        vertical_flip: mirror top and bottom instead of left and right.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> [crop.item() for crop in v2.TenCrop(1)(torch.arange(3).reshape(1, 1, 3))]
    [0, 2, 0, 2, 1, 2, 0, 2, 0, 1]
    """

    def __init__(self, size: int | Sequence[int], vertical_flip: bool = False) -> None:
        super().__init__()
        self.size = crop_size(size)
        self.vertical_flip = vertical_flip

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """The ten crops of one value."""
        return inpt if self._passes(inpt) else F.ten_crop(inpt, list(self.size), vertical_flip=self.vertical_flip)


class Pad(Transform):
    """A border around the image.

    Args:
        padding: pixels on all sides; or [left and right, top and bottom]; or [left, top, right, bottom].
        fill: the value of the border: a number, one for each channel, None for 0, or a dict of these by the type of the value,
            with "others" for the rest. Batches of images, and of masks HW beside them, count as `tv_tensors.Image` and
            `tv_tensors.Mask`, also in `ndd.Targets`.
        padding_mode: "constant", "edge", "reflect" or "symmetric".

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.Pad(1, fill=7)(torch.zeros(1, 1, 1, dtype=torch.uint8))[0]
    tensor([[7, 7, 7],
            [7, 0, 7],
            [7, 7, 7]], dtype=torch.uint8)
    """

    _kinds = GEOMETRY

    def __init__(
        self,
        padding: int | Sequence[int],
        fill: Any = 0,
        padding_mode: Literal["constant", "edge", "reflect", "symmetric"] = "constant",
    ) -> None:
        super().__init__()
        check_padding(padding)
        check_padding_mode(padding_mode)
        self.padding = padding if isinstance(padding, int) else list(padding)
        self.fill = fill
        self._fill = fills_by_type(fill)
        self.padding_mode = padding_mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One value, padded."""
        padding: Any = self.padding
        return F.pad(inpt, padding=padding, fill=fill_for(self._fill, inpt), padding_mode=self.padding_mode)
