"""Random windows and borders: crops, resized crops, zooming out, and crops that depend on boxes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch

import ndd
from ndd.ops.boxes.iou_windows import Rule, Search
from ndd.torchvision.interpolation import interpolation_mode
from ndd.torchvision.v2 import draws, functional as F
from ndd.torchvision.v2.arguments import (
    check_padding,
    check_padding_mode,
    check_sequence,
    crop_size,
    fill_for,
    fills_by_type,
    sides_of_padding,
)
from ndd.torchvision.v2.inputs import (
    PIXELS,
    SampleOf,
    get_bounding_boxes,
    has_kind,
    query_size,
    remember_size,
    sizes_of,
)
from ndd.torchvision.v2.transform import GEOMETRY, RandomApplyTransform, Transform
from ndd.torchvision.values import kind_of, plain

# By `ndd.random_resized_crop` with the rule "torchvision"; with the others the window is cut out first.
_FILTERS = {"bilinear": ndd.types.INTERP_LINEAR, "bicubic": ndd.types.INTERP_CUBIC}


class RandomResizedCrop(Transform):
    """A window of random area and aspect ratio, resized.

    Args:
        size: (height, width) of the result, or one number for both.
        scale: range of the window's area as a share of the image's.
        ratio: range of its width / height, whose logarithm is uniform.
        interpolation, antialias: as for `Resize`.
        same_on_batch: one window for all samples of a batch, which then have one size.

    After `ndd.decoders.image`, only the window of an image is decoded.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RandomResizedCrop(8)(torch.zeros(3, 16, 20)).shape
    torch.Size([3, 8, 8])
    """

    _kinds = GEOMETRY

    def __init__(
        self,
        size: int | Sequence[int],
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Any = "bilinear",
        antialias: bool | None = True,
        *,
        same_on_batch: bool = False,
    ) -> None:
        super().__init__()
        self.size = crop_size(size)
        if not isinstance(scale, Sequence) or len(scale) != 2:
            raise TypeError("Scale should be a sequence of two floats.")
        if not isinstance(ratio, Sequence) or len(ratio) != 2:
            raise TypeError("Ratio should be a sequence of two floats.")
        if scale[0] > scale[1] or ratio[0] > ratio[1]:
            warnings.warn("Scale and ratio should be of kind (min, max)", stacklevel=2)
        self.scale = scale
        self.ratio = ratio
        self.interpolation = interpolation
        self.antialias = antialias
        self._log_ratio = draws.logarithms(ratio)
        self._same_on_batch = same_on_batch

    @staticmethod
    def get_params(img: Any, scale: Sequence[float], ratio: Sequence[float]) -> tuple[int, int, int, int]:
        """Top, left, height and width of a window of this image.

        Args:
            img: the image `[..., C, H, W]`.
            scale: smallest and largest share of the image's area.
            ratio: smallest and largest width / height.
        """
        return draws.window(query_size([img]), scale, ratio, draws.logarithms(ratio))

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The window: `top`, `left`, `height`, `width`."""
        drawn = draws.window(query_size(flat_inputs), self.scale, self.ratio, self._log_ratio)
        return dict(zip(("top", "left", "height", "width"), drawn, strict=True))

    def _params_of_batch(self, chosen: list[Any], n: int) -> dict[str, Any]:
        if type(self).make_params is not RandomResizedCrop.make_params:
            return super()._params_of_batch(chosen, n)
        drawn = draws.windows(batch_sizes(chosen), self.scale, self.ratio, self._log_ratio)
        return dict(zip(("top", "left", "height", "width"), drawn.T, strict=True))

    def _apart(self, chosen: list[Any], n: int) -> list[Any]:
        """If there are only images, windows are drawn while resizing, without waiting for their sizes, so that a decoder in
        front decodes only the windows."""
        filters = _FILTERS.get(interpolation_mode(self.interpolation).value)
        own = (
            type(self).make_params is RandomResizedCrop.make_params
            and type(self).transform is RandomResizedCrop.transform
        )
        types = [x.dtype.name for x in chosen if kind_of(x) == "ndd"]
        own = own and all(isinstance(side, int) and side > 0 for side in self.size)
        if not own or filters is None or types not in (["u8"], ["f32"]) or len(chosen) != 1:
            return super()._apart(chosen, n)
        how = {"antialias": bool(self.antialias), "interp_type": filters, "rule": "torchvision"}
        windows = {"random_area": list(self.scale), "random_aspect_ratio": list(self.ratio), "rng": draws.generator()}
        crops = ndd.random_resized_crop(chosen[0], size=list(self.size), **windows, **how)
        return [remember_size(crops, self.size)]

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One value, cropped and resized."""
        how = {"interpolation": self.interpolation, "antialias": self.antialias}
        return remember_size(F.resized_crop(inpt, **params, size=list(self.size), **how), self.size)


class RandomCrop(Transform):
    """A window of a given size at a random place.

    Args:
        size: (height, width), or one number for both.
        padding: a border added before, as for `Pad`.
        pad_if_needed: add a border if the image is smaller than the window.
        fill, padding_mode: of the border, as for `Pad`.
        same_on_batch: the same place for all samples of a batch, which then have one size.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RandomCrop(8, padding=2)(torch.zeros(3, 8, 8)).shape
    torch.Size([3, 8, 8])
    """

    _kinds = GEOMETRY

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: Any = 0,
        padding_mode: Literal["constant", "edge", "reflect", "symmetric"] = "constant",
        *,
        same_on_batch: bool = False,
    ) -> None:
        super().__init__()
        self.size = crop_size(size)
        if pad_if_needed or padding is not None:
            if padding is not None:
                check_padding(padding)
            check_padding_mode(padding_mode)
        self.padding = sides_of_padding(padding) if padding else None
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        self._fill = fills_by_type(fill)
        self.padding_mode = padding_mode
        self._same_on_batch = same_on_batch

    @staticmethod
    def get_params(img: Any, output_size: tuple[int, int]) -> tuple[int, int, int, int]:
        """Top, left, height and width of a window of this image.

        Args:
            img: the image `[..., C, H, W]`. ValueError if it is smaller than the window.
            output_size: (H, W) of the window in pixels.
        """
        (h, w), (th, tw) = query_size([img]), output_size
        if h < th or w < tw:
            raise ValueError(f"Required crop size {(th, tw)} is larger than input image size {(h, w)}")
        if (h, w) == (th, tw):
            return 0, 0, h, w
        return draws.integer(0, h - th + 1), draws.integer(0, w - tw + 1), th, tw

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The border, `padding`, and the window after it: `top`, `left`, `height`, `width`."""
        words, take = draws.words(2)
        params, used = self._windows(np.array([query_size(flat_inputs)]), words[None])
        take(used)
        return {name: values[0].tolist() for name, values in params.items()}

    def _params_of_batch(self, chosen: list[Any], n: int) -> dict[str, Any]:
        if type(self).make_params is not RandomCrop.make_params or not n:
            return super()._params_of_batch(chosen, n)
        return self._windows(batch_sizes(chosen), draws.words_of_batch(n, 2).streams(n))[0]

    def _windows(self, sizes: np.ndarray, words: np.ndarray) -> tuple[dict[str, Any], int]:
        """The results of `make_params` for images of these sizes, and the number of words that they need."""
        padding, corners, free = place_windows(sizes, words, self.size, self.padding, self.pad_if_needed)
        extents = np.broadcast_to(np.array(self.size), corners.shape)
        params = {"needs_crop": (free > 0).any(1), "needs_pad": padding.any(1), "padding": padding}
        params |= {"top": corners[:, 0], "left": corners[:, 1], "height": extents[:, 0], "width": extents[:, 1]}
        return params, int((free > 0).sum())

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One value, padded and cropped."""
        if np.any(params["needs_pad"]):
            inpt = F.pad(
                inpt, padding=params["padding"], fill=fill_for(self._fill, inpt), padding_mode=self.padding_mode
            )
        if np.any(params["needs_crop"]):
            inpt = F.crop(
                inpt, top=params["top"], left=params["left"], height=int(self.size[0]), width=int(self.size[1])
            )
        return remember_size(inpt, self.size)


def place_windows(
    sizes: np.ndarray, words: np.ndarray, wanted: Sequence[int], padding: Sequence[int] | None, pad_if_needed: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The windows of `RandomCrop` in images of `sizes` `[N, 2]`: their borders (left, top, right, bottom) `[N, 4]`, and behind
    the border their corners (y, x) and the pixels around them, `[N, 2]`. `words` `[N, 2]` are random numbers: as in torchvision
    an axis without a choice takes none."""
    left, right, top, bottom = padding or (0, 0, 0, 0)
    padded = sizes + (top + bottom, left + right)
    more = np.maximum(wanted - padded, 0) if pad_if_needed else np.zeros_like(padded)
    padded = padded + 2 * more
    free = padded - wanted
    for i in np.flatnonzero((free < 0).any(1))[:1]:
        kind = "padded " if padding is not None else ""
        text = f"Required crop size {tuple(wanted)} is larger than {kind}input image size {tuple(padded[i].tolist())}."
        raise ndd.bad_sample(int(i), text, ValueError)
    corners = np.where(free[:, :1] > 0, words, words[:, :1]) % (free + 1)
    return np.tile(more[:, ::-1], 2) + (left, top, right, bottom), corners, free


