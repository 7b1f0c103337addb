"""A resize of a batch with a crop after it, as one operator: only the crop's pixels are resampled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from torch.utils._pytree import tree_flatten, tree_unflatten

import ndd
from ndd.torchvision.v2 import draws
from ndd.torchvision.v2.arguments import fill_for
from ndd.torchvision.v2.functional.crops import filled_window
from ndd.torchvision.v2.functional.sizes import resized_size, resized_window
from ndd.torchvision.v2.geometry import CenterCrop, RandomHorizontalFlip, RandomVerticalFlip, Resize
from ndd.torchvision.v2.inputs import is_image_batch, is_masks_batch, remember_size, sizes_of
from ndd.torchvision.v2.random_crops import RandomCrop
from ndd.torchvision.v2.random_geometry import RandomResize, RandomShortestSize, ScaleJitter
from ndd.torchvision.v2.transform import in_order

_RESIZED = (Resize, RandomResize, RandomShortestSize, ScaleJitter)
_MIRRORED = {RandomHorizontalFlip: 1, RandomVerticalFlip: 2}  # the bits of `mirror`


def with_resized_windows(steps: Sequence[Callable]) -> list[Callable]:
    """The steps, with each sequence of a resize, flips and a crop merged into one."""
    result: list[Callable] = []
    rest = list(steps)
    while rest:
        behind = 1
        while behind < len(rest) and type(rest[behind]) in _MIRRORED:
            behind += 1
        if type(rest[0]) in _RESIZED and behind < len(rest) and type(rest[behind]) in (CenterCrop, RandomCrop):
            result.append(_ResizedWindow(rest[: behind + 1]))
            rest = rest[behind + 1 :]
        else:
            result.append(rest.pop(0))
    return result


class _ResizedWindow:
    """A resize, flips and a crop: one operator call for batches of images, with or without masks HW beside them."""

    def __init__(self, steps: list[Any]):
        self.steps = steps
        self.resize, self.crop = steps[0], steps[-1]
        self.alone = not any(step._same_on_batch for step in steps)

    def __call__(self, *inputs: Any) -> Any:
        flat, spec = tree_flatten(inputs[0] if len(inputs) == 1 else inputs)
        numbers = np.flatnonzero(self.resize._needs_transform_list(flat)).tolist() if self.alone else []
        images = [flat[i] for i in numbers if is_image_batch(flat[i])]
        masks = [i for i in numbers if is_masks_batch(flat[i])]
        if len(images) == 1 and len(images) + len(masks) == len(numbers) and len(masks) < 2 and self._fits(images[0]):
            for i, result in zip(numbers, self._windows([flat[i] for i in numbers], images[0]), strict=True):
                flat[i] = result
            return tree_unflatten(flat, spec)
        return in_order(self.steps, inputs)

    def _fits(self, images: Any) -> bool:
        """Whether the window lies in the image, or has a part of it and a constant border."""
        if not isinstance(images, ndd.Batch) or not images.batch_size or len(images.layout or "") != 3:
            return False
        crop, resize = self.crop, self.resize
        if type(crop) is RandomCrop:
            border = crop.padding or (0, 0, 0, 0)
            small = max(border[:2]) < crop.size[1] and max(border[2:]) < crop.size[0] and min(border) >= 0
            return crop.padding_mode == "constant" and small
        # The extra row or column of an odd extent is on the other side after mirroring.
        if type(resize) is not Resize or len(self.steps) > 2 or resize.size is None or resize.max_size is not None:
            return False
        return resize.size[0] >= crop.size[0] and resize.size[-1] >= crop.size[1]

    def _windows(self, values: list[Any], images: Any) -> list[Any]:
        n, crop = images.batch_size, self.crop
        size: Any = self.resize._params_of_batch([images], n).get("size", getattr(self.resize, "size", None))
        mirror = np.zeros(n, np.int32)
        for flip in self.steps[1:-1]:
            mirror ^= _MIRRORED[type(flip)] * draws.which_happen(n, flip.p).astype(np.int32)
        if type(crop) is CenterCrop:
            window: dict[str, Any] = {"crop": list(crop.size), "rounding": "even"}
            results = [self._resized(x, size, mirror, window) for x in values]
            return [remember_size(x, crop.size) for x in results]
        rows = np.broadcast_to(np.asarray(size), (n, np.asarray(size).shape[-1])) if size is not None else [None] * n
        most = getattr(self.resize, "max_size", None) if type(self.resize) is Resize else None
        requested = [None if row is None else row.tolist() for row in rows]
        extents = [resized_size(old, new, most) for old, new in zip(sizes_of(images).tolist(), requested, strict=True)]
        with draws.Numbers(expected=2 * n) as numbers:
            params = [crop.window_of(*extent, numbers) for extent in extents]
        sizes, wanted = np.array(extents), np.array(crop.size)
        # Where the windows lie in the resized images, without the border.
        corners = np.array([(p["top"] - p["padding"][1], p["left"] - p["padding"][0]) for p in params])
        low, high = np.maximum(corners, 0), np.minimum(corners + wanted, sizes)
        mirrored = np.stack((mirror & 2, mirror & 1), axis=1) > 0
        free = np.maximum(sizes - (high - low), 1)
        places = np.where(mirrored, sizes - high, low) / free
        window = {
            "crop": _rows(high - low, np.float32),
            "crop_pos_y": _rows(places[:, 0]),
            "crop_pos_x": _rows(places[:, 1]),
        }
        results = [self._resized(x, sizes, mirror, window) for x in values]
        if (high - low != wanted).any():
            results = [filled_window(x, corners - low, wanted, fill_for(crop._fill, x)) for x in results]
        return [remember_size(x, crop.size) for x in results]

    def _resized(self, value: Any, size: Any, mirror: np.ndarray, window: dict[str, Any]) -> Any:
        how = {"interpolation": self.resize.interpolation, "antialias": self.resize.antialias}
        # One number that is the same in every iteration can be predicted by look-ahead; arrays made for a batch cannot.
        sums = _rows(mirror, np.int32) if mirror.any() else 0
        return resized_window(value, size, mirror=sums, **window, **how)


def _rows(values: np.ndarray, kind: Any = np.float64) -> Any:
    return ndd.batch(np.ascontiguousarray(values.astype(kind)))
