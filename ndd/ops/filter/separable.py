"""Filters that are sums of separable terms (`gaussian_blur`, `laplacian`): their arguments, plan, CPU and GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._cpu.convolution import REFLECT_101, along_depth, separable
from ndd._operator import Plan, bad_sample, like
from ndd._tensor import DType, Spec
from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import float32
from ndd.ops.filter.spatial_axes import as_volumes, spatial_axes

_DIRECT = (np.dtype(np.uint8), np.dtype(np.float32))
_SHORT = {
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "int8": "i8", "int16": "i16", "int32": "i32",
    "int64": "i64", "float16": "f16", "float32": "f32", "float64": "f64",
}  # fmt: skip
_BYTE = (np.float32(0), np.float32(255), False)

# Of the GPU: what fits one launch with a tile in shared memory.
_TILE_WINDOW = 15
_TILE_CHANNELS = 4
_TILE_ROWS = 32
_TILE_WIDTH = 128  # numbers of a row
_BLOCK = 256


def filtered_like(name: str, input: Spec, dtype: DType | None, types: tuple[str, ...], **given: Any) -> Spec:
    """What comes out; RuntimeError for types and layouts that are not taken, and for `given` constants of rank 2."""
    for argument, value in given.items():
        if isinstance(value, np.ndarray) and value.ndim > 1:
            raise RuntimeError(f"{name}: `{argument}`: expected a number or a list of numbers, got shape {value.shape}")
    if input.dtype.name not in types:
        raise RuntimeError(f"{name}: Unsupported data type: {input.dtype}. Expected one of {', '.join(types)}.")
    if dtype is not None and dtype not in (input.dtype, float32):
        raise RuntimeError(
            f"{name}: Output data type must be same as input, FLOAT or skipped (defaults to input type): "
            f"got {dtype} for an input of {input.dtype}"
        )
    try:
        spatial_axes(input.layout, input.ndim or 0)
    except RuntimeError as error:
        raise RuntimeError(f"{name}: {error}") from None
    return like(input, dtype=dtype)


def by_axis(name: str, value: Any, axes: int, n: int) -> np.ndarray:
    """An argument with one number, or one for each spatial axis, as [n, axes]; [1, axes] if all samples agree."""
    if isinstance(value, list):
        return np.stack([by_axis(name, v, axes, 1)[0] if _fits(v, axes) else _refuse(name, v, axes, i)
                         for i, v in enumerate(value)])  # fmt: skip
    found = np.asarray(value)
    if found.ndim > 2 or found.shape[-1] not in (1, axes) or (found.ndim == 2 and len(found) != n):
        _refuse(name, found if found.ndim < 2 or len(found) != n else found[0], axes, 0)
    if found.ndim == 2 and found.strides[0] == 0:
        found = found[0]
    found = found if found.ndim == 2 else found[None]
    return np.broadcast_to(found, (len(found), axes))


def _fits(value: Any, axes: int) -> bool:
    return np.ndim(value) <= 1 and np.size(value) in (1, axes)


def _refuse(name: str, value: Any, axes: int, sample: int) -> Any:
    count = f"1 or {axes} elements" if axes > 1 else "1 element"
    raise bad_sample(sample, f"`{name}`: expected {count}, one for each spatial axis, got shape {np.shape(value)}")


class _Taps:
    """Weights that are uploaded apart from the records of a launch."""

    def __init__(self, taps: np.ndarray):
        self.taps = taps


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
    }
    if input.spec.device.device_id is None:
        windows = np.stack([most // 2 - all_reach, -all_reach, 2 * all_reach + 1], axis=-1)
        per_sample["windows"] = _for_each(windows, n)
        return Plan(input.shapes, per_sample)
    if axes <= 2 and most <= _TILE_WINDOW and n and int(view[:, 4].max()) <= _TILE_CHANNELS:
        return Plan(input.shapes, per_sample, {"tiled": True, "axes": axes, "wide": None})
    wide = _Taps(per_sample.pop("taps"))
    per_sample["reach"] = _for_each(all_reach.astype(np.int32), n)
    return Plan(input.shapes, per_sample, {"tiled": False, "axes": axes, "wide": wide})


def _for_each(rows: np.ndarray, n: int) -> np.ndarray:
    """One row for each sample; writable memory in every case, or the CPU kernels would be compiled for both."""
    return np.repeat(rows, n, axis=0) if len(rows) != n else np.array(rows)


def filter_array(array: Any, out: Any, view: Any, taps: Any, windows: Any, scales: Any) -> None:
    """One sample on the CPU. Bytes and floats are read and written as they are, other types by way of float32."""
    if not array.size:
        return
    source, target = array.reshape(-1), out.reshape(-1)
    if source.dtype not in _DIRECT:
        source = convert_array(source, _SHORT[source.dtype.name], "f32")
    exact = target if target.dtype in _DIRECT else np.empty(target.size, np.float32)
    _filter_lines(source, exact, view.tolist(), taps, windows, scales, _BYTE if target.dtype == np.uint8 else None)
    if exact is not target:
        convert_array(exact, "f32", _SHORT[target.dtype.name], target)


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


def filter_batch(launch: Any, out: Any, view: Any, tiled: bool, axes: int, wide: Any) -> None:
    """The batch on a GPU: one launch for small windows, else one for each axis by way of floats."""
    if not launch.n:
        return
    if tiled:
        _tiles(launch, view)
    else:
        _passes(launch, out, axes, wide.taps)


def _tiles(launch: Any, view: np.ndarray) -> None:
    def prepare() -> tuple[np.ndarray, dict[str, str]]:
        taps = launch.plan.per_sample["taps"]
        channels = max(1, int(view[:, 4].max()))
        pixels = _TILE_WIDTH // view[:, 4].clip(1) // 4 * 4
        work = view[:, 0] * view[:, 1] * -(-view[:, 2] // _TILE_ROWS) * -(-view[:, 3] // pixels) * _BLOCK
        work = np.where(view[:, 4] > 0, work, 0)
        window = taps.shape[3]
        macros = {
            "TILED": "1", "TERMS": str(taps.shape[1]), "WINDOW": str(window), "ROWS": str(_TILE_ROWS),
            "WIDTH": str(_TILE_WIDTH), "COLUMNS": str(_TILE_WIDTH + (window // 2) * 2 * channels),
            "CHANNELS": str(channels if (view[:, 4] == channels).all() else 0),
        }  # fmt: skip
        return work, macros

    work, macros = launch.remember("tiles", prepare)
    launch("separable_tiles", work, macros=macros, file="separable.cu", kept="tiles")


def _passes(launch: Any, out: Any, axes: int, taps: np.ndarray) -> None:
    """The fields of the terms go from the input through each axis, the innermost first; the last pass adds them up."""
    sizes = out.sizes
    begins = np.concatenate(([0], np.cumsum(sizes)[:-1])) * taps.shape[1] * 4
    weights = launch.upload(taps)
    each = taps.strides[0] * np.arange(launch.n) + weights.data_ptr()
    count = max(1, axes - 1) if axes > 1 else 0
    fields = [launch.empty(int(sizes.sum()) * taps.shape[1], np.float32) for _ in range(min(count, 2))]
    places = [begins + field.data_ptr() for field in fields]
    for i in range(axes):
        first, last = i == 0, i == axes - 1
        macros = {
            "TERMS": str(taps.shape[1]), "WINDOW": str(taps.shape[3]), "AXIS": str(2 - i), "FIRST": str(int(first)),
            "LAST": str(int(last)),
        }  # fmt: skip
        addresses = {"taps": each}
        if not first:
            addresses["source"] = places[(i - 1) % 2]
        if not last:
            addresses["target"] = places[i % 2]
        launch("separable_pass", macros=macros, file="separable.cu", kept=("pass", i), addresses=addresses)