class RandomZoomOut(RandomApplyTransform):
    """Puts the image at a random place of a larger canvas, with probability `p`.

    Args:
        fill: the value of the canvas, as for `Pad`.
        side_range: range of the canvas's sides as multiples of the image's, from 1.
        p: the probability.
        same_on_batch: one canvas and place for all samples of a batch, which then have one size.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RandomZoomOut(side_range=(2.0, 2.0), p=1.0)(torch.zeros(3, 4, 5)).shape
    torch.Size([3, 8, 10])
    """

    _kinds = GEOMETRY

    def __init__(
        self, fill: Any = 0, side_range: Sequence[float] = (1.0, 4.0), p: float = 0.5, *, same_on_batch: bool = False
    ) -> None:
        super().__init__(p=p, same_on_batch=same_on_batch)
        self.fill = fill
        self._fill = fills_by_type(fill)
        check_sequence(side_range, "side_range", (2,))
        self.side_range = side_range
        if side_range[0] < 1.0 or side_range[0] > side_range[1]:
            raise ValueError(f"Invalid side range provided {side_range}.")

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The border, `padding`: left, top, right, bottom."""
        height, width = query_size(flat_inputs)
        times = self.side_range[0] + torch.rand(1) * (self.side_range[1] - self.side_range[0])
        across, down = int(width * times) - width, int(height * times) - height
        shares = torch.rand(2)
        left, top = int(across * shares[0]), int(down * shares[1])
        return {"padding": [left, top, across - left, down - top]}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One value on its canvas."""
        return F.pad(inpt, **params, fill=fill_for(self._fill, inpt))


