"""Checks of the arguments that several transforms take, with torchvision's errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Number
from typing import Any

from ndd.torchvision.v2.inputs import is_labels
from ndd.torchvision.values import Fills, kind_of, tv_tensors

_PADDING_MODES = ("constant", "edge", "reflect", "symmetric")


def pair_of_sizes(size: Any, message: str) -> Any:
    """Height and width from a number, or from a sequence of one or two."""
    if isinstance(size, Number):
        return int(size), int(size)  # type: ignore[arg-type]
    if isinstance(size, Sequence) and len(size) == 1:
        return size[0], size[0]
    if len(size) != 2:
        raise ValueError(message)
    return size


def crop_size(size: Any) -> Any:
    """The size of a crop."""
    return pair_of_sizes(size, "Please provide only two dimensions (h, w) for size.")


def check_sequence(value: Any, name: str, lengths: tuple[int, ...]) -> None:
    """Checks for a sequence of one of these lengths; raises TypeError or ValueError."""
    wanted = " or ".join(map(str, lengths))
    if not isinstance(value, Sequence):
        raise TypeError(f"{name} should be a sequence of length {wanted}.")
    if len(value) not in lengths:
        raise ValueError(f"{name} should be a sequence of length {wanted}.")


def range_of_angles(value: Any, name: str, lengths: tuple[int, ...] = (2,)) -> list[float]:
    """(-x, x) for a number x; a sequence unchanged."""
    if isinstance(value, Number):
        if value < 0:  # type: ignore[operator]
            raise ValueError(f"If {name} is a single number, it must be positive.")
        value = [-value, value]  # type: ignore[operator]
    else:
        check_sequence(value, name, lengths)
    return [float(each) for each in value]


def two_numbers(value: Any, name: str) -> list[float]:
    """Two floats from a number, or from a sequence of one or two."""
    if not isinstance(value, int | float | Sequence):
        raise TypeError(f"{name} should be a number or a sequence of numbers. Got {type(value)}")
    if isinstance(value, int | float):
        return [float(value), float(value)]
    if len(value) not in (1, 2):
        raise ValueError(f"If {name} is a sequence its length should be 1 or 2. Got {len(value)}")
    for element in value:
        if not isinstance(element, int | float):
            raise ValueError(f"{name} should be a sequence of numbers. Got {type(element)}")
    return [float(value[0]), float(value[-1])]


def check_padding(padding: Any) -> None:
    """Checks for an integer, or 1, 2 or 4 integers."""
    several = isinstance(padding, tuple | list)
    right = (
        len(padding) in (1, 2, 4) and all(isinstance(p, int) for p in padding) if several else isinstance(padding, int)
    )
    if not right:
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 element of tuple or list, got {padding}.")


def check_padding_mode(mode: Any) -> None:
    """Checks for one of torchvision's four modes."""
    if mode not in _PADDING_MODES:
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")


def sides_of_padding(padding: Any) -> list[int]:
    """Left, right, top, bottom: the order of `RandomCrop.padding`."""
    if isinstance(padding, int):
        return [padding] * 4
    if len(padding) == 1:
        return [padding[0]] * 4
    if len(padding) == 2:
        return [padding[0], padding[0], padding[1], padding[1]]
    left, top, right, bottom = padding
    return [left, right, top, bottom]


def fills_by_type(fill: Any) -> dict[Any, Any]:
    """The fill values for pixels outside of the image, by the type of the value, with "others" for the rest."""
    _check_fill(fill)
    fills = fill if isinstance(fill, dict) else {"others": fill}
    return {kind: _floats(value) for kind, value in fills.items()}


def fill_for(fills: dict[Any, Any], value: Any) -> Any:
    """The fill value for pixels outside of `value`; None for a type without one. Values of ndd count as images or masks,
    whichever they hold; `ndd.Targets` get `Fills`."""
    if type(value) in fills or kind_of(value) not in ("ndd", "targets"):
        return fills[type(value)] if type(value) in fills else fills.get("others")
    images, masks = _of_class(fills, "Image"), _of_class(fills, "Mask")
    if kind_of(value) == "targets":
        return Fills(images, None if isinstance(masks, list) else masks)
    return masks if value.layout == "HW" else images


def _of_class(fills: dict[Any, Any], name: str) -> Any:
    """The fill value for a class of `tv_tensors`."""
    return fills.get(getattr(tv_tensors(), name, None), fills.get("others"))


def _check_fill(fill: Any) -> None:
    if isinstance(fill, dict):
        for value in fill.values():
            _check_fill(value)
    elif fill is not None and not isinstance(fill, Number | tuple | list):
        raise TypeError("Got inappropriate fill arg, only Numbers, tuples, lists and dicts are allowed.")


def _floats(fill: Any) -> Any:
    return fill if fill is None or isinstance(fill, int | float) else [float(v) for v in fill]


def check_probability(p: Any) -> None:
    """Checks that a probability is in [0, 1]."""
    if not 0.0 <= p <= 1.0:
        raise ValueError("`p` should be a floating point value in the interval [0.0, 1.0].")


def check_transforms(transforms: Any, also: tuple[type, ...] = ()) -> None:
    """Checks for a sequence that is not empty."""
    if not isinstance(transforms, (Sequence, *also)):
        beside = " or a `nn.ModuleList`" if also else ""
        raise TypeError(f"Argument transforms should be a sequence of callables{beside}")
    if not transforms:
        raise ValueError("Pass at least one transform")


def getter_of_labels(getter: Any) -> Callable[[Any], Any] | None:
    """The function that finds the labels in an input; None without labels."""
    if getter == "default":
        return _labels_by_name
    if getter is None or callable(getter):
        return getter
    raise ValueError(f"labels_getter should either be 'default', a callable, or None, but got {getter}.")


def _labels_by_name(inputs: Any) -> Any:
    """The labels of a batch, of `(images, labels)`, of `(image, {"labels": ...})` or of `{"labels": ...}`."""
    if isinstance(inputs, tuple | list):
        inputs = inputs[1]
    if is_labels(inputs):
        return inputs
    if not isinstance(inputs, Mapping):
        raise ValueError(
            "When using the default labels_getter, the input passed to forward must be a dictionary or a two-tuple "
            f"whose second item is a dictionary or a tensor, but got {inputs} instead."
        )
    keys = list(inputs)
    exact = [key for key in keys if key.lower() == "labels"]
    like = exact or [key for key in keys if "label" in key.lower()]
    if not like:
        raise ValueError(
            "Could not infer where the labels are in the sample. Try passing a callable as the labels_getter parameter?"
            "If there are no labels in the sample by design, pass labels_getter=None."
        )
    return inputs[like[0]]
