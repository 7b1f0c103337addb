"""torchvision's kernels, which are functions for one kind of value, made from the functions for all kinds.

`resize_mask` is `resize` for a plain tensor that is treated as a mask. `resize_bounding_boxes` takes boxes with their format
and the size of their picture as arguments, and returns the new size too. Signatures are torchvision's.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch

from ndd.torchvision.v2.functional.colors import (
    adjust_brightness,
    adjust_contrast,
    adjust_gamma,
    adjust_hue,
    adjust_saturation,
    grayscale_to_rgb,
    permute_channels,
    rgb_to_grayscale,
)
from ndd.torchvision.v2.functional.conversions import (
    normalize,
    to_dtype,
)
from ndd.torchvision.v2.functional.crops import (
    center_crop,
    crop,
    five_crop,
    pad,
    ten_crop,
)
from ndd.torchvision.v2.functional.flips import (
    horizontal_flip,
    vertical_flip,
)
from ndd.torchvision.v2.functional.levels import (
    autocontrast,
    equalize,
    invert,
    posterize,
    solarize,
)
from ndd.torchvision.v2.functional.metadata import (
    get_dimensions,
    get_num_channels,
    get_num_frames,
    get_size,
)
from ndd.torchvision.v2.functional.neighbours import (
    adjust_sharpness,
    erase,
    gaussian_blur,
    gaussian_noise,
    jpeg,
    uniform_temporal_subsample,
)
from ndd.torchvision.v2.functional.sizes import (
    resize,
    resized_crop,
)
from ndd.torchvision.v2.functional.warps import (
    affine,
    elastic,
    perspective,
    rotate,
)
from ndd.torchvision.values import Treated, kind_of

_OF_PIXELS = ("interpolation", "fill", "antialias")
_OF_WINDOWS = ("crop", "resized_crop")  # these do not take the size of the picture
_ORDERS = {
    "resize_bounding_boxes": ("bounding_boxes", "canvas_size", "size", "max_size", "format", "clamping_mode"),
    "resize_keypoints": ("keypoints", "size", "canvas_size", "max_size"),
}
_OF_PLACES = ("bounding_boxes", "keypoints")
_Parameter = inspect.Parameter


def _with_signature(
    function: Callable[..., Any], kind: str, parameters: list[_Parameter], call: Callable[..., Any]
) -> Any:
    name = f"{function.__name__}_{kind}"
    order = _ORDERS.get(name)
    if order is not None:
        parameters = sorted(parameters, key=lambda p: order.index(p.name))
    # Parameters with defaults follow those without.
    signature = inspect.Signature(sorted(parameters, key=lambda p: p.default is not _Parameter.empty))

    @functools.wraps(function)
    def kernel(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return call(**bound.arguments)

    kernel.__name__ = kernel.__qualname__ = name
    kernel.__module__ = __name__
    kernel.__signature__ = signature  # type: ignore[attr-defined]
    gives = (
        " It returns them, and the new size if it can change."
        if kind in _OF_PLACES and function is not get_size
        else ""
    )
    value = next(iter(signature.parameters)) if kind != "bounding_boxes" or function is get_size else kind
    meanings = {value: f"{_TEXTS[kind]}, a plain tensor.", **_ARGUMENTS}
    lines = [f"    {name}: {text}" for name, text in meanings.items() if name in signature.parameters]
    others = (
        f"\n\nThe other arguments are those of `{function.__name__}`." if len(signature.parameters) > len(lines) else ""
    )
    head = f"`{function.__name__}` of {_TEXTS[kind]}.{gives}"
    kernel.__doc__ = "\n".join([head, "", "Args:", *lines]) + others
    return kernel


_TEXTS = {
    "image": "images `[..., C, H, W]`",
    "video": "video `[..., F, C, H, W]`",
    "mask": "masks `[..., H, W]`, whose pixels are not mixed",
    "bounding_boxes": "boxes `[..., 4]`",
    "keypoints": "points `[..., 2]`, x before y",
}
_ARGUMENTS = {
    "format": 'the format of the boxes: "XYXY", "XYWH", "CXCYWH", or a rotated one.',
    "canvas_size": "(H, W) of the picture in pixels.",
    "clamping_mode": '"soft", "hard" or None: how boxes are cut off at the border.',
}


def _named(name: str, default: Any = _Parameter.empty) -> _Parameter:
    kind = {"canvas_size": tuple[int, int], "format": str, "clamping_mode": str | None}.get(name, torch.Tensor)
    return _Parameter(name, _Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind)


def _own(function: Callable[..., Any], without: tuple[str, ...] = ()) -> list[_Parameter]:
    """The parameters after the first, which is the value."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return [p.replace(annotation=_Parameter.empty) for p in parameters if p.name not in without]


