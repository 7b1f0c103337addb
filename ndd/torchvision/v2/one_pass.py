"""Steps that `Compose` merges for a batch of ndd: the same numbers in fewer passes over the pixels.

* `ToDtype(torch.float32, scale=True)` (`ToTensor`, `ConvertImageDtype`) of bytes, a `Normalize` after it, and a
  `RandomHorizontalFlip` right before it are one call of `ndd.crop_mirror_normalize`.
* `ToImage` and `PILToTensor`, which turn HWC into CHW, are put off until that call, or until the first transform that may
  depend on the layout. Until then a batch is the decoder's result, so that only those pixels are decoded that a crop after it
  needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

import ndd
from ndd.torchvision.v2 import draws
from ndd.torchvision.v2.conversion import ConvertImageDtype, PILToTensor, ToDtype, ToImage, ToPILImage, ToTensor
from ndd.torchvision.v2.geometry import RandomHorizontalFlip
from ndd.torchvision.v2.inputs import copy_size, is_image_batch, is_masks_batch
from ndd.torchvision.v2.pixel_values import Lambda, LinearTransformation, Normalize
from ndd.torchvision.v2.transform import Transform, in_order

_FIRST = (ToImage, PILToTensor)
_LOOKS_AT_THE_LAYOUT = (Lambda, LinearTransformation, ToPILImage)


def steps_for_batches(transforms: Sequence[Callable]) -> list[Callable]:
    """The transforms as steps for inputs with batches."""
    steps: list[Callable] = []
    waiting: Any = None  # the transform from HWC to CHW that is put off
    rest = list(transforms)
    while rest:
        transform = rest.pop(0)
        if type(transform) in _FIRST:
            waiting = waiting or transform
            continue
        if _scales(transform):
            between = rest.pop(0) if rest and type(rest[0]) in _FIRST else None
            flip = steps.pop() if steps and type(steps[-1]) is RandomHorizontalFlip else None
            normalize = rest.pop(0) if rest and type(rest[0]) is Normalize else None
            parts = (flip, waiting or between, transform, normalize)
            steps.append(_Normalised([part for part in parts if part is not None]))
            waiting = None
            continue
        if waiting is not None and not _works_in_any_layout(transform):
            steps.append(waiting)
            waiting = None
        steps.append(transform)
    return steps if waiting is None else [*steps, waiting]


def _scales(transform: Any) -> bool:
    """Whether the transform turns bytes into float32 from 0 to 1."""
    if type(transform) is ToTensor:
        return True
    if type(transform) not in (ToDtype, ConvertImageDtype) or transform.dtype is not torch.float32:
        return False
    return type(transform) is ConvertImageDtype or transform.scale


def _works_in_any_layout(transform: Any) -> bool:
    if not isinstance(transform, Transform) or isinstance(transform, _LOOKS_AT_THE_LAYOUT):
        return False
    inner = getattr(transform, "transforms", None)
    return transform.takes_batches if inner is None else all(map(_works_in_any_layout, inner))


class _Normalised:
    """An optional flip, the conversion of bytes to float32, and an optional `Normalize`: one call if the images are a batch of
    bytes."""

    def __init__(self, steps: list[Any]):
        self.steps = steps
        self.flip = steps[0] if type(steps[0]) is RandomHorizontalFlip else None
        self.normalize = steps[-1] if type(steps[-1]) is Normalize else None

    def __call__(self, *inputs: Any) -> Any:
        flat, spec = tree_flatten(inputs[0] if len(inputs) == 1 else inputs)
        number = self._number_of_images(flat)
        if number is not None:
            flat[number] = self._normalised(flat[number])
            return tree_unflatten(flat, spec)
        return in_order(self.steps, inputs)

    def _number_of_images(self, flat: list[Any]) -> int | None:
        """The index of the batch, or of its `ndd.Targets`; None if the steps must be applied one by one."""
        needed = np.flatnonzero(self.steps[-1]._needs_transform_list(flat)).tolist()
        masks = [i for i in needed if is_masks_batch(flat[i])]  # changed by a flip only
        needed = [i for i in needed if i not in masks]
        if len(needed) != 1 or (masks and self.flip is not None):
            return None
        images = _images_of(flat[needed[0]])
        if not isinstance(images, ndd.Batch) or not is_image_batch(images) or images.dtype is not ndd.uint8:
            return None
        mean, std = ([0.0], [1.0]) if self.normalize is None else (self.normalize.mean, self.normalize.std)
        fits = len(mean) == len(std) and len(mean) in (1, 3) and 0 not in std
        return needed[0] if fits else None

    def _normalised(self, value: Any) -> Any:
        flip, normalize, images = self.flip, self.normalize, _images_of(value)
        mirror: Any = 0
        if flip is not None:
            once = flip._same_on_batch
            mirror = int(draws.happens(flip.p)) if once else draws.happenings(images.batch_size, flip.p)
        first, layout = any(isinstance(step, (*_FIRST, ToTensor)) for step in self.steps), images.layout or ""
        shares = ([0.0], [1.0]) if normalize is None else (normalize.mean, normalize.std)
        mean, std = ([255.0 * share for share in each] for each in shares)

        def made(images: ndd.Batch) -> ndd.Batch:
            order = layout.replace("HWC", "CHW") if first else layout
            result = ndd.crop_mirror_normalize(images, mean=mean, std=std, mirror=mirror, output_layout=order)
            return copy_size(images, result)

        if not isinstance(value, ndd.Targets):
            return made(images)
        return value.flip(horizontal=mirror, images=made) if flip is not None else replace(value, images=made(images))


def _images_of(value: Any) -> Any:
    return value.images if isinstance(value, ndd.Targets) else value
