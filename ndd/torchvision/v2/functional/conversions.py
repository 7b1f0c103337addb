"""Element types, scaling and normalisation; conversion to and from other libraries."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from typing import Any

import numpy as np
import torch

import ndd
from ndd.torchvision.v2.functional.arithmetic import (
    in_type_of,
    is_float,
    largest,
    on_device_of,
    typed,
    value_bits,
)
from ndd.torchvision.v2.functional.kinds import functional, through
from ndd.torchvision.values import (
    channels_of,
    count_of,
    is_pil,
    kind_of,
    layout_of,
    per_sample,
    plain,
    tv_tensors,
    wrapped,
)

_FLOATS = ("f16", "bfloat16", "f32", "f64")
_UNSIGNED = {8: ndd.uint8, 16: ndd.uint16, 32: ndd.uint32}  # by their bits
_BY_NAME = {
    "u8": torch.uint8, "i8": torch.int8, "u16": torch.uint16, "i16": torch.int16, "u32": torch.uint32, "i32": torch.int32,
    "u64": torch.uint64, "i64": torch.int64, "f16": torch.float16, "bfloat16": torch.bfloat16, "f32": torch.float32,
    "f64": torch.float64, "bool": torch.bool,
}  # fmt: skip


def scaled_to(value: Any, dtype: Any) -> Any:
    """Pictures in another type, scaled from the range of one type to that of the other by torchvision's rules."""
    source, floats = value.dtype, dtype.name in _FLOATS
    if source == dtype:
        return value
    if is_float(value):
        if floats:
            return ndd.cast(value, dtype=dtype)
        if (source.name, dtype.name) in (("f32", "i32"), ("f32", "i64"), ("f64", "i64")):
            raise RuntimeError(
                f"The conversion from {_BY_NAME[source.name]} to {_BY_NAME[dtype.name]} cannot be performed safely."
            )
        if dtype.name == "bool":
            return wide(value) != 0
        # Just below white plus one, so that every number of the type stands for an equal range.
        return ndd.cast(ndd.math.floor(wide(value) * _constant(largest(dtype) + 1.0 - 1e-3, value)), dtype=dtype)
    if floats:
        result = ndd.cast(value, dtype=ndd.float64 if dtype.name == "f64" else ndd.float32)
        result = result * _constant(1.0 / largest(source), result)
        return result if result.dtype == dtype else ndd.cast(result, dtype=dtype)
    shift = value_bits(source) - value_bits(dtype)
    if shift > 0:
        return ndd.cast(value >> shift, dtype=dtype)
    widened = ndd.cast(value, dtype=dtype)
    return ndd.cast(widened * typed(1 << -shift, widened), dtype=dtype)


def _constant(number: float, value: Any) -> Any:
    """A number as an operand beside a picture, with all of its digits beside float64."""
    return ndd.tensor(number, dtype=ndd.float64, device=value.device) if value.dtype.name == "f64" else number


def wide(value: Any) -> Any:
    """Values in a type for arithmetic: float16 and bfloat16 become float32."""
    return ndd.cast(value, dtype=ndd.float32) if value.dtype.name in ("f16", "bfloat16") else value


def _converted(value: Any, dtype: Any) -> Any:
    """Numbers in another type as torch converts them: whole numbers keep their lowest bits, fractions are truncated and clipped to
    the range."""
    if dtype.name == "bool":
        return wide(value) != 0
    if is_float(value):
        if dtype.name not in _FLOATS:
            value = wide(value)
            value = ndd.math.max(ndd.math.floor(value), 0.0) + ndd.math.min(ndd.math.ceil(value), 0.0)
        return ndd.cast(value, dtype=dtype)
    if value.dtype.name != "bool" and dtype.name not in _FLOATS:
        held, room = np.iinfo(value.dtype.numpy), np.iinfo(dtype.numpy)
        if room.bits < 64 and not room.min <= held.min <= held.max <= room.max:
            value = ndd.cast(value, dtype=ndd.int64)
            lowest = ndd.cast(value & typed((1 << room.bits) - 1, value), dtype=_UNSIGNED[room.bits])
            return ndd.reinterpret(lowest, dtype=dtype)
    return ndd.cast(value, dtype=dtype)


@functional
def to_dtype(inpt: Any, dtype: torch.dtype = torch.float32, scale: bool = False) -> Any:
    """Converts to another element type.

    Args:
        inpt: anything; masks, boxes and points are never scaled.
        dtype: a type of torch or ndd.
        scale: scale from the range of one type to that of the other, such as from 0 to 255 to 0 to 1.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.to_dtype(torch.tensor([[[0, 51, 255]]], dtype=torch.uint8), torch.float32, scale=True)
    tensor([[[0.0000, 0.2000, 1.0000]]])
    """
    target, kind = ndd.dtype(dtype), kind_of(inpt)
    if kind in ("mask", "boxes", "points") or (kind in ("tensor", "image", "video") and not scale):
        tensor = plain(inpt)
        return wrapped(tensor.to(_BY_NAME[target.name]), inpt)
    if kind in ("tensor", "image", "video") and inpt.dtype is torch.bool:  # whose white is 1
        if target.name not in (*_FLOATS, "bool"):
            value_bits(ndd.bool)
        return wrapped(plain(inpt).to(_BY_NAME[target.name]), inpt)
    if kind == "pil":
        raise TypeError(f"Functional F.to_dtype supports tensors and ndd's values, but got {type(inpt)} instead.")

    def images(value: Any) -> Any:
        if value.dtype == target:
            return value
        return scaled_to(value, target) if scale else _converted(value, target)

    return through("to_dtype", inpt, images, targets=lambda t: _with_images(t, images))


