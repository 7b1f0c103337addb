"""The inputs of a transform: a structure of values, some of them images, with their kinds, sizes and numbers of samples.

A batch of ndd stands for its samples. When a transform draws parameters for sample i, it sees a `SampleOf` with the size of
that sample in place of each batch.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

import ndd
from ndd.torchvision import values
from ndd.torchvision.v2 import functional as F
from ndd.torchvision.values import kind_of

PIXELS = ("ndd", "tensor", "image", "video", "pil")
_SIZED = (*PIXELS, "mask", "boxes", "points")


class SampleOf:
    """One sample of a batch, or of `ndd.Targets`, as far as its parameters depend on it."""

    __slots__ = ("batch", "number")

    def __init__(self, batch: Any, number: int):
        self.batch, self.number = batch, number

    def chw(self) -> tuple[int, int, int]:
        """Channels, height, width."""
        return tuple(chw_of(self.batch)[self.number].tolist())


def is_pil_image(value: Any) -> bool:
    """Whether a value is an image of Pillow."""
    return kind_of(value) == "pil"


def is_image_batch(value: Any) -> bool:
    """Whether the layout of a value of ndd is that of images or videos with channels."""
    return kind_of(value) == "ndd" and set("HWC") <= set(value.layout or "")


def is_masks_batch(value: Any) -> bool:
    """Whether a value of ndd beside images is labels of pixels."""
    return kind_of(value) == "ndd" and value.layout == "HW"


def is_labels(value: Any) -> bool:
    """Whether a value can be labels by itself: a plain torch tensor, or a value of ndd."""
    return kind_of(value) in ("tensor", "ndd")


def needs_transform(flat: list[Any], types: tuple[Any, ...]) -> list[bool]:
    """Which values of a structure are transformed: values of these types, by torchvision's rule for plain tensors.

    If some value is an image by its class or layout, plain tensors are not transformed; otherwise the first one counts as an
    image. A value of ndd without a layout is a plain tensor if it has three axes or more. A value with a layout other than an
    image's (labels, boxes) is not transformed.
    """
    guess = not any(kind_of(x) in ("image", "video", "pil", "targets") or is_image_batch(x) for x in flat)
    chosen = []
    for x in flat:
        wanted, kind = check_type(x, types), kind_of(x)
        if kind == "ndd" and types != (object,):
            wanted = wanted and (is_image_batch(x) or is_masks_batch(x) or (not x.layout and x.ndim >= 3 and guess))
            guess = guess and not (wanted and not x.layout)
        elif wanted and kind == "tensor":
            wanted, guess = guess, False
        chosen.append(wanted)
    return chosen


def check_type(obj: Any, types_or_checks: tuple[type | Callable[[Any], bool], ...]) -> bool:
    """Whether a value is of one of the types, or passes one of the checks.

    Args:
        obj: any value.
        types_or_checks: classes, and functions that return True for values that pass.

    >>> from ndd.torchvision import v2
    >>> v2.check_type(3, (str, lambda x: x > 2))
    True
    """
    return any(isinstance(obj, t) if isinstance(t, type) else t(obj) for t in types_or_checks)


def has_any(flat_inputs: list[Any], *types_or_checks: type | Callable[[Any], bool]) -> bool:
    """Whether some value is of one of the types, or passes one of the checks.

    Args:
        flat_inputs: the values.
        *types_or_checks: classes, and functions that return True for values that pass.

    >>> from ndd.torchvision import v2
    >>> v2.has_any([3, "a"], float, str)
    True
    """
    return any(check_type(x, types_or_checks) for x in flat_inputs)


def has_all(flat_inputs: list[Any], *types_or_checks: type | Callable[[Any], bool]) -> bool:
    """Whether for each of the types and checks there is a value.

    Args:
        flat_inputs: the values.
        *types_or_checks: classes, and functions that return True for values that pass.

    >>> from ndd.torchvision import v2
    >>> v2.has_all([3, "a"], int, str)
    True
    """
    return all(any(check_type(x, (each,)) for x in flat_inputs) for each in types_or_checks)


def has_kind(flat_inputs: list[Any], *kinds: str) -> bool:
    """Whether some value is of one of these kinds, see `values.kind_of`."""
    return any(kind_of(x) in kinds for x in flat_inputs)


def get_bounding_boxes(flat_inputs: list[Any]) -> Any:
    """The first `tv_tensors.BoundingBoxes`; ValueError if there are none.

    Args:
        flat_inputs: the values of a structure.
    """
    return _first(flat_inputs, "boxes", "No bounding boxes were found in the sample")


def get_keypoints(flat_inputs: list[Any]) -> Any:
    """The first `tv_tensors.KeyPoints`; ValueError if there are none.

    Args:
        flat_inputs: the values of a structure.
    """
    return _first(flat_inputs, "points", "No keypoints were found in the sample")


def _first(flat: list[Any], kind: str, missing: str) -> Any:
    for x in flat:
        if kind_of(x) == kind:
            return x
    raise ValueError(missing)


def query_chw(flat_inputs: list[Any]) -> tuple[int, int, int]:
    """Channels, height and width of the images, which must all agree.

    Args:
        flat_inputs: the values of a structure; values that are not images are ignored.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.query_chw([torch.zeros(3, 40, 60), "a label"])
    (3, 40, 60)
    """
    sizes = {chw for x in flat_inputs for chw in _chw(x)}
    if not sizes:
        raise TypeError("No image or video was found in the sample")
    if len(sizes) > 1:
        raise ValueError(f"Found multiple CxHxW dimensions in the sample: {_listed(sizes)}")
    return sizes.pop()


def query_size(flat_inputs: list[Any]) -> tuple[int, int]:
    """Height and width of the images, masks, boxes and key points, which must all agree.

    Args:
        flat_inputs: the values of a structure; values without a size are ignored.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.query_size([torch.zeros(3, 40, 60)])
    (40, 60)
    """
    sizes: set[Any] = set()
    for x in flat_inputs:
        if isinstance(x, SampleOf) or kind_of(x) in ("ndd", "targets"):
            sizes |= {chw[1:] for chw in _chw(x)}
        elif kind_of(x) in _SIZED:
            sizes.add(tuple(F.get_size(x)))
    if not sizes:
        raise TypeError("No image, video, mask, bounding box of keypoint was found in the sample")
    if len(sizes) > 1:
        raise ValueError(f"Found multiple HxW dimensions in the sample: {_listed(sizes)}")
    return sizes.pop()


def _listed(sizes: set[Any]) -> str:
    *others, last = sorted(sizes)
    return f"{', '.join(map(str, others))} and {last}"


def _chw(x: Any) -> list[Any]:
    """Channels, height and width of an image, or of the images of a batch, which may differ."""
    if isinstance(x, SampleOf):
        return [x.chw()]
    if kind_of(x) in ("ndd", "targets"):
        return [tuple(chw) for chw in chw_of(x).tolist()]
    return [tuple(F.get_dimensions(x))] if kind_of(x) in PIXELS else []


# ---- batches


def count_of(flat: list[Any]) -> int | None:
    """The number of samples of the batches in a structure; None without batches. ValueError if they disagree."""
    counts = {n for x in flat if (n := values.count_of(x)) is not None}
    if len(counts) > 1:
        raise ValueError(f"the batches of one input have different numbers of samples: {sorted(counts)}")
    return counts.pop() if counts else None


_known: dict[int, tuple[Any, np.ndarray]] = {}


def remember_size(batch: Any, size: Any) -> Any:
    """Notes the sizes that the images of a batch will have, so that no code has to wait for the images. Returns the batch."""
    pixels = batch.images if isinstance(batch, ndd.Targets) else batch
    if isinstance(pixels, ndd.Batch):
        key = id(pixels)
        rows = np.broadcast_to(np.asarray(size, np.int64), (pixels.batch_size, 2))
        _known[key] = (weakref.ref(pixels, lambda _: _known.pop(key, None)), rows)
    return batch


def copy_size(batch: Any, result: Any) -> Any:
    """Notes that the images of `result` are as large as those of `batch`, if that is known. Returns `result`."""
    pixels = batch.images if isinstance(batch, ndd.Targets) else batch
    known = _known.get(id(pixels))
    return result if known is None or known[0]() is not pixels else remember_size(result, known[1])


def sizes_of(batch: Any) -> np.ndarray:
    """Height and width of each image, int64 `[N, 2]`; waits for the images unless their sizes are already known."""
    pixels = batch.images if isinstance(batch, ndd.Targets) else batch
    known = _known.get(id(pixels))
    return known[1] if known is not None and known[0]() is pixels else values.sizes_of(pixels)


def chw_of(batch: Any) -> np.ndarray:
    """Channels, height and width of each image, int64 `[N, 3]`; a value without channels counts as one."""
    pixels = batch.images if isinstance(batch, ndd.Targets) else batch
    return np.column_stack((np.array(values.channels_of(pixels), np.int64), sizes_of(pixels)))


def samples_at(chosen: list[Any], n: int) -> list[list[Any]]:
    """The values of a structure as each of `n` samples has them."""
    return [[x if values.count_of(x) is None else SampleOf(x, i) for x in chosen] for i in range(n)]


def samples_of(value: Any, places: list[int]) -> Any:
    """Some samples of a batch or of `ndd.Targets` of batches; any other value unchanged."""
    return over_batches(value, lambda batch: batch.select(places))


def over_batches(value: Any, move: Callable[[Any], Any]) -> Any:
    """A batch, or all batches in `ndd.Targets`, through `move`; any other value unchanged."""
    return over_parts([value], ndd.Batch, lambda column: move(column[0]))


def over_parts(column: list[Any], kind: type, make: Callable[[list[Any]], Any]) -> Any:
    """The result of `make` for values of this kind, or for each part of `ndd.Targets` and dicts of them; otherwise the first
    value."""
    first = column[0]
    if isinstance(first, kind):
        return make(column)
    if isinstance(first, Mapping):
        return {key: over_parts([part[key] for part in column], kind, make) for key in first}
    if not isinstance(first, ndd.Targets):
        return first
    names = [field.name for field in dataclasses.fields(first)]
    parts = {name: over_parts([getattr(part, name) for part in column], kind, make) for name in names}
    return dataclasses.replace(first, **parts)


def joined(parts: list[Any], group: np.ndarray) -> Any:
    """Batches, or `ndd.Targets` of batches, put together: sample i comes from `parts[group[i]]`, and samples of a part stay in
    order."""

    def one_after_the_other(batches: list[Any]) -> Any:
        works = [lambda _, batch=batch: batch for batch in batches]
        return ndd.auto_aug.select(works, ndd.batch(group), ndd.batch(group))

    return over_parts(parts, ndd.Batch, one_after_the_other)


def per_group(
    group: np.ndarray, works: list[Callable[[list[Any], np.ndarray], list[Any]]], flat: list[Any]
) -> list[Any]:
    """Each sample through the work of its group: `works[k](values, places)` gets the samples at `places`, those with `group` k.

    Values that are not batches, and values that no work changes, are returned unchanged.
    """
    numbers = np.unique(group).tolist()
    if len(numbers) == 1:
        return works[numbers[0]](flat, np.arange(len(group)))
    result = []
    for k in numbers:
        places = np.flatnonzero(group == k)
        result.append(works[k]([samples_of(x, places.tolist()) for x in flat], places))
    order = np.searchsorted(numbers, group).astype(np.int32)
    columns = zip(flat, zip(*result, strict=True), strict=True)
    return [joined(list(parts), order) if values.count_of(x) is not None else x for x, parts in columns]


def unchanged(flat: list[Any], places: np.ndarray) -> list[Any]:
    """The work for samples that do not change."""
    return flat


def stacked(params: list[dict[str, Any]]) -> dict[str, Any]:
    """The parameters of the samples as one set for the batch: arrays with a value for each sample, None where all have None."""
    return {name: _column([each[name] for each in params]) for name in params[0]}


def _column(column: list[Any]) -> Any:
    first = column[0]
    if all(each is None for each in column):
        return None
    if isinstance(first, torch.Tensor):
        return torch.stack(column) if len({each.shape for each in column}) == 1 else ndd.batch(column)
    return np.array(column)
