"""The pixels of pictures through maps, which `warps.py` makes: from the nearest pixel, or mixed of four, with a fill outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import ndd
from ndd.torchvision.interpolation import InterpolationMode, interpolation_mode
from ndd.torchvision.v2.functional.arithmetic import channels_of, is_float, with_channels
from ndd.torchvision.values import layout_of, sizes_of

NEAREST, BILINEAR, BICUBIC = InterpolationMode.NEAREST, InterpolationMode.BILINEAR, InterpolationMode.BICUBIC
_WARPED = (ndd.uint8, ndd.int16, ndd.float32)
_REMAPPED = (ndd.uint8, ndd.uint16, ndd.int16, ndd.float32)
Size = tuple[int, int]
# Places `[1, H, W, 2]`, or `[N, H, W, 2]` of all samples, which have one size: x and y, from -1 to 1.
Maps = Callable[[Size, torch.device], torch.Tensor]


def turned(value: Any, warp: Callable[..., Any], matrix: Any, size: Any, interpolation: Any, fill: Any) -> Any:
    """Pictures through `ndd.warp_affine` or `ndd.experimental.warp_perspective`, with the `matrix` and `size` of the results of
    the rule "torchvision"."""
    mode = checked_mode(interpolation)
    fills, kind = _fills(fill, value, mode), value.dtype
    value = value if kind in _WARPED else ndd.cast(value, dtype=ndd.float32)
    frames, back = _as_frames(with_channels(value), "HWC" if layout_of(value) == "HW" else layout_of(value))
    how = {"matrix": matrix, "size": size, "rule": "torchvision"}
    how["interp_type"] = ndd.types.INTERP_NN if mode is NEAREST else ndd.types.INTERP_LINEAR
    if fill is None or (mode is NEAREST and len(fills) == 1):
        result = warp(frames, fill_value=fills[0], **how)
    else:  # as in torchvision, where the picture is faded towards its border twice
        inside = warp(_plane_of_ones(frames), fill_value=0.0, **how)
        if any(fills):
            result = warp(ndd.cast(frames, dtype=ndd.float32), fill_value=0.0, **how)
            result = result * inside + (1.0 - inside) * _fill_operand(fills, frames)
        else:
            result = warp(frames, fill_value=0.0, **how) * inside
    result = back(result)
    result = ndd.squeeze(result, axis_names="C") if layout_of(value) == "HW" else result
    return _as_it_was(result, value.layout, kind)


def _plane_of_ones(frames: Any) -> Any:
    """Planes of ones in float32, one of each picture's size."""
    if frames.layout == "HWC" and isinstance(frames, ndd.Batch) and frames.device.device_type == "cpu":
        sizes = list(map(tuple, sizes_of(frames).tolist()))
        planes = {size: torch.ones(*size, 1) for size in sizes}  # slicing single channels takes longer
        return ndd.as_batch([planes[size] for size in sizes], layout="HWC")
    axes = "FC" if frames.layout == "FHWC" else "C"
    plane = ndd.slice(frames, start=[0] * len(axes), shape=[1] * len(axes), axis_names=axes)
    return ndd.full_like(ndd.cast(plane, dtype=ndd.float32), 1.0)


def checked_mode(interpolation: Any) -> InterpolationMode:
    """The nearest pixel or a mixture of four; ValueError for another mode."""
    mode = interpolation_mode(interpolation)
    if mode not in (NEAREST, BILINEAR):
        raise ValueError(f"Interpolation mode '{mode.value}' is unsupported with Tensor input")
    return mode


def _as_it_was(result: Any, layout: Any, kind: Any) -> Any:
    result = result if layout in (None, result.layout) else ndd.reshape(result, layout=layout)
    return result if kind == result.dtype else ndd.cast(result, dtype=kind)