def _with_images(targets: ndd.Targets, images: Any) -> ndd.Targets:
    return dataclasses.replace(targets, images=images(targets.images))


def convert_image_dtype(image: Any, dtype: torch.dtype = torch.float32) -> Any:
    """`to_dtype(image, dtype, scale=True)`, its old name. As in torchvision, integers from or to another type lose their class.

    Args:
        image: images or video.
        dtype: a type of torch or ndd.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.convert_image_dtype(torch.tensor([[[1.0]]]), torch.uint8)
    tensor([[[255]]], dtype=torch.uint8)
    """
    kept = not isinstance(image, torch.Tensor) or image.dtype == dtype
    kept = kept or (image.is_floating_point() and getattr(dtype, "is_floating_point", False))
    return to_dtype(image if kept else plain(image), dtype, scale=True)


@functional
def normalize(inpt: Any, mean: list[float], std: list[float], inplace: bool = False) -> Any:
    """`(image - mean) / std`, for each channel.

    Args:
        inpt: images or video of floating-point numbers.
        mean, std: one number, or one for each channel; for one per sample of a batch of N, an array `[N, C]`.
        inplace: write into the tensor that came.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.normalize(torch.tensor([[[1.0]], [[2.0]]]), [0.5, 1.0], [0.5, 0.25]).flatten()
    tensor([1., 4.])
    """
    count = count_of(inpt)
    if (isinstance(std, list | tuple) and not all(std)) or (isinstance(std, int | float) and std == 0):
        raise ValueError("std evaluated to zero, leading to division by zero.")
    if kind_of(inpt) in ("tensor", "image", "video") and inpt.ndim < 3 and inpt.is_floating_point():
        raise ValueError(f"Expected tensor to be a tensor image of size (..., C, H, W). Got {inpt.shape}.")
    if kind_of(inpt) == "pil":
        raise TypeError("Functional F.normalize does not support PIL images: convert them by to_image and to_dtype")

    def images(value: Any) -> Any:
        if not is_float(value):
            raise TypeError(f"Input tensor should be a float tensor. Got {_BY_NAME[value.dtype.name]}.")
        layout = layout_of(value)
        shape = [-1 if letter == "C" else 1 for letter in layout]
        numbers = [
            np.shape(each)[-1] if np.ndim(each) else 1 for each in (mean, std) if not isinstance(each, ndd.Batch)
        ]
        if len(numbers) == 2 and numbers[0] == 1 < numbers[1] and 1 in channels_of(value):
            raise RuntimeError(f"normalize: std: expected one number for pictures of one channel, got {numbers[1]}")

        def operand(numbers: Any) -> Any:
            numbers = per_sample(numbers, count, axes=1)
            if isinstance(numbers, ndd.Batch):
                return ndd.batch(numbers.torch().to(torch.float32).reshape(numbers.batch_size, *shape))
            array = np.asarray(numbers, np.float32)
            return float(array) if array.ndim == 0 else ndd.as_tensor(array.reshape(shape), layout=layout)

        low, scale = (on_device_of(operand(numbers), value) for numbers in (mean, std))
        return in_type_of((wide(value) - low) / scale, value)

    result = through("normalize", inpt, images, targets=lambda t: _with_images(t, images))
    if inplace and isinstance(inpt, torch.Tensor):
        plain(inpt).copy_(plain(result))
        return inpt
    return result


# ---- other libraries


def pil_to_tensor(pic: Any) -> torch.Tensor:
    """A PIL image as a tensor [C, H, W] of the same type.

    Args:
        pic: a PIL image. TypeError for anything else.

    >>> import PIL.Image
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.pil_to_tensor(PIL.Image.new("RGB", (5, 3))).shape
    torch.Size([3, 3, 5])
    """
    if not is_pil(pic):
        raise TypeError(f"pic should be PIL Image. Got {type(pic)}")
    array = np.array(pic, copy=True)
    return torch.as_tensor(array[..., None] if array.ndim == 2 else array).permute(2, 0, 1)