def _image(function: Callable[..., Any], kind: str = "image") -> Any:
    def call(**arguments: Any) -> Any:
        value = arguments.pop(kind)
        if kind_of(value) not in ("tensor", "image", "video", "mask"):
            raise TypeError(f"{function.__name__}_{kind}: expected a torch tensor, got {type(value)}")
        return function(value, **arguments)

    return _with_signature(function, kind, [_named(kind), *_own(function)], call)


def _video(function: Callable[..., Any]) -> Any:
    return _image(function, "video")


def _mask(function: Callable[..., Any]) -> Any:
    without = ("antialias",) if function is resize else ("antialias", "interpolation")

    def call(mask: Any, **arguments: Any) -> Any:
        return function(Treated("mask", mask), **arguments)

    return _with_signature(function, "mask", [_named("mask"), *_own(function, without)], call)


def _boxes(function: Callable[..., Any]) -> Any:
    name = function.__name__
    first = [_named("bounding_boxes"), _named("format", "XYXY") if function is resize else _named("format")]
    first += [] if name in _OF_WINDOWS else [_named("canvas_size")]
    last = [] if name.endswith("_flip") else [_named("clamping_mode", "soft")]
    if function is get_size:
        first, last = [_named("bounding_box")], []

    def call(bounding_boxes: Any = None, bounding_box: Any = None, format: Any = "", canvas_size: Any = (0, 0),
             clamping_mode: Any = "soft", **arguments: Any) -> Any:  # fmt: skip
        if bounding_box is not None:
            return function(bounding_box)
        value = Treated("boxes", bounding_boxes, canvas_size, format, clamping_mode)
        result = function(value, **arguments)
        return result[0] if function is affine else result

    return _with_signature(function, "bounding_boxes", [*first, *_own(function, _OF_PIXELS), *last], call)


def _points(function: Callable[..., Any]) -> Any:
    first = "inpt" if function is center_crop else "keypoints"
    size = [] if function.__name__ in _OF_WINDOWS or function is get_size else [_named("canvas_size")]

    def call(canvas_size: Any = (0, 0), **arguments: Any) -> Any:
        points = arguments.pop(first)
        return function(points if function is get_size else Treated("points", points, canvas_size), **arguments)

    return _with_signature(function, "keypoints", [_named(first), *size, *_own(function, _OF_PIXELS)], call)


