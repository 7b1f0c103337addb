"""Kernels for PIL images, which call Pillow itself.

torchvision calls Pillow for these too, so the pixels are the same. Operations that Pillow does not have go through a tensor.
Errors about the mode of an image are Pillow's.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ndd.torchvision.interpolation import interpolation_mode
from ndd.torchvision.v2.functional import colors, crops, flips, levels, neighbours, sizes, warps
from ndd.torchvision.v2.functional.conversions import pil_to_tensor, to_pil_image
from ndd.torchvision.v2.functional.kinds import kernel_of

_RESAMPLING = {"nearest": 0, "nearest-exact": 0, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5, "lanczos": 1}
_FLIPPED_LEFT_RIGHT, _FLIPPED_TOP_BOTTOM = 0, 1
_AFFINE, _PERSPECTIVE = 0, 2


def _resampling(interpolation: Any) -> int:
    """Pillow's number for an interpolation."""
    return _RESAMPLING[interpolation_mode(interpolation).value]


def _fill(fill: Any, image: Any) -> Any:
    """The fill value in Pillow's form: one number, or one for each band."""
    bands = len(image.getbands())
    number = (lambda v: v) if image.mode == "F" else int
    if not isinstance(fill, list | tuple):
        value = number(0 if fill is None else fill)
        return value if bands == 1 else (value,) * bands
    if len(fill) not in (1, bands):
        raise ValueError(
            "The number of elements in 'fill' does not match the number of channels of the image "
            f"({len(fill)} != {bands})"
        )
    return tuple(map(number, fill)) * (bands if len(fill) == 1 else 1)


# ---- geometry


@kernel_of(flips.horizontal_flip, "pil")
def _horizontal_flip(inpt: Any) -> Any:
    return inpt.transpose(_FLIPPED_LEFT_RIGHT)


@kernel_of(flips.vertical_flip, "pil")
def _vertical_flip(inpt: Any) -> Any:
    return inpt.transpose(_FLIPPED_TOP_BOTTOM)


@kernel_of(crops.crop, "pil")
def _crop(inpt: Any, top: int, left: int, height: int, width: int) -> Any:
    return inpt.crop((left, top, left + width, top + height))


