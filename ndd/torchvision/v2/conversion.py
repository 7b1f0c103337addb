"""Transforms of one type of value into another."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch

import ndd
from ndd.torchvision.v2 import functional as F
from ndd.torchvision.v2.inputs import is_pil_image
from ndd.torchvision.v2.transform import Transform
from ndd.torchvision.values import is_pure_tensor, kind_of, tv_tensors

_NDD = (ndd.Batch, ndd.Tensor, ndd.Targets)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


class _ToChannelsFirst(Transform):
    """The base of transforms from images to tensors, channels first. An HWC batch of ndd stands for PIL images, and becomes
    CHW."""

    def _channels_first(self, value: Any) -> Any:
        if kind_of(value) == "targets":
            return replace(value, images=self._channels_first(value.images))
        layout = value.layout or {3: "HWC", 4: "FHWC"}.get(value.ndim, "")
        if not layout.endswith("HWC"):
            return value
        return ndd.transpose(value, perm=[*range(value.ndim - 3), value.ndim - 1, value.ndim - 3, value.ndim - 2])


class PILToTensor(_ToChannelsFirst):
    """PIL images as torch tensors CHW, without scaling; batches of ndd that are HWC become CHW.

    >>> import PIL.Image
    >>> from ndd.torchvision import v2
    >>> v2.PILToTensor()(PIL.Image.new("RGB", (5, 3))).shape
    torch.Size([3, 3, 5])
    """

    _transformed_types = (is_pil_image, *_NDD)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One image as a tensor."""
        return F.pil_to_tensor(inpt) if kind_of(inpt) == "pil" else self._channels_first(inpt)


class ToImage(_ToChannelsFirst):
    """Tensors, arrays HWC and PIL images as `tv_tensors.Image`; batches of ndd that are HWC become CHW.

    ImportError for all but batches if torchvision is not installed.

    >>> import numpy as np
    >>> from ndd.torchvision import v2
    >>> tuple(v2.ToImage()(np.zeros((3, 5, 3), np.uint8)).shape)
    (3, 3, 5)
    """

    _transformed_types = (is_pure_tensor, is_pil_image, _is_array, *_NDD)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One image."""
        return self._channels_first(inpt) if kind_of(inpt) in ("ndd", "targets") else F.to_image(inpt)


class ToPILImage(Transform):
    """Tensors CHW and arrays HWC as PIL images; a batch of ndd becomes a list of them.

    Args:
        mode: of the PIL image; default: by type and channels.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.ToPILImage()(torch.zeros(3, 4, 5, dtype=torch.uint8)).size
    (5, 4)
    """

    _transformed_types = (is_pure_tensor, lambda value: kind_of(value) == "image", _is_array, ndd.Batch, ndd.Tensor)

    def __init__(self, mode: str | None = None) -> None:
        super().__init__()
        self.mode = mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One image of Pillow."""
        if isinstance(inpt, ndd.Batch):
            return [self.transform(each, params) for each in inpt]
        if isinstance(inpt, ndd.Tensor):
            array = np.asarray(inpt.cpu())
            inpt = np.moveaxis(array, 0, -1) if inpt.layout == "CHW" else array
        return F.to_pil_image(inpt, mode=self.mode)


def _is_tv_tensor(value: Any) -> bool:
    module = tv_tensors()
    return module is not None and isinstance(value, module.TVTensor)


