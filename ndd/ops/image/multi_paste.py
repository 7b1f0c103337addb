"""`ndd.multi_paste`: combines regions of several images."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._compiled.jit import kernel
from ndd._cpu.element_copies import copy_bytes, set_bytes
from ndd._operator import PerSample, Plan, Values, bad_sample, like, operator
from ndd._operator.on_cpu import allocated
from ndd._operator.partition import Rows, View, each_sample
from ndd._tensor import DType, Spec
from ndd._tensor.convert import convert_array

_TYPES = ("u8", "i16", "i32", "f32")


@operator(layouts=("HWC", "FHWC"), types=_TYPES, dtypes=_TYPES, frames=True)
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
        in_ids: for a single input: the samples that the regions of each result come from.
        output_size: (H, W) of the canvas; default: the shape of the images, if all have the same. (H, W, C) is accepted if C
            equals the channels of the images. (DALI reads the first two numbers and ignores the rest.)
        in_anchors, shapes: the begins of the regions in their images, and their sizes: `[regions, 2]` as (H, W); default: from
            the start, and to the end.
        out_anchors: their places on the canvas; default: its start.
        in_anchors_rel, shapes_rel, out_anchors_rel: the same as fractions of the image, or of the canvas. Anchors are
            rounded down, shapes up.
        dtype: u8, i16, i32 or f32; default: the type of the input. Values are rounded and saturate.

    With region k from `image`, at a = in-anchor, s = shape, o = out-anchor:
    `out[o0 : o0 + s0, o1 : o1 + s1] = image[a0 : a0 + s0, a1 : a1 + s1]`, in the order of the regions, so that the last one is
    on top; pixels without a region are 0. PIL's `Image.paste` does this for one region.

    Video is pasted frame by frame and takes per-frame arguments, but no `in_ids` (DALI 2.4.0 fails on video on the
    CPU).

    Raises ValueError for other layouts, RuntimeError for regions that reach outside their image or the canvas, and for
    arguments that do not fit.

    >>> import ndd, numpy as np
    >>> a, b = np.full((2, 2, 1), 1, np.uint8), np.full((1, 1, 1), 2, np.uint8)
    >>> ndd.multi_paste(a, b, output_size=[2, 2])[:, :, 0].torch()
    tensor([[2, 1],
            [1, 1]], dtype=torch.uint8)
    >>> cat, cup = ndd.demo.photo("cat"), ndd.demo.photo("coffee")
    >>> ndd.multi_paste(cat, cup, output_size=[320, 520], out_anchors=[[0, 0], [50, 120]]).shape
    (320, 520, 3)
    """
    for i, value in enumerate(inputs):
        if value.dtype != input_0.dtype or value.ndim != input_0.ndim:
            raise RuntimeError(
                f"all inputs must have the same type and number of axes: input 0 is {input_0.dtype} with {input_0.ndim} "
                f"axes, input {i + 1} is {value.dtype} with {value.ndim}"
            )
    rel = {"in_anchors": in_anchors_rel, "shapes": shapes_rel, "out_anchors": out_anchors_rel}
    for name, value in (("in_anchors", in_anchors), ("shapes", shapes), ("out_anchors", out_anchors)):
        if value is not None and rel[name] is not None:
            raise RuntimeError(f"`{name}` and `{name}_rel` exclude each other: give one")
    if in_ids is not None and (inputs or input_0.layout == "FHWC"):
        raise RuntimeError(f"`in_ids` is for one input, of images: got {len(inputs) + 1} of layout {input_0.layout}")
    return like(input_0, dtype=dtype)


@multi_paste.plan
def _(*inputs, dtype, in_ids, output_size, **places):
    first, n = inputs[0], inputs[0].n
    extents = np.stack([operand.shapes for operand in inputs])
    canvas = _canvas(output_size, extents.reshape(-1, 3), n)
    ids = None if in_ids is None else [own.reshape(-1) for own in in_ids.arrays()]
    counts = np.full(n, len(inputs)) if ids is None else np.array([len(own) for own in ids])
    # All regions one after the other: the sample of each, its number in the sample, and its source.
    owner = np.repeat(np.arange(n), counts)
    place = np.arange(len(owner)) - (np.add.accumulate(counts) - counts)[owner]
    number, sample = (place, owner) if ids is None else (np.zeros_like(place), np.concatenate(ids))
    for k in np.flatnonzero((sample < 0) | (sample >= n))[:1]:
        raise bad_sample(int(owner[k]), f"`in_ids`: expected samples from 0 to {n - 1}, got {sample[k]}")
    images, channels = extents[number, sample], first.shapes[:, 2].copy()
    channels[owner] = images[:, 2]
    for k in np.flatnonzero(images[:, 2] != channels[owner])[:1]:
        raise bad_sample(int(owner[k]), "the regions of one sample must have the same number of channels")
    low = _pixels("in_anchors", places, counts, images[:, :2], np.floor, 0 * images[:, :2])
    size = _pixels("shapes", places, counts, images[:, :2], np.ceil, images[:, :2] - low)
    target = _pixels("out_anchors", places, counts, canvas[owner], np.floor, 0 * low)
    for name, start, limit in (("image", low, images[:, :2]), ("canvas", target, canvas[owner])):
        for k in np.flatnonzero(((start < 0) | (size < 0) | (start > limit - size)).any(axis=1))[:1]:
            shape, at, whole = (tuple(v[k].tolist()) for v in (size, start, limit))
            text = f"region {place[k]} of shape {shape} at {at} reaches outside its {name} of shape {whole}"
            raise bad_sample(int(owner[k]), text)
    regions = np.zeros((n, max(1, int(counts.max())), 9), np.int64)
    regions[owner, place] = np.column_stack([number, sample, images[:, 1], low, size, target])
    kinds = (first.dtype.name, (dtype or first.dtype).name)
    return Plan(np.column_stack([canvas, channels]), {"regions": regions}, {"kinds": kinds})


