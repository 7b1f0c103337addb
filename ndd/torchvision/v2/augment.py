"""Erasing a patch, mixing samples, and JPEG artifacts."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

import ndd
from ndd.random import host_draws
from ndd.torchvision.v2 import draws, functional as F
from ndd.torchvision.v2.arguments import check_sequence, getter_of_labels
from ndd.torchvision.v2.inputs import (
    copy_size,
    has_kind,
    is_image_batch,
    is_labels,
    query_chw,
    query_size,
    samples_at,
    sizes_of,
)
from ndd.torchvision.v2.transform import COLOURS, RandomApplyTransform, Transform
from ndd.torchvision.values import kind_of, wrapped


class RandomErasing(RandomApplyTransform):
    """Fills a random patch, with probability `p`.

    Args:
        p: the probability.
        scale: range of the patch's area as a share of the image's.
        ratio: range of its height / width, whose logarithm is uniform.
        value: the fill value: a number, one for each channel, or "random" for normal noise.
        inplace: write into the image (torch tensors alone).
        same_on_batch: one patch for all samples of a batch, which then have one size.

    An image in which no patch fits is not changed. Masks, boxes and key points pass through, with a warning.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> (v2.RandomErasing(p=1.0)(torch.ones(3, 20, 20)) == 0).any().item()
    True
    """

    _kinds = COLOURS
    _keeps_size = True

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: Any = 0.0,
        inplace: bool = False,
        *,
        same_on_batch: bool = False,
    ):
        super().__init__(p=p, same_on_batch=same_on_batch)
        if not isinstance(value, Number | str | tuple | list):
            raise TypeError("Argument value should be either a number or str or a sequence")
        if isinstance(value, str) and value != "random":
            raise ValueError("If value is str, it should be 'random'")
        if not isinstance(scale, Sequence):
            raise TypeError("Scale should be a sequence")
        if not isinstance(ratio, Sequence):
            raise TypeError("Ratio should be a sequence")
        if scale[0] > scale[1] or ratio[0] > ratio[1]:
            warnings.warn("Scale and ratio should be of kind (min, max)", stacklevel=2)
        if scale[0] < 0 or scale[1] > 1:
            raise ValueError("Scale should be between 0 and 1")
        self.scale = scale
        self.ratio = ratio
        if isinstance(value, int | float):
            self.value: Any = [float(value)]
        elif isinstance(value, str):
            self.value = None
        else:
            self.value = [float(v) for v in value] if isinstance(value, tuple | list) else value
        self.inplace = inplace
        self._log_ratio = draws.logarithms(ratio)

    @staticmethod
    def get_params(
        img: Any, scale: Sequence[float], ratio: Sequence[float], value: list[float] | None = None
    ) -> tuple[int, int, int, int, Any]:
        """Top, left, height and width of a patch, and its new pixels; if none fits, the whole image and its own pixels.

        Args:
            img: the image `[..., C, H, W]`.
            scale: smallest and largest share of the image's area.
            ratio: smallest and largest height / width.
            value: one number, or one for each channel; None: normal noise.
        """
        chw = query_chw([img])
        drawn = draws.patch(chw, scale, draws.logarithms(ratio), value)
        return (0, 0, chw[1], chw[2], img) if drawn is None else drawn

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The patch: top `i`, left `j`, height `h`, width `w`, and its new pixels `v`, None if no patch fits."""
        chw = query_chw(flat_inputs)
        if self.value is not None and len(self.value) not in (1, chw[0]):
            raise ValueError(
                f"If value is a sequence, it should have either a single value or {chw[0]} (number of inpt channels)"
            )
        drawn = draws.patch(chw, self.scale, self._log_ratio, self.value)
        return dict(zip("ijhwv", (0, 0, *chw[1:], None) if drawn is None else drawn, strict=True))

    def _each(self, chosen: list[Any], params: dict[str, Any]) -> list[Any]:
        for x in chosen:
            if kind_of(x) in ("boxes", "points", "mask"):
                warnings.warn(
                    f"{type(self).__name__}() is currently passing through inputs of type tv_tensors.{type(x).__name__}. "
                    "This will likely change in the future.",
                    stacklevel=2,
                )
        return super()._each(chosen, params)

    def _apart(self, chosen: list[Any], n: int) -> list[Any]:
        """A patch without pixels leaves a sample unchanged, so the batch need not be divided."""
        if self._is_alike(chosen):
            return [self._erased(chosen[0], n)]
        drawn = [self.make_params(each) if draws.happens(self.p) else {} for each in samples_at(chosen, n)]
        erased = [bool(each) and each["v"] is not None for each in drawn]
        if not any(erased):
            return chosen
        params: dict[str, Any] = {
            key: np.array([d[key] if e else 0 for d, e in zip(drawn, erased, strict=True)]) for key in "ijhw"
        }
        fills = [d["v"] for d, e in zip(drawn, erased, strict=True) if e]
        params["v"] = fills[0]
        if self.value is None:
            empty = fills[0].new_zeros(fills[0].shape[0], 0, 0)
            noise = [d["v"] if e else empty for d, e in zip(drawn, erased, strict=True)]
            bytes_wanted = any(getattr(x, "dtype", None) is ndd.uint8 for x in chosen)
            params["v"] = ndd.batch([v.to(torch.uint8) for v in noise] if bytes_wanted else noise, layout="CHW")
        return self._each(chosen, params)

    def _is_alike(self, chosen: list[Any]) -> bool:
        """Whether all values are images of one size, erased with one number, so that nothing has to wait for them."""
        own = type(self).make_params is RandomErasing.make_params and type(self).transform is RandomErasing.transform
        if not own or len(chosen) != 1 or not is_image_batch(chosen[0]) or self.value is None or len(self.value) != 1:
            return False
        sizes = sizes_of(chosen[0])
        return bool((sizes == sizes[:1]).all())

    def _erased(self, images: Any, n: int) -> Any:
        height, width = sizes_of(images)[0].tolist()
        how = self.p, tuple(self.scale), tuple(self._log_ratio.tolist()), height, width
        drawn = host_draws.draw((draws.patches, *how), n)
        where = {"anchor": drawn.columns(0, 2, ndd.int32), "shape": drawn.columns(2, 2, ndd.int32), "axis_names": "HW"}
        fill = torch.tensor(self.value[0])
        fill = fill.to(torch.uint8) if images.dtype is ndd.uint8 else fill  # as torch writes it into bytes
        return copy_size(images, ndd.erase(images, fill_value=float(fill), **where))

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One image with its patch erased."""
        if params["v"] is None:
            return inpt
        return F.erase(inpt, **params, inplace=self.inplace)


class _Mixing(Transform):
    """The base of transforms that mix each sample of a batch with the previous one, and their labels in the same proportion."""

    _kinds = ("ndd", "tensor", "image", "video")

    def __init__(self, *, alpha: float = 1.0, num_classes: int | None = None, labels_getter: Any = "default") -> None:
        super().__init__()
        self.alpha = float(alpha)
        self._dist = torch.distributions.Beta(torch.tensor([alpha]), torch.tensor([alpha]))
        self.num_classes = num_classes
        getter_of_labels(labels_getter)
        self._labels_getter = labels_getter

    def forward(self, *inputs: Any) -> Any:
        """The structure with images and labels mixed."""
        structure = inputs[0] if len(inputs) == 1 else inputs
        flat, spec = tree_flatten(structure)
        if has_kind(flat, "pil", "boxes", "mask", "points", "targets"):
            raise ValueError(
                f"{type(self).__name__}() does not support PIL images, bounding boxes, keypoints and masks."
            )
        find = getter_of_labels(self._labels_getter)
        labels = None if find is None else find(structure)
        self._check_labels(labels)
        number = next((i for i, x in enumerate(flat) if x is labels), None)
        if number is None:
            raise ValueError(
                f"{type(self).__name__}: labels_getter: expected one of the values of the input, got another "
                f"{type(labels).__name__}: change labels before or behind this transform"
            )
        needed = self._needs_transform_list(flat)
        needed[number] = False
        params = self.make_params([x for x, needs in zip(flat, needed, strict=True) if needs])
        params |= {"batch_size": _rows(labels)}
        result = [self._mixed_image(x, params) if needs else x for x, needs in zip(flat, needed, strict=True)]
        result[number] = self._mixed_labels(labels, params)
        return tree_unflatten(result, spec)

    def _check_labels(self, labels: Any) -> None:
        if not is_labels(labels):
            raise ValueError(f"The labels must be a tensor, but got {type(labels)} instead.")
        axes = labels.ndim + isinstance(labels, ndd.Batch)
        if axes not in (1, 2):
            raise ValueError(
                "labels should be index based with shape (batch_size,) or probability based with shape "
                f"(batch_size, num_classes), but got a tensor of shape {labels.shape} instead."
            )
        if axes == 1 and self.num_classes is None:
            raise ValueError("num_classes must be passed if the labels are index-based (1D)")
        classes = None if axes == 1 else (labels.shape[0][-1] if isinstance(labels, ndd.Batch) else labels.shape[-1])
        if classes is not None and self.num_classes is not None and classes != self.num_classes:
            raise ValueError(
                "When passing 2D labels, the number of elements in last dimension must match num_classes: "
                f"{classes} != {self.num_classes}. You can Leave num_classes to None."
            )

    def _mixed_image(self, image: Any, params: dict[str, Any]) -> Any:
        n = params["batch_size"]
        if not isinstance(image, ndd.Batch):
            axes = 5 if kind_of(image) == "video" else 4
            if image.ndim != axes:
                raise ValueError(f"Expected a batched input with {axes} dims, but got {image.ndim} dimensions instead.")
        if _rows(image) != n:
            raise ValueError(
                "The batch size of the image or video does not match the batch size of the labels: "
                f"{_rows(image)} != {n}."
            )
        return self.transform(image, params)

    def _mixed_labels(self, labels: Any, params: dict[str, Any]) -> Any:
        share = params["lam_adjusted"] if "lam_adjusted" in params else params["lam"]
        tensor = labels.torch() if isinstance(labels, ndd.Batch | ndd.Tensor) else labels
        one_by_index = tensor.ndim == 1
        hot = torch.nn.functional.one_hot(tensor.long(), num_classes=self.num_classes or -1) if one_by_index else tensor
        hot = hot if hot.dtype.is_floating_point else hot.float()
        mixed = hot.roll(1, 0).mul_(1.0 - share).add_(hot.mul(share))
        return ndd.as_batch(mixed) if isinstance(labels, ndd.Batch) else mixed


def _rows(value: Any) -> int:
    return value.batch_size if isinstance(value, ndd.Batch) else value.shape[0]


def _rolled(batch: ndd.Batch) -> ndd.Batch:
    """Each sample in the place of the next."""
    n = batch.batch_size
    return batch.select([(i - 1) % n for i in range(n)])


class MixUp(_Mixing):
    """Mixes each sample of a batch with the one before it, and their labels in the same proportion.

    Args:
        alpha: both parameters of the Beta distribution of the share.
        num_classes: the number of classes; needed if labels are indices, `[N]`.
        labels_getter: "default" finds labels as the second of a tuple, or by their name in a dict; or a function of the input.

    Images are torch tensors `[N, C, H, W]`, or an `ndd.Batch` of floats of one size; labels `[N]` or `[N, num_classes]`, or a
    Batch of these. One share is drawn for a batch. Labels come out as floats `[N, num_classes]`.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> [t.shape for t in v2.MixUp(num_classes=5)(torch.zeros(4, 3, 8, 8), torch.tensor([0, 1, 2, 3]))]
    [torch.Size([4, 3, 8, 8]), torch.Size([4, 5])]
    """

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The share of each sample: `lam`."""
        return {"lam": float(self._dist.sample(()))}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """The images of a batch, mixed."""
        share = params["lam"]
        if isinstance(inpt, ndd.Batch):
            return _rolled(inpt) * (1.0 - share) + inpt * share
        return wrapped(inpt.roll(1, 0).mul_(1.0 - share).add_(inpt.mul(share)), inpt)


