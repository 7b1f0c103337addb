"""`ndd.filter`: a filter given as an array of weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._cpu.convolution import correlate, separable
from ndd._cpu.opencv import opencv, single_threaded
from ndd._cpu.sampling import BORDERS, border_index
from ndd._operator import PerSample, Plan, bad_sample, like, operator
from ndd._tensor import DType, Spec
from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import float32
from ndd.ops.filter.separable import by_axis
from ndd.ops.filter.spatial_axes import as_volumes, spatial_axes

_TYPES = ("u8", "i8", "u16", "i16", "f16", "f32")
_SHORT = {"uint8": "u8", "int8": "i8", "uint16": "u16", "int16": "i16", "float16": "f16", "float32": "f32"}
_BORDERS = {
    "reflect_101": BORDERS["reflect_101"], "reflect_1001": BORDERS["reflect"], "reflect": BORDERS["reflect"],
    "wrap": BORDERS["wrap"], "clamp": BORDERS["replicate"], "edge": BORDERS["replicate"],
    "constant": BORDERS["constant"], "fill": BORDERS["constant"],
}  # fmt: skip
_DIRECT = (np.dtype(np.uint8), np.dtype(np.float32))
_BYTE = (np.float32(0), np.float32(255), True)
# Weights from which a filter goes by way of OpenCV's Fourier transform, if it is not the product of two lines.
_MANY = 400
_UNROLLED = 81  # weights up to which a GPU kernel is compiled for their number


@operator(frames=True)
def filter(
    data,
    filter,
    fill_value=None,
    /,
    *,
    anchor: PerSample[list[int]] = (-1,),
    border: str = "reflect_101",
    dtype: DType | None = None,
    mode: str = "same",
):
    """Filters images, volumes and video with weights of your own.

    `out[i] = sum over k of filter[k] * data[i - anchor + k]` along the spatial axes, for each channel alone: a
    cross-correlation, which is a convolution with the filter turned round.

    Args:
        data: u8, i8, u16, i16, f16 or f32. Spatial axes are those that are not C or F: 2 or 3 of them, as in HW, HWC,
            CHW, DHW, DHWC, CDHW, with an F (video) before. Without a layout all axes are spatial.
        filter: float32 weights of as many axes as there are spatial ones; one array, or one for each sample, of any
            extents. Video may have one for each frame: a layout such as "FHW".
        fill_value: with `border="constant"`, what the array is surrounded with (default 0): a number of the type of
            the data; one, or one for each sample or frame (layout "F").
        anchor: the element of the filter that lies over the result, one number for each axis or one for all; -1 is the
            middle, `extent // 2`.
        border: what lies outside: "reflect_101" (`dcb|abcd|cba`), "reflect_1001" or "reflect" (`cba|abcd|dcb`), "wrap"
            (`bcd|abcd|abc`), "clamp" or "edge" (`aaa|abcd|ddd`), "constant" or "fill" (`fill_value`).
        dtype: float32, or the type of the data (the default).
        mode: "same": the result has the extents of the data. "valid": only where the filter lies inside the data,
            `extent - filter extent + 1`; the anchor does not matter.

    Sums are float32; integers are rounded, halves to even, and saturated. Float results of a filter that is the
    product of a column and a row are computed as two filters, those of large ones by a Fourier transform (with
    OpenCV): within 1e-5 of the largest.

    As OpenCV's `filter2D` and `scipy.ndimage.correlate` (mode "mirror", "reflect", "wrap", "nearest", "constant").
    DALI 2.4.0 takes no volumes, i8 and f16 on the CPU, and there gives the lowest number where sums exceed int32.

    Errors: RuntimeError for other types, layouts, modes and borders, weights that are not float32, an anchor outside the
    filter, a filter larger than the data in mode "valid", a wrong number of frames.

    >>> import ndd
    >>> line = ndd.tensor([[1.0, 2.0, 4.0, 8.0]], layout="HW")
    >>> ndd.filter(line, [[-1.0, 1.0]], mode="valid").torch()
    tensor([[1., 2., 4.]])
    >>> ndd.filter(line, [[-1.0, 1.0]], border="constant").torch()
    tensor([[1., 1., 2., 4.]])
    """
    _check_types(data, filter, fill_value, dtype)
    _known("border_type", border, _BORDERS)
    _known("mode", mode, ("same", "valid"))
    axes = _axes(data)
    per_frame = (data.layout or "")[:1] == "F"
    own = filter.ndim - (per_frame and (filter.layout or "")[:1] == "F")
    if own != axes:
        raise RuntimeError(
            "filter: Filter dimensionality must match the number of spatial dimensions in the input samples. "
            f"Got {axes} spatial dimensions but the filter is {own} dimensional."
        )
    if fill_value is not None and fill_value.ndim != (per_frame and (fill_value.layout or "")[:1] == "F"):
        raise RuntimeError(f"filter: `fill_value` must be one number for each sample, got {fill_value.ndim} dimensions")
    return like(data, dtype=dtype)


def _check_types(data: Spec, weights: Spec, fill_value: Spec | None, dtype: DType | None) -> None:
    if data.dtype.name not in _TYPES:
        raise RuntimeError(f"filter: Unsupported input type: {data.dtype}. Expected one of {', '.join(_TYPES)}.")
    if weights.dtype is not float32:
        raise RuntimeError(f"filter: Unsupported filter type: {weights.dtype}. Expected float32.")
    if dtype is not None and dtype not in (data.dtype, float32):
        raise RuntimeError(
            f"filter: Output data type must be same as input, FLOAT or skipped (defaults to input type): "
            f"got {dtype} for an input of {data.dtype}"
        )
    if fill_value is not None and fill_value.dtype is not data.dtype:
        raise RuntimeError(f"filter: `fill_value` must have the type of the data, {data.dtype}; got {fill_value.dtype}")


def _known(name: str, value: str, options: Any) -> None:
    if value.lower() not in options:
        raise RuntimeError(f"filter: Unknown `{name}` was provided: {value!r}. Expected one of {', '.join(options)}.")


def _axes(data: Spec) -> int:
    layout = data.layout or ""
    if "F" in layout[1:] and layout[:1] != "F":
        raise RuntimeError(f"filter: the frames must be the outermost dimension. Got the layout {layout}")
    try:
        count = spatial_axes(data.layout, data.ndim or 0)[1]
    except RuntimeError as error:
        raise RuntimeError(f"filter: {error}") from None
    if count == 1:
        raise RuntimeError(f"filter: expected 2 or 3 spatial axes, got 1 in the layout {layout!r}")
    return count


@filter.plan
def _(data, filter, fill_value, *, anchor, border, dtype, mode):
    start, axes = spatial_axes(data.layout, data.ndim)
    sizes = filter.shapes
    empty = (sizes == 0).any(axis=1)
    if empty.any():
        raise bad_sample(int(empty.argmax()), "the filter has no elements")
    anchors = np.broadcast_to(by_axis("anchor", anchor, axes, data.n), sizes.shape)
    outside = ((anchors < -1) | (anchors >= sizes)).any(axis=1)
    if outside.any():
        i = int(outside.argmax())
        shape = " x ".join(map(str, sizes[i].tolist()))
        raise bad_sample(i, f"`anchor` must lie within the filter of shape {shape}, got {anchors[i].tolist()}")
    shapes = data.shapes
    if mode.lower() == "valid":
        shapes = np.array(shapes)
        shapes[:, start : start + axes] -= sizes - 1
        small = (shapes[:, start : start + axes] <= 0).any(axis=1)
        if small.any():
            i = int(small.argmax())
            raise bad_sample(i, "the filter is bigger than the sample: this is not allowed in mode 'valid'")
        anchors = np.zeros_like(sizes)
    else:
        anchors = np.where(anchors < 0, sizes // 2, anchors)
    view = as_volumes(data.shapes, start, axes)
    origin = np.zeros((data.n, 3), np.int64)
    origin[:, 3 - axes :] = anchors
    results = as_volumes(shapes, start, axes)[:, 1:4]
    return Plan(
        shapes, {"view": view, "results": results, "origin": origin}, {"border": _BORDERS[border.lower()], "axes": axes}
    )


@filter.cpu
def _(array, weights, fill, out, view, results, origin, border):
    if not out.size or not array.size:
        return
    given = np.float32(0 if fill is None else fill)
    planes, *extents, channels = view.tolist()
    results, origin = results.tolist(), origin.tolist()
    if weights.ndim == 2:
        if _is_large(array, weights):
            lines = _lines_of(weights)
            if lines is None and _transformed(array, weights, given, out, view, results, origin, border):
                return
        else:
            lines = _lines_of(weights) if _worth_two(weights, out.dtype) else None
    else:
        lines = None
    source, target = array.reshape(-1), out.reshape(-1)
    if source.dtype not in _DIRECT:
        source = convert_array(source, _SHORT[source.dtype.name], "f32")
    exact = target if target.dtype in _DIRECT else np.empty(target.size, np.float32)
    store = _BYTE if target.dtype == np.uint8 else None
    if lines is not None:
        _two_passes(source, exact, planes * extents[0], extents, results, channels, lines, origin, border, given, store)
    else:
        volume = weights.reshape((1,) * (3 - weights.ndim) + weights.shape)
        correlate(
            source, exact, planes, tuple(extents), tuple(results), channels, volume, tuple(origin), border, given, store
        )
    if exact is not target:
        if target.dtype.kind in "iu":
            np.rint(exact, out=exact)
        convert_array(exact, "f32", _SHORT[target.dtype.name], target)


def _is_large(array: np.ndarray, weights: np.ndarray) -> bool:
    return weights.size > _MANY and array.dtype in _OPENCV_TYPES


def _worth_two(weights: np.ndarray, result: np.dtype) -> bool:
    """Whether a column and a row would be faster. Bytes halfway between two whole numbers, frequent in sums of few
    elements, must not depend on how the weights divide into two."""
    height, width = weights.shape
    return weights.size >= 2 * (height + width) and (result.kind == "f" or weights.size > 49)


def _lines_of(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The column and the row whose product the weights are; None if there are none."""
    i, j = divmod(int(np.abs(weights).argmax()), weights.shape[1])
    peak = weights[i, j]
    if peak == 0 or not np.isfinite(peak):
        return None
    column, row = weights[:, j], weights[i] / peak
    if np.abs(column[:, None] * row - weights).max() > 3e-7 * abs(peak):
        return None
    return column, row


