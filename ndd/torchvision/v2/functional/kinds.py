"""One function for every kind of value, which calls the kernel (torchvision's word) for its kind."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import torch

import ndd
from ndd.torchvision.values import Treated, is_pil, is_pure_tensor, kind_of, pixels_of, plain, wrapped

_PIXELS = ("ndd", "tensor", "image", "video")
_Function = TypeVar("_Function", bound=Callable[..., Any])
_kernels: dict[str, dict[Any, Callable[..., Any]]] = {}  # by the name of the function, for "pil" and for classes


class NoKernelError(TypeError):
    """A function has no kernel for a user's class of `tv_tensors`."""


def is_of_own_class(value: Any) -> bool:
    """Whether a value is of a user's class of `tv_tensors`, not one of torchvision's."""
    return isinstance(value, torch.Tensor) and kind_of(value) == ""


def functional(function: _Function) -> _Function:
    """A public function that first looks for a registered kernel."""
    kernels = _kernels.setdefault(function.__name__, {})
    signature = inspect.signature(function)
    first = next(iter(signature.parameters))

    @functools.wraps(function)
    def chosen(*args: Any, **kwargs: Any) -> Any:
        inpt = args[0] if args else kwargs.get(first)
        kernel = _kernel_for(inpt, kernels)
        if kernel is None:
            return function(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        del bound.arguments[first]
        return kernel(inpt, **bound.arguments)

    return chosen  # type: ignore[return-value]


def _kernel_for(inpt: Any, kernels: dict[Any, Callable[..., Any]]) -> Callable[..., Any] | None:
    if isinstance(inpt, ndd.Batch | ndd.Tensor | Treated | ndd.Targets) or is_pure_tensor(inpt):
        return None
    if is_pil(inpt):
        return kernels.get("pil")
    return next((kernels[each] for each in type(inpt).__mro__ if each in kernels), None)


def kernel_of(function: Callable[..., Any], served: Any) -> Callable[[_Function], _Function]:
    """A decorator: registers a kernel, which has the parameters of `function`, for values that are `served`: "pil" or a
    class."""
    kernels = _kernels.get(function.__name__)
    if kernels is None:
        raise ValueError(
            f"Functional {function.__name__} takes no kernels: it does not depend on the class of its input."
        )
    if served in kernels:
        raise ValueError(f"Functional {function} already has a kernel registered for type {served}.")

    def register(kernel: _Function) -> _Function:
        kernels[served] = kernel
        return kernel

    return register


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
    """`inpt` through the function for its kind.

    Args:
        images: takes an `ndd.Batch` or `ndd.Tensor` of images and returns the same.
        masks: the same for masks; default: `images`, if there is `boxes`.
        boxes: takes a tensor, its format (a string), the size of its images and a clamping mode; returns the tensor, or the
            tensor and the new size.
        points: takes a tensor and the size of its images; returns the same.
        targets: takes and returns `ndd.Targets`.

    Raises TypeError for a kind without a function.
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
    raise unserved(name, inpt, ", ".join(k for k, v in served.items() if v))


def unserved(name: str, inpt: Any, served: str) -> TypeError:
    """The error for a value that a function does not take."""
    return (NoKernelError if is_of_own_class(inpt) else TypeError)(
        f"Functional F.{name} supports inputs of type {served}, but got {type(inpt)} instead."
    )


def _moved(inpt: Any, images: Any) -> Any:
    value, back = pixels_of(inpt)
    result = images(value)
    return inpt if result is value and not isinstance(inpt, Treated) else back(result)


def _with_size(inpt: Any, result: Any) -> Any:
    """A tensor, or a tensor and the size of its new canvas, as the kind of the input."""
    if isinstance(inpt, Treated):
        return result
    if isinstance(result, tuple):
        return wrapped(result[0], inpt, canvas_size=tuple(result[1]))
    return wrapped(result, inpt)


def format_of(boxes: Any) -> str:
    """The format of boxes, as a string."""
    return str(getattr(boxes.format, "value", boxes.format))


def clamping_of(boxes: Any) -> str | None:
    """The clamping mode of boxes, which torchvision has since 0.24."""
    return getattr(boxes, "clamping_mode", "soft")