def to_image(inpt: Any) -> Any:
    """A picture as torchvision's `tv_tensors.Image` [C, H, W], or as a plain tensor if torchvision is not imported.

    Args:
        inpt: a tensor, a NumPy array HWC or HW, a PIL image, or a value of ndd, which comes out as CHW.

    >>> import numpy as np
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.to_image(np.zeros((3, 5, 3), np.uint8)).shape
    torch.Size([3, 3, 5])
    """
    if isinstance(inpt, ndd.Batch | ndd.Tensor):
        layout = layout_of(inpt)
        if layout == "HW":
            return ndd.reshape(inpt, src_dims=[-1, 0, 1], layout="CHW")
        order = [layout.index(c) for c in ("F" if "F" in layout else "") + "CHW"]
        return inpt if order == sorted(order) else ndd.transpose(inpt, perm=order)
    if isinstance(inpt, np.ndarray):
        output = torch.from_numpy(np.atleast_3d(inpt)).permute(2, 0, 1).contiguous()
    elif is_pil(inpt):
        output = pil_to_tensor(inpt)
    elif isinstance(inpt, torch.Tensor):
        output = inpt
    else:
        raise TypeError(
            f"Input can either be a pure Tensor, a numpy array, or a PIL image, but got {type(inpt)} instead."
        )
    module = tv_tensors()
    return output if module is None else module.Image(output)


def to_tensor(inpt: Any) -> torch.Tensor:
    """A PIL image or a NumPy array HWC as a tensor [C, H, W]; bytes are divided by 255. torchvision advises against it.

    Args:
        inpt: a PIL image, or an array HWC or HW.

    >>> import warnings, numpy as np
    >>> from ndd.torchvision.v2 import functional as F
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     F.to_tensor(np.full((1, 1, 1), 255, np.uint8))
    tensor([[[1.]]])
    """
    warnings.warn(
        "The function `to_tensor(...)` is deprecated and will be removed in a future release. "
        "Instead, please use `to_image(...)` followed by `to_dtype(..., dtype=torch.float32, scale=True)`.",
        stacklevel=2,
    )
    if not (is_pil(inpt) or isinstance(inpt, np.ndarray)):
        raise TypeError(f"pic should be PIL Image or ndarray. Got {type(inpt)}")
    if isinstance(inpt, np.ndarray) and inpt.ndim not in (2, 3):
        raise ValueError(f"pic should be 2/3 dimensional. Got {inpt.ndim} dimensions.")
    array = np.array(inpt)
    if array.dtype == np.bool_ and is_pil(inpt):
        array = array.astype(np.uint8) * 255
    if is_pil(inpt) and array.dtype == np.uint16:  # torchvision reads I;16 with a sign
        array = array.view(np.int16)
    array = array[..., None] if array.ndim == 2 else array
    image = torch.from_numpy(array.transpose(2, 0, 1).copy())
    return image.to(torch.get_default_dtype()).div(255) if image.dtype == torch.uint8 else image


_MODES = {1: ("L",), 2: ("LA",), 3: ("RGB", "YCbCr", "HSV"), 4: ("RGBA", "CMYK", "RGBX")}
_OF_TYPES = {np.dtype(np.int16): "I;16", np.dtype(np.int32): "I", np.dtype(np.float32): "F"}


def to_pil_image(pic: Any, mode: str | None = None) -> Any:
    """A tensor [C, H, W], an array HWC or a value of ndd as a PIL image; fractions from 0 to 1 become bytes.

    Args:
        pic: one picture of at most 4 channels.
        mode: of the image; default: L, LA, RGB or RGBA by the channels.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.to_pil_image(torch.zeros(3, 4, 5)).size
    (5, 4)
    """
    if isinstance(pic, ndd.Tensor):
        pic = plain(to_image(pic).torch())
    if isinstance(pic, torch.Tensor):
        pic = plain(pic)
        pic = (pic.permute(1, 2, 0) if pic.ndim == 3 else pic).numpy(force=True)
    elif not isinstance(pic, np.ndarray):
        raise TypeError(f"pic should be Tensor or ndarray. Got {type(pic)}.")
    if pic.ndim == 2:
        pic = pic[..., None]
    if pic.ndim != 3:
        raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
    if pic.shape[-1] > 4:
        raise ValueError(f"pic should not have > 4 channels. Got {pic.shape[-1]} channels.")
    if np.issubdtype(pic.dtype, np.floating) and mode != "F":
        pic = (pic * 255).astype(np.uint8)
    channels = pic.shape[2]
    known = _MODES[channels] if pic.dtype == np.uint8 or channels > 1 else (_OF_TYPES.get(pic.dtype),)
    if mode is not None and mode not in known:
        raise ValueError(f"Incorrect mode ({mode}) supplied for input of {channels} channels. Should be one of {known}")
    if mode is None and ((pic.dtype != np.uint8 and channels > 1) or known == (None,)):
        raise TypeError(f"Input type {pic.dtype} is not supported")
    return _new_image(pic[..., 0] if channels == 1 else pic, mode or known[0])


def _new_image(pixels: np.ndarray, mode: str | None) -> Any:
    __import__("PIL.Image")
    module = sys.modules["PIL.Image"]
    pixels = pixels.view(np.uint16) if pixels.dtype == np.int16 else pixels  # of which Pillow would make 32 bits
    result = module.fromarray(np.ascontiguousarray(pixels))
    return result if mode in (None, result.mode) else module.frombytes(mode, result.size, result.tobytes())