adjust_brightness_image = _image(adjust_brightness)
adjust_brightness_video = _video(adjust_brightness)
adjust_contrast_image = _image(adjust_contrast)
adjust_contrast_video = _video(adjust_contrast)
adjust_gamma_image = _image(adjust_gamma)
adjust_gamma_video = _video(adjust_gamma)
adjust_hue_image = _image(adjust_hue)
adjust_hue_video = _video(adjust_hue)
adjust_saturation_image = _image(adjust_saturation)
adjust_saturation_video = _video(adjust_saturation)
adjust_sharpness_image = _image(adjust_sharpness)
adjust_sharpness_video = _video(adjust_sharpness)
affine_bounding_boxes = _boxes(affine)
affine_image = _image(affine)
affine_keypoints = _points(affine)
affine_mask = _mask(affine)
affine_video = _video(affine)
autocontrast_image = _image(autocontrast)
autocontrast_video = _video(autocontrast)
center_crop_bounding_boxes = _boxes(center_crop)
center_crop_image = _image(center_crop)
center_crop_keypoints = _points(center_crop)
center_crop_mask = _mask(center_crop)
center_crop_video = _video(center_crop)
crop_bounding_boxes = _boxes(crop)
crop_image = _image(crop)
crop_keypoints = _points(crop)
crop_mask = _mask(crop)
crop_video = _video(crop)
elastic_bounding_boxes = _boxes(elastic)
elastic_image = _image(elastic)
elastic_keypoints = _points(elastic)
elastic_mask = _mask(elastic)
elastic_video = _video(elastic)
equalize_image = _image(equalize)
equalize_video = _video(equalize)
erase_image = _image(erase)
erase_video = _video(erase)
five_crop_image = _image(five_crop)
five_crop_video = _video(five_crop)
gaussian_blur_image = _image(gaussian_blur)
gaussian_blur_video = _video(gaussian_blur)
gaussian_noise_image = _image(gaussian_noise)
gaussian_noise_video = _video(gaussian_noise)
get_dimensions_image = _image(get_dimensions)
get_dimensions_video = _video(get_dimensions)
get_num_channels_image = _image(get_num_channels)
get_num_channels_video = _video(get_num_channels)
get_num_frames_video = _video(get_num_frames)
get_size_bounding_boxes = _boxes(get_size)
get_size_image = _image(get_size)
get_size_keypoints = _points(get_size)
get_size_mask = _mask(get_size)
get_size_video = _video(get_size)
grayscale_to_rgb_image = _image(grayscale_to_rgb)
horizontal_flip_bounding_boxes = _boxes(horizontal_flip)
horizontal_flip_image = _image(horizontal_flip)
horizontal_flip_keypoints = _points(horizontal_flip)
horizontal_flip_mask = _mask(horizontal_flip)
horizontal_flip_video = _video(horizontal_flip)
invert_image = _image(invert)
invert_video = _video(invert)
jpeg_image = _image(jpeg)
jpeg_video = _video(jpeg)
normalize_image = _image(normalize)
normalize_video = _video(normalize)
pad_bounding_boxes = _boxes(pad)
pad_image = _image(pad)
pad_keypoints = _points(pad)
pad_mask = _mask(pad)
pad_video = _video(pad)
permute_channels_image = _image(permute_channels)
permute_channels_video = _video(permute_channels)
perspective_bounding_boxes = _boxes(perspective)
perspective_image = _image(perspective)
perspective_keypoints = _points(perspective)
perspective_mask = _mask(perspective)
perspective_video = _video(perspective)
posterize_image = _image(posterize)
posterize_video = _video(posterize)
resize_bounding_boxes = _boxes(resize)
resize_image = _image(resize)
resize_keypoints = _points(resize)
resize_mask = _mask(resize)
resize_video = _video(resize)
resized_crop_bounding_boxes = _boxes(resized_crop)
resized_crop_image = _image(resized_crop)
resized_crop_keypoints = _points(resized_crop)
resized_crop_mask = _mask(resized_crop)
resized_crop_video = _video(resized_crop)
rgb_to_grayscale_image = _image(rgb_to_grayscale)
rotate_bounding_boxes = _boxes(rotate)
rotate_image = _image(rotate)
rotate_keypoints = _points(rotate)
rotate_mask = _mask(rotate)
rotate_video = _video(rotate)
solarize_image = _image(solarize)
solarize_video = _video(solarize)
ten_crop_image = _image(ten_crop)
ten_crop_video = _video(ten_crop)
to_dtype_image = _image(to_dtype)
to_dtype_video = _video(to_dtype)
uniform_temporal_subsample_video = _video(uniform_temporal_subsample)
vertical_flip_bounding_boxes = _boxes(vertical_flip)
vertical_flip_image = _image(vertical_flip)
vertical_flip_keypoints = _points(vertical_flip)
vertical_flip_mask = _mask(vertical_flip)
vertical_flip_video = _video(vertical_flip)
