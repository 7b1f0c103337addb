"""`ndd.multi_paste`: images made of regions of several images."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._cpu.jit import External, kernel
from ndd._operator import PerSample, Plan, bad_sample, like, operator
from ndd._tensor import DType
from ndd._tensor.convert import convert_array, numpy_type

_TYPES = ("u8", "i16", "i32", "f32")


@operator(layouts=("HWC", "FHWC"), frames=True)
def multi_paste(
    input_0,
    /,
    *inputs,
    dtype: DType | None = None,
    in_anchors: PerSample[list[int]] = None,
    in_anchors_rel: PerSample[list[float]] = None,
    in_ids: PerSample[list[int]] = None,
    out_anchors: PerSample[list[int]] = None,
    out_anchors_rel: PerSample[list[float]] = None,
    output_size: PerSample[list[int]] = None,
    shapes: PerSample[list[int]] = None,
    shapes_rel: PerSample[list[float]] = None,
):
    """Pastes regions of images on a black canvas, one after the other.

    Args:
        input_0, inputs: u8, i16, i32 or f32 images of one type, HWC or FHWC: region k of a sample comes from input k.
        in_ids: the samples of the only input that the regions of each sample come from.
        output_size: (H, W) of the canvas; default: the shape of the images, if all have the same.
        in_anchors, shapes: where the regions begin in their images and how large they are: `[regions, 2]` as (H, W);
            default: from the start, and to the end.
        out_anchors: where they go to on the canvas; default: to its start.
        in_anchors_rel, shapes_rel, out_anchors_rel: the same as fractions of the image, or of the canvas. Anchors are
            rounded down, shapes up.
        dtype: u8, i16, i32 or f32; default: the type of the input. Values are rounded and saturate.

    With region k from `image`, at a = in-anchor, s = shape, o = out-anchor:
    `out[o0 : o0 + s0, o1 : o1 + s1] = image[a0 : a0 + s0, a1 : a1 + s1]`, in the order of the regions, so that the last
    one shows where they overlap; what no region covers is 0. PIL's `Image.paste` does this for one region.

    Video is pasted frame by frame and takes per-frame arguments, but no `in_ids` (DALI 2.4.0 fails on video on the
    CPU).

    Raises RuntimeError for regions that reach outside their image or the canvas, and for arguments that do not fit.

    >>> import ndd, numpy as np
    >>> a, b = np.full((2, 2, 1), 1, np.uint8), np.full((1, 1, 1), 2, np.uint8)
    >>> ndd.multi_paste(a, b, output_size=[2, 2])[:, :, 0].torch()
    tensor([[2, 1],
            [1, 1]], dtype=torch.uint8)
    """
    chosen = dtype or input_0.dtype
    for i, one in enumerate((input_0, *inputs)):
        if one.dtype != input_0.dtype or one.ndim != input_0.ndim:
            raise RuntimeError(
                f"multi_paste: all inputs must have the same type and number of axes: input 0 is {input_0.dtype} with "
                f"{input_0.ndim} axes, input {i} is {one.dtype} with {one.ndim}"
            )
    for kind in (input_0.dtype, chosen):
        if kind.name not in _TYPES:
            raise RuntimeError(
                f"multi_paste: expected images and `dtype` of uint8, int16, int32 or float32, got {kind}"
            )
    for name, one, other in (
        ("in_anchors", in_anchors, in_anchors_rel),
        ("shapes", shapes, shapes_rel),
        ("out_anchors", out_anchors, out_anchors_rel),
    ):
        if one is not None and other is not None:
            raise RuntimeError(f"multi_paste: `{name}` and `{name}_rel` exclude each other: give one")
    if in_ids is not None and inputs:
        raise RuntimeError(f"multi_paste: with `in_ids` there can be one input only, got {len(inputs) + 1}")
    if in_ids is not None and input_0.layout == "FHWC":
        raise RuntimeError("multi_paste: `in_ids` does not work on video")
    return like(input_0, dtype=chosen)


@multi_paste.old_plan
def _(*inputs, dtype, in_ids, output_size, **places):
    first = inputs[0]
    n = first.n
    canvas = _canvas(output_size, inputs, n)
    if in_ids is None:
        counts = np.full(n, len(inputs))
        extents = np.stack([operand.shapes for operand in inputs], axis=1).reshape(-1, 3)
        sources = np.stack([operand.pointers() for operand in inputs], axis=1).reshape(-1)
    else:
        ids, counts = _ids(in_ids, n)
        extents, sources = first.shapes[ids], first.pointers()[ids]
    samples = _Samples(counts)
    channels = first.shapes[:, 2].copy()
    channels[counts > 0] = extents[samples.begin[counts > 0], 2]
    mixed = extents[:, 2] != channels[samples.owner]
    if mixed.any():
        i = int(samples.owner[mixed.argmax()])
        raise bad_sample(i, "the regions of one sample must have the same number of channels")
    regions = np.zeros((n, max(1, int(counts.max())), 8), np.int64)
    chosen = regions.reshape(-1, 8) if counts.min() == counts.max() > 0 else np.empty((len(extents), 8), np.int64)
    chosen[:, 0], chosen[:, 1] = sources, extents[:, 1]
    _place(chosen[:, 2:], samples, extents[:, :2], canvas[samples.owner], places)
    if chosen.base is not regions:
        regions[samples.owner, samples.place] = chosen
    for operand in inputs:
        operand.touched = True  # a plan with addresses is good for these only
    shapes = np.concatenate([canvas, channels[:, None]], axis=1)
    return Plan(shapes, {"regions": regions}, {"kinds": (first.dtype.name, (dtype or first.dtype).name)})


class _Samples:
    """Which of all regions, one behind the other, belong to which sample."""

    def __init__(self, counts: np.ndarray):
        self.counts = counts
        self.begin = np.add.accumulate(counts) - counts
        self.owner = np.repeat(np.arange(len(counts)), counts)

    @property
    def place(self) -> np.ndarray:
        """The number of each region in its sample."""
        return np.arange(len(self.owner)) - self.begin[self.owner]

    def rows(self, name: str, given: Any) -> np.ndarray:
        """A value (y, x) for each region: `[regions, 2]` from values for each sample, or for all samples."""
        counts = self.counts
        if isinstance(given, list):
            wrong = [i for i, a in enumerate(given) if a.shape != (counts[i], 2)]
            shape = given[wrong[0]].shape if wrong else ()
        else:
            shape = given.shape[-2:] if given.ndim == 3 else given.shape
            wrong = np.arange(len(counts)) if len(shape) != 2 or shape[1] != 2 else np.flatnonzero(counts != shape[0])
        if len(wrong):
            i = int(wrong[0])
            raise bad_sample(i, f"`{name}`: expected shape {(int(counts[i]), 2)}, (regions, 2), got {shape}")
        if isinstance(given, list):
            return np.concatenate(given)
        return given.reshape(-1, 2) if given.ndim == 3 else np.tile(given, (len(counts), 1))


def _ids(in_ids: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The samples that the regions come from, one behind the other, and how many regions each result has."""
    if isinstance(in_ids, list):
        counts = np.array([a.size for a in in_ids])
        found = np.concatenate(in_ids)
    else:
        counts = np.full(n, in_ids.shape[-1])
        found = np.broadcast_to(in_ids, (n, in_ids.shape[-1])).reshape(-1)
    wrong = (found < 0) | (found >= n)
    if wrong.any():
        k = int(wrong.argmax())
        i = int(np.searchsorted(np.add.accumulate(counts), k, side="right"))
        raise bad_sample(i, f"`in_ids`: expected samples from 0 to {n - 1}, got {found[k]}")
    return found.astype(np.int64), counts