class RandomIoUCrop(Transform):
    """Crops a random window that holds the middle of a box and overlaps it by a drawn amount, as in the training of SSD.

    Args:
        min_scale, max_scale: range of the window's sides as shares of the image's.
        min_aspect_ratio, max_aspect_ratio: range of its width / height.
        sampler_options: overlaps (intersection over union), one of which is drawn; 1 or more leaves the image unchanged.
            Default: 0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.
        trials: the number of windows that are tried before another overlap is drawn.
        same_on_batch: one window for all samples of a batch: the first sample's boxes choose it.

    Takes an image, its boxes (`tv_tensors.BoundingBoxes`, or `ndd.Targets` with both) and masks. Boxes whose middle is outside
    of the window become zeros in `tv_tensors`, to be removed by `SanitizeBoundingBoxes`; `ndd.Targets` drop them with their
    labels and masks.

    >>> import ndd
    >>> from ndd.torchvision import v2
    >>> image = ndd.zeros(shape=[8, 8, 3], dtype=ndd.uint8)
    >>> targets = ndd.Targets(image, boxes=[[0.0, 0.0, 0.5, 0.5], [0.5, 0.5, 0.5, 1.0]])
    >>> v2.RandomIoUCrop()(targets).boxes.shape[1]
    4
    """

    _kinds = GEOMETRY

    def __init__(
        self,
        min_scale: float = 0.3,
        max_scale: float = 1.0,
        min_aspect_ratio: float = 0.5,
        max_aspect_ratio: float = 2.0,
        sampler_options: list[float] | None = None,
        trials: int = 40,
        *,
        same_on_batch: bool = False,
    ):
        super().__init__()
        self.min_scale = min_scale
        self.max_scale = max_scale
        self.min_aspect_ratio = min_aspect_ratio
        self.max_aspect_ratio = max_aspect_ratio
        self.options = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0] if sampler_options is None else sampler_options
        self.trials = trials
        self._same_on_batch = same_on_batch

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        """TypeError without an image and boxes."""
        complete = any(kind_of(x) == "targets" and x.boxes is not None for x in flat_inputs)
        if not complete and not (has_kind(flat_inputs, "boxes") and has_kind(flat_inputs, *_IMAGES)):
            raise TypeError(
                f"{type(self).__name__}() requires input sample to contain tensor or PIL images "
                "and bounding boxes. Sample can also contain masks."
            )

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The window, and which boxes have their middle in it; nothing if the image is not changed."""
        boxes, counts = _corners_of_boxes(flat_inputs)
        search = self._searched(np.array([query_size(flat_inputs)]), boxes[: counts[0]], counts[:1])
        if search.whole[0]:
            return {}
        window = dict(zip(_WINDOW, search.windows[0].tolist(), strict=True))
        return {**window, "is_within_crop_area": torch.from_numpy(search.kept)}

    def _searched(self, sizes: np.ndarray, boxes: np.ndarray, counts: np.ndarray) -> Search:
        """The windows, from the numbers that the samples draw one after the other."""
        ratio = self.min_aspect_ratio, self.max_aspect_ratio
        rule = Rule(tuple(self.options), self.trials, (self.min_scale, self.max_scale), ratio)
        search = Search(rule, sizes, boxes, counts)
        while not search.is_over:
            words, take = draws.words(max(_WORDS, rule.most_words))
            take(search.go_on(words))
        return search

    def _params_of_batch(self, chosen: list[Any], n: int) -> dict[str, Any]:
        if type(self).make_params is not RandomIoUCrop.make_params:
            return super()._params_of_batch(chosen, n)
        (boxes, counts), sizes = _corners_of_boxes(chosen), batch_sizes(chosen)
        if len(counts) != n:  # all samples share the boxes
            boxes, counts = np.tile(boxes, (n, 1)), np.repeat(counts, n)
        search = self._searched(sizes, boxes, counts)
        if search.whole.all():
            return {}
        params: dict[str, Any] = dict(zip(_WINDOW, search.windows.T, strict=True))
        return {**params, "is_within_crop_area": np.split(search.kept, np.cumsum(counts)[:-1])}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One value, cropped."""
        if not params:
            return inpt
        kept = params["is_within_crop_area"]
        if kind_of(inpt) == "targets":
            inpt = _with_boxes(inpt, kept if isinstance(kept, list) else _kept_by_window(inpt, params))
        cropped = F.crop(inpt, **{name: params[name] for name in _WINDOW})
        if kind_of(cropped) == "boxes":
            cropped[~torch.as_tensor(kept)] = 0
        return cropped


