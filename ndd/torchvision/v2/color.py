"""Transforms of colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ndd.torchvision.v2 import draws, functional as F
from ndd.torchvision.v2.inputs import copy_size, per_group, query_chw, samples_at, unchanged
from ndd.torchvision.v2.transform import COLOURS, RandomApplyTransform, Transform
from ndd.torchvision.values import kind_of

_GREY = tuple(kind for kind in COLOURS if kind != "video")  # torchvision does not change videos
_ADJUSTED = ("brightness", "contrast", "saturation", "hue")


class Grayscale(Transform):
    """Converts images to grey.

    Args:
        num_output_channels: 1, or 3 for three equal channels.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.Grayscale()(torch.tensor([[[100]], [[200]], [[50]]], dtype=torch.uint8))
    tensor([[[152]]], dtype=torch.uint8)
    """

    _kinds = _GREY
    _keeps_size = True

    def __init__(self, num_output_channels: int = 1):
        super().__init__()
        self.num_output_channels = num_output_channels

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One image in grey."""
        return F.rgb_to_grayscale(inpt, num_output_channels=self.num_output_channels)


class RandomGrayscale(RandomApplyTransform):
    """Converts images to grey with probability `p`, without changing the number of channels.

    Args:
        p: the probability.
        same_on_batch: decide once for a batch instead of for each sample.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RandomGrayscale(p=1.0)(torch.tensor([[[100]], [[200]], [[50]]], dtype=torch.uint8)).flatten()
    tensor([152, 152, 152], dtype=torch.uint8)
    """

    _kinds = _GREY
    _keeps_size = True

    def __init__(self, p: float = 0.1, *, same_on_batch: bool = False) -> None:
        super().__init__(p=p, same_on_batch=same_on_batch)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The number of channels: `num_input_channels`."""
        return {"num_input_channels": query_chw(flat_inputs)[0]}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One image in grey."""
        return F.rgb_to_grayscale(inpt, num_output_channels=int(np.max(params["num_input_channels"])))


