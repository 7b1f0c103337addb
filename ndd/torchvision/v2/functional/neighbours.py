"""Functions that mix pixels with their neighbours, add noise, or replace pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import ndd
from ndd.torchvision.v2.functional.arithmetic import (
    check_channels,
    factor_of,
    in_type_of,
    is_float,
    largest,
    on_device_of,
    with_channels,
)
from ndd.torchvision.v2.functional.colors import on_images
from ndd.torchvision.v2.functional.conversions import wide
from ndd.torchvision.v2.functional.crops import pairs
from ndd.torchvision.v2.functional.kinds import functional, through, unserved
from ndd.torchvision.values import count_of, kind_of, layout_of, per_sample, plain, rows_of, sizes_of, varies, wrapped

_BLURRED = (ndd.uint8, ndd.float32)


@functional
def gaussian_blur(inpt: Any, kernel_size: list[int], sigma: list[float] | None = None) -> Any:
    """Blurs by a Gaussian; the picture is mirrored at its edges.

    Args:
        inpt: images.
        kernel_size: odd widths of the window, (x, y), or one number.
        sigma: standard deviation, (x, y), or one number; default `0.15 * kernel_size + 0.35`.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.gaussian_blur(torch.tensor([[[0.0, 1.0, 0.0]]]).expand(1, 3, 3), 3, 0.5)[0, 0]
    tensor([0.2130, 0.7870, 0.2130])
    """
    count = count_of(inpt)
    sizes = [kernel_size] * 2 if isinstance(kernel_size, int) else list(kernel_size)
    if len(sizes) != 2:
        raise ValueError(f"If kernel_size is a sequence its length should be 2. Got {len(sizes)}")
    if any(size % 2 == 0 or size < 0 for size in sizes):
        raise ValueError(f"kernel_size should have odd and positive integers. Got {sizes}")
    sigma = [size * 0.15 + 0.35 for size in sizes] if sigma is None else sigma
    if not isinstance(sigma, int | float | list | tuple | np.ndarray | torch.Tensor | ndd.Batch):
        raise TypeError(f"sigma should be either float or sequence of floats. Got {type(sigma)}")
    rows = rows_of(sigma, count)
    rows = rows.reshape(len(rows), -1)
    if rows.shape[1] not in (1, 2):
        raise ValueError(f"If sigma is a sequence, its length should be 2. Got {rows.shape[1]}")
    if (rows <= 0).any():
        raise ValueError(f"sigma should have positive values. Got {sigma}")
    rows = np.broadcast_to(rows, (len(rows), 2))[:, ::-1].astype(np.float32)
    widths = ndd.batch(np.ascontiguousarray(rows)) if varies(sigma, count) else rows[0].tolist()

    def images(value: Any) -> Any:
        for size in sizes_of(value):
            if (size <= [sizes[1] // 2, sizes[0] // 2]).any():
                raise RuntimeError(
                    f"gaussian_blur: the picture of {size.tolist()} pixels (H, W) is too small for kernel_size {sizes}: "
                    "half of the kernel must be less than each side"
                )
        how = {"sigma": widths, "window_size": sizes[::-1]}
        if value.dtype in _BLURRED:
            return ndd.gaussian_blur(value, **how)
        return in_type_of(ndd.gaussian_blur(ndd.cast(value, dtype=ndd.float32), **how), value)

    return on_images("gaussian_blur", inpt, images)


@functional
def adjust_sharpness(inpt: Any, sharpness_factor: float) -> Any:
    """Moves pixels away from their smoothed neighbourhood: 0 is smooth, 1 the image itself. Its border does not change.

    Args:
        inpt: as for `adjust_brightness`.
        sharpness_factor: 0 or more. ValueError for less.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.adjust_sharpness(torch.tensor([[[0, 0, 0], [0, 130, 0], [0, 0, 0]]], dtype=torch.uint8), 0.0)[0, 1]
    tensor([ 0, 50,  0], dtype=torch.uint8)
    """
    count = count_of(inpt)
    text = f"sharpness_factor ({sharpness_factor}) is not non-negative."
    factor_of(sharpness_factor, count, lambda rows: rows >= 0, text)
    rest = (1.0 - rows_of(sharpness_factor, count)).astype(np.float32).astype(np.float64)
    share = ndd.batch(rest) if varies(sharpness_factor, count) else ndd.tensor(rest.reshape(-1)[0])

    def images(value: Any) -> Any:
        check_channels(value)
        sizes = sizes_of(value)
        real = ndd.cast(value, dtype=ndd.float32)
        inner = _like(np.maximum(sizes - 2, 0), value)
        border = ndd.erase(ndd.full_like(real, 1.0), anchor=[1, 1], shape=inner, axis_names="HW", fill_value=0)
        smooth = _smoothed(real)
        if not is_float(value):
            smooth = ndd.math.floor(smooth + 0.5)
        away = ndd.cast(
            (smooth - real) * (1.0 - border), dtype=ndd.float64
        )  # in which the product is exact, as torch has it
        mixed = ndd.cast(away * on_device_of(share, value) + ndd.cast(real, dtype=ndd.float64), dtype=ndd.float32)
        result = ndd.math.clamp(mixed, 0.0, largest(value.dtype))
        return in_type_of(result if is_float(value) else ndd.math.floor(result), value)

    return on_images("adjust_sharpness", inpt, images)


def _smoothed(value: Any) -> Any:
    """The mean of 3 x 3 pixels, with the middle one counted five times."""
    kernel = np.full((3, 3), 1 / 13, np.float32)
    kernel[1, 1] = 5 / 13
    return ndd.filter(value, kernel)


def _like(rows: np.ndarray, value: Any) -> Any:
    return ndd.batch(rows.astype(np.int32)) if isinstance(value, ndd.Batch) else rows[0].tolist()


@functional
def gaussian_noise(inpt: Any, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> Any:
    """Adds noise of a normal distribution.

    Tensors get torchvision's noise for the same state of torch's generator. Batches draw from a generator that is seeded by
    torch's, so `torch.manual_seed` makes them repeatable.

    Args:
        inpt: images, uint8 or floating-point numbers.
        mean, sigma: of the noise, as a share of white.
        clip: clip results to 0 to 1 (bytes: to 0 to 255; otherwise they wrap around).

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.gaussian_noise(torch.full((1, 1, 2), 0.5), mean=0.25, sigma=0.0)
    tensor([[[0.7500, 0.7500]]])
    """
    count, kind = count_of(inpt), kind_of(inpt)
    spread = factor_of(sigma, count, lambda rows: ~(rows < 0), f"sigma shouldn't be negative. Got {sigma}")
    middle = factor_of(mean, count, lambda rows: True, "")
    if kind in ("tensor", "image", "video") and inpt.dtype is torch.bool:  # which go through ndd as bytes
        raise ValueError(f"Input tensor is expected to be in uint8 or float dtype, got dtype={inpt.dtype}")
    drawn = _drawn_by_torch(inpt) if kind in ("tensor", "image", "video") else None

    def images(value: Any) -> Any:
        if not is_float(value) and value.dtype != ndd.uint8:
            raise ValueError(f"Input tensor is expected to be in uint8 or float dtype, got dtype={value.dtype}")
        white = largest(value.dtype)
        noise = drawn
        if noise is None:
            seed = int(torch.randint(2**31, ()))
            noise = ndd.noise.gaussian(
                ndd.full_like(ndd.cast(value, dtype=ndd.float32), 0.0), rng=ndd.random.RNG(seed=seed)
            )
        noise = noise * on_device_of(spread * white, value) + on_device_of(middle * white, value)
        if not is_float(value):  # rounds towards 0
            noise = ndd.math.max(ndd.math.floor(noise), 0.0) + ndd.math.min(ndd.math.ceil(noise), 0.0)
        result = wide(value) + noise
        if clip:
            result = ndd.math.clamp(result, 0.0, white)
        elif not is_float(value):
            result = result - ndd.math.floor(result * (1.0 / 256.0)) * 256.0
        return in_type_of(result, value)

    return on_images("gaussian_noise", inpt, images)


def _drawn_by_torch(inpt: Any) -> Any:
    tensor = plain(inpt)
    drawn = torch.randn_like(tensor, dtype=tensor.dtype if tensor.is_floating_point() else torch.float32)
    shape = (-1, *(1,) * (3 - tensor.ndim), *tensor.shape[-3:])
    return ndd.as_batch(drawn.float().reshape(shape), layout="CHW") if tensor.numel() else None


@functional
def erase(inpt: Any, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False) -> Any:
    """Replaces the window `h` x `w` at row `i` and column `j` by `v`.

    Args:
        inpt: images.
        i, j, h, w: the window.
        v: one number, one for each channel `[C, 1, 1]`, or pixels `[C, h, w]`; for a batch also an `ndd.Batch` of these.
        inplace: write into the tensor that came.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.erase(torch.ones(1, 2, 3), 0, 1, 2, 1, torch.zeros(1))
    tensor([[[1., 0., 1.],
             [1., 0., 1.]]])
    """
    count = count_of(inpt)

    def images(value: Any) -> Any:
        where = {"anchor": pairs(i, j, count), "shape": pairs(h, w, count), "axis_names": "HW"}
        patch = v
        if isinstance(patch, torch.Tensor) and value.dtype is ndd.uint8:
            patch = patch.to(torch.uint8)  # values below 0 become bright, as when torch writes them into bytes
        fill = _fill_of(patch, count)
        if fill is not None:
            return ndd.erase(value, fill_value=fill, **where)
        layout = layout_of(value)
        if not isinstance(patch, ndd.Batch):
            patch = torch.as_tensor(patch)
            patch = ndd.as_tensor(
                patch.reshape((1,) * (3 - patch.ndim) + tuple(patch.shape)).contiguous(), layout="CHW"
            )
            if isinstance(value, ndd.Batch):
                patch = ndd.Batch.broadcast(patch, value.batch_size)
        order = ["CHW".index(c) for c in layout if c in "CHW"]
        if len(order) < 3:
            patch = ndd.reshape(patch, src_dims=[1, 2], layout="HW")
        elif order != [0, 1, 2]:
            patch = ndd.transpose(patch, perm=order)
        patch = ndd.cast(on_device_of(patch, value), dtype=value.dtype)
        patch = _on_canvas(patch, pairs(i, j, count), sizes_of(value), value)
        return in_type_of(ndd.erase(value, fill_value=0, **where) + patch, value)

    result = through("erase", inpt, images)
    if inplace and isinstance(inpt, torch.Tensor):
        plain(inpt).copy_(plain(result))
        return inpt
    return wrapped(result, inpt) if result is not inpt else result


def _fill_of(v: Any, count: int | None) -> Any:
    """Values that are the same for the whole window, as `ndd.erase` takes them; None for pixels."""
    if isinstance(v, int | float):
        return float(v)
    if isinstance(v, ndd.Batch):
        return v if v.ndim < 2 else None
    tensor = torch.as_tensor(v)
    if tensor.numel() == 1:
        return float(tensor)
    if tensor.ndim == 3 and tuple(tensor.shape[1:]) == (1, 1):
        return tensor.flatten().tolist()
    if tensor.ndim == 4 and tuple(tensor.shape[2:]) == (1, 1) and len(tensor) == count:
        return ndd.batch(tensor.flatten(1).to(torch.float32))
    return per_sample(v, count) if tensor.ndim == 1 and len(tensor) == count else None


def _on_canvas(patch: Any, corner: Any, sizes: np.ndarray, value: Any) -> Any:
    """Pixels at their place in black pictures of `sizes`."""
    start = [-c for c in corner] if isinstance(corner, list) else ndd.batch(-corner.torch())
    return ndd.slice(
        patch, start=start, shape=_like(sizes, value), axis_names="HW", out_of_bounds_policy="pad"
    )  # fmt: skip


@functional
def jpeg(image: Any, quality: int) -> Any:
    """Encodes and decodes the picture as JPEG of a quality from 1 to 100.

    ndd computes the losses of JPEG, with the usual halved resolution of colours, without encoding. A few values differ slightly
    from libjpeg's.

    Args:
        image: as for `adjust_brightness`, of uint8.
        quality: 1 to 100.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.jpeg(torch.zeros(3, 16, 16, dtype=torch.uint8), 50).amax()
    tensor(0, dtype=torch.uint8)
    """
    count = count_of(image)
    rows = rows_of(quality, count)
    if (rows < 1).any() or (rows > 100).any():
        raise ValueError(f"Image quality should be a positive number between 1 and 100, got {quality}")
    level = per_sample(quality, count)

    def images(value: Any) -> Any:
        if "C" not in layout_of(value):
            return ndd.reshape(images(with_channels(value)), src_dims=[0, 1], layout="HW")
        layout = layout_of(value)
        last = [k for k, c in enumerate(layout) if c != "C"] + [layout.index("C")]
        moved = last != sorted(last)
        colors = ndd.transpose(value, perm=last) if moved else value
        grey = check_channels(value) == 1
        colors = ndd.cat(colors, colors, colors, axis_name="C") if grey else colors
        result = ndd.jpeg_compression_distortion(colors, quality=level)
        result = ndd.slice(result, start=[0], shape=[1], axis_names="C") if grey else result
        return ndd.transpose(result, perm=np.argsort(last).tolist()) if moved else result

    return on_images("jpeg", image, images)


@functional
def uniform_temporal_subsample(inpt: Any, num_samples: int) -> Any:
    """`num_samples` frames of a video, evenly spread from the first to the last.

    Args:
        inpt: video `[..., F, C, H, W]`, or an `ndd.Batch` of it.
        num_samples: the number of frames in the result; some are repeated if the video has fewer.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.uniform_temporal_subsample(torch.arange(10).reshape(10, 1, 1, 1), 4).flatten()
    tensor([0, 3, 6, 9])
    """
    kind = kind_of(inpt)
    if kind in ("tensor", "video"):
        video = plain(inpt)
        frames = torch.linspace(0, video.shape[-4] - 1, num_samples, device=video.device).long()
        return wrapped(video.index_select(-4, frames), inpt)
    if kind != "ndd" or "F" not in layout_of(inpt):
        raise unserved("uniform_temporal_subsample", inpt, "video")
    axis = layout_of(inpt).index("F")
    lengths = [s[axis] for s in (inpt.shape if isinstance(inpt, ndd.Batch) else [inpt.shape])]
    orders = [torch.linspace(0, n - 1, num_samples).long().to(torch.int32) for n in lengths]
    order = ndd.batch(orders) if isinstance(inpt, ndd.Batch) else orders[0].tolist()
    return ndd.sequence_rearrange(inpt, new_order=order)
