"""`ndd.multi_paste`: images made of regions of several images."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._operator import PerSample, Plan, bad_sample, like, operator
from ndd._tensor import DType
from ndd._tensor.convert import converter

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

    Video is pasted frame by frame and takes per-frame arguments, but no `in_ids`.

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


@multi_paste.plan
def _(*inputs, dtype, in_ids, output_size, **places):
    first = inputs[0]
    n = first.n
    ids = _ids(in_ids, n, len(inputs))
    canvas = _canvas(output_size, inputs, n)
    on_gpu = first.spec.device.device_id is not None
    columns = [operand.pointers() if on_gpu else operand.arrays for operand in inputs]
    regions, sources, channels = [], [], np.empty(n, np.int64)
    for i, own in enumerate(ids):
        picked = [(0, k) for k in own] if in_ids is not None else [(k, i) for k in own]
        extents = np.array([inputs[k].shapes[j] for k, j in picked], np.int64).reshape(-1, 3)
        if len(set(extents[:, 2].tolist())) > 1:
            raise bad_sample(i, "the regions of one sample must have the same number of channels")
        channels[i] = extents[0, 2] if len(extents) else first.shapes[i, 2]
        regions.append(_placed(i, n, extents[:, :2], canvas[i], places))
        sources.append([columns[k][j] for k, j in picked])
        if on_gpu:
            sources[-1] = np.array([sources[-1], extents[:, 1]], np.int64).T
    for operand in inputs:
        operand.touched = True  # a plan with addresses is good for these only
    shapes = np.concatenate([canvas, channels[:, None]], axis=1)
    if not on_gpu:
        convert = converter(first.dtype.name, (dtype or first.dtype).name)
        return Plan(shapes, {"sources": sources, "regions": [r.tolist() for r in regions]}, {"convert": convert})
    most = max(1, *(len(r) for r in regions))
    packed = np.zeros((n, most, 8), np.int64)  # address, width; in-anchor, shape, out-anchor
    for i, (source, region) in enumerate(zip(sources, regions, strict=True)):
        packed[i, : len(region), :2], packed[i, : len(region), 2:] = source, region.reshape(-1, 6)
    return Plan(shapes, {"regions": packed})


def _ids(in_ids: Any, n: int, inputs: int) -> list[list[int]]:
    """What the regions of each sample come from: samples of the input, or inputs."""
    if in_ids is None:
        return [list(range(inputs))] * n
    rows = in_ids if isinstance(in_ids, list) else np.broadcast_to(in_ids, (n, in_ids.shape[-1]))
    found = [r.tolist() for r in rows]
    for i, row in enumerate(found):
        wrong = [k for k in row if not 0 <= k < n]
        if wrong:
            raise bad_sample(i, f"`in_ids`: expected samples from 0 to {n - 1}, got {wrong[0]}")
    return found


def _canvas(output_size: Any, inputs: tuple[Any, ...], n: int) -> np.ndarray:
    if output_size is None:
        every = np.concatenate([operand.shapes[:, :2] for operand in inputs])
        if (every != every[0]).any():
            raise RuntimeError("images of different shapes need an `output_size`")
        return every[:n].copy()
    if isinstance(output_size, list) or np.shape(output_size)[-1] != 2:
        raise RuntimeError("`output_size`: expected 2 elements, (H, W)")
    found = np.array(np.broadcast_to(output_size, (n, 2)), np.int64)
    if (found < 0).any():
        raise RuntimeError(f"`output_size` must not be negative, got {found.min()}")
    return found


def _placed(i: int, n: int, extents: np.ndarray, canvas: np.ndarray, places: dict[str, Any]) -> np.ndarray:
    """The regions of sample `i` as `[regions, 3, 2]`: in-anchor, shape, out-anchor."""
    low = _numbers("in_anchors", i, n, extents, extents, places, np.floor)
    size = _numbers("shapes", i, n, extents, extents, places, np.ceil)
    size = extents - low if size is None and low is not None else extents if size is None else size
    low = np.zeros_like(extents) if low is None else low
    target = _numbers("out_anchors", i, n, extents, canvas, places, np.floor)
    target = np.zeros_like(extents) if target is None else target
    for name, start, limit in (("image", low, extents), ("canvas", target, canvas)):
        outside = ((start < 0) | (size < 0) | (start + size > limit)).any(axis=1)
        if outside.any():
            k = int(outside.argmax())
            within = np.broadcast_to(limit, extents.shape)[k]
            raise bad_sample(
                i,
                f"region {k} of shape {tuple(size[k].tolist())} at {tuple(start[k].tolist())} reaches outside its {name} "
                f"of shape {tuple(within.tolist())}",
            )
    return np.stack([low, size, target], axis=1)


def _numbers(name: str, i: int, n: int, extents: np.ndarray, scale: Any, places: dict[str, Any], whole: Any) -> Any:
    """An argument for the regions of sample `i`, in pixels; None if it is not given."""
    values, share = places[name], places[f"{name}_rel"]
    given = share if values is None else values
    if given is None:
        return None
    own = given[i] if isinstance(given, list) or np.ndim(given) == 3 else given
    if np.shape(own) != extents.shape:
        raise bad_sample(i, f"`{name}`: expected shape {extents.shape}, (regions, 2), got {np.shape(own)}")
    if values is not None:
        return np.asarray(own, np.int64)
    return whole(np.asarray(own, np.float32) * np.asarray(scale, np.float32)).astype(np.int64)


@multi_paste.cpu
def _(images, out, sources, regions, convert):
    out[...] = 0
    for source, ((y, x), (h, w), (to_y, to_x)) in zip(sources, regions, strict=True):
        convert(source[y : y + h, x : x + w], out[to_y : to_y + h, to_x : to_x + w])


multi_paste.cuda("multi_paste.cu")