def _canvas(output_size: Values | None, images: np.ndarray, n: int) -> np.ndarray:
    if output_size is None:
        if (images[:, :2] != images[0, :2]).any():
            raise RuntimeError("images of different shapes need an `output_size`")
        return images[:n, :2]
    sizes = output_size.rows(meaning="(H, W)")
    if sizes.shape[1] == 3 and (sizes[:, 2] == images[:n, 2]).all():
        sizes = sizes[:, :2]
    if sizes.shape[1] != 2:
        raise RuntimeError(
            f"argument 'output_size': expected 2 numbers, (H, W), or (H, W, C) with the channels of the images, got "
            f"{sizes.shape[1]}: {sizes[0].tolist()}"
        )
    if (sizes < 0).any():
        raise RuntimeError(f"`output_size` must not be negative, got {sizes.min()}")
    return sizes


def _pixels(name: str, places: dict[str, Any], counts: np.ndarray, scale: np.ndarray, whole: Any, default: Any) -> Any:
    """An argument as pixels (y, x), `[regions, 2]`. `whole` rounds fractions of `scale` to pixels."""
    values, share = places[name], places[f"{name}_rel"]
    if values is None and share is None:
        return default
    chosen = share if values is None else values
    rows = chosen.arrays()
    for i, (row, count) in enumerate(zip(rows, counts.tolist(), strict=True)):
        if row.shape != (count, 2):
            raise bad_sample(i, f"`{chosen.name}`: expected shape {(count, 2)}, (regions, 2), got {row.shape}")
    pixels = np.concatenate(rows)
    return pixels if share is None else whole(pixels * scale.astype(np.float32)).astype(np.int64)


# A batch: a canvas takes regions from several samples of several inputs.
@multi_paste.batch
def _(call, plan, *stores):
    *inputs, out = stores
    kinds, regions = plan.shared["kinds"], plan.per_sample["regions"]
    canvas = out if kinds[0] == kinds[1] else allocated(plan.shapes, Spec.of(inputs[0].dtype, 3, None, out.device))
    addresses = np.array([np.broadcast_to(store.pointers(), (out.n,)) for store in inputs])
    seen, pixel = View("bytes").of(canvas), out.shape_array[:, 2] * canvas.dtype.bytes
    each_sample(call, paste_regions, seen, Rows(out.shape_array), Rows(pixel), Rows(regions), addresses)
    if canvas is not out:
        for array, target in zip(canvas.arrays(), out.arrays(), strict=True):
            convert_array(array, kinds[0], kinds[1], target)


multi_paste.cuda("multi_paste.cu")


@kernel
def paste_regions(canvas, shape, pixel, own, addresses):
    """Pastes on a black canvas of `shape` (H, W, C), given as bytes, line by line. Regions that are covered later are left out.

    `own` has the regions as in multi_paste.cu, `addresses` [inputs, samples] those of the images, and `pixel` is the size of a
    pixel in bytes.
    """
    width, target = shape[1], np.uintp(canvas.ctypes.data)
    line = width * pixel
    for row in range(shape[0] if line else 0):
        to = target + np.uintp(row * line)
        first = 0  # a region as wide as the canvas hides the regions below it
        for k in range(len(own) - 1, -1, -1):
            if own[k, 7] <= row < own[k, 7] + own[k, 5] and own[k, 6] == width:
                first = k
                break
        else:
            set_bytes(to, np.int32(0), np.uintp(line))
        for k in range(first, len(own)):
            at = row - own[k, 7]
            if 0 <= at < own[k, 5] and own[k, 6] and not _hidden(own, k):
                source = addresses[own[k, 0], own[k, 1]] + ((own[k, 3] + at) * own[k, 2] + own[k, 4]) * pixel
                copy_bytes(to + np.uintp(own[k, 8] * pixel), np.uintp(source), np.uintp(own[k, 6] * pixel))


@kernel
def _hidden(regions, k):
    """Whether a later region covers region `k`."""
    for j in range(k + 1, len(regions)):
        hides = True
        for axis in range(2):
            low, other = regions[k, 7 + axis], regions[j, 7 + axis]
            if low < other or low + regions[k, 5 + axis] > other + regions[j, 5 + axis]:
                hides = False
        if hides:
            return True
    return False


multi_paste.operator.independent_samples = False  # it pastes from other samples