class RGB(Transform):
    """Converts images to three channels: a single channel is repeated three times.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RGB()(torch.tensor([[[7]]])).flatten()
    tensor([7, 7, 7])
    """

    _kinds = _GREY
    _keeps_size = True

    def __init__(self):
        super().__init__()

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One image of three channels."""
        return F.grayscale_to_rgb(inpt)


class ColorJitter(Transform):
    """Changes brightness, contrast, saturation and hue by random factors, in random order.

    Args:
        brightness, contrast, saturation: range of the factor; a number x means (max(0, 1 - x), 1 + x); None leaves it out.
        hue: range by which the hue turns, within -0.5 to 0.5; a number x means (-x, x).
        same_on_batch: the same factors and order for all samples of a batch.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.ColorJitter(brightness=(0.5, 0.5))(torch.tensor([[[0, 100, 200]]], dtype=torch.uint8)).flatten()
    tensor([  0,  50, 100], dtype=torch.uint8)
    """

    _kinds = COLOURS
    _keeps_size = True

    def __init__(
        self,
        brightness: float | Sequence[float] | None = None,
        contrast: float | Sequence[float] | None = None,
        saturation: float | Sequence[float] | None = None,
        hue: float | Sequence[float] | None = None,
        *,
        same_on_batch: bool = False,
    ) -> None:
        super().__init__()
        self.brightness = _range_about(brightness, "brightness")
        self.contrast = _range_about(contrast, "contrast")
        self.saturation = _range_about(saturation, "saturation")
        self.hue = _range_about(hue, "hue", middle=0, bound=(-0.5, 0.5))
        self._same_on_batch = same_on_batch

    @staticmethod
    def get_params(
        brightness: Sequence[float] | None,
        contrast: Sequence[float] | None,
        saturation: Sequence[float] | None,
        hue: Sequence[float] | None,
    ) -> tuple[torch.Tensor, float | None, float | None, float | None, float | None]:
        """The order, and factors from these ranges.

        Args:
            brightness, contrast, saturation: smallest and largest factor; None: no change, and the factor is None.
            hue: smallest and largest turn as a share of the circle, within -0.5 to 0.5; or None.
        """
        order = torch.randperm(4)
        ranges = (brightness, contrast, saturation, hue)
        return order, *[None if each is None else draws.uniform(each[0], each[1]) for each in ranges]  # type: ignore[return-value]

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The order `fn_idx`, and the factors."""
        drawn = self.get_params(self.brightness, self.contrast, self.saturation, self.hue)
        return dict(zip(("fn_idx", *[f"{name}_factor" for name in _ADJUSTED]), drawn, strict=True))

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One image, with its colours changed."""
        for number in params["fn_idx"].tolist():
            inpt = _adjusted(inpt, _ADJUSTED[number], params[f"{_ADJUSTED[number]}_factor"])
        return inpt

    def _apart(self, chosen: list[Any], n: int) -> list[Any]:
        """In each step, samples are grouped by the property that changes, so that each factor is applied to a pixel once."""
        params = self._params_of_batch(chosen, n)
        factors: list[Any] = [params.get(f"{name}_factor") for name in _ADJUSTED]
        used = [k for k in range(4) if factors[k] is not None]
        works: list[Any] = [unchanged] * 4
        for k in used:
            works[k] = self._adjusting(_ADJUSTED[k], factors[k])
        if not n or not used:
            return chosen
        orders = np.array([[k for k in row if k in used] for row in params["fn_idx"].tolist()])
        for step in orders.T:
            chosen = per_group(step, works, chosen)
        return chosen

    def _adjusting(self, name: str, factors: np.ndarray) -> Callable[[list[Any], np.ndarray], list[Any]]:
        return lambda some, places: [_coloured(x, lambda v, f: _adjusted(v, name, f), factors[places]) for x in some]


def _adjusted(image: Any, name: str, factor: Any) -> Any:
    """An image with one property changed; with None unchanged."""
    return image if factor is None else getattr(F, f"adjust_{name}")(image, factor)


def _range_about(
    value: Any, name: str, middle: float = 1.0, bound: tuple[float, float] = (0, float("inf"))
) -> tuple[float, float] | None:
    """The range of a factor; None if it changes nothing."""
    if value is None:
        return None
    if isinstance(value, int | float):
        if value < 0:
            raise ValueError(f"If {name} is a single number, it must be non negative.")
        value = [max(middle - value, bound[0]) if name != "hue" else middle - value, middle + value]
    elif isinstance(value, Sequence) and len(value) == 2:
        value = [float(v) for v in value]
    else:
        raise TypeError(f"{name}={value} should be a single number or a sequence with length 2.")
    if not bound[0] <= value[0] <= value[1] <= bound[1]:
        raise ValueError(f"{name} values should be between {bound} and increasing, but got {value}.")
    return None if value[0] == value[1] == middle else (float(value[0]), float(value[1]))


class RandomChannelPermutation(Transform):
    """The channels in random order.

    Args:
        same_on_batch: one order for all samples of a batch.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RandomChannelPermutation()(torch.zeros(3, 4, 5)).shape
    torch.Size([3, 4, 5])
    """

    _kinds = COLOURS
    _keeps_size = True

    def __init__(self, *, same_on_batch: bool = False) -> None:
        super().__init__()
        self._same_on_batch = same_on_batch

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The order: `permutation`."""
        return {"permutation": torch.randperm(query_chw(flat_inputs)[0])}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One image with its channels in another order."""
        return F.permute_channels(inpt, params["permutation"])

    def _apart(self, chosen: list[Any], n: int) -> list[Any]:
        return _permuted(chosen, [self.make_params(each)["permutation"] for each in samples_at(chosen, n)])


class RandomPhotometricDistort(Transform):
    """Changes brightness, contrast, saturation, hue and the order of channels, each with probability `p`, as in the training of
    SSD.

    Args:
        brightness, contrast, saturation: range of the factor.
        hue: range by which the hue turns, within -0.5 to 0.5.
        p: the probability of each.
        same_on_batch: the same changes for all samples of a batch.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RandomPhotometricDistort()(torch.zeros(3, 8, 8, dtype=torch.uint8)).shape
    torch.Size([3, 8, 8])
    """

    _kinds = COLOURS
    _keeps_size = True

    def __init__(
        self,
        brightness: tuple[float, float] = (0.875, 1.125),
        contrast: tuple[float, float] = (0.5, 1.5),
        saturation: tuple[float, float] = (0.5, 1.5),
        hue: tuple[float, float] = (-0.05, 0.05),
        p: float = 0.5,
        *,
        same_on_batch: bool = False,
    ):
        super().__init__()
        self.brightness = brightness
        self.contrast = contrast
        self.hue = hue
        self.saturation = saturation
        self.p = p
        self._same_on_batch = same_on_batch

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The factors, None for no change; whether contrast comes first; the order of channels, or None."""
        channels = query_chw(flat_inputs)[0]
        params: dict[str, Any] = {
            f"{name}_factor": draws.uniform(getattr(self, name)[0], getattr(self, name)[1])
            if torch.rand(1) < self.p
            else None
            for name in _ADJUSTED
        }
        params["contrast_before"] = bool(torch.rand(()) < 0.5)
        params["channel_permutation"] = torch.randperm(channels) if torch.rand(1) < self.p else None
        return params

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One image, with its colours changed."""
        for name, factor in _steps_of_distortion(params):
            inpt = _adjusted(inpt, name, factor)
        order = params["channel_permutation"]
        return inpt if order is None else F.permute_channels(inpt, order)

    def _apart(self, chosen: list[Any], n: int) -> list[Any]:
        """Each step, applied to the samples for which it was drawn."""
        drawn = [self.make_params(each) for each in samples_at(chosen, n)]
        for step in range(len(_steps_of_distortion(drawn[0])) if drawn else 0):
            rows = [_steps_of_distortion(params)[step] for params in drawn]
            chosen = _where_given(chosen, lambda x, f, name=rows[0][0]: _adjusted(x, name, f), [f for _, f in rows])
        return _permuted(chosen, [params["channel_permutation"] for params in drawn])


def _permuted(chosen: list[Any], orders: list[torch.Tensor | None]) -> list[Any]:
    """The samples with their channels reordered where an order was drawn: one call for each order."""
    keys = [None if order is None else tuple(order.tolist()) for order in orders]
    distinct = sorted({key for key in keys if key is not None})
    if not distinct:
        return chosen
    works: list[Any] = [unchanged]
    for key in distinct:
        works.append(lambda some, _, key=key: [_coloured(x, F.permute_channels, list(key)) for x in some])
    group = np.array([0 if key is None else distinct.index(key) + 1 for key in keys])
    return [copy_size(x, result) for x, result in zip(chosen, per_group(group, works, chosen), strict=True)]


def _steps_of_distortion(params: dict[str, Any]) -> list[tuple[str, float | None]]:
    """The changes in order, each with its factor or None."""
    contrast, first = params["contrast_factor"], params["contrast_before"]
    return [
        ("brightness", params["brightness_factor"]),
        ("contrast", contrast if first else None),
        ("saturation", params["saturation_factor"]),
        ("hue", params["hue_factor"]),
        ("contrast", None if first else contrast),
    ]


def _where_given(chosen: list[Any], change: Callable[[Any, Any], Any], numbers: list[Any]) -> list[Any]:
    """The samples, those changed for which there is a number."""
    has_number = np.array([each is not None for each in numbers], np.int64)
    if not has_number.any():
        return chosen
    used = np.stack([np.asarray(each) for each in numbers if each is not None])
    return per_group(has_number, [unchanged, lambda some, _: [_coloured(x, change, used) for x in some]], chosen)


def _coloured(value: Any, change: Callable[..., Any], *numbers: Any) -> Any:
    return change(value, *numbers) if kind_of(value) in COLOURS else value


class _RandomlyChanged(RandomApplyTransform):
    _kinds = COLOURS
    _keeps_size = True


class RandomEqualize(_RandomlyChanged):
    """Equalises the histogram of each channel with probability `p`.

    Args:
        p: the probability.
        same_on_batch: decide once for a batch instead of for each sample.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RandomEqualize(p=1.0)((torch.arange(1024) % 64).reshape(1, 32, 32).to(torch.uint8)).amax().item()
    255
    """

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One image, equalised."""
        return F.equalize(inpt)