class CutMix(_Mixing):
    """Puts a window of the previous sample into each sample of a batch, and mixes their labels by its area.

    Args:
        alpha, num_classes, labels_getter: as for `MixUp`.

    Images and labels are those of `MixUp`, of any element type. One window is drawn for a batch.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> [t.shape for t in v2.CutMix(num_classes=5)(torch.zeros(4, 3, 8, 8), torch.tensor([0, 1, 2, 3]))]
    [torch.Size([4, 3, 8, 8]), torch.Size([4, 5])]
    """

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The window `box` (left, top, right, bottom), and the share of each sample that is left: `lam_adjusted`."""
        share = float(self._dist.sample(()))
        height, width = query_size(flat_inputs)
        x, y = draws.integer(0, width), draws.integer(0, height)
        half = 0.5 * math.sqrt(1.0 - share)
        across, down = int(half * width), int(half * height)
        box = max(x - across, 0), max(y - down, 0), min(x + across, width), min(y + down, height)
        return {"box": box, "lam_adjusted": float(1.0 - (box[2] - box[0]) * (box[3] - box[1]) / (width * height))}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """The images of a batch, each with a window of the previous one."""
        left, top, right, bottom = params["box"]
        if isinstance(inpt, ndd.Batch):
            return _pasted(inpt, params["box"])
        result = inpt.clone()
        result[..., top:bottom, left:right] = inpt.roll(1, 0)[..., top:bottom, left:right]
        return wrapped(result, inpt)


def _pasted(images: ndd.Batch, box: tuple[int, int, int, int]) -> ndd.Batch:
    whole = images.torch()
    layout = images.layout or "HWC"
    where = [slice(None)] * whole.ndim
    for letter, begin, end in (("H", box[1], box[3]), ("W", box[0], box[2])):
        where[1 + layout.index(letter)] = slice(begin, end)
    result = whole.clone()
    result[tuple(where)] = whole.roll(1, 0)[tuple(where)]
    return ndd.as_batch(result, layout=images.layout)


class JPEG(Transform):
    """Adds JPEG artifacts: encodes and decodes with a random quality.

    Args:
        quality: 1 to 100, or a range of it.
        same_on_batch: one quality for all samples of a batch.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.JPEG(quality=(50, 90))(torch.zeros(3, 16, 16, dtype=torch.uint8)).shape
    torch.Size([3, 16, 16])
    """

    _kinds = COLOURS
    _keeps_size = True

    def __init__(self, quality: int | Sequence[int], *, same_on_batch: bool = False):
        super().__init__()
        if isinstance(quality, bool):
            raise TypeError("quality can't be bool")
        if isinstance(quality, int):
            quality = [quality, quality]
        else:
            check_sequence(quality, "quality", (2,))
        integers = isinstance(quality[0], int) and isinstance(quality[1], int)
        if not (integers and 1 <= quality[0] <= quality[1] <= 100):
            raise ValueError(f"quality must be an integer from 1 to 100, got quality ={quality!r}")
        self.quality = quality
        self._same_on_batch = same_on_batch

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The `quality`."""
        return {"quality": int(torch.randint(self.quality[0], self.quality[1] + 1, ()))}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One image, encoded and decoded."""
        return F.jpeg(inpt, quality=params["quality"])