@kernel_of(crops.center_crop, "pil")
def _center_crop(inpt: Any, output_size: Any) -> Any:
    height, width = crops.two_sides(output_size, f"center_crop: expected one number or two, got {output_size!r}")
    free = [max(height - inpt.height, 0), max(width - inpt.width, 0)]
    if any(free):
        top, left = (extent // 2 for extent in free)
        inpt = _pad(inpt, [left, top, free[1] - left, free[0] - top], 0)
    return _crop(inpt, round((inpt.height - height) / 2.0), round((inpt.width - width) / 2.0), height, width)


@kernel_of(crops.five_crop, "pil")
def _five_crop(inpt: Any, size: Any) -> tuple[Any, ...]:
    height, width = crops.two_sides(size, "Please provide only two dimensions (h, w) for size.")
    if width > inpt.width or height > inpt.height:
        raise ValueError(f"Requested crop size {size} is bigger than input size {(inpt.height, inpt.width)}")
    corners = [(top, left) for top in (0, inpt.height - height) for left in (0, inpt.width - width)]
    return *(_crop(inpt, *corner, height, width) for corner in corners), _center_crop(inpt, [height, width])


@kernel_of(crops.ten_crop, "pil")
def _ten_crop(inpt: Any, size: Any, vertical_flip: bool) -> tuple[Any, ...]:
    return _five_crop(inpt, size) + _five_crop(_vertical_flip(inpt) if vertical_flip else _horizontal_flip(inpt), size)


@kernel_of(crops.pad, "pil")
def _pad(inpt: Any, padding: Any, fill: Any = None, padding_mode: str = "constant") -> Any:
    from PIL import Image, ImageOps

    if not isinstance(padding, int | list | tuple) or not isinstance(fill, int | float | list | tuple | None):
        raise TypeError(f"pad: expected numbers or sequences of them, got padding {padding!r} and fill {fill!r}")
    crops.check_padding_mode(padding_mode)
    left, top, right, bottom = crops.sides_of_padding(padding, None)[0].tolist()
    if padding_mode == "constant":
        result = ImageOps.expand(inpt, border=(left, top, right, bottom), fill=_fill(fill, inpt))
    else:
        window = (max(-left, 0), max(-top, 0), inpt.width - max(-right, 0), inpt.height - max(-bottom, 0))
        pixels = np.asarray(inpt.crop(window))
        around: Any = [(max(top, 0), max(bottom, 0)), (max(left, 0), max(right, 0)), (0, 0)]
        result = Image.fromarray(np.pad(pixels, around[: pixels.ndim], padding_mode))  # type: ignore[call-overload]
    if inpt.mode == "P":
        result.putpalette(inpt.getpalette())
    return result


@kernel_of(sizes.resize, "pil")
def _resize(
    inpt: Any, size: Any, interpolation: Any = "bilinear", max_size: int | None = None, antialias: bool | None = True
) -> Any:
    if antialias is False:
        warnings.warn(
            "Anti-alias option is always applied for PIL Image input. Argument antialias is ignored.", stacklevel=4
        )
    try:
        height, width = sizes.resized_size((inpt.height, inpt.width), size, max_size)
    except RuntimeError as error:  # Pillow raises another type
        raise ValueError(str(error)) from None
    resampling = _resampling(interpolation)
    return inpt if (width, height) == inpt.size else inpt.resize((width, height), resampling)


@kernel_of(sizes.resized_crop, "pil")
def _resized_crop(
    inpt: Any, top: int, left: int, height: int, width: int, size: Any, interpolation: Any, antialias: bool | None
) -> Any:
    return _resize(_crop(inpt, top, left, height, width), size, interpolation, None, antialias)


@kernel_of(warps.affine, "pil")
def _affine(
    inpt: Any, angle: float, translate: Any, scale: float, shear: Any, interpolation: Any, fill: Any, center: Any
) -> Any:
    warps.check_affine(angle, translate, scale, shear, center)
    slant = [shear, 0.0] if isinstance(shear, int | float) else [shear[0], shear[-1]]
    middle = [inpt.width * 0.5, inpt.height * 0.5] if center is None else [float(c) for c in center]
    matrix = warps.affine_matrix(middle, angle, list(translate), scale, slant)
    return inpt.transform(inpt.size, _AFFINE, matrix, _resampling(interpolation), fillcolor=_fill(fill, inpt))


@kernel_of(warps.rotate, "pil")
def _rotate(inpt: Any, angle: float, interpolation: Any, expand: bool, center: Any, fill: Any) -> Any:
    return inpt.rotate(angle, _resampling(interpolation), expand, center, fillcolor=_fill(fill, inpt))


@kernel_of(warps.perspective, "pil")
def _perspective(
    inpt: Any, startpoints: Any, endpoints: Any, interpolation: Any, fill: Any, coefficients: Any
) -> Any:  # fmt: skip
    numbers = warps.perspective_coefficients(startpoints, endpoints, coefficients)
    return inpt.transform(inpt.size, _PERSPECTIVE, numbers, _resampling(interpolation), fillcolor=_fill(fill, inpt))


# ---- colours


def _enhanced(name: str) -> Callable[..., Any]:
    """The kernel of a factor of `PIL.ImageEnhance`."""

    def kernel(inpt: Any, **factors: float) -> Any:
        from PIL import ImageEnhance

        return getattr(ImageEnhance, name)(inpt).enhance(*factors.values())

    return kernel


kernel_of(colors.adjust_brightness, "pil")(_enhanced("Brightness"))
kernel_of(colors.adjust_contrast, "pil")(_enhanced("Contrast"))
kernel_of(colors.adjust_saturation, "pil")(_enhanced("Color"))
kernel_of(neighbours.adjust_sharpness, "pil")(_enhanced("Sharpness"))


@kernel_of(colors.adjust_hue, "pil")
def _adjust_hue(inpt: Any, hue_factor: float) -> Any:
    from PIL import Image

    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    if inpt.mode in ("L", "1", "I", "F"):
        return inpt
    hue, saturation, value = inpt.convert("HSV").split()
    turned = hue.point([(h + int(hue_factor * 255)) % 256 for h in range(256)])
    return Image.merge("HSV", (turned, saturation, value)).convert(inpt.mode)


@kernel_of(colors.adjust_gamma, "pil")
def _adjust_gamma(inpt: Any, gamma: float, gain: float) -> Any:
    if gamma < 0:
        raise ValueError("Gamma should be a non-negative real number")
    table = [int((255 + 1 - 1e-3) * gain * (level / 255.0) ** gamma) for level in range(256)]
    return inpt.convert("RGB").point(table * 3).convert(inpt.mode)


@kernel_of(colors.rgb_to_grayscale, "pil")
def _rgb_to_grayscale(inpt: Any, num_output_channels: int) -> Any:
    from PIL import Image

    if num_output_channels not in (1, 3):
        raise ValueError(f"num_output_channels must be 1 or 3, got {num_output_channels}.")
    grey = inpt.convert("L")
    return grey if num_output_channels == 1 else Image.merge("RGB", (grey,) * 3)


@kernel_of(colors.grayscale_to_rgb, "pil")
def _grayscale_to_rgb(inpt: Any) -> Any:
    return inpt.convert("RGB")


def _by_image_ops(name: str) -> Callable[..., Any]:
    """The kernel that is a function of `PIL.ImageOps`."""

    def kernel(inpt: Any, **arguments: Any) -> Any:
        from PIL import ImageOps

        return getattr(ImageOps, name)(inpt, **arguments)

    return kernel


for _function in (levels.invert, levels.posterize, levels.solarize, levels.autocontrast, levels.equalize):
    kernel_of(_function, "pil")(_by_image_ops(_function.__name__))


@kernel_of(neighbours.gaussian_noise, "pil")
def _gaussian_noise(inpt: Any, **arguments: Any) -> Any:
    raise ValueError("Gaussian Noise is not implemented for PIL images.")


@kernel_of(neighbours.jpeg, "pil")
def _jpeg(image: Any, quality: int) -> Any:
    from PIL import Image

    coded = io.BytesIO()
    image.save(coded, format="JPEG", quality=quality)
    return Image.open(coded).copy()


# ---- through a tensor


def _through_tensor(function: Callable[..., Any], keeps_mode: bool = True) -> Callable[..., Any]:
    def kernel(inpt: Any, **arguments: Any) -> Any:
        result = function(pil_to_tensor(inpt), **arguments)
        return to_pil_image(result, mode=inpt.mode if keeps_mode else None)

    return kernel


for _function in (warps.elastic, neighbours.gaussian_blur, neighbours.erase):
    kernel_of(_function, "pil")(_through_tensor(_function))
kernel_of(colors.permute_channels, "pil")(_through_tensor(colors.permute_channels, keeps_mode=False))
