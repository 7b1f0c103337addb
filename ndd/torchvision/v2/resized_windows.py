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
from ndd.torchvision.v2.inputs import is_image_batch, is_masks_batch, remember_size
from ndd.torchvision.v2.random_crops import RandomCrop, place_windows
from ndd.torchvision.v2.random_geometry import RandomResize, RandomShortestSize, ScaleJitter
from ndd.torchvision.v2.transform import in_order

_RESIZED = (Resize, RandomResize, RandomShortestSize, ScaleJitter)
_MIRRORED = (RandomHorizontalFlip, RandomVerticalFlip)


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
        crop, resize = self.crop, self.resize
        how = {"interpolation": resize.interpolation, "antialias": resize.antialias}
        if type(crop) is CenterCrop:
            window: dict[str, Any] = {"crop": list(crop.size), "rounding": "even"}
            results = [resized_window(x, resize.size, **how, **window) for x in values]
            return [remember_size(x, crop.size) for x in results]
        size, mirror = self._drawn(images)
        words = draws.words_of_batch(images.batch_size, 2).columns(0, 2, ndd.int64)
        padding = {"padding": crop.padding, "pad_if_needed": crop.pad_if_needed}
        most = getattr(resize, "max_size", None) if type(resize) is Resize else None
        size, extent, y, x, corners = resized_crops(
            images, words, size=size, max_size=most, mirror=mirror, wanted=list(crop.size), **padding
        )
        window = {"crop": extent, "crop_pos_y": y, "crop_pos_x": x, "mirror": mirror}
        results = [resized_window(value, size, **how, **window) for value in values]
        if crop.padding or crop.pad_if_needed:
            results = [filled_window(value, corners, crop.size, fill_for(crop._fill, value)) for value in results]
        return [remember_size(value, crop.size) for value in results]

    def _drawn(self, images: Any) -> tuple[Any, Any]:
        """The size and the `mirror` of each image."""
        n, resize = images.batch_size, self.resize
        if type(resize) is Resize:
            size: Any = resize.size
        elif type(resize) is RandomResize:
            size = draws.integers(n, resize.min_size, resize.max_size).columns(0, 1, ndd.float32)
        else:
            size = ndd.batch(resize._params_of_batch([images], n)["size"].astype(np.float32))
        mirror: Any = 0
        for flip in self.steps[1:-1]:
            happens = draws.happenings(n, flip.p)
            bits = happens if type(flip) is RandomHorizontalFlip else 2 * happens
            mirror = mirror ^ bits if isinstance(mirror, ndd.Batch) else bits
        return size, mirror


@ndd.operator(reads="anywhere", outputs=5, argument_shapes=False, register=False)
def resized_crops(
    images,
    words,
    /,
    *,
    size: ndd.PerSample[list[float]] = None,
    max_size: int | None = None,
    mirror: ndd.PerSample[int] = 0,
    wanted: list[int],
    padding: list[int] | None = None,
    pad_if_needed: bool = False,
):
    """The windows of `RandomCrop` in images that are resized and mirrored first: the size of the resized image, and the part of
    the window in it as `crop`, `crop_pos_y` and `crop_pos_x` of `resize_crop_mirror`; last, the corner of the window as seen
    from that part."""
    vectors, numbers = ndd.output(ndd.float32, 1), ndd.output(ndd.float32, 0)
    return vectors, vectors, numbers, numbers, ndd.output(ndd.int32, 1)


# A batch: NumPy computes the numbers of all samples at once.
@resized_crops.batch
def _(call, images, words, *, size, max_size, mirror, wanted, padding, pad_if_needed):
    layout = images.layout or ""
    extents = images.shapes[:, [layout.index("H"), layout.index("W")]].tolist()
    asked = [None] * call.n if size is None else size.rows().tolist()
    sizes = np.array([resized_size(*each, max_size) for each in zip(extents, asked, strict=True)])
    border = None if padding is None else padding.tolist()
    border, corners, _ = place_windows(sizes, np.stack(words.arrays), wanted.tolist(), border, pad_if_needed)
    corners = corners - border[:, 1::-1]  # without the border
    low, high = np.maximum(corners, 0), np.minimum(corners + wanted, sizes)
    mirrored = (mirror.each()[:, None] & (2, 1)) != 0
    places = np.where(mirrored, sizes - high, low) / np.maximum(sizes - (high - low), 1)
    results = sizes, high - low, places[:, 0], places[:, 1], corners - low
    return [np.ascontiguousarray(values, out.dtype.numpy) for values, out in zip(results, call.outs, strict=True)]