def _canvas(output_size: Any, inputs: tuple[Any, ...], n: int) -> np.ndarray:
    if output_size is None:
        every = np.concatenate([operand.shapes[:, :2] for operand in inputs])
        if (every != every[0]).any():
            raise RuntimeError("images of different shapes need an `output_size`")
        return every[:n]
    if isinstance(output_size, list) or np.shape(output_size)[-1] != 2:
        raise RuntimeError("`output_size`: expected 2 elements, (H, W)")
    found = np.array(np.broadcast_to(output_size, (n, 2)), np.int64)
    if (found < 0).any():
        raise RuntimeError(f"`output_size` must not be negative, got {found.min()}")
    return found


def _place(out: np.ndarray, samples: _Samples, extents: np.ndarray, canvas: np.ndarray, places: dict[str, Any]) -> None:
    """Fills `[regions, 6]`: in-anchor, shape, out-anchor."""
    low, size, target = out[:, :2], out[:, 2:4], out[:, 4:]
    low[...] = _numbers("in_anchors", samples, extents, places, np.floor, 0)
    size[...] = _numbers("shapes", samples, extents, places, np.ceil, extents - low)
    target[...] = _numbers("out_anchors", samples, canvas, places, np.floor, 0)
    for name, start, limit in (("image", low, extents), ("canvas", target, canvas)):
        outside = (start < 0) | (size < 0) | (start + size > limit)
        if outside.any():
            k = int(outside.any(axis=1).argmax())
            raise bad_sample(
                int(samples.owner[k]),
                f"region {samples.place[k]} of shape {tuple(size[k].tolist())} at {tuple(start[k].tolist())} reaches "
                f"outside its {name} of shape {tuple(limit[k].tolist())}",
            )