def warped(value: Any, maps: Maps, interpolation: Any, fill: Any) -> Any:
    """Pictures whose pixels come from the places in `maps`."""
    mode = checked_mode(interpolation)
    try:
        fills, kind, layout = _fills(fill, value, mode), value.dtype, value.layout
    except ValueError as error:  # torchvision's kind here
        raise RuntimeError(str(error)) from None
    shaded = mode is BILINEAR and fill is not None
    real = shaded or kind not in _REMAPPED
    value = ndd.cast(value, dtype=ndd.float32) if real and kind != ndd.float32 else value
    frames, back = _as_frames(_bordered(value, [0.0] if shaded else fills), layout_of(value))
    x, y, weight = _maps_of(value, maps, mode)
    how = ndd.types.INTERP_NN if mode is NEAREST else ndd.types.INTERP_LINEAR
    result = ndd.experimental.remap(frames, x, y, interp=how, pixel_origin="center")
    if shaded:  # as in torchvision, where the picture is faded towards its border twice
        fill = _fill_operand(fills, frames)
        result = (result - fill) * ndd.reshape(weight, src_dims=_AROUND[frames.layout]) + fill
    return _as_it_was(back(result), layout, kind)


_AROUND = {"HW": [0, 1], "HWC": [0, 1, -1], "FHWC": [-1, 0, 1, -1]}  # a weight [H, W] beside pictures


def _maps_of(value: Any, maps: Maps, mode: InterpolationMode) -> list[Any]:
    """Columns and rows of the source of each picture, with its border, and the share of each pixel that lies inside."""
    gpu = value.device.device_type == "gpu"
    device = torch.device("cuda", value.device.device_id or 0) if gpu else torch.device("cpu")
    sizes = set(map(tuple, sizes_of(value).tolist()))
    grids = [maps(size, device) for size in sizes]  # one, or none for a batch without pictures
    layers = _places(grids[0], min(sizes), mode is NEAREST) if grids else [torch.zeros(1, 0, 0)] * 3
    if not isinstance(value, ndd.Batch):
        return [ndd.as_tensor(layer[0]) for layer in layers]
    n = value.batch_size
    return [ndd.as_batch(layer if len(layer) == n else [layer[0]] * n) for layer in layers]


def mixed_of_sixteen(value: Any, maps: Maps, fill: Any) -> Any:
    """As `warped`, each pixel mixed of sixteen, by torch: torchvision does so for `elastic` alone."""
    fills, layout = _fills(fill, value, BICUBIC), layout_of(value)
    samples = value.tensors if isinstance(value, ndd.Batch) else [value]
    axes = layout.index("H"), layout.index("W")

    def sampled(i: int, sample: Any) -> Any:
        pixels = sample.torch().movedim(axes, (-2, -1))
        shape = pixels.shape if "C" in layout else (1, *pixels.shape)
        frames = pixels.reshape(-1, *shape[-3:]).to(torch.float64 if pixels.dtype == torch.float64 else torch.float32)
        grid = maps((shape[-2], shape[-1]), frames.device).to(frames.dtype)
        grid = grid[i if len(grid) > 1 else 0][None]
        how: dict[str, Any] = {"mode": "bicubic", "padding_mode": "zeros", "align_corners": False}
        result = torch.nn.functional.grid_sample(frames, grid.expand(len(frames), -1, -1, -1), **how)
        if fill is not None:
            share = torch.nn.functional.grid_sample(torch.ones_like(frames[:1, :1]), grid, **how)
            outside = frames.new_tensor(fills).reshape(-1, 1, 1)
            result = (result - outside) * share + outside
        result = result if pixels.is_floating_point() else result.round()
        result = result.to(pixels.dtype).reshape(pixels.shape).movedim((-2, -1), axes)
        return ndd.as_tensor(result.contiguous(), layout=value.layout)

    results = [sampled(i, sample) if sample.size else sample for i, sample in enumerate(samples)]
    if not isinstance(value, ndd.Batch):
        return results[0]
    return ndd.as_batch(results, layout=value.layout) if results else value


