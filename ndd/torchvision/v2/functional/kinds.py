"""One function for every kind of value: what torchvision calls kernels, chosen by what comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ndd.torchvision.values import Treated, kind_of, pixels_of, plain, wrapped

_PIXELS = ("ndd", "tensor", "image", "video", "pil")


def through(
    name: str,
    inpt: Any,
    images: Callable[[Any], Any] | None = None,
    *,
    masks: Callable[[Any], Any] | None = None,
    boxes: Callable[..., Any] | None = None,
    points: Callable[..., Any] | None = None,
    targets: Callable[[Any], Any] | None = None,
) -> Any:
    """`inpt` through the function that serves its kind.

    Args:
        images: takes an `ndd.Batch` or `ndd.Tensor` of images and gives the same.
        masks: the same for masks; default: `images`, where `boxes` are served too.
        boxes: takes a tensor, its format (a word), the size of its images and a clamping mode; gives the tensor, or the
            tensor and the new size.
        points: takes a tensor and the size of its images; gives the same.
        targets: takes and gives `ndd.Targets`.

    Raises TypeError for a kind that is not served.
    """
    kind = kind_of(inpt)
    if kind in _PIXELS and images is not None:
        return _moved(inpt, images)
    if kind == "mask" and (masks or boxes):
        return _moved(inpt, masks or images)
    if kind == "boxes" and boxes is not None:
        return _with_size(inpt, boxes(plain(inpt), format_of(inpt), tuple(inpt.canvas_size), clamping_of(inpt)))
    if kind == "points" and points is not None:
        return _with_size(inpt, points(plain(inpt), tuple(inpt.canvas_size)))
    if kind == "targets" and targets is not None:
        return targets(inpt)
    served = {"images": images, "masks": masks or boxes, "boxes": boxes, "key points": points, "ndd.Targets": targets}
    raise TypeError(
        f"Functional F.{name} supports inputs of type {', '.join(k for k, v in served.items() if v)}, "
        f"but got {type(inpt)} instead."
    )


def _moved(inpt: Any, images: Any) -> Any:
    value, back = pixels_of(inpt)
    made = images(value)
    return inpt if made is value and not isinstance(inpt, Treated) else back(made)


def _with_size(inpt: Any, result: Any) -> Any:
    """A tensor, or a tensor and the size of the canvas it is now on, as what came."""
    if isinstance(inpt, Treated):
        return result
    if isinstance(result, tuple):
        return wrapped(result[0], inpt, canvas_size=tuple(result[1]))
    return wrapped(result, inpt)


def format_of(boxes: Any) -> str:
    """The format of boxes, as a word."""
    return str(getattr(boxes.format, "value", boxes.format))


def clamping_of(boxes: Any) -> str | None:
    """How boxes are cut off at the border: torchvision has had this since 0.24."""
    return getattr(boxes, "clamping_mode", "soft")