_IMAGES = tuple(kind for kind in PIXELS if kind != "video")
_WORDS = 1 << 12  # random words that are examined together
_WINDOW = ("top", "left", "height", "width")


def _middles_inside(boxes: Any, left: int, top: int, width: int, height: int) -> Any:
    """Which boxes (left, top, right, bottom) have their middle in a window."""
    x, y = 0.5 * (boxes[..., 0] + boxes[..., 2]), 0.5 * (boxes[..., 1] + boxes[..., 3])
    return (left < x) & (x < left + width) & (top < y) & (y < top + height)


def _kept_by_window(targets: ndd.Targets, params: dict[str, Any]) -> list[np.ndarray]:
    """For each sample, which of its boxes have their middle in the window that all samples share."""
    boxes, counts = _corners_of_boxes([targets])
    inside = _middles_inside(boxes, params["left"], params["top"], params["width"], params["height"])
    return np.split(inside, np.cumsum(counts)[:-1])


def _with_boxes(targets: ndd.Targets, kept: list[np.ndarray]) -> ndd.Targets:
    """Targets without the boxes, and their labels and masks, for which `kept` of their sample is False."""
    numbers = [np.flatnonzero(each).astype(np.int32) for each in kept]
    return targets.select_boxes(ndd.batch(numbers) if isinstance(targets.boxes, ndd.Batch) else numbers[0])


def _corners_of_boxes(flat: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Left, top, right, bottom of the boxes among these values, in pixels, one sample after the other; and the number of boxes
    of each sample, one number without a batch of boxes."""
    for x in flat:
        targets = x.batch if isinstance(x, SampleOf) else x
        if kind_of(targets) == "targets":
            boxes = targets.convert(format="xyxy", normalized=False).boxes
            if not isinstance(boxes, ndd.Batch):
                return _rows_of_boxes([boxes])
            return _rows_of_boxes([boxes.select(x.number)] if isinstance(x, SampleOf) else list(boxes.cpu().tensors))
    boxes = get_bounding_boxes(flat)
    return _rows_of_boxes([F.convert_bounding_box_format(plain(boxes), boxes.format, "XYXY")])


def _rows_of_boxes(each: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    rows = [(x if isinstance(x, torch.Tensor) else x.torch()).cpu() for x in each]
    rows = [(x.float() if x.dtype is torch.bfloat16 else x).numpy().reshape(-1, 4) for x in rows]
    return np.concatenate(rows), np.array([len(x) for x in rows])


def batch_sizes(chosen: list[Any]) -> np.ndarray:
    """Height and width of each sample of the batches among these values, int64 `[N, 2]`; ValueError where they disagree."""
    sizes = [sizes_of(x) for x in chosen if kind_of(x) in ("ndd", "targets")]
    for other in sizes[1:]:
        if not np.array_equal(other, sizes[0]):
            i = int(np.flatnonzero((other != sizes[0]).any(1))[0])
            raise ValueError(f"Found multiple HxW dimensions in sample {i}: {tuple(sizes[0][i])} and {tuple(other[i])}")
    return sizes[0]
