"""Filters that are sums of separable terms (`gaussian_blur`, `laplacian`): everything except their windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._operator import Plan, Values, like, operator
from ndd._tensor import DType, Spec
from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import float32
from ndd.ops.filter.convolution import REFLECT_101, along_depth, separable
from ndd.ops.filter.spatial_axes import as_volumes, spatial_axes

_DIRECT = (np.dtype(np.uint8), np.dtype(np.float32))
_SHORT = {
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "int8": "i8", "int16": "i16", "int32": "i32",
    "int64": "i64", "float16": "f16", "float32": "f32", "float64": "f64",
}  # fmt: skip
_BYTE = (np.float32(0), np.float32(255), False)

# On a GPU: the sizes that fit one launch with a tile in shared memory.
_TILE_WINDOW = 15
_TILE_CHANNELS = 4
_TILE_ROWS = 32
_TILE_WIDTH = 128  # numbers of a row
_BLOCK = 256


def separable_filter(*types: str) -> Callable[[Callable[..., Any]], Any]:
    """Declares an operator whose plan is made by `separable_plan`, for these element types."""

    def declare(declared: Callable[..., Any]) -> Any:
        op = operator(declared, frames=True, types=types)
        op.cpu(_filter_array)
        op.cuda("separable.cu")(_filter_batch)
        return op

    return declare


def filtered_like(input: Spec, dtype: DType | None) -> Spec:
    """The description of the output. RuntimeError for a type or a layout that filters do not take."""
    if dtype is not None and dtype not in (input.dtype, float32):
        raise RuntimeError(
            f"Output data type must be same as input, FLOAT or skipped (defaults to input type): "
            f"got {dtype} for an input of {input.dtype}"
        )
    spatial_axes(input.layout, input.ndim or 0)
    return like(input, dtype=dtype)


def by_axis(values: Values, axes: int) -> np.ndarray:
    """An argument with one number, or one for each spatial axis, as [N, axes]; [1, axes] if all samples agree."""
    rows = values.rows(axes, repeat=True, meaning="one for each spatial axis")
    return rows if values.varies and rows.strides[0] else rows[:1]


def separable_plan(input: Any, taps: np.ndarray, reach: np.ndarray, scales: np.ndarray) -> Plan:
    """`taps` are float32 [N or 1, terms, axes, K], K odd, centred and 0 beyond `reach` [N or 1, terms, axes], and
    `scales` [N or 1, terms]."""
    n = input.n
    start, axes = spatial_axes(input.layout, input.ndim)
    view = as_volumes(input.shapes, start, axes)
    most = taps.shape[3]
    all_taps = np.zeros((len(taps), taps.shape[1], 3, most), np.float32)
    all_taps[:, :, :, most // 2] = 1
    all_taps[:, :, 3 - axes :] = taps
    all_reach = np.zeros((*all_taps.shape[:3],), np.int64)
    all_reach[:, :, 3 - axes :] = reach
    per_sample = {
        "view": view,
        "taps": _for_each(all_taps, n),
        "scales": _for_each(scales.astype(np.float32), n),
        "windows": _for_each(np.stack([most // 2 - all_reach, -all_reach, 2 * all_reach + 1], axis=-1), n),
    }
    return Plan(input.shapes, per_sample)


def _for_each(rows: np.ndarray, n: int) -> np.ndarray:
    """One row for each sample, always in writable memory: otherwise the CPU kernels would be compiled for read-only arrays
    too."""
    return np.repeat(rows, n, axis=0) if len(rows) != n else np.array(rows)


def _filter_array(array: Any, out: Any, view: Any, taps: Any, windows: Any, scales: Any) -> None:
    """Filters one sample on the CPU. Bytes and floats are read and written directly, other types through float32."""
    if not array.size:
        return
    target = out.reshape(-1)
    exact = room_for(target)
    store = _BYTE if target.dtype == np.uint8 else None
    _filter_lines(readable(array.reshape(-1)), exact, view.tolist(), taps, windows, scales, store)
    stored(exact, target)


def readable(array: np.ndarray) -> np.ndarray:
    """The input of the CPU's filters: bytes and floats unchanged, other types as floats."""
    return array if array.dtype in _DIRECT else convert_array(array, _SHORT[array.dtype.name], "f32")


def room_for(out: np.ndarray) -> np.ndarray:
    """The memory for their results: `out` itself, or floats that `stored` converts."""
    return out if out.dtype in _DIRECT else np.empty(out.shape, np.float32)


def stored(exact: np.ndarray, out: np.ndarray) -> None:
    """Writes the numbers of `room_for(out)` to `out`."""
    if exact is not out:
        convert_array(exact, "f32", _SHORT[out.dtype.name], out)


def _filter_lines(source: Any, target: Any, view: Any, taps: Any, windows: Any, scales: Any, store: Any) -> None:
    planes, depth, height, width, channels = view
    size, zero = (height, width), np.float32(0)
    if windows[:, 0, 2].max() == 1:
        separable(source, target, planes * depth, size, size, channels, taps, windows, scales, REFLECT_101, zero, store)
        return
    terms = len(taps)
    fields, one = np.empty((terms, source.size), np.float32), np.ones(1, np.float32)
    for t in range(terms):
        separable(
            source, fields[t], planes * depth, size, size, channels, taps[t : t + 1], windows[t : t + 1], one,
            REFLECT_101, zero, None,
        )  # fmt: skip
    plane = height * width * channels
    along_depth(fields.reshape(-1), target, planes, depth, plane, taps, windows, scales, store)


def _filter_batch(launch, input, out, *, view, taps) -> None:
    """Filters the batch on a GPU: one launch for small windows, otherwise one for each axis, with floats in between."""
    axes = spatial_axes(input.layout, input.ndim)[1]
    if axes <= 2 and taps.shape[3] <= _TILE_WINDOW and view[:, 4].max(initial=0) <= _TILE_CHANNELS:
        _tiles(launch, view, *taps.shape[1::2])
    else:
        _passes(launch, out, axes, taps)


def _tiles(launch: Any, view: np.ndarray, terms: int, window: int) -> None:
    channels = max(1, int(view[:, 4].max(initial=0)))
    pixels = _TILE_WIDTH // view[:, 4].clip(1) // 4 * 4
    tiles = view[:, 0] * view[:, 1] * -(-view[:, 2] // _TILE_ROWS) * -(-view[:, 3] // pixels)
    macros = {
        "TILED": 1, "TERMS": terms, "WINDOW": window, "ROWS": _TILE_ROWS, "WIDTH": _TILE_WIDTH,
        "COLUMNS": _TILE_WIDTH + (window // 2) * 2 * channels,
        "CHANNELS": channels if (view[:, 4] == channels).all() else 0,
    }  # fmt: skip
    launch("separable_tiles", np.where(view[:, 4] > 0, tiles * _BLOCK, 0), macros=macros, file="separable.cu")


def _passes(launch: Any, out: Any, axes: int, taps: np.ndarray) -> None:
    """Filters the terms along each axis, the innermost first; the last pass adds them up."""
    _, terms, _, window = taps.shape
    fields = [launch.scratch(out.sizes * terms, np.float32) for _ in range(min(axes - 1, 2))]
    places = {"taps": launch.table(taps, each=True)}
    for i in range(axes):
        first, last = i == 0, i == axes - 1
        if not first:
            places["source"] = fields[(i - 1) % 2]
        if not last:
            places["target"] = fields[i % 2]
        macros = {"TERMS": terms, "WINDOW": window, "AXIS": 2 - i, "FIRST": first, "LAST": last}
        launch("separable_pass", per_sample=places, macros=macros, file="separable.cu")
