"""Changes of the size of pictures."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import torch

import ndd
from ndd.torchvision.interpolation import InterpolationMode, interpolation_mode
from ndd.torchvision.v2.functional import boxes as box
from ndd.torchvision.v2.functional.crops import crop, pairs
from ndd.torchvision.v2.functional.followers import followed
from ndd.torchvision.v2.functional.kinds import functional, through
from ndd.torchvision.values import count_of, kind_of, per_sample, rows_of, sizes_of, varies

_FILTERS = {
    InterpolationMode.NEAREST: ndd.types.INTERP_NN,
    InterpolationMode.NEAREST_EXACT: ndd.types.INTERP_NN,
    InterpolationMode.BILINEAR: ndd.types.INTERP_LINEAR,
    InterpolationMode.BICUBIC: ndd.types.INTERP_CUBIC,
    InterpolationMode.LANCZOS: ndd.types.INTERP_LANCZOS3,
}
_RESIZED = (ndd.uint8, ndd.int16, ndd.uint16, ndd.float32)  # the types that `ndd.resize` takes
_BILINEAR = InterpolationMode.BILINEAR


def resized_size(size: tuple[int, int], wanted: Any, max_size: int | None) -> tuple[int, int]:
    """The new size of an image of `size` (H, W): the computed side is rounded down."""
    wanted = _checked_size(wanted, max_size)
    height, width = size
    short, long = sorted((height, width))
    if len(wanted) == 2:
        return int(wanted[0]), int(wanted[1])
    if wanted:
        small, large = int(wanted[0]), int(wanted[0] * long / short)
        if max_size is not None and large > max_size:
            small, large = int(max_size * small / large), max_size
    else:
        small, large = int(max_size * short / long), int(max_size)  # type: ignore[operator]
    return (large, small) if width <= height else (small, large)


def _checked_size(size: Any, max_size: int | None) -> list[int]:
    """The requested sides: two, the shorter one, or none (then `max_size` is the longer one)."""
    if size is None:
        if not isinstance(max_size, int):
            raise ValueError(f"max_size must be an integer when size is None, but got {max_size} instead.")
        return []
    size = [size] if isinstance(size, numbers.Number) else list(size)
    if not all(isinstance(side, numbers.Number) for side in size):
        raise TypeError(f"expected size to be an integer, or one or two of them, got {size}")
    if min(map(int, size)) < 1:  # type: ignore[call-overload]
        raise RuntimeError(f"Input and output sizes should be greater than 0, but got output {size}")
    if max_size is not None:
        if len(size) != 1:
            raise ValueError(
                "max_size should only be passed if size is None or specifies the length of the smaller edge, "
                "i.e. size should be an int or a sequence of length 1 in torchscript mode."
            )
        if max_size <= size[0]:
            raise ValueError(
                f"max_size = {max_size} must be strictly greater than the requested "
                f"size for the smaller edge size = {size}"
            )
    return size


def _check_sides(value: Any, size: Any, max_size: int) -> None:
    """RuntimeError where a side would have no pixels: a long thin image whose longer side is cut down."""
    for each in sizes_of(value).tolist():
        if min(each) and not min(resized_size(each, size, max_size)):
            raise RuntimeError(
                f"Input and output sizes should be greater than 0, but got an image of {tuple(each)} pixels (H, W), whose "
                f"longer side is brought to {max_size}"
            )


def _how(interpolation: Any, antialias: bool | None) -> dict[str, Any]:
    """The filter, as arguments of `ndd.resize`."""
    mode = interpolation_mode(interpolation)
    if mode not in _FILTERS:
        raise NotImplementedError(f"resize: interpolation {mode.value!r} is Pillow's alone, ndd has no such filter")
    smooth = bool(antialias)
    if mode is InterpolationMode.LANCZOS and not smooth:
        raise ValueError("InterpolationMode.LANCZOS requires antialias=True")
    if mode in (InterpolationMode.NEAREST, InterpolationMode.NEAREST_EXACT):
        smooth = mode is InterpolationMode.NEAREST_EXACT
    return {"interp_type": _FILTERS[mode], "antialias": smooth, "rule": "torchvision"}


def _how_of_masks(mode: InterpolationMode) -> dict[str, Any]:
    """The filter for masks: the nearest pixel."""
    exact = mode in (InterpolationMode.NEAREST, InterpolationMode.NEAREST_EXACT)
    return _how(mode if exact else InterpolationMode.NEAREST, False)


def _resampled(value: Any, operator: Any = ndd.resize, **how: Any) -> Any:
    """`ndd.resize` for any element type: those that it does not take are resized as float32, as in torchvision."""
    kind = value.dtype
    if kind in _RESIZED:
        return operator(value, **how)
    if how["interp_type"] == ndd.types.INTERP_NN and kind in (ndd.int8, ndd.bool):
        return ndd.reinterpret(operator(ndd.reinterpret(value, dtype=ndd.uint8), **how), dtype=kind)
    result = operator(ndd.cast(value, dtype=ndd.float32), **how)
    return ndd.cast(result, dtype=kind)


def _target(size: Any, max_size: int | None, count: int | None) -> dict[str, Any]:
    """The size, as arguments of `ndd.resize`: it computes the other side when the pictures are known."""
    if varies(size, count):
        rows = per_sample(size, count)
        if (rows_of(size, count) < 0).any():
            raise RuntimeError(f"Input and output sizes should be greater than 0, but got output {size}")
        return {"resize_shorter": rows} if rows.ndim == 0 else {"size": rows}
    sides = _checked_size(size, max_size)
    if len(sides) == 2:
        return {"size": [int(s) for s in sides]}
    if not sides:
        return {"resize_longer": max_size}
    return {"resize_shorter": int(sides[0]), **({} if max_size is None else {"max_size": [max_size]})}


@functional
def resize(
    inpt: Any,
    size: list[int] | None,
    interpolation: Any = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    """Resizes.

    Args:
        inpt: images, masks (nearest pixel), boxes, points or `ndd.Targets`.
        size: (H, W); or one number, to which the shorter side is brought while the ratio is kept; or None, with
            `max_size` for the longer one.
        interpolation: "nearest", "nearest-exact", "bilinear", "bicubic" or "lanczos", or a member of either enum.
        max_size: the longer side is at most this.
        antialias: widen the filter where the picture shrinks. PIL images always are.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.resize(torch.zeros(3, 300, 401), [256]).shape
    torch.Size([3, 256, 342])
    """
    count, kind = count_of(inpt), kind_of(inpt)
    mode = interpolation_mode(interpolation)
    of_masks = _how_of_masks(mode)
    target = _target(size, max_size, count)

    def moved(sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        result = sizes_of(images(followed_images))
        return _scale(result / np.maximum(sizes, 1)), result

    def images(value: Any) -> Any:
        if max_size is not None:
            _check_sides(value, size, max_size)
        return _resampled(value, **target, **_how(mode, antialias))

    def masks(value: Any) -> Any:
        if max_size is not None:
            _check_sides(value, size, max_size)
        return _resampled(value, **target, **of_masks)

    followed_images = inpt.images if kind == "targets" else None

    def boxes(b: torch.Tensor, format: str, old: tuple[int, int], clamping: str | None) -> Any:
        new = resized_size(old, size, max_size)
        return (b, old) if new == tuple(old) else (box.scaled(b, format, old, new, clamping), new)

    def points(p: torch.Tensor, old: tuple[int, int]) -> Any:
        new = resized_size(old, size, max_size)
        return (p, old) if new == tuple(old) else (p.mul(_ratios(old, new).to(p.device)).to(p.dtype), new)

    return through(
        "resize",
        inpt,
        images,
        masks=masks,
        boxes=boxes,
        points=points,
        targets=lambda t: followed(t, images, moved, lambda v: _resampled(v, **target, **of_masks)),
    )


def resized_window(value: Any, size: Any, *, interpolation: Any, antialias: bool | None, **window: Any) -> Any:
    """A batch of images, or of masks HW, resized to `size` (as `resize` has it, or a batch of heights and widths), of which only
    a window is computed: `window` is for `ndd.resize_crop_mirror`."""
    mode = interpolation_mode(interpolation)
    how = _how_of_masks(mode) if value.layout == "HW" else _how(mode, antialias)
    target = {"size": size} if isinstance(size, ndd.Batch) else _target(size, None, count_of(value))
    return _resampled(value, ndd.resize_crop_mirror, **target, **how, **window)


def _ratios(old: tuple[int, int], new: tuple[int, int]) -> torch.Tensor:
    return torch.tensor([new[1] / old[1], new[0] / old[0]])


def _scale(ratios: np.ndarray) -> np.ndarray:
    """Maps `[N, 2, 3]` that enlarge by ratios of heights and widths."""
    result = np.zeros((len(ratios), 2, 3))
    result[:, 0, 0], result[:, 1, 1] = ratios[:, 1], ratios[:, 0]
    return result


@functional
def resized_crop(
    inpt: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: list[int],
    interpolation: Any = InterpolationMode.BILINEAR,
    antialias: bool | None = True,
) -> Any:
    """The window `height` x `width` at row `top` and column `left` (`crop`), resized to `size` (`resize`), in one step.

    Args:
        inpt: images, masks, boxes, points or `ndd.Targets`.
        top, left: row and column of the window's corner, in pixels.
        height, width: of the window, in pixels.
        size: (H, W) of the result; or one number, to which the shorter side is brought.
        interpolation, antialias: as for `resize`.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.resized_crop(torch.arange(16.0).reshape(1, 4, 4), 0, 2, 2, 2, [1, 1])
    tensor([[[4.5000]]])
    """
    count, kind = count_of(inpt), kind_of(inpt)
    if kind in ("boxes", "points", "targets"):
        return resize(crop(inpt, top, left, height, width), size, interpolation, None, antialias)
    how = _how(InterpolationMode.NEAREST if kind == "mask" else interpolation, antialias)
    target = _target(size, None, count)

    def images(value: Any) -> Any:
        corner, extent = pairs(top, left, count), pairs(height, width, count)
        if not _inside(sizes_of(value), top, left, height, width, count):
            window = ndd.slice(
                value, start=corner, shape=extent, axis_names="HW", out_of_bounds_policy="pad"
            )  # fmt: skip
            return _resampled(window, **target, **how)
        return _resampled(value, roi_start=corner, roi_end=_sum(corner, extent), **target, **how)

    return through("resized_crop", inpt, images, masks=images)


def _inside(sizes: np.ndarray, top: Any, left: Any, height: Any, width: Any, count: int | None) -> bool:
    y, x, h, w = (rows_of(v, count).reshape(-1) for v in (top, left, height, width))
    within = (y >= 0) & (x >= 0) & (h > 0) & (w > 0) & (y + h <= sizes[:, 0]) & (x + w <= sizes[:, 1])
    return bool(within.all())


def _sum(first: Any, second: Any) -> Any:
    if not isinstance(first, ndd.Batch) and not isinstance(second, ndd.Batch):
        return [a + b for a, b in zip(first, second, strict=True)]
    rows = [v.torch() if isinstance(v, ndd.Batch) else torch.tensor([v], dtype=torch.int32) for v in (first, second)]
    return ndd.batch((rows[0] + rows[1]).to(torch.float32))
