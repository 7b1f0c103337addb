"""Windows of images and arrays: their positions, the policies for edges, and cutting them out on the CPU.

Positions, sizes and extents are int64 arrays `[N, axes]`, the whole batch at once. `crop`, `slice`,
`crop_mirror_normalize` and the region decoders share these rules.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ndd._cpu.windows import cut_bytes, first_outside, join_axes, place_windows
from ndd._operator import Operand, Plan, Values, bad_sample
from ndd._operator.partition import Rows
from ndd._operator.unit_warnings import warn_of_whole_extent
from ndd._tensor import DType
from ndd._tensor.convert import convert_array, converter
from ndd._tensor.store import volumes

if TYPE_CHECKING:
    from ndd._cuda.launch import Launch

_CHUNK = 8  # adjacent output elements that a thread of window.cu computes
_SLOTS = 5  # the most axes of window.cu
POLICIES = ("error", "pad", "constant", "trim_to_shape")
ROUNDINGS = ("round", "truncate", "even")


def rounded(values: Any) -> Any:
    """Rounds to the nearest integer, halves away from zero, as int64."""
    values = np.asarray(values, np.float64)
    return np.trunc(values + np.copysign(0.5, values)).astype(np.int64)


def check_crop(operator: str, *, crop=None, crop_d=None, crop_h=None, crop_w=None, rounding: str = "round") -> None:
    """RuntimeError for arguments of `crop` that contradict each other, and an unknown `rounding`. Warns of constants that
    cut nothing off, as in DALI."""
    if rounding not in ROUNDINGS:
        raise RuntimeError(f"`rounding`: expected one of {', '.join(map(repr, ROUNDINGS))}, got {rounding!r}")
    if (crop_h is None) != (crop_w is None) or (crop_d is not None and crop_h is None and crop is None):
        raise RuntimeError("`crop_w` and `crop_h` must be given together, and `crop_d` only with them")
    if crop is not None and (crop_h is not None or crop_d is not None):
        raise RuntimeError("`crop` and `crop_d`, `crop_h`, `crop_w` exclude each other: give one or the other")
    sides = {k: v for k, v in (("crop_d", crop_d), ("crop_h", crop_h), ("crop_w", crop_w)) if v is not None}
    warn_of_whole_extent(operator, **({"crop": crop} if not sides else {", ".join(sides): list(sides.values())}))


def check_policy(policy: str, more: tuple[str, ...] = ()) -> None:
    """RuntimeError for an unknown out-of-bounds policy; upper and lower case are equal."""
    if policy.lower() not in (*POLICIES, *more):
        known = ", ".join(map(repr, (*POLICIES, *more)))
        raise RuntimeError(f"`out_of_bounds_policy`: expected one of {known}, got {policy!r}")


def crop_window(
    extents: np.ndarray, letters: str, *, rounding: str = "round", **window: Values | None
) -> tuple[np.ndarray, np.ndarray]:
    """Anchors and sizes of the windows of `crop`, for the axes named by `letters` ("HW" or "DHW").

    The anchor is `position * (extent - size)` in 64-bit floats (with a 32-bit position), rounded half away from zero,
    truncated, or as in torchvision's centre crop: half to even, and towards zero if the window is larger than the image. Sizes
    lose their fraction; one below 1 means the whole extent.
    """
    sizes, places = crop_sizes(letters, **window), crop_places(letters, **window)
    extents = np.ascontiguousarray(extents)
    anchors, shapes = np.empty_like(extents), np.empty_like(extents)
    wrong = place_windows(extents, sizes, places, ROUNDINGS.index(rounding), anchors, shapes)
    if wrong >= 0:
        raise misplaced(wrong, letters, places, window)
    return anchors, shapes


def crop_sizes(letters: str, *, crop=None, crop_d=None, crop_h=None, crop_w=None, **_: Any) -> np.ndarray:
    """The wanted sizes, float64 `[N or 1, axes]`; 0 is the whole extent."""
    if crop is None:
        return _possible(_columns([{"D": crop_d, "H": crop_h, "W": crop_w}[x] for x in letters]))
    rows = crop.rows()
    count = rows.shape[1]
    if count not in (2, 3):
        raise RuntimeError(f"`crop`: expected 2 elements (H, W) or 3 (D, H, W), got {count}")
    sizes = np.zeros((len(rows), len(letters)))
    n_sizes = min(count, len(letters))
    sizes[:, len(letters) - n_sizes :] = rows[:, count - n_sizes :]
    return _possible(sizes)


def _possible(sizes: np.ndarray) -> np.ndarray:
    if (sizes >= 2**31).any():
        raise RuntimeError(f"expected a window of fewer than 2**31 elements along each axis, got {sizes.max():g}")
    return sizes


def crop_places(letters: str, *, crop_pos_x=None, crop_pos_y=None, crop_pos_z=None, **_: Any) -> np.ndarray:
    """The positions, float64 `[N or 1, axes]`."""
    return _columns([{"D": crop_pos_z, "H": crop_pos_y, "W": crop_pos_x}[x] for x in letters])


def _columns(values: list[Values | None]) -> np.ndarray:
    """Numbers of samples side by side as float64 `[N or 1, columns]`; None is 0."""
    columns = np.zeros((next((v.n for v in values if v is not None), 1), len(values)))
    for k, value in enumerate(values):
        if value is not None:
            columns[:, k] = value.each()
    return columns


def misplaced(wrong: int, letters: str, places: np.ndarray, window: dict[str, Any]) -> Exception:
    """The error about a position; `wrong` is `sample * axes + axis`."""
    sample, axis = divmod(wrong, len(letters))
    name = {"D": "crop_pos_z", "H": "crop_pos_y", "W": "crop_pos_x"}[letters[axis]]
    place = places[sample if len(places) > 1 else 0, axis]
    text = f"`{name}`: expected a number from 0 to 1 (0 = start, 1 = end), got {place:g}"
    return window[name].error(sample, text)


def bounded(
    anchors: np.ndarray, shapes: np.ndarray, extents: np.ndarray, policy: str
) -> tuple[np.ndarray, np.ndarray, bool]:
    """The windows after an out-of-bounds policy, and whether any still reaches outside."""
    sample = first_outside(*map(np.ascontiguousarray, (anchors, shapes, extents)))
    if sample < 0:
        return anchors, shapes, False
    if policy == "trim_to_shape":
        start = np.clip(anchors, 0, extents)
        return start, np.clip(anchors + shapes, 0, extents) - start, False
    if policy == "error":
        raise bad_sample(
            sample,
            f"the window at {_row(anchors, sample)} of shape {_row(shapes, sample)} reaches outside the input of shape "
            f'{_row(extents, sample)}. `out_of_bounds_policy="pad"` fills what lies outside, "trim_to_shape" cuts it',
        )
    return anchors, shapes, True


def _row(values: np.ndarray, sample: int) -> str:
    return str(tuple(values[sample].tolist()))


def wrapped(values: Any, numpy: np.dtype) -> np.ndarray:
    """Fill values as elements, converted as in C: the fraction is dropped and integers wrap around (300 -> 44)."""
    values = np.asarray(values, np.float64)
    if numpy.kind == "b":
        return values != 0
    if numpy.kind == "f":
        with np.errstate(over="ignore"):
            return values.astype(numpy)
    # Narrow types are converted through 32 bits; outside their range the hardware returns the lowest number.
    low = -(2.0**31) if numpy.itemsize < 4 or numpy == np.int32 else -(2.0**63)
    whole = np.trunc(values)
    whole = np.where((whole >= low) & (whole < -low), whole, low)
    return whole.astype(np.int64).astype(numpy)


def elements_of(values: Any, dtype: DType) -> np.ndarray:
    """Fill values as elements, see `wrapped`; of bfloat16 the bits."""
    if dtype.name == "bfloat16":
        return convert_array(np.asarray(values, np.float32), "f32", "bfloat16")
    return wrapped(values, dtype.numpy)  # type: ignore[attr-defined]


def numbers_of(elements: np.ndarray, dtype: DType) -> np.ndarray:
    """Elements as float64, the form in which kernels on a GPU take fill values."""
    if dtype.name == "bfloat16":
        elements = (elements.astype(np.uint32) << 16).view(np.float32)
    return elements.astype(np.float64)


def fill_axis(count: int, layout: str | None, shapes: np.ndarray) -> int:
    """The axis of `count` fill values: the channels of samples of these shapes; -1 for a single value."""
    if count == 1:
        return -1
    if "C" not in (layout or ""):
        raise RuntimeError(f"the fill has {count} elements, but the layout has no channel axis C")
    channel = layout.index("C")  # type: ignore[union-attr]
    for i in np.flatnonzero(shapes[:, channel] != count)[:1]:
        raise bad_sample(int(i), f"the fill has {count} elements, the array has {shapes[i, channel]} channels")
    return channel


def window_plan(
    input: Operand, starts: np.ndarray, shapes: np.ndarray, fill: Any, dtype: DType, layout: str | None = None
) -> Plan:
    """The plan of an operator whose output is a window of its input; `fill` are numbers `[1 or N, 1 or channels]`."""
    elements = elements_of(fill, dtype)
    count = elements.shape[1]
    channel, fills = fill_axis(count, layout, shapes), np.broadcast_to(elements, (input.n, count))
    per_sample = {"start": starts, "fill": fills}
    shared = {"channel": channel, "types": (input.dtype.name, dtype.name)}
    if dtype.name != input.dtype.name:
        return Plan(shapes, per_sample, shared, kernel=cut, inputs=(0,))
    kernel = _kernel(input.shapes, starts, shapes, fills, channel, dtype)
    # The kernel reads no more of the input than the window.
    work = 2 * dtype.bytes * volumes(shapes)
    return Plan(shapes, per_sample, shared, kernel=kernel, view="bytes", inputs=(0,), work=work)


@functools.cache
def _conversion(source: str, target: str) -> Callable[..., None]:
    """The conversion of window operators between element types (short names): fractions are dropped, numbers saturate."""
    if target == "f16" and source[0] in "ui":
        return _integer_to_half
    return converter(source, target, "truncate")


def _integer_to_half(array: np.ndarray, out: np.ndarray) -> None:
    """Converts integers to float16: those beyond its range become its largest number, and ties are rounded away from zero."""
    # Two forms, because NumPy before 2.1 refuses to clip without bounds.
    values = np.clip(array, -65504, None) if array.dtype.kind == "i" and array.itemsize > 1 else array
    values = np.minimum(values, min(65504, np.iinfo(array.dtype).max)).astype(np.float32)
    values += np.copysign(np.float32(0.25), values) * (np.abs(values) > 2048)  # breaks ties, changes nothing else
    out[...] = values


def _kernel(
    extents: np.ndarray, starts: np.ndarray, sizes: np.ndarray, fill: np.ndarray, channel: int, dtype: DType
) -> Any:
    """The function that copies windows of the same element type, as bytes."""
    item, axes = dtype.bytes, sizes.shape[1]
    joined, none = np.empty((3, len(sizes), max(1, axes)), np.int64), np.empty(len(sizes), np.int64)
    # Adjacent channels may be joined: then a line of the border holds several pixels.
    keep = channel if channel < axes - 1 else -1
    join_axes(*map(np.ascontiguousarray, (extents, starts, sizes)), keep, joined, 1, none)
    joined[:, :, -1] *= item
    inner = volumes(sizes[:, channel + 1 :]) if channel >= 0 else np.ones(len(sizes), np.int64)
    rows = dict(zip(("extents", "starts", "sizes"), map(Rows, joined), strict=True))
    elements = Rows(np.ascontiguousarray(fill).view(np.uint8))
    return functools.partial(cut_bytes, **rows, fill=elements, item=item, inner=Rows(inner))


def cut(image: np.ndarray, out: np.ndarray, start: Any, fill: Any, channel: int, types: tuple[str, str]) -> None:
    """Copies the window of `image` that begins at `start` to `out`, in another element type, with `fill` outside."""
    fill = fill[0] if channel < 0 else fill.reshape(-1, *(1,) * (out.ndim - channel - 1))
    source, target, inside = [], [], True
    for low, size, extent in zip(start.tolist(), out.shape, image.shape, strict=True):
        first, last = max(low, 0), min(low + size, extent)
        if first >= last:
            out[...] = fill
            return
        inside = inside and last - first == size
        source.append(slice(first, last))
        target.append(slice(first - low, last - low))
    if not inside:
        out = _with_border(out, target, fill)
    _conversion(*types)(image[tuple(source)], out)


def _with_border(out: np.ndarray, inner: list[slice], fill: Any) -> np.ndarray:
    """Fills an array around its `inner` part. Returns that part."""
    by_pixel = np.ndim(fill) == 1 and out.ndim > 1 and inner[-1] == slice(0, out.shape[-1])
    if np.ndim(fill) and not by_pixel:
        out[...] = fill
        return out[tuple(inner)]
    if by_pixel:
        fill = np.repeat(fill[None], out.shape[-2], axis=0)  # a line of pixels: NumPy copies lines fast, pixels slowly
    for axis, part in enumerate(inner):
        before = (slice(None),) * axis
        for border in (out[(*before, slice(0, part.start))], out[(*before, slice(part.stop, None))]):
            if border.size:
                border[...] = fill[: border.shape[-2]] if by_pixel else fill
        out = out[(*before, part)]
    return out


def cut_part(image: Operand, plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    """The pixels of images HWC that a `window_plan` reads: their begin and end, `[N, 2]` each."""
    starts = plan.per_sample["start"][:, :2]
    return starts, starts + plan.shapes[:, :2]


def cut_on_gpu(launch: Launch, *operands: Operand, start: np.ndarray, fill: np.ndarray, channel: int) -> None:
    """The launch of `window.cu` for input 0.

    An axis that is never cut is joined to the one before it, except axis `channel` (where the fill differs). The remaining axes
    use the last slots.
    """
    input, out = operands[0], operands[-1]
    joined, chunks = np.empty((3, input.n, _SLOTS), np.int64), np.empty(input.n, np.int64)
    arrays = map(np.ascontiguousarray, (input.shapes, start, out.shapes))
    groups, place = join_axes(*arrays, channel, joined, _CHUNK, chunks)
    if groups > _SLOTS:
        raise RuntimeError(f"a GPU takes at most {_SLOTS} axes that are cut, got {groups}")
    fields = {"fill": numbers_of(fill, out.dtype), "extent": joined[0], "start": joined[1], "size": joined[2]}
    launch(
        "window", chunks, per_sample=fields, shared={"channel_slot": place}, macros={"CHUNK": _CHUNK, "SLOTS": _SLOTS}
    )