class ToPureTensor(Transform):
    """`tv_tensors` as plain torch tensors; anything else, such as batches of ndd, is returned unchanged.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.ToPureTensor()(torch.zeros(2))
    tensor([0., 0.])
    """

    _transformed_types = (_is_tv_tensor,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One plain tensor."""
        return inpt.as_subclass(torch.Tensor)


class ToTensor(_ToChannelsFirst):
    """Deprecated: `Compose([ToImage(), ToDtype(torch.float32, scale=True)])`.

    PIL images and uint8 arrays HWC as float32 tensors CHW from 0 to 1; other arrays without scaling; batches of ndd are treated
    as PIL images are.

    >>> import numpy as np
    >>> from ndd.torchvision import v2
    >>> v2.ToTensor()(np.full((1, 1, 1), 255, np.uint8)).item()
    1.0
    """

    _transformed_types = (is_pil_image, _is_array, *_NDD)

    def __init__(self) -> None:
        warnings.warn(
            "The transform `ToTensor()` is deprecated and will be removed in a future release. "
            "Instead, please use `v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])`."
            "Output is equivalent up to float precision.",
            stacklevel=2,
        )
        super().__init__()

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One tensor."""
        if kind_of(inpt) in ("ndd", "targets"):
            return F.to_dtype(self._channels_first(inpt), dtype=torch.float32, scale=True)
        return F.to_tensor(inpt)


class ToDtype(Transform):
    """Another element type, scaled or not.

    Args:
        dtype: of images and videos; or a dict by the type of the value, with "others" for the rest and None for no change.
            Batches of ndd count as `tv_tensors.Image`, masks beside them as `tv_tensors.Mask`, unless the dict has `ndd.Batch`.
        scale: scale images and videos from the range of one type to the range of the other, as from 0 to 255 to 0 to 1.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.ToDtype(torch.float32, scale=True)(torch.full((1, 1, 1), 255, dtype=torch.uint8)).item()
    1.0
    """

    _transformed_types = (torch.Tensor, *_NDD)

    def __init__(self, dtype: Any, scale: bool = False) -> None:
        super().__init__()
        if not isinstance(dtype, dict | torch.dtype):
            raise ValueError(f"dtype must be a dict or a torch.dtype, got {type(dtype)} instead")
        module = tv_tensors()
        images = () if module is None else (module.Image, module.Video)
        if isinstance(dtype, dict) and torch.Tensor in dtype and any(cls in dtype for cls in images):
            warnings.warn(
                "Got `dtype` values for `torch.Tensor` and either `tv_tensors.Image` or `tv_tensors.Video`. "
                "Note that a plain `torch.Tensor` will *not* be transformed by this (or any other transformation) "
                "in case a `tv_tensors.Image` or `tv_tensors.Video` is present in the input.",
                stacklevel=2,
            )
        self.dtype = dtype
        self.scale = scale

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One value of another type."""
        kind = kind_of(inpt)
        if kind == "targets":
            layers = {name: getattr(inpt, name) for name in ("masks", "semantic")}
            masks = {name: None if layer is None else self._of_masks(layer) for name, layer in layers.items()}
            return replace(inpt, images=self.transform(inpt.images, params), **masks)
        scales = kind in ("tensor", "image", "video", "ndd")
        if isinstance(self.dtype, torch.dtype):
            return F.to_dtype(inpt, dtype=self.dtype, scale=self.scale) if scales else inpt
        dtype = self._wanted(type(inpt), ("Image", "Video") if kind == "ndd" else ())
        if dtype is not None:
            return F.to_dtype(inpt, dtype=dtype, scale=self.scale)
        if self.scale and scales:
            warnings.warn(
                "scale was set to True but no dtype was specified for images or videos: no scaling will be done.",
                stacklevel=2,
            )
        return inpt

    def _of_masks(self, masks: Any) -> Any:
        """The masks beside a batch of images, which get another type only from a dict."""
        dtype = self._wanted(type(masks), ("Mask",)) if isinstance(self.dtype, dict) else None
        return masks if dtype is None else ndd.cast(masks, dtype=dtype)

    def _wanted(self, kind: type, counts_as: tuple[str, ...]) -> torch.dtype | None:
        """The type for values of a class; values of ndd also use the type of the `tv_tensors` that they count as."""
        module, wanted = tv_tensors(), cast(dict[Any, Any], self.dtype)
        kinds = [kind, *[getattr(module, name, None) for name in counts_as]]
        for key in [*kinds, *([torch.Tensor] if "Image" in counts_as else []), "others"]:
            if key is not None and key in wanted:
                return wanted[key]
        raise ValueError(
            f"No dtype was specified for type {kind}. "
            "If you only need to convert the dtype of images or videos, you can just pass e.g. dtype=torch.float32. "
            "If you're passing a dict as dtype, "
            'you can use "others" as a catch-all key '
            'e.g. dtype={tv_tensors.Mask: torch.int64, "others": None} to pass-through the rest of the inputs.'
        )


class ConvertImageDtype(Transform):
    """Deprecated: `ToDtype(dtype, scale=True)`.

    Args:
        dtype: of the result.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.ConvertImageDtype(torch.float32)(torch.full((1, 1, 1), 255, dtype=torch.uint8)).item()
    1.0
    """

    _kinds = ("tensor", "image", "video", "mask", "boxes", "points", "ndd", "targets")

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.dtype = dtype

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One image of another type."""
        return F.to_dtype(inpt, dtype=self.dtype, scale=True)


class UniformTemporalSubsample(Transform):
    """Takes some frames of a video at equal distances.

    Args:
        num_samples: the number of frames.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.UniformTemporalSubsample(4)(torch.arange(10).reshape(10, 1, 1, 1)).flatten()
    tensor([0, 3, 6, 9])
    """

    _kinds = ("tensor", "video", "ndd")
    _transformed_types = (torch.Tensor, *_NDD)

    def __init__(self, num_samples: int):
        super().__init__()
        self.num_samples = num_samples

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One video."""
        return F.uniform_temporal_subsample(inpt, self.num_samples)