class RandomInvert(_RandomlyChanged):
    """Inverts the colours with probability `p`.

    Args:
        p: the probability.
        same_on_batch: decide once for a batch instead of for each sample.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RandomInvert(p=1.0)(torch.tensor([[[0, 100, 200]]], dtype=torch.uint8)).flatten()
    tensor([255, 155,  55], dtype=torch.uint8)
    """

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One image, inverted."""
        return F.invert(inpt)


class RandomPosterize(_RandomlyChanged):
    """Keeps some bits of each channel, with probability `p`.

    Args:
        bits: the number of bits, 0 to 8.
        p: the probability.
        same_on_batch: decide once for a batch instead of for each sample.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RandomPosterize(2, p=1.0)(torch.tensor([[[0, 100, 255]]], dtype=torch.uint8)).flatten()
    tensor([  0,  64, 192], dtype=torch.uint8)
    """

    def __init__(self, bits: int, p: float = 0.5, *, same_on_batch: bool = False) -> None:
        super().__init__(p=p, same_on_batch=same_on_batch)
        self.bits = bits

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One image with fewer bits."""
        return F.posterize(inpt, bits=self.bits)


class RandomSolarize(_RandomlyChanged):
    """Inverts values at or above a threshold, with probability `p`.

    Args:
        threshold: in the unit of the pixels.
        p: the probability.
        same_on_batch: decide once for a batch instead of for each sample.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RandomSolarize(threshold=128, p=1.0)(torch.tensor([[[0, 100, 200]]], dtype=torch.uint8)).flatten()
    tensor([  0, 100,  55], dtype=torch.uint8)
    """

    def __init__(self, threshold: float, p: float = 0.5, *, same_on_batch: bool = False) -> None:
        super().__init__(p=p, same_on_batch=same_on_batch)
        self.threshold = threshold

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One image, solarised."""
        return F.solarize(inpt, threshold=self.threshold)


class RandomAutocontrast(_RandomlyChanged):
    """Stretches each channel to the whole range with probability `p`.

    Args:
        p: the probability.
        same_on_batch: decide once for a batch instead of for each sample.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RandomAutocontrast(p=1.0)(torch.tensor([[[50, 100, 150]]], dtype=torch.uint8))
    tensor([[[  0, 127, 254]]], dtype=torch.uint8)
    """

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One image, stretched."""
        return F.autocontrast(inpt)


class RandomAdjustSharpness(_RandomlyChanged):
    """Makes images sharper or softer, with probability `p`.

    Args:
        sharpness_factor: 0 is blurred, 1 is the image itself, more is sharper.
        p: the probability.
        same_on_batch: decide once for a batch instead of for each sample.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RandomAdjustSharpness(0.0, p=1.0)(130 * torch.eye(3, dtype=torch.uint8)[None])[0, 1]
    tensor([ 0, 70,  0], dtype=torch.uint8)
    """

    def __init__(self, sharpness_factor: float, p: float = 0.5, *, same_on_batch: bool = False) -> None:
        super().__init__(p=p, same_on_batch=same_on_batch)
        self.sharpness_factor = sharpness_factor

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One image, sharper or softer."""
        return F.adjust_sharpness(inpt, sharpness_factor=self.sharpness_factor)