def _fill_operand(fills: list[float], frames: Any) -> Any:
    """The fill values of channels as an operand beside pictures; planes that count as frames are channels too."""
    if len(fills) == 1:
        return fills[0]
    array = np.array(fills, np.float32)
    if frames.layout == "HWC" or (frames.layout == "FHWC" and channels_of(frames) != {1}):
        return ndd.as_tensor(array.reshape((1,) * (frames.ndim - 1) + (-1,))).to_device(frames.device)
    counts = [s[0] for s in (frames.shape if isinstance(frames, ndd.Batch) else [frames.shape])]
    rows = [np.tile(array, count // len(fills)).reshape(-1, 1, 1, 1) for count in counts]
    operand = ndd.batch(rows) if isinstance(frames, ndd.Batch) else ndd.as_tensor(rows[0])
    return operand.to_device(frames.device)


def _fills(fill: Any, value: Any, mode: InterpolationMode) -> list[float]:
    if fill is None:
        return [0.0]
    if not isinstance(fill, int | float | list | tuple):
        raise ValueError("Argument fill should be either int, float, tuple or list")
    fills = [float(f) for f in fill] if isinstance(fill, list | tuple) else [float(fill)]
    if not fills:
        raise RuntimeError("fill: expected one number, or one for each channel, got an empty list")
    counts = channels_of(value)
    if len(fills) > 1 and counts != {len(fills)} and counts:
        raise ValueError(
            "The number of elements in 'fill' cannot broadcast to match the number of channels of the image "
            f"({len(fills)} != {min(counts)})"
        )
    # As torch rounds them, halves to even; between pixels they are mixed before.
    return [float(round(f)) for f in fills] if mode is NEAREST and not is_float(value) else fills


def _bordered(value: Any, fills: list[float]) -> Any:
    sizes = sizes_of(value) + 2
    shape = ndd.batch(sizes.astype(np.int32)) if isinstance(value, ndd.Batch) else sizes[0].tolist()
    return ndd.slice(value, start=[-1, -1], shape=shape, axis_names="HW", out_of_bounds_policy="pad", fill_values=fills)


def _as_frames(value: Any, layout: str) -> tuple[Any, Callable[[Any], Any]]:
    """Pictures in a layout that `remap` takes (planes count as frames), and the function that converts back."""
    if layout in ("HW", "HWC", "FHWC"):
        return value if value.layout else ndd.reshape(value, layout=layout), lambda result: result
    if layout == "CHW":
        if 0 in channels_of(value):
            return _with_a_plane_more(value)
        frames = ndd.reshape(value, src_dims=[0, 1, 2, -1], layout="FHWC")
        return frames, lambda result: ndd.reshape(result, src_dims=[0, 1, 2], layout="CHW")
    if layout == "FCHW":
        shapes = value.shape if isinstance(value, ndd.Batch) else [value.shape]
        planes = [[f * c, h, w, 1] for f, c, h, w in shapes]
        frames = ndd.reshape(
            value, shape=ndd.batch(planes) if isinstance(value, ndd.Batch) else planes[0], layout="FHWC"
        )

        def back(result: Any) -> Any:
            sizes = result.shape if isinstance(result, ndd.Batch) else [result.shape]
            whole = [[s[0], s[1], *m[1:3]] for s, m in zip(shapes, sizes, strict=True)]
            return ndd.reshape(
                result, shape=ndd.batch(whole) if isinstance(result, ndd.Batch) else whole[0], layout="FCHW"
            )

        return frames, back
    raise ValueError(f"expected pictures HWC, CHW or HW, or video FHWC or FCHW, got the layout {layout!r}")


def _with_a_plane_more(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The same of values of which some have no planes, such as the masks of no objects: their results have a size, too."""
    counts = [shape[0] for shape in (value.shape if isinstance(value, ndd.Batch) else [value.shape])]

    def planes(pictures: Any, more: int) -> Any:
        shape = [[count + more] for count in counts]
        wanted = ndd.batch(shape, dtype=ndd.int32) if isinstance(value, ndd.Batch) else shape[0]
        how: dict[str, Any] = {"axis_names": "C", "out_of_bounds_policy": "pad"}
        return ndd.slice(ndd.reshape(pictures, layout="CHW"), start=[0], shape=wanted, **how)

    frames, back = _as_frames(planes(value, 1), "CHW")
    return frames, lambda result: planes(back(result), 0)


def _places(grid: torch.Tensor, size: Size, nearest: bool) -> list[torch.Tensor]:
    """Columns and rows of the source with its border, as `grid_sample` computes them (far outside is the border), and
    weights."""
    layers, weight = [], torch.ones_like(grid[..., 0])
    for k in (0, 1):
        extent = size[1 - k]
        at = (grid[..., k] + 1) * (extent / 2) - 0.5
        at = (at.round() if nearest else at).nan_to_num(-1.0).clamp(-1, extent)
        weight = weight * torch.minimum(at + 1, extent - at).clamp(max=1)
        layers.append((at + 1).contiguous())
    return [*layers, weight]