def _numbers(
    name: str, samples: _Samples, scale: np.ndarray, places: dict[str, Any], whole: Any, default: Any
) -> np.ndarray:
    """An argument for each region, in pixels."""
    values, share = places[name], places[f"{name}_rel"]
    if values is not None:
        return samples.rows(name, values)
    if share is None:
        return default
    return whole(samples.rows(f"{name}_rel", share) * scale.astype(np.float32))


@multi_paste.cpu
def _(inputs, out, regions, kinds):
    _paste(out[None], regions[None], kinds)


@multi_paste.cpu_batch
def _(out, regions, kinds):
    _paste(out, regions, kinds)


def _paste(out: np.ndarray, regions: np.ndarray, kinds: tuple[str, str]) -> None:
    if kinds[0] == kinds[1]:
        paste_regions(out.ctypes.data, np.array(out.shape), out.itemsize, regions)
        return
    canvas = np.empty(out.shape, numpy_type(kinds[0]))
    paste_regions(canvas.ctypes.data, np.array(out.shape), canvas.itemsize, regions)
    convert_array(canvas, *kinds, out)


multi_paste.cuda("multi_paste.cu")


_copy = External("memcpy", "uintp(uintp, uintp, uintp)")
_fill = External("memset", "uintp(uintp, int32, uintp)")


@kernel
def paste_regions(target, shape, itemsize, regions):
    """Pastes on black canvases [N, H, W, C] at the address `target`, line by line, but not what would be covered."""
    samples, height, width, channels = shape
    pixel = channels * itemsize
    line = width * pixel
    if line == 0:
        return
    for n in range(samples):
        own = regions[n]
        for y in range(height):
            to = np.uintp(target + (n * height + y) * line)
            first = 0  # what lies below a region as wide as the canvas is not to be seen
            black = True
            for k in range(len(own) - 1, -1, -1):
                if own[k, 6] <= y < own[k, 6] + own[k, 4] and own[k, 5] == width:
                    first, black = k, False
                    break
            if black:
                _fill(to, np.int32(0), np.uintp(line))
            for k in range(first, len(own)):
                at = y - own[k, 6]
                if at < 0 or at >= own[k, 4] or own[k, 5] == 0 or _hidden(own, k):
                    continue
                source = own[k, 0] + ((own[k, 2] + at) * own[k, 1] + own[k, 3]) * pixel
                _copy(to + np.uintp(own[k, 7] * pixel), np.uintp(source), np.uintp(own[k, 5] * pixel))


@kernel
def _hidden(regions, k):
    """Whether a later region covers region `k`."""
    for j in range(k + 1, len(regions)):
        hides = True
        for axis in range(2):
            low, end = regions[k, 6 + axis], regions[k, 6 + axis] + regions[k, 4 + axis]
            if low < regions[j, 6 + axis] or end > regions[j, 6 + axis] + regions[j, 4 + axis]:
                hides = False
        if hides:
            return True
    return False