def _two_passes(
    source: Any, out: Any, planes: int, extents: Any, results: Any, channels: int, lines: Any, origin: Any, border: int,
    fill: np.float32, store: Any,
) -> None:  # fmt: skip
    column, row = lines
    taps = np.ones((1, 3, max(column.size, row.size)), np.float32)
    taps[0, 1, : column.size], taps[0, 2, : row.size] = column, row
    windows = np.array([[[0, 0, 1], [0, -origin[1], column.size], [0, -origin[2], row.size]]], np.int64)
    separable(
        source, out, planes, tuple(extents[1:]), tuple(results[1:]), channels, taps, windows, np.ones(1, np.float32),
        border, fill, store,
    )  # fmt: skip


_OPENCV_TYPES = tuple(np.dtype(t) for t in (np.uint8, np.uint16, np.int16, np.float32))


def _transformed(
    array: Any, weights: Any, fill: np.float32, out: Any, view: Any, results: Any, origin: Any, border: int
) -> bool:
    """Filters by OpenCV, which transforms for large filters; False if it cannot be or would not be exact."""
    planes, depth, height, width, channels = view.tolist()
    largest = float(np.abs(array).max()) if array.dtype == np.float32 else 65535.0
    if opencv() is None or channels > 4 or not float(np.abs(weights).sum()) * largest < 2**30:
        return False
    rows = _border_indices(results[1] + weights.shape[0] - 1, origin[1], height, border)
    columns = _border_indices(results[2] + weights.shape[1] - 1, origin[2], width, border)
    cv2 = single_threaded()
    kind = cv2.CV_32F if out.dtype == np.float32 else -1
    images = array.reshape(planes * depth, height, width, channels)
    targets = out.reshape(planes * depth, results[1], results[2], channels)
    for image, target in zip(images, targets, strict=True):
        padded = image[rows.clip(0)[:, None], columns.clip(0)]
        padded[rows < 0] = fill
        padded[:, columns < 0] = fill
        found = cv2.filter2D(padded, kind, weights, anchor=(0, 0), borderType=cv2.BORDER_REPLICATE)
        target[...] = found.reshape(*padded.shape[:2], channels)[: results[1], : results[2]]
    return True


def _border_indices(count: int, before: int, extent: int, border: int) -> np.ndarray:
    return np.array([border_index.function(i - before, extent, border) for i in range(count)], np.int64)


@filter.cuda("filter.cu")
def _(launch, data, weights, fill, out, *, view, results, axes):
    def prepare() -> tuple[np.ndarray, dict[str, str]]:
        sizes = weights.shapes
        fixed = launch.n and (sizes == sizes[0]).all() and int(sizes[0, -2:].prod()) <= _UNROLLED
        height, width = sizes[0, -2:].tolist() if fixed else (0, 0)
        work = view[:, 0] * results[:, 0] * -(-results[:, 1] // 4) * results[:, 2] * view[:, 4]
        return work, {
            "KERNEL_H": str(height),
            "KERNEL_W": str(width),
            "AXES": str(axes),
            "FILLED": str(int(fill is not None)),
        }

    work, macros = launch.remember("work", prepare)
    launch("filter_rows", work, macros=macros, kept="filter")
