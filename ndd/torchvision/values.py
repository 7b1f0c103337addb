"""Conversion of the values that torchvision's functions take into ndd's values, and of results back into their kind.

`kind_of` returns the kind of a value. `pixels_of` returns its images as an `ndd.Batch` or `ndd.Tensor` with a layout, without
copying if memory can be shared, and a function that converts a result back: into a torch tensor with the same batch axes, a
`tv_tensor` with the same metadata, or a `Batch` of the same layout.

Neither torchvision nor Pillow is imported: their values exist only if they have been imported already.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

import ndd

LAYOUTS = {2: "HW", 3: "HWC", 4: "FHWC"}  # of values of ndd that have none
Pixels = ndd.Batch | ndd.Tensor
_TV_KINDS = {"Image": "image", "Video": "video", "Mask": "mask", "BoundingBoxes": "boxes", "KeyPoints": "points"}


@dataclass(frozen=True)
class Treated:
    """A tensor that is treated as `kind`, with the metadata that a tv_tensor of that kind would have."""

    kind: str
    tensor: torch.Tensor
    canvas_size: tuple[int, int] = (0, 0)
    format: str = "XYXY"
    clamping_mode: str | None = "soft"


class Fills(NamedTuple):
    """The fill values for `ndd.Targets`: for their images, and for their masks."""

    images: Any
    masks: Any = None

    @classmethod
    def of(cls, fill: Any) -> Fills:
        """Two fill values; a single one is for images, and masks get 0."""
        return fill if isinstance(fill, cls) else cls(fill)


def tv_tensors() -> Any:
    """torchvision's module of this name if it is imported, else None."""
    return sys.modules.get("torchvision.tv_tensors")


def kind_of(value: Any) -> str:
    """ "ndd", "targets", "tensor", "image", "video", "mask", "boxes", "points", "pil"; "" for anything else."""
    if isinstance(value, Treated):
        return value.kind
    if isinstance(value, Pixels):
        return "ndd"
    if isinstance(value, ndd.Targets):
        return "targets"
    if isinstance(value, torch.Tensor):
        return _kind_of_tensor(value)
    return "pil" if is_pil(value) else ""


def _kind_of_tensor(value: torch.Tensor) -> str:
    module = tv_tensors()
    if module is None or not isinstance(value, module.TVTensor):
        return "tensor"
    for name, kind in _TV_KINDS.items():
        if isinstance(value, getattr(module, name, ())):
            return kind
    return ""  # a class of the user's own


def is_pil(value: Any) -> bool:
    """Whether a value is a PIL image."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(value, module.Image)


def is_pure_tensor(inpt: Any) -> bool:
    """Whether a value is a torch tensor and none of torchvision's `tv_tensors`.

    Args:
        inpt: any value.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.is_pure_tensor(torch.zeros(3)), F.is_pure_tensor([0.0])
    (True, False)
    """
    module = tv_tensors()
    return isinstance(inpt, torch.Tensor) and not (module is not None and isinstance(inpt, module.TVTensor))


def plain(value: Any) -> torch.Tensor:
    """The tensor without the class of torchvision's; that of a `Treated` value."""
    return value.tensor if isinstance(value, Treated) else value.as_subclass(torch.Tensor)


def wrapped(tensor: torch.Tensor, like: Any, **metadata: Any) -> Any:
    """A tensor of the class and with the metadata of `like`, except for the metadata passed here."""
    module = tv_tensors()
    if module is None or not isinstance(like, module.TVTensor):
        return tensor
    return module.wrap(tensor, like=like, **metadata)


def count_of(value: Any) -> int | None:
    """The number of samples of a batch of ndd; None for all other values."""
    images = value.images if isinstance(value, ndd.Targets) else value
    return images.batch_size if isinstance(images, ndd.Batch) else None


def per_sample(value: Any, count: int | None, axes: int = 0) -> Any:
    """A parameter as ndd's operators take it. For a batch of `count` samples, an array or tensor whose first axis has this
    length is one value per sample. If a value is always a vector (`axes` 1), it needs a second axis."""
    if isinstance(value, ndd.Batch) or value is None:
        return value
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        if count is not None and value.ndim > axes and len(value) == count:
            return ndd.batch(np.ascontiguousarray(value))
        return value.tolist()
    return value


def rows_of(value: Any, count: int | None, axes: int = 0) -> np.ndarray:
    """The same as an array on the host: float64 `[N, ...]`, or `[1, ...]` if all samples share the parameter."""
    value = per_sample(value, count, axes)
    if isinstance(value, ndd.Batch):
        return value.torch().cpu().numpy().astype(np.float64)
    return np.asarray(value, np.float64)[None]


def varies(value: Any, count: int | None) -> bool:
    """Whether a parameter has a value for each sample."""
    return isinstance(per_sample(value, count), ndd.Batch)


def sizes_of(value: Pixels) -> np.ndarray:
    """Height and width of each image, int64 `[N, 2]`; waits for the images to be known."""
    shapes = value.shape if isinstance(value, ndd.Batch) else [value.shape]
    layout = layout_of(value)
    axes = [layout.index("H"), layout.index("W")]
    return np.array([[shape[a] for a in axes] for shape in shapes], np.int64).reshape(-1, 2)


def channels_of(value: Pixels) -> list[int]:
    """The number of channels of each image, 1 without an axis of channels; waits for the images to be known."""
    shapes, layout = value.shape if isinstance(value, ndd.Batch) else [value.shape], layout_of(value)
    return [shape[layout.index("C")] if "C" in layout else 1 for shape in shapes]


def layout_of(value: Pixels) -> str:
    """The layout of a value of ndd; by its rank if it has none."""
    return value.layout or LAYOUTS.get(value.ndim, "")


def pixels_of(value: Any) -> tuple[Pixels, Callable[[Pixels], Any]]:
    """The images in a value, and the function that converts images back into its kind."""
    if isinstance(value, Pixels):
        return value, lambda result: result
    tensor = plain(value)
    images, back = _of_tensor(tensor)
    return images, lambda result: wrapped(back(result), value)


def _of_tensor(tensor: torch.Tensor) -> tuple[ndd.Batch, Callable[[Pixels], torch.Tensor]]:
    """`[..., C, H, W]` as a batch CHW; two axes are one channel."""
    if tensor.requires_grad and torch.is_grad_enabled():
        warnings.warn("ndd.torchvision: no gradient flows back through images: the results are detached", stacklevel=2)
    if tensor.ndim < 2:
        raise TypeError(f"Input tensor should have at least two dimensions, but got {tensor.ndim}")
    alone = tensor.ndim == 2
    whole = tensor[None] if alone else tensor
    outer = whole.shape[:-3]
    count = math.prod(outer)
    flat = whole.reshape(count, *whole.shape[-3:]) if count else whole.new_zeros(1, *whole.shape[-3:])
    flat = flat.detach().contiguous()
    images = ndd.as_batch(flat.view(torch.uint8) if flat.dtype == torch.bool else flat, layout="CHW")

    def back(outcome: Pixels) -> torch.Tensor:
        result = outcome.torch()
        result = result.to(torch.bool) if tensor.dtype == torch.bool and result.dtype == torch.uint8 else result
        result = result[:count].reshape(*outer, *result.shape[1:])
        return result[0] if alone and len(result) == 1 else result

    return images, back
